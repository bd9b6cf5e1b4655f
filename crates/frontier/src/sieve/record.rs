//! What the sieve holds: a fingerprint, and twelve octets that it never reads.

use crate::fingerprint::Fingerprint;

/// What is known of a URL, packed by whoever uses the sieve.
pub(crate) type Word = [u8; WORD_OCTETS];

pub(crate) const WORD_OCTETS: usize = 12;
pub(crate) const KEY_OCTETS: usize = 16;
/// A record as it stands in a run, and in a commit.
pub(crate) const RECORD_OCTETS: usize = KEY_OCTETS + WORD_OCTETS;

/// One URL that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) key: Fingerprint,
    pub(crate) word: Word,
}

impl Record {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.key.octets());
        out.extend(self.word);
    }

    /// The records that [`Record::put`] wrote one after the other; none where the octets
    /// are no whole number of them.
    pub(crate) fn all(octets: &[u8]) -> Option<impl Iterator<Item = Record>> {
        let (records, rest) = octets.as_chunks::<RECORD_OCTETS>();
        rest.is_empty().then(|| records.iter().map(Record::read))
    }

    pub(crate) fn read(octets: &[u8; RECORD_OCTETS]) -> Record {
        let mut key = [0; KEY_OCTETS];
        let mut word = [0; WORD_OCTETS];
        key.copy_from_slice(&octets[..KEY_OCTETS]);
        word.copy_from_slice(&octets[KEY_OCTETS..]);
        Record {
            key: Fingerprint::from_octets(key),
            word,
        }
    }
}
