//! Creates the HTTP client: sets its limits, and disables some of its defaults.

use std::time::Duration;

use http::header::{ACCEPT, ACCEPT_ENCODING, FROM, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::dns::Resolve;
use reqwest::{Client, ClientBuilder, Proxy};
use rustls::ClientConfig;
use tower::util::MapFutureLayer;

use crate::config::{FetchConfig, FetcherSetupError};
use crate::connection_probe::connect_only;
use crate::http2::limits_of_http2;
use crate::request_timeout::noted;

/// The `Accept` field: types that the crawler reads are preferred, but any type is accepted.
const ACCEPTED: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
/// Maximum header fields in an answer. For HTTP/1.1 the client also reads at most 408 KiB before
/// the head is complete.
/// Beyond the limit: `headers_too_large`.
pub(crate) const MAX_HEADER_FIELDS: usize = 256;
/// Maximum bytes of an answer's header list, names and values.
/// Beyond the limit: `headers_too_large`.
pub(crate) const MAX_HEADER_BYTES: u32 = 256 << 10;
/// Maximum idle connections per host. If it were lower than `--per-host`, some connections would be
/// reopened for each request.
/// Beyond the limit: closed after the response.
const MAX_IDLE_PER_HOST: usize = 32;
/// How often to probe an idle connection, to detect a dead server while waiting for a slow answer.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);

/// Returns the header fields sent with every request.
pub(crate) fn standing_headers(config: &FetchConfig) -> Result<HeaderMap, FetcherSetupError> {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, value("User-Agent", &config.user_agent)?);
    if let Some(from) = &config.from {
        headers.insert(FROM, value("From", from)?);
    }
    headers.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
    headers.insert(
        ACCEPT_ENCODING,
        HeaderValue::from_static(crawl_coding::ACCEPTED),
    );
    Ok(headers)
}

/// Creates a client. All clients of a fetcher have clones of the same `tls`, so they share TLS
/// sessions.
pub(crate) fn client(
    config: &FetchConfig,
    tls: &ClientConfig,
    resolver: impl Resolve + 'static,
) -> Result<Client, FetcherSetupError> {
    let builder = builder(config, tls, resolver)?;
    builder.build().map_err(FetcherSetupError::Client)
}

/// Creates a client that connects like [`client`] but sends nothing. Each request ends with the
/// error [`ProbeConnectedError`](crate::connection_probe::ProbeConnectedError), or with the
/// reason why connecting failed.
pub(crate) fn connecting_client(
    config: &FetchConfig,
    tls: &ClientConfig,
    resolver: impl Resolve + 'static,
) -> Result<Client, FetcherSetupError> {
    let builder =
        builder(config, tls, resolver)?.connector_layer(MapFutureLayer::new(connect_only));
    builder.build().map_err(FetcherSetupError::Client)
}

fn builder(
    config: &FetchConfig,
    tls: &ClientConfig,
    resolver: impl Resolve + 'static,
) -> Result<ClientBuilder, FetcherSetupError> {
    let mut builder = limits_of_http2(Client::builder(), MAX_HEADER_BYTES)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .connect_timeout(config.connect_timeout)
        .pool_idle_timeout(config.keep_alive)
        .pool_max_idle_per_host(match config.keep_alive.is_zero() {
            true => 0,
            false => MAX_IDLE_PER_HOST,
        })
        .tcp_keepalive(TCP_KEEPALIVE)
        .http1_title_case_headers()
        .http1_max_headers(MAX_HEADER_FIELDS)
        // Skip a broken header line, as browsers do, instead of losing the whole page.
        .http1_ignore_invalid_headers_in_responses(true)
        .http1_allow_obsolete_multiline_headers_in_responses(true)
        .http1_allow_spaces_after_header_name_in_responses(true)
        .tls_backend_preconfigured(tls.clone())
        .tls_info(true)
        .connector_layer(MapFutureLayer::new(noted))
        .dns_resolver(resolver);
    if let Some(proxy) = &config.proxy {
        let wrong = |source| FetcherSetupError::Proxy {
            value: proxy.clone(),
            source,
        };
        builder = builder.proxy(Proxy::all(proxy).map_err(wrong)?);
    }
    Ok(builder)
}

/// Returns the host of the proxy. The operator chose it, so it may have any address.
pub(crate) fn proxy_host(config: &FetchConfig) -> Option<String> {
    let proxy = config.proxy.as_deref()?;
    let url = reqwest::Url::parse(proxy).ok()?;
    url.host_str().map(str::to_owned)
}

fn value(field: &'static str, text: &str) -> Result<HeaderValue, FetcherSetupError> {
    HeaderValue::from_str(text).map_err(|_| FetcherSetupError::Header {
        field,
        value: text.to_owned(),
    })
}
