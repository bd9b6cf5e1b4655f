//! Digests with a label that names the algorithm, such as `sha1:..`.

#[cfg_attr(not(feature = "fast"), path = "digest/sha1_of_ring.rs")]
mod sha1;

use data_encoding::{BASE32, HEXLOWER};
use ring::digest::{Algorithm, Context, SHA256};

/// The digest algorithms for payloads and blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DigestAlgorithm {
    /// `sha1:` and base 32. Other archives use this form too, so payloads can be compared with
    /// theirs.
    #[default]
    Sha1,
    /// `sha256:` and hexadecimal digits. Base 32 would end in `=`, which a digest value in WARC
    /// can't contain.
    Sha256,
}

impl DigestAlgorithm {
    /// Returns the labelled digest of the concatenated parts.
    #[must_use]
    pub fn of(self, parts: &[&[u8]]) -> String {
        let bytes = self.bytes(parts);
        match self {
            DigestAlgorithm::Sha1 => format!("sha1:{}", BASE32.encode(&bytes)),
            DigestAlgorithm::Sha256 => format!("sha256:{}", HEXLOWER.encode(&bytes)),
        }
    }

    pub(crate) fn bytes(self, parts: &[&[u8]]) -> Vec<u8> {
        match self {
            DigestAlgorithm::Sha1 => sha1::digest(parts),
            DigestAlgorithm::Sha256 => digest(&SHA256, parts),
        }
    }

    /// Returns the algorithm that the label of a digest names.
    pub(crate) fn of_label(digest: &str) -> Option<DigestAlgorithm> {
        match digest.split_once(':')?.0 {
            "sha1" => Some(DigestAlgorithm::Sha1),
            "sha256" => Some(DigestAlgorithm::Sha256),
            _ => None,
        }
    }
}

/// Returns the digest of the concatenated parts, computed by ring.
fn digest(algorithm: &'static Algorithm, parts: &[&[u8]]) -> Vec<u8> {
    let mut context = Context::new(algorithm);
    for part in parts {
        context.update(part);
    }
    context.finish().as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::DigestAlgorithm::{Sha1, Sha256};

    #[test]
    fn fips180_4_examples() {
        assert_eq!(Sha1.of(&[]), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
        assert_eq!(
            Sha1.of(&[b"ab", b"c"]),
            "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5"
        );
        assert_eq!(
            Sha256.of(&[b"abc"]),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
