//! The sieve by itself, over a ledger in memory and a disk that fails.

use crate::fingerprint::Fingerprint;

/// A key that looks like a fingerprint.
pub(crate) fn key(n: u64) -> Fingerprint {
    let high = (n / 50).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let low = (n + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let low = (low ^ (low >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
    Fingerprint::from_octets((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
}
