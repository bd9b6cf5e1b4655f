use std::fs;
use std::time::Duration;

use crawl_archive::rows::RequestRow;
use crawl_archive::{
    ArchiveOptions, ArchiveWriter, Capture, CaptureEncoder, CaptureMetadata, CapturedRequest,
    RecordIds, Timestamp, WarcTruncation,
};
use crawl_fetcher::{FailureKind, FetchRequest, TruncationReason};
use crawl_policy::ProductToken;
use crawl_scheduler::Tick;
use crawl_weburl::canonicalize;
use http::{HeaderMap, HeaderValue, Version};

use super::super::recorded_crawl::{RecordedCrawl, tick};
use super::{
    ArchivedAnswers, MissingArchiveAnswerCounts, ReplayDifference, ReplayTimingMode, headers,
};
use crate::config::Config;

const START: u64 = 1_795_000_000_000;
const URL: &str = "http://a.example/";

fn row(start: u64, status: Option<u16>, failure: Option<&str>) -> RequestRow {
    RequestRow {
        url: URL.to_owned(),
        host: "a.example".to_owned(),
        address: Some("192.0.2.7".to_owned()),
        purpose: "page".to_owned(),
        start: START + start,
        end: START + start + 70,
        status,
        failure: failure.map(str::to_owned),
        gap_asked: 1000,
        why: "delay".to_owned(),
        wait_asked: (status == Some(503)).then_some(1_500),
        after: None,
        signed: false,
        challenged: false,
        unmet_signature: None,
        method: None,
        via: None,
        robots: None,
        worker: None,
    }
}

/// An archived answer: when its request was sent, its body, and how the body was cut.
type Archived = (u64, &'static str, Option<WarcTruncation>);

/// Returns the answers of a crawl that sent the requests in `rows` and archived the answers in
/// `archived`.
fn answers(
    rows: &[RequestRow],
    archived: &[Archived],
    timing: ReplayTimingMode,
) -> ArchivedAnswers {
    let dir = tempfile::tempdir().unwrap().keep();
    let mut archive =
        ArchiveWriter::open(&dir, ArchiveOptions::default(), &Default::default()).unwrap();
    let url = canonicalize(None, URL).unwrap();
    let mut fields = HeaderMap::new();
    fields.insert("content-length", HeaderValue::from_static("999"));
    let status_at = |start| {
        let row = rows.iter().find(|row| row.start == start);
        row.and_then(|row| row.status).unwrap_or(200)
    };
    for (number, (start, body, truncated)) in archived.iter().enumerate() {
        let capture = Capture {
            url: &url,
            started: Timestamp::from_micros((START + start) * 1000 + 123),
            millis: 70,
            address: None,
            protocol: Version::HTTP_11,
            tls: None,
            request: CapturedRequest {
                method: "GET",
                headers: &[],
                body: &[],
            },
            status: status_at(START + start),
            reason: None,
            headers: &fields,
            body: body.as_bytes(),
            truncated: *truncated,
            revisit: None,
            about: CaptureMetadata::default(),
        };
        let encoded =
            CaptureEncoder::default().encode(&capture, &RecordIds::numbered(number as u64));
        archive.append(&encoded).unwrap();
    }
    archive.sync().unwrap();
    let lines: String = rows
        .iter()
        .map(|row| serde_json::to_string(row).unwrap() + "\n")
        .collect();
    fs::write(dir.join("requests.jsonl"), lines).unwrap();
    let agent = ProductToken::new("crawl").unwrap();
    let mut config = Config::new(agent, "0.0", None, Vec::new(), &dir);
    config.fetch.max_body = 10;
    ArchivedAnswers::new(RecordedCrawl::open(&dir).unwrap(), timing, &config)
}

/// Sends a request one day after the last recorded one. Returns a description of its answer, its
/// body and how long it took.
fn result_of(answers: &mut ArchivedAnswers, path: &str) -> String {
    let now = tick(START) + Duration::from_secs(86_400);
    let url = canonicalize(None, &format!("http://a.example{path}")).unwrap();
    let elapsed = |since: Tick| since.since(now).as_millis();
    let request = FetchRequest::page(url);
    let pending = answers.begin(&request, now);
    match answers.end(&request, &pending) {
        Ok(found) => {
            let body = String::from_utf8_lossy(&found.body).into_owned();
            let wait = found.headers.get("retry-after");
            let wait = wait.map(|wait| wait.to_str().unwrap().to_owned());
            let cut = found.truncated.map(TruncationReason::name);
            format!(
                "{} {body:?} {cut:?} {wait:?} {}",
                found.status,
                elapsed(found.ended)
            )
        }
        Err(failure) => {
            let part = failure.answer.as_ref().map(|part| part.body.len());
            format!("{} {part:?} {}", failure.name(), elapsed(failure.ended))
        }
    }
}

#[test]
fn answers_are_read_from_the_archive_in_order() {
    let rows = [
        row(0, Some(503), None),
        row(2_000, None, Some("timeout")),
        row(4_000, Some(200), None),
        // This request was sent within the same second as the one in the previous row.
        row(4_500, Some(200), None),
        row(6_000, None, Some("short_body")),
        row(8_000, Some(200), None),
        row(9_000, Some(404), None),
    ];
    let archived: [Archived; 4] = [
        (4_000, "first", None),
        (4_500, "second", Some(WarcTruncation::Length)),
        (6_000, "part", Some(WarcTruncation::Disconnect)),
        (8_000, "", Some(WarcTruncation::Withheld)),
    ];
    let mut answers = answers(&rows, &archived, ReplayTimingMode::ByPolicy);
    let results: Vec<_> = (0..8).map(|_| result_of(&mut answers, "/")).collect();
    let expected = [
        r#"503 "" None Some("2") 70"#,
        "timeout None 70",
        r#"200 "first" None None 70"#,
        r#"200 "second" Some("body_truncated") None 70"#,
        "short_body Some(4) 70",
        // The body was withheld.
        r#"200 "" Some("body_truncated") None 70"#,
        // The answer to the last recorded request is not archived.
        "not_archived None 70",
        // There are no more recorded requests, so the last one is used again.
        "not_archived None 70",
    ];
    assert_eq!(results, expected);
    assert_eq!(result_of(&mut answers, "/unknown"), "not_archived None 70");
    let gaps = MissingArchiveAnswerCounts {
        not_archived: 3,
        withheld: 1,
        unwanted: 0,
        cut_bodies: 1,
    };
    assert_eq!(answers.gaps, gaps);
    assert!(!answers.follows && answers.difference().is_none());
}

#[test]
fn an_answer_cut_off_by_a_kill_is_the_one_of_the_next_run() {
    let rows = [
        row(0, Some(200), None),
        row(2_000, Some(503), None),
        row(4_000, Some(200), None),
    ];
    let archived: [Archived; 1] = [(4_000, "again", None)];
    let mut answers = answers(&rows, &archived, ReplayTimingMode::AsRecorded);
    assert_eq!(result_of(&mut answers, "/"), r#"200 "again" None None 70"#);
    assert_eq!(answers.gaps, MissingArchiveAnswerCounts::default());
}

#[test]
fn an_answer_to_head_has_the_recorded_status_and_no_body() {
    // The server refused the second HEAD. The GET that followed was sent within the same second.
    let head = |start, status| RequestRow {
        purpose: "check".to_owned(),
        ..row(start, Some(status), None)
    };
    // The first HEAD got a good answer, so the GET after it is a later visit.
    let rows = [
        head(0, 200),
        row(1_000, Some(200), None),
        head(2_000, 405),
        row(2_500, Some(200), None),
    ];
    let archived: [Archived; 3] = [
        (0, "", Some(WarcTruncation::Withheld)),
        (1_000, "visit", None),
        (2_500, "got", None),
    ];
    let mut answers = answers(&rows, &archived, ReplayTimingMode::AsRecorded);
    let mut send = |is_head| {
        let request = FetchRequest {
            is_head,
            ..FetchRequest::page(canonicalize(None, URL).unwrap())
        };
        let pending = answers.begin(&request, tick(START));
        let exchange = answers.end(&request, &pending).unwrap();
        assert_eq!(exchange.sent.is_head, is_head);
        (exchange.status, exchange.body.len(), exchange.truncated)
    };
    assert_eq!(send(true), (200, 0, Some(TruncationReason::Unwanted)));
    assert_eq!(send(false), (200, 5, None));
    assert_eq!(send(true), (405, 0, None));
    assert_eq!(send(false), (200, 3, None));
}

#[test]
fn a_304_that_no_request_invited_is_archived() {
    let rows = [row(0, Some(304), None)];
    let mut answers = answers(&rows, &[(0, "", None)], ReplayTimingMode::AsRecorded);
    assert_eq!(result_of(&mut answers, "/"), r#"304 "" None None 70"#);
    assert_eq!(answers.gaps, MissingArchiveAnswerCounts::default());
}

#[test]
fn a_longer_body_is_cut_at_this_crawls_limit() {
    let rows = [row(0, Some(200), None)];
    let archived: [Archived; 1] = [(0, "0123456789abc", None)];
    let mut answers = answers(&rows, &archived, ReplayTimingMode::ByPolicy);
    let expected = r#"200 "0123456789" Some("body_truncated") None 70"#;
    assert_eq!(result_of(&mut answers, "/"), expected);
    assert_eq!(answers.gaps.cut_bodies, 0);
}

#[test]
fn a_following_replay_has_the_recorded_times_until_it_differs() {
    let rows = [row(0, Some(200), None), row(2_000, Some(200), None)];
    let archived: [Archived; 2] = [(0, "one", None), (2_000, "two", None)];
    let mut answers = answers(&rows, &archived, ReplayTimingMode::AsRecorded);
    let request = |path: &str| {
        FetchRequest::page(canonicalize(None, &format!("http://a.example{path}")).unwrap())
    };
    let first = answers.begin(&request("/"), tick(START));
    assert_eq!((first.place, first.ended), (0, tick(START + 70)));
    let exchange = answers.end(&request("/"), &first).unwrap();
    assert_eq!(
        (exchange.started, exchange.ended),
        (tick(START), tick(START + 70))
    );
    // The crawl sent the second request slightly later than its pace allowed, for a reason that no
    // row shows.
    let second = answers.begin(&request("/"), tick(START + 1_990));
    let exchange = answers.end(&request("/"), &second).unwrap();
    assert_eq!((second.place, exchange.started), (1, tick(START + 2_000)));
    assert!(answers.follows);
    let new = answers.begin(&request("/new"), tick(START + 3_000));
    let failure = answers.end(&request("/new"), &new).unwrap_err();
    assert_eq!(
        (new.place, failure.kind),
        (u32::MAX, FailureKind::NotArchived)
    );
    assert!(!answers.follows);
    // A request after all recorded ones is possible if the crawl was stopped there.
    let beyond = ReplayDifference::Beyond(request("/new").url);
    assert_eq!(answers.difference(), Some(beyond));
}

#[test]
fn differences_from_the_records_are_distinguished() {
    let rows = [row(0, Some(200), None), row(2_000, Some(200), None)];
    let begin = |answers: &mut ArchivedAnswers, path: &str, after: u64| {
        let url = canonicalize(None, &format!("http://a.example{path}")).unwrap();
        answers.begin(&FetchRequest::page(url.clone()), tick(START + after));
        url
    };
    let new = || answers(&rows, &[], ReplayTimingMode::AsRecorded);
    let mut none = new();
    assert_eq!(none.difference(), Some(ReplayDifference::Fewer(2)));
    begin(&mut none, "/", 0);
    assert_eq!(none.difference(), Some(ReplayDifference::Fewer(1)));
    begin(&mut none, "/", 2_070);
    assert_eq!(none.difference(), None);
    let mut diverging = new();
    let url = begin(&mut diverging, "/new", 0);
    assert_eq!(diverging.difference(), Some(ReplayDifference::Other(url)));
    let mut later = new();
    let url = begin(&mut later, "/", 71);
    begin(&mut later, "/new", 80);
    assert_eq!(later.difference(), Some(ReplayDifference::Later(url)));
}

#[test]
fn header_fields_get_their_original_names_back() {
    let fields: [(&[u8], &[u8]); 4] = [
        (b"Content-Length", b"3"),
        (b"X-Archive-Orig-Content-Length", b"999"),
        (b"X-Archive-Orig-Transfer-Encoding", b"chunked"),
        (b"etag", b"\"1\""),
    ];
    let headers = headers(&fields);
    let value = |name: &str| headers.get(name).unwrap().to_str().unwrap();
    assert_eq!(value("content-length"), "999");
    assert_eq!(value("transfer-encoding"), "chunked");
    assert_eq!((value("etag"), headers.len()), ("\"1\"", 3));
}

#[test]
fn a_replay_has_no_fetcher() {
    for source in [
        include_str!("../mod.rs"),
        include_str!("../archived_answers.rs"),
        include_str!("../recorded_crawl.rs"),
        include_str!("../page_commit_queue.rs"),
    ] {
        for word in ["Fetcher", "tokio", "TcpStream"] {
            assert!(!source.contains(word), "{word}");
        }
    }
}
