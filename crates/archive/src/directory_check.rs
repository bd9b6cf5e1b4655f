//! Check of a crawl's directory: it may hold regular files and real folders, where we write.
//!
//! A directory may come from somebody else. A link in it would have us write to what it points
//! to, a FIFO would have us wait, and a file with a second name would change under that name too.
//! So each start looks at every entry of ours before anything is written or cut. What is opened
//! afterwards is opened without following links ([`open_for_writing`](crate::open_for_writing)).

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use crate::error::ArchiveError;
use crate::names::{CAPTURES, FOLDER as ARCHIVE, INDEX};

/// The folder of the state.
const STATE: &str = "state";
/// Folders of a crawl's directory, and that of the tables where it is the payload of a bundle; what
/// else it has of ours is files.
const FOLDERS: [&str; 7] = [
    STATE,
    ARCHIVE,
    "index",
    "index.new",
    "index.old",
    "tables",
    "forget.new",
];
/// Folders within folders at most: a store has three.
const MAX_DEPTH: usize = 16;

/// Which files of a folder are looked at, and whether they may have other names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    /// All; none may have a second name, as they are written where they stand.
    Rows,
    /// The same, and the socket by which a crawl is steered.
    State,
    /// All; they are written once, and replaced.
    Replaced,
    /// All; other programs may keep files beside the WARC files, but neither links nor folders: a name
    /// such as `archive/x/y` must never lead out of the directory. A finished WARC file may have further
    /// hard links; an unfinished one is checked when it is opened for writing.
    Archive,
}

/// Looks at what stands in a crawl's directory, before anything is written there.
///
/// # Errors
/// [`ArchiveError::Unsafe`] for what is no regular file or real folder, or has a second name.
pub fn check_entries(dir: &Path) -> Result<(), ArchiveError> {
    for entry in fs::read_dir(dir).map_err(failed(dir))? {
        let entry = entry.map_err(failed(dir))?;
        let (name, path) = (entry.file_name(), entry.path());
        let Some(found) = look(&path)? else {
            continue;
        };
        let is_folder = FOLDERS.iter().any(|folder| name == *folder);
        let files = match () {
            () if name == STATE => Files::State,
            () if name == ARCHIVE => Files::Archive,
            () if path.extension().is_some_and(|end| end == "jsonl") => Files::Rows,
            () => Files::Replaced,
        };
        match is_folder {
            true => check_folder(&path, &found, files, MAX_DEPTH)?,
            false => check_file(&path, &found, files)?,
        }
    }
    Ok(())
}

/// The metadata of an entry; nothing where another process that works here took it away just now.
fn look(path: &Path) -> Result<Option<Metadata>, ArchiveError> {
    match fs::symlink_metadata(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some).map_err(failed(path)),
    }
}

fn check_folder(
    path: &Path,
    found: &Metadata,
    files: Files,
    depth: usize,
) -> Result<(), ArchiveError> {
    if !found.is_dir() {
        return Err(refused(path, found, "where a folder should be"));
    }
    let depth = depth.checked_sub(1).ok_or_else(|| ArchiveError::Unsafe {
        path: path.to_owned(),
        what: format!("lies more than {MAX_DEPTH} folders deep"),
    })?;
    for entry in fs::read_dir(path).map_err(failed(path))? {
        let entry = entry.map_err(failed(path))?;
        let path = entry.path();
        let Some(found) = look(&path)? else {
            continue;
        };
        match found.is_dir() && files != Files::Archive {
            true => check_folder(&path, &found, files, depth)?,
            false => check_file(&path, &found, files)?,
        }
    }
    Ok(())
}

/// Returns whether an archive gives its files such names.
#[must_use]
pub fn is_of_archive(name: &str) -> bool {
    name == CAPTURES
        || name.starts_with(INDEX)
        || name.starts_with("crawl-") && name.ends_with(".warc.gz")
}

fn check_file(path: &Path, found: &Metadata, files: Files) -> Result<(), ArchiveError> {
    let kind = found.file_type();
    // A run that was killed leaves its socket.
    let is_socket = kind.is_socket() && files == Files::State;
    if !kind.is_file() && !is_socket {
        return Err(refused(path, found, "where a regular file should be"));
    }
    let in_place = match files {
        Files::Rows | Files::State => true,
        Files::Replaced => false,
        Files::Archive => path.ends_with(CAPTURES),
    };
    match in_place && found.nlink() > 1 {
        true => Err(ArchiveError::Unsafe {
            path: path.to_owned(),
            what: format!(
                "has {} names (hard links): what is written to it would stand under each",
                found.nlink()
            ),
        }),
        false => Ok(()),
    }
}

fn refused(path: &Path, found: &Metadata, place: &str) -> ArchiveError {
    let kind = found.file_type();
    let what = match () {
        () if kind.is_symlink() => match fs::read_link(path) {
            Ok(target) => format!("a link to `{}`", target.display()),
            Err(_) => "a link".to_owned(),
        },
        () if kind.is_dir() => "a folder".to_owned(),
        () if kind.is_file() => "a file".to_owned(),
        () if kind.is_fifo() => "a FIFO".to_owned(),
        () if kind.is_socket() => "a socket".to_owned(),
        () => "a device".to_owned(),
    };
    ArchiveError::Unsafe {
        path: path.to_owned(),
        what: format!("is {what}, {place}"),
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> ArchiveError {
    move |source| ArchiveError::io("look at", path, source)
}
