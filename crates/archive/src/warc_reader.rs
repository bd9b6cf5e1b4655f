//! Reads WARC records, which may be compressed, each as a gzip member or a Zstandard frame.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Take};
use std::path::{Component, Path, PathBuf};

use flate2::bufread::GzDecoder;

use crate::archive_layout::FOLDER;
use crate::digest::DigestAlgorithm;
use crate::error::ReadError;
use crate::regular_file::open_regular;
use crate::rows::{PageRow, WarcRecordLocation};
use crate::timestamp::Timestamp;
use crate::warc_compression::ZSTD_MAGIC;
use crate::zstd_frame::FrameDecoder;

/// Maximum length of a WARC record's block, in bytes. A record with a longer block is
/// [`ReadError::TooLong`].
/// Beyond the limit: skipped, `record_too_long`.
pub const MAX_BLOCK_BYTES: u64 = 256 * 1024 * 1024;
/// Maximum length of a WARC record's fields, and of the HTTP header in its block, in bytes. A
/// record with longer fields is [`ReadError::Malformed`].
/// Beyond the limit: not a record.
const MAX_HEAD_BYTES: u64 = 1024 * 1024;

/// Maximum length of a body, in bytes, that fits into a readable record even if the HTTP header has
/// the maximum length.
pub const MAX_BODY_BYTES: u64 = MAX_BLOCK_BYTES - MAX_HEAD_BYTES;

/// The end of every record (WARC 1.1 section 4).
const END: &[u8] = b"\r\n\r\n";
const WRONG_LENGTH: &str = "its length differs from that of its block";

/// One record of a WARC file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarcRecord {
    /// Offset of the compressed record, in bytes.
    pub offset: u64,
    /// Length of the compressed record, in bytes.
    pub length: u64,
    /// The named fields in order; a name may occur more than once.
    pub fields: Vec<(String, String)>,
    /// The block of the record.
    pub block: Vec<u8>,
}

impl WarcRecord {
    /// Returns the `WARC-Type`: `response`, `request`, `warcinfo` ..
    #[must_use]
    pub fn kind(&self) -> &str {
        self.field("WARC-Type").unwrap_or_default()
    }

    /// Returns the value of the first field with this name, ignoring case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let field = self
            .fields
            .iter()
            .find(|field| field.0.eq_ignore_ascii_case(name));
        field.map(|(_, value)| value.as_str())
    }

    /// Returns the `WARC-Target-URI`.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.field("WARC-Target-URI")
    }

    /// Returns the `WARC-Date`.
    #[must_use]
    pub fn date(&self) -> Option<Timestamp> {
        self.field("WARC-Date").and_then(Timestamp::parse)
    }

    /// Parses the HTTP message in the block. `None` if the block doesn't contain one.
    #[must_use]
    pub fn http(&self) -> Option<HttpMessage<'_>> {
        let content_type = self.field("Content-Type")?;
        content_type
            .starts_with("application/http")
            .then(|| HttpMessage::parse(&self.block))
            .flatten()
    }

    /// Returns the name of the first digest field that doesn't match the record's bytes. `None` if
    /// all match.
    #[must_use]
    pub fn wrong_digest(&self) -> Option<&'static str> {
        const BLOCK: &str = "WARC-Block-Digest";
        const PAYLOAD: &str = "WARC-Payload-Digest";
        if self.differs(BLOCK, &self.block) {
            return Some(BLOCK);
        }
        // The payload of a revisit is in another record, so its digest can't be checked here.
        let http = self.http().filter(|_| self.kind() != "revisit");
        let payload = http.is_some_and(|http| self.differs(PAYLOAD, http.body));
        payload.then_some(PAYLOAD)
    }

    fn differs(&self, field: &str, bytes: &[u8]) -> bool {
        let Some(label) = self.field(field) else {
            return false;
        };
        DigestAlgorithm::of_label(label)
            .is_some_and(|algorithm| !algorithm.of(&[bytes]).eq_ignore_ascii_case(label))
    }
}

/// An HTTP message as archived. All parts are bytes, because servers don't always send valid text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpMessage<'a> {
    /// The status line or request line, without its line end.
    pub start_line: &'a [u8],
    /// The names and values of the fields, in order.
    pub fields: Vec<(&'a [u8], &'a [u8])>,
    /// The bytes after the blank line.
    pub body: &'a [u8],
}

impl<'a> HttpMessage<'a> {
    fn parse(block: &'a [u8]) -> Option<HttpMessage<'a>> {
        let (start_line, mut rest) = line(block)?;
        let mut fields = Vec::new();
        loop {
            let (field, after) = line(rest)?;
            rest = after;
            if field.is_empty() {
                break;
            }
            let colon = field.iter().position(|&byte| byte == b':')?;
            fields.push((&field[..colon], field[colon + 1..].trim_ascii()));
        }
        Some(HttpMessage {
            start_line,
            fields,
            body: rest,
        })
    }

    /// Returns the status code of a response.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        let version = self.start_line.strip_prefix(b"HTTP/")?;
        let space = version.iter().position(|&byte| byte == b' ')?;
        let code = version.get(space + 1..space + 4)?;
        std::str::from_utf8(code).ok()?.parse().ok()
    }

    /// Returns the value of the first field with this name, ignoring case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.fields_named(name).next()
    }

    /// Returns the values of all fields with this name, ignoring case.
    pub fn fields_named(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let is_named = move |field: &&(&[u8], &[u8])| field.0.eq_ignore_ascii_case(name.as_bytes());
        self.fields.iter().filter(is_named).map(|(_, value)| *value)
    }
}

/// The start of a line in a `metadata` record that contains a header field of the response.
const HEADER_FIELD_PREFIX: &[u8] = b"http-header: ";
/// Maximum number of characters of a file name to show in an error message.
const MAX_NAME_SHOWN: usize = 200;

/// Reads the records of a WARC file in order. The compression is detected, whatever the file's
/// name. A record that is too long is reported as an error and then skipped, unless
/// [`max_body`](WarcReader::max_body) was called. Reading ends after any other error, because it is
/// unknown where the next record begins.
pub struct WarcReader<R = BufReader<File>> {
    input: CountingReader<R>,
    path: PathBuf,
    max_block_bytes: u64,
    /// Whether to skip a record that is too long and read on. For a compressed file, the rest of
    /// the record is decompressed for that. If false ([`max_body`](WarcReader::max_body)), reading
    /// ends at such a record.
    passes_over: bool,
    ended: bool,
}

impl WarcReader {
    /// Opens a file for reading from its start.
    ///
    /// # Errors
    /// I/O errors.
    pub fn open(path: &Path) -> Result<WarcReader, ReadError> {
        WarcReader::open_at(path, 0)
    }

    /// Opens a file for reading from `offset`, where a record must begin.
    ///
    /// # Errors
    /// The errors of [`open_regular`].
    pub fn open_at(path: &Path, offset: u64) -> Result<WarcReader, ReadError> {
        let failed = |error| ReadError::io(path, error);
        let mut file = open_regular(path).map_err(failed)?;
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        let input = BufReader::with_capacity(64 * 1024, file);
        Ok(WarcReader::of(input, path, offset))
    }

    /// Limits the length of HTTP bodies. A record's block may be longer than this by the maximum
    /// length of an HTTP header. At the first record with a longer block, reading ends, and the
    /// rest of that record is not decompressed.
    #[must_use]
    pub fn max_body(mut self, bytes: u64) -> WarcReader {
        self.max_block_bytes = MAX_BLOCK_BYTES.min(bytes.saturating_add(MAX_HEAD_BYTES));
        self.passes_over = false;
        self
    }
}

impl<R: BufRead> WarcReader<R> {
    /// Creates a reader of `input`, whose first byte is at `offset` of the file at `path`.
    pub(crate) fn of(input: R, path: &Path, offset: u64) -> WarcReader<R> {
        WarcReader {
            input: CountingReader {
                inner: input,
                at: offset,
            },
            path: path.to_owned(),
            max_block_bytes: MAX_BLOCK_BYTES,
            passes_over: true,
            ended: false,
        }
    }
}

/// Returns the path of a file in the archive of the crawl in `dir`. `name` is from a row or the
/// index.
///
/// # Errors
/// [`ReadError::ForeignName`] if `name` is not just a file name: a path could lead to any
/// file.
pub fn archive_file(dir: &Path, name: &str) -> Result<PathBuf, ReadError> {
    let mut parts = Path::new(name).components();
    let is_name = matches!(parts.next(), Some(Component::Normal(part)) if part == name);
    if !is_name || name.contains(['/', '\\', '\0']) {
        return Err(ReadError::ForeignName {
            name: name.chars().take(MAX_NAME_SHOWN).collect(),
        });
    }
    Ok(dir.join(FOLDER).join(name))
}

/// Reads the record at `place`, which is from a row of the crawl in `dir`. `body_bytes` is the
/// length of the body according to the row.
///
/// # Errors
/// The errors of [`read_record`] and [`archive_file`]; [`ReadError::TooLong`] if the
/// record is longer than a body of this length and the maximum header.
pub fn read_place(
    dir: &Path,
    place: &WarcRecordLocation,
    body_bytes: u64,
) -> Result<WarcRecord, ReadError> {
    let path = archive_file(dir, &place.file)?;
    one(WarcReader::open_at(&path, place.offset)?.max_body(body_bytes))
}

/// Reads the DOM of a rendered page from the archive of the crawl in `dir`. `None` if the page was
/// not rendered, or if its DOM is not archived or can't be read. The caller then uses the page as
/// it was sent.
#[must_use]
pub fn read_dom(dir: &Path, row: &PageRow) -> Option<Vec<u8>> {
    let (place, bytes) = row.dom()?;
    dom_at(dir, &row.url, &place, bytes)
}

/// Reads a DOM like [`read_dom`], given the position from a row's [`PageRow::dom`].
#[must_use]
pub fn dom_at(dir: &Path, url: &str, place: &WarcRecordLocation, bytes: u64) -> Option<Vec<u8>> {
    let record = read_place(dir, place, bytes).ok()?;
    let is_it = record.kind() == "conversion" && record.url() == Some(url);
    is_it.then_some(record.block)
}

/// Maximum number of records from a response record to its `metadata` record: response, DOM,
/// screenshot, request, metadata.
const MAX_CAPTURE_RECORDS: usize = 5;

/// Reads the names and values of the header fields of the response whose record is at `place`,
/// which is from a row of the crawl in `dir`. For a revisit record with an empty block, such as
/// that of a 304, the fields are in the capture's `metadata` record. `None` if the records can't be
/// read.
#[must_use]
pub fn head_fields_at(dir: &Path, place: &WarcRecordLocation) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let path = archive_file(dir, &place.file).ok()?;
    let records = WarcReader::open_at(&path, place.offset).ok()?;
    let mut records = records.take(MAX_CAPTURE_RECORDS).map_while(Result::ok);
    let response = records.next()?;
    if let Some(http) = response.http() {
        let fields = http.fields.iter();
        return Some(
            fields
                .map(|(name, value)| (name.to_vec(), value.to_vec()))
                .collect(),
        );
    }
    let metadata = records.find(|record| {
        record.kind() == "metadata"
            && record.field("WARC-Concurrent-To") == response.field("WARC-Record-ID")
    })?;
    let lines = metadata.block.split(|&byte| byte == b'\n');
    let fields = lines.filter_map(|line| {
        let field = line.strip_prefix(HEADER_FIELD_PREFIX)?;
        let colon = field.iter().position(|&byte| byte == b':')?;
        let value = field[colon + 1..].trim_ascii();
        Some((field[..colon].to_vec(), value.to_vec()))
    });
    Some(fields.collect())
}

/// Reads the record that begins at `offset`.
///
/// # Errors
/// [`ReadError`]. At the end of the file, where no record begins,
/// [`ReadError::Malformed`].
pub fn read_record(path: &Path, offset: u64) -> Result<WarcRecord, ReadError> {
    one(WarcReader::open_at(path, offset)?)
}

fn one(mut reader: WarcReader) -> Result<WarcRecord, ReadError> {
    let offset = reader.input.at;
    let ended = ReadError::Malformed {
        file: reader.path.clone(),
        offset,
        what: "the file ends here",
    };
    reader.next().unwrap_or(Err(ended))
}

impl<R: BufRead> Iterator for WarcReader<R> {
    type Item = Result<WarcRecord, ReadError>;

    fn next(&mut self) -> Option<Result<WarcRecord, ReadError>> {
        if self.ended {
            return None;
        }
        let offset = self.input.at;
        let record = match self.input.fill_buf() {
            Ok([]) => {
                self.ended = true;
                return None;
            }
            Ok(_) => read_next_record(&mut self.input, self.max_block_bytes, self.passes_over),
            Err(error) => Err(WarcReadFault::Io(error)),
        };
        let record = record.map(|(fields, block)| WarcRecord {
            offset,
            length: self.input.at - offset,
            fields,
            block,
        });
        self.ended = match record {
            Ok(_) => false,
            Err(WarcReadFault::TooLong { .. }) => !self.passes_over,
            Err(_) => true,
        };
        Some(record.map_err(|fault| fault.at(&self.path, offset)))
    }
}

enum WarcReadFault {
    Io(io::Error),
    Malformed(&'static str),
    /// The data ends before the record does.
    Short(&'static str),
    TooLong {
        bytes: u64,
        max: u64,
    },
}

impl From<io::Error> for WarcReadFault {
    fn from(error: io::Error) -> WarcReadFault {
        WarcReadFault::Io(error)
    }
}

impl WarcReadFault {
    fn at(self, file: &Path, offset: u64) -> ReadError {
        let file = file.to_owned();
        match self {
            WarcReadFault::Malformed(what) | WarcReadFault::Short(what) => {
                ReadError::Malformed { file, offset, what }
            }
            WarcReadFault::TooLong { bytes, max } => ReadError::TooLong {
                file,
                offset,
                bytes,
                max,
            },
            WarcReadFault::Io(source) => match source.kind() {
                // The decoders return these kinds for damaged or truncated records.
                ErrorKind::UnexpectedEof | ErrorKind::InvalidInput | ErrorKind::InvalidData => {
                    ReadError::Torn {
                        file,
                        offset,
                        source,
                    }
                }
                _ => ReadError::Io { file, source },
            },
        }
    }
}

type Fields = Vec<(String, String)>;

/// Reads the record at the position of `input`, up to its end.
fn read_next_record(
    input: &mut impl BufRead,
    max: u64,
    passes_over: bool,
) -> Result<(Fields, Vec<u8>), WarcReadFault> {
    match input.fill_buf()?.first() {
        Some(b'W') => read_plain(input, max, passes_over).map_err(|fault| match fault {
            WarcReadFault::Short(_) => WarcReadFault::Io(ErrorKind::UnexpectedEof.into()),
            fault => fault,
        }),
        Some(&byte) if byte == ZSTD_MAGIC[0] => {
            read_alone(FrameDecoder::new(input)?, max, passes_over)
        }
        _ => read_alone(GzDecoder::new(input), max, passes_over),
    }
}

/// Reads the only record of a gzip member or a Zstandard frame, up to its end.
fn read_alone(
    decoder: impl Read,
    max: u64,
    passes_over: bool,
) -> Result<(Fields, Vec<u8>), WarcReadFault> {
    let mut plain = BufReader::new(decoder);
    let record = match read_plain(&mut plain, max, passes_over) {
        Err(WarcReadFault::Short(what)) => return Err(WarcReadFault::Malformed(what)),
        record => record,
    };
    match record {
        // This guard also decodes the end of the member, and so verifies the checksum there.
        Ok(_) if !plain.fill_buf()?.is_empty() => Err(WarcReadFault::Malformed(WRONG_LENGTH)),
        Err(WarcReadFault::TooLong { .. }) if passes_over => {
            io::copy(&mut plain, &mut io::sink())?;
            record
        }
        record => record,
    }
}

/// Reads a record that is not compressed, up to its end.
fn read_plain(
    plain: &mut impl BufRead,
    max: u64,
    passes_over: bool,
) -> Result<(Fields, Vec<u8>), WarcReadFault> {
    let fields = read_fields(&mut (&mut *plain).take(MAX_HEAD_BYTES))?;
    let length = fields
        .iter()
        .find(|field| field.0.eq_ignore_ascii_case("Content-Length"))
        .and_then(|(_, value)| value.parse::<u64>().ok())
        .ok_or(WarcReadFault::Malformed("no length"))?;
    if length > max {
        if passes_over {
            let rest = length.saturating_add(END.len() as u64);
            io::copy(&mut plain.take(rest), &mut io::sink())?;
        }
        return Err(WarcReadFault::TooLong { bytes: length, max });
    }
    let mut block = Vec::new();
    // Allocate only for bytes that exist, because the declared length may be wrong.
    let bytes_read = (&mut *plain).take(length).read_to_end(&mut block)?;
    let mut end = Vec::new();
    plain.take(END.len() as u64).read_to_end(&mut end)?;
    if bytes_read as u64 != length || end.len() < END.len() {
        return Err(WarcReadFault::Short(WRONG_LENGTH));
    }
    match end == END {
        true => Ok((fields, block)),
        false => Err(WarcReadFault::Malformed(WRONG_LENGTH)),
    }
}

fn read_fields(plain: &mut Take<impl BufRead>) -> Result<Fields, WarcReadFault> {
    let mut bytes = Vec::new();
    plain.read_until(b'\n', &mut bytes)?;
    // If a line has no end, either the data ended or the limit (the second argument) was reached.
    let cut = |what, limit| match limit {
        0 => WarcReadFault::Malformed(what),
        _ => WarcReadFault::Short(what),
    };
    if !bytes.starts_with(b"WARC/1.") {
        return Err(match bytes.ends_with(b"\n") {
            true => WarcReadFault::Malformed("no version"),
            false => cut("no version", plain.limit()),
        });
    }
    let mut fields = Vec::new();
    loop {
        bytes.clear();
        plain.read_until(b'\n', &mut bytes)?;
        let (field, _) = line(&bytes).ok_or_else(|| cut("its fields do not end", plain.limit()))?;
        if field.is_empty() {
            return Ok(fields);
        }
        let field = String::from_utf8_lossy(field);
        let (name, value) = field
            .split_once(':')
            .ok_or(WarcReadFault::Malformed("a field without a colon"))?;
        fields.push((name.to_owned(), value.trim().to_owned()));
    }
}

/// Splits off the first line. Returns it without its line end, and the bytes after it. `None` if
/// there is no line end.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    let line = &bytes[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), &bytes[end + 1..]))
}

/// A reader that counts the bytes read through it.
struct CountingReader<R> {
    inner: R,
    at: u64,
}

impl<R: BufRead> Read for CountingReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<R: BufRead> BufRead for CountingReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.inner.consume(amount);
        self.at += amount as u64;
    }
}
