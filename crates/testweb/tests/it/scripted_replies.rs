//! Tests of what a scripted path sends to the client.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crawl_testweb::{HttpAnswer, RawReplyStep, ReplySequence, ScriptedReply, TestWeb};
use flate2::read::GzDecoder;

use crate::raw_http_client::{get, get_with, talk};

const GET: &str = "GET /x HTTP/1.1\r\nhost: x\r\n\r\n";

fn web(script: impl Into<ReplySequence>) -> TestWeb {
    TestWeb::builder().script(0, "/x", script).start()
}

/// Returns all bytes that a scripted path sends.
fn wire(script: impl Into<ReplySequence>) -> String {
    let web = web(script);
    String::from_utf8_lossy(&talk(web.address(0), GET).unwrap()).into_owned()
}

#[test]
fn a_sequence_repeats_its_last_reply() {
    let busy = HttpAnswer::of(503).header("retry-after", "2");
    let script = ReplySequence::always(busy)
        .then(HttpAnswer::of(429))
        .then(ScriptedReply::usual());
    let web = TestWeb::builder().script(0, "/", script).start();
    let statuses = [(); 4].map(|()| get(web.address(0), "/").status);
    assert_eq!(statuses, [503, 429, 200, 200]);
    let logged: Vec<_> = web.log().iter().map(|entry| entry.status).collect();
    assert_eq!(logged, [Some(503), Some(429), Some(200), Some(200)]);
}

#[test]
fn raw_steps_are_sent_as_scripted() {
    let answer = HttpAnswer::html("<p>abcdef").header("connection", "close");
    assert!(wire(ScriptedReply::garbage()).contains("I speak no HTTP"));
    assert_eq!(wire(ScriptedReply::close()), "");
    let short = wire(ScriptedReply::short_body(&answer, 7));
    assert!(
        short.contains("content-length: 16\r\n") && short.ends_with("<p>abcdef"),
        "{short}"
    );
    assert!(wire(ScriptedReply::bad_chunk()).ends_with("5\r\nhello\r\nxyz\r\nworld\r\n0\r\n\r\n"));
    assert!(wire(ScriptedReply::drip(answer, 2, Duration::from_millis(1))).ends_with("<p>abcdef"));
    assert_eq!(
        wire(ScriptedReply::raw([
            RawReplyStep::Send(b"a".to_vec()),
            RawReplyStep::Send(b"b".to_vec())
        ])),
        "ab"
    );
}

#[test]
fn resets_are_resets() {
    let answer = HttpAnswer::html(&"y".repeat(1000));
    for reply in [
        ScriptedReply::reset(),
        ScriptedReply::reset_in_body(&answer),
    ] {
        let web = web(reply);
        let error = talk(web.address(0), GET).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}

#[test]
fn endless_replies_end_when_the_client_disconnects() {
    for reply in [
        ScriptedReply::endless_body(),
        ScriptedReply::endless_headers(),
    ] {
        let web = web(reply);
        let mut stream = TcpStream::connect(web.address(0)).unwrap();
        stream.write_all(GET.as_bytes()).unwrap();
        let mut bytes = vec![0; 3_000_000];
        stream.read_exact(&mut bytes).unwrap();
        drop(stream);
        assert!(web.wait_for(Duration::from_mins(2), |log| log[0].end_us.is_some()));
    }
}

#[test]
fn silence_ends_with_the_client() {
    for reply in [
        ScriptedReply::silence(),
        ScriptedReply::stall_in_body(&HttpAnswer::html("<p>half of this")),
    ] {
        let web = web(reply);
        let mut stream = TcpStream::connect(web.address(0)).unwrap();
        stream.write_all(GET.as_bytes()).unwrap();
        assert!(web.wait_for(Duration::from_mins(2), |log| log.len() == 1));
        assert_eq!(web.log()[0].end_us, None);
        drop(stream);
        assert!(web.wait_for(Duration::from_mins(2), |log| log[0].end_us.is_some()));
    }
}

#[test]
fn a_gzip_bomb_is_small_on_the_wire() {
    let web = web(ScriptedReply::gzip_bomb(20_000_001));
    let got = get(web.address(0), "/x");
    assert!(got.body.len() < 200_000, "{}", got.body.len());
    let mut decoded = Vec::new();
    GzDecoder::new(&got.body[..])
        .read_to_end(&mut decoded)
        .unwrap();
    assert_eq!(decoded.len(), 20_000_001);
}

#[test]
fn a_late_reply_is_late() {
    let delay = Duration::from_millis(30);
    let latency = Duration::from_millis(20);
    let web = TestWeb::builder()
        .latency_of(0, latency)
        .script(
            0,
            "/x",
            ScriptedReply::from(HttpAnswer::text("a")).after(delay),
        )
        .start();
    get(web.address(0), "/x");
    let entry = &web.log()[0];
    assert!(
        entry.end_us.unwrap() - entry.start_us >= 50_000,
        "{entry:?}"
    );
}

#[test]
fn a_handler_answers_from_the_request() {
    let web = TestWeb::builder()
        .handler(0, |request| {
            let day: u32 = request.path.strip_prefix("/calendar/")?.parse().ok()?;
            Some(HttpAnswer::html(&format!("<a href=/calendar/{}>on</a>", day + 1)).into())
        })
        .start();
    assert_eq!(
        get(web.address(0), "/calendar/41").text(),
        "<a href=/calendar/42>on</a>"
    );
    assert_eq!(get(web.address(0), "/").status, 200);
}

#[test]
fn pages_are_gzipped_for_clients_that_accept_it() {
    let web = TestWeb::builder().pages(30).start();
    let urls = web.truth(crawl_testweb::HostsInScope::Host).fetched;
    let paths = urls
        .iter()
        .filter(|(_, page)| page.status == 200)
        .map(|(url, _)| url);
    let mut coded = 0;
    for path in paths.map(|url| &url[url.rfind(':').unwrap()..]) {
        let path = &path[path.find('/').unwrap()..];
        let plain = get(web.address(0), path);
        let got = get_with(web.address(0), path, "accept-encoding: gzip, br\r\n").unwrap();
        if got.headers.contains_key("content-encoding") {
            coded += 1;
            let mut decoded = Vec::new();
            GzDecoder::new(&got.body[..])
                .read_to_end(&mut decoded)
                .unwrap();
            assert_eq!(decoded, plain.body);
        } else {
            assert_eq!(got.body, plain.body);
        }
    }
    assert!(coded > 5, "{coded}");
}

#[test]
fn rfc9110_13_1_2_a_known_etag_is_answered_by_304() {
    let web = TestWeb::builder().start();
    let etag = get(web.address(0), "/").headers["etag"].clone();
    let got = get_with(web.address(0), "/", &format!("if-none-match: {etag}\r\n")).unwrap();
    assert_eq!((got.status, got.body.len()), (304, 0));
}
