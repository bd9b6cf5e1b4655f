//! Verifies the signatures of a request.

use sfv::{BareItem, Dictionary, InnerList, ListEntry, Parser};

use crate::key::PublicKey;
use crate::message::{BaseError, Message, component_id};
use crate::sign::TAG;

/// Maximum signatures of one request that are looked at.
/// Beyond the limit: not verified.
const MAX_SIGNATURES: usize = 16;

/// Keys, and the URL that publishes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    url: String,
    keys: Vec<PublicKey>,
}

impl Directory {
    /// Returns the keys.
    #[must_use]
    pub fn keys(&self) -> &[PublicKey] {
        &self.keys
    }

    /// Creates a directory from the keys found at `url`.
    #[must_use]
    pub fn new(url: &str, keys: Vec<PublicKey>) -> Directory {
        Directory {
            url: normalized(url),
            keys,
        }
    }
}

/// The verdict on one signature of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The label of the signature.
    pub label: String,
    /// The URL of the signer's keys, if the signature covers one.
    pub agent: Option<String>,
    /// The thumbprint of the key, if the signature names one.
    pub keyid: Option<String>,
    /// The time of the signature, in seconds since 1970, if the signature names one.
    pub created: Option<u64>,
    /// The nonce, if the signature has one.
    pub nonce: Option<String>,
    /// Why the signature doesn't hold, if it doesn't.
    pub result: Result<(), Fault>,
}

/// Why a signature doesn't hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A field can't be parsed.
    #[error("{0} can't be parsed")]
    Malformed(&'static str),
    /// `Signature` has no member with this label.
    #[error("the Signature field has no `{0}`")]
    NoSignature(String),
    /// The signature is not one of Web Bot Auth.
    #[error("its tag isn't \"web-bot-auth\"")]
    Tag,
    /// A required parameter is missing or has the wrong type.
    #[error("it has no valid `{0}`")]
    NoParameter(&'static str),
    /// The signature covers neither the authority nor the URL.
    #[error("it covers neither @authority nor @target-uri")]
    NoAuthority,
    /// The signature covers no `Signature-Agent` member.
    #[error("it covers no https URL in Signature-Agent")]
    NoAgent,
    /// The algorithm is not Ed25519.
    #[error("its algorithm is `{0}`, not ed25519")]
    Algorithm(String),
    /// The signature expires before it begins.
    #[error("it expires before it is created")]
    Backwards,
    /// The signature was made after the request.
    #[error("it is {0} s younger than the request")]
    Future(u64),
    /// The signature had expired at the time of the request.
    #[error("it had expired {0} s before the request")]
    Expired(u64),
    /// The keys of this URL are not known.
    #[error("the keys of {0} aren't known")]
    UnknownAgent(String),
    /// The signer's directory has no such key.
    #[error("{agent} has no key `{keyid}`")]
    UnknownKey {
        /// The URL of the signer's keys.
        agent: String,
        /// The thumbprint that the signature names.
        keyid: String,
    },
    /// The key had expired at the time of the request.
    #[error("its key had expired")]
    ExpiredKey,
    /// The signature base can't be built.
    #[error("{0}")]
    Base(BaseError),
    /// The signature is not the key's signature of this request.
    #[error("it isn't the key's signature of this request")]
    Wrong,
}

/// Verifies each signature of a request that was received at `at`, in seconds since 1970. A request
/// without signatures has no verdicts.
///
/// `leeway` is how many seconds the clocks may differ. Keys are looked up by the URL that the
/// signature covers together with the key's thumbprint, never by the thumbprint alone.
#[must_use]
pub fn verify(message: &Message, known: &[Directory], at: u64, leeway: u64) -> Vec<Verdict> {
    let Some(inputs) = message.field("signature-input") else {
        return Vec::new();
    };
    let Ok(inputs) = Parser::new(&inputs).parse::<Dictionary>() else {
        return vec![unread(Fault::Malformed("Signature-Input"))];
    };
    let signatures = message.field("signature").unwrap_or_default();
    let Ok(signatures) = Parser::new(&signatures).parse::<Dictionary>() else {
        return vec![unread(Fault::Malformed("Signature"))];
    };
    let inputs = inputs.iter().take(MAX_SIGNATURES);
    let verdicts = inputs.map(|(label, input)| {
        let label = label.as_str().to_owned();
        let ListEntry::InnerList(input) = input else {
            let fault = Err(Fault::Malformed("Signature-Input"));
            return Verdict {
                label,
                result: fault,
                ..unread(Fault::Tag)
            };
        };
        let signature = match signatures.get(label.as_str()) {
            Some(ListEntry::Item(item)) => match &item.bare_item {
                BareItem::ByteSequence(bytes) => Some(bytes.as_slice()),
                _ => None,
            },
            _ => None,
        };
        let signed = Signed {
            message,
            input,
            signature,
        };
        Verdict {
            agent: signed.agent(),
            keyid: text(input, "keyid"),
            created: seconds(input, "created"),
            nonce: text(input, "nonce"),
            result: signed.judge(&label, known, at, leeway),
            label,
        }
    });
    verdicts.collect()
}

fn unread(fault: Fault) -> Verdict {
    Verdict {
        label: String::new(),
        agent: None,
        keyid: None,
        created: None,
        nonce: None,
        result: Err(fault),
    }
}

/// A request with one of its signatures.
struct Signed<'a> {
    message: &'a Message,
    input: &'a InnerList,
    signature: Option<&'a [u8]>,
}

impl Signed<'_> {
    fn judge(&self, label: &str, known: &[Directory], at: u64, leeway: u64) -> Result<(), Fault> {
        let no_signature = || Fault::NoSignature(label.to_owned());
        let signature = self.signature.ok_or_else(no_signature)?;
        if text(self.input, "tag").as_deref() != Some(TAG) {
            return Err(Fault::Tag);
        }
        if !self.covers("\"@authority\"") && !self.covers("\"@target-uri\"") {
            return Err(Fault::NoAuthority);
        }
        let keyid = text(self.input, "keyid").ok_or(Fault::NoParameter("keyid"))?;
        let created = seconds(self.input, "created").ok_or(Fault::NoParameter("created"))?;
        let expires = seconds(self.input, "expires").ok_or(Fault::NoParameter("expires"))?;
        match text(self.input, "alg") {
            Some(algorithm) if algorithm != "ed25519" => return Err(Fault::Algorithm(algorithm)),
            _ => {}
        }
        if expires < created {
            return Err(Fault::Backwards);
        }
        let agent = self.agent().ok_or(Fault::NoAgent)?;
        let unknown = || Fault::UnknownAgent(agent.clone());
        let url = normalized(&agent);
        let directory = known.iter().find(|known| known.url == url);
        let mut keys = directory.ok_or_else(unknown)?.keys.iter();
        let key = keys.find(|key| key.thumbprint() == keyid);
        let key = key.ok_or(Fault::UnknownKey { agent, keyid })?;
        let base = self.message.signature_base(self.input);
        if !key.verifies(base.map_err(Fault::Base)?.as_bytes(), signature) {
            return Err(Fault::Wrong);
        }
        // The times come last, so that a fault of time means that the key did sign.
        if key
            .expires
            .is_some_and(|end| end.saturating_add(leeway) < at)
        {
            return Err(Fault::ExpiredKey);
        }
        if created > at.saturating_add(leeway) {
            return Err(Fault::Future(created - at));
        }
        match at.saturating_sub(expires) {
            late if late > leeway => Err(Fault::Expired(late)),
            _ => Ok(()),
        }
    }

    fn covers(&self, id: &str) -> bool {
        self.input.items.iter().any(|item| component_id(item) == id)
    }

    /// Returns the URL in the `Signature-Agent` member that the signature covers, or in the whole
    /// field in the older form without members. `None` if there is none or it isn't https.
    fn agent(&self) -> Option<String> {
        let field = self.message.field("signature-agent")?;
        let covered = self.input.items.iter().find(|item| match &item.bare_item {
            BareItem::String(name) => name.as_str() == "signature-agent",
            _ => false,
        })?;
        let item = match covered.params.get("key") {
            Some(BareItem::String(key)) => {
                let members = Parser::new(&field).parse::<Dictionary>().ok()?;
                match members.get(key.as_str())? {
                    ListEntry::Item(item) => item.clone(),
                    ListEntry::InnerList(_) => return None,
                }
            }
            Some(_) => return None,
            None => Parser::new(&field).parse::<sfv::Item>().ok()?,
        };
        match &item.bare_item {
            BareItem::String(url) if url.as_str().starts_with("https://") => {
                Some(url.as_str().to_owned())
            }
            _ => None,
        }
    }
}

fn text(input: &InnerList, name: &str) -> Option<String> {
    match input.params.get(name)? {
        BareItem::String(text) => Some(text.as_str().to_owned()),
        _ => None,
    }
}

fn seconds(input: &InnerList, name: &str) -> Option<u64> {
    match input.params.get(name)? {
        BareItem::Integer(seconds) => u64::try_from(i64::from(*seconds)).ok(),
        _ => None,
    }
}

/// Returns a URL without its query, with scheme and host in lower case, and without the default
/// port, so that spellings of one identifier are equal.
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
