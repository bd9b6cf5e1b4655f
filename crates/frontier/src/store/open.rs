//! Opens or creates a frontier on disk: its lock, its layout, and the checks of its contents.
//!
//! ```text
//! DIR/lock           held by the process that has the frontier open
//! DIR/store/         the fjall store
//! DIR/store.new/     a store that is being created; renamed once complete
//! DIR/known/ID.run   sorted runs with the states of URLs; their list is in the store
//! ```

use std::fs::{self, File};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use crawl_weburl::Origin;
use fjall::{
    AbstractTree as _, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable as _,
};

use super::record_codec::{StoreCounters, decode_origin};
use super::tables::{StoreTables, damage};
use super::torn_journal::{JournalError, cut_torn_commit};
use super::{Durability, FjallFrontier, FjallFrontierOptions, Writer, meta_keys};
use crate::error::DiskOpenError;
use crate::file_lock::FileLock;
use crate::fingerprint::FingerprintKey;
use crate::lease_table::LeaseTable;
use crate::sieve::{
    BlockCache, RunDisk, RunManifest, Sieve, SieveRecord, SieveSettings, SortedRunError,
};

/// The version of the layout on disk that this program reads and writes.
const LAYOUT: u32 = 3;

/// Minimum number of queue entries to read from disk at a time. The first read of a queue that had
/// no recent lease has this size.
const LEAST_READ: usize = 2;

const LOCK: &str = "lock";
const STORE: &str = "store";
const STORE_NEW: &str = "store.new";
const KNOWN: &str = "known";

/// The maximum size of the store's journals, in bytes. The store keeps a journal until its tables
/// contain everything in it, so this limit bounds how much is read on opening. The value is the
/// minimum that the store accepts.
const MAX_JOURNAL_BYTES: u64 = 64 << 20;

/// The store's number of worker threads. With several threads, the first one does only flushes, and
/// puts each compaction request that it takes back into the queue. So the first thread would spin
/// while another one compacts.
const WORKERS: usize = 1;

/// Each table with the number of bytes that it collects in memory before it writes them to disk.
/// Tables with more writes at random keys collect more. If all tables are full, they use 36 MiB,
/// and twice that while they are being written. The store blocks commits while four such writes of
/// a table are pending.
pub(super) const TABLES: [(&str, u64); 10] = [
    ("meta", 2 << 20),
    ("origins", 4 << 20),
    ("fresh", 4 << 20),
    ("queue", 8 << 20),
    ("notes", 2 << 20),
    ("deferred", 4 << 20),
    ("hosts", 2 << 20),
    ("robots", 4 << 20),
    ("visits", 4 << 20),
    ("due", 2 << 20),
];

/// The sieve's block cache gets `1 / SIEVE_SHARE` of [`FjallFrontierOptions::cache_bytes`].
const SIEVE_SHARE: u64 = 4;

pub(super) fn open(
    dir: &Path,
    options: &FjallFrontierOptions,
    disk: Arc<dyn RunDisk>,
) -> Result<FjallFrontier, DiskOpenError> {
    let io = |source| DiskOpenError::Io {
        path: dir.to_owned(),
        source,
    };
    fs::create_dir_all(dir).map_err(io)?;
    refuse_foreign(dir)?;
    let lock = take_lock(dir)?;
    let is_new = !dir.join(STORE).try_exists().map_err(io)?;
    if is_new {
        begin(dir, options, &*disk)?;
    }
    guarded(dir, || {
        let store = dir.join(STORE);
        if !is_new {
            // A new store has nothing to cut off. Skip the check, which would read the 64 MiB that
            // the store preallocates for its journal.
            cut_torn_commit(&store).map_err(|why| match why {
                JournalError::Io(path, source) => DiskOpenError::Io { path, source },
                JournalError::Damaged(what) => corrupt(dir, what),
            })?;
        }
        let db = database(dir, &store, options)?;
        load(dir, db, options, disk, lock)
    })
}

/// Opens the tables and the counters of a frontier, but not its sorted runs. Cuts a torn commit off
/// first.
pub(super) fn open_resting(
    dir: &Path,
    options: &FjallFrontierOptions,
) -> Result<(StoreTables, StoreCounters, FileLock), DiskOpenError> {
    let store = dir.join(STORE);
    if !store.is_dir() {
        return Err(foreign(dir, "no store"));
    }
    let lock = take_lock(dir)?;
    guarded(dir, || {
        cut_torn_commit(&store).map_err(|why| match why {
            JournalError::Io(path, source) => DiskOpenError::Io { path, source },
            JournalError::Damaged(what) => corrupt(dir, what),
        })?;
        let db = database(dir, &store, options)?;
        let tables = open_tables(dir, db, PersistMode::SyncData)?;
        let sequence = whole_sequence(&tables)?;
        Ok((tables, sequence, lock))
    })
}

/// Fails if a directory without a store has unexpected files, and changes nothing in it. Files with
/// the extension `jsonl` are allowed: a crawl that is moved into the directory brings
/// `delays.jsonl`, which lists the delays set during its earlier runs.
fn refuse_foreign(dir: &Path) -> Result<(), DiskOpenError> {
    let io = |source| DiskOpenError::Io {
        path: dir.to_owned(),
        source,
    };
    if dir.join(STORE).try_exists().map_err(io)? {
        return Ok(());
    }
    for entry in fs::read_dir(dir).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        if name == KNOWN {
            // The folder of sorted runs is created after the store, so the store must have existed.
            return Err(corrupt(dir, format!("`{STORE}` is missing")));
        }
        let is_rows = Path::new(&name).extension() == Some("jsonl".as_ref());
        if name != LOCK && name != STORE_NEW && !is_rows {
            return Err(foreign(dir, &format!("`{}`", name.display())));
        }
    }
    Ok(())
}

fn take_lock(dir: &Path) -> Result<FileLock, DiskOpenError> {
    let path = dir.join(LOCK);
    let open = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path);
    match open.and_then(FileLock::try_acquire) {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => Err(DiskOpenError::InUse {
            path: dir.to_owned(),
        }),
        Err(source) => Err(DiskOpenError::Io { path, source }),
    }
}

/// Creates a new store in a temporary folder, and renames the folder once the store is complete and
/// on disk.
fn begin(
    dir: &Path,
    options: &FjallFrontierOptions,
    disk: &dyn RunDisk,
) -> Result<(), DiskOpenError> {
    let new = dir.join(STORE_NEW);
    let io = |source| DiskOpenError::Io {
        path: new.clone(),
        source,
    };
    match fs::remove_dir_all(&new) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(io(why)),
        _ => {}
    }
    guarded(dir, || {
        let db = database(dir, &new, options)?;
        let store = |why| store_error(dir, why);
        let mut meta = None;
        for (name, memory) in TABLES {
            let table = db.keyspace(name, || table_options(name, memory));
            let table = table.map_err(store)?;
            meta = meta.or(Some(table));
        }
        let Some(meta) = meta else {
            return Ok(());
        };
        let mut batch = db.batch();
        let key = FingerprintKey::random();
        batch.insert(&meta, meta_keys::LAYOUT, LAYOUT.to_be_bytes());
        batch.insert(&meta, meta_keys::FINGERPRINT_KEY, key.bytes());
        batch.insert(
            &meta,
            meta_keys::SEQUENCE,
            StoreCounters::default().encode(),
        );
        batch.insert(&meta, meta_keys::RUNS, RunManifest::default().encode());
        batch.commit().map_err(store)?;
        db.persist(PersistMode::SyncAll).map_err(store)
    })?;
    // The store syncs its files, but not the directory entries in all its folders.
    sync_folders(&new, disk).map_err(io)?;
    fs::rename(&new, dir.join(STORE)).map_err(io)?;
    // Sync the parent directories too. Otherwise a power cut could undo the rename or remove the
    // directory, and later commits would be lost with it.
    let above = dir.parent().filter(|above| !above.as_os_str().is_empty());
    disk.sync_dir(dir)
        .and_then(|()| disk.sync_dir(above.unwrap_or(Path::new("."))))
        .map_err(io)
}

/// Syncs a folder and all its subfolders, so that the names of their files are on disk.
pub(super) fn sync_folders(folder: &Path, disk: &dyn RunDisk) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path(), disk)?;
        }
    }
    disk.sync_dir(folder)
}

pub(super) fn table_options(name: &str, memory: u64) -> KeyspaceCreateOptions {
    let options = KeyspaceCreateOptions::default().max_memtable_size(memory);
    match name {
        // Most look-ups in these tables find a row, so the last level of the tree needs no filter.
        "meta" | "deferred" | "notes" | "queue" => options.expect_point_read_hits(true),
        _ => options,
    }
}

pub(super) fn database(
    dir: &Path,
    store: &Path,
    options: &FjallFrontierOptions,
) -> Result<Database, DiskOpenError> {
    // By default, the store only hands a commit to the system. The default doesn't matter here,
    // because each commit of the frontier sets its own durability.
    Database::builder(store)
        .cache_size(options.cache_bytes - options.cache_bytes / SIEVE_SHARE)
        .max_journaling_size(MAX_JOURNAL_BYTES)
        .worker_threads(WORKERS)
        .open()
        .map_err(|why| store_error(dir, why))
}

/// Returns the counters of the last commit. Fails if a part of a commit is missing.
fn whole_sequence(tables: &StoreTables) -> Result<StoreCounters, DiskOpenError> {
    let key = meta_keys::SEQUENCE;
    let sequence = meta_value(tables, key, "the counters", StoreCounters::decode)?;
    refuse_half_commit(tables, &sequence)?;
    Ok(sequence)
}

fn load(
    dir: &Path,
    db: Database,
    options: &FjallFrontierOptions,
    disk: Arc<dyn RunDisk>,
    lock: FileLock,
) -> Result<FjallFrontier, DiskOpenError> {
    let persist = match options.durability {
        Durability::PowerCut => PersistMode::SyncData,
        Durability::ProcessDeath => PersistMode::Buffer,
    };
    let tables = Arc::new(open_tables(dir, db, persist)?);
    let sequence = whole_sequence(&tables)?;
    let lines = load_origin_queues(&tables, &sequence)?;
    let sieve = load_sieve(&tables, options, disk)?;
    tracing::debug!(dir = %dir.display(), origins_waiting = lines.len(), "frontier opened");
    Ok(FjallFrontier {
        sieve,
        tables,
        writer: Mutex::new(Writer {
            sequence,
            cache: BlockCache::new(options.cache_bytes / SIEVE_SHARE),
            note_ids: Default::default(),
            due_from: 0,
            last_changes: 0,
            last_settled: 0,
        }),
        reopenings: AtomicU64::new(0),
        number: AtomicU64::new(0),
        leases: Mutex::new(LeaseTable::new(
            lines,
            sequence.totals,
            options.head_entries,
            LEAST_READ,
        )),
        _lock: lock,
    })
}

/// Fails if the tables have a part of a commit that the journal has lost.
///
/// A table is written to disk only after its commits were synced to the journal. Each commit writes
/// `meta` as well, except for removals from `fresh`. So if a table is ahead of `meta`, the journal
/// has lost a commit.
fn refuse_half_commit(tables: &StoreTables, sequence: &StoreCounters) -> Result<(), DiskOpenError> {
    let newest = tables.meta.tree.get_highest_seqno();
    let tables_with_meta = [
        &tables.origins,
        &tables.queue,
        &tables.notes,
        &tables.deferred,
        &tables.hosts,
        &tables.robots,
        &tables.visits,
        &tables.due,
    ];
    let written = tables_with_meta.map(|table| table.tree.get_highest_persisted_seqno());
    let last = tables.fresh.last_key_value().map(fjall::Guard::key);
    let last = last.transpose();
    let last = last.map_err(|why| store_error(&tables.dir, why))?;
    let is_ahead = last.is_some_and(|key| *key > sequence.commit.to_be_bytes()[..]);
    match is_ahead || written.into_iter().any(|written| written > newest) {
        true => Err(corrupt(
            &tables.dir,
            "a commit that was synced is missing from its journal".into(),
        )),
        false => Ok(()),
    }
}

fn meta_value<T>(
    tables: &StoreTables,
    name: &str,
    what: &str,
    decode: fn(&[u8]) -> Option<T>,
) -> Result<T, DiskOpenError> {
    let bytes = tables.meta.get(name);
    let bytes = bytes.map_err(|why| store_error(&tables.dir, why))?;
    let value = bytes.and_then(|bytes| decode(&bytes));
    value.ok_or_else(|| corrupt(&tables.dir, what.into()))
}

/// Opens the sieve: the sorted runs, and the records of later commits from the table `fresh`.
fn load_sieve(
    tables: &Arc<StoreTables>,
    options: &FjallFrontierOptions,
    disk: Arc<dyn RunDisk>,
) -> Result<Sieve, DiskOpenError> {
    let manifest = meta_value(
        tables,
        meta_keys::RUNS,
        "the list of runs",
        RunManifest::decode,
    )?;
    let mut fresh: Vec<SieveRecord> = Vec::new();
    let after = manifest.commit.saturating_add(1).to_be_bytes();
    for row in tables.snapshot().range(&tables.fresh, after..) {
        let value = row.value().map_err(|why| store_error(&tables.dir, why))?;
        let records = SieveRecord::all(&value);
        fresh.extend(records.ok_or_else(|| corrupt(&tables.dir, "a commit's records".into()))?);
    }
    let settings = SieveSettings {
        dir: tables.dir.join(KNOWN),
        disk,
        run_list: Arc::clone(tables) as _,
        gather: options.gather.max(1),
    };
    Sieve::open(settings, manifest, fresh.into_iter()).map_err(|why| match why {
        SortedRunError::Io { path, source } => DiskOpenError::Io { path, source },
        SortedRunError::Damaged { .. } => corrupt(&tables.dir, why.to_string()),
    })
}

fn open_tables(
    dir: &Path,
    db: Database,
    persist: PersistMode,
) -> Result<StoreTables, DiskOpenError> {
    let names = db.list_keyspace_names();
    let missing = |name: &str| names.iter().all(|table| &**table != name);
    if missing("meta") {
        return Err(foreign(dir, "a store of something else"));
    }
    let table = |name: &str| {
        if missing(name) {
            return Err(corrupt(dir, format!("table {name} is missing")));
        }
        // The table exists and keeps the options of its creation, so these defaults have no effect.
        let table = db.keyspace(name, KeyspaceCreateOptions::default);
        table.map_err(|why| store_error(dir, why))
    };
    let meta = table("meta")?;
    check_layout(dir, &meta)?;
    let key = meta.get(meta_keys::FINGERPRINT_KEY);
    let key = key.map_err(|why| store_error(dir, why))?;
    let key = key.and_then(|bytes| bytes.as_ref().try_into().ok());
    let key = key.ok_or_else(|| corrupt(dir, "the fingerprint key".into()))?;
    Ok(StoreTables {
        dir: dir.to_owned(),
        key: FingerprintKey::new(key),
        persist,
        origins: table("origins")?,
        fresh: table("fresh")?,
        queue: table("queue")?,
        notes: table("notes")?,
        deferred: table("deferred")?,
        hosts: table("hosts")?,
        robots: table("robots")?,
        visits: table("visits")?,
        due: table("due")?,
        meta,
        db,
    })
}

fn check_layout(dir: &Path, meta: &Keyspace) -> Result<(), DiskOpenError> {
    let layout = meta
        .get(meta_keys::LAYOUT)
        .map_err(|why| store_error(dir, why))?;
    let Some(layout) = layout else {
        return Err(foreign(dir, "a store of something else"));
    };
    match layout.as_ref().try_into().map(u32::from_be_bytes) {
        Ok(LAYOUT) => Ok(()),
        Ok(layout) => Err(DiskOpenError::Version {
            path: dir.to_owned(),
            found: layout,
            known: LAYOUT,
        }),
        Err(_) => Err(corrupt(dir, "the number of its layout".into())),
    }
}

/// Loads the origins with queued URLs, each with the number of its queue and the number of queued
/// URLs. Fails if the URLs don't add up to the counter of pending URLs.
fn load_origin_queues(
    tables: &StoreTables,
    sequence: &StoreCounters,
) -> Result<Vec<(Origin, u64, u64)>, DiskOpenError> {
    let dir = &tables.dir;
    let mut lines = Vec::new();
    let mut pending = 0_u64;
    for row in tables.origins.iter() {
        let value = row.value().map_err(|why| store_error(dir, why))?;
        let line = decode_origin(&value).filter(|line| line.0 <= sequence.origin);
        let (id, queued, text) =
            line.ok_or_else(|| corrupt(dir, "the record of an origin".into()))?;
        if queued == 0 {
            continue;
        }
        let origin = Origin::parse(text).ok();
        let origin = origin.ok_or_else(|| corrupt(dir, "the name of an origin".into()))?;
        pending = pending.saturating_add(queued);
        lines.push((origin, id, queued));
    }
    if pending != sequence.totals.pending {
        let counted = sequence.totals.pending;
        let message = format!("its queues hold {pending} URLs where {counted} were counted");
        return Err(corrupt(dir, message));
    }
    Ok(lines)
}

/// Runs `open`, and returns a panic as an error about damage, because the store panics on some
/// kinds of damaged data.
pub(super) fn guarded<T>(
    dir: &Path,
    open: impl FnOnce() -> Result<T, DiskOpenError>,
) -> Result<T, DiskOpenError> {
    catch_unwind(AssertUnwindSafe(open)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().cloned();
        let message = message.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Err(corrupt(dir, message.unwrap_or_default()))
    })
}

pub(super) fn store_error(dir: &Path, why: fjall::Error) -> DiskOpenError {
    if let Some(what) = damage(&why) {
        return corrupt(dir, what);
    }
    match why {
        fjall::Error::Locked => DiskOpenError::InUse {
            path: dir.to_owned(),
        },
        fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source)) => {
            io_error(dir, source)
        }
        other => io_error(dir, io::Error::other(other)),
    }
}

/// Converts an I/O error. If a store file is missing or too short, the error is reported as damage.
/// Every other error is reported as a failure of the disk.
fn io_error(dir: &Path, source: io::Error) -> DiskOpenError {
    match source.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound | io::ErrorKind::InvalidData => {
            corrupt(dir, format!("a file of the store: {source}"))
        }
        _ => DiskOpenError::Io {
            path: dir.to_owned(),
            source,
        },
    }
}

fn foreign(dir: &Path, found: &str) -> DiskOpenError {
    DiskOpenError::Foreign {
        path: dir.to_owned(),
        found: found.to_owned(),
    }
}

pub(super) fn corrupt(dir: &Path, what: String) -> DiskOpenError {
    DiskOpenError::Corrupt {
        path: dir.to_owned(),
        what,
    }
}
