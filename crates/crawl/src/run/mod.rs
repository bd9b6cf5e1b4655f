//! Runs a crawl from checked settings to its end: engine configuration, rounds and signals.

mod archive_read_progress;
mod engine_config;
mod interrupted_forget;
mod job;
pub(crate) mod open_file_limit;
mod plan;
mod replay;
mod rounds;
mod rules_only_run;
mod seed_schemes;
pub(crate) mod signals;
mod start;
mod temporary_folder;

pub(crate) use archive_read_progress::while_reading;
pub(crate) use interrupted_forget::finish_interrupted;
pub(crate) use job::ContinuationCommand;
pub(crate) use plan::plan;
pub(crate) use replay::{FinishedReplay, replay};
pub(crate) use rules_only_run::recheck;
pub(crate) use start::crawl;
pub(crate) use temporary_folder::TemporaryFolder;
