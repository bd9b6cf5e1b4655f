//! Rechecks the pages of a crawl: applies the current rules of their sites, and writes the verdicts
//! to `recheck.jsonl`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crawl_archive::rows::RulesRecheckRow;
use crawl_archive::{Timestamp, replace_file};
use crawl_weburl::{CanonicalUrl, canonicalize};

use crate::error::RecordsError;
use crate::recognize_directory::holds_any;
use crate::row_file_reader::{RowFileReader, excluded, pages, waiting};

/// The name of the file in a crawl's directory that has the result of its last recheck.
pub const RECHECK: &str = "recheck.jsonl";
const RECHECK_BESIDE: &str = "recheck.jsonl.new";

/// The value of `verdict` in the first row.
const RECHECKED: &str = "rechecked";
/// The value of `verdict` for a page that may no longer be fetched.
const EXCLUDED: &str = "excluded";
/// The value of `verdict` for an origin whose rules could not be fetched.
const UNKNOWN: &str = "unknown";

/// The totals of a recheck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecheckTotals {
    /// When the rules were fetched.
    pub at: Timestamp,
    /// Number of pages, including those whose rules could not be fetched.
    pub pages: u64,
    /// Pages that current rules exclude.
    pub excluded: u64,
    /// Pages whose rules could not be fetched.
    pub unknown: u64,
    /// The origins whose rules could not be fetched, each with the reason and its number of pages.
    pub unknown_origins: BTreeMap<String, (String, u64)>,
}

/// Returns the URLs with a row in `pages.jsonl` of the crawl in `dir`. A URL visited in several
/// rounds occurs several times.
///
/// # Errors
/// [`RecordsError::NoCrawl`], and the errors of [`RowFileReader`].
pub fn page_urls(
    dir: &Path,
) -> Result<impl Iterator<Item = Result<CanonicalUrl, RecordsError>>, RecordsError> {
    holds_any(dir, &["pages.jsonl"])?;
    Ok(pages(dir)?.filter_map(|row| match row {
        Ok(row) => canonicalize(None, &row.url).ok().map(Ok),
        Err(why) => Some(Err(why)),
    }))
}

/// Writes `recheck.jsonl` into `dir`. `learnt` is the directory of the run that fetched the current
/// rules for the pages of the crawl in `dir`.
///
/// # Errors
/// [`RecordsError`] if a row can't be read, or the file system fails.
pub fn write_recheck(
    learnt: &Path,
    dir: &Path,
    at: Timestamp,
    purpose: Option<String>,
) -> Result<RecheckTotals, RecordsError> {
    let mut counts = RecheckTotals {
        at,
        pages: 0,
        excluded: 0,
        unknown: 0,
        unknown_origins: BTreeMap::new(),
    };
    for row in excluded(learnt)? {
        let row = row?;
        counts.pages += 1;
        match row.reason.as_str() {
            "robots" | "usage" => counts.excluded += 1,
            "planned" => {}
            reason => {
                let reason_text = row.rule.as_deref().unwrap_or(reason);
                counts.note_unknown(&origin_of(&row.url), reason_text, 1);
            }
        }
    }
    for row in waiting(learnt)? {
        let row = row?;
        if let Some(origin) = &row.origin {
            let reason_text = row.detail.as_deref().unwrap_or(&row.reason);
            counts.pages += row.urls;
            counts.note_unknown(origin, reason_text, row.urls);
        }
    }
    let path = dir.join(RECHECK);
    let beside = dir.join(RECHECK_BESIDE);
    let file = replace_file(&beside).map_err(RecordsError::io(&beside))?;
    let mut out = BufWriter::new(file);
    let written = counts.write(learnt, purpose, &mut out);
    written?.map_err(RecordsError::io(&beside))?;
    let file = out
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error);
    let placed = file
        .and_then(|file: File| file.sync_all())
        .and_then(|()| fs::rename(&beside, &path))
        .and_then(|()| File::open(dir)?.sync_all());
    placed.map_err(RecordsError::io(path))?;
    Ok(counts)
}

/// Returns the rows of `recheck.jsonl`; `None` if the crawl was never rechecked.
///
/// # Errors
/// As for [`RowFileReader`].
pub fn recheck_rows(dir: &Path) -> Result<Option<RowFileReader<RulesRecheckRow>>, RecordsError> {
    match dir.join(RECHECK).is_file() {
        true => RowFileReader::open(dir, RECHECK).map(Some),
        false => Ok(None),
    }
}

/// Returns the path of `recheck.jsonl`.
#[must_use]
pub fn recheck_file(dir: &Path) -> PathBuf {
    dir.join(RECHECK)
}

impl RecheckTotals {
    fn note_unknown(&mut self, origin: &str, why: &str, urls: u64) {
        self.unknown += urls;
        let (_, count) = self
            .unknown_origins
            .entry(origin.to_owned())
            .or_insert_with(|| (why.to_owned(), 0));
        *count += urls;
    }

    /// Writes all rows: first the totals of the recheck, then a row per excluded page, then a row
    /// per origin whose rules could not be fetched. The outer error is from reading rows, the inner
    /// one from writing to `out`.
    fn write(
        &self,
        learnt: &Path,
        purpose: Option<String>,
        out: &mut impl Write,
    ) -> Result<std::io::Result<()>, RecordsError> {
        let row = RulesRecheckRow {
            at: self.at,
            verdict: RECHECKED.to_owned(),
            url: None,
            origin: None,
            urls: self.pages,
            reason: purpose,
            rule: None,
            line: None,
        };
        let mut written = put(out, &row);
        for excluded_row in excluded(learnt)? {
            let excluded_row = excluded_row?;
            if written.is_ok() && matches!(excluded_row.reason.as_str(), "robots" | "usage") {
                written = put(
                    out,
                    &RulesRecheckRow {
                        verdict: EXCLUDED.to_owned(),
                        origin: Some(origin_of(&excluded_row.url)),
                        url: Some(excluded_row.url),
                        urls: 1,
                        reason: Some(excluded_row.reason),
                        rule: excluded_row.rule,
                        line: excluded_row.line,
                        ..row.clone()
                    },
                );
            }
        }
        for (origin, (why, urls)) in &self.unknown_origins {
            if written.is_ok() {
                written = put(
                    out,
                    &RulesRecheckRow {
                        verdict: UNKNOWN.to_owned(),
                        origin: Some(origin.clone()),
                        urls: *urls,
                        reason: Some(why.clone()),
                        ..row.clone()
                    },
                );
            }
        }
        Ok(written.and_then(|()| out.flush()))
    }
}

fn put(out: &mut impl Write, row: &RulesRecheckRow) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, row)?;
    out.write_all(b"\n")
}

fn origin_of(url: &str) -> String {
    let url = canonicalize(None, url);
    url.map(|url| url.origin().to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crawl_archive::Timestamp;

    use super::{recheck_rows, write_recheck};

    #[test]
    fn urls_without_fetched_rules_are_unknown_and_not_excluded() {
        let (learnt, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert!(recheck_rows(dir.path()).unwrap().is_none());
        let row = |url: &str, reason: &str, rule: &str| {
            format!(
                r#"{{"url":"{url}","reason":"{reason}","rule":{rule},"line":null,"found_on":null}}"#
            ) + "\n"
        };
        let rows = [
            row("http://a.example/x", "robots", r#""Disallow: /x""#),
            row("http://a.example/y", "planned", "null"),
            row(
                "http://a.example/z",
                "usage",
                r#""Content-Usage: train-ai=n""#,
            ),
            row("http://b.example/", "address", r#""private address""#),
        ];
        fs::write(learnt.path().join("excluded.jsonl"), rows.concat()).unwrap();
        let waiting = concat!(
            r#"{"origin":null,"urls":3,"reason":"unreachable","detail":null}"#,
            "\n",
            r#"{"origin":"http://c.example","urls":3,"reason":"robots","detail":"503"}"#,
            "\n"
        );
        fs::write(learnt.path().join("waiting.jsonl"), waiting).unwrap();
        let at = Timestamp::from_micros(1_795_219_199_123_000);
        let counts = write_recheck(learnt.path(), dir.path(), at, None).unwrap();
        assert_eq!((counts.pages, counts.excluded, counts.unknown), (7, 2, 4));
        let rows = recheck_rows(dir.path()).unwrap().unwrap();
        let verdicts: Vec<_> = rows
            .map(|row| {
                let row = row.unwrap();
                let of = row.url.or(row.origin).unwrap_or_default();
                format!(
                    "{} {of} {} {}",
                    row.verdict,
                    row.urls,
                    row.reason.unwrap_or_default()
                )
            })
            .collect();
        assert_eq!(
            verdicts,
            [
                "rechecked  7 ",
                "excluded http://a.example/x 1 robots",
                "excluded http://a.example/z 1 usage",
                "unknown http://b.example 1 private address",
                "unknown http://c.example 3 503",
            ]
        );
        assert!(!dir.path().join("recheck.jsonl.new").exists());
    }
}
