//! `crawl forget`: no byte of the forgotten pages remains, and the rest verifies and can be
//! resumed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crawl_archive::WarcReader;
use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};
use flate2::read::MultiGzDecoder;
use serde_json::Value;

use crate::harness::{Cmd, Dir, MAX_WAIT, Ran, in_shell, setup};

const QUICK: [&str; 6] = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];

/// A word that only the forgotten page contains.
const WORDS: &str = "zwetschgenkuchen";

/// Sets the pages of a host. Other pages link and redirect to `/gone-page`, which links to other
/// pages and to a disallowed one. All links are relative, so no other page contains the URL of
/// `/gone-page`. The archive lacks the body of `/unarchived`.
fn site(web: &TestWeb, host: u32) {
    let page = |links: &str| HttpAnswer::html(&format!("<title>t</title><p>words {links}"));
    for (path, answer) in [
        (
            "/robots.txt",
            HttpAnswer::text("User-agent: *\nDisallow: /private\n"),
        ),
        (
            "/",
            page("<a href=kept>a</a> <a href=hop>b</a> <a href=gone-page>c</a>"),
        ),
        ("/kept", page("<a href=gone-page>a</a> <a href=.>b</a>")),
        ("/hop", HttpAnswer::redirect(302, "/gone-page")),
        (
            "/gone-page",
            page(&format!(
                "{WORDS} <a href=child>a</a> <a href=private>b</a>"
            )),
        ),
        (
            "/child",
            page("<a href=kept>a</a> <a href=unarchived>c</a>"),
        ),
        (
            "/unarchived",
            page("of a page").header("x-robots-tag", "noarchive"),
        ),
    ] {
        web.script(host, path, answer);
    }
}

fn web(hosts: u32) -> TestWeb {
    let web = TestWeb::builder()
        .hosts(hosts)
        .pages(1)
        .mix(LinkMix::plain())
        .start();
    (0..hosts).for_each(|host| site(&web, host));
    web
}

fn crawled(cmd: &Cmd, seeds: &[&str], more: &[&str]) {
    let seeds = seeds.iter().flat_map(|seed| ["--seed", *seed]);
    let seeds: Vec<_> = seeds.collect();
    let args = [
        &seeds[..],
        &["--output", "c", "--links", "on", "--index", "on"],
        &QUICK,
        more,
    ];
    let ran = cmd.run(&args.concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// Returns the files below a folder with their contents. Archives are unpacked.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(contents(&path));
            continue;
        }
        let mut bytes = fs::read(&path).unwrap();
        if path.extension().is_some_and(|end| end == "gz") {
            let mut plain = Vec::new();
            MultiGzDecoder::new(&bytes[..])
                .read_to_end(&mut plain)
                .unwrap();
            bytes = plain;
        }
        files.push((path, bytes));
    }
    files
}

/// Returns the files that contain a text in their content or name.
fn holders(dir: &Path, text: &str) -> BTreeSet<String> {
    let holds = |(path, bytes): (PathBuf, Vec<u8>)| {
        let name = path.strip_prefix(dir).unwrap().display().to_string();
        let is_there = bytes.windows(text.len()).any(|at| at == text.as_bytes());
        (is_there || name.contains(text)).then_some(name)
    };
    contents(dir).into_iter().filter_map(holds).collect()
}

fn assert_gone(dir: &Dir, texts: &[&str]) {
    for text in texts {
        assert_eq!(holders(&dir.file("c"), text), BTreeSet::new(), "{text}");
    }
}

/// Checks the rest of the crawl: rows match their records and digests, the audit passes, and search
/// works.
fn assert_verifies(dir: &Dir, cmd: &Cmd) {
    for row in dir.rows("c/pages.jsonl") {
        let Some(place) = row["warc"].as_object() else {
            continue;
        };
        let file = dir.file("c/archive").join(place["file"].as_str().unwrap());
        let record = crawl_archive::read_record(&file, place["offset"].as_u64().unwrap()).unwrap();
        assert_eq!(record.url(), row["url"].as_str());
        assert!(matches!(record.kind(), "response" | "revisit"));
    }
    for (path, _) in contents(&dir.file("c/archive")) {
        if path.extension().is_some_and(|end| end == "gz") {
            for record in WarcReader::open(&path).unwrap() {
                assert_eq!(record.unwrap().wrong_digest(), None);
            }
        }
    }
    let index = dir.read("c/archive/index.cdxj");
    let mut captures: Vec<_> = dir
        .read("c/archive/captures.cdxj")
        .lines()
        .map(str::to_owned)
        .collect();
    captures.sort_unstable();
    assert_eq!(index.lines().collect::<Vec<_>>(), captures);
    for args in [["audit", "c"], ["verify", "c"], ["report", "c"]] {
        let ran = cmd.run(&args);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    }
    let results: Value =
        serde_json::from_str(&cmd.run(&["search", "c", "words", "--json"]).ok()).unwrap();
    assert!(results["total"].as_u64().unwrap() > 0, "{results}");
    let report: Value = serde_json::from_str(&dir.read("c/report.json")).unwrap();
    let rows = dir.rows("c/pages.jsonl");
    let urls: BTreeSet<_> = rows.iter().map(|row| row["url"].as_str()).collect();
    assert_eq!(report["pages"]["total"], urls.len());
    let visits = report["pages"]["all_rounds"]["visits"].as_u64();
    let total = report["pages"]["total"].as_u64();
    assert_eq!(visits.or(total), Some(rows.len() as u64));
}

/// Checks that `/hop` doesn't count as broken: only the target of its redirect was forgotten.
fn assert_hop_not_broken(dir: &Dir, cmd: &Cmd) {
    let broken = cmd.run(&["report", "c", "--broken", "--json"]).ok();
    let broken: Value = serde_json::from_str(&broken).unwrap();
    let pages = broken["pages"].as_array().unwrap().iter();
    let urls: Vec<_> = pages.map(|page| page["url"].as_str().unwrap()).collect();
    assert!(!urls.iter().any(|url| url.ends_with("/hop")), "{urls:?}");
    let report: Value = serde_json::from_str(&dir.read("c/report.json")).unwrap();
    assert_eq!(report["broken"]["pages"], urls.len());
}

#[test]
fn no_byte_of_a_forgotten_page_remains_and_it_is_never_fetched_again() {
    let (dir, cmd) = setup("page");
    let web = web(1);
    let (seed, gone) = (web.url(0, "/"), web.url(0, "/gone-page"));
    crawled(&cmd, &[&seed], &[]);
    let before = holders(&dir.file("c"), &gone);
    for name in [
        "pages.jsonl",
        "links.jsonl",
        "requests.jsonl",
        "excluded.jsonl",
        "archive/index.cdxj",
    ] {
        assert!(before.contains(name), "{name}: {before:?}");
    }
    assert!(
        before.iter().any(|name| name.starts_with("state/store/")),
        "{before:?}"
    );
    assert!(
        before.iter().any(|name| name.ends_with(".warc.gz")),
        "{before:?}"
    );
    let rows = dir.rows("c/pages.jsonl").len();

    let files = contents(&dir.file("c"));
    let would_go: Value =
        serde_json::from_str(&cmd.run(&["forget", "c", &gone, "--dry-run", "--json"]).ok())
            .unwrap();
    assert_eq!(
        (&would_go["pages"], &would_go["records"]),
        (&1.into(), &3.into())
    );
    let rows_of = |files: Vec<(PathBuf, Vec<u8>)>| -> Vec<_> {
        let of_state = |path: &Path| path.components().any(|part| part.as_os_str() == "state");
        files
            .into_iter()
            .filter(|(path, _)| !of_state(path))
            .collect()
    };
    assert!(
        rows_of(files) == rows_of(contents(&dir.file("c"))),
        "a dry run changes nothing"
    );

    let ran = cmd.run(&[
        "forget",
        "c",
        &gone,
        "--reason",
        "the owner wrote",
        "--json",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        serde_json::from_str::<Value>(&ran.stdout).unwrap(),
        would_go
    );
    assert_gone(&dir, &[&gone, WORDS]);
    assert_verifies(&dir, &cmd);
    let pages = dir.rows("c/pages.jsonl");
    assert_eq!(pages.len(), rows - 1);
    let hop = pages
        .iter()
        .find(|row| row["url"] == web.url(0, "/hop").as_str())
        .unwrap();
    assert_eq!(
        (&hop["status"], &hop["redirect"], &hop["error"]),
        (&302.into(), &Value::Null, &"redirect_forgotten".into())
    );
    assert_hop_not_broken(&dir, &cmd);
    let tombstones = dir.rows("c/tombstones.jsonl");
    assert_eq!(tombstones.len(), 1);
    assert_eq!(
        (&tombstones[0]["kind"], &tombstones[0]["reason"]),
        (&"page".into(), &"the owner wrote".into())
    );
    assert_eq!(found(&cmd, WORDS), BTreeSet::new());
    assert!(found(&cmd, "words").contains(&web.url(0, "/unarchived")));

    // Run the crawl again, first in this round and then in a new one. Each run finds links to the
    // forgotten page again.
    let request_count = web.log().len();
    let ran = cmd.run(&["--output", "c", "--progress", "off"]);
    assert_eq!(
        (ran.code, web.log().len()),
        (0, request_count),
        "{}",
        ran.stderr
    );
    web.script(
        0,
        "/kept",
        HttpAnswer::html("<p>words anew <a href=gone-page>a</a> <a href=new>b</a>"),
    );
    let ran = cmd.run(&["--output", "c", "--recrawl", "--progress", "off"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let asked_again = web.log().split_off(request_count);
    assert!(asked_again.iter().any(|entry| entry.path == "/new"));
    assert!(
        asked_again.iter().all(|entry| entry.path != "/gone-page"),
        "{asked_again:?}"
    );
    assert_gone(&dir, &[&gone, WORDS]);
    assert_verifies(&dir, &cmd);
    assert_hop_not_broken(&dir, &cmd);
    // The forgotten page isn't fetched even if it is given as a seed.
    let ran = cmd.run(&[
        "--seed",
        &gone,
        "--add-seed",
        "--output",
        "c",
        "--links",
        "on",
        "--progress",
        "off",
    ]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("was removed from this crawl"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("hint: leave it out"), "{}", ran.stderr);
    let ran = cmd.run(&["forget", "c", &gone]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("already forgotten"), "{}", ran.stderr);
    // Simulate a crash after the commit, which leaves the report and the index unbuilt.
    fs::remove_file(dir.file("c/report.json")).unwrap();
    fs::remove_dir_all(dir.file("c/index")).unwrap();
    let ran = cmd.run(&["forget", "c", &gone]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_verifies(&dir, &cmd);
    let explanation = cmd.run(&["explain", "c", &gone]).ok();
    let at = dir.rows("c/tombstones.jsonl")[0]["at"].clone();
    let line = format!(
        "removed from this crawl; will not be fetched again\n  when: {}\n  reason: ",
        at.as_str().unwrap()
    );
    assert!(explanation.contains(&line), "{explanation}");
    assert_eq!(dir.rows("c/tombstones.jsonl").len(), 1);
    let ran = cmd.run(&["replay", "c", "--output", "again"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let requests = dir.rows("again/requests.jsonl");
    assert!(!requests.is_empty());
    assert!(
        !requests.iter().any(|row| row["url"] == gone),
        "{requests:?}"
    );
    let ran = cmd.run(&["forget", "c", &format!("{gone}-never")]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains(" not found in the crawl in c") && ran.stderr.contains("hint: "),
        "{}",
        ran.stderr
    );
}

#[test]
fn no_byte_of_a_forgotten_host_remains_even_if_it_was_a_seed() {
    let (dir, cmd) = setup("host");
    let web = web(2);
    let (first, second) = (web.url(0, "/"), web.url(1, "/"));
    crawled(&cmd, &[&first, &second], &[]);
    let host = web.authority(0);
    let in_names = host.replace(':', "-");
    assert!(holders(&dir.file("c"), host).contains("crawl.toml"));
    assert!(!holders(&dir.file("c"), &in_names).is_empty());
    let ran = cmd.run(&["forget", "c", host]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_gone(&dir, &[host, &in_names]);
    assert_verifies(&dir, &cmd);
    let request_count = web.log().len();
    let ran = cmd.run(&["--output", "c", "--recrawl", "--progress", "off"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let again = web.log().split_off(request_count);
    assert!(
        !again.is_empty() && again.iter().all(|entry| entry.host == 1),
        "{again:?}"
    );
    assert_gone(&dir, &[host, &in_names]);
    assert_verifies(&dir, &cmd);
}

#[test]
fn pages_excluded_by_a_recheck_are_forgotten_and_a_crawl_without_seeds_resumes() {
    let (dir, cmd) = setup("because");
    let web = web(1);
    let (seed, gone) = (web.url(0, "/"), web.url(0, "/gone-page"));
    crawled(&cmd, &[&seed, &gone], &[]);
    let ran = cmd.run(&["forget", "c", "--because", "robots"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("hint: `crawl recheck c`"),
        "{}",
        ran.stderr
    );
    let ran = cmd.run(&["forget", "c", &gone, "--because", "robots"]);
    assert_eq!(ran.code, 2);
    for usage in ["<DIR> <URL|HOST>", "<DIR> --because robots"] {
        assert!(ran.stderr.contains(usage), "{}", ran.stderr);
    }
    web.script(
        0,
        "/robots.txt",
        HttpAnswer::text("User-agent: *\nDisallow: /gone\n"),
    );
    assert_eq!(cmd.run(&["recheck", "c"]).code, 0);
    assert!(holders(&dir.file("c"), &gone).contains("recheck.jsonl"));
    let ran = cmd.run(&["forget", "c", "--because", "robots"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_gone(&dir, &[&gone, WORDS]);
    assert_verifies(&dir, &cmd);
    let reason = dir.rows("c/tombstones.jsonl")[0]["reason"].clone();
    assert!(
        reason.as_str().unwrap().starts_with("robots: rules of 20"),
        "{reason}"
    );
    // The last seed is forgotten too. Requests to this machine are allowed only to seeds, so none
    // may follow.
    let ran = cmd.run(&["forget", "c", &seed]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let request_count = web.log().len();
    let ran = cmd.run(&[
        "--output",
        "c",
        "--recrawl",
        "--allow-private",
        "--progress",
        "off",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let again = web.log().split_off(request_count);
    assert!(again.iter().any(|entry| entry.path == "/kept"), "{again:?}");
    assert!(
        again
            .iter()
            .all(|entry| entry.path != "/" && entry.path != "/gone-page"),
        "{again:?}"
    );
}

/// Returns the URLs that a search for `words` finds.
fn found(cmd: &Cmd, words: &str) -> BTreeSet<String> {
    let args = ["search", "c", words, "--limit", "50", "--json"];
    let results: Value = serde_json::from_str(&cmd.run(&args).ok()).unwrap();
    let hits = results["results"].as_array().unwrap().iter();
    hits.map(|hit| hit["url"].as_str().unwrap().to_owned())
        .collect()
}

/// Without an archive, the index can't be built again.
#[test]
fn a_crawl_without_an_archive_forgets_and_continues() {
    let (dir, cmd) = setup("unchanged");
    let web = web(1);
    crawled(&cmd, &[&web.url(0, "/")], &["--warc", "off"]);
    let gone = web.url(0, "/gone-page");
    let mut pages = found(&cmd, "words");
    assert!(pages.remove(&gone) && pages.len() > 2, "{pages:?}");
    let dry = cmd.run(&["forget", "c", &gone, "--dry-run"]);
    assert_eq!((dry.code, &*dry.stderr), (0, ""));
    let ran = cmd.run(&["forget", "c", &gone]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(found(&cmd, "words"), pages);
    let again = ["--output", "c", "--recrawl", "--revisit-most", "1ms"];
    for _ in 0..2 {
        let ran = cmd.run(&[&again[..], &QUICK].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    assert_eq!(found(&cmd, "words"), pages);
    // A redirect to the forgotten page is the same in later rounds.
    let hop = Value::from(web.url(0, "/hop"));
    let changes = dir.rows("c/pages.jsonl").into_iter();
    let changes = changes.filter(|row| row["url"] == hop);
    let changes: Vec<Value> = changes.map(|row| row["change"].clone()).collect();
    assert_eq!(changes, ["new", "same", "same"]);
    // A damaged index can't be rewritten.
    fs::write(dir.file("c/index/meta.json"), "{}").unwrap();
    let kept = web.url(0, "/kept");
    let dry = cmd.run(&["forget", "c", &kept, "--dry-run"]);
    let fate = "would be deleted, and can't be built again without an archive: the search index in";
    assert!(dry.stderr.contains(fate), "{}", dry.stderr);
    let ran = cmd.run(&["forget", "c", &kept]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("with --index off"), "{}", ran.stderr);
    assert!(!dir.file("c/index").exists());
    let ran = cmd.run(&[&again[..], &QUICK, &["--index", "off"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_dry_run_counts_the_rows_of_a_pending_page() {
    let (_dir, cmd) = setup("forget-pending");
    let web = web(1);
    crawled(&cmd, &[&web.url(0, "/")], &["--max-pages", "1"]);
    let gone = web.url(0, "/gone-page");
    let would_go = cmd.run(&["forget", "c", &gone, "--json", "--dry-run"]).ok();
    assert_eq!(cmd.run(&["forget", "c", &gone, "--json"]).ok(), would_go);
}

/// A killed run leaves the rows of deferred URLs in `state/excluded.jsonl`.
#[test]
fn other_excluded_urls_keep_their_round_if_a_page_is_forgotten_after_a_killed_run() {
    let (dir, cmd) = setup("rounds");
    let web = web(1);
    crawled(&cmd, &[&web.url(0, "/")], &["--max-depth", "0"]);
    fs::copy(
        dir.file("c/excluded.jsonl"),
        dir.file("c/state/excluded.jsonl"),
    )
    .unwrap();
    let ran = cmd.run(&["forget", "c", &web.url(0, "/gone-page")]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_gone(&dir, &[&web.url(0, "/gone-page")]);
    let ran = cmd.run(&[&["--output", "c", "--recrawl"][..], &QUICK].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let rows = dir.rows("c/excluded.jsonl");
    let rounds = rows
        .iter()
        .map(|row| (row["url"].as_str().unwrap(), &row["round"]));
    let rounds: BTreeMap<_, _> = rounds.collect();
    let (hop, kept, first) = (web.url(0, "/hop"), web.url(0, "/kept"), Value::from(1));
    assert_eq!(rounds, [(&*hop, &first), (&*kept, &first)].into());
    assert_eq!(rows.len(), 2);
}

/// Maximum file sizes, in blocks of `ulimit -f`. The process fails when it writes a longer file:
/// one of the first new files, a row file, or a state table, depending on the limit.
const FAILS_AT: [u32; 3] = [1, 8, 32];

/// With a limit of [`FAILS_AT`], the process fails while it creates new files. Otherwise, the test
/// kills it while it creates new files, or after the commit, while it replaces old files.
#[test]
fn a_forget_that_is_killed_is_finished_or_taken_back_by_the_next_start() {
    let (dir, cmd) = setup("killed");
    let web = web(1);
    let (seed, gone) = (web.url(0, "/"), web.url(0, "/gone-page"));
    crawled(&cmd, &[&seed], &[]);
    let copy = |name: &str| {
        let copied = Command::new("cp")
            .args(["-r", "c", name])
            .current_dir(dir.path())
            .status();
        assert!(copied.unwrap().success());
    };
    copy("whole");
    let rows = dir.rows("c/pages.jsonl").len();
    let limits = FAILS_AT.map(|limit| format!("ulimit -f {limit}"));
    let stops = limits.iter().map(String::as_str);
    for stop in stops.chain(["forget.new", "forget.json"]) {
        fs::remove_dir_all(dir.file("c")).unwrap();
        copy_back(&dir);
        let forget = cmd.command(&["forget", "c", &gone]);
        let is_limit = stop.starts_with("ulimit");
        match is_limit {
            true => assert_eq!(Ran::of_command(&mut in_shell(&forget, stop)).code, 3),
            false => kill_at(forget, &dir.file("c").join(stop)),
        }
        let request_count = web.log().len();
        let ran = cmd.run(&["--output", "c", "--progress", "off"]);
        assert_eq!(ran.code, 0, "{stop}: {}", ran.stderr);
        assert_eq!(web.log().len(), request_count, "{stop}");
        for left in ["forget.new", "forget.json"] {
            assert!(!dir.file("c").join(left).exists(), "{stop}: {left}");
        }
        let is_taken_back = dir.rows("c/pages.jsonl").len() == rows;
        // A process killed at forget.new may have come as far as the commit, or even to its end.
        if stop != "forget.new" {
            assert_eq!(is_taken_back, is_limit, "{stop}");
        }
        if !is_taken_back {
            assert_gone(&dir, &[&gone, WORDS]);
        }
        assert_verifies(&dir, &cmd);
    }
}

#[test]
fn an_index_built_later_can_forget_repeatedly() {
    let (dir, cmd) = setup("index-later");
    let web = web(1);
    let seed = web.url(0, "/");
    let args = [&["--seed", &seed, "--output", "c"][..], &QUICK].concat();
    assert_eq!(cmd.run(&args).code, 0);
    let indexed = cmd.run(&["index", "c"]);
    assert_eq!(indexed.code, 0, "{}", indexed.stderr);
    let pages = || found(&cmd, "words");
    let mut remaining: Vec<String> = pages().into_iter().collect();
    assert!(remaining.len() > 2, "{remaining:?}");
    for _ in 0..2 {
        // Forget the seed last.
        let forgotten = remaining.iter().position(|url| *url != seed).unwrap();
        let forgotten = remaining.remove(forgotten);
        let ran = cmd.run(&["forget", "c", &forgotten]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let shown = pages();
        assert!(!shown.contains(&forgotten), "{forgotten} {shown:?}");
        assert_eq!(shown.len(), remaining.len(), "{shown:?}");
        assert!(!holders(&dir.file("c/index"), &forgotten).contains("meta.json"));
        assert_verifies(&dir, &cmd);
    }
}

/// Starts a process and kills it once `file` exists. A fast process may have ended by then.
fn kill_at(mut command: Command, file: &Path) {
    let mut running = command.spawn().unwrap();
    let began = Instant::now();
    while !file.exists() && running.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < MAX_WAIT, "it does not end");
        std::hint::spin_loop();
    }
    // Ignore the error: a process that has already ended can't be killed.
    let _ = running.kill();
    running.wait().unwrap();
}

fn copy_back(dir: &Dir) {
    let copied = Command::new("cp")
        .args(["-r", "whole", "c"])
        .current_dir(dir.path())
        .status();
    assert!(copied.unwrap().success());
}

#[test]
fn a_robots_txt_is_forgotten_only_with_its_host() {
    let (dir, cmd) = setup("robots");
    let web = web(1);
    crawled(&cmd, &[&web.url(0, "/")], &[]);
    web.script(0, "/robots.txt", HttpAnswer::redirect(301, "/rules"));
    web.script(0, "/rules", HttpAnswer::text("User-agent: *\nDisallow:\n"));
    let seed = web.url(0, "/");
    let args = [&[&*seed, "--output", "moved"][..], &QUICK].concat();
    assert_eq!(cmd.run(&args).code, 0);
    for (crawl, path) in [("c", "/robots.txt"), ("moved", "/rules")] {
        let before = contents(&dir.file(crawl));
        let ran = cmd.run(&["forget", crawl, &web.url(0, path)]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(
            ran.stderr.contains("hint: forget the whole host"),
            "{}",
            ran.stderr
        );
        assert_eq!(contents(&dir.file(crawl)), before);
    }
}

#[test]
fn a_running_crawl_can_t_forget() {
    let (dir, cmd) = setup("runs");
    let web = web(1);
    let (seed, gone) = (web.url(0, "/"), web.url(0, "/gone-page"));
    crawled(&cmd, &[&seed], &[]);
    let lock = fs::File::open(dir.file("c/state/lock")).unwrap();
    lock.lock().unwrap();
    let ran = cmd.run(&["forget", "c", &gone]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("in use by another crawl or command")
            && ran.stderr.contains("hint: wait"),
        "{}",
        ran.stderr
    );
    let ran = cmd.run(&["forget", "c", "http://nowhere.example/"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    drop(lock);
    let ran = cmd.run(&["forget", "c", &gone, "--reason", &format!("as {gone} says")]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("--reason contains"), "{}", ran.stderr);
}

#[test]
fn commands_that_only_read_leave_an_erased_crawl_undamaged() {
    let (dir, cmd) = setup("read-only");
    let web = web(1);
    let (seed, gone, kept) = (
        web.url(0, "/"),
        web.url(0, "/gone-page"),
        web.url(0, "/kept"),
    );
    crawled(&cmd, &[&seed], &[]);
    assert_eq!(cmd.run(&["forget", "c", &gone]).code, 0);
    let copied = Command::new("cp")
        .args(["-r", "c", "whole"])
        .current_dir(dir.path())
        .status();
    assert!(copied.unwrap().success());
    let refused = [
        "--seed",
        &gone,
        "--add-seed",
        "--output",
        "c",
        "--links",
        "on",
    ];
    for (args, code) in [
        (&["explain", "c", &kept][..], 0),
        (&["forget", "c", &kept, "--dry-run"], 0),
        (&["replay", "c", "--output", "again"], 0),
        (&refused, 2),
    ] {
        fs::remove_dir_all(dir.file("c")).unwrap();
        copy_back(&dir);
        let ran = cmd.run(args);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.stderr);
        let verified = cmd.run(&["verify", "c"]);
        assert_eq!(verified.code, 0, "{args:?}: {}", verified.stdout);
    }
    // `verify` still finds damage that existed before `explain` opened the state.
    fs::write(dir.file("c/state/store/version"), "0").unwrap();
    cmd.run(&["explain", "c", &kept]);
    let verified = cmd.run(&["verify", "c"]);
    assert_eq!(verified.code, 4, "{}", verified.stdout);
}

/// Puts `c` into the state after a crash in the last step of `crawl forget`: forget.json still
/// lists the derived files to remove, and some of these files are already removed.
fn interrupt_at_the_end(dir: &Dir) {
    let remove = [
        "index",
        "report.json",
        "report.html",
        "hosts.jsonl",
        "digests.jsonl",
    ];
    fs::remove_file(dir.file("c/report.json")).unwrap();
    let list = serde_json::json!({"replace": [], "remove": remove, "mark": null});
    dir.write("c/forget.json", &list.to_string());
}

#[test]
fn an_interrupted_forget_is_named_and_finished_with_all_derived_files() {
    let (dir, cmd) = setup("finish");
    let web = web(1);
    let (seed, gone) = (web.url(0, "/"), web.url(0, "/gone-page"));
    crawled(&cmd, &[&seed], &[]);
    let finish = || {
        let ran = cmd.run(&["forget", "c", "--finish"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stderr
    };
    // Simulate an interruption before the list of changes was complete.
    dir.write("c/forget.new/pages.jsonl", "");
    dir.write("c/forget.json.new", "{\"repl");
    let verified = cmd.run(&["verify", "c"]);
    assert_eq!(verified.code, 0, "{}", verified.stdout);
    let note = "interrupted before anything changed: `crawl forget c --finish` removes";
    assert!(verified.stdout.contains(note), "{}", verified.stdout);
    let message = finish();
    assert!(message.contains("before it changed anything"), "{message}");
    assert!(!dir.file("c/forget.new").exists());
    assert_verifies(&dir, &cmd);
    let message = finish();
    assert!(message.contains("no interrupted erasure"), "{message}");

    assert_eq!(cmd.run(&["forget", "c", &gone]).code, 0);
    interrupt_at_the_end(&dir);
    let verified = cmd.run(&["verify", "c"]);
    assert_eq!(verified.code, 4, "{}", verified.stdout);
    let defects = "defects    1\n  forget.json: erasing pages was interrupted: `crawl forget c \
                   --finish` finishes it\n";
    assert!(verified.stdout.ends_with(defects), "{}", verified.stdout);
    let message = finish();
    assert!(message.contains("erasure is complete"), "{message}");
    assert_verifies(&dir, &cmd);
    for file in ["report.html", "hosts.jsonl"] {
        assert!(dir.file("c").join(file).exists(), "{file}");
    }
    // Simulate an interruption after all changes in the list were made, but before the derived
    // files were rebuilt.
    fs::remove_file(dir.file("c/report.json")).unwrap();
    let message = finish();
    assert!(message.contains("erasure is complete"), "{message}");
    assert_verifies(&dir, &cmd);
    fs::remove_file(dir.file("c/report.json")).unwrap();
    assert_eq!(cmd.run(&["forget", "c", &web.url(0, "/child")]).code, 0);
    assert_verifies(&dir, &cmd);
}
