//! A crawl as a bundle that can be cited and checked, and the check that what a crawl left is whole.
//!
//! [`write_bundle`] writes the archive, the rows, the tables and the configuration of a crawl into
//! a folder, with descriptions for people and programs, and a digest of every file. [`verify`]
//! checks such a bundle byte by byte; and there as in the directory of a crawl it holds all that is
//! said twice against each other ([`verify_directory`]): records against their digests and lengths,
//! the lists of the archive against the records, rows against records and requests, the report
//! against the rows. The crate never fetches, reads no clock, and changes nothing in the crawl's
//! directory.
//!
//! ```
//! use crawl_bundle::verify;
//!
//! let (dir, scratch) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! std::fs::write(dir.path().join("crawl.toml"), "")?;
//! std::fs::write(dir.path().join("pages.jsonl"), "{}\n")?;
//! let found = verify(dir.path(), scratch.path())?;
//! let [finding] = &found.findings[..] else { panic!("{found}") };
//! assert_eq!((finding.file.as_str(), finding.line), ("pages.jsonl", Some(1)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod archive_check;
mod bag;
mod bundle_check;
mod citation;
mod croissant;
mod cross_check;
mod digest_check;
mod directory;
mod error;
mod export;
mod facts;
mod payload;
mod public_config;
mod readme;
mod report_check;
mod ro_crate;
mod robots_copies;
mod row_check;
mod statements;
mod verification;

pub use bundle_check::verify;
pub use directory::verify_directory;
pub use error::{BundleError, VerifyError};
pub use export::{WrittenBundle, write_bundle};
pub use verification::{Checked, Finding, Verification};
