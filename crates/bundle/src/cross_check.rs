//! Compares the statements of different files about the same capture, record or page.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crawl_archive::rows::{PageRow, RequestRow};
use crawl_archive::{CAPTURES, FOLDER, INDEX};

use crate::cross_check_sorter::{CrossCheckSorter, CrossCheckStatement, FACTS, fact, key, number};
use crate::verification_result::VerificationResult;

/// The kinds of subjects that statements are about: a record (by its position in the archive), an
/// exchange (by URL and time), an archived payload (by URL and time), or a page (by URL).
const PLACE: u8 = 1;
const EXCHANGE: u8 = 2;
const PAYLOAD: u8 = 3;
const PAGE: u8 = 4;

/// The kinds of statements ([`CrossCheckStatement::kind`]): which record, line or row makes the
/// statement. The statements about one subject are sorted by kind, and compared with the first one.
const CAPTURE: u8 = 0;
const LOG_LINE: u8 = 1;
const INDEX_LINE: u8 = 2;
const PAGE_ROW: u8 = 3;
const NEEDS_ROW: u8 = 4;
const REQUEST_ROW: u8 = 5;
const ANSWERED_ROW: u8 = 6;
const ANSWERED_RECORD: u8 = 7;
const ARCHIVED: u8 = 8;
const REVISIT: u8 = 9;
const PAGE_URL: u8 = 10;
const LINK_SOURCE: u8 = 11;

/// Indices in `facts` of a statement about a record. A line of the capture log or of the index
/// states only `LINE`.
const LINE: usize = 0;
const URL: usize = 1;
const TIME: usize = 2;
const DIGEST: usize = 3;
const LENGTH: usize = 4;
const TOOK: usize = 5;
const DEPTH: usize = 6;
const VIA: usize = 7;
const STATUS: usize = 8;
const REDIRECT: usize = 9;
const WITHHELD: usize = 10;
/// Columns of `pages.jsonl` whose values are also in the archive, with the indices of their facts.
const COLUMNS: [(usize, &str); 10] = [
    (URL, "url"),
    (TIME, "fetched_at"),
    (DIGEST, "digest"),
    (LENGTH, "bytes"),
    (TOOK, "ms"),
    (DEPTH, "depth"),
    (VIA, "via"),
    (STATUS, "status"),
    (REDIRECT, "redirect"),
    (WITHHELD, "withheld"),
];
/// The text to hash in place of a null. Used in columns in which a null contradicts any value.
const NULL: &[u8] = b"null";
/// The index of the only fact of a statement about an exchange (its status) or about a payload (its
/// digest).
const ONLY: usize = 0;

/// The facts about a capture that are in its WARC records.
#[derive(Clone, Debug, Default)]
pub(crate) struct CaptureWarcFields {
    pub(crate) offset: u64,
    pub(crate) url: String,
    /// `WARC-Date` in microseconds since 1970 UTC.
    pub(crate) micros: u64,
    /// The line that the index must have for this capture.
    pub(crate) line: String,
    pub(crate) status: Option<u16>,
    /// The payload digest in the record. `None` if the record has no payload digest, or if the body
    /// was withheld.
    pub(crate) digest: Option<String>,
    /// The length of the body in bytes. `None` if the record has no body, because the capture is a
    /// revisit or the body was withheld.
    pub(crate) bytes: Option<u64>,
    /// For a revisit: the URL of the original capture, and its time in microseconds since 1970 UTC.
    pub(crate) original: Option<(String, u64)>,
    pub(crate) is_revisit: bool,
    /// True if the body was received but not archived, because the site requested it.
    pub(crate) is_withheld: bool,
    /// The target of a redirect; `Some(None)` if the response is not a redirect; `None` if the
    /// record doesn't contain the response header.
    pub(crate) redirect: Option<Option<String>>,
    pub(crate) about: Option<MetadataRecordFields>,
}

/// The facts about a capture that are in its metadata record.
#[derive(Clone, Debug, Default)]
pub(crate) struct MetadataRecordFields {
    pub(crate) took_ms: Option<u64>,
    /// The depth of the page; `None` if the capture isn't a page.
    pub(crate) depth: Option<u64>,
    pub(crate) via: Option<String>,
    /// True if a row of `pages.jsonl` must refer to the capture. False for captures of sitemaps,
    /// which may have no row.
    pub(crate) has_row: bool,
}

/// Collects statements about records, exchanges, payloads and pages. After adding statements, call
/// [`CrossCheck::finish`] to compare them.
pub(crate) struct CrossCheck {
    statements: CrossCheckSorter,
    files: Vec<String>,
    archive: PathBuf,
    /// The names of WARC files that were looked up with [`CrossCheck::has_file`] and exist.
    existing_files: BTreeSet<String>,
    /// True if pages or hosts of the crawl were erased with `crawl forget`.
    has_tombstones: bool,
}

impl CrossCheck {
    pub(crate) fn new(dir: &Path, scratch: &Path) -> CrossCheck {
        CrossCheck {
            statements: CrossCheckSorter::new(scratch),
            files: Vec::new(),
            archive: dir.join(FOLDER),
            existing_files: BTreeSet::new(),
            has_tombstones: dir.join("tombstones.jsonl").exists(),
        }
    }

    /// Returns true if the archive contains a WARC file of this name.
    pub(crate) fn has_file(&mut self, name: &str) -> bool {
        if self.existing_files.contains(name) {
            return true;
        }
        let exists = !name.contains('/') && self.archive.join(name).symlink_metadata().is_ok();
        if exists {
            self.existing_files.insert(name.to_owned());
        }
        exists
    }

    /// Returns true if a row or a capture list refers to an existing WARC file `name`.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.existing_files.contains(name)
    }

    /// Returns the number by which statements identify a file. `name` is its path relative to the
    /// directory.
    pub(crate) fn file(&mut self, name: &str) -> u32 {
        let position = self.files.iter().rposition(|file| file == name);
        let number = position.unwrap_or_else(|| {
            self.files.push(name.to_owned());
            self.files.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    fn add(&mut self, key: u128, kind: u8, at: (u32, u64), facts: [u32; FACTS]) -> io::Result<()> {
        self.statements.add(&CrossCheckStatement {
            key,
            kind,
            file: at.0,
            place: at.1,
            facts,
        })
    }

    /// Adds a capture found in the WARC file `name`.
    pub(crate) fn capture(&mut self, name: &str, capture: &CaptureWarcFields) -> io::Result<()> {
        let at = (self.file(&format!("{FOLDER}/{name}")), capture.offset);
        let millis = capture.micros / 1000;
        let mut facts = [0; FACTS];
        facts[LINE] = fact(capture.line.as_bytes());
        facts[URL] = fact(capture.url.as_bytes());
        facts[TIME] = number(millis);
        facts[DIGEST] = optional(capture.digest.as_deref());
        facts[LENGTH] = capture.bytes.map_or(0, number);
        facts[STATUS] = capture.status.map_or(0, |status| number(status.into()));
        facts[WITHHELD] = number(capture.is_withheld.into());
        if let Some(target) = &capture.redirect {
            facts[REDIRECT] = or_null(target.as_deref());
        }
        let has_row = capture.about.as_ref().is_some_and(|about| about.has_row);
        if let Some(about) = &capture.about {
            facts[TOOK] = about.took_ms.map_or(0, number);
            facts[DEPTH] = about.depth.map_or(0, number);
            facts[VIA] = fact(about.via.as_deref().unwrap_or_default().as_bytes());
        }
        let key = place_key(name, capture.offset);
        self.add(key, CAPTURE, at, facts)?;
        if has_row {
            self.add(key, NEEDS_ROW, at, [0; FACTS])?;
        }
        let status = only(capture.status.map_or(0, |status| number(status.into())));
        self.add(
            exchange_key(&capture.url, millis),
            ANSWERED_RECORD,
            at,
            status,
        )?;
        let digest = only(optional(capture.digest.as_deref()));
        match &capture.original {
            Some((url, micros)) => self.add(payload_key(url, *micros), REVISIT, at, digest),
            None if capture.is_revisit => Ok(()),
            None => self.add(
                payload_key(&capture.url, capture.micros),
                ARCHIVED,
                at,
                digest,
            ),
        }
    }

    /// Adds a screenshot found in the WARC file `name`, with the line that the index must have.
    pub(crate) fn screenshot(&mut self, name: &str, offset: u64, line: &str) -> io::Result<()> {
        let at = (self.file(&format!("{FOLDER}/{name}")), offset);
        let mut facts = [0; FACTS];
        facts[LINE] = fact(line.as_bytes());
        self.add(place_key(name, offset), CAPTURE, at, facts)
    }

    /// Adds a line of the capture log.
    pub(crate) fn log_line(&mut self, place: (&str, u64), line: u64, text: &str) -> io::Result<()> {
        self.line_of(LOG_LINE, CAPTURES, place, line, text)
    }

    /// Adds a line of the index.
    pub(crate) fn index_line(
        &mut self,
        place: (&str, u64),
        line: u64,
        text: &str,
    ) -> io::Result<()> {
        self.line_of(INDEX_LINE, INDEX, place, line, text)
    }

    fn line_of(
        &mut self,
        kind: u8,
        list: &str,
        (name, offset): (&str, u64),
        line: u64,
        text: &str,
    ) -> io::Result<()> {
        let at = (self.file(&format!("{FOLDER}/{list}")), line);
        let mut facts = [0; FACTS];
        facts[LINE] = fact(text.as_bytes());
        self.add(place_key(name, offset), kind, at, facts)
    }

    /// Adds a row of `pages.jsonl`.
    pub(crate) fn page(
        &mut self,
        line: u64,
        row: &PageRow,
        verification: &mut VerificationResult,
    ) -> io::Result<()> {
        let at = (self.file("pages.jsonl"), line);
        let millis = row.fetched_at.as_millis();
        if let Some(place) = &row.warc
            && !self.has_file(&place.file)
        {
            verification.line("pages.jsonl", line, no_file(&place.file));
        } else if let Some(place) = &row.warc {
            let is_withheld = row.is_body_omitted();
            let mut facts = [0; FACTS];
            facts[URL] = fact(row.url.as_bytes());
            facts[TIME] = number(millis);
            if !is_withheld {
                facts[DIGEST] = or_null(row.digest.as_deref());
                facts[LENGTH] = number(row.bytes);
            }
            facts[STATUS] = row
                .status
                .map_or(fact(NULL), |status| number(status.into()));
            // If the withheld body was empty, the archive doesn't show whether it was withheld.
            facts[WITHHELD] = match is_withheld && row.bytes == 0 {
                true => 0,
                false => number(is_withheld.into()),
            };
            // The row of a redirect may lack the target if the row has an error, such as
            // `too_many_redirects`, or if `crawl forget` erased the target.
            facts[REDIRECT] = match &row.redirect {
                None if row.error.is_some() || self.has_tombstones => 0,
                target => or_null(target.as_deref()),
            };
            facts[TOOK] = number(row.ms);
            facts[DEPTH] = number(row.depth.into());
            facts[VIA] = fact(row.via.as_deref().unwrap_or_default().as_bytes());
            self.add(place_key(&place.file, place.offset), PAGE_ROW, at, facts)?;
        }
        if let Some(status) = row.status {
            let status = only(number(status.into()));
            self.add(exchange_key(&row.url, millis), ANSWERED_ROW, at, status)?;
        }
        self.add(key(PAGE, &[row.url.as_bytes()]), PAGE_URL, at, [0; FACTS])
    }

    /// Adds a row of `requests.jsonl`.
    pub(crate) fn request(&mut self, line: u64, row: &RequestRow) -> io::Result<()> {
        let at = (self.file("requests.jsonl"), line);
        let status = only(row.status.map_or(0, |status| number(status.into())));
        self.add(exchange_key(&row.url, row.start), REQUEST_ROW, at, status)
    }

    /// Adds a row that is valid only if `pages.jsonl` has a row for the URL `from`. For example, a
    /// link is valid only if the page that contains it has a row. Of consecutive rows with the same
    /// URL, only the first needs to be added.
    pub(crate) fn source(&mut self, file: &str, line: u64, from: &str) -> io::Result<()> {
        let at = (self.file(file), line);
        self.add(key(PAGE, &[from.as_bytes()]), LINK_SOURCE, at, [0; FACTS])
    }

    /// Compares all statements. Unless `is_ended`, a statement without a counterpart is not a
    /// defect, because the counterpart may not be committed yet.
    pub(crate) fn finish(
        self,
        is_ended: bool,
        verification: &mut VerificationResult,
    ) -> io::Result<()> {
        let mut groups = SubjectCheck {
            files: &self.files,
            is_ended,
            verification,
            uncommitted: 0,
        };
        self.statements.each_group(|group| groups.judge(group))?;
        let uncommitted = groups.uncommitted;
        if uncommitted > 0 {
            verification.notes.push(format!(
                "{uncommitted} entries have no counterpart: the last run has not ended, and the \
                 next start removes what was not committed"
            ));
        }
        Ok(())
    }
}

/// Returns the message for a row that names a missing WARC file. This is always a defect, because a
/// file is created before rows that name it are committed.
pub(crate) fn no_file(name: &str) -> String {
    format!("names a record of {FOLDER}/{name}, which is missing")
}

fn place_key(name: &str, offset: u64) -> u128 {
    key(PLACE, &[name.as_bytes(), &offset.to_le_bytes()])
}

fn exchange_key(url: &str, millis: u64) -> u128 {
    key(EXCHANGE, &[url.as_bytes(), &millis.to_le_bytes()])
}

fn payload_key(url: &str, micros: u64) -> u128 {
    key(PAYLOAD, &[url.as_bytes(), &micros.to_le_bytes()])
}

fn only(fact: u32) -> [u32; FACTS] {
    let mut facts = [0; FACTS];
    facts[ONLY] = fact;
    facts
}

/// Converts a value to a fact. `None` becomes the fact of [`NULL`].
fn or_null(value: Option<&str>) -> u32 {
    fact(value.map_or(NULL, str::as_bytes))
}

fn optional(value: Option<&str>) -> u32 {
    value.map_or(0, |value| fact(value.as_bytes()))
}

/// Returns true if both statements contain the fact with index `at` and the facts differ.
fn differ(one: &CrossCheckStatement, other: &CrossCheckStatement, at: usize) -> bool {
    let (one, other) = (one.facts[at], other.facts[at]);
    one != 0 && other != 0 && one != other
}

struct SubjectCheck<'a> {
    files: &'a [String],
    /// True if the last run has ended, so everything in the files is committed.
    is_ended: bool,
    verification: &'a mut VerificationResult,
    uncommitted: u64,
}

impl SubjectCheck<'_> {
    /// Compares all statements about one subject.
    fn judge(&mut self, group: &[CrossCheckStatement]) {
        match group.first().map(|first| first.kind) {
            Some(CAPTURE..=NEEDS_ROW) => self.place(group),
            Some(REQUEST_ROW..=ANSWERED_RECORD) => self.exchange(group),
            Some(ARCHIVED | REVISIT) => self.payload(group),
            _ => self.page(group),
        }
    }

    fn place(&mut self, group: &[CrossCheckStatement]) {
        let [first, others @ ..] = group else { return };
        if first.kind != CAPTURE {
            for other in group {
                self.missing(other, "no response or revisit record begins at this offset");
            }
            return;
        }
        let mut seen = [0_u32; 5];
        for other in others {
            let count = &mut seen[usize::from(other.kind.min(NEEDS_ROW))];
            *count += 1;
            let is_second = *count > 1;
            match other.kind {
                PAGE_ROW => {
                    let wrong = COLUMNS.iter().find(|(at, _)| differ(first, other, *at));
                    if let Some((_, column)) = wrong {
                        let record = self.location(first);
                        self.wrong(other, format!("column `{column}` differs from {record}"));
                    }
                }
                LOG_LINE | INDEX_LINE if differ(first, other, LINE) => {
                    let record = self.location(first);
                    self.wrong(other, format!("not the line of {record}"));
                }
                _ => {}
            }
            if is_second {
                self.wrong(
                    other,
                    "another line of this file names the same record".to_owned(),
                );
            }
        }
        if seen[usize::from(NEEDS_ROW)] > 0 && seen[usize::from(PAGE_ROW)] == 0 {
            self.missing(first, "no row of pages.jsonl names this record of a page");
        }
        if seen[usize::from(LOG_LINE)] == 0 {
            self.missing(first, "no line of archive/captures.cdxj names this record");
        }
        if seen[usize::from(INDEX_LINE)] == 0 {
            self.missing(first, "no line of archive/index.cdxj names this record");
        }
    }

    fn exchange(&mut self, group: &[CrossCheckStatement]) {
        let [first, others @ ..] = group else { return };
        if first.kind != REQUEST_ROW {
            for other in group {
                let message = "requests.jsonl has no row for this URL at this time";
                self.missing(other, message);
            }
            return;
        }
        for other in others {
            let has_same = |request: &&CrossCheckStatement| {
                request.kind == REQUEST_ROW && !differ(request, other, ONLY)
            };
            if other.kind != REQUEST_ROW && group.iter().find(has_same).is_none() {
                let row = self.location(first);
                self.wrong(other, format!("its status differs from {row}"));
            }
        }
    }

    fn payload(&mut self, group: &[CrossCheckStatement]) {
        let [first, others @ ..] = group else { return };
        if first.kind != ARCHIVED {
            for other in group {
                self.missing(
                    other,
                    "the archive has no record with the payload that this one revisits",
                );
            }
            return;
        }
        for other in others {
            if other.kind == REVISIT && differ(first, other, ONLY) {
                let record = self.location(first);
                self.wrong(
                    other,
                    format!("its digest differs from {record}, which it revisits"),
                );
            }
        }
    }

    fn page(&mut self, group: &[CrossCheckStatement]) {
        if let Some(first) = group.first().filter(|first| first.kind == LINK_SOURCE) {
            self.missing(first, "pages.jsonl has no row for the page with this link");
        }
    }

    /// Reports that a statement has no counterpart in another file. While the run has not ended,
    /// only counts such statements.
    fn missing(&mut self, statement: &CrossCheckStatement, what: &str) {
        match statement.kind {
            _ if !self.is_ended => self.uncommitted += 1,
            _ => self.wrong(statement, what.to_owned()),
        }
    }

    fn wrong(&mut self, statement: &CrossCheckStatement, what: String) {
        let file = self.files.get(statement.file as usize);
        let file = file.map_or("", String::as_str);
        match statement.kind {
            CAPTURE | NEEDS_ROW | ANSWERED_RECORD | ARCHIVED | REVISIT => {
                self.verification.record(file, statement.place, what);
            }
            _ => self.verification.line(file, statement.place, what),
        }
    }

    /// Returns the location of a statement for a message: its file, and the line or offset.
    fn location(&self, statement: &CrossCheckStatement) -> String {
        let file = self.files.get(statement.file as usize);
        let file = file.map_or("", String::as_str);
        match statement.kind {
            CAPTURE | NEEDS_ROW | ANSWERED_RECORD | ARCHIVED | REVISIT => {
                format!("the record at offset {} of {file}", statement.place)
            }
            _ => format!("line {} of {file}", statement.place),
        }
    }
}
