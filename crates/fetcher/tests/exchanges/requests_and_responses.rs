//! Tests of requests as they are sent, and of how answers are read.

use std::time::Duration;

use crawl_fetcher::robots::MAX_ROBOTS_BYTES;
use crawl_fetcher::{FetchConfig, FetchRequest, TruncationReason, Validators};
use crawl_scheduler::OutcomeKind;
use http::Version;

use crate::scripted_server::{Act, Server, config, fetch, fetch_with, fetcher};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello";

#[tokio::test]
async fn a_request_identifies_the_crawler_and_nothing_else() {
    let server = Server::answering(OK).await;
    let url = server.url("/a/b?c=%20d");
    let config = FetchConfig {
        from: Some("a@b.example".to_owned()),
        ..config(&url)
    };
    let exchange = fetch(&fetcher(config), &url).await.unwrap();

    let heads = server.heads();
    let mut lines: Vec<&str> = heads[0].trim_end().split("\r\n").collect();
    assert_eq!(lines.remove(0), "GET /a/b?c=%20d HTTP/1.1");
    let mut expected = vec![
        format!("Host: {}", server.address),
        "User-Agent: crawl/0.1 (+mailto:a@b.example)".to_owned(),
        "From: a@b.example".to_owned(),
        "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8".to_owned(),
        "Accept-Encoding: gzip, deflate, br, zstd".to_owned(),
    ];
    let mut recorded: Vec<String> = exchange
        .sent
        .as_written(&url)
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    lines.sort_unstable();
    expected.sort_unstable();
    recorded.sort_unstable();
    assert_eq!(lines, expected);
    assert_eq!(recorded, expected);
}

#[tokio::test]
async fn an_exchange_records_the_answer_and_its_times() {
    let server = Server::answering(OK).await;
    let url = server.url("/");
    let fetcher = fetcher(config(&url));
    let before = fetcher.clock().now();
    let exchange = fetch(&fetcher, &url).await.unwrap();
    assert_eq!(exchange.status, 200);
    assert_eq!(exchange.version, Version::HTTP_11);
    assert_eq!(exchange.body, "hello");
    assert_eq!(exchange.truncated, None);
    assert_eq!(exchange.headers["content-type"], "text/plain");
    assert_eq!(exchange.address, Some(server.address));
    assert!(before <= exchange.started && exchange.started <= exchange.ended);
    assert!(exchange.ended <= fetcher.clock().now());
    assert!(exchange.first_byte <= exchange.took());
    assert_eq!(exchange.signal_kind(), OutcomeKind::Answered);
}

#[tokio::test]
async fn redirects_are_answers() {
    let server =
        Server::answering("HTTP/1.1 301 Moved\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n").await;
    let url = server.url("/a");
    let exchange = fetch(&fetcher(config(&url)), &url).await.unwrap();
    assert_eq!(exchange.status, 301);
    assert_eq!(exchange.headers["location"], "/b");
    assert_eq!(server.heads().len(), 1);
}

#[tokio::test]
async fn a_connection_is_kept_and_cookies_are_not_returned() {
    let server = Server::answering(
        "HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Path=/\r\nContent-Length: 2\r\n\r\nok",
    )
    .await;
    let url = server.url("/");
    let fetcher = fetcher(config(&url));
    for _ in 0..3 {
        fetch(&fetcher, &url).await.unwrap();
    }
    assert_eq!(server.connections(), 1);
    let heads = server.heads();
    assert!(
        heads
            .iter()
            .all(|head| !head.to_lowercase().contains("cookie"))
    );
    assert!(
        heads
            .iter()
            .all(|head| !head.to_lowercase().contains("referer"))
    );
}

#[tokio::test]
async fn the_body_keeps_its_coding_and_loses_its_chunks() {
    let server = Server::answering(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\nnot\r\n5\r\n gzip\r\n0\r\n\r\n",
    )
    .await;
    let url = server.url("/");
    let exchange = fetch(&fetcher(config(&url)), &url).await.unwrap();
    assert_eq!(exchange.body, "not gzip");
    assert_eq!(exchange.headers["content-encoding"], "gzip");
}

#[tokio::test]
async fn rfc9112_6_3_a_body_may_end_with_its_connection() {
    let bytes = b"HTTP/1.0 200 OK\r\n\r\nuntil the end".to_vec();
    let server = Server::start(move |_| vec![Act::Send(bytes.clone()), Act::Close]).await;
    let url = server.url("/");
    let exchange = fetch(&fetcher(config(&url)), &url).await.unwrap();
    assert_eq!(exchange.body, "until the end");
    assert_eq!(exchange.version, Version::HTTP_10);
    assert_eq!(exchange.truncated, None);
}

#[tokio::test]
async fn a_long_body_is_cut_and_its_beginning_kept() {
    let server = Server::answering(OK).await;
    let url = server.url("/");
    let limited = |max_body| {
        fetcher(FetchConfig {
            max_body,
            ..config(&url)
        })
    };
    for (limit, body, truncated) in [
        (4, "hell", Some(TruncationReason::Length)),
        (5, "hello", None),
        (0, "", Some(TruncationReason::Length)),
    ] {
        let exchange = fetch(&limited(limit), &url).await.unwrap();
        assert_eq!(exchange.body, body);
        assert_eq!(exchange.truncated, truncated);
    }
}

#[tokio::test]
async fn an_endless_body_is_cut() {
    let server = Server::start(|_| {
        vec![
            Act::Send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()),
            Act::Endless(b"8\r\n12345678\r\n".repeat(64)),
        ]
    })
    .await;
    let url = server.url("/");
    let config = FetchConfig {
        max_body: 100_001,
        ..config(&url)
    };
    let exchange = fetch(&fetcher(config), &url).await.unwrap();
    assert_eq!(exchange.body.len(), 100_001);
    assert!(exchange.body.starts_with(b"1234567812345678"));
    assert_eq!(exchange.truncated, Some(TruncationReason::Length));
}

#[tokio::test]
async fn rfc9309_2_5_a_small_body_limit_does_not_cut_rules() {
    let server = Server::answering(OK).await;
    let url = server.url("/robots.txt");
    let config = FetchConfig {
        max_body: 1,
        ..config(&url)
    };
    let request = FetchRequest::robots(url, Validators::default());
    assert_eq!(request.max_body, Some(MAX_ROBOTS_BYTES));
    let exchange = fetch_with(&fetcher(config), request).await.unwrap();
    assert_eq!(exchange.body, "hello");
}

#[tokio::test]
async fn rfc9110_13_1_validators_are_sent_back() {
    let server = Server::answering(
        "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\
         Last-Modified: Tue, 15 Nov 1994 08:12:31 GMT\r\n\r\n",
    )
    .await;
    let url = server.url("/");
    let fetcher = fetcher(config(&url));
    let first = fetch(&fetcher, &url).await.unwrap();
    let request = FetchRequest {
        validators: Validators::of(&first.headers),
        ..FetchRequest::page(url)
    };
    let second = fetch_with(&fetcher, request).await.unwrap();
    assert_eq!((second.status, second.body.len()), (304, 0));
    let head = &server.heads()[1];
    assert!(head.contains("If-None-Match: \"1\"\r\n"), "{head}");
    assert!(
        head.contains("If-Modified-Since: Tue, 15 Nov 1994 08:12:31 GMT\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn rfc9110_9_3_2_an_answer_to_head_has_no_body() {
    for (answer, truncated) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            Some(TruncationReason::Unwanted),
        ),
        ("HTTP/1.1 405 No\r\nContent-Length: 5\r\n\r\n", None),
    ] {
        let server = Server::answering(answer).await;
        let url = server.url("/a");
        let request = FetchRequest {
            is_head: true,
            ..FetchRequest::page(url.clone())
        };
        let exchange = fetch_with(&fetcher(config(&url)), request).await.unwrap();
        assert_eq!((exchange.body.len(), exchange.truncated), (0, truncated));
        assert!(exchange.sent.is_head);
        assert!(server.heads()[0].starts_with("HEAD /a HTTP/1.1\r\n"));
    }
}

#[tokio::test]
async fn a_broken_header_line_costs_that_line() {
    let server = Server::answering(
        "HTTP/1.1 200 OK\r\nno colon here\r\nX-A : spaced\r\nContent-Length: 2\r\n\r\nok",
    )
    .await;
    let url = server.url("/");
    let exchange = fetch(&fetcher(config(&url)), &url).await.unwrap();
    assert_eq!(exchange.body, "ok");
    assert_eq!(exchange.headers["x-a"], "spaced");
}

#[tokio::test]
async fn a_requested_wait_is_reported() {
    let seven_seconds = OutcomeKind::AskedToWait {
        retry_after: Some(Duration::from_secs(7)),
    };
    for (head, expect) in [
        ("429 Too Many Requests\r\nRetry-After: 7", seven_seconds),
        (
            "503 Service Unavailable",
            OutcomeKind::AskedToWait { retry_after: None },
        ),
        (
            "301 Moved Permanently\r\nLocation: /new\r\nRetry-After: 7",
            seven_seconds,
        ),
        (
            "301 Moved Permanently\r\nLocation: /new",
            OutcomeKind::Answered,
        ),
        ("500 Oops\r\nRetry-After: 7", seven_seconds),
        ("403 Forbidden\r\nRetry-After: 7", seven_seconds),
        ("404 Not Found\r\nRetry-After: 7", seven_seconds),
        ("202 Accepted\r\nRetry-After: 7", OutcomeKind::Answered),
        ("304 Not Modified\r\nRetry-After: 7", OutcomeKind::Answered),
        ("500 Oops\r\nRetry-After: soon", OutcomeKind::Answered),
        ("404 Not Found", OutcomeKind::Answered),
    ] {
        let server =
            Server::answering(format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n")).await;
        let url = server.url("/");
        let exchange = fetch(&fetcher(config(&url)), &url).await.unwrap();
        assert_eq!(exchange.signal_kind(), expect, "{head}");
    }
}
