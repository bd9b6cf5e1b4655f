//! The fields that rules extract from pages: during a crawl, and again from the archive.

use std::path::Path;
use std::thread;

use crawl_archive::rows::{ExtractRow, PageRow, READER_KILLED, READER_PANICKED};
use crawl_archive::{HttpMessage, ReadError, RowFileWriter, RowReader, read_dom, read_place};
use crawl_coding::{DecodeLimits, decode};
use crawl_extractor::{ContentKind, DecodedPage, document_kind};
use crawl_fetcher::Interstitial;
use crawl_fields::{CompiledRules, PageToMatch};
use crawl_frontier::Frontier;
use http::HeaderValue;
use http::header::CONTENT_ENCODING;

use crate::error::EngineError;
use crate::state::crawl_directory;
use crate::state::extracted_field_files::{EXTRACTS_IN_PROGRESS, replace_rows};

/// The number of pages that are read from the archive and held in memory at once.
const BATCH_PAGES: usize = 64;

/// Applies rules to an HTML page. `body` is the body with its content coding removed.
#[must_use]
pub fn extract_rows(
    rules: &CompiledRules,
    body: &[u8],
    facts: &PageToMatch<'_>,
    round: u32,
) -> Vec<ExtractRow> {
    if !rules.may_match(facts) {
        return Vec::new();
    }
    let text = DecodedPage::decode(body, facts.content_type);
    rows_of_text(rules, &text, facts, round)
}

/// Applies rules to the text of an HTML page.
pub(crate) fn rows_of_text(
    rules: &CompiledRules,
    text: &DecodedPage<'_>,
    facts: &PageToMatch<'_>,
    round: u32,
) -> Vec<ExtractRow> {
    let extracts = rules.extract(text.as_str(), facts).into_iter();
    let rows = extracts.map(|extract| ExtractRow {
        url: facts.url.to_owned(),
        rule: extract.rule,
        round,
        fields: extract.fields,
        missing: extract.missing,
        failed: extract.failed,
        cut: extract.cut.map(str::to_owned),
    });
    rows.collect()
}

/// Returns whether to extract fields from a page. True if the response is a readable page, and both
/// the site and the operator allow its body to be kept and shown.
pub(crate) fn may_extract(row: &PageRow) -> bool {
    let error = row.error.as_deref().unwrap_or_default();
    let is_unread =
        Interstitial::named(error).is_some() || matches!(error, READER_PANICKED | READER_KILLED);
    matches!(row.status, Some(200..=299)) && row.may_show_body() && !is_unread
}

/// Numbers of pages and rows that [`extract_again`] processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReextractionSummary {
    /// HTML pages that the rules were applied to, over all rounds.
    pub pages: u64,
    /// Rows of the new `extracts.jsonl`.
    pub rows: u64,
    /// Pages that the rules could be applied to, but whose record in the archive can't be read.
    pub unreadable: u64,
    /// Whether the extraction was stopped. The old rows are then unchanged.
    pub is_stopped: bool,
}

/// Extracts fields from the pages in the archive of the crawl in `dir`, and replaces
/// `extracts.jsonl`. Sends no requests. Calls `report` with the number of pages read so far.
/// `config_text` returns the new text of `crawl.toml`, or `None` to leave the file unchanged. It is
/// called while no other process can use the crawl.
///
/// # Errors
/// [`EngineError`] if there is no crawl or no archive, another process uses the crawl, or writing
/// fails. The old rows are then unchanged, or the next start finishes the replacement.
pub fn extract_again(
    dir: &Path,
    rules: &CompiledRules,
    config_text: &dyn Fn() -> Option<String>,
    is_stopped: &dyn Fn() -> bool,
    report: &mut dyn FnMut(u64),
) -> Result<ReextractionSummary, EngineError> {
    let held = crawl_directory::hold_gathered(dir)?;
    let frontier = match held {
        Some(_) => None,
        None => Some(crawl_directory::open_at_rest(dir)?),
    };
    if !dir.join(crawl_archive::FOLDER).is_dir() {
        return Err(EngineError::NoArchive {
            dir: dir.to_path_buf(),
        });
    }
    let marks = frontier.as_ref().map(|frontier| frontier.marks());
    let marks = marks.transpose()?;
    let committed = marks.and_then(|marks| marks.get("pages.jsonl").copied());
    let part = dir.join(EXTRACTS_IN_PROGRESS);
    let mut out = RowFileWriter::open(&part, None)?;
    let mut done = ReextractionSummary::default();
    let mut batch = Vec::new();
    for row in RowReader::<PageRow>::open(&dir.join("pages.jsonl"), committed)? {
        if is_stopped() {
            std::fs::remove_file(&part).map_err(EngineError::disk(&part))?;
            done.is_stopped = true;
            return Ok(done);
        }
        match row {
            Ok(row) if is_read(rules, &row) => batch.push(row),
            Ok(_) | Err(ReadError::Row { .. }) => {}
            Err(why) => return Err(why.into()),
        }
        if batch.len() >= BATCH_PAGES {
            extract_batch(dir, rules, &std::mem::take(&mut batch), &mut out, &mut done)?;
            report(done.pages);
        }
    }
    extract_batch(dir, rules, &batch, &mut out, &mut done)?;
    out.sync()?;
    drop(out);
    let frontier = frontier.as_deref().map(|frontier| frontier as _);
    replace_rows(dir, rules, config_text().as_deref(), frontier)?;
    drop(held);
    Ok(done)
}

/// Returns whether to read this page from the archive and apply the rules to it.
fn is_read(rules: &CompiledRules, row: &PageRow) -> bool {
    row.warc.is_some() && !row.repeats_body() && may_extract(row) && rules.may_match(&facts(row))
}

fn facts(row: &PageRow) -> PageToMatch<'_> {
    PageToMatch {
        url: &row.url,
        content_type: row.content_type.as_deref(),
        language: row.language.as_deref(),
        label: row.label.as_deref(),
    }
}

/// Reads pages on all processors, and appends their rows in the order of the pages.
fn extract_batch(
    dir: &Path,
    rules: &CompiledRules,
    pages: &[PageRow],
    out: &mut RowFileWriter,
    done: &mut ReextractionSummary,
) -> Result<(), EngineError> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = pages.len().div_ceil(threads).max(1);
    let extracted: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = pages
            .chunks(share)
            .map(|pages| {
                let of_page = |row: &PageRow| of_archive(dir, rules, row);
                scope.spawn(move || pages.iter().map(of_page).collect::<Vec<_>>())
            })
            .collect();
        threads
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect()
    });
    for rows in extracted {
        let rows = rows.map_err(|_| EngineError::Thread {
            what: "a rule panicked".to_owned(),
        })?;
        for rows in rows {
            match rows {
                Some(Some(rows)) => {
                    done.pages += 1;
                    for row in rows {
                        out.append(&row)?;
                        done.rows += 1;
                    }
                }
                Some(None) => {}
                None => done.unreadable += 1,
            }
        }
    }
    Ok(())
}

/// Returns the rows of an archived page. `None` if its record can't be read, and `Some(None)` if it
/// is not an HTML page.
fn of_archive(dir: &Path, rules: &CompiledRules, row: &PageRow) -> Option<Option<Vec<ExtractRow>>> {
    let record = read_place(dir, row.warc.as_ref()?, row.bytes).ok()?;
    let http = record.http().filter(|_| record.url() == Some(&row.url))?;
    let body = match read_dom(dir, row) {
        Some(dom) => dom.into(),
        None => decoded(&http),
    };
    let is_html = document_kind(row.content_type.as_deref(), &body) == ContentKind::Html;
    Some(is_html.then(|| extract_rows(rules, &body, &facts(row), row.round)))
}

fn decoded(http: &HttpMessage<'_>) -> bytes::Bytes {
    let is_coding = |name: &[u8]| name.eq_ignore_ascii_case(CONTENT_ENCODING.as_str().as_bytes());
    let codings = http.fields.iter().filter(|(name, _)| is_coding(name));
    let codings = codings.filter_map(|(_, value)| HeaderValue::from_bytes(value).ok());
    let codings: Vec<_> = codings.collect();
    let body = bytes::Bytes::copy_from_slice(http.body);
    decode(codings.iter(), &body, &DecodeLimits::default()).bytes
}

/// Returns the memory that a row takes, in bytes.
pub(crate) fn extract_bytes(row: &ExtractRow) -> usize {
    let names = row.missing.iter().map(String::len).sum::<usize>();
    let failed = row.failed.values().map(String::len).sum::<usize>();
    let values = row.fields.values().map(value_bytes).sum::<usize>();
    size_of::<ExtractRow>() + row.url.len() + names + failed + values
}

fn value_bytes(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    let inner = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_bytes).sum(),
        Value::Object(fields) => fields.values().map(value_bytes).sum(),
        _ => 0,
    };
    size_of::<Value>() + inner
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use crawl_fields::CompiledRules;

    use super::extract_again;
    use crate::error::EngineError;
    use crate::state::crawl_directory::{begin_at_rest, open_at_rest};

    #[test]
    fn new_settings_are_computed_while_no_other_process_can_use_the_crawl() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        drop(begin_at_rest(dir).unwrap());
        fs::create_dir(dir.join(crawl_archive::FOLDER)).unwrap();
        fs::write(dir.join("pages.jsonl"), "").unwrap();
        let is_called = Cell::new(false);
        let config_text = || {
            is_called.set(true);
            let opened = open_at_rest(dir).map(drop);
            assert!(matches!(opened, Err(EngineError::OutputInUse { .. })));
            Some("new".to_owned())
        };
        let rules = CompiledRules::default();
        extract_again(dir, &rules, &config_text, &|| false, &mut |_| {}).unwrap();
        assert!(is_called.get());
        assert_eq!(fs::read_to_string(dir.join("crawl.toml")).unwrap(), "new");
    }
}
