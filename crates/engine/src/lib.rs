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
//! `crawl-policy`, when by `crawl-scheduler`, what comes next by `crawl-frontier`.
//! It prints nothing, reads no environment and installs no signal handler.

mod config;
mod control;
mod crawl_loop;
mod driver;
mod error;
mod index;
mod messages;
mod read;
mod revisit;
mod secrets;
#[cfg(test)]
mod simulated;
mod state;
mod summary;
mod usage;
mod write;

pub use config::{
    Budgets, Config, Controls, Forbidden, HostBudget, Phase, Progress, Resources, ScopeRules, Stop,
};
pub use control::{Answer, Ask, Command, Commander, LatestPage, Live, Posted, Refused, commands};
pub use crawl_loop::host_locks::HostLocks;
pub use crawl_loop::running_crawls::RunningCrawl;
pub use crawl_loop::steering::{park_at_rest, unpark_at_rest};
pub use crawl_loop::trap_gate::TrapRules;
pub use driver::run;
pub use error::EngineError;
pub use index::follower::{HasArchive, IndexFault, Indexed};
pub use index::rebuild::{Reindex, Reindexed, reindex};
pub use revisit::round::{LastRound, last_round};
pub use revisit::visit::Revisits;
pub use summary::{Changes, Ended, SeedFailure, Summary, UnreachableHost};
