//! Keys of the `meta` table.

/// Key of the version of the store's layout.
pub(super) const LAYOUT: &str = "layout";
/// Key of the crawl's `FingerprintKey`.
pub(super) const FINGERPRINT_KEY: &str = "fingerprint-key";
/// Key of the counters that continue after a restart (`StoreCounters`).
pub(super) const SEQUENCE: &str = "sequence";
/// Key of the list of the sieve's sorted runs (`RunManifest`).
pub(super) const RUNS: &str = "runs";
/// Prefix of the keys for the committed lengths of files. The file name follows.
pub(super) const MARK: &str = "mark/";
/// Prefix of the keys for values of the caller. The caller's name for the value follows.
pub(super) const CALLER: &str = "caller/";

pub(super) fn of(prefix: &str, name: &str) -> Vec<u8> {
    [prefix.as_bytes(), name.as_bytes()].concat()
}
