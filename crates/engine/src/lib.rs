//! The crawl loop: one loop over one closed set of events.
//!
//! A URL of a crawl is named, judged by scope, admitted, scheduled, leased, judged by robots.txt,
//! fetched, encoded, read, and settled together with its links. This crate does that. Its logic is
//! the coordinator: it is told what happened and at which [`Tick`](crawl_scheduler::Tick), and
//! answers with what is to be done; it reads no clock and waits for nothing, so a simulated web
//! drives the same code. [`run`] is the driver for the real world: it fetches, reads on threads of
//! its own, and has one writer that commits groups of pages.
//!
//! The engine has no policy of its own: what may be asked for is said by
//! `crawl-policy` and `crawl-scope`, when by `crawl-scheduler`, what comes next by
//! `crawl-frontier`.
//! It prints nothing, reads no environment and installs no signal handler.
//! A subscriber of `tracing`, where there is one, is told what it does and why: spans `crawl`,
//! `host` and `exchange`, an event for each exchange (debug) and for each decision (trace).

mod admissions;
mod config;
mod content_filter;
mod control;
mod counters;
mod crawl_loop;
mod document_reader;
mod driver;
mod error;
mod excluded_rows;
mod forget;
mod free_space;
mod index;
mod messages;
mod meta_keys;
mod priority;
mod read;
mod replay;
mod revisit;
mod runtime_waker;
mod sampling;
mod scope_seeds;
mod secrets;
mod shared_traps;
mod sharing;
#[cfg(test)]
mod simulated;
mod state;
mod summary;
mod time;
mod tombstones;
mod totals;
mod trace_events;
mod usage;
mod write;

pub use config::{
    Budgets, Config, Extent, Forbidden, HostBudget, HostGroup, ImportTarget, MAX_PER_OTHERS_HOST,
    MIN_OTHERS_DELAY, OpenFrontier, Resources, Revisits, ScopeRules, SharedCrawl, Study, TrapRules,
};
pub use control::{
    Command, CommandAnswer, Commander, Controls, LatestPage, LiveState, PendingAnswer, Phase,
    PostedCommand, Progress, Refused, Rules, Stop, commands,
};
pub use counters::{
    BUCKET_SECONDS, Counters, Histogram, PAGE_OUTCOMES, exclusion_reasons, page_outcome,
    status_class,
};
pub use crawl_loop::host_locks::HostLocks;
pub use crawl_loop::running_crawls::RunningCrawl;
pub use document_reader::{DocumentRules, UNREADABLE_EXIT_CODE};
pub use driver::run;
pub use error::EngineError;
pub use forget::{Forget, Forgotten, count_forgotten, find_tombstone, finish_forget, forget};
pub use free_space::FreeSpace;
#[cfg(feature = "search")]
pub use index::rebuild::{Reindex, Reindexed, reindex};
pub use replay::{RecordedCrawl, ReplayDifference, ReplayGaps, ReplayTiming, Replayed, replay};
pub use state::at_rest::{LastRound, admit_at_rest, last_round, park_at_rest, unpark_at_rest};
pub use state::export::{GatheredWorker, export};
pub use state::import::{Imported, import};
pub use state::moved_crawl::MovedCrawl;
pub use summary::{
    Ended, HasArchive, IndexFault, Indexed, OriginRules, SeedFailure, Summary, UnreachableHost,
};
pub use totals::Changes;
