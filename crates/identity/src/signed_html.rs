//! Signs HTML documents, so that readers can verify that the author wrote them and that nothing was
//! changed.

use data_encoding::BASE64;

use crate::key::{PublicKey, SigningKey};

/// The start of the HTML comment that is appended to a document. The signature covers the document,
/// and the part of the comment that precedes the signature itself.
const START: &str = "<!-- signature: keyid=\"";
const SIGNATURE: &str = " ed25519=";
const END: &str = " -->\n";

/// The reason why a document's signature is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentSignatureFault {
    /// The document has no signature.
    #[error("the document isn't signed")]
    Unsigned,
    /// The document was signed with a key that is not among the given keys. Contains the key's
    /// thumbprint.
    #[error("it was signed with the key `{0}`, which isn't among the keys")]
    UnknownKey(String),
    /// The document was changed after it was signed.
    #[error("it was changed after it was signed")]
    Changed,
}

/// Signs a document by appending a comment with a signature. `created` is the time of the
/// signature, in seconds since 1970.
#[must_use]
pub fn sign_document(key: &SigningKey, document: &str, created: u64) -> String {
    let signed = format!("{document}{START}{}\" created={created}", key.thumbprint());
    let signature = BASE64.encode(&key.sign(signed.as_bytes()));
    format!("{signed}{SIGNATURE}{signature}{END}")
}

/// Verifies a document signed by [`sign_document`]. Returns the thumbprint of the key and the time
/// of the signature, in seconds since 1970.
///
/// # Errors
/// [`DocumentSignatureFault`] if there is no valid signature.
pub fn verify_document(
    document: &str,
    keys: &[PublicKey],
) -> Result<(String, u64), DocumentSignatureFault> {
    let parts = || {
        let (signed, signature) = document.strip_suffix(END)?.rsplit_once(SIGNATURE)?;
        let (_, words) = signed.rsplit_once(START)?;
        let (keyid, created) = words.split_once("\" created=")?;
        Some((signed, signature, keyid, created.parse().ok()?))
    };
    let (signed, signature, keyid, created) = parts().ok_or(DocumentSignatureFault::Unsigned)?;
    let unknown = || DocumentSignatureFault::UnknownKey(keyid.to_owned());
    let mut keys = keys.iter();
    let key = keys
        .find(|key| key.thumbprint() == keyid)
        .ok_or_else(unknown)?;
    let signature = BASE64.decode(signature.as_bytes()).unwrap_or_default();
    match key.verifies(signed.as_bytes(), &signature) {
        true => Ok((keyid.to_owned(), created)),
        false => Err(DocumentSignatureFault::Changed),
    }
}

#[cfg(test)]
mod tests {
    use super::{DocumentSignatureFault, sign_document, verify_document};
    use crate::key::SigningKeySet;
    use crate::test_key::SEED;

    #[test]
    fn a_changed_document_does_not_verify() {
        let (mut keys, mut others) = (SigningKeySet::default(), SigningKeySet::default());
        let keyid = keys.add(SEED, None).unwrap();
        others.add([9; 32], None);
        let signed = sign_document(keys.at(0).unwrap(), "<p>17 requests</p>\n", 12);
        assert_eq!(
            verify_document(&signed, &keys.public()),
            Ok((keyid.clone(), 12))
        );
        for (from, to) in [("17", "16"), ("created=12", "created=13")] {
            let changed = signed.replace(from, to);
            let verdict = verify_document(&changed, &keys.public());
            assert_eq!(verdict, Err(DocumentSignatureFault::Changed), "{to}");
        }
        let unknown = Err(DocumentSignatureFault::UnknownKey(keyid));
        assert_eq!(verify_document(&signed, &others.public()), unknown);
        for text in [
            "",
            "<p>",
            &signed[..signed.len() - 3],
            &format!("{signed}<p>"),
        ] {
            let verdict = verify_document(text, &keys.public());
            assert_eq!(verdict, Err(DocumentSignatureFault::Unsigned), "{text}");
        }
    }
}
