//! URLs by their fingerprint.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use crawl_weburl::CanonicalUrl;
use siphasher::sip128::SipHasher13;

/// The key under which a crawl's fingerprints are made.
///
/// Drawn at random when a crawl begins and kept with it, so that no site can make up two
/// URLs whose fingerprints are equal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FingerprintKey([u8; 16]);

/// 128 bits that stand for a URL: `SipHash-1-3` of its canonical form, under the crawl's
/// [`FingerprintKey`].
///
/// Two URLs of one crawl are taken for the same where their fingerprints are equal. Among
/// 10^8 URLs the odds that any two share one are 10^16 / 2^129, about 1.5 in 10^23: far
/// below those of a memory fault that changes the stored bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u128);

impl FingerprintKey {
    /// A key with the given octets.
    #[must_use]
    pub fn new(octets: [u8; 16]) -> FingerprintKey {
        FingerprintKey(octets)
    }

    /// The octets that [`FingerprintKey::new`] takes.
    #[must_use]
    pub fn octets(&self) -> [u8; 16] {
        self.0
    }

    /// A key that nobody can foretell, from what the standard library seeds its hash
    /// maps with.
    pub(crate) fn random() -> FingerprintKey {
        let half = || RandomState::new().hash_one(0_u8).to_be_bytes();
        let mut octets = [0; 16];
        octets[..8].copy_from_slice(&half());
        octets[8..].copy_from_slice(&half());
        FingerprintKey(octets)
    }

    /// The fingerprint of `url`.
    #[must_use]
    pub fn fingerprint(&self, url: &CanonicalUrl) -> Fingerprint {
        Fingerprint(self.hash(url.as_str()))
    }

    /// 64 bits of the text before the path: what URLs of one origin share.
    pub(crate) fn place(&self, url: &CanonicalUrl) -> u64 {
        let text = url.as_str();
        let origin = text.len() - url.path_and_query().len();
        (self.hash(&text[..origin]) >> 64) as u64
    }

    fn hash(&self, text: &str) -> u128 {
        SipHasher13::new_with_key(&self.0)
            .hash(text.as_bytes())
            .as_u128()
    }
}

impl fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whoever reads a log must not be able to make up collisions.
        f.write_str("FingerprintKey(..)")
    }
}

impl Fingerprint {
    /// The bits as a number.
    #[must_use]
    pub fn as_u128(self) -> u128 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;

    use super::FingerprintKey;

    #[test]
    fn ours_fingerprints_never_change_under_one_key() {
        let key = FingerprintKey::new(*b"0123456789abcdef");
        let url = canonicalize(None, "http://example.org/a").unwrap();
        let other = canonicalize(None, "http://example.org/b?c").unwrap();
        assert_eq!(key.fingerprint(&url), key.fingerprint(&url));
        assert_ne!(key.fingerprint(&url), key.fingerprint(&other));
        assert_eq!(key.place(&url), key.place(&other));
        assert_ne!(FingerprintKey::random(), FingerprintKey::random());
    }
}
