//! `crawl audit`: crawls of all kinds pass, but a falsified record doesn't.

use std::time::Duration;

use crawl_archive::WarcReader;
use crawl_testweb::{HttpAnswer, LinkMix, ReplySequence, TestWeb};
use serde_json::{Value, json};

use crate::harness::{Cmd, Dir, MAX_WAIT, Ran, setup};

const QUICK: [&str; 6] = ["--output", "c", "--delay-factor", "0", "--progress", "off"];

fn crawl(cmd: &Cmd, seed: &str, more: &[&str]) -> Ran {
    let ran = cmd.run(&[&["--seed", seed], &QUICK[..], more].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran
}

/// Audits `c` and returns the report, which must have no breaches and nothing undecided or missing.
fn clean(cmd: &Cmd) -> Value {
    let ran = cmd.run(&["audit", "c", "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let held = report["breaches"].as_array().is_some_and(Vec::is_empty);
    assert!(ran.code == 0 && held, "{}", ran.stdout);
    assert_eq!(report["undecided"], serde_json::json!({}), "{}", ran.stdout);
    assert_eq!(report["flaws"], serde_json::json!([]), "{}", ran.stdout);
    let whole = cmd.run(&["verify", "c"]);
    assert_eq!(whole.code, 0, "{}{}", whole.stdout, whole.stderr);
    report
}

fn rewrite(dir: &Dir, file: &str, change: impl Fn(usize, &mut Value)) {
    let mut rows = dir.rows(file);
    for (index, row) in rows.iter_mut().enumerate() {
        change(index, row);
    }
    let rows = rows.iter().map(|row| format!("{row}\n"));
    dir.write(file, &rows.collect::<String>());
}

#[test]
fn clean_crawl_and_doctored_records() {
    let (dir, cmd) = setup("audit");
    let web = TestWeb::builder().seed(7).hosts(1).pages(8).start();
    crawl(&cmd, &web.url(0, "/"), &["--delay", "50ms"]);
    let report = clean(&cmd);
    let (requests, as_written) = (dir.rows("c/requests.jsonl"), dir.read("c/requests.jsonl"));
    assert_eq!(report["checked"]["requests"], requests.len());
    assert_eq!(report["checked"]["gaps"], requests.len() - 1);
    assert!(
        report["checked"]["page_rows"].as_u64() > Some(5),
        "{report}"
    );
    assert!(
        report["checked"]["excluded_rows"].as_u64() > Some(0),
        "{report}"
    );
    let text = cmd.run(&["audit", "c"]).ok();
    assert!(text.ends_with("breaches   none\n"), "{text}");

    // Make a request start earlier, so that its gap is too short.
    rewrite(&dir, "c/requests.jsonl", |index, row| {
        if index == 3 {
            row["start"] = Value::from(requests[2]["end"].as_u64().unwrap() + 10);
        }
    });
    let ran = cmd.run(&["audit", "c"]);
    assert_eq!(ran.code, 4, "{}", ran.stdout);
    for line in [3, 4] {
        let url = requests[line - 1]["url"].as_str().unwrap();
        let cited = ran
            .stdout
            .lines()
            .find(|text| text.contains(&format!("requests.jsonl line {line}: ")));
        assert!(
            cited.is_some_and(|cited| cited.contains(url)),
            "{}",
            ran.stdout
        );
    }
    assert!(
        ran.stdout.contains("breaches   1: gap 1\n"),
        "{}",
        ran.stdout
    );
    dir.write("c/requests.jsonl", &as_written);
    clean(&cmd);

    // Change a row, so that it names a rule that robots.txt doesn't contain.
    rewrite(&dir, "c/pages.jsonl", |index, row| {
        if index == 2 {
            row["robots"]["line"] = Value::from(77);
        }
    });
    let ran = cmd.run(&["audit", "c"]);
    assert_eq!(ran.code, 4, "{}", ran.stdout);
    assert!(
        ran.stdout.contains("says allowed by line 77")
            && ran.stdout.contains("    pages.jsonl line 3\n")
            && ran.stdout.contains("    requests.jsonl line 1: robots "),
        "{}",
        ran.stdout
    );
}

#[test]
fn concurrent_requests_and_refetched_rules() {
    let (dir, cmd) = setup("audit-flight");
    let robots = "User-agent: *\nDisallow: /private\n";
    let web = TestWeb::builder()
        .seed(5)
        .hosts(3)
        .pages(40)
        .latency(Duration::from_millis(5))
        .script(0, "/robots.txt", HttpAnswer::text(robots))
        .script(
            1,
            "/robots.txt",
            HttpAnswer::redirect(301, "/r1").header("x", "y"),
        )
        .script(1, "/r1", HttpAnswer::redirect(302, "/r2"))
        .script(1, "/r2", HttpAnswer::text(robots).gzip())
        .start();
    let many = [
        "--delay",
        "30ms",
        "--per-host",
        "3",
        "--scope",
        "any",
        "--allow-private",
        "--robots-max-age",
        "1s",
    ];
    crawl(&cmd, &web.url(0, "/"), &many);
    let report = clean(&cmd);
    assert_eq!(report["hosts"], 3);
    // The archive's record of a robots.txt that was reached by a redirect names the origin for
    // which it was fetched.
    let archive = dir.file("c/archive").read_dir().unwrap();
    let files = archive.map(|entry| entry.unwrap().path());
    let mut files = files.filter(|path| path.extension().is_some_and(|end| end == "gz"));
    let mut records = WarcReader::open(&files.next().unwrap()).unwrap();
    let hop = records.find_map(|record| {
        let record = record.unwrap();
        let is_hop = record.kind() == "metadata" && record.url() == Some(&web.url(1, "/r2"));
        is_hop.then(|| String::from_utf8(record.block).unwrap())
    });
    let of = format!("of: http://{}\r\n", web.authority(1));
    assert!(hop.is_some_and(|hop| hop.contains(&of)));
}

#[test]
fn a_crawl_respects_the_pace_set_by_robots_txt() {
    let (_dir, cmd) = setup("audit-pace");
    let web = TestWeb::builder()
        .hosts(1)
        .pages(4)
        .mix(LinkMix::plain())
        .script(
            0,
            "/robots.txt",
            HttpAnswer::text("User-agent: *\nCrawl-delay: 0.2\n"),
        )
        .start();
    crawl(
        &cmd,
        &web.url(0, "/"),
        &["--delay", "0s", "--per-host", "2"],
    );
    let report = clean(&cmd);
    assert!(
        report["checked"]["robots_gaps"].as_u64() > Some(3),
        "{report}"
    );
}

#[test]
fn waits_and_files_next_to_robots_txt() {
    let (_dir, cmd) = setup("audit-waits");
    let busy = HttpAnswer::of(503).header("retry-after", "1");
    let web = TestWeb::builder()
        .hosts(1)
        .pages(3)
        .mix(LinkMix::plain())
        .script(
            0,
            "/",
            ReplySequence::always(busy).then(HttpAnswer::html("<a href=/a>a</a>")),
        )
        .script(0, "/.well-known/tdmrep.json", HttpAnswer::of(404))
        .start();
    let purpose = ["--delay", "20ms", "--purpose", "train-ai"];
    crawl(&cmd, &web.url(0, "/"), &purpose);
    assert_eq!(clean(&cmd)["checked"]["waits"], 1);
}

#[test]
fn killed_and_started_again() {
    let (dir, cmd) = setup("audit-kill");
    let web = TestWeb::builder()
        .seed(5)
        .hosts(2)
        .pages(30)
        .latency(Duration::from_millis(10))
        .start();
    let seed = web.url(0, "/");
    let flags = ["--delay", "20ms", "--scope", "any", "--allow-private"];
    let all = [&["--seed", &seed], &QUICK[..], &flags].concat();
    for seen in [5, 25] {
        let mut child = cmd.command(&all).spawn().unwrap();
        assert!(web.wait_for(MAX_WAIT, |log| log.len() > seen));
        child.kill().unwrap();
        child.wait().unwrap();
        // A killed run may leave partly written lines. The audit accepts them, and the next run
        // truncates them.
        let ran = cmd.run(&["audit", "c"]);
        assert_eq!(ran.code, 0, "{}", ran.stdout);
    }
    crawl(&cmd, &seed, &flags);
    let ran = cmd.run(&["audit", "c"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);

    // A run with the same settings as the previous run doesn't record them again.
    assert_eq!(cmd.run(&["--output", "c"]).code, 0);
    let mut rows = dir.rows("c/state/delays.jsonl");
    let recorded = |rows: &[Value]| -> Vec<bool> {
        let settings = rows.iter().map(|row| &row["settings"]);
        settings.map(Value::is_object).collect()
    };
    assert_eq!(recorded(&rows), [true, false, false, false], "{rows:?}");

    // The settings of earlier runs are known only from `delays.jsonl`, so they are unknown once
    // this file is removed.
    assert_eq!(cmd.run(&["--output", "c", "--delay", "5s"]).code, 0);
    let judged = cmd.run(&["audit", "c"]);
    let words = "the settings of an earlier run are unknown";
    assert!(
        judged.code == 0 && !judged.stdout.contains(words),
        "{}",
        judged.stdout
    );
    std::fs::remove_file(dir.file("c/state/delays.jsonl")).unwrap();
    let unknown = cmd.run(&["audit", "c"]);
    assert!(
        unknown.code == 0 && unknown.stdout.contains(words),
        "{}",
        unknown.stdout
    );

    // Simulate a crawl that workers shared and that now continues alone: name a worker in each row.
    // The next run must still record its own settings.
    for row in &mut rows {
        row["worker"] = "w1".into();
    }
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    std::fs::write(dir.file("c/state/delays.jsonl"), lines).unwrap();
    assert_eq!(cmd.run(&["--output", "c", "--delay", "2s"]).code, 0);
    assert_eq!(recorded(&dir.rows("c/state/delays.jsonl"))[4..], [true]);
}

#[test]
fn each_run_is_audited_by_its_own_settings() {
    let (dir, cmd) = setup("audit-runs");
    let web = TestWeb::builder()
        .hosts(1)
        .pages(6)
        .mix(LinkMix::plain())
        .sitemap(false)
        .start();
    let first = ["--sitemaps", "off", "--delay", "1s", "--max-pages", "2"];
    crawl(&cmd, &web.url(0, "/"), &first);
    let later = ["--delay", "200ms", "--max-rate", "0.3", "--max-pages", "4"];
    let ran = cmd.run(&[&QUICK[..], &first[..2], &later].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let report = clean(&cmd);
    let requests = dir.rows("c/requests.jsonl");
    assert_eq!(report["checked"]["gaps"], requests.len() - 1);
    assert_eq!(requests.len(), 5);

    // Makes the request in row `index` start `gap` after the end of the previous one, and audits
    // the crawl.
    let moved = |index: usize, gap: u64| {
        rewrite(&dir, "c/requests.jsonl", |at, row| {
            *row = requests[at].clone();
            if at == index {
                let start = requests[at - 1]["end"].as_u64().unwrap() + gap;
                row["start"] = Value::from(start);
                row["gap_asked"] = Value::from(0);
            }
        });
        let ran = cmd.run(&["audit", "c", "--json"]);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(ran.code, 4, "{}", ran.stdout);
        report["by_rule"].clone()
    };
    assert_eq!(moved(2, 500), json!({"gap": 1}));
    assert_eq!(moved(4, 500), json!({"max-rate": 1}));
    assert_eq!(moved(4, 100), json!({"gap": 1, "max-rate": 1}));
}

/// A power cut may truncate an unsynced log of requests at any position.
#[test]
fn a_log_of_requests_that_lost_rows_shows_no_breach() {
    let (dir, cmd) = setup("audit-lost");
    let web = TestWeb::builder().seed(7).hosts(2).pages(8).start();
    let flags = ["--delay", "20ms", "--scope", "any", "--allow-private"];
    crawl(&cmd, &web.url(0, "/"), &flags);
    clean(&cmd);
    let path = dir.file("c/requests.jsonl");
    let whole = std::fs::read(&path).unwrap();
    for part in 0..8 {
        let at = whole.len() * part / 8;
        let mut zeroed = whole.clone();
        zeroed[at..(at + 512).min(whole.len())].fill(0);
        let mut ended = whole.clone();
        ended[at..].fill(0);
        for left in [&zeroed, &ended, &whole[..at].to_vec()] {
            std::fs::write(&path, left).unwrap();
            let ran = cmd.run(&["audit", "c"]);
            assert_eq!(ran.code, 0, "{part}: {}{}", ran.stdout, ran.stderr);
            assert!(ran.stdout.contains("breaches   none\n"), "{}", ran.stdout);
        }
    }
}

#[test]
fn without_an_archive_gaps_and_waits_alone() {
    let (_dir, cmd) = setup("audit-off");
    let web = TestWeb::builder().hosts(1).pages(3).start();
    crawl(
        &cmd,
        &web.url(0, "/"),
        &["--delay", "20ms", "--warc", "off"],
    );
    let text = cmd.run(&["audit", "c"]).ok();
    assert!(
        text.contains("there is no archive (it ran with --warc off); gaps and waits only\n"),
        "{text}"
    );
    assert!(!text.contains("pages.jsonl"), "{text}");
}

#[test]
fn directories_that_can_not_be_audited() {
    let (dir, cmd) = setup("audit-none");
    dir.write("empty/x", "");
    let ran = cmd.run(&["audit", "empty"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("no crawl in `"), "{}", ran.stderr);
    dir.write("c/crawl.toml", "");
    dir.write("c/requests.jsonl", "{}\n");
    let ran = cmd.run(&["audit", "c"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let flaw = "one line of `requests.jsonl` can't be read";
    assert!(ran.stdout.contains(flaw), "{}", ran.stdout);
}
