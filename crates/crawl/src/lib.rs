//! A polite web crawler as a library: robots.txt, a gap between two requests to a host, and an
//! archive that survives a crash, behind one builder.
//!
//! ```no_run
//! use crawl::Crawl;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), crawl::CrawlError> {
//!     let mut pages = Crawl::new("https://example.org/")
//!         .contact("me@example.org")
//!         .max_pages(100)
//!         .run();
//!     while let Some(page) = pages.next().await {
//!         let page = page?;
//!         println!("{} {}", page.url(), page.title().unwrap_or_default());
//!     }
//!     Ok(())
//! }
//! ```
//!
//! [`Crawl`] has the options, [`PageStream`] is the stream of [`Page`]s, and [`CrawlError`] lists what
//! can go wrong. [`PoliteClient`] is for programs that choose their URLs themselves: it sends each
//! request once the gap to the host's last request has passed, and refuses URLs that robots.txt
//! disallows.
//!
//! Some crates can be used alone: `crawl-policy` for robots.txt, `crawl-scheduler` for when to send
//! each request, `crawl-extractor` for links and text.

#![cfg_attr(
    fuzzing,
    allow(dead_code, unused_imports, reason = "the program uses them")
)]

// Modules of the program that the fuzz targets need.
#[cfg(fuzzing)]
mod child_process_without_secrets;
#[cfg(fuzzing)]
mod clock;
#[cfg(fuzzing)]
mod control {
    pub(crate) mod protocol;
}
#[cfg(fuzzing)]
mod error;
#[cfg(fuzzing)]
pub mod fuzz_checks;
#[cfg(fuzzing)]
mod identity;
#[cfg(fuzzing)]
mod input_file_reader;
mod library;
#[cfg(fuzzing)]
#[cfg_attr(not(feature = "render"), path = "rendering_disabled.rs")]
mod rendering;
#[cfg(fuzzing)]
mod settings;
#[cfg(fuzzing)]
#[cfg_attr(not(feature = "shared-frontier"), path = "shared_frontier_disabled.rs")]
mod shared_frontier;
#[cfg(fuzzing)]
mod values;

pub use library::*;
