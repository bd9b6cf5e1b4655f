//! The names of the archive's folder and of the indexes in it.

/// The folder of a crawl's directory that an [`Archive`](crate::Archive) owns.
pub const FOLDER: &str = "archive";
/// The log of captures: index lines in the order of writing.
pub const CAPTURES: &str = "captures.cdxj";
/// The sorted index.
pub const INDEX: &str = "index.cdxj";
