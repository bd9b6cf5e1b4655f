//! The settings of a web: how many hosts, which pages, and which misbehaviour.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::TestWeb;
use crate::request_reader::ReceivedRequest;
use crate::scripted_reply::{HttpAnswer, ReplySequence, ScriptedReply};
use crate::web_plan::LinkMix;

/// How a host treats a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConnectionBehaviour {
    /// Accepts the connection and answers its requests.
    #[default]
    Open,
    /// Refuses the connection, because nothing is listening.
    Refused,
    /// Accepts the connection and sends nothing.
    Silent,
    /// Sends a plain-text greeting first, as mail servers do, and reads nothing.
    Greets,
}

/// A function of the test that may replace a host's reply to a request. `None` keeps the computed
/// answer.
pub(crate) type ReplyHandler = Arc<dyn Fn(&ReceivedRequest) -> Option<ScriptedReply> + Send + Sync>;

/// Maximum number of attempts to start a web whose ports are taken.
const MAX_STARTS: u32 = 5;

/// The settings of a web to start. Chain its methods, then call [`TestWebBuilder::start`].
#[derive(Clone)]
pub struct TestWebBuilder {
    pub(crate) seed: u64,
    pub(crate) hosts: u32,
    pub(crate) pages: u64,
    pub(crate) mix: LinkMix,
    pub(crate) sitemap: bool,
    pub(crate) gzip: bool,
    pub(crate) crawl_delay: Option<String>,
    pub(crate) latency: Duration,
    pub(crate) latencies: HashMap<u32, Duration>,
    pub(crate) addresses: Option<u32>,
    pub(crate) domain: Option<String>,
    pub(crate) scripts: HashMap<(u32, String), ReplySequence>,
    pub(crate) handlers: HashMap<u32, ReplyHandler>,
    pub(crate) connection_modes: HashMap<u32, ConnectionBehaviour>,
}

impl Default for TestWebBuilder {
    fn default() -> TestWebBuilder {
        TestWebBuilder {
            seed: 0,
            hosts: 1,
            pages: 20,
            mix: LinkMix::default(),
            sitemap: true,
            gzip: true,
            crawl_delay: None,
            latency: Duration::ZERO,
            latencies: HashMap::new(),
            addresses: None,
            domain: None,
            scripts: HashMap::new(),
            handlers: HashMap::new(),
            connection_modes: HashMap::new(),
        }
    }
}

impl TestWebBuilder {
    /// Sets the seed of every page's content. Default 0.
    #[must_use]
    pub fn seed(self, seed: u64) -> TestWebBuilder {
        TestWebBuilder { seed, ..self }
    }

    /// Sets the number of hosts, at least 1. Default 1.
    #[must_use]
    pub fn hosts(self, hosts: u32) -> TestWebBuilder {
        TestWebBuilder {
            hosts: hosts.max(1),
            ..self
        }
    }

    /// Sets the number of ordinary pages on each host, at least 1. The [`LinkMix`] adds further
    /// URLs. Default 20.
    #[must_use]
    pub fn pages(self, pages: u64) -> TestWebBuilder {
        TestWebBuilder {
            pages: pages.max(1),
            ..self
        }
    }

    /// Sets how many pages link to URLs that are not ordinary pages, such as redirects and
    /// disallowed URLs. With [`LinkMix::plain`], no page does.
    #[must_use]
    pub fn mix(self, mix: LinkMix) -> TestWebBuilder {
        TestWebBuilder { mix, ..self }
    }

    /// Sets whether hosts have a sitemap and name it in robots.txt. Default true.
    #[must_use]
    pub fn sitemap(self, sitemap: bool) -> TestWebBuilder {
        TestWebBuilder { sitemap, ..self }
    }

    /// Sets whether half of the pages are sent with gzip to clients that accept it. Default true.
    #[must_use]
    pub fn gzip(self, gzip: bool) -> TestWebBuilder {
        TestWebBuilder { gzip, ..self }
    }

    /// Adds a Crawl-delay to the robots.txt of every host. The value is written as given, such as
    /// `0.5`.
    #[must_use]
    pub fn crawl_delay(self, seconds: &str) -> TestWebBuilder {
        TestWebBuilder {
            crawl_delay: Some(seconds.to_owned()),
            ..self
        }
    }

    /// Sets how long every host waits before it answers. Default 0.
    #[must_use]
    pub fn latency(self, latency: Duration) -> TestWebBuilder {
        TestWebBuilder { latency, ..self }
    }

    /// Sets how long one host waits before it answers.
    #[must_use]
    pub fn latency_of(mut self, host: u32, latency: Duration) -> TestWebBuilder {
        self.latencies.insert(host, latency);
        self
    }

    /// Spreads the hosts over this many addresses. Each host then has its own port. By default each
    /// host has its own address, and all share one port.
    #[must_use]
    pub fn addresses(self, addresses: u32) -> TestWebBuilder {
        TestWebBuilder {
            addresses: Some(addresses.max(1)),
            ..self
        }
    }

    /// Names the hosts `h0.DOMAIN`, `h1.DOMAIN` in URLs, instead of using addresses. Clients need
    /// [`TestWeb::resolve`].
    #[must_use]
    pub fn domain(self, domain: &str) -> TestWebBuilder {
        TestWebBuilder {
            domain: Some(domain.to_owned()),
            ..self
        }
    }

    /// Sets the replies of a host to requests for one path (with its query, exactly as sent).
    #[must_use]
    pub fn script(
        mut self,
        host: u32,
        path: &str,
        script: impl Into<ReplySequence>,
    ) -> TestWebBuilder {
        self.scripts.insert((host, path.to_owned()), script.into());
        self
    }

    /// Sets the robots.txt of a host. For a status other than 200 use [`TestWebBuilder::script`].
    #[must_use]
    pub fn robots(self, host: u32, text: &str) -> TestWebBuilder {
        self.script(host, "/robots.txt", HttpAnswer::text(text))
    }

    /// Sets a function that computes a host's replies. If it returns `None`, the host gives the
    /// answer that is computed from the seed. Scripts take precedence.
    #[must_use]
    pub fn handler(
        mut self,
        host: u32,
        handler: impl Fn(&ReceivedRequest) -> Option<ScriptedReply> + Send + Sync + 'static,
    ) -> TestWebBuilder {
        self.handlers.insert(host, Arc::new(handler));
        self
    }

    /// Sets how a host treats connections. Default [`ConnectionBehaviour::Open`].
    #[must_use]
    pub fn connection_mode(mut self, host: u32, mode: ConnectionBehaviour) -> TestWebBuilder {
        self.connection_modes.insert(host, mode);
        self
    }

    /// Starts the web, which is listening when this function returns.
    ///
    /// # Errors
    /// If an address or port can't be bound, or there are too few file handles.
    pub fn try_start(self) -> io::Result<TestWeb> {
        // While the listener of a host that refuses connections is replaced by a socket that
        // doesn't listen, its port is free for a moment. Another process may take the port then.
        for _ in 1..MAX_STARTS {
            match TestWeb::try_start(self.clone()) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                started => return started,
            }
        }
        TestWeb::try_start(self)
    }

    /// Starts the web, which is listening when this function returns. May be called in an async
    /// context.
    ///
    /// # Panics
    /// If [`TestWebBuilder::try_start`] fails.
    pub fn start(self) -> TestWeb {
        self.try_start()
            .unwrap_or_else(|error| panic!("the web did not start: {error}"))
    }
}

impl fmt::Debug for TestWebBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestWebBuilder")
            .field("seed", &self.seed)
            .field("hosts", &self.hosts)
            .field("pages", &self.pages)
            .finish_non_exhaustive()
    }
}
