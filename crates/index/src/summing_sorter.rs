//! Sorts byte strings and adds up a count for each. Uses files if the strings exceed a memory
//! limit.

use std::collections::{BinaryHeap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::{cmp, vec};

use foldhash::fast::RandomState;

/// Approximate memory of each sort at the end of a run, in bytes.
/// Beyond the limit: sorted on disk.
pub(crate) const MAX_SORT_BYTES: usize = 8 << 20;
/// Approximate memory that a key takes in addition to its text, in bytes.
const KEY_BYTES: usize = 64;
/// Maximum number of sorted files that are read at the same time. Further files are first merged
/// into one.
const MAX_RUNS: usize = 64;
/// The name of a temporary file, which is unlinked as soon as it is created.
const UNNAMED: &str = "sorted.new";

/// Sorts byte strings (keys). Each distinct key appears once in the output, with the sum of its
/// counts.
#[derive(Debug)]
pub(crate) struct SummingSorter {
    dir: PathBuf,
    max_bytes: usize,
    counts: HashMap<Box<[u8]>, u32, RandomState>,
    bytes: usize,
    /// The sorted files. No file contains a key twice.
    runs: Vec<File>,
}

impl SummingSorter {
    /// Creates an empty sort. Its temporary files are unlinked files in `dir`.
    pub(crate) fn new(dir: &Path, max_bytes: usize) -> SummingSorter {
        SummingSorter {
            dir: dir.to_path_buf(),
            max_bytes,
            counts: HashMap::default(),
            bytes: 0,
            runs: Vec::new(),
        }
    }

    /// Adds `count` to the count of a key.
    pub(crate) fn add(&mut self, key: &[u8], count: u32) -> io::Result<()> {
        if let Some(sum) = self.counts.get_mut(key) {
            *sum = sum.saturating_add(count);
            return Ok(());
        }
        if self.bytes >= self.max_bytes {
            self.spill()?;
        }
        self.bytes += key.len() + KEY_BYTES;
        self.counts.insert(key.into(), count);
        Ok(())
    }

    /// Ends the input. Returns a reader of all keys in order, with the sums of their counts.
    pub(crate) fn finish(mut self) -> io::Result<SortedCounts> {
        let last = self.take_sorted();
        SortedCounts::of(self.runs, last)
    }

    fn take_sorted(&mut self) -> Vec<(Box<[u8]>, u32)> {
        self.bytes = 0;
        let mut sorted: Vec<_> = std::mem::take(&mut self.counts).into_iter().collect();
        sorted.sort_unstable();
        sorted
    }

    /// Writes the keys in memory to a sorted file.
    fn spill(&mut self) -> io::Result<()> {
        let sorted = self.take_sorted();
        let run = self.write(SortedCounts::of(Vec::new(), sorted)?)?;
        self.runs.push(run);
        if self.runs.len() >= MAX_RUNS {
            let runs = std::mem::take(&mut self.runs);
            let run = self.write(SortedCounts::of(runs, Vec::new())?)?;
            self.runs.push(run);
        }
        Ok(())
    }

    fn write(&self, mut sorted: SortedCounts) -> io::Result<File> {
        let mut file = BufWriter::new(unnamed_file(&self.dir)?);
        while let Some((key, count)) = sorted.next_key()? {
            let length = u32::try_from(key.len()).map_err(|_| ErrorKind::FileTooLarge)?;
            file.write_all(&length.to_le_bytes())?;
            file.write_all(&count.to_le_bytes())?;
            file.write_all(&key)?;
        }
        file.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

/// Creates a temporary file in `dir` and unlinks it at once, so that it is deleted when its handle
/// is closed, even if the process is killed.
pub(crate) fn unnamed_file(dir: &Path) -> io::Result<File> {
    let path = dir.join(UNNAMED);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    let file = match options.open(&path) {
        // A killed process left the file behind. Deleting it is safe, because only one writer at a
        // time uses this folder.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::remove_file(&path)?;
            options.open(&path)?
        }
        opened => opened?,
    };
    fs::remove_file(&path)?;
    Ok(file)
}

/// The sorted keys with their counts, merged from memory and files.
#[derive(Debug)]
pub(crate) struct SortedCounts {
    memory: vec::IntoIter<(Box<[u8]>, u32)>,
    runs: Vec<BufReader<File>>,
    /// The next key of each source. The sources are the files, followed by the keys in memory.
    heads: BinaryHeap<cmp::Reverse<SourceHead>>,
}

/// The next key of a source.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SourceHead {
    key: Box<[u8]>,
    source: usize,
    count: u32,
}

impl SortedCounts {
    fn of(runs: Vec<File>, memory: Vec<(Box<[u8]>, u32)>) -> io::Result<SortedCounts> {
        let mut sorted = SortedCounts {
            memory: memory.into_iter(),
            runs: Vec::with_capacity(runs.len()),
            heads: BinaryHeap::new(),
        };
        for mut run in runs {
            run.rewind()?;
            sorted.runs.push(BufReader::new(run));
        }
        for source in 0..=sorted.runs.len() {
            sorted.advance(source)?;
        }
        Ok(sorted)
    }

    /// Returns the next key with the sum of its counts.
    pub(crate) fn next_key(&mut self) -> io::Result<Option<(Box<[u8]>, u32)>> {
        let Some(cmp::Reverse(SourceHead {
            key,
            source,
            mut count,
        })) = self.heads.pop()
        else {
            return Ok(None);
        };
        self.advance(source)?;
        while self.heads.peek().is_some_and(|next| next.0.key == key)
            && let Some(cmp::Reverse(next)) = self.heads.pop()
        {
            count = count.saturating_add(next.count);
            self.advance(next.source)?;
        }
        Ok(Some((key, count)))
    }

    /// Reads the next key of a source.
    fn advance(&mut self, source: usize) -> io::Result<()> {
        let next = match self.runs.get_mut(source) {
            Some(run) => read_key(run)?,
            None => self.memory.next(),
        };
        let next = next.map(|(key, count)| cmp::Reverse(SourceHead { key, source, count }));
        self.heads.extend(next);
        Ok(())
    }
}

fn read_key(run: &mut BufReader<File>) -> io::Result<Option<(Box<[u8]>, u32)>> {
    let mut sizes = [0; 8];
    match run.read_exact(&mut sizes) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let [l0, l1, l2, l3, c0, c1, c2, c3] = sizes;
    let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    let mut key = vec![0; length].into_boxed_slice();
    run.read_exact(&mut key)?;
    Ok(Some((key, u32::from_le_bytes([c0, c1, c2, c3]))))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::SummingSorter;

    #[test]
    fn keys_are_sorted_and_summed_with_any_memory_limit() {
        for max_bytes in [0, 1000, usize::MAX] {
            let dir = tempfile::tempdir().unwrap();
            // Leave a file behind, as a killed process would.
            fs::write(dir.path().join(super::UNNAMED), "left").unwrap();
            let mut sort = SummingSorter::new(dir.path(), max_bytes);
            let mut expected: BTreeMap<Box<[u8]>, u32> = BTreeMap::new();
            for n in 0_u32..3000 {
                let key = (n.wrapping_mul(2_654_435_761) % 500).to_string();
                sort.add(key.as_bytes(), n).unwrap();
                *expected.entry(key.as_bytes().into()).or_default() += n;
            }
            if max_bytes < usize::MAX {
                let files = fs::read_dir(dir.path()).unwrap().count();
                assert_eq!((files, sort.runs.is_empty()), (0, false));
            }
            let mut sorted = sort.finish().unwrap();
            let mut keys = Vec::new();
            while let Some(key) = sorted.next_key().unwrap() {
                keys.push(key);
            }
            assert_eq!(keys, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
