//! Checks a crawl's directory for entries that are unsafe to write to.
//!
//! A directory may come from an untrusted source. Writing to a link in it would write to the link's
//! target, opening a FIFO would block, and writing to a hard-linked file would also change it under
//! its other name. So before anything is written or truncated, each start checks every entry that
//! belongs to a crawl. Files opened later are opened without following links
//! ([`open_for_writing`](crate::open_for_writing)).

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use crate::archive_layout::{CAPTURES, FOLDER as ARCHIVE, INDEX};
use crate::error::ArchiveWriteError;
use crate::warc_compression::strip_warc_suffix;

/// The folder of new files of a `crawl forget`, until they replace the old ones.
pub const FORGET_STAGING: &str = "forget.new";
/// The list of files that a `crawl forget` replaces. While this file exists, the erasure is final
/// but not finished.
pub const FORGET_LIST: &str = "forget.json";
/// The temporary name of [`FORGET_LIST`] while it is written.
pub const FORGET_LIST_BESIDE: &str = "forget.json.new";

/// The folder of the crawl's state.
const STATE: &str = "state";
/// The folders of a crawl's directory, and the folder of tables in the payload of a bundle. All
/// other entries must be files.
const FOLDERS: [&str; 7] = [
    STATE,
    ARCHIVE,
    "index",
    "index.new",
    "index.old",
    "tables",
    FORGET_STAGING,
];
/// Maximum depth of nested folders. The folders of a store are only three deep.
const MAX_DEPTH: usize = 16;

/// The kind of the files at or below an entry of the directory. Determines which types of entry are
/// allowed, and whether a file may have several hard links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileKind {
    /// Row files: regular files with a single hard link, because they are written in place.
    Rows,
    /// The state: regular files with a single hard link, and the control socket of the crawl.
    State,
    /// Regular files that are only replaced, never changed, so they may have several hard links.
    Replaced,
    /// The archive: regular files. Other programs may keep files of their own next to the WARC
    /// files, but no links or folders, because a name such as `archive/x/y` must never lead out of
    /// the directory. A finished WARC file may have several hard links; an unfinished one is
    /// checked when it is opened for writing.
    Archive,
}

/// Checks the entries of a crawl's directory before anything is written there.
///
/// # Errors
/// [`ArchiveWriteError::Unsafe`] for an entry that is neither a regular file nor a real folder, or for a
/// file with a second name where that is not allowed.
pub fn check_entries(dir: &Path) -> Result<(), ArchiveWriteError> {
    for entry in fs::read_dir(dir).map_err(failed(dir))? {
        let entry = entry.map_err(failed(dir))?;
        let (name, path) = (entry.file_name(), entry.path());
        let Some(metadata) = look(&path)? else {
            continue;
        };
        let is_folder = FOLDERS.iter().any(|folder| name == *folder);
        let file_kind = match () {
            () if name == STATE => FileKind::State,
            () if name == ARCHIVE => FileKind::Archive,
            () if path.extension().is_some_and(|end| end == "jsonl") => FileKind::Rows,
            () => FileKind::Replaced,
        };
        match is_folder {
            true => check_folder(&path, &metadata, file_kind, MAX_DEPTH)?,
            false => check_file(&path, &metadata, file_kind)?,
        }
    }
    Ok(())
}

/// Returns the metadata of an entry. `None` if another process has removed the entry.
fn look(path: &Path) -> Result<Option<Metadata>, ArchiveWriteError> {
    match fs::symlink_metadata(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(None),
        metadata => metadata.map(Some).map_err(failed(path)),
    }
}

fn check_folder(
    path: &Path,
    metadata: &Metadata,
    file_kind: FileKind,
    depth: usize,
) -> Result<(), ArchiveWriteError> {
    if !metadata.is_dir() {
        return Err(refused(path, metadata, "where a folder should be"));
    }
    let depth = depth
        .checked_sub(1)
        .ok_or_else(|| ArchiveWriteError::Unsafe {
            path: path.to_owned(),
            what: format!("is more than {MAX_DEPTH} folders deep"),
        })?;
    for entry in fs::read_dir(path).map_err(failed(path))? {
        let entry = entry.map_err(failed(path))?;
        let path = entry.path();
        let Some(found) = look(&path)? else {
            continue;
        };
        match found.is_dir() && file_kind != FileKind::Archive {
            true => check_folder(&path, &found, file_kind, depth)?,
            false => check_file(&path, &found, file_kind)?,
        }
    }
    Ok(())
}

/// Returns whether `name` has the form of a file name that this program uses in the archive's
/// folder.
#[must_use]
pub fn is_of_archive(name: &str) -> bool {
    name == CAPTURES
        || name.starts_with(INDEX)
        || name.starts_with("crawl-") && strip_warc_suffix(name).is_some()
}

fn check_file(
    path: &Path,
    metadata: &Metadata,
    file_kind: FileKind,
) -> Result<(), ArchiveWriteError> {
    let kind = metadata.file_type();
    // A killed crawl leaves its control socket behind.
    let is_socket = kind.is_socket() && file_kind == FileKind::State;
    if !kind.is_file() && !is_socket {
        return Err(refused(path, metadata, "where a regular file should be"));
    }
    let in_place = match file_kind {
        FileKind::Rows | FileKind::State => true,
        FileKind::Replaced => false,
        FileKind::Archive => path.ends_with(CAPTURES),
    };
    match in_place && metadata.nlink() > 1 {
        true => Err(ArchiveWriteError::Unsafe {
            path: path.to_owned(),
            what: format!(
                "has {} names (hard links): writing to it would change all of them",
                metadata.nlink()
            ),
        }),
        false => Ok(()),
    }
}

fn refused(path: &Path, metadata: &Metadata, place: &str) -> ArchiveWriteError {
    let kind = metadata.file_type();
    let description = match () {
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
    ArchiveWriteError::Unsafe {
        path: path.to_owned(),
        what: format!("is {description}, {place}"),
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> ArchiveWriteError {
    move |source| ArchiveWriteError::io("look at", path, source)
}
