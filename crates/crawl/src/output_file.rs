//! Writes the files that a user names on the command line.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use crawl_archive::{AtomicFile, AtomicFileError, end_of_links};

use crate::error::{CommandError, unwritable};

/// Writes a file. An existing file is replaced only once the new one is complete, so a full disk
/// leaves the old one. If its folder doesn't allow that, writes into the existing file. Through a
/// symbolic link, creates or replaces the file that it leads to. Writes directly to anything else at
/// `path`, such as `/dev/stdout`.
pub(crate) fn write_file(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), CommandError> {
    let target = end_of_links(path);
    let written = match fs::metadata(&target) {
        Ok(found) if !found.is_file() => fs::write(path, bytes),
        Ok(found) => match replace(&target, bytes.as_ref(), Some(found.permissions())) {
            Err(why) if why.kind() == ErrorKind::PermissionDenied => fs::write(path, bytes),
            replaced => replaced,
        },
        Err(why) if why.kind() == ErrorKind::NotFound => replace(&target, bytes.as_ref(), None),
        Err(why) => Err(why),
    };
    written.map_err(|why| unwritable(path, &why))
}

/// Replaces a file, and keeps the permissions of the earlier file.
fn replace(path: &Path, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let of_file = |error| match error {
        AtomicFileError::Write { source, .. } => source,
        occupied => io::Error::other(occupied),
    };
    let mut file = AtomicFile::create(path).map_err(of_file)?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.finish().map_err(of_file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::Path;

    use super::write_file;

    #[test]
    fn a_file_is_replaced_or_stays_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let page = dir.path().join("page.html");
        write_file(&page, "old").unwrap();
        fs::set_permissions(&page, fs::Permissions::from_mode(0o600)).unwrap();
        let opened = fs::File::open(&page).unwrap();
        symlink("page.html", dir.path().join("link")).unwrap();
        write_file(&dir.path().join("link"), "new").unwrap();
        assert_eq!(fs::read_to_string(&page).unwrap(), "new");
        assert_eq!(
            fs::metadata(&page).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(
            fs::symlink_metadata(dir.path().join("link"))
                .unwrap()
                .is_symlink()
        );
        // The old file was not written to, so it would still be there if the disk had been full.
        assert_eq!(std::io::read_to_string(opened).unwrap(), "old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        // A link whose target doesn't exist yet.
        fs::create_dir(dir.path().join("reports")).unwrap();
        symlink("reports/latest", dir.path().join("second")).unwrap();
        symlink("today.html", dir.path().join("reports/latest")).unwrap();
        write_file(&dir.path().join("second"), "new").unwrap();
        let created = dir.path().join("reports/today.html");
        assert_eq!(fs::read_to_string(created).unwrap(), "new");
        symlink("loop", dir.path().join("loop")).unwrap();
        write_file(&dir.path().join("loop"), "new").unwrap_err();
        assert!(
            fs::symlink_metadata(dir.path().join("loop"))
                .unwrap()
                .is_symlink()
        );
        let refused = write_file(dir.path(), "new").unwrap_err();
        assert!(
            refused.message.contains("Is a directory"),
            "{}",
            refused.message
        );
        write_file(Path::new("/dev/null"), "new").unwrap();
    }
}
