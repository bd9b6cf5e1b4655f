//! Records which URLs are being read, so that the next start knows which page crashed the process.
//!
//! A panic while reading a page is caught. But a page may also end the whole process, by an abort
//! or by using up the system's memory. Without a record, this would happen at every start. So each
//! reader thread writes the URL that it is about to read to its line of `state/reading`, and blanks
//! the line before it goes idle. Each change is one `write` without a sync, because written data
//! survives a crash of the process, and a power cut is not the page's fault. The next start counts
//! a crash for each URL in the file. The crawl loop uses that count to decide how to treat the URL.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crawl_archive::open_regular;
use crawl_weburl::{CanonicalUrl, MAX_URL_BYTES, canonicalize};

/// Maximum number of crash suspects to remember. If there are more, the suspects with the fewest
/// crashes are dropped. Each crash adds at most one suspect per reader. A URL that is read without
/// a crash is no longer a suspect.
const MAX_SUSPECTS: usize = 64;

/// Size of a line, which contains a count, a URL and a line end. Each line starts at a multiple of
/// this size, so that it can be overwritten. The file is sparse.
const LINE_BYTES: usize = MAX_URL_BYTES + 16;

/// The start of the file's first line. The number of readers follows.
const HEAD: &str = "reading 1 ";

/// Maximum number of bytes to read from the file: enough for a line per crash suspect, and for more
/// readers than any machine has processors.
const MAX_JOURNAL_BYTES: u64 = 4096 * LINE_BYTES as u64;

const NAME: &str = "reading";
const NAME_NEW: &str = "reading.new";

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?
        .take(MAX_JOURNAL_BYTES)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The number of crashes of each URL.
pub(crate) type UrlCrashCounts = BTreeMap<CanonicalUrl, u32>;

/// Parses a journal. Counts one more crash for each URL that was being read, and keeps the other
/// counts. Returns an empty map if `bytes` is not a journal.
fn deaths(bytes: &[u8]) -> UrlCrashCounts {
    let mut lines = bytes.chunks(LINE_BYTES).map(|line| {
        let line = line.split(|&byte| byte == b'\n' || byte == 0).next();
        std::str::from_utf8(line.unwrap_or_default()).unwrap_or_default()
    });
    let head = lines.next().and_then(|head| head.strip_prefix(HEAD));
    let Some(readers) = head.and_then(|readers| readers.parse::<usize>().ok()) else {
        return UrlCrashCounts::new();
    };
    let mut deaths = UrlCrashCounts::new();
    for (at, line) in lines.enumerate() {
        let Some((count, url)) = line.split_once(' ') else {
            continue;
        };
        // Skip lines that can't be parsed, for example because the end of a longer, overwritten
        // URL follows the line's own URL.
        let (Ok(count), Ok(url)) = (count.parse::<u32>(), canonicalize(None, url)) else {
            continue;
        };
        let count = count.saturating_add(u32::from(at < readers));
        let recorded = deaths.entry(url).or_default();
        *recorded = count.max(*recorded);
    }
    deaths
}

/// The file `state/reading`. Each reader thread notes there which URL it reads. URLs that crashed
/// the process before are also kept.
pub(crate) struct ReadingJournal {
    path: PathBuf,
    readers: usize,
    /// The suspected URLs, each with its line in the file.
    suspects: Arc<HashMap<CanonicalUrl, CrashSuspect>>,
}

#[derive(Clone, Copy, Debug)]
struct CrashSuspect {
    deaths: u32,
    line: usize,
}

impl ReadingJournal {
    /// Reads the crash suspects from the last run, keeps those that are still pending, and starts a
    /// new journal for this number of readers.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn open(
        state: &Path,
        readers: usize,
        mut is_pending: impl FnMut(&CanonicalUrl) -> bool,
    ) -> io::Result<ReadingJournal> {
        let path = state.join(NAME);
        let bytes = match read_bounded(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut suspected: Vec<_> = deaths(&bytes).into_iter().collect();
        suspected.sort_by_key(|(_, deaths)| std::cmp::Reverse(*deaths));
        let mut suspects = HashMap::new();
        for (url, deaths) in suspected {
            if suspects.len() < MAX_SUSPECTS && is_pending(&url) {
                // Lines of crash suspects come after the header and the readers' lines.
                let line = 1 + readers + suspects.len();
                suspects.insert(url, CrashSuspect { deaths, line });
            }
        }
        let journal = ReadingJournal {
            path,
            readers,
            suspects: Arc::new(suspects),
        };
        journal.begin(&state.join(NAME_NEW))?;
        Ok(journal)
    }

    /// Writes a new file and syncs it, because the counts must survive even a power cut.
    fn begin(&self, beside: &Path) -> io::Result<()> {
        let file = crawl_archive::replace_file(beside)?;
        write_line(&file, 0, &format!("{HEAD}{}\n", self.readers))?;
        for (url, suspect) in &*self.suspects {
            write_line(&file, suspect.line, &format!("{} {url}\n", suspect.deaths))?;
        }
        file.sync_all()?;
        fs::rename(beside, &self.path)
    }

    /// Returns the number of crashes of each suspected URL that is still pending.
    pub(crate) fn deaths(&self) -> HashMap<CanonicalUrl, u32> {
        let suspects = self.suspects.iter();
        suspects
            .map(|(url, suspect)| (url.clone(), suspect.deaths))
            .collect()
    }

    pub(crate) fn slots(&self) -> io::Result<Vec<CrashSuspectJournalLine>> {
        (0..self.readers)
            .map(|reader| {
                Ok(CrashSuspectJournalLine {
                    file: crawl_archive::open_for_writing(&self.path)?,
                    line: 1 + reader,
                    was_read: false,
                    suspects: Arc::clone(&self.suspects),
                })
            })
            .collect()
    }
}

/// A reader's line of the journal. Write errors are ignored, because the journal is needed only if
/// a page crashes the process.
pub(crate) struct CrashSuspectJournalLine {
    /// A file handle of this slot alone, since each slot writes at a different position.
    file: File,
    line: usize,
    /// Whether the URL in the slot's line was read without a crash.
    was_read: bool,
    suspects: Arc<HashMap<CanonicalUrl, CrashSuspect>>,
}

impl CrashSuspectJournalLine {
    /// Records that a URL is about to be read.
    pub(crate) fn begin(&mut self, url: &CanonicalUrl) {
        let before = self.suspects.get(url).map_or(0, |suspect| suspect.deaths);
        self.was_read = false;
        self.note(self.line, &format!("{before} {url}\n"));
    }

    /// Records that a URL was read without a crash, so it is not a suspect. The slot's line keeps
    /// the URL until the next one replaces it or [`CrashSuspectJournalLine::rest`] is called.
    pub(crate) fn end(&mut self, url: &CanonicalUrl) {
        self.was_read = true;
        if let Some(suspect) = self.suspects.get(url) {
            self.note(suspect.line, "\n");
        }
    }

    /// Blanks the slot's line if its URL was read. Called before the reader goes idle.
    pub(crate) fn rest(&mut self) {
        if std::mem::take(&mut self.was_read) {
            self.note(self.line, "\n");
        }
    }

    fn note(&self, line: usize, text: &str) {
        if let Err(why) = write_line(&self.file, line, text) {
            tracing::debug!(%why, "can't note which document is being read");
        }
    }
}

fn write_line(file: &File, line: usize, text: &str) -> io::Result<()> {
    file.write_all_at(text.as_bytes(), (line * LINE_BYTES) as u64)
}

#[cfg(test)]
mod tests {
    use crawl_weburl::{CanonicalUrl, canonicalize};

    use super::{LINE_BYTES, NAME, ReadingJournal, deaths};

    fn url(path: &str) -> CanonicalUrl {
        canonicalize(None, &format!("http://e.example/{path}")).unwrap()
    }

    fn journal(lines: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for line in lines {
            let mut line = line.as_bytes().to_vec();
            line.resize(LINE_BYTES, 0);
            bytes.extend(line);
        }
        bytes
    }

    fn check(lines: &[&str], expected: &[(&str, u32)]) {
        let counts = deaths(&journal(lines));
        let expected = expected.iter().map(|(path, deaths)| (url(path), *deaths));
        assert_eq!(counts, expected.collect(), "{lines:?}");
    }

    #[test]
    fn urls_being_read_get_another_death() {
        check(
            &["reading 1 2\n", "0 http://e.example/a\n", "\n"],
            &[("a", 1)],
        );
        check(
            &[
                "reading 1 1\n",
                "2 http://e.example/a\n",
                "2 http://e.example/a\n",
            ],
            &[("a", 3)],
        );
        check(
            &["reading 1 1\n", "\n", "3 http://e.example/b\n"],
            &[("b", 3)],
        );
        // The line of `a` overwrote a longer line, whose end is still in the file.
        check(
            &["reading 1 1\n", "0 http://e.example/a\nlonger/url\n"],
            &[("a", 1)],
        );
    }

    #[test]
    fn a_file_that_is_not_a_journal_is_ignored() {
        for lines in [
            &["reading 2 1\n", "0 http://e.example/a\n"] as &[&str],
            &["", "0 http://e.example/a\n"],
            &["reading 1 many\n", "0 http://e.example/a\n"],
            &["reading 1 1\n", "http://e.example/a\n"],
            &["reading 1 1\n", "0 not a url\n"],
            &["reading 1 1\n", "-1 http://e.example/a\n"],
            &["reading 1 1\n", "\u{fffd}\u{fffd}"],
        ] {
            check(lines, &[]);
        }
        assert!(deaths(&[0xff; 100_000]).is_empty());
        assert!(deaths(b"reading 1 4").is_empty());
    }

    /// The process crashes in each of five starts, while it reads the same URL.
    #[test]
    fn deaths_add_up_over_starts() {
        let dir = tempfile::tempdir().unwrap();
        let open = || ReadingJournal::open(dir.path(), 2, |_| true).unwrap();
        for death in 0..5 {
            let journal = open();
            let crashes = journal.deaths().get(&url("kills")).copied();
            assert_eq!(crashes.unwrap_or_default(), death);
            let mut slots = journal.slots().unwrap();
            slots[0].begin(&url("harmless"));
            slots[0].end(&url("harmless"));
            slots[0].rest();
            slots[1].begin(&url("other"));
            slots[1].end(&url("other"));
            slots[1].begin(&url("kills"));
            // The URL that is being read stays in the journal, even though the same reader
            // finished another URL before it.
            slots[1].rest();
        }
        let journal = open();
        assert_eq!(journal.deaths().len(), 1);
        let mut slots = journal.slots().unwrap();
        slots[0].begin(&url("kills"));
        slots[0].end(&url("kills"));
        slots[0].rest();
        assert!(open().deaths().is_empty(), "it was read after all");
    }

    #[test]
    fn a_start_without_reading_keeps_the_counts() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(
            dir.path().join(NAME),
            journal(&["reading 1 1\n", "1 http://e.example/a\n"]),
        )
        .unwrap();
        for readers in [3, 1, 8] {
            let journal = ReadingJournal::open(dir.path(), readers, |_| true).unwrap();
            assert_eq!(journal.deaths(), [(url("a"), 2)].into());
        }
        let settled = ReadingJournal::open(dir.path(), 1, |_| false).unwrap();
        assert!(settled.deaths().is_empty());
    }

    #[test]
    fn the_journal_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let lines: Vec<_> = (0..300)
            .map(|n| format!("{} http://e.example/{n}\n", n % 3))
            .collect();
        let mut all = vec!["reading 1 0\n"];
        all.extend(lines.iter().map(String::as_str));
        std::fs::write(dir.path().join(NAME), journal(&all)).unwrap();
        let journal = ReadingJournal::open(dir.path(), 1, |_| true).unwrap();
        assert_eq!(journal.deaths().len(), super::MAX_SUSPECTS);
        assert!(journal.deaths().values().all(|deaths| *deaths == 2));
    }
}
