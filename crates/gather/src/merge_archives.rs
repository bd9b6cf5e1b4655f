//! Merges the WARC files and capture lists of all workers into one archive.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, Write as _};
use std::path::Path;

use crawl_archive::rows::{FileDigestRow, WarcRecordLocation};
use crawl_archive::{
    CAPTURES, CaptureLogReader, FOLDER, FileDigestList, copy_renamed, is_warc, marked_name,
    open_regular, replace_file, strip_warc_suffix, write_index,
};

use crate::error::GatherError;
use crate::worker_directory::WorkerDirectory;

/// Maps the position of a worker's record (file and offset) to its position in the gathered
/// archive.
#[derive(Debug, Default)]
pub(crate) struct RelocatedRecords {
    /// The renamed files, by their original names. Each value contains the new name, and the number
    /// to add to the offsets of the file's records.
    renamed: HashMap<String, (String, i64)>,
}

impl RelocatedRecords {
    /// Returns the file and offset that a record has in the gathered archive.
    pub(crate) fn of(&self, place: WarcRecordLocation) -> WarcRecordLocation {
        match self.renamed.get(&place.file) {
            None => place,
            Some((file, shift)) => WarcRecordLocation {
                file: file.clone(),
                offset: place.offset.saturating_add_signed(*shift),
            },
        }
    }
}

/// Adds the WARC files of all workers to the folder `archive` in `to`, and writes the capture log
/// and index. A file whose name is free is hard-linked, or copied if the file system allows no
/// link. A file whose name is taken by another worker's file is copied under a new name.
///
/// Returns a map to the new positions for each worker, and the known digests of files that kept
/// their names.
pub(crate) fn gather_archives(
    workers: &mut [WorkerDirectory],
    to: &Path,
) -> Result<(Vec<RelocatedRecords>, Vec<FileDigestRow>), GatherError> {
    let mut places = Vec::new();
    let mut digests = Vec::new();
    let mut names = BTreeSet::new();
    let folder = to.join(FOLDER);
    if workers
        .iter()
        .any(|worker| worker.dir.join(FOLDER).is_dir())
    {
        fs::create_dir(&folder).map_err(GatherError::io(&folder))?;
    }
    for worker in workers.iter_mut() {
        let digests_by_name = known_digests(&worker.dir)?;
        let mut of_worker = RelocatedRecords::default();
        for name in warc_names(&worker.dir)? {
            let new = free_name(&name, worker.name(), &names);
            names.insert(stem(&new).to_owned());
            let from = worker.dir.join(FOLDER).join(&name);
            let bytes = match new == name {
                true => {
                    let bytes = link_or_copy(&from, &folder.join(&new));
                    let bytes = bytes.map_err(GatherError::io(&from))?;
                    let row = digests_by_name.get(&name).filter(|row| row.bytes == bytes);
                    digests.extend(row.cloned());
                    bytes
                }
                false => {
                    let copied = copy_renamed(&from, &folder.join(&new))?;
                    of_worker.renamed.insert(name, (new, copied.shift));
                    copied.length
                }
            };
            worker.row.warc_files += 1;
            worker.row.warc_bytes += bytes;
        }
        places.push(of_worker);
    }
    if folder.exists() {
        let captures = write_captures(workers, &places, &folder.join(CAPTURES))?;
        write_index(to, captures)?;
    }
    Ok((places, digests))
}

fn warc_names(dir: &Path) -> Result<BTreeSet<String>, GatherError> {
    let folder = dir.join(FOLDER);
    let mut names = BTreeSet::new();
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(names),
        entries => entries.map_err(GatherError::io(&folder))?,
    };
    for entry in entries {
        let name = entry.map_err(GatherError::io(&folder))?.file_name();
        names.extend(name.into_string().ok().filter(|name| is_warc(name)));
    }
    Ok(names)
}

/// Returns a name for a worker's file whose [`stem`] is not in `taken`: its own name, or else its
/// name with the worker's name added.
fn free_name(name: &str, worker: &str, taken: &BTreeSet<String>) -> String {
    let marks = (1_u32..).map(|number| match number {
        1 => worker.to_owned(),
        _ => format!("{worker}.{number}"),
    });
    let mut names =
        std::iter::once(name.to_owned()).chain(marks.map(|mark| marked_name(name, &mark)));
    names
        .find(|name| !taken.contains(stem(name)))
        .unwrap_or_else(|| name.to_owned())
}

/// Returns a file name without the suffix that names the compression. The files of an archive must
/// have different stems, because a WACZ file gives all of them the same suffix.
fn stem(name: &str) -> &str {
    strip_warc_suffix(name).unwrap_or(name)
}

/// Returns the digests of a worker's WARC files. The worker's last run recorded these digests at
/// its end.
fn known_digests(dir: &Path) -> Result<BTreeMap<String, FileDigestRow>, GatherError> {
    let list = FileDigestList::read(dir).map_err(GatherError::io(dir))?;
    let list = list
        .filter(|list| list.faults.is_empty())
        .unwrap_or_default();
    let of_archive = list.rows.into_iter().filter_map(|row| {
        let name = row.file.strip_prefix(FOLDER)?.strip_prefix('/')?;
        Some((name.to_owned(), row))
    });
    Ok(of_archive.collect())
}

/// Hard-links or copies a file and returns its length. Syncs a copy to disk before it returns.
fn link_or_copy(from: &Path, to: &Path) -> io::Result<u64> {
    let input = open_regular(from)?;
    let length = input.metadata()?.len();
    if fs::hard_link(from, to).is_ok() {
        return Ok(length);
    }
    let mut out: File = replace_file(to)?;
    let copied = io::copy(&mut BufReader::new(input), &mut out)?;
    out.sync_all()?;
    match copied == length {
        true => Ok(length),
        false => Err(ErrorKind::UnexpectedEof.into()),
    }
}

/// Writes the capture logs of all workers to one file, one worker after the other. Returns the
/// file's length in bytes.
fn write_captures(
    workers: &[WorkerDirectory],
    places: &[RelocatedRecords],
    path: &Path,
) -> Result<u64, GatherError> {
    let mut length = 0;
    let mut write = || -> io::Result<()> {
        let mut out = BufWriter::new(replace_file(path)?);
        for (worker, places) in workers.iter().zip(places) {
            let Some(mut log) = CaptureLogReader::open(&worker.dir)? else {
                continue;
            };
            while let Some(mut line) = log.next_capture()? {
                let place = places.of(WarcRecordLocation {
                    file: line.file.to_string(),
                    offset: line.offset,
                });
                line.file = place.file.into();
                let line = line.moved_to(place.offset, line.length);
                out.write_all(line.as_bytes())?;
                length += line.len() as u64;
            }
        }
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()
    };
    write().map_err(GatherError::io(path))?;
    Ok(length)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{free_name, stem};

    #[test]
    fn a_taken_name_is_marked_with_the_worker() {
        let name = "crawl-a.example-20261125000000-00000.warc.gz";
        let mut used_names = BTreeSet::new();
        let mut check = |expected: &str| {
            let free = free_name(name, "w2", &used_names);
            assert_eq!(free, format!("crawl-a.example-{expected}00000.warc.gz"));
            used_names.insert(stem(&free).to_owned());
        };
        check("20261125000000-");
        check("w2-20261125000000-");
        check("w2.2-20261125000000-");
        let in_zstd = name.replace(".gz", ".zst");
        let free = free_name(&in_zstd, "w3", &used_names);
        assert_eq!(free, "crawl-a.example-w3-20261125000000-00000.warc.zst");
    }
}
