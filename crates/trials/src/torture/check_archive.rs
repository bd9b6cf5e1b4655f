//! Checks that the archive is intact, has each page once per round, and agrees with the rows and
//! the capture index.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use crawl_archive::rows::{PageRow, RequestRow};
use crawl_archive::{FOLDER, INDEX, WarcReader, WarcRecord, strip_warc_suffix};
use serde::Deserialize;

use super::checked_counts_and_breaches::BrokenRules;
use super::random_web::RandomWeb;

/// A capture: a record of the archive, or the line of the capture index that names the record.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CheckedCapture {
    file: String,
    offset: u64,
    length: u64,
    url: String,
    digest: Option<String>,
}

/// The JSON of an index line.
#[derive(Deserialize)]
struct IndexLineJson {
    url: String,
    digest: Option<String>,
    length: String,
    offset: String,
    filename: String,
}

/// Checks the archive and returns its number of records.
pub(super) fn check(
    output: &Path,
    web: &RandomWeb,
    pages: &[PageRow],
    requests: &[RequestRow],
    breaches: &mut BrokenRules,
) -> Result<u64> {
    let folder = output.join(FOLDER);
    let mut records = 0;
    let mut captures = BTreeSet::new();
    let mut doms = BTreeSet::new();
    let (mut originals, mut referred) = (BTreeSet::new(), BTreeSet::new());
    for entry in fs::read_dir(&folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if strip_warc_suffix(&name).is_none() {
            continue;
        }
        for record in WarcReader::open(&folder.join(&name))? {
            let record = record?;
            records += 1;
            if let Some(field) = record.wrong_digest() {
                breaches.add(format!("{field} is wrong at {} of {name}", record.offset));
            }
            let dated = |field| Some((record.url()?.to_owned(), record.field(field)?.to_owned()));
            match record.kind() {
                "response" => originals.extend(dated("WARC-Date")),
                "revisit" => referred.extend(dated("WARC-Refers-To-Date")),
                "conversion" => {
                    let url = record.url().unwrap_or_default().to_owned();
                    doms.insert((name.clone(), record.offset, url));
                }
                _ => {}
            }
            if matches!(record.kind(), "response" | "revisit") {
                captures.insert(capture(&name, &record));
            }
        }
    }
    for (url, date) in referred.difference(&originals) {
        breaches.add(format!(
            "a revisit of {url} refers to {date}, of which there is no record"
        ));
    }
    places(&captures, web, pages, breaches);
    resources(&captures, web, requests, breaches);
    rendered(doms, pages, breaches);
    index(&folder.join(INDEX), &captures, breaches)?;
    Ok(records)
}

fn capture(file: &str, record: &WarcRecord) -> CheckedCapture {
    CheckedCapture {
        file: file.to_owned(),
        offset: record.offset,
        length: record.length,
        url: record.url().unwrap_or_default().to_owned(),
        digest: record.field("WARC-Payload-Digest").map(str::to_owned),
    }
}

/// Checks that each row with an answer has exactly one record, at the position that the row names,
/// and that no other record contains a page.
fn places(
    captures: &BTreeSet<CheckedCapture>,
    web: &RandomWeb,
    pages: &[PageRow],
    breaches: &mut BrokenRules,
) {
    let mut by_url: BTreeMap<&str, Vec<&CheckedCapture>> = BTreeMap::new();
    for capture in captures {
        by_url
            .entry(capture.url.as_str())
            .or_default()
            .push(capture);
    }
    for page in pages {
        let candidates = by_url.get_mut(page.url.as_str());
        let candidates = candidates.map(|candidates| {
            let at = candidates.iter().position(|capture| is_of(page, capture));
            at.map(|at| candidates.swap_remove(at))
        });
        if candidates.flatten().is_some() != page.status.is_some() {
            let (url, warc) = (&page.url, &page.warc);
            breaches.add(format!(
                "the record of {url} is not where its row says: {warc:?}"
            ));
        }
    }
    for (url, left) in by_url {
        let has_row = !web.rules.contains(url) && !web.resources.contains(url);
        if !left.is_empty() && has_row {
            breaches.add(format!("{url} has {} records without a row", left.len()));
        }
    }
}

/// Checks that each resource is archived, but not more often than it was answered. There may be
/// fewer records than answers, because a kill loses uncommitted records, but no rows of requests.
fn resources(
    captures: &BTreeSet<CheckedCapture>,
    web: &RandomWeb,
    requests: &[RequestRow],
    breaches: &mut BrokenRules,
) {
    for url in &web.resources {
        let records = captures.iter().filter(|capture| capture.url == *url);
        let records = records.count();
        let answered = requests
            .iter()
            .filter(|request| request.url == *url && request.status.is_some());
        let answered = answered.count();
        if records == 0 || records > answered {
            breaches.add(format!("{url} has {records} records of {answered} answers"));
        }
    }
}

/// Checks that the archive has the DOM of each rendered page at the position that the page's row
/// names, and no further DOMs.
fn rendered(doms: BTreeSet<(String, u64, String)>, pages: &[PageRow], breaches: &mut BrokenRules) {
    let named = pages.iter().filter_map(|page| {
        let (place, after) = (page.warc.as_ref()?, page.render.as_ref()?.dom_after?);
        Some((place.file.clone(), place.offset + after, page.url.clone()))
    });
    let named: BTreeSet<_> = named.collect();
    for (file, offset, url) in named.symmetric_difference(&doms) {
        breaches.add(format!(
            "the DOM of {url} at {offset} of {file} is in a row or in the archive, not in both"
        ));
    }
}

fn is_of(page: &PageRow, capture: &CheckedCapture) -> bool {
    // Don't compare the digest of a 304, because its record has no payload.
    let same_digest = page.status == Some(304) || page.digest == capture.digest;
    let place = page.warc.as_ref();
    same_digest
        && place.is_some_and(|place| (&place.file, place.offset) == (&capture.file, capture.offset))
}

fn index(
    path: &Path,
    captures: &BTreeSet<CheckedCapture>,
    breaches: &mut BrokenRules,
) -> Result<()> {
    let text = fs::read_to_string(path).context("the index")?;
    let lines: Vec<_> = text.lines().collect();
    if !lines.is_sorted() {
        breaches.add("the index is not sorted");
    }
    let mut listed = BTreeSet::new();
    for line in &lines {
        let json = line.splitn(3, ' ').nth(2).unwrap_or_default();
        let line: IndexLineJson = serde_json::from_str(json).with_context(|| (*line).to_owned())?;
        listed.insert(CheckedCapture {
            file: line.filename,
            offset: line.offset.parse()?,
            length: line.length.parse()?,
            url: line.url,
            digest: line.digest,
        });
    }
    if listed != *captures || lines.len() != captures.len() {
        let odd: Vec<_> = listed.symmetric_difference(captures).take(3).collect();
        breaches.add(format!(
            "the index has {} lines, the archive {} captures: {odd:?}",
            lines.len(),
            captures.len()
        ));
    }
    Ok(())
}
