//! Tests of requests through the operator's proxy.

use crawl_fetcher::{FaultyParty, FetchConfig, Fetcher, MonotonicClock};
use crawl_weburl::canonicalize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::scripted_server::{Server, config, fetch, fetcher, unused_address};

fn through(proxy: &str) -> FetchConfig {
    FetchConfig {
        proxy: Some(proxy.to_owned()),
        ..FetchConfig::new("crawl/0.1")
    }
}

#[tokio::test]
async fn a_request_goes_through_the_proxy() {
    let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let fetcher = fetcher(through(&format!("http://{}", server.address)));
    let url = canonicalize(None, "http://site.example/a?b").unwrap();
    let exchange = fetch(&fetcher, &url).await.unwrap();
    assert_eq!(exchange.body, "ok");
    assert_eq!(exchange.address, None);
    let head = &server.heads()[0];
    assert!(
        head.starts_with("GET http://site.example/a?b HTTP/1.1\r\n"),
        "{head}"
    );

    // A literal address is checked even if a proxy is used.
    let url = canonicalize(None, "http://127.0.0.1:1/").unwrap();
    assert_eq!(
        fetch(&fetcher, &url).await.unwrap_err().name(),
        "address_refused"
    );
}

/// Runs a SOCKS5 proxy (RFC 1928) that answers instead of the server. Returns the target that the
/// client asked to connect to.
async fn socks(listener: TcpListener) -> Vec<u8> {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut greeting = [0; 3];
    stream.read_exact(&mut greeting).await.unwrap();
    assert_eq!(greeting, [5, 1, 0]);
    stream.write_all(&[5, 0]).await.unwrap();
    let mut command = [0; 5];
    stream.read_exact(&mut command).await.unwrap();
    assert_eq!(command[..3], [5, 1, 0]);
    let (mut target, left) = match command[3] {
        3 => (Vec::new(), usize::from(command[4])),
        _ => (vec![command[4]], 3),
    };
    let mut rest = vec![0; left + 2];
    stream.read_exact(&mut rest).await.unwrap();
    target.extend_from_slice(&rest[..left]);
    stream
        .write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
        .await
        .unwrap();
    let mut head = [0; 16];
    stream.read_exact(&mut head).await.unwrap();
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    stream.write_all(answer).await.unwrap();
    target
}

#[tokio::test]
async fn names_are_resolved_by_the_right_side_of_a_socks_proxy() {
    for (scheme, host, expect) in [
        ("socks5h", "site.example", b"site.example".to_vec()),
        ("socks5", "127.0.0.1", vec![127, 0, 0, 1]),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let target = tokio::spawn(socks(listener));
        let fetcher = fetcher(FetchConfig {
            allow_private: true,
            ..through(&format!("{scheme}://{address}"))
        });
        let url = canonicalize(None, &format!("http://{host}:81/")).unwrap();
        let exchange = fetch(&fetcher, &url).await.unwrap();
        assert_eq!((&exchange.body[..], exchange.address), (&b"ok"[..], None));
        assert_eq!(target.await.unwrap(), expect);
    }
}

#[tokio::test]
async fn an_unreachable_proxy_is_the_operators_fault() {
    let (_nobody, address) = unused_address();
    for scheme in ["http", "socks5h"] {
        let fetcher = fetcher(through(&format!("{scheme}://{address}")));
        let url = canonicalize(None, "http://site.example/").unwrap();
        let failure = fetch(&fetcher, &url).await.unwrap_err();
        assert_eq!(
            (failure.name(), failure.fault),
            ("proxy_failed", FaultyParty::Operator)
        );
    }
}

#[tokio::test]
async fn rfc9110_15_5_8_a_407_is_the_answer_of_the_proxy() {
    let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
    let proxy = Server::answering(refusal).await;
    let fetcher = fetcher(through(&format!("http://{}", proxy.address)));
    for scheme in ["http", "https"] {
        let url = canonicalize(None, &format!("{scheme}://site.example/robots.txt")).unwrap();
        let failure = fetch(&fetcher, &url).await.unwrap_err();
        assert_eq!(failure.fault, FaultyParty::Operator);
        assert_eq!(
            failure.reason(),
            "proxy_failed: the proxy wants a user name and a password (407)"
        );
    }
}

#[tokio::test]
async fn a_407_of_a_site_is_an_answer() {
    let server = Server::answering("HTTP/1.1 407 Odd\r\nContent-Length: 0\r\n\r\n").await;
    let url = server.url("/");
    let exchange = fetch(&fetcher(config(&url)), &url).await.unwrap();
    assert_eq!(exchange.status, 407);
}

#[test]
fn setup_errors_name_the_unusable_setting() {
    let message = |config| {
        Fetcher::new(config, MonotonicClock::start())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(message(through("http://")), "`http://` isn't a proxy");
    assert_eq!(
        message(FetchConfig::new("a\nb")),
        "`a\nb` isn't allowed in the User-Agent header field"
    );
    let config = FetchConfig {
        from: Some("a\u{0}".to_owned()),
        ..FetchConfig::new("crawl/0.1")
    };
    assert_eq!(
        message(config),
        "`a\u{0}` isn't allowed in the From header field"
    );
    let config = FetchConfig {
        extra_roots: Some(b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----".to_vec()),
        ..FetchConfig::new("crawl/0.1")
    };
    assert_eq!(message(config), "can't read the extra root certificates");
}
