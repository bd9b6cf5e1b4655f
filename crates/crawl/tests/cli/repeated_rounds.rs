//! Crawls with `--every`: rounds that repeat until the crawl is stopped.

use std::collections::BTreeMap;

use crawl_testweb::{HttpAnswer, LinkMix, ReplySequence, TestWeb};
use serde_json::json;

use crate::control::Talk;
use crate::harness::{Dir, MAX_WAIT, setup};

const WAITS: &str = "the next round starts at ";

fn site() -> TestWeb {
    TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(0, "/", HttpAnswer::html("<a href=/a>a</a>"))
        .script(0, "/a", HttpAnswer::html("a"))
        .script(0, "/hidden", HttpAnswer::html("nobody links here"))
        .start()
}

fn args<'a>(seed: &'a str, every: &'a str) -> Vec<&'a str> {
    let quick = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];
    [
        &["--seed", seed, "--output", "c", "--every", every],
        &quick[..],
    ]
    .concat()
}

/// Returns the paths fetched in each round.
fn rounds(dir: &Dir) -> BTreeMap<u64, Vec<String>> {
    let mut rounds: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for row in dir.rows("c/pages.jsonl") {
        let path = row["url"].as_str().unwrap().splitn(4, '/').last();
        let round = rounds.entry(row["round"].as_u64().unwrap()).or_default();
        round.push(format!("/{}", path.unwrap()));
    }
    rounds
}

#[test]
fn rounds_repeat_until_a_signal() {
    let (dir, cmd) = setup("every");
    let web = site();
    let seed = web.url(0, "/");
    let crawl = cmd.start(&args(&seed, "10ms"));
    let wait_for_requests = |path: &str, least: usize| {
        web.wait_for(MAX_WAIT, |log| {
            log.iter().filter(|entry| entry.path == path).count() >= least
        })
    };
    assert!(wait_for_requests("/", 3));
    crawl.signal("TERM");
    let (code, said) = crawl.end();
    // A signal within a round interrupts the crawl. Between rounds there is nothing to interrupt.
    let interrupted = said.contains("interrupted; fetched pages are saved");
    assert_eq!(code, if interrupted { 130 } else { 0 }, "{said}");
    assert!(said.contains("  round:    2: "), "{said}");
    let rounds = rounds(&dir);
    assert_eq!(rounds[&1], ["/", "/a"]);
    assert!(rounds.len() >= 2, "{rounds:?}");
}

#[test]
fn a_signal_between_rounds_is_not_an_interruption() {
    let (dir, cmd) = setup("waits");
    let web = site();
    let seed = web.url(0, "/");
    let args = args(&seed, "1h");
    let crawl = cmd.start(&args);
    crawl.until(WAITS);
    let state = Talk::to(&dir).send(&json!({"do": "state"}));
    assert_eq!(
        (&state["phase"], &state["pages"]),
        (&json!("waiting"), &json!(2))
    );
    assert!(
        state["next_round"]
            .as_str()
            .is_some_and(|at| at.ends_with('Z'))
    );
    crawl.signal("TERM");
    let (code, said) = crawl.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.ends_with("stopping: no further rounds\n"), "{said}");
    assert!(!dir.file("c/state/control.sock").exists());

    // When started again, the crawl waits for the rest of the hour without requests.
    web.take_log();
    let again = cmd.start(&args);
    again.until(WAITS);
    again.signal("INT");
    assert_eq!(again.end().0, 0);
    assert!(web.take_log().is_empty());

    // `--every` is not remembered: without it the crawl is finished.
    let alone = cmd.run(&["--output", "c", "--progress", "off"]);
    assert_eq!(alone.code, 0, "{}", alone.stderr);
    assert!(web.take_log().is_empty());
}

#[test]
fn a_round_continues_when_a_host_may_be_retried() {
    let (dir, cmd) = setup("again");
    let web = site();
    // The host's robots.txt is unavailable at first.
    let robots = ReplySequence::always(HttpAnswer::of(500)).then(HttpAnswer::of(404));
    web.script(0, "/robots.txt", robots);
    let seed = web.url(0, "/");
    // The run ends long before robots.txt may be fetched again.
    let patience = ["--robots-retry", "10s", "--wait-unreachable", "0s"];
    let crawl = cmd.start(&[&args(&seed, "1h")[..], &patience].concat());
    // The message continues with a time, or with `now` if that time has already passed.
    crawl.until("the round continues ");
    crawl.until("finished");
    crawl.until(WAITS);
    crawl.signal("TERM");
    let (code, said) = crawl.end();
    assert_eq!(code, 0, "{said}");
    let expected = vec!["/".to_owned(), "/a".to_owned()];
    assert_eq!(rounds(&dir), BTreeMap::from([(1, expected)]));
}

#[test]
fn commands_are_accepted_between_rounds() {
    let (dir, cmd) = setup("woken");
    let web = site();
    let (seed, host) = (web.url(0, "/"), web.authority(0).to_owned());
    let crawl = cmd.start(&args(&seed, "1h"));
    crawl.until(WAITS);
    let mut talk = Talk::to(&dir);
    let park = json!({"do": "park", "host": host});
    talk.done(&park);
    talk.done(&json!({"do": "pause"}));
    let state = talk.send(&json!({"do": "state"}));
    assert_eq!(
        (&state["paused"], &state["parked"]),
        (&json!(true), &json!([host]))
    );
    let refused = talk.send(&json!({"do": "delay", "delay": "1s"}));
    assert_eq!(refused["error"], "the crawl is waiting for its next round");
    let refused = talk.send(&json!({"do": "park", "host": "never.example"}));
    assert_eq!(refused["error"], "unknown host `never.example`");
    let refused = talk.send(&json!({"do": "add", "url": "ftp://a.example/"}));
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .starts_with("unusable URL")
    );
    let refused = talk.send(&json!({"do": "add", "url": "http://me:s3cret@a.example/"}));
    let error = "the URL `http://..@a.example/` contains a user name or password";
    assert_eq!(refused["error"], error);
    // The host is parked in the stored state, so the manually started round sends no requests to
    // it.
    web.take_log();
    talk.done(&json!({"do": "resume"}));
    crawl.until("is parked");
    crawl.until(WAITS);
    assert!(web.take_log().is_empty());
    talk.done(&json!({"do": "unpark", "host": host}));
    // Adding a URL starts a round that fetches it.
    talk.done(&json!({"do": "add", "url": web.url(0, "/hidden")}));
    crawl.until("finished");
    crawl.until(WAITS);
    crawl.signal("TERM");
    let (code, said) = crawl.end();
    assert_eq!(code, 0, "{said}");
    assert!(
        rounds(&dir)
            .values()
            .any(|round| round.contains(&"/hidden".to_owned()))
    );
}

#[test]
fn an_interval_of_zero_is_refused() {
    let (_dir, cmd) = setup("nothing");
    let ran = cmd.run(&args("http://127.0.0.1:9/", "0s"));
    assert_eq!(ran.code, 2);
    let error = "error: --every is 0, so rounds would follow endlessly\nhint: ";
    assert!(ran.stderr.starts_with(error), "{}", ran.stderr);
}
