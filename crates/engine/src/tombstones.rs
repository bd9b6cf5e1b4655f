//! Tombstones of pages and hosts that the operator made the crawl forget, and that are never
//! fetched again. A tombstone contains only a keyed digest of the page's or host's name.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use crawl_archive::rows::{PageRow, TombstoneRow};
use crawl_archive::{ReadError, RowReader};
use crawl_frontier::{AdmissionResult, FrontierError, Transaction, UrlToAdmit};
use crawl_weburl::{CanonicalUrl, HostKey, canonicalize};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::error::EngineError;

/// The name of the file with the tombstones, in the crawl directory.
pub(crate) const TOMBSTONES: &str = "tombstones.jsonl";
/// The value of `kind` in the tombstone of a page.
pub(crate) const PAGE: &str = "page";
/// The value of `kind` in the tombstone of a host.
pub(crate) const HOST: &str = "host";

/// The prefix of a digest in the file, before the hexadecimal digits.
const LABEL: &str = "hmac-sha256:";
const KEY_BYTES: usize = 32;

/// The key of a crawl's tombstones. Without the key, a digest does not show which name it belongs
/// to.
pub(crate) struct TombstoneHmacKey {
    bytes: Vec<u8>,
    key: hmac::Key,
}

impl TombstoneHmacKey {
    /// Returns the stored key. If none is stored, returns a new random one.
    pub(crate) fn of(stored: Option<Vec<u8>>) -> Result<TombstoneHmacKey, EngineError> {
        let bytes = match stored {
            Some(bytes) => bytes,
            None => {
                let mut bytes = vec![0; KEY_BYTES];
                let drawn = SystemRandom::new().fill(&mut bytes);
                drawn.map_err(|_| {
                    let error = io::Error::other("the system provides no random numbers");
                    EngineError::disk(TOMBSTONES)(error)
                })?;
                bytes
            }
        };
        Ok(TombstoneHmacKey {
            key: hmac::Key::new(hmac::HMAC_SHA256, &bytes),
            bytes,
        })
    }

    /// Returns the bytes of the key, for storing it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    /// Returns the digest of a page's or host's name, as written in the file.
    pub(crate) fn digest(&self, kind: &str, name: &str) -> String {
        let mut context = hmac::Context::with_key(&self.key);
        for part in [kind, "\n", name] {
            context.update(part.as_bytes());
        }
        let mut digest = LABEL.to_owned();
        for byte in context.sign().as_ref() {
            let _ = write!(digest, "{byte:02x}");
        }
        digest
    }
}

/// The tombstones of a crawl: keyed digests of the pages and hosts that the operator made it
/// forget.
#[derive(Default)]
pub(crate) struct Tombstones {
    key: Option<TombstoneHmacKey>,
    pages: HashSet<String>,
    hosts: HashSet<String>,
}

impl Tombstones {
    /// Reads the tombstones of the crawl in `dir`, with the key from its state.
    ///
    /// # Errors
    /// The file can't be read, a line is not a tombstone, or the key is missing. This must be an
    /// error, because a forgotten page might be fetched if its tombstone were ignored.
    pub(crate) fn read(dir: &Path, key: Option<Vec<u8>>) -> Result<Tombstones, EngineError> {
        let path = dir.join(TOMBSTONES);
        match File::open(&path) {
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Tombstones::default()),
            Err(why) => return Err(EngineError::disk(path)(why)),
            Ok(_) => {}
        }
        if key.is_none() {
            let error = io::Error::new(ErrorKind::InvalidData, "the state has no key for it");
            return Err(EngineError::disk(path)(error));
        }
        let mut read = Tombstones {
            key: Some(TombstoneHmacKey::of(key)?),
            ..Tombstones::default()
        };
        for row in RowReader::<TombstoneRow>::open(&path, None)? {
            let row: TombstoneRow = row.map_err(|why: ReadError| EngineError::from(why))?;
            match row.kind.as_str() {
                HOST => read.hosts.insert(row.digest),
                _ => read.pages.insert(row.digest),
            };
        }
        Ok(read)
    }

    /// Returns whether the crawl has no tombstones.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.hosts.is_empty()
    }

    /// Returns whether a URL was forgotten, either alone or with its whole host.
    pub(crate) fn holds(&self, url: &CanonicalUrl) -> bool {
        let Some(key) = &self.key else {
            return false;
        };
        let is_in = |set: &HashSet<String>, kind, name: &str| {
            !set.is_empty() && set.contains(&key.digest(kind, name))
        };
        is_in(&self.hosts, HOST, url.host_key().as_str()) || is_in(&self.pages, PAGE, url.as_str())
    }

    /// Returns whether a page with this digest was forgotten.
    pub(crate) fn has_page(&self, digest: &str) -> bool {
        self.pages.contains(digest)
    }

    /// Returns whether a host with this digest was forgotten.
    pub(crate) fn has_host(&self, digest: &str) -> bool {
        self.hosts.contains(digest)
    }

    /// Admits URLs to the frontier. A forgotten URL is not admitted, and is reported as already
    /// known.
    pub(crate) fn admit(
        &self,
        transaction: &mut dyn Transaction,
        admissions: &[UrlToAdmit],
    ) -> Result<Vec<AdmissionResult>, FrontierError> {
        if self.is_empty() {
            return transaction.admit_all(admissions);
        }
        let allowed = admissions
            .iter()
            .filter(|admission| !self.holds(&admission.url));
        let allowed: Vec<UrlToAdmit> = allowed.cloned().collect();
        let mut admitted = transaction.admit_all(&allowed)?.into_iter();
        let mut allowed = allowed.iter().peekable();
        let each = admissions.iter().map(|admission| {
            let is_kept = allowed.next_if(|allowed| allowed.url == admission.url);
            is_kept
                .and_then(|_| admitted.next())
                .unwrap_or(AdmissionResult::Known)
        });
        Ok(each.collect())
    }

    fn holds_text(&self, url: &str) -> bool {
        canonicalize(None, url).is_ok_and(|url| self.holds(&url))
    }

    /// Returns whether a link leads to a forgotten page.
    pub(crate) fn holds_link(&self, to: &str) -> bool {
        !self.is_empty() && self.holds_text(to)
    }

    /// Removes mentions of forgotten pages from the row of another page.
    pub(crate) fn clear_row(&self, row: &mut PageRow) {
        if self.is_empty() {
            return;
        }
        row.clear_redirect(|url| self.holds_text(url));
        row.canonical = row.canonical.take().filter(|url| !self.holds_text(url));
        for text in [&mut row.indexed, &mut row.error].into_iter().flatten() {
            if text.split_whitespace().any(|word| self.holds_text(word)) {
                text.truncate(text.find(':').unwrap_or_default());
            }
        }
    }
}

/// Returns the latest tombstone of a page of the crawl in `dir`, or else of its host. `None` if
/// neither was forgotten.
///
/// # Errors
/// Same as [`Tombstones::read`].
pub(crate) fn tombstone_of(
    dir: &Path,
    key: Option<Vec<u8>>,
    url: &CanonicalUrl,
) -> Result<Option<TombstoneRow>, EngineError> {
    let tombstones = Tombstones::read(dir, key)?;
    let Some(key) = &tombstones.key else {
        return Ok(None);
    };
    let (page, host) = (
        page_digest(key, url.as_str()),
        host_digest(key, &url.host_key()),
    );
    let (mut of_page, mut of_host) = (None, None);
    for row in RowReader::<TombstoneRow>::open(&dir.join(TOMBSTONES), None)? {
        let row: TombstoneRow = row.map_err(|why: ReadError| EngineError::from(why))?;
        if row.digest == page {
            of_page = Some(row);
        } else if row.digest == host {
            of_host = Some(row);
        }
    }
    Ok(of_page.or(of_host))
}

pub(crate) fn page_digest(key: &TombstoneHmacKey, url: &str) -> String {
    key.digest(PAGE, url)
}

pub(crate) fn host_digest(key: &TombstoneHmacKey, host: &HostKey) -> String {
    key.digest(HOST, host.as_str())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crawl_weburl::{HostKey, canonicalize};

    use super::{TOMBSTONES, TombstoneHmacKey, Tombstones, host_digest, page_digest};

    #[test]
    fn tombstones_are_digests_under_their_own_key() {
        let dir = tempfile::tempdir().unwrap();
        let url = |text: &str| canonicalize(None, text).unwrap();
        let key = TombstoneHmacKey::of(None).unwrap();
        let page = page_digest(&key, "http://a.example/gone");
        let host = host_digest(&key, &HostKey::parse("b.example").unwrap());
        let row = |kind: &str, digest: &str| {
            format!(
                r#"{{"at":"2026-11-20T23:59:59.123Z","kind":"{kind}","digest":"{digest}","reason":"asked"}}"#
            ) + "\n"
        };
        assert!(Tombstones::read(dir.path(), None).unwrap().is_empty());
        fs::write(
            dir.path().join(TOMBSTONES),
            row("page", &page) + &row("host", &host),
        )
        .unwrap();
        let read = Tombstones::read(dir.path(), Some(key.bytes())).unwrap();
        for (text, is_held) in [
            ("http://a.example/gone", true),
            ("http://a.example/", false),
            ("https://b.example/x", true),
            ("https://www.b.example/x", false),
        ] {
            assert_eq!(read.holds(&url(text)), is_held, "{text}");
        }
        let another_key = TombstoneHmacKey::of(None).unwrap();
        assert_ne!(page_digest(&another_key, "http://a.example/gone"), page);
        let foreign = Tombstones::read(dir.path(), Some(another_key.bytes())).unwrap();
        assert!(!foreign.holds(&url("http://a.example/gone")));
        assert!(Tombstones::read(dir.path(), None).is_err());
        fs::write(dir.path().join(TOMBSTONES), "no tombstone\n").unwrap();
        assert!(Tombstones::read(dir.path(), Some(key.bytes())).is_err());
    }
}
