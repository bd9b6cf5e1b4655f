//! Sorts lines that may not fit in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crate::regular_file::replace_file;

/// Number of sorted temporary files to merge at a time. Far below the limit on open files.
const FAN_IN: usize = 64;

/// Sorts lines bytewise. If they exceed the memory limit, sorted parts are kept in temporary files.
#[derive(Debug)]
pub struct LineSorter {
    folder: PathBuf,
    name: String,
    max_run_bytes: usize,
    run: Vec<u8>,
    ends: Vec<usize>,
    made: usize,
    paths: Vec<PathBuf>,
}

impl LineSorter {
    /// Creates a sorter with temporary files in `folder`, whose names begin with `name`. Up to
    /// `max_run_bytes` of lines are sorted in memory at a time; their offsets take about half as
    /// much memory again.
    #[must_use]
    pub fn new(folder: &Path, name: &str, max_run_bytes: usize) -> LineSorter {
        LineSorter {
            folder: folder.to_owned(),
            name: name.to_owned(),
            max_run_bytes,
            run: Vec::new(),
            ends: Vec::new(),
            made: 0,
            paths: Vec::new(),
        }
    }

    /// Adds a line, including its line end.
    ///
    /// # Errors
    /// I/O errors.
    pub fn push(&mut self, line: &[u8]) -> io::Result<()> {
        self.run.extend_from_slice(line);
        self.ends.push(self.run.len());
        match self.run.len() < self.max_run_bytes {
            true => Ok(()),
            false => self.write_run(),
        }
    }

    /// Sorts the added lines into one file, and returns its path. The caller removes the file.
    ///
    /// # Errors
    /// I/O errors.
    pub fn finish(mut self) -> io::Result<PathBuf> {
        if !self.ends.is_empty() || self.paths.is_empty() {
            self.write_run()?;
        }
        while self.paths.len() > 1 {
            let group: Vec<PathBuf> = self.paths.drain(..self.paths.len().min(FAN_IN)).collect();
            let mut out = self.begin()?;
            merge(&group, &mut out)?;
            out.flush()?;
            for path in group {
                fs::remove_file(path)?;
            }
        }
        self.paths
            .pop()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn write_run(&mut self) -> io::Result<()> {
        let (run, ends) = (
            std::mem::take(&mut self.run),
            std::mem::take(&mut self.ends),
        );
        let mut out = self.begin()?;
        for line in sorted(&run, &ends) {
            out.write_all(line)?;
        }
        out.flush()
    }

    fn begin(&mut self) -> io::Result<BufWriter<File>> {
        let path = self.folder.join(format!("{}{}", self.name, self.made));
        let file = replace_file(&path)?;
        self.made += 1;
        self.paths.push(path);
        Ok(BufWriter::new(file))
    }
}

/// Returns the lines of `run`, with their line ends, in byte order. `ends` has the offset of the
/// end of each line.
fn sorted<'r>(run: &'r [u8], ends: &[usize]) -> Vec<&'r [u8]> {
    let mut begin = 0;
    let mut lines: Vec<&[u8]> = ends
        .iter()
        .map(|&end| {
            let line = &run[begin..end];
            begin = end;
            line
        })
        .collect();
    lines.sort_unstable();
    lines
}

fn merge(runs: &[PathBuf], out: &mut impl io::Write) -> io::Result<()> {
    let mut readers = Vec::with_capacity(runs.len());
    for run in runs {
        readers.push(BufReader::new(File::open(run)?));
    }
    let mut heads = BinaryHeap::new();
    for (at, reader) in readers.iter_mut().enumerate() {
        heads.extend(next_line(reader, Vec::new())?.map(|line| Reverse((line, at))));
    }
    while let Some(Reverse((line, at))) = heads.pop() {
        out.write_all(&line)?;
        heads.extend(next_line(&mut readers[at], line)?.map(|line| Reverse((line, at))));
    }
    Ok(())
}

fn next_line(reader: &mut impl BufRead, mut line: Vec<u8>) -> io::Result<Option<Vec<u8>>> {
    line.clear();
    let read = reader.read_until(b'\n', &mut line)?;
    Ok((read > 0).then_some(line))
}
