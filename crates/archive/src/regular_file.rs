//! Opening the files of a crawl's directory: regular files alone, and no links.
//!
//! A directory may come from somebody else: a link there could lead anywhere, and a FIFO would be
//! waited for.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens a regular file for reading. It waits for nobody: opening a FIFO would wait for a writer.
/// A link is not followed: what is in a crawl's directory is meant, not what its author could
/// point to.
///
/// # Errors
/// Those of the file system; [`ErrorKind::InvalidInput`] for what is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = options().read(true).open(path).map_err(|error| {
        let is_link = path
            .symlink_metadata()
            .is_ok_and(|found| found.is_symlink());
        match is_link {
            true => io::Error::new(ErrorKind::InvalidInput, "a link, which is not followed"),
            false => error,
        }
    })?;
    regular(file)
}

/// Opens a regular file for writing, through no link.
///
/// # Errors
/// Those of the file system; [`ErrorKind::InvalidInput`] for what is no regular file.
pub fn open_for_writing(path: &Path) -> io::Result<File> {
    options().write(true).open(path).and_then(regular)
}

/// Makes a file in place of what stands there, be it a link.
///
/// # Errors
/// Those of the file system.
pub fn create_anew(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => options().write(true).create_new(true).open(path),
    }
}

/// Options that neither follow a link nor wait for a FIFO's other end.
pub(crate) fn options() -> OpenOptions {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let mut options = OpenOptions::new();
    options.custom_flags(flags.bits());
    options
}

/// The file, where it is a regular one.
pub(crate) fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "not a regular file",
        )),
    }
}
