//! `crawl mcp`: which parts of a crawl a language model can read, and which are withheld.

use std::path::{Path, PathBuf};
use std::process::Command;

use crawl_index::IndexWriter;
use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};
use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{Cmd, Dir, Ran, setup};

/// Crawls pages that state how they may be used.
fn crawled() -> (Dir, Cmd, TestWeb) {
    let (dir, cmd) = setup("mcp");
    let page = |title: &str, words: &str| {
        HttpAnswer::html(&format!("<title>{title}</title><main>{words}</main>"))
    };
    let tea = "<h1>Green tea</h1><p>Steamed leaves of the tea bush, from the first harvest of the \
        year.<h2 id=water>Water</h2><p>At seventy degrees, as boiling water makes it bitter.";
    let links = "<p>Our pages: <a href=/tea>a</a><a href=/refused>b</a><a href=/silent>c</a>\
        <a href=/hidden>d</a><a href=/uncopied>e</a>";
    let web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(0, "/", page("Home", links))
        .script(0, "/tea", page("Green tea", tea))
        .script(
            0,
            "/refused",
            page("Secret leaves", "<p>Leaves that no model may have.")
                .header("content-usage", "ai-use=n"),
        )
        .script(
            0,
            "/silent",
            page("Silent", "<p>Whispered words.").header("x-robots-tag", "nosnippet"),
        )
        .script(
            0,
            "/hidden",
            page("Hidden", "<p>No.").header("x-robots-tag", "noindex"),
        )
        .script(
            0,
            "/uncopied",
            page("Uncopied", "<p>Lent words.").header("x-robots-tag", "noarchive"),
        )
        .start();
    let seed = web.url(0, "/");
    let mut args = vec!["--seed", &seed, "--output", "c", "--index", "on"];
    args.extend(["--delay", "0s", "--delay-factor", "0", "--progress", "off"]);
    let ran = cmd.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    (dir, cmd, web)
}

/// Sends all calls in one session. Returns the answers sorted by request id, starting at 1.
fn call_all(cmd: &Cmd, calls: &[Value]) -> Vec<Value> {
    let start = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let mut lines = format!("{start}\n{ready}\n");
    for (id, call) in (1..).zip(calls) {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call});
        lines.push_str(&format!("{call}\n"));
    }
    let ran = cmd.run_with_stdin(&["mcp", "c"], &lines);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr, "");
    let mut answers: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers.remove(0)["result"]["serverInfo"]["name"], "crawl");
    assert_eq!(answers.len(), calls.len(), "{}", ran.stdout);
    answers
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

#[test]
fn answers_contain_nothing_that_pages_forbid() {
    let (_dir, cmd, web) = crawled();
    let url = |path: &str| json!({"url": web.url(0, path)});
    let answers = call_all(
        &cmd,
        &[
            call("search", json!({"query": "leaves"})),
            call("search", json!({"query": "whispered"})),
            call("page", url("/tea")),
            call("page", url("/refused")),
            call("page", url("/silent")),
            call("page", url("/hidden")),
            call(
                "sections",
                json!({"url": web.url(0, "/tea"), "heading": "#water"}),
            ),
            call("explain", url("/refused")),
            call("report", json!({})),
            call("delete", json!({})),
            call("page", url("/uncopied")),
        ],
    );
    let origin = web.url(0, "");
    let origin = origin.trim_end_matches('/');
    let text = |number: usize| {
        let text = answers[number]["result"]["content"][0]["text"].as_str();
        text.unwrap_or_default().replace(origin, "ORIGIN")
    };
    let results = text(0);
    assert!(
        results.starts_with("1. [Green tea](ORIGIN/tea)\n   "),
        "{results}"
    );
    assert!(
        results.contains("Steamed leaves of the tea bush"),
        "{results}"
    );
    assert!(
        results.ends_with("\n\nLeft out: 1, since the site refuses ai-input\n"),
        "{results}"
    );
    expect![[r"
        1. [Silent](ORIGIN/silent)
    "]]
    .assert_eq(&text(1));
    expect![[r"
        # Green tea

        Steamed leaves of the tea bush, from the first harvest of the year.

        ## Water

        At seventy degrees, as boiling water makes it bitter."]]
    .assert_eq(&text(2));
    assert_eq!(
        text(3),
        "the site of `ORIGIN/refused` doesn't allow AI models to read it (ai-input)"
    );
    assert_eq!(
        text(4),
        "`ORIGIN/silent` doesn't allow excerpts of its text (nosnippet, max-snippet)"
    );
    assert!(text(5).starts_with("`ORIGIN/hidden` isn't in the index\nhint: "));
    assert!(
        text(6).contains("bitter") && !text(6).contains("Steamed"),
        "{}",
        text(6)
    );
    assert!(text(7).contains("fetched"), "{}", text(7));
    assert_eq!(
        answers[8]["result"]["structuredContent"]["pages"]["total"],
        6
    );
    assert_eq!(answers[9]["error"]["message"], "unknown tool `delete`");
    assert_eq!(
        text(10),
        "the site of `ORIGIN/uncopied` forbids copies of the page (noarchive and the like)"
    );
    let refused = [3, 4, 5, 10]
        .iter()
        .all(|number| answers[*number]["result"]["isError"] == true);
    assert!(refused, "{answers:?}");
    let all = Value::from(answers).to_string();
    for words in [
        "Secret",
        "no model may have",
        "Whispered words",
        "Lent words",
    ] {
        assert!(!all.contains(words), "{words}");
    }
    assert_eq!(cmd.run(&["forget", "c", &web.url(0, "/tea")]).code, 0);
    // The calls arrive at the same time.
    let calls = [(); 4].map(|()| call("explain", url("/tea")));
    for answer in call_all(&cmd, &calls) {
        let explained = &answer["result"]["structuredContent"];
        assert_eq!(explained["state"], "forgotten", "{answer}");
    }
}

#[test]
fn invalid_requests_get_the_error_codes_of_the_protocol() {
    let (dir, cmd) = setup("mcp-invalid");
    dir.write("c/pages.jsonl", "");
    let mut writer = IndexWriter::open(&dir.file("c/index")).unwrap();
    writer.commit("").unwrap();
    writer.close().unwrap();
    // Only version 2025-03-26 has batches.
    let requests = [
        json!({"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-03-26",
            "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"method": "notifications/initialized"}),
        json!({"id": 1, "method": "tools/call", "params": {"arguments": {}}}),
        json!({"id": 2, "method": "tools/call", "params": {"name": "search", "arguments": []}}),
        json!({"id": 3, "method": "tools/find"}),
    ];
    let lines = requests.map(|mut request| {
        request["jsonrpc"] = "2.0".into();
        format!("{request}\n")
    });
    let ran = cmd.run_with_stdin(&["mcp", "c"], &lines.concat());
    let answers = ran.stdout.lines();
    let mut answers: Vec<Value> = answers
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers[0]["result"]["protocolVersion"], "2024-11-05");
    let codes: Vec<_> = answers[1..]
        .iter()
        .map(|answer| &answer["error"]["code"])
        .collect();
    assert_eq!(codes, [-32602, -32602, -32601]);
}

#[test]
fn a_crawl_without_an_index_is_refused() {
    let (dir, cmd) = setup("mcp-none");
    dir.write("c/pages.jsonl", "");
    let ran = cmd.run(&["mcp", "c"]);
    expect![[r#"
        2
        error: the crawl in `c` has no search index
        hint: build one with `crawl index c`, or crawl with `--index on`"#]]
    .assert_eq(&ran.refusal(&dir));
}

/// `CRAWL_MCP_PYTHON` is the Python of an environment with the protocol's SDK.
#[test]
#[ignore = "needs the Python SDK of the Model Context Protocol: cargo xtask test sets it up"]
fn the_client_of_the_python_sdk_gets_its_answers() {
    let (dir, cmd, web) = crawled();
    let python = PathBuf::from(std::env::var_os("CRAWL_MCP_PYTHON").unwrap());
    let mut client = Command::new(python);
    client
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ask_mcp.py"))
        .arg(env!("CARGO_BIN_EXE_crawl"))
        .arg(dir.file("c"))
        .arg(web.url(0, "").trim_end_matches('/'));
    drop(cmd);
    let ran = Ran::of_command(&mut client);
    assert_eq!((ran.code, ran.stdout.trim()), (0, "5"), "{}", ran.stderr);
}
