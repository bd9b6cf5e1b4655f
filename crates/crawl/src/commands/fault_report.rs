//! Prints the faults of a crawl in one of several formats, for `crawl report` and `crawl check`.

use std::path::Path;

use crawl_records::{FaultBaseline, FaultKind, RecordsError};

use crate::cli::report::FaultFormat;
use crate::error::CommandError;
use crate::error::records::of_records;
use crate::input_file_reader::unreadable;
use crate::output_file::write_file;
use crate::terminal::{print, print_as_is, print_json};

/// Options of a fault report: format, kinds of faults, and baselines.
pub(super) struct FaultReportOptions<'a> {
    format: FaultFormat,
    kinds: &'a [FaultKind],
    baseline: Option<FaultBaseline>,
    write_baseline: Option<&'a Path>,
}

/// Whether the listed faults make a check fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultCheckResult {
    /// At least one fault makes a check fail.
    Failing,
    /// No fault makes a check fail, or the faults were only written to a baseline.
    NotFailing,
}

impl<'a> FaultReportOptions<'a> {
    /// Prepares a report. An empty list of kinds selects all kinds. Reads the baseline now, so that
    /// an unreadable one is reported before any slow work.
    pub(super) fn new(
        format: FaultFormat,
        kinds: &'a [FaultKind],
        baseline: Option<&Path>,
        write_baseline: Option<&'a Path>,
    ) -> Result<FaultReportOptions<'a>, CommandError> {
        let baseline = baseline.map(FaultBaseline::read).transpose();
        let baseline = baseline.map_err(|why| match why {
            RecordsError::Io { path, source } => unreadable(&path, &source),
            why => of_records(why),
        });
        Ok(FaultReportOptions {
            format,
            kinds,
            baseline: baseline?,
            write_baseline,
        })
    }

    /// Prints the faults of the crawl in `dir` to stdout.
    pub(super) fn print(&self, dir: &Path) -> Result<FaultCheckResult, CommandError> {
        let kinds = match self.kinds {
            [] => &FaultKind::ALL[..],
            kinds => kinds,
        };
        let mut faults = crawl_records::faults(dir, kinds).map_err(of_records)?;
        if !self.kinds.is_empty() {
            faults.unchecked.clear();
        }
        if let Some(path) = self.write_baseline {
            write_file(path, faults.json_lines())?;
        }
        if let Some(baseline) = &self.baseline {
            faults.leave_out(baseline);
        }
        match self.format {
            FaultFormat::Text => print(faults.to_string().as_bytes()),
            FaultFormat::Json => print_json(&faults),
            FaultFormat::Csv => print_as_is(faults.csv().as_bytes()),
            FaultFormat::Jsonl => print(faults.json_lines().as_bytes()),
            FaultFormat::Junit => print(faults.junit().as_bytes()),
            FaultFormat::Github => print(faults.github().as_bytes()),
            FaultFormat::Html => print(faults.html().as_bytes()),
        }?;
        let failing = match self.kinds {
            [] => faults.failing(),
            // If the user named the kinds with --kinds, listed redirects make a check fail too.
            _ => faults.faults.len(),
        };
        Ok(match failing > 0 && self.write_baseline.is_none() {
            true => FaultCheckResult::Failing,
            false => FaultCheckResult::NotFailing,
        })
    }
}
