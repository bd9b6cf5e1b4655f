//! Ed25519 keys as JSON Web Keys (RFC 8037), and their thumbprints (RFC 7638).

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use ring::digest::{SHA256, digest};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The message about an entry of a key set that is not a JSON Web Key.
const NOT_A_KEY: &str = "it isn't a JSON Web Key";

/// The reason why a key file can't be used. No variant contains any part of a private key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text is neither a JSON Web Key nor a JSON Web Key Set.
    #[error("not a JSON Web Key or a set of them (line {line}, column {column})")]
    Json {
        /// The line of the error, counted from 1.
        line: usize,
        /// The column of the error, counted from 1.
        column: usize,
    },
    /// The set contains no Ed25519 key.
    #[error("it has no Ed25519 key")]
    None,
    /// Every key of the set has expired.
    #[error("its keys have expired")]
    Expired,
    /// No key is in use yet. Contains the earliest start, in seconds since 1970.
    #[error("its first key is in use only from {0} on, in seconds since 1970")]
    Early(u64),
    /// A key of the set is broken.
    #[error("key {number}: {why}")]
    Broken {
        /// The number of the key, counted from 1.
        number: usize,
        /// A description of the defect.
        why: &'static str,
    },
}

/// A public Ed25519 key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    bytes: [u8; 32],
    /// The start of the key's use, in seconds since 1970. `None` for no limit.
    pub not_before: Option<u64>,
    /// The end of the key's use, in seconds since 1970. `None` for no limit.
    pub expires: Option<u64>,
}

impl PublicKey {
    /// Returns the RFC 7638 thumbprint (SHA-256, base64url), which is the key's id.
    #[must_use]
    pub fn thumbprint(&self) -> String {
        let x = BASE64URL_NOPAD.encode(&self.bytes);
        let canonical = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
        BASE64URL_NOPAD.encode(digest(&SHA256, canonical.as_bytes()).as_ref())
    }

    /// Returns whether the key is in use at `now`, in seconds since 1970.
    #[must_use]
    pub fn is_in_use(&self, now: u64) -> bool {
        self.not_before.is_none_or(|start| start <= now) && self.expires.is_none_or(|end| now < end)
    }

    /// Returns whether `signature` is a valid signature of `text` by this key.
    #[must_use]
    pub fn verifies(&self, text: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, &self.bytes);
        key.verify(text, signature).is_ok()
    }

    pub(crate) fn jwk(&self) -> Jwk {
        Jwk {
            kty: "OKP".to_owned(),
            crv: Some("Ed25519".to_owned()),
            kid: Some(self.thumbprint()),
            x: Some(BASE64URL_NOPAD.encode(&self.bytes)),
            d: None,
            key_use: Some("sig".to_owned()),
            alg: None,
            nbf: self.not_before,
            exp: self.expires,
        }
    }
}

/// A private Ed25519 key. `Debug` shows only its thumbprint.
pub struct SigningKey {
    seed: [u8; 32],
    pair: Ed25519KeyPair,
    public: PublicKey,
    thumbprint: String,
}

impl SigningKey {
    fn new(seed: [u8; 32], not_before: Option<u64>, expires: Option<u64>) -> Option<SigningKey> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).ok()?;
        let public = PublicKey {
            bytes: pair.public_key().as_ref().try_into().ok()?,
            not_before,
            expires,
        };
        Some(SigningKey {
            thumbprint: public.thumbprint(),
            seed,
            pair,
            public,
        })
    }

    /// Returns the RFC 7638 thumbprint of the public key.
    #[must_use]
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Returns the start of the key's use, in seconds since 1970. `None` for no limit.
    #[must_use]
    pub fn not_before(&self) -> Option<u64> {
        self.public.not_before
    }

    pub(crate) fn sign(&self, text: &[u8]) -> Vec<u8> {
        self.pair.sign(text).as_ref().to_vec()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.thumbprint).finish()
    }
}

/// The private keys of a crawler. The keys may start at different times, so that a key can be
/// published some time before it is used.
#[derive(Debug, Default)]
pub struct SigningKeySet {
    keys: Vec<SigningKey>,
}

impl SigningKeySet {
    /// Parses private keys from a JSON Web Key or a JSON Web Key Set. Skips keys that are not
    /// Ed25519 keys.
    ///
    /// # Errors
    /// [`KeyError`] if the text has another format, if a key is broken, or if there is no Ed25519
    /// key.
    pub fn parse(text: &str) -> Result<SigningKeySet, KeyError> {
        let mut set = SigningKeySet::default();
        for (number, jwk) in (1..).zip(jwks(text)?) {
            let broken = |why| KeyError::Broken { number, why };
            let jwk = jwk.ok_or(broken(NOT_A_KEY))?;
            if !jwk.is_ed25519() {
                continue;
            }
            let seed = jwk.d.as_deref();
            let seed = seed.ok_or(broken("it has no private part `d`"))?;
            let seed = key_bytes(seed).ok_or(broken("`d` isn't 32 bytes in base64url"))?;
            let key = SigningKey::new(seed, jwk.nbf, jwk.exp).ok_or(broken("`d` isn't a key"))?;
            if jwk
                .public()
                .is_some_and(|public| public != key.public.bytes)
            {
                return Err(broken("`x` isn't the public key of `d`"));
            }
            set.keys.push(key);
        }
        match set.keys.is_empty() {
            true => Err(KeyError::None),
            false => Ok(set),
        }
    }

    /// Adds the key that RFC 8032 derives from a random `seed`. The key is used from `not_before`
    /// on (in seconds since 1970), or immediately if `None`. Returns the thumbprint, or `None` if
    /// no key can be derived from the seed.
    pub fn add(&mut self, seed: [u8; 32], not_before: Option<u64>) -> Option<String> {
        let key = SigningKey::new(seed, not_before, None)?;
        let thumbprint = key.thumbprint.clone();
        self.keys.push(key);
        Some(thumbprint)
    }

    /// Returns the key to sign with at `now` (in seconds since 1970). If several keys are in use,
    /// returns the one with the latest start.
    ///
    /// # Errors
    /// [`KeyError`] if no key is in use at `now`. Verifiers would reject a signature by any other
    /// key.
    pub fn at(&self, now: u64) -> Result<&SigningKey, KeyError> {
        let start = |key: &&SigningKey| key.public.not_before.unwrap_or(0);
        let in_use = self.keys.iter().filter(|key| key.public.is_in_use(now));
        in_use.max_by_key(start).ok_or_else(|| {
            let next = self.keys.iter().map(|key| start(&key));
            match next.filter(|start| *start > now).min() {
                _ if self.keys.is_empty() => KeyError::None,
                Some(next) => KeyError::Early(next),
                None => KeyError::Expired,
            }
        })
    }

    /// Returns the public keys in the order of their addition.
    #[must_use]
    pub fn public(&self) -> Vec<PublicKey> {
        self.keys.iter().map(|key| key.public.clone()).collect()
    }

    /// Returns the private keys as a JSON Web Key Set, which is the format of a key file.
    #[must_use]
    pub fn to_private_json(&self) -> String {
        let private = |key: &SigningKey| Jwk {
            d: Some(BASE64URL_NOPAD.encode(&key.seed)),
            ..key.public.jwk()
        };
        set_json(self.keys.iter().map(private).collect())
    }
}

/// A JSON Web Key (RFC 7517). Does not implement `Debug`, because it may contain a private key.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Jwk {
    #[serde(default)]
    kty: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    crv: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) d: Option<String>,
    #[serde(rename = "use", skip_serializing_if = "Option::is_none")]
    key_use: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alg: Option<String>,
    #[serde(default, deserialize_with = "numeric_date")]
    #[serde(skip_serializing_if = "Option::is_none")]
    nbf: Option<u64>,
    #[serde(default, deserialize_with = "numeric_date")]
    #[serde(skip_serializing_if = "Option::is_none")]
    exp: Option<u64>,
}

impl Jwk {
    /// Returns whether the key declares a use other than Ed25519 signatures.
    pub(crate) fn is_for_something_else(&self) -> bool {
        let says = |value: &Option<String>, known: &[&str]| {
            value
                .as_deref()
                .is_some_and(|value| !known.contains(&value))
        };
        says(&self.key_use, &["sig"]) || says(&self.alg, &["ed25519", "Ed25519", "EdDSA"])
    }

    pub(crate) fn is_ed25519(&self) -> bool {
        self.kty == "OKP" && self.crv.as_deref() == Some("Ed25519")
    }

    fn public(&self) -> Option<[u8; 32]> {
        key_bytes(self.x.as_deref()?)
    }

    pub(crate) fn public_key(&self) -> Option<PublicKey> {
        Some(PublicKey {
            bytes: self.public()?,
            not_before: self.nbf,
            expires: self.exp,
        })
    }
}

/// Parses a time in seconds since 1970, which may have a fraction (NumericDate, RFC 7519 section
/// 2).
fn numeric_date<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u64>, D::Error> {
    let seconds = Option::<f64>::deserialize(input)?;
    match seconds {
        Some(seconds) if seconds < 0.0 => Err(D::Error::custom("a time before 1970")),
        // The cast converts a time that is out of range to the nearest valid one.
        seconds => Ok(seconds.map(|seconds| seconds as u64)),
    }
}

#[derive(Serialize)]
struct JsonWebKeySet {
    keys: Vec<Jwk>,
}

pub(crate) fn set_json(keys: Vec<Jwk>) -> String {
    let mut text = serde_json::to_string_pretty(&JsonWebKeySet { keys }).unwrap_or_default();
    text.push('\n');
    text
}

/// Parses a JSON Web Key Set, or a single key as a set of one. An entry that is not a key becomes
/// `None`, so that the other entries can still be used.
pub(crate) fn jwks(text: &str) -> Result<Vec<Option<Jwk>>, KeyError> {
    // Keep only the position of a serde error, because its text may quote the input, which is
    // secret.
    let json = |why: serde_json::Error| KeyError::Json {
        line: why.line(),
        column: why.column(),
    };
    let value: Value = serde_json::from_str(text).map_err(json)?;
    let Value::Object(mut set) = value else {
        return Err(KeyError::Json { line: 1, column: 1 });
    };
    let keys = match set.remove("keys") {
        Some(Value::Array(keys)) => keys,
        Some(_) => return Err(KeyError::Json { line: 1, column: 1 }),
        None => vec![Value::Object(set)],
    };
    let keys = keys.into_iter();
    Ok(keys.map(|key| serde_json::from_value(key).ok()).collect())
}

fn key_bytes(text: &str) -> Option<[u8; 32]> {
    let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
    bytes.try_into().ok()
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
