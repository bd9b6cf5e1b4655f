//! Tests of revisits to pages that are due.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crawl_archive::rows::PageRow;
use crawl_archive::{Timestamp, read_place};
use crawl_engine::{
    EndReason, IndexRebuildSettings, PageChangeCounts, RevisitIntervals, RunSummary, StopUrgency,
    reindex,
};
use crawl_frontier::{FjallFrontier, FjallFrontierOptions, Frontier as _, LeaseOutcome};
use crawl_index::IndexSearcher;
use crawl_testweb::{HostsInScope, HttpAnswer, LinkMix, LogEntry, ReplySequence, TestWeb};
use flate2::{Compression, GzBuilder};

use crate::support::{Crawl, expected};

/// Returns a crawl that visits every page again in each round.
pub(crate) fn eager(web: &TestWeb) -> Crawl {
    let mut crawl = Crawl::of(web);
    crawl.config.revisits = RevisitIntervals {
        least: Duration::ZERO,
        most: Duration::ZERO,
    };
    crawl
}

pub(crate) fn again(crawl: &mut Crawl) -> RunSummary {
    crawl.config.recrawl = true;
    crawl.run().unwrap()
}

/// Returns the change of each URL in a round. Panics if a URL has two rows in the round.
fn changes(crawl: &Crawl, round: u32) -> BTreeMap<String, Option<String>> {
    let mut changes = BTreeMap::new();
    for row in crawl.pages() {
        if row.round == round {
            let before = changes.insert(row.url.clone(), row.change);
            assert_eq!(before, None, "{} has two rows in round {round}", row.url);
        }
    }
    changes
}

fn row(crawl: &Crawl, round: u32, url: &str) -> PageRow {
    let mut rows = crawl.pages().into_iter();
    let row = rows.find(|row| row.round == round && row.url == url);
    row.unwrap_or_else(|| panic!("{url} has no row in round {round}"))
}

fn requested_paths(log: &[LogEntry]) -> BTreeSet<&str> {
    log.iter().map(|entry| entry.path.as_str()).collect()
}

#[test]
fn unchanged_pages_are_not_sent_again() {
    let web = TestWeb::builder().seed(11).pages(40).gzip(false).start();
    let mut crawl = eager(&web);
    crawl.run().unwrap();
    let first = crawl.pages();
    let excluded = crawl.excluded();
    assert!(first.iter().all(|row| row.round == 1));
    web.take_log();
    let summary = again(&mut crawl);
    assert_eq!((summary.ended, summary.round), (EndReason::Finished, 2));
    let second = changes(&crawl, 2);
    assert_eq!(
        second.keys().cloned().collect::<BTreeSet<_>>(),
        expected(&web, HostsInScope::Host)
    );
    // Redirects, broken links and the sitemap have no validators, so no 304 can confirm them. Their
    // rows must nevertheless report them as unchanged.
    let (mut unmodified, mut others) = (0, 0);
    for before in &first {
        let after = row(&crawl, 2, &before.url);
        match after.status {
            Some(304) => {
                assert_eq!(after.change.as_deref(), Some("same"));
                assert_eq!(after.digest, before.digest, "{}", before.url);
                unmodified += 1;
            }
            status => {
                assert_eq!(status, before.status);
                let change = status.filter(|status| *status < 400).map(|_| "same");
                assert_eq!(after.change.as_deref(), change, "{}", before.url);
                others += 1;
            }
        }
    }
    assert!(unmodified > 40 && others > 0, "{unmodified}, {others}");
    assert_eq!(summary.changes.same, unmodified + others - failed(&first));
    for entry in web.log() {
        let conditional = entry
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("if-none-match"));
        assert_eq!(conditional, entry.status == Some(304), "{}", entry.path);
    }
    // A URL that is excluded again for the same reason gets no second row.
    assert_eq!(crawl.excluded(), excluded);
    assert!(crawl.archive_holds(
        "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified"
    ));
    assert!(crawl.archive_holds(
        "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    ));
}

/// Returns a page compressed by gzip, with a name of this length in the gzip header. Some
/// middleware hides the length of bodies in this way, as a defence against BREACH.
fn gzip_with(html: &str, name_bytes: usize) -> HttpAnswer {
    let mut gzip = GzBuilder::new()
        .filename(vec![b'x'; name_bytes])
        .write(Vec::new(), Compression::default());
    gzip.write_all(html.as_bytes()).unwrap();
    HttpAnswer::html("")
        .body(gzip.finish().unwrap())
        .header("content-encoding", "gzip")
}

#[test]
fn a_page_in_another_coding_is_unchanged() {
    let html = "<title>a page</title><p>its words";
    let packed = ReplySequence::from(gzip_with(html, 1))
        .then(gzip_with(html, 20))
        .then(gzip_with(html, 300))
        // The text is unchanged, but the next two answers have no content coding.
        .then(HttpAnswer::html(html))
        .then(HttpAnswer::html(html))
        // The archive has these bytes, but the last visit got other bytes.
        .then(gzip_with(html, 1))
        .then(gzip_with("<title>a page</title><p>other words", 5));
    let web = small(&[]);
    web.script(0, "/", packed);
    let mut crawl = eager(&web);
    crawl.run().unwrap();
    let first = row(&crawl, 1, &web.url(0, "/"));
    for round in 2..=6 {
        again(&mut crawl);
        let row = row(&crawl, round, &web.url(0, "/"));
        let differs = (round != 5).then_some("bytes");
        assert_eq!(row.differs.as_deref(), differs, "round {round}");
        assert_eq!(
            (row.status, row.change.as_deref()),
            (Some(200), Some("same"))
        );
        // The repeated body is not archived again: the row refers to the record that contains the
        // body.
        assert_eq!(row.digest, first.digest);
        let record = read_place(&crawl.config.output, &row.warc.unwrap(), row.bytes).unwrap();
        assert_eq!(record.kind(), "revisit");
        // The header of an answer is archived only if it describes the archived payload.
        assert_eq!(record.block.is_empty(), round != 6);
        let refers_to = record.field("WARC-Refers-To-Date");
        let refers_to = refers_to.and_then(Timestamp::parse).unwrap();
        assert_eq!(refers_to.as_millis(), first.fetched_at.as_millis());
        assert_eq!(record.field("WARC-Payload-Digest"), first.digest.as_deref());
    }
    assert!(crawl.archive_holds("compared: without its content coding"));
    again(&mut crawl);
    let last = row(&crawl, 7, &web.url(0, "/"));
    assert_eq!(last.change.as_deref(), Some("changed"));
    let record = read_place(&crawl.config.output, &last.warc.unwrap(), last.bytes).unwrap();
    assert_eq!(record.kind(), "response");
}

/// Returns the pages of a site in one round. Between rounds, these differ: what servers put into
/// each answer (such as a token), the bytes of `/file`, and the text of `/story` from the
/// third round on.
pub(crate) fn answers(round: u32) -> Vec<(&'static str, HttpAnswer)> {
    let story = |words: &str| {
        format!(
            "<html lang=en><title>The story</title><body><nav><a href=/token>token</a>
             <a href=/nonce>nonce</a> <a href=/counter>counter</a> <a href=/packed>packed</a>
             <a href=/story>story</a> <a href=/file>file</a></nav>
             <main><h1>The story</h1><p>{words}</p><p>It goes on for a while, and then it ends
             as such stories do: with a table for two and a pot of tea.</p></main>"
        )
    };
    let words = "Once upon a time somebody was thirsty.";
    let page = |more: &str| HttpAnswer::html(&(story(words) + more));
    let text = match round {
        1 | 2 => words,
        _ => "Once upon a time nobody was thirsty.",
    };
    let stamp = format!("2026-11-2{round} 10:0{round}:00");
    let footer = format!("<footer>{stamp}</footer>");
    let mut script = format!("<script nonce=n{round}>var at = {round}</script>");
    script += &format!("<p>Page generated at {stamp} in 0.0{round} s</p>");
    vec![
        ("/", page(&footer)),
        (
            "/token",
            page(&format!(
                "<form><input type=hidden name=csrf value=t{round}></form>"
            )),
        ),
        ("/nonce", page(&script)),
        (
            "/counter",
            page(&format!(
                "<p>You are visitor number {}</p><div class=footer>{stamp}</div>",
                round * 97
            )),
        ),
        ("/packed", gzip_with(&story(words), round as usize * 9)),
        ("/story", HttpAnswer::html(&(story(text) + &footer))),
        (
            "/file",
            HttpAnswer::of(200)
                .header("content-type", "application/pdf")
                .body(format!("%PDF-1.4 {round}")),
        ),
    ]
}

/// Returns the records of rounds 2 to 4 about the site of [`answers`]: round, path, change, and the
/// part that differs.
fn changes_by_round(setting: impl Fn(&mut Crawl)) -> Vec<(u32, String, String, String)> {
    let web = small(&[]);
    let mut crawl = eager(&web);
    setting(&mut crawl);
    let mut records = Vec::new();
    for round in 1..=4 {
        for (path, answer) in answers(round) {
            web.script(0, path, answer);
        }
        match round {
            1 => crawl.run().unwrap(),
            _ => again(&mut crawl),
        };
        for row in crawl
            .pages()
            .into_iter()
            .filter(|row| row.round == round && round > 1)
        {
            if row.status == Some(200) {
                let path = row.url[web.url(0, "").len()..].to_owned();
                let word = |word: Option<String>| word.unwrap_or_default();
                records.push((round, path, word(row.change), word(row.differs)));
            }
        }
    }
    records.sort();
    records
}

#[test]
fn a_token_a_nonce_and_a_counter_are_not_changes() {
    let mut expected = Vec::new();
    for round in 2..=4 {
        for (path, change, differs) in [
            ("/", "same", "markup"),
            ("/counter", "same", "markup"),
            ("/file", "changed", "bytes"),
            ("/nonce", "same", "markup"),
            ("/packed", "same", "bytes"),
            (
                "/story",
                if round == 3 { "changed" } else { "same" },
                if round == 3 { "text" } else { "markup" },
            ),
            ("/token", "same", "markup"),
        ] {
            expected.push((
                round,
                path.to_owned(),
                change.to_owned(),
                differs.to_owned(),
            ));
        }
    }
    // The first round stored no digests of main texts, so the texts are read from the archive.
    assert_eq!(changes_by_round(|_| {}), expected);
    assert_eq!(
        changes_by_round(|crawl| crawl.config.index = true),
        expected
    );
    let without_archive = changes_by_round(|crawl| {
        crawl.config.warc = None;
        crawl.config.recrawl = true;
    });
    assert_eq!(without_archive, expected);
}

#[test]
fn a_page_with_other_markup_is_archived_as_received() {
    let web = small(&[]);
    let mut crawl = eager(&web);
    for round in 1..=2 {
        for (path, answer) in answers(round) {
            web.script(0, path, answer);
        }
        again(&mut crawl);
    }
    let row = row(&crawl, 2, &web.url(0, "/token"));
    assert!(!row.repeats_body());
    let record = read_place(&crawl.config.output, &row.warc.unwrap(), row.bytes).unwrap();
    assert_eq!(record.kind(), "response");
    assert_eq!(record.field("WARC-Payload-Digest"), row.digest.as_deref());
    assert!(String::from_utf8_lossy(&record.block).contains("value=t2"));
}

fn failed(rows: &[PageRow]) -> u64 {
    let failed = rows.iter().filter(|row| row.status >= Some(400));
    failed.count() as u64
}

#[test]
fn without_recrawl_a_finished_crawl_stays_finished() {
    let web = TestWeb::builder().seed(11).pages(10).start();
    let mut crawl = eager(&web);
    crawl.run().unwrap();
    again(&mut crawl);
    let rows = crawl.pages().len();
    web.take_log();
    crawl.config.recrawl = false;
    let summary = crawl.run().unwrap();
    assert_eq!((summary.round, summary.requests), (2, 0));
    assert_eq!((web.log().len(), crawl.pages().len()), (0, rows));
}

fn page(links: &str) -> HttpAnswer {
    HttpAnswer::html(&format!("<title>a page</title>{links}"))
}

/// Starts a web of these pages and a root page that links to each.
pub(crate) fn small(pages: &[&str]) -> TestWeb {
    let links: Vec<_> = pages
        .iter()
        .map(|path| format!("<a href=\"{path}\">x</a>"))
        .collect();
    let mut spec = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(0, "/sitemap.xml", HttpAnswer::of(404))
        .script(0, "/robots.txt", HttpAnswer::of(404))
        .script(0, "/", page(&links.concat()));
    for path in pages {
        spec = spec.script(0, path, page(path));
    }
    spec.start()
}

#[test]
fn kinds_of_changes_are_distinguished() {
    let web = small(&["/same", "/changed", "/gone", "/broken", "/back"]);
    web.script(0, "/back", HttpAnswer::of(404));
    let mut crawl = eager(&web);
    crawl.config.retries = 0;
    crawl.run().unwrap();
    let url = |path| web.url(0, path);
    assert_eq!(row(&crawl, 1, &url("/same")).change.as_deref(), Some("new"));
    assert_eq!(row(&crawl, 1, &url("/back")).change, None);

    web.script(0, "/changed", page("<a href=\"/found\">x</a>"));
    web.script(0, "/found", page("found"));
    web.script(0, "/gone", HttpAnswer::of(410));
    web.script(0, "/broken", HttpAnswer::of(500));
    web.script(0, "/back", page("back"));
    let summary = again(&mut crawl);
    let second = changes(&crawl, 2);
    let expected = [
        ("/", Some("same")),
        ("/back", Some("new")),
        ("/broken", None),
        ("/changed", Some("changed")),
        ("/found", Some("new")),
        ("/gone", Some("gone")),
        ("/same", Some("same")),
    ];
    let expected = expected.map(|(path, change)| (url(path), change.map(str::to_owned)));
    assert_eq!(second, BTreeMap::from(expected));
    let counts = PageChangeCounts {
        new: 2,
        changed: 1,
        same: 2,
        gone: 1,
        broken: 2,
    };
    assert_eq!(
        (summary.changes, summary.pages, summary.failed),
        (counts, 7, 2)
    );

    // A page that failed once is compared with its content before the failure.
    web.script(0, "/broken", page("/broken"));
    web.script(0, "/gone", page("another"));
    again(&mut crawl);
    let third = changes(&crawl, 3);
    assert_eq!(third[&url("/broken")].as_deref(), Some("same"));
    assert_eq!(third[&url("/gone")].as_deref(), Some("new"));
    assert_eq!(third[&url("/changed")].as_deref(), Some("same"));
}

#[test]
fn a_round_in_which_every_page_fails_fetched_no_seed() {
    // A site's sitemap may still be served while its pages fail.
    for sitemap in [200, 404, 500] {
        let web = small(&["/a"]);
        let mut crawl = eager(&web);
        crawl.config.retries = 0;
        assert_eq!(crawl.run().unwrap().seeds_fetched, 1);
        for path in ["/", "/a"] {
            web.script(0, path, HttpAnswer::of(500));
        }
        let answer = HttpAnswer::of(sitemap).header("content-type", "application/xml");
        web.script(0, "/sitemap.xml", answer.body("<urlset></urlset>"));
        let summary = again(&mut crawl);
        // A guessed sitemap that is missing doesn't count as failed.
        let failed = 2 + u64::from(sitemap == 500);
        assert_eq!(
            (summary.seeds_fetched, summary.failed),
            (0, failed),
            "{sitemap}"
        );
    }
}

/// Without a new row, the last row of the sitemap would state the failure for ever.
#[test]
fn a_guessed_sitemap_that_failed_and_is_missing_again_has_a_row() {
    let web = small(&[]);
    let mut crawl = eager(&web);
    crawl.config.retries = 0;
    crawl.run().unwrap();
    for (status, body) in [
        (403, ""),
        (500, ""),
        (403, ""),
        (404, ""),
        (403, ""),
        (500, ""),
        (200, "a page"),
        (404, ""),
    ] {
        web.script(0, "/sitemap.xml", HttpAnswer::of(status).body(body));
        again(&mut crawl);
    }
    let rows = crawl.pages().into_iter();
    let rows = rows.filter(|row| row.url.ends_with("/sitemap.xml"));
    let rows: Vec<_> = rows
        .map(|row| {
            (
                row.round,
                row.status.unwrap(),
                row.is_broken(),
                row.is_failed(),
            )
        })
        .collect();
    let expected = [
        (3, 500, true, true),
        (5, 404, false, false),
        (7, 500, true, true),
        (8, 200, false, false),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn a_guessed_sitemap_that_could_not_be_read_is_not_missing() {
    let web = small(&[]);
    // The header of a gzip file.
    let cut_short = HttpAnswer::of(200).body([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
    web.script(0, "/sitemap.xml", cut_short);
    let crawl = eager(&web);
    crawl.run().unwrap();
    let pages = crawl.pages();
    let mut rows = pages.iter().filter(|row| row.url.ends_with("/sitemap.xml"));
    let error = rows.next().unwrap().error.as_deref();
    assert_eq!(error, Some("encoding_cut_short"));
}

#[test]
fn pages_that_are_not_due_are_not_fetched() {
    let web = small(&["/still", "/busy"]);
    let mut crawl = Crawl::of(&web);
    crawl.config.revisits = RevisitIntervals {
        least: Duration::from_secs(3600),
        most: Duration::from_secs(7200),
    };
    crawl.run().unwrap();
    web.take_log();
    let summary = again(&mut crawl);
    // A sitemap is due in each round. A guessed sitemap that was not found is due in each round,
    // too.
    assert_eq!(
        requested_paths(&web.log()),
        BTreeSet::from(["/sitemap.xml"])
    );
    assert_eq!(summary.requests, 1);
    let began = summary.next_due.unwrap();
    assert_eq!(summary.changes, PageChangeCounts::default());
    // With the default settings, pages visited only once have no interval yet, so they are due in
    // the next round.
    let mut crawl = Crawl::of(&web);
    crawl.run().unwrap();
    let summary = again(&mut crawl);
    assert_eq!(summary.changes.same, 3);
    assert!(summary.next_due.unwrap() < began);
}

#[test]
fn a_round_that_is_cut_off_is_finished_first() {
    let web = TestWeb::builder().seed(5).pages(120).start();
    let mut crawl = eager(&web);
    crawl.run().unwrap();
    crawl.config.recrawl = true;
    // A round must take much longer than 200 ms, the interval of progress reports, to be stopped in
    // the middle.
    crawl.config.politeness.delay = Duration::from_millis(40);
    let mut cut = 0;
    loop {
        let urgency: fn(&crawl_engine::ProgressSnapshot) -> StopUrgency = match cut % 2 {
            0 => |progress| {
                if progress.pages > 3 {
                    StopUrgency::Now
                } else {
                    StopUrgency::No
                }
            },
            _ => |progress| {
                if progress.pages > 3 {
                    StopUrgency::Drain
                } else {
                    StopUrgency::No
                }
            },
        };
        let summary = match cut < 20 {
            true => crawl.run_until(urgency).unwrap(),
            false => crawl.run().unwrap(),
        };
        assert_eq!(summary.round, 2);
        if summary.ended == EndReason::Finished {
            break;
        }
        cut += 1;
    }
    assert!(cut > 0);
    let second = changes(&crawl, 2);
    assert_eq!(
        second.into_keys().collect::<BTreeSet<_>>(),
        expected(&web, HostsInScope::Host)
    );
    assert_eq!(again(&mut crawl).round, 3);
}

#[test]
fn work_that_was_added_to_a_round_is_finished_before_the_next() {
    let web = TestWeb::builder().seed(5).pages(40).start();
    let mut crawl = eager(&web);
    crawl.config.budgets.max_pages = Some(5);
    crawl.run().unwrap();
    crawl.config.budgets.max_pages = None;
    // The rest of this round must take much longer than 200 ms, the interval of progress reports,
    // so that the round can be stopped in the middle.
    crawl.config.politeness.delay = Duration::from_millis(300);
    let cut = crawl.run_until(|progress| match progress.pages > 10 {
        true => StopUrgency::Drain,
        false => StopUrgency::No,
    });
    assert_eq!(cut.unwrap().ended, EndReason::Interrupted);
    crawl.config.politeness.delay = Duration::ZERO;
    let summary = again(&mut crawl);
    assert_eq!((summary.ended, summary.round), (EndReason::Finished, 1));
    assert_eq!(again(&mut crawl).round, 2);
}

#[test]
fn a_page_with_usage_preferences_is_fetched_in_full() {
    let web = small(&["/a"]);
    let page = page("<meta name=robots content=noai>").header("etag", "\"1\"");
    web.script(0, "/a", page.clone());
    let mut crawl = eager(&web);
    crawl.run().unwrap();
    let before = row(&crawl, 1, &web.url(0, "/a")).usage;
    assert!(before.is_some());
    again(&mut crawl);
    let after = row(&crawl, 2, &web.url(0, "/a"));
    assert_eq!(
        (after.status, after.change.as_deref()),
        (Some(200), Some("same"))
    );
    assert_eq!(after.usage, before);
}

#[test]
fn a_seed_that_fails_in_a_later_round_is_reported() {
    let web = small(&[]);
    let mut crawl = eager(&web);
    crawl.config.retries = 0;
    assert_eq!(crawl.run().unwrap().seeds_fetched, 1);
    assert_eq!(again(&mut crawl).seeds_fetched, 1);
    web.script(0, "/", HttpAnswer::of(500));
    let summary = again(&mut crawl);
    assert_eq!((summary.seeds_fetched, summary.seeds_failed.len()), (0, 1));
}

#[test]
fn a_sitemap_determines_which_pages_are_revisited() {
    let sitemap = |day: &str| {
        let entry = |path: &str, lastmod: &str| {
            format!("<url><loc>{path}</loc><lastmod>{lastmod}</lastmod></url>")
        };
        let entries = [
            entry("/old", "2001-02-03T04:05:06Z"),
            entry("/new", day),
            entry("/odd", "yesterday"),
            "<url><loc>/often</loc><changefreq>always</changefreq></url>".to_owned(),
            "<url><loc>/seldom</loc><changefreq>yearly</changefreq></url>".to_owned(),
        ];
        let xml = format!("<urlset>{}</urlset>", entries.concat());
        HttpAnswer::of(200)
            .header("content-type", "application/xml")
            .body(xml)
    };
    let web = small(&["/old", "/new", "/odd", "/often", "/seldom"]);
    web.script(0, "/sitemap.xml", sitemap("2001-02-03"));
    let mut crawl = Crawl::of(&web);
    crawl.config.revisits.least = Duration::from_secs(3600);
    crawl.run().unwrap();
    web.take_log();
    again(&mut crawl);
    assert_eq!(
        requested_paths(&web.take_log()),
        BTreeSet::from(["/sitemap.xml"])
    );
    // A page is not visited again before the minimum interval is over, whatever date the sitemap
    // states.
    web.script(0, "/sitemap.xml", sitemap("2999-01-01"));
    again(&mut crawl);
    assert_eq!(
        requested_paths(&web.take_log()),
        BTreeSet::from(["/sitemap.xml"])
    );
    crawl.config.revisits.least = Duration::ZERO;
    again(&mut crawl);
    assert_eq!(
        requested_paths(&web.take_log()),
        BTreeSet::from(["/new", "/often", "/sitemap.xml"])
    );
    assert_eq!(changes(&crawl, 4).len(), 3);
}

#[test]
fn changed_rules_apply_to_fetched_pages() {
    let web = small(&["/a", "/b"]);
    let mut crawl = eager(&web);
    crawl.run().unwrap();
    crawl.config.scope.exclude = vec!["/b$".to_owned()];
    for round in [2, 3] {
        again(&mut crawl);
        assert!(!changes(&crawl, round).contains_key(&web.url(0, "/b")));
        // A URL that is excluded for the same reason as before is not listed again.
        assert_eq!(crawl.excluded()[&web.url(0, "/b")], "scope");
    }
    crawl.config.scope.exclude.clear();
    again(&mut crawl);
    let last = changes(&crawl, 4);
    assert_eq!(last[&web.url(0, "/b")].as_deref(), Some("same"));
}

#[test]
fn budgets_are_those_of_a_round() {
    let web = small(&["/a", "/b", "/c"]);
    let mut crawl = eager(&web);
    crawl.config.budgets.max_pages = Some(4);
    crawl.config.budgets.per_host.max_pages = Some(4);
    assert_eq!(crawl.run().unwrap().pages, 4);
    let summary = again(&mut crawl);
    assert_eq!((summary.pages, changes(&crawl, 2).len()), (4, 4));
    // A spent budget ends the round, so the next run begins a new one.
    crawl.config.budgets.max_pages = Some(2);
    assert_eq!(again(&mut crawl).ended, EndReason::Budget("max-pages"));
    let summary = again(&mut crawl);
    assert_eq!((summary.round, changes(&crawl, 4).len()), (4, 2));
}

/// A table of an early round needs its exclusions, even of URLs that a later round fetched.
#[test]
fn the_exclusions_of_a_round_stay_when_the_next_begins() {
    let web = small(&["/a", "/b"]);
    web.script(0, "/a", page("<a href=/deep>x</a>"));
    web.script(0, "/deep", page(""));
    let mut crawl = eager(&web);
    let url = |path: &str| web.url(0, path);
    let listed = |crawl: &Crawl| {
        let rows = crawl.excluded_rows().into_iter();
        let rows = rows.map(|row| (row.url, row.reason, row.round.unwrap()));
        rows.collect::<BTreeSet<_>>()
    };
    let row = |path: &str, reason: &str, round| (url(path), reason.to_owned(), round);
    crawl.config.sitemaps = false;
    crawl.config.scope.max_depth = Some(1);
    crawl.config.budgets.max_pages = Some(2);
    crawl.run().unwrap();
    let deep = row("/deep", "depth", 1);
    let first = [row("/b", "budget", 1), deep.clone()];
    assert_eq!(listed(&crawl), BTreeSet::from(first));
    // The second run of a round replaces its rows.
    crawl.config.budgets.max_pages = None;
    crawl.run().unwrap();
    assert_eq!(listed(&crawl), BTreeSet::from([deep.clone()]));
    // What is deferred already gets no second row; what a budget leaves out again does.
    crawl.config.budgets.max_pages = Some(1);
    let summary = again(&mut crawl);
    let all = BTreeSet::from([deep, row("/a", "budget", 2), row("/b", "budget", 2)]);
    assert_eq!(listed(&crawl), all);
    assert_eq!(summary.excluded.get("budget"), Some(&2));
    crawl.config.budgets.max_pages = None;
    crawl.config.scope.max_depth = Some(2);
    let summary = again(&mut crawl);
    assert_eq!(listed(&crawl), all);
    assert_eq!(
        summary.excluded.values().sum::<u64>(),
        0,
        "{:?}",
        summary.excluded
    );
}

#[test]
fn an_unrequested_304_is_inconclusive() {
    let web = small(&["/a"]);
    web.script(0, "/a", HttpAnswer::of(304));
    let mut crawl = eager(&web);
    crawl.run().unwrap();
    assert_eq!(row(&crawl, 1, &web.url(0, "/a")).change, None);
    again(&mut crawl);
    assert_eq!(row(&crawl, 2, &web.url(0, "/a")).change, None);
}

/// Some servers refuse conditions. Their pages are not broken.
#[test]
fn a_page_whose_server_refuses_conditions_is_fetched_without_them() {
    for status in [400, 412, 500, 501] {
        let web = TestWeb::builder()
            .pages(1)
            .mix(LinkMix::plain())
            .sitemap(false)
            .handler(0, move |request| {
                let answer = match &*request.path {
                    "/" if request.header("if-none-match").is_some() => HttpAnswer::of(status),
                    "/" => page("").header("etag", "\"1\""),
                    _ => HttpAnswer::of(404),
                };
                Some(answer.into())
            })
            .start();
        let mut crawl = eager(&web);
        crawl.run().unwrap();
        web.take_log();
        again(&mut crawl);
        let row = row(&crawl, 2, &web.url(0, "/"));
        let found = (row.status, row.change.as_deref());
        assert_eq!(found, (Some(200), Some("same")), "{status}");
        let requests = web.take_log();
        let requests = requests.iter().filter(|entry| entry.path == "/");
        let conditions = requests.map(|entry| entry.header("if-none-match"));
        assert_eq!(
            conditions.collect::<Vec<_>>(),
            [Some("\"1\""), None],
            "{status}"
        );
        // Without retries, the next round asks without conditions.
        crawl.config.retries = 0;
        for expected in [status, 200] {
            let round = again(&mut crawl).round;
            let row = self::row(&crawl, round, &web.url(0, "/"));
            assert_eq!(row.status, Some(expected), "{status}");
        }
    }
}

/// A server that asks for less gets no request for a whole page in place of a conditional one.
#[test]
fn a_conditional_request_stays_conditional_after_a_429() {
    let is_busy = Arc::new(AtomicBool::new(false));
    let busy = Arc::clone(&is_busy);
    let web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .handler(0, move |request| {
            let answer = match &*request.path {
                "/" if busy.swap(false, Ordering::Relaxed) => {
                    HttpAnswer::of(429).header("retry-after", "0")
                }
                "/" if request.header("if-none-match").is_some() => HttpAnswer::of(304),
                "/" => page("").header("etag", "\"1\""),
                _ => HttpAnswer::of(404),
            };
            Some(answer.into())
        })
        .start();
    let mut crawl = eager(&web);
    crawl.run().unwrap();
    web.take_log();
    is_busy.store(true, Ordering::Relaxed);
    again(&mut crawl);
    let requests = web.take_log();
    let requests = requests.iter().filter(|entry| entry.path == "/");
    let conditions = requests.map(|entry| entry.header("if-none-match"));
    assert_eq!(conditions.collect::<Vec<_>>(), [Some("\"1\""); 2]);
    assert_eq!(row(&crawl, 2, &web.url(0, "/")).status, Some(304));
}

#[test]
fn a_truncated_page_is_fetched_in_full() {
    let whole = page(&"0123456789".repeat(9)).header("etag", "\"1\"");
    let web = small(&["/a"]);
    web.script(0, "/a", whole);
    let mut crawl = eager(&web);
    crawl.config.fetch.max_body = 60;
    crawl.run().unwrap();
    assert_eq!(
        row(&crawl, 1, &web.url(0, "/a")).error.as_deref(),
        Some("body_truncated")
    );
    web.take_log();
    again(&mut crawl);
    let conditional = |entry: &LogEntry| {
        let mut names = entry.headers.iter().map(|(name, _)| name.to_lowercase());
        names.any(|name| name == "if-none-match")
    };
    assert!(!web.log().iter().any(conditional));
}

/// A body that can't be decoded reveals nothing about a page that could be read before. So the page
/// stays in the index, and the next visit requests it without validators.
#[test]
fn a_later_visit_that_cannot_be_decoded_leaves_the_page_as_it_was() {
    let page = |words: &str| {
        HttpAnswer::html(&format!("<title>{words}</title><p>{words} words")).header("etag", "\"1\"")
    };
    let mut cut = page("Cut").gzip();
    cut.body.truncate(20);
    let bad = [
        ("/cut", cut),
        ("/plain", page("Plain").header("content-encoding", "gzip")),
        (
            "/unknown",
            page("Unknown").header("content-encoding", "xpress"),
        ),
        ("/brotli", page("Brotli").header("content-encoding", "br")),
    ];
    let links: String = bad
        .iter()
        .map(|(path, _)| format!("<a href={path}>x</a>"))
        .collect();
    let mut web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false);
    web = web.script(0, "/", HttpAnswer::html(&links));
    for (path, _) in &bad {
        web = web.script(0, path, page(&path[1..]));
    }
    let web = web.start();
    let mut crawl = eager(&web);
    crawl.config.index = true;
    crawl.run().unwrap();
    for (path, answer) in &bad {
        web.script(0, path, answer.clone());
    }
    let indexed = |crawl: &Crawl| {
        let index = IndexSearcher::open(&crawl.output("index")).unwrap();
        bad.iter()
            .filter(|(path, _)| index.page(&web.url(0, path)).unwrap().is_some())
            .count()
    };
    again(&mut crawl);
    for (path, _) in &bad {
        let row = row(&crawl, 2, &web.url(0, path));
        assert_eq!((row.change, row.indexed), (None, None), "{path}");
        assert!(row.error.unwrap().starts_with("encoding_"), "{path}");
    }
    assert_eq!(indexed(&crawl), bad.len());
    reindex(
        &crawl.config.output,
        &IndexRebuildSettings::of(&crawl.config),
        &|| false,
        &mut |_| {},
    )
    .unwrap();
    assert_eq!(indexed(&crawl), bad.len());
    web.take_log();
    again(&mut crawl);
    for entry in web.take_log() {
        assert_eq!(entry.header("if-none-match"), None, "{}", entry.path);
    }
}

/// Moves all dates in the state of a finished crawl into the future, as if its clock had been this
/// many seconds ahead.
fn date_ahead(crawl: &Crawl, seconds: u32) {
    let state = crawl.config.output.join("state");
    let frontier = FjallFrontier::open(&state, &FjallFrontierOptions::default()).unwrap();
    let later = |value: &mut serde_json::Value, scale: u64| {
        let ahead = u64::from(seconds) * scale;
        *value = (value.as_u64().unwrap() + ahead).into();
    };
    let mut transaction = frontier.begin().unwrap();
    transaction.visit_due(u32::MAX, usize::MAX).unwrap();
    let round = frontier.meta("round").unwrap().unwrap();
    let mut round: serde_json::Value = serde_json::from_slice(&round).unwrap();
    later(&mut round["began"], 1);
    later(&mut round["first_began"], 1);
    transaction.keep_meta("round", round.to_string().as_bytes());
    transaction.commit().unwrap();
    let mut transaction = frontier.begin().unwrap();
    for (origin, _) in frontier.origins() {
        while let Some(lease) = frontier.lease(&origin).unwrap() {
            let mut visit = frontier.visit(&lease.url).unwrap().unwrap();
            visit.at += seconds;
            visit.due += seconds;
            let fetched = LeaseOutcome::Fetched { status: 200 };
            transaction.settle_until(lease, fetched, visit).unwrap();
        }
        let copy = frontier.robots(&origin).unwrap().unwrap();
        let end = copy.iter().position(|byte| *byte == b'\n').unwrap();
        let mut head: serde_json::Value = serde_json::from_slice(&copy[..end]).unwrap();
        for time in ["fetched_at", "expires", "good_at"] {
            later(&mut head[time], 1_000_000);
        }
        let copy = [head.to_string().as_bytes(), &copy[end..]].concat();
        transaction.keep_robots(&origin, &copy);
    }
    transaction.commit().unwrap();
}

#[test]
fn a_clock_that_was_ahead_delays_no_round() {
    const HOUR: u32 = 60 * 60;
    for seconds in [2 * HOUR, 10 * 24 * HOUR, 4 * 365 * 24 * HOUR] {
        clock_that_was_ahead(seconds);
    }
}

fn clock_that_was_ahead(seconds: u32) {
    let web = small(&["/still", "/busy"]);
    web.script(
        0,
        "/robots.txt",
        HttpAnswer::text("User-agent: *\nDisallow: /none\n"),
    );
    let mut crawl = Crawl::of(&web);
    crawl.run().unwrap();
    date_ahead(&crawl, seconds);
    web.take_log();
    let summary = again(&mut crawl);
    assert_eq!(summary.ended, EndReason::Finished);
    assert_eq!(summary.pending, 0);
    assert_eq!(summary.changes.same, 3, "{seconds}");
    let asked_for: Vec<_> = web.take_log().into_iter().map(|entry| entry.path).collect();
    assert_eq!(
        asked_for[0], "/robots.txt",
        "how old that copy is, nobody knows"
    );
    // This round replaced all dates that the wrong clock had set.
    let today = crawl.pages().last().unwrap().fetched_at.as_micros() / 1_000_000;
    // Visits within a second of each other determine no revisit interval, so all pages are due in
    // the next round.
    let due = summary.next_due.map_or(0, u64::from);
    assert!(due < today + 31 * 24 * 60 * 60, "{due} {today}");
    again(&mut crawl);
    assert!(!requested_paths(&web.log()).contains("/robots.txt"));
}
