//! The public API of the library, built on `crawl-engine`.

mod builder;
mod error;
mod output_directory;
mod page;
mod page_stream;
mod polite_client;

pub use builder::Crawl;
pub use crawl_archive::rows::PageRow;
pub use crawl_engine::{Config, EngineError, RunSummary};
pub use crawl_scope::ScopeMode;
pub use error::CrawlError;
pub use page::Page;
pub use page_stream::PageStream;
pub use polite_client::{PoliteClient, PoliteClientBuilder, PoliteError, PoliteResponse};
