use data_encoding::BASE64;
use sfv::{Dictionary, InnerList, ListEntry, Parser};

use super::{SignableMessage, SignatureBaseError};
use crate::key::SigningKeySet;
use crate::test_key::JWK;

/// Returns the request of RFC 9421 appendix B.2 without `Content-Digest`, with `Signature-Agent`,
/// and with an authority that has to be normalised.
fn test_request() -> SignableMessage {
    let fields = [
        ("Host", "example.com"),
        ("Date", "Tue, 20 Apr 2021 02:07:55 GMT"),
        ("Content-Type", "application/json"),
        ("Content-Length", "18"),
        (
            "Signature-Agent",
            r#"a="https://a.test", b="https://b.test";c"#,
        ),
    ];
    SignableMessage {
        method: "POST".to_owned(),
        scheme: "https".to_owned(),
        authority: "Example.com:443".to_owned(),
        target: "/foo?param=Value&Pet=dog".to_owned(),
        fields: fields
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        is_response: false,
    }
}

fn covered(input: &str) -> InnerList {
    let mut members = Parser::new(input).parse::<Dictionary>().unwrap();
    match members.pop() {
        Some((_, ListEntry::InnerList(list))) => list,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rfc9421_b_2_6_signature_with_ed25519() {
    let input = "sig-b26=(\"date\" \"@method\" \"@path\" \"@authority\" \"content-type\" \
                 \"content-length\");created=1618884473;keyid=\"test-key-ed25519\"";
    let base = test_request().signature_base(&covered(input)).unwrap();
    let expected = "\"date\": Tue, 20 Apr 2021 02:07:55 GMT
\"@method\": POST
\"@path\": /foo
\"@authority\": example.com
\"content-type\": application/json
\"content-length\": 18
\"@signature-params\": (\"date\" \"@method\" \"@path\" \"@authority\" \"content-type\" \
                    \"content-length\");created=1618884473;keyid=\"test-key-ed25519\"";
    assert_eq!(base, expected);
    let signature = "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5\
                     WPpBKRCw==";
    let keys = SigningKeySet::parse(JWK).unwrap();
    let key = keys.at(0).unwrap();
    assert_eq!(BASE64.encode(&key.sign(base.as_bytes())), signature);
    let bytes = BASE64.decode(signature.as_bytes()).unwrap();
    assert!(keys.public()[0].verifies(base.as_bytes(), &bytes));
}

#[test]
fn rfc9421_2_2_derived_components() {
    for (component, value) in [
        ("\"@method\"", "POST"),
        ("\"@authority\"", "example.com"),
        ("\"@scheme\"", "https"),
        ("\"@request-target\"", "/foo?param=Value&Pet=dog"),
        (
            "\"@target-uri\"",
            "https://example.com/foo?param=Value&Pet=dog",
        ),
        ("\"@path\"", "/foo"),
        ("\"@query\"", "?param=Value&Pet=dog"),
        ("\"signature-agent\";key=\"a\"", "\"https://a.test\""),
        ("\"signature-agent\";key=\"b\"", "\"https://b.test\";c"),
    ] {
        let base = test_request().signature_base(&covered(&format!("s=({component})")));
        let expected = format!("{component}: {value}\n\"@signature-params\": ({component})");
        assert_eq!(base, Ok(expected));
    }
}

#[test]
fn rfc9421_2_5_a_base_is_not_built_from_missing_repeated_or_unknown_components() {
    let missing = |id: &str| SignatureBaseError::Missing(id.to_owned());
    let unsupported = |id: &str| SignatureBaseError::Unsupported(id.to_owned());
    for (component, error) in [
        ("\"cookie\"", missing("\"cookie\"")),
        (
            "\"signature-agent\";key=\"c\"",
            missing("\"signature-agent\";key=\"c\""),
        ),
        (
            "\"date\" \"date\"",
            SignatureBaseError::Twice("\"date\"".to_owned()),
        ),
        ("\"@status\"", unsupported("\"@status\"")),
        ("\"@authority\";req", unsupported("\"@authority\";req")),
        ("\"date\";bs", unsupported("\"date\";bs")),
        ("token", unsupported("token")),
    ] {
        let base = test_request().signature_base(&covered(&format!("s=({component})")));
        assert_eq!(base, Err(error));
    }
}
