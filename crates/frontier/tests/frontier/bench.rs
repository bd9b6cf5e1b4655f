//! Frontiers on the bench: each can die and start again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crawl_frontier::{
    Admission, Committed, Durability, Exclusion, FjallFrontier, Frontier, Lease, MemoryFrontier,
    Options, Outcome, Reason, Standing,
};
use crawl_weburl::{CanonicalUrl, Origin, canonicalize};
use tempfile::TempDir;

/// A frontier that survives its own death.
pub(crate) trait Bench {
    /// The frontier of this life.
    fn frontier(&self) -> &dyn Frontier;
    /// The process dies, whatever is leased, and starts again. No transaction is open.
    fn die(&mut self);
}

pub(crate) struct OnDisk {
    pub(crate) frontier: Option<FjallFrontier>,
    pub(crate) options: Options,
    pub(crate) dir: TempDir,
}

pub(crate) struct InMemory(Option<MemoryFrontier>);

impl OnDisk {
    /// Heads and gathered records are as few as can be, so that few URLs are enough to go
    /// beyond them.
    pub(crate) fn new() -> OnDisk {
        let options = Options {
            cache_octets: 1 << 20,
            head_entries: 0,
            gather: 4,
            durability: Durability::ProcessDeath,
        };
        let dir = begun();
        let frontier = Some(FjallFrontier::open(dir.path(), &options).unwrap());
        OnDisk {
            frontier,
            options,
            dir,
        }
    }
}

impl InMemory {
    pub(crate) fn new() -> InMemory {
        InMemory(Some(MemoryFrontier::new()))
    }
}

impl Bench for OnDisk {
    fn frontier(&self) -> &dyn Frontier {
        self.frontier.as_ref().unwrap()
    }

    fn die(&mut self) {
        self.frontier = None;
        self.frontier = Some(FjallFrontier::open(self.dir.path(), &self.options).unwrap());
    }
}

impl Bench for InMemory {
    fn frontier(&self) -> &dyn Frontier {
        self.0.as_ref().unwrap()
    }

    fn die(&mut self) {
        self.0 = self.0.take().map(MemoryFrontier::restarted);
    }
}

pub(crate) fn url(text: &str) -> CanonicalUrl {
    canonicalize(
        Some(&canonicalize(None, "http://a.example/").unwrap()),
        text,
    )
    .unwrap()
}

pub(crate) fn origin() -> Origin {
    url("/").origin()
}

/// A frontier that was begun and never used. Beginning one takes hundreds of syncs, so it
/// is done once; it is opened a second time since the store then keeps its journal small.
fn begun() -> TempDir {
    static FILES: OnceLock<Vec<(PathBuf, Vec<u8>)>> = OnceLock::new();
    let files = FILES.get_or_init(|| {
        let dir = TempDir::new().unwrap();
        for _ in 0..2 {
            FjallFrontier::open(dir.path(), &Options::default()).unwrap();
        }
        let mut files = Vec::new();
        read(dir.path(), dir.path(), &mut files);
        files
    });
    let dir = TempDir::new().unwrap();
    for (path, octets) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, octets).unwrap();
    }
    dir
}

/// All files below `dir`, by their path in `root`.
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

/// A pending link of the default origin.
pub(crate) fn link(path: &str, depth: u32) -> Admission {
    Admission::link(url(path), depth, url("/"))
}

pub(crate) fn deferred(path: &str, depth: u32, reason: Reason) -> Admission {
    Admission {
        standing: Standing::Deferred(Exclusion::of(reason)),
        ..link(path, depth)
    }
}

pub(crate) fn excluded(path: &str, depth: u32) -> Admission {
    Admission {
        standing: Standing::Excluded(Exclusion::of(Reason::Scope)),
        ..link(path, depth)
    }
}

pub(crate) fn admit(
    frontier: &dyn Frontier,
    admissions: impl IntoIterator<Item = Admission>,
) -> Committed {
    let mut transaction = frontier.begin().unwrap();
    for admission in admissions {
        transaction.admit(admission).unwrap();
    }
    transaction.commit().unwrap()
}

pub(crate) fn lease(frontier: &dyn Frontier) -> Lease {
    frontier.lease(&origin()).unwrap().expect("a pending URL")
}

pub(crate) fn settle(frontier: &dyn Frontier, lease: Lease, outcome: Outcome) {
    let mut transaction = frontier.begin().unwrap();
    transaction.settle(lease, outcome).unwrap();
    transaction.commit().unwrap();
}

/// Leases all that is pending at the default origin and gives it back: the order.
pub(crate) fn order(frontier: &dyn Frontier) -> String {
    let mut leases = Vec::new();
    while let Some(lease) = frontier.lease(&origin()).unwrap() {
        leases.push(lease);
    }
    let paths: Vec<_> = leases.iter().map(|lease| lease.url.path()).collect();
    let order = paths.join(" ");
    for lease in leases {
        frontier.release(lease);
    }
    order
}

/// Settles all that is pending at the default origin, one by one: what is done, in order.
pub(crate) fn drain(frontier: &dyn Frontier) -> String {
    let mut paths = Vec::new();
    while let Some(lease) = frontier.lease(&origin()).unwrap() {
        paths.push(lease.url.path().to_owned());
        settle(frontier, lease, Outcome::Fetched { status: 200 });
    }
    paths.join(" ")
}
