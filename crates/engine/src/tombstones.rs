//! Tombstones: pages and hosts that were taken out of a crawl, known by keyed digests of their
//! names alone, and never asked for again.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use crawl_archive::rows::{PageRow, TombstoneRow};
use crawl_archive::{ReadError, RowReader};
use crawl_frontier::{Admission, Admitted, FrontierError, Transaction};
use crawl_weburl::{CanonicalUrl, HostKey, canonicalize};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::error::EngineError;

/// The file in the crawl's directory.
pub(crate) const TOMBSTONES: &str = "tombstones.jsonl";
/// The `kind` of a tombstone.
pub(crate) const PAGE: &str = "page";
pub(crate) const HOST: &str = "host";

/// The beginning of a digest as it is written; hexadecimal digits follow.
const LABEL: &str = "hmac-sha256:";
/// Bytes of the key.
const KEY_BYTES: usize = 32;

/// The key of a crawl's tombstones. Whoever does not have it can't try names out on the digests.
pub(crate) struct TombstoneKey {
    bytes: Vec<u8>,
    key: hmac::Key,
}

impl TombstoneKey {
    /// The key that is kept, or one that nobody can foretell.
    pub(crate) fn of(stored: Option<Vec<u8>>) -> Result<TombstoneKey, EngineError> {
        let bytes = match stored {
            Some(bytes) => bytes,
            None => {
                let mut bytes = vec![0; KEY_BYTES];
                let drawn = SystemRandom::new().fill(&mut bytes);
                drawn.map_err(|_| {
                    let why = io::Error::other("the system has no random numbers");
                    EngineError::disk(TOMBSTONES)(why)
                })?;
                bytes
            }
        };
        Ok(TombstoneKey {
            key: hmac::Key::new(hmac::HMAC_SHA256, &bytes),
            bytes,
        })
    }

    /// The bytes that are kept.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    /// The digest of the name of a page or a host, as it is written.
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

/// The pages and hosts that a crawl was made to forget.
#[derive(Default)]
pub(crate) struct Tombstones {
    key: Option<TombstoneKey>,
    pages: HashSet<String>,
    hosts: HashSet<String>,
}

impl Tombstones {
    /// Reads those of the crawl in `dir`, whose key its state has.
    ///
    /// # Errors
    /// A file that can't be read, a line that is no tombstone, or no key: what was forgotten would
    /// be asked for.
    pub(crate) fn read(dir: &Path, key: Option<Vec<u8>>) -> Result<Tombstones, EngineError> {
        let path = dir.join(TOMBSTONES);
        match File::open(&path) {
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Tombstones::default()),
            Err(why) => return Err(EngineError::disk(path)(why)),
            Ok(_) => {}
        }
        if key.is_none() {
            let why = io::Error::new(ErrorKind::InvalidData, "the state has no key for it");
            return Err(EngineError::disk(path)(why));
        }
        let mut read = Tombstones {
            key: Some(TombstoneKey::of(key)?),
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

    /// Returns whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.hosts.is_empty()
    }

    /// Returns whether a URL was forgotten, by itself or with its host.
    pub(crate) fn holds(&self, url: &CanonicalUrl) -> bool {
        let Some(key) = &self.key else {
            return false;
        };
        let is_in = |set: &HashSet<String>, kind, name: &str| {
            !set.is_empty() && set.contains(&key.digest(kind, name))
        };
        is_in(&self.hosts, HOST, url.host_key().as_str()) || is_in(&self.pages, PAGE, url.as_str())
    }

    /// Returns whether there is a tombstone for a page, or for a host.
    pub(crate) fn has_page(&self, digest: &str) -> bool {
        self.pages.contains(digest)
    }

    /// As [`Tombstones::has_page`], for a host.
    pub(crate) fn has_host(&self, digest: &str) -> bool {
        self.hosts.contains(digest)
    }

    /// Admits URLs but those that were forgotten: they are as if known.
    pub(crate) fn admit(
        &self,
        transaction: &mut dyn Transaction,
        admissions: &[Admission],
    ) -> Result<Vec<Admitted>, FrontierError> {
        if self.is_empty() {
            return transaction.admit_all(admissions);
        }
        let kept = admissions.iter().filter(|it| !self.holds(&it.url));
        let kept: Vec<Admission> = kept.cloned().collect();
        let mut admitted = transaction.admit_all(&kept)?.into_iter();
        let mut kept = kept.iter().peekable();
        let each = admissions.iter().map(|admission| {
            let is_kept = kept.next_if(|kept| kept.url == admission.url);
            is_kept
                .and_then(|_| admitted.next())
                .unwrap_or(Admitted::Known)
        });
        Ok(each.collect())
    }

    fn holds_text(&self, url: &str) -> bool {
        canonicalize(None, url).is_ok_and(|url| self.holds(&url))
    }

    /// Returns whether a link leads to what was forgotten.
    pub(crate) fn holds_link(&self, to: &str) -> bool {
        !self.is_empty() && self.holds_text(to)
    }

    /// Takes what was forgotten out of a row of another page that leads there.
    pub(crate) fn clear_row(&self, row: &mut PageRow) {
        if self.is_empty() {
            return;
        }
        for url in [&mut row.redirect, &mut row.canonical] {
            *url = url.take().filter(|url| !self.holds_text(url));
        }
        for text in [&mut row.indexed, &mut row.error].into_iter().flatten() {
            if text.split_whitespace().any(|word| self.holds_text(word)) {
                text.truncate(text.find(':').unwrap_or_default());
            }
        }
    }
}

/// The tombstone of a page of the crawl in `dir`, or else of its host; the last where it has
/// several. None where the crawl was not made to forget it.
///
/// # Errors
/// As for [`Tombstones::read`].
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

/// The name of a page or a host in its tombstone.
pub(crate) fn page_digest(key: &TombstoneKey, url: &str) -> String {
    key.digest(PAGE, url)
}

/// As [`page_digest`], of a host.
pub(crate) fn host_digest(key: &TombstoneKey, host: &HostKey) -> String {
    key.digest(HOST, host.as_str())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crawl_weburl::{HostKey, canonicalize};

    use super::{TOMBSTONES, TombstoneKey, Tombstones, host_digest, page_digest};

    #[test]
    fn ours_tombstones_hold_by_digests_under_a_key_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let url = |text: &str| canonicalize(None, text).unwrap();
        let key = TombstoneKey::of(None).unwrap();
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
        let other = TombstoneKey::of(None).unwrap();
        assert_ne!(page_digest(&other, "http://a.example/gone"), page);
        let foreign = Tombstones::read(dir.path(), Some(other.bytes())).unwrap();
        assert!(!foreign.holds(&url("http://a.example/gone")));
        assert!(Tombstones::read(dir.path(), None).is_err());
        fs::write(dir.path().join(TOMBSTONES), "no tombstone\n").unwrap();
        assert!(Tombstones::read(dir.path(), Some(key.bytes())).is_err());
    }
}
