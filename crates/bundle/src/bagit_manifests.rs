//! Writes the manifests of a bundle in BagIt format (RFC 8493), and checks all files against them.
//!
//! A bundle is a valid BagIt bag, but the check is stricter than BagIt: the lines of a manifest
//! must have one fixed form and order. So any changed byte in a manifest is detected.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::BufReader;
use std::path::{Component, Path};

use crawl_archive::{BoundedLineResult, LineReader, open_regular, read_text};

use crate::bundle_folder::{BundleFolderWriter, BundledFile, digest};
use crate::error::{BundleError, VerificationRunError, is_damage};
use crate::verification_result::VerificationResult;

/// The folder that contains the payload of the bundle.
pub(crate) const DATA: &str = "data";
/// The name and the only accepted content of the file that marks a folder as a bag.
pub(crate) const BAG: &str = "bagit.txt";
const BAG_TEXT: &str = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n";
const INFO: &str = "bag-info.txt";
const MANIFEST: &str = "manifest-sha256.txt";
pub(crate) const TAG_MANIFEST: &str = "tagmanifest-sha256.txt";
/// The files that the tag manifest must list, in this order.
const TAG_FILES: [&str; 3] = [INFO, BAG, MANIFEST];
/// Maximum length of a manifest line in bytes. A line consists of a digest and a path.
const MAX_MANIFEST_LINE_BYTES: usize = 64 * 1024;
const DIGITS: usize = 64;

/// The fields of `bag-info.txt`, except the payload's size.
#[derive(Clone, Debug, Default)]
pub(crate) struct BagInfo {
    /// Labels and their values, in the order of the file. A value takes up one line.
    pub(crate) fields: Vec<(&'static str, String)>,
}

/// Writes the manifests for the payload below `root`. Returns the SHA-256 of the tag manifest,
/// which indirectly covers every byte of the bundle.
pub(crate) fn write_manifests(
    root: &Path,
    payload: &BundleFolderWriter,
    info: &BagInfo,
) -> Result<String, BundleError> {
    let mut tags = BundleFolderWriter::create(root.to_owned())?;
    let files = payload.files();
    let mut text = String::new();
    for (label, value) in &info.fields {
        let value: Vec<_> = value.split_whitespace().collect();
        let _ = writeln!(text, "{label}: {}", value.join(" "));
    }
    let bytes: u64 = files.iter().map(|file| file.bytes).sum();
    let _ = writeln!(text, "Payload-Oxum: {bytes}.{}", files.len());
    tags.write(INFO, &text)?;
    tags.write(BAG, BAG_TEXT)?;
    tags.write(MANIFEST, &lines(&files, &format!("{DATA}/")))?;
    let listed = lines(&tags.files(), "");
    tags.write(TAG_MANIFEST, &listed)?;
    let last = tags
        .files()
        .into_iter()
        .find(|file| file.path == TAG_MANIFEST);
    Ok(last.map(|file| file.sha256).unwrap_or_default())
}

fn lines(files: &[BundledFile], folder: &str) -> String {
    let line = |file: &BundledFile| format!("{}  {folder}{}\n", file.sha256, escaped(&file.path));
    files.iter().map(line).collect()
}

/// Escapes a path for a manifest (RFC 8493 section 2.1.3).
fn escaped(path: &str) -> String {
    path.replace('%', "%25")
        .replace('\n', "%0A")
        .replace('\r', "%0D")
}

fn unescaped(path: &str) -> String {
    path.replace("%0D", "\r")
        .replace("%0A", "\n")
        .replace("%25", "%")
}

/// The files that a manifest lists, each with its line number, digest and path.
struct Manifest {
    files: Vec<(u64, String, String)>,
}

/// The result of checking a bundle's files against its manifests.
#[derive(Default)]
pub(crate) struct BagCheckResult {
    /// Files that don't match their digests. Paths are relative to the bundle.
    pub(crate) changed: BTreeSet<String>,
    /// The SHA-256 and the length in bytes of each file that matches its digest.
    pub(crate) whole: BTreeMap<String, (String, u64)>,
}

/// Checks each file of the bundle against its digest in a manifest.
pub(crate) fn check_bag(
    root: &Path,
    verification: &mut VerificationResult,
) -> Result<BagCheckResult, VerificationRunError> {
    let mut bag = BagCheckResult::default();
    let mut listed: BTreeSet<String> = BTreeSet::new();
    let tags = read_manifest(root, TAG_MANIFEST, verification)?;
    if !tags
        .files
        .iter()
        .map(|(_, _, path)| path.as_str())
        .eq(TAG_FILES)
    {
        let message = format!("does not list {}", TAG_FILES.join(", "));
        verification.file(TAG_MANIFEST, message);
    }
    let is_tag_file = |file: &(u64, String, String)| TAG_FILES.contains(&file.2.as_str());
    for (line, sha256, path) in tags.files.into_iter().filter(is_tag_file) {
        // Only this manifest has the digest of a tag file. So on a mismatch, either the file or the
        // manifest may have changed.
        if length_if_whole(root, &path, &sha256, verification)?.is_none() {
            let message = format!("{path} or its digest was changed");
            verification.line(TAG_MANIFEST, line, message);
        }
        listed.insert(path);
    }
    if !read_text(&root.join(BAG), BAG_TEXT.len() as u64).is_ok_and(|text| text == BAG_TEXT) {
        verification.file(BAG, "not the text of a bag");
    }
    for (_, sha256, path) in read_manifest(root, MANIFEST, verification)?.files {
        if !path.starts_with(&format!("{DATA}/")) || path.split('/').any(|part| part == "..") {
            let message = format!("lists `{path}`, which is not in the payload");
            verification.file(MANIFEST, message);
            continue;
        }
        match length_if_whole(root, &path, &sha256, verification)? {
            Some(bytes) => {
                bag.whole.insert(path.clone(), (sha256, bytes));
            }
            None => {
                bag.changed.insert(path.clone());
            }
        }
        listed.insert(path);
    }
    listed.insert(TAG_MANIFEST.to_owned());
    find_unlisted(root, "", &listed, verification)?;
    Ok(bag)
}

/// Reads a manifest. Reports a defect if it differs from the form that this program writes.
fn read_manifest(
    root: &Path,
    name: &str,
    verification: &mut VerificationResult,
) -> Result<Manifest, VerificationRunError> {
    let path = root.join(name);
    let mut files: Vec<(u64, String, String)> = Vec::new();
    let file = match open_regular(&path) {
        Err(error) if is_damage(&error) => {
            verification.file(name, "missing");
            return Ok(Manifest { files });
        }
        file => file.map_err(VerificationRunError::read(&path))?,
    };
    let mut lines = LineReader::new(BufReader::new(file), MAX_MANIFEST_LINE_BYTES);
    let mut number = 0;
    while let Some(line) = lines
        .next_line()
        .map_err(VerificationRunError::read(&path))?
    {
        number += 1;
        let parsed = match line {
            BoundedLineResult::Whole(line) => std::str::from_utf8(line).ok().and_then(listed_file),
            _ => None,
        };
        match parsed {
            Some((_, path)) if !is_within(&path) => {
                verification.line(name, number, "lists a file outside the bundle");
            }
            Some((sha256, path)) => {
                if files.last().is_some_and(|(_, _, before)| *before >= path) {
                    verification.line(
                        name,
                        number,
                        "out of order: it belongs before the previous line",
                    );
                }
                files.push((number, sha256, path));
            }
            None => verification.line(name, number, "not a digest and a path"),
        }
    }
    Ok(Manifest { files })
}

/// Returns true if a path in a manifest stays inside the manifest's folder.
pub(crate) fn is_within(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    parts.all(|part| matches!(part, Component::Normal(_)))
}

fn listed_file(line: &str) -> Option<(String, String)> {
    let (sha256, path) = line.strip_suffix('\n')?.split_once("  ")?;
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_digest = sha256.len() == DIGITS && sha256.bytes().all(is_digit);
    let path = unescaped(path);
    (is_digest && !path.is_empty()).then(|| (sha256.to_owned(), path))
}

/// Returns the length of a file whose SHA-256 is `sha256`. For any other file, reports a defect and
/// returns `None`.
fn length_if_whole(
    root: &Path,
    path: &str,
    sha256: &str,
    verification: &mut VerificationResult,
) -> Result<Option<u64>, VerificationRunError> {
    let message = match digest(&root.join(path)) {
        Ok((actual_sha256, bytes)) => {
            verification.checked.files += 1;
            verification.checked.bytes += bytes;
            if actual_sha256 == sha256 {
                return Ok(Some(bytes));
            }
            format!("its SHA-256 is {actual_sha256}, but the manifest says {sha256}")
        }
        Err(error) if is_damage(&error) => {
            format!("listed, but can't be read: {error}")
        }
        Err(error) => return Err(VerificationRunError::read(&root.join(path))(error)),
    };
    verification.file(path, message);
    Ok(None)
}

/// Reports each entry that no manifest lists, and each folder that contains no listed file.
fn find_unlisted(
    root: &Path,
    folder: &str,
    listed: &BTreeSet<String>,
    verification: &mut VerificationResult,
) -> Result<(), VerificationRunError> {
    let at = root.join(folder);
    let mut names = Vec::new();
    for entry in fs::read_dir(&at).map_err(VerificationRunError::read(&at))? {
        let entry = entry.map_err(VerificationRunError::read(&at))?;
        let kind = entry.file_type().map_err(VerificationRunError::read(&at))?;
        names.push((entry.file_name().to_string_lossy().into_owned(), kind));
    }
    names.sort_by(|one, other| one.0.cmp(&other.0));
    for (name, kind) in names {
        let path = match folder {
            "" => name,
            folder => format!("{folder}/{name}"),
        };
        if kind.is_dir() {
            let within = format!("{path}/");
            let mut behind = listed.range(within.clone()..);
            if !behind.next().is_some_and(|file| file.starts_with(&within)) {
                verification.file(&path, "no manifest lists a file in this folder");
            }
            find_unlisted(root, &path, listed, verification)?;
        } else if !listed.contains(&path) {
            verification.file(&path, "no manifest lists it");
        }
    }
    Ok(())
}
