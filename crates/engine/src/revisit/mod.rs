//! Revisits: what changed since the last visit, what is stored for the next one, and the rounds of
//! a crawl.

pub(crate) mod change_detection;
pub(crate) mod document_state;
pub(crate) mod round;
pub(crate) mod visit;
