//! Certificates that are trusted in addition to the platform's: the files of `--ca-file`.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use crawl_fetcher::check_roots;

use crate::error::{CommandError, ErrorCollector};
use crate::values::FilePath;

/// Maximum size of a CA file in bytes. The root certificates of a browser take 250 KiB in total, so
/// a much larger file is not a list of certificates.
const MAX_CA_FILE_BYTES: u64 = 4 << 20;

/// Reads the files of `--ca-file` and returns all certificates as one PEM text. `None` if no file
/// is given.
///
/// # Errors
/// All problems found.
pub(crate) fn check_ca_files(files: &[FilePath]) -> Result<Option<Vec<u8>>, CommandError> {
    let mut problems = ErrorCollector::default();
    let mut all = Vec::new();
    for FilePath(file) in files {
        let read = certificates(file).map_err(|why| {
            CommandError::usage(format!("unusable --ca-file `{}`: {why}", file.display()))
                .hint(
                    "give a PEM file with certificates between `BEGIN CERTIFICATE` and `END \
                       CERTIFICATE`",
                )
                .about("ca-file")
        });
        all.extend(problems.note(read).unwrap_or_default());
        all.push(b'\n');
    }
    problems.or((!files.is_empty()).then_some(all))
}

fn certificates(file: &Path) -> Result<Vec<u8>, String> {
    let text = |why: io::Error| why.to_string();
    if !fs::metadata(file).map_err(text)?.is_file() {
        return Err("it isn't a regular file".to_owned());
    }
    let mut pem = Vec::new();
    let opened = File::open(file).map_err(text)?;
    let read = opened.take(MAX_CA_FILE_BYTES + 1).read_to_end(&mut pem);
    read.map_err(text)?;
    if pem.len() as u64 > MAX_CA_FILE_BYTES {
        return Err(format!("it is larger than {MAX_CA_FILE_BYTES} bytes"));
    }
    check_roots(&pem).map_err(|why| why.to_string())?;
    Ok(pem)
}
