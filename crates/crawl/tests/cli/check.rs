//! `crawl check`: a site with planted faults of every kind, and its links to other hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::UdpSocket;

use crawl_testweb::{ConnectionBehaviour, HttpAnswer, ReceivedRequest, ScriptedReply, TestWeb};
use serde_json::Value;

use crate::harness::{Cmd, setup};
use crate::open_files_and_certificates::serve_tls;
use crate::unreachable_seeds::closed_port;

/// The site to check, a host of the web.
const SITE: u32 = 0;
/// A second host, which responds to links from the site.
const OTHER: u32 = 1;
/// A host that refuses connections.
const REFUSING: u32 = 2;
/// A host whose robots.txt disallows everything.
const CLOSED: u32 = 3;

const PAGES: usize = 40;
const PLANTED: usize = 300;

/// The page of a fault, the link on it, the kind of the fault, and what is wrong.
type Planted = (String, String, &'static str, String);

/// Starts a name server that knows no name. Returns its address.
fn name_server() -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut query = [0; 1500];
        while let Ok((length, client)) = socket.recv_from(&mut query) {
            let question = &query[12..length];
            let Some(end) = question.iter().position(|byte| *byte == 0) else {
                continue;
            };
            // The id, the flags of an answer with NXDOMAIN, and one question without answers.
            let mut answer = vec![query[0], query[1], 0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0];
            answer.extend_from_slice(&question[..end + 5]);
            let _ = socket.send_to(&answer, client);
        }
    });
    address
}

/// Answers requests to `OTHER`. Paths below `/head-` work with GET, but not with HEAD; `/get-gone`
/// works with HEAD, but not with GET.
fn other(request: &ReceivedRequest) -> Option<ScriptedReply> {
    let is_head = request.method == "HEAD";
    let number = request
        .path
        .trim_start_matches(|c: char| !c.is_ascii_digit());
    let to = |path: &str| HttpAnswer::redirect(302, &format!("/{path}{number}"));
    let first = request.path.split('/').nth(1)?;
    let answer = match first.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "ok" | "anchor" => HttpAnswer::html("<title>fine</title><a href=/gone-of-other>x</a>"),
        "head-refused" if is_head => HttpAnswer::of([403, 404, 405, 501][request.path.len() % 4]),
        "head-closed" if is_head => return Some(ScriptedReply::close()),
        "head-moved" if is_head => HttpAnswer::redirect(302, &request.path),
        "head-empty" | "get-gone" if is_head => HttpAnswer::of(200),
        "get-gone" => HttpAnswer::of(404),
        "head-refused" | "head-closed" | "head-moved" | "head-empty" => {
            HttpAnswer::html("<title>fine</title>")
        }
        "gone" => HttpAnswer::of(410),
        "failing" => HttpAnswer::of(500),
        "to-gone" => to("gone"),
        "to-ok" => to("ok"),
        "loop-a" => to("loop-b"),
        "loop-b" => to("loop-a"),
        "moved" => HttpAnswer::redirect(301, &format!("/ok{number}")),
        "busy" => HttpAnswer::of(429).header("retry-after", "0"),
        "gone-of-other" => HttpAnswer::of(404),
        _ => return None,
    };
    Some(answer.into())
}

/// Returns the links that work, which every page has.
fn good_links(host: &impl Fn(u32, &str) -> String, at: usize) -> String {
    let next = (at + 1) % PAGES;
    let [ok, anchor, refused, closed, moved, empty, to_ok] = [
        "ok",
        "anchor",
        "head-refused",
        "head-closed",
        "head-moved",
        "head-empty",
        "to-ok",
    ]
    .map(|path| host(OTHER, &format!("/{path}{at}")));
    let long_refused = host(OTHER, &format!("/head-refused{at:05}"));
    let protocol_relative = ok.trim_start_matches("http:");
    format!(
        "<h1 id=top-{at}>Page {at}</h1><p id='größe'><a name='old name'></a>\
         <a href=/p{next}>n</a><a href='/p{next}#top-{next}'>n</a><a href=#>u</a><a href=#top>u</a>\
         <a href='/p{next}#gr%C3%B6%C3%9Fe'>g</a><a href='/p{next}#old%20name'>o</a>\
         <a href='#/route'>r</a><a href='{ok}'>1</a><a href='{ok}'>2</a><a href='{protocol_relative}'>3</a>\
         <a href='{anchor}#somewhere'>a</a><a href='{refused}'>h</a><a href='{long_refused}'>h</a>\
         <a href='{closed}'>c</a><a href='{moved}'>m</a><a href='{empty}'>e</a><a href='{to_ok}'>t</a>\
         <a href='mailto:x@e.example'>m</a><a href='tel:+1'>t</a><a href='javascript:x()'>j</a>\
         <a href='data:text/plain,x'>d</a><img src='data:image/png;base64,AA=='><img src=/good.png>"
    )
}

/// Returns the HTML of the planted fault number `at`, its target, kind and description.
fn fault(host: &impl Fn(u32, &str) -> String, tls: &str, at: usize) -> (String, [String; 3]) {
    let to = at * 7 % PAGES;
    let other_url = |path: &str| host(OTHER, &format!("/{path}{at}"));
    let link = |target: &str| format!("<a href='{target}'>fault {at}</a>");
    let (html, target, kind, why) = match at % 12 {
        0 => (None, format!("/none{at}"), "broken", "not found (404)"),
        1 => (None, other_url("gone"), "broken", "gone (410)"),
        3 if at < 48 => (None, other_url("get-gone"), "broken", "not found (404)"),
        2 if at < 24 => (
            None,
            other_url("failing"),
            "broken",
            "internal server error (500)",
        ),
        2 | 3 => (
            None,
            host(REFUSING, &format!("/{at}")),
            "unreachable",
            "connection refused",
        ),
        4 => (
            None,
            format!("http://no-{at}.example/"),
            "unreachable",
            "host name not found",
        ),
        5 => (
            None,
            format!("/p{to}#no-{at}"),
            "fragment",
            "no such anchor",
        ),
        6 => (
            None,
            other_url("to-gone"),
            "broken",
            "gone (410), after a redirect to",
        ),
        7 => (None, other_url("loop-a"), "broken", "redirect loop"),
        8 => {
            let target = format!("/none{at}.png");
            let html = format!("<img src='{target}' alt=''>");
            (Some(html), target, "broken", "not found (404)")
        }
        9 => {
            let target = other_url("gone");
            let html = format!("<script src='{target}'></script>");
            (Some(html), target, "broken", "gone (410)")
        }
        10 => (None, other_url("moved"), "redirect", "moved to"),
        _ => (
            None,
            format!("{tls}{at}"),
            "unreachable",
            "certificate error: unknown issuer",
        ),
    };
    let html = html.unwrap_or_else(|| link(&target));
    (html, [target, kind.to_owned(), why.to_owned()])
}

/// Starts the web. Returns the faults planted in it.
fn planted(tls: &str) -> (TestWeb, BTreeSet<Planted>) {
    let web = TestWeb::scripted(4)
        .robots(CLOSED, "User-agent: *\nDisallow: /\n")
        .robots(OTHER, "User-agent: *\nDisallow: /secret\n")
        .connection_mode(REFUSING, ConnectionBehaviour::Refused)
        .handler(OTHER, other)
        .start();
    let host = |host, path: &str| web.url(host, path);
    let mut bodies: Vec<String> = (0..PAGES).map(|at| good_links(&host, at)).collect();
    let mut faults = BTreeSet::new();
    for at in 0..PLANTED {
        let from = at * 31 % PAGES;
        let (html, [target, kind, why]) = fault(&host, tls, at);
        bodies[from].push_str(&html);
        let target = match target.starts_with('/') {
            true => web.url(SITE, &target),
            false => target,
        };
        let kind = ["broken", "unreachable", "fragment", "redirect"]
            .into_iter()
            .find(|known| *known == kind)
            .unwrap();
        faults.insert((web.url(SITE, &format!("/p{from}")), target, kind, why));
    }
    let unchecked = [
        format!("<a href='{}'>c</a>", web.url(CLOSED, "/x")),
        format!("<a href='{}'>s</a>", web.url(OTHER, "/secret")),
        format!("<a rel=nofollow href='{}'>n</a>", web.url(OTHER, "/paid")),
        format!("<a href='{}'>b</a>", web.url(OTHER, "/busy")),
    ];
    bodies[0].push_str(&unchecked.concat());
    for (at, body) in bodies.iter().enumerate() {
        web.script(SITE, &format!("/p{at}"), HttpAnswer::html(body));
    }
    for at in 0..PLANTED {
        for path in [format!("/none{at}"), format!("/none{at}.png")] {
            web.script(SITE, &path, HttpAnswer::of(404));
        }
    }
    let png = HttpAnswer::of(200).header("content-type", "image/png");
    web.script(SITE, "/good.png", png.body("\u{89}PNG"));
    web.script(
        SITE,
        "/",
        HttpAnswer::html("<title>Start</title><a href=/p0>start</a>"),
    );
    (web, faults)
}

fn check(cmd: &Cmd, web: &TestWeb, more: &[&str]) -> crate::harness::Ran {
    let seed = web.url(SITE, "/");
    let args = ["check", &seed, "--allow-private", "--delay", "0s"];
    let quick = ["--delay-factor", "0", "--progress", "off"];
    cmd.run(&[&args[..], &quick, more].concat())
}

#[test]
fn exactly_the_planted_faults_of_a_site_and_its_links_are_reported() {
    let (dir, cmd) = setup("check");
    let port = serve_tls();
    let tls = format!("https://a.test:{port}/");
    let (web, planted) = planted(&tls);
    let (names, resolve) = (name_server(), format!("a.test:{port}:127.0.0.1"));
    let names = ["--name-server", &names, "--resolve", &resolve];
    let ran = check(
        &cmd,
        &web,
        &[&names[..], &["--output", "c", "--format", "json"]].concat(),
    );
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let text = |fault: &Value, name: &str| fault[name].as_str().unwrap_or_default().to_owned();
    let mut reported = BTreeMap::new();
    for fault in report["faults"].as_array().unwrap() {
        let key = (text(fault, "page"), text(fault, "to"), text(fault, "kind"));
        let before = reported.insert(key, text(fault, "why"));
        assert_eq!(before, None, "{fault}");
    }
    for (page, to, kind, why) in &planted {
        let outcome = reported.remove(&(page.clone(), to.clone(), (*kind).to_owned()));
        let outcome = outcome.unwrap_or_else(|| panic!("missed {kind} {to} on {page}"));
        assert!(outcome.starts_with(why), "{outcome} {why}");
    }
    assert!(reported.is_empty(), "invented: {reported:#?}");
    assert_eq!(planted.len(), PLANTED);

    let unchecked = report["unchecked"].as_array().unwrap().iter();
    let unchecked: BTreeSet<_> = unchecked
        .map(|link| (text(link, "to"), text(link, "reason")))
        .collect();
    let expected = [
        (CLOSED, "/x", "robots"),
        (OTHER, "/secret", "robots"),
        (OTHER, "/paid", "nofollow"),
        (OTHER, "/busy", "too_many_requests"),
    ];
    let expected = expected.map(|(host, path, reason)| (web.url(host, path), reason.to_owned()));
    assert_eq!(unchecked, BTreeSet::from(expected));
    each_link_is_requested_politely(&web);
    let audit = cmd.run(&["audit", "c"]);
    assert_eq!(audit.code, 0, "{}{}", audit.stdout, audit.stderr);

    // `crawl report` prints the same report from the directory, without sending requests.
    let sent = web.log().len();
    let again = cmd
        .run(&["report", "c", "--faults", "--format", "json"])
        .ok();
    assert_eq!((again, web.log().len()), (ran.stdout, sent));
    let checked = dir.rows("c/pages.jsonl");
    let checked = checked
        .iter()
        .filter(|row| row["unwanted"] == "off-scope-method head");
    assert!(checked.count() > PAGES);
}

/// Checks that each link is requested once with HEAD, and with GET only if HEAD failed, one request
/// at a time.
fn each_link_is_requested_politely(web: &TestWeb) {
    let paths = |host| web.log_of(host).into_iter().map(|entry| entry.path);
    assert_eq!(paths(CLOSED).collect::<Vec<_>>(), ["/robots.txt"]);
    let log = web.log_of(OTHER);
    assert!(
        log.iter()
            .all(|entry| !entry.path.contains("secret") && entry.path != "/gone-of-other")
    );
    let mut methods: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in &log {
        methods.entry(&entry.path).or_default().push(&entry.method);
    }
    for (path, methods) in methods {
        let is_linked_script = methods == ["GET"] && path.starts_with("/gone");
        let expected = match path {
            "/robots.txt" => vec!["GET"],
            _ if is_linked_script => continue,
            _ if ["/head-", "/gone", "/get-gone"]
                .iter()
                .any(|of| path.starts_with(of)) =>
            {
                vec!["HEAD", "GET"]
            }
            _ if path.starts_with("/failing") || path == "/busy" => {
                assert_eq!(methods[..2], ["HEAD", "GET"], "{path}");
                continue;
            }
            _ => vec!["HEAD"],
        };
        assert_eq!(methods, expected, "{path}");
    }
    let mut times: Vec<_> = log
        .iter()
        .map(|entry| (entry.start_us, entry.end_us))
        .collect();
    times.sort_unstable();
    for pair in times.windows(2) {
        assert!(pair[0].1.unwrap() <= pair[1].0, "{pair:?}");
    }
}

/// Starts a site with a broken link, a redirect, and a link to another host whose robots.txt
/// disallows the target.
fn small_site() -> TestWeb {
    let web = TestWeb::scripted(2)
        .robots(OTHER, "User-agent: *\nDisallow: /secret\n")
        .start();
    let [old, secret] = ["/old", "/secret"].map(|path| web.url(OTHER, path));
    let page = format!(
        "<title>Start</title><a href=/none>our, news</a><a href='{old}'>docs</a><a href='{secret}'>s</a>"
    );
    web.script(SITE, "/", HttpAnswer::html(&page));
    web.script(SITE, "/none", HttpAnswer::of(404));
    web.script(OTHER, "/old", HttpAnswer::redirect(301, "/new"));
    web.script(OTHER, "/new", HttpAnswer::html("<title>New</title>"));
    web
}

#[test]
fn links_that_look_like_a_trap_are_checked_and_not_followed() {
    const PAGES: usize = 60;
    let (_dir, cmd) = setup("check-trap");
    let web = TestWeb::scripted(1).start();
    let months: String = (0..PAGES)
        .map(|n| format!("<a href=/cal?m={n}>m</a>"))
        .collect();
    web.script(
        SITE,
        "/",
        HttpAnswer::html(&format!("<title>Start</title>{months}")),
    );
    for n in 0..PAGES {
        // All months have the same words. Each links to a different day.
        let month = HttpAnswer::html(&format!("<p>No events.<a href=/cal?m={n}&d=1>first</a>"));
        let is_missing = n >= PAGES - 10;
        let answer = if is_missing {
            HttpAnswer::of(404)
        } else {
            month
        };
        web.script(SITE, &format!("/cal?m={n}"), answer);
        let day = HttpAnswer::html("<p>No events.");
        web.script(SITE, &format!("/cal?m={n}&d=1"), day);
    }
    let ran = check(&cmd, &web, &[]);
    assert!(
        ran.stdout.starts_with("10 faults: broken 10"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    let log = web.log();
    let heads = log
        .iter()
        .filter(|request| request.method == "HEAD")
        .count();
    assert!(heads > 10, "{heads} links were taken for a trap");
}

#[test]
fn a_check_reports_by_page_and_removes_its_directory() {
    let (dir, mut cmd) = setup("temporary");
    dir.write("tmp/keep", "");
    let tmp = dir.file("tmp");
    cmd.env("TMPDIR", tmp.to_str().unwrap());
    let web = small_site();
    let ran = check(&cmd, &web, &[]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let text = ran.stdout.replace(&web.url(SITE, ""), "");
    let text = text.replace(&web.url(OTHER, ""), "OTHER");
    assert_eq!(
        text,
        "1 fault: broken 1; 1 redirect to update; 1 link not checked\n\n/\n  broken         /none  \
         not found (404)  \"our, news\"\n\nredirects to update:\n\n/\n  redirect       OTHER/old  \
         moved to OTHER/new  \"docs\"\n\nlinks not checked:\n\n/\n  not checked    OTHER/secret  \
         robots.txt  \"s\"\n"
    );
    assert!(
        !ran.stderr.contains("output:") && !ran.stderr.contains("continue:"),
        "{}",
        ran.stderr
    );
    assert_eq!(std::fs::read_dir(&tmp).unwrap().count(), 1);
    assert!(!dir.file("crawl-127.0.0.1").exists());
}

#[test]
fn the_manifest_of_a_web_app_is_not_an_unread_page() {
    let (_dir, cmd) = setup("manifest");
    let web = TestWeb::scripted(1).start();
    let page = "<title>Start</title><link rel=manifest href=/app.webmanifest><a href=/none>n</a>";
    web.script(SITE, "/", HttpAnswer::html(page));
    web.script(SITE, "/none", HttpAnswer::of(404));
    let manifest = HttpAnswer::of(200).header("content-type", "application/manifest+json");
    web.script(
        SITE,
        "/app.webmanifest",
        manifest.body("{\"name\": \"App\"}"),
    );
    let ran = check(&cmd, &web, &["--output", "c"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with("1 fault: broken 1\n"),
        "{}",
        ran.stdout
    );
    let broken = cmd.run(&["report", "c", "--broken"]).ok();
    for text in [&ran.stdout, &broken] {
        assert!(!text.contains("from the archive"), "{text}");
    }
}

#[test]
fn only_new_faults_fail_a_check_with_a_baseline() {
    let (dir, cmd) = setup("baseline");
    let web = small_site();
    let written = check(&cmd, &web, &["--write-baseline", "known.jsonl"]);
    assert_eq!(written.code, 0, "{}", written.stderr);
    assert!(
        written.stdout.starts_with("1 fault: broken 1;"),
        "{}",
        written.stdout
    );
    let ran = check(&cmd, &web, &["--baseline", "known.jsonl"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout
            .starts_with("no new faults (2 known); 1 link not"),
        "{}",
        ran.stdout
    );
    dir.write("known.jsonl", "no fault\n");
    let ran = check(&cmd, &web, &["--baseline", "known.jsonl"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);

    // A redirect fails a check only if `--kinds` names it.
    web.script(SITE, "/none", HttpAnswer::html("found"));
    assert_eq!(check(&cmd, &web, &[]).code, 0);
    assert_eq!(check(&cmd, &web, &["--kinds", "redirect"]).code, 1);
}

#[test]
fn each_format_is_written_to_stdout() {
    let (dir, cmd) = setup("formats");
    let web = small_site();
    let [page, none] = ["/", "/none"].map(|path| web.url(SITE, path));
    for (format, expected) in [
        (
            "csv",
            format!("\r\n{page},broken,{none},not found (404),404,,\"our, news\"\r\n"),
        ),
        (
            "junit",
            format!("<failure type=\"broken\" message=\"not found (404)\">{none} on {page}"),
        ),
        (
            "junit",
            "tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"2\"".to_owned(),
        ),
        (
            "github",
            format!("::error title=broken::{none} on {page}: not found (404)\n"),
        ),
        ("github", "::notice title=not checked::".to_owned()),
        ("jsonl", "\"status\":404".to_owned()),
        ("html", "<h2>Links not checked</h2>".to_owned()),
    ] {
        let ran = check(&cmd, &web, &["--format", format]);
        assert_eq!(ran.code, 1, "{format} {}", ran.stderr);
        assert!(ran.stdout.contains(&expected), "{format} {}", ran.stdout);
    }
    assert!(!dir.file("crawl-127.0.0.1").exists());
}

/// Starts a web of two sites. `other` answers the requests to the second one.
fn two_sites() -> TestWeb {
    TestWeb::scripted(2).handler(OTHER, other).start()
}

#[test]
fn redirects_of_another_host_are_no_trap() {
    const LINKS: usize = 12;
    let (_dir, cmd) = setup("redirects");
    let web = two_sites();
    // Link each page only from the previous one. When a page is fetched, the crawl has then already
    // followed the redirects that the previous page links to.
    let pages = ["/", "/a", "/b", "/c", "/d"];
    for (at, path) in pages.iter().enumerate() {
        let links = (0..LINKS).map(|link| {
            let path = format!("/to-gone{}", 100 + at * LINKS + link);
            format!("<a href='{}'>x</a>", web.url(OTHER, &path))
        });
        let next = pages
            .get(at + 1)
            .map(|next| format!("<a href={next}>next</a>"));
        // Give each page new words, so that the site itself doesn't look like a trap.
        let words: String = (0..40).map(|word| format!("word{at}x{word} ")).collect();
        let html = format!("<p>{words}{}", links.chain(next).collect::<String>());
        web.script(SITE, path, HttpAnswer::html(&html));
    }
    let ran = check(&cmd, &web, &["--per-host", "1"]);
    let count = pages.len() * LINKS;
    let head = format!("{count} faults: broken {count}\n");
    assert!(
        ran.stdout.starts_with(&head),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn a_check_of_an_unreachable_site_reports_it_and_keeps_its_directory() {
    let (dir, cmd) = setup("check-unreached");
    let seed = format!("http://127.0.0.1:{}/", closed_port());
    let ran = cmd.run(&["check", &seed, "--output", "c"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("unreachable 1"), "{}", ran.stdout);
    let again = cmd.run(&["report", "c", "--faults"]);
    assert_eq!(again.stdout, ran.stdout);
    assert!(dir.file("c/pages.jsonl").is_file());
}

#[test]
fn a_site_that_went_down_before_a_later_round_is_unreachable() {
    let (_dir, cmd) = setup("went-down");
    let web = small_site();
    check(&cmd, &web, &["--output", "c"]);
    let seed = web.url(0, "/");
    drop(web);
    let again = ["--output", "c", "--recrawl", "--wait-unreachable", "0s"];
    let ran = cmd.run(&[&["check"][..], &again].concat());
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let outage = format!("(a seed)\n  unreachable    {seed}  ");
    assert!(ran.stdout.contains(&outage), "{}", ran.stdout);
    let incomplete = "not visited, so there may be more faults\n";
    assert!(ran.stdout.ends_with(incomplete), "{}", ran.stdout);
    let faults = cmd.run(&["report", "c", "--faults", "--fail-on-faults"]);
    assert_eq!((faults.code, &faults.stdout), (1, &ran.stdout));
    let broken = cmd.run(&["report", "c", "--broken", "--fail-on-broken"]);
    assert_eq!(broken.code, 1, "{}", broken.stdout);
    // The plain command `crawl` on the same directory fails too, and its summary names the next
    // round.
    let ran = cmd.run(&again);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with("can't reach any of 2 hosts\n"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("\n  round:    3: 0 new, "),
        "{}",
        ran.stderr
    );
    let changes = cmd.run(&["report", "c", "--changes"]).ok();
    assert_eq!(changes, "round 3: 0 new, 0 changed, 0 same, 0 gone\n");
    let export = [
        "export", "c", "--to", "wacz", "--round", "3", "--out", "r3.wacz",
    ];
    let export = cmd.run(&export);
    assert!(
        export
            .stderr
            .starts_with("error: no page was visited in round 3\n"),
        "{}",
        export.stderr
    );
}

#[test]
fn a_limited_check_is_continued() {
    let (_dir, cmd) = setup("continued");
    let web = small_site();
    let limited = check(&cmd, &web, &["--output", "c", "--max-pages", "1"]);
    assert_eq!(limited.code, 0, "{}", limited.stderr);
    assert!(
        limited
            .stdout
            .contains("not visited, so there may be more faults\n"),
        "{}",
        limited.stdout
    );
    assert!(
        limited
            .stderr
            .contains("continue: crawl check --output c --max-pages MORE\n"),
        "{}",
        limited.stderr
    );
    let ran = cmd.run(&[
        "check",
        "--output",
        "c",
        "--max-pages",
        "unlimited",
        "--progress",
        "off",
    ]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stdout
            .starts_with("1 fault: broken 1; 1 redirect to update; 1 link"),
        "{}",
        ran.stdout
    );
    assert!(
        web.log_of(OTHER)
            .iter()
            .all(|entry| entry.path == "/robots.txt" || entry.method == "HEAD")
    );
}

#[test]
fn an_excluded_link_is_neither_requested_nor_reported() {
    let (_dir, cmd) = setup("excluded");
    let web = small_site();
    let ran = check(
        &cmd,
        &web,
        &[
            "--exclude",
            "/none$",
            "--exclude",
            "/old$",
            "--exclude",
            "/secret$",
        ],
    );
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "no faults\n"),
        "{}",
        ran.stderr
    );
    assert!(
        web.log()
            .iter()
            .all(|entry| entry.path != "/none" && entry.path != "/old")
    );
}

#[test]
fn a_check_without_a_site_or_with_rounds_is_refused() {
    let (_dir, cmd) = setup("refused");
    let web = small_site();
    let seed = web.url(SITE, "/");
    for (args, message) in [
        (
            &["check"][..],
            "error: no site given to check\nhint: name one: `crawl check",
        ),
        (
            &["check", &seed, "--every", "1d"],
            "error: --every can't be used with `crawl check`",
        ),
    ] {
        let ran = cmd.run(args);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.starts_with(message), "{}", ran.stderr);
    }
    let crawled = cmd.run(&[&seed, "--output", "plain", "--progress", "off"]);
    assert_eq!(crawled.code, 0, "{}", crawled.stderr);
    let refused = cmd.run(&["check", "--output", "plain"]);
    let message = "error: the crawl in plain doesn't follow links to other sites";
    assert!(
        refused.code == 2 && refused.stderr.starts_with(message),
        "{}",
        refused.stderr
    );
    let unreachable = cmd.run(&["check", "http://127.0.0.1:9/", "--progress", "off"]);
    assert_eq!(unreachable.code, 1, "{}", unreachable.stderr);
    let reported = "1 fault: unreachable 1\n\n(a seed)\n  unreachable    http://127.0.0.1:9/  \
                    connection refused\n";
    assert_eq!(unreachable.stdout, reported);
}

#[test]
fn a_replay_of_a_check_sends_the_same_requests() {
    let (_dir, cmd) = setup("replayed");
    let web = two_sites();
    let paths = [
        "/ok1",
        "/head-refused2",
        "/head-closed3",
        "/head-moved7",
        "/head-empty8",
        "/get-gone9",
        "/gone4",
        "/to-gone5",
        "/moved6",
    ];
    let links = paths.map(|path| format!("<a href='{}'>x</a>", web.url(OTHER, path)));
    web.script(SITE, "/", HttpAnswer::html(&links.concat()));
    assert_eq!(check(&cmd, &web, &["--output", "c"]).code, 1);
    let replayed = cmd.run(&["replay", "c", "--output", "r", "--json"]);
    assert_eq!(replayed.code, 0, "{}", replayed.stderr);
    let comparison: Value = serde_json::from_str(&replayed.stdout).unwrap();
    assert_eq!(comparison["order"]["first"], Value::Null, "{comparison}");
    let compared = cmd.run(&["report", "--compare", "c", "r", "--json"]).ok();
    let compared: Value = serde_json::from_str(&compared).unwrap();
    for kind in ["only_a", "only_b", "status", "digest"] {
        assert_eq!(
            compared["pages"][kind].as_array().map_or(0, Vec::len),
            0,
            "{kind} {compared}"
        );
    }
    assert_eq!(cmd.run(&["verify", "c"]).code, 0);
}
