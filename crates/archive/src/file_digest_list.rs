//! The digests of a crawl's files, maintained between runs: `digests.jsonl`.
//!
//! Each row has a file's name, length and SHA-256. The last row has the length and SHA-256 of
//! the rows above it. At the start of a run, all rows are dropped except those of WARC files: these
//! files only grow, so the digest of their beginning stays right. At the end of the run, all files
//! are listed again. If a WARC file did not grow, its row is kept and the file is not read again:
//! otherwise damage since the last run would be recorded as valid content.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use data_encoding::HEXLOWER;
use ring::digest::{Context, SHA256, digest};

use crate::archive_layout::FOLDER;
use crate::bounded_read::{BoundedLineResult, LineReader};
use crate::directory_safety::{FORGET_LIST, FORGET_LIST_BESIDE, FORGET_STAGING, is_of_archive};
use crate::regular_file::{open_regular, replace_file};
use crate::rows::FileDigestRow;
use crate::warc_compression::strip_warc_suffix;

/// The list of digests in a crawl's directory.
pub const DIGESTS: &str = "digests.jsonl";
/// The temporary name of the list while it is written.
pub const TEMPORARY_DIGESTS: &str = "digests.jsonl.new";
/// Files and folders of a crawl that the list never contains.
const UNLISTED: [&str; 5] = [
    DIGESTS,
    TEMPORARY_DIGESTS,
    FORGET_STAGING,
    FORGET_LIST,
    FORGET_LIST_BESIDE,
];
/// Maximum length of a row in bytes. A row consists of a path that this program wrote, a length and
/// a digest.
const MAX_ROW_BYTES: usize = 64 * 1024;

/// The files that may have changed, so that their digests must be computed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesToRehash<'a> {
    /// All files may have changed, as at the end of a run.
    All,
    /// Only these files and the files in these folders may have changed.
    Named(&'a [&'a str]),
}

/// The list of digests of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileDigestList {
    /// The rows of files, sorted by path. The last row of `digests.jsonl`, which is about the list
    /// itself, is not included.
    pub rows: Vec<FileDigestRow>,
    /// Whether all files of the directory are listed. While a run is in progress, they are not.
    pub is_whole: bool,
    /// Faults of the list, each as a line number and a description.
    pub faults: Vec<(u64, &'static str)>,
}

impl FileDigestList {
    /// Reads the list of a crawl's directory. `None` if there is no list.
    ///
    /// # Errors
    /// I/O errors. Invalid rows are not errors, but are added to [`FileDigestList::faults`].
    pub fn read(dir: &Path) -> io::Result<Option<FileDigestList>> {
        let file = match open_regular(&dir.join(DIGESTS)) {
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut list = FileDigestList::default();
        let mut above = Context::new(&SHA256);
        let mut bytes = 0;
        let mut last: Option<FileDigestRow> = None;
        let mut lines = LineReader::new(BufReader::new(file), MAX_ROW_BYTES);
        let mut number = 0;
        while let Some(line) = lines.next_line()? {
            number += 1;
            if last.is_some() {
                list.faults
                    .push((number, "nothing may follow the last row"));
                break;
            }
            let row = match line {
                BoundedLineResult::Whole(line) => {
                    let row: Option<FileDigestRow> = serde_json::from_slice(line).ok();
                    let row = row.filter(|row| line_of(row) == line);
                    if row.as_ref().is_none_or(|row| row.is_whole.is_none()) {
                        above.update(line);
                        bytes += line.len() as u64;
                    }
                    row
                }
                BoundedLineResult::TooLong { .. } | BoundedLineResult::Torn { .. } => None,
            };
            match row {
                None => list.faults.push((number, "not a row")),
                Some(row) if row.is_whole.is_some() => last = Some(row),
                Some(row) => {
                    if list
                        .rows
                        .last()
                        .is_some_and(|before| before.file >= row.file)
                    {
                        let fault = "out of order: it belongs before the previous line";
                        list.faults.push((number, fault));
                    }
                    list.rows.push(row);
                }
            }
        }
        let sha256 = HEXLOWER.encode(above.finish().as_ref());
        match last {
            Some(last) if last == last_row(bytes, sha256.clone(), last.is_whole == Some(true)) => {
                list.is_whole = last.is_whole == Some(true);
            }
            Some(_) => {
                let fault = "not the length and the digest of the previous lines";
                list.faults.push((number, fault));
            }
            None => list.faults.push((number, "the last row is missing")),
        }
        Ok(Some(list))
    }

    pub(crate) fn write(&self, dir: &Path) -> io::Result<()> {
        let mut text = Vec::new();
        for row in &self.rows {
            text.extend(line_of(row));
        }
        let sha256 = HEXLOWER.encode(digest(&SHA256, &text).as_ref());
        text.extend(line_of(&last_row(text.len() as u64, sha256, self.is_whole)));
        let beside = dir.join(TEMPORARY_DIGESTS);
        let mut file = replace_file(&beside)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&beside, dir.join(DIGESTS))?;
        File::open(dir)?.sync_all()
    }
}

fn last_row(bytes: u64, sha256: String, is_whole: bool) -> FileDigestRow {
    FileDigestRow {
        file: DIGESTS.to_owned(),
        bytes,
        sha256,
        is_whole: Some(is_whole),
    }
}

fn line_of(row: &FileDigestRow) -> Vec<u8> {
    let mut line = serde_json::to_vec(row).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Reads the list of a crawl's directory. `None` if it is missing, incomplete or has faults.
pub(crate) fn read_whole_list(dir: &Path) -> io::Result<Option<FileDigestList>> {
    let list = FileDigestList::read(dir)?;
    Ok(list.filter(|list| list.is_whole && list.faults.is_empty()))
}

/// Lists the files of a crawl's directory while no run writes to it. Digests of unchanged files are
/// taken from the existing list. With [`FilesToRehash::Named`] and without a complete list, nothing
/// is written, because the end of the next run lists all files anyway.
///
/// # Errors
/// I/O errors of reading the files or writing the list.
pub fn write_digests(dir: &Path, changed: FilesToRehash<'_>) -> io::Result<()> {
    let before = FileDigestList::read(dir)?.filter(|list| list.faults.is_empty());
    let is_whole = before.as_ref().is_some_and(|list| list.is_whole);
    if matches!(changed, FilesToRehash::Named(_)) && !is_whole {
        return Ok(());
    }
    let rows = before.map(|list| list.rows).unwrap_or_default();
    let rows = digest_rows(dir, digested_files(dir)?, &rows, changed)?;
    let list = FileDigestList {
        rows,
        is_whole: true,
        ..FileDigestList::default()
    };
    list.write(dir)
}

/// Lists the WARC files of a directory while no run writes to it. Their digests take the longest,
/// because WARC files are usually the largest. So they are computed while the report is written,
/// and [`write_digests`] completes the list after that.
///
/// # Errors
/// I/O errors of reading the files or writing the list.
pub fn write_archive_digests(dir: &Path) -> io::Result<()> {
    let before = FileDigestList::read(dir)?.filter(|list| list.faults.is_empty());
    let rows = before.map(|list| list.rows).unwrap_or_default();
    let mut files = digested_files(dir)?;
    files.retain(|file| only_grows(file));
    let rows = digest_rows(dir, files, &rows, FilesToRehash::All)?;
    start_digests(dir, rows)
}

/// Returns a row for each file. If the file is unchanged, takes its row from `rows`. Otherwise
/// computes the digest.
pub(crate) fn digest_rows(
    dir: &Path,
    files: BTreeSet<String>,
    rows: &[FileDigestRow],
    changed: FilesToRehash<'_>,
) -> io::Result<Vec<FileDigestRow>> {
    let listed: BTreeMap<&str, &FileDigestRow> =
        rows.iter().map(|row| (row.file.as_str(), row)).collect();
    let has_changed = |path: &str| match changed {
        FilesToRehash::All => !only_grows(path),
        FilesToRehash::Named(names) => names.iter().any(|name| {
            let rest = path.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }),
    };
    let mut rows = Vec::new();
    let mut unread = Vec::new();
    for file in files {
        let row = listed.get(file.as_str()).filter(|_| !has_changed(&file));
        let has_grown = |row: &FileDigestRow| {
            let length = fs::symlink_metadata(dir.join(&file)).map(|metadata| metadata.len());
            changed == FilesToRehash::All && length.is_ok_and(|length| length > row.bytes)
        };
        rows.push(match row.filter(|row| !has_grown(row)) {
            Some(row) => (*row).clone(),
            None => {
                unread.push(rows.len());
                FileDigestRow {
                    file,
                    bytes: 0,
                    sha256: String::new(),
                    is_whole: None,
                }
            }
        });
    }
    let files = unread.iter().map(|&at| dir.join(&rows[at].file));
    let digests = sha256_of_all(&files.collect::<Vec<_>>());
    for (at, digest) in unread.into_iter().zip(digests) {
        let row: &mut FileDigestRow = &mut rows[at];
        (row.sha256, row.bytes) = digest?;
    }
    Ok(rows)
}

/// Writes a first list for a directory whose WARC files were copied from other directories. `rows`
/// has the known digests of these files, so that [`write_digests`] doesn't read them again.
///
/// # Errors
/// I/O errors of writing the list.
pub fn start_digests(dir: &Path, mut rows: Vec<FileDigestRow>) -> io::Result<()> {
    rows.sort_by(|one, other| one.file.cmp(&other.file));
    let list = FileDigestList {
        rows,
        ..FileDigestList::default()
    };
    list.write(dir)
}

/// Drops all rows of the list but those of WARC files, because a run is about to change the other
/// files. A list with faults is deleted.
///
/// # Errors
/// I/O errors of reading or writing the list.
pub fn keep_archive_digests(dir: &Path) -> io::Result<()> {
    let Some(mut list) = FileDigestList::read(dir)? else {
        return Ok(());
    };
    if !list.faults.is_empty() {
        return fs::remove_file(dir.join(DIGESTS));
    }
    list.rows.retain(|row| only_grows(&row.file));
    list.is_whole = false;
    list.write(dir)
}

/// Returns whether a file is never changed, except that it grows.
fn only_grows(path: &str) -> bool {
    strip_warc_suffix(path).is_some()
}

/// Returns the sorted paths of the files that a complete list of digests covers: all regular files
/// of a crawl, except the list itself. Files of other programs in the archive's folder and those of
/// an unfinished `crawl forget` are left out.
///
/// # Errors
/// I/O errors of reading the directory.
pub fn digested_files(dir: &Path) -> io::Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(dir.join(&folder))? {
            let entry = entry?;
            // Skip names that are not UTF-8. This program creates none.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let kind = entry.file_type()?;
            let path = match folder.as_str() {
                "" => name.clone(),
                folder => format!("{folder}/{name}"),
            };
            let is_foreign = folder == FOLDER && !is_of_archive(&name);
            if UNLISTED.contains(&path.as_str()) {
                continue;
            }
            if kind.is_dir() && folder != FOLDER {
                folders.push(path);
            } else if kind.is_file() && !is_foreign {
                files.insert(path);
            }
        }
    }
    Ok(files)
}

/// Returns the SHA-256 and the length of each file, in order. Uses one thread per processor,
/// because the end of a run waits for the result.
pub(crate) fn sha256_of_all(files: &[PathBuf]) -> Vec<io::Result<(String, u64)>> {
    let next = AtomicUsize::new(0);
    let take = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let digest = open_regular(files.get(at)?).and_then(sha256_of);
        Some((at, digest))
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let mut digests: Vec<_> = thread::scope(|scope| {
        let spawned = 1..processors.min(files.len());
        let spawned: Vec<_> = spawned
            .map(|_| scope.spawn(|| std::iter::from_fn(take).collect::<Vec<_>>()))
            .collect();
        let own: Vec<_> = std::iter::from_fn(take).collect();
        // Propagate a panic. Without the digests from that thread, the list would be incomplete.
        let digests_of_others = spawned.into_iter().flat_map(|thread| match thread.join() {
            Ok(digests) => digests,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        own.into_iter().chain(digests_of_others).collect()
    });
    digests.sort_unstable_by_key(|(at, _)| *at);
    digests.into_iter().map(|(_, digest)| digest).collect()
}

/// Returns the SHA-256 of a file's content (in lower case hexadecimal digits) and its length.
///
/// # Errors
/// I/O errors.
pub fn sha256_of(mut file: impl Read) -> io::Result<(String, u64)> {
    let (mut hash, mut bytes) = (Context::new(&SHA256), 0);
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok((HEXLOWER.encode(hash.finish().as_ref()), bytes)),
            Ok(read) => {
                hash.update(&piece[..read]);
                bytes += read as u64;
            }
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{DIGESTS, FileDigestList, FilesToRehash, keep_archive_digests, write_digests};

    const WARC: &str = "archive/crawl-a-00000.warc.gz";

    fn names(dir: &Path) -> (Vec<String>, bool) {
        let list = FileDigestList::read(dir).unwrap().unwrap();
        assert_eq!(list.faults, []);
        (
            list.rows.into_iter().map(|row| row.file).collect(),
            list.is_whole,
        )
    }

    fn sha256(dir: &Path, file: &str) -> String {
        let list = FileDigestList::read(dir).unwrap().unwrap();
        let row = list.rows.into_iter().find(|row| row.file == file);
        row.unwrap().sha256
    }

    fn crawl() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("archive")).unwrap();
        for (file, text) in [
            ("pages.jsonl", "a"),
            ("waiting.jsonl", "b"),
            (WARC, "c"),
            ("archive/notes", "of others"),
        ] {
            fs::write(dir.path().join(file), text).unwrap();
        }
        dir
    }

    #[test]
    fn a_run_keeps_the_rows_of_warc_files_and_its_end_lists_all() {
        let dir = crawl();
        let dir = dir.path();
        write_digests(dir, FilesToRehash::Named(&["pages.jsonl"])).unwrap();
        assert!(!dir.join(DIGESTS).exists());
        write_digests(dir, FilesToRehash::All).unwrap();
        let all = [WARC, "pages.jsonl", "waiting.jsonl"].map(str::to_owned);
        assert_eq!(names(dir), (all.to_vec(), true));
        let (warc, pages) = (sha256(dir, WARC), sha256(dir, "pages.jsonl"));
        keep_archive_digests(dir).unwrap();
        assert_eq!(names(dir), (vec![WARC.to_owned()], false));
        // A WARC file that did not grow keeps its digest, so that damage to it can still be found.
        fs::write(dir.join(WARC), "x").unwrap();
        fs::write(dir.join("pages.jsonl"), "other").unwrap();
        write_digests(dir, FilesToRehash::All).unwrap();
        assert_eq!(sha256(dir, WARC), warc);
        assert_ne!(sha256(dir, "pages.jsonl"), pages);
        fs::write(dir.join(WARC), "longer").unwrap();
        write_digests(dir, FilesToRehash::All).unwrap();
        let grown = sha256(dir, WARC);
        assert_ne!(grown, warc);
        // Only the files named in the call get new digests. The changed WARC file keeps its old
        // one.
        fs::write(dir.join(WARC), "longer still").unwrap();
        fs::write(dir.join("recheck.jsonl"), "new").unwrap();
        write_digests(dir, FilesToRehash::Named(&["recheck.jsonl"])).unwrap();
        assert_eq!(sha256(dir, WARC), grown);
        assert_eq!(names(dir).0.len(), 4);
    }

    #[test]
    fn each_byte_of_the_list_counts() {
        let dir = crawl();
        let dir = dir.path();
        write_digests(dir, FilesToRehash::All).unwrap();
        let whole = fs::read(dir.join(DIGESTS)).unwrap();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            fs::write(dir.join(DIGESTS), &flipped).unwrap();
            let list = FileDigestList::read(dir).unwrap().unwrap();
            assert!(!list.faults.is_empty(), "byte {at}");
        }
        let lines = whole.split_inclusive(|&byte| byte == b'\n').count();
        let cut = whole.iter().rposition(|&byte| byte == b'{').unwrap();
        fs::write(dir.join(DIGESTS), &whole[..cut]).unwrap();
        let list = FileDigestList::read(dir).unwrap().unwrap();
        assert_eq!(list.faults, [(lines as u64 - 1, "the last row is missing")]);
    }
}
