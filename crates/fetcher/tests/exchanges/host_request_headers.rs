//! Tests of header fields that are configured for one host: which requests carry them.

use crawl_fetcher::{FetchConfig, HostRequestHeaders};
use crawl_weburl::canonicalize;

use crate::scripted_server::{Server, config, fetch, fetcher, resolve_to_loopback};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const SECRETS: [&str; 3] = ["bWU6cGFzcw==", "k3y", "c00kie"];

fn access(host: &str) -> HostRequestHeaders {
    let access = HostRequestHeaders::new(host).basic_auth("me:pass").unwrap();
    let access = access.header("X-Api-Key", SECRETS[1]).unwrap();
    access.cookie("session", SECRETS[2]).unwrap()
}

fn holds_secret(text: &str) -> bool {
    SECRETS.iter().any(|secret| text.contains(secret))
}

#[tokio::test]
async fn fields_are_sent_but_their_values_are_not_recorded() {
    let server = Server::answering(OK).await;
    let url = server.url("/");
    let config = FetchConfig {
        access: vec![access("127.0.0.1")],
        ..config(&url)
    };
    let shown = format!("{config:?}");
    let fetcher = fetcher(config);
    let exchange = fetch(&fetcher, &url).await.unwrap();
    let head = &server.heads()[0];
    for line in [
        "Authorization: Basic bWU6cGFzcw==\r\n",
        "X-Api-Key: k3y\r\n",
        "Cookie: session=c00kie\r\n",
    ] {
        assert!(head.contains(line), "{head}");
    }
    let recorded = exchange.sent.as_written(&url);
    let redacted = recorded.iter().filter(|(_, value)| value == "[redacted]");
    let mut redacted: Vec<_> = redacted.map(|(name, _)| name.as_str()).collect();
    redacted.sort_unstable();
    assert_eq!(redacted, ["Authorization", "Cookie", "X-Api-Key"]);
    for text in [shown, format!("{fetcher:?}"), format!("{exchange:?}")] {
        assert!(!holds_secret(&text), "{text}");
    }
}

#[tokio::test]
async fn another_host_gets_no_fields_not_even_after_a_redirect() {
    let server = Server::answering(OK).await;
    let port = server.address.port();
    let fetcher = fetcher(FetchConfig {
        resolve: ["a.test", "b.a.test", "test"]
            .map(|host| resolve_to_loopback(host, port))
            .to_vec(),
        access: vec![access("a.test"), access("plain.test").over_plain_http()],
        allow_private: true,
        ..FetchConfig::new("crawl/0.1")
    });
    // The fields are sent neither over plain http nor to a subdomain, a parent or another host.
    for host in ["a.test", "b.a.test", "test", "127.0.0.1"] {
        let url = canonicalize(None, &format!("http://{host}:{port}/")).unwrap();
        let exchange = fetch(&fetcher, &url).await.unwrap();
        assert!(
            exchange
                .sent
                .as_written(&url)
                .iter()
                .all(|(_, value)| value != "[redacted]")
        );
    }
    assert_eq!(server.heads().len(), 4);
    assert!(!server.heads().iter().any(|head| holds_secret(head)));
}

#[tokio::test]
async fn secrets_over_plain_http_need_consent() {
    let server = Server::answering(OK).await;
    let port = server.address.port();
    let fetcher = fetcher(FetchConfig {
        resolve: vec![resolve_to_loopback("a.test", port)],
        access: vec![access("a.test").over_plain_http()],
        ..FetchConfig::new("crawl/0.1")
    });
    let url = canonicalize(None, &format!("http://a.test:{port}/")).unwrap();
    fetch(&fetcher, &url).await.unwrap();
    assert!(holds_secret(&server.heads()[0]));
}
