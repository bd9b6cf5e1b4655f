//! Fingerprints of URLs.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use crawl_weburl::{CanonicalUrl, Origin};
use siphasher::sip128::SipHasher13;

/// The number of low bits of a fingerprint that are computed from the whole URL. The other bits are
/// computed from its origin.
const URL_BITS: u32 = 96;

/// The key of a crawl's fingerprints.
///
/// Drawn at random when a crawl begins and stored with it, so that no site can construct two URLs
/// with equal fingerprints.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FingerprintKey([u8; 16]);

/// 128 bits that stand for a URL: `SipHash-1-3` under the crawl's [`FingerprintKey`], with 32 bits
/// from the text before the path, then 96 bits from the whole canonical form.
///
/// Sorting by fingerprint puts the URLs of one origin together. Two URLs of one crawl are
/// considered equal if their fingerprints are equal. If all of 10^8 URLs belonged to one origin,
/// the probability that any two collide would be 10^16 / 2^97, about 6 in 10^14; over 10^6 origins
/// it is about 6 in 10^20. Both are far below the probability of a memory fault that changes the
/// stored bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u128);

impl FingerprintKey {
    /// Creates a key from the given bytes.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> FingerprintKey {
        FingerprintKey(bytes)
    }

    /// Returns the bytes that were passed to [`FingerprintKey::new`].
    #[must_use]
    pub fn bytes(&self) -> [u8; 16] {
        self.0
    }

    /// Creates an unpredictable key, from the seeds of the standard library's hash maps.
    #[must_use]
    pub fn random() -> FingerprintKey {
        let half = || RandomState::new().hash_one(0_u8).to_be_bytes();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&half());
        bytes[8..].copy_from_slice(&half());
        FingerprintKey(bytes)
    }

    /// Returns the fingerprint of `url`.
    #[must_use]
    pub fn fingerprint(&self, url: &CanonicalUrl) -> Fingerprint {
        self.at_origin(self.hash(url.origin_text()), url)
    }

    /// Returns the fingerprints of several URLs, in order. The part before the path is hashed only
    /// once for consecutive URLs that share it, such as most links of a page.
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

    /// Returns the key under which the record of an origin is stored.
    pub(crate) fn origin(&self, origin: &Origin) -> [u8; 16] {
        self.hash(origin.as_str()).to_be_bytes()
    }

    /// Returns the hash of any text under this key.
    #[must_use]
    pub fn hash(&self, text: &str) -> u128 {
        SipHasher13::new_with_key(&self.0)
            .hash(text.as_bytes())
            .as_u128()
    }
}

impl fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is not printed: a reader of the log must not be able to construct collisions.
        f.write_str("FingerprintKey(..)")
    }
}

impl Fingerprint {
    /// Returns the bits as a number.
    #[must_use]
    pub fn as_u128(self) -> u128 {
        self.0
    }

    /// Returns the bytes, big-endian, so that they sort like the number.
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
    fn fingerprints_depend_on_the_key_and_the_url_only() {
        let key = FingerprintKey::new(*b"0123456789abcdef");
        let url = canonicalize(None, "http://example.org/a").unwrap();
        let same_origin = canonicalize(None, "http://example.org/b?c").unwrap();
        assert_eq!(key.fingerprint(&url), key.fingerprint(&url));
        assert_ne!(key.fingerprint(&url), key.fingerprint(&same_origin));
        let other_origin = canonicalize(None, "https://example.org/a").unwrap();
        let urls = [&url, &same_origin, &other_origin, &url];
        let one_by_one = urls.map(|url| key.fingerprint(url));
        assert!(key.fingerprints(urls.into_iter()).eq(one_by_one));
        let place = |url| key.fingerprint(url).as_u128() >> URL_BITS;
        assert_eq!(place(&url), place(&same_origin));
        assert_ne!(
            key.fingerprint(&url).as_u128() << 32,
            key.fingerprint(&same_origin).as_u128() << 32
        );
        assert_ne!(FingerprintKey::random(), FingerprintKey::random());
    }
}
