//! One permit, one GET.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use crawl_scheduler::{Permit, Spent, Tick};
use crawl_weburl::CanonicalUrl;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::header::{HeaderName, TRANSFER_ENCODING};
use http::{Method, Version};
use reqwest::{Client, Response};
use tokio::time::{Instant, timeout_at};

use crate::address::{AddressRules, literal, plain};
use crate::classify::{self, Finding};
use crate::client::{client, proxy_host, standing_headers};
use crate::clock::Clock;
use crate::config::{FetchConfig, SetupError};
use crate::exchange::{Exchange, Request, Truncation};
use crate::failure::{Failure, FailureKind, Phase};
use crate::resolver::{Fixed, Names};

/// Memory that an announced length may claim before the octets come.
const MAX_RESERVED: u64 = 1 << 20;

/// Makes exchanges. Cheap to share by reference; holds the connections that are kept.
pub struct Fetcher {
    config: FetchConfig,
    clock: Clock,
    rules: Arc<AddressRules>,
    names: Names,
    headers: HeaderMap,
    client: Client,
    /// By host and port: a client whose resolver has the override's answer.
    overridden: HashMap<(String, u16), Client>,
}

impl Fetcher {
    /// Sets the clients up.
    ///
    /// # Errors
    /// [`SetupError`] names the part of the configuration that can't be used.
    pub fn new(config: FetchConfig, clock: Clock) -> Result<Fetcher, SetupError> {
        let rules = Arc::new(AddressRules::new(
            config.allow_private,
            config.allow_public,
            &config.own_hosts,
            proxy_host(&config).as_deref(),
        ));
        let names = Names::new(Arc::clone(&rules), clock);
        let mut overridden = HashMap::new();
        for known in &config.resolve {
            let fixed = Fixed {
                host: known.host.clone(),
                sockets: known.sockets(),
                others: names.clone(),
            };
            let key = (known.host.clone(), known.port);
            overridden.insert(key, client(&config, fixed)?);
        }
        Ok(Fetcher {
            headers: standing_headers(&config)?,
            client: client(&config, names.clone())?,
            overridden,
            names,
            rules,
            clock,
            config,
        })
    }

    /// The clock that exchanges are timed by.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Why this URL is never asked for, where that can be told without looking its name up:
    /// it names an address of this machine or of a private network.
    #[must_use]
    pub fn refusal(&self, url: &CanonicalUrl) -> Option<String> {
        if self.is_overridden(url) {
            return None;
        }
        self.rules.judge_url(url).err().map(|why| why.to_string())
    }

    /// Asks once. The permit is spent whatever comes of it; no error of the server, the
    /// network or the URL is anything but a [`Failure`].
    pub async fn fetch(
        &self,
        permit: Permit,
        request: Request,
    ) -> (Spent, Result<Exchange, Failure>) {
        let fits = *permit.host() == request.url.host_key();
        let started = self.clock.now();
        let spent = permit.spend();
        let result = if fits {
            self.exchange(&request, started).await
        } else {
            let detail = format!("the permit is for {}, not {}", spent.host(), request.url);
            let kind = FailureKind::WrongPermit;
            Err(self.failed(started, None, own_finding(kind, Phase::Request, detail)))
        };
        note(&request.url, &result);
        (spent, result)
    }

    async fn exchange(&self, request: &Request, started: Tick) -> Result<Exchange, Failure> {
        let url = &request.url;
        let fail = |address, finding| self.failed(started, address, finding);
        if let Some(why) = self.refusal(url) {
            return Err(fail(None, refusal(why)));
        }
        let headers = self.request_headers(request);
        let mut asked = reqwest::Request::new(Method::GET, url.as_url().clone());
        *asked.headers_mut() = headers.clone();
        let deadline = Instant::now() + self.config.timeout;
        let response = match timeout_at(deadline, self.client(url).execute(asked)).await {
            Err(_) => return Err(fail(None, self.too_late(Phase::FirstByte))),
            Ok(Err(error)) => return Err(fail(None, self.no_head(url, &error))),
            Ok(Ok(response)) => response,
        };
        let first_byte = self.clock.now().since(started);
        let address = self
            .peer(url, &response)
            .map_err(|why| fail(None, refusal(why)))?;
        let status = response.status().as_u16();
        let version = response.version();
        let answer_headers = response.headers().clone();
        let limit = request.max_body.unwrap_or(self.config.max_body);
        let (body, truncated) = match timeout_at(deadline, collect(response, limit)).await {
            Err(_) => return Err(fail(address, self.too_late(Phase::Body))),
            Ok(Err(error)) => return Err(fail(address, classify::in_body(&error))),
            Ok(Ok(collected)) => collected,
        };
        Ok(Exchange {
            url: url.clone(),
            request_headers: as_sent(url, &headers),
            started,
            ended: self.clock.now(),
            first_byte,
            address,
            status,
            version,
            headers: answer_headers,
            body,
            truncated,
        })
    }

    fn client(&self, url: &CanonicalUrl) -> &Client {
        if self.overridden.is_empty() {
            return &self.client;
        }
        let key = (plain(url.host()).to_owned(), url.port());
        self.overridden.get(&key).unwrap_or(&self.client)
    }

    fn is_overridden(&self, url: &CanonicalUrl) -> bool {
        // Nothing is looked up for a literal address, so an override is never asked.
        literal(url).is_none() && !std::ptr::eq(self.client(url), &raw const self.client)
    }

    fn request_headers(&self, request: &Request) -> HeaderMap {
        let mut headers = self.headers.clone();
        let validators = &request.validators;
        let pairs: [(HeaderName, &Option<String>); 2] = [
            (IF_NONE_MATCH, &validators.etag),
            (IF_MODIFIED_SINCE, &validators.last_modified),
        ];
        for (name, text) in pairs {
            // A validator came out of a header field, so it fits into one again; one that
            // was kept broken is left out and costs a whole answer.
            let value = text.as_deref().map(HeaderValue::from_str);
            if let Some(Ok(value)) = value {
                headers.insert(name, value);
            }
        }
        headers
    }

    /// The server's address, judged once more: what was connected to is what counts.
    fn peer(&self, url: &CanonicalUrl, response: &Response) -> Result<Option<SocketAddr>, String> {
        if self.config.proxy.is_some() {
            return Ok(None);
        }
        let address = response.remote_addr();
        if let (Some(address), false) = (address, self.is_overridden(url)) {
            let judged = self.rules.judge_peer(url, address.ip());
            judged.map_err(|why| why.to_string())?;
        }
        Ok(address)
    }

    fn no_head(&self, url: &CanonicalUrl, error: &reqwest::Error) -> Finding {
        let finding = classify::before_head(error, self.config.proxy.is_some());
        if finding.kind.is_no_connection() {
            self.names.forget(url.host());
        }
        finding
    }

    fn too_late(&self, phase: Phase) -> Finding {
        let seconds = self.config.timeout.as_secs_f64();
        let detail = format!("not done within {seconds} s");
        own_finding(FailureKind::Timeout, phase, detail)
    }

    fn failed(&self, started: Tick, address: Option<SocketAddr>, finding: Finding) -> Failure {
        Failure {
            kind: finding.kind,
            phase: finding.phase,
            fault: finding.kind.fault(),
            retry: finding.kind.retry() && !finding.lasting,
            started,
            ended: self.clock.now(),
            address,
            detail: finding.detail,
        }
    }
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetcher")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// Reads the body up to `limit` octets. A body that comes in one piece is not copied.
async fn collect(
    mut response: Response,
    limit: u64,
) -> Result<(Bytes, Option<Truncation>), reqwest::Error> {
    let until_close = ends_with_connection(&response);
    let announced = response.content_length().unwrap_or(0);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    loop {
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) if chunk.is_empty() => continue,
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            // With no length announced the close is the end, and many servers close a TLS
            // connection without the word for it.
            Err(error) if until_close && classify::is_silent_close(&error) => break,
            Err(error) => return Err(error),
        };
        let held = first.len() + rest.len();
        let room = limit - held;
        let kept = chunk.slice(..chunk.len().min(room));
        if held == 0 {
            first = kept;
        } else {
            if rest.is_empty() {
                let wanted = announced.min(MAX_RESERVED).min(limit as u64);
                rest.reserve(usize::try_from(wanted).unwrap_or(0).max(2 * first.len()));
                rest.extend_from_slice(&first);
                first = Bytes::new();
            }
            rest.extend_from_slice(&kept);
        }
        if chunk.len() > room {
            return Ok((whole(first, rest), Some(Truncation::Length)));
        }
    }
    Ok((whole(first, rest), None))
}

fn whole(first: Bytes, rest: BytesMut) -> Bytes {
    if rest.is_empty() {
        first
    } else {
        rest.freeze()
    }
}

/// RFC 9112 section 6.3, the last rule.
fn ends_with_connection(response: &Response) -> bool {
    let headers = response.headers();
    response.version() <= Version::HTTP_11
        && !headers.contains_key(CONTENT_LENGTH)
        && !headers.contains_key(TRANSFER_ENCODING)
}

/// The fields as HTTP/1.1 writes them on the wire.
fn as_sent(url: &CanonicalUrl, headers: &HeaderMap) -> Vec<(String, String)> {
    let authority = url.as_url().authority();
    let mut sent = vec![("Host".to_owned(), authority.to_owned())];
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        sent.push((title_case(name.as_str()), value));
    }
    sent
}

fn title_case(name: &str) -> String {
    let mut up = true;
    let mut cased = |c: char| {
        let out = if up { c.to_ascii_uppercase() } else { c };
        up = c == '-';
        out
    };
    name.chars().map(&mut cased).collect()
}

fn refusal(why: String) -> Finding {
    own_finding(FailureKind::AddressRefused, Phase::Address, why)
}

fn own_finding(kind: FailureKind, phase: Phase, detail: String) -> Finding {
    Finding {
        kind,
        phase,
        lasting: false,
        detail,
    }
}

fn note(url: &CanonicalUrl, result: &Result<Exchange, Failure>) {
    match result {
        Ok(exchange) => tracing::debug!(
            %url,
            status = exchange.status,
            octets = exchange.body.len(),
            ms = exchange.took().as_millis(),
            "answered"
        ),
        Err(failure) => tracing::debug!(%url, %failure, "failed"),
    }
}
