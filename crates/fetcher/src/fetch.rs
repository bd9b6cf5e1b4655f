//! The fetcher, which sends one request for each permit.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use crawl_identity::{AcceptSignature, SignableMessage};
use crawl_scheduler::{Permit, SpentPermit, Tick};
use crawl_weburl::{CanonicalUrl, host_address, without_trailing_dot};
use http::header::{
    CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    REFERER,
};
use http::{Method, StatusCode};
use reqwest::dns::Resolve;
use reqwest::tls::TlsInfo;
use reqwest::{Client, Response};
use rustls::ClientConfig;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::address_checker::AddressChecker;
use crate::body_framing::BodyFraming;
use crate::body_memory_pool::{BodyMemoryPool, BodyMemoryReservation};
use crate::body_reader::{BodyEnd, BodyLimits, ReceivedBody, collect, not_within};
use crate::clock::MonotonicClock;
use crate::config::{FetchConfig, FetcherSetupError, ResolveOverride};
use crate::exchange::{Exchange, FetchRequest, SentRequestRecord, TlsVersion, TruncationReason};
use crate::exchange_limiter::ExchangeLimiter;
use crate::failure::ExchangeFailure;
use crate::failure_classification::{self, ClassifiedError, PROXY_WANTS_PASSWORD, is_unanswered};
use crate::failure_kind::{FailureKind, FailurePhase};
use crate::host_request_headers::RequestHeadersByHost;
use crate::host_set::HostSet;
use crate::http_client_setup::{
    MAX_HEADER_BYTES, MAX_HEADER_FIELDS, client, connecting_client, proxy_host, standing_headers,
};
use crate::http2::{is_unprocessed, requires_http1};
use crate::kept_connection_limiter::{KeptConnectionLimiter, KeptConnectionSlot};
use crate::name_lookup::{NameServerResolver, unusable};
use crate::referer::referer;
use crate::request_timeout::{TimeoutPhase, in_time, is_on_kept_connection};
use crate::resolver::{CheckedResolver, OverrideResolver};
use crate::signature_demands::{HostSignatureDemands, SignatureDemandStatus, demanded};
use crate::tls_settings::tls_settings;
use crate::worker_lease_deadline::{SendDeadlineSource, until_over};

/// Sends requests and returns their answers as [`Exchange`]s. A fetcher owns its keep-alive
/// connections, so create only one and share it by reference.
pub struct Fetcher {
    config: FetchConfig,
    clock: MonotonicClock,
    rules: Arc<AddressChecker>,
    names: CheckedResolver,
    rooms: BodyMemoryPool,
    accesses: RequestHeadersByHost,
    exchange_limiter: ExchangeLimiter,
    is_given_up: watch::Sender<bool>,
    deadline_source: Option<Arc<dyn SendDeadlineSource>>,
    challenges: HostSignatureDemands,
    /// The hosts that refused a request over HTTP/2.
    http1_only: HostSet,
    /// The hosts that closed a kept connection instead of answering.
    closing_hosts: HostSet,
    headers: HeaderMap,
    kept: KeptConnectionLimiter,
    /// The trusted certificates, and sessions that all clients can resume.
    tls: ClientConfig,
    client: HttpClients,
    /// The clients for hosts and ports that the operator typed, if any. Such a host may have a
    /// private address, but only on the typed port. These clients have a resolver of their own,
    /// because a resolver doesn't know the port.
    typed: Option<HttpClients>,
    /// For each overridden host and port, clients that resolve to the override's addresses.
    overridden: HashMap<(String, u16), HttpClients>,
}

/// Clients that resolve names the same way.
struct HttpClients {
    keeping: Client,
    /// Created on first use.
    closing: OnceLock<Client>,
    /// Created on first use.
    http1: OnceLock<Client>,
}

#[derive(Clone, Copy)]
enum ClientKind {
    /// Keeps connections alive between requests.
    Keeping,
    /// Closes its connection after each request.
    Closing,
    /// Offers only HTTP/1.1, and closes its connection after each request.
    Http1,
}

impl HttpClients {
    fn new(
        config: &FetchConfig,
        tls: &ClientConfig,
        names: impl Resolve + 'static,
    ) -> Result<HttpClients, FetcherSetupError> {
        Ok(HttpClients {
            keeping: client(config, tls, names)?,
            closing: OnceLock::new(),
            http1: OnceLock::new(),
        })
    }

    fn get<R: Resolve + 'static>(
        &self,
        kind: ClientKind,
        config: &FetchConfig,
        tls: &ClientConfig,
        names: impl FnOnce() -> R,
    ) -> &Client {
        let client_on_use = match kind {
            ClientKind::Keeping => return &self.keeping,
            ClientKind::Closing => &self.closing,
            ClientKind::Http1 => &self.http1,
        };
        client_on_use.get_or_init(|| {
            let config = FetchConfig {
                keep_alive: Duration::ZERO,
                ..config.clone()
            };
            let mut tls = tls.clone();
            if let ClientKind::Http1 = kind {
                tls.alpn_protocols = vec![b"http/1.1".to_vec()];
            }
            // Creating the client can't fail here: a client with the same settings was created
            // before.
            client(&config, &tls, names()).unwrap_or_else(|_| self.keeping.clone())
        })
    }
}

impl Fetcher {
    /// Creates a fetcher.
    ///
    /// # Errors
    /// Fails with a [`FetcherSetupError`] that names the unusable part of the configuration.
    pub fn new(config: FetchConfig, clock: MonotonicClock) -> Result<Fetcher, FetcherSetupError> {
        let rules = AddressChecker::new(
            config.allow_private,
            config.allow_public,
            &config.typed,
            proxy_host(&config).as_deref(),
        );
        rules.note_public(&config.public_names);
        let rules = Arc::new(rules);
        let names = CheckedResolver::new(
            Arc::clone(&rules),
            NameServerResolver::new(
                &config.name_servers,
                config.name_server_rate,
                config.connect_timeout,
            ),
        );
        let tls = tls_settings(config.extra_roots.as_deref())?;
        let mut overridden = HashMap::new();
        for known in &config.resolve {
            let fixed = fixed(known, &names);
            let key = (known.host.clone(), known.port);
            overridden.insert(key, HttpClients::new(&config, &tls, fixed)?);
        }
        Ok(Fetcher {
            headers: standing_headers(&config)?,
            kept: KeptConnectionLimiter::new(config.max_kept_connections, config.keep_alive),
            client: HttpClients::new(&config, &tls, names.clone())?,
            typed: match config.typed.is_empty() {
                true => None,
                false => Some(HttpClients::new(&config, &tls, names.for_typed())?),
            },
            overridden,
            tls,
            rooms: BodyMemoryPool::new(config.body_memory),
            accesses: RequestHeadersByHost::new(&config.access, config.proxy.is_some()),
            exchange_limiter: ExchangeLimiter::new(),
            is_given_up: watch::Sender::new(false),
            deadline_source: None,
            challenges: HostSignatureDemands::default(),
            http1_only: HostSet::default(),
            closing_hosts: HostSet::default(),
            names,
            rules,
            clock,
            config,
        })
    }

    /// Makes the fetcher end all requests and send no more after the deadline.
    #[must_use]
    pub fn with_send_deadline(self, deadline_source: Arc<dyn SendDeadlineSource>) -> Fetcher {
        Fetcher {
            deadline_source: Some(deadline_source),
            ..self
        }
    }

    /// Returns how many name look-ups used only one address family, the one that answered first.
    /// Such a look-up doesn't wait for the slower family, because too many other look-ups wait for
    /// theirs.
    #[must_use]
    pub fn one_family_lookups(&self) -> u64 {
        self.names.one_family_lookups()
    }

    /// Returns the clock that times exchanges.
    #[must_use]
    pub fn clock(&self) -> MonotonicClock {
        self.clock
    }

    /// Records the address that a host had in an earlier run. If the operator typed the host and
    /// the address was public, loopback and private addresses are now refused.
    pub fn note_past_address(&self, host: &str, address: IpAddr) {
        self.rules.note_address(host, address);
    }

    /// Returns the hosts that the operator typed and that had a public address, in this run or an
    /// earlier one.
    #[must_use]
    pub fn public_names(&self) -> Vec<String> {
        self.rules.public_names_seen()
    }

    /// Returns why this URL is never fetched, if that is known without a look-up: its host is an
    /// address that is not allowed, a name under `localhost` if that is not allowed, or a name that
    /// is too long or has a label that is. `None` otherwise, and for host names whose address is
    /// overridden.
    #[must_use]
    pub fn refusal(&self, url: &CanonicalUrl) -> Option<String> {
        self.barred(url).map(|finding| finding.detail)
    }

    /// Returns the address that a request for this URL would use first: the one in the URL, from an
    /// override, or from name servers. `None` if a proxy makes the connection, if the URL is
    /// barred, if the look-up fails or gives no permitted address, or if this fetcher has given up.
    /// Answers of name servers are cached, so the request itself needs no second look-up.
    pub async fn address(&self, url: &CanonicalUrl) -> Option<IpAddr> {
        if self.config.proxy.is_some() || self.barred(url).is_some() {
            return None;
        }
        if let Some(address) = host_address(url.host()) {
            return Some(address);
        }
        if let Some(known) = self.resolve_override(url) {
            return known.addresses.first().copied();
        }
        let look_up = async {
            let _slot = self.exchange_limiter.begin().await;
            match self.rules.is_typed(url) {
                true => self.names.for_typed().first(url.host()).await,
                false => self.names.first(url.host()).await,
            }
        };
        tokio::select! {
            () = self.given_up() => None,
            address = look_up => address,
        }
    }

    /// Ends all current and future exchanges with [`FailureKind::GivenUp`].
    pub fn give_up(&self) {
        self.is_given_up.send_replace(true);
    }

    async fn given_up(&self) {
        let mut is_given_up = self.is_given_up.subscribe();
        // An error means that the channel closed, which happens only when this fetcher is dropped.
        let _ = is_given_up.wait_for(|is_given_up| *is_given_up).await;
    }

    /// Sends one request. The permit is spent whatever the outcome. Every error of the server, the
    /// network or the URL is returned as an [`ExchangeFailure`].
    pub async fn fetch(
        &self,
        permit: Permit,
        request: FetchRequest,
    ) -> (SpentPermit, Result<Exchange, ExchangeFailure>) {
        let fits = *permit.host() == request.url.host_key();
        let started = self.clock.now();
        let signing = self.config.signing.as_ref();
        let signed = self.challenges.is_signed(signing, &request.url);
        let spent = permit.spend();
        let result = if fits {
            tokio::select! {
                // Poll the reasons to stop first: if a server floods us, the exchange is always
                // ready.
                biased;
                () = self.given_up() => {
                    let (kind, phase) = (FailureKind::GivenUp, FailurePhase::Request);
                    let why = "the time limit of the run was reached".to_owned();
                    Err(self.failed(started, None, ClassifiedError::new(kind, phase, why)))
                }
                ended = until_over(self.deadline_source.as_deref()) => {
                    let (kind, phase) = (FailureKind::GivenUp, FailurePhase::Request);
                    let why = "another worker now owns this host".to_owned();
                    let failure = self.failed(started, None, ClassifiedError::new(kind, phase, why));
                    // A frozen process gets here late. So record the deadline as the end of
                    // the request, not the current time.
                    let late = u64::try_from(ended.elapsed().as_micros()).unwrap_or(u64::MAX);
                    let ended = failure.ended.as_micros().saturating_sub(late);
                    Err(ExchangeFailure {
                        ended: Tick::from_micros(ended).max(started),
                        ..failure
                    })
                }
                result = self.exchange_in_turn(&request, signed) => result,
            }
        } else {
            let detail = format!("the permit is for {}, not {}", spent.host(), request.url);
            let kind = FailureKind::WrongPermit;
            Err(self.failed(
                started,
                None,
                ClassifiedError::new(kind, FailurePhase::Request, detail),
            ))
        };
        (
            spent,
            result.map_err(|failure| ExchangeFailure { signed, ..failure }),
        )
    }

    /// Tests whether a connection to the URL's host can be made, with TLS for https, and closes the
    /// connection. Sends no request, so it needs no permit.
    ///
    /// # Errors
    /// Returns the failure that a request would have had.
    pub async fn connect(&self, url: &CanonicalUrl) -> Result<(), ExchangeFailure> {
        let started = self.clock.now();
        let result = match self.barred(url) {
            Some(finding) => Err(finding),
            None => self.try_connection(url).await,
        };
        result.map_err(|finding| self.failed(started, None, finding))
    }

    async fn try_connection(&self, url: &CanonicalUrl) -> Result<(), ClassifiedError> {
        let client = match self.resolve_override(url) {
            Some(known) => connecting_client(&self.config, &self.tls, fixed(known, &self.names)),
            None if self.rules.is_typed(url) => {
                connecting_client(&self.config, &self.tls, self.names.for_typed())
            }
            None => connecting_client(&self.config, &self.tls, self.names.clone()),
        };
        let client = client.map_err(|why| {
            ClassifiedError::new(
                FailureKind::ConnectFailed,
                FailurePhase::Request,
                why.to_string(),
            )
        })?;
        let request = reqwest::Request::new(Method::GET, url.as_url().clone());
        match client.execute(request).await {
            Err(error) if !failure_classification::is_established(&error) => Err(
                failure_classification::before_head(&error, self.config.proxy.is_some()),
            ),
            _ => Ok(()),
        }
    }

    /// Makes an exchange once the descriptor limit allows one. If no descriptor is free, nothing is
    /// sent, so the request is retried until the time for a whole exchange is over.
    async fn exchange_in_turn(
        &self,
        request: &FetchRequest,
        signed: bool,
    ) -> Result<Exchange, ExchangeFailure> {
        let deadline = Instant::now() + self.config.timeout;
        loop {
            let slot = self.exchange_limiter.begin().await;
            let result = self.exchange(request, signed, self.clock.now()).await;
            let is_out = matches!(&result, Err(why) if why.kind == FailureKind::NoDescriptors);
            if !is_out || Instant::now() >= deadline {
                return result;
            }
            self.exchange_limiter.have_fewer(slot).await;
        }
    }

    async fn exchange(
        &self,
        request: &FetchRequest,
        signed: bool,
        started: Tick,
    ) -> Result<Exchange, ExchangeFailure> {
        let url = &request.url;
        if let Some(finding) = self.barred(url) {
            return Err(self.failed(started, None, finding));
        }
        let own = match request.is_anonymous {
            true => HeaderMap::new(),
            false => self.own_fields(url, started),
        };
        let mut sent = SentRequestRecord {
            is_head: request.is_head,
            posted: request.post.as_ref().map(|post| post.bytes.clone()),
            fields: self.request_headers(request),
            own: own.keys().cloned().collect(),
        };
        if signed {
            self.sign(request, &mut sent);
        }
        let deadline = Instant::now() + self.config.timeout;
        // A POST may not be sent again if the kept connection turns out to be closed.
        let may_keep = method(request).is_idempotent()
            && !request.needs_new_connection
            && !self.closing_hosts.contains(url);
        let kept_connection = may_keep
            .then(|| self.kept.begin(url.host_key(), Instant::now()))
            .flatten();
        let http_request = http_request(request, with_own(&sent.fields, &own));
        let head = self.answer_head(url, http_request, kept_connection.as_ref());
        let head = match in_time(head, self.config.first_byte_timeout, deadline).await {
            Err(late) => Err(self.too_late(late)),
            Ok(Err(error)) => Err(self.no_head(url, &error).await),
            Ok(Ok(response)) => Ok(response),
        };
        let mut response = head.map_err(|finding| self.failed(started, None, finding))?;
        let first_byte = self.clock.now().since(started);
        let address = self
            .peer(url, &response)
            .map_err(|why| self.failed(started, None, refusal(why)))?;
        let unusable = too_large(response.headers());
        if let Some(finding) = unusable.or_else(|| self.proxy_refusal(url, &response)) {
            return Err(self.failed(started, address, finding));
        }
        let mut exchange = Exchange {
            url: url.clone(),
            sent,
            started,
            ended: started,
            first_byte,
            address,
            status: response.status().as_u16(),
            version: response.version(),
            tls: tls_version(&response),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            truncated: None,
            challenged: false,
            unmet_signature: None,
            room: BodyMemoryReservation::default(),
        };
        exchange.headers = std::mem::take(response.headers_mut());
        match self.learn_challenge(&exchange) {
            SignatureDemandStatus::None => {}
            SignatureDemandStatus::Met => exchange.challenged = true,
            SignatureDemandStatus::Unmet(why) => exchange.unmet_signature = Some(why),
        }
        if !request.is_anonymous {
            let sessions = &self.config.sessions;
            sessions.receive(url, &mut exchange.headers, self.clock.now());
        }
        if request.is_head {
            exchange.ended = self.clock.now();
            exchange.truncated = TruncationReason::of_head(exchange.status);
            return Ok(exchange);
        }
        let filter = self.config.body_filter.as_ref();
        let filter = filter.filter(|_| request.is_filtered);
        if filter.is_some_and(|filter| !filter.wants(exchange.status, &exchange.headers)) {
            exchange.ended = self.clock.now();
            exchange.truncated = Some(TruncationReason::Unwanted);
            // Dropping the response closes its connection. The connection can't be reused while the
            // body is still arriving.
            return Ok(exchange);
        }
        let max_body = request.max_body.unwrap_or(self.config.max_body);
        let bounds = BodyLimits {
            bytes: filter.map_or(max_body, |filter| filter.at_most(max_body)),
            idle: self.config.idle_timeout,
            deadline,
            total: self.config.timeout,
            rooms: &self.rooms,
        };
        let ReceivedBody { body, room, end } =
            collect(response, BodyFraming::of(&exchange), bounds).await;
        exchange.ended = self.clock.now();
        (exchange.body, exchange.room) = (body, room);
        match end {
            BodyEnd::Whole => Ok(exchange),
            BodyEnd::Cut => {
                exchange.truncated = Some(TruncationReason::Length);
                Ok(exchange)
            }
            BodyEnd::Broken(finding) => {
                exchange.truncated = Some(TruncationReason::by(finding.kind));
                Err(ExchangeFailure {
                    ended: exchange.ended,
                    answer: Some(Box::new(exchange)),
                    ..self.failed(started, address, finding)
                })
            }
        }
    }

    /// Sends a request and waits for the head of its answer. If the server closes a kept connection
    /// instead of answering, or leaves the request unprocessed (RFC 9113 section 8.7), the next
    /// requests to its host, such as a retry of this one, use new connections. The request is not
    /// repeated here: the server may have received it, so the host's gap applies.
    async fn answer_head(
        &self,
        url: &CanonicalUrl,
        request: reqwest::Request,
        kept: Option<&KeptConnectionSlot<'_>>,
    ) -> reqwest::Result<Response> {
        let result = self.client(url, kept).execute(request).await;
        if let Err(error) = &result
            && kept.is_some()
            && is_on_kept_connection()
            && (is_unprocessed(error) || is_unanswered(error))
        {
            self.closing_hosts.add(url);
        }
        result
    }

    /// Returns why a URL may not be fetched, if that is known without a look-up. Otherwise `None`.
    fn barred(&self, url: &CanonicalUrl) -> Option<ClassifiedError> {
        if self.is_overridden(url) {
            return None;
        }
        if let Some(why) = unusable(url.host()).filter(|_| host_address(url.host()).is_none()) {
            return Some(ClassifiedError::new(
                FailureKind::NameTooLong,
                FailurePhase::Dns,
                why,
            ));
        }
        let judged = self.rules.judge_url(url);
        judged.err().map(|why| refusal(why.to_string()))
    }

    fn client(&self, url: &CanonicalUrl, kept: Option<&KeptConnectionSlot<'_>>) -> &Client {
        let kind = match kept {
            _ if self.http1_only.contains(url) => ClientKind::Http1,
            Some(_) => ClientKind::Keeping,
            None => ClientKind::Closing,
        };
        let (config, tls) = (&self.config, &self.tls);
        if let (Some(clients), Some(known)) = (self.overridden(url), self.resolve_override(url)) {
            return clients.get(kind, config, tls, || fixed(known, &self.names));
        }
        match &self.typed {
            Some(typed) if self.rules.is_typed(url) => {
                typed.get(kind, config, tls, || self.names.for_typed())
            }
            _ => self.client.get(kind, config, tls, || self.names.clone()),
        }
    }

    /// Returns the override with the operator's addresses for this URL. As in curl, an override
    /// applies to one host and port, and the last one wins.
    fn resolve_override(&self, url: &CanonicalUrl) -> Option<&ResolveOverride> {
        let (host, port) = (without_trailing_dot(url.host()), url.port());
        let mut overrides = self.config.resolve.iter().rev();
        overrides.find(|known| known.host == host && known.port == port)
    }

    /// Returns the client of the override for this URL, if there is one.
    fn overridden(&self, url: &CanonicalUrl) -> Option<&HttpClients> {
        if self.overridden.is_empty() {
            return None;
        }
        let key = (without_trailing_dot(url.host()).to_owned(), url.port());
        self.overridden.get(&key)
    }

    fn is_overridden(&self, url: &CanonicalUrl) -> bool {
        // A literal address is never resolved, so an override does not apply.
        host_address(url.host()).is_none() && self.overridden(url).is_some()
    }

    /// Learns from an answer whether the host demands a signature. After
    /// [`SignatureDemandStatus::Met`], the caller should send the same request again, which will
    /// then carry the demanded signature.
    fn learn_challenge(&self, exchange: &Exchange) -> SignatureDemandStatus {
        let Some(signing) = &self.config.signing else {
            return SignatureDemandStatus::None;
        };
        let sent = &exchange.sent;
        let method = match (sent.is_head, &sent.posted) {
            (true, _) => "HEAD",
            (false, None) => "GET",
            (false, Some(_)) => "POST",
        };
        let request = signed_message(method, &exchange.url, &sent.fields, &sent.own);
        let can_cover = |asked: &AcceptSignature| signing.signer.sign(&request, asked).map(drop);
        let demanded = demanded(exchange.status, &exchange.headers);
        (self.challenges).learn(&exchange.url, sent.is_signed(), demanded, can_cover)
    }

    /// Returns the secret fields of a request: those that the operator set for its host, and those
    /// of the site's session. If both have cookies, all are sent, the operator's first.
    fn own_fields(&self, url: &CanonicalUrl, now: Tick) -> HeaderMap {
        let mut fields = self.accesses.fields(url).cloned().unwrap_or_default();
        let is_proxied = self.config.proxy.is_some();
        let session = self.config.sessions.fields(url, is_proxied, now);
        for (name, value) in &session {
            let own = fields.get(name).filter(|_| name == COOKIE);
            let value = own.map_or_else(|| value.clone(), |own| joined_cookies(own, value));
            fields.insert(name, value);
        }
        fields
    }

    /// Adds a signature to the fields of a request. If the host wants a signature over a part that
    /// this request doesn't have, makes the usual signature instead.
    fn sign(&self, request: &FetchRequest, sent: &mut SentRequestRecord) {
        let Some(signing) = &self.config.signing else {
            return;
        };
        let method = method(request);
        let message = signed_message(method.as_str(), &request.url, &sent.fields, &sent.own);
        let demanded = self.challenges.next_signature(&request.url);
        let fields = signing.signer.sign(&message, &demanded);
        let usual = AcceptSignature::default();
        let fields = fields.or_else(|_| signing.signer.sign(&message, &usual));
        sent.fields.extend(fields.unwrap_or_default());
    }

    fn request_headers(&self, request: &FetchRequest) -> HeaderMap {
        let mut headers = self.headers.clone();
        let validators = &request.validators;
        let pairs: [(HeaderName, &Option<String>); 2] = [
            (IF_NONE_MATCH, &validators.etag),
            (IF_MODIFIED_SINCE, &validators.last_modified),
        ];
        for (name, text) in pairs {
            // A validator was read from a header field, so it is normally valid in a header field
            // again. Leave out a corrupt validator: the server then merely sends a full answer.
            let value = text.as_deref().map(HeaderValue::from_str);
            if let Some(Ok(value)) = value {
                headers.insert(name, value);
            }
        }
        let content_type = request
            .post
            .as_ref()
            .and_then(|post| post.content_type.as_ref());
        if let Some(content_type) = content_type {
            headers.insert(CONTENT_TYPE, content_type.clone());
        }
        let found_on = request.found_on.as_ref().filter(|_| self.config.referer);
        if let Some(value) = found_on.and_then(|page| referer(page, &request.url)) {
            headers.insert(REFERER, value);
        }
        headers
    }

    /// Returns the server's address. Checks it again, because the connection may have been made to
    /// another address than the look-up found.
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

    /// Returns the refusal of a proxy that wants a user name and a password. Its 407 says nothing
    /// about the page (RFC 9110 section 15.5.8). For https, an HTTP proxy answers 407 to CONNECT,
    /// which the client reports as a failed connection. SOCKS proxies send no HTTP answers.
    fn proxy_refusal(&self, url: &CanonicalUrl, response: &Response) -> Option<ClassifiedError> {
        let speaks_http = self.config.proxy.as_ref()?.starts_with("http");
        let is_refusal = response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED
            && speaks_http
            && url.scheme() == "http";
        is_refusal.then(|| {
            let detail = PROXY_WANTS_PASSWORD.to_owned();
            ClassifiedError::new(FailureKind::ProxyFailed, FailurePhase::Connect, detail)
        })
    }

    async fn no_head(&self, url: &CanonicalUrl, error: &reqwest::Error) -> ClassifiedError {
        let finding = failure_classification::before_head(error, self.config.proxy.is_some());
        // No connection could be made to the cached addresses, which may be outdated.
        if finding.kind.is_no_connection() && finding.phase != FailurePhase::Dns {
            self.names.forget(url.host());
        }
        if requires_http1(error) {
            self.http1_only.add(url);
        }
        finding
    }

    fn too_late(&self, late: TimeoutPhase) -> ClassifiedError {
        let total = not_within(self.config.timeout);
        match late {
            TimeoutPhase::Connection => {
                ClassifiedError::new(FailureKind::Timeout, FailurePhase::Connect, total)
            }
            TimeoutPhase::Head => {
                ClassifiedError::new(FailureKind::Timeout, FailurePhase::FirstByte, total)
            }
            TimeoutPhase::FirstByte => {
                let seconds = self.config.first_byte_timeout.as_secs_f64();
                let detail = format!("no answer within {seconds} s");
                ClassifiedError::new(
                    FailureKind::FirstByteTimeout,
                    FailurePhase::FirstByte,
                    detail,
                )
            }
        }
    }

    fn failed(
        &self,
        started: Tick,
        address: Option<SocketAddr>,
        finding: ClassifiedError,
    ) -> ExchangeFailure {
        ExchangeFailure {
            kind: finding.kind,
            phase: finding.phase,
            fault: finding.kind.fault(),
            retry: finding.kind.retry() && !finding.lasting,
            started,
            ended: self.clock.now(),
            address,
            detail: finding.detail,
            signed: false,
            answer: None,
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

/// Creates a resolver that returns an override's addresses for the override's name.
fn fixed(known: &ResolveOverride, names: &CheckedResolver) -> OverrideResolver {
    OverrideResolver {
        host: known.host.clone(),
        sockets: known.sockets(),
        others: names.clone(),
    }
}

fn method(request: &FetchRequest) -> Method {
    match (request.is_head, &request.form, &request.post) {
        (true, ..) => Method::HEAD,
        (false, None, None) => Method::GET,
        (false, ..) => Method::POST,
    }
}

/// Returns the parts of a request that a signature can cover. Omits the fields of a single host,
/// which are secret, and the fields of an earlier signature.
fn signed_message(
    method: &str,
    url: &CanonicalUrl,
    fields: &HeaderMap,
    own: &[HeaderName],
) -> SignableMessage {
    let url = url.as_url();
    let query = url.query().map(|query| format!("?{query}"));
    let is_covered = |name: &HeaderName| {
        !own.contains(name)
            && !matches!(
                name.as_str(),
                "signature" | "signature-input" | "signature-agent"
            )
    };
    let fields = fields.iter().filter(|(name, _)| is_covered(name));
    SignableMessage {
        method: method.to_owned(),
        scheme: url.scheme().to_owned(),
        authority: url.authority().to_owned(),
        target: format!("{}{}", url.path(), query.unwrap_or_default()),
        fields: fields
            .filter_map(|(name, value)| {
                Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
            })
            .collect(),
        is_response: false,
    }
}

fn http_request(request: &FetchRequest, headers: HeaderMap) -> reqwest::Request {
    let method = method(request);
    let mut http_request = reqwest::Request::new(method, request.url.as_url().clone());
    *http_request.headers_mut() = headers;
    if let Some(form) = &request.form {
        let encoded = HeaderValue::from_static("application/x-www-form-urlencoded");
        http_request.headers_mut().insert(CONTENT_TYPE, encoded);
        *http_request.body_mut() = Some(form.encoded().to_owned().into());
    } else if let Some(post) = &request.post {
        *http_request.body_mut() = Some(post.bytes.clone().into());
    }
    http_request
}

/// Returns the general fields together with the fields for one host. A field for the host replaces
/// general fields of the same name.
fn with_own(headers: &HeaderMap, own: &HeaderMap) -> HeaderMap {
    let mut all = headers.clone();
    for (name, value) in own {
        all.insert(name, value.clone());
    }
    all
}

/// Applies the same header limits to HTTP/1.1 and HTTP/2. The client itself limits only the number
/// of fields in HTTP/1.1, and only their bytes in HTTP/2.
fn too_large(headers: &HeaderMap) -> Option<ClassifiedError> {
    let bytes: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    let detail = if headers.len() > MAX_HEADER_FIELDS {
        format!(
            "{} header fields, the maximum is {MAX_HEADER_FIELDS}",
            headers.len()
        )
    } else if bytes > MAX_HEADER_BYTES as usize {
        format!("{bytes} bytes of header fields, the maximum is {MAX_HEADER_BYTES}")
    } else {
        return None;
    };
    Some(ClassifiedError::new(
        FailureKind::HeadersTooLarge,
        FailurePhase::FirstByte,
        detail,
    ))
}

fn tls_version(response: &Response) -> Option<TlsVersion> {
    let version = response.extensions().get::<TlsInfo>()?.version()?;
    if version == reqwest::tls::Version::TLS_1_3 {
        Some(TlsVersion::Tls13)
    } else {
        (version == reqwest::tls::Version::TLS_1_2).then_some(TlsVersion::Tls12)
    }
}

fn refusal(why: String) -> ClassifiedError {
    ClassifiedError::new(FailureKind::AddressRefused, FailurePhase::Address, why)
}

/// Joins the values of two `Cookie` fields into one value.
fn joined_cookies(one: &HeaderValue, other: &HeaderValue) -> HeaderValue {
    let joined = HeaderValue::from_bytes(&[one.as_bytes(), b"; ", other.as_bytes()].concat());
    let mut joined = joined.unwrap_or_else(|_| other.clone());
    joined.set_sensitive(true);
    joined
}
