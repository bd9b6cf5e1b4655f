//! The ring: one loop over one closed set of events.
//!
//! A crawl is a ring that each URL walks once: it is named, judged by scope, admitted,
//! scheduled, leased, judged by robots.txt, fetched, kept, read, and settled together
//! with its links. This crate closes that ring. [`Ring`] is its logic: it is told
//! what happened ([`Event`]) and at which [`Tick`](crawl_scheduler::Tick), and answers
//! with what is to be done ([`Effect`]); it reads no clock and waits for nothing, so a
//! simulated web drives the same code. [`run`] is the driver for the real world: it
//! fetches, reads on threads of its own, and has one writer that commits groups of pages.
//!
//! The engine has no policy of its own: what may be asked for is said by
//! `crawl-policy`, when by `crawl-scheduler`, what comes next by `crawl-frontier`.
//! It prints nothing, reads no environment and installs no signal handler.

mod accounts;
mod byte_lock;
mod config;
mod control;
mod delays;
mod directory;
mod documents;
mod driver;
mod ending;
mod error;
mod estimate;
mod finish;
mod hosts;
mod index_log;
mod indexing;
mod item;
mod journal;
mod keep;
mod links;
mod locks;
mod origins;
mod page;
mod read;
mod readers;
mod redirects;
mod reindex;
mod request_log;
mod ring;
mod rounds;
mod rules;
mod running;
mod searchable;
mod secrets;
#[cfg(test)]
mod simulated;
mod sitemap_budget;
mod start;
mod steer;
mod summary;
mod suspects;
mod traps;
mod usage;
mod visits;
mod writer;

pub use config::{
    Budgets, Config, Controls, Forbidden, HostBudget, Phase, Progress, Resources, ScopeRules, Stop,
};
pub use control::{Answer, Ask, Command, Commander, LatestPage, Live, Posted, Refused, commands};
pub use driver::run;
pub use error::EngineError;
pub use indexing::{HasArchive, Indexed};
pub use item::{Effect, Event, Item, Job, Judged, Ordered};
pub use locks::HostLocks;
pub use reindex::{Reindex, Reindexed, reindex};
pub use ring::{Next, Ring};
pub use rounds::{LastRound, last_round};
pub use running::RunningCrawl;
pub use steer::{park_at_rest, unpark_at_rest};
pub use summary::{Changes, Ended, SeedFailure, Summary, UnreachableHost};
pub use traps::TrapRules;
pub use visits::{Past, Revisits};
