//! Checks that the files of an index have not changed since they were written.
//!
//! Each file of a segment ends with a checksum that tantivy writes, but tantivy trusts the lengths
//! stored in the file. In a damaged file, a wrong length can make tantivy panic or allocate
//! gigabytes. So the checksums are verified before tantivy reads the files, one small part of a
//! file at a time. `meta.json` has no checksum, so its counts are compared with the files of each
//! segment.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use flate2::Crc;
use serde::Deserialize;
use tantivy::index::{SegmentComponent, SegmentMeta};
use tantivy::{Index, IndexMeta};

use crate::error::{IndexError, guarded};
use crate::schema::{FORMAT_FILE, check_format};
use crate::tantivy_directory::{IndexDirectory, META_FILE};

/// The file in which tantivy lists the files that it may delete.
const MANAGED_FILE: &str = ".managed.json";
/// Maximum size of a metadata file in bytes. Such files are read completely.
const MAX_META_BYTES: u64 = 16 << 20;
/// Maximum size in bytes of the JSON footer at the end of a file. Same value as in tantivy.
const MAX_FOOTER_BYTES: u32 = 50_000;
/// The number in the last four bytes of each file. Same value as in tantivy.
const FOOTER_MAGIC: u32 = 1337;
/// Number of bytes that are read at a time to compute a checksum.
const CHUNK_BYTES: usize = 64 << 10;

/// Which files of an index are compared with their checksums.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChecksumFileFilter {
    /// All files.
    Whole,
    /// Only files with at most this many bytes of content.
    UpTo(u64),
}

/// Checks a whole index: its format, the names of its files, and the checksum of each file. Calls
/// `is_stopped` between small parts of the files. Returns false if stopped because `is_stopped`
/// returned true.
///
/// # Errors
/// [`IndexError::Damaged`] with the name of the damaged file, or an I/O error.
pub(crate) fn check(dir: &Path, is_stopped: &dyn Fn() -> bool) -> Result<bool, IndexError> {
    check_format(dir)?;
    check_names(dir)?;
    let open = |file: &Path| File::open(dir.join(file));
    check_segments(
        dir,
        &metas(dir)?,
        open,
        ChecksumFileFilter::Whole,
        is_stopped,
    )
}

/// Compares all files of the index in `dir` with their checksums.
///
/// # Errors
/// [`IndexError`] if there is no index, it has another format or is damaged, or an I/O error.
pub fn check_checksums(dir: &Path) -> Result<(), IndexError> {
    check(dir, &|| false).map(drop)
}

/// Checks the files of one commit. `open` opens a file by its name. Returns false if stopped
/// because `is_stopped` returned true.
///
/// # Errors
/// [`IndexError::Damaged`] with the name of the damaged file, or an I/O error.
pub(crate) fn check_segments<F: Read + Seek>(
    dir: &Path,
    metas: &IndexMeta,
    open: impl Fn(&Path) -> io::Result<F>,
    checked: ChecksumFileFilter,
    is_stopped: &dyn Fn() -> bool,
) -> Result<bool, IndexError> {
    for segment in &metas.segments {
        if segment.delete_opstamp() > Some(metas.opstamp)
            || segment.num_deleted_docs() > segment.max_doc()
        {
            return Err(IndexError::damaged(
                dir,
                format!("{META_FILE} contradicts itself"),
            ));
        }
        for file in files(segment) {
            let of_file = |fault| damaged(dir, &file, fault);
            let opened = open(&file).map_err(IndexFileFault::from);
            let looked = opened.and_then(|opened| check_file(opened, checked, is_stopped));
            if !looked.map_err(of_file)? {
                return Ok(false);
            }
        }
        check_counts(dir, segment, &open)?;
    }
    Ok(true)
}

/// Reads and parses `meta.json`.
///
/// # Errors
/// [`IndexError::Damaged`] if the content is invalid, or an I/O error.
pub(crate) fn metas(dir: &Path) -> Result<IndexMeta, IndexError> {
    read_small(dir, META_FILE)?;
    guarded(dir, || {
        let index = IndexDirectory::open(dir).and_then(Index::open);
        let index = index.map_err(IndexError::of(dir))?;
        index.load_metas().map_err(IndexError::of(dir))
    })
}

/// Checks the list of managed files. tantivy deletes each listed file that no commit uses, so the
/// list must not contain the names of foreign files.
fn check_names(dir: &Path) -> Result<(), IndexError> {
    #[derive(Deserialize)]
    struct ManagedFileNames(Vec<PathBuf>);

    let text = read_small(dir, MANAGED_FILE)?;
    let names: ManagedFileNames = serde_json::from_slice(&text)
        .map_err(|error| IndexError::damaged(dir, format!("{MANAGED_FILE}: {error}")))?;
    let is_plain = |name: &PathBuf| {
        let mut parts = name.components();
        matches!(
            (parts.next(), parts.next()),
            (Some(Component::Normal(_)), None)
        ) && name.as_os_str() != FORMAT_FILE
    };
    match names.0.iter().find(|name| !is_plain(name)) {
        Some(name) => {
            let message = format!("{MANAGED_FILE} names `{}`", name.display());
            Err(IndexError::damaged(dir, message))
        }
        None => Ok(()),
    }
}

/// Reads a whole metadata file. Fails if it is larger than `MAX_META_BYTES`.
pub(crate) fn read_small(dir: &Path, name: &str) -> Result<Vec<u8>, IndexError> {
    let path = dir.join(name);
    let mut text = Vec::new();
    let read =
        File::open(&path).and_then(|file| file.take(MAX_META_BYTES + 1).read_to_end(&mut text));
    read.map_err(|error| damaged(dir, Path::new(name), error.into()))?;
    match text.len() as u64 > MAX_META_BYTES {
        true => Err(IndexError::damaged(
            dir,
            format!("{name} has more than {MAX_META_BYTES} bytes"),
        )),
        false => Ok(text),
    }
}

/// Returns the names of a segment's files.
pub(crate) fn files(segment: &SegmentMeta) -> impl Iterator<Item = PathBuf> {
    let deletions = segment.has_deletes().then_some(SegmentComponent::Delete);
    let all = [
        SegmentComponent::FieldNorms,
        SegmentComponent::Terms,
        SegmentComponent::Postings,
        SegmentComponent::Positions,
        SegmentComponent::FastFields,
        SegmentComponent::Store,
    ];
    let all = all.into_iter().chain(deletions);
    all.map(|component| segment.relative_path(component))
}

/// The reason why a file of the index can't be used.
enum IndexFileFault {
    Disk(io::Error),
    Contents(&'static str),
}

impl From<io::Error> for IndexFileFault {
    fn from(error: io::Error) -> IndexFileFault {
        IndexFileFault::Disk(error)
    }
}

fn damaged(dir: &Path, file: &Path, fault: IndexFileFault) -> IndexError {
    use io::ErrorKind::{IsADirectory, NotFound, UnexpectedEof};
    let message = match fault {
        IndexFileFault::Contents(message) => message.to_owned(),
        IndexFileFault::Disk(error) => match error.kind() {
            NotFound => "is missing".to_owned(),
            UnexpectedEof | IsADirectory => error.to_string(),
            _ => return IndexError::disk(&dir.join(file))(error),
        },
    };
    IndexError::damaged(dir, format!("{} {message}", file.display()))
}

/// Compares a file's checksum with the one stored at its end. Returns false if stopped because
/// `is_stopped` returned true.
fn check_file(
    mut file: impl Read + Seek,
    checked: ChecksumFileFilter,
    is_stopped: &dyn Fn() -> bool,
) -> Result<bool, IndexFileFault> {
    #[derive(Deserialize)]
    struct Footer {
        crc: u32,
    }

    let length = file.seek(SeekFrom::End(0))?;
    let too_short = IndexFileFault::Contents("is cut off");
    let Some(ends_at) = length.checked_sub(8) else {
        return Err(too_short);
    };
    let mut end = [0; 8];
    file.seek(SeekFrom::Start(ends_at))?;
    file.read_exact(&mut end)?;
    let number = |at: usize| u32::from_le_bytes([end[at], end[at + 1], end[at + 2], end[at + 3]]);
    let (footer_bytes, magic) = (number(0), number(4));
    let begins_at = ends_at.checked_sub(u64::from(footer_bytes));
    let Some(begins_at) =
        begins_at.filter(|_| footer_bytes <= MAX_FOOTER_BYTES && magic == FOOTER_MAGIC)
    else {
        return Err(IndexFileFault::Contents("has no end"));
    };
    let mut footer = vec![0; footer_bytes as usize];
    file.seek(SeekFrom::Start(begins_at))?;
    file.read_exact(&mut footer)?;
    let Ok(footer) = serde_json::from_slice::<Footer>(&footer) else {
        return Err(IndexFileFault::Contents("has no end"));
    };
    if matches!(checked, ChecksumFileFilter::UpTo(most) if begins_at > most) {
        return Ok(true);
    }
    file.seek(SeekFrom::Start(0))?;
    let mut data = file.take(begins_at);
    let (mut crc, mut chunk) = (Crc::new(), vec![0; CHUNK_BYTES]);
    loop {
        if is_stopped() {
            return Ok(false);
        }
        match data.read(&mut chunk)? {
            0 => break,
            read => crc.update(&chunk[..read]),
        }
    }
    match crc.sum() == footer.crc {
        true => Ok(true),
        false => Err(IndexFileFault::Contents("is not as it was written")),
    }
}

/// Compares the page counts of a segment in `meta.json` with its files. The caller must have
/// verified the files' checksums.
fn check_counts<F: Read + Seek>(
    dir: &Path,
    segment: &SegmentMeta,
    open: impl Fn(&Path) -> io::Result<F>,
) -> Result<(), IndexError> {
    // The field norms take a byte per field and document, so a smaller file means a wrong count.
    let path = segment.relative_path(SegmentComponent::FieldNorms);
    let norms = open(&path).and_then(|mut norms| norms.seek(SeekFrom::End(0)));
    let norms = norms.map_err(IndexError::disk(&dir.join(path)))?;
    let mut fits = u64::from(segment.max_doc()) <= norms;
    if fits && segment.has_deletes() {
        let path = segment.relative_path(SegmentComponent::Delete);
        let alive = open(&path).and_then(|file| alive(file, segment.max_doc()));
        let alive = alive.map_err(IndexError::disk(&dir.join(path)))?;
        fits = alive == Some(segment.num_docs());
    }
    match fits {
        true => Ok(()),
        false => {
            let message = format!(
                "{META_FILE} miscounts the pages of {}",
                segment.id().uuid_string()
            );
            Err(IndexError::damaged(dir, message))
        }
    }
}

/// Returns the number of documents that are not deleted, according to a segment's deletion file.
/// `None` if the file belongs to a segment with another number of documents.
fn alive(mut file: impl Read, documents: u32) -> io::Result<Option<u32>> {
    let mut count = [0; 4];
    file.read_exact(&mut count)?;
    if u32::from_le_bytes(count) != documents {
        return Ok(None);
    }
    let mut bits = Vec::new();
    file.take(u64::from(documents.div_ceil(64)) * 8)
        .read_to_end(&mut bits)?;
    Ok(Some(bits.iter().map(|byte| byte.count_ones()).sum()))
}
