//! Verifies the signatures of a request.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use sfv::{BareItem, Dictionary, InnerList, Item, ListEntry, Parser};

use crate::accept_signature::TAG;
use crate::key::PublicKey;
use crate::signable_message::{SignableMessage, SignatureBaseError, component_id};

/// Maximum signatures of a request that `crawl identity verify` verifies.
/// Beyond the limit: further signatures are ignored.
const MAX_SIGNATURES: usize = 16;

/// A directory of public keys, with the URL that publishes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDirectory {
    url: String,
    keys: Vec<PublicKey>,
}

impl KeyDirectory {
    /// Returns the keys.
    #[must_use]
    pub fn keys(&self) -> &[PublicKey] {
        &self.keys
    }

    /// Creates a directory from the keys found at `url`.
    #[must_use]
    pub fn new(url: &str, keys: Vec<PublicKey>) -> KeyDirectory {
        KeyDirectory {
            url: normalized(url),
            keys,
        }
    }
}

/// The result of verifying one signature of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureVerdict {
    /// The label of the signature.
    pub label: String,
    /// The URL of the signer's keys. `None` if the signature doesn't cover it.
    pub agent: Option<String>,
    /// The thumbprint of the key that the signature names. `None` if it names no key.
    pub keyid: Option<String>,
    /// The creation time of the signature, in seconds since 1970. `None` if the signature doesn't
    /// contain it.
    pub created: Option<u64>,
    /// The nonce of the signature. `None` if it has none.
    pub nonce: Option<String>,
    /// `Ok` if the signature is valid, or else the reason why it isn't.
    pub result: Result<(), SignatureFault>,
}

/// The reason why a signature is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureFault {
    /// The header field with this name can't be parsed.
    #[error("{0} can't be parsed")]
    Malformed(&'static str),
    /// The `Signature` field has no member with this label.
    #[error("the Signature field has no `{0}`")]
    NoSignature(String),
    /// The parameter `tag` is not that of Web Bot Auth.
    #[error("its tag isn't \"web-bot-auth\"")]
    Tag,
    /// The required parameter with this name is missing or has the wrong type.
    #[error("it has no valid `{0}`")]
    NoParameter(&'static str),
    /// The signature covers neither `@authority` nor `@target-uri`.
    #[error("it covers neither @authority nor @target-uri")]
    NoAuthority,
    /// The signature covers no `Signature-Agent` member with an https URL.
    #[error("it covers no https URL in Signature-Agent")]
    NoAgent,
    /// The covered `Signature-Agent` member has parameters, which the protocol forbids.
    #[error("its Signature-Agent member has parameters, so it must be ignored")]
    AgentParameters,
    /// The algorithm is not Ed25519. Contains the name of the algorithm.
    #[error("its algorithm is `{0}`, not ed25519")]
    Algorithm(String),
    /// The signature expires before it was created.
    #[error("it expires before it is created")]
    Backwards,
    /// The signature is valid for too long. Contains its lifetime in seconds, which exceeds
    /// [`SignatureConditions::max_lifetime`].
    #[error("its lifetime of {0} s is too long")]
    Lifetime(u64),
    /// The signature was created this many seconds after the request.
    #[error("it is {0} s younger than the request")]
    Future(u64),
    /// The signature had expired this many seconds before the request.
    #[error("it had expired {0} s before the request")]
    Expired(u64),
    /// An earlier request had the same key and nonce.
    #[error("it is a replay: its nonce was used before")]
    Replay,
    /// The request was for this host, which is not one of the receiver's hosts.
    #[error("it was made for another host, `{0}`")]
    OtherHost(String),
    /// The verifier doesn't have the keys published at this URL.
    #[error("the keys of {0} aren't known")]
    UnknownAgent(String),
    /// The signer's directory doesn't contain the key.
    #[error("{agent} has no key `{keyid}`")]
    UnknownKey {
        /// The URL of the signer's keys.
        agent: String,
        /// The thumbprint of the key that the signature names.
        keyid: String,
    },
    /// The key had expired at the time of the request.
    #[error("its key had expired")]
    ExpiredKey,
    /// The key was not in use yet at the time of the request.
    #[error("its key wasn't in use yet")]
    EarlyKey,
    /// The signature base (the signed text) can't be built.
    #[error("{0}")]
    Base(SignatureBaseError),
    /// The signature doesn't match: it was made with a key other than the named one, or for another
    /// request.
    #[error("it isn't the key's signature of this request")]
    Wrong,
}

impl SignatureFault {
    /// Returns a stable name for the type of fault, such as `replay`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            SignatureFault::Malformed(_) => "malformed",
            SignatureFault::NoSignature(_) => "no-signature",
            SignatureFault::Tag => "other-tag",
            SignatureFault::NoParameter(_) => "no-parameter",
            SignatureFault::NoAuthority => "no-authority",
            SignatureFault::NoAgent => "no-agent",
            SignatureFault::AgentParameters => "agent-parameters",
            SignatureFault::Algorithm(_) => "algorithm",
            SignatureFault::Backwards => "backwards",
            SignatureFault::Lifetime(_) => "lifetime",
            SignatureFault::Future(_) => "future",
            SignatureFault::Expired(_) => "expired",
            SignatureFault::Replay => "replay",
            SignatureFault::OtherHost(_) => "other-host",
            SignatureFault::UnknownAgent(_) => "unknown-agent",
            SignatureFault::UnknownKey { .. } => "unknown-key",
            SignatureFault::ExpiredKey => "expired-key",
            SignatureFault::EarlyKey => "early-key",
            SignatureFault::Base(SignatureBaseError::Missing(_)) => "missing-component",
            SignatureFault::Base(SignatureBaseError::Unsupported(_)) => "unsupported-component",
            SignatureFault::Base(SignatureBaseError::Twice(_)) => "repeated-component",
            SignatureFault::Wrong => "wrong",
        }
    }

    /// Returns true if it is unknown whether the signature is valid: the key is unknown, or this
    /// crate doesn't support the signature's format.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        matches!(
            self,
            SignatureFault::Tag
                | SignatureFault::UnknownAgent(_)
                | SignatureFault::UnknownKey { .. }
                | SignatureFault::Algorithm(_)
                | SignatureFault::Base(SignatureBaseError::Unsupported(_))
        )
    }

    /// Returns true if the named key made the signature, and the fault only concerns a time.
    fn is_made_by_named_key(&self) -> bool {
        matches!(
            self,
            SignatureFault::Lifetime(_)
                | SignatureFault::Future(_)
                | SignatureFault::Expired(_)
                | SignatureFault::ExpiredKey
                | SignatureFault::EarlyKey
        )
    }
}

impl SignatureVerdict {
    /// Returns true if the named key made the signature: the signature is valid, or only a time is
    /// wrong (for example, it has expired).
    fn is_made_by_named_key(&self) -> bool {
        self.result
            .as_ref()
            .err()
            .is_none_or(SignatureFault::is_made_by_named_key)
    }

    /// Records that the request was for `host`, which is not one of the receiver's hosts. Replaces
    /// the result if the signature is valid or only a time is wrong.
    pub fn reject_host(&mut self, host: &str) {
        if self.is_made_by_named_key() {
            self.result = Err(SignatureFault::OtherHost(host.to_owned()));
        }
    }
}

/// The conditions for the validity of a signature: the time of the request with its tolerances, and
/// the maximum lifetime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignatureConditions {
    /// The approximate time of the request's receipt, in seconds since 1970.
    pub at: u64,
    /// How many seconds before `at` the request may have been received.
    pub before: u64,
    /// How many seconds after `at` the request may have been received.
    pub after: u64,
    /// Maximum lifetime of a signature, from `created` to `expires`, in seconds.
    pub max_lifetime: u64,
}

/// The nonces of earlier requests, to detect replays. Each takes about 16 bytes of memory.
#[derive(Debug, Default)]
pub struct SeenNonces {
    hasher: RandomState,
    seen: HashSet<u64>,
}

impl SeenNonces {
    /// Records the nonce of a verified signature. Changes the verdict to [`SignatureFault::Replay`]
    /// if an earlier request had the same key and nonce. Ignores forged signatures, so that a
    /// forger can't make valid signatures look like replays.
    pub fn judge(&mut self, verdict: &mut SignatureVerdict) {
        let Some(nonce) = verdict
            .nonce
            .as_ref()
            .filter(|_| verdict.is_made_by_named_key())
        else {
            return;
        };
        let id = self.hasher.hash_one((&verdict.keyid, nonce));
        if !self.seen.insert(id) {
            verdict.result = Err(SignatureFault::Replay);
        }
    }
}

/// Verifies each signature of a request. A request without signatures has no verdicts.
///
/// A signature covers the URL of a directory and names a key by its thumbprint. `known` must
/// contain this directory with this key.
#[must_use]
pub fn verify(
    message: &SignableMessage,
    known: &[KeyDirectory],
    terms: &SignatureConditions,
) -> Vec<SignatureVerdict> {
    let Some(inputs) = message.field("signature-input") else {
        return Vec::new();
    };
    let Ok(inputs) = Parser::new(&inputs).parse::<Dictionary>() else {
        return vec![unread(SignatureFault::Malformed("Signature-Input"))];
    };
    let signatures = message.field("signature").unwrap_or_default();
    let Ok(signatures) = Parser::new(&signatures).parse::<Dictionary>() else {
        return vec![unread(SignatureFault::Malformed("Signature"))];
    };
    let inputs = inputs.iter().take(MAX_SIGNATURES);
    let verdicts = inputs.map(|(label, input)| {
        let label = label.as_str().to_owned();
        let ListEntry::InnerList(input) = input else {
            let fault = Err(SignatureFault::Malformed("Signature-Input"));
            return SignatureVerdict {
                label,
                result: fault,
                ..unread(SignatureFault::Tag)
            };
        };
        let signature = match signatures.get(label.as_str()) {
            Some(ListEntry::Item(item)) => match &item.bare_item {
                BareItem::ByteSequence(bytes) => Some(bytes.as_slice()),
                _ => None,
            },
            _ => None,
        };
        let signed = SignedMessage {
            message,
            input,
            signature,
        };
        SignatureVerdict {
            agent: signed.agent(&label).ok(),
            keyid: text(input, "keyid"),
            created: seconds(input, "created"),
            nonce: text(input, "nonce"),
            result: signed.judge(&label, known, terms),
            label,
        }
    });
    verdicts.collect()
}

fn unread(fault: SignatureFault) -> SignatureVerdict {
    SignatureVerdict {
        label: String::new(),
        agent: None,
        keyid: None,
        created: None,
        nonce: None,
        result: Err(fault),
    }
}

/// A request with one of its signatures.
struct SignedMessage<'a> {
    message: &'a SignableMessage,
    input: &'a InnerList,
    signature: Option<&'a [u8]>,
}

impl SignedMessage<'_> {
    fn judge(
        &self,
        label: &str,
        known: &[KeyDirectory],
        terms: &SignatureConditions,
    ) -> Result<(), SignatureFault> {
        let no_signature = || SignatureFault::NoSignature(label.to_owned());
        let signature = self.signature.ok_or_else(no_signature)?;
        if text(self.input, "tag").as_deref() != Some(TAG) {
            return Err(SignatureFault::Tag);
        }
        if !self.covers("\"@authority\"") && !self.covers("\"@target-uri\"") {
            return Err(SignatureFault::NoAuthority);
        }
        let keyid = text(self.input, "keyid").ok_or(SignatureFault::NoParameter("keyid"))?;
        let created =
            seconds(self.input, "created").ok_or(SignatureFault::NoParameter("created"))?;
        let expires =
            seconds(self.input, "expires").ok_or(SignatureFault::NoParameter("expires"))?;
        match text(self.input, "alg") {
            Some(algorithm) if algorithm != "ed25519" => {
                return Err(SignatureFault::Algorithm(algorithm));
            }
            _ => {}
        }
        if expires < created {
            return Err(SignatureFault::Backwards);
        }
        let agent = self.agent(label)?;
        let unknown = || SignatureFault::UnknownAgent(agent.clone());
        let url = normalized(&agent);
        let directory = known.iter().find(|known| known.url == url);
        let mut keys = directory.ok_or_else(unknown)?.keys.iter();
        let key = keys.find(|key| key.thumbprint() == keyid);
        let key = key.ok_or(SignatureFault::UnknownKey { agent, keyid })?;
        let base = self.message.signature_base(self.input);
        if !key.verifies(base.map_err(SignatureFault::Base)?.as_bytes(), signature) {
            return Err(SignatureFault::Wrong);
        }
        // Check times last, so that a fault about a time implies that the named key made the
        // signature.
        key_in_use(key, terms)?;
        let (first, last) = (
            terms.at.saturating_sub(terms.before),
            terms.at.saturating_add(terms.after),
        );
        if expires - created > terms.max_lifetime {
            return Err(SignatureFault::Lifetime(expires - created));
        }
        if created > last {
            return Err(SignatureFault::Future(created - terms.at));
        }
        match expires < first {
            true => Err(SignatureFault::Expired(terms.at - expires)),
            false => Ok(()),
        }
    }

    fn covers(&self, id: &str) -> bool {
        self.input.items.iter().any(|item| component_id(item) == id)
    }

    /// Returns the URL in the covered `Signature-Agent` member. In the older format of
    /// `Signature-Agent`, the whole field is the URL. If the signature covers several members, uses
    /// the member whose key is the signature's label.
    fn agent(&self, label: &str) -> Result<String, SignatureFault> {
        let field = self.message.field("signature-agent");
        let field = field.ok_or(SignatureFault::NoAgent)?;
        let covered = self.input.items.iter();
        let covered: Vec<&Item> = covered
            .filter(|item| matches!(&item.bare_item, BareItem::String(name) if name.as_str() == "signature-agent"))
            .collect();
        let is_own = |item: &&&Item| matches!(item.params.get("key"), Some(BareItem::String(key)) if key.as_str() == label);
        let covered = match (covered.iter().find(is_own), covered.as_slice()) {
            (Some(own), _) => own,
            // Accept a single member whose key isn't the label, because an intermediary may have
            // changed the label.
            (None, [only]) => only,
            (None, _) => return Err(SignatureFault::NoAgent),
        };
        let malformed = |_| SignatureFault::Malformed("Signature-Agent");
        let item = match covered.params.get("key") {
            Some(BareItem::String(key)) => {
                let members = Parser::new(&field).parse::<Dictionary>();
                match members.map_err(malformed)?.get(key.as_str()) {
                    Some(ListEntry::Item(item)) => item.clone(),
                    _ => return Err(SignatureFault::NoAgent),
                }
            }
            Some(_) => return Err(SignatureFault::NoAgent),
            None => Parser::new(&field)
                .parse::<Item>()
                .map_err(|_| SignatureFault::NoAgent)?,
        };
        if !item.params.is_empty() {
            return Err(SignatureFault::AgentParameters);
        }
        match &item.bare_item {
            BareItem::String(url) if url.as_str().starts_with("https://") => {
                Ok(url.as_str().to_owned())
            }
            _ => Err(SignatureFault::NoAgent),
        }
    }
}

/// Checks that the key was in use when the request was received.
fn key_in_use(key: &PublicKey, terms: &SignatureConditions) -> Result<(), SignatureFault> {
    if key
        .expires
        .is_some_and(|end| end.saturating_add(terms.before) < terms.at)
    {
        return Err(SignatureFault::ExpiredKey);
    }
    match key.not_before {
        Some(start) if start > terms.at.saturating_add(terms.after) => {
            Err(SignatureFault::EarlyKey)
        }
        _ => Ok(()),
    }
}

pub(crate) fn text(input: &InnerList, name: &str) -> Option<String> {
    match input.params.get(name)? {
        BareItem::String(text) => Some(text.as_str().to_owned()),
        _ => None,
    }
}

pub(crate) fn seconds(input: &InnerList, name: &str) -> Option<u64> {
    match input.params.get(name)? {
        BareItem::Integer(seconds) => u64::try_from(i64::from(*seconds)).ok(),
        _ => None,
    }
}

/// Normalizes a URL so that different spellings of an identifier are equal: removes the query and
/// the default port, and converts scheme and host to lower case.
fn normalized(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.to_ascii_lowercase();
    let host = host.strip_suffix(":443").unwrap_or(&host);
    let path = if path.is_empty() { "/" } else { path };
    format!("{}://{host}{path}", scheme.to_ascii_lowercase())
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
