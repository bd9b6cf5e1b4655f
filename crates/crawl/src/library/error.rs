//! Errors that prevent a crawl from starting, or end it.

use std::io;
use std::path::PathBuf;

use crawl_engine::EngineError;
use crawl_fetcher::{BadContact, FetcherSetupError};
use crawl_policy::ProductTokenError;

/// The reason why a crawl could not start, or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CrawlError {
    /// A seed is not a URL that can be crawled.
    #[error("unusable seed `{url}`: {why}\nhint: give a whole URL such as `https://example.org/`")]
    Seed {
        /// The text given as a seed.
        url: String,
        /// What is wrong with the text.
        why: String,
    },
    /// The contact is neither an email address nor a URL.
    #[error("unusable contact {0}\nhint: give one such as `you@example.org`")]
    Contact(#[from] BadContact),
    /// The agent is not a product token.
    #[error("unusable agent: {0}\nhint: give a single word such as `examplebot`")]
    Agent(#[from] ProductTokenError),
    /// The HTTP client can't be set up.
    #[error(transparent)]
    Fetcher(FetcherSetupError),
    /// The call was made outside of a tokio runtime.
    #[error("there is no tokio runtime\nhint: call this inside one, such as #[tokio::main]")]
    NoRuntime,
    /// The folder for a crawl without an output directory can't be created.
    #[error("can't create a folder in `{}`: {source}", dir.display())]
    Folder {
        /// The system's folder for temporary files.
        dir: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The crawl failed. Fetched pages stay in the output directory, and the same crawl resumes
    /// there.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
