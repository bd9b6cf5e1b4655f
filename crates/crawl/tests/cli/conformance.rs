//! `crawl conformance`: this crawler keeps every clause, and the command reports what it finds.

use serde_json::Value;

use crate::harness::{Ran, setup};

/// Clauses that can be checked only on a crawler with a browser. `closed-script` is about the
/// requests that scripts of a page send.
const NEEDS_BROWSER: [&str; 1] = ["closed-script"];

/// Clauses for which the crawler is killed half a second after a response, and then restarted. The
/// test checks these clauses after all others, so that even on a slow machine the crawler reads the
/// response before it is killed.
const KILLED: [&str; 2] = ["restart-retry-after", "restart-crawl-delay"];

/// Runs `crawl conformance` on this program, with short gaps so that the test is quick.
fn check(flags: &[&str], crawl_flags: &[&str]) -> Ran {
    let (_dir, mut cmd) = setup("conformance");
    let program = env!("CARGO_BIN_EXE_crawl");
    let mut args = vec![
        "conformance",
        "--gap",
        "50ms",
        "--jobs",
        "24",
        "--format",
        "json",
    ];
    args.extend(["--again=--recrawl", "--again=--revisit-most", "--again=1s"]);
    args.extend(flags);
    args.extend(["--", program, "{url}", "--output", "{dir}/crawl", "--quiet"]);
    args.extend([
        "--contact",
        "bot@example.org",
        "--delay",
        "50ms",
        "--retries",
        "1",
    ]);
    args.extend([
        "--first-byte-timeout",
        "2s",
        "--timeout",
        "4s",
        "--robots-retry",
        "1s",
    ]);
    args.extend(crawl_flags);
    cmd.env("NO_COLOR", "1");
    cmd.run(&args)
}

fn clauses(ran: &Ran) -> Vec<Value> {
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    report["clauses"].as_array().unwrap().clone()
}

#[test]
fn this_crawler_keeps_every_clause() {
    let listed = setup("conformance-list").1.run(&["conformance", "--list"]);
    let ids = listed
        .stdout
        .lines()
        .filter_map(|line| line.split(' ').next());
    let ids: Vec<&str> = ids.filter(|id| !KILLED.contains(id)).collect();
    assert!(ids.len() > 100, "{}", listed.stdout);
    let wide = ["--scope", "any", "--allow-private", "--resources", "all"];
    for ids in [&ids[..], &KILLED] {
        let ran = check(&["--timeout", "5m", "--only", &ids.join(",")], &wide);
        let mut missed = Vec::new();
        for clause in clauses(&ran) {
            let id = clause["id"].as_str().unwrap();
            let due = if NEEDS_BROWSER.contains(&id) {
                "not_shown"
            } else {
                "pass"
            };
            if clause["outcome"] != due {
                missed.push(clause);
            }
        }
        assert!(missed.is_empty(), "{missed:#?}");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
}

#[test]
fn a_broken_clause_is_reported_with_evidence() {
    let (_dir, cmd) = setup("conformance-broken");
    // A shell script as the crawler. The script requests a page without requesting robots.txt
    // first.
    let script = "a=${CRAWL_URL#http://}; a=${a%/}; exec 3<>/dev/tcp/${a%:*}/${a#*:}; \
        printf 'GET / HTTP/1.1\\r\\nhost: %s\\r\\nconnection: close\\r\\n\\r\\n' \"$a\" >&3; cat <&3";
    let run = |format: &str| {
        cmd.run(&[
            "conformance",
            "--only",
            "robots-first,disallow-all,gap",
            "--format",
            format,
            "--",
            "bash",
            "-c",
            script,
        ])
    };
    let text = run("text");
    assert_eq!(text.code, 4, "{}", text.stderr);
    assert!(
        text.stdout.starts_with("FAIL  disallow-all"),
        "{}",
        text.stdout
    );
    assert!(text.stdout.contains("GET /  host 127."), "{}", text.stdout);
    assert!(
        text.stdout.contains("not shown  custom  gap"),
        "{}",
        text.stdout
    );
    let junit = run("junit");
    assert_eq!(junit.code, 4);
    assert!(
        junit.stdout.contains("tests=\"3\" failures=\"2\""),
        "{}",
        junit.stdout
    );
    let html = run("html");
    assert!(
        html.stdout.starts_with("<!DOCTYPE html>"),
        "{}",
        html.stdout
    );
    assert!(
        html.stdout.contains("id=\"disallow-all\""),
        "{}",
        html.stdout
    );
}

#[test]
fn mistakes_are_refused_with_a_hint() {
    let (_dir, cmd) = setup("conformance-mistakes");
    for (args, message) in [
        (
            &["conformance", "--only", "robots-frist", "--list"][..],
            "did you mean `robots-first`?",
        ),
        (
            &["conformance", "--", "wget", "-r"],
            "COMMAND has no `{url}`",
        ),
        (
            &["conformance", "--", "./no-such-crawler", "{url}"],
            "can't start ./no-such-crawler",
        ),
        (
            &["conformance", "--timeout", "0s", "--", "true", "{url}"],
            "leaves COMMAND no time",
        ),
        (&["conformance"], "required"),
    ] {
        let ran = cmd.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{args:?}: {}", ran.stderr);
    }
}
