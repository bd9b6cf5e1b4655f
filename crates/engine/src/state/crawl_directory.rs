//! Creates or reopens the crawl directory.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::ops::Deref;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crawl_archive::rows::PendingOriginRow;
use crawl_archive::{
    ArchiveOptions, ArchiveWriter, DIGESTS, DigestAlgorithm, DigestRefreshAfterOpen, LogSyncer,
    RowFileWriter, RowLogWriter, RowReader, TEMPORARY_DIGESTS, Warcinfo, check_entries,
    is_behind_dangling_link, keep_archive_digests,
};
use crawl_frontier::worker_frontier::WorkerFrontier;
use crawl_frontier::{
    DiskOpenError, FileLock, FjallFrontier, FjallFrontierOptions, Frontier, FrontierError,
    KnownState, OfflineFrontier, Transaction, is_write_once,
};
use crawl_sample::SampleMethod;
use crawl_scheduler::Tick;
use crawl_weburl::CanonicalUrl;

use super::crash_suspect_journal::ReadingJournal;
use super::crawl_toml::{CRAWL_TOML, NEW_CRAWL_TOML, write_config};
use super::durable_files::{make_folder, replace};
use super::excluded_rows_of_last_run::{self, EXCLUDED};
use super::extracted_field_files::{
    EXTRACT_RULES, EXTRACTS, EXTRACTS_IN_PROGRESS, NEW_EXTRACT_RULES, NEW_EXTRACTS,
    finish_replacement, write_rules,
};
use super::file_swap::{self, LIST, LIST_BESIDE, STAGING};
use super::{parking_changes, worker_state_folder};
use crate::config::Config;
use crate::control::CommandRefusal;
use crate::crawl_totals::CrawlTotals;
use crate::error::EngineError;
use crate::frontier_meta_keys::{META_REPLAY, META_RUN, META_TOMBSTONE_KEY, META_TOTALS};
use crate::revisit::lifted_exclusions::EarlierScopeExclusions;
use crate::revisit::round_of_run::{self, NewRoundSteps};
use crate::revisit::visit::RevisitRules;
use crate::sampling::SampleState;
use crate::scope_seeds::ScopeSeeds;
use crate::tombstones::{TOMBSTONES, Tombstones};

const RUN_OPEN: &[u8] = b"open";
const RUN_ENDED: &[u8] = b"ended";

/// The folder of the crawl's state, in the crawl directory.
pub(crate) const STATE: &str = "state";
/// The mode of the state folder, which only this program reads. The mode is set explicitly, so
/// that other users can't write to files in the folder even if the umask is permissive.
const STATE_MODE: u32 = 0o700;

/// The file that lists the URLs still pending when the last run ended.
const WAITING: &str = "waiting.jsonl";
/// The temporary name of `waiting.jsonl` while the file is written.
const WAITING_BESIDE: &str = "waiting.jsonl.new";

/// The file that contains the steps of a random walk.
pub(crate) const WALK: &str = "walk.jsonl";

/// A file that exists only in a directory that was gathered from the directories of several
/// workers.
const WORKERS: &str = "workers.jsonl";

/// The names of all files and folders that a crawl directory may contain.
const OURS: [&str; 33] = [
    CRAWL_TOML,
    NEW_CRAWL_TOML,
    "state",
    "pages.jsonl",
    "requests.jsonl",
    EXCLUDED,
    "links.jsonl",
    EXTRACTS,
    NEW_EXTRACTS,
    EXTRACTS_IN_PROGRESS,
    EXTRACT_RULES,
    NEW_EXTRACT_RULES,
    WALK,
    "archive",
    "index",
    "index.new",
    "index.old",
    "report.json",
    "report.json.new",
    "report.html",
    "report.html.new",
    "hosts.jsonl",
    "hosts.jsonl.new",
    "recheck.jsonl",
    "recheck.jsonl.new",
    TOMBSTONES,
    STAGING,
    LIST,
    LIST_BESIDE,
    WAITING,
    WAITING_BESIDE,
    DIGESTS,
    TEMPORARY_DIGESTS,
];

/// The writers of a crawl's archive and row files.
pub(crate) struct OutputWriters {
    pub(crate) archive: Option<ArchiveWriter>,
    pub(crate) pages: RowFileWriter,
    pub(crate) excluded: RowFileWriter,
    pub(crate) links: Option<RowFileWriter>,
    /// The fields that rules extract. `None` without rules.
    pub(crate) extracts: Option<RowFileWriter>,
    /// The steps of a random walk. `None` in any other crawl.
    pub(crate) walk: Option<RowFileWriter>,
    /// The log that the search index follows.
    pub(crate) index: Option<RowFileWriter>,
    /// Syncs `requests.jsonl`, which the loop writes. `None` without a request log.
    pub(crate) requests: Option<LogSyncer>,
}

/// A crawl directory that has been opened, with its files and stored state.
pub(crate) struct CrawlDirectory {
    pub(crate) frontier: Arc<dyn Frontier>,
    /// The same frontier as `frontier`, with its interface for workers. `None` unless several
    /// workers share it.
    pub(crate) shared: Option<Arc<dyn WorkerFrontier>>,
    /// The lock of a worker's directory, held while the worker runs. `None` without a shared
    /// frontier.
    pub(crate) lock: Option<FileLock>,
    /// The pages and hosts that were erased from the crawl.
    pub(crate) tombstones: Tombstones,
    pub(crate) files: OutputWriters,
    pub(crate) requests: RowLogWriter,
    pub(crate) sampling: Option<SampleState>,
    /// The journal of URLs that may have crashed the process while they were read.
    pub(crate) journal: ReadingJournal,
    pub(crate) totals: CrawlTotals,
    pub(crate) scope_seeds: ScopeSeeds,
    /// The folders created for the run: the crawl directory and missing folders above it, the
    /// outermost first.
    pub(crate) created: Vec<PathBuf>,
    /// Whether an earlier run used this directory.
    pub(crate) resumed: bool,
    /// Whether the last run was interrupted. If so, the requests that were in flight may not be on
    /// record.
    pub(crate) cut_off: bool,
    /// How the last run ended: the reason, and the detail if there is one. `None` if no run ended
    /// properly.
    pub(crate) last_end: Option<String>,
}

impl CrawlDirectory {
    /// Resumes the last round, or begins another ([`round_of_run::take_up`]).
    pub(crate) fn take_up_round(
        &mut self,
        config: &Config,
        now: Tick,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<RevisitRules, EngineError> {
        let (frontier, totals) = (&*self.frontier, &mut self.totals);
        let (dir, excluded) = (&config.output, &mut self.files.excluded);
        let rows = excluded.path().to_owned();
        let mut commit_excluded = |transaction: &mut dyn Transaction| {
            let length = excluded_rows_of_last_run::append(dir, excluded)?;
            transaction.mark(EXCLUDED, length);
            Ok(())
        };
        let mut readmit = || {
            let excluded = EarlierScopeExclusions {
                rows: &rows,
                scope: &self.scope_seeds.scope(config)?,
                tombstones: &self.tombstones,
                sampling: self.sampling.as_ref(),
            };
            excluded.readmit(frontier, is_stopped)
        };
        let steps = NewRoundSteps {
            commit_excluded: &mut commit_excluded,
            readmit: &mut readmit,
        };
        round_of_run::take_up(frontier, config, now, totals, steps, is_stopped)
    }
}

/// Opens the output directory for this number of readers. Locks it, cuts files back to their
/// committed lengths, and writes `crawl.toml`.
pub(crate) fn open(config: &Config, readers: usize) -> Result<CrawlDirectory, EngineError> {
    open_as(config, readers, false)
}

/// Opens the output directory of a replay, to continue with the next run of the replayed crawl.
pub(crate) fn open_replay(config: &Config) -> Result<CrawlDirectory, EngineError> {
    open_as(config, 1, true)
}

fn open_as(
    config: &Config,
    readers: usize,
    is_replay: bool,
) -> Result<CrawlDirectory, EngineError> {
    open_with(config, readers, is_replay, open_any_frontier)
}

/// Opens the output directory, with the frontier that `open_frontier` opens.
pub(crate) fn open_with(
    config: &Config,
    readers: usize,
    is_replay: bool,
    open_frontier: impl FnOnce(&Config, &Path, &Path) -> Result<OpenedFrontier, EngineError>,
) -> Result<CrawlDirectory, EngineError> {
    let dir = &config.output;
    let resumed = examine(dir)?;
    if !resumed && config.seeds.is_empty() {
        return Err(EngineError::NothingToDo { dir: dir.clone() });
    }
    let state = dir.join(STATE);
    let created = make_state(&state)?;
    // Declare this guard before the frontier, so that it is dropped after the frontier if the run
    // is refused.
    let _digests = DigestRefreshAfterOpen::before_opening(dir, STATE, is_write_once);
    let (frontier, shared, lock) = open_frontier(config, dir, &state)?;
    if !is_replay && frontier.meta(META_REPLAY)?.is_some() {
        return Err(EngineError::IsReplay { dir: dir.clone() });
    }
    let sampling = SampleState::open(config, &*frontier)?;
    let tombstones = Tombstones::read(dir, frontier.meta(META_TOMBSTONE_KEY)?)?;
    if let Some(seed) = config.seeds.iter().find(|seed| tombstones.holds(seed)) {
        return Err(CommandRefusal::Forgotten { url: seed.clone() }.into());
    }
    // Files change only from here on, so every check that may refuse the run must come before.
    keep_archive_digests(dir).map_err(EngineError::disk(&dir.join(DIGESTS)))?;
    let marks = frontier.marks()?;
    excluded_rows_of_last_run::set_aside(dir, marks.get(EXCLUDED).copied().unwrap_or(0))?;
    let mut files = open_files(config, &marks)?;
    SampleState::note_method(config, &*frontier)?;
    write_config(dir, &config.config_text)?;
    let last_end = last_end(dir);
    forget_waiting(dir)?;
    let mut requests = RowLogWriter::open_on(&config.disk, &dir.join("requests.jsonl"))?;
    files.requests = Some(requests.syncer()?);
    let totals = frontier
        .meta(META_TOTALS)?
        .and_then(|bytes| CrawlTotals::from_bytes(&bytes))
        .unwrap_or_default();
    let mut scope_seeds = ScopeSeeds::read(&*frontier, config)?;
    if let Some(shared) = &shared {
        scope_seeds.share(&shared.crawl_meta()?);
    }
    let cut_off = frontier.meta(META_RUN)?.is_some_and(|run| run != RUN_ENDED);
    let journal = open_journal(&state, &*frontier, readers)?;
    note_run(&*frontier, RUN_OPEN)?;
    Ok(CrawlDirectory {
        scope_seeds,
        frontier,
        shared,
        lock,
        tombstones,
        files,
        requests,
        sampling,
        journal,
        totals,
        created,
        resumed,
        cut_off,
        last_end,
    })
}

/// A frontier. If workers share it, also contains its interface for workers, and the lock of this
/// worker's directory.
pub(crate) type OpenedFrontier = (
    Arc<dyn Frontier>,
    Option<Arc<dyn WorkerFrontier>>,
    Option<FileLock>,
);

fn open_any_frontier(
    config: &Config,
    dir: &Path,
    state: &Path,
) -> Result<OpenedFrontier, EngineError> {
    let Some(shared) = &config.shared else {
        return Ok((Arc::new(open_frontier(dir, state)?), None, None));
    };
    let (shared, lock) = worker_state_folder::open(shared, dir, state)?;
    let frontier: Arc<dyn Frontier> = Arc::clone(&shared) as _;
    parking_changes::apply_recorded_parking(&*frontier, state)?;
    Ok((frontier, Some(shared), Some(lock)))
}

/// Returns how the last run of the crawl in `dir` ended: the reason in the first row of
/// `waiting.jsonl`, and the detail if there is one. `None` if no run ended properly.
pub(crate) fn last_end(dir: &Path) -> Option<String> {
    let rows = RowReader::<PendingOriginRow>::open_if_any(&dir.join(WAITING));
    let first = rows.ok()?.next()?.ok()?;
    Some(match first.detail {
        Some(detail) => format!("{} {detail}", first.reason),
        None => first.reason,
    })
}

/// The frontier of a crawl that is not running.
pub(crate) struct RestingFrontier {
    frontier: FjallFrontier,
    /// Declared last, because fields are dropped in order and the frontier must be closed first.
    _digests: DigestRefreshAfterOpen,
}

impl Deref for RestingFrontier {
    type Target = FjallFrontier;

    fn deref(&self) -> &FjallFrontier {
        &self.frontier
    }
}

/// Creates or opens the state without the other files, for a crawl that has not run yet.
pub(crate) fn begin_at_rest(dir: &Path) -> Result<FjallFrontier, EngineError> {
    examine(dir)?;
    let state = dir.join(STATE);
    make_state(&state)?;
    open_frontier(dir, &state)
}

/// Opens the state without the other files, for a crawl that is not running.
pub(crate) fn open_at_rest(dir: &Path) -> Result<RestingFrontier, EngineError> {
    if !examine(dir)? {
        return Err(EngineError::NothingToDo {
            dir: dir.to_path_buf(),
        });
    }
    let digests = DigestRefreshAfterOpen::before_opening(dir, STATE, is_write_once);
    Ok(RestingFrontier {
        frontier: open_frontier(dir, &dir.join(STATE))?,
        _digests: digests,
    })
}

/// Locks a directory that was gathered from the directories of several workers, until the returned
/// lock is dropped. `None` for any other directory.
pub(crate) fn hold_gathered(dir: &Path) -> Result<Option<FileLock>, EngineError> {
    let path = dir.join(WORKERS);
    let file = match crawl_archive::open_regular(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.map_err(EngineError::disk(&path))?,
    };
    let lock = FileLock::try_acquire(file).map_err(EngineError::disk(&path))?;
    let lock = lock.ok_or_else(|| EngineError::OutputInUse {
        dir: dir.to_path_buf(),
    })?;
    check_entries(dir)?;
    Ok(Some(lock))
}

/// Returns whether `dir` contains a crawl.
///
/// # Errors
/// The path is empty, or belongs to something other than a directory. The directory was gathered
/// from several workers, or contains files that don't belong to a crawl, or links in place of
/// files.
pub(crate) fn examine(dir: &Path) -> Result<bool, EngineError> {
    // With an empty path, `read_dir` finds no directory, but files would be created in the current
    // directory.
    if dir.as_os_str().is_empty() {
        return Err(EngineError::OutputUnnamed);
    }
    if dir.join(WORKERS).exists() {
        return Err(EngineError::IsGathered {
            dir: dir.to_path_buf(),
        });
    }
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => match error.kind() {
            ErrorKind::NotFound if is_behind_dangling_link(dir) => {
                return Err(not_a_directory(dir));
            }
            ErrorKind::NotFound => return Ok(false),
            ErrorKind::NotADirectory => return Err(not_a_directory(dir)),
            _ => return Err(EngineError::disk(dir)(error)),
        },
    };
    let mut holds_state = false;
    let mut records = None;
    for entry in entries {
        let name = entry.map_err(EngineError::disk(dir))?.file_name();
        if !OURS.iter().any(|ours| name == *ours) {
            let name = name.to_string_lossy().into_owned();
            let is_crawl = dir.join(STATE).is_dir();
            let dir = dir.to_path_buf();
            return Err(match is_crawl {
                true => EngineError::BesideCrawl { dir, found: name },
                false => EngineError::OutputForeign { dir, found: name },
            });
        }
        holds_state |= name == STATE;
        records = records.or_else(|| Some(name.to_string_lossy().into_owned()));
    }
    match records {
        Some(found) if !holds_state => Err(EngineError::StateMissing {
            dir: dir.to_path_buf(),
            found,
        }),
        _ => check_entries(dir)
            .map(|()| holds_state)
            .map_err(EngineError::from),
    }
}

fn not_a_directory(dir: &Path) -> EngineError {
    EngineError::NotADirectory {
        dir: dir.to_path_buf(),
    }
}

/// Opens the frontier, and cleans up after a crash: undoes an erasure (`crawl forget`) that was not
/// final, and finishes or undoes a replacement of `extracts.jsonl`. Fails if an erasure is final
/// but unfinished.
pub(crate) fn open_frontier(dir: &Path, state: &Path) -> Result<FjallFrontier, EngineError> {
    worker_state_folder::refuse_shared(dir, state)?;
    file_swap::recover(dir)?;
    let frontier = FjallFrontier::open(state, &FjallFrontierOptions::default())
        .map_err(|error| unopened(dir, state, error))?;
    finish_replacement(dir, &frontier)?;
    Ok(frontier)
}

/// Opens only the frontier's store, for a crawl that is not running.
pub(crate) fn open_resting(dir: &Path, state: &Path) -> Result<OfflineFrontier, EngineError> {
    worker_state_folder::refuse_shared(dir, state)?;
    OfflineFrontier::open(state, &FjallFrontierOptions::default())
        .map_err(|error| unopened(dir, state, error))
}

pub(super) fn unopened(dir: &Path, state: &Path, error: DiskOpenError) -> EngineError {
    match error {
        DiskOpenError::InUse { .. } => EngineError::OutputInUse {
            dir: dir.to_path_buf(),
        },
        source => EngineError::Open {
            dir: state.to_path_buf(),
            source,
        },
    }
}

fn open_files(
    config: &Config,
    marks: &BTreeMap<String, u64>,
) -> Result<OutputWriters, EngineError> {
    let dir = &config.output;
    let rows = |name: &str| {
        RowFileWriter::open_on(&config.disk, &dir.join(name), marks.get(name).copied())
    };
    // If an earlier run wrote a file, open it even if its feature is disabled now, because opening
    // cuts off uncommitted rows.
    let has = |name: &str| dir.join(name).exists();
    let archive = (config.warc.is_some() || has("archive"))
        .then(|| ArchiveWriter::open_on(&config.disk, dir, archive_options(config), marks))
        .transpose()?;
    let links = (config.links || has("links.jsonl"))
        .then(|| rows("links.jsonl"))
        .transpose()?;
    let has_rules = !config.extract.is_empty();
    let extracts = (has_rules || has(EXTRACTS))
        .then(|| rows(EXTRACTS))
        .transpose()?;
    if has_rules {
        write_rules(dir, &config.extract)?;
    }
    let is_walk = matches!(config.sample, Some(SampleMethod::Walk(_)));
    let walk = (is_walk || has(WALK)).then(|| rows(WALK)).transpose()?;
    Ok(OutputWriters {
        archive: archive.filter(|_| config.warc.is_some()),
        pages: rows("pages.jsonl")?,
        excluded: rows(EXCLUDED)?,
        links: links.filter(|_| config.links),
        extracts: extracts.filter(|_| has_rules),
        walk: walk.filter(|_| is_walk),
        index: None,
        requests: None,
    })
}

fn open_journal(
    state: &Path,
    frontier: &dyn Frontier,
    readers: usize,
) -> Result<ReadingJournal, EngineError> {
    let mut failed = None;
    let is_pending = |url: &CanonicalUrl| match frontier.known(url) {
        Ok(known) => matches!(
            known.map(|known| known.state),
            Some(KnownState::Pending { .. })
        ),
        Err(error) => {
            failed = Some(error);
            false
        }
    };
    let journal = ReadingJournal::open(state, readers, is_pending);
    match failed {
        Some(error) => Err(error.into()),
        None => journal.map_err(EngineError::disk(state)),
    }
}

/// Reads the tombstones of a crawl that is not running.
///
/// # Errors
/// The crawl is in use, or the tombstones can't be read.
pub(crate) fn tombstones_at_rest(dir: &Path) -> Result<Tombstones, EngineError> {
    if !dir.join(TOMBSTONES).is_file() {
        return Ok(Tombstones::default());
    }
    let frontier = open_at_rest(dir)?;
    Tombstones::read(dir, frontier.meta(META_TOMBSTONE_KEY)?)
}

/// Combines the operator's name and contact.
fn operator(config: &Config) -> Option<String> {
    let contact = config.contact.as_ref().map(ToString::to_string);
    match (config.study.operator_name.clone(), contact) {
        (Some(name), Some(contact)) => Some(format!("{name} <{contact}>")),
        (name, contact) => name.or(contact),
    }
}

/// Returns the name and version of the browser that renders pages.
fn render_version(config: &Config) -> Option<String> {
    let render = config.render.as_ref()?;
    render.renderer.version().map(str::to_owned)
}

fn archive_options(config: &Config) -> ArchiveOptions {
    ArchiveOptions {
        prefix: config
            .seeds
            .first()
            .map(|seed| seed.host_key().to_string())
            .unwrap_or_default(),
        compression: config.warc.unwrap_or_default(),
        warcinfo: Warcinfo {
            software: config.software.clone(),
            operator: operator(config),
            publisher: config.study.institution.clone(),
            is_part_of: config.study.study.clone(),
            user_agent: config.user_agent.clone(),
            from: config.fetch.from.clone(),
            robots: format!("obeyed, read as {}", config.profile),
            browser: render_version(config),
            config_digest: Some(DigestAlgorithm::Sha256.of(&[config.config_text.as_bytes()])),
        },
        ..ArchiveOptions::default()
    }
}

/// Creates the crawl directory and the state folder in it. If other users may write to the state
/// folder, removes their access. Returns the folders above the state folder that it created, the
/// outermost first.
fn make_state(state: &Path) -> Result<Vec<PathBuf>, EngineError> {
    let failed = |error| EngineError::disk(state)(error);
    let created = match state.parent() {
        Some(dir) => make_folder(dir).map_err(failed)?,
        None => Vec::new(),
    };
    match fs::DirBuilder::new().mode(STATE_MODE).create(state) {
        Err(why) if why.kind() != ErrorKind::AlreadyExists => return Err(failed(why)),
        _ => {}
    }
    let mode = fs::symlink_metadata(state).map_err(failed)?.mode();
    if mode & 0o022 != 0 {
        fs::set_permissions(state, fs::Permissions::from_mode(mode & STATE_MODE))
            .map_err(failed)?;
    }
    Ok(created)
}

/// Writes the list of URLs that are still pending at the end of a run. After a crash there is no
/// list.
pub(crate) fn note_waiting(dir: &Path, rows: &[PendingOriginRow]) -> Result<(), EngineError> {
    let mut bytes = Vec::new();
    for row in rows {
        bytes.extend(serde_json::to_vec(row).unwrap_or_default());
        bytes.push(b'\n');
    }
    let path = dir.join(WAITING);
    replace(&path, &dir.join(WAITING_BESIDE), &bytes).map_err(EngineError::disk(&path))
}

/// Removes the list of pending URLs from the end of the last run.
fn forget_waiting(dir: &Path) -> Result<(), EngineError> {
    let path = dir.join(WAITING);
    match fs::remove_file(&path) {
        Err(why) if why.kind() != ErrorKind::NotFound => Err(EngineError::disk(&path)(why)),
        _ => Ok(()),
    }
}

/// Records that the run ended properly, without requests in flight.
pub(crate) fn note_end(frontier: &dyn Frontier) -> Result<(), FrontierError> {
    note_run(frontier, RUN_ENDED)
}

fn note_run(frontier: &dyn Frontier, run: &[u8]) -> Result<(), FrontierError> {
    let mut transaction = frontier.begin()?;
    transaction.keep_meta(META_RUN, run);
    transaction.commit().map(|_| ())
}
