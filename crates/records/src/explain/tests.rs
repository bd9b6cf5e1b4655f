use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};

use crawl_archive::{MAX_LINE_BYTES, Timestamp};
use crawl_frontier::{
    FjallFrontier, FjallFrontierOptions, Frontier as _, NotFetchedReason, Reason, RequestedState,
    UrlToAdmit,
};
use crawl_weburl::canonicalize;
use expect_test::{Expect, expect};
use tempfile::TempDir;

use super::{IndexPresence, explain};

/// Returns 2026-11-21T00:00:00Z.
fn now() -> Timestamp {
    Timestamp::from_micros(1_795_219_200_000_000)
}

fn crawl() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("crawl.toml", "seed = [\"http://e.example/\"]\n");
    write(
        "pages.jsonl",
        concat!(
            r#"{"url":"http://e.example/","status":200,"fetched_at":"2026-11-20T23:59:59.123Z","ms":12,"bytes":3,"content_type":null,"digest":null,"depth":0,"via":null,"title":null,"robots":{"verdict":"allowed","line":3,"rule":"Allow: /"},"warc":{"file":"a.warc.gz","offset":7},"error":null}"#,
            "\n",
            r#"{"url":"http://e.example/gone","status":null,"fetched_at":"2026-11-20T23:59:59.123Z","ms":12,"bytes":0,"content_type":null,"digest":null,"depth":1,"via":"http://e.example/","title":null,"robots":null,"warc":null,"error":"timeout"}"#,
            "\n",
        ),
    );
    write(
        "excluded.jsonl",
        concat!(
            r#"{"url":"http://e.example/p","reason":"robots","rule":"Disallow: /p","line":2,"found_on":"http://e.example/"}"#,
            "\n",
        ),
    );
    write(
        "requests.jsonl",
        concat!(
            r#"{"url":"http://e.example/robots.txt","host":"e.example","address":null,"purpose":"robots","start":1795219199123,"end":1795219199223,"status":200,"failure":null,"gap_asked":0,"why":"first","wait_asked":null}"#,
            "\n",
            r#"{"url":"http://e.example/","host":"e.example","address":null,"purpose":"page","start":1795219201000,"end":1795219201100,"status":200,"failure":null,"gap_asked":1000,"why":"delay","wait_asked":null}"#,
            "\n",
        ),
    );
    dir
}

fn check(dir: &TempDir, url: &str, expect: Expect) {
    let url = canonicalize(None, url).unwrap();
    expect.assert_eq(&explain(dir.path(), &url, now()).unwrap().to_string());
}

#[test]
fn an_endless_line_hides_nothing_and_is_counted() {
    let dir = crawl();
    let path = dir.path().join("pages.jsonl");
    let rows = fs::read(&path).unwrap();
    // Write zeros in place of a row, as a power failure may.
    let mut file = fs::File::create(&path).unwrap();
    file.seek(SeekFrom::Start(3 * MAX_LINE_BYTES as u64))
        .unwrap();
    file.write_all(b"\n").unwrap();
    file.write_all(&rows).unwrap();
    let url = canonicalize(None, "http://e.example/").unwrap();
    let explanation = explain(dir.path(), &url, now()).unwrap();
    assert_eq!(
        (explanation.state, explanation.unreadable_lines),
        ("fetched", 1)
    );
    let text = explanation.to_string();
    assert!(
        text.contains("unreadable lines in row files: 1\n"),
        "{text}"
    );
}

#[test]
fn a_redirect_shows_its_target_and_why_it_is_broken() {
    let dir = crawl();
    let row = r#"{"url":"http://e.example/r","status":302,"fetched_at":"2026-11-20T23:59:59.123Z","ms":12,"bytes":1,"content_type":null,"digest":null,"depth":0,"via":null,"redirect":"http://e.example/s","title":null,"robots":null,"warc":null,"error":"redirect_loop"}"#;
    fs::write(dir.path().join("pages.jsonl"), format!("{row}\n")).unwrap();
    check(
        &dir,
        "http://e.example/r",
        expect![[r#"
            http://e.example/r
            fetched
              answer: 302, 1 byte, 2026-11-20T23:59:59.123Z
              redirects to: http://e.example/s
              error: redirect loop
              depth: 0
              requests sent for it: 0
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
              no stored state; only rows were read
        "#]],
    );
}

#[test]
fn the_index_line_has_the_entry_or_the_reason() {
    let dir = crawl();
    let row = |indexed: &str| {
        let row = r#"{"url":"http://e.example/","status":200,"fetched_at":"2026-11-20T23:59:59.123Z","ms":12,"bytes":3,"content_type":null,"digest":null,"depth":0,"via":null,"title":null,"indexed":INDEXED,"robots":null,"warc":null,"error":null}"#;
        row.replace("INDEXED", indexed) + "\n"
    };
    let url = canonicalize(None, "http://e.example/").unwrap();
    let line = |indexed: &[&str], index: Option<IndexPresence>| {
        let rows: String = indexed.iter().map(|indexed| row(indexed)).collect();
        fs::write(dir.path().join("pages.jsonl"), rows).unwrap();
        let mut explanation = explain(dir.path(), &url, now()).unwrap();
        explanation.index = index;
        let text = explanation.to_string();
        let mut lines = text.lines().map(str::trim_start);
        let line = lines.find(|line| line.starts_with("index: "));
        line.map(str::to_owned).unwrap_or_default()
    };
    let found = |kept_despite: Option<&str>, canonical: Option<&str>| {
        Some(IndexPresence::Found {
            kept_despite: kept_despite.map(str::to_owned),
            canonical: canonical.map(str::to_owned),
        })
    };
    let replaced = |canonical: Option<&str>| {
        Some(IndexPresence::Replaced {
            by: "http://e.example/b".to_owned(),
            canonical: canonical.map(str::to_owned),
        })
    };
    let gone = "http://e.example/gone";
    let canonical = format!("\"canonical: {gone}\"");
    let lines = [
        // The crawl has no index. The second row is that of a 304 response, which makes no new
        // decision about the index.
        line(&["\"noindex\"", "null"], None),
        line(&["\"yes\"", "null"], found(None, None)),
        line(&[&canonical], found(None, Some(gone))),
        line(&["\"yes\"", "\"soft_404\""], found(Some("soft_404"), None)),
        line(&["\"yes\""], replaced(None)),
        line(&[&canonical], replaced(Some(gone))),
        line(
            &["\"yes\""],
            Some(IndexPresence::Expired {
                until: 1_795_219_200,
            }),
        ),
        line(&["\"noindex\"", "null"], Some(IndexPresence::Absent)),
        line(&["\"yes\""], Some(IndexPresence::Absent)),
        line(&["null"], Some(IndexPresence::Absent)),
        line(&["null"], None),
        line(&["\"no_page\""], None),
    ];
    let row = r#"{"url":"http://e.example/","reason":"robots","rule":"Disallow: /","line":2,"found_on":null,"round":2,"at":null}"#;
    fs::write(dir.path().join("excluded.jsonl"), format!("{row}\n")).unwrap();
    let lines = [
        lines.join("\n"),
        line(&["\"yes\""], Some(IndexPresence::Absent)),
        String::new(),
    ];
    expect![[r#"
        index: noindex
        index: yes
        index: yes; no page is indexed at its canonical URL http://e.example/gone
        index: yes; kept for now, although its last visit says soft_404
        index: no; replaced by http://e.example/b (same title and text)
        index: no; replaced by http://e.example/b (canonical: http://e.example/gone)
        index: no; expired on 2026-11-21T00:00:00.000Z (unavailable_after)
        index: noindex
        index: no, although its last visit allows it; `crawl index DIR` rebuilds the index
        index: no

        index: no; not a document of a type in --index-types
        index: no; excluded since its last visit (robots)
    "#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn rows_alone() {
    let dir = crawl();
    check(
        &dir,
        "http://e.example/",
        expect![[r#"
            http://e.example/
            fetched
              answer: 200, 3 bytes, 2026-11-20T23:59:59.123Z
              robots.txt: allowed, by `Allow: /` on line 3
              archived: a.warc.gz at 7
              depth: 0
              requests sent for it: 1
                2026-11-21T00:00:01.000Z page (200)
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
              no stored state; only rows were read
        "#]],
    );
    check(
        &dir,
        "http://e.example/gone",
        expect![[r#"
            http://e.example/gone
            failed: no answer
              error: timeout
              found on: http://e.example/
              depth: 1
              requests sent for it: 0
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
              no stored state; only rows were read
        "#]],
    );
    check(
        &dir,
        "http://e.example/p",
        expect![[r#"
            http://e.example/p
            not fetched
              reason: robots, by `Disallow: /p` on line 2
              found on: http://e.example/
              requests sent for it: 0
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
              no stored state; only rows were read
        "#]],
    );
    check(
        &dir,
        "http://e.example/never",
        expect![[r#"
            http://e.example/never
            unknown: it was not a seed, and no page read so far mentions it
              requests sent for it: 0
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
              no stored state; only rows were read
        "#]],
    );
}

#[test]
fn another_spelling_is_explained_by_the_url_that_was_fetched() {
    let dir = crawl();
    check(
        &dir,
        "http://e.example/gone?utm_source=mail",
        expect![[r#"
            http://e.example/gone?utm_source=mail
            fetched as http://e.example/gone
              requests sent for it: 0
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
              no stored state; only rows were read
        "#]],
    );
    check(
        &dir,
        "http://e.example/never?utm_source=mail",
        expect![[r#"
            http://e.example/never?utm_source=mail
            taken for http://e.example/never, another spelling of it
              requests sent for it: 0
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
              no stored state; only rows were read
        "#]],
    );
}

#[test]
fn a_link_on_an_unwanted_page_names_the_filter() {
    let dir = crawl();
    let row = r#"{"url":"http://e.example/de","status":200,"fetched_at":"2026-11-20T23:59:59.123Z","ms":12,"bytes":1,"content_type":"text/html","digest":null,"depth":1,"via":null,"title":null,"robots":null,"warc":null,"unwanted":"language de","error":null}"#;
    fs::write(dir.path().join("pages.jsonl"), format!("{row}\n")).unwrap();
    let link = r#"{"from":"http://e.example/de","to":"http://e.example/from-de","rel":null,"text":null,"round":1,"at":null}"#;
    fs::write(dir.path().join("links.jsonl"), format!("{link}\n")).unwrap();
    check(
        &dir,
        "http://e.example/from-de",
        expect![[r#"
            http://e.example/from-de
            not fetched: it is a link on an unwanted page: language de
              mentioned by: http://e.example/de
              requests sent for it: 0
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
              no stored state; only rows were read
        "#]],
    );
}

#[test]
fn stored_state_distinguishes_pending_and_deferred_urls() {
    let dir = crawl();
    let state = dir.path().join("state");
    let url = |raw: &str| canonicalize(None, raw).unwrap();
    let frontier = FjallFrontier::open(&state, &FjallFrontierOptions::default()).unwrap();
    let mut transaction = frontier.begin().unwrap();
    transaction
        .admit(UrlToAdmit::link(
            url("http://e.example/waits"),
            1,
            url("http://e.example/"),
        ))
        .unwrap();
    let mut deep = UrlToAdmit::link(url("http://e.example/deep"), 9, url("http://e.example/"));
    deep.state = RequestedState::Deferred(NotFetchedReason {
        rule: Some("max-depth 3".to_owned()),
        ..NotFetchedReason::of(Reason::Depth)
    });
    transaction.admit(deep).unwrap();
    transaction.commit().unwrap();
    check(
        &dir,
        "http://e.example/waits",
        expect![[r#"
            http://e.example/waits
            not fetched so far; whether it is pending is not known, since the state can't be read
              requests sent for it: 0
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
              the crawl is running; only its rows were read
        "#]],
    );
    drop(frontier);
    let ended = |row: &str| {
        let crawl = r#"{"origin":null,"urls":1,"reason":"unreachable","detail":null}"#;
        let path = dir.path().join("waiting.jsonl");
        fs::write(path, format!("{crawl}\n{row}\n")).unwrap();
    };
    ended(
        r#"{"origin":"http://e.example","urls":1,"reason":"robots","detail":"robots.txt: connect_refused","next_try":"2026-11-21T00:10:00.000Z","tried_at_start":true}"#,
    );
    check(
        &dir,
        "http://e.example/waits",
        expect![[r#"
            http://e.example/waits
            waiting to be fetched
              pending because: robots.txt: connection refused
              next try: from 2026-11-21T00:10:00.000Z, or at the next start
              found on: http://e.example/
              depth: 1
              requests sent for it: 0
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
        "#]],
    );
    // The host itself is paused too.
    ended(
        r#"{"origin":"http://e.example","urls":1,"reason":"robots","detail":"robots.txt: connect_refused","next_try":"2026-11-21T00:10:00.000Z"}"#,
    );
    let url = url("http://e.example/waits");
    let paused = explain(dir.path(), &url, now()).unwrap().to_string();
    assert!(
        paused.contains("  next try: from 2026-11-21T00:10:00.000Z\n"),
        "{paused}"
    );
    ended(r#"{"origin":"http://e.example","urls":1,"reason":"parked","detail":null}"#);
    let parked = explain(dir.path(), &url, now()).unwrap();
    let json = serde_json::to_value(&parked).unwrap();
    assert_eq!(json["pending"]["reason"], "parked");
    assert!(
        parked
            .to_string()
            .contains("  pending because: its host is parked\n")
    );
    fs::remove_file(dir.path().join("waiting.jsonl")).unwrap();
    check(
        &dir,
        "http://e.example/waits",
        expect![[r#"
            http://e.example/waits
            waiting to be fetched
              found on: http://e.example/
              depth: 1
              requests sent for it: 0
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
        "#]],
    );
    check(
        &dir,
        "http://e.example/deep",
        expect![[r#"
            http://e.example/deep
            put aside; fetched only if found another way
              reason: depth, by `max-depth 3`
              found on: http://e.example/
              depth: 9
              requests sent for it: 0
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
        "#]],
    );
}
