//! SHA-1 by the crate `sha1`, which uses the processor's SHA instructions.

use ::sha1::{Digest as _, Sha1};

pub(super) fn digest(parts: &[&[u8]]) -> Vec<u8> {
    let mut hasher = Sha1::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().to_vec()
}
