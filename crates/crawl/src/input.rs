//! Reading of size-limited input files.

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

fn unreadable(path: &Path, why: &Error) -> CommandError {
    let problem = CommandError::usage(format!("can't read {}: {why}", path.display()));
    match why.kind() {
        ErrorKind::NotFound if path.is_relative() => problem
            .hint("name a file that exists; a relative path begins where the command is given"),
        ErrorKind::NotFound => problem.hint("name a file that exists"),
        ErrorKind::IsADirectory => problem.hint("it is a folder: name a file in it"),
        ErrorKind::PermissionDenied => problem.hint("this user may not read it: name another"),
        _ => problem,
    }
}
