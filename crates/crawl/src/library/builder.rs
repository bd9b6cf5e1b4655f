//! The builder of a crawl.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crawl_engine::{Config, ControlChannels, StopUrgency};
use crawl_fetcher::Contact;
use crawl_policy::ProductToken;
use crawl_scope::ScopeMode;
use crawl_weburl::{CanonicalUrl, canonicalize};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};

use super::error::CrawlError;
use super::output_directory::OutputDirectory;
use super::page_stream::PageStream;

/// Maximum committed pages in the channel to [`PageStream`]. If the channel is full, the engine
/// holds further pages. The crawl pauses once the engine's own limit is reached.
const MAX_WAITING_PAGES: usize = 64;

/// A crawl: its seeds and its options. [`Crawl::run`] starts it.
///
/// The defaults are those of the command `crawl`: robots.txt by RFC 9309, at least one second
/// between two requests to a host, the hosts of the seeds as scope, no budget. Two crawls that a
/// user starts with the command never request a host at the same time. Two crawls of the library
/// may, unless both set `Config::host_locks` to the same file. Options without a method are fields
/// of [`Config`], which [`Crawl::configure`] changes.
#[must_use = "a crawl does nothing until `run`"]
pub struct Crawl {
    seeds: Vec<String>,
    agent: String,
    contact: Option<String>,
    output: Option<PathBuf>,
    changes: Vec<Change>,
}

type Change = Box<dyn FnOnce(&mut Config) + Send>;

impl Crawl {
    /// Creates a crawl from one seed, such as `https://example.org/`.
    pub fn new(seed: impl Into<String>) -> Crawl {
        Crawl {
            seeds: vec![seed.into()],
            agent: "crawl".to_owned(),
            contact: None,
            output: None,
            changes: Vec::new(),
        }
    }

    /// Adds a seed.
    pub fn seed(mut self, seed: impl Into<String>) -> Crawl {
        self.seeds.push(seed.into());
        self
    }

    /// Sets the operator's contact: an email address or a URL. Each request carries the contact
    /// in `User-Agent`. Without a contact, only loopback and private addresses are requested.
    pub fn contact(mut self, contact: impl Into<String>) -> Crawl {
        self.contact = Some(contact.into());
        self
    }

    /// Sets the product token, a single word by which robots.txt files address the crawler. The
    /// default is `crawl`.
    pub fn agent(mut self, agent: impl Into<String>) -> Crawl {
        self.agent = agent.into();
        self
    }

    /// Sets the directory for the archive, the rows and the state. An interrupted crawl resumes
    /// from its directory. The stream of the new run has only the pages that this run commits (see
    /// [`PageStream`]). Without this option the directory is temporary: it is removed when the
    /// last [`Page`](crate::Page) is dropped.
    pub fn output(mut self, dir: impl Into<PathBuf>) -> Crawl {
        self.output = Some(dir.into());
        self
    }

    /// Sets the minimum gap between the end of one request to a host and the start of the next.
    /// robots.txt and slow answers make the gap longer. For other people's hosts the gap is at
    /// least 200 ms.
    pub fn delay(self, delay: Duration) -> Crawl {
        self.configure(move |config| config.politeness.delay = delay)
    }

    /// Ends the crawl after this many pages.
    pub fn max_pages(self, pages: u64) -> Crawl {
        self.configure(move |config| config.budgets.max_pages = Some(pages))
    }

    /// Ends the crawl after this time.
    pub fn max_time(self, time: Duration) -> Crawl {
        self.configure(move |config| config.budgets.max_time = Some(time))
    }

    /// Follows at most `depth` links from a seed. With 0, only the seeds are requested.
    pub fn max_depth(self, depth: u32) -> Crawl {
        self.configure(move |config| config.scope.max_depth = Some(depth))
    }

    /// Sets which URLs belong to the crawl, relative to the seeds.
    pub fn scope(self, mode: ScopeMode) -> Crawl {
        self.configure(move |config| config.scope.mode = mode)
    }

    /// Changes the configuration. All changes are applied after the defaults, in the order of the
    /// calls.
    pub fn configure(mut self, change: impl FnOnce(&mut Config) + Send + 'static) -> Crawl {
        self.changes.push(Box::new(change));
        self
    }

    /// Starts the crawl on the current tokio runtime, which needs I/O and timers
    /// (`tokio::runtime::Builder::enable_all`), and returns the crawl's pages. An error, such as an
    /// invalid option, is the last item of the stream.
    #[must_use = "the crawl ends when its pages are dropped"]
    pub fn run(self) -> PageStream {
        self.start().unwrap_or_else(PageStream::failed)
    }

    fn start(self) -> Result<PageStream, CrawlError> {
        let runtime = Handle::try_current().map_err(|_| CrawlError::NoRuntime)?;
        let seeds = self.seeds.iter().map(|seed| read_seed(seed));
        let seeds = seeds.collect::<Result<Vec<_>, _>>()?;
        let contact = self.contact.as_deref().map(str::parse::<Contact>);
        let agent = ProductToken::new(&self.agent)?;
        let contact = contact.transpose()?;
        let output = OutputDirectory::new(self.output)?;
        let version = env!("CARGO_PKG_VERSION");
        let mut config = Config::new(agent, version, contact, seeds, output.path());
        for change in self.changes {
            change(&mut config);
        }
        let output = Arc::new(output.changed_to(&config.output));
        let (pages, rows) = mpsc::channel(MAX_WAITING_PAGES);
        let (stop, stopped) = watch::channel(StopUrgency::No);
        let controls = ControlChannels {
            stop: stopped,
            pages: Some(pages),
            ..ControlChannels::unattended()
        };
        let held = Arc::clone(&output);
        let task = runtime.spawn(async move {
            let ended = crawl_engine::run(config, controls).await;
            // Keep a temporary directory until the engine no longer writes to it, even if the
            // stream and all pages are dropped earlier.
            drop(held);
            ended
        });
        Ok(PageStream::running(rows, stop, task, output))
    }
}

fn read_seed(seed: &str) -> Result<CanonicalUrl, CrawlError> {
    canonicalize(None, seed).map_err(|why| CrawlError::Seed {
        url: seed.to_owned(),
        why: why.to_string(),
    })
}
