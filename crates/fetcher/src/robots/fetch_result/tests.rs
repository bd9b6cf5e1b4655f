use std::io::Write;

use crawl_scheduler::Tick;
use crawl_weburl::canonicalize;
use http::{HeaderMap, HeaderValue, Version};

use super::*;
use crate::body_memory_pool::BodyMemoryReservation;
use crate::exchange::{SentRequestRecord, TruncationReason, Validators};
use crate::failure_kind::{FailureKind, FailurePhase, FaultyParty};
use crate::robots::TdmReservationCopy;

fn request() -> FetchRequest {
    let url = canonicalize(None, "http://a.example/robots.txt").unwrap();
    FetchRequest::robots(url, Validators::default())
}

fn exchange(status: u16, headers: &[(&'static str, &'static str)], body: &[u8]) -> Exchange {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_static(value));
    }
    Exchange {
        url: request().url,
        sent: SentRequestRecord::default(),
        started: Tick::from_micros(0),
        ended: Tick::from_micros(1),
        first_byte: Duration::ZERO,
        address: None,
        status,
        version: Version::HTTP_11,
        tls: None,
        headers: map,
        body: Bytes::copy_from_slice(body),
        truncated: None,
        challenged: false,
        unmet_signature: None,
        room: BodyMemoryReservation::default(),
    }
}

fn failure(kind: FailureKind) -> ExchangeFailure {
    ExchangeFailure {
        kind,
        phase: FailurePhase::Connect,
        fault: FaultyParty::Host,
        retry: true,
        started: Tick::from_micros(0),
        ended: Tick::from_micros(1),
        address: None,
        detail: String::new(),
        signed: false,
        answer: None,
    }
}

fn summary(answer: &RobotsFetchResult) -> String {
    match answer {
        RobotsFetchResult::Rules { body, status } => {
            format!("rules {status}: {} bytes", body.len())
        }
        RobotsFetchResult::None { status } => format!("none {status}"),
        RobotsFetchResult::NotModified => "not modified".to_owned(),
        RobotsFetchResult::Redirect { to, status } => format!("redirect {status}: {to}"),
        RobotsFetchResult::Unreachable {
            why,
            status,
            retry_after,
        } => format!("unreachable: {why} {status:?} {retry_after:?}"),
    }
}

#[track_caller]
fn check(status: u16, headers: &[(&'static str, &'static str)], expect: &str) {
    let answer = RobotsFetchResult::of(&request(), &Ok(exchange(status, headers, b"rules")), 0);
    assert_eq!(summary(&answer), expect);
}

#[test]
fn rfc9309_2_3_1_1_success() {
    check(200, &[], "rules 200: 5 bytes");
    check(204, &[], "rules 204: 5 bytes");
    check(299, &[], "rules 299: 5 bytes");
    // An HTML page is parsed like any other robots.txt.
    check(200, &[("content-type", "text/html")], "rules 200: 5 bytes");
}

#[test]
fn rfc9309_2_3_1_2_redirects() {
    for status in [300, 301, 302, 303, 307, 308] {
        check(
            status,
            &[("location", "//b.example/r.txt")],
            &format!("redirect {status}: http://b.example/r.txt"),
        );
    }
    check(
        301,
        &[("location", "/other")],
        "redirect 301: http://a.example/other",
    );
}

#[test]
fn a_redirect_without_a_usable_target_means_no_file() {
    check(301, &[], "none 301");
    check(301, &[("location", "mailto:a@b.example")], "none 301");
}

/// A 304 without validators, a 300 without a choice and a 305 say nothing about the rules, so the
/// last good copy stays in force.
#[test]
fn a_3xx_that_is_no_redirect_is_unreachable() {
    check(300, &[], "unreachable: status Some(300) None");
    for status in [304, 305, 306, 309, 399] {
        let expect = format!("unreachable: status Some({status}) None");
        check(status, &[("location", "/x")], &expect);
    }
}

#[test]
fn rfc9309_2_3_1_2_the_sixth_redirect_is_not_followed() {
    let result = Ok(exchange(302, &[("location", "/next")], b""));
    let at = |hops| summary(&RobotsFetchResult::of(&request(), &result, hops));
    assert_eq!(at(4), "redirect 302: http://a.example/next");
    assert_eq!(at(5), "none 302");
}

#[test]
fn rfc9309_2_3_1_3_unavailable() {
    for status in [400, 401, 403, 404, 410, 418, 451, 499] {
        check(status, &[], &format!("none {status}"));
    }
}

#[test]
fn rfc9309_2_3_1_4_unreachable() {
    check(429, &[], "unreachable: status Some(429) None");
    check(500, &[], "unreachable: status Some(500) None");
    check(
        503,
        &[("retry-after", "7")],
        "unreachable: status Some(503) Some(7s)",
    );
    check(599, &[], "unreachable: status Some(599) None");
    check(999, &[], "unreachable: status Some(999) None");
    check(101, &[], "unreachable: status Some(101) None");
    for kind in [
        FailureKind::DnsFailed,
        FailureKind::Timeout,
        FailureKind::TlsFailed,
        FailureKind::ShortBody,
    ] {
        let answer = RobotsFetchResult::of(&request(), &Err(failure(kind)), 0);
        assert_eq!(
            summary(&answer),
            format!("unreachable: {} None None", kind.name())
        );
    }
}

#[test]
fn a_broken_encoding_is_unreachable() {
    let gzip = [("content-encoding", "gzip")];
    check(200, &gzip, "unreachable: encoding Some(200) None");
    let unknown = [("content-encoding", "compress")];
    check(200, &unknown, "unreachable: encoding Some(200) None");
}

#[test]
fn gzip_is_unpacked_even_if_no_header_field_names_it() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(b"User-agent: *\n").unwrap();
    let mut packed = encoder.finish().unwrap();
    let answer = |body: &[u8]| {
        let exchange = exchange(200, &[], body);
        summary(&RobotsFetchResult::of(&request(), &Ok(exchange), 0))
    };
    assert_eq!(answer(&packed), "rules 200: 14 bytes");
    packed.truncate(12);
    assert_eq!(answer(&packed), "unreachable: encoding Some(200) None");
}

#[test]
fn not_modified_only_after_a_request_with_validators() {
    let mut request = request();
    let result = Ok(exchange(304, &[], b""));
    assert_eq!(
        summary(&RobotsFetchResult::of(&request, &result, 0)),
        "unreachable: status Some(304) None"
    );
    request.validators.etag = Some("\"1\"".to_owned());
    assert_eq!(
        summary(&RobotsFetchResult::of(&request, &result, 0)),
        "not modified"
    );
}

#[test]
fn rfc9309_2_5_a_long_file_is_cut_and_kept() {
    let max_bytes = usize::try_from(MAX_ROBOTS_BYTES).unwrap();
    let line = b"Disallow: /a\n".repeat(200_000);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&line).unwrap();
    let packed = encoder.finish().unwrap();
    let headers = [("content-encoding", "gzip")];
    let answer = RobotsFetchResult::of(&request(), &Ok(exchange(200, &headers, &packed)), 0);
    assert_eq!(summary(&answer), format!("rules 200: {max_bytes} bytes"));

    // The body limit cuts the encoded body in the middle.
    let mut cut = exchange(200, &headers, &packed[..packed.len() / 10]);
    let answer = RobotsFetchResult::of(&request(), &Ok(cut.clone()), 0);
    assert_eq!(summary(&answer), "unreachable: encoding Some(200) None");
    cut.truncated = Some(TruncationReason::Length);
    let answer = RobotsFetchResult::of(&request(), &Ok(cut), 0);
    assert!(summary(&answer).starts_with("rules 200: "));
}

/// A demand for a signature doesn't show that the file is missing: the next request for the file
/// is signed, and may get it.
#[test]
fn a_challenge_on_tdmrep_json_is_not_the_file() {
    let refused = exchange(403, &[], b"");
    let challenged = Exchange {
        challenged: true,
        ..exchange(403, &[], b"")
    };
    assert_eq!(
        TdmReservationCopy::of(&Ok(refused)),
        Some(TdmReservationCopy::None)
    );
    assert_eq!(TdmReservationCopy::of(&Ok(challenged)), None);
}
