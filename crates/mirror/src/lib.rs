//! Exports the pages of a crawl as files that a browser can open without a server.
//!
//! [`mirror`] reads a crawl's directory and writes a folder. Each page and each resource becomes a
//! file with the content of the last visit: `https://example.org/docs/` becomes
//! `example.org/docs/index.html`. A reference that leads to such a file, directly or through
//! redirects, becomes relative. All other references become absolute. Pages that the site or the
//! operator excludes from copies have no file.
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
mod mirror_file_map;
mod mirror_writer;

pub use error::MirrorError;
pub use mirror_writer::{MirrorReport, mirror};
