//! Replaces files of a crawl directory in one step: all of them or none.
//!
//! ```text
//! DIR/forget.new/       the new files, under their final names
//! DIR/forget.json       the list of changes, written once the new files are on disk
//! ```
//!
//! If a crash happens before the list is written, the next start removes the folder. If a crash
//! happens later, [`resume`] carries out the whole list again, which is harmless.
//!
//! A crawl directory with such a list may come from a stranger. So all changes are made through a
//! handle on the directory, without following links. The caller of [`resume`] decides whether the
//! list is the user's own, and which names it may contain.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
pub(crate) use crawl_archive::{
    FORGET_LIST as LIST, FORGET_LIST_BESIDE as LIST_BESIDE, FORGET_STAGING as STAGING,
};
use crawl_archive::{read_text, replace_file};
use crawl_frontier::FileLock;
use serde::{Deserialize, Serialize};

use crate::error::EngineError;

/// Maximum size of a list, in bytes.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// The files and folders to replace and to remove. Names are relative to the crawl directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileSwapList {
    pub(crate) replace: Vec<String>,
    pub(crate) remove: Vec<String>,
}

impl FileSwapList {
    /// Returns the bytes that are signed with the user's key.
    fn message(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// The content of `forget.json`.
#[derive(Serialize, Deserialize)]
struct SignedSwapList {
    #[serde(flatten)]
    swap: FileSwapList,
    /// The user's signature of [`FileSwapList::message`]. `None` if the user had no key.
    mark: Option<String>,
}

/// Creates an empty folder for the new files.
pub(crate) fn begin(dir: &Path) -> Result<PathBuf, EngineError> {
    let staging = dir.join(STAGING);
    let create = || -> io::Result<()> {
        let root = open_root(dir)?;
        remove(&root, STAGING)?;
        root.create_dir(STAGING)
    };
    create().map_err(EngineError::disk(&staging))?;
    Ok(staging)
}

/// Makes the replacement final: writes and syncs the list, together with the signature that `sign`
/// returns. The new files must already be synced. This function syncs only their folders.
pub(crate) fn commit(
    dir: &Path,
    swap: &FileSwapList,
    sign: &dyn Fn(&[u8]) -> Option<String>,
) -> Result<(), EngineError> {
    let list = dir.join(LIST);
    let beside = dir.join(LIST_BESIDE);
    let write = || -> io::Result<()> {
        sync_folders(&dir.join(STAGING))?;
        let mark = sign(&swap.message());
        let swap = swap.clone();
        let bytes = serde_json::to_vec(&SignedSwapList { swap, mark })?;
        let mut file = replace_file(&beside)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&beside, &list)?;
        sync(dir)
    };
    write().map_err(EngineError::disk(&list))
}

/// Carries out the list: moves all new files into place, and removes the files to remove. Calls
/// `step` before each change. If `step` fails, stops at once and leaves the replacement unfinished,
/// as after a crash.
pub(crate) fn finish(
    dir: &Path,
    swap: &FileSwapList,
    step: &mut dyn FnMut() -> io::Result<()>,
) -> Result<(), EngineError> {
    let root = open_root(dir).map_err(EngineError::disk(dir))?;
    for (number, name) in swap.replace.iter().enumerate() {
        let replaced = replace(&root, number, name, step);
        replaced.map_err(EngineError::disk(&dir.join(name)))?;
    }
    for name in &swap.remove {
        let mut remove_one = || {
            step()?;
            remove(&root, name)?;
            sync_parent(&root, name)
        };
        remove_one().map_err(EngineError::disk(&dir.join(name)))?;
    }
    let mut end = || -> io::Result<()> {
        step()?;
        remove(&root, STAGING)?;
        sync(dir)?;
        step()?;
        remove(&root, LIST)?;
        sync(dir)
    };
    end().map_err(EngineError::disk(&dir.join(STAGING)))
}

/// Moves one new file or folder into place, unless that was done earlier.
fn replace(
    root: &Dir,
    number: usize,
    name: &str,
    step: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<()> {
    let staged = format!("{STAGING}/{name}");
    if !exists(root, &staged)? {
        return Ok(());
    }
    if root
        .symlink_metadata(name)
        .is_ok_and(|found| found.is_dir())
    {
        // `rename` does not replace a folder with entries, so move the old folder away first.
        let old = format!("{STAGING}/old-{number}");
        remove(root, &old)?;
        step()?;
        root.rename(name, root, &old)?;
    }
    step()?;
    root.rename(&staged, root, name)?;
    sync_parent(root, name)
}

/// Undoes a replacement that a crash interrupted before the list was written. Returns false if no
/// replacement was interrupted.
///
/// # Errors
/// [`EngineError::OutputInUse`] if another process uses the crawl,
/// [`EngineError::UnfinishedForget`] if a list was written ([`resume`] finishes it), or an I/O
/// error.
pub(crate) fn recover(dir: &Path) -> Result<bool, EngineError> {
    let Some(_lock) = lock_leftovers(dir)? else {
        return Ok(false);
    };
    let failed = |why| EngineError::disk(dir)(why);
    let root = open_root(dir).map_err(failed)?;
    if exists(&root, LIST).map_err(failed)? {
        let dir = dir.to_owned();
        return Err(EngineError::UnfinishedForget { dir });
    }
    remove(&root, STAGING).map_err(failed)?;
    remove(&root, LIST_BESIDE).map_err(failed)?;
    Ok(true)
}

/// Finishes the replacement whose list is in `dir`. Returns the list; `None` if `dir` has none.
/// `is_ours` gets the signed bytes and the signature, and returns whether the user signed them.
/// `may_change` returns whether the file with this name may be replaced or removed.
///
/// # Errors
/// [`EngineError::ForeignForget`] for a list that is not the user's or that names another file;
/// [`EngineError::OutputInUse`]; an I/O error.
pub(crate) fn resume(
    dir: &Path,
    is_ours: &dyn Fn(&[u8], Option<&str>) -> bool,
    may_change: &dyn Fn(&str) -> bool,
) -> Result<Option<FileSwapList>, EngineError> {
    let list = dir.join(LIST);
    if list.symlink_metadata().is_err() {
        return Ok(None);
    }
    let Some(_lock) = lock_leftovers(dir)? else {
        return Ok(None);
    };
    let text = read_text(&list, MAX_LIST_BYTES).map_err(EngineError::disk(&list))?;
    let foreign = |why: String| EngineError::ForeignForget {
        dir: dir.to_owned(),
        why,
    };
    let SignedSwapList { swap, mark } =
        serde_json::from_str(&text).map_err(|why| foreign(why.to_string()))?;
    let mut names = swap.replace.iter().chain(&swap.remove);
    if let Some(name) = names.find(|name| !may_change(name)) {
        return Err(foreign(format!(
            "`{name}` is not a file that `forget` changes"
        )));
    }
    if !is_ours(&swap.message(), mark.as_deref()) {
        return Err(foreign("its mark is not yours".to_owned()));
    }
    finish(dir, &swap, &mut || Ok(()))?;
    Ok(Some(swap))
}

/// Locks the crawl if it contains files of an interrupted replacement. `None` if it contains none.
fn lock_leftovers(dir: &Path) -> Result<Option<FileLock>, EngineError> {
    let mut leftovers = [LIST, STAGING, LIST_BESIDE].into_iter();
    if !leftovers.any(|name| dir.join(name).symlink_metadata().is_ok()) {
        return Ok(None);
    }
    let failed = |why| EngineError::disk(dir)(why);
    let root = open_root(dir).map_err(failed)?;
    let lock = root.open("state/lock").map_err(failed)?.into_std();
    let in_use = || EngineError::OutputInUse {
        dir: dir.to_path_buf(),
    };
    let lock = FileLock::try_acquire(lock).map_err(failed)?;
    lock.ok_or_else(in_use).map(Some)
}

/// Opens a handle on the directory. Files opened, renamed or removed through it are always inside
/// the directory.
fn open_root(dir: &Path) -> io::Result<Dir> {
    Dir::open_ambient_dir(dir, ambient_authority())
}

fn exists(root: &Dir, name: &str) -> io::Result<bool> {
    match root.symlink_metadata(name) {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(false),
        found => found.map(|_| true),
    }
}

fn remove(root: &Dir, name: &str) -> io::Result<()> {
    let removed = match root.symlink_metadata(name) {
        Ok(found) if found.is_dir() => root.remove_dir_all(name),
        Ok(_) => root.remove_file(name),
        Err(why) => Err(why),
    };
    match removed {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn sync_parent(root: &Dir, name: &str) -> io::Result<()> {
    let folder = match name.rsplit_once('/') {
        Some((folder, _)) => folder,
        None => ".",
    };
    root.open(folder)?.into_std().sync_all()
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn sync_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    sync(folder)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io;
    use std::path::Path;

    use super::{FileSwapList, LIST, STAGING, begin, commit, finish, recover, resume};
    use crate::error::EngineError;

    fn sign(message: &[u8]) -> Option<String> {
        Some(format!("{:x}", message.len()))
    }

    /// Resumes as the user who signed the list. Only names other than `kept` may be changed.
    fn resumed(dir: &Path) -> Result<bool, EngineError> {
        let is_ours = |message: &[u8], mark: Option<&str>| mark == sign(message).as_deref();
        let resumed = resume(dir, &is_ours, &|name| !name.contains("kept"))?;
        Ok(resumed.is_some())
    }

    fn setup(dir: &Path) -> FileSwapList {
        for (name, text) in [
            ("state/lock", ""),
            ("state/store/old", "old"),
            ("pages.jsonl", "old"),
            ("archive/a", "old"),
            ("index/segment", "old"),
            ("report.json", "old"),
            ("kept", "kept"),
        ] {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let staging = begin(dir).unwrap();
        for name in ["state/store/new", "pages.jsonl", "archive/b"] {
            let path = staging.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "new").unwrap();
        }
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        FileSwapList {
            replace: names(&["state/store", "pages.jsonl", "archive/b"]),
            remove: names(&["archive/a", "index", "report.json", "nothing"]),
        }
    }

    fn tree(dir: &Path) -> Vec<String> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => entries.extend(tree(&path)),
                false => entries.push(format!(
                    "{}: {}",
                    path.display(),
                    fs::read_to_string(&path).unwrap()
                )),
            }
        }
        entries.sort();
        entries
    }

    fn check(dir: &Path, expected: &[&str]) {
        let entries = tree(dir);
        let at = format!("{}/", dir.display());
        let entries: Vec<_> = entries.iter().map(|line| line.replace(&at, "")).collect();
        assert_eq!(entries, expected);
    }

    const NEW: [&str; 5] = [
        "archive/b: new",
        "kept: kept",
        "pages.jsonl: new",
        "state/lock: ",
        "state/store/new: new",
    ];

    #[test]
    fn a_crash_at_any_step_is_finished_by_the_next_start() {
        for deadly in 0.. {
            let dir = tempfile::tempdir().unwrap();
            let swap = setup(dir.path());
            commit(dir.path(), &swap, &sign).unwrap();
            let mut steps = 0;
            let died = finish(dir.path(), &swap, &mut || {
                steps += 1;
                match steps > deadly {
                    true => Err(io::Error::other("killed")),
                    false => Ok(()),
                }
            });
            assert_eq!(died.is_err(), dir.path().join(LIST).exists());
            assert_eq!(resumed(dir.path()).unwrap(), died.is_err());
            recover(dir.path()).unwrap();
            check(dir.path(), &NEW);
            if died.is_ok() {
                assert!(deadly > 8, "{deadly} steps");
                return;
            }
        }
    }

    #[test]
    fn an_uncommitted_replacement_is_undone() {
        let dir = tempfile::tempdir().unwrap();
        setup(dir.path());
        fs::write(dir.path().join("forget.json.new"), "{\"repl").unwrap();
        assert!(recover(dir.path()).unwrap());
        assert!(!recover(dir.path()).unwrap());
        let old = [
            "archive/a: old",
            "index/segment: old",
            "kept: kept",
            "pages.jsonl: old",
            "report.json: old",
            "state/lock: ",
            "state/store/old: old",
        ];
        check(dir.path(), &old);
    }

    #[test]
    fn a_list_is_refused_if_it_is_unsigned_or_names_another_file() {
        let dir = tempfile::tempdir().unwrap();
        setup(dir.path());
        let swap = |name: &str| FileSwapList {
            replace: Vec::new(),
            remove: vec![name.to_owned()],
        };
        commit(dir.path(), &swap("kept"), &sign).unwrap();
        let refused = resumed(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("`kept`"), "{refused}");
        for mark in [None, Some("forged".to_owned())] {
            commit(dir.path(), &swap("report.json"), &|_| mark.clone()).unwrap();
            assert!(resumed(dir.path()).is_err());
            let refused = recover(dir.path());
            assert!(matches!(refused, Err(EngineError::UnfinishedForget { .. })));
        }
        assert!(dir.path().join("report.json").exists());
        assert!(dir.path().join(STAGING).exists());
    }

    #[test]
    fn no_step_leads_outside_of_the_directory() {
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(outside.path().join("deep")).unwrap();
        for target in ["victim", "deep/victim"] {
            fs::write(outside.path().join(target), "precious").unwrap();
        }
        let dir = tempfile::tempdir().unwrap();
        setup(dir.path());
        std::os::unix::fs::symlink(outside.path(), dir.path().join("archive/link")).unwrap();
        for name in [
            "archive/link/victim",
            "archive/link/deep/victim",
            "archive/../../victim",
        ] {
            let staged = dir.path().join(STAGING).join(name);
            let _ = fs::create_dir_all(staged.parent().unwrap());
            let _ = fs::write(&staged, "forged");
            for (replace, remove) in [(vec![name], vec![]), (vec![], vec![name])] {
                let names = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
                let (replace, remove) = (names(replace), names(remove));
                let _ = finish(
                    dir.path(),
                    &FileSwapList { replace, remove },
                    &mut || Ok(()),
                );
            }
        }
        for target in ["victim", "deep/victim"] {
            let text = fs::read_to_string(outside.path().join(target)).unwrap();
            assert_eq!(text, "precious", "{target}");
        }
    }

    #[test]
    fn a_crawl_in_use_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let swap = setup(dir.path());
        commit(dir.path(), &swap, &sign).unwrap();
        let lock = fs::File::open(dir.path().join("state/lock")).unwrap();
        lock.lock().unwrap();
        assert!(resumed(dir.path()).is_err());
        assert!(dir.path().join("report.json").exists());
        drop(lock);
        assert!(resumed(dir.path()).unwrap());
        check(dir.path(), &NEW);
    }
}
