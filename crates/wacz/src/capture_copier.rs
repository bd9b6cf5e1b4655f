//! Copies records from the crawl's WARC files to files in the package.
//!
//! The package always has gzip members, because ReplayWeb.page doesn't read Zstandard. So records
//! from files with another compression are compressed again, and their files have other names.

use std::collections::HashMap;
use std::io::{self, BufReader, Read as _, Write};
use std::path::Path;
use std::sync::Arc;

use crawl_archive::{
    CaptureLine, CaptureLogReader, ReadError, WarcCompression, WarcReader, WarcRecord,
    archive_file, open_regular, strip_warc_suffix,
};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::capture_rounds::CaptureRounds;
use crate::earlier_wacz::EarlierWaczFiles;
use crate::error::WaczError;
use crate::original_captures::referred_to;
use crate::zip_file_writer::ZipFileWriter;

/// Copies the records that belong in the package, and writes an index line for each copied capture.
pub(crate) struct CaptureCopier<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) rounds: &'a CaptureRounds,
    /// The round of the last capture that was read. Initially `None`.
    pub(crate) round: Option<u32>,
    pub(crate) earlier: &'a mut EarlierWaczFiles,
    /// The path of the package, for error messages.
    pub(crate) out: &'a Path,
}

/// The counts of copied records, and the damage that was found in the WARC files.
#[derive(Debug, Default)]
pub(crate) struct CaptureCopyReport {
    /// The number of captures in the package's index.
    pub(crate) captures: u64,
    /// The number of WARC files in the package.
    pub(crate) files: u64,
    /// The number of revisits whose payload is in an earlier round.
    pub(crate) revisits_of_earlier: u64,
    /// How many of the revisits in `revisits_of_earlier` don't name the file with their payload.
    pub(crate) without_container: u64,
    /// Descriptions of the records that could not be read.
    pub(crate) damages: Vec<String>,
    /// The offset up to which each WARC file was read, by file name. Records at later offsets are
    /// not in the package.
    ends: HashMap<Arc<str>, u64>,
}

impl CaptureCopyReport {
    /// Returns true if the WARC file was read beyond the start of the given record. If the record's
    /// round is packaged, the package contains the record.
    pub(crate) fn reached(&self, file: &str, offset: u64) -> bool {
        self.ends.get(file).is_some_and(|end| offset < *end)
    }
}

impl CaptureCopier<'_> {
    /// Copies WARC files in the order of the capture log. A capture is included only if the log has
    /// its line and the WARC file has its complete record. If the crawl was killed, the log may
    /// contain captures that the WARC file lacks, and vice versa.
    pub(crate) fn copy(
        &mut self,
        zip: &mut ZipFileWriter,
        index: &mut impl Write,
    ) -> Result<CaptureCopyReport, WaczError> {
        let mut copied = CaptureCopyReport::default();
        let log_failed = WaczError::read(self.dir);
        let log = CaptureLogReader::open(self.dir).map_err(&log_failed)?;
        let Some(mut log) = log else {
            return Ok(copied);
        };
        let mut next = log.next_capture().map_err(&log_failed)?;
        while let Some(first) = next.take() {
            let name = Arc::clone(&first.file);
            let mut lines = CaptureLinesOfFile {
                log: &mut log,
                next: Some(first),
                name: Arc::clone(&name),
            };
            self.file(&mut lines, zip, index, &mut copied)?;
            next = lines.rest().map_err(&log_failed)?;
        }
        Ok(copied)
    }

    fn file(
        &mut self,
        lines: &mut CaptureLinesOfFile<'_>,
        zip: &mut ZipFileWriter,
        index: &mut impl Write,
        copied: &mut CaptureCopyReport,
    ) -> Result<(), WaczError> {
        let name = Arc::clone(&lines.name);
        let path = archive_file(self.dir, &name)?;
        let unreadable = WaczError::read(&path);
        let unwritable = WaczError::write(self.out);
        let mut bytes = BufReader::new(open_regular(&path).map_err(&unreadable)?);
        let mut at = 0;
        let mut warcinfo = None;
        let mut is_begun = false;
        let target: Arc<str> = match strip_warc_suffix(&name) {
            Some(stem) => format!("{stem}{}", WarcCompression::Gzip.suffix()).into(),
            None => Arc::clone(&name),
        };
        let is_copied = target == name;
        let damages = copied.damages.len();
        for record in WarcReader::open(&path)? {
            let record = match record {
                Ok(record) => record,
                Err(error @ ReadError::Io { .. }) => return Err(error.into()),
                // Skip the damaged record. If it is only too long, reading continues with the next
                // record. After other damage, the reader ends.
                Err(error) => {
                    copied.damages.push(error.to_string());
                    continue;
                }
            };
            let is_capture = matches!(record.kind(), "response" | "revisit" | "resource");
            let line = match is_capture {
                true => lines.at(record.offset).map_err(&unreadable)?,
                false => None,
            };
            if is_capture && line.is_none() && !lines.has_more() {
                // The log has no lines for the rest of the file, because the crawl was killed or is
                // still running. Leave these records out.
                break;
            }
            copied
                .ends
                .insert(Arc::clone(&name), record.offset + record.length);
            if record.kind() == "warcinfo" {
                warcinfo = Some(record);
                continue;
            }
            // The other records of a capture follow its response.
            if matches!(record.kind(), "response" | "revisit") {
                self.round = self.rounds.of(&name, record.offset, self.round);
            }
            let is_packaged = self.round.is_none_or(|round| self.rounds.includes(round));
            if !is_packaged || record.date().is_none() {
                continue;
            }
            if !is_begun {
                is_begun = true;
                copied.files += 1;
                zip.begin_stored(&format!("archive/{target}"))
                    .map_err(&unwritable)?;
            }
            let container = self.container(&record, copied);
            let mut copy = |record: &WarcRecord, container: Option<&str>| {
                let member = match is_copied && container.is_none() {
                    true => member(&mut bytes, &mut at, record.offset, record.length),
                    false => member_again(record, &target, container),
                };
                let member = member.map_err(&unreadable)?;
                let offset = zip.entry_bytes();
                zip.write_all(&member).map_err(&unwritable)?;
                Ok::<_, WaczError>((offset, member.len() as u64))
            };
            if let Some(record) = warcinfo.take() {
                copy(&record, None)?;
            }
            let (offset, length) = copy(&record, container.as_deref())?;
            if let Some(mut line) = line {
                line.file = Arc::clone(&target);
                let line = line.moved_to(offset, length);
                index.write_all(line.as_bytes()).map_err(&unwritable)?;
                copied.captures += 1;
            }
        }
        // Report a file that ends too early, unless damage to it was already reported.
        if copied.damages.len() == damages
            && let Some(line) = lines.next.as_ref().filter(|line| line.file == name)
        {
            copied.damages.push(format!(
                "{}: it ends before the capture at byte {}, which the log of captures has",
                path.display(),
                line.offset
            ));
        }
        Ok(())
    }

    /// Returns the reference to the WACZ file that contains the payload of a revisit, and counts
    /// the revisit if its payload is in an earlier round. `None` if the payload is in this package,
    /// or in none of the given WACZ files.
    fn container(&mut self, record: &WarcRecord, copied: &mut CaptureCopyReport) -> Option<String> {
        if record.kind() != "revisit" || !self.rounds.is_limited() {
            return None;
        }
        let (url, date) = referred_to(record)?;
        let round = self.rounds.of_visit(url, date);
        if round.is_some_and(|round| self.rounds.includes(round)) {
            return None;
        }
        copied.revisits_of_earlier += 1;
        let name = round.and_then(|round| self.earlier.with(round));
        copied.without_container += u64::from(name.is_none());
        name.map(|name| format!("file://{name}"))
    }
}

/// Reads those lines of the capture log that belong to one WARC file.
struct CaptureLinesOfFile<'a> {
    log: &'a mut CaptureLogReader,
    /// The next line of the log, which may belong to another WARC file; `None` at the end of the
    /// log.
    next: Option<CaptureLine>,
    name: Arc<str>,
}

impl CaptureLinesOfFile<'_> {
    /// Returns the log's line for the capture at `offset`. Skips lines with smaller offsets.
    fn at(&mut self, offset: u64) -> io::Result<Option<CaptureLine>> {
        while self.has_more()
            && let Some(line) = self.next.take_if(|line| line.offset <= offset)
        {
            self.next = self.log.next_capture()?;
            if line.offset == offset {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    /// Returns true if the log's next line belongs to this WARC file.
    fn has_more(&self) -> bool {
        self.next
            .as_ref()
            .is_some_and(|line| line.file == self.name)
    }

    /// Skips the remaining lines of this WARC file and returns the first line of the next one.
    fn rest(mut self) -> io::Result<Option<CaptureLine>> {
        while self.has_more() {
            self.next = self.log.next_capture()?;
        }
        Ok(self.next)
    }
}

/// Reads the gzip member at `offset`. `at` is the position of `input`, and is updated.
fn member(
    input: &mut BufReader<impl io::Read + io::Seek>,
    at: &mut u64,
    offset: u64,
    length: u64,
) -> io::Result<Vec<u8>> {
    let ahead = i64::try_from(offset.wrapping_sub(*at)).unwrap_or(0);
    input.seek_relative(ahead)?;
    let mut member = Vec::new();
    input.take(length).read_to_end(&mut member)?;
    *at = offset + member.len() as u64;
    Ok(member)
}

/// Compresses a record to a gzip member for the file `target`. `container` becomes an additional
/// field: the WACZ file with the payload of a revisit.
fn member_again(record: &WarcRecord, target: &str, container: Option<&str>) -> io::Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(b"WARC/1.1\r\n")?;
    for (name, value) in &record.fields {
        let value = match &**name {
            "WARC-Filename" => target,
            _ => value,
        };
        write!(gzip, "{name}: {value}\r\n")?;
    }
    if let Some(container) = container {
        write!(gzip, "WARC-Refers-To-Container: {container}\r\n")?;
    }
    gzip.write_all(b"\r\n")?;
    gzip.write_all(&record.block)?;
    gzip.write_all(b"\r\n\r\n")?;
    gzip.finish()
}
