//! The names of the archive's folder and of the lists in it.

/// The folder of a crawl's directory that an [`Archive`](crate::Archive) owns.
pub const FOLDER: &str = "archive";
/// The log of captures in it: the lines of the index in the order of writing.
pub const CAPTURES: &str = "captures.cdxj";
/// The sorted index in it.
pub const INDEX: &str = "index.cdxj";
