//! Signs requests.

use data_encoding::BASE64;
use sfv::{Dictionary, ListEntry, Parser};

use crate::accept_signature::{AGENT_KEY, AcceptSignature, TAG, components, quoted};
use crate::key::SigningKey;
use crate::signable_message::{SignableMessage, SignatureBaseError};

/// How long a signature is valid, in seconds.
pub const LIFETIME: u64 = 60;

/// Signs a request. Returns the names and values of the three header fields to add to it. `request`
/// must contain all header fields that the signature may cover. `agent` is the https URL of the
/// published keys, and `created` is the time of the signature, in seconds since 1970. `nonce` must
/// be random, and is ignored if `demand` contains a nonce.
///
/// The signature covers the components that `demand` requests, the authority, and the URL of the
/// keys. The signature is valid for [`LIFETIME`] seconds.
///
/// # Errors
/// [`SignatureBaseError`] if a requested component can't be covered.
pub fn signature_fields(
    key: &SigningKey,
    agent: &str,
    request: &SignableMessage,
    demand: &AcceptSignature,
    created: u64,
    nonce: &[u8],
) -> Result<[(&'static str, String); 3], SignatureBaseError> {
    let (label, keyid) = (&demand.label, key.thumbprint());
    let own_nonce = || BASE64.encode(nonce);
    let nonce = quoted(&demand.nonce.clone().unwrap_or_else(own_nonce));
    let expires = created.saturating_add(LIFETIME);
    let components = components(demand);
    // Keep this order of the parameters, because the crate httpsig can't verify signatures with
    // another order.
    let params = format!(
        "({});created={created};expires={expires};nonce={nonce};alg=\"ed25519\";keyid=\"{keyid}\"\
         ;tag=\"{TAG}\"",
        components.join(" ")
    );
    let agent = agent_field(&components, &quoted(agent));
    let mut request = request.clone();
    request
        .fields
        .push(("signature-agent".to_owned(), agent.clone()));
    let input = format!("{label}={params}");
    let unsupported = || SignatureBaseError::Unsupported(input.clone());
    let parsed = Parser::new(&input).parse::<Dictionary>();
    let covered = match parsed.map_err(|_| unsupported())?.pop() {
        Some((_, ListEntry::InnerList(covered))) => covered,
        _ => return Err(unsupported()),
    };
    let base = request.signature_base(&covered)?;
    let signature = BASE64.encode(&key.sign(base.as_bytes()));
    Ok([
        ("signature-agent", agent),
        ("signature-input", input),
        ("signature", format!("{label}=:{signature}:")),
    ])
}

/// Returns the value of the `Signature-Agent` field: one member for each covered component that
/// names a member of this field.
fn agent_field(components: &[String], agent: &str) -> String {
    let keys = components
        .iter()
        .filter_map(|id| id.strip_prefix(AGENT_KEY));
    let members = keys.map(|key| format!("{}={agent}", key.trim_matches('"')));
    members.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{LIFETIME, signature_fields};
    use crate::accept_signature::AcceptSignature;
    use crate::key::SigningKeySet;
    use crate::signable_message::{SignableMessage, SignatureBaseError};
    use crate::test_key::SEED;
    use crate::{KeyDirectory, SignatureConditions, verify};

    /// The example "EdDSA Using Curve edwards25519" in draft-ietf-webbotauth-httpsig-protocol-01
    /// can't be reproduced, because its label and times are not those of [`signature_fields`]. The
    /// tests of `verify` check that example.
    #[test]
    fn webbotauth_signs_the_authority_and_its_own_agent_member_for_a_minute() {
        let mut keys = SigningKeySet::default();
        keys.add(SEED, None);
        let agent = "https://signature-agent.test/keys.json";
        let key = keys.at(0).unwrap();
        let request = SignableMessage {
            authority: "example.com".to_owned(),
            ..SignableMessage::default()
        };
        let sign = |demand: &AcceptSignature| {
            signature_fields(key, agent, &request, demand, 100, b"nonce")
        };
        let [agent, input, signature] = sign(&AcceptSignature::default()).unwrap();
        assert_eq!(
            agent,
            (
                "signature-agent",
                r#"sig1="https://signature-agent.test/keys.json""#.to_owned()
            )
        );
        assert_eq!(
            input.1,
            "sig1=(\"@authority\" \"signature-agent\";key=\"sig1\");created=100\
             ;expires=160;nonce=\"bm9uY2U=\";alg=\"ed25519\"\
             ;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";tag=\"web-bot-auth\""
        );
        assert!(signature.1.starts_with("sig1=:") && signature.1.len() == 6 + 88 + 1);
    }

    #[test]
    fn webbotauth_5_3_a_requested_signature_also_satisfies_the_profile() {
        let mut keys = SigningKeySet::default();
        keys.add(SEED, None);
        let agent = "https://signature-agent.test/keys.json";
        let request = SignableMessage {
            method: "GET".to_owned(),
            authority: "example.com".to_owned(),
            target: "/p?q".to_owned(),
            fields: vec![("user-agent".to_owned(), "bot/1".to_owned())],
            ..SignableMessage::default()
        };
        let sign = |field: &str| {
            let demand = AcceptSignature::of(field).unwrap().unwrap();
            let key = keys.at(0).unwrap();
            signature_fields(key, agent, &request, &demand, 100, b"nonce")
        };
        let demand =
            r#"mine=("@method" "@path" "user-agent" "signature-agent";key="x");nonce="a\"b""#;
        let fields = sign(demand).unwrap();
        let covered = r#"mine=("@method" "@path" "user-agent" "signature-agent";key="x" "@authority" "signature-agent";key="mine");created=100"#;
        assert!(fields[1].1.starts_with(covered), "{}", fields[1].1);
        assert!(fields[1].1.contains(r#";nonce="a\"b";"#), "{}", fields[1].1);
        let mut signed = request.clone();
        for (name, value) in fields {
            signed.fields.push((name.to_owned(), value));
        }
        let directories = [KeyDirectory::new(agent, keys.public())];
        let terms = SignatureConditions {
            at: 100,
            max_lifetime: LIFETIME,
            ..SignatureConditions::default()
        };
        let verdict = &verify(&signed, &directories, &terms)[0];
        assert_eq!(verdict.result, Ok(()));
        assert_eq!(verdict.nonce.as_deref(), Some("a\"b"));
        for (field, fault) in [
            (
                r#"a=("cookie")"#,
                SignatureBaseError::Missing("\"cookie\"".to_owned()),
            ),
            (
                r#"a=("@status")"#,
                SignatureBaseError::Unsupported("\"@status\"".to_owned()),
            ),
            (
                r#"a=("@method" "@method")"#,
                SignatureBaseError::Twice("\"@method\"".to_owned()),
            ),
        ] {
            assert_eq!(sign(field), Err(fault));
        }
    }
}
