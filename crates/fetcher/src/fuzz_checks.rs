//! The body of the fuzz target for responses: checks what must hold for any bytes that a server
//! sends.

#![allow(clippy::unwrap_used, reason = "a check that fails should panic")]

#[cfg(test)]
#[path = "../../fuzz/src/run_without_fuzzer.rs"]
mod run_without_fuzzer;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use crawl_coding::{DecodeEnd, DecodeLimits, decode, decode_gzip};
use crawl_scheduler::Tick;
use crawl_weburl::{CanonicalUrl, canonicalize};
use http::header::{CONTENT_ENCODING, SET_COOKIE};
use http::{HeaderMap, Request};
use hyper::client::conn::http1;
use hyper::rt::{Read, ReadBufCursor, Write};
use reqwest::{Body, Response};
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use crate::body_framing::BodyFraming;
use crate::body_memory_pool::{BodyMemoryPool, BodyMemoryReservation};
use crate::body_reader::{BodyEnd, BodyLimits, ReceivedBody, collect};
use crate::exchange::{Exchange, FetchRequest, SentRequestRecord, TruncationReason, Validators};
use crate::failure_kind::FailureKind;
use crate::http_client_setup::MAX_HEADER_FIELDS;
use crate::interstitial::{InterstitialSigns, interstitial};
use crate::rate_limit_fields::rate_limit;
use crate::retry_after::retry_after;
use crate::robots::{MAX_ROBOTS_BYTES, RobotsFetchResult, RobotsTimeLimits, lifetime};
use crate::sessions::SiteSessions;
use crate::signature_demands::demanded;

/// The time of an answer: 2026-11-20.
const NOW: Tick = Tick::from_micros(1_795_132_800_000_000);

/// Checks the answer of a server. The first byte of `data` is the maximum number of body bytes to
/// keep (255 stands for 1 MiB), the second byte sets the length of the pieces in which the answer
/// arrives, and the rest is the answer.
pub fn http_responses(data: &[u8]) {
    let [limit, piece, answer @ ..] = data else {
        return;
    };
    let limit = match *limit {
        u8::MAX => 1 << 20,
        limit => u64::from(limit),
    };
    let whole = read(answer, answer.len().max(1), limit);
    let in_pieces = read(answer, 1 + usize::from(*piece), limit);
    assert_eq!(whole.is_some(), in_pieces.is_some());
    let Some((exchange, kind)) = whole else {
        return;
    };
    let (other, other_kind) = in_pieces.unwrap();
    assert_eq!(exchange.status, other.status);
    assert_eq!(exchange.headers, other.headers);
    assert_eq!(exchange.truncated, other.truncated);
    assert_eq!((&exchange.body, kind), (&other.body, other_kind));
    assert!(exchange.body.len() as u64 <= limit);
    let is_cut = exchange.truncated == Some(TruncationReason::Length);
    assert!(!is_cut || exchange.body.len() as u64 == limit);
    check_headers(&exchange);
    check_body(&exchange);
    check_robots(&exchange);
    check_cookies(&exchange);
}

/// A connection to a server that sends everything as soon as it gets a byte of a request.
struct ScriptedConnection {
    answer: Bytes,
    piece: usize,
    is_asked: bool,
    reader: Option<Waker>,
}

impl Read for ScriptedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.is_asked {
            self.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        let length = self.answer.len().min(self.piece).min(buffer.remaining());
        buffer.put_slice(&self.answer.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl Write for ScriptedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_asked = true;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Reads an answer with the settings of the fetcher's client. `None` if its head is incomplete.
fn read(answer: &[u8], piece: usize, limit: u64) -> Option<(Exchange, Option<FailureKind>)> {
    thread_local! {
        static RUNTIME: Runtime = Builder::new_current_thread().enable_time().build().unwrap();
    }
    let server = ScriptedConnection {
        answer: Bytes::copy_from_slice(answer),
        piece,
        is_asked: false,
        reader: None,
    };
    RUNTIME.with(|runtime| runtime.block_on(exchange(server, limit)))
}

async fn exchange(
    server: ScriptedConnection,
    limit: u64,
) -> Option<(Exchange, Option<FailureKind>)> {
    let mut client = http1::Builder::new();
    client
        .title_case_headers(true)
        .max_headers(MAX_HEADER_FIELDS)
        .ignore_invalid_headers_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_spaces_after_header_name_in_responses(true);
    let (mut sender, connection) = client.handshake::<_, Body>(server).await.unwrap();
    let request = Request::get("/dir/page").header("host", "www.shop.example");
    let request = request.body(Body::default()).unwrap();
    let received = async {
        let response = sender.send_request(request).await.ok()?;
        Some(collected(Response::from(response.map(Body::wrap)), limit).await)
    };
    tokio::select! {
        biased;
        received = received => received,
        never = async { let _ = connection.await; std::future::pending().await } => never,
    }
}

async fn collected(mut response: Response, limit: u64) -> (Exchange, Option<FailureKind>) {
    let total = Duration::from_secs(600);
    let rooms = BodyMemoryPool::new(1 << 20);
    let bounds = BodyLimits {
        bytes: limit,
        idle: total,
        deadline: Instant::now() + total,
        total,
        rooms: &rooms,
    };
    let mut exchange = Exchange {
        url: canonicalize(None, "https://www.shop.example/dir/page").unwrap(),
        sent: SentRequestRecord::default(),
        started: NOW,
        ended: NOW,
        first_byte: Duration::ZERO,
        address: None,
        status: response.status().as_u16(),
        version: response.version(),
        tls: None,
        headers: HeaderMap::new(),
        body: Bytes::new(),
        truncated: None,
        challenged: false,
        unmet_signature: None,
        room: BodyMemoryReservation::default(),
    };
    exchange.headers = std::mem::take(response.headers_mut());
    let framing = BodyFraming::of(&exchange);
    let ReceivedBody { body, end, .. } = collect(response, framing, bounds).await;
    exchange.body = body;
    let kind = match end {
        BodyEnd::Whole => None,
        BodyEnd::Cut => {
            exchange.truncated = Some(TruncationReason::Length);
            None
        }
        BodyEnd::Broken(finding) => {
            exchange.truncated = Some(TruncationReason::by(finding.kind));
            Some(finding.kind)
        }
    };
    (exchange, kind)
}

fn check_headers(exchange: &Exchange) {
    let headers = &exchange.headers;
    assert!(headers.len() <= MAX_HEADER_FIELDS);
    let times = RobotsTimeLimits::default();
    let valid = lifetime(headers, &times, NOW);
    assert!(!valid.is_zero() && valid <= times.most);
    let wait = retry_after(headers, NOW);
    let mut more = headers.clone();
    more.append("retry-after", "7".parse().unwrap());
    let seven = Duration::from_secs(7);
    assert_eq!(
        retry_after(&more, NOW),
        Some(wait.unwrap_or_default().max(seven))
    );
    if let Some(limit) = rate_limit(headers, NOW) {
        assert!(limit.gap.is_none_or(|gap| !gap.is_zero()));
        assert!(limit.wait.is_none_or(|wait| !wait.is_zero()));
    }
    let demand = demanded(exchange.status, headers);
    assert!(demand.is_none() || headers.contains_key("accept-signature"));
    let _ = Validators::of(headers);
    let _ = (exchange.redirect_target(), exchange.signal());
    let markup = String::from_utf8_lossy(&exchange.body).to_lowercase();
    let page = InterstitialSigns {
        title: markup.get(..20).unwrap_or_default(),
        passwords: markup.matches("password").count(),
        markup: &markup,
        ..InterstitialSigns::default()
    };
    let _ = interstitial(exchange.status, headers, &page);
}

/// Checks that a body is decoded within limits, and that a lower limit only shortens the decoded
/// body.
fn check_body(exchange: &Exchange) {
    let limits = |bytes, ratio| DecodeLimits {
        bytes,
        ratio,
        ratio_from: 64,
    };
    let codings = || exchange.headers.get_all(CONTENT_ENCODING);
    let long = decode(codings(), &exchange.body, &limits(1 << 16, 250));
    for limits in [limits(100, 250), limits(1 << 16, 2)] {
        let short = decode(codings(), &exchange.body, &limits);
        assert!(long.bytes.starts_with(&short.bytes) || short.end == long.end);
        if let DecodeEnd::Truncated { at, .. } = short.end {
            assert_eq!(short.bytes.len(), at);
            assert!(at <= limits.bytes.max(limits.ratio_from));
        } else {
            assert_eq!(short, long);
        }
    }
    let file = decode_gzip(&exchange.body, &limits(1 << 16, 250));
    let is_gzip = exchange.body.starts_with(b"\x1f\x8b");
    assert!(is_gzip || file.bytes == exchange.body);
}

fn check_robots(exchange: &Exchange) {
    let request = FetchRequest::robots(exchange.url.clone(), Validators::default());
    let result = Ok(exchange.clone());
    match RobotsFetchResult::of(&request, &result, 0) {
        RobotsFetchResult::Rules { body, status } => {
            assert!(body.len() as u64 <= MAX_ROBOTS_BYTES && status / 100 == 2);
        }
        RobotsFetchResult::None { status } => {
            assert!(matches!(status, 300..=303 | 307 | 308 | 400..=428 | 430..=499));
        }
        RobotsFetchResult::NotModified => panic!("there were no validators"),
        RobotsFetchResult::Redirect { status, .. } => assert!((300..=308).contains(&status)),
        RobotsFetchResult::Unreachable { status, .. } => assert_eq!(status, Some(exchange.status)),
    }
}

/// Checks that cookies are sent only to their site, are redacted in the answer, and survive storing
/// and restoring the session.
fn check_cookies(exchange: &Exchange) {
    let site = "shop.example";
    let sessions = || SiteSessions::new([(site, false)]).unwrap();
    let received = sessions();
    let mut headers = exchange.headers.clone();
    received.receive(&exchange.url, &mut headers, NOW);
    for field in headers.get_all(SET_COOKIE) {
        let field = String::from_utf8_lossy(field.as_bytes()).into_owned();
        assert!(field.contains("[redacted]"), "{field:?}");
    }
    let other_site = canonicalize(None, "https://www.example/dir/page").unwrap();
    assert!(received.fields(&other_site, false, NOW).is_empty());
    let fields = |of: &SiteSessions, url: &CanonicalUrl| of.fields(url, false, NOW);
    let Some((_, stored)) = received.unsaved().pop() else {
        assert!(!exchange.headers.contains_key(SET_COOKIE));
        return;
    };
    let restored = sessions();
    restored.restore(site, &stored, NOW);
    for url in [
        "https://www.shop.example/dir/page",
        "https://shop.example/",
        "http://www.shop.example/dir/",
    ] {
        let url = canonicalize(None, url).unwrap();
        assert_eq!(fields(&restored, &url), fields(&received, &url), "{url}");
    }
}

#[cfg(test)]
mod tests {
    use super::run_without_fuzzer::run_without_fuzzer;

    #[test]
    fn any_answer_is_read() {
        run_without_fuzzer("http_responses", 1_000, super::http_responses);
    }
}
