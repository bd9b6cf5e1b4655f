//! `crawl check`: crawls a site, checks its links to other sites too, and lists the broken ones.

use std::path::Path;

use super::fault_report::{FaultCheckResult, FaultReportOptions};
use crate::cli::args::CheckArgs;
use crate::error::{CommandError, FINISHED, NEGATIVE_RESULT};
use crate::run::{ContinuationCommand, TemporaryFolder, crawl};
use crate::settings::{UserFolders, check_defaults, gather_over, refuse_plain_crawl};

pub(crate) fn run(mut args: CheckArgs) -> Result<u8, CommandError> {
    let report = FaultReportOptions::new(
        args.format,
        &args.kinds,
        args.baseline.as_deref(),
        args.write_baseline.as_deref(),
    )?;
    let layer = &mut args.job.layer;
    let is_named = layer.names_output();
    if !is_named && !layer.names_seeds() && args.job.config.is_none() {
        return Err(CommandError::usage("no site given to check")
            .hint("name one: `crawl check https://www.example.org/ --contact you@example.org`"));
    }
    let temporary = match is_named {
        true => None,
        false => Some(TemporaryFolder::make("check")?),
    };
    if let Some(folder) = &temporary {
        // Override any `output` in the file of --config, because it names the directory of the
        // site's regular crawl, which a check must not change.
        layer.put_into(folder.path());
    }
    refuse_plain_crawl(layer)?;
    let (settings, sources) = gather_over(
        args.job.layer,
        args.job.config.as_deref(),
        &UserFolders::of_process(),
        check_defaults(),
    )?;
    if settings.recrawl.every.0.is_some() {
        return Err(
            CommandError::usage("--every can't be used with `crawl check`")
                .hint("run `crawl check` from cron or a timer"),
        );
    }
    let kind = match &temporary {
        Some(_) => ContinuationCommand::Temporary,
        None => ContinuationCommand::OfCheck,
    };
    let dir = settings.output.output.0.clone();
    let ended = crawl(&settings, sources, kind)?;
    let reported = print(&report, &dir)?;
    Ok(match (ended, reported) {
        (FINISHED, FaultCheckResult::Failing) => NEGATIVE_RESULT,
        (code, _) => code,
    })
}

/// Prints the report, unless the crawl was interrupted before its first page and so has no records.
fn print(report: &FaultReportOptions<'_>, dir: &Path) -> Result<FaultCheckResult, CommandError> {
    match dir.join("pages.jsonl").is_file() {
        true => report.print(dir),
        false => Ok(FaultCheckResult::NotFailing),
    }
}
