//! The files of the archive folder: names, rotation, lengths, syncs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::appender::{Appender, check_length, sync_folder};
use crate::cdxj;
use crate::cdxj_index::{remove_temporary, write_index};
use crate::digest::DigestAlgorithm;
use crate::error::ArchiveError;
use crate::names::{CAPTURES, FOLDER};
use crate::regular_file::create_anew;
use crate::row_files::RowFile;
use crate::timestamp::Timestamp;
use crate::warc::{EncodedCapture, Encoder, Warcinfo};
use crate::warc_reader::read_record;

const SUFFIX: &str = ".warc.gz";
/// Longest prefix in a name of a file; with date and number far below the 255 bytes
/// that file systems allow.
const MAX_PREFIX: usize = 64;

/// The settings by which files are named, filled and introduced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveOptions {
    /// The part of file names between `crawl-` and the date; commonly the host of the
    /// first seed. What does not suit a name becomes a hyphen.
    pub prefix: String,
    /// A file that would become longer is ended first, unless it holds no capture.
    /// Bytes; the usual size among archives is 1 GB.
    pub max_file_bytes: u64,
    /// The content of the warcinfo record.
    pub warcinfo: Warcinfo,
}

impl Default for ArchiveOptions {
    fn default() -> ArchiveOptions {
        ArchiveOptions {
            prefix: String::new(),
            max_file_bytes: 1_000_000_000,
            warcinfo: Warcinfo::default(),
        }
    }
}

/// The place of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The name of the file in the folder `archive`.
    pub file: String,
    /// The beginning of the gzip member of the response or revisit record, in bytes.
    pub offset: u64,
    /// The length of that member, in bytes.
    pub length: u64,
    /// The labelled digest of the body, as [`EncodedCapture::digest`] has it.
    pub digest: String,
}

/// The archive folder of one crawl, open for writing.
///
/// Records that were appended count only from the moment when the lengths that
/// [`marks`](Archive::marks) gives after a [`sync`](Archive::sync) are committed
/// elsewhere: the next open cuts everything back to the lengths that it is told.
pub struct Archive {
    dir: PathBuf,
    folder: PathBuf,
    options: ArchiveOptions,
    encoder: Encoder,
    captures: RowFile,
    current: Option<WarcFile>,
    next_serial: u64,
    /// True if the folder has entries that are not durable yet.
    new_entries: bool,
    /// Lengths that are on the disk, of files that were written by this value.
    synced: BTreeMap<String, u64>,
}

struct WarcFile {
    name: String,
    appender: Appender,
    /// True if it holds more than its warcinfo.
    used: bool,
}

impl Archive {
    /// Opens the folder `archive` in the directory of a crawl, and makes it where it is
    /// missing. Files named in `marks` are cut back to the lengths there; WARC files of
    /// ours that are not named were never committed and are removed. Other files are
    /// left alone.
    ///
    /// The last file is written on if it is introduced the same way and has no other name (a
    /// hard link, by which others keep it); else a new one begins with the first capture.
    ///
    /// # Errors
    /// [`ArchiveError::Short`] where a file lost committed bytes; then nothing was
    /// changed. [`ArchiveError::ForeignMark`], or an error of the file system.
    pub fn open(
        dir: &Path,
        options: ArchiveOptions,
        marks: &BTreeMap<String, u64>,
    ) -> Result<Archive, ArchiveError> {
        let folder = dir.join(FOLDER);
        let committed = Committed::of(marks)?;
        committed.check(&folder)?;
        fs::create_dir_all(&folder).map_err(|error| ArchiveError::io("make", &folder, error))?;
        sync_folder(dir)?;
        committed.tidy(&folder)?;
        let captures = RowFile::open(&folder.join(CAPTURES), committed.captures)?;
        let mut archive = Archive {
            dir: dir.to_owned(),
            encoder: Encoder::default(),
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

    /// Appends the records of a capture. Nothing of it stays where that fails.
    ///
    /// # Errors
    /// [`ArchiveError::Full`] and others of the file system.
    pub fn append(&mut self, encoded: &EncodedCapture) -> Result<Receipt, ArchiveError> {
        let mut file = match self.current.take() {
            Some(file) if self.has_room(&file, encoded) => file,
            Some(file) => {
                self.end(file)?;
                self.begin(encoded)?
            }
            None => self.begin(encoded)?,
        };
        let begin = file.appender.append(&encoded.members);
        file.used |= begin.is_ok();
        let file = self.current.insert(file);
        let offset = begin? + encoded.response.start as u64;
        let receipt = Receipt {
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
        Ok(receipt)
    }

    /// Waits until everything that was appended is on the disk, new files' names too.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn sync(&mut self) -> Result<(), ArchiveError> {
        self.captures.sync()?;
        if let Some(mut file) = self.current.take() {
            let done = self.sync_file(&mut file);
            self.current = Some(file);
            done?;
        }
        if self.new_entries {
            sync_folder(&self.folder)?;
            self.new_entries = false;
        }
        self.synced.insert(mark(CAPTURES), self.captures.len());
        Ok(())
    }

    /// The lengths to be committed, by file as seen from the crawl's directory: as they
    /// were at the last [`sync`](Archive::sync), of files that were written since open.
    pub fn marks(&self) -> impl Iterator<Item = (&str, u64)> {
        self.synced
            .iter()
            .map(|(name, length)| (name.as_str(), *length))
    }

    /// Writes the sorted index anew from all captures and says how many there are.
    ///
    /// # Errors
    /// Those of the file system; then the old index is still there.
    pub fn write_index(&mut self) -> Result<u64, ArchiveError> {
        self.captures.flush()?;
        write_index(&self.dir, self.captures.len())
    }

    fn has_room(&self, file: &WarcFile, encoded: &EncodedCapture) -> bool {
        let length = file.appender.length() + encoded.bytes();
        !file.used || length <= self.options.max_file_bytes
    }

    /// Begins a file whose date is that of its first capture.
    fn begin(&mut self, first: &EncodedCapture) -> Result<WarcFile, ArchiveError> {
        let name = file_name(&self.options.prefix, first.started, self.next_serial);
        let path = self.folder.join(&name);
        let id = warcinfo_id(first.id);
        let member = self
            .encoder
            .warcinfo(&self.options.warcinfo, &name, first.started, id);
        create_anew(&path).map_err(|error| ArchiveError::io("make", &path, error))?;
        let mut appender = Appender::open(&path, 0)?;
        if let Err(error) = appender.append(&member) {
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

    /// Ends a file: nothing is written to it any more.
    fn end(&mut self, mut file: WarcFile) -> Result<(), ArchiveError> {
        let done = self.sync_file(&mut file);
        if done.is_err() {
            self.current = Some(file);
        }
        done
    }

    fn sync_file(&mut self, file: &mut WarcFile) -> Result<(), ArchiveError> {
        file.appender.sync()?;
        self.synced.insert(mark(&file.name), file.appender.length());
        Ok(())
    }

    /// Cuts all files back and keeps the last one open where it can be written on.
    fn cut_back(&mut self, committed: &Committed) -> Result<(), ArchiveError> {
        let mut last = None;
        for (name, &length) in &committed.warcs {
            let mut appender = Appender::open(&self.folder.join(name), length)?;
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
            file.appender.has_one_name().unwrap_or(false)
                && read_record(file.appender.path(), 0)
                    .is_ok_and(|first| first.block == self.options.warcinfo.block())
        });
        Ok(())
    }
}

/// The lengths of an archive's files, as [`Archive::marks`] names them, in a directory where nothing
/// runs and all of them count.
///
/// # Errors
/// Those of the file system.
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

/// The committed lengths of this folder's files.
struct Committed {
    captures: Option<u64>,
    warcs: BTreeMap<String, u64>,
}

impl Committed {
    fn of(marks: &BTreeMap<String, u64>) -> Result<Committed, ArchiveError> {
        let mut committed = Committed {
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
                Some(_) => return Err(ArchiveError::ForeignMark { name: mark.clone() }),
            }
        }
        Ok(committed)
    }

    fn check(&self, folder: &Path) -> Result<(), ArchiveError> {
        check_length(&folder.join(CAPTURES), self.captures.unwrap_or(0))?;
        for (name, &length) in &self.warcs {
            check_length(&folder.join(name), length)?;
        }
        Ok(())
    }

    /// Removes files of ours that were never committed.
    fn tidy(&self, folder: &Path) -> Result<(), ArchiveError> {
        let failed = |error| ArchiveError::io("tidy", folder, error);
        remove_temporary(folder).map_err(failed)?;
        for entry in fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let ours = name.to_str().filter(|name| serial(name).is_some());
            if ours.is_some_and(|name| !self.warcs.contains_key(name)) {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(())
    }
}

pub(crate) fn mark(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

/// `crawl-PREFIX-YYYYMMDDhhmmss-00000.warc.gz`.
fn file_name(prefix: &str, date: Timestamp, serial: u64) -> String {
    let prefix = suited(prefix);
    let parts = [
        "crawl",
        &prefix,
        &date.fourteen_digits(),
        &format!("{serial:05}"),
    ];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("-") + SUFFIX
}

/// A prefix as it stands in a name.
pub(crate) fn suited(prefix: &str) -> String {
    let suits = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    let prefix: String = prefix
        .chars()
        .take(MAX_PREFIX)
        .map(|c| if suits(c) { c } else { '-' })
        .collect();
    prefix.trim_matches('-').to_owned()
}

/// The number at the end of a name that [`file_name`] makes; none for other names.
pub(crate) fn serial(name: &str) -> Option<u64> {
    let stem = name.strip_prefix("crawl-")?.strip_suffix(SUFFIX)?;
    let (rest, serial) = stem.rsplit_once('-')?;
    let date = rest.rsplit('-').next()?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let ours = date.len() == 14 && digits(date) && serial.len() >= 5 && digits(serial);
    let plain = !name.contains('/');
    serial.parse().ok().filter(|_| ours && plain)
}

/// An id that follows from that of the first capture: as unlike any other, and the same
/// where the captures are the same.
fn warcinfo_id(first: Uuid) -> Uuid {
    let digest = DigestAlgorithm::Sha1.bytes(&[b"warcinfo", first.as_bytes()]);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_sha1_bytes(bytes).into_uuid()
}
