//! The names of the archive's folder, its capture log and its index.

/// The folder in a crawl's directory that belongs to its [`ArchiveWriter`](crate::ArchiveWriter).
pub const FOLDER: &str = "archive";
/// The capture log: index lines in the order in which they were written.
pub const CAPTURES: &str = "captures.cdxj";
/// The index file: the same lines as in [`CAPTURES`], sorted.
pub const INDEX: &str = "index.cdxj";
