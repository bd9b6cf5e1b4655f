//! Notes: the texts that say why URLs failed or were excluded; few texts, said of many URLs.

use foldhash::HashMap;

use super::record_codec::Note;

/// Numbers that are remembered, at most. Above it all are forgotten, and a text that
/// comes again is written once more under a new number.
const MAX_REMEMBERED: usize = 4096;

/// The numbers of the notes that were written lately.
#[derive(Default)]
pub(super) struct Notes {
    numbers: HashMap<Vec<u8>, u64>,
}

impl Notes {
    /// The number of a note. A new one is the next after `last` and goes into `new`.
    pub(super) fn number(&self, note: &Note, last: &mut u64, new: &mut Vec<(Vec<u8>, u64)>) -> u64 {
        let bytes = note.encode();
        let fresh = || {
            new.iter()
                .find(|(known, _)| *known == bytes)
                .map(|(_, number)| *number)
        };
        if let Some(number) = self.numbers.get(&bytes).copied().or_else(fresh) {
            return number;
        }
        *last += 1;
        new.push((bytes, *last));
        *last
    }

    /// These are on disk now.
    pub(super) fn keep(&mut self, new: Vec<(Vec<u8>, u64)>) {
        if self.numbers.len() + new.len() > MAX_REMEMBERED {
            self.numbers.clear();
        }
        self.numbers.extend(new);
    }
}
