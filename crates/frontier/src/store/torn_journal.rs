//! The end of the store's journal: cuts off a commit that a power cut tore, before the store reads
//! it.
//!
//! The store writes each commit as one batch at the end of its newest journal, and syncs it before
//! the next one begins. So only the last batch may be torn. The store itself handles a last batch
//! that ends too soon: it cuts the batch off. But the store refuses to open if a power cut lost a
//! sector in the middle of the last batch. And if the first byte of an entry is damaged, the store
//! cuts off everything behind it, including complete batches. So this module checks the journal
//! before the store opens:
//!
//! - If no complete batch follows the damage, and the journal is the newest, everything behind the
//!   last complete batch is cut off.
//! - If a complete batch follows the damage, or the journal is an older one, synced data was
//!   damaged. This is an error.
//!
//! A journal is a sequence of batches with little-endian numbers. Zeros may follow, because the
//! store preallocates space:
//!
//! ```text
//! start  01, items u32, sequence number u64
//! item   02, value type u8, compression u8, table u64, key length u16,
//!        value length u32, stored length u32, key, value
//! clear  04, table u64
//! end    03, xxh3 of all items u64, "FJL" 03
//! ```

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

/// The content of the store's file `version`, if its journals have the format that this module
/// reads. Each batch in a journal also ends with these bytes.
const FORMAT: &[u8; 4] = b"FJL\x03";

/// Maximum bytes at the end of a torn journal to search for complete batches. A commit has a few
/// megabytes at most.
/// Beyond the limit: reported as damage.
const MAX_TORN_BYTES: u64 = 256 << 20;

/// The size of the shortest item: a tag and a table number.
const MIN_ITEM_BYTES: u64 = 9;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;

/// The reason why a store's journals can't be used.
#[derive(Debug)]
pub(super) enum JournalError {
    Io(PathBuf, io::Error),
    /// A description of the damage, and why it can't be repaired.
    Damaged(String),
}

/// Checks all journals of a store, and cuts a torn commit off the newest one.
pub(super) fn cut_torn_commit(store: &Path) -> Result<(), JournalError> {
    let version = fs::read(store.join("version")).unwrap_or_default();
    if !version.starts_with(FORMAT) {
        // This module can't read the format of the store. Opening the store reports the error.
        return Ok(());
    }
    let mut journals = list(store).map_err(|why| JournalError::Io(store.to_owned(), why))?;
    journals.sort_unstable();
    let newest = journals.pop();
    for (_, path) in &journals {
        if let Some(damage) = examine(path)? {
            return Err(damage.refusal(path, "it was written whole before the next one"));
        }
    }
    let Some((_, path)) = newest else {
        return Ok(());
    };
    let Some(damage) = examine(&path)? else {
        return Ok(());
    };
    let io = |why| JournalError::Io(path.clone(), why);
    if damage.bytes > MAX_TORN_BYTES {
        return Err(damage.refusal(&path, "more bytes follow than one commit has"));
    }
    let mut file = File::options()
        .read(true)
        .write(true)
        .open(&path)
        .map_err(io)?;
    let mut torn = vec![0; damage.bytes as usize];
    file.seek(SeekFrom::Start(damage.at)).map_err(io)?;
    file.read_exact(&mut torn).map_err(io)?;
    if holds_batch(&torn) {
        return Err(damage.refusal(&path, "whole commits follow it"));
    }
    tracing::info!(
        path = %path.display(),
        bytes = damage.bytes,
        "a commit that a crash left unfinished is cut off"
    );
    file.set_len(damage.at)
        .and_then(|()| file.sync_all())
        .map_err(io)
}

/// Lists the journals of a store, each with its number. Ignores other files.
fn list(store: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut journals = Vec::new();
    for entry in fs::read_dir(store)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_suffix(".jnl")?.parse().ok());
        journals.extend(number.map(|number| (number, path)));
    }
    Ok(journals)
}

/// Bytes after the last complete batch of a journal that don't form a complete batch.
struct JournalDamage {
    /// The offset of the end of the last complete batch.
    at: u64,
    /// The number of bytes from `at` to the last nonzero byte.
    bytes: u64,
}

impl JournalDamage {
    fn refusal(&self, path: &Path, reason: &str) -> JournalError {
        let name = path.file_name().unwrap_or_default().display();
        JournalError::Damaged(format!(
            "journal {name} was changed behind byte {}: {reason}",
            self.at
        ))
    }
}

/// Reads a journal up to the end of its last complete batch. Returns the damage after it, or `None`
/// if only zeros follow.
fn examine(path: &Path) -> Result<Option<JournalDamage>, JournalError> {
    let find = || -> io::Result<Option<JournalDamage>> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let mut at = 0;
        while let Some(bytes) = read_batch(&mut reader, length - at)? {
            at += bytes;
        }
        reader.seek(SeekFrom::Start(at))?;
        let bytes = written(&mut reader)?;
        Ok((bytes > 0).then_some(JournalDamage { at, bytes }))
    };
    find().map_err(|why| JournalError::Io(path.to_owned(), why))
}

/// Returns the length of the remaining bytes without the zeros at their end.
fn written(reader: &mut impl Read) -> io::Result<u64> {
    let mut block = vec![0; 1 << 16];
    let zeros = vec![0; block.len()];
    let (mut read, mut last) = (0, 0);
    loop {
        let count = match reader.read(&mut block) {
            Ok(0) => return Ok(last),
            Ok(count) => count,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
            Err(why) => return Err(why),
        };
        // The store preallocates 64 MiB of zeros. Comparing whole blocks makes skipping them fast.
        if block[..count] != zeros[..count]
            && let Some(at) = block[..count].iter().rposition(|&byte| byte != 0)
        {
            last = read + at as u64 + 1;
        }
        read += count as u64;
    }
}

/// Returns whether a complete batch begins at any offset in `bytes`.
fn holds_batch(bytes: &[u8]) -> bool {
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == START);
    let mut rests = starts.map(|(at, _)| &bytes[at..]);
    rests.any(|rest| matches!(read_batch(&mut &*rest, rest.len() as u64), Ok(Some(_))))
}

/// Reads a batch of at most `available` bytes. Returns its length, or `None` if the bytes don't
/// start with a complete and intact batch.
fn read_batch(reader: &mut impl Read, available: u64) -> io::Result<Option<u64>> {
    let mut batch = BatchReader {
        reader: reader.take(available),
        items: Xxh3::new(),
    };
    match batch.read() {
        Ok(true) => Ok(Some(available - batch.reader.limit())),
        Ok(false) => Ok(None),
        Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(why) => Err(why),
    }
}

struct BatchReader<R> {
    reader: io::Take<R>,
    /// The checksum of the items read so far.
    items: Xxh3,
}

impl<R: Read> BatchReader<R> {
    fn read(&mut self) -> io::Result<bool> {
        let [start, items @ ..] = self.bytes::<5>()?;
        self.bytes::<8>()?;
        if start != START {
            return Ok(false);
        }
        let items = u32::from_le_bytes(items);
        if u64::from(items).saturating_mul(MIN_ITEM_BYTES) > self.reader.limit() {
            // The remaining bytes can't contain this many items. `holds_batch` tries to read a
            // batch at every offset; this check keeps it fast.
            return Ok(false);
        }
        for _ in 0..items {
            let [tag] = self.item_bytes()?;
            let is_whole = match tag {
                ITEM => self.item()?,
                CLEAR => self.item_bytes::<8>().map(|_| true)?,
                _ => false,
            };
            if !is_whole {
                return Ok(false);
            }
        }
        let [end] = self.bytes()?;
        let checksum = u64::from_le_bytes(self.bytes()?);
        Ok(end == END && checksum == self.items.digest() && self.bytes::<4>()? == *FORMAT)
    }

    fn item(&mut self) -> io::Result<bool> {
        // Skip value type, compression and table. These fields need no check of their own, because
        // the checksum of the batch covers them.
        self.item_bytes::<10>()?;
        let key = u16::from_le_bytes(self.item_bytes()?);
        self.item_bytes::<4>()?;
        let stored = u32::from_le_bytes(self.item_bytes()?);
        let mut rest = u64::from(key) + u64::from(stored);
        if rest > self.reader.limit() {
            return Ok(false);
        }
        let mut block = [0; 4096];
        while rest > 0 {
            let part = &mut block[..rest.min(4096) as usize];
            self.reader.read_exact(part)?;
            self.items.update(part);
            rest -= part.len() as u64;
        }
        Ok(true)
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn item_bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let bytes = self.bytes::<N>()?;
        self.items.update(&bytes);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::written;

    #[test]
    fn written_bytes_end_with_the_last_nonzero_byte() {
        // In these cases the last nonzero byte is within the first block read, at the edges of that
        // block, or behind blocks of zeros.
        for last in [0, 1, 65_535, 65_536, 65_537, 200_000] {
            for room in [0, 1, 70_000, 200_000] {
                let mut bytes = vec![0; last];
                bytes.push(7);
                bytes.resize(bytes.len() + room, 0);
                let length = written(&mut &bytes[..]).unwrap();
                assert_eq!(length, last as u64 + 1, "{last} and {room}");
                bytes[last] = 0;
                assert_eq!(written(&mut &bytes[..]).unwrap(), 0);
            }
        }
    }
}
