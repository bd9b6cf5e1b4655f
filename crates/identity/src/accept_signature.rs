//! Parses a server's request for a signature.

use std::collections::BTreeSet;

use sfv::{BareItem, Dictionary, InnerList, ListEntry, Parser};

use crate::signable_message::component_id;

/// The value of the parameter `tag` in signatures of Web Bot Auth.
pub const TAG: &str = "web-bot-auth";
/// Maximum components in `Accept-Signature`.
/// Beyond the limit: the demand is not met.
const MAX_COMPONENTS: usize = 16;
/// Maximum bytes of a label or nonce or component in `Accept-Signature`.
/// Beyond the limit: the demand is not met.
const MAX_TEXT_BYTES: usize = 256;
/// The default label of a signature, used unless the server requests another one.
const LABEL: &str = "sig1";

/// A server's request for a signature (RFC 9421 section 5.1). The default is a signature with only
/// what Web Bot Auth requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptSignature {
    /// The label of the signature.
    pub(crate) label: String,
    /// The components to cover in addition to those that the protocol requires, in the format of
    /// `Signature-Input`.
    pub(crate) components: Vec<String>,
    /// The nonce that the signature must contain. `None` for a random nonce.
    pub nonce: Option<String>,
}

impl Default for AcceptSignature {
    fn default() -> AcceptSignature {
        AcceptSignature {
            label: LABEL.to_owned(),
            components: Vec::new(),
            nonce: None,
        }
    }
}

/// The reason why a requested signature can't be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptSignatureError {
    /// The request exceeds a limit.
    #[error("more than {MAX_COMPONENTS} components, or a long label or nonce")]
    TooLarge,
    /// The server requests an algorithm other than Ed25519.
    #[error("the algorithm `{0}`")]
    Algorithm(String),
    /// A requested component can't be covered by the signature.
    #[error("{0}")]
    Component(crate::SignatureBaseError),
}

impl AcceptSignature {
    /// Parses an `Accept-Signature` field. Uses the first member whose `tag` is that of Web Bot
    /// Auth, or that accepts any tag. `None` if there is no such member.
    ///
    /// # Errors
    /// [`AcceptSignatureError`] if the requested signature exceeds a limit or has an algorithm
    /// other than Ed25519.
    #[must_use]
    pub fn of(accept_signature: &str) -> Option<Result<AcceptSignature, AcceptSignatureError>> {
        let members = Parser::new(accept_signature).parse::<Dictionary>().ok()?;
        let mut lists = members.iter().filter_map(|(label, member)| match member {
            ListEntry::InnerList(list) => Some((label.as_str(), list)),
            ListEntry::Item(_) => None,
        });
        let is_ours = |list: &InnerList| match list.params.get("tag") {
            Some(BareItem::String(tag)) => tag.as_str() == TAG,
            // A `tag` without a value allows any tag.
            Some(BareItem::Boolean(true)) | None => true,
            Some(_) => false,
        };
        let (label, list) = lists.find(|(_, list)| is_ours(list))?;
        Some(AcceptSignature::of_member(label, list))
    }

    fn of_member(label: &str, list: &InnerList) -> Result<AcceptSignature, AcceptSignatureError> {
        let text = |name: &str| match list.params.get(name) {
            Some(BareItem::String(text)) => Some(text.as_str().to_owned()),
            _ => None,
        };
        if let Some(algorithm) = text("alg").filter(|algorithm| algorithm != "ed25519") {
            return Err(AcceptSignatureError::Algorithm(algorithm));
        }
        let components: Vec<String> = list.items.iter().map(component_id).collect();
        let nonce = text("nonce");
        let is_long = |text: &str| text.len() > MAX_TEXT_BYTES;
        if components.len() > MAX_COMPONENTS
            || is_long(label)
            || nonce.as_deref().is_some_and(is_long)
            || components.iter().any(|id| is_long(id))
        {
            return Err(AcceptSignatureError::TooLarge);
        }
        Ok(AcceptSignature {
            label: label.to_owned(),
            components,
            nonce,
        })
    }

    /// Returns whether both requests lead to the same signature apart from the nonce. The order of
    /// the components may differ.
    #[must_use]
    pub fn is_like(&self, replaced: &AcceptSignature) -> bool {
        let covered = |demand: &AcceptSignature| BTreeSet::from_iter(components(demand));
        self.label == replaced.label && covered(self) == covered(replaced)
    }
}

/// Returns the components that the signature must cover: the requested ones, and those that the
/// protocol requires.
pub(crate) fn components(demand: &AcceptSignature) -> Vec<String> {
    let mut components = demand.components.clone();
    let has = |components: &[String], id: &str| components.iter().any(|own| own == id);
    if !has(&components, AUTHORITY) && !has(&components, "\"@target-uri\"") {
        components.push(AUTHORITY.to_owned());
    }
    let own_agent = format!("{AGENT_KEY}{}", quoted(&demand.label));
    if !has(&components, &own_agent) {
        components.push(own_agent);
    }
    components
}

const AUTHORITY: &str = "\"@authority\"";
/// The prefix of a component that covers one member of `Signature-Agent`. The member's key follows,
/// in quotes.
pub(crate) const AGENT_KEY: &str = "\"signature-agent\";key=";

/// Formats a text as a string of a structured field (RFC 9651 section 4.1.6).
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::{AcceptSignature, AcceptSignatureError};

    #[test]
    fn rfc9421_5_1_a_member_of_accept_signature_requests_a_signature() {
        for (field, label) in [
            (r#"sig1=("@authority");tag="web-bot-auth""#, Some("sig1")),
            (
                r#"x=("@authority" "signature-agent";key="x");created;nonce="x""#,
                Some("x"),
            ),
            (
                r#"a=("@method");tag="payment", b=("@authority");tag="web-bot-auth""#,
                Some("b"),
            ),
            (r#"a=("@authority");tag"#, Some("a")),
            (r#"sig1=("@authority");tag="payment""#, None),
            (r#"sig1=("@authority");tag=web"#, None),
            ("sig1", None),
            ("", None),
            ("((", None),
        ] {
            let demand = AcceptSignature::of(field).map(|demand| demand.unwrap().label);
            assert_eq!(demand.as_deref(), label, "{field}");
        }
    }

    #[test]
    fn rfc9421_5_2_label_components_and_nonce_are_those_of_the_server() {
        let field = r#"mine=("@method" "signature-agent";key="mine");created;expires;nonce="n1""#;
        let demand = AcceptSignature::of(field).unwrap().unwrap();
        assert_eq!(demand.label, "mine");
        let components = [r#""@method""#, r#""signature-agent";key="mine""#];
        assert_eq!(demand.components, components);
        assert_eq!(demand.nonce.as_deref(), Some("n1"));
        let replaced = field.replace("n1", "n2");
        assert!(demand.is_like(&AcceptSignature::of(&replaced).unwrap().unwrap()));
        let plain = AcceptSignature::of(r#"sig1=("@authority")"#)
            .unwrap()
            .unwrap();
        assert!(plain.is_like(&AcceptSignature::default()) && !plain.is_like(&demand));
        let rsa = AcceptSignature::of(r#"a=();alg="rsa-pss-sha512""#).unwrap();
        assert_eq!(
            rsa,
            Err(AcceptSignatureError::Algorithm("rsa-pss-sha512".to_owned()))
        );
        let many = format!("a=({})", "\"@method\" ".repeat(17));
        let many = AcceptSignature::of(many.trim_end());
        assert_eq!(many.unwrap(), Err(AcceptSignatureError::TooLarge));
    }
}
