//! From a crawl's directory to a bundle.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use crawl_archive::rows::DigestRow;
use crawl_archive::{
    CAPTURES, DIGESTS, DigestList, FOLDER, INDEX, MAX_CONFIG_BYTES, check_entries, read_text,
};
use crawl_records::{CrawlSettings, Rounds, waiting};
use crawl_tables::Format;

use crate::archive_check::warc_names;
use crate::bag::{BagInfo, DATA, write_manifests};
use crate::citation::{CITATION, citation_file, citation_line};
use crate::croissant::{CROISSANT, croissant};
use crate::directory::verify_directory;
use crate::error::{BundleError, VerifyError};
use crate::facts::{CrawlFacts, row_files_and_reports};
use crate::payload::Payload;
use crate::public_config::public_config;
use crate::readme::{README, readme};
use crate::ro_crate::{RO_CRATE, ro_crate};
use crate::robots_copies::each_robots_copy;

/// The rows of the archived robots.txt files.
pub(crate) const ROBOTS: &str = "robots.jsonl";
/// The folder of the tables.
pub(crate) const TABLES: &str = "tables";
const CONFIG: &str = "crawl.toml";
/// Folders of the directory whose files a bundle has or leaves out by the rule.
const FOLDERS: [&str; 3] = [FOLDER, "index", "state"];

/// A bundle that was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenBundle {
    /// Files of the payload.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The SHA-256 of `tagmanifest-sha256.txt`, which stands for all of it.
    pub sha256: String,
    /// The entries of the directory that are no part of a bundle, but for `state`, `index` and
    /// `digests.jsonl`.
    pub left_out: Vec<String>,
}

/// Writes the crawl in `dir` as a bundle into the empty folder `out`: its archive, rows, tables,
/// configuration and report as they are, the texts of all robots.txt files, descriptions for
/// people and programs, and digests of everything. Nothing secret of the configuration is in it.
/// The same crawl gives the same bytes: all times are those of the crawl. `bundler` is the program
/// and its version: `crawl 0.1.0`. Memory is bounded as for [`verify_directory`].
///
/// # Errors
/// [`BundleError::NotEnded`] where the last run has not ended, [`BundleError::NoRequests`],
/// [`BundleError::Damaged`] where what was copied is not whole, and errors of the file system.
pub fn write_bundle(dir: &Path, out: &Path, bundler: &str) -> Result<WrittenBundle, BundleError> {
    // Says so where no crawl lies there.
    CrawlSettings::read(dir).map_err(VerifyError::from)?;
    check_ended(dir)?;
    let facts = CrawlFacts::read(dir, bundler)?;
    check_entries(dir).map_err(|why| damaged(dir, why.to_string()))?;
    let mut payload = Payload::create(out.join(DATA))?;
    let path = dir.join(CONFIG);
    let config = read_text(&path, MAX_CONFIG_BYTES).map_err(BundleError::read(&path))?;
    payload.write(CONFIG, &public_config(&config)?)?;
    for name in row_files_and_reports().filter(|name| *name != ROBOTS) {
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
            each_robots_copy(dir, |copy| {
                let mut row = serde_json::to_vec(copy).unwrap_or_default();
                row.push(b'\n');
                rows.write_all(&row).map_err(BundleError::Stream)
            })
        })?;
    }
    let tables = payload.folder().join(TABLES);
    fs::create_dir_all(&tables).map_err(BundleError::write(&tables))?;
    for table in crawl_tables::export(dir, &tables, Format::Parquet, Rounds::All)? {
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

/// Refuses a crawl that runs or was killed: its rows, records and report don't fit each other yet.
fn check_ended(dir: &Path) -> Result<(), BundleError> {
    let rows = waiting(dir).map_err(VerifyError::from)?;
    match rows.flatten().any(|row| row.origin.is_none()) {
        true => Ok(()),
        false => Err(BundleError::NotEnded {
            dir: dir.to_owned(),
        }),
    }
}

/// Holds what was copied against the digests that the last run left.
fn check_listed(dir: &Path, payload: &Payload) -> Result<(), BundleError> {
    let list = DigestList::read(dir).map_err(BundleError::read(&dir.join(DIGESTS)))?;
    let listed = list.filter(|list| list.is_whole).unwrap_or_default().rows;
    let files = payload.files();
    let differs = |row: &&DigestRow| {
        let copied = files.iter().find(|file| file.path == row.file);
        // That one is written anew, without what is secret.
        row.file != CONFIG && copied.is_some_and(|file| file.sha256 != row.sha256)
    };
    match listed.iter().find(differs) {
        None => Ok(()),
        Some(row) => {
            let what = format!("{}: its SHA-256 is not that of {DIGESTS}", row.file);
            Err(damaged(dir, what))
        }
    }
}

/// Holds what was copied against itself, and looks that the crawl did not go on meanwhile.
fn check_copied(dir: &Path, out: &Path, payload: &Payload) -> Result<(), BundleError> {
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

/// The names in the directory that the payload does not have, sorted.
fn left_out(dir: &Path, payload: &Payload) -> Result<Vec<String>, BundleError> {
    let files = payload.files();
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(dir).map_err(BundleError::read(dir))? {
        let entry = entry.map_err(BundleError::read(dir))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_told = FOLDERS.contains(&name.as_str()) || name == TABLES || name == DIGESTS;
        if !is_told && !files.iter().any(|file| file.path == name) {
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

fn archive_files(dir: &Path) -> Result<Vec<String>, BundleError> {
    let mut names = warc_names(dir)?;
    for list in [CAPTURES, INDEX] {
        match dir.join(FOLDER).join(list).symlink_metadata() {
            Err(why) if why.kind() == ErrorKind::NotFound => {}
            _ => names.push(list.to_owned()),
        }
    }
    Ok(names)
}

/// Writes what tells people and programs of the files: each description knows those before it.
fn describe(facts: &CrawlFacts, payload: &mut Payload) -> Result<(), BundleError> {
    let cite_as = citation_line(facts);
    payload.write(CROISSANT, &croissant(facts, &payload.files(), &cite_as))?;
    if let Some(citation) = citation_file(facts) {
        payload.write(CITATION, &citation)?;
    }
    payload.write(README, &readme(facts, &payload.files()))?;
    payload.write(RO_CRATE, &ro_crate(facts, &payload.files()))
}

fn bag_fields(facts: &CrawlFacts) -> Vec<(&'static str, String)> {
    let operator = &facts.report.crawl.operator;
    let told = [
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
    told.into_iter()
        .filter_map(|(label, value)| Some((label, value?)))
        .collect()
}
