//! Rewrites the search index of a crawl, and the log that it follows, without the erased pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use crawl_archive::{RemovalSelection, replace_file};
use crawl_index::{IndexError, IndexLogEntry, IndexedPage, check_checksums, copy_pages, note_in};

use crate::error::EngineError;
use crate::index::followed_indexing_log::number_in;
use crate::index::indexing_log::{
    IndexingLogPosition, IndexingLogReader, disk, log_path, mend_swap, note_of, place,
};
use crate::index::redirect_and_interstitial_answers::answers_of;
use crate::index::{INDEX_FOLDER, LOG};

const PAGES: &str = "pages.jsonl";

/// A rewritten index, in the folder of new files.
pub(super) struct RewrittenIndex {
    log: Option<(u64, u64)>,
}

impl RewrittenIndex {
    /// Returns the number and the length in bytes of the log that the index follows. `None` if it
    /// follows none.
    pub(super) fn log(&self) -> Option<(u64, u64)> {
        self.log
    }
}

/// Writes the index and the unread part of its log into the folder `staging`. `follows` is the
/// stored number of the log, and `marks` has the committed lengths of the files. Returns `None` if
/// there is no index to rewrite; [`why_not`] gives the reason.
pub(super) fn rewrite_index(
    dir: &Path,
    staging: &Path,
    removal: &RemovalSelection,
    follows: Option<Vec<u8>>,
    marks: &BTreeMap<String, u64>,
) -> Result<Option<RewrittenIndex>, EngineError> {
    mend_swap(dir)?;
    let (folder, committed) = (dir.join(INDEX_FOLDER), committed_log(marks));
    if !folder.is_dir() {
        return Ok(None);
    }
    let answers = |urls: &BTreeSet<String>| match staging.join(PAGES).exists() {
        true => answers_of(staging, None, urls),
        false => answers_of(dir, marks.get(PAGES).copied(), urls),
    };
    let edit = |page: &mut IndexedPage| is_kept(page, removal);
    let copy = || -> Result<_, IndexError> {
        let FollowedLog { note, read } = followed_log(&folder, follows, committed)?;
        let note = match read {
            Some(read) => note_of(read.log + 1),
            None => note,
        };
        copy_pages(&folder, &staging.join(INDEX_FOLDER), &note, &edit, &answers)?;
        let Some(read) = read else {
            return Ok(RewrittenIndex { log: None });
        };
        let bytes = rewrite_log(dir, &log_path(staging), removal, read, committed)?;
        let log = Some((read.log + 1, bytes));
        Ok(RewrittenIndex { log })
    };
    match copy() {
        Ok(index) => Ok(Some(index)),
        Err(error) => {
            tracing::warn!("{}", unusable(error)?);
            Ok(None)
        }
    }
}

/// Returns the reason why the index of the crawl in `dir` can't be rewritten. `None` if the index can
/// be rewritten or doesn't exist.
pub(super) fn why_not(
    dir: &Path,
    follows: Option<Vec<u8>>,
    marks: &BTreeMap<String, u64>,
) -> Result<Option<String>, EngineError> {
    let folder = dir.join(INDEX_FOLDER);
    if !folder.is_dir() {
        return Ok(None);
    }
    let followed = followed_log(&folder, follows, committed_log(marks));
    match followed.and_then(|_| check_checksums(&folder)) {
        Ok(()) => Ok(None),
        Err(error) => Ok(Some(unusable(error)?)),
    }
}

/// Returns the message of an error if it means that the index can't be read. Returns any other
/// error unchanged.
fn unusable(error: IndexError) -> Result<String, IndexError> {
    match error {
        IndexError::Missing { .. }
        | IndexError::OtherFormat { .. }
        | IndexError::Damaged { .. } => Ok(error.to_string()),
        other => Err(other),
    }
}

/// Returns the committed length of the indexing log.
fn committed_log(marks: &BTreeMap<String, u64>) -> u64 {
    marks.get(LOG).copied().unwrap_or(0)
}

/// The log that an index follows, according to the note that is stored with the index.
struct FollowedLog {
    note: String,
    /// How far the index has read the log. `None` if it follows no log.
    read: Option<IndexingLogPosition>,
}

fn followed_log(
    folder: &Path,
    follows: Option<Vec<u8>>,
    committed: u64,
) -> Result<FollowedLog, IndexError> {
    let note = note_in(folder)?;
    let read = number_in(follows).map(|number| place(note.as_deref(), number, committed));
    let read = read.transpose().map_err(|what| IndexError::Damaged {
        dir: folder.to_path_buf(),
        what,
    })?;
    Ok(FollowedLog {
        note: note.unwrap_or_default(),
        read,
    })
}

/// Writes the part of the indexing log from `read` to `committed` to the file `to`. Returns the
/// length of the new file in bytes.
fn rewrite_log(
    dir: &Path,
    to: &Path,
    removal: &RemovalSelection,
    read: IndexingLogPosition,
    committed: u64,
) -> Result<u64, IndexError> {
    let open = || -> io::Result<_> {
        to.parent().map_or(Ok(()), fs::create_dir_all)?;
        Ok(BufWriter::new(replace_file(to)?))
    };
    let mut file = open().map_err(disk(to))?;
    let mut bytes = 0;
    if read.bytes < committed {
        let mut log = IndexingLogReader::open(dir, read.bytes)?;
        while log.at() < committed {
            let Some(entry) = kept_entry(log.next_entry()?, removal) else {
                continue;
            };
            let mut line = serde_json::to_vec(&entry).unwrap_or_default();
            line.push(b'\n');
            file.write_all(&line).map_err(disk(to))?;
            bytes += line.len() as u64;
        }
    }
    let end = || file.into_inner().map_err(io::Error::from)?.sync_all();
    end().map_err(disk(to))?;
    Ok(bytes)
}

/// Returns an entry without erased names. `None` if the entry is about an erased page.
fn kept_entry(mut entry: IndexLogEntry, removal: &RemovalSelection) -> Option<IndexLogEntry> {
    let is_kept = match &mut entry {
        IndexLogEntry::Put(page) => is_kept(page, removal),
        IndexLogEntry::Drop { url, why } => {
            removal.clear_reason(why);
            !removal.holds_text(url)
        }
    };
    is_kept.then_some(entry)
}

/// Removes mentions of erased pages from a page's entry. Returns whether to keep the page.
fn is_kept(page: &mut IndexedPage, removal: &RemovalSelection) -> bool {
    if removal.holds_text(&page.url) {
        return false;
    }
    page.links.retain(|link| !removal.holds_text(&link.url));
    for url in [&mut page.gives_way_to, &mut page.canonical] {
        removal.clear(url);
    }
    if let Some(why) = &mut page.leaving {
        removal.clear_reason(why);
    }
    true
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crawl_archive::RemovalSelection;
    use crawl_index::{IndexLogEntry, IndexedPage, OutgoingLink};
    use crawl_weburl::canonicalize;

    use super::{IndexingLogPosition, kept_entry, log_path, rewrite_log};

    #[test]
    fn entries_keep_nothing_of_an_erased_page() {
        let gone = "http://a.test/gone";
        let mut removal = RemovalSelection::default();
        removal.add_page(&canonicalize(None, gone).unwrap());
        let rewritten = |entry: &IndexLogEntry| kept_entry(entry.clone(), &removal);
        let link = |url: &str| OutgoingLink {
            url: url.to_owned(),
            text: "there".to_owned(),
        };
        let page = IndexedPage {
            url: "http://a.test/".to_owned(),
            links: vec![link(gone), link("http://a.test/gone2")],
            canonical: Some(gone.to_owned()),
            gives_way_to: Some(gone.to_owned()),
            leaving: Some(format!("redirect: {gone}")),
            ..IndexedPage::default()
        };
        let expected = IndexedPage {
            url: page.url.clone(),
            links: vec![link("http://a.test/gone2")],
            leaving: Some("redirect".to_owned()),
            ..IndexedPage::default()
        };
        let put = |page: &IndexedPage| IndexLogEntry::Put(Box::new(page.clone()));
        assert_eq!(rewritten(&put(&page)), Some(put(&expected)));
        let page = IndexedPage {
            url: gone.to_owned(),
            ..page
        };
        assert_eq!(rewritten(&put(&page)), None);
        let drop = |url: &str, why: &str| IndexLogEntry::Drop {
            url: url.to_owned(),
            why: why.to_owned(),
        };
        assert_eq!(rewritten(&drop(gone, "noindex")), None);
        let moved = drop("http://a.test/old", &format!("redirect: {gone}"));
        assert_eq!(
            rewritten(&moved),
            Some(drop("http://a.test/old", "redirect"))
        );
    }

    #[test]
    fn the_unread_part_of_the_log_is_kept_without_the_erased_page() {
        let dir = tempfile::tempdir().unwrap();
        let mut removal = RemovalSelection::default();
        removal.add_page(&canonicalize(None, "http://a.test/gone").unwrap());
        let line = |name: &str| {
            let url = format!("http://a.test/{name}");
            let entry = IndexLogEntry::Drop {
                url,
                why: "noindex".to_owned(),
            };
            serde_json::to_string(&entry).unwrap() + "\n"
        };
        let old = log_path(dir.path());
        fs::create_dir(old.parent().unwrap()).unwrap();
        let names = ["read", "gone", "kept", "uncommitted"];
        fs::write(&old, names.map(line).concat()).unwrap();
        let read = IndexingLogPosition {
            log: 1,
            bytes: line("read").len() as u64,
        };
        let committed = ["read", "gone", "kept"].map(|name| line(name).len() as u64);
        let committed = committed.iter().sum();
        let new = dir.path().join("new/indexing.jsonl");
        let bytes = rewrite_log(dir.path(), &new, &removal, read, committed).unwrap();
        assert_eq!(fs::read_to_string(&new).unwrap(), line("kept"));
        assert_eq!(bytes, line("kept").len() as u64);
    }
}
