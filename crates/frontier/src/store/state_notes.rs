//! Notes: texts with the reasons why URLs failed or were excluded. There are few texts, and many
//! URLs share each.

use foldhash::HashMap;

use super::record_codec::StateNote;

/// Maximum number of notes (texts of reasons) whose numbers are remembered. Before there are more,
/// all remembered notes are forgotten. If one of their texts occurs again, it is written under a
/// new number.
const MAX_REMEMBERED: usize = 4096;

/// The numbers of recently written notes.
#[derive(Default)]
pub(super) struct NoteNumbers {
    numbers: HashMap<Vec<u8>, u64>,
}

impl NoteNumbers {
    /// Returns the number of a note. A new note gets the number after `last`, and is added to
    /// `new`.
    pub(super) fn number(
        &self,
        note: &StateNote,
        last: &mut u64,
        new: &mut Vec<(Vec<u8>, u64)>,
    ) -> u64 {
        let bytes = note.encode();
        let fresh = || {
            new.iter()
                .find(|(text, _)| *text == bytes)
                .map(|(_, number)| *number)
        };
        if let Some(number) = self.numbers.get(&bytes).copied().or_else(fresh) {
            return number;
        }
        *last += 1;
        new.push((bytes, *last));
        *last
    }

    /// Remembers notes that have just been written to disk.
    pub(super) fn keep(&mut self, new: Vec<(Vec<u8>, u64)>) {
        if self.numbers.len() + new.len() > MAX_REMEMBERED {
            self.numbers.clear();
        }
        self.numbers.extend(new);
    }
}
