//! Opens the files of a crawl's directory. Refuses anything but regular files, and follows no
//! links.
//!
//! A directory may come from an untrusted source. A link in the directory could lead anywhere, and
//! opening a FIFO would block.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens a regular file for reading. Refuses a FIFO, which would block, and a link, whose target
/// may be outside the crawl's directory.
///
/// # Errors
/// I/O errors; [`ErrorKind::InvalidInput`] if `path` is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = options().read(true).open(path).map_err(|error| {
        let is_link = path
            .symlink_metadata()
            .is_ok_and(|metadata| metadata.is_symlink());
        match is_link {
            true => io::Error::new(ErrorKind::InvalidInput, "a link, which is not followed"),
            false => error,
        }
    })?;
    regular(file)
}

/// Opens a regular file for writing, without following links.
///
/// # Errors
/// I/O errors; [`ErrorKind::InvalidInput`] if `path` is not a regular file.
pub fn open_for_writing(path: &Path) -> io::Result<File> {
    options().write(true).open(path).and_then(regular)
}

/// Creates a file, replacing an existing file or link.
///
/// # Errors
/// I/O errors.
pub fn replace_file(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => options().write(true).create_new(true).open(path),
    }
}

/// Returns options for opening a file without following a link or blocking at a FIFO.
pub(crate) fn options() -> OpenOptions {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let mut options = OpenOptions::new();
    options.custom_flags(flags.bits());
    options
}

/// Returns `file` if it is a regular file, and an error otherwise.
pub(crate) fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "not a regular file",
        )),
    }
}
