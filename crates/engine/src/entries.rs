//! What may stand in a crawl's directory: regular files and real folders, where we write.
//!
//! A directory may come from somebody else. A link in it would have us write to what it points
//! to, a FIFO would have us wait, and a file with a second name would change under that name too.
//! So each start looks at every entry of ours before anything is written or cut. What is opened
//! afterwards is opened without following links ([`crawl_archive::open_for_writing`]).

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _,
};
use std::path::Path;

use crawl_archive::{CAPTURES, FOLDER as ARCHIVE, INDEX as CAPTURE_INDEX};

use crate::error::EngineError;

/// The folder of the state.
pub(crate) const STATE: &str = "state";
/// Its mode: only the program reads it, and whatever the umask gives its files, nobody else may
/// write to them.
const STATE_MODE: u32 = 0o700;

/// Folders of a crawl's directory; what else it has of ours is files.
const FOLDERS: [&str; 5] = [STATE, ARCHIVE, "index", "index.new", "index.old"];
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
    /// Those with the names of an archive: others keep theirs beside it. A WARC file that is
    /// finished may have other names; one that is not is looked at when it is written to.
    Archive,
}

/// Looks at what stands in a crawl's directory.
///
/// # Errors
/// [`EngineError::Unsafe`] for what is no regular file or real folder, or has a second name.
pub(crate) fn check(dir: &Path) -> Result<(), EngineError> {
    for entry in fs::read_dir(dir).map_err(EngineError::disk(dir))? {
        let entry = entry.map_err(EngineError::disk(dir))?;
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

/// What stands there; nothing where another process that works here took it away just now.
fn look(path: &Path) -> Result<Option<Metadata>, EngineError> {
    match fs::symlink_metadata(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some).map_err(EngineError::disk(path)),
    }
}

/// Makes the folder of the state, or takes from others what they might do in it.
pub(crate) fn make_state(state: &Path) -> Result<(), EngineError> {
    let failed = |error| EngineError::disk(state)(error);
    if let Some(dir) = state.parent() {
        make_folder(dir).map_err(failed)?;
    }
    match fs::DirBuilder::new().mode(STATE_MODE).create(state) {
        Err(why) if why.kind() != ErrorKind::AlreadyExists => return Err(failed(why)),
        _ => {}
    }
    let mode = fs::symlink_metadata(state).map_err(failed)?.mode();
    if mode & 0o022 != 0 {
        fs::set_permissions(state, fs::Permissions::from_mode(mode & STATE_MODE))
            .map_err(failed)?;
    }
    Ok(())
}

/// Makes a folder, and those above it that are missing, and brings their names to the disk.
fn make_folder(path: &Path) -> io::Result<()> {
    let named = |folder: &&Path| !folder.as_os_str().is_empty();
    let missing = path.ancestors().filter(named);
    let missing: Vec<_> = missing.take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(path)?;
    for folder in missing {
        let above = folder.parent().filter(named).unwrap_or(Path::new("."));
        match fs::File::open(above).and_then(|above| above.sync_all()) {
            // Not ours to read, and whoever lets us write there knows why.
            Err(why) if why.kind() == ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}

fn check_folder(
    path: &Path,
    found: &Metadata,
    files: Files,
    depth: usize,
) -> Result<(), EngineError> {
    if !found.is_dir() {
        return Err(refused(path, found, "where a folder should be"));
    }
    let depth = depth.checked_sub(1).ok_or_else(|| EngineError::Unsafe {
        path: path.to_owned(),
        what: format!("lies more than {MAX_DEPTH} folders deep"),
    })?;
    for entry in fs::read_dir(path).map_err(EngineError::disk(path))? {
        let entry = entry.map_err(EngineError::disk(path))?;
        let path = entry.path();
        if files == Files::Archive && !is_of_archive(&entry.file_name().to_string_lossy()) {
            continue;
        }
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

/// The names that an archive gives its files.
fn is_of_archive(name: &str) -> bool {
    name == CAPTURES
        || name.starts_with(CAPTURE_INDEX)
        || name.starts_with("crawl-") && name.ends_with(".warc.gz")
}

fn check_file(path: &Path, found: &Metadata, files: Files) -> Result<(), EngineError> {
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
        true => Err(EngineError::Unsafe {
            path: path.to_owned(),
            what: format!(
                "has {} names (hard links): what is written to it would stand under each",
                found.nlink()
            ),
        }),
        false => Ok(()),
    }
}

fn refused(path: &Path, found: &Metadata, place: &str) -> EngineError {
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
    EngineError::Unsafe {
        path: path.to_owned(),
        what: format!("is {what}, {place}"),
    }
}

/// Makes a file in a place of its own and renames it: what is read is whole, and what stood
/// there, a link too, goes.
pub(crate) fn replace(path: &Path, beside: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    let mut file = crawl_archive::create_anew(beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(beside, path)?;
    // Without it a first start that was cut off would leave rows and no settings.
    match path.parent() {
        Some(folder) => fs::File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
