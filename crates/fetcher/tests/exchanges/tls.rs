//! Tests of TLS, and of HTTP/2 negotiated by ALPN.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crawl_fetcher::{FailureKind, FailurePhase, FetchConfig, HostRequestHeaders, TlsVersion};
use crawl_weburl::canonicalize;
use http::Version;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::scripted_name_server::{NameServer, ScriptedAnswer};
use crate::scripted_server::{Server, config, fetch, fetcher, resolve_to_loopback};

/// A self-signed certificate for `a.test` only, valid for a hundred years.
const CERTIFICATE: &[u8] = include_bytes!("fixtures/a.test.pem");
const KEY: &[u8] = include_bytes!("fixtures/a.test.key.pem");

/// The path that is served over HTTP/1.1 only.
const HTTP1_ONLY: &str = "/http1-only";
/// The path that is served once per HTTP/2 connection. Later requests for it are refused.
const ONCE: &str = "/once";

/// Serves over TLS as `a.test`, by the first of these protocols that the client speaks. The body
/// names the protocol.
async fn serve(alpn: &[&str]) -> SocketAddr {
    serve_as_a_test(alpn, false).await.0
}

/// Serves like [`serve`]. May demand a certificate of the client.
async fn serve_as_a_test(alpn: &[&str], demands_certificate: bool) -> (SocketAddr, Arc<Seen>) {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    serve_with(alpn, certificate, key, demands_certificate).await
}

/// Counters of a server.
#[derive(Default)]
struct Seen {
    /// Connections whose TLS session was resumed.
    resumed: AtomicUsize,
    /// Requests, also refused ones.
    requests: AtomicUsize,
}

/// Serves like [`serve`], with this certificate. May demand a certificate of the client.
async fn serve_with(
    alpn: &[&str],
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    demands_certificate: bool,
) -> (SocketAddr, Arc<Seen>) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = match demands_certificate {
        true => {
            let mut roots = RootCertStore::empty();
            roots.add(certificate.clone()).unwrap();
            let builder =
                WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
            builder.build().unwrap()
        }
        false => WebPkiClientVerifier::no_client_auth(),
    };
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate], key)
        .unwrap();
    tls.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(Seen::default());
    let counted = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, counted) = (acceptor.clone(), Arc::clone(&counted));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let session = stream.get_ref().1;
                if session.handshake_kind() == Some(HandshakeKind::Resumed) {
                    counted.resumed.fetch_add(1, Ordering::SeqCst);
                }
                let is_http2 = session.alpn_protocol() == Some(b"h2");
                let io = TokioIo::new(stream);
                let served = AtomicUsize::new(0);
                let service = service_fn(|request| {
                    counted.requests.fetch_add(1, Ordering::SeqCst);
                    answer(request, served.fetch_add(1, Ordering::SeqCst))
                });
                if is_http2 {
                    let http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    let _ = http.serve_connection(io, service).await;
                } else {
                    let http = hyper::server::conn::http1::Builder::new();
                    let _ = http.serve_connection(io, service).await;
                }
            });
        }
    });
    (address, seen)
}

/// Answers a request. `earlier` is the number of earlier requests on the same connection.
async fn answer(
    request: hyper::Request<Incoming>,
    earlier: usize,
) -> Result<hyper::Response<Full<Bytes>>, h2::Error> {
    if request.version() == Version::HTTP_2 && request.uri().path() == HTTP1_ONLY {
        return Err(h2::Reason::HTTP_1_1_REQUIRED.into());
    }
    if request.uri().path() == ONCE && earlier > 0 {
        return Err(h2::Reason::REFUSED_STREAM.into());
    }
    let agent = request.headers()["user-agent"].to_str().unwrap();
    let mut body = format!("{:?} {} {agent}", request.version(), request.uri().path());
    if let Some(credentials) = request.headers().get("authorization") {
        body.push_str(&format!(" for {}", credentials.to_str().unwrap()));
    }
    Ok(hyper::Response::new(Full::new(body.into())))
}

fn trusting(address: SocketAddr, trusted: bool) -> FetchConfig {
    let port = address.port();
    FetchConfig {
        resolve: vec![
            resolve_to_loopback("a.test", port),
            resolve_to_loopback("b.test", port),
        ],
        extra_roots: trusted.then(|| CERTIFICATE.to_vec()),
        ..FetchConfig::new("crawl/0.1")
    }
}

#[tokio::test]
async fn the_server_chooses_the_protocol() {
    for (alpn, version, told) in [
        ("h2", Version::HTTP_2, "HTTP/2.0 /p crawl/0.1"),
        ("http/1.1", Version::HTTP_11, "HTTP/1.1 /p crawl/0.1"),
    ] {
        let address = serve(&[alpn]).await;
        let fetcher = fetcher(trusting(address, true));
        let url = format!("https://a.test:{}/p", address.port());
        let exchange = fetch(&fetcher, &canonicalize(None, &url).unwrap())
            .await
            .unwrap();
        assert_eq!(exchange.version, version);
        assert_eq!(exchange.body, told);
        assert_eq!(exchange.address, Some(address));
        assert_eq!(exchange.tls, Some(TlsVersion::Tls13));
    }
}

#[tokio::test]
async fn credentials_go_over_tls() {
    for alpn in ["h2", "http/1.1"] {
        let address = serve(&[alpn]).await;
        let access = HostRequestHeaders::new("a.test")
            .basic_auth("me:pass")
            .unwrap();
        let fetcher = fetcher(FetchConfig {
            access: vec![access],
            ..trusting(address, true)
        });
        let url = format!("https://a.test:{}/p", address.port());
        let url = canonicalize(None, &url).unwrap();
        let exchange = fetch(&fetcher, &url).await.unwrap();
        let body = String::from_utf8_lossy(&exchange.body).into_owned();
        assert!(body.ends_with(" for Basic bWU6cGFzcw=="), "{body}");
        let recorded = exchange.sent.as_written(&url);
        assert!(recorded.contains(&("Authorization".to_owned(), "[redacted]".to_owned())));
    }
}

#[tokio::test]
async fn a_certificate_that_does_not_verify_is_no_connection() {
    let address = serve(&["h2"]).await;
    for (host, trusted, why) in [
        ("a.test", false, "unknown issuer"),
        ("b.test", true, "certificate"),
    ] {
        let fetcher = fetcher(trusting(address, trusted));
        let url = format!("https://{host}:{}/", address.port());
        let failure = fetch(&fetcher, &canonicalize(None, &url).unwrap())
            .await
            .unwrap_err();
        assert_eq!(
            (failure.name(), failure.phase),
            ("tls_failed", FailurePhase::Tls),
            "{failure}"
        );
        assert!(!failure.retry, "{failure}");
        assert!(failure.detail.contains(why), "{failure}");
        assert!(failure.kind.is_no_connection());
    }
}

/// RFC 9113 section 7, `HTTP_1_1_REQUIRED`.
#[tokio::test]
async fn a_host_that_refuses_http2_is_requested_over_http1() {
    let address = serve(&["h2", "http/1.1"]).await;
    for keep_alive in [Duration::ZERO, Duration::from_secs(5)] {
        let fetcher = fetcher(FetchConfig {
            keep_alive,
            ..trusting(address, true)
        });
        let url = format!("https://a.test:{}{HTTP1_ONLY}", address.port());
        let url = canonicalize(None, &url).unwrap();
        let failure = fetch(&fetcher, &url).await.unwrap_err();
        assert!(failure.retry, "{failure}");
        let exchange = fetch(&fetcher, &url).await.unwrap();
        assert_eq!(exchange.version, Version::HTTP_11);
    }
}

/// RFC 9113 section 8.7: a refused stream was not processed, so its request may be sent again.
#[tokio::test]
async fn a_host_that_refuses_a_stream_gets_new_connections() {
    let (address, seen) = serve_as_a_test(&["h2"], false).await;
    let fetcher = fetcher(trusting(address, true));
    let url = format!("https://a.test:{}{ONCE}", address.port());
    let url = canonicalize(None, &url).unwrap();
    fetch(&fetcher, &url).await.unwrap();
    let failure = fetch(&fetcher, &url).await.unwrap_err();
    assert!(failure.retry, "{failure}");
    for _ in 0..2 {
        let exchange = fetch(&fetcher, &url).await.unwrap();
        assert_eq!(exchange.version, Version::HTTP_2);
    }
    assert_eq!(seen.requests.load(Ordering::SeqCst), 4);
}

/// RFC 8446 section 4.4.2.4. In TLS 1.3, the alert arrives in place of an answer.
#[tokio::test]
async fn a_server_that_demands_a_certificate_is_no_connection() {
    for alpn in ["h2", "http/1.1"] {
        let (address, seen) = serve_as_a_test(&[alpn], true).await;
        let url = format!("https://a.test:{}/", address.port());
        let url = canonicalize(None, &url).unwrap();
        let failure = fetch(&fetcher(trusting(address, true)), &url)
            .await
            .unwrap_err();
        assert_eq!(
            (failure.name(), failure.phase),
            ("tls_failed", FailurePhase::Tls),
            "{failure}"
        );
        assert!(failure.detail.ends_with("CertificateRequired"), "{failure}");
        assert_eq!(seen.requests.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn each_host_has_a_session_to_resume() {
    let hosts: Vec<String> = (0..60).map(|number| format!("h{number}.test")).collect();
    let certified = rcgen::generate_simple_self_signed(hosts.clone()).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let certificate = certified.cert.der().clone();
    let (address, seen) = serve_with(&["http/1.1"], certificate, key, false).await;
    let names =
        NameServer::start(move |_| ScriptedAnswer::Addresses(vec![address.ip()], 300)).await;
    let fetcher = fetcher(FetchConfig {
        name_servers: vec![names.address],
        name_server_rate: None,
        allow_private: true,
        keep_alive: Duration::ZERO,
        extra_roots: Some(certified.cert.pem().into_bytes()),
        ..FetchConfig::new("crawl/0.1")
    });
    for round in 0..2 {
        for host in &hosts {
            let url = format!("https://{host}:{}/", address.port());
            fetch(&fetcher, &canonicalize(None, &url).unwrap())
                .await
                .unwrap();
        }
        assert_eq!(seen.resumed.load(Ordering::SeqCst), round * hosts.len());
    }
}

#[tokio::test]
async fn a_server_without_tls_is_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut greeting = [0; 64];
        stream.read_exact(&mut greeting).await.unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
        std::future::pending::<()>().await;
    });
    let url = canonicalize(None, &format!("https://{address}/")).unwrap();
    let failure = fetch(&fetcher(config(&url)), &url).await.unwrap_err();
    assert_eq!(
        (failure.name(), failure.phase),
        ("tls_failed", FailurePhase::Tls),
        "{failure}"
    );
    assert!(failure.retry, "{failure}");
}

#[tokio::test]
async fn a_connection_is_tried_without_a_request() {
    let address = serve(&["http/1.1"]).await;
    let port = address.port();
    let connect = async |config: FetchConfig, url: &str| {
        let (fetcher, url) = (fetcher(config), canonicalize(None, url).unwrap());
        fetcher.connect(&url).await.map_err(|failure| failure.kind)
    };
    let a = format!("https://a.test:{port}/");
    assert_eq!(connect(trusting(address, true), &a).await, Ok(()));
    let strange = connect(trusting(address, false), &a).await;
    assert_eq!(strange, Err(FailureKind::TlsFailed));
    let mismatch = connect(trusting(address, true), &format!("https://b.test:{port}/")).await;
    assert_eq!(
        mismatch,
        Err(FailureKind::TlsFailed),
        "a name that it is not"
    );
    let private = connect(trusting(address, true), "http://127.0.0.1:9/").await;
    assert_eq!(private, Err(FailureKind::AddressRefused));

    let plain = Server::answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    let url = plain.url("/");
    let fetcher = fetcher(config(&url));
    let tried = fetcher.connect(&url).await;
    assert!(tried.is_ok(), "{tried:?}");
    fetch(&fetcher, &url).await.unwrap();
    assert_eq!(plain.heads().len(), 1, "one request came, the fetch's");
}
