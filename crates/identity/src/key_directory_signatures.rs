//! Verifies the signatures on the HTTP response that contains a directory of keys.

use ring::digest::{SHA256, SHA512, digest};
use sfv::{BareItem, Dictionary, ListEntry, Parser};

use crate::key::PublicKey;
use crate::signable_message::{SignableMessage, SignatureBaseError, component_id};
use crate::verify::{seconds, text};

/// The value of the parameter `tag` in signatures on directories.
const DIRECTORY_TAG: &str = "http-message-signatures-directory";

/// A defect of the signatures on a directory response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryResponseFault {
    /// The header field with this name can't be parsed.
    #[error("{0} can't be parsed")]
    Malformed(&'static str),
    /// The response has no `Content-Digest` with a supported algorithm.
    #[error("it has no Content-Digest with sha-256 or sha-512")]
    NoDigest,
    /// `Content-Digest` doesn't match the body.
    #[error("its Content-Digest isn't that of the body")]
    Digest,
    /// The signature doesn't cover a required component, or doesn't have a required parameter.
    #[error("signature `{label}` doesn't cover or name {what}")]
    Lacks {
        /// The label of the signature.
        label: String,
        /// The missing component or parameter.
        what: &'static str,
    },
    /// The key of the signature is not in the directory.
    #[error("signature `{label}` is by `{keyid}`, which isn't in the directory")]
    UnknownKey {
        /// The label of the signature.
        label: String,
        /// The thumbprint of the key that the signature names.
        keyid: String,
    },
    /// The signature is not valid yet, or has expired.
    #[error("signature `{label}` holds from {created} to {expires}, and it is {now}")]
    Time {
        /// The label of the signature.
        label: String,
        /// The start of the signature's validity, in seconds since 1970.
        created: u64,
        /// The end of the signature's validity, in seconds since 1970.
        expires: u64,
        /// The current time, in seconds since 1970.
        now: u64,
    },
    /// The signature base (the signed text) can't be built. Contains the label of the signature.
    #[error("signature `{0}`: {1}")]
    Base(String, SignatureBaseError),
    /// The signature with this label doesn't match: it was made with a key other than the named
    /// one, or for another response.
    #[error("signature `{0}` isn't the key's signature of this response")]
    Wrong(String),
}

/// Verifies the signatures of a directory response with the keys of the directory. `response`
/// contains the authority of the request and the header fields of the response. `body` is the body
/// as received, with its content coding. `now` is in seconds since 1970.
///
/// Returns the number of valid signatures, and all defects. A response without signatures has no
/// defects, because signatures are only recommended.
#[must_use]
pub fn verify_directory_response(
    response: &SignableMessage,
    body: &[u8],
    keys: &[PublicKey],
    now: u64,
) -> (usize, Vec<DirectoryResponseFault>) {
    let Some(inputs) = response.field("signature-input") else {
        return (0, Vec::new());
    };
    let Ok(inputs) = Parser::new(&inputs).parse::<Dictionary>() else {
        return (
            0,
            vec![DirectoryResponseFault::Malformed("Signature-Input")],
        );
    };
    let signatures = response.field("signature").unwrap_or_default();
    let Ok(signatures) = Parser::new(&signatures).parse::<Dictionary>() else {
        return (0, vec![DirectoryResponseFault::Malformed("Signature")]);
    };
    let (mut valid, mut faults) = (0, Vec::new());
    for (label, input) in inputs.iter().take(crate::key_directory::MAX_KEYS) {
        let label = label.as_str();
        let ListEntry::InnerList(input) = input else {
            faults.push(DirectoryResponseFault::Malformed("Signature-Input"));
            continue;
        };
        // Skip signatures with other tags, because such signatures don't prove possession of the
        // keys.
        if text(input, "tag").as_deref() != Some(DIRECTORY_TAG) {
            continue;
        }
        let signature = match signatures.get(label) {
            Some(ListEntry::Item(item)) => item.bare_item.as_byte_sequence(),
            _ => None,
        };
        let judged = digest_matches(response, body)
            .and_then(|()| judge(response, label, input, signature, keys, now));
        match judged {
            Ok(()) => valid += 1,
            Err(fault) if faults.contains(&fault) => {}
            Err(fault) => faults.push(fault),
        }
    }
    (valid, faults)
}

fn judge(
    response: &SignableMessage,
    label: &str,
    input: &sfv::InnerList,
    signature: Option<&[u8]>,
    keys: &[PublicKey],
    now: u64,
) -> Result<(), DirectoryResponseFault> {
    let label = || label.to_owned();
    let lacks = |what| DirectoryResponseFault::Lacks {
        label: label(),
        what,
    };
    let covers = |id: &str| input.items.iter().any(|item| component_id(item) == id);
    let signature = signature.ok_or(DirectoryResponseFault::Malformed("Signature"))?;
    for (id, what) in [
        ("\"@authority\";req", "the authority of the request"),
        ("\"content-digest\"", "content-digest"),
    ] {
        if !covers(id) {
            return Err(lacks(what));
        }
    }
    let created = seconds(input, "created").ok_or(lacks("created"))?;
    let expires = seconds(input, "expires").ok_or(lacks("expires"))?;
    let keyid = text(input, "keyid").ok_or(lacks("keyid"))?;
    let mut keys = keys.iter();
    let Some(key) = keys.find(|key| key.thumbprint() == keyid) else {
        return Err(DirectoryResponseFault::UnknownKey {
            label: label(),
            keyid,
        });
    };
    let base = response.signature_base(input);
    let base = base.map_err(|why| DirectoryResponseFault::Base(label(), why))?;
    if !key.verifies(base.as_bytes(), signature) {
        return Err(DirectoryResponseFault::Wrong(label()));
    }
    match created <= now && now <= expires {
        true => Ok(()),
        false => Err(DirectoryResponseFault::Time {
            label: label(),
            created,
            expires,
            now,
        }),
    }
}

/// Returns an error if `Content-Digest` (RFC 9530) is missing or doesn't match the body.
fn digest_matches(response: &SignableMessage, body: &[u8]) -> Result<(), DirectoryResponseFault> {
    let field = response.field("content-digest");
    let field = field.ok_or(DirectoryResponseFault::NoDigest)?;
    let digests = Parser::new(&field).parse::<Dictionary>();
    let digests = digests.map_err(|_| DirectoryResponseFault::Malformed("Content-Digest"))?;
    let mut known = 0;
    for (name, algorithm) in [("sha-256", &SHA256), ("sha-512", &SHA512)] {
        let Some(ListEntry::Item(item)) = digests.get(name) else {
            continue;
        };
        let BareItem::ByteSequence(bytes) = &item.bare_item else {
            return Err(DirectoryResponseFault::Malformed("Content-Digest"));
        };
        if digest(algorithm, body).as_ref() != bytes.as_slice() {
            return Err(DirectoryResponseFault::Digest);
        }
        known += 1;
    }
    match known {
        0 => Err(DirectoryResponseFault::NoDigest),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE64;
    use ring::digest::{SHA256, digest};

    use super::{DIRECTORY_TAG, DirectoryResponseFault, verify_directory_response};
    use crate::key::{SigningKey, SigningKeySet};
    use crate::signable_message::SignableMessage;
    use crate::test_key::{JWK, THUMBPRINT};

    /// Returns a response for `authority`, signed with `key`. The signature is valid for `lifetime`
    /// seconds from `created`.
    fn signed_directory(
        key: &SigningKey,
        authority: &str,
        body: &[u8],
        created: u64,
        lifetime: u64,
    ) -> SignableMessage {
        let content_digest = BASE64.encode(digest(&SHA256, body).as_ref());
        let input = format!(
            "(\"@authority\";req \"content-digest\");created={created};expires={}\
             ;keyid=\"{}\";alg=\"ed25519\";tag=\"{DIRECTORY_TAG}\"",
            created + lifetime,
            key.thumbprint()
        );
        let base = format!(
            "\"@authority\";req: {authority}\n\"content-digest\": sha-256=:{content_digest}:\n\
             \"@signature-params\": {input}"
        );
        let signature = BASE64.encode(&key.sign(base.as_bytes()));
        let fields = [
            ("Content-Digest", format!("sha-256=:{content_digest}:")),
            ("Signature-Input", format!("sig1={input}")),
            ("Signature", format!("sig1=:{signature}:")),
        ];
        SignableMessage {
            authority: authority.to_owned(),
            fields: fields
                .map(|(name, value)| (name.to_owned(), value))
                .to_vec(),
            is_response: true,
            ..SignableMessage::default()
        }
    }

    #[test]
    fn webbotauth_b_1_a_directory_response_proves_possession_of_its_keys() {
        let keys = SigningKeySet::parse(JWK).unwrap();
        let public = keys.public();
        let body = b"{\"keys\":[]}";
        let signed = signed_directory(keys.at(0).unwrap(), "bot.example", body, 1000, 60);
        let verify = |message: &SignableMessage, body: &[u8], now: u64| {
            verify_directory_response(message, body, &public, now)
        };
        assert_eq!(verify(&signed, body, 1000), (1, vec![]));
        let time = |now| DirectoryResponseFault::Time {
            label: "sig1".to_owned(),
            created: 1000,
            expires: 1060,
            now,
        };
        for now in [999, 1061] {
            assert_eq!(verify(&signed, body, now), (0, vec![time(now)]));
        }
        let fault =
            |message: &SignableMessage, body: &[u8]| verify(message, body, 1000).1.remove(0);
        assert_eq!(fault(&signed, b"{}"), DirectoryResponseFault::Digest);
        let mut elsewhere = signed.clone();
        elsewhere.authority = "other.example".to_owned();
        let wrong = DirectoryResponseFault::Wrong("sig1".to_owned());
        assert_eq!(fault(&elsewhere, body), wrong);
        for (from, to, expected) in [
            (
                "\"@authority\";req",
                "\"@method\";req",
                "the authority of the request",
            ),
            (" \"content-digest\"", "", "content-digest"),
            (";created=1000", "", "created"),
            (THUMBPRINT, "x", ""),
        ] {
            let mut changed = signed.clone();
            changed.fields[1].1 = changed.fields[1].1.replace(from, to);
            let words = fault(&changed, body).to_string();
            assert!(words.contains(expected), "{words}");
        }
        let (none, faults) = verify_directory_response(&signed, body, &[], 1000);
        assert!(none == 0 && matches!(&faults[..], [DirectoryResponseFault::UnknownKey { .. }]));
        let mut unsigned = signed.clone();
        unsigned.fields.clear();
        assert_eq!(verify(&unsigned, body, 1000), (0, vec![]));
        let mut digestless = signed;
        digestless.fields.remove(0);
        assert_eq!(fault(&digestless, body), DirectoryResponseFault::NoDigest);
    }
}
