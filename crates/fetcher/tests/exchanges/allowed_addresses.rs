//! Tests of the rules that decide which addresses the fetcher connects to.

use crawl_fetcher::{FailurePhase, FaultyParty, FetchConfig};
use crawl_weburl::{CanonicalUrl, canonicalize};

use crate::scripted_server::{Server, config, fetch, fetcher, resolve_to_loopback};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn stranger() -> FetchConfig {
    FetchConfig::new("crawl/0.1")
}

fn named(server: &Server, host: &str) -> CanonicalUrl {
    canonicalize(None, &format!("http://{host}:{}/", server.address.port())).unwrap()
}

async fn refused(config: FetchConfig, server: &Server, url: &CanonicalUrl) {
    let fetcher = fetcher(config);
    assert!(fetcher.refusal(url).is_some());
    let failure = fetch(&fetcher, url).await.unwrap_err();
    assert_eq!(failure.name(), "address_refused", "{failure}");
    assert_eq!(
        (failure.phase, failure.fault),
        (FailurePhase::Address, FaultyParty::Url)
    );
    assert!(!failure.retry);
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn loopback_is_refused_unless_typed() {
    let server = Server::answering(OK).await;
    refused(stranger(), &server, &server.url("/")).await;
    refused(stranger(), &server, &named(&server, "localhost")).await;
    refused(stranger(), &server, &named(&server, "[::ffff:127.0.0.1]")).await;
    let other_port = canonicalize(None, "http://127.0.0.1:1/").unwrap();
    refused(config(&other_port), &server, &server.url("/")).await;

    let url = server.url("/");
    assert_eq!(
        fetch(&fetcher(config(&url)), &url).await.unwrap().body,
        "ok"
    );
}

#[tokio::test]
async fn allow_private_allows_loopback() {
    let server = Server::answering(OK).await;
    let config = FetchConfig {
        allow_private: true,
        ..stranger()
    };
    let fetcher = fetcher(config);
    let url = server.url("/");
    assert_eq!(fetcher.refusal(&url), None);
    assert_eq!(fetch(&fetcher, &url).await.unwrap().body, "ok");
    assert_eq!(
        fetch(&fetcher, &named(&server, "localhost"))
            .await
            .unwrap()
            .body,
        "ok"
    );
}

#[tokio::test]
async fn a_typed_address_replaces_a_look_up() {
    let server = Server::answering(OK).await;
    let port = server.address.port();
    let config = FetchConfig {
        resolve: vec![resolve_to_loopback("site.test", port)],
        ..stranger()
    };
    let fetcher = fetcher(config);
    for host in ["site.test", "SITE.test."] {
        let exchange = fetch(&fetcher, &named(&server, host)).await.unwrap();
        assert_eq!(exchange.address, Some(server.address));
    }
    assert!(server.heads()[0].contains(&format!("Host: site.test:{port}\r\n")));

    // The override applies to one name and one port only.
    let config = FetchConfig {
        resolve: vec![resolve_to_loopback("localhost", port)],
        ..stranger()
    };
    let fetcher = crate::scripted_server::fetcher(config);
    assert_eq!(fetcher.refusal(&named(&server, "localhost")), None);
    let other_port = canonicalize(None, "http://localhost:1/").unwrap();
    assert!(fetcher.refusal(&other_port).is_some());
    assert!(fetcher.refusal(&server.url("/")).is_some());
}

#[tokio::test]
async fn a_limit_of_kept_connections_covers_typed_addresses() {
    for (max_kept_connections, connections) in [(0, 2), (1, 1)] {
        let server = Server::answering(OK).await;
        let fetcher = fetcher(FetchConfig {
            resolve: vec![resolve_to_loopback("site.test", server.address.port())],
            max_kept_connections,
            ..stranger()
        });
        for _ in 0..2 {
            fetch(&fetcher, &named(&server, "site.test")).await.unwrap();
        }
        assert_eq!(server.connections(), connections);
    }
}
