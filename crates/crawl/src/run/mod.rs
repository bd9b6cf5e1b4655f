//! Runs a crawl from checked settings to its end: engine configuration, rounds and signals.

mod archive_reading;
pub(crate) mod connection_limit;
mod engine_config;
mod interrupted_forget;
mod job;
mod own_folder;
mod plan;
mod recheck;
mod replay;
mod rounds;
mod seed_schemes;
pub(crate) mod signals;
mod start;

pub(crate) use archive_reading::while_reading;
pub(crate) use interrupted_forget::finish_interrupted;
pub(crate) use job::Directory;
pub(crate) use own_folder::OwnFolder;
pub(crate) use plan::plan;
pub(crate) use recheck::recheck;
pub(crate) use replay::{ReplayRun, replay};
pub(crate) use start::crawl;
