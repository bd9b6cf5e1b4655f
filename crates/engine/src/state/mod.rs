//! What a crawl keeps on disk besides archive, rows and index: its directory, and the files of its state.

pub(crate) mod at_rest;
pub(crate) mod crash_journal;
pub(crate) mod delay_log;
pub(crate) mod directory;
pub(crate) mod parked_hosts;
