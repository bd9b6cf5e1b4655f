//! A cache of the IDs of notes. A note is the reason why a URL failed or was excluded. Many URLs
//! share a note, so a record contains only the ID of its note.

use foldhash::HashMap;

use super::record_codec::FailureOrExclusionNote;

/// Maximum number of notes whose IDs are remembered. If new notes would exceed this maximum, all
/// older IDs are forgotten. A forgotten note that occurs again is written again under a new ID.
const MAX_REMEMBERED: usize = 4096;

/// The IDs of recently written notes (why URLs failed or were excluded), by the encoded note.
#[derive(Default)]
pub(super) struct FailureOrExclusionNoteIds {
    ids: HashMap<Vec<u8>, u64>,
}

impl FailureOrExclusionNoteIds {
    /// Returns the ID of a note. If the note has none yet, increments `last`, assigns that ID, and
    /// adds the note to `new`.
    pub(super) fn id(
        &self,
        note: &FailureOrExclusionNote,
        last: &mut u64,
        new: &mut Vec<(Vec<u8>, u64)>,
    ) -> u64 {
        let bytes = note.encode();
        let fresh = || {
            new.iter()
                .find(|(text, _)| *text == bytes)
                .map(|(_, id)| *id)
        };
        if let Some(id) = self.ids.get(&bytes).copied().or_else(fresh) {
            return id;
        }
        *last += 1;
        new.push((bytes, *last));
        *last
    }

    /// Remembers the IDs of notes that have just been written to disk.
    pub(super) fn keep(&mut self, new: Vec<(Vec<u8>, u64)>) {
        if self.ids.len() + new.len() > MAX_REMEMBERED {
            self.ids.clear();
        }
        self.ids.extend(new);
    }
}
