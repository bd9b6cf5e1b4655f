//! A cache of the numbers of notes. A note is the reason why a URL failed or was excluded. Many
//! URLs share a note, so a record contains only the number of its note.

use foldhash::HashMap;

use super::record_codec::FailureOrExclusionNote;

/// Maximum number of notes whose numbers are remembered. If new notes would exceed this maximum,
/// all older numbers are forgotten. A forgotten note that occurs again is written again under a new
/// number.
const MAX_REMEMBERED: usize = 4096;

/// The numbers of recently written notes (why URLs failed or were excluded), by the encoded note.
#[derive(Default)]
pub(super) struct NoteNumberCache {
    numbers: HashMap<Vec<u8>, u64>,
}

impl NoteNumberCache {
    /// Returns the number of a note. If the note has none yet, increments `last`, assigns that
    /// number, and adds the note to `new`.
    pub(super) fn number(
        &self,
        note: &FailureOrExclusionNote,
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

    /// Remembers the numbers of notes that have just been written to disk.
    pub(super) fn keep(&mut self, new: Vec<(Vec<u8>, u64)>) {
        if self.numbers.len() + new.len() > MAX_REMEMBERED {
            self.numbers.clear();
        }
        self.numbers.extend(new);
    }
}
