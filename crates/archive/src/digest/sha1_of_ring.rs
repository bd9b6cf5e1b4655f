//! SHA-1 by ring, for builds without the feature `fast`. Takes three times as long as the crate
//! `sha1`.

use ring::digest::SHA1_FOR_LEGACY_USE_ONLY;

pub(super) fn digest(parts: &[&[u8]]) -> Vec<u8> {
    super::digest(&SHA1_FOR_LEGACY_USE_ONLY, parts)
}
