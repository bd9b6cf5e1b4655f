use super::{DirectoryFault, check_directory};
use crate::key::{KeyError, KeySet};
use crate::test_key::{JWK, THUMBPRINT};

#[test]
fn a_directory_as_we_publish_it_has_no_faults() {
    let keys = KeySet::parse(JWK).unwrap();
    let (public, faults) = check_directory(&keys.to_directory_json());
    assert_eq!((public, faults), (keys.public(), vec![]));
}

#[test]
fn each_defect_of_a_directory_is_named() {
    let key = |rest: &str| format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519",{rest}}}]}}"#);
    let x = r#""x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs""#;
    let kid = DirectoryFault::Kid {
        number: 1,
        kid: "mine".to_owned(),
        thumbprint: THUMBPRINT.to_owned(),
    };
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
    ] {
        assert_eq!(check_directory(&text).1, [fault]);
    }
    let many = format!(r#"{{"keys":[{}]}}"#, ["{}"; 101].join(","));
    assert_eq!(check_directory(&many).1, [DirectoryFault::TooMany(101)]);
}
