//! Certificates that are trusted besides the platform's: the files of `--ca-file`.

use std::fs::{self, File};
use std::io::Read as _;

use crawl_fetcher::check_roots;

use crate::error::CommandError;
use crate::values::FilePath;

/// A file with more is none of certificates; all roots of a browser have 250 KiB.
const MAX_CA_FILE_BYTES: u64 = 4 << 20;

/// Reads the files of `--ca-file`; all their certificates as one PEM text.
pub(super) fn check_ca_files(files: &[FilePath]) -> Result<Option<Vec<u8>>, CommandError> {
    let mut all = Vec::new();
    for FilePath(file) in files {
        let refuse = |why: String| {
            CommandError::usage(format!("unusable --ca-file `{}`: {why}", file.display()))
                .hint("give a PEM file, with certificates between `BEGIN CERTIFICATE` and `END CERTIFICATE`")
        };
        let about = fs::metadata(file).map_err(|why| refuse(why.to_string()))?;
        if !about.is_file() {
            return Err(refuse("it is no regular file".to_owned()));
        }
        let opened = File::open(file).map_err(|why| refuse(why.to_string()))?;
        let mut pem = Vec::new();
        let read = opened.take(MAX_CA_FILE_BYTES + 1).read_to_end(&mut pem);
        read.map_err(|why| refuse(why.to_string()))?;
        if pem.len() as u64 > MAX_CA_FILE_BYTES {
            return Err(refuse(format!(
                "it has more than {MAX_CA_FILE_BYTES} bytes"
            )));
        }
        check_roots(&pem).map_err(|why| refuse(why.to_string()))?;
        all.extend_from_slice(&pem);
        all.push(b'\n');
    }
    Ok((!all.is_empty()).then_some(all))
}
