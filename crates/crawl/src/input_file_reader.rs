//! Reads input files up to a maximum size.

use std::io::{Error, ErrorKind, Read as _};
use std::path::Path;

use crate::error::CommandError;

/// Reads a file, or stdin for `-`, up to `max_bytes` bytes.
pub(crate) fn read_file(path: &Path, max_bytes: u64) -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin()
            .lock()
            .take(max_bytes)
            .read_to_end(&mut bytes),
        false => {
            std::fs::File::open(path).and_then(|file| file.take(max_bytes).read_to_end(&mut bytes))
        }
    };
    match read {
        Ok(_) => Ok(bytes),
        Err(why) => Err(unreadable(path, &why)),
    }
}

/// Returns the error for a file that the user named and that can't be read.
pub(crate) fn unreadable(path: &Path, why: &Error) -> CommandError {
    let problem = CommandError::usage(format!("can't read {}: {why}", path.display()));
    match why.kind() {
        ErrorKind::NotFound if path.is_relative() => {
            problem.hint("give an existing file; relative paths start at the current folder")
        }
        ErrorKind::NotFound => problem.hint("give an existing file"),
        ErrorKind::IsADirectory => problem.hint("that is a folder: give a file in it"),
        ErrorKind::PermissionDenied => problem.hint("give a file that you may read"),
        _ => problem,
    }
}
