//! The pages and hosts to remove from a crawl, and the rewriting of row files without them.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;

use crawl_weburl::{CanonicalUrl, HostKey, canonicalize};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bounded_read::{BoundedLineResult, LineReader, MAX_LINE_BYTES};
use crate::cdxj::VIEW;
use crate::regular_file::{open_regular, replace_file};

/// The pages and hosts to remove.
#[derive(Clone, Debug, Default)]
pub struct RemovalSelection {
    pages: HashSet<String>,
    /// The distinct lengths of the URLs in `pages`. To find URLs in a text, only prefixes of these
    /// lengths are looked up.
    lengths: BTreeSet<usize>,
    hosts: BTreeSet<HostKey>,
}

impl RemovalSelection {
    /// Adds a page.
    pub fn add_page(&mut self, url: &CanonicalUrl) {
        self.lengths.insert(url.as_str().len());
        self.pages.insert(url.to_string());
    }

    /// Adds a host. All URLs of the host are removed.
    pub fn add_host(&mut self, host: HostKey) {
        self.hosts.insert(host);
    }

    /// Returns whether there is nothing to remove.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.hosts.is_empty()
    }

    /// Returns the pages to remove, in arbitrary order.
    pub fn pages(&self) -> impl Iterator<Item = &str> {
        self.pages.iter().map(String::as_str)
    }

    /// Returns the hosts to remove.
    #[must_use]
    pub fn hosts(&self) -> &BTreeSet<HostKey> {
        &self.hosts
    }

    /// Returns whether the removal includes a URL.
    #[must_use]
    pub fn holds(&self, url: &CanonicalUrl) -> bool {
        self.pages.contains(url.as_str()) || self.holds_host(&url.host_key())
    }

    /// Returns whether the removal includes a URL or origin, given as text from a record. A
    /// screenshot is removed with its page.
    #[must_use]
    pub fn holds_text(&self, url: &str) -> bool {
        let url = url.strip_prefix(VIEW).unwrap_or(url);
        if self.pages.contains(url) {
            return true;
        }
        // If no hosts are removed, skip parsing, which is slow.
        !self.hosts.is_empty()
            && canonicalize(None, url).is_ok_and(|url| self.holds_host(&url.host_key()))
    }

    /// Returns whether the removal includes a host.
    #[must_use]
    pub fn holds_host(&self, host: &HostKey) -> bool {
        self.hosts.contains(host)
    }

    /// Returns whether a text that this program wrote, such as the reason of an exclusion, names a
    /// page or host to remove.
    #[must_use]
    pub fn is_named_in(&self, text: &str) -> bool {
        let is_page = |(at, _): (usize, &str)| {
            let mut cuts = self
                .lengths
                .iter()
                .filter_map(|length| text[at..].split_at_checked(*length));
            cuts.any(|(url, rest)| self.pages.contains(url) && ends_url(rest))
        };
        text.match_indices("http").any(is_page)
            || self
                .hosts
                .iter()
                .any(|host| names_host(text, host.as_str()))
    }

    /// Sets `url` to `None` if the removal includes it. Returns whether it did.
    pub fn clear(&self, url: &mut Option<String>) -> bool {
        let is_removed = url.as_deref().is_some_and(|url| self.holds_text(url));
        if is_removed {
            *url = None;
        }
        is_removed
    }

    /// Sets `text` (which this program wrote) to `None` if it names a removed page or host. Returns
    /// whether it did.
    pub fn clear_text(&self, text: &mut Option<String>) -> bool {
        let is_removed = text.as_deref().is_some_and(|text| self.is_named_in(text));
        if is_removed {
            *text = None;
        }
        is_removed
    }

    /// If a reason such as `redirect: URL` (which this program wrote) names a removed page or host,
    /// keeps only the word before the URL. Returns whether it did.
    pub fn clear_reason(&self, reason: &mut String) -> bool {
        let is_removed = self.is_named_in(reason);
        if is_removed {
            reason.truncate(reason.find(':').unwrap_or_default());
        }
        is_removed
    }
}

/// Returns whether a URL may end before `rest`. A bracket, quote, comma or semicolon may continue
/// the URL, or belong to the sentence around it. In such cases, returns true, so that the text is
/// removed.
fn ends_url(rest: &str) -> bool {
    let is_end = |c: char| c.is_whitespace() || "\"'<>(),;`".contains(c);
    rest.trim_start_matches(['.', ':'])
        .chars()
        .next()
        .is_none_or(is_end)
}

/// Returns whether a text contains `host` as a whole name, not only as part of a longer host name.
fn names_host(text: &str, host: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    text.match_indices(host).any(|(at, _)| {
        let after = &text[at + host.len()..];
        // Ignore a full stop after the host, because it may end the sentence.
        let after = after.strip_prefix('.').unwrap_or(after);
        !text[..at].ends_with(|c| is_of_name(c) || c == '.') && !after.starts_with(is_of_name)
    })
}

/// The decision on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowRewriteDecision {
    /// Keep the row, byte for byte.
    Keep,
    /// Write the changed row: the WARC record that it refers to has moved.
    Move,
    /// Write the changed row: it named a removed page or host.
    Clear,
    /// Drop the row.
    Drop,
}

/// Counts from rewriting a row file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowRewriteCounts {
    /// New committed length of the file, in bytes.
    pub committed: u64,
    /// Number of rows dropped.
    pub dropped: u64,
    /// Number of rows whose record has moved.
    pub moved: u64,
    /// Number of rows from which a page or host was cleared.
    pub cleared: u64,
    /// Number of lines that are not rows.
    pub unreadable: u64,
}

/// Writes the rows of the file `from` to a new file `to` and syncs it. `edit` decides on each row
/// and may change it; its second argument is true if the row is within `committed`, the committed
/// length of `from`. Without `to`, only counts. Lines that are not rows are dropped, because they
/// may contain anything.
///
/// # Errors
/// I/O errors. A missing file has no rows, and no new file is created for it.
pub fn rewrite_rows<T: Serialize + DeserializeOwned>(
    from: &Path,
    to: Option<&Path>,
    committed: Option<u64>,
    mut edit: impl FnMut(&mut T, bool) -> RowRewriteDecision,
) -> io::Result<RowRewriteCounts> {
    let mut done = RowRewriteCounts::default();
    let input = match open_regular(from) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(done),
        input => input?,
    };
    let mut lines = LineReader::new(BufReader::new(input), MAX_LINE_BYTES);
    let mut out = to.map(replace_file).transpose()?.map(BufWriter::new);
    let (mut read, mut written) = (0, 0);
    while let Some(line) = lines.next_line()? {
        let bytes = match line {
            BoundedLineResult::Whole(bytes) => bytes,
            BoundedLineResult::TooLong { bytes } | BoundedLineResult::Torn { bytes } => {
                read += bytes;
                done.unreadable += 1;
                continue;
            }
        };
        read += bytes.len() as u64;
        let is_committed = committed.is_none_or(|committed| read <= committed);
        let mut put = |bytes: &[u8]| -> io::Result<()> {
            written += bytes.len() as u64;
            match &mut out {
                Some(out) => out.write_all(bytes),
                None => Ok(()),
            }
        };
        match serde_json::from_slice::<T>(bytes) {
            Err(_) => done.unreadable += 1,
            Ok(mut row) => match edit(&mut row, is_committed) {
                RowRewriteDecision::Keep => put(bytes)?,
                RowRewriteDecision::Drop => done.dropped += 1,
                edit @ (RowRewriteDecision::Move | RowRewriteDecision::Clear) => {
                    match edit {
                        RowRewriteDecision::Move => done.moved += 1,
                        _ => done.cleared += 1,
                    }
                    let mut line = serde_json::to_vec(&row)?;
                    line.push(b'\n');
                    put(&line)?;
                }
            },
        }
        if is_committed {
            done.committed = written;
        }
    }
    if let Some(out) = out {
        let file: File = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crawl_weburl::{HostKey, canonicalize};

    use super::{RemovalSelection, RowRewriteCounts, RowRewriteDecision, rewrite_rows};
    use crate::rows::LinkRow;

    fn removal() -> RemovalSelection {
        let mut removal = RemovalSelection::default();
        removal.add_page(&canonicalize(None, "http://a.example/gone").unwrap());
        removal.add_host(HostKey::parse("b.example").unwrap());
        removal
    }

    #[test]
    fn a_page_is_one_url_and_a_host_all_its_urls() {
        let removal = removal();
        for (url, is_out) in [
            ("http://a.example/gone", true),
            ("http://a.example/gone/on", false),
            ("https://a.example/gone", false),
            ("http://b.example/", true),
            ("https://b.example:8443/x?y", true),
            ("https://www.b.example/", false),
            ("https://b.example", true),
        ] {
            assert_eq!(removal.holds_text(url), is_out, "{url}");
        }
        assert!(removal.is_named_in("canonical: http://a.example/gone"));
        assert!(removal.is_named_in("b.example is not asked"));
        assert!(!removal.is_named_in("canonical: http://a.example/gone2"));
    }

    #[test]
    fn a_text_names_a_page_or_a_host_by_its_whole_name() {
        for (page, text, is_named) in [
            ("gone_(x)", "canonical: http://a.example/gone_(x)", true),
            ("gone;v=1", "canonical: http://a.example/gone;v=1", true),
            ("gone,1", "`http://a.example/gone,1` is too long", true),
            ("it's", "redirects to 'http://a.example/it's'", true),
            ("gone", "(http://a.example/gone), and on", true),
            ("gone", "http://a.example/gone: timed out", true),
            ("gone", "see http://a.example/gone.", true),
            ("gone", "http://a.example/gone.html", false),
            ("gone", "http://a.example/gone/on", false),
            ("gone_(x)", "http://a.example/gone_(x)y", false),
            ("gone", "http://a.example/gon\u{e9}", false),
        ] {
            let mut removal = RemovalSelection::default();
            let url = canonicalize(None, &format!("http://a.example/{page}")).unwrap();
            assert_eq!(url.path(), format!("/{page}"));
            removal.add_page(&url);
            assert_eq!(removal.is_named_in(text), is_named, "{page}: {text}");
        }
        for (host, text, is_named) in [
            ("x.com", "https://netflix.com/ is left out", false),
            ("x.com", "net-x.com", false),
            ("x.com", "www.x.com", false),
            ("x.com", "x.com.example", false),
            ("x.com", "x.community", false),
            ("t.co", "reddit.com", false),
            ("x.com", "canonical: https://x.com/a", true),
            ("x.com", "asked by x.com.", true),
            ("x.com", "netflix.com and x.com:8080", true),
            ("127.0.0.1:843", "127.0.0.1:8431", false),
            ("127.0.0.1:843", "127.0.0.1:8431, 127.0.0.1:843", true),
        ] {
            let mut removal = RemovalSelection::default();
            removal.add_host(HostKey::parse(host).unwrap());
            assert_eq!(removal.is_named_in(text), is_named, "{host}: {text}");
        }
    }

    #[test]
    fn kept_rows_are_the_same_bytes_under_a_new_committed_length() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("a"), dir.path().join("b"));
        let row = |from: &str, to: &str| {
            format!("{{\"from\":\"{from}\", \"to\":\"{to}\",\"rel\":null,\"text\":null}}\n")
        };
        let kept_row = row("http://a.example/", "http://a.example/x");
        let removed = row("http://a.example/", "http://a.example/gone");
        let text = [
            &kept_row,
            &removed,
            "no row http://a.example/gone\n",
            &kept_row,
            &kept_row,
        ]
        .map(String::from);
        let committed: usize = text[..4].iter().map(String::len).sum();
        fs::write(&from, text.concat() + "{\"from\":\"http://a.exa").unwrap();
        let removal = removal();
        let mut within = Vec::new();
        let edit = |row: &mut LinkRow, is_committed| {
            within.push(is_committed);
            match removal.holds_text(&row.to) {
                true => RowRewriteDecision::Drop,
                false => RowRewriteDecision::Keep,
            }
        };
        let done = rewrite_rows(&from, Some(&to), Some(committed as u64), edit).unwrap();
        let expected = RowRewriteCounts {
            committed: 2 * kept_row.len() as u64,
            dropped: 1,
            unreadable: 2,
            ..RowRewriteCounts::default()
        };
        assert_eq!(done, expected);
        assert_eq!(within, [true, true, true, false]);
        assert_eq!(fs::read_to_string(&to).unwrap(), kept_row.repeat(3));
    }
}
