//! The HTTP client: what it never does by itself, and its bounds.

use std::time::Duration;

use http::header::{ACCEPT, ACCEPT_ENCODING, FROM, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::dns::Resolve;
use reqwest::{Certificate, Client, ClientBuilder, Proxy};
use tower::util::MapFutureLayer;

use crate::config::{FetchConfig, SetupError};
use crate::connect::connect_only;
use crate::deadline::noted;

/// The `Accept` field: the types that the crawler reads, and anything else rather than nothing.
const ACCEPTED: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
/// The codings that [`crawl_coding::decode`] takes off.
const ACCEPTED_CODINGS: &str = "gzip, deflate, br, zstd";
/// Fields of an answer's head. Of HTTP/1.1 the client reads no more than 408 KiB before it
/// has a whole head.
pub(crate) const MAX_HEADER_FIELDS: usize = 256;
/// Bytes of an answer's header list, names and values.
pub(crate) const MAX_HEADER_BYTES: u32 = 256 << 10;
/// Bytes that an HTTP/2 server may send ahead of our reading, for one body and for all of a
/// connection. With the client's own numbers a server could fill 5 MiB that nobody reads.
const MAX_STREAM_AHEAD: u32 = 256 << 10;
const MAX_CONNECTION_AHEAD: u32 = 512 << 10;
/// Idle connections to one host. There are no more than were in flight at once, which `--per-host`
/// bounds; where fewer were kept, the others would be made anew for each request.
const MAX_IDLE_PER_HOST: usize = 32;
/// So that a dead peer is noticed while a slow answer is waited for.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);

/// The fields that every request bears.
pub(crate) fn standing_headers(config: &FetchConfig) -> Result<HeaderMap, SetupError> {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, value("User-Agent", &config.user_agent)?);
    if let Some(from) = &config.from {
        headers.insert(FROM, value("From", from)?);
    }
    headers.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED_CODINGS));
    Ok(headers)
}

/// Makes a client that looks names up with `resolver`.
pub(crate) fn client(
    config: &FetchConfig,
    resolver: impl Resolve + Clone + 'static,
) -> Result<Client, SetupError> {
    build(|| builder(config, resolver.clone()))
}

/// Makes a client that connects in the same way and sends nothing: each of its requests ends
/// with the error [`Stands`](crate::connect::Stands), or why there is no connection.
pub(crate) fn connecting_client(
    config: &FetchConfig,
    resolver: impl Resolve + Clone + 'static,
) -> Result<Client, SetupError> {
    build(|| {
        Ok(builder(config, resolver.clone())?.connector_layer(MapFutureLayer::new(connect_only)))
    })
}

fn build(builder: impl Fn() -> Result<ClientBuilder, SetupError>) -> Result<Client, SetupError> {
    // Another provider that was installed earlier serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let platform_roots = builder()?.build();
    match platform_roots {
        Ok(client) => Ok(client),
        Err(error) => {
            // A machine without root certificates still crawls http hosts. With no root
            // nothing verifies, so each https host fails, and says so.
            let client = builder()?
                .tls_certs_only([])
                .build()
                .map_err(SetupError::Client)?;
            let why = crate::client_error::story(&error);
            tracing::warn!("no https host can be verified: {why}");
            Ok(client)
        }
    }
}

fn builder(
    config: &FetchConfig,
    resolver: impl Resolve + 'static,
) -> Result<ClientBuilder, SetupError> {
    let mut builder = Client::builder()
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
        // A broken header line costs that line, as in browsers, not the page.
        .http1_ignore_invalid_headers_in_responses(true)
        .http1_allow_obsolete_multiline_headers_in_responses(true)
        .http1_allow_spaces_after_header_name_in_responses(true)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .http2_initial_stream_window_size(MAX_STREAM_AHEAD)
        .http2_initial_connection_window_size(MAX_CONNECTION_AHEAD)
        .tls_info(true)
        .connector_layer(MapFutureLayer::new(noted))
        .dns_resolver(resolver);
    if let Some(proxy) = &config.proxy {
        let wrong = |source| SetupError::Proxy {
            value: proxy.clone(),
            source,
        };
        builder = builder.proxy(Proxy::all(proxy).map_err(wrong)?);
    }
    if let Some(pem) = &config.extra_roots {
        let roots = Certificate::from_pem_bundle(pem).map_err(SetupError::Roots)?;
        builder = builder.tls_certs_merge(roots);
    }
    Ok(builder)
}

/// The host of the proxy, which is the operator's own choice wherever it stands.
pub(crate) fn proxy_host(config: &FetchConfig) -> Option<String> {
    let proxy = config.proxy.as_deref()?;
    let url = reqwest::Url::parse(proxy).ok()?;
    url.host_str().map(str::to_owned)
}

fn value(field: &'static str, text: &str) -> Result<HeaderValue, SetupError> {
    HeaderValue::from_str(text).map_err(|_| SetupError::Header {
        field,
        value: text.to_owned(),
    })
}
