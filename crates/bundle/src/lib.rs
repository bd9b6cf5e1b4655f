//! Bundles a crawl so that it can be cited and checked, and verifies bundles and crawl directories.
//!
//! [`write_bundle`] writes the archive, rows, tables and configuration of a crawl into a folder.
//! Descriptions for people and programs are added, and the digest of every file.
//!
//! [`verify`] checks such a bundle byte by byte. After that, `verify` compares everything that is
//! recorded in two places, as [`verify_directory`] does for a crawl's directory: records with their
//! digests and lengths, the capture lists with the records, rows with records and requests, and the
//! report with the rows.
//!
//! The crate never fetches, reads no clock, and changes nothing in the crawl's directory.
//!
//! ```
//! use crawl_bundle::verify;
//!
//! let (dir, scratch) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! std::fs::write(dir.path().join("crawl.toml"), "")?;
//! std::fs::write(dir.path().join("pages.jsonl"), "{}\n")?;
//! let verification = verify(dir.path(), scratch.path())?;
//! let [finding] = &verification.findings[..] else { panic!("{verification}") };
//! assert_eq!((finding.file.as_str(), finding.line), ("pages.jsonl", Some(1)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod archive_check;
mod bagit_manifests;
mod bundle_check;
mod bundle_folder;
mod citation;
mod config_redaction;
mod crawl_summary;
mod croissant;
mod cross_check;
mod cross_check_sorter;
mod directory_check;
mod directory_digest_check;
mod error;
mod export;
mod readme;
mod report_check;
mod ro_crate;
mod robots_rows;
mod row_check;
mod verification_result;

pub use bundle_check::verify;
pub use directory_check::verify_directory;
pub use error::{BundleError, VerificationRunError};
pub use export::{WrittenBundle, write_bundle};
pub use verification_result::{CheckedItemCounts, VerificationDefect, VerificationResult};
