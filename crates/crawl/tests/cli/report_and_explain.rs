//! The output of `crawl report` and `crawl explain` in each format.

use serde_json::Value;

use crate::harness::{Cmd, Dir, setup};

fn crawl() -> (Dir, Cmd) {
    let (dir, cmd) = setup("records");
    dir.write("c/crawl.toml", "seed = [\"http://e.example/\"]\n");
    dir.write("c/pages.jsonl", concat!(
        r#"{"url":"http://e.example/","status":200,"fetched_at":"2026-11-20T23:59:59.123Z","ms":12,"bytes":3,"content_type":"text/html","digest":null,"depth":0,"via":null,"title":null,"robots":null,"warc":null,"error":null}"#,
        "\n",
    ));
    dir.write("c/excluded.jsonl", concat!(
        r#"{"url":"http://e.example/p","reason":"robots","rule":"Disallow: /p","line":2,"found_on":"http://e.example/"}"#,
        "\n",
    ));
    dir.write("c/requests.jsonl", "");
    (dir, cmd)
}

#[test]
fn report_as_text_json_and_page() {
    let (dir, cmd) = crawl();
    assert!(cmd.run(&["report", "c"]).ok().contains("pages     1 (3 B)"));
    let json: Value = serde_json::from_str(&cmd.run(&["report", "c", "--json"]).ok()).unwrap();
    assert_eq!(json["excluded"]["by_reason"]["robots"], 1);
    assert_eq!(cmd.run(&["report", "c", "--html", "r.html"]).ok(), "");
    assert!(dir.read("r.html").starts_with("<!DOCTYPE html>"));
}

#[test]
fn explain_as_text_and_json() {
    let (_dir, cmd) = crawl();
    let text = cmd.run(&["explain", "c", "http://e.example/p"]).ok();
    assert!(
        text.contains("reason: robots, by `Disallow: /p` on line 2"),
        "{text}"
    );
    let json = cmd
        .run(&["explain", "c", "http://e.example/", "--json"])
        .ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["state"], &json["page"]["status"]),
        (&"fetched".into(), &200.into())
    );
    let json = cmd
        .run(&["explain", "c", "http://e.example/x", "--json"])
        .ok();
    assert_eq!(
        serde_json::from_str::<Value>(&json).unwrap()["state"],
        "unknown"
    );
}
