//! A polite web crawler as a library: robots.txt, a gap between two requests to a host, and an archive
//! that survives a crash, behind one builder.
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
//! [`Crawl`] has the options, [`Pages`] is the stream of [`Page`]s, and [`CrawlError`] lists what can go
//! wrong. [`PoliteClient`] is for programs that choose their URLs themselves: it waits until a request
//! is welcome, and refuses what robots.txt disallows.
//!
//! Some crates can be used alone: `crawl-policy` for robots.txt, `crawl-scheduler` for
//! the moment of each request, `crawl-extractor` for links and text.

mod library;

pub use library::*;
