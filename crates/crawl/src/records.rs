//! `crawl report`, `crawl explain` and `crawl audit`: what the records of a crawl say.

use std::fs;

use crawl_records::RecordsError;
use crawl_weburl::canonicalize;

use crate::args::{AuditArgs, ExplainArgs, ReportArgs};
use crate::refusal::{BREACH, FINISHED, Refusal};
use crate::screen::{print, print_json};

/// Runs `crawl report`.
pub(crate) fn report(args: &ReportArgs) -> Result<u8, Refusal> {
    let report = crawl_records::report(&args.dir).map_err(refusal)?;
    if let Some(path) = &args.html {
        let written = fs::write(path, report.to_html());
        written.map_err(|why| Refusal::disk(format!("can't write {}: {why}", path.display())))?;
        return Ok(FINISHED);
    }
    match args.json {
        true => print_json(&report),
        false => print(report.to_string().as_bytes()),
    }
}

/// Runs `crawl explain`.
pub(crate) fn explain(args: &ExplainArgs) -> Result<u8, Refusal> {
    let url = canonicalize(None, &args.url).map_err(|why| {
        Refusal::usage(format!("unusable URL `{}`: {why}", args.url))
            .hint("give a whole URL such as `https://example.org/page`")
    })?;
    let explanation = crawl_records::explain(&args.dir, &url).map_err(refusal)?;
    match args.json {
        true => print_json(&explanation),
        false => print(explanation.to_string().as_bytes()),
    }
}

/// Runs `crawl audit`.
pub(crate) fn audit(args: &AuditArgs) -> Result<u8, Refusal> {
    let audit = crawl_records::audit(&args.dir).map_err(refusal)?;
    let printed = match args.json {
        true => print_json(&audit),
        false => print(audit.to_string().as_bytes()),
    };
    Ok(match audit.breach_count() {
        0 => printed?,
        _ => printed.map(|_| BREACH)?,
    })
}

/// What is said where records can't be read.
pub(crate) fn refusal(why: RecordsError) -> Refusal {
    match why {
        RecordsError::NoCrawl { .. } => Refusal::usage(why.to_string())
            .hint("give the directory that a crawl left, with its pages.jsonl"),
        why => Refusal::disk(why.to_string()),
    }
}
