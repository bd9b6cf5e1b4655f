use super::{KeyDirectory, SeenNonces, SignatureConditions, SignatureFault, normalized, verify};
use crate::accept_signature::AcceptSignature;
use crate::key::SigningKeySet;
use crate::sign::signature_fields;
use crate::signable_message::SignableMessage;
use crate::test_key::{JWK, THUMBPRINT};

const AGENT: &str = "https://signature-agent.test";

fn request(fields: &[(&str, &str)]) -> SignableMessage {
    let owned = fields
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()));
    SignableMessage {
        authority: "example.com".to_owned(),
        fields: owned.collect(),
        ..SignableMessage::default()
    }
}

fn directories() -> [KeyDirectory; 1] {
    [KeyDirectory::new(
        AGENT,
        SigningKeySet::parse(JWK).unwrap().public(),
    )]
}

/// Returns conditions for a request received exactly at `at`. The conditions allow any lifetime,
/// because the signatures in the drafts are valid for a century.
fn at(at: u64) -> SignatureConditions {
    SignatureConditions {
        at,
        max_lifetime: u64::MAX,
        ..SignatureConditions::default()
    }
}

fn judge(message: &SignableMessage, moment: u64) -> Result<(), SignatureFault> {
    let mut verdicts = verify(message, &directories(), &at(moment));
    assert_eq!(verdicts.len(), 1);
    verdicts.remove(0).result
}

/// Returns a request signed at time 1000. In the field `name`, `from` is replaced by `to`.
fn changed(name: &str, from: &str, to: &str) -> SignableMessage {
    let keys = SigningKeySet::parse(JWK).unwrap();
    let mut message = request(&[]);
    let (key, asked) = (keys.at(0).unwrap(), AcceptSignature::default());
    let fields = signature_fields(key, AGENT, &message, &asked, 1000, b"n").unwrap();
    for (own, value) in fields {
        let value = if own == name {
            value.replace(from, to)
        } else {
            value
        };
        message.fields.push((own.to_owned(), value));
    }
    message
}

/// The test vector "EdDSA Using Curve edwards25519" of draft-ietf-webbotauth-httpsig-protocol-01.
#[test]
fn webbotauth_protocol_vector_with_a_dictionary_agent() {
    let input = "sig2=(\"@authority\" \"signature-agent\";key=\"sig2\");created=1735689600\
         ;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";alg=\"ed25519\";expires=4889289600\
         ;nonce=\"n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1Ysau\
         iA==\";tag=\"web-bot-auth\"";
    let signature = "sig2=:CGokAoY/FrPpyuzTe1Fb2kLTAH9Idw6qSFd1+D77r1firsMRCxeuLu5e6O+ek3zQgDMAzjiX\
                     tLVfqE00xnABCQ==:";
    let message = request(&[
        ("Signature-Agent", r#"sig2="https://signature-agent.test""#),
        ("Signature-Input", input),
        ("Signature", signature),
    ]);
    let verdict = &verify(&message, &directories(), &at(1_735_689_700))[0];
    assert_eq!(verdict.result, Ok(()));
    assert_eq!(verdict.agent.as_deref(), Some(AGENT));
    assert_eq!(verdict.keyid.as_deref(), Some(THUMBPRINT));
    let elsewhere = SignableMessage {
        authority: "example.org".to_owned(),
        ..message
    };
    assert_eq!(judge(&elsewhere, 1_735_689_700), Err(SignatureFault::Wrong));
}

/// The test vector of draft-meunier-web-bot-auth-architecture-05 appendix A.2.2, taken from the
/// JSON file that the draft links to.
#[test]
fn webbotauth_architecture_vector_with_a_dictionary_agent() {
    let input = "sig2=(\"@authority\" \"signature-agent\";key=\"agent2\");created=1735689600\
         ;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";alg=\"ed25519\";expires=4889289600\
         ;nonce=\"n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1Ysau\
         iA==\";tag=\"web-bot-auth\"";
    let signature = "sig2=:RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZ\
                     ACSanGdhEwYCCg==:";
    let message = request(&[
        (
            "Signature-Agent",
            r#"agent2="https://signature-agent.test""#,
        ),
        ("Signature-Input", input),
        ("Signature", signature),
    ]);
    assert_eq!(judge(&message, 1_735_689_700), Ok(()));
}

/// The test vector of draft-meunier-web-bot-auth-architecture-05 appendix A.2.3. The protocol draft
/// calls this format "Legacy Signature-Agent".
#[test]
fn webbotauth_vector_with_a_legacy_agent() {
    let input = "sig2=(\"@authority\" \"signature-agent\");created=1735689600\
         ;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";alg=\"ed25519\";expires=1735693200\
         ;nonce=\"e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1\
         qg==\";tag=\"web-bot-auth\"";
    let signature = "sig2=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuH\
                     xUi/5Syp3rLWBA==:";
    let message = request(&[
        ("Signature-Agent", r#""https://signature-agent.test""#),
        ("Signature-Input", input),
        ("Signature", signature),
    ]);
    assert_eq!(judge(&message, 1_735_689_700), Ok(()));
    assert_eq!(
        judge(&message, 1_735_693_207),
        Err(SignatureFault::Expired(7))
    );
}

#[test]
fn a_signature_holds_for_a_minute() {
    let message = changed("", "", "");
    assert_eq!(judge(&message, 999), Err(SignatureFault::Future(1)));
    assert_eq!(judge(&message, 1000), Ok(()));
    assert_eq!(judge(&message, 1060), Ok(()));
    assert_eq!(judge(&message, 1061), Err(SignatureFault::Expired(1)));
    let slow = SignatureConditions {
        before: 5,
        ..at(1065)
    };
    assert_eq!(verify(&message, &directories(), &slow)[0].result, Ok(()));
    let early = SignatureConditions {
        after: 5,
        ..at(995)
    };
    assert_eq!(verify(&message, &directories(), &early)[0].result, Ok(()));
    let strict = SignatureConditions {
        max_lifetime: 59,
        ..at(1000)
    };
    let verdict = &verify(&message, &directories(), &strict)[0];
    assert_eq!(verdict.result, Err(SignatureFault::Lifetime(60)));
}

#[test]
fn each_defect_of_a_signature_is_named() {
    let fault = "https://other.test";
    for (name, from, to, fault) in [
        ("signature", "sig1=:", "sig1=:AAAA", SignatureFault::Wrong),
        (
            "signature",
            "sig1",
            "sig2",
            SignatureFault::NoSignature("sig1".to_owned()),
        ),
        (
            "signature",
            "sig1=:",
            "sig1=:!",
            SignatureFault::Malformed("Signature"),
        ),
        (
            "signature-input",
            "(",
            "((",
            SignatureFault::Malformed("Signature-Input"),
        ),
        (
            "signature-input",
            "web-bot-auth",
            "other",
            SignatureFault::Tag,
        ),
        (
            "signature-input",
            "\"@authority\"",
            "\"@method\"",
            SignatureFault::NoAuthority,
        ),
        (
            "signature-input",
            "created",
            "made",
            SignatureFault::NoParameter("created"),
        ),
        (
            "signature-input",
            "expires=1060",
            "expires=999",
            SignatureFault::Backwards,
        ),
        (
            "signature-input",
            "expires=1060",
            "expires=5000",
            SignatureFault::Wrong,
        ),
        (
            "signature-input",
            "=\"ed25519\"",
            "=\"rsa\"",
            SignatureFault::Algorithm("rsa".to_owned()),
        ),
        (
            "signature-input",
            " \"signature-agent\";key=\"sig1\"",
            "",
            SignatureFault::NoAgent,
        ),
        ("signature-agent", "https", "http", SignatureFault::NoAgent),
        (
            "signature-agent",
            AGENT,
            "https://signature-agent.test\";type=\"x",
            SignatureFault::AgentParameters,
        ),
        (
            "signature-agent",
            "test\"",
            "test",
            SignatureFault::Malformed("Signature-Agent"),
        ),
        (
            "signature-agent",
            AGENT,
            fault,
            SignatureFault::UnknownAgent(fault.to_owned()),
        ),
        (
            "signature-input",
            THUMBPRINT,
            "k",
            SignatureFault::UnknownKey {
                agent: AGENT.to_owned(),
                keyid: "k".to_owned(),
            },
        ),
    ] {
        assert_eq!(judge(&changed(name, from, to), 1000), Err(fault));
    }
    assert_eq!(verify(&request(&[]), &directories(), &at(1000)), []);
}

#[test]
fn rfc3986_6_2_spellings_of_an_agent_are_one() {
    for url in [
        "https://Bot.example/keys",
        "HTTPS://bot.example:443/keys",
        "https://bot.example/keys?x=1",
    ] {
        assert_eq!(normalized(url), "https://bot.example/keys");
    }
    assert_eq!(normalized("https://bot.example"), "https://bot.example/");
}

#[test]
fn webbotauth_a_nonce_is_used_once_per_key() {
    let mut seen = SeenNonces::default();
    let mut judge = |message: &SignableMessage, moment: u64| {
        let mut verdict = verify(message, &directories(), &at(moment)).remove(0);
        seen.judge(&mut verdict);
        verdict.result
    };
    // A forged signature must not use up the nonce.
    assert_eq!(
        judge(&changed("signature", "sig1=:", "sig1=:AAAA"), 1000),
        Err(SignatureFault::Wrong)
    );
    let message = changed("", "", "");
    assert_eq!(judge(&message, 1000), Ok(()));
    assert_eq!(judge(&message, 1001), Err(SignatureFault::Replay));
    assert_eq!(judge(&message, 2000), Err(SignatureFault::Replay));
}

#[test]
fn a_signature_for_another_host_differs_from_an_invalid_one() {
    let verdict = |message: &SignableMessage| {
        let mut verdict = verify(message, &directories(), &at(5000)).remove(0);
        verdict.reject_host("example.com");
        verdict.result
    };
    let fault = SignatureFault::OtherHost("example.com".to_owned());
    assert_eq!(verdict(&changed("", "", "")), Err(fault));
    let wrong = changed("signature", "sig1=:", "sig1=:AAAA");
    assert_eq!(verdict(&wrong), Err(SignatureFault::Wrong));
}

#[test]
fn rfc7517_a_key_is_used_from_nbf_to_exp() {
    let message = changed("", "", "");
    let mut keys = SigningKeySet::parse(JWK).unwrap().public();
    let mut judge = |not_before: Option<u64>, expires: Option<u64>| {
        keys[0].not_before = not_before;
        keys[0].expires = expires;
        let directories = [KeyDirectory::new(AGENT, keys.clone())];
        verify(&message, &directories, &at(1000)).remove(0).result
    };
    assert_eq!(judge(Some(1000), Some(1000)), Ok(()));
    assert_eq!(judge(Some(1001), None), Err(SignatureFault::EarlyKey));
    assert_eq!(judge(None, Some(999)), Err(SignatureFault::ExpiredKey));
}

#[test]
fn webbotauth_a_signature_is_not_attributed_to_a_member_by_guess() {
    let two = r#"a="https://signature-agent.test", b="https://fault.test""#;
    for covered in [
        r#""signature-agent";key="a" "signature-agent";key="b""#,
        r#""signature-agent""#,
    ] {
        let mut message = changed(
            "signature-input",
            r#""signature-agent";key="sig1""#,
            covered,
        );
        message.fields[0].1 = two.to_owned();
        assert_eq!(
            judge(&message, 1000),
            Err(SignatureFault::NoAgent),
            "{covered}"
        );
    }
}

/// This signature was made with the crate web-bot-auth 0.7.0:
/// `MessageSigner::generate_signature_headers_content` with the key of RFC 9421 appendix B.1.4,
/// over `@authority` and `"signature-agent";key="sig1"`. The reverse was also tried: the
/// `WebBotAuthVerifier` of that crate accepted signatures of `signature_fields`, with and without
/// requested components.
#[test]
fn a_signature_of_the_crate_web_bot_auth_holds() {
    let input = "sig1=(\"@authority\" \"signature-agent\";key=\"sig1\")\
         ;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";nonce=\"bm9uY2U=\";tag=\"web-bot-auth\"\
         ;alg=\"ed25519\";created=1795862483;expires=1795862543";
    let signature = "sig1=:RQ9pUnD9MA/+d55SzOenc8sXkK27jU4qI0uygu9DLzEeJh2cw+TXp7728C19zniNHe3V45LeB5y7\
                     o0qT1umkCQ==:";
    let message = request(&[
        ("Signature-Agent", r#"sig1="https://signature-agent.test""#),
        ("Signature-Input", input),
        ("Signature", signature),
    ]);
    assert_eq!(judge(&message, 1_795_862_483), Ok(()));
    assert_eq!(
        judge(&message, 1_795_862_544),
        Err(SignatureFault::Expired(1))
    );
}
