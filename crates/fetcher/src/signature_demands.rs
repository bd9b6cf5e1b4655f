//! Decides which requests to sign, and remembers the signatures that hosts demand.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crawl_identity::{AcceptSignature, AcceptSignatureError, SignableMessage, SignatureBaseError};
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
    /// Returns the fields that sign one request. `asked` describes the signature that the server
    /// requested. Each call makes a new signature. Returns no fields if no key is in use.
    ///
    /// # Errors
    /// Fails if the server requested to cover something that the request doesn't have.
    fn sign(
        &self,
        request: &SignableMessage,
        asked: &AcceptSignature,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, SignatureBaseError>;
}

/// When to sign requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignWhen {
    /// Sign the requests to hosts that demanded a signature.
    Challenged,
    /// Sign every request.
    Always,
}

/// The signer of a crawl, and when it signs.
#[derive(Clone, Debug)]
pub struct SigningSettings {
    /// Makes the signatures.
    pub signer: Arc<dyn RequestSigner>,
    /// When to sign.
    pub when: SignWhen,
}

/// Whether an answer demands a signature, and whether the next request can carry it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SignatureDemandStatus {
    /// The answer demands no signature.
    None,
    /// The next request will carry the signature that the server requested.
    Met,
    /// The server requested a signature that can't be made, or refused the signature that it had
    /// requested. The value is the reason.
    Unmet(String),
}

/// The signatures that hosts demanded since the fetcher was created.
#[derive(Debug, Default)]
pub(crate) struct HostSignatureDemands {
    hosts: Mutex<HashMap<HostKey, SignatureDemand>>,
}

#[derive(Debug)]
struct SignatureDemand {
    asked: AcceptSignature,
    /// The nonce in the last signature, if the server had chosen it.
    used_nonce: Option<String>,
}

impl HostSignatureDemands {
    /// Returns whether requests for this URL are to be signed.
    pub(crate) fn is_signed(&self, signing: Option<&SigningSettings>, url: &CanonicalUrl) -> bool {
        match signing.map(|signing| signing.when) {
            None => false,
            Some(SignWhen::Always) => true,
            Some(SignWhen::Challenged) => self.hosts().contains_key(&url.host_key()),
        }
    }

    /// Returns the signature that the next request to the host of this URL needs. A nonce that the
    /// server chose is returned once.
    pub(crate) fn next_signature(&self, url: &CanonicalUrl) -> AcceptSignature {
        let mut hosts = self.hosts();
        let Some(demand) = hosts.get_mut(&url.host_key()) else {
            return AcceptSignature::default();
        };
        let asked = demand.asked.clone();
        demand.used_nonce = demand.asked.nonce.take();
        asked
    }

    /// Learns from the answer to a request for `url`. `demanded` is the signature that the answer
    /// demands, and `can_cover` tests whether this signature can be made.
    pub(crate) fn learn(
        &self,
        url: &CanonicalUrl,
        was_signed: bool,
        demanded: Option<Result<AcceptSignature, AcceptSignatureError>>,
        can_cover: impl FnOnce(&AcceptSignature) -> Result<(), SignatureBaseError>,
    ) -> SignatureDemandStatus {
        let Some(asked) = demanded else {
            return SignatureDemandStatus::None;
        };
        let coverable = asked.and_then(|asked| {
            can_cover(&asked).map_err(AcceptSignatureError::Component)?;
            Ok(asked)
        });
        let asked = match coverable {
            Ok(asked) => asked,
            Err(why) => return SignatureDemandStatus::Unmet(why.to_string()),
        };
        let mut hosts = self.hosts();
        let host = url.host_key();
        // If a server refuses exactly the signature that it requested, it would refuse the next one
        // too.
        let earlier = hosts.get(&host);
        let is_repeated = match earlier {
            Some(earlier) => earlier.asked.is_like(&asked),
            None => asked.is_like(&AcceptSignature::default()),
        };
        let has_own_nonce = earlier.is_none_or(|earlier| earlier.used_nonce.is_none());
        if was_signed && is_repeated && !(asked.nonce.is_some() && has_own_nonce) {
            return SignatureDemandStatus::Unmet(
                "the signature as requested was refused".to_owned(),
            );
        }
        if hosts.len() >= MAX_HOSTS {
            hosts.clear();
        }
        let used_nonce = None;
        hosts.insert(host, SignatureDemand { asked, used_nonce });
        SignatureDemandStatus::Met
    }

    fn hosts(&self) -> std::sync::MutexGuard<'_, HashMap<HostKey, SignatureDemand>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the signature that an answer demands: 401, 403 or 429 with an `Accept-Signature` field
/// that names Web Bot Auth, or no protocol.
pub(crate) fn demanded(
    status: u16,
    headers: &HeaderMap,
) -> Option<Result<AcceptSignature, AcceptSignatureError>> {
    if !matches!(status, 401 | 403 | 429) {
        return None;
    }
    let mut fields = headers.get_all(ACCEPT_SIGNATURE).iter();
    fields.find_map(|field| AcceptSignature::of(field.to_str().ok()?))
}

#[cfg(test)]
mod tests {
    use crawl_identity::{AcceptSignature, SignatureBaseError};
    use crawl_weburl::canonicalize;
    use http::HeaderMap;

    use super::{HostSignatureDemands, SignatureDemandStatus, demanded};

    const FIELD: &str = r#"sig1=("@authority");tag="web-bot-auth""#;

    #[test]
    fn rfc9421_5_1_only_a_refusal_with_accept_signature_is_a_challenge() {
        let mut headers = HeaderMap::new();
        assert!(demanded(403, &headers).is_none());
        headers.append("accept-signature", "x=();tag=\"other\"".parse().unwrap());
        assert!(demanded(403, &headers).is_none());
        headers.append("accept-signature", FIELD.parse().unwrap());
        for status in [401, 403, 429] {
            assert!(demanded(status, &headers).is_some());
        }
        for status in [200, 404, 503] {
            assert!(demanded(status, &headers).is_none());
        }
    }

    #[test]
    fn rfc9421_5_2_a_requested_signature_is_tried_once() {
        let challenges = HostSignatureDemands::default();
        let url = canonicalize(None, "https://e.example/").unwrap();
        let learn = |was_signed, field: &str| {
            challenges.learn(&url, was_signed, AcceptSignature::of(field), |_| Ok(()))
        };
        let refused =
            SignatureDemandStatus::Unmet("the signature as requested was refused".to_owned());
        assert_eq!(learn(false, ""), SignatureDemandStatus::None);
        // The usual signature was refused.
        assert_eq!(learn(true, FIELD), refused);
        assert_eq!(learn(false, FIELD), SignatureDemandStatus::Met);
        assert_eq!(challenges.next_signature(&url).nonce, None);
        // The server requests a signature with a nonce that it chose. The nonce is used once.
        let nonce = format!("{FIELD};nonce=\"n\"");
        assert_eq!(learn(true, &nonce), SignatureDemandStatus::Met);
        assert_eq!(challenges.next_signature(&url).nonce.as_deref(), Some("n"));
        assert_eq!(learn(true, &nonce), refused);
        assert_eq!(challenges.next_signature(&url).nonce, None);
        assert_eq!(learn(true, &nonce), SignatureDemandStatus::Met);
        // The server requests a signature over another component.
        assert_eq!(learn(true, r#"x=("@method")"#), SignatureDemandStatus::Met);
        assert_eq!(learn(true, r#"x=("@method")"#), refused);
    }

    #[test]
    fn a_component_that_cannot_be_covered_is_refused_by_name() {
        let challenges = HostSignatureDemands::default();
        let url = canonicalize(None, "https://e.example/").unwrap();
        let signature = AcceptSignature::of(r#"a=("cookie")"#);
        let missing =
            |_: &AcceptSignature| Err(SignatureBaseError::Missing("\"cookie\"".to_owned()));
        let why = "it covers `\"cookie\"`, which the request doesn't have".to_owned();
        assert_eq!(
            challenges.learn(&url, false, signature, missing),
            SignatureDemandStatus::Unmet(why)
        );
        let rsa = AcceptSignature::of(r#"a=();alg="rsa-v1_5-sha256""#);
        let why = "the algorithm `rsa-v1_5-sha256`".to_owned();
        assert_eq!(
            challenges.learn(&url, false, rsa, |_| Ok(())),
            SignatureDemandStatus::Unmet(why)
        );
        assert!(challenges.hosts().is_empty());
    }
}
