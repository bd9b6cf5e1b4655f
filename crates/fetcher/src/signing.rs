//! The choice of requests to sign, and demands of hosts for signatures.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crawl_identity::asks_for_signature;
use crawl_weburl::{CanonicalUrl, HostKey};
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Maximum remembered hosts that demanded signatures.
/// Beyond the limit: all are forgotten.
const MAX_HOSTS: usize = 1 << 16;
const ACCEPT_SIGNATURE: &str = "accept-signature";
/// The field that every signed request carries.
pub(crate) const SIGNATURE_INPUT: HeaderName = HeaderName::from_static("signature-input");

/// Signs requests (RFC 9421).
pub trait RequestSigner: fmt::Debug + Send + Sync {
    /// Returns the fields that sign one request to `authority`: a host in lower case, with the port
    /// if it is not the scheme's default. Each call makes a new signature.
    fn sign(&self, authority: &str) -> Vec<(HeaderName, HeaderValue)>;
}

/// When to sign requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignWhen {
    /// Sign the requests to hosts that demanded it.
    Challenged,
    /// Sign every request.
    Always,
}

/// The signer of a crawl, and when it signs.
#[derive(Clone, Debug)]
pub struct Signing {
    /// Makes the signatures.
    pub signer: Arc<dyn RequestSigner>,
    /// When to sign.
    pub when: SignWhen,
}

/// Hosts that demanded signatures since the fetcher was created.
#[derive(Debug, Default)]
pub(crate) struct Challenges {
    hosts: Mutex<HashSet<HostKey>>,
}

impl Challenges {
    /// Returns whether requests for this URL are signed.
    pub(crate) fn is_signed(&self, signing: Option<&Signing>, url: &CanonicalUrl) -> bool {
        match signing.map(|signing| signing.when) {
            None => false,
            Some(SignWhen::Always) => true,
            Some(SignWhen::Challenged) => self.hosts().contains(&url.host_key()),
        }
    }

    /// Remembers that the host of this URL demands signatures.
    pub(crate) fn remember(&self, url: &CanonicalUrl) {
        let mut hosts = self.hosts();
        if hosts.len() >= MAX_HOSTS {
            hosts.clear();
        }
        hosts.insert(url.host_key());
    }

    fn hosts(&self) -> std::sync::MutexGuard<'_, HashSet<HostKey>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether an answer refuses a request for want of a signature: 401, 403 or 429 with an
/// `Accept-Signature` field that Web Bot Auth can satisfy.
pub(crate) fn is_challenge(status: u16, headers: &HeaderMap) -> bool {
    let mut fields = headers.get_all(ACCEPT_SIGNATURE).iter();
    matches!(status, 401 | 403 | 429)
        && fields.any(|field| field.to_str().is_ok_and(asks_for_signature))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::is_challenge;

    #[test]
    fn rfc9421_5_1_only_a_refusal_with_accept_signature_is_a_challenge() {
        let field = r#"sig1=("@authority");tag="web-bot-auth""#;
        let mut headers = HeaderMap::new();
        assert!(!is_challenge(403, &headers));
        headers.append("accept-signature", "x=();tag=\"other\"".parse().unwrap());
        assert!(!is_challenge(403, &headers));
        headers.append("accept-signature", field.parse().unwrap());
        for status in [401, 403, 429] {
            assert!(is_challenge(status, &headers));
        }
        for status in [200, 404, 503] {
            assert!(!is_challenge(status, &headers));
        }
    }
}
