//! Checks the WARC files, the capture log and the index: every record, digest and length.

use std::fs;
use std::io::{self, BufReader, ErrorKind, Read as _};
use std::path::Path;

use crawl_archive::{
    BoundedLineResult, CAPTURES, CaptureLine, FOLDER, HttpMessage, INDEX, LineReader,
    MAX_LINE_BYTES, ReadError, Timestamp, WarcReader, WarcRecord, ZSTD_MAGIC, index_line,
    is_of_archive, open_regular, strip_warc_suffix,
};
use crawl_weburl::{canonicalize, location_target};

use crate::cross_check::{CaptureWarcFields, CrossCheck, MetadataRecordFields, no_file};
use crate::error::{VerificationRunError, is_damage};
use crate::verification_result::VerificationResult;

/// The first bytes of a gzip member as the crawler writes it: no name, no comment, no time. The
/// next two bytes depend on the compressor, so they are not compared.
const GZIP_HEAD: [u8; 8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0];
/// A mask for the byte after [`ZSTD_MAGIC`], and the expected result. The mask drops the bits that
/// depend on the record's length. The crawler writes zstd frames with a checksum and without a
/// dictionary.
const ZSTD_FLAGS: (u8, u8) = (0b0001_1111, 0b0000_0100);

/// Returns the sorted names of a crawl's WARC files. Ignores files of other programs in the folder.
pub(crate) fn warc_names(dir: &Path) -> Result<Vec<String>, VerificationRunError> {
    let folder = dir.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Err(error) if is_damage(&error) => return Ok(Vec::new()),
        entries => entries.map_err(VerificationRunError::read(&folder))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(VerificationRunError::read(&folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_of_archive(&name) && strip_warc_suffix(&name).is_some() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Checks each record of a WARC file, and adds each capture to `cross` for comparison with other
/// files. `is_tail` is true for the last file of a run that has not ended.
pub(crate) fn check_warc(
    dir: &Path,
    name: &str,
    is_tail: bool,
    cross: &mut CrossCheck,
    verification: &mut VerificationResult,
) -> Result<(), VerificationRunError> {
    let path = dir.join(FOLDER).join(name);
    let shown = format!("{FOLDER}/{name}");
    let mut heads = match RecordHeadReader::open(&path) {
        Err(error) if is_damage(&error) => {
            verification.file(&shown, format!("can't be read: {error}"));
            return Ok(());
        }
        heads => heads.map_err(VerificationRunError::read(&path))?,
    };
    let records =
        WarcReader::open(&path).map_err(|error| VerificationRunError::of(&path, error))?;
    verification.checked.warc_files += 1;
    let mut under_way: Option<UnfinishedCapture> = None;
    for record in records {
        let record = match record {
            Ok(record) => record,
            Err(error @ ReadError::Io { .. }) => {
                return Err(VerificationRunError::of(&path, error));
            }
            Err(error) => {
                torn(&shown, &error, is_tail, verification);
                continue;
            }
        };
        verification.checked.records += 1;
        let head = heads
            .at(record.offset)
            .map_err(VerificationRunError::read(&path))?;
        let mut wrong = |what: &str| verification.record(&shown, record.offset, what);
        if !is_usual_head(name, head) {
            wrong("its first bytes differ from those that the crawl writes");
        }
        if let Some(field) = record.wrong_digest() {
            wrong(&format!(
                "{field} is not the digest of the record's content"
            ));
        }
        let id = record.field("WARC-Record-ID").unwrap_or_default();
        match record.kind() {
            "response" | "revisit" => {
                let next = UnfinishedCapture::of(&record, name, id);
                if next.is_none() {
                    wrong("the URL or the date is missing");
                }
                if let Some(capture) = std::mem::replace(&mut under_way, next) {
                    hand_over(name, &capture, cross)?;
                }
            }
            "request" | "metadata" | "resource" => {
                let of = record.field("WARC-Concurrent-To").unwrap_or_default();
                match under_way.as_mut().filter(|capture| capture.id == of) {
                    None => wrong("the record that it belongs to does not precede it"),
                    Some(capture) if record.kind() == "metadata" => {
                        capture.facts.about = Some(about(&record));
                    }
                    Some(_) => {}
                }
                if let Some(line) = index_line(&record, name) {
                    let added = cross.screenshot(name, record.offset, &line);
                    added.map_err(VerificationRunError::Scratch)?;
                }
            }
            "warcinfo" if record.field("WARC-Filename") != Some(name) => {
                wrong("its WARC-Filename is a different name");
            }
            _ => {}
        }
    }
    match under_way {
        Some(capture) => hand_over(name, &capture, cross),
        None => Ok(()),
    }
}

fn hand_over(
    name: &str,
    capture: &UnfinishedCapture,
    cross: &mut CrossCheck,
) -> Result<(), VerificationRunError> {
    let result = cross.capture(name, &capture.facts);
    result.map_err(VerificationRunError::Scratch)
}

/// Reports a record that can't be read as a defect. If `is_tail`, only adds a note: the run was
/// killed or is still active, so the last record of the file may be incomplete.
fn torn(file: &str, error: &ReadError, is_tail: bool, verification: &mut VerificationResult) {
    let (offset, what) = match error {
        ReadError::Torn { offset, source, .. } => (
            *offset,
            format!("it is damaged ({source}); nothing after it was read"),
        ),
        ReadError::Malformed { offset, what, .. } => (
            *offset,
            format!("not a WARC record: {what}; nothing after it was read"),
        ),
        ReadError::TooLong { offset, bytes, .. } => (
            *offset,
            format!("a record of {bytes} bytes is too long to be read"),
        ),
        error => (0, error.to_string()),
    };
    match is_tail {
        true => verification
            .notes
            .push(format!("{file} offset {offset}: {what}")),
        false => verification.record(file, offset, what),
    }
}

/// A capture whose response or revisit record was read, but possibly not yet its metadata record.
struct UnfinishedCapture {
    id: String,
    facts: CaptureWarcFields,
}

impl UnfinishedCapture {
    fn of(record: &WarcRecord, name: &str, id: &str) -> Option<UnfinishedCapture> {
        let http = record.http();
        let redirect = http.as_ref().map(|http| redirect_target(record, http));
        let is_revisit = record.kind() == "revisit";
        // The crawler writes `unspecified` for a body withheld at the site's request, because WARC
        // has no value for that.
        let is_withheld = record.field("WARC-Truncated") == Some("unspecified");
        let digest = record.field("WARC-Payload-Digest");
        let body = http.as_ref().map(|http| http.body.len() as u64);
        let refers_to = |field: &str| record.field(&format!("WARC-Refers-To-{field}"));
        let date = refers_to("Date").and_then(Timestamp::parse);
        Some(UnfinishedCapture {
            id: id.to_owned(),
            facts: CaptureWarcFields {
                offset: record.offset,
                url: record.url()?.to_owned(),
                micros: record.date()?.as_micros(),
                line: index_line(record, name)?,
                status: http.and_then(|http| http.status()),
                digest: digest.filter(|_| !is_withheld).map(str::to_owned),
                bytes: body.filter(|_| !is_revisit && !is_withheld),
                original: refers_to("Target-URI")
                    .zip(date)
                    .map(|(url, date)| (url.to_owned(), date.as_micros())),
                is_revisit,
                is_withheld,
                redirect,
                about: None,
            },
        })
    }
}

/// Returns the target URL of a redirect, in the same form as in `pages.jsonl`.
fn redirect_target(record: &WarcRecord, http: &HttpMessage<'_>) -> Option<String> {
    if !matches!(http.status(), Some(300..=303 | 307 | 308)) {
        return None;
    }
    let mut fields = http.fields.iter();
    let (_, target) = fields.find(|(name, _)| name.eq_ignore_ascii_case(b"location"))?;
    let base = canonicalize(None, record.url()?).ok()?;
    let target = location_target(&base, target)?;
    target.ok().map(|url| url.to_string())
}

fn about(record: &WarcRecord) -> MetadataRecordFields {
    let text = String::from_utf8_lossy(&record.block);
    let field = |name: &str| {
        let mut fields = text.lines().filter_map(|line| line.split_once(": "));
        fields
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value)
    };
    let number = |name: &str| field(name)?.parse().ok();
    MetadataRecordFields {
        took_ms: number("fetchTimeMs"),
        depth: number("depth"),
        via: field("via").map(str::to_owned),
        has_row: field("depth").is_some() && field("purpose") != Some("sitemap"),
    }
}

/// Returns whether a record begins with the bytes that the crawler would write in a file with this
/// name's extension. Checksums don't cover these bytes.
fn is_usual_head(name: &str, head: [u8; 8]) -> bool {
    let stem = strip_warc_suffix(name).unwrap_or_default();
    match &name[stem.len()..] {
        ".warc" => head == *b"WARC/1.1",
        ".warc.zst" => head.starts_with(&ZSTD_MAGIC) && head[4] & ZSTD_FLAGS.0 == ZSTD_FLAGS.1,
        _ => head == GZIP_HEAD,
    }
}

/// Reads the first bytes of records, with another file handle than the record reader, whose
/// position must not change.
struct RecordHeadReader {
    file: BufReader<fs::File>,
    at: u64,
}

impl RecordHeadReader {
    fn open(path: &Path) -> io::Result<RecordHeadReader> {
        let file = BufReader::with_capacity(64 * 1024, open_regular(path)?);
        Ok(RecordHeadReader { file, at: 0 })
    }

    fn at(&mut self, offset: u64) -> io::Result<[u8; 8]> {
        let ahead = i64::try_from(offset.wrapping_sub(self.at)).unwrap_or(0);
        self.file.seek_relative(ahead)?;
        let mut head = [0; 8];
        self.file.read_exact(&mut head)?;
        self.at = offset + head.len() as u64;
        Ok(head)
    }
}

/// Checks the lines of the capture log and of the index, and that the index is sorted.
pub(crate) fn check_lists(
    dir: &Path,
    is_ended: bool,
    cross: &mut CrossCheck,
    verification: &mut VerificationResult,
) -> Result<(), VerificationRunError> {
    each_line(
        dir,
        CAPTURES,
        is_ended,
        verification,
        |place, line, text, verification| match cross.has_file(place.0) {
            true => cross.log_line(place, line, text),
            false => {
                verification.line(&format!("{FOLDER}/{CAPTURES}"), line, no_file(place.0));
                Ok(())
            }
        },
    )?;
    let mut before = Vec::new();
    each_line(
        dir,
        INDEX,
        is_ended,
        verification,
        |place, line, text, verification| {
            verification.checked.index_lines += 1;
            if text.as_bytes() < before.as_slice() {
                let list = format!("{FOLDER}/{INDEX}");
                verification.line(
                    &list,
                    line,
                    "out of order: it belongs before the previous line",
                );
            }
            before.clear();
            before.extend_from_slice(text.as_bytes());
            match cross.has_file(place.0) {
                true => cross.index_line(place, line, text),
                false => {
                    verification.line(&format!("{FOLDER}/{INDEX}"), line, no_file(place.0));
                    Ok(())
                }
            }
        },
    )
}

fn each_line(
    dir: &Path,
    list: &str,
    is_ended: bool,
    verification: &mut VerificationResult,
    mut each: impl FnMut((&str, u64), u64, &str, &mut VerificationResult) -> io::Result<()>,
) -> Result<(), VerificationRunError> {
    let path = dir.join(FOLDER).join(list);
    let shown = format!("{FOLDER}/{list}");
    let file = match open_regular(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound && is_ended => {
            verification.file(&shown, "missing");
            return Ok(());
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) if is_damage(&error) => {
            verification.file(&shown, format!("can't be read: {error}"));
            return Ok(());
        }
        file => file.map_err(VerificationRunError::read(&path))?,
    };
    let mut lines = LineReader::new(BufReader::new(file), MAX_LINE_BYTES);
    let mut number = 0;
    while let Some(line) = lines
        .next_line()
        .map_err(VerificationRunError::read(&path))?
    {
        number += 1;
        let text = match line {
            BoundedLineResult::Whole(line) => std::str::from_utf8(line).ok(),
            BoundedLineResult::Torn { .. } if !is_ended => continue,
            _ => None,
        };
        let parsed = text.and_then(|text| Some((text, CaptureLine::parse(text.as_bytes())?)));
        match parsed {
            Some((text, line)) => each((&line.file, line.offset), number, text, verification)
                .map_err(VerificationRunError::Scratch)?,
            None => verification.line(&shown, number, "not a line of an index"),
        }
    }
    Ok(())
}
