//! Files of a crawl's directory that take the places of others, all of them or none.
//!
//! ```text
//! DIR/forget.new/       what is made, under the names that it will have
//! DIR/forget.json       once all of it is on the disk: what takes places, and what goes
//! ```
//!
//! A death before the list is there leaves a folder that the next start removes; one behind it, a
//! list that the next start goes through again. Each step of it may have been done already.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Component, Path, PathBuf};

use crawl_archive::{create_anew, read_text};
use serde::{Deserialize, Serialize};

use crate::error::EngineError;

/// The folder of what is made, the list, and the file that the list is written to before.
pub(crate) const STAGING: &str = "forget.new";
pub(crate) const LIST: &str = "forget.json";
pub(crate) const LIST_BESIDE: &str = "forget.json.new";

/// A longer list is none of ours. Bytes.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// The replacements of files and folders, and those that go; names as seen from the directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Swap {
    pub(crate) replace: Vec<String>,
    pub(crate) remove: Vec<String>,
}

/// Makes the folder anew in which files are made.
pub(crate) fn begin(dir: &Path) -> Result<PathBuf, EngineError> {
    let staging = dir.join(STAGING);
    remove(&staging).map_err(EngineError::disk(&staging))?;
    fs::create_dir(&staging).map_err(EngineError::disk(&staging))?;
    Ok(staging)
}

/// Makes it certain that the files take their places: those in the folder are on the disk already,
/// and their names are now.
pub(crate) fn commit(dir: &Path, swap: &Swap) -> Result<(), EngineError> {
    let list = dir.join(LIST);
    let failed = |why| EngineError::disk(&list)(why);
    sync_folders(&dir.join(STAGING)).map_err(failed)?;
    let bytes = serde_json::to_vec(swap).unwrap_or_default();
    let beside = dir.join(LIST_BESIDE);
    let write = || -> io::Result<()> {
        let mut file = create_anew(&beside)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&beside, &list)?;
        sync(dir)
    };
    write().map_err(failed)
}

/// Puts everything in its place. `step` is asked before each change, and ends it by an error as a
/// death would.
pub(crate) fn finish(
    dir: &Path,
    swap: &Swap,
    step: &mut dyn FnMut() -> io::Result<()>,
) -> Result<(), EngineError> {
    let staging = dir.join(STAGING);
    for (number, name) in swap.replace.iter().enumerate() {
        let (staged, place) = (staging.join(name), dir.join(name));
        let mut replace = || -> io::Result<()> {
            if !exists(&staged)? {
                return Ok(());
            }
            if place.is_dir() {
                // A folder with something in it can't be renamed over.
                let old = staging.join(format!("old-{number}"));
                remove(&old)?;
                step()?;
                fs::rename(&place, old)?;
            }
            step()?;
            fs::rename(&staged, &place)?;
            sync(place.parent().unwrap_or(dir))
        };
        replace().map_err(EngineError::disk(&place))?;
    }
    for name in &swap.remove {
        let place = dir.join(name);
        let mut gone = || {
            step()?;
            remove(&place)?;
            sync(place.parent().unwrap_or(dir))
        };
        gone().map_err(EngineError::disk(&place))?;
    }
    let mut end = || -> io::Result<()> {
        step()?;
        remove(&staging)?;
        sync(dir)?;
        step()?;
        remove(&dir.join(LIST))?;
        sync(dir)
    };
    end().map_err(EngineError::disk(&staging))
}

/// Finishes what a death cut short, or takes it back where nothing had been decided yet.
///
/// # Errors
/// [`EngineError::OutputInUse`] where another process is at it; a list that is none of ours; the
/// disk.
pub(crate) fn recover(dir: &Path) -> Result<(), EngineError> {
    let failed = |why| EngineError::disk(dir)(why);
    let (list, staging) = (dir.join(LIST), dir.join(STAGING));
    let beside = dir.join(LIST_BESIDE);
    let mut left = [&list, &staging, &beside].into_iter();
    if !left.any(|path| path.symlink_metadata().is_ok()) {
        return Ok(());
    }
    let lock = File::open(dir.join("state").join("lock")).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(EngineError::OutputInUse {
                dir: dir.to_path_buf(),
            });
        }
        Err(TryLockError::Error(why)) => return Err(failed(why)),
    }
    if exists(&list).map_err(failed)? {
        let swap = read(&list).map_err(EngineError::disk(&list))?;
        finish(dir, &swap, &mut || Ok(()))?;
    }
    remove(&staging).map_err(failed)?;
    remove(&beside).map_err(failed)
}

/// Reads a list. One that names what lies elsewhere is none of ours.
fn read(list: &Path) -> io::Result<Swap> {
    let text = read_text(list, MAX_LIST_BYTES)?;
    let swap: Swap = serde_json::from_str(&text)?;
    let is_within = |name: &String| {
        let mut parts = Path::new(name).components();
        !name.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
    };
    match swap.replace.iter().chain(&swap.remove).all(is_within) {
        true => Ok(swap),
        false => Err(ErrorKind::InvalidData.into()),
    }
}

fn exists(path: &Path) -> io::Result<bool> {
    match path.symlink_metadata() {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(false),
        found => found.map(|_| true),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    let gone = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(why) => Err(why),
    };
    match gone {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(()),
        gone => gone,
    }
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

    use super::{LIST, STAGING, Swap, begin, commit, finish, recover};

    fn setup(dir: &Path) -> Swap {
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
        Swap {
            replace: names(&["state/store", "pages.jsonl", "archive/b"]),
            remove: names(&["archive/a", "index", "report.json", "nothing"]),
        }
    }

    fn tree(dir: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => found.extend(tree(&path)),
                false => found.push(format!(
                    "{}: {}",
                    path.display(),
                    fs::read_to_string(&path).unwrap()
                )),
            }
        }
        found.sort();
        found
    }

    fn check(dir: &Path, expected: &[&str]) {
        let found = tree(dir);
        let at = format!("{}/", dir.display());
        let found: Vec<_> = found.iter().map(|line| line.replace(&at, "")).collect();
        assert_eq!(found, expected);
    }

    const NEW: [&str; 5] = [
        "archive/b: new",
        "kept: kept",
        "pages.jsonl: new",
        "state/lock: ",
        "state/store/new: new",
    ];

    #[test]
    fn ours_a_death_at_any_step_is_finished_by_the_next_start() {
        for deadly in 0.. {
            let dir = tempfile::tempdir().unwrap();
            let swap = setup(dir.path());
            commit(dir.path(), &swap).unwrap();
            let mut steps = 0;
            let died = finish(dir.path(), &swap, &mut || {
                steps += 1;
                match steps > deadly {
                    true => Err(io::Error::other("killed")),
                    false => Ok(()),
                }
            });
            assert_eq!(died.is_err(), dir.path().join(LIST).exists());
            recover(dir.path()).unwrap();
            check(dir.path(), &NEW);
            if died.is_ok() {
                assert!(deadly > 8, "{deadly} steps");
                return;
            }
        }
    }

    #[test]
    fn ours_what_was_not_decided_is_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        setup(dir.path());
        fs::write(dir.path().join("forget.json.new"), "{\"repl").unwrap();
        recover(dir.path()).unwrap();
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
    fn ours_a_list_that_names_what_lies_elsewhere_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        setup(dir.path());
        for name in ["../x", "/etc/x", "state/../../x", ""] {
            let swap = Swap {
                replace: Vec::new(),
                remove: vec![name.to_owned()],
            };
            commit(dir.path(), &swap).unwrap();
            assert!(recover(dir.path()).is_err(), "{name}");
            assert!(dir.path().join(STAGING).exists());
        }
    }

    #[test]
    fn ours_nobody_is_disturbed_at_it() {
        let dir = tempfile::tempdir().unwrap();
        let swap = setup(dir.path());
        commit(dir.path(), &swap).unwrap();
        let lock = fs::File::open(dir.path().join("state/lock")).unwrap();
        lock.lock().unwrap();
        assert!(recover(dir.path()).is_err());
        assert!(dir.path().join("report.json").exists());
        drop(lock);
        recover(dir.path()).unwrap();
        check(dir.path(), &NEW);
    }
}
