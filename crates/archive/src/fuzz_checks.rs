//! The bodies of the fuzz targets. Each checks properties that hold for any input.

#![allow(clippy::unwrap_used, reason = "a check that fails should panic")]

#[cfg(test)]
#[path = "../../fuzz/src/run_without_fuzzer.rs"]
mod run_without_fuzzer;

use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bounded_read::{BoundedLineResult, LineReader};
use crate::capture_log_reader::CaptureLine;
use crate::cdxj::index_line;
use crate::rows::{self, PageRow, RequestRow, WarcRecordLocation};
use crate::serialized_page_row::SerializedPageRow;
use crate::timestamp::Timestamp;
use crate::warc_reader::{WarcReader, WarcRecord};

/// The byte between two records in the input of [`warc`].
const RECORD_END: u8 = 0x1e;
/// Maximum length in bytes of a line that [`row_files`] reads as a row.
const MAX_LINE: usize = 600;
const FILE: &str = "a.warc.gz";

/// Checks that a WARC file yields the same records if it arrives in pieces, and that records
/// survive writing and reading. The first byte of `data` decides how the rest is read: as a WARC
/// file, or as plain records that are turned into gzip members here, because a fuzzer can't guess
/// the checksum of a gzip member.
pub fn warc(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let file = match first % 4 {
        0 => rest.to_vec(),
        _ => rest
            .split(|byte| *byte == RECORD_END)
            .flat_map(member)
            .collect(),
    };
    let records = records(&file[..]);
    let in_pieces = BufReader::with_capacity(1 + usize::from(first / 4), &file[..]);
    assert_eq!(records, self::records(in_pieces));
    let mut end = 0;
    for record in records.iter().flatten() {
        assert!(record.offset >= end && record.length > 0);
        end = record.offset + record.length;
        assert!(end <= file.len() as u64);
        check_record(record);
    }
}

/// Reads records. An error becomes `None`, because its kind depends on how far the decoder got
/// before the reader noticed the defect.
fn records(input: impl BufRead) -> Vec<Option<WarcRecord>> {
    let records = WarcReader::of(input, Path::new(FILE), 0);
    records.map(Result::ok).collect()
}

fn check_record(record: &WarcRecord) {
    let _ = (record.date(), record.wrong_digest());
    if let Some(http) = record.http() {
        assert!(record.block.ends_with(http.body));
        assert!(http.start_line.len() + http.body.len() < record.block.len());
        let _ = http.status();
    }
    let mut plain = b"WARC/1.0\n".to_vec();
    for (name, value) in &record.fields {
        plain.extend(format!("{name}:{value}\r\n").into_bytes());
    }
    plain.extend(b"\r\n");
    plain.extend(&record.block);
    plain.extend(b"\r\n\r\n");
    let written = member(&plain);
    let read = records(&written[..]);
    let expected = WarcRecord {
        offset: 0,
        length: written.len() as u64,
        ..record.clone()
    };
    assert_eq!(read, [Some(expected)]);
    if let Some(line) = index_line(record, FILE) {
        let text = line.strip_suffix('\n').unwrap();
        let capture = CaptureLine::parse(text.as_bytes()).unwrap();
        assert_eq!(capture.moved_to(record.offset, record.length), line);
        assert_eq!(capture.offset, record.offset);
        assert_eq!(capture.length, record.length);
        let (url, time) = capture.url_and_time().unwrap();
        assert!(!url.contains('\n'));
        assert_eq!(
            time.fourteen_digits(),
            record.date().unwrap().fourteen_digits()
        );
    }
}

/// Returns a gzip member (RFC 1952) whose data is stored, not compressed.
fn member(plain: &[u8]) -> Vec<u8> {
    let mut checksum = flate2::Crc::new();
    checksum.update(plain);
    let mut out = b"\x1f\x8b\x08\0\0\0\0\0\0\xff".to_vec();
    for piece in plain.chunks(0xffff) {
        let length = u16::try_from(piece.len()).unwrap();
        out.push(0);
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(piece);
    }
    out.extend([1, 0, 0, 0xff, 0xff]);
    out.extend(checksum.sum().to_le_bytes());
    out.extend(checksum.amount().to_le_bytes());
    out
}

/// Checks that a row file yields the same lines if it arrives in pieces, and that rows of every
/// kind survive writing and reading.
pub fn row_files(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let lines = lines(rest);
    let in_pieces = BufReader::with_capacity(1 + usize::from(*first), rest);
    assert_eq!(lines, self::lines(in_pieces));
    let of_lines: u64 = lines
        .iter()
        .map(|line| {
            line.as_ref()
                .map_or_else(|bytes| *bytes, |line| line.len() as u64)
        })
        .sum();
    assert_eq!(of_lines, rest.len() as u64);
    for line in lines.iter().flatten() {
        check_line(line);
    }
}

/// Returns each line or, if the line is too long or torn, its length.
fn lines(input: impl BufRead) -> Vec<Result<Vec<u8>, u64>> {
    let mut reader = LineReader::new(input, MAX_LINE);
    let mut lines = Vec::new();
    while let Some(line) = reader.next_line().unwrap() {
        lines.push(match line {
            BoundedLineResult::Whole(line) => Ok(line.to_vec()),
            BoundedLineResult::TooLong { bytes } | BoundedLineResult::Torn { bytes } => Err(bytes),
        });
    }
    lines
}

fn check_line(line: &[u8]) {
    if let Some(row) = row::<PageRow>(line) {
        check_page(row);
    }
    row::<RequestRow>(line);
    row::<rows::CommitCountsBeforeRequest>(line);
    row::<rows::DelayRow>(line);
    row::<rows::ExcludedRow>(line);
    row::<rows::ExtractRow>(line);
    row::<rows::LinkRow>(line);
    row::<rows::ReplayOrderRow>(line);
    row::<rows::RandomWalkStep>(line);
    row::<rows::RulesRecheckRow>(line);
    row::<rows::RenderStatistics>(line);
    row::<rows::ExclusionsChangedByReload>(line);
    row::<rows::TombstoneRow>(line);
    row::<rows::PendingOriginRow>(line);
    row::<rows::GatheredWorkerRow>(line);
    if let Some(capture) = CaptureLine::parse(line) {
        let moved = capture.moved_to(capture.offset, capture.length);
        let moved = CaptureLine::parse(moved.as_bytes()).unwrap();
        assert_eq!(moved, capture);
        let _ = capture.url_and_time();
    }
    if let Some(time) = std::str::from_utf8(line)
        .ok()
        .and_then(|text| Timestamp::parse(text.trim_end()))
    {
        let written = time.rfc3339_millis();
        let read = Timestamp::parse(&written).unwrap();
        assert_eq!(read.rfc3339_millis(), written);
    }
}

/// Parses a row. Checks that the row survives writing and reading, apart from its times, which lose
/// their microseconds.
fn row<T: Serialize + DeserializeOwned>(line: &[u8]) -> Option<T> {
    let row: T = serde_json::from_slice(line).ok()?;
    let written = serde_json::to_string(&row).unwrap();
    assert!(!written.contains('\n'));
    let read: T = serde_json::from_str(&written).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), written);
    Some(row)
}

/// Checks that [`SerializedPageRow`], which fills in the record's file and offset last, writes the
/// same line as serde_json for the whole row.
fn check_page(mut row: PageRow) {
    let _ = row.dom();
    let place = row.warc.take().unwrap_or(WarcRecordLocation {
        file: FILE.to_owned(),
        offset: 7,
    });
    let line = SerializedPageRow::of(&row).unwrap();
    for place in [None, Some(place)] {
        row.warc = place;
        let mut out = Vec::new();
        line.put(&mut out, row.warc.as_ref()).unwrap();
        let expected = format!("{}\n", serde_json::to_string(&row).unwrap());
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        assert!(line.is_of(&row));
    }
}

#[cfg(test)]
mod tests {
    use super::run_without_fuzzer::run_without_fuzzer;

    #[test]
    fn any_warc_is_read() {
        run_without_fuzzer("warc", 2_000, super::warc);
    }

    #[test]
    fn any_row_file_is_read() {
        run_without_fuzzer("row_files", 2_000, super::row_files);
    }
}
