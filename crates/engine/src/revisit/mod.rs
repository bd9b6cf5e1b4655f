//! Revisits: how a page changed since its last visit, what is stored for the next visit, and the
//! rounds of a crawl.

pub(crate) mod change_detection;
pub(crate) mod meta_document_state;
pub(crate) mod round;
pub(crate) mod visit;
