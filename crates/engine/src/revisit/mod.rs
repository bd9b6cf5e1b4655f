//! Visiting pages again: what a visit leaves for the next one, and the rounds of a crawl.

pub(crate) mod document_state;
pub(crate) mod round;
pub(crate) mod visit;
