//! Keys of the `meta` table.

/// The number of the layout.
pub(super) const LAYOUT: &str = "layout";
/// The key that fingerprints are computed with.
pub(super) const FINGERPRINT_KEY: &str = "fingerprint-key";
/// Counters that continue after a restart.
pub(super) const SEQUENCE: &str = "sequence";
/// The list of the sieve's sorted runs.
pub(super) const RUNS: &str = "runs";
/// Prefix of the keys that hold the committed lengths of files, by file name.
pub(super) const MARK: &str = "mark/";
/// Prefix of the keys that hold values of the caller, by the caller's names.
pub(super) const CALLER: &str = "caller/";

pub(super) fn of(prefix: &str, name: &str) -> Vec<u8> {
    [prefix.as_bytes(), name.as_bytes()].concat()
}
