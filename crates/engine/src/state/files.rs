//! Files and folders that are whole on the disk, or not there.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use crawl_archive::create_anew;

/// Makes a file in a place of its own and renames it: what is read is whole, and what stood
/// there, a link too, goes.
pub(super) fn replace(path: &Path, beside: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = create_anew(beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(beside, path)?;
    // Without it a first start that was cut off would leave rows and no settings.
    match path.parent() {
        Some(folder) => fs::File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// Makes a folder, and those above it that are missing, and brings their names to the disk.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
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
