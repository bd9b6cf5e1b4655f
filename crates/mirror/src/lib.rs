//! Exports the pages of a crawl as files that a browser opens without a server.
//!
//! [`mirror`] reads a crawl's directory and writes a folder with a file for each page and each
//! resource, as of the last visit of its URL: `https://example.org/docs/` becomes
//! `example.org/docs/index.html`. References between files become relative, through redirects to
//! their end; all others become absolute. A page that its site or the operator keeps out of copies
//! has no file.
//!
//! The same crawl always yields the same bytes. The crate never fetches, reads no clock, and
//! changes nothing in the crawl's directory.
//!
//! ```
//! use crawl_mirror::{MirrorError, mirror};
//!
//! let crawl = tempfile::tempdir()?;
//! std::fs::write(crawl.path().join("pages.jsonl"), "")?;
//! let refused = mirror(crawl.path(), &crawl.path().join("out")).unwrap_err();
//! assert!(matches!(refused, MirrorError::NoFiles { .. }));
//! # Ok::<(), std::io::Error>(())
//! ```

mod error;
mod file_path;
mod media_type;
mod site_files;
mod write;

pub use error::MirrorError;
pub use write::{MirrorReport, mirror};
