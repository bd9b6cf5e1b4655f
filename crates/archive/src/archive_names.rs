//! The names of the archive's folder and of its two index files.

/// The folder of a crawl's directory that an [`Archive`](crate::Archive) owns.
pub const FOLDER: &str = "archive";
/// The log of captures: index lines in the order in which they were written.
pub const CAPTURES: &str = "captures.cdxj";
/// The index: the same lines as in [`CAPTURES`], sorted.
pub const INDEX: &str = "index.cdxj";
