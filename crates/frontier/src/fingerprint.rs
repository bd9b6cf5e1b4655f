//! URLs by their fingerprint.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use crawl_weburl::{CanonicalUrl, Origin};
use siphasher::sip128::SipHasher13;

/// The low bits of a fingerprint, which the whole URL decides.
const URL_BITS: u32 = 96;

/// The key under which a crawl's fingerprints are made.
///
/// Drawn at random when a crawl begins and kept with it, so that no site can make up two
/// URLs whose fingerprints are equal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FingerprintKey([u8; 16]);

/// 128 bits that stand for a URL, by `SipHash-1-3` under the crawl's [`FingerprintKey`]:
/// 32 of the text before the path, then 96 of the whole canonical form.
///
/// Sorted by it, the URLs of one origin lie together. Two URLs of one crawl are taken for
/// the same where their fingerprints are equal. Were all of 10^8 URLs of one origin, the
/// odds that any two share one would be 10^16 / 2^97, about 6 in 10^14; over 10^6 origins
/// they are about 6 in 10^20: far below those of a memory fault that changes the stored
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u128);

impl FingerprintKey {
    /// A key with the given bytes.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> FingerprintKey {
        FingerprintKey(bytes)
    }

    /// The bytes that [`FingerprintKey::new`] takes.
    #[must_use]
    pub fn bytes(&self) -> [u8; 16] {
        self.0
    }

    /// A key that nobody can foretell, from what the standard library seeds its hash
    /// maps with.
    #[must_use]
    pub fn random() -> FingerprintKey {
        let half = || RandomState::new().hash_one(0_u8).to_be_bytes();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&half());
        bytes[8..].copy_from_slice(&half());
        FingerprintKey(bytes)
    }

    /// The fingerprint of `url`.
    #[must_use]
    pub fn fingerprint(&self, url: &CanonicalUrl) -> Fingerprint {
        self.at_origin(self.hash(url.origin_text()), url)
    }

    /// The fingerprints of several URLs. The text before the path is hashed once for neighbours
    /// that share it, as most links of a page do.
    pub fn fingerprints<'u>(
        &self,
        urls: impl Iterator<Item = &'u CanonicalUrl>,
    ) -> impl Iterator<Item = Fingerprint> {
        let mut last = ("", 0);
        urls.map(move |url| {
            let origin = url.origin_text();
            if origin != last.0 {
                last = (origin, self.hash(origin));
            }
            self.at_origin(last.1, url)
        })
    }

    fn at_origin(&self, origin: u128, url: &CanonicalUrl) -> Fingerprint {
        let place = origin >> URL_BITS << URL_BITS;
        Fingerprint(place | (self.hash(url.as_str()) & ((1 << URL_BITS) - 1)))
    }

    /// The key of an origin's record.
    pub(crate) fn origin(&self, origin: &Origin) -> [u8; 16] {
        self.hash(origin.as_str()).to_be_bytes()
    }

    /// The hash of any text under this key.
    #[must_use]
    pub fn hash(&self, text: &str) -> u128 {
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

    /// Big-endian, so that the bytes sort as the number does.
    pub(crate) fn bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Fingerprint {
        Fingerprint(u128::from_be_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;

    use super::{FingerprintKey, URL_BITS};

    #[test]
    fn ours_fingerprints_never_change_under_one_key() {
        let key = FingerprintKey::new(*b"0123456789abcdef");
        let url = canonicalize(None, "http://example.org/a").unwrap();
        let other = canonicalize(None, "http://example.org/b?c").unwrap();
        assert_eq!(key.fingerprint(&url), key.fingerprint(&url));
        assert_ne!(key.fingerprint(&url), key.fingerprint(&other));
        let elsewhere = canonicalize(None, "https://example.org/a").unwrap();
        let urls = [&url, &other, &elsewhere, &url];
        let one_by_one = urls.map(|url| key.fingerprint(url));
        assert!(key.fingerprints(urls.into_iter()).eq(one_by_one));
        let place = |url| key.fingerprint(url).as_u128() >> URL_BITS;
        assert_eq!(place(&url), place(&other));
        assert_ne!(
            key.fingerprint(&url).as_u128() << 32,
            key.fingerprint(&other).as_u128() << 32
        );
        assert_ne!(FingerprintKey::random(), FingerprintKey::random());
    }
}
