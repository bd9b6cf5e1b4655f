//! The value of `--keys`, `URL=FILE`, and the public keys in such files.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

use crawl_identity::{KeyDirectory, check_directory};

use crate::error::CommandError;
use crate::input_file_reader::unreadable;

/// The value of `--keys`: the URL where a crawler publishes its keys, and a file with what this URL
/// returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublishedKeysArgument {
    /// The URL that publishes the keys.
    url: String,
    /// A file with the published keys.
    file: PathBuf,
}

impl FromStr for PublishedKeysArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<PublishedKeysArgument, String> {
        let example = "`https://bot.example/keys.json=keys.json`";
        match text.split_once('=') {
            Some((url, file)) if url.starts_with("https://") && !file.is_empty() => {
                Ok(PublishedKeysArgument {
                    url: url.to_owned(),
                    file: file.into(),
                })
            }
            _ => Err(format!("not URL=FILE with an https URL, such as {example}")),
        }
    }
}

/// Reads the published keys in these files.
///
/// # Errors
/// A file can't be read, or has no key.
pub(crate) fn published_keys(
    files: &[PublishedKeysArgument],
) -> Result<Vec<KeyDirectory>, CommandError> {
    let directories = files.iter().map(|PublishedKeysArgument { url, file }| {
        let text = fs::read_to_string(file).map_err(|why| unreadable(file, &why))?;
        let (keys, faults) = check_directory(&text);
        if keys.is_empty() {
            let why = faults.first().map(ToString::to_string).unwrap_or_default();
            let message = format!("can't use the keys in `{}`: {why}", file.display());
            return Err(CommandError::usage(message).hint(format!(
                "fetch them again: `curl -o {} {url}`",
                file.display()
            )));
        }
        Ok(KeyDirectory::new(url, keys))
    });
    directories.collect()
}
