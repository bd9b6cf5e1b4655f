//! Looks up one capture in the sorted index of an archive.

use std::io::{self, BufRead, BufReader, Read as _, Seek, SeekFrom};
use std::path::Path;

use crawl_weburl::CanonicalUrl;

use crate::archive_layout::{FOLDER, INDEX};
use crate::bounded_read::MAX_LINE_BYTES;
use crate::capture_log_reader::CaptureLine;
use crate::regular_file::open_regular;
use crate::rows::WarcRecordLocation;
use crate::surt::surt;
use crate::timestamp::Timestamp;
use crate::warc_reader::{MAX_BODY_BYTES, WarcRecord, read_place};

/// Maximum number of index lines with the same key and the same second to check.
const MAX_ALIKE: usize = 16;

/// Reads the `response` record of a URL whose `WARC-Date` is `date`, by binary search in the index
/// of the archive in `dir`. `None` if the index doesn't list the capture (captures are added only
/// at the end of a run), or if the record can't be read.
///
/// # Errors
/// I/O errors of the index.
pub fn find_response(
    dir: &Path,
    url: &CanonicalUrl,
    date: Timestamp,
) -> io::Result<Option<WarcRecord>> {
    let (file, bytes) = match open_regular(&dir.join(FOLDER).join(INDEX)) {
        Ok(file) => {
            let bytes = file.metadata()?.len();
            (file, bytes)
        }
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(why),
    };
    let key = format!("{} {} ", surt(url), date.fourteen_digits());
    let mut index = BufReader::new(file);
    let mut line = Vec::new();
    // Invariant: a line that begins before offset `low` sorts before the key. A line that begins at
    // offset `high` or later is equal to the key or sorts after it.
    let (mut low, mut high) = (0, bytes);
    while low < high {
        let middle = low + (high - low) / 2;
        let begin = line_after(&mut index, middle, &mut line)?;
        if begin >= high || line.is_empty() {
            high = middle;
        } else if line.as_slice() < key.as_bytes() {
            low = begin + line.len() as u64;
        } else {
            high = middle;
        }
    }
    line_after(&mut index, low, &mut line)?;
    for _ in 0..MAX_ALIKE {
        if !line.starts_with(key.as_bytes()) {
            break;
        }
        let record = CaptureLine::parse(&line).and_then(|capture| {
            let place = WarcRecordLocation {
                file: capture.file.to_string(),
                offset: capture.offset,
            };
            read_place(dir, &place, MAX_BODY_BYTES).ok()
        });
        let matching = record.filter(|record| {
            record.kind() == "response"
                && record.url() == Some(url.as_str())
                && record.date() == Some(date)
        });
        if matching.is_some() {
            return Ok(matching);
        }
        read_line(&mut index, &mut line)?;
    }
    Ok(None)
}

/// Reads the first line that begins at or after offset `at`, and returns its offset. At the end of
/// the index, `line` is empty.
fn line_after<R: BufRead + Seek>(index: &mut R, at: u64, line: &mut Vec<u8>) -> io::Result<u64> {
    let mut begin = at;
    index.seek(SeekFrom::Start(at.saturating_sub(1)))?;
    if at > 0 {
        // Skip the rest of the previous line. If a line begins exactly at `at`, only the line end
        // before it is skipped.
        read_line(index, line)?;
        begin = at - 1 + line.len() as u64;
    }
    read_line(index, line)?;
    Ok(begin)
}

fn read_line<R: BufRead>(index: &mut R, line: &mut Vec<u8>) -> io::Result<()> {
    line.clear();
    index
        .by_ref()
        .take(MAX_LINE_BYTES as u64)
        .read_until(b'\n', line)
        .map(drop)
}
