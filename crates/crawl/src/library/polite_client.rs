//! A client that checks robots.txt first and keeps a gap between the requests to a host.

mod pacer;

use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use crawl_coding::{DecodeLimits, DecodedBody, decode};
use crawl_engine::MIN_OTHERS_DELAY;
use crawl_fetcher::{
    BodyMemoryReservation, Contact, Exchange, ExchangeFailure, FetchConfig, Fetcher, MonotonicClock,
};
use crawl_policy::ProductToken;
use crawl_scheduler::{Politeness, Scheduler};
use crawl_weburl::canonicalize;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::error::CrawlError;
use pacer::{Pacer, WaitingRequest};

/// A client for programs that choose their URLs themselves: each request waits until politeness
/// allows it.
///
/// [`PoliteClient::get`] first requests the robots.txt of the URL's origin, and refuses URLs that
/// this file disallows (RFC 9309).
///
/// Between the end of one request to a host and the start of the next, the client waits for the
/// longest of these: the builder's delay (a second by default), twice the host's smoothed response
/// time, and the pace set in robots.txt, such as `Crawl-delay`. It slows down further after failed
/// requests and after responses with status 429 or 503. At most 8 requests to one address are in
/// flight, and at most 16 per second are sent to it (to loopback, any number).
///
/// Clones share one queue and one pace. Any number of calls may wait at once: calls for the same
/// host are served in turn. Two separate clients, or a client and a crawl, don't coordinate their
/// requests.
///
/// A call may wait for hours if robots.txt or `Retry-After` demands it: limit the wait with
/// `tokio::time::timeout`.
///
/// The client follows no redirect, since the target may have another robots.txt: pass
/// [`PoliteResponse::redirect`] to another call. The client remembers each host until the last
/// clone of the client is dropped.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use crawl::PoliteClient;
///
/// let client = PoliteClient::builder().agent("examplebot").contact("me@example.org").build()?;
/// let response = client.get("https://example.org/").await?;
/// println!("{} {}", response.status(), response.body().len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PoliteClient {
    pacer: mpsc::UnboundedSender<WaitingRequest>,
}

/// The options of a [`PoliteClient`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct PoliteClientBuilder {
    agent: String,
    contact: Option<String>,
    allow_private: bool,
    delay: Duration,
}

/// A server's answer to a request.
#[derive(Clone, Debug)]
pub struct PoliteResponse {
    exchange: Exchange,
    /// The body without its content coding, once it was read.
    decoded: OnceLock<DecodedBody>,
}

/// The reason why a request was not sent, or not answered.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoliteError {
    /// The given text is not a URL that can be requested.
    #[error("unusable URL `{url}`: {why}")]
    Url {
        /// The text given as a URL.
        url: String,
        /// What is wrong with the text.
        why: String,
    },
    /// robots.txt disallows the URL.
    #[error("robots.txt disallows {url}: {rule} (line {line})")]
    Disallowed {
        /// The URL, in canonical form.
        url: String,
        /// The rule as written, such as `Disallow: /private`.
        rule: String,
        /// The line of the rule in robots.txt, from 1.
        line: u32,
    },
    /// robots.txt can't be read, so nothing of its origin may be requested (RFC 9309
    /// section 2.3.1.4).
    #[error("robots.txt of {origin} can't be read: {why}\nhint: try again in {} s", retry_after.as_secs())]
    RulesUnknown {
        /// Scheme, host and port.
        origin: String,
        /// Why robots.txt can't be read.
        why: String,
        /// The time until robots.txt is requested again.
        retry_after: Duration,
    },
    /// The request failed.
    #[error("{url}: {failure}")]
    Failed {
        /// The URL, in canonical form.
        url: String,
        /// The phase, the party at fault, and whether another try may help.
        failure: ExchangeFailure,
    },
    /// The task behind the client has ended: its runtime is shutting down, or a request panicked.
    #[error("the task behind this client has ended")]
    ShutDown,
}

impl PoliteClient {
    /// Returns a builder with the defaults of the command `crawl`.
    pub fn builder() -> PoliteClientBuilder {
        PoliteClientBuilder {
            agent: "crawl".to_owned(),
            contact: None,
            allow_private: false,
            delay: Politeness::default().delay,
        }
    }

    /// Requests `url` as soon as politeness allows, and returns the answer, whatever its status.
    ///
    /// Dropping the future before the request is sent cancels the request; robots.txt may be
    /// requested nevertheless.
    ///
    /// # Errors
    /// [`PoliteError`].
    pub async fn get(&self, url: &str) -> Result<PoliteResponse, PoliteError> {
        let url = canonicalize(None, url).map_err(|why| PoliteError::Url {
            url: url.to_owned(),
            why: why.to_string(),
        })?;
        let (reply, answer) = oneshot::channel();
        let sent = self.pacer.send(WaitingRequest { url, reply });
        sent.map_err(|_| PoliteError::ShutDown)?;
        let exchange = answer.await.map_err(|_| PoliteError::ShutDown)??;
        // The caller may keep the response for any time, so stop counting its body as memory of the
        // client.
        Ok(PoliteResponse {
            exchange: Exchange {
                room: BodyMemoryReservation::default(),
                ..*exchange
            },
            decoded: OnceLock::new(),
        })
    }
}

impl PoliteClientBuilder {
    /// Sets the product token, a single word by which robots.txt files address the client. The
    /// default is `crawl`.
    pub fn agent(mut self, agent: impl Into<String>) -> PoliteClientBuilder {
        self.agent = agent.into();
        self
    }

    /// Sets the operator's contact: an email address or a URL. Each request carries the contact
    /// in `User-Agent`. Without a contact, requests to public servers are refused.
    pub fn contact(mut self, contact: impl Into<String>) -> PoliteClientBuilder {
        self.contact = Some(contact.into());
        self
    }

    /// Sets the minimum gap between the end of one request to a host and the start of the next. If
    /// a contact is set, the gap is at least 200 ms, because requests may go to public servers.
    pub fn delay(mut self, delay: Duration) -> PoliteClientBuilder {
        self.delay = delay;
        self
    }

    /// Allows requests to loopback and private addresses. Off by default, so that a public name
    /// can't direct requests into a private network.
    pub fn allow_private(mut self, allow_private: bool) -> PoliteClientBuilder {
        self.allow_private = allow_private;
        self
    }

    /// Builds the client, whose task runs on the current tokio runtime. The runtime needs I/O and
    /// timers (`tokio::runtime::Builder::enable_all`).
    ///
    /// # Errors
    /// [`CrawlError`] if the contact or the agent is unusable, or if there is no runtime.
    pub fn build(self) -> Result<PoliteClient, CrawlError> {
        let runtime = Handle::try_current().map_err(|_| CrawlError::NoRuntime)?;
        let agent = ProductToken::new(&self.agent)?;
        let contact = self.contact.as_deref().map(str::parse::<Contact>);
        let contact = contact.transpose()?;
        let version = env!("CARGO_PKG_VERSION");
        let user_agent = crawl_fetcher::user_agent(agent.as_str(), version, contact.as_ref());
        let config = FetchConfig {
            from: contact.as_ref().and_then(Contact::mail).map(str::to_owned),
            allow_public: contact.is_some(),
            allow_private: self.allow_private,
            ..FetchConfig::new(user_agent)
        };
        let fetcher = Fetcher::new(config, MonotonicClock::start()).map_err(CrawlError::Fetcher)?;
        let (sender, calls) = mpsc::unbounded_channel();
        let politeness = Politeness {
            delay: match contact {
                Some(_) => self.delay.max(MIN_OTHERS_DELAY),
                None => self.delay,
            },
            ..Politeness::default()
        };
        let pacer = Pacer::new(fetcher, Scheduler::new(politeness, 0), agent);
        runtime.spawn(pacer.run(calls));
        Ok(PoliteClient { pacer: sender })
    }
}

impl PoliteResponse {
    /// Returns the requested URL in canonical form.
    #[must_use]
    pub fn url(&self) -> &str {
        self.exchange.url.as_str()
    }

    /// Returns the status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.exchange.status
    }

    /// Returns the header fields of the response.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap<HeaderValue> {
        &self.exchange.headers
    }

    /// Returns the body without its content coding. A body of more than 10 MiB as sent, or of more
    /// than 32 MiB decoded, is truncated. If the body is incomplete, or its coding is broken or
    /// unknown, [`PoliteResponse::error`] returns the reason. The first call decodes the body,
    /// which blocks the thread for a moment.
    #[must_use]
    pub fn body(&self) -> Bytes {
        self.decoded().bytes.clone()
    }

    /// Returns why the body is incomplete or could not be decoded, by the same names as
    /// [`Page::error`](crate::Page::error): `body_truncated`, `decoded_too_large` and
    /// `decompression_bomb` for a limit, `encoding_cut_short`, `encoding_broken` with the defect,
    /// or `encoding_unknown` with the coding. `None` if the body is complete. If the connection
    /// breaks off within the body, [`PoliteClient::get`] fails instead. Decodes the body like
    /// [`PoliteResponse::body`].
    #[must_use]
    pub fn error(&self) -> Option<String> {
        match self.exchange.truncated {
            Some(reason) => Some(reason.name().to_owned()),
            None => self.decoded().end.error(),
        }
    }

    fn decoded(&self) -> &DecodedBody {
        self.decoded.get_or_init(|| {
            let codings = self.exchange.headers.get_all(CONTENT_ENCODING);
            decode(codings, &self.exchange.body, &DecodeLimits::default())
        })
    }

    /// Returns the target of a redirect, for another call of [`PoliteClient::get`]. `None` if the
    /// response is not a redirect, or its target is not a URL.
    #[must_use]
    pub fn redirect(&self) -> Option<String> {
        let target = self.exchange.redirect_target()?.ok()?;
        Some(target.to_string())
    }
}
