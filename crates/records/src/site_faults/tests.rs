//! Sites with planted faults.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use super::{FaultBaseline, FaultKind, PageFault, SiteFaultReport, UncheckedLink, faults};
use crate::broken_links::broken_links;
use crate::test_crawl_builder::TestCrawlBuilder;

const HOST: &str = "https://e.example";
const PAGES: usize = 250;
const PLANTED: usize = 1_000;

/// A deterministic pseudo-random generator.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }
}

/// A planted fault: its page, target and kind.
type Planted = (String, String, FaultKind);

/// Creates a site of 250 pages with many valid links of all kinds and a thousand faults. Also
/// returns the faults.
fn planted_site() -> (tempfile::TempDir, BTreeSet<Planted>) {
    let mut draw = Draw(17);
    let mut made = TestCrawlBuilder::new();
    let mut bodies: Vec<String> = (0..PAGES)
        .map(|at| {
            let next = (at + 1) % PAGES;
            format!(
                "<title>Page {at}</title><h1 id=top-{at}>Page {at}</h1>\
                 <p id='größe'>The {at} th story tells of tea.</p><a name='old name'>x</a>\
                 <svg><g id=drawing /></svg>\
                 <a href=/p{next}>n</a> <a href='/p{next}#top-{next}'>n</a> <a href='#'>up</a>\
                 <a href=#top>up</a> <a href='/p{next}#gr%C3%B6%C3%9Fe'>g</a>\
                 <a href='/p{next}#old%20name'>o</a> <a href=/p{next}#drawing>d</a>\
                 <a href=#!/route>r</a> <a href='#/route'>r</a> <a href=/file.pdf#page=2>f</a>\
                 <a href='/p{next}#:~:text=story%20tells,tea'>t</a>\
                 <a href='/p{next}#top-{next}:~:text=THE%20{next}'>t</a>\
                 <a href=/short#top-0>s</a> <a href=/barred#x>b</a>\
                 <a href=http://plain.example/>a link is not loaded</a>\
                 <img src=/good.png> <template><a href=/p0#later>l</a><b id=later></b></template>"
            )
        })
        .collect();
    let mut planted = BTreeSet::new();
    for at in 0..PLANTED {
        let (from, to) = (draw.below(PAGES), draw.below(PAGES));
        let (html, link, kind) = match at % 9 {
            0 => {
                let link = format!("{HOST}/gone{at}");
                made.row(
                    &link,
                    &json!({"status": 404 + 6 * (at % 2), "via": format!("{HOST}/p0")}),
                );
                (
                    format!("<a href=/gone{at}>gone</a>"),
                    link,
                    FaultKind::Broken,
                )
            }
            1 => {
                let link = format!("http://dead{at}.example/");
                made.row(
                    &link,
                    &json!({"error": "name_not_found", "via": format!("{HOST}/p0")}),
                );
                (
                    format!("<a href={link}>dead</a>"),
                    link,
                    FaultKind::Unreachable,
                )
            }
            2 => {
                let link = format!("{HOST}/p{to}#no-{at}");
                (
                    format!("<a href='/p{to}#no-{at}'>no such id</a>"),
                    link,
                    FaultKind::Fragment,
                )
            }
            3 => {
                let link = format!("{HOST}/p{to}#:~:text=milk%20{at}");
                (
                    format!("<a href='{link}'>no such text</a>"),
                    link,
                    FaultKind::TextFragment,
                )
            }
            4 => {
                let link = format!("{HOST}/old{at}");
                let to = format!("{HOST}/p{to}");
                made.row(
                    &link,
                    &json!({"status": 301 + 7 * (at % 2), "redirect": to}),
                );
                (
                    format!("<a href=old{at}>moved</a>"),
                    link,
                    FaultKind::Redirect,
                )
            }
            5 => {
                let link = format!("http://e.example/plain{at}.png");
                (format!("<img src={link} alt=x>"), link, FaultKind::Mixed)
            }
            6 => {
                let link = format!("{HOST}/style{at}.css");
                made.row(&link, &json!({"status": 500, "via": format!("{HOST}/p0")}));
                (
                    format!("<link rel=stylesheet href=/style{at}.css>"),
                    link,
                    FaultKind::Broken,
                )
            }
            7 => {
                let before = format!("{HOST}/now{at}");
                made.row(
                    &before,
                    &json!({"status": 302, "redirect": format!("{HOST}/p{to}")}),
                );
                let link = format!("{before}#no-{at}");
                (
                    format!("<a href='{link}'>there</a>"),
                    link,
                    FaultKind::Fragment,
                )
            }
            _ => {
                let link = format!("http://e.example/frame{at}");
                (
                    format!("<iframe src={link}></iframe>"),
                    link,
                    FaultKind::Mixed,
                )
            }
        };
        bodies[from].push_str(&html);
        planted.insert((format!("{HOST}/p{from}"), link, kind));
    }
    for (at, body) in bodies.iter().enumerate() {
        made.page(&format!("{HOST}/p{at}"), "text/html; charset=utf-8", body);
    }
    made.page(
        &format!("{HOST}/file.pdf"),
        "application/pdf",
        "%PDF-1.4 ..",
    );
    made.page(&format!("{HOST}/good.png"), "image/png", "\u{89}PNG");
    made.row(
        &format!("{HOST}/short"),
        &json!({"status": 302, "redirect": format!("{HOST}/p0")}),
    );
    (made.finish(), planted)
}

fn faults_found(faults: &SiteFaultReport) -> BTreeSet<Planted> {
    let faults_found = faults.faults.iter();
    let faults_found = faults_found.map(|fault| {
        (
            fault.page.clone().unwrap_or_default(),
            fault.to.clone(),
            fault.kind,
        )
    });
    faults_found.collect()
}

#[test]
fn a_thousand_planted_faults_are_found_and_none_is_invented() {
    let (dir, planted) = planted_site();
    let all = faults(dir.path(), &FaultKind::ALL).unwrap();
    assert_eq!(planted.len(), PLANTED);
    let faults_found = faults_found(&all);
    let missed: Vec<_> = planted.difference(&faults_found).collect();
    let invented: Vec<_> = faults_found.difference(&planted).collect();
    assert!(
        missed.is_empty() && invented.is_empty(),
        "{missed:#?} {invented:#?}"
    );
    assert_eq!(all.counts.values().sum::<u64>(), PLANTED as u64);
    assert_eq!((all.unread, all.source.as_str()), (0, "archive"));
    let mixed = faults(dir.path(), &[FaultKind::Mixed]).unwrap();
    assert_eq!(mixed.faults.len() as u64, all.counts[&FaultKind::Mixed]);
}

#[test]
fn forms_sent_over_http_are_mixed_whether_or_not_their_url_answers_get() {
    let mut made = TestCrawlBuilder::new();
    let html = "<form method=post action=http://e.example/login><input type=password></form>\
        <form action=http://e.example/find></form><form method=dialog action=http://e.example/x></form>\
        <form method=post action=/comment><button formaction=http://e.example/preview>x</button></form>";
    let page = format!("{HOST}/");
    made.page(&page, "text/html", html);
    made.row(
        &format!("{HOST}/comment"),
        &json!({"status": 405, "via": format!("{HOST}/elsewhere")}),
    );
    let dir = made.finish();
    let mixed = |path: &str| {
        let to = format!("http://e.example/{path}");
        (page.clone(), to, FaultKind::Mixed)
    };
    let elsewhere = (
        format!("{HOST}/elsewhere"),
        format!("{HOST}/comment"),
        FaultKind::Broken,
    );
    let mut expected = BTreeSet::from(["find", "login", "preview"].map(mixed));
    expected.insert(elsewhere);
    let all = faults(dir.path(), &FaultKind::ALL).unwrap();
    assert_eq!(faults_found(&all), expected);
}

#[test]
fn a_redirect_passes_a_fragment_on_unless_it_has_its_own() {
    let mut made = TestCrawlBuilder::new();
    let url = |path: &str| format!("{HOST}{path}");
    made.redirect(&url("/keeps"), "/end", &url("/end"));
    made.redirect_with(301, &url("/own"), "/keeps#here", &url("/keeps"));
    made.redirect_with(301, &url("/empty"), "/end#", &url("/end"));
    made.redirect(&url("/lost"), "/end#lost", &url("/end"));
    made.page(&url("/end"), "text/html", "<title>End</title><p id=here>x");
    let links = "<title>Links</title><a href=/keeps#here>a</a> <a href=/keeps#gone>b</a>\
        <a href=/own#gone>c</a> <a href=/own>d</a> <a href=/empty#gone>e</a>\
        <a href=/lost>f</a> <a href=/lost#here>g</a> <a href='/end#he\nre'>h</a>";
    made.page(&url("/"), "text/html", links);
    let dir = made.finish();
    let report = faults(dir.path(), &[FaultKind::Fragment]).unwrap();
    let pairs = report
        .faults
        .iter()
        .map(|fault| (fault.to.as_str(), fault.why.as_str()));
    let (lost, gone) = ("no such anchor #lost", "no such anchor #gone");
    assert_eq!(
        pairs.collect::<Vec<_>>(),
        [
            ("https://e.example/keeps#gone", gone),
            ("https://e.example/lost", lost),
            ("https://e.example/lost#here", lost),
        ]
    );
    let report = faults(dir.path(), &[FaultKind::Redirect]).unwrap();
    let pairs = report.faults.iter();
    let pairs = pairs.map(|fault| (&fault.to[HOST.len()..], fault.why.as_str()));
    assert_eq!(
        pairs.collect::<Vec<_>>(),
        [
            ("/empty", "moved to https://e.example/end"),
            ("/own", "moved to https://e.example/keeps#here"),
        ]
    );
}

#[test]
fn faults_in_the_baseline_are_skipped() {
    let (dir, _) = planted_site();
    let mut all = faults(dir.path(), &FaultKind::ALL).unwrap();
    let file = dir.path().join("known.jsonl");
    let listed_lines: String =
        all.json_lines()
            .lines()
            .skip(3)
            .fold(String::new(), |mut listed_lines, line| {
                let _ = writeln!(listed_lines, "{line}");
                listed_lines
            });
    let fixed = json!({"page": null, "to": "https://e.example/mended", "kind": "broken"});
    fs::write(&file, format!("{listed_lines}\n{fixed}\n")).unwrap();
    let baseline = FaultBaseline::read(&file).unwrap();
    let first: Vec<PageFault> = all.faults[..3].to_vec();
    all.leave_out(&baseline);
    assert_eq!(
        (all.faults.clone(), all.known, all.mended),
        (first, PLANTED as u64 - 3, 1)
    );
    assert!(all.to_string().starts_with("3 new faults: "), "{all}");

    let mut broken = faults(dir.path(), &[FaultKind::Broken]).unwrap();
    let broken_count = broken.faults.len() as u64;
    broken.leave_out(&baseline);
    let new_count = broken.faults.len() as u64;
    assert_eq!((broken.known, broken.mended), (broken_count - new_count, 1));
    fs::write(&file, "{\"page\":3}\n").unwrap();
    let error = FaultBaseline::read(&file).unwrap_err().to_string();
    assert!(error.contains("known.jsonl` line 1: "), "{error}");
}

fn one_fault() -> SiteFaultReport {
    let mut made = TestCrawlBuilder::new();
    made.row("https://e.example/", &json!({"status": 404}));
    let mut one = faults(made.finish().path(), &FaultKind::ALL).unwrap();
    one.faults[0].page = Some("https://e.example/a?b=1&c=%0A".into());
    one.faults[0].text = Some("<b>\u{1b}[31m".into());
    one.faults[0].why = "404 <x>\n::error::".into();
    one
}

#[test]
fn each_format_escapes_text_from_servers() {
    let one = one_fault();
    let junit = one.junit();
    assert!(junit.contains("failures=\"1\""), "{junit}");
    assert!(
        junit.contains("a?b=1&amp;c=%0A") && junit.contains("404 &lt;x&gt;"),
        "{junit}"
    );
    let github = one.github();
    assert_eq!(github.lines().count(), 1, "{github}");
    assert!(
        github.starts_with("::error title=broken::https://e.example/ on "),
        "{github}"
    );
    assert!(github.contains("%250A"), "{github}");
    let html = one.html();
    assert!(
        html.contains("&lt;b&gt;") && !html.contains("<b>") && !html.contains('\u{1b}'),
        "{html}"
    );
    let mut target = one_fault();
    target.faults[0].to = "https://e.example/#\u{1b}[2J\n::error::x".into();
    let github = target.github();
    assert_eq!(github.lines().count(), 1, "{github}");
    let plain = target.to_string();
    assert!(!(plain + &github).contains('\u{1b}'), "{target}");
    let none = SiteFaultReport::default();
    assert!(
        none.junit()
            .contains("<testcase classname=\"crawl\" name=\"no fault\"/>")
    );
    assert_eq!(
        (none.github(), none.json_lines()),
        (String::new(), String::new())
    );
    assert!(none.to_string().starts_with("no faults\n"));
}

/// Adds a page in scope with links to `targets`.
fn linking_page(made: &mut TestCrawlBuilder, targets: &[&str]) {
    let links = targets.iter().map(|to| format!("<a href='{to}'>x</a>"));
    made.page(&format!("{HOST}/"), "text/html", &links.collect::<String>());
}

#[test]
fn links_with_an_unknown_target_are_unchecked() {
    let mut made = TestCrawlBuilder::new();
    let urls = ["barred", "unfollowed", "scope", "busy", "login", "gone"]
        .map(|path| format!("https://o.example/{path}"));
    linking_page(&mut made, &urls.each_ref().map(String::as_str));
    let [barred, unfollowed, scope, busy, login, gone] = &urls;
    made.row(busy, &json!({"status": 429}));
    made.row(login, &json!({"status": 403, "error": "login_page"}));
    made.row(gone, &json!({"status": 403}));
    let dir = made.finish();
    let excluded = [
        (barred, "robots"),
        (unfollowed, "nofollow"),
        (scope, "scope"),
    ];
    let rows = excluded.map(|(url, reason)| {
        json!({"url": url, "reason": reason, "rule": null, "line": null, "found_on": HOST})
            .to_string()
    });
    fs::write(dir.path().join("excluded.jsonl"), rows.join("\n") + "\n").unwrap();
    let report = faults(dir.path(), &FaultKind::ALL).unwrap();
    let unchecked = report.unchecked.iter();
    let unchecked: Vec<_> = unchecked.map(|link| (&link.to, link.why())).collect();
    let expected = [
        (barred, "robots.txt"),
        (busy, "too many requests (429)"),
        (login, "login page"),
        (unfollowed, "nofollow"),
    ];
    assert_eq!(unchecked, expected);
    let [fault] = &report.faults[..] else {
        panic!("{report}")
    };
    assert_eq!((&fault.to, fault.why.as_str()), (gone, "forbidden (403)"));
    assert_eq!((fault.status, report.failing()), (Some(403), 1));
}

#[test]
fn each_link_to_an_unreachable_host_is_a_fault() {
    let mut made = TestCrawlBuilder::new();
    // `waiting.jsonl` lists at most 100 URLs of an origin. In this test it lists only one.
    let urls = ["a", "b", "c"].map(|path| format!("https://dead.example/{path}"));
    let waits = "https://waits.example/";
    linking_page(&mut made, &[&urls[0], &urls[1], &urls[2], waits]);
    let dir = made.finish();
    let home = format!("{HOST}/");
    let rows = [
        json!({"origin": null, "urls": 4, "reason": "unreachable", "detail": null}),
        json!({"origin": "https://dead.example", "urls": 3, "reason": "robots",
            "detail": "robots.txt: connect_refused",
            "listed": [{"url": urls[0], "found_on": home}]}),
        json!({"origin": "https://waits.example", "urls": 1, "reason": "robots",
            "detail": "robots.txt answered 429"}),
        json!({"origin": HOST, "urls": 7, "reason": "budget", "detail": "max-pages"}),
    ];
    let rows = rows.map(|row| row.to_string());
    fs::write(dir.path().join("waiting.jsonl"), rows.join("\n") + "\n").unwrap();
    let report = faults(dir.path(), &FaultKind::ALL).unwrap();
    let rows = report.faults.iter();
    let listed: Vec<_> = rows
        .map(|fault| (fault.kind, &fault.to, fault.why.as_str()))
        .collect();
    let expected = urls.each_ref();
    let expected = expected.map(|url| (FaultKind::Unreachable, url, "connection refused"));
    assert_eq!(listed, expected);
    assert_eq!(
        (report.unchecked[0].to.as_str(), report.pending),
        (waits, 7)
    );
    let last = "\n7 known URLs were not visited, so there may be more faults\n";
    assert!(report.to_string().ends_with(last), "{report}");
}

#[test]
fn an_origin_that_went_down_since_the_last_round_is_unreachable() {
    let mut made = TestCrawlBuilder::new();
    let friend = "https://friend.example/page";
    linking_page(&mut made, &[&format!("{HOST}/a"), friend]);
    let body = "<p>text</p>";
    let deeper = json!({"depth": 1, "via": format!("{HOST}/")});
    made.page_with(&format!("{HOST}/a"), "text/html", body, &deeper);
    made.row(
        friend,
        &json!({"status": 200, "depth": 1, "hops_off_scope": 1, "round": 1}),
    );
    let dir = made.finish();
    let down = |origin: &str, urls: u32| {
        json!({"origin": origin, "urls": urls, "reason": "unreachable",
            "detail": "3 requests in a row failed"})
    };
    let why = "3 requests in a row failed";
    let home = format!("{HOST}/");
    let outage = |round: u32, origins: &[Value]| {
        let ended = json!({"origin": null, "urls": 3, "reason": "unreachable", "detail": null,
            "round": round});
        let rows: Vec<Value> = [ended].into_iter().chain(origins.iter().cloned()).collect();
        write_rows(&dir, "waiting.jsonl", &rows);
        faults(dir.path(), &FaultKind::ALL).unwrap()
    };
    // If the site itself is down, that is a single fault, even though its pages link to each other.
    let report = outage(2, &[down(HOST, 2)]);
    assert_eq!(
        listed(&report),
        [(FaultKind::Unreachable, home.as_str(), why)]
    );
    assert_eq!(
        (report.faults[0].page.as_ref(), report.pending, report.round),
        (None, 2, 2)
    );
    // If another site is down, each link to it is a fault. The pending URLs of the other site don't
    // count, because their pages can't have faults of this site.
    let report = outage(2, &[down("https://friend.example", 1)]);
    assert_eq!(listed(&report), [(FaultKind::Unreachable, friend, why)]);
    assert_eq!(
        (report.faults[0].page.as_ref(), report.pending),
        (Some(&home), 0)
    );
    // Don't report pages that were visited in the last round, even if their origin became
    // unreachable later in the round.
    let report = outage(1, &[down(HOST, 2), down("https://friend.example", 1)]);
    assert_eq!(listed(&report), []);
    assert_eq!(report.pending, 2);
    let parked = json!({"origin": HOST, "urls": 2, "reason": "unreachable",
        "detail": "it has quiet hours"});
    assert_eq!(listed(&outage(2, &[parked])), []);
}

#[test]
fn links_to_unfetched_pages_of_a_site_that_went_down_are_no_further_faults() {
    let mut made = TestCrawlBuilder::new();
    let [deep, pending] = ["deep", "pending"].map(|path| format!("{HOST}/{path}"));
    let [friend, limited] = ["", "x"].map(|path| format!("https://friend.example/{path}"));
    linking_page(&mut made, &[&deep, &pending, &friend, &limited]);
    let dir = made.finish();
    let why = "robots.txt: connect_refused";
    let home = format!("{HOST}/");
    let down = |origin: &str, url: &str| {
        json!({"origin": origin, "urls": 1, "reason": "robots", "detail": why,
            "listed": [{"url": url, "found_on": home}]})
    };
    let ended = json!({"origin": null, "urls": 2, "reason": "unreachable", "detail": null,
        "round": 2});
    let waiting = [
        ended,
        down(HOST, &pending),
        down("https://friend.example", &friend),
    ];
    write_rows(&dir, "waiting.jsonl", &waiting);
    let excluded = |url: &str, reason: &str| json!({"url": url, "reason": reason, "rule": null, "line": null, "found_on": home});
    let excluded = [excluded(&deep, "depth"), excluded(&limited, "scope")];
    write_rows(&dir, "excluded.jsonl", &excluded);
    let report = faults(dir.path(), &FaultKind::ALL).unwrap();
    let expected = [&home, &friend];
    let expected = expected.map(|url| (FaultKind::Unreachable, url.as_str(), "connection refused"));
    assert_eq!(listed(&report), expected);
    assert!(report.unchecked.is_empty());
}

/// Writes rows into the file `name` of a crawl's directory.
fn write_rows(dir: &tempfile::TempDir, name: &str, rows: &[Value]) {
    let rows: Vec<String> = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::write(dir.path().join(name), rows.concat()).unwrap();
}

/// Returns the kind, target and description of each fault.
fn listed(report: &SiteFaultReport) -> Vec<(FaultKind, &str, &str)> {
    let rows = report.faults.iter();
    rows.map(|fault| (fault.kind, fault.to.as_str(), fault.why.as_str()))
        .collect()
}

#[test]
fn a_link_that_answered_only_503_is_broken_although_it_is_pending() {
    let mut made = TestCrawlBuilder::new();
    let urls = ["down", "busy", "later", "back", "head"];
    let urls = urls.map(|path| format!("https://o.example/{path}"));
    linking_page(&mut made, &urls.each_ref().map(String::as_str));
    let [down, busy, _later, back, head] = &urls;
    let dir = made.finish();
    let detail = "it answered 429 or 503";
    let waiting = [
        json!({"origin": "https://o.example", "urls": 4, "reason": "unreachable",
        "detail": detail}),
    ];
    write_rows(&dir, "waiting.jsonl", &waiting);
    let request = |url: &str, status: u16| {
        json!({"url": url, "host": "o.example", "address": null, "purpose": "page", "start": 1,
            "end": 2, "status": status, "failure": null, "gap_asked": 0, "why": "delay",
            "wait_asked": null})
    };
    let requests = [
        request(down, 503),
        request(busy, 429),
        request(back, 503),
        request(back, 500),
        request(down, 503),
    ];
    // A GET follows this HEAD.
    let mut checks = [request(head, 503), request(down, 429)];
    checks
        .iter_mut()
        .for_each(|row| row["purpose"] = "check".into());
    let requests = [&requests[..], &checks[..]].concat();
    write_rows(&dir, "requests.jsonl", &requests);
    let report = faults(dir.path(), &FaultKind::ALL).unwrap();
    let broken = (
        FaultKind::Broken,
        down.as_str(),
        "service unavailable (503)",
    );
    assert_eq!(listed(&report), [broken]);
    let unchecked = report.unchecked.iter();
    let reasons: Vec<_> = unchecked.map(UncheckedLink::why).collect();
    let asked = "its server asked to wait (429 or 503)";
    assert_eq!(reasons, [asked, "too many requests (429)", asked, asked]);
}

#[test]
fn links_that_are_not_urls_are_broken() {
    let mut made = TestCrawlBuilder::new();
    let targets = [
        "http://exa mple/",
        "http://e.example:99999/",
        "htp://e.example/",
        "mailto:me@e.example",
        "tel:1",
        "app://open",
        "file:///c:/x.doc",
        "javascrip:void(0)",
    ];
    linking_page(&mut made, &targets);
    let dir = made.finish();
    let report = faults(dir.path(), &FaultKind::ALL).unwrap();
    let broken = FaultKind::Broken;
    assert_eq!(
        listed(&report),
        [
            (
                broken,
                "file:///c:/x.doc",
                "a file on the visitor's own computer"
            ),
            (broken, "htp://e.example/", "misspelt scheme `htp`"),
            (
                broken,
                "http://e.example:99999/",
                "not a URL: invalid port number"
            ),
            (
                broken,
                "http://exa mple/",
                "not a URL: invalid international domain name"
            ),
            (broken, "javascrip:void(0)", "misspelt scheme `javascrip`"),
        ]
    );
}

#[test]
fn a_page_that_was_not_read_to_its_end_proves_no_missing_fragment() {
    let mut made = TestCrawlBuilder::new();
    let url = |path: &str| format!("{HOST}/{path}");
    let [cut, short, map] = ["cut", "short", "map"].map(url);
    let links = [&format!("{cut}#late"), &format!("{cut}#early"), &short];
    linking_page(&mut made, &links.map(String::as_str));
    let html = "text/html";
    let columns = json!({"error": "body_truncated", "charset": "UTF-8"});
    made.page_with(&cut, html, "<title>c</title><p id=early>", &columns);
    let columns = json!({"error": "short_body", "charset": "UTF-8"});
    made.page_with(&short, html, "<title>s</title><p>", &columns);
    let columns = json!({"error": "not_a_sitemap"});
    made.page_with(&map, html, "<title>Sorry</title><p>", &columns);
    let dir = made.finish();
    let report = faults(dir.path(), &FaultKind::ALL).unwrap();
    assert_eq!(
        listed(&report),
        [
            (FaultKind::Broken, &*map, "not a sitemap"),
            (FaultKind::Broken, &*short, "body cut short by the server"),
        ]
    );
    let unchecked: Vec<_> = report.unchecked.iter().map(|link| &*link.to).collect();
    assert_eq!(unchecked, [format!("{cut}#late")]);
    assert_eq!(report.incomplete, 2);
}

#[test]
fn a_redirect_is_judged_by_its_end() {
    let mut made = TestCrawlBuilder::new();
    let url = |path: &str| format!("{HOST}/{path}");
    let [barred, dead, bare] = ["barred", "dead", "bare"].map(url);
    linking_page(&mut made, &[&barred, &dead, &bare]);
    made.redirect(&barred, "/private", &url("private"));
    made.redirect(&dead, "https://dead.example/", "https://dead.example/");
    made.row(&bare, &json!({"status": 302}));
    let dir = made.finish();
    let excluded = [
        json!({"url": url("private"), "reason": "robots", "rule": null, "line": null,
        "found_on": HOST}),
    ];
    write_rows(&dir, "excluded.jsonl", &excluded);
    let waiting = [
        json!({"origin": "https://dead.example", "urls": 1, "reason": "robots",
        "detail": "robots.txt: connect_refused"}),
    ];
    write_rows(&dir, "waiting.jsonl", &waiting);
    let report = faults(dir.path(), &FaultKind::ALL).unwrap();
    let words = "connection refused, after a redirect to https://dead.example/";
    assert_eq!(
        listed(&report),
        [
            (
                FaultKind::Broken,
                bare.as_str(),
                "redirect without a target"
            ),
            (FaultKind::Unreachable, dead.as_str(), words),
        ]
    );
    let [link] = &report.unchecked[..] else {
        panic!("{report}")
    };
    assert_eq!(
        (link.to.as_str(), link.why()),
        (barred.as_str(), "robots.txt")
    );
}

#[test]
fn faults_of_pages_outside_the_scope_are_left_out() {
    let mut made = TestCrawlBuilder::new();
    let [other, gone] = ["page", "gone"].map(|path| format!("https://o.example/{path}"));
    linking_page(&mut made, &[&other]);
    let link = format!("<a href='{gone}'>x</a><a href='{other}#none'>y</a>");
    made.page_with(&other, "text/html", &link, &json!({"hops_off_scope": 1}));
    made.row(
        &gone,
        &json!({"status": 404, "via": other, "hops_off_scope": 2}),
    );
    let dir = made.finish();
    let report = faults(dir.path(), &FaultKind::ALL).unwrap();
    assert_eq!(report.to_string(), "no faults\n");
}

#[test]
fn data_without_links_is_not_a_page_that_is_missing_from_the_archive() {
    let missing = |content_type: &'static str, detected_type: &str| {
        let mut made = TestCrawlBuilder::new();
        let gone = format!("{HOST}/gone");
        linking_page(&mut made, &[&gone]);
        made.row(&gone, &json!({"status": 404, "via": format!("{HOST}/")}));
        let columns = json!({"unwanted": format!("content-type {content_type}"),
            "detected_type": detected_type});
        made.page_with(&format!("{HOST}/data"), content_type, "", &columns);
        let dir = made.finish();
        let report = faults(dir.path(), &FaultKind::ALL).unwrap();
        (report.unread, broken_links(dir.path()).unwrap().unread)
    };
    for (content_type, detected_type, unread) in [
        ("application/manifest+json", "text/plain", 0),
        ("application/LD+JSON; charset=utf-8", "text/plain", 0),
        ("application/gpx+xml", "application/xml", 0),
        ("application/rdf+xml", "application/rss+xml", 1),
        ("application/vnd.wap.xhtml+xml", "application/xhtml+xml", 1),
        ("application/feed+json", "text/plain", 1),
        ("application/json", "text/plain", 1),
        ("text/html", "text/html", 1),
    ] {
        let expected = (unread, unread);
        assert_eq!(
            missing(content_type, detected_type),
            expected,
            "{content_type}"
        );
    }
}
