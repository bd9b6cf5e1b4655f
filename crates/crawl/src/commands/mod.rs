//! One file or folder for each command beside the crawl itself.

pub(crate) mod control;
pub(crate) mod export;
pub(crate) mod index;
pub(crate) mod input;
pub(crate) mod inspect;
pub(crate) mod plan;
pub(crate) mod records;
pub(crate) mod robots;
pub(crate) mod search;
mod tables;
mod wacz;
