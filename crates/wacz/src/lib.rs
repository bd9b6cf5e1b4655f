//! The archive of a crawl as one WACZ file (Web Archive Collection Zipped, version 1.1.1), which
//! replays in a browser.
//!
//! [`package`] reads a crawl's directory and writes one ZIP file: the WARC files as they are, their
//! index in compressed blocks, the list of pages with their titles and texts, and
//! `datapackage.json`, which names all of it with its digests. It takes the whole crawl or one
//! round, and of a crawl that was killed what is whole. Memory is bounded however long the archive
//! is; the same crawl gives the same bytes for the same [`WaczOptions`]. The crate never fetches,
//! reads no clock, and changes nothing in the crawl's directory.
//!
//! ```
//! use crawl_archive::Timestamp;
//! use crawl_wacz::{WaczError, WaczOptions, package};
//!
//! let crawl = tempfile::tempdir()?;
//! std::fs::write(crawl.path().join("crawl.toml"), "")?;
//! let out = tempfile::tempdir()?;
//! let options = WaczOptions {
//!     round: None,
//!     earlier: Vec::new(),
//!     created: Timestamp::from_micros(1_795_000_000_000_000),
//!     software: "crawl/0.1.0".to_owned(),
//! };
//! let refused = package(crawl.path(), out.path(), &options).unwrap_err();
//! assert!(matches!(refused, WaczError::NoCaptures { .. }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod captures;
mod data_package;
mod earlier;
mod error;
mod index_blocks;
mod options;
mod originals;
mod package;
mod page_list;
mod rounds;
mod zip_file;

pub use error::WaczError;
pub use options::WaczOptions;
pub use package::{Packaged, package};
