//! Gathers hand-made directories, including some that a correct crawler would never produce.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crawl_archive::rows::{PageRow, PendingOriginRow, RequestRow, WarcRecordLocation};
use crawl_archive::{
    ArchiveOptions, ArchiveWriter, Capture, CaptureEncoder, CaptureLogReader, CaptureMetadata,
    CapturedRequest, RecordIds, Timestamp, WarcReader, read_record,
};
use crawl_gather::{GatherError, GatherPurpose, GatherResult, gather};
use crawl_records::{AuditReport, audit, pages, requests, waiting};
use serde_json::{Value, json};
use tempfile::TempDir;

const CONFIG: &str = "seed = [\"http://a.example/\"]\n[politeness]\ndelay = \"1s\"\n[crawl]\n\
    started = \"2026-11-25T00:00:00.000Z\"\nlast-started = \"2026-11-25T00:00:00.000Z\"\n";
const NOON: u64 = 1_795_608_000_000;

/// A temporary folder that contains directories of workers.
struct Made(TempDir);

impl Made {
    fn new() -> Made {
        Made(tempfile::tempdir().unwrap())
    }

    fn dir(&self, worker: &str) -> PathBuf {
        let dir = self.0.path().join(worker);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// Writes the directory of a worker whose run has ended. `files` lists file names with their
    /// rows.
    fn worker(&self, name: &str, files: &[(&str, &[Value])]) {
        let dir = self.dir(name);
        fs::write(dir.join("crawl.toml"), CONFIG).unwrap();
        let ended = [json!({"origin": null, "urls": 0, "reason": "finished", "detail": null})];
        let none: [Value; 0] = [];
        let empty: [(&str, &[Value]); 2] = [("pages.jsonl", &none), ("waiting.jsonl", &ended)];
        for (file, rows) in empty.iter().chain(files) {
            let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
            let path = dir.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, lines).unwrap();
        }
    }

    fn gather(&self, workers: &[&str]) -> Result<(PathBuf, GatherResult), GatherError> {
        let dirs: Vec<PathBuf> = workers.iter().map(|worker| self.dir(worker)).collect();
        let to = self.dir("gathered");
        gather(&dirs, &to, &GatherPurpose::Reading).map(|gathered| (to, gathered))
    }
}

fn request(host: &str, start: u64, end: u64) -> Value {
    json!({"url": format!("http://{host}/p{start}"), "host": host, "address": "192.0.2.1",
        "purpose": "page", "start": NOON + start, "end": NOON + end, "status": 200, "failure": null,
        "gap_asked": 1000, "why": "delay", "wait_asked": null,
        "after": {"pages": 1, "others": 0}})
}

fn page(url: &str, round: u32, second: u64) -> Value {
    let at = Timestamp::from_micros((NOON + second * 1000) * 1000);
    json!({"url": url, "status": 200, "fetched_at": at.rfc3339_millis(), "ms": 1, "bytes": 0,
        "content_type": null, "digest": null, "depth": 0, "via": null, "title": null,
        "robots": null, "usage": null, "warc": null, "withheld": null, "error": null,
        "round": round})
}

fn excluded(url: &str, reason: &str) -> Value {
    json!({"url": url, "reason": reason, "rule": null, "line": null, "found_on": null})
}

fn rules(audit: &AuditReport) -> Vec<(&str, Vec<u64>)> {
    let breaches = audit.breaches.iter();
    let lines =
        |breach: &crawl_records::RuleBreach| breach.rows.iter().map(|row| row.line).collect();
    breaches
        .map(|breach| (breach.rule.as_str(), lines(breach)))
        .collect()
}

#[test]
fn a_gap_that_two_workers_break_between_them_is_a_breach() {
    let made = Made::new();
    let slow = |host: &str, start: u64, end: u64| {
        let mut row = request(host, start, end);
        row["gap_asked"] = 10_000.into();
        row
    };
    // Each worker, taken alone, keeps the required delay between requests to the host.
    let first = [
        slow("a.example", 0, 100),
        slow("a.example", 20_000, 20_100),
        request("b.example", 20_500, 20_600),
        slow("a.example", 32_000, 32_100),
        slow("a.example", 90_000, 99_000),
    ];
    let second = [
        slow("a.example", 10_150, 10_250),
        slow("a.example", 30_150, 30_250),
        slow("a.example", 91_000, 91_100),
    ];
    made.worker("w1", &[("requests.jsonl", &first)]);
    made.worker("w2", &[("requests.jsonl", &second)]);
    for worker in ["w1", "w2"] {
        assert_eq!(audit(&made.dir(worker), &[]).unwrap().breach_count(), 0);
    }
    let (to, gathered) = made.gather(&["w1", "w2"]).unwrap();
    let report = audit(&to, &[]).unwrap();
    // Two delays are too short. The request at 32,000 starts 1,750 ms after the other worker's
    // request ended at 30,250. The request at 91,000 starts while the first worker's request is
    // still running.
    assert_eq!(
        rules(&report),
        [("gap", vec![5, 6]), ("in-flight", vec![8, 7])]
    );
    // The request at 20,000 starts 9,750 ms after the other worker's request ended. The workers'
    // clocks may differ by more than the missing 250 ms, so this check is undecided.
    let apart = "times of two workers whose clocks may differ".to_owned();
    assert_eq!(report.undecided, BTreeMap::from([(apart, 1)]));
    let rows: Vec<RequestRow> = requests(&to).unwrap().map(Result::unwrap).collect();
    let order: Vec<_> = rows
        .iter()
        .map(|row| (row.end - NOON, row.worker.as_deref().unwrap()))
        .collect();
    let expected = [
        (100, "w1"),
        (10_250, "w2"),
        (20_100, "w1"),
        (20_600, "w1"),
        (30_250, "w2"),
        (32_100, "w1"),
        (91_100, "w2"),
        (99_000, "w1"),
    ];
    assert_eq!(order, expected);
    assert!(rows.iter().all(|row| row.after.is_none()));
    assert_eq!(gathered.workers[1].requests, 3);
}

#[test]
fn a_wait_is_kept_if_the_clocks_of_two_workers_differ_a_little() {
    let check = |start: u64, expected: &[(&str, Vec<u64>)]| {
        let made = Made::new();
        let mut refused = request("a.example", 20_000, 20_100);
        refused["status"] = 429.into();
        refused["wait_asked"] = 30_000.into();
        made.worker("w1", &[("requests.jsonl", &[refused])]);
        let next = request("a.example", start, start + 100);
        made.worker("w2", &[("requests.jsonl", &[next])]);
        let (to, _) = made.gather(&["w1", "w2"]).unwrap();
        let report = audit(&to, &[]).unwrap();
        assert_eq!(rules(&report), expected, "{start}");
        let undecided_count: u64 = report.undecided.values().sum();
        assert_eq!(undecided_count, u64::from(expected.is_empty()), "{start}");
    };
    // The workers' clocks may differ by 4 s. So a request at 46,200 may have waited until 50,100,
    // and one at 21,200 may precede the 429 response. Neither is possible for a request at 30,000.
    check(46_200, &[]);
    check(21_200, &[]);
    check(30_000, &[("wait", vec![1, 2])]);
}

#[test]
fn a_delay_holds_for_the_worker_whose_operator_set_it() {
    let made = Made::new();
    let rows = |shift: u64| {
        [
            request("a.example", shift, shift + 10),
            request("a.example", shift + 300, shift + 310),
        ]
    };
    let delay = [json!({"at": NOON - 60_000, "host": null, "delay": 200})];
    let mut first = rows(0);
    for row in &mut first {
        row["gap_asked"] = 200.into();
    }
    made.worker(
        "w1",
        &[("requests.jsonl", &first), ("state/delays.jsonl", &delay)],
    );
    let mut later = rows(60_000);
    for row in &mut later {
        row["gap_asked"] = 200.into();
    }
    made.worker("w2", &[("requests.jsonl", &later)]);
    let (to, _) = made.gather(&["w1", "w2"]).unwrap();
    assert_eq!(rules(&audit(&to, &[]).unwrap()), [("gap", vec![3, 4])]);
}

#[test]
fn a_url_that_two_rows_settle_in_one_round_is_named() {
    let made = Made::new();
    let url = |path: &str| format!("http://a.example/{path}");
    made.worker(
        "w1",
        &[(
            "pages.jsonl",
            &[page(&url("1"), 1, 0), page(&url("2"), 1, 5)],
        )],
    );
    made.worker(
        "w2",
        &[(
            "pages.jsonl",
            &[page(&url("2"), 2, 9), page(&url("1"), 1, 3)],
        )],
    );
    let refused = made.gather(&["w1", "w2"]).unwrap_err();
    let GatherError::SettledTwice { count, first } = refused else {
        panic!("{refused}");
    };
    assert_eq!((count, first.len()), (1, 1));
    let (one, other) = (("w1".to_owned(), 1), ("w2".to_owned(), 2));
    assert_eq!((&first[0].url, first[0].round), (&url("1"), 1));
    assert_eq!((&first[0].one, &first[0].other), (&one, &other));
}

#[test]
fn the_state_names_the_worker_and_crawl_of_a_directory() {
    let made = Made::new();
    let shared = |crawl: &str, worker: &str| json!({"crawl": crawl, "worker": worker, "life": ""});
    made.worker("one", &[("state/worker.json", &[shared("study", "w7")])]);
    made.worker("two", &[("state/worker.json", &[shared("study", "w8")])]);
    made.worker("three", &[("state/worker.json", &[shared("other", "w9")])]);
    let refused = made.gather(&["one", "three"]).unwrap_err();
    let GatherError::OtherCrawl { key, .. } = refused else {
        panic!("{refused}");
    };
    assert_eq!(key, "frontier.crawl");
    let (_, gathered) = made.gather(&["one", "two"]).unwrap();
    let names: Vec<_> = gathered
        .workers
        .iter()
        .map(|worker| &*worker.worker)
        .collect();
    assert_eq!(names, ["w7", "w8"]);
}

#[test]
fn pages_are_ordered_by_round_and_request() {
    let made = Made::new();
    let url = |path: &str| format!("http://a.example/{path}");
    let first = [
        page(&url("1"), 1, 3),
        page(&url("2"), 1, 1),
        page(&url("1"), 2, 50),
    ];
    let second = [
        page(&url("3"), 1, 2),
        page(&url("4"), 1, 40),
        page(&url("3"), 2, 45),
    ];
    made.worker("w1", &[("pages.jsonl", &first)]);
    made.worker("w2", &[("pages.jsonl", &second)]);
    let (to, _) = made.gather(&["w1", "w2"]).unwrap();
    let rows = pages(&to).unwrap().map(Result::unwrap);
    let order: Vec<_> = rows.map(|row| (row.url, row.round)).collect();
    let expected = [("3", 1), ("1", 1), ("2", 1), ("4", 1), ("3", 2), ("1", 2)];
    assert_eq!(order, expected.map(|(path, round)| (url(path), round)));
}

#[test]
fn urls_of_a_handed_on_host_are_listed_once() {
    let made = Made::new();
    let url = |path: &str| format!("http://a.example/{path}");
    // The second worker took `a.example` over after the first one had ended. URLs of `b.example`
    // are still waiting at the first worker.
    made.worker(
        "w1",
        &[
            ("requests.jsonl", &[request("a.example", 0, 100)]),
            (
                "excluded.jsonl",
                &[
                    excluded(&url("deep"), "depth"),
                    excluded(&url("deeper"), "depth"),
                ],
            ),
            (
                "waiting.jsonl",
                &ended(
                    "interrupted",
                    &json!({"1": 1, "2": 1}),
                    &[("a.example", 3, Some(1)), ("b.example", 2, Some(2))],
                ),
            ),
        ],
    );
    made.worker(
        "w2",
        &[
            ("requests.jsonl", &[request("a.example", 5_000, 5_100)]),
            ("pages.jsonl", &[page(&url("deep"), 1, 5)]),
            (
                "excluded.jsonl",
                &[
                    excluded(&url("deeper"), "depth"),
                    excluded(&url("x"), "robots"),
                ],
            ),
            (
                "waiting.jsonl",
                &ended("budget", &json!({"1": 2}), &[("a.example", 1, Some(1))]),
            ),
        ],
    );
    let (to, gathered) = made.gather(&["w1", "w2"]).unwrap();
    let urls = crawl_records::excluded(&to)
        .unwrap()
        .map(|row| row.unwrap().url);
    assert_eq!(urls.collect::<Vec<_>>(), [url("deeper"), url("x")]);
    let counts = gathered
        .workers
        .iter()
        .map(|row| (row.excluded, row.told_by_others));
    assert_eq!(counts.collect::<Vec<_>>(), [(1, 1), (1, 1)]);
    assert_eq!(
        pending(&to),
        [
            "crawl: 3 interrupted",
            "http://a.example: 1 interrupted",
            "http://b.example: 2 interrupted",
        ]
    );
}

/// Returns the rows of a worker's `waiting.jsonl`. `buckets` are the worker's buckets with their
/// epochs. Each of `rows` has a host, its number of pending URLs, and its bucket.
fn ended(reason: &str, buckets: &Value, rows: &[(&str, u64, Option<i32>)]) -> Vec<Value> {
    let crawl = json!({"origin": null, "urls": 9, "reason": reason, "detail": null,
        "buckets": buckets});
    let rows = rows.iter().map(|(host, urls, bucket)| {
        json!({"origin": format!("http://{host}"), "urls": urls, "reason": "interrupted",
            "detail": null, "bucket": bucket})
    });
    std::iter::once(crawl).chain(rows).collect()
}

fn pending(gathered: &Path) -> Vec<String> {
    let rows = waiting(gathered).unwrap().map(Result::unwrap);
    let show = |row: PendingOriginRow| {
        let origin = row.origin.unwrap_or_else(|| "crawl".to_owned());
        format!("{origin}: {} {}", row.urls, row.reason)
    };
    rows.map(show).collect()
}

#[test]
fn pending_urls_are_those_of_the_last_owner_of_their_host() {
    let check = |first: &[Value], second: &[Value], expected: &[&str]| {
        let made = Made::new();
        // The first worker sent the last request to the host, at least by its own clock.
        let requests = [request("a.example", 9_000, 9_100)];
        made.worker(
            "w1",
            &[("requests.jsonl", &requests), ("waiting.jsonl", first)],
        );
        made.worker("w2", &[("waiting.jsonl", second)]);
        let (to, _) = made.gather(&["w1", "w2"]).unwrap();
        assert_eq!(pending(&to), expected);
    };
    let five = |bucket| [("a.example", 5, bucket)];
    // The first worker handed the host over during its run. The second one owned it last, but sent
    // no request to it.
    check(
        &ended("finished", &json!({"2": 1}), &[]),
        &ended("interrupted", &json!({"1": 2}), &five(Some(1))),
        &["crawl: 5 interrupted", "http://a.example: 5 interrupted"],
    );
    // The second worker took the host over after the first run, and fetched all its URLs.
    check(
        &ended("interrupted", &json!({"1": 1}), &five(Some(1))),
        &ended("finished", &json!({"1": 2}), &[]),
        &["crawl: 0 finished"],
    );
    // The second worker took the host over while it wrote its rows, so its list of buckets lacks
    // the host's bucket.
    check(
        &ended("interrupted", &json!({"1": 1}), &five(Some(1))),
        &ended("interrupted", &json!({}), &five(Some(1))),
        &["crawl: 5 interrupted", "http://a.example: 5 interrupted"],
    );
    // Rows of older versions name no bucket.
    check(
        &ended("finished", &json!({}), &[]),
        &ended("interrupted", &json!({}), &five(None)),
        &["crawl: 5 interrupted", "http://a.example: 5 interrupted"],
    );
}

/// Writes an archive with one page and returns the page's row. The file name is the same for every
/// directory.
fn archived(dir: &Path, path: &str, number: u64) -> Value {
    let mut archive =
        ArchiveWriter::open(dir, ArchiveOptions::default(), &BTreeMap::new()).unwrap();
    let url = format!("http://a.example/{path}");
    let body = format!("the words of {path}");
    let capture = Capture {
        url: &crawl_weburl::canonicalize(None, &url).unwrap(),
        started: Timestamp::from_micros(NOON * 1000),
        millis: 1,
        address: None,
        protocol: http::Version::HTTP_11,
        tls: None,
        request: CapturedRequest {
            method: "GET",
            headers: &[],
            body: &[],
        },
        status: 200,
        reason: None,
        headers: &http::HeaderMap::new(),
        body: body.as_bytes(),
        truncated: None,
        revisit: None,
        about: CaptureMetadata::default(),
    };
    let encoded = CaptureEncoder::default().encode(&capture, &RecordIds::numbered(number));
    let receipt = archive.append(&encoded).unwrap();
    archive.sync().unwrap();
    archive.write_index().unwrap();
    let mut row = page(&url, 1, 0);
    row["warc"] = json!({"file": receipt.file, "offset": receipt.offset});
    row
}

#[test]
fn files_of_one_name_are_renamed_and_places_follow() {
    let made = Made::new();
    for (number, worker) in (1..).zip(["w1", "w2", "w3"]) {
        let dir = made.dir(worker);
        let row = archived(&dir, worker, number);
        made.worker(worker, &[("pages.jsonl", &[row])]);
    }
    let (to, _) = made.gather(&["w1", "w2", "w3"]).unwrap();
    let rows: Vec<PageRow> = pages(&to).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 3);
    let mut places: Vec<WarcRecordLocation> = Vec::new();
    for row in rows {
        let place = row.warc.unwrap();
        let path = to.join("archive").join(&place.file);
        let record = read_record(&path, place.offset).unwrap();
        assert_eq!((record.kind(), record.url()), ("response", Some(&*row.url)));
        for record in WarcReader::open(&path).unwrap() {
            let record = record.unwrap();
            assert_eq!(record.wrong_digest(), None);
            if record.kind() == "warcinfo" {
                assert_eq!(record.field("WARC-Filename"), Some(&*place.file));
            }
        }
        places.push(place);
    }
    let mut log = CaptureLogReader::open(&to).unwrap().unwrap();
    while let Some(line) = log.next_capture().unwrap() {
        let at =
            |place: &WarcRecordLocation| *place.file == *line.file && place.offset == line.offset;
        assert!(places.iter().any(at), "{line:?}");
        places.retain(|place| !at(place));
    }
    assert_eq!(places, []);
    let index = fs::read_to_string(to.join("archive/index.cdxj")).unwrap();
    assert!(
        index.lines().is_sorted() && index.lines().count() == 3,
        "{index}"
    );
}

#[test]
fn a_gathered_directory_can_be_gathered_again() {
    let made = Made::new();
    for (number, worker) in (1..).zip(["w1", "w2", "w3"]) {
        let start = number * 10_000;
        let rows = [request("a.example", start, start + 10)];
        let delay = [json!({"at": NOON + number, "host": null, "delay": 200 + number})];
        made.worker(
            worker,
            &[("requests.jsonl", &rows), ("state/delays.jsonl", &delay)],
        );
    }
    let (to, _) = made.gather(&["w1", "w3"]).unwrap();
    fs::rename(to, made.0.path().join("some")).unwrap();
    let (to, _) = made.gather(&["some", "w2"]).unwrap();
    let rows = requests(&to)
        .unwrap()
        .map(|row| row.unwrap().worker.unwrap());
    assert_eq!(rows.collect::<Vec<_>>(), ["w1", "w2", "w3"]);
    let delays = crawl_records::delays(&to).unwrap().map(Result::unwrap);
    let delays: Vec<_> = delays.map(|row| (row.worker.unwrap(), row.delay)).collect();
    let expected = [("w1", 201), ("w2", 202), ("w3", 203)];
    assert_eq!(
        delays,
        expected.map(|(name, delay)| (name.to_owned(), Some(delay)))
    );
}

#[test]
fn unreadable_lines_are_counted() {
    let made = Made::new();
    made.worker(
        "w1",
        &[("requests.jsonl", &[request("a.example", 0, 100), json!({})])],
    );
    let torn = made.dir("w1").join("links.jsonl");
    fs::write(torn, "{\"from\":").unwrap();
    let (to, gathered) = made.gather(&["w1"]).unwrap();
    assert_eq!(gathered.workers[0].unreadable, 2);
    assert_eq!(requests(&to).unwrap().count(), 1);
    assert!(!to.join("links.jsonl").exists());
}
