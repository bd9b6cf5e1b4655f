//! A crawl from checked settings to its end: the engine's configuration, rounds and signals.

pub(crate) mod connection_limit;
mod engine_config;
mod job;
mod plan;
mod rounds;
mod seed_schemes;
pub(crate) mod signals;
mod start;

pub(crate) use plan::plan;
pub(crate) use start::run;
