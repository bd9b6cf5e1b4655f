//! The names in the `meta` table.

/// The number of the layout.
pub(super) const LAYOUT: &str = "layout";
/// The key of the fingerprints.
pub(super) const FINGERPRINT_KEY: &str = "fingerprint-key";
/// Counters that go on over a death.
pub(super) const SEQUENCE: &str = "sequence";
/// The list of the sieve's runs.
pub(super) const RUNS: &str = "runs";
/// Before the name of a file: its committed length.
pub(super) const MARK: &str = "mark/";
/// Before a name of the caller's own.
pub(super) const CALLER: &str = "caller/";

pub(super) fn of(prefix: &str, name: &str) -> Vec<u8> {
    [prefix.as_bytes(), name.as_bytes()].concat()
}
