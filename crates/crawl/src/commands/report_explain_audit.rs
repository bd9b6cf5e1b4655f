//! `crawl report`, `crawl explain` and `crawl audit`: print what a crawl's records contain.

use std::fmt::Display;
use std::path::Path;

use crawl_identity::{KeyDirectory, SigningKeySet, sign_document};
#[cfg(feature = "search")]
use crawl_records::Explanation;
use crawl_records::{BrokenLinkReport, CrawlReport, EveryLinkDisplay, stored_settings};
use crawl_weburl::HostKey;
use serde::Serialize;
use toml::Value;

use super::fault_report::{FaultCheckResult, FaultReportOptions};
use crate::cli::args::{AuditArgs, ExplainArgs};
use crate::cli::report::ReportArgs;
use crate::clock;
use crate::error::records::of_records;
#[cfg(feature = "search")]
use crate::error::search_index::of_index;
use crate::error::{CHECK_FAILED, CommandError, FINISHED, NEGATIVE_RESULT};
use crate::explanation;
use crate::identity::{KeySource, published_keys};
use crate::output_file::write_file;
#[cfg(feature = "search")]
use crate::search_index_opener;
use crate::settings::typed_seed::{self, ParsedSeed};
use crate::settings::{SettingsLayer, UserFolders, gather, key_url};
use crate::terminal::{note, print, print_json};
use crate::values::FilePath;

/// Runs `crawl report`.
pub(crate) fn report(args: &ReportArgs) -> Result<u8, CommandError> {
    let dir = &args.dir;
    if let Some(a) = &args.compare {
        return show(
            &crawl_records::compare_round(a, dir, args.round).map_err(of_records)?,
            args.json,
        );
    }
    let broken = match args.broken || args.fail_on_broken {
        true => Some(crawl_records::broken_links(dir).map_err(of_records)?),
        false => None,
    };
    let mut totals = None;
    let printed = match &broken {
        _ if args.faults => faults(args)?,
        _ if args.site => site(args)?,
        Some(broken) if args.broken && args.all && !args.json => {
            print(EveryLinkDisplay(broken).to_string().as_bytes())?
        }
        Some(broken) if args.broken => show(broken, args.json)?,
        _ if args.changes => show(&crawl_records::changes(dir).map_err(of_records)?, args.json)?,
        _ => show_totals(args, &mut totals)?,
    };
    let is_broken = broken.is_some_and(|broken| count_reachable(&broken) > 0);
    let is_partial = args.fail_on_partial && {
        let totals = totals.map_or_else(|| crawl_records::report(dir).map_err(of_records), Ok)?;
        !totals.is_whole()
    };
    Ok(match args.fail_on_broken && is_broken || is_partial {
        true => NEGATIVE_RESULT,
        false => printed,
    })
}

/// Prints the totals of the crawl, or writes them to the file of `--html`. Stores them in `totals`.
fn show_totals(args: &ReportArgs, totals: &mut Option<CrawlReport>) -> Result<u8, CommandError> {
    match &args.html {
        Some(path) => {
            let (report, page) = crawl_records::report_page(&args.dir).map_err(of_records)?;
            *totals = Some(report);
            write_file(path, page)?;
            Ok(FINISHED)
        }
        None => {
            let report = crawl_records::report(&args.dir).map_err(of_records)?;
            show(totals.insert(report), args.json)
        }
    }
}

/// Runs `crawl report --site`.
fn site(args: &ReportArgs) -> Result<u8, CommandError> {
    let (dir, max_clicks) = (&args.dir, args.max_clicks);
    match &args.html {
        Some(path) => {
            let page = crawl_records::site_page(dir, max_clicks).map_err(of_records)?;
            write_file(path, page)?;
            Ok(FINISHED)
        }
        None => {
            let report = crawl_records::site(dir, max_clicks).map_err(of_records)?;
            show(&report, args.json)
        }
    }
}

/// Runs `crawl report --faults`.
fn faults(args: &ReportArgs) -> Result<u8, CommandError> {
    let report = FaultReportOptions::new(
        args.format,
        &args.kinds,
        args.baseline.as_deref(),
        args.write_baseline.as_deref(),
    )?;
    let reported = report.print(&args.dir)?;
    Ok(
        match args.fail_on_faults && reported == FaultCheckResult::Failing {
            true => NEGATIVE_RESULT,
            false => FINISHED,
        },
    )
}

/// Counts the broken pages that are seeds or that another page still links to.
fn count_reachable(broken: &BrokenLinkReport) -> u64 {
    let pages = broken.pages.iter();
    let count_reachable = pages.filter(|page| page.via.is_none() || !page.links.is_empty());
    count_reachable.count() as u64
}

fn show<T: Serialize + Display>(report: &T, as_json: bool) -> Result<u8, CommandError> {
    match as_json {
        true => print_json(report),
        false => print(report.to_string().as_bytes()),
    }
}

/// Runs `crawl explain`.
pub(crate) fn explain(args: &ExplainArgs) -> Result<u8, CommandError> {
    let ParsedSeed { url, stand_in, .. } = typed_seed::read_page(&args.url)?;
    let mut explanation = explanation::explain(&args.dir, &url)?;
    // If the user typed the host without a scheme, the crawl may have fetched the page over http,
    // so try the http URL too.
    if let Some(over_http) = stand_in.filter(|_| !explanation.is_known()) {
        let http_explanation = explanation::explain(&args.dir, &over_http)?;
        if http_explanation.is_known() {
            explanation = http_explanation;
        }
    }
    #[cfg(feature = "search")]
    add_index_presence(&args.dir, &mut explanation);
    show(&explanation, args.json)
}

/// Adds the URL's entry in the search index, if the crawl has an index. If the index can't be read,
/// prints a note.
#[cfg(feature = "search")]
fn add_index_presence(dir: &Path, explanation: &mut Explanation) {
    let presence = search_index_opener::open_if_any(dir).and_then(|index| {
        let now = clock::now().as_second();
        let presence = |index| search_index_opener::presence(&index, &explanation.url, now);
        let presence = index.map(presence).transpose();
        presence.map_err(|error| of_index(&error, dir))
    });
    match presence {
        Ok(presence) => explanation.index = presence,
        Err(why) => note(&format!("the index can't be read: {}", why.message)),
    }
}

/// Returns the public keys for verifying the signatures of a crawl. The keys come from the files of
/// `--keys` or, without this flag, from the private keys that the crawl's own settings name.
fn audit_keys(args: &AuditArgs) -> Result<Vec<KeyDirectory>, CommandError> {
    if !args.keys.is_empty() {
        return published_keys(&args.keys);
    }
    match own_keys(args) {
        Ok(Some((url, keys))) => Ok(vec![KeyDirectory::new(&url, keys.public())]),
        Ok(None) => Ok(Vec::new()),
        Err(why) => {
            // Print only the reason, because the audit itself reports that signatures are not
            // verified.
            note(&format!(
                "the crawl's own keys can't be read: {}",
                why.message
            ));
            Ok(Vec::new())
        }
    }
}

/// Returns the private keys that the crawl's own settings name, and the URL of the public keys.
/// `None` if the settings name no keys.
///
/// # Errors
/// The settings or the keys can't be read.
fn own_keys(args: &AuditArgs) -> Result<Option<(String, SigningKeySet)>, CommandError> {
    let stored = stored_settings(&args.dir);
    let operator = stored.get("operator").and_then(Value::as_table);
    let is_set = |key: &str| {
        let value = operator?.get(key)?.as_str()?;
        (!matches!(value, "" | "off")).then_some(())
    };
    // A crawl that doesn't sign requests needs no keys. Return early, because `gather` fails if the
    // settings aren't proven to be this user's own.
    if is_set("signature").or(is_set("signature-agent")).is_none() {
        return Ok(None);
    }
    let mut layer = SettingsLayer::default();
    layer.output.output = Some(FilePath(args.dir.clone()));
    let operator = gather(layer, None, &UserFolders::of_process())?.operator;
    if operator.signature.meaning().is_none() && operator.signature_agent.is_empty() {
        return Ok(None);
    }
    let url = key_url(&operator)?;
    let keys = KeySource::of(&operator.signature_key.0).read()?;
    Ok(Some((url, keys)))
}

/// Writes the HTML page about the crawl's requests to a host. Signs the page with the key that the
/// crawl's own settings name, if there is one.
fn write_conduct(
    args: &AuditArgs,
    host: &str,
    file: &Path,
    audit: &crawl_records::AuditReport,
) -> Result<(), CommandError> {
    let key = HostKey::parse(host);
    let key = key.map_err(|why| CommandError::usage(format!("unusable --host `{host}`: {why}")))?;
    let now = u64::try_from(clock::now().as_second()).unwrap_or_default();
    let keys = own_keys(args);
    let unsigned = keys.as_ref().err().map(|why| why.message.clone());
    let keys = keys.ok().flatten().map(|(_, keys)| keys);
    let signing_key = match &keys {
        Some(keys) => {
            check_signing_key(keys, audit)?;
            Some(keys.at(now).map_err(|why| {
                CommandError::usage(format!("can't sign `{}`: {why}", file.display()))
            })?)
        }
        None => None,
    };
    if let Some(why) = &unsigned {
        note(&format!("`{}` isn't signed: {why}", file.display()));
    }
    let page = crawl_records::conduct_page(&args.dir, &key, audit, unsigned.as_deref());
    let Some(page) = page.map_err(of_records)? else {
        let message = format!("{key} got no request in this crawl");
        return Err(CommandError::usage(message).hint(
            "`crawl report DIR` lists the hosts; on loopback, the port is part of the host",
        ));
    };
    let page = match signing_key {
        Some(signing_key) => sign_document(signing_key, &page, now),
        None => page,
    };
    write_file(file, page)
}

/// If requests of the crawl are signed, checks that one of `keys` signed them. Otherwise the page,
/// signed with one of `keys`, would seem to come from another crawler.
fn check_signing_key(
    keys: &SigningKeySet,
    audit: &crawl_records::AuditReport,
) -> Result<(), CommandError> {
    let mut own = keys.public().into_iter().map(|key| key.thumbprint());
    let Some(crawl_key) = audit.signers.keys().next() else {
        return Ok(());
    };
    if own.any(|own| audit.signers.contains_key(&own)) {
        return Ok(());
    }
    let message = format!(
        "the keys of the crawl's settings didn't sign this crawl: its requests were signed with \
         `{crawl_key}`"
    );
    Err(CommandError::usage(message)
        .hint("put the key that signed back into the file of signature-key")
        .about("signature-key"))
}

/// Runs `crawl audit`.
pub(crate) fn audit(args: &AuditArgs) -> Result<u8, CommandError> {
    let keys = audit_keys(args)?;
    let audit = crawl_records::audit(&args.dir, &keys).map_err(of_records)?;
    if let (Some(host), Some(file)) = (&args.host, &args.html) {
        write_conduct(args, host, file, &audit)?;
    }
    let printed = show(&audit, args.json);
    Ok(match audit.breach_count() {
        0 => printed?,
        _ => printed.map(|_| CHECK_FAILED)?,
    })
}
