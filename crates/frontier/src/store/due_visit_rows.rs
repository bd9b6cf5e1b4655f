//! Rows of the table `due`. A row lists the URLs that one commit settled and whose next visits are
//! due at the same time.
//!
//! | key | value |
//! |---|---|
//! | due time, number of the commit | fingerprints |
//! | due time, fingerprint (written by earlier versions) | empty |
//!
//! An entry (a fingerprint) is valid as long as its URL is settled and the URL's stored visit is
//! due at the row's time. If the URL becomes pending earlier, the entry becomes invalid, but stays
//! until the due time.

use crate::fingerprint::Fingerprint;

const TIME_BYTES: usize = 4;
const KEY_BYTES: usize = 16;

/// A parsed row of the table `due`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DueVisitRow {
    /// The due time, in seconds since the Unix epoch.
    pub(super) due: u32,
    pub(super) urls: Vec<Fingerprint>,
}

impl DueVisitRow {
    /// Parses a row of the table `due`. Returns `None` for bytes that no writer produces.
    pub(super) fn parse(key: &[u8], value: &[u8]) -> Option<DueVisitRow> {
        let (due, rest) = key.split_first_chunk::<TIME_BYTES>()?;
        let urls = match (rest.len(), value) {
            (8, [_, ..]) => value,
            (KEY_BYTES, []) => rest,
            _ => return None,
        };
        let (urls, []) = urls.as_chunks::<KEY_BYTES>() else {
            return None;
        };
        Some(DueVisitRow {
            due: u32::from_be_bytes(*due),
            urls: urls.iter().copied().map(Fingerprint::from_bytes).collect(),
        })
    }
}

/// Returns the key of the row with the visits of commit `commit` that are due at `due`.
pub(super) fn due_key(due: u32, commit: u64) -> [u8; TIME_BYTES + 8] {
    let mut out = [0; TIME_BYTES + 8];
    out[..TIME_BYTES].copy_from_slice(&due.to_be_bytes());
    out[TIME_BYTES..].copy_from_slice(&commit.to_be_bytes());
    out
}

/// Returns the value of a row of the table `due` for these URLs.
pub(super) fn due_value(urls: &[Fingerprint]) -> Vec<u8> {
    urls.iter().flat_map(|url| url.bytes()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{DueVisitRow, due_key, due_value};
    use crate::fingerprint::Fingerprint;

    proptest! {
        #[test]
        fn rows_round_trip(due: u32, commit: u64, urls in prop::collection::vec(any::<[u8; 16]>(), 1..9)) {
            let urls: Vec<_> = urls.into_iter().map(Fingerprint::from_bytes).collect();
            let row = DueVisitRow::parse(&due_key(due, commit), &due_value(&urls));
            prop_assert_eq!(row, Some(DueVisitRow { due, urls }));
        }

        #[test]
        fn foreign_bytes_never_panic(key: Vec<u8>, value: Vec<u8>) {
            let _ = DueVisitRow::parse(&key, &value);
        }
    }

    #[test]
    fn rows_of_earlier_versions_have_one_url_in_their_key() {
        let key = [&7_u32.to_be_bytes()[..], &[9; 16]].concat();
        let row = DueVisitRow::parse(&key, &[]).unwrap();
        assert_eq!(
            (row.due, row.urls),
            (7, vec![Fingerprint::from_bytes([9; 16])])
        );
        for (key, value) in [
            (&key[..], &[9; 16][..]),
            (&due_key(7, 1), &[]),
            (&due_key(7, 1), &[9; 15]),
            (&key[..19], &[]),
            (&[0, 0, 7], &[9; 16]),
        ] {
            assert_eq!(DueVisitRow::parse(key, value), None, "{key:?}");
        }
    }
}
