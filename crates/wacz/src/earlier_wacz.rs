//! Reads WACZ files of earlier rounds, which contain payloads that a package of a later round
//! refers to.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use crawl_archive::open_regular;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use zip::ZipArchive;

use crate::error::WaczError;
use crate::zip_file_writer::labelled;

/// Maximum length of a `datapackage.json` in bytes.
/// Beyond the limit: refused.
const MAX_DATA_PACKAGE_BYTES: u64 = 64 * 1024 * 1024;

/// A WACZ file that contains earlier rounds of the crawl.
#[derive(Clone, Debug)]
pub(crate) struct EarlierWacz {
    rounds: Vec<u32>,
    required: WaczDependency,
    /// True if a revisit in the new package refers to this file.
    is_used: bool,
}

/// A WACZ file that is required to replay another one. The fields have the same names as in
/// Browsertrix.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WaczDependency {
    filename: String,
    hash: String,
    size: u64,
}

/// All given WACZ files of earlier rounds.
#[derive(Debug, Default)]
pub(crate) struct EarlierWaczFiles(Vec<EarlierWacz>);

/// The fields of a `datapackage.json` that this module reads.
#[derive(Deserialize)]
struct EarlierDataPackage {
    #[serde(default)]
    rounds: Vec<u32>,
}

impl EarlierWaczFiles {
    /// Reads from each file which rounds it contains, and computes its digest.
    pub(crate) fn read(paths: &[PathBuf]) -> Result<EarlierWaczFiles, WaczError> {
        let files: Result<_, _> = paths.iter().map(|path| EarlierWacz::read(path)).collect();
        Ok(EarlierWaczFiles(files?))
    }

    /// Returns the name of the file that contains a round, and marks the file as required for
    /// replay. `None` if no file contains the round.
    pub(crate) fn with(&mut self, round: u32) -> Option<&str> {
        let file = self
            .0
            .iter_mut()
            .find(|file| file.rounds.contains(&round))?;
        file.is_used = true;
        Some(&file.required.filename)
    }

    /// Returns the files that are required for replay, because revisits refer to them.
    pub(crate) fn required(&self) -> Vec<&WaczDependency> {
        let used = self.0.iter().filter(|file| file.is_used);
        used.map(|file| &file.required).collect()
    }
}

impl EarlierWacz {
    fn read(path: &Path) -> Result<EarlierWacz, WaczError> {
        let refused = |what: String| WaczError::NotEarlier {
            path: path.to_owned(),
            what,
        };
        let name = path.file_name().and_then(|name| name.to_str());
        let filename = name.ok_or_else(|| refused("its name is no text".to_owned()))?;
        let file = open_regular(path).map_err(|error| refused(error.to_string()))?;
        let rounds = rounds_of(&file).map_err(|error| refused(error.to_string()))?;
        if rounds.is_empty() {
            return Err(refused("it does not say which rounds it holds".to_owned()));
        }
        let (hash, size) = digest(path).map_err(WaczError::read(path))?;
        Ok(EarlierWacz {
            rounds,
            required: WaczDependency {
                filename: filename.to_owned(),
                hash,
                size,
            },
            is_used: false,
        })
    }
}

fn rounds_of(file: &File) -> io::Result<Vec<u32>> {
    let mut zip = ZipArchive::new(BufReader::new(file))?;
    let mut text = Vec::new();
    zip.by_name("datapackage.json")?
        .take(MAX_DATA_PACKAGE_BYTES)
        .read_to_end(&mut text)?;
    let package: EarlierDataPackage = serde_json::from_slice(&text)?;
    Ok(package.rounds)
}

fn digest(path: &Path) -> io::Result<(String, u64)> {
    let mut file = BufReader::with_capacity(1 << 16, open_regular(path)?);
    let mut hash = Context::new(&SHA256);
    let mut size = 0;
    loop {
        let read = file.fill_buf()?;
        if read.is_empty() {
            return Ok((labelled(hash), size));
        }
        hash.update(read);
        let read = read.len();
        size += read as u64;
        file.consume(read);
    }
}
