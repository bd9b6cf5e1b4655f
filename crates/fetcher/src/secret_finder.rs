//! Finds secrets, such as passwords and session cookies, in bodies, URLs and texts, and redacts
//! them in texts.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use crawl_weburl::CanonicalUrl;
use data_encoding::{BASE64, BASE64URL_NOPAD};
use http::HeaderMap;
use http::header::{AUTHORIZATION, COOKIE};
use memchr::memmem;
use percent_encoding::percent_decode;

use crate::host_request_headers::{HostRequestHeaders, REDACTED};

/// Minimum bytes of a secret to look for. A shorter one occurs in many pages by chance, and
/// redacting it would damage them.
/// Beyond the limit: shorter ones are not found.
pub const MIN_SECRET_BYTES: usize = 6;
/// Maximum session cookies learned during a crawl. A site that sends a new session cookie with each
/// response makes the older ones worthless.
/// Beyond the limit: the oldest is no longer redacted.
const MAX_LEARNED_COOKIES: usize = 128;
/// Maximum passwords and tokens learned during a crawl. The limit is separate from that of cookies,
/// so that cookies can't evict passwords.
/// Beyond the limit: the oldest is no longer redacted.
const MAX_LEARNED_CREDENTIALS: usize = 1_024;

/// The secrets of a crawl: values of header fields and cookies. Credentials count as
/// `user:password` and as the password alone, each also in base64. `Debug` hides them.
#[derive(Clone, Default)]
pub struct Secrets {
    configured: Arc<[memmem::Finder<'static>]>,
    learned: LearnedSecrets,
}

/// Secrets that become known during a crawl, such as session cookies. Clones share the same
/// secrets.
#[derive(Clone, Default)]
pub(crate) struct LearnedSecrets(Arc<RwLock<LearnedFinders>>);

/// Learned secrets, the newest last. Readers hold the lock only to clone the list.
type LearnedFinders = Arc<[Arc<LearnedSecret>]>;

struct LearnedSecret {
    finder: memmem::Finder<'static>,
    kind: SecretKind,
}

/// The kind of a learned secret. Each kind has its own limit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretKind {
    /// A password or token of a login.
    Credential,
    /// The value of a cookie that the site has set.
    Cookie,
}

impl SecretKind {
    fn limit(self) -> usize {
        match self {
            SecretKind::Credential => MAX_LEARNED_CREDENTIALS,
            SecretKind::Cookie => MAX_LEARNED_COOKIES,
        }
    }
}

impl LearnedSecrets {
    /// Adds a secret, unless it is too short. If there are too many of its kind, the oldest is
    /// dropped.
    pub(crate) fn learn(&self, value: &str, kind: SecretKind) {
        let value = value.as_bytes();
        if value.len() < MIN_SECRET_BYTES {
            return;
        }
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_same = |learned: &LearnedSecret| learned.finder.needle() == value;
        let same = held.iter().find(|learned| is_same(learned));
        if same.is_some_and(|same| same.kind == kind || same.kind == SecretKind::Credential) {
            return;
        }
        let of_kind = held.iter().filter(|learned| learned.kind == kind).count();
        let mut excess = (of_kind + 1).saturating_sub(kind.limit());
        let new = Arc::new(LearnedSecret {
            finder: memmem::Finder::new(value).into_owned(),
            kind,
        });
        let kept = held.iter().filter(|learned| {
            let is_excess = learned.kind == kind && excess > 0;
            excess -= usize::from(is_excess);
            !is_excess && !is_same(learned)
        });
        let all = kept.cloned().chain([new]).collect();
        *held = all;
    }

    fn finders(&self) -> LearnedFinders {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Secrets {
    /// Collects the secrets of all hosts. The result is used for answers of every host, because a
    /// server that gets a secret may pass it on.
    #[must_use]
    pub fn of(access: &[HostRequestHeaders]) -> Secrets {
        let mut all: Vec<Vec<u8>> = access.iter().flat_map(|one| forms(one.fields())).collect();
        all.retain(|secret| secret.len() >= MIN_SECRET_BYTES);
        all.sort_unstable();
        all.dedup();
        let finders = all
            .iter()
            .map(|secret| memmem::Finder::new(secret).into_owned());
        Secrets {
            configured: finders.collect(),
            learned: LearnedSecrets::default(),
        }
    }

    /// Adds secrets that are learned during the crawl, now or later.
    pub(crate) fn with_learned(self, learned: &LearnedSecrets) -> Secrets {
        let learned = learned.clone();
        Secrets { learned, ..self }
    }

    /// Returns whether there are no secrets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.configured.is_empty() && self.learned.finders().is_empty()
    }

    /// Returns whether the path or query of a URL contains a secret, literally or percent-encoded.
    #[must_use]
    pub fn are_in_url(&self, url: &CanonicalUrl) -> bool {
        !self.places(url.path_and_query()).is_empty()
    }

    /// Returns whether a body contains a secret literally.
    #[must_use]
    pub fn are_in(&self, body: &[u8]) -> bool {
        let is_in = |secret: &memmem::Finder<'_>| secret.find(body).is_some();
        let learned = self.learned.finders();
        self.configured.iter().any(is_in) || learned.iter().any(|secret| is_in(&secret.finder))
    }

    /// Returns the text with each secret replaced by `[redacted]`, also if it is percent-encoded,
    /// as in the text of a link that shows its URL.
    #[must_use]
    pub fn redacted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let places = self.places(text);
        if places.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut redacted = String::with_capacity(text.len());
        let mut end = 0;
        for place in places {
            redacted.push_str(&text[end..place.start]);
            redacted.push_str(REDACTED);
            end = place.end;
        }
        redacted.push_str(&text[end..]);
        Cow::Owned(redacted)
    }

    /// Redacts in place. Returns whether there was a secret.
    pub fn redact(&self, text: &mut String) -> bool {
        let redacted = match self.redacted(text) {
            Cow::Owned(redacted) => redacted,
            Cow::Borrowed(_) => return false,
        };
        *text = redacted;
        true
    }

    /// Returns a function that maps positions in `text` to positions in the redacted text. A
    /// position within a secret moves to the end of the text that replaces the secret.
    pub fn moved(&self, text: &str) -> impl Fn(usize) -> usize + use<> {
        let places = self.places(text);
        move |at| {
            let before = places.iter().take_while(|place| place.start < at);
            before.fold(at, |moved, place| {
                let behind = at.max(place.end) - at;
                moved + behind + REDACTED.len() - place.len()
            })
        }
    }

    /// Returns the ranges of `text` that contain secrets, in order. Overlapping ranges are merged.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let mut all: Vec<Range<usize>> = Vec::new();
        let learned = self.learned.finders();
        let learned = learned.iter().map(|one| &one.finder);
        let secrets: Vec<_> = self.configured.iter().chain(learned).collect();
        if secrets.is_empty() {
            return all;
        }
        let encoded = text.as_bytes();
        let decodings = [false, true].map(|is_form| decoded(encoded, is_form));
        for secret in secrets {
            let length = secret.needle().len();
            let matches = secret.find_iter(encoded);
            all.extend(matches.map(|at| at..at + length));
            for decoded in decodings.iter().flatten() {
                let mut place = EncodedOffsets::default();
                let matches = secret.find_iter(decoded);
                all.extend(matches.map(|at| {
                    let start = place.advance(encoded, at);
                    start..place.advance(encoded, at + length)
                }));
            }
        }
        all.sort_unstable_by_key(|place| place.start);
        let mut apart: Vec<Range<usize>> = Vec::with_capacity(all.len());
        for place in all {
            match apart.last_mut() {
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                _ => apart.push(place),
            }
        }
        // A secret that is not valid UTF-8 may match in the middle of a character. Drop such
        // matches.
        apart.retain(|place| text.get(place.clone()).is_some());
        apart
    }
}

/// Returns a text with its percent-encodings decoded. With `is_form`, `+` is a space, as in the
/// query of a submitted form. `None` if nothing is encoded.
fn decoded(text: &[u8], is_form: bool) -> Option<Vec<u8>> {
    if !is_form {
        memchr::memchr(b'%', text)?;
        return Some(percent_decode(text).collect());
    }
    memchr::memchr(b'+', text)?;
    let mut spaced = text.to_vec();
    for byte in spaced.iter_mut().filter(|byte| **byte == b'+') {
        *byte = b' ';
    }
    Some(percent_decode(&spaced).collect())
}

/// A place in a text, and the same place in the decoded text.
#[derive(Default)]
struct EncodedOffsets {
    encoded: usize,
    decoded: usize,
}

impl EncodedOffsets {
    /// Advances to a place of the decoded text that is not before this one. Returns the place in
    /// `text`, which is the encoded text.
    fn advance(&mut self, text: &[u8], decoded: usize) -> usize {
        while self.decoded < decoded {
            let is_encoded = match text.get(self.encoded..self.encoded + 3) {
                Some([b'%', digits @ ..]) => digits.iter().all(u8::is_ascii_hexdigit),
                _ => false,
            };
            self.encoded += if is_encoded { 3 } else { 1 };
            self.decoded += 1;
        }
        self.encoded
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.configured.len())
    }
}

/// Returns every form in which the secrets of the fields could leak, such as a password alone or in
/// base64.
fn forms(fields: &HeaderMap) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (name, value) in fields {
        let value = value.as_bytes();
        all.push(value.to_vec());
        if name == COOKIE {
            let cookies = value.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
            let values = cookies.filter_map(|cookie| behind(cookie, b'='));
            all.extend(values.map(<[u8]>::to_vec));
        }
        let credentials = (name == AUTHORIZATION)
            .then(|| behind(value, b' '))
            .flatten();
        let Some(credentials) = credentials else {
            continue;
        };
        all.push(credentials.to_vec());
        if let Ok(plain) = BASE64.decode(credentials) {
            all.extend(behind(&plain, b':').map(<[u8]>::to_vec));
            all.push(
                BASE64
                    .encode(&plain)
                    .trim_end_matches('=')
                    .as_bytes()
                    .to_vec(),
            );
            all.push(BASE64URL_NOPAD.encode(&plain).into_bytes());
            all.push(plain);
        }
    }
    all
}

fn behind(text: &[u8], mark: u8) -> Option<&[u8]> {
    let at = memchr::memchr(mark, text)?;
    Some(&text[at + 1..])
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;

    use super::*;

    fn secrets() -> Secrets {
        let first = HostRequestHeaders::new("a.example")
            .basic_auth("me:pass:word?")
            .unwrap();
        let first = first.cookie("session", "c00kie=1").unwrap();
        let first = first.cookie("lang", "en").unwrap();
        let second = HostRequestHeaders::new("b.example").header("X-Key", "k3y w1th/space");
        let second = second
            .unwrap()
            .header("authorization", "Bearer t0ken-2")
            .unwrap();
        Secrets::of(&[first, second])
    }

    #[test]
    fn every_form_of_a_secret_is_redacted() {
        let secrets = secrets();
        for (text, expect) in [
            ("user me:pass:word? in", "user [redacted] in"),
            ("the password pass:word?", "the password [redacted]"),
            ("Basic bWU6cGFzczp3b3JkPw==", "[redacted]"),
            ("bWU6cGFzczp3b3JkPw", "[redacted]"),
            ("session=c00kie=1; lang=en", "[redacted]"),
            ("c00kie=1 en", "[redacted] en"),
            ("«k3y w1th/space»", "«[redacted]»"),
            ("t0ken-2t0ken-2", "[redacted][redacted]"),
            (
                "http://c.example/?k=t0ken%2D2&b",
                "http://c.example/?k=[redacted]&b",
            ),
            ("/k3y%20w1th%2fspace/%zz", "/[redacted]/%zz"),
            ("?a=k3y+w1th%2Fspace+b", "?a=[redacted]+b"),
            ("«%70ass%3Aword?» t0ken-2", "«[redacted]» [redacted]"),
            ("pass, word, me, Bearer 100%", "pass, word, me, Bearer 100%"),
        ] {
            assert_eq!(secrets.redacted(text), expect);
        }
        assert_eq!(format!("{:?}", Secrets::default()), "Secrets(0)");
    }

    #[test]
    fn secrets_are_found_in_urls() {
        for (url, expect) in [
            ("http://c.example/?k=t0ken-2", true),
            ("http://c.example/k3y%20w1th%2Fspace/", true),
            ("http://c.example/?a=me%3apass%3Aword%3F&b", true),
            ("http://c.example/?a=k3y+w1th%2Fspace", true),
            ("http://t0ken-2.example/?k=t0ken", false),
            ("http://c.example/%", false),
        ] {
            let url = canonicalize(None, url).unwrap();
            assert_eq!(secrets().are_in_url(&url), expect, "{url}");
        }
    }

    #[test]
    fn positions_move_with_redactions() {
        let text = "a t0ken-2 b c00kie=1 c";
        let secrets = secrets();
        let (moved, redacted) = (secrets.moved(text), secrets.redacted(text));
        for (at, behind) in [(0, "a ["), (10, "b ["), (21, "c"), (4, " b [")] {
            assert!(redacted[moved(at)..].starts_with(behind), "{at}");
        }
    }
}
