//! Checks the files of a crawl directory against the digests that the last run recorded.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use crawl_archive::rows::FileDigestRow;
use crawl_archive::{DIGESTS, FileDigestList, digested_files, open_regular, sha256_of};

use crate::bagit_manifests::is_within;
use crate::error::{VerificationRunError, is_damage};
use crate::verification_result::VerificationResult;

/// Checks each file in the list of digests. Returns true if the list is complete. While a run is
/// active, and after a run was killed, the list is incomplete. If it is complete, also reports
/// files that it doesn't list.
pub(crate) fn check_digests(
    dir: &Path,
    verification: &mut VerificationResult,
) -> Result<bool, VerificationRunError> {
    let list = match FileDigestList::read(dir) {
        Err(error) if is_damage(&error) => {
            verification.file(DIGESTS, format!("can't be read: {error}"));
            return Ok(false);
        }
        list => list.map_err(VerificationRunError::read(&dir.join(DIGESTS)))?,
    };
    let Some(list) = list else {
        return Ok(false);
    };
    for (line, message) in &list.faults {
        verification.line(DIGESTS, *line, *message);
    }
    let mut unreadable = BTreeSet::new();
    for row in &list.rows {
        if !is_within(&row.file) {
            let message = format!("lists `{}`, which is not a file of the crawl", row.file);
            verification.file(DIGESTS, message);
            continue;
        }
        match file_difference(dir, row, list.is_whole) {
            Ok(None) => {}
            Ok(Some(message)) => verification.file(&row.file, message),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                unreadable.insert(row.file.as_str());
            }
            Err(error) if is_damage(&error) => {
                let message = format!("{DIGESTS} lists it, but it can't be read: {error}");
                verification.file(&row.file, message);
            }
            Err(error) => return Err(VerificationRunError::read(&dir.join(&row.file))(error)),
        }
        verification.checked.files += 1;
        verification.checked.bytes += row.bytes;
    }
    if let Some(first) = unreadable.first() {
        verification.notes.push(format!(
            "{} of the listed files can't be read by this user, such as {first}",
            unreadable.len()
        ));
    } else if list.is_whole {
        let there = digested_files(dir).map_err(VerificationRunError::read(dir))?;
        let listed: BTreeSet<&str> = list.rows.iter().map(|row| row.file.as_str()).collect();
        for file in there.iter().filter(|file| !listed.contains(file.as_str())) {
            verification.file(file, format!("{DIGESTS} does not list it"));
        }
    }
    Ok(list.is_whole)
}

/// Describes how a file differs from its row in the list; `None` if it matches. If the list is
/// incomplete (`is_whole` is false), only compares the beginning of the file, up to the listed
/// length.
fn file_difference(
    dir: &Path,
    row: &FileDigestRow,
    is_whole: bool,
) -> std::io::Result<Option<String>> {
    let file = open_regular(&dir.join(&row.file))?;
    let (sha256, bytes) = match is_whole {
        true => sha256_of(file)?,
        false => sha256_of(file.take(row.bytes))?,
    };
    Ok(match (sha256 == row.sha256, bytes == row.bytes) {
        (true, true) => None,
        (_, false) => Some(format!(
            "it has {bytes} bytes, but {DIGESTS} says {}",
            row.bytes
        )),
        (false, true) => Some(format!(
            "its SHA-256 is {sha256}, but {DIGESTS} says {}",
            row.sha256
        )),
    })
}
