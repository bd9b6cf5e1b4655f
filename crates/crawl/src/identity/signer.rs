//! Signs the requests of a crawl, with keys that may change while the crawl runs.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crawl_fetcher::RequestSigner;
use crawl_identity::{
    AcceptSignature, SignableMessage, SignatureBaseError, SigningKeySet, signature_fields,
};
use http::header::{HeaderName, HeaderValue};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::key_source::{KeyFileStamp, KeySource};
use crate::clock;
use crate::error::CommandError;

/// How often to check whether the key file has changed.
const CHECK_EVERY: Duration = Duration::from_secs(5);
/// Length of a signature's nonce, in bytes.
const NONCE_BYTES: usize = 32;

/// Signs each request with the key that is valid when the request is sent. Rereads the key file
/// when it has changed. While the file can't be read, the previous keys keep signing. If no key is
/// valid, requests go unsigned with a warning.
pub(crate) struct RotatingSigner {
    source: KeySource,
    /// The URL of the published keys.
    agent: String,
    held: Mutex<HeldKeys>,
    random: SystemRandom,
}

struct HeldKeys {
    keys: SigningKeySet,
    /// Metadata of the key file from just before `keys` were read.
    stamp: Option<KeyFileStamp>,
    /// When the key file was last checked.
    checked: Instant,
}

impl RotatingSigner {
    /// Creates a signer whose keys are published at `agent`.
    ///
    /// # Errors
    /// The keys can't be read.
    pub(crate) fn new(source: KeySource, agent: String) -> Result<RotatingSigner, CommandError> {
        let stamp = source.stamp();
        let held = HeldKeys {
            keys: source.read()?,
            stamp,
            checked: Instant::now(),
        };
        let in_use = held.keys.at(wall_seconds()).map(drop);
        in_use.map_err(|why| source.refused(&why.to_string()))?;
        Ok(RotatingSigner {
            source,
            agent,
            held: Mutex::new(held),
            random: SystemRandom::new(),
        })
    }

    fn sign_at(
        &self,
        request: &SignableMessage,
        asked: &AcceptSignature,
        now: u64,
        instant: Instant,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, SignatureBaseError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if instant.saturating_duration_since(held.checked) >= CHECK_EVERY {
            held.checked = instant;
            self.reread(&mut held);
        }
        let key = match held.keys.at(now) {
            Ok(key) => key,
            Err(why) => {
                tracing::warn!("requests are not signed: {why}");
                return Ok(Vec::new());
            }
        };
        // The protocol requires no nonce, so ignore a failure of the random source.
        let mut nonce = [0; NONCE_BYTES];
        let _ = self.random.fill(&mut nonce);
        let fields = signature_fields(key, &self.agent, request, asked, now, &nonce)?;
        let fields = fields.into_iter().filter_map(|(name, value)| {
            let value = HeaderValue::from_str(&value).ok()?;
            Some((HeaderName::from_static(name), value))
        });
        Ok(fields.collect())
    }

    fn reread(&self, held: &mut HeldKeys) {
        let stamp = self.source.stamp();
        if stamp == held.stamp {
            return;
        }
        match self.source.read() {
            Ok(keys) => {
                held.keys = keys;
                held.stamp = stamp;
            }
            Err(refusal) => {
                tracing::warn!("{}; the keys read before still sign", refusal.message);
            }
        }
    }
}

impl RequestSigner for RotatingSigner {
    fn sign(
        &self,
        request: &SignableMessage,
        asked: &AcceptSignature,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, SignatureBaseError> {
        self.sign_at(request, asked, wall_seconds(), Instant::now())
    }
}

/// Returns the system clock's time in seconds since 1970. Verifiers compare a signature's times
/// with their own clocks. The crawl's own clock would be wrong after the system clock was set.
fn wall_seconds() -> u64 {
    u64::try_from(clock::now().as_second()).unwrap_or_default()
}

impl fmt::Debug for RotatingSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RotatingSigner")
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use std::time::Instant;

    use crawl_identity::{AcceptSignature, SignableMessage, SigningKeySet};
    use http::header::{HeaderName, HeaderValue};

    use super::{CHECK_EVERY, KeySource, RotatingSigner};

    fn write(path: &Path, text: &str) {
        let beside = path.with_extension("new");
        fs::write(&beside, text).unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(&beside, path).unwrap();
    }

    fn sign(signer: &RotatingSigner, now: u64, instant: Instant) -> Vec<(HeaderName, HeaderValue)> {
        let request = SignableMessage {
            authority: "e.example".to_owned(),
            ..SignableMessage::default()
        };
        let fields = signer.sign_at(&request, &AcceptSignature::default(), now, instant);
        fields.unwrap()
    }

    #[test]
    fn a_key_that_is_not_in_use_yet_is_refused_at_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bot.key");
        let mut keys = SigningKeySet::default();
        keys.add([1; 32], Some(10_000_000_000));
        write(&path, &keys.to_private_json());
        let agent = "https://bot.example/keys.json".to_owned();
        let refusal = RotatingSigner::new(KeySource::of(&path), agent).unwrap_err();
        let words = "its first key is in use only from 10000000000 on";
        assert!(refusal.message.contains(words), "{}", refusal.message);
    }

    #[test]
    fn keys_rotate_without_an_unsigned_request() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bot.key");
        let mut keys = SigningKeySet::default();
        let first = keys.add([1; 32], None).unwrap();
        write(&path, &keys.to_private_json());
        let agent = "https://bot.example/keys.json".to_owned();
        let signer = RotatingSigner::new(KeySource::of(&path), agent).unwrap();
        let begun = Instant::now();
        let keyid = |now: u64, passed: u32| {
            let fields = sign(&signer, now, begun + CHECK_EVERY * passed);
            assert_eq!(fields.len(), 3);
            let input = fields[1].1.to_str().unwrap();
            let (_, rest) = input.split_once("keyid=\"").unwrap();
            rest.split('"').next().unwrap().to_owned()
        };
        assert_eq!(keyid(1000, 0), first);
        let second = keys.add([2; 32], Some(2000)).unwrap();
        write(&path, &keys.to_private_json());
        for (now, passed, expected) in [(2000, 0, &first), (1999, 1, &first), (2000, 1, &second)] {
            assert_eq!(&keyid(now, passed), expected, "{now} {passed}");
        }
        // The signer keeps signing while the key file is broken or missing.
        write(&path, "{");
        assert_eq!(keyid(2000, 3), second);
        fs::remove_file(&path).unwrap();
        assert_eq!(keyid(2000, 5), second);
    }

    #[test]
    fn each_signature_has_its_own_nonce_and_no_debug_output_has_a_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bot.key");
        let mut keys = SigningKeySet::default();
        keys.add([1; 32], None).unwrap();
        write(&path, &keys.to_private_json());
        let agent = "https://bot.example/keys.json".to_owned();
        let signer = RotatingSigner::new(KeySource::of(&path), agent).unwrap();
        let now = Instant::now();
        let [first, second] = [(), ()].map(|()| sign(&signer, 1000, now));
        assert_ne!(first[1], second[1]);
        assert!(!format!("{signer:?}").contains("AQEBAQ"));
    }
}
