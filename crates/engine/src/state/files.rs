//! Writes files and creates folders that survive a crash: they are either complete on disk or
//! absent.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use crawl_archive::replace_file;

/// Writes a temporary file and renames it to `path`, so that readers never see incomplete contents.
/// Replaces anything at `path`, even a link.
pub(super) fn replace(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = replace_file(temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(temporary, path)?;
    // Sync the folder too. Otherwise, after a power cut in the first start, there might be rows but
    // no settings.
    match path.parent() {
        Some(folder) => fs::File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// Creates a folder and its missing ancestors, and syncs the entries of the new folders.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    let named = |folder: &&Path| !folder.as_os_str().is_empty();
    let missing = path.ancestors().filter(named);
    let missing: Vec<_> = missing.take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(path)?;
    for folder in missing {
        let above = folder.parent().filter(named).unwrap_or(Path::new("."));
        match fs::File::open(above).and_then(|above| above.sync_all()) {
            // A process that may write to the parent but not read it can't sync it.
            Err(why) if why.kind() == ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}
