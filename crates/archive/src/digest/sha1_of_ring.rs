//! SHA-1 by ring in a build without the feature `fast`. Takes three times as long.

use ring::digest::SHA1_FOR_LEGACY_USE_ONLY;

pub(super) fn digest(parts: &[&[u8]]) -> Vec<u8> {
    super::digest(&SHA1_FOR_LEGACY_USE_ONLY, parts)
}
