//! Packages the archive of a crawl as a WACZ file (Web Archive Collection Zipped, version 1.1.1),
//! which can be replayed in a browser.
//!
//! [`package`] reads a crawl's directory and writes one ZIP file. The file contains the WARC
//! records, compressed with gzip, their index in compressed blocks, the list of pages with titles
//! and texts, and `datapackage.json`, which lists all other files with their digests. A package
//! covers the whole crawl or a single round. If the crawl was killed, the package contains the
//! captures that are intact.
//!
//! Memory is bounded regardless of the archive's size. The same crawl and the same [`WaczOptions`]
//! always yield the same bytes. The crate never fetches, reads no clock, and changes nothing in the
//! crawl's directory.
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

mod capture_copier;
mod capture_rounds;
mod data_package;
mod earlier_wacz;
mod error;
mod index_blocks;
mod options;
mod original_captures;
mod page_list;
mod wacz_packaging;
mod zip_file_writer;

pub use error::WaczError;
pub use options::WaczOptions;
pub use wacz_packaging::{WrittenWacz, package};
