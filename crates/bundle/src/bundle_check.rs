//! Checks a bundle: first every byte against the manifests, then the files against each other.

use std::collections::BTreeSet;
use std::fs;
use std::io::BufReader;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use crawl_archive::{
    BoundedLineResult, FOLDER, LineReader, open_regular, read_text, strip_warc_suffix,
};
use crawl_tables::{TablesError, check_tables};
use serde_json::Value;

use crate::archive_check::check_warc;
use crate::bagit_manifests::{BAG, BagCheckResult, DATA, TAG_MANIFEST, check_bag};
use crate::cross_check::CrossCheck;
use crate::directory_check::verify_directory;
use crate::error::VerificationRunError;
use crate::export::{ROBOTS, TABLES};
use crate::ro_crate::RO_CRATE;
use crate::robots_rows::each_robots_row;
use crate::verification_result::VerificationResult;

/// Maximum length of a line of `robots.jsonl` in bytes. A line contains the text of a robots.txt,
/// and each byte of the text may take up six bytes in JSON.
const MAX_ROBOTS_LINE_BYTES: usize = 16 << 20;
/// Maximum bytes of an RO-Crate description. A file takes about 400.
/// Beyond the limit: reported as a defect unread.
const MAX_RO_CRATE_BYTES: u64 = 64 << 20;

/// Checks the bundle at `path`. If `path` is not a bundle, checks it as a crawl's directory.
/// Temporary files for sorting are written to the folder `scratch`.
///
/// # Errors
/// [`VerificationRunError`] if something could not be checked. Defects are reported in the
/// [`VerificationResult`].
pub fn verify(path: &Path, scratch: &Path) -> Result<VerificationResult, VerificationRunError> {
    let is_bundle = [BAG, TAG_MANIFEST]
        .iter()
        .any(|name| path.join(name).symlink_metadata().is_ok());
    match is_bundle {
        true => verify_bundle(path, scratch),
        false => verify_directory(path, scratch),
    }
}

fn verify_bundle(root: &Path, scratch: &Path) -> Result<VerificationResult, VerificationRunError> {
    let mut bag = VerificationResult::default();
    let files = check_bag(root, &mut bag)?;
    let data = root.join(DATA);
    if !bag.is_whole() {
        // Don't compare files with each other if some have changed. Only report which records are
        // damaged.
        name_records(&data, &files.changed, scratch, &mut bag)?;
        return Ok(bag);
    }
    // Check the tables on a second thread, in parallel with the directory.
    let (directory, tables) = thread::scope(|scope| {
        let tables = scope.spawn(|| check_tables(&data, &data.join(TABLES)));
        let directory = verify_directory(&data, scratch);
        let tables = tables.join().unwrap_or_else(|panic| resume_unwind(panic));
        (directory, tables)
    });
    let mut verification = directory?;
    verification.checked.files = bag.checked.files;
    verification.checked.bytes = bag.checked.bytes;
    // The manifests of a bundle cover every byte, so no part is unchecked.
    verification.unchecked.clear();
    let mut problems = Vec::new();
    if data.join(FOLDER).is_dir() {
        problems.extend(check_robots(&data)?);
    }
    match tables {
        Ok(defects) => {
            let defects = defects.into_iter();
            problems.extend(
                defects.map(|defect| (format!("{TABLES}/{}", defect.file), None, defect.what)),
            );
        }
        Err(TablesError::Records(error)) => return Err(error.into()),
        Err(error) => problems.push((TABLES.to_owned(), None, error.to_string())),
    }
    problems.extend(
        check_descriptions(&data, &files)?
            .into_iter()
            .map(|(file, what)| (file, None, what)),
    );
    for (file, line, what) in problems {
        match line {
            Some(line) => verification.line(&file, line, what),
            None => verification.file(&file, what),
        }
    }
    for finding in &mut verification.findings {
        finding.file.insert_str(0, &format!("{DATA}/"));
    }
    Ok(verification)
}

/// Reports the damaged records in those WARC files that have changed.
fn name_records(
    data: &Path,
    changed: &BTreeSet<String>,
    scratch: &Path,
    bag: &mut VerificationResult,
) -> Result<(), VerificationRunError> {
    for path in changed {
        let archived = path
            .strip_prefix(DATA)
            .and_then(|path| path.strip_prefix('/'));
        let name = archived.and_then(|path| path.strip_prefix(FOLDER)?.strip_prefix('/'));
        let Some(name) = name.filter(|name| strip_warc_suffix(name).is_some()) else {
            continue;
        };
        let mut of_file = VerificationResult::default();
        let mut unused = CrossCheck::new(data, scratch);
        check_warc(data, name, false, &mut unused, &mut of_file)?;
        // Skip findings without an offset. They concern a whole file, which is already reported as
        // changed.
        let findings = of_file.findings.into_iter();
        for mut finding in findings.filter(|finding| finding.offset.is_some()) {
            finding.file.insert_str(0, &format!("{DATA}/"));
            bag.add(finding);
        }
    }
    Ok(())
}

type RobotsDefect = (String, Option<u64>, String);

/// Compares `robots.jsonl` with the rows computed from the archive.
fn check_robots(data: &Path) -> Result<Vec<RobotsDefect>, VerificationRunError> {
    let path = data.join(ROBOTS);
    let mut problems: Vec<RobotsDefect> = Vec::new();
    let Ok(file) = open_regular(&path) else {
        problems.push((ROBOTS.to_owned(), None, "missing".to_owned()));
        return Ok(problems);
    };
    let mut lines = LineReader::new(BufReader::new(file), MAX_ROBOTS_LINE_BYTES);
    let mut number = 0;
    let message = "differs from the response in the archive";
    each_robots_row::<VerificationRunError>(data, |row| {
        number += 1;
        let mut expected = serde_json::to_vec(row).unwrap_or_default();
        expected.push(b'\n');
        match lines
            .next_line()
            .map_err(VerificationRunError::read(&path))?
        {
            Some(BoundedLineResult::Whole(line)) if line == expected => {}
            _ => problems.push((ROBOTS.to_owned(), Some(number), message.to_owned())),
        }
        Ok(())
    })?;
    if lines
        .next_line()
        .map_err(VerificationRunError::read(&path))?
        .is_some()
    {
        let message = "the archive has no further robots.txt response";
        problems.push((ROBOTS.to_owned(), Some(number + 1), message.to_owned()));
    }
    Ok(problems)
}

/// Checks that the RO-Crate description lists every file, with its size and digest.
fn check_descriptions(
    data: &Path,
    bag: &BagCheckResult,
) -> Result<Vec<(String, String)>, VerificationRunError> {
    let path = data.join(RO_CRATE);
    let text = match read_text(&path, MAX_RO_CRATE_BYTES) {
        Ok(text) => text,
        Err(error) => {
            return Ok(vec![(
                RO_CRATE.to_owned(),
                format!("can't be read: {error}"),
            )]);
        }
    };
    let description: Value = serde_json::from_str(&text).unwrap_or_default();
    let entities = description["@graph"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let files = entities.iter().filter(|entity| entity["@type"] == "File");
    let mut described_files = BTreeSet::from([RO_CRATE.to_owned()]);
    let mut problems = Vec::new();
    for file in files {
        let name = file["@id"].as_str().unwrap_or_default();
        let checked = bag.whole.get(&format!("{DATA}/{name}"));
        let is_right = checked.is_some_and(|(sha256, bytes)| {
            let bytes = bytes.to_string();
            file["sha256"] == sha256.as_str() && file["contentSize"] == bytes.as_str()
        });
        if !is_right {
            problems.push((
                RO_CRATE.to_owned(),
                format!("its description of `{name}` does not match the file"),
            ));
        }
        described_files.insert(name.to_owned());
    }
    let mut all = Vec::new();
    list_files(data, "", &mut all)?;
    for name in all
        .into_iter()
        .filter(|name| !described_files.contains(name))
    {
        problems.push((RO_CRATE.to_owned(), format!("does not describe `{name}`")));
    }
    Ok(problems)
}

fn list_files(
    root: &Path,
    folder: &str,
    all: &mut Vec<String>,
) -> Result<(), VerificationRunError> {
    let at = root.join(folder);
    for entry in fs::read_dir(&at).map_err(VerificationRunError::read(&at))? {
        let entry = entry.map_err(VerificationRunError::read(&at))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = match folder {
            "" => name,
            folder => format!("{folder}/{name}"),
        };
        match entry.path().is_dir() {
            true => list_files(root, &path, all)?,
            false => all.push(path),
        }
    }
    Ok(())
}
