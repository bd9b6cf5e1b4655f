//! A crawl from checked settings to its end: the engine's configuration, rounds and signals.

pub(crate) mod connection_limit;
pub(crate) mod job;
pub(crate) mod rounds;
mod seed_schemes;
pub(crate) mod signals;
