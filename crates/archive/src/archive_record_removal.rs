//! Rewrites the archive of a crawl without the pages and hosts to be removed.
//!
//! Files without removed records are left unchanged. In other files, each kept record keeps its
//! compressed form byte for byte. Exception: if the crawler itself wrote the URL of a removed page
//! into the record (as `Referer` of a request, or as `via` of the metadata), the URL is removed.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::archive_layout::{CAPTURES, FOLDER};
use crate::archive_writer::{mark, suited};
use crate::capture_log_reader::{CaptureLine, CaptureLogReader};
use crate::error::ReadError;
use crate::regular_file::{open_regular, replace_file};
use crate::row_removal::RemovalSelection;
use crate::rows::WarcRecordLocation;
use crate::warc_compression::WarcCompression;
use crate::warc_reader::{WarcReader, WarcRecord};
use crate::warc_record_encoder::CaptureEncoder;

/// The result of rewriting an archive.
#[derive(Debug, Default)]
pub struct RewrittenArchive {
    /// The new files, by the names of the files that they replace.
    files: HashMap<String, RewrittenFile>,
    /// The lengths of the files to commit, by path relative to the crawl's directory.
    pub marks: BTreeMap<String, u64>,
    /// Number of records dropped.
    pub dropped: u64,
    /// Number of records from which a URL was removed.
    pub changed: u64,
}

#[derive(Debug)]
struct RewrittenFile {
    name: String,
    /// The shifts of records. Each entry has an offset in the old file, and the shift in bytes of
    /// all records from that offset up to the next entry. Sorted by offset.
    shifts: Vec<(u64, i64)>,
}

impl RewrittenFile {
    fn offset(&self, old: u64) -> u64 {
        let at = self.shifts.partition_point(|(from, _)| *from <= old);
        let shift = at.checked_sub(1).map_or(0, |at| self.shifts[at].1);
        old.saturating_add_signed(shift)
    }
}

impl RewrittenArchive {
    /// Returns the new location of a kept record: its file and offset.
    #[must_use]
    pub fn place(&self, old: &WarcRecordLocation) -> WarcRecordLocation {
        match self.files.get(&old.file) {
            None => old.clone(),
            Some(file) => WarcRecordLocation {
                file: file.name.clone(),
                offset: file.offset(old.offset),
            },
        }
    }

    /// Returns the old and new names of the changed files. They may be equal.
    pub fn renamed(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter();
        files.map(|(old, file)| (old.as_str(), file.name.as_str()))
    }
}

/// Writes the changed files of the archive in `dir` to the folder `archive` in `to`, and syncs the
/// new files. Without `to`, only counts what would change. `marks` has the committed lengths of the
/// files; bytes beyond these lengths are dropped.
///
/// # Errors
/// [`ReadError`] if a record can't be read, if a kept record refers to the payload of a removed
/// one, or on I/O errors.
pub fn rewrite_archive(
    dir: &Path,
    to: Option<&Path>,
    removal: &RemovalSelection,
    marks: &BTreeMap<String, u64>,
) -> Result<RewrittenArchive, ReadError> {
    let mut done = RewrittenArchive::default();
    let to = to.map(|to| to.join(FOLDER));
    for (mark_name, &length) in marks {
        let name = mark_name.strip_prefix(FOLDER);
        let Some(name) = name.and_then(|name| name.strip_prefix('/')) else {
            continue;
        };
        if name == CAPTURES {
            continue;
        }
        let from = dir.join(FOLDER).join(name);
        let compression =
            WarcCompression::of_file(name).map_err(|why| ReadError::io(&from, why))?;
        let rewriting = FileRewriting {
            from,
            name: new_name(name, removal),
            is_renamed: new_name(name, removal) != name,
            length,
            removal,
            encoder: CaptureEncoder::new(compression.unwrap_or_default()),
        };
        let file = rewriting.run(to.as_deref(), &mut done)?;
        match file {
            Some((file, length)) => {
                done.marks.insert(mark(&file.name), length);
                done.files.insert(name.to_owned(), file);
            }
            None => {
                done.marks.insert(mark(name), length);
            }
        }
    }
    if let Some(to) = &to
        && marks.contains_key(&mark(CAPTURES))
    {
        let length = rewrite_captures(dir, to, removal, &done, marks)?;
        done.marks.insert(mark(CAPTURES), length);
    }
    Ok(done)
}

/// Rewrites the capture log and returns its length in bytes.
fn rewrite_captures(
    dir: &Path,
    to: &Path,
    removal: &RemovalSelection,
    archive: &RewrittenArchive,
    marks: &BTreeMap<String, u64>,
) -> Result<u64, ReadError> {
    let path = to.join(CAPTURES);
    let failed = |why| ReadError::io(&path, why);
    fs::create_dir_all(to).map_err(failed)?;
    let Some(mut log) = CaptureLogReader::open(dir).map_err(failed)? else {
        return Ok(0);
    };
    let mut out = BufWriter::new(replace_file(&path).map_err(failed)?);
    let mut length = 0;
    while let Some(line) = log.next_capture().map_err(failed)? {
        let end = line.offset + line.length;
        let is_committed = marks
            .get(&mark(&line.file))
            .is_some_and(|mark| end <= *mark);
        if !is_committed
            || line
                .url_and_time()
                .is_none_or(|(url, _)| removal.holds_text(&url))
        {
            continue;
        }
        let place = archive.place(&WarcRecordLocation {
            file: line.file.to_string(),
            offset: line.offset,
        });
        let length_of_record = line.length;
        let line = CaptureLine {
            file: place.file.into(),
            ..line
        };
        let line = line.moved_to(place.offset, length_of_record);
        out.write_all(line.as_bytes()).map_err(failed)?;
        length += line.len() as u64;
    }
    finish(out).map_err(failed)?;
    Ok(length)
}

fn finish(out: BufWriter<File>) -> io::Result<()> {
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()
}

/// Returns the new name of a file. A removed host at the start of the old name, after `crawl-`, is
/// left out.
fn new_name(name: &str, removal: &RemovalSelection) -> String {
    let prefixes = removal.hosts().iter().map(|host| suited(host.as_str()));
    for prefix in prefixes {
        let rest = name.strip_prefix("crawl-");
        if let Some(rest) = rest.and_then(|rest| rest.strip_prefix(prefix.as_str()))
            && rest.starts_with('-')
        {
            return format!("crawl{rest}");
        }
    }
    name.to_owned()
}

/// The rewriting of one file. The new file is created only once a record changes or is dropped.
struct FileRewriting<'r> {
    from: PathBuf,
    name: String,
    is_renamed: bool,
    length: u64,
    removal: &'r RemovalSelection,
    encoder: CaptureEncoder,
}

impl FileRewriting<'_> {
    /// Rewrites the file. Returns the new file with its length, or `None` if nothing changes, so
    /// that the old file stays.
    fn run(
        mut self,
        to: Option<&Path>,
        done: &mut RewrittenArchive,
    ) -> Result<Option<(RewrittenFile, u64)>, ReadError> {
        let mut shifts: Vec<(u64, i64)> = Vec::new();
        let mut out = None;
        let mut member = Vec::new();
        let mut end = 0;
        for record in WarcReader::open(&self.from)? {
            // Drop records beyond the committed length.
            if end >= self.length {
                break;
            }
            let record = record?;
            end = record.offset + record.length;
            let fate = self.fate(&record, &mut member)?;
            let shift = shifts.last().map_or(0, |(_, shift)| *shift);
            let moved = match fate {
                RecordDecision::Keep => None,
                RecordDecision::Drop => {
                    done.dropped += 1;
                    Some(shift - signed(record.length))
                }
                RecordDecision::Change => {
                    done.changed += 1;
                    Some(shift - signed(record.length) + signed(member.len() as u64))
                }
            };
            let Some(to) = to else {
                continue;
            };
            if moved.is_some() && out.is_none() {
                out = Some(self.begin(to, record.offset)?);
            }
            shifts.extend(moved.map(|shift| (end, shift)));
            if let Some((out, path)) = &mut out {
                let written = match fate {
                    RecordDecision::Drop => Ok(()),
                    RecordDecision::Change => out.write_all(&member),
                    RecordDecision::Keep => self.copy(record.offset, record.length, out),
                };
                written.map_err(|why| ReadError::io(path, why))?;
            }
        }
        let Some((out, path)) = out else {
            return Ok(None);
        };
        finish(out).map_err(|why| ReadError::io(&path, why))?;
        let shift = shifts.last().map_or(0, |(_, shift)| *shift);
        let file = RewrittenFile {
            name: self.name,
            shifts,
        };
        Ok(Some((file, self.length.saturating_add_signed(shift))))
    }

    /// Creates the new file, and copies the bytes of the old file before `offset` to it.
    fn begin(&self, to: &Path, offset: u64) -> Result<(BufWriter<File>, PathBuf), ReadError> {
        let path = to.join(&self.name);
        let begin = || -> io::Result<BufWriter<File>> {
            fs::create_dir_all(to)?;
            let mut out = BufWriter::new(replace_file(&path)?);
            self.copy(0, offset, &mut out)?;
            Ok(out)
        };
        let out = begin().map_err(|why| ReadError::io(&path, why))?;
        Ok((out, path))
    }

    fn copy(&self, offset: u64, length: u64, out: &mut impl Write) -> io::Result<()> {
        let mut file = open_regular(&self.from)?;
        file.seek(SeekFrom::Start(offset))?;
        let copied = io::copy(&mut BufReader::new(file.take(length)), out)?;
        match copied == length {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Decides whether to keep, change or drop a record. For a change, writes the new compressed
    /// record to `member`.
    fn fate(
        &mut self,
        record: &WarcRecord,
        member: &mut Vec<u8>,
    ) -> Result<RecordDecision, ReadError> {
        let removal = self.removal;
        if record.url().is_some_and(|url| removal.holds_text(url)) {
            return Ok(RecordDecision::Drop);
        }
        let original = record.field("WARC-Refers-To-Target-URI");
        if original.is_some_and(|url| removal.holds_text(url)) {
            // This crawler can't have written this record, because the crawler's revisits always
            // refer to captures of the same URL.
            return Err(ReadError::Malformed {
                file: self.from.clone(),
                offset: record.offset,
                what: "a revisit of the payload of another URL, which is to be removed",
            });
        }
        let block = match record.kind() {
            "request" => without_lines(&record.block, |name, value| {
                name.eq_ignore_ascii_case("referer") && removal.holds_text(value)
            }),
            "metadata" => without_lines(&record.block, |name, value| {
                matches!(name, "via" | "of") && removal.holds_text(value)
            }),
            "warcinfo" if self.is_renamed => Some(record.block.clone()),
            _ => None,
        };
        let Some(block) = block else {
            return Ok(RecordDecision::Keep);
        };
        member.clear();
        let fields = record.fields.iter().map(|(name, value)| match &**name {
            "WARC-Filename" => (name.as_str(), self.name.as_str()),
            _ => (name.as_str(), value.as_str()),
        });
        self.encoder.again(fields, &block, member);
        Ok(RecordDecision::Change)
    }
}

/// The decision on a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordDecision {
    Keep,
    Change,
    Drop,
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Returns the block without the fields for which `is_out` returns true, or `None` if there are no
/// such fields. Keeps everything after the first blank line.
fn without_lines(block: &[u8], is_out: impl Fn(&str, &str) -> bool) -> Option<Vec<u8>> {
    let mut edited = Vec::with_capacity(block.len());
    let mut in_fields = true;
    for line in block.split_inclusive(|&byte| byte == b'\n') {
        let text = line.trim_ascii_end();
        in_fields &= !text.is_empty();
        let text = std::str::from_utf8(text).unwrap_or_default();
        let field = text.split_once(':').filter(|_| in_fields);
        if !field.is_some_and(|(name, value)| is_out(name, value.trim())) {
            edited.extend_from_slice(line);
        }
    }
    (edited.len() < block.len()).then_some(edited)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use crawl_weburl::{CanonicalUrl, HostKey, canonicalize};

    use super::{RemovalSelection, rewrite_archive};
    use crate::archive_writer::{ArchiveOptions, ArchiveWriter, CaptureLocation};
    use crate::capture::{Capture, CaptureMetadata, CapturedRequest, RecordIds};
    use crate::cdxj_index_rebuild::write_index;
    use crate::timestamp::Timestamp;
    use crate::warc_compression::{WarcCompression, strip_warc_suffix};
    use crate::warc_reader::{WarcReader, read_record};
    use crate::warc_record_encoder::CaptureEncoder;

    const GONE: &str = "http://a.example/gone";

    fn url(text: &str) -> CanonicalUrl {
        canonicalize(None, text).unwrap()
    }

    fn append(
        archive: &mut ArchiveWriter,
        compression: WarcCompression,
        target: &str,
        via: Option<&str>,
        number: u64,
    ) -> CaptureLocation {
        let target = url(target);
        let referer = via.map(|via| ("referer".to_owned(), via.to_owned()));
        let sent: Vec<_> = referer.into_iter().collect();
        let headers = http::HeaderMap::new();
        let body = format!("<p>the words of {target}");
        let capture = Capture {
            url: &target,
            started: Timestamp::from_micros(1_795_000_000_000_000 + number * 1_000_000),
            millis: 42,
            address: None,
            protocol: http::Version::HTTP_11,
            tls: None,
            request: CapturedRequest {
                method: "GET",
                headers: &sent,
                body: &[],
            },
            status: 200,
            reason: None,
            headers: &headers,
            body: body.as_bytes(),
            truncated: None,
            revisit: None,
            about: CaptureMetadata {
                via,
                depth: Some(1),
                ..CaptureMetadata::default()
            },
        };
        let ids = RecordIds::numbered(number);
        let encoded = CaptureEncoder::new(compression).encode(&capture, &ids);
        archive.append(&encoded).unwrap()
    }

    /// Returns the decompressed records of all files of an archive.
    fn unpacked(dir: &Path) -> String {
        let mut text = String::new();
        for entry in fs::read_dir(dir.join("archive")).unwrap() {
            let path = entry.unwrap().path();
            text += &path.display().to_string();
            if strip_warc_suffix(&path.to_string_lossy()).is_none() {
                text += &fs::read_to_string(&path).unwrap();
                continue;
            }
            for record in WarcReader::open(&path).unwrap() {
                let record = record.unwrap();
                assert_eq!(record.wrong_digest(), None);
                text += &format!("{:?}", record.fields);
                text += &String::from_utf8_lossy(&record.block);
            }
        }
        text
    }

    fn check(removal: &RemovalSelection, name: &str, compression: WarcCompression) {
        let (dir, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let options = ArchiveOptions {
            prefix: "b.example".to_owned(),
            compression,
            ..ArchiveOptions::default()
        };
        let mut archive = ArchiveWriter::open(dir.path(), options, &BTreeMap::new()).unwrap();
        append(&mut archive, compression, GONE, None, 1);
        append(&mut archive, compression, "http://b.example/gone", None, 2);
        let places = [
            append(
                &mut archive,
                compression,
                "http://a.example/1",
                Some(GONE),
                3,
            ),
            append(
                &mut archive,
                compression,
                "http://a.example/2",
                Some("http://b.example/gone"),
                4,
            ),
            append(
                &mut archive,
                compression,
                "http://a.example/3",
                Some("http://a.example/1"),
                5,
            ),
        ];
        archive.sync().unwrap();
        let marks = archive
            .marks()
            .map(|(name, length)| (name.to_owned(), length));
        let marks: BTreeMap<String, u64> = marks.collect();
        // This record is not committed, so it must be missing from the result.
        append(
            &mut archive,
            compression,
            "http://a.example/uncommitted",
            None,
            6,
        );
        archive.sync().unwrap();
        let counted = rewrite_archive(dir.path(), None, removal, &marks).unwrap();
        let done = rewrite_archive(dir.path(), Some(to.path()), removal, &marks).unwrap();
        assert_eq!(
            (counted.dropped, counted.changed),
            (done.dropped, done.changed)
        );
        assert_eq!(done.dropped, 3, "{done:?}");
        let text = unpacked(to.path());
        assert!(
            !text.contains(name) && !text.contains("uncommitted"),
            "{text}"
        );
        for (place, number) in places.iter().zip(1..) {
            let old = crate::rows::WarcRecordLocation {
                file: place.file.clone(),
                offset: place.offset,
            };
            let new = done.place(&old);
            let path = to.path().join("archive").join(&new.file);
            let record = read_record(&path, new.offset).unwrap();
            assert_eq!(record.url(), Some(&*format!("http://a.example/{number}")));
            assert_eq!(record.kind(), "response");
            let older = read_record(&dir.path().join("archive").join(&old.file), old.offset);
            assert_eq!(record.block, older.unwrap().block);
        }
        for (mark, length) in &done.marks {
            assert_eq!(fs::metadata(to.path().join(mark)).unwrap().len(), *length);
        }
        let captures = done.marks["archive/captures.cdxj"];
        assert_eq!(write_index(to.path(), captures).unwrap(), 4);
        ArchiveWriter::open(to.path(), ArchiveOptions::default(), &done.marks).unwrap();
    }

    fn check_all(removal: &RemovalSelection, name: &str) {
        check(removal, name, WarcCompression::Gzip);
        check(removal, name, WarcCompression::Zstd);
        check(removal, name, WarcCompression::Plain);
    }

    #[test]
    fn no_byte_of_a_removed_page_stays_in_the_archive() {
        let mut removal = RemovalSelection::default();
        removal.add_page(&url(GONE));
        check_all(&removal, GONE);
    }

    #[test]
    fn no_byte_of_a_removed_host_stays_in_the_archive_or_its_file_names() {
        let mut removal = RemovalSelection::default();
        removal.add_host(HostKey::parse("b.example").unwrap());
        check_all(&removal, "b.example");
    }

    #[test]
    fn an_archive_without_removed_records_is_unchanged() {
        let (dir, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let options = ArchiveOptions::default();
        let mut archive = ArchiveWriter::open(dir.path(), options, &BTreeMap::new()).unwrap();
        let gzip = WarcCompression::Gzip;
        append(&mut archive, gzip, "http://a.example/1", None, 1);
        archive.sync().unwrap();
        let marks = archive
            .marks()
            .map(|(name, length)| (name.to_owned(), length));
        let marks: BTreeMap<String, u64> = marks.collect();
        let mut removal = RemovalSelection::default();
        removal.add_page(&url(GONE));
        let done = rewrite_archive(dir.path(), Some(to.path()), &removal, &marks).unwrap();
        assert_eq!(
            (done.renamed().count(), done.dropped, done.changed),
            (0, 0, 0)
        );
        assert_eq!(done.marks, marks);
    }
}
