//! Runs a crawl from checked settings to its end: engine configuration, rounds and signals.

mod archive_read_progress;
mod engine_config;
mod interrupted_forget;
mod plan;
mod prepared_crawl;
pub(crate) mod process_limits;
mod recheck;
mod replay;
mod rounds;
mod seed_schemes;
pub(crate) mod signals;
mod start;
mod temporary_folder;

pub(crate) use archive_read_progress::while_reading;
pub(crate) use interrupted_forget::finish_interrupted;
pub(crate) use plan::plan;
pub(crate) use prepared_crawl::ContinuationCommand;
pub(crate) use recheck::recheck;
pub(crate) use replay::{FinishedReplay, replay};
pub(crate) use start::crawl;
pub(crate) use temporary_folder::TemporaryFolder;
