//! The results of a verification.

use std::fmt;

use crawl_records::{counted, size};
use crawl_weburl::safe_line;
use serde::Serialize;

/// Maximum defects that `crawl verify` lists individually.
/// Beyond the limit: a count.
const MAX_FINDINGS: usize = 1000;

/// The result of checking a crawl directory or a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerificationResult {
    /// True if the last run has ended. Otherwise, data after the last commit is not a defect, and
    /// the report is not compared with the rows.
    pub is_ended: bool,
    /// The number of checked items of each kind.
    pub checked: CheckedItemCounts,
    /// The number of defects.
    pub defects: u64,
    /// The first 1,000 defects.
    pub findings: Vec<VerificationDefect>,
    /// Notes for the user that are not defects.
    pub notes: Vec<String>,
    /// The parts of the directory that no check covers, so changes to them can't be detected.
    pub unchecked: Vec<&'static str>,
}

/// The number of checked items of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CheckedItemCounts {
    /// The number of files whose digests were checked.
    pub files: u64,
    /// Total size of the `files`, in bytes.
    pub bytes: u64,
    /// The number of WARC files that were read.
    pub warc_files: u64,
    /// The number of WARC records that were read.
    pub records: u64,
    /// The number of lines of `archive/index.cdxj`.
    pub index_lines: u64,
    /// The number of rows in all row files.
    pub rows: u64,
    /// The number of values in `report.json`.
    pub report_values: u64,
}

/// A defect in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerificationDefect {
    /// The path of the file, relative to the checked directory.
    pub file: String,
    /// The line in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The byte offset of the record in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// A description of the defect.
    pub what: String,
}

impl VerificationResult {
    pub(crate) fn add(&mut self, finding: VerificationDefect) {
        self.defects += 1;
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        }
    }

    pub(crate) fn file(&mut self, file: &str, what: impl Into<String>) {
        self.add(VerificationDefect {
            file: file.to_owned(),
            line: None,
            offset: None,
            what: what.into(),
        });
    }

    pub(crate) fn line(&mut self, file: &str, line: u64, what: impl Into<String>) {
        self.add(VerificationDefect {
            file: file.to_owned(),
            line: Some(line),
            offset: None,
            what: what.into(),
        });
    }

    pub(crate) fn record(&mut self, file: &str, offset: u64, what: impl Into<String>) {
        self.add(VerificationDefect {
            file: file.to_owned(),
            line: None,
            offset: Some(offset),
            what: what.into(),
        });
    }

    /// Returns true if no defects were found.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.defects == 0
    }
}

impl fmt::Display for VerificationDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", safe_line(&self.file))?;
        if let Some(line) = self.line {
            write!(f, " line {line}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, " offset {offset}")?;
        }
        // File names and texts may come from a crawled site, so escape them for display.
        write!(f, ": {}", safe_line(&self.what))
    }
}

impl fmt::Display for VerificationResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checked = &self.checked;
        if checked.files > 0 {
            let files = counted(checked.files, "file", "files");
            writeln!(f, "digests    {files} of {}", size(checked.bytes))?;
        }
        // Leave out these lines if the rows were not checked, as when a file of the bundle doesn't
        // match its digest.
        if checked.files == 0 || checked.rows > 0 {
            let files = counted(checked.warc_files, "WARC file", "WARC files");
            let records = counted(checked.records, "record", "records");
            writeln!(f, "archive    {records} in {files}")?;
            let lines = counted(checked.index_lines, "line", "lines");
            writeln!(f, "index      {lines}")?;
            writeln!(f, "rows       {}", counted(checked.rows, "row", "rows"))?;
            let values = counted(checked.report_values, "value", "values");
            writeln!(f, "report     {values}")?;
        }
        for note in &self.notes {
            writeln!(f, "note       {note}")?;
        }
        for what in &self.unchecked {
            writeln!(f, "unchecked  {what}")?;
        }
        match self.defects {
            0 => writeln!(f, "defects    none"),
            defects => {
                writeln!(f, "defects    {defects}")?;
                self.findings
                    .iter()
                    .try_for_each(|finding| writeln!(f, "  {finding}"))?;
                match defects - self.findings.len() as u64 {
                    0 => Ok(()),
                    more => writeln!(f, "  and {more} more"),
                }
            }
        }
    }
}
