//! A test harness that crashes and restarts the frontier on disk.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crawl_frontier::conformance::{FaultyDisk, RestartableFrontier};
use crawl_frontier::parts::{CrawlTransferItem, UrlRecord};
use crawl_frontier::{
    DiskOpenError, Durability, FjallFrontier, FjallFrontierOptions, Frontier, FrontierError,
};
use crawl_weburl::CanonicalUrl;
use tempfile::TempDir;

use crate::disk_frontier::journal;

pub(crate) struct OnDisk {
    pub(crate) frontier: Option<FjallFrontier>,
    pub(crate) options: FjallFrontierOptions,
    pub(crate) dir: TempDir,
    disk: FaultyDisk,
    /// For each later run of the process, the number of disk operations before the disk fails. The
    /// last entry is for the next run. Once the list is empty, the disk never fails.
    faults: Vec<u64>,
}

impl OnDisk {
    pub(crate) fn new() -> OnDisk {
        OnDisk::failing(Vec::new())
    }

    /// Creates a test harness that writes only at commits, so that the directory can be copied
    /// between commits.
    pub(crate) fn quiet() -> OnDisk {
        let mut bench = OnDisk::new();
        bench.options.gather = 1000;
        bench.die();
        bench
    }

    /// Creates a test harness whose disk fails as `faults` lists. The limits for queue heads and
    /// for records in memory are minimal, so that a few URLs exceed both limits.
    pub(crate) fn failing(faults: Vec<u64>) -> OnDisk {
        let options = FjallFrontierOptions {
            cache_bytes: 1 << 20,
            head_entries: 0,
            gather: 4,
            durability: Durability::ProcessDeath,
        };
        let mut bench = OnDisk {
            frontier: None,
            options,
            dir: new_frontier(),
            disk: FaultyDisk::failing_after(u64::MAX),
            faults,
        };
        bench.die();
        bench
    }
}

impl RestartableFrontier for OnDisk {
    fn frontier(&self) -> &dyn Frontier {
        self.frontier.as_ref().unwrap()
    }

    /// Simulates a crash and a power cut. The power cut tears a commit of the store, and loses
    /// unsynced bytes in all other files.
    fn die(&mut self) {
        if self.frontier.take().is_some() {
            tear_a_commit(&journal(self.dir.path()));
        }
        loop {
            self.disk.cut_power();
            self.disk = FaultyDisk::failing_after(self.faults.pop().unwrap_or(u64::MAX));
            let disk = Arc::new(self.disk.clone());
            match FjallFrontier::open_on(self.dir.path(), &self.options, disk) {
                Ok(frontier) => break self.frontier = Some(frontier),
                // Opening removes files that the previous run of the process left, and the disk may
                // fail then.
                Err(DiskOpenError::Io { .. }) if !self.faults.is_empty() => {}
                Err(why) => panic!("{why}"),
            }
        }
    }
}

/// A test harness that moves everything stored to another directory at each crash.
pub(crate) struct Moved {
    /// All URLs that may be admitted. The test harness has to know them, because the store has no
    /// text of settled URLs.
    pub(crate) urls: Vec<CanonicalUrl>,
    pub(crate) on_disk: OnDisk,
}

impl RestartableFrontier for Moved {
    fn frontier(&self) -> &dyn Frontier {
        self.on_disk.frontier()
    }

    fn die(&mut self) {
        self.on_disk.die();
        let from = self.on_disk.frontier.as_ref().unwrap();
        let mut parts = Vec::new();
        for url in &self.urls {
            let record = from.known(url).unwrap();
            let settled = record.and_then(UrlRecord::settled);
            let url = url.clone();
            parts.extend(settled.map(|record| CrawlTransferItem::Url { url, record }));
        }
        let shown = from.each_part::<FrontierError>(&mut |part| {
            parts.push(part);
            Ok(())
        });
        shown.unwrap();
        let moved = OnDisk::new();
        let to = moved.frontier.as_ref().unwrap();
        let mut parts = parts.into_iter().peekable();
        while parts.peek().is_some() {
            to.put_parts(parts.by_ref().take(1)).unwrap();
        }
        let mut transaction = to.begin().unwrap();
        for (file, length) in from.marks().unwrap() {
            transaction.mark(&file, length);
        }
        transaction.commit().unwrap();
        self.on_disk = moved;
    }
}

/// Appends to a journal what a power cut may leave of a commit: its beginning, then a gap for a
/// lost sector, then some of the rest.
fn tear_a_commit(journal: &Path) {
    let one_item = [1, 1, 0, 0, 0];
    let sequence = u64::MAX / 2;
    let mut torn = [&one_item[..], &sequence.to_le_bytes(), &[2, 0, 0, 1]].concat();
    torn.resize(torn.len() + 512, 0);
    torn.extend(b"what is left of a value \x01\x02\x03FJL\x03");
    let mut file = fs::File::options().append(true).open(journal).unwrap();
    file.write_all(&torn).unwrap();
}

/// Returns a directory with a frontier that was created and never used. Creation takes hundreds of
/// syncs, so it is done only once, and its files are copied. The frontier is opened a second time,
/// because the store then keeps its journal small.
fn new_frontier() -> TempDir {
    static FILES: OnceLock<Vec<(PathBuf, Vec<u8>)>> = OnceLock::new();
    let files = FILES.get_or_init(|| {
        let dir = TempDir::new().unwrap();
        for _ in 0..2 {
            FjallFrontier::open(dir.path(), &FjallFrontierOptions::default()).unwrap();
        }
        let mut files = Vec::new();
        read(dir.path(), dir.path(), &mut files);
        files
    });
    let dir = TempDir::new().unwrap();
    for (path, bytes) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    dir
}

/// Reads all files below `dir`, and stores each with its path relative to `root`.
fn read(root: &Path, dir: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap().to_owned();
            files.push((name, fs::read(path).unwrap()));
        }
    }
}
