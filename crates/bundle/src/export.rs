//! Writes a crawl's directory as a bundle.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use crawl_archive::rows::FileDigestRow;
use crawl_archive::{
    CAPTURES, DIGESTS, FOLDER, FileDigestList, INDEX, MAX_CONFIG_BYTES, check_entries, read_text,
};
use crawl_records::{CrawlSettings, RoundSelection, waiting};
use crawl_tables::TableFormat;

use crate::archive_check::warc_names;
use crate::bagit_manifests::{BagInfo, DATA, write_manifests};
use crate::bundle_folder::BundleFolderWriter;
use crate::citation::{CITATION, citation_file, citation_line};
use crate::config_redaction::public_config;
use crate::crawl_summary::{CrawlSummary, named_files};
use crate::croissant::{CROISSANT, croissant};
use crate::directory_check::verify_directory;
use crate::error::{BundleError, VerificationRunError};
use crate::readme::{README, readme};
use crate::ro_crate::{CONTEXT, CONTEXT_DOCUMENT, RO_CRATE, ro_crate};
use crate::robots_rows::each_robots_row;

/// The file with the texts of all archived robots.txt files.
pub(crate) const ROBOTS: &str = "robots.jsonl";
/// The folder with the tables of the crawl.
pub(crate) const TABLES: &str = "tables";
const CONFIG: &str = "crawl.toml";
/// The files that the export writes itself, even if the crawl's directory has a file of that name.
const WRITTEN: [&str; 7] = [
    CITATION, CONFIG, CROISSANT, README, ROBOTS, CONTEXT, RO_CRATE,
];
/// Folders that are never reported as left out. The archive is in the bundle, and every bundle
/// omits the index and the state.
const FOLDERS: [&str; 3] = [FOLDER, "index", "state"];

/// The result of writing a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenBundle {
    /// The number of files in the payload.
    pub files: u64,
    /// The total size of the payload's files in bytes.
    pub bytes: u64,
    /// The SHA-256 of `tagmanifest-sha256.txt`, which covers the whole bundle.
    pub sha256: String,
    /// The names of files in the crawl's directory that are not in the bundle. `state`, `index`,
    /// `tables` and `digests.jsonl` are never bundled from there and not listed here.
    pub left_out: Vec<String>,
}

/// Writes the crawl in `dir` as a bundle into the empty folder `out`. The bundle contains the
/// archive, rows, tables and report unchanged, the configuration without secrets, the texts of all
/// robots.txt files, descriptions for people and programs, and the digest of every file.
///
/// The same crawl always yields the same bytes, because all times in the bundle are taken from the
/// crawl. `bundler` is the name and version of the program, such as `crawl 0.1.0`. Memory is
/// bounded as in [`verify_directory`].
///
/// # Errors
/// [`BundleError::NotEnded`] if the last run has not ended, [`BundleError::NoRequests`] if the
/// crawl sent no requests, [`BundleError::Damaged`] if the copied files are damaged, and I/O
/// errors.
pub fn write_bundle(dir: &Path, out: &Path, bundler: &str) -> Result<WrittenBundle, BundleError> {
    // Return an error if `dir` does not contain a crawl.
    CrawlSettings::read(dir).map_err(VerificationRunError::from)?;
    check_ended(dir)?;
    let facts = CrawlSummary::read(dir, bundler)?;
    check_entries(dir).map_err(|error| damaged(dir, error.to_string()))?;
    let mut payload = BundleFolderWriter::create(out.join(DATA))?;
    let path = dir.join(CONFIG);
    let config = read_text(&path, MAX_CONFIG_BYTES).map_err(BundleError::read(&path))?;
    payload.write(CONFIG, &public_config(&config)?)?;
    for name in copied_files() {
        let path = dir.join(name);
        if path.symlink_metadata().is_ok() {
            payload.copy(&path, name)?;
        }
    }
    for name in archive_files(dir)? {
        let path = format!("{FOLDER}/{name}");
        payload.copy(&dir.join(&path), &path)?;
    }
    if dir.join(FOLDER).is_dir() {
        payload.write_with(ROBOTS, |rows| {
            each_robots_row(dir, |row| {
                let mut line = serde_json::to_vec(row).unwrap_or_default();
                line.push(b'\n');
                rows.write_all(&line).map_err(BundleError::Stream)
            })
        })?;
    }
    let tables = payload.folder().join(TABLES);
    fs::create_dir_all(&tables).map_err(BundleError::write(&tables))?;
    for table in crawl_tables::export(dir, &tables, TableFormat::Parquet, RoundSelection::All)? {
        payload.list(&format!("{TABLES}/{}.parquet", table.name))?;
    }
    check_listed(dir, &payload)?;
    describe(&facts, &mut payload)?;
    check_copied(dir, out, &payload)?;
    let info = BagInfo {
        fields: bag_fields(&facts),
    };
    let sha256 = write_manifests(out, &payload, &info)?;
    let files = payload.files();
    Ok(WrittenBundle {
        files: files.len() as u64,
        bytes: files.iter().map(|file| file.bytes).sum(),
        sha256,
        left_out: left_out(dir, &payload)?,
    })
}

/// Returns an error if the crawl is running or was killed. Then its rows, records and report may
/// not match.
fn check_ended(dir: &Path) -> Result<(), BundleError> {
    let rows = waiting(dir).map_err(VerificationRunError::from)?;
    match rows.flatten().any(|row| row.origin.is_none()) {
        true => Ok(()),
        false => Err(BundleError::NotEnded {
            dir: dir.to_owned(),
        }),
    }
}

/// Checks the copied files against the digests that the last run recorded.
fn check_listed(dir: &Path, payload: &BundleFolderWriter) -> Result<(), BundleError> {
    let list = FileDigestList::read(dir).map_err(BundleError::read(&dir.join(DIGESTS)))?;
    let listed = list.filter(|list| list.is_whole).unwrap_or_default().rows;
    let files = payload.files();
    let differs = |row: &&FileDigestRow| {
        let copied = files.iter().find(|file| file.path == row.file);
        // Skip the configuration: secrets are removed from its copy, so the digest differs.
        row.file != CONFIG && copied.is_some_and(|file| file.sha256 != row.sha256)
    };
    match listed.iter().find(differs) {
        None => Ok(()),
        Some(row) => {
            let message = format!("{}: its SHA-256 differs from {DIGESTS}", row.file);
            Err(damaged(dir, message))
        }
    }
}

/// Verifies the copied files, and checks that no new run has started in the meantime.
fn check_copied(dir: &Path, out: &Path, payload: &BundleFolderWriter) -> Result<(), BundleError> {
    let copied = verify_directory(payload.folder(), out)?;
    if let Some(first) = copied.findings.first() {
        return Err(damaged(dir, first.to_string()));
    }
    check_ended(dir)
}

fn damaged(dir: &Path, first: String) -> BundleError {
    let dir = dir.to_owned();
    BundleError::Damaged { dir, first }
}

/// Returns the sorted names of entries in the crawl's directory that are not in the payload.
fn left_out(dir: &Path, payload: &BundleFolderWriter) -> Result<Vec<String>, BundleError> {
    let files = payload.files();
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(dir).map_err(BundleError::read(dir))? {
        let entry = entry.map_err(BundleError::read(dir))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_known_entry = FOLDERS.contains(&name.as_str()) || name == TABLES || name == DIGESTS;
        if !is_known_entry && !files.iter().any(|file| file.path == name) {
            names.push(name);
        }
    }
    let archive = dir.join(FOLDER);
    if archive.is_dir() {
        for entry in fs::read_dir(&archive).map_err(BundleError::read(&archive))? {
            let entry = entry.map_err(BundleError::read(&archive))?;
            let name = format!("{FOLDER}/{}", entry.file_name().to_string_lossy());
            if !files.iter().any(|file| file.path == name) {
                names.push(name);
            }
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Returns the names of the files to copy from a crawl's directory, without the archive. Other
/// files in the directory are not copied, because they may be the user's own.
fn copied_files() -> impl Iterator<Item = &'static str> {
    let is_archived = |name: &str| Path::new(name).starts_with(FOLDER);
    named_files().filter(move |name| !WRITTEN.contains(name) && !is_archived(name))
}

fn archive_files(dir: &Path) -> Result<Vec<String>, BundleError> {
    let mut names = warc_names(dir)?;
    for list in [CAPTURES, INDEX] {
        match dir.join(FOLDER).join(list).symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            _ => names.push(list.to_owned()),
        }
    }
    Ok(names)
}

/// Writes the files that describe the bundle, in order: each describes all files written before it.
fn describe(facts: &CrawlSummary, payload: &mut BundleFolderWriter) -> Result<(), BundleError> {
    let cite_as = citation_line(facts);
    payload.write(CROISSANT, &croissant(facts, &payload.files(), &cite_as))?;
    if let Some(citation) = citation_file(facts) {
        payload.write(CITATION, &citation)?;
    }
    payload.write(CONTEXT, CONTEXT_DOCUMENT)?;
    payload.write(README, &readme(facts, &payload.files()))?;
    payload.write(RO_CRATE, &ro_crate(facts, &payload.files()))
}

fn bag_fields(facts: &CrawlSummary) -> Vec<(&'static str, String)> {
    let operator = &facts.report.crawl.operator;
    let fields = [
        ("Source-Organization", operator.institution.clone()),
        ("Contact-Name", operator.name.clone()),
        (
            "Contact-Email",
            operator
                .contact
                .clone()
                .filter(|contact| !contact.contains("://")),
        ),
        (
            "External-Description",
            Some(format!("{}. {}", facts.title(), facts.summary())),
        ),
        ("Bag-Software-Agent", Some(facts.bundler.clone())),
    ];
    fields
        .into_iter()
        .filter_map(|(label, value)| Some((label, value?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::copied_files;

    #[test]
    fn rows_reports_and_rules_are_copied_and_descriptions_are_not() {
        let copied: Vec<_> = copied_files().collect();
        for name in [
            "extract-rules.json",
            "pages.jsonl",
            "report.html",
            "state/order.jsonl",
        ] {
            assert!(copied.contains(&name), "{name}");
        }
        for name in [
            "README.md",
            "archive/index.cdxj",
            "crawl.toml",
            "robots.jsonl",
        ] {
            assert!(!copied.contains(&name), "{name}");
        }
    }
}
