//! Sorts statements of different files on disk, so that all statements about the same subject are
//! next to each other.
//!
//! For example, three files refer to the same record: a row names its file and offset, a line of
//! the index does so too, and the record itself contains URL, time and digest. Each becomes a
//! [`CrossCheckStatement`] with the same key. After sorting by key, they can be compared in bounded
//! memory, however many statements there are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The number of facts in each statement. A fact that the statement leaves out is stored as 0.
pub(crate) const FACTS: usize = 11;

/// Maximum number of statements sorted in memory at a time: about 40 MB.
const MAX_HELD: usize = 1 << 19;
/// Maximum number of sorted files. Each needs a read buffer when they are merged. At this number,
/// all files are merged into one.
const MAX_RUNS: usize = 64;
/// The name of a temporary file. The file is unlinked as soon as it is created.
const UNNAMED: &str = "statements";

/// The length of an encoded statement in bytes.
const BYTES: usize = 16 + 1 + 4 + 8 + 4 * FACTS;

type EncodedStatement = [u8; BYTES];

/// What one line or record states about a subject, such as a capture. The key identifies the
/// subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CrossCheckStatement {
    pub(crate) key: u128,
    /// The kind of line or record that makes the statement, such as a capture or a page row.
    /// Statements with the same key are sorted by this number.
    pub(crate) kind: u8,
    /// The number of the file that contains the statement.
    pub(crate) file: u32,
    /// The line number or byte offset of the statement in its file.
    pub(crate) place: u64,
    /// The facts, each a hash of a value; 0 for a fact that the statement does not contain.
    pub(crate) facts: [u32; FACTS],
}

/// Returns the key of a subject, such as a record. `sort` is the kind of subject, and `parts`
/// identify it.
pub(crate) fn key(sort: u8, parts: &[&[u8]]) -> u128 {
    let mut hash = Xxh3::new();
    hash.update(&[sort]);
    for part in parts {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.digest128()
}

/// Converts a value to a fact: 32 bits of its hash, but never 0. Two different values yield the
/// same fact with a probability of one in four billion.
pub(crate) fn fact(value: &[u8]) -> u32 {
    let [a, b, c, d, ..] = xxh3_64(value).to_le_bytes();
    u32::from_le_bytes([a, b, c, d]).max(1)
}

/// Converts a number to a fact.
pub(crate) fn number(value: u64) -> u32 {
    fact(&value.to_le_bytes())
}

impl CrossCheckStatement {
    fn encoded(&self) -> EncodedStatement {
        let mut bytes = [0; BYTES];
        bytes[..16].copy_from_slice(&self.key.to_be_bytes());
        bytes[16] = self.kind;
        bytes[17..21].copy_from_slice(&self.file.to_be_bytes());
        bytes[21..29].copy_from_slice(&self.place.to_be_bytes());
        for (bytes, fact) in bytes[29..].chunks_exact_mut(4).zip(self.facts) {
            bytes.copy_from_slice(&fact.to_be_bytes());
        }
        bytes
    }

    fn decoded(bytes: &EncodedStatement) -> CrossCheckStatement {
        let mut facts = [0; FACTS];
        for (fact, bytes) in facts.iter_mut().zip(bytes[29..].chunks_exact(4)) {
            *fact = u32::from_be_bytes(part(bytes));
        }
        CrossCheckStatement {
            key: u128::from_be_bytes(part(&bytes[..16])),
            kind: bytes[16],
            file: u32::from_be_bytes(part(&bytes[17..21])),
            place: u64::from_be_bytes(part(&bytes[21..29])),
            facts,
        }
    }
}

fn part<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(bytes);
    part
}

/// Sorts statements. Call [`CrossCheckSorter::add`] for each statement, then
/// [`CrossCheckSorter::each_group`].
#[derive(Debug)]
pub(crate) struct CrossCheckSorter {
    scratch: PathBuf,
    held: Vec<EncodedStatement>,
    max_held: usize,
    max_runs: usize,
    runs: Vec<File>,
}

impl CrossCheckSorter {
    /// Creates an empty sorter. Statements that don't fit in memory are sorted in unlinked files in
    /// the folder `scratch`.
    pub(crate) fn new(scratch: &Path) -> CrossCheckSorter {
        CrossCheckSorter {
            scratch: scratch.to_owned(),
            held: Vec::new(),
            max_held: MAX_HELD,
            max_runs: MAX_RUNS,
            runs: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, statement: &CrossCheckStatement) -> io::Result<()> {
        self.held.push(statement.encoded());
        match self.held.len() >= self.max_held {
            true => self.spill(),
            false => Ok(()),
        }
    }

    /// Calls `each` once per key, in the order of keys, with all statements of that key, ordered by
    /// [`CrossCheckStatement::kind`].
    pub(crate) fn each_group(
        mut self,
        mut each: impl FnMut(&[CrossCheckStatement]),
    ) -> io::Result<()> {
        self.held.sort_unstable();
        let mut group: Vec<CrossCheckStatement> = Vec::new();
        let mut take = |statement: CrossCheckStatement| {
            if group
                .first()
                .is_some_and(|first| first.key != statement.key)
            {
                each(&group);
                group.clear();
            }
            group.push(statement);
        };
        let held = std::mem::take(&mut self.held);
        merge(self.runs, held, |bytes| {
            take(CrossCheckStatement::decoded(bytes));
            Ok(())
        })?;
        if !group.is_empty() {
            each(&group);
        }
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        self.held.sort_unstable();
        let (mut runs, mut held) = (Vec::new(), std::mem::take(&mut self.held));
        if self.runs.len() >= self.max_runs {
            runs = std::mem::take(&mut self.runs);
        }
        let mut file = BufWriter::new(unnamed_file(&self.scratch)?);
        merge(runs, held.drain(..), |bytes| file.write_all(bytes))?;
        let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        self.runs.push(file);
        // Keep the empty buffer to reuse its memory.
        self.held = held;
        Ok(())
    }
}

/// Merges sorted files with the sorted statements in memory.
fn merge(
    runs: Vec<File>,
    held: impl IntoIterator<Item = EncodedStatement>,
    mut each: impl FnMut(&EncodedStatement) -> io::Result<()>,
) -> io::Result<()> {
    let mut readers: Vec<_> = runs.into_iter().map(BufReader::new).collect();
    let mut held = held.into_iter();
    let of_held = readers.len();
    let mut heads = BinaryHeap::with_capacity(of_held + 1);
    for (at, reader) in readers.iter_mut().enumerate() {
        heads.extend(next(reader)?.map(|bytes| Reverse((bytes, at))));
    }
    heads.extend(held.next().map(|bytes| Reverse((bytes, of_held))));
    while let Some(Reverse((bytes, at))) = heads.pop() {
        each(&bytes)?;
        let following = match readers.get_mut(at) {
            Some(reader) => next(reader)?,
            None => held.next(),
        };
        heads.extend(following.map(|bytes| Reverse((bytes, at))));
    }
    Ok(())
}

fn next(run: &mut BufReader<File>) -> io::Result<Option<EncodedStatement>> {
    let mut bytes = [0; BYTES];
    match run.read_exact(&mut bytes) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        read => read.map(|()| Some(bytes)),
    }
}

/// Creates a temporary file and unlinks it at once, so that it is deleted when its handle is
/// closed.
fn unnamed_file(folder: &Path) -> io::Result<File> {
    let path = folder.join(UNNAMED);
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::{CrossCheckSorter, CrossCheckStatement, FACTS, key, number};

    /// Checks that sorting in files of `max_held` statements yields the same groups as sorting in
    /// memory.
    fn check(max_held: usize, max_runs: usize) {
        let scratch = tempfile::tempdir().unwrap();
        let mut statements = CrossCheckSorter::new(scratch.path());
        (statements.max_held, statements.max_runs) = (max_held, max_runs);
        let mut model: BTreeMap<u128, Vec<CrossCheckStatement>> = BTreeMap::new();
        for at in 0..500_u64 {
            let about = at.wrapping_mul(2_654_435_761) % 190;
            let statement = CrossCheckStatement {
                key: key(1, &[&about.to_le_bytes()]),
                kind: u8::try_from(at % 3).unwrap(),
                file: u32::try_from(at % 7).unwrap(),
                place: at,
                facts: [number(at); FACTS],
            };
            statements.add(&statement).unwrap();
            model.entry(statement.key).or_default().push(statement);
        }
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
        let mut groups = Vec::new();
        statements
            .each_group(|group| groups.push(group.to_vec()))
            .unwrap();
        let mut expected: Vec<_> = model.into_values().collect();
        for group in &mut expected {
            group.sort_by_key(|statement| (statement.kind, statement.file, statement.place));
        }
        assert_eq!(groups, expected);
    }

    #[test]
    fn statements_are_grouped_however_little_memory_there_is() {
        check(1000, 4);
        check(500, 4);
        check(90, 4);
        check(7, 3);
        check(1, 2);
    }
}
