//! A record of the sieve: a fingerprint, and twelve bytes of state that the sieve never interprets.

use crate::fingerprint::Fingerprint;

/// The state of a URL, packed by the store. The sieve never interprets it.
pub(crate) type PackedState = [u8; STATE_BYTES];

pub(crate) const STATE_BYTES: usize = 12;
pub(crate) const KEY_BYTES: usize = 16;
/// The size in bytes of a record, both in a sorted run and in a commit.
pub(crate) const RECORD_BYTES: usize = KEY_BYTES + STATE_BYTES;

/// The fingerprint and the state of one known URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SieveRecord {
    pub(crate) key: Fingerprint,
    pub(crate) state: PackedState,
}

impl SieveRecord {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.key.bytes());
        out.extend(self.state);
    }

    /// Reads consecutive records that [`SieveRecord::put`] wrote. Returns `None` if `bytes` are not
    /// a whole number of records.
    pub(crate) fn all(bytes: &[u8]) -> Option<impl Iterator<Item = SieveRecord>> {
        let (records, rest) = bytes.as_chunks::<RECORD_BYTES>();
        rest.is_empty()
            .then(|| records.iter().map(SieveRecord::read))
    }

    pub(crate) fn read(bytes: &[u8; RECORD_BYTES]) -> SieveRecord {
        let mut key = [0; KEY_BYTES];
        let mut state = [0; STATE_BYTES];
        key.copy_from_slice(&bytes[..KEY_BYTES]);
        state.copy_from_slice(&bytes[KEY_BYTES..]);
        SieveRecord {
            key: Fingerprint::from_bytes(key),
            state,
        }
    }
}
