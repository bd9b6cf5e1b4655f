//! A sorted map with bounded memory. If the map grows too large, its entries are moved to sorted
//! files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Lines, Write as _};
use std::path::{Path, PathBuf};

use crawl_archive::replace_file;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum estimated memory of a link graph's URLs, and of its hosts, in bytes.
/// Beyond the limit: they are moved to a sorted file.
const MAX_HELD_BYTES: usize = 32 << 20;
/// Maximum number of sorted files. Each needs its own read buffer when they are merged. At this
/// number, all files are merged into one.
const MAX_RUNS: usize = 64;
/// Estimated memory of an entry in bytes, without the text of its key: the slots for key and value
/// in a half-full tree, and the allocator's overhead.
const ENTRY_BYTES: usize = 96;

pub(crate) struct SpilledMap<V> {
    folder: PathBuf,
    name: &'static str,
    /// Merges the later of two values with the same key into the earlier one.
    join: fn(&mut V, V),
    max_held_bytes: usize,
    max_runs: usize,
    held: BTreeMap<String, V>,
    held_bytes: usize,
    /// The sorted files, oldest first, so that values are joined in the order of insertion.
    runs: Vec<PathBuf>,
    made: usize,
}

impl<V: Serialize + DeserializeOwned> SpilledMap<V> {
    /// Creates an empty map. `join` merges the later of two values with the same key into the
    /// earlier one. Temporary files are in `folder`, with names that start with `name`, until
    /// [`SpilledMap::each`] returns.
    pub(crate) fn new(folder: &Path, name: &'static str, join: fn(&mut V, V)) -> SpilledMap<V> {
        SpilledMap {
            folder: folder.to_owned(),
            name,
            join,
            max_held_bytes: MAX_HELD_BYTES,
            max_runs: MAX_RUNS,
            held: BTreeMap::new(),
            held_bytes: 0,
            runs: Vec::new(),
            made: 0,
        }
    }

    pub(crate) fn add(&mut self, key: &str, value: V) -> io::Result<()> {
        if let Some(earlier) = self.held.get_mut(key) {
            (self.join)(earlier, value);
            return Ok(());
        }
        self.held_bytes += key.len() + ENTRY_BYTES;
        self.held.insert(key.to_owned(), value);
        if self.held_bytes > self.max_held_bytes {
            self.spill()?;
        }
        Ok(())
    }

    /// Calls `each` for each key with its joined value, in the order of keys. Removes the temporary
    /// files.
    pub(crate) fn each(
        mut self,
        mut each: impl FnMut(&str, V) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.runs.is_empty() {
            return self
                .held
                .into_iter()
                .try_for_each(|(key, value)| each(&key, value));
        }
        self.spill()?;
        self.merge(each)
    }

    fn spill(&mut self) -> io::Result<()> {
        if self.runs.len() >= self.max_runs {
            let (path, mut run) = self.begin_run()?;
            self.merge(|key, value| write_entry(&mut run, key, &value))?;
            run.flush()?;
            self.runs = vec![path];
        }
        let (path, mut run) = self.begin_run()?;
        for (key, value) in &self.held {
            write_entry(&mut run, key, value)?;
        }
        run.flush()?;
        self.runs.push(path);
        self.held.clear();
        self.held_bytes = 0;
        Ok(())
    }

    fn begin_run(&mut self) -> io::Result<(PathBuf, BufWriter<File>)> {
        let path = self.folder.join(format!("{}.tmp{}", self.name, self.made));
        self.made += 1;
        let file = replace_file(&path)?;
        Ok((path, BufWriter::new(file)))
    }

    /// Merges all sorted files, calls `each` for each key, and removes the files.
    fn merge(&self, mut each: impl FnMut(&str, V) -> io::Result<()>) -> io::Result<()> {
        let mut readers = Vec::with_capacity(self.runs.len());
        // The next entry of each file, by key and then by age of the file, so that values are
        // joined in order.
        let mut heads: BTreeMap<(String, usize), V> = BTreeMap::new();
        for (at, run) in self.runs.iter().enumerate() {
            let mut lines = BufReader::new(File::open(run)?).lines();
            heads.extend(next_entry(&mut lines)?.map(|(key, value)| ((key, at), value)));
            readers.push(lines);
        }
        let mut pending: Option<(String, V)> = None;
        while let Some(((key, at), value)) = heads.pop_first() {
            let next = next_entry(&mut readers[at])?;
            heads.extend(next.map(|(key, value)| ((key, at), value)));
            match &mut pending {
                Some((same, earlier)) if *same == key => (self.join)(earlier, value),
                _ => {
                    if let Some((key, value)) = pending.replace((key, value)) {
                        each(&key, value)?;
                    }
                }
            }
        }
        if let Some((key, value)) = pending {
            each(&key, value)?;
        }
        self.runs.iter().try_for_each(fs::remove_file)
    }
}

fn write_entry(run: &mut BufWriter<File>, key: &str, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *run, &(key, value))?;
    run.write_all(b"\n")
}

fn next_entry<V: DeserializeOwned>(
    lines: &mut Lines<BufReader<File>>,
) -> io::Result<Option<(String, V)>> {
    let Some(line) = lines.next().transpose()? else {
        return Ok(None);
    };
    Ok(Some(serde_json::from_str(&line)?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::SpilledMap;

    /// Checks that a map with small limits has the same entries as a map in memory, joins values in
    /// the order of insertion, and leaves no files. Returns how many files were made.
    fn check(max_held_bytes: usize, max_runs: usize) -> usize {
        let folder = tempfile::tempdir().unwrap();
        let mut map = SpilledMap::new(folder.path(), "test", |earlier: &mut Vec<u32>, later| {
            earlier.extend(later);
        });
        map.max_held_bytes = max_held_bytes;
        map.max_runs = max_runs;
        let mut model: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for number in 0..600_u32 {
            // Keys repeat after short and long intervals, and contain characters that must be
            // escaped in a file of lines.
            let key = format!("\"{}\n", number.wrapping_mul(2_654_435_761) >> 23);
            map.add(&key, vec![number]).unwrap();
            model.entry(key).or_default().push(number);
            let files = fs::read_dir(folder.path()).unwrap().count();
            assert!(files <= max_runs + 1, "{files} files");
        }
        let made = map.made;
        let mut entries = Vec::new();
        map.each(|key, value| {
            entries.push((key.to_owned(), value));
            Ok(())
        })
        .unwrap();
        assert_eq!(entries, model.into_iter().collect::<Vec<_>>());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        made
    }

    #[test]
    fn a_map_that_spills_is_the_map_in_memory() {
        assert_eq!(check(1 << 20, 4), 0);
        assert!(check(5_000, 4) > 6);
        assert!(check(1, 2) > 500);
    }
}
