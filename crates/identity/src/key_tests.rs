use super::{KeyError, SigningKeySet};
use crate::test_key::{JWK, SEED, THUMBPRINT};

#[test]
fn rfc7638_thumbprint_of_the_key_of_rfc9421_b_1_4() {
    let keys = SigningKeySet::parse(JWK).unwrap();
    assert_eq!(keys.at(0).unwrap().thumbprint(), THUMBPRINT);
    let mut same = SigningKeySet::default();
    assert_eq!(same.add(SEED, None).as_deref(), Some(THUMBPRINT));
}

#[test]
fn rfc8037_a_3_thumbprint() {
    let directory =
        r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    let (keys, faults) = crate::check_directory(directory);
    assert_eq!(faults, []);
    assert_eq!(
        keys[0].thumbprint(),
        "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    );
}

#[test]
fn a_written_key_set_is_read_again() {
    let mut keys = SigningKeySet::default();
    keys.add([1; 32], None);
    keys.add([2; 32], Some(50));
    let read = SigningKeySet::parse(&keys.to_private_json()).unwrap();
    assert_eq!(read.public(), keys.public());
}

#[test]
fn the_key_that_started_last_signs() {
    let mut keys = SigningKeySet::default();
    assert_eq!(keys.at(0).unwrap_err(), KeyError::None);
    let second = keys.add([2; 32], Some(50)).unwrap();
    let first = keys.add([1; 32], Some(20)).unwrap();
    for (now, expected) in [(20, &first), (49, &first), (50, &second)] {
        assert_eq!(keys.at(now).unwrap().thumbprint(), expected, "{now}");
    }
    // Before its `nbf`, a key must not be used, because verifiers would reject it.
    assert_eq!(keys.at(19).unwrap_err(), KeyError::Early(20));
}

#[test]
fn rfc7517_a_key_does_not_sign_after_exp() {
    let keys = JWK.replace("\"kid\"", "\"nbf\": 10.5, \"exp\": 20, \"kid\"");
    let keys = SigningKeySet::parse(&keys).unwrap();
    assert_eq!(keys.at(9).unwrap_err(), KeyError::Early(10));
    assert!(keys.at(10).is_ok() && keys.at(19).is_ok());
    assert_eq!(keys.at(20).unwrap_err(), KeyError::Expired);
    // Reading and writing a key file must keep the dates: `crawl identity new --start-in` does
    // both.
    let read = SigningKeySet::parse(&keys.to_private_json()).unwrap();
    assert_eq!(read.public(), keys.public());
}

#[test]
fn a_broken_key_is_named_without_its_private_part() {
    let secret = "n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU";
    let okp = |rest: &str| format!(r#"{{"kty":"OKP","crv":"Ed25519"{rest}}}"#);
    for (text, expected) in [
        (
            "",
            "not a JSON Web Key or a set of them (line 1, column 0)".to_owned(),
        ),
        (
            secret,
            "not a JSON Web Key or a set of them (line 1, column 2)".to_owned(),
        ),
        (
            r#"{"keys":[7]}"#,
            "key 1: it isn't a JSON Web Key".to_owned(),
        ),
        (r#"{"keys":[]}"#, "it has no Ed25519 key".to_owned()),
        (r#"{"kty":"RSA"}"#, "it has no Ed25519 key".to_owned()),
        (&okp(""), "key 1: it has no private part `d`".to_owned()),
        (
            &okp(r#","d":"abc""#),
            "key 1: `d` isn't 32 bytes in base64url".to_owned(),
        ),
        (
            &okp(&format!(
                r#","d":"{secret}","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo""#
            )),
            "key 1: `x` isn't the public key of `d`".to_owned(),
        ),
    ] {
        let error = SigningKeySet::parse(text).unwrap_err().to_string();
        assert_eq!(error, expected);
        assert!(!error.contains(secret));
    }
    let keys = SigningKeySet::parse(JWK).unwrap();
    assert!(!format!("{keys:?}").contains(secret));
    assert!(!keys.to_directory_json().contains(secret));
    // The error about a value of the wrong type must not quote the value.
    let wrong = SigningKeySet::parse(&okp(&format!(r#","nbf":"{secret}""#))).unwrap_err();
    assert!(!format!("{wrong:?} {wrong}").contains(secret));
}
