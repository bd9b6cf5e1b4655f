//! One file or folder for each command beside the crawl itself.

pub(crate) mod export;
pub(crate) mod index;
pub(crate) mod inspect;
pub(crate) mod records;
pub(crate) mod robots;
pub(crate) mod search;
