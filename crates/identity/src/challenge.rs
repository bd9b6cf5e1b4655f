//! Recognizes a server's request for a signature.

use sfv::{BareItem, Dictionary, ListEntry, Parser};

use crate::sign::TAG;

/// Returns whether an `Accept-Signature` field (RFC 9421 section 5.1) requests a signature of Web
/// Bot Auth: a member has its tag, or no tag at all.
#[must_use]
pub fn asks_for_signature(accept_signature: &str) -> bool {
    let Ok(members) = Parser::new(accept_signature).parse::<Dictionary>() else {
        return false;
    };
    members.values().any(|member| match member {
        ListEntry::InnerList(list) => match list.params.get("tag") {
            Some(BareItem::String(tag)) => tag.as_str() == TAG,
            Some(_) => false,
            None => true,
        },
        ListEntry::Item(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::asks_for_signature;

    #[test]
    fn rfc9421_5_1_a_member_of_accept_signature_asks_for_a_signature() {
        for (field, asks) in [
            (r#"sig1=("@authority");tag="web-bot-auth""#, true),
            (
                r#"sig1=("@authority" "signature-agent";key="sig1");created;nonce="x""#,
                true,
            ),
            (
                r#"a=("@method");tag="payment", b=("@authority");tag="web-bot-auth""#,
                true,
            ),
            (r#"sig1=("@authority");tag="payment""#, false),
            (r#"sig1=("@authority");tag=web"#, false),
            ("sig1", false),
            ("", false),
            ("((", false),
        ] {
            assert_eq!(asks_for_signature(field), asks, "{field}");
        }
    }
}
