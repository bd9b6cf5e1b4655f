//! Signs requests.

use data_encoding::BASE64;

use crate::key::SigningKey;

/// The tag of Web Bot Auth's signatures.
pub const TAG: &str = "web-bot-auth";
/// Seconds for which a signature holds.
pub const LIFETIME: u64 = 60;
/// The label of the signature, which is also the key of its `Signature-Agent` member.
const LABEL: &str = "sig1";

/// Returns the three header fields that sign a request to `authority`, which is the host in lower
/// case, with the port if it is not the default. `agent` is the https URL of the published keys,
/// `created` is in seconds since 1970, and `nonce` is random.
///
/// The signature covers the authority and the URL of the keys, and holds for [`LIFETIME`] seconds.
#[must_use]
pub fn signature_fields(
    key: &SigningKey,
    agent: &str,
    authority: &str,
    created: u64,
    nonce: &[u8],
) -> [(&'static str, String); 3] {
    let (keyid, nonce) = (key.thumbprint(), BASE64.encode(nonce));
    let expires = created.saturating_add(LIFETIME);
    let params = format!(
        "(\"@authority\" \"signature-agent\";key=\"{LABEL}\");created={created};keyid=\"{keyid}\"\
         ;alg=\"ed25519\";expires={expires};nonce=\"{nonce}\";tag=\"{TAG}\""
    );
    let agent = quoted(agent);
    let base = format!(
        "\"@authority\": {authority}\n\"signature-agent\";key=\"{LABEL}\": {agent}\n\
         \"@signature-params\": {params}"
    );
    let signature = BASE64.encode(&key.sign(base.as_bytes()));
    [
        ("signature-agent", format!("{LABEL}={agent}")),
        ("signature-input", format!("{LABEL}={params}")),
        ("signature", format!("{LABEL}=:{signature}:")),
    ]
}

/// Returns a structured field string (RFC 9651 section 4.1.6).
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::signature_fields;
    use crate::key::KeySet;
    use crate::test_key::SEED;

    /// The signature of draft-ietf-webbotauth-httpsig-protocol-01, "EdDSA Using Curve
    /// edwards25519", has other labels and times than ours; `verify` holds it.
    #[test]
    fn webbotauth_signs_the_authority_and_its_own_agent_member_for_a_minute() {
        let mut keys = KeySet::default();
        keys.add(SEED, None);
        let agent = "https://signature-agent.test/keys.json";
        let key = keys.at(0).unwrap();
        let [agent, input, signature] = signature_fields(key, agent, "example.com", 100, b"nonce");
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
             ;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";alg=\"ed25519\";expires=160\
             ;nonce=\"bm9uY2U=\";tag=\"web-bot-auth\""
        );
        assert!(signature.1.starts_with("sig1=:") && signature.1.len() == 6 + 88 + 1);
    }
}
