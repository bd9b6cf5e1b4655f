//! Files of JSON lines: row files, whose lengths are committed, and logs.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::appender::{Appender, read_at, sync_folder};
use crate::bounded_read::{BoundedLineResult, LineReader, MAX_LINE_BYTES};
use crate::disk_interface::Disk;
use crate::error::{ArchiveWriteError, ReadError};
use crate::regular_file::open_regular;
use crate::rows::WarcRecordLocation;
use crate::serialized_page_row::SerializedPageRow;
use crate::serialized_request_row::SerializedRequestRow;

/// Size of the row buffer in bytes at which it is flushed. Bounds memory at the end of a run, which
/// may write many rows.
const MAX_BUFFER_BYTES: usize = 256 * 1024;
/// Block size for reading a log backwards from its end, in bytes.
const BLOCK_BYTES: u64 = 64 * 1024;
/// Maximum bytes of `requests.jsonl` to read from its end at a start.
/// Beyond the limit: older rows are not read.
const MAX_TAIL_BYTES: u64 = 64 * 1024 * 1024;

/// Appends rows to a file whose length is committed elsewhere, in one transaction with the state
/// that the rows describe. Rows are buffered until [`flush`](RowFileWriter::flush).
pub struct RowFileWriter {
    appender: Appender,
    buffer: Vec<u8>,
    new_entry: bool,
}

impl RowFileWriter {
    /// Opens or creates the file, and cuts off bytes beyond its committed length. Without a
    /// committed length, the file is emptied.
    ///
    /// # Errors
    /// [`ArchiveWriteError::Short`] if the file is shorter than was committed.
    pub fn open(path: &Path, committed: Option<u64>) -> Result<RowFileWriter, ArchiveWriteError> {
        RowFileWriter::open_on(&Disk::default(), path, committed)
    }

    /// Opens or creates the file like [`RowFileWriter::open`], on the given disk.
    ///
    /// # Errors
    /// The errors of [`RowFileWriter::open`].
    pub fn open_on(
        disk: &Disk,
        path: &Path,
        committed: Option<u64>,
    ) -> Result<RowFileWriter, ArchiveWriteError> {
        // The file may be new, so sync its folder. Otherwise a power loss could still remove the
        // file's name.
        let new_entry = committed.unwrap_or(0) == 0;
        Ok(RowFileWriter {
            appender: Appender::open(disk, path, committed.unwrap_or(0))?,
            buffer: Vec::new(),
            new_entry,
        })
    }

    /// Adds a row and returns its offset in the file.
    ///
    /// # Errors
    /// [`ArchiveWriteError::Row`] if the row can't be serialised; a write error if the buffer was full
    /// and couldn't be flushed. In both cases the row was not added.
    pub fn append(&mut self, row: &impl Serialize) -> Result<u64, ArchiveWriteError> {
        self.append_by(|out| push_row(out, row))
    }

    /// Adds a page's row that is already serialised, and fills in the file and offset of its WARC
    /// record.
    ///
    /// # Errors
    /// Same as [`RowFileWriter::append`].
    pub fn append_page(
        &mut self,
        line: &SerializedPageRow,
        place: Option<&WarcRecordLocation>,
    ) -> Result<u64, ArchiveWriteError> {
        self.append_by(|out| line.put(out, place))
    }

    fn append_by(
        &mut self,
        put: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
    ) -> Result<u64, ArchiveWriteError> {
        let begin = self.buffer.len();
        put_row(&mut self.buffer, put, self.appender.path())?;
        let at = self.appender.length() + begin as u64;
        if self.buffer.len() >= MAX_BUFFER_BYTES
            && let Err(error) = self.flush()
        {
            self.buffer.truncate(begin);
            return Err(error);
        }
        Ok(at)
    }

    /// Adds a line, including its line end. Never flushes, so it can't fail.
    pub(crate) fn append_line(&mut self, line: &str) {
        self.buffer.extend_from_slice(line.as_bytes());
    }

    /// Writes the buffered rows in one write.
    ///
    /// # Errors
    /// [`ArchiveWriteError::Full`] and other write errors. After an error, the rows are still
    /// buffered, and the file is unchanged.
    pub fn flush(&mut self) -> Result<(), ArchiveWriteError> {
        if !self.buffer.is_empty() {
            self.appender.append(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Flushes, and waits until all rows are on the disk. After that, the file's length may be
    /// committed.
    ///
    /// # Errors
    /// The errors of [`flush`](RowFileWriter::flush), or a sync error.
    pub fn sync(&mut self) -> Result<(), ArchiveWriteError> {
        self.flush()?;
        self.appender.sync()?;
        if self.new_entry {
            sync_folder(self.appender.path().parent().unwrap_or(Path::new("")))?;
            self.new_entry = false;
        }
        Ok(())
    }

    /// Returns the length of the file in bytes, including rows that are still buffered.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.appender.length() + self.buffer.len() as u64
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.appender.path()
    }
}

/// Appends rows to a log. Rows are written immediately (except by [`RowLogWriter::hold_all`]) and
/// never removed. If a crash tore the last line, it is cut off on open.
pub struct RowLogWriter {
    appender: Appender,
    disk: Disk,
    /// Serialised rows that are held in memory.
    lines: Vec<u8>,
    held: u64,
    /// Number of rows written so far. The [`LogSyncer`] reads it too.
    appended: Arc<AtomicU64>,
}

/// The last rows of a log, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastLogRows<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Number of lines that are not rows of type `T`. After a power loss, a line may contain
    /// anything.
    pub unreadable: usize,
}

impl RowLogWriter {
    /// Opens or creates the log. If the last line has no line end, cuts it off.
    ///
    /// # Errors
    /// I/O errors.
    pub fn open(path: &Path) -> Result<RowLogWriter, ArchiveWriteError> {
        RowLogWriter::open_on(&Disk::default(), path)
    }

    /// Opens or creates the log like [`RowLogWriter::open`], on the given disk.
    ///
    /// # Errors
    /// I/O errors.
    pub fn open_on(disk: &Disk, path: &Path) -> Result<RowLogWriter, ArchiveWriteError> {
        let is_new = !path.exists();
        let appender = Appender::open_with(disk, path, whole_lines)?;
        if is_new {
            sync_folder(path.parent().unwrap_or(Path::new("")))?;
        }
        Ok(RowLogWriter {
            appender,
            disk: disk.clone(),
            lines: Vec::new(),
            held: 0,
            appended: Arc::default(),
        })
    }

    /// Returns a handle with which another thread can sync the log.
    ///
    /// # Errors
    /// I/O errors.
    pub fn syncer(&mut self) -> Result<LogSyncer, ArchiveWriteError> {
        let path = self.appender.path().to_owned();
        match self.appender.file().try_clone() {
            Ok(file) => Ok(LogSyncer {
                file,
                disk: self.disk.clone(),
                path,
                appended: Arc::clone(&self.appended),
                synced: 0,
            }),
            Err(error) => Err(ArchiveWriteError::io("open", &path, error)),
        }
    }

    /// Writes a row in one write, without syncing. If this fails, no part of the row stays in the
    /// file.
    ///
    /// # Errors
    /// [`ArchiveWriteError::Full`] and other write errors.
    pub fn append(&mut self, row: &impl Serialize) -> Result<(), ArchiveWriteError> {
        self.append_all([row])
    }

    /// Writes rows, all in one write, without syncing. If this fails, no part of the rows stays in
    /// the file.
    ///
    /// # Errors
    /// [`ArchiveWriteError::Full`] and other write errors.
    pub fn append_all<R: Serialize>(
        &mut self,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<(), ArchiveWriteError> {
        self.append_each(rows, |row, out| push_row(out, &row))
    }

    /// Writes the rows of requests like [`RowLogWriter::append_all`]. Rows that are already
    /// serialised are not serialised again.
    ///
    /// # Errors
    /// The errors of [`RowLogWriter::append_all`].
    pub fn append_requests<'l>(
        &mut self,
        lines: impl IntoIterator<Item = &'l SerializedRequestRow>,
    ) -> Result<(), ArchiveWriteError> {
        self.append_each(lines, SerializedRequestRow::put)
    }

    fn append_each<R>(
        &mut self,
        rows: impl IntoIterator<Item = R>,
        put: impl Fn(R, &mut Vec<u8>) -> Result<(), serde_json::Error>,
    ) -> Result<(), ArchiveWriteError> {
        let (length, held) = (self.lines.len(), self.held);
        self.hold_each(rows, put)?;
        let written = self.flush_held();
        if written.is_err() {
            // Drop the new rows. Rows held before this call stay held.
            self.lines.truncate(length);
            self.held = held;
        }
        written
    }

    fn hold_each<R>(
        &mut self,
        rows: impl IntoIterator<Item = R>,
        put: impl Fn(R, &mut Vec<u8>) -> Result<(), serde_json::Error>,
    ) -> Result<(), ArchiveWriteError> {
        let (length, held) = (self.lines.len(), self.held);
        for row in rows {
            let put = put_row(&mut self.lines, |out| put(row, out), self.appender.path());
            if put.is_err() {
                self.lines.truncate(length);
                self.held = held;
                return put;
            }
            self.held += 1;
        }
        Ok(())
    }

    /// Holds rows in memory until the next append or [`RowLogWriter::flush_held`]. A crash before
    /// that loses these rows.
    ///
    /// # Errors
    /// [`ArchiveWriteError::Row`] if a row can't be serialised.
    pub fn hold_all<R: Serialize>(
        &mut self,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<(), ArchiveWriteError> {
        self.hold_each(rows, |row, out| push_row(out, &row))
    }

    /// Writes the held rows in one write. If this fails, they stay held.
    ///
    /// # Errors
    /// The errors of [`RowLogWriter::append_all`].
    pub fn flush_held(&mut self) -> Result<(), ArchiveWriteError> {
        if self.held > 0 {
            self.appender.append(&self.lines)?;
            self.lines.clear();
            let written = std::mem::take(&mut self.held);
            self.appended.fetch_add(written, Ordering::Release);
        }
        Ok(())
    }

    /// Waits until all rows are on the disk.
    ///
    /// # Errors
    /// A sync error.
    pub fn sync(&mut self) -> Result<(), ArchiveWriteError> {
        self.appender.sync()
    }

    /// Reads the last `count` lines, or fewer if these exceed 64 MiB. Time and memory depend on the
    /// lines, not on the length of the log.
    ///
    /// # Errors
    /// I/O errors. A line that is not a row is not an error, but is counted in
    /// [`LastLogRows::unreadable`].
    pub fn tail<T: DeserializeOwned>(
        &mut self,
        count: usize,
    ) -> Result<LastLogRows<T>, ArchiveWriteError> {
        let length = self.appender.length();
        let bytes = last_lines(self.appender.file(), length, count, MAX_TAIL_BYTES)
            .map_err(|error| ArchiveWriteError::io("read", self.appender.path(), error))?;
        let mut tail = LastLogRows {
            rows: Vec::new(),
            unreadable: 0,
        };
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(row) => tail.rows.push(row),
                Err(_) => tail.unreadable += 1,
            }
        }
        Ok(tail)
    }

    /// Returns the length of the log in bytes, without held rows.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.appender.length()
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Syncs a log while another thread appends to it.
#[derive(Debug)]
pub struct LogSyncer {
    file: File,
    disk: Disk,
    path: PathBuf,
    appended: Arc<AtomicU64>,
    /// Number of rows known to be on the disk.
    synced: u64,
}

impl LogSyncer {
    /// Waits until all rows that were appended before this call are on the disk.
    ///
    /// # Errors
    /// A sync error.
    pub fn sync(&mut self) -> Result<(), ArchiveWriteError> {
        let appended = self.appended.load(Ordering::Acquire);
        if appended > self.synced {
            let synced = self.disk.sync(&self.path, &self.file);
            synced.map_err(|error| ArchiveWriteError::io("sync", &self.path, error))?;
            self.synced = appended;
        }
        Ok(())
    }
}

/// Reads rows one at a time.
///
/// Yields an error for a whole line that is not a row or is longer than [`MAX_LINE_BYTES`], and
/// continues after it. An I/O error ends the iteration. A last line without a line end is not
/// yielded: a writer may still be appending to it, or crashed before it was complete.
/// [`RowReader::is_torn`] reports such a line.
#[derive(Debug)]
pub struct RowReader<T> {
    /// The rest of the file. `None` if the file is missing or has ended.
    lines: Option<LineReader<BufReader<io::Take<File>>>>,
    path: PathBuf,
    line: u64,
    is_torn: bool,
    row: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> RowReader<T> {
    /// Opens a row file for reading up to its committed length, or to its end if `committed` is
    /// `None`.
    ///
    /// # Errors
    /// The errors of [`open_regular`].
    pub fn open(path: &Path, committed: Option<u64>) -> Result<RowReader<T>, ReadError> {
        let file = open_regular(path).map_err(|error| ReadError::io(path, error))?;
        Ok(RowReader::of(Some(file), path, committed))
    }

    /// Opens a row file. If it is missing, the reader yields no rows.
    ///
    /// # Errors
    /// The errors of [`open_regular`].
    pub fn open_if_any(path: &Path) -> Result<RowReader<T>, ReadError> {
        match open_regular(path) {
            Ok(file) => Ok(RowReader::of(Some(file), path, None)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(RowReader::of(None, path, None))
            }
            Err(error) => Err(ReadError::io(path, error)),
        }
    }

    fn of(file: Option<File>, path: &Path, committed: Option<u64>) -> RowReader<T> {
        let file = file.map(|file| file.take(committed.unwrap_or(u64::MAX)));
        let file = file.map(|file| BufReader::with_capacity(1 << 16, file));
        RowReader {
            lines: file.map(|file| LineReader::new(file, MAX_LINE_BYTES)),
            path: path.to_owned(),
            line: 0,
            is_torn: false,
            row: PhantomData,
        }
    }

    /// Returns whether the file ends within a line. Known only after the iteration has ended.
    #[must_use]
    pub fn is_torn(&self) -> bool {
        self.is_torn
    }

    /// Returns the number of the last line read, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Returns the next row whose line satisfies `is_wanted`. Other lines are skipped without
    /// parsing.
    pub fn next_matching(
        &mut self,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Option<Result<T, ReadError>> {
        loop {
            let lines = self.lines.as_mut()?;
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => {
                    self.lines = None;
                    return None;
                }
                Err(error) => {
                    self.lines = None;
                    return Some(Err(ReadError::io(&self.path, error)));
                }
            };
            self.line += 1;
            match line {
                BoundedLineResult::Whole(line) if !is_wanted(line) => {}
                line => match line.row() {
                    Some(row) => {
                        return Some(row.map_err(|source| ReadError::Row {
                            file: self.path.clone(),
                            line: self.line,
                            source,
                        }));
                    }
                    None => {
                        (self.is_torn, self.lines) = (true, None);
                        return None;
                    }
                },
            }
        }
    }
}

impl<T: DeserializeOwned> Iterator for RowReader<T> {
    type Item = Result<T, ReadError>;

    fn next(&mut self) -> Option<Result<T, ReadError>> {
        self.next_matching(|_| true)
    }
}

fn push_row(out: &mut Vec<u8>, row: &impl Serialize) -> Result<(), serde_json::Error> {
    serde_json::to_writer(&mut *out, row)?;
    out.push(b'\n');
    Ok(())
}

/// Appends a row to `out`. If it can't be serialised, appends nothing.
fn put_row(
    out: &mut Vec<u8>,
    put: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
    file: &Path,
) -> Result<(), ArchiveWriteError> {
    let begin = out.len();
    put(out).map_err(|source| {
        out.truncate(begin);
        ArchiveWriteError::Row {
            file: file.to_owned(),
            source,
        }
    })
}

/// Returns the offset after the last line end in the first `length` bytes. Bytes after it are not a
/// whole line.
fn whole_lines(file: &mut File, length: u64) -> io::Result<u64> {
    let mut end = length;
    while end > 0 {
        let begin = end.saturating_sub(BLOCK_BYTES);
        let mut block = vec![0; (end - begin) as usize];
        read_at(file, begin, &mut block)?;
        if let Some(at) = block.iter().rposition(|&byte| byte == b'\n') {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

/// Returns the last `count` lines of a file that ends with a line end. Considers only lines that
/// are entirely within the last `max_bytes` of the file, rounded up to a block.
fn last_lines(file: &mut File, length: u64, count: usize, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut blocks = Vec::new();
    let mut begin = length;
    let mut ends = 0;
    // Read one more line end than `count`: the first line to return begins after it.
    while begin > 0 && ends <= count && length - begin < max_bytes {
        let next = begin.saturating_sub(BLOCK_BYTES);
        let mut block = vec![0; (begin - next) as usize];
        read_at(file, next, &mut block)?;
        ends += line_ends(&block);
        blocks.push(block);
        begin = next;
    }
    blocks.reverse();
    let mut bytes = blocks.concat();
    let count = match begin {
        0 => count,
        // The first line is incomplete, because its beginning was not read. Leave it out.
        _ => count.min(ends.saturating_sub(1)),
    };
    let surplus = ends.saturating_sub(count);
    let at = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .nth(surplus.wrapping_sub(1))
        .map_or(0, |(at, _)| at + 1);
    Ok(bytes.split_off(at))
}

fn line_ends(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use crate::disk_interface::{Disk, DiskFile};
    use std::fs;

    use expect_test::expect;
    use proptest::prelude::*;

    use std::fs::File;
    use std::path::Path;

    use super::{RowFileWriter, RowLogWriter, RowReader};
    use crate::ArchiveWriteError;
    use crate::appender::Appender;

    #[test]
    fn rows_are_buffered_until_flushed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pages.jsonl");
        let mut rows = RowFileWriter::open(&path, None).unwrap();
        assert_eq!(rows.append(&"a").unwrap(), 0);
        assert_eq!(rows.append(&"line\nend").unwrap(), 4);
        assert_eq!(fs::read(&path).unwrap(), b"");
        rows.sync().unwrap();
        assert_eq!(rows.append(&3).unwrap(), rows.len() - 2);
        expect![[r#"
            "a"
            "line\nend"
        "#]]
        .assert_eq(&fs::read_to_string(&path).unwrap());
    }

    #[test]
    fn many_rows_are_flushed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("excluded.jsonl");
        let mut rows = RowFileWriter::open(&path, None).unwrap();
        let row = "x".repeat(1000);
        for _ in 0..300 {
            rows.append(&row).unwrap();
        }
        assert!(fs::metadata(&path).unwrap().len() > 250_000);
        assert!(rows.buffer.len() < super::MAX_BUFFER_BYTES);
    }

    #[test]
    fn a_file_shorter_than_committed_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pages.jsonl");
        fs::write(&path, "1\n").unwrap();
        match RowFileWriter::open(&path, Some(9)) {
            Err(ArchiveWriteError::Short {
                committed, found, ..
            }) => assert_eq!((committed, found), (9, 2)),
            _ => panic!("not short"),
        }
        assert_eq!(fs::read(&path).unwrap(), b"1\n");
    }

    #[test]
    fn rows_stay_buffered_while_the_disk_is_full() {
        let path = Path::new("/dev/full");
        let full = File::options().append(true).open(path).unwrap();
        let mut rows = RowFileWriter {
            appender: Appender::new(DiskFile::new(full, path, &Disk::default()), path, 0),
            buffer: Vec::new(),
            new_entry: false,
        };
        rows.append(&1).unwrap();
        let error = rows.flush().unwrap_err();
        assert_eq!(error.to_string(), "no space left to write to /dev/full");
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn a_reader_ignores_a_line_without_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pages.jsonl");
        fs::write(&path, "1\n2\n{\n34").unwrap();
        let read = |committed| {
            RowReader::<u32>::open(&path, committed)
                .unwrap()
                .map(|row| {
                    row.map_err(|error| error.to_string().replace(path.to_str().unwrap(), "F"))
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(read(Some(4)), [Ok(1), Ok(2)]);
        assert_eq!(
            read(None),
            [Ok(1), Ok(2), Err("line 3 of F is not a row".to_owned())]
        );
    }

    #[test]
    fn a_log_loses_only_its_torn_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("requests.jsonl");
        for torn in ["", "{\"half", "\0\0\0"] {
            fs::write(&path, format!("1\n2\nnull\n{torn}")).unwrap();
            let mut log = RowLogWriter::open(&path).unwrap();
            log.append(&4).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\nnull\n4\n");
            let tail = log.tail::<u32>(3).unwrap();
            assert_eq!((tail.rows, tail.unreadable), (vec![2, 4], 1));
        }
    }

    proptest! {
        #[test]
        fn tail_returns_the_last_rows(
            lengths in prop::collection::vec(0usize..40_000, 0..12),
            count in 0usize..15,
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut log = RowLogWriter::open(&dir.path().join("log")).unwrap();
            let rows: Vec<String> = lengths.iter().map(|length| "r".repeat(*length)).collect();
            for row in &rows {
                log.append(row).unwrap();
            }
            let last = &rows[rows.len().saturating_sub(count)..];
            let tail = log.tail::<String>(count).unwrap();
            prop_assert!(tail.rows == last);
            prop_assert_eq!(tail.unreadable, 0);
        }

        #[test]
        fn rows_are_truncated_to_the_committed_length(
            commits in prop::collection::vec(0u32..6, 0..6),
            later in 0u32..5,
            torn in "[a-z\"]{0,9}",
        ) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("rows");
            let mut committed = None;
            let mut number = 0;
            let mut expected = Vec::new();
            for rows in commits {
                let mut file = RowFileWriter::open(&path, committed).unwrap();
                for _ in 0..rows {
                    file.append(&number).unwrap();
                    expected.push(number);
                    number += 1;
                }
                file.sync().unwrap();
                committed = Some(file.len());
                for _ in 0..later {
                    file.append(&u32::MAX).unwrap();
                }
                file.flush().unwrap();
                drop(file);
                let mut bytes = fs::read(&path).unwrap();
                bytes.extend(torn.as_bytes());
                fs::write(&path, bytes).unwrap();
            }
            RowFileWriter::open(&path, committed).unwrap();
            let rows: Vec<u32> = RowReader::open(&path, None).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(rows, expected);
        }
    }
}
