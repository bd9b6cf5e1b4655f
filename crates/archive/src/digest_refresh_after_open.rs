//! Keeps the digests of a crawl's state right while a command opens the state without a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::file_digest_list::{
    FileDigestList, FilesToRehash, digest_rows, digested_files, read_whole_list, sha256_of_all,
};
use crate::rows::FileDigestRow;

/// Updates the digests of the files in a folder that were changed by opening it.
///
/// Opening a store may truncate its journal and remove files that it no longer needs, even if the
/// command only reads. Without new digests, `crawl verify` would report these files as damaged.
/// Files that did not match the list before stay as listed, so that real damage is still reported.
///
/// Create the guard before the folder is opened, and drop it after the folder is closed. Dropping
/// it does nothing if a run has begun since. Errors are ignored, because the command itself did not
/// fail: the list then stays as it was.
#[derive(Debug)]
pub struct DigestRefreshAfterOpen {
    /// `None` if there is no complete list, or it can't be read.
    before: Option<FolderSnapshot>,
}

/// Which files a folder contained before it was opened, and which of them matched the list of
/// digests.
#[derive(Debug)]
struct FolderSnapshot {
    dir: PathBuf,
    /// The path of the folder in `dir`, with a slash at the end.
    prefix: String,
    is_write_once: fn(&str) -> bool,
    /// The files in the folder.
    files: BTreeSet<String>,
    /// The files in the folder that were as listed: their lengths matched the list and, unless they
    /// are written only once, their digests too.
    matching: BTreeSet<String>,
}

impl DigestRefreshAfterOpen {
    /// Compares the files in `folder` of the crawl in `dir` with the list of digests.
    /// `is_write_once` returns whether the file with this path is never changed after it was
    /// written. Only the length of such a file is compared.
    #[must_use]
    pub fn before_opening(
        dir: &Path,
        folder: &str,
        is_write_once: fn(&str) -> bool,
    ) -> DigestRefreshAfterOpen {
        let before = FolderSnapshot::read(dir, folder, is_write_once);
        DigestRefreshAfterOpen {
            before: before.ok().flatten(),
        }
    }
}

impl Drop for DigestRefreshAfterOpen {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            let _ = before.update();
        }
    }
}

impl FolderSnapshot {
    fn read(
        dir: &Path,
        folder: &str,
        is_write_once: fn(&str) -> bool,
    ) -> io::Result<Option<FolderSnapshot>> {
        let Some(list) = read_whole_list(dir)? else {
            return Ok(None);
        };
        let prefix = format!("{folder}/");
        let files = files_below(dir, &prefix)?;
        let rows = list.rows.into_iter();
        let rows = rows.filter(|row| files.contains(&row.file));
        let (write_once, rewritable): (Vec<_>, Vec<_>) =
            rows.partition(|row: &FileDigestRow| is_write_once(&row.file));
        let has_length = |row: &FileDigestRow| {
            let metadata = fs::symlink_metadata(dir.join(&row.file));
            metadata.is_ok_and(|metadata| metadata.len() == row.bytes)
        };
        let paths: Vec<_> = rewritable.iter().map(|row| dir.join(&row.file)).collect();
        let digests = sha256_of_all(&paths);
        let matching_file = |(row, digest): (FileDigestRow, io::Result<(String, u64)>)| {
            let is_same = digest.is_ok_and(|digest| digest == (row.sha256, row.bytes));
            is_same.then_some(row.file)
        };
        let write_once = write_once.into_iter().filter(has_length);
        let write_once = write_once.map(|row| row.file);
        let rewritable = rewritable.into_iter().zip(digests);
        let rewritable = rewritable.filter_map(matching_file);
        Ok(Some(FolderSnapshot {
            dir: dir.to_owned(),
            prefix,
            is_write_once,
            matching: write_once.chain(rewritable).collect(),
            files,
        }))
    }

    /// Updates the list after the folder was closed.
    fn update(self) -> io::Result<()> {
        let Some(list) = read_whole_list(&self.dir)? else {
            return Ok(());
        };
        let mut files = files_below(&self.dir, &self.prefix)?;
        files.retain(|file| self.matching.contains(file) || !self.files.contains(file));
        let is_unchanged = |row: &&FileDigestRow| (self.is_write_once)(&row.file);
        let unchanged: Vec<_> = list.rows.iter().filter(is_unchanged).cloned().collect();
        let read = digest_rows(&self.dir, files, &unchanged, FilesToRehash::Named(&[]))?;
        let listed = list.rows.iter();
        let unread = listed.filter(|row| !self.matching.contains(&row.file));
        let rows = read.into_iter().chain(unread.cloned());
        let rows: BTreeMap<_, _> = rows.map(|row| (row.file.clone(), row)).collect();
        let rows: Vec<_> = rows.into_values().collect();
        // A run that began while the files were read has marked the list as incomplete.
        let is_current = read_whole_list(&self.dir)?.is_some_and(|now| now.rows == list.rows);
        match rows == list.rows || !is_current {
            true => Ok(()),
            false => FileDigestList { rows, ..list }.write(&self.dir),
        }
    }
}

fn files_below(dir: &Path, prefix: &str) -> io::Result<BTreeSet<String>> {
    let mut files = digested_files(dir)?;
    files.retain(|file| file.starts_with(prefix));
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::DigestRefreshAfterOpen;
    use crate::file_digest_list::{FileDigestList, FilesToRehash, sha256_of, write_digests};

    fn is_table(file: &str) -> bool {
        file.contains("/tables/")
    }

    #[test]
    fn only_files_that_opening_changed_get_new_digests() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        fs::create_dir_all(dir.join("state/tables")).unwrap();
        let put = |file: &str, text: &str| fs::write(dir.join(file), text).unwrap();
        let files = ["pages.jsonl", "state/journal", "state/damaged", "state/old"];
        for file in files.into_iter().chain(["state/tables/1", "state/lost"]) {
            put(file, file);
        }
        write_digests(dir, FilesToRehash::All).unwrap();
        let listed = || FileDigestList::read(dir).unwrap().unwrap();
        let unchanged = listed();
        let open = || DigestRefreshAfterOpen::before_opening(dir, "state", is_table);
        drop(open());
        assert_eq!(listed(), unchanged);

        put("pages.jsonl", "damaged");
        put("state/damaged", "another");
        fs::remove_file(dir.join("state/lost")).unwrap();
        let opened = open();
        put("state/journal", "shorter");
        put("state/damaged", "yet another");
        put("state/tables/2", "a new table");
        fs::remove_file(dir.join("state/old")).unwrap();
        drop(opened);
        let list = listed();
        assert_eq!((list.is_whole, &list.faults), (true, &Vec::new()));
        let rows = list.rows.iter().map(|row| {
            let file = fs::File::open(dir.join(&row.file));
            let is_current = file.is_ok_and(|file| sha256_of(file).unwrap().0 == row.sha256);
            (row.file.as_str(), is_current)
        });
        let expected = [
            ("pages.jsonl", false),
            ("state/damaged", false),
            ("state/journal", true),
            ("state/lost", false),
            ("state/tables/1", true),
            ("state/tables/2", true),
        ];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }
}
