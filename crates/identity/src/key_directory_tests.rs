use super::{DirectoryFault, check_directory};
use crate::key::{KeyError, SigningKeySet};
use crate::test_key::JWK;

#[test]
fn a_directory_as_we_publish_it_has_no_faults() {
    let mut keys = SigningKeySet::default();
    keys.add([1; 32], Some(1000));
    let (public, faults) = check_directory(&keys.to_directory_json());
    assert_eq!((public, faults), (keys.public(), vec![]));
}

#[test]
fn each_defect_of_a_directory_is_named() {
    let key = |rest: &str| format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519",{rest}}}]}}"#);
    let x = r#""x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo""#;
    let kid = DirectoryFault::Kid {
        number: 1,
        kid: "mine".to_owned(),
        thumbprint: "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k".to_owned(),
    };
    let example = SigningKeySet::parse(JWK).unwrap().to_directory_json();
    for (text, fault) in [
        (
            r#"{"keys":[]}"#.to_owned(),
            DirectoryFault::Json(KeyError::None),
        ),
        (key(r#""x":"short""#), DirectoryFault::BadKey(1)),
        (key(&format!(r#"{x},"kid":"mine""#)), kid),
        (
            key(&format!(r#"{x},"d":"secret""#)),
            DirectoryFault::Private(1),
        ),
        (
            key(&format!(r#"{x},"use":"enc""#)),
            DirectoryFault::OtherUse(1),
        ),
        (
            key(&format!(r#"{x},"alg":"ES256""#)),
            DirectoryFault::OtherUse(1),
        ),
        (example, DirectoryFault::Example(1)),
    ] {
        assert_eq!(check_directory(&text).1, [fault]);
    }
    let many = format!(r#"{{"keys":[{}]}}"#, ["{}"; 101].join(","));
    assert_eq!(check_directory(&many).1, [DirectoryFault::TooMany(101)]);
}

#[test]
fn webbotauth_an_entry_that_is_not_a_key_leaves_the_others() {
    let good = r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    for bad in [
        "7",
        r#"{"kty":5}"#,
        r#"{"kty":"OKP","nbf":"soon"}"#,
        r#"{"kty":"OKP","exp":-1}"#,
        r#"{"kty":"OKP","kid":["a"]}"#,
    ] {
        let (keys, faults) = check_directory(&format!(r#"{{"keys":[{bad},{good}]}}"#));
        assert_eq!((keys.len(), faults), (1, vec![DirectoryFault::NotAKey(1)]));
    }
}
