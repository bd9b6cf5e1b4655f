//! Tests of every kind of failure, by name.

use std::time::Duration;

use crawl_fetcher::{
    ExchangeFailure, FailureKind, FailurePhase, FaultyParty, FetchConfig, FetchRequest, FormBody,
    TruncationReason,
};
use crawl_scheduler::OutcomeKind;
use crawl_weburl::canonicalize;

use crate::scripted_server::{
    Act, Server, config, fetch, fetch_with, fetcher, permit, unused_address,
};

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort";
const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

fn summary(failure: &ExchangeFailure) -> String {
    let signal = match failure.signal_kind() {
        OutcomeKind::NoConnection => "no connection",
        OutcomeKind::UrlFailed => "url failed",
        other => panic!("a failure is no answer: {other:?}"),
    };
    assert!(!failure.detail.is_empty());
    assert!(failure.started <= failure.ended);
    let again = if failure.retry {
        "again"
    } else {
        "never again"
    };
    format!(
        "{} in {:?}, fault {:?}, {again}, {signal}",
        failure.name(),
        failure.phase,
        failure.fault
    )
}

async fn check(script: Vec<Act>, expect: &str) {
    let server = Server::start(move |_| script.clone()).await;
    let url = server.url("/");
    let failure = fetch(&fetcher(config(&url)), &url).await.unwrap_err();
    assert_eq!(summary(&failure), expect, "{failure}");
    assert_eq!(server.heads().len(), 1, "one permit is one request");
    let has_address = failure.phase == FailurePhase::Body;
    assert_eq!(failure.address, has_address.then_some(server.address));
}

fn send(text: impl Into<Vec<u8>>) -> Act {
    Act::Send(text.into())
}

#[tokio::test]
async fn before_the_head() {
    let expect = "reset in FirstByte, fault Url, again, url failed";
    check(vec![Act::Reset], expect).await;
    let expect = "empty_answer in FirstByte, fault Url, again, url failed";
    check(vec![Act::Close], expect).await;
    check(
        vec![send("HTTP/1.1 200 OK\r\nContent-Le"), Act::Close],
        expect,
    )
    .await;
    let expect = "bad_response in FirstByte, fault Url, again, url failed";
    check(vec![send("220 mail.example ESMTP\r\n\r\n")], expect).await;
    check(vec![send("HTTP/1.1 2x0 OK\r\n\r\n")], expect).await;
}

/// RFC 9112 section 9.3.1: a server may close a kept connection at any time.
#[tokio::test]
async fn a_host_that_closes_a_kept_connection_gets_new_connections() {
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    for second in [Act::Close, Act::Reset] {
        let server = Server::start(move |number| match number {
            1 => vec![second.clone()],
            _ => vec![send(OK)],
        })
        .await;
        let url = server.url("/");
        let fetcher = fetcher(config(&url));
        fetch(&fetcher, &url).await.unwrap();
        let failure = fetch(&fetcher, &url).await.unwrap_err();
        assert!(failure.retry, "{failure}");
        for connections in [2, 3] {
            fetch(&fetcher, &url).await.unwrap();
            assert_eq!(server.connections(), connections);
        }
        assert_eq!(server.heads().len(), 4);
    }
}

#[tokio::test]
async fn a_request_may_need_a_new_connection() {
    let server = Server::answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    let url = server.url("/");
    let fetcher = fetcher(config(&url));
    for (needs_new_connection, connections) in [(false, 1), (true, 2), (false, 2)] {
        let request = FetchRequest {
            needs_new_connection,
            ..FetchRequest::page(url.clone())
        };
        fetch_with(&fetcher, request).await.unwrap();
        assert_eq!(server.connections(), connections);
    }
}

/// RFC 9110 section 9.2.2: a POST may not be sent again.
#[tokio::test]
async fn a_post_does_not_depend_on_a_kept_connection() {
    let server = Server::answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    let url = server.url("/");
    let fetcher = fetcher(config(&url));
    for (form, connections) in [(None, 1), (Some(""), 2), (None, 2)] {
        let request = FetchRequest {
            form: form.map(|form| FormBody::from_encoded(form.to_owned())),
            ..FetchRequest::page(url.clone())
        };
        fetch_with(&fetcher, request).await.unwrap();
        assert_eq!(server.connections(), connections);
    }
}

#[tokio::test]
async fn a_head_is_bounded() {
    let expect = "headers_too_large in FirstByte, fault Url, never again, url failed";
    let within = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "b".repeat(300_000));
    let server = Server::answering(within).await;
    let url = server.url("/");
    let failure = fetch(&fetcher(config(&url)), &url).await.unwrap_err();
    assert_eq!(summary(&failure), expect);
    assert_eq!(
        failure.detail,
        "300001 bytes of header fields, the maximum is 262144"
    );
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(300));
    check(vec![send(many)], expect).await;
    let big = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "b".repeat(1_000_000));
    check(vec![send(big)], expect).await;
    let endless = vec![
        send("HTTP/1.1 200 OK\r\nA: "),
        Act::Endless(vec![b'b'; 1000]),
    ];
    check(endless, expect).await;
}

#[tokio::test]
async fn in_the_body() {
    let expect = "short_body in Body, fault Url, again, url failed";
    check(vec![send(HEAD), Act::Close], expect).await;
    check(
        vec![send(format!("{CHUNKED}5\r\nhello\r\n")), Act::Close],
        expect,
    )
    .await;
    check(
        vec![send(format!("{CHUNKED}50\r\nhello")), Act::Close],
        expect,
    )
    .await;
    let expect = "reset in Body, fault Url, again, url failed";
    check(vec![send(HEAD), Act::Reset], expect).await;
    let expect = "bad_body in Body, fault Url, again, url failed";
    check(vec![send(format!("{CHUNKED}xyz\r\nhello\r\n"))], expect).await;
    check(vec![send(format!("{CHUNKED}5\r\nhelloworld\r\n"))], expect).await;
}

/// The fetcher requests no transfer coding, and the client undoes none but chunked.
#[tokio::test]
async fn rfc9112_7_an_unrequested_transfer_coding() {
    for coding in [
        "gzip, chunked",
        "gzip",
        "Foo",
        "chunked, gzip",
        "chunked, identity",
    ] {
        let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n");
        let script = vec![send(head + "5\r\nhello\r\n0\r\n\r\n"), Act::Close];
        let expect = "bad_body in Body, fault Url, again, url failed";
        check(script, expect).await;
    }
}

/// A server that sends the coding `identity` of RFC 2616 keeps the connection open after the
/// announced bytes.
#[tokio::test]
async fn a_length_applies_despite_the_transfer_coding_identity() {
    let head = |length: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    for (length, sent, body) in [
        ("5", "hello", "hello"),
        ("5", "hello, more", "hello"),
        ("0", "", ""),
    ] {
        let script = vec![send(head(length) + sent), Act::Stall];
        let server = Server::start(move |_| script.clone()).await;
        let url = server.url("/");
        let exchange = fetch(&fetcher(config(&url)), &url).await.unwrap();
        assert_eq!(
            (&*exchange.body, exchange.truncated),
            (body.as_bytes(), None),
            "{sent}"
        );
    }
    let expect = "short_body in Body, fault Url, again, url failed";
    check(vec![send(head("50") + "hello"), Act::Close], expect).await;
    // Without a usable length, the end of the connection ends the body.
    let script = vec![send(head("many") + "hello"), Act::Close];
    let server = Server::start(move |_| script.clone()).await;
    let url = server.url("/");
    let exchange = fetch(&fetcher(config(&url)), &url).await;
    assert_eq!(&*exchange.unwrap().body, b"hello");
}

#[tokio::test]
async fn rfc9110_15_3_7_an_unrequested_part() {
    for field in [
        "Content-Range: bytes 0-4/50",
        "Content-Range: bytes 45-49/50",
        "Content-Range: bytes 0-4/*",
        "Content-Range: bytes */50",
        "Content-Range: lines 0-4/5",
        "Content-Range: hello",
        "Content-Type: Multipart/Byteranges; boundary=x",
    ] {
        let head = format!("HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n{field}\r\n\r\n");
        let expect = "short_body in Body, fault Url, again, url failed";
        check(vec![send(head + "hello")], expect).await;
    }
}

#[tokio::test]
async fn whole_bodies_with_odd_heads() {
    for head in [
        "206 Partial Content\r\nContent-Length: 5\r\nContent-Range: bytes 0-4/5\r\n\r\nhello",
        "206 Partial Content\r\nContent-Length: 5\r\n\r\nhello",
        "200 OK\r\nContent-Length: 5\r\nContent-Range: bytes 0-4/50\r\n\r\nhello",
        "200 OK\r\nTransfer-Encoding: identity\r\n\r\nhello",
        "200 OK\r\nTransfer-Encoding: Identity, Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ] {
        let script = vec![send(format!("HTTP/1.1 {head}")), Act::Close];
        let server = Server::start(move |_| script.clone()).await;
        let url = server.url("/");
        let exchange = fetch(&fetcher(config(&url)), &url).await.unwrap();
        assert_eq!(
            (&*exchange.body, exchange.truncated),
            (&b"hello"[..], None),
            "{head}"
        );
    }
}

#[tokio::test]
async fn in_time() {
    let short = Duration::from_millis(900);
    // Wait long enough for even a busy machine to send the preceding bytes.
    let middle = Duration::from_secs(5);
    let long = Duration::from_mins(10);
    for (limits, script, expect) in [
        (
            [short, long, long],
            vec![Act::Stall],
            "timeout in FirstByte: not finished within 0.9 s",
        ),
        (
            [middle, long, long],
            vec![send(HEAD), Act::Stall],
            "timeout in Body: not finished within 5 s",
        ),
        (
            [long, short, long],
            vec![Act::Stall],
            "first_byte_timeout in FirstByte: no answer within 0.9 s",
        ),
        (
            [long, short, long],
            vec![send("HTTP/1.1 200 OK\r\nA: b\r\n"), Act::Stall],
            "first_byte_timeout in FirstByte: no answer within 0.9 s",
        ),
        // Interim answers don't extend the time for the final answer.
        (
            [long, short, long],
            vec![Act::Endless(HINTS.repeat(100).into())],
            "first_byte_timeout in FirstByte: no answer within 0.9 s",
        ),
        (
            [short, long, long],
            vec![Act::Endless(HINTS.repeat(100).into())],
            "timeout in FirstByte: not finished within 0.9 s",
        ),
        (
            [long, long, short],
            vec![send(HEAD), Act::Stall],
            "idle_timeout in Body: no data for 0.9 s",
        ),
    ] {
        let server = Server::start(move |_| script.clone()).await;
        let url = server.url("/");
        let [timeout, first_byte_timeout, idle_timeout] = limits;
        let config = FetchConfig {
            timeout,
            first_byte_timeout,
            idle_timeout,
            ..config(&url)
        };
        let failure = fetch(&fetcher(config), &url).await.unwrap_err();
        let (name, phase) = (failure.name(), failure.phase);
        assert_eq!(format!("{name} in {phase:?}: {}", failure.detail), expect);
        assert!(summary(&failure).ends_with("fault Url, again, url failed"));
        assert_eq!(failure.answer.is_some(), phase == FailurePhase::Body);
    }
}

#[tokio::test]
async fn a_failed_body_keeps_the_part_that_arrived() {
    for (script, truncated, body) in [
        (
            vec![send(HEAD), Act::Close],
            TruncationReason::Disconnect(FailureKind::ShortBody),
            "short",
        ),
        (
            vec![send(format!("{CHUNKED}5\r\nhello\r\nxyz\r\n"))],
            TruncationReason::Disconnect(FailureKind::BadBody),
            "hello",
        ),
        (
            vec![send(HEAD), Act::Stall],
            TruncationReason::Time(FailureKind::IdleTimeout),
            "short",
        ),
    ] {
        let server = Server::start(move |_| script.clone()).await;
        let url = server.url("/");
        let config = FetchConfig {
            idle_timeout: Duration::from_millis(900),
            ..config(&url)
        };
        let failure = fetch(&fetcher(config), &url).await.unwrap_err();
        let answer = failure.answer.as_ref().unwrap();
        assert_eq!(answer.truncated, Some(truncated));
        assert_eq!(truncated.name(), failure.name());
        assert_eq!((answer.status, &answer.body[..]), (200, body.as_bytes()));
        assert_eq!(
            (answer.started, answer.ended),
            (failure.started, failure.ended)
        );
    }
}

#[tokio::test]
async fn long_bodies_wait_for_room_and_short_ones_do_not() {
    let server = Server::start(|number| {
        let (length, bytes) = match number {
            0 | 2 => (400 << 10, 300 << 10),
            _ => (5, 5),
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        let mut script = vec![send(head), Act::Send(vec![b'x'; bytes])];
        if length > bytes {
            script.push(Act::Stall);
        }
        script
    })
    .await;
    let url = server.url("/");
    let config = FetchConfig {
        body_memory: 500 << 10,
        idle_timeout: Duration::from_millis(900),
        timeout: Duration::from_secs(10),
        ..config(&url)
    };
    let fetcher = fetcher(config);
    let first = fetch(&fetcher, &url).await.unwrap_err();
    assert_eq!(first.name(), "idle_timeout");
    let short = fetch(&fetcher, &url).await.unwrap();
    assert_eq!(short.body, "xxxxx");
    let third = fetch(&fetcher, &url).await.unwrap_err();
    assert_eq!(
        (third.name(), third.fault),
        ("no_room", FaultyParty::Operator)
    );
    assert!(third.retry);
    let answer = third.answer.as_ref().unwrap();
    assert_eq!(
        answer.truncated,
        Some(TruncationReason::Time(FailureKind::NoRoom))
    );
    assert!(answer.body.len() <= 256 << 10, "{}", answer.body.len());
    drop(first);
    let fourth = fetch(&fetcher, &url).await.unwrap();
    assert_eq!(fourth.body, "xxxxx");
}

#[tokio::test]
async fn no_connection() {
    let (_nobody, address) = unused_address();
    let url = canonicalize(None, &format!("http://{address}/")).unwrap();
    let failure = fetch(&fetcher(config(&url)), &url).await.unwrap_err();
    assert_eq!(
        summary(&failure),
        "connect_refused in Connect, fault Host, again, no connection"
    );

    // A label may have at most 63 bytes, so the URL is refused without a look-up.
    let url = canonicalize(None, &format!("http://{}.test/", "a".repeat(64))).unwrap();
    let fetcher = fetcher(config(&url));
    assert!(fetcher.refusal(&url).is_some());
    let failure = fetch(&fetcher, &url).await.unwrap_err();
    assert_eq!(
        summary(&failure),
        "name_too_long in Dns, fault Url, never again, url failed"
    );
}

#[tokio::test]
async fn no_tls() {
    let server = Server::start(|_| vec![Act::Stall]).await;
    let url = canonicalize(None, &format!("https://{}/", server.address)).unwrap();
    let config = FetchConfig {
        connect_timeout: Duration::from_millis(50),
        ..config(&url)
    };
    let failure = fetch(&fetcher(config), &url).await.unwrap_err();
    assert_eq!(
        summary(&failure),
        "connect_timeout in Connect, fault Host, again, no connection"
    );
}

#[tokio::test]
async fn a_permit_is_for_its_host() {
    let server = Server::start(|_| vec![Act::Stall]).await;
    let url = server.url("/");
    let elsewhere = canonicalize(None, "http://other.example/").unwrap();
    let fetcher = fetcher(config(&url));
    let (spent, result) = fetcher
        .fetch(permit(&elsewhere), FetchRequest::page(url))
        .await;
    assert_eq!(spent.host().as_str(), "other.example");
    let failure = result.unwrap_err();
    assert_eq!(
        (failure.name(), failure.fault),
        ("wrong_permit", FaultyParty::Operator)
    );
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn give_up_ends_exchanges_at_once() {
    let server = Server::start(|_| vec![send(HEAD), Act::Stall]).await;
    let url = server.url("/");
    let fetcher = fetcher(config(&url));
    let give_up = async { fetcher.give_up() };
    let (under_way, ()) = tokio::join!(fetch(&fetcher, &url), give_up);
    for result in [under_way, fetch(&fetcher, &url).await] {
        let failure = result.unwrap_err();
        assert_eq!(
            (failure.name(), failure.fault),
            ("given_up", FaultyParty::Operator)
        );
        assert_eq!(failure.signal_kind(), OutcomeKind::Answered);
        assert!(failure.retry);
    }
}
