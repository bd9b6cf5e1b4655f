//! Revisits: how a page changed since its last visit, what is stored for the next visit, and the
//! rounds of a crawl.

pub(crate) mod change_detection;
pub(crate) mod document_state_meta_tag;
pub(crate) mod lifted_exclusions;
pub(crate) mod round_of_run;
pub(crate) mod unread_link_kinds;
pub(crate) mod visit;
