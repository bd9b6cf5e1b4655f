//! `crawl recheck`: checks a crawl's pages against the current rules of their hosts.

use std::fmt::Write as _;
use std::path::Path;

use crawl_records::{
    RecheckTotals, RulesRecheckRow, counted, evidence_words, recheck_file, recheck_rows,
};

use crate::error::records::of_records;
use crate::error::{CommandError, FINISHED, INTERRUPTED, NEGATIVE_RESULT};
use crate::run::recheck;
use crate::settings::Settings;
use crate::terminal::{note, print, print_json_lines};

/// How many bytes to buffer before writing to stdout.
const CHUNK_BYTES: usize = 64 * 1024;

pub(crate) fn run(settings: &Settings, as_json: bool) -> Result<u8, CommandError> {
    let Some(counts) = recheck(settings)? else {
        note("interrupted; the results of the last recheck were not changed");
        return Ok(INTERRUPTED);
    };
    show(&settings.output.output.0, &counts, as_json)?;
    Ok(match counts.pages > 0 && counts.unknown == counts.pages {
        true => NEGATIVE_RESULT,
        false => FINISHED,
    })
}

/// Prints a summary, unless `as_json`, and then all rows of the recheck.
fn show(dir: &Path, counts: &RecheckTotals, as_json: bool) -> Result<(), CommandError> {
    let mut text = match as_json {
        true => String::new(),
        false => summary(dir, counts),
    };
    let rows = recheck_rows(dir).map_err(of_records)?;
    for row in rows.into_iter().flatten() {
        let row = row.map_err(of_records)?;
        match as_json {
            true => {
                let row = serde_json::to_string(&row);
                let row =
                    row.map_err(|why| CommandError::disk(format!("can't write JSON: {why}")))?;
                let _ = writeln!(text, "{row}");
            }
            false => push_line(&mut text, &row),
        }
        if text.len() > CHUNK_BYTES {
            write(&std::mem::take(&mut text), as_json)?;
        }
    }
    write(&text, as_json)
}

fn write(text: &str, as_json: bool) -> Result<(), CommandError> {
    match as_json {
        true => print_json_lines(text),
        false => print(text.as_bytes()),
    }
    .map(drop)
}

fn summary(dir: &Path, counts: &RecheckTotals) -> String {
    let pages = |count| counted(count, "page", "pages");
    format!(
        "rechecked {}\nexcluded  {}\nunknown   {}\nlisted in {}\n",
        pages(counts.pages),
        pages(counts.excluded),
        pages(counts.unknown),
        recheck_file(dir).display(),
    )
}

/// Appends a line for a page, or for an origin whose rules are unknown.
fn push_line(text: &mut String, row: &RulesRecheckRow) {
    let reason = row.reason.as_deref().unwrap_or_default();
    let _ = match (&row.url, &row.origin) {
        (Some(url), _) => {
            let rule = row.rule.as_deref().unwrap_or_default();
            let line = row.line.map(|line| format!(" (line {line})"));
            let line = line.unwrap_or_default();
            writeln!(text, "{}: {url}  {reason} {rule}{line}", row.verdict)
        }
        (None, Some(origin)) => {
            let pages = counted(row.urls, "page", "pages");
            let reason = evidence_words(reason);
            writeln!(text, "{}: {origin}  {pages}: {reason}", row.verdict)
        }
        (None, None) => Ok(()),
    };
}
