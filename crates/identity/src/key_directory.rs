//! The published directory of a crawler's keys, and the Signature Agent Card.

use serde::Serialize;

use crate::key::{KeyError, PublicKey, SigningKeySet, jwks, set_json};

/// The path where a host publishes the keys that sign for its whole domain.
pub const DIRECTORY_PATH: &str = "/.well-known/http-message-signatures-directory";
/// The media type of a directory at [`DIRECTORY_PATH`].
pub const DIRECTORY_TYPE: &str = "application/http-message-signatures-directory+json";
/// The thumbprint of the example key in RFC 9421 appendix B.1.4. A directory must not contain this
/// key, because its private part is public.
const EXAMPLE: &str = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";
/// Maximum keys in a published directory.
/// Beyond the limit: `crawl identity check` refuses the directory.
pub(crate) const MAX_KEYS: usize = 100;

impl SigningKeySet {
    /// Returns the public keys as the JSON Web Key Set to publish.
    #[must_use]
    pub fn to_directory_json(&self) -> String {
        set_json(self.public().iter().map(PublicKey::jwk).collect())
    }
}

/// A defect of a published directory of keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryFault {
    /// The text is not a JSON Web Key Set.
    #[error("{0}")]
    Json(KeyError),
    /// The directory has more keys than verifiers are required to read. Contains the number of
    /// keys.
    #[error("it has {0} keys; verifiers need not read more than {MAX_KEYS}")]
    TooMany(usize),
    /// The entry with this number is not a JSON Web Key, so verifiers skip it. Numbers start at 1.
    #[error("key {0} isn't a JSON Web Key")]
    NotAKey(usize),
    /// The key with this number declares a use other than Ed25519 signatures.
    #[error("key {0}: its `use` or `alg` says that it isn't for Ed25519 signatures")]
    OtherUse(usize),
    /// The key with this number is the example key of RFC 9421, whose private key is public.
    #[error("key {0} is the example of RFC 9421, whose private part is public: replace this key")]
    Example(usize),
    /// The key with this number is published together with its private part.
    #[error("key {0} is published with its private part `d`: replace this key")]
    Private(usize),
    /// The `x` of the key with this number is missing or doesn't have 32 bytes.
    #[error("key {0}: `x` isn't 32 bytes in base64url")]
    BadKey(usize),
    /// The `kid` of a key differs from the key's thumbprint.
    #[error("key {number}: `kid` is `{kid}`, but the key's thumbprint is `{thumbprint}`")]
    Kid {
        /// The number of the key, counted from 1.
        number: usize,
        /// The `kid` in the directory.
        kid: String,
        /// The key's thumbprint (RFC 7638).
        thumbprint: String,
    },
}

impl DirectoryFault {
    /// Returns a stable name for the type of fault, such as `private-key`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            DirectoryFault::Json(_) => "json",
            DirectoryFault::TooMany(_) => "too-many",
            DirectoryFault::NotAKey(_) | DirectoryFault::BadKey(_) => "broken-key",
            DirectoryFault::OtherUse(_) => "other-use",
            DirectoryFault::Example(_) => "example-key",
            DirectoryFault::Private(_) => "private-key",
            DirectoryFault::Kid { .. } => "kid",
        }
    }
}

/// Parses a published directory. Returns its Ed25519 keys and all defects.
#[must_use]
pub fn check_directory(text: &str) -> (Vec<PublicKey>, Vec<DirectoryFault>) {
    let keys = match jwks(text) {
        Ok(keys) => keys,
        Err(why) => return (Vec::new(), vec![DirectoryFault::Json(why)]),
    };
    let (mut public, mut faults) = (Vec::new(), Vec::new());
    if keys.len() > MAX_KEYS {
        faults.push(DirectoryFault::TooMany(keys.len()));
    }
    for (number, jwk) in (1..).zip(keys.into_iter().take(MAX_KEYS)) {
        let Some(jwk) = jwk else {
            faults.push(DirectoryFault::NotAKey(number));
            continue;
        };
        if jwk.d.is_some() {
            faults.push(DirectoryFault::Private(number));
        }
        if !jwk.is_ed25519() {
            continue;
        }
        let Some(key) = jwk.public_key() else {
            faults.push(DirectoryFault::BadKey(number));
            continue;
        };
        if jwk.is_for_something_else() {
            faults.push(DirectoryFault::OtherUse(number));
            continue;
        }
        let thumbprint = key.thumbprint();
        if thumbprint == EXAMPLE {
            faults.push(DirectoryFault::Example(number));
        }
        if let Some(kid) = jwk.kid.filter(|kid| *kid != thumbprint) {
            faults.push(DirectoryFault::Kid {
                number,
                kid,
                thumbprint,
            });
        }
        public.push(key);
    }
    if public.is_empty() && faults.is_empty() {
        faults.push(DirectoryFault::Json(KeyError::None));
    }
    (public, faults)
}

/// A Signature Agent Card (draft-meunier-webbotauth-registry-04), with a crawler's description of
/// itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SignatureAgentCard {
    /// The URL of the card itself.
    pub client_id: String,
    /// The name of the crawler.
    pub client_name: String,
    /// The URL of a page about the crawler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_uri: Option<String>,
    /// URLs for contacting the operator.
    pub contacts: Vec<String>,
    /// The URL of the published keys.
    pub jwks_uri: String,
    /// The members that the draft defines for crawlers.
    pub web_bot_auth: AgentCardDetails,
}

/// The member `web_bot_auth` of a [`SignatureAgentCard`], which describes a crawler: User-Agent,
/// robots.txt compliance, purpose and request rate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AgentCardDetails {
    /// The `User-Agent` field of the crawler's requests.
    pub expected_user_agent: String,
    /// The product token of the crawler, as used in robots.txt.
    pub rfc9309_product_token: String,
    /// The robots.txt directives that the crawler obeys.
    pub rfc9309_compliance: Vec<String>,
    /// The trigger of the requests: `crawler` if they aren't triggered by users.
    pub trigger: String,
    /// The purpose for which pages are fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// How a site can set the request rate.
    pub rate_control: String,
    /// A description of the request rate to expect.
    pub rate_expectation: String,
}

#[cfg(test)]
#[path = "key_directory_tests.rs"]
mod tests;
