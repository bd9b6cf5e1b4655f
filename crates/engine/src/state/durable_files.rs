//! Writes files and creates folders that survive a crash: they are either complete on disk or
//! absent.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use crawl_archive::replace_file;

/// Writes a temporary file and renames it to `path`, so that readers never see incomplete contents.
/// Replaces anything at `path`, even a link.
pub(super) fn replace(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    write_temporary(temporary, bytes)?;
    put_in_place(temporary, path)
}

/// Writes a temporary file, which [`put_in_place`] renames.
pub(super) fn write_temporary(temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = replace_file(temporary)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Renames a complete file to another name in its folder.
pub(super) fn put_in_place(temporary: &Path, path: &Path) -> io::Result<()> {
    fs::rename(temporary, path)?;
    // Sync the folder too. Otherwise, after a power cut during the first start, the directory
    // might contain rows but no settings.
    match path.parent() {
        Some(folder) => fs::File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// Creates a folder and its missing ancestors, and syncs the entries of the new folders. Returns
/// the folders that it created, the outermost first. A folder that another process creates at the
/// same time is not included.
pub(super) fn make_folder(path: &Path) -> io::Result<Vec<PathBuf>> {
    let named = |folder: &&Path| !folder.as_os_str().is_empty();
    let missing = path.ancestors().filter(named);
    let missing: Vec<_> = missing.take_while(|folder| !folder.exists()).collect();
    let mut created = Vec::new();
    for folder in missing.iter().rev() {
        match fs::create_dir(folder) {
            Ok(()) => created.push(folder.to_path_buf()),
            Err(why) if why.kind() == ErrorKind::AlreadyExists => {}
            Err(why) => return Err(why),
        }
    }
    // This call fails if something other than a folder exists at `path`.
    fs::create_dir_all(path)?;
    for folder in missing {
        let above = folder.parent().filter(named).unwrap_or(Path::new("."));
        match fs::File::open(above).and_then(|above| above.sync_all()) {
            // A process that may write to a folder but not read it can't sync the folder.
            Err(why) if why.kind() == ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(created)
}
