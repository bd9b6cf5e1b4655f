//! The engine, which runs a crawl from its seeds to its end.
//!
//! A URL of a crawl is canonicalized, judged by the scope, admitted, scheduled, leased, judged by
//! robots.txt, fetched, read, encoded, and settled together with its links. This crate does all
//! that. The coordinator (the crawl loop) contains the logic: its inputs are events and the current
//! [`Tick`](crawl_scheduler::Tick), and its outputs are effects to perform. The coordinator reads
//! no clock and waits for nothing, so the same code can also run on a simulated web. [`run`] is the
//! driver for the real world: it fetches, reads on its own threads, and has one writer that commits
//! groups of pages.
//!
//! The engine sets no policy: `crawl-policy` and `crawl-scope` decide what may be fetched,
//! `crawl-scheduler` decides when, and `crawl-frontier` decides what comes next. The crate prints
//! nothing, reads no environment variables and installs no signal handler. Actions and their
//! reasons are reported to `tracing`: spans `crawl`, `host` and `exchange`, an event for each
//! exchange (debug) and for each decision (trace).

mod config;
mod content_filter;
mod content_type;
mod control;
mod crawl_loop;
mod crawl_totals;
mod document_conversion;
mod driver;
mod error;
mod excluded_jsonl_rows;
mod field_extraction;
mod forget;
mod free_space;
mod frontier_meta_keys;
mod index;
mod login;
mod messages;
mod page_reading;
mod priority;
mod render;
mod replay;
mod revisit;
mod run_counters;
mod runtime_waker;
mod sampling;
mod scope_seeds;
mod secret_redaction;
mod seed_and_sitemap_admissions;
mod shared_trap_detector;
#[cfg(test)]
mod simulated_crawl_tests;
mod state;
mod summary;
mod time_conversions;
mod tombstones;
mod trace_events;
mod usage_preferences;
mod worker_coordination_thread;
mod write;

pub use config::{
    Config, CrawlBudgets, EmbeddedResourcePolicy, ForbiddenRobotsPolicy, HostBudget,
    HostGroupBudget, MAX_PER_OTHERS_HOST, MIN_OTHERS_DELAY, OffScopeRequestMethod,
    RevisitIntervals, RunMode, ScopeRules, SharedCrawlMembership, SharedFrontierImportTarget,
    SharedFrontierOpener, StudyDescription, TrapAvoidance,
};
pub use control::{
    AdjustableRules, CommandAnswer, CommandRefusal, Commander, ControlChannels, CrawlCommand,
    CrawlPhase, LiveCrawlState, PendingAnswer, PostedCommand, ProgressSnapshot, RecentPage,
    StopUrgency, commands,
};
pub use crawl_loop::host_locks::{HostLocks, HostRefusal};
pub use crawl_loop::running_crawls::RunningCrawlDescription;
pub use crawl_totals::PageChangeCounts;
pub use document_conversion::{DocumentIndexingSettings, UNREADABLE_EXIT_CODE};
pub use driver::run;
pub use error::EngineError;
pub use field_extraction::{ReextractionSummary, extract_again, extract_rows};
pub use forget::{
    ErasedRecordCounts, ForgetRequest, RemovedDerivedFiles, add_page_resources, count_forgotten,
    find_tombstone, finish_forget, forget, undo_forget, why_index_is_removed,
};
pub use free_space::FreeSpaceMeter;
#[cfg(feature = "search")]
pub use index::rebuild::{IndexRebuildResult, IndexRebuildSettings, reindex};
pub use login::{CredentialSource, LoginMethod, PageSign, PageSignError, SiteLogin};
pub use render::{
    NoBrowserRenderer, PageToRender, RenderConfig, RenderFailure, RenderFuture, RenderLimits,
    RenderMode, RenderedPage, Renderer, ResourceAnswer, ResourceKind, ResourceRequest,
    ResourceRequestSender,
};
pub use replay::{
    DifferentlyRenderedPage, MissingArchiveAnswerCounts, RecordedCrawl, ReplayDifference,
    ReplayResult, ReplayTimingMode, RerenderResult, replay,
};
pub use run_counters::{
    BUCKET_SECONDS, DurationHistogram, RunCounters, exclusion_reasons, status_class,
};
pub use state::expire_robots_rules::expire_changed_rules;
pub use state::frontier_move_counts::MovedRecordCounts;
pub use state::move_from_shared_frontier::{GatheredWorkerDirectory, export};
pub use state::move_to_shared_frontier::{CrawlImportResult, import};
pub use state::remove_unanswered_run::discard_unanswered;
pub use state::stopped_crawl_changes::{
    LastRound, admit_at_rest, last_round, park_at_rest, unpark_at_rest,
};
pub use summary::{
    ArchivePresence, EndReason, IndexRebuildReason, IndexSummary, LOGIN_FAILED, LOGIN_REFUSED,
    OriginWideRules, RunConnectivity, RunSummary, SeedFailure, UnfetchableHost,
};
