//! Locates the archived robots.txt exchanges and reads them.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use crawl_archive::{
    BoundedLineResult, CAPTURES, FOLDER, LineReader, MAX_LINE_BYTES, ReadError, Timestamp,
    WarcReader, WarcRecord, archive_file, open_regular, strip_warc_suffix,
};
use crawl_coding::{DecodeEnd, DecodeLimits, DecodedBody, decode, decode_gzip};
use crawl_weburl::Origin;
use serde::Deserialize;

use crate::error::RecordsError;
use crate::header_fields::HeaderFields;

/// Maximum bytes of a robots.txt to decode: twice the number of bytes that the crawl parses.
const MAX_BYTES: usize = 2 * crawl_policy::MAX_ROBOTS_BYTES;

/// The place of an exchange in the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RobotsExchangeLocation {
    file: u32,
    offset: u64,
}

/// Locates robots.txt exchanges in the archive by their URL and the second of their start. Memory:
/// about 60 bytes per exchange.
#[derive(Debug)]
pub(crate) struct RobotsExchangeLocator {
    dir: PathBuf,
    files: Vec<String>,
    places: HashMap<u64, Vec<RobotsExchangeLocation>>,
    /// Number of unreadable records; an interrupted run may leave one at the end.
    pub(super) damaged: u64,
}

/// An exchange for a robots.txt, or for a redirect on the way to one.
#[derive(Debug)]
pub(crate) struct RobotsExchange {
    pub(super) place: RobotsExchangeLocation,
    pub(super) fields: HeaderFields,
    /// Whether the request was conditional.
    pub(super) conditional: bool,
    /// The file without content codings; `None` if it can't be decoded.
    pub(crate) body: Option<Bytes>,
    /// The origin whose rules the request was for. `None` if the archive doesn't record it.
    pub(super) of: Option<Origin>,
}

/// Returns the key of an exchange: a hash of its URL and the second of its start.
pub(crate) fn key(url: &str, start_ms: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    url.hash(&mut hasher);
    (start_ms / 1000).hash(&mut hasher);
    hasher.finish()
}

/// The fields of a line in the capture log (CDXJ) that locate a record.
#[derive(Deserialize)]
struct CaptureLogLine {
    url: String,
    filename: String,
    offset: String,
}

impl RobotsExchangeLocator {
    /// Returns a locator that finds no exchange.
    pub(crate) fn without_archive(dir: &Path) -> RobotsExchangeLocator {
        RobotsExchangeLocator {
            dir: dir.to_owned(),
            files: Vec::new(),
            places: HashMap::new(),
            damaged: 0,
        }
    }

    /// Finds the archived exchanges whose keys are in `wanted`. Reads the capture log or, if there
    /// is none, scans the WARC files. `None` if there is no archive.
    pub(crate) fn find(
        dir: &Path,
        wanted: &HashSet<u64>,
    ) -> Result<Option<RobotsExchangeLocator>, RecordsError> {
        if !dir.join(FOLDER).is_dir() {
            return Ok(None);
        }
        let mut exchanges = RobotsExchangeLocator::without_archive(dir);
        let captures = dir.join(FOLDER).join(CAPTURES);
        match open_regular(&captures) {
            Ok(log) => exchanges
                .read_log(BufReader::with_capacity(1 << 16, log), wanted)
                .map_err(RecordsError::io(captures))?,
            Err(why) if why.kind() == ErrorKind::NotFound => exchanges.read_files(wanted)?,
            Err(why) => return Err(RecordsError::io(captures)(why)),
        }
        Ok(Some(exchanges))
    }

    fn read_log(&mut self, log: BufReader<File>, wanted: &HashSet<u64>) -> std::io::Result<()> {
        let mut lines = LineReader::new(log, MAX_LINE_BYTES);
        while let Some(line) = lines.next_line()? {
            // Skip a line that doesn't end with a line break, because it was never committed.
            let BoundedLineResult::Whole(line) = line else {
                continue;
            };
            let Some((key, at)) = read_line(line, wanted) else {
                continue;
            };
            let file = self.number(&at.filename);
            if let Ok(offset) = at.offset.parse() {
                let places = self.places.entry(key).or_default();
                places.push(RobotsExchangeLocation { file, offset });
            }
        }
        Ok(())
    }

    fn read_files(&mut self, wanted: &HashSet<u64>) -> Result<(), RecordsError> {
        let folder = self.dir.join(FOLDER);
        let entries = fs::read_dir(&folder).map_err(RecordsError::io(&folder))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names
            .filter(|name| strip_warc_suffix(name).is_some())
            .collect();
        names.sort();
        for name in names {
            let path = folder.join(&name);
            let file = self.number(&name);
            for record in WarcReader::open(&path)? {
                let record = match record {
                    Ok(record) => record,
                    Err(why @ ReadError::Io { .. }) => return Err(why.into()),
                    // Skip the record, because a robots.txt is never this long.
                    Err(ReadError::TooLong { .. }) => continue,
                    Err(_) => {
                        self.damaged += 1;
                        break;
                    }
                };
                let begun = record.date().map(Timestamp::as_millis);
                if let ("response", Some(url), Some(begun)) = (record.kind(), record.url(), begun)
                    && wanted.contains(&key(url, begun))
                {
                    let places = self.places.entry(key(url, begun)).or_default();
                    places.push(RobotsExchangeLocation {
                        file,
                        offset: record.offset,
                    });
                }
            }
        }
        Ok(())
    }

    fn number(&mut self, name: &str) -> u32 {
        let position = self.files.iter().rposition(|file| file == name);
        let number = position.unwrap_or_else(|| {
            self.files.push(name.to_owned());
            self.files.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// Reads the exchange for `url` that started at `start_ms`. `None` if it is not archived.
    pub(crate) fn read(
        &mut self,
        url: &str,
        start_ms: u64,
    ) -> Result<Option<RobotsExchange>, RecordsError> {
        let places = self.places.get(&key(url, start_ms));
        for place in places.cloned().unwrap_or_default() {
            let exchange = self.read_at(place, |record| {
                record.url() == Some(url)
                    && record.date().map(Timestamp::as_millis) == Some(start_ms)
            });
            match exchange {
                Ok(None) => {}
                Ok(found) => return Ok(found),
                Err(why @ ReadError::Io { .. }) => return Err(why.into()),
                Err(_) => self.damaged += 1,
            }
        }
        Ok(None)
    }

    /// Reads the robots.txt of the exchange at `place` again. Empty if it can't be decoded.
    pub(super) fn body(&self, place: RobotsExchangeLocation) -> Result<Bytes, RecordsError> {
        let exchange = self.read_at(place, |_| true)?;
        Ok(exchange.and_then(|found| found.body).unwrap_or_default())
    }

    /// Reads one exchange, whose response, request and metadata records are consecutive. `None` if
    /// `is_wanted` rejects the response.
    fn read_at(
        &self,
        place: RobotsExchangeLocation,
        is_wanted: impl Fn(&WarcRecord) -> bool,
    ) -> Result<Option<RobotsExchange>, ReadError> {
        let name = self.files.get(place.file as usize);
        let path = archive_file(&self.dir, name.map_or("", String::as_str))?;
        let mut records = WarcReader::open_at(&path, place.offset)?.max_body(MAX_BYTES as u64);
        let Some(response) = records.next().transpose()?.filter(is_wanted) else {
            return Ok(None);
        };
        let id = response.field("WARC-Record-ID").unwrap_or_default();
        let mut beside = || -> Result<Option<WarcRecord>, ReadError> {
            let record = records.next().transpose()?;
            Ok(record.filter(|record| record.field("WARC-Concurrent-To") == Some(id)))
        };
        let request = beside()?;
        let metadata = beside()?;
        let Some(http) = response.http() else {
            return Ok(None);
        };
        let fields = HeaderFields::of_message(&http);
        let is_cut = response.field("WARC-Truncated").is_some();
        let conditional = request
            .as_ref()
            .and_then(WarcRecord::http)
            .is_some_and(|sent| {
                sent.field("if-none-match").is_some() || sent.field("if-modified-since").is_some()
            });
        Ok(Some(RobotsExchange {
            place,
            body: file(&fields, http.body, is_cut),
            fields,
            conditional,
            of: metadata.as_ref().and_then(whose),
        }))
    }
}

/// Returns the robots.txt in a response, or only its beginning if it is long. `None` if it can't be
/// decoded. If the crawl truncated the body, the decodable part is returned.
fn file(fields: &HeaderFields, body: &[u8], is_cut: bool) -> Option<Bytes> {
    let limits = DecodeLimits {
        bytes: MAX_BYTES,
        ratio_from: MAX_BYTES,
        ..DecodeLimits::default()
    };
    let body = Bytes::copy_from_slice(body);
    let usable = |decoded: DecodedBody| match decoded.end {
        DecodeEnd::Whole | DecodeEnd::Truncated { .. } => Some(decoded.bytes),
        DecodeEnd::Short => is_cut.then_some(decoded.bytes),
        DecodeEnd::Broken { .. } | DecodeEnd::UnknownCoding { .. } => None,
    };
    let body = usable(decode(fields.all("content-encoding"), &body, &limits))?;
    // A gzip file is unpacked even if no header field names this coding.
    usable(decode_gzip(&body, &limits))
}

/// Parses a line of the capture log. Returns the key and the place of the exchange if the key is in
/// `wanted`.
fn read_line(line: &[u8], wanted: &HashSet<u64>) -> Option<(u64, CaptureLogLine)> {
    let mut words = line.splitn(3, |byte| *byte == b' ').skip(1);
    let begun = Timestamp::parse_fourteen_digits(words.next()?)?;
    let captured: CaptureLogLine = serde_json::from_slice(words.next()?).ok()?;
    let key = key(&captured.url, begun.as_millis());
    wanted.contains(&key).then_some((key, captured))
}

/// Returns the origin in the field `of` of a metadata record, if it has one.
fn whose(metadata: &WarcRecord) -> Option<Origin> {
    let text = String::from_utf8_lossy(&metadata.block);
    let of = text.lines().find_map(|line| line.strip_prefix("of: "))?;
    Origin::parse(of.trim()).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder};

    use super::{HeaderFields, file};

    #[test]
    fn an_encoded_file_that_ends_too_early_is_none_unless_the_crawl_cut_it() {
        let text = b"User-agent: *\nDisallow: /p\n".repeat(4000);
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::none());
        deflate.write_all(&text).unwrap();
        let deflate = deflate.finish().unwrap();
        let fields = HeaderFields::of(&[("content-encoding", "deflate")]);
        assert_eq!(file(&fields, &deflate, false).unwrap(), text);
        let half = &deflate[..deflate.len() / 2];
        assert_eq!(file(&fields, half, false), None);
        let beginning = file(&fields, half, true).unwrap();
        assert!(beginning.len() > 1000 && text.starts_with(&beginning));
        // Even if the crawl truncated the body, a wrong checksum is an error.
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&text).unwrap();
        let mut gzip = gzip.finish().unwrap();
        let sum = gzip.len() - 6;
        gzip[sum] ^= 1;
        let fields = HeaderFields::of(&[("content-encoding", "gzip")]);
        assert_eq!(file(&fields, &gzip, true), None);
    }
}
