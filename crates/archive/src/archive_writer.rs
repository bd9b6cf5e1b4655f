//! Manages the files in the archive's folder: their names, rotation, lengths and syncs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::appender::{Appender, check_length, sync_folder};
use crate::archive_layout::{CAPTURES, FOLDER};
use crate::cdxj;
use crate::cdxj_index_rebuild::{remove_temporary, write_index};
use crate::digest::DigestAlgorithm;
use crate::disk_interface::Disk;
use crate::error::ArchiveWriteError;
use crate::regular_file::replace_file;
use crate::row_files::RowFileWriter;
use crate::timestamp::Timestamp;
use crate::warc_compression::{WarcCompression, strip_warc_suffix};
use crate::warc_reader::read_record;
use crate::warc_record_encoder::{CaptureEncoder, EncodedCapture, Warcinfo};

/// Maximum length of the prefix in a file name, in bytes. Even with this prefix, a date and a
/// number, a name is far shorter than the 255 bytes that file systems allow.
const MAX_PREFIX: usize = 64;

/// Settings for the names and sizes of WARC files, and for their warcinfo records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveOptions {
    /// The part of file names between `crawl-` and the date, usually the host of the first seed.
    /// Unsuitable characters become hyphens.
    pub prefix: String,
    /// Maximum file size in bytes; archives usually use 1 GB. Only a file with a single capture may
    /// exceed it.
    pub max_file_bytes: u64,
    /// The compression of files that are created.
    pub compression: WarcCompression,
    /// The content of the warcinfo record.
    pub warcinfo: Warcinfo,
}

impl Default for ArchiveOptions {
    fn default() -> ArchiveOptions {
        ArchiveOptions {
            prefix: String::new(),
            max_file_bytes: 1_000_000_000,
            compression: WarcCompression::default(),
            warcinfo: Warcinfo::default(),
        }
    }
}

/// The location of an appended capture: the file, and the offset of its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureLocation {
    /// The name of the file in the folder `archive`.
    pub file: String,
    /// Offset of the compressed response or revisit record, in bytes.
    pub offset: u64,
    /// Length of the compressed record, in bytes.
    pub length: u64,
    /// The labelled payload digest, from [`EncodedCapture::digest`].
    pub digest: String,
}

/// The archive folder of one crawl, open for writing.
///
/// Appended records only count after two steps: [`sync`](ArchiveWriter::sync), and then a commit
/// (by the caller) of the lengths that [`marks`](ArchiveWriter::marks) returns. The next
/// [`open`](ArchiveWriter::open) truncates all files to the committed lengths.
pub struct ArchiveWriter {
    disk: Disk,
    dir: PathBuf,
    folder: PathBuf,
    options: ArchiveOptions,
    encoder: CaptureEncoder,
    captures: RowFileWriter,
    current: Option<WarcFile>,
    next_serial: u64,
    /// Whether the folder may have new file names that are not synced to the disk.
    new_entries: bool,
    /// The lengths at the last sync of files written since the archive was opened.
    synced: BTreeMap<String, u64>,
}

struct WarcFile {
    name: String,
    appender: Appender,
    /// Whether the file contains any record after its warcinfo.
    used: bool,
}

impl ArchiveWriter {
    /// Opens or creates the folder `archive` in a crawl's directory. `marks` has the committed
    /// lengths, by path. Truncates the files to these lengths, and removes this program's WARC
    /// files that are not in `marks`, because they were never committed. Keeps other files.
    ///
    /// The last file is continued, unless its warcinfo record or its compression would be different
    /// now, or the file has a second name (a hard link, under which it must not change). In these
    /// cases a new file begins with the next capture. The captures to append must be encoded with
    /// the compression of `options`.
    ///
    /// # Errors
    /// [`ArchiveWriteError::Short`] if a file lost committed bytes; then nothing was changed.
    /// [`ArchiveWriteError::ForeignMark`] if `marks` has a name that can't be that of an archive's file,
    /// or an I/O error.
    pub fn open(
        dir: &Path,
        options: ArchiveOptions,
        marks: &BTreeMap<String, u64>,
    ) -> Result<ArchiveWriter, ArchiveWriteError> {
        ArchiveWriter::open_on(&Disk::default(), dir, options, marks)
    }

    /// Opens or creates the archive like [`ArchiveWriter::open`], on the given disk.
    ///
    /// # Errors
    /// The errors of [`ArchiveWriter::open`].
    pub fn open_on(
        disk: &Disk,
        dir: &Path,
        options: ArchiveOptions,
        marks: &BTreeMap<String, u64>,
    ) -> Result<ArchiveWriter, ArchiveWriteError> {
        let folder = dir.join(FOLDER);
        let committed = CommittedLengths::of(marks)?;
        committed.check(&folder)?;
        fs::create_dir_all(&folder)
            .map_err(|error| ArchiveWriteError::io("make", &folder, error))?;
        sync_folder(dir)?;
        committed.tidy(&folder)?;
        let captures = RowFileWriter::open_on(disk, &folder.join(CAPTURES), committed.captures)?;
        let mut archive = ArchiveWriter {
            disk: disk.clone(),
            dir: dir.to_owned(),
            encoder: CaptureEncoder::new(options.compression),
            options,
            captures,
            current: None,
            next_serial: 0,
            new_entries: true,
            synced: BTreeMap::new(),
            folder,
        };
        archive.cut_back(&committed)?;
        Ok(archive)
    }

    /// Appends the records of a capture. If this fails, no part of the records stays in the file.
    ///
    /// # Errors
    /// [`ArchiveWriteError::Full`] and other I/O errors.
    pub fn append(
        &mut self,
        encoded: &EncodedCapture,
    ) -> Result<CaptureLocation, ArchiveWriteError> {
        let mut file = match self.current.take() {
            Some(file) if self.has_room(&file, encoded) => file,
            Some(file) => {
                self.end(file)?;
                self.begin(encoded)?
            }
            None => self.begin(encoded)?,
        };
        let begin = file.appender.append(&encoded.records);
        file.used |= begin.is_ok();
        let file = self.current.insert(file);
        let begin = begin?;
        let offset = begin + encoded.response.start as u64;
        let receipt = CaptureLocation {
            file: file.name.clone(),
            offset,
            length: encoded.response.len() as u64,
            digest: encoded.digest().to_owned(),
        };
        self.captures.append_line(&cdxj::line(
            &encoded.index_head,
            receipt.offset,
            receipt.length,
            &receipt.file,
        ));
        if let Some((range, head)) = &encoded.screenshot {
            let offset = begin + range.start as u64;
            let line = cdxj::line(head, offset, range.len() as u64, &receipt.file);
            self.captures.append_line(&line);
        }
        Ok(receipt)
    }

    /// Waits until all appended records and the names of new files are on the disk.
    ///
    /// # Errors
    /// I/O errors.
    pub fn sync(&mut self) -> Result<(), ArchiveWriteError> {
        self.captures.sync()?;
        if let Some(mut file) = self.current.take() {
            let synced = self.sync_file(&mut file);
            self.current = Some(file);
            synced?;
        }
        if self.new_entries {
            sync_folder(&self.folder)?;
            self.new_entries = false;
        }
        self.synced.insert(mark(CAPTURES), self.captures.len());
        Ok(())
    }

    /// Returns the lengths to commit, by path relative to the crawl's directory. The result has
    /// each file written since the archive was opened, with its length at the last
    /// [`sync`](ArchiveWriter::sync).
    pub fn marks(&self) -> impl Iterator<Item = (&str, u64)> {
        self.synced
            .iter()
            .map(|(name, length)| (name.as_str(), *length))
    }

    /// Rewrites the sorted index from the capture log, and returns the number of lines.
    ///
    /// # Errors
    /// I/O errors. The old index stays.
    pub fn write_index(&mut self) -> Result<u64, ArchiveWriteError> {
        self.captures.flush()?;
        write_index(&self.dir, self.captures.len())
    }

    fn has_room(&self, file: &WarcFile, encoded: &EncodedCapture) -> bool {
        let length = file.appender.length() + encoded.bytes();
        !file.used || length <= self.options.max_file_bytes
    }

    /// Begins a WARC file with its warcinfo record. The date in the file's name is the date of its
    /// first capture.
    fn begin(&mut self, first: &EncodedCapture) -> Result<WarcFile, ArchiveWriteError> {
        let name = file_name(&self.options, first.started, self.next_serial);
        let path = self.folder.join(&name);
        let id = warcinfo_id(first.id);
        let record = self
            .encoder
            .warcinfo(&self.options.warcinfo, &name, first.started, id);
        replace_file(&path).map_err(|error| ArchiveWriteError::io("make", &path, error))?;
        let mut appender = Appender::open(&self.disk, &path, 0)?;
        if let Err(error) = appender.append(&record) {
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        self.next_serial += 1;
        self.new_entries = true;
        Ok(WarcFile {
            name,
            appender,
            used: false,
        })
    }

    /// Syncs a WARC file that is complete.
    fn end(&mut self, mut file: WarcFile) -> Result<(), ArchiveWriteError> {
        let synced = self.sync_file(&mut file);
        if synced.is_err() {
            self.current = Some(file);
        }
        synced
    }

    fn sync_file(&mut self, file: &mut WarcFile) -> Result<(), ArchiveWriteError> {
        file.appender.sync()?;
        self.synced.insert(mark(&file.name), file.appender.length());
        Ok(())
    }

    /// Truncates all files to their committed lengths. Keeps the last file open if it can be
    /// continued.
    fn cut_back(&mut self, committed: &CommittedLengths) -> Result<(), ArchiveWriteError> {
        let mut last = None;
        for (name, &length) in &committed.warcs {
            let mut appender = Appender::open(&self.disk, &self.folder.join(name), length)?;
            appender.sync()?;
            let serial = serial(name).unwrap_or(0);
            if self.next_serial <= serial {
                self.next_serial = serial + 1;
                last = Some(WarcFile {
                    name: name.clone(),
                    appender,
                    used: true,
                });
            }
        }
        self.current = last.filter(|file| {
            let stem = strip_warc_suffix(&file.name).unwrap_or_default();
            file.name[stem.len()..] == *self.options.compression.suffix()
                && file.appender.has_one_name().unwrap_or(false)
                && read_record(file.appender.path(), 0)
                    .is_ok_and(|first| first.block == self.options.warcinfo.block())
        });
        Ok(())
    }
}

/// Returns the current lengths of an archive's files, by the paths that [`ArchiveWriter::marks`]
/// uses. Call this only for a directory without a running crawl, because only then all bytes are
/// committed.
///
/// # Errors
/// I/O errors.
pub fn marks_at_rest(dir: &Path) -> io::Result<BTreeMap<String, u64>> {
    let mut marks = BTreeMap::new();
    let entries = match fs::read_dir(dir.join(FOLDER)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(marks),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        if name == CAPTURES || serial(&name).is_some() {
            marks.insert(mark(&name), entry.metadata()?.len());
        }
    }
    Ok(marks)
}

/// The committed lengths of the files in the archive's folder.
struct CommittedLengths {
    captures: Option<u64>,
    warcs: BTreeMap<String, u64>,
}

impl CommittedLengths {
    fn of(marks: &BTreeMap<String, u64>) -> Result<CommittedLengths, ArchiveWriteError> {
        let mut committed = CommittedLengths {
            captures: None,
            warcs: BTreeMap::new(),
        };
        for (mark, &length) in marks {
            match mark.strip_prefix(FOLDER).and_then(|m| m.strip_prefix('/')) {
                None => {}
                Some(CAPTURES) => committed.captures = Some(length),
                Some(name) if serial(name).is_some() => {
                    committed.warcs.insert(name.to_owned(), length);
                }
                Some(_) => return Err(ArchiveWriteError::ForeignMark { name: mark.clone() }),
            }
        }
        Ok(committed)
    }

    fn check(&self, folder: &Path) -> Result<(), ArchiveWriteError> {
        check_length(&folder.join(CAPTURES), self.captures.unwrap_or(0))?;
        for (name, &length) in &self.warcs {
            check_length(&folder.join(name), length)?;
        }
        Ok(())
    }

    /// Removes WARC files of this program that were never committed.
    fn tidy(&self, folder: &Path) -> Result<(), ArchiveWriteError> {
        let failed = |error| ArchiveWriteError::io("tidy", folder, error);
        remove_temporary(folder).map_err(failed)?;
        for entry in fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let warc_name = name.to_str().filter(|name| serial(name).is_some());
            if warc_name.is_some_and(|name| !self.warcs.contains_key(name)) {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(())
    }
}

pub(crate) fn mark(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

/// Returns the name of a WARC file: `crawl-PREFIX-YYYYMMDDhhmmss-00000.warc.gz`, or with the suffix
/// of another compression.
fn file_name(options: &ArchiveOptions, date: Timestamp, serial: u64) -> String {
    let prefix = suited(&options.prefix);
    let parts = [
        "crawl",
        &prefix,
        &date.fourteen_digits(),
        &format!("{serial:05}"),
    ];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("-") + options.compression.suffix()
}

/// Replaces the characters of a prefix that are unsuitable in a file name.
pub(crate) fn suited(prefix: &str) -> String {
    let suits = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    let prefix: String = prefix
        .chars()
        .take(MAX_PREFIX)
        .map(|c| if suits(c) { c } else { '-' })
        .collect();
    prefix.trim_matches('-').to_owned()
}

/// Returns the number in a name of the form that [`file_name`] returns. `None` for other names.
pub(crate) fn serial(name: &str) -> Option<u64> {
    let stem = strip_warc_suffix(name.strip_prefix("crawl-")?)?;
    let (rest, serial) = stem.rsplit_once('-')?;
    let date = rest.rsplit('-').next()?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_warc = date.len() == 14 && digits(date) && serial.len() >= 5 && digits(serial);
    let is_plain = !name.contains('/');
    serial.parse().ok().filter(|_| is_warc && is_plain)
}

/// Derives the id of a warcinfo record from the id of the file's first capture. The derived id is
/// just as unique, and the same captures always give the same id.
fn warcinfo_id(first: Uuid) -> Uuid {
    let digest = DigestAlgorithm::Sha1.bytes(&[b"warcinfo", first.as_bytes()]);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_sha1_bytes(bytes).into_uuid()
}
