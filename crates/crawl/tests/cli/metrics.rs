//! Metrics of a running crawl in Prometheus' format.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Instant;

use crawl_testweb::TestWeb;

use crate::control::Talk;
use crate::harness::{Cmd, Dir, MAX_WAIT, Ran, Running, setup};

/// Starts a crawl that runs until it is ended, and returns the address of its metrics.
fn start(web: &TestWeb, cmd: &Cmd) -> (Running, String) {
    let seed = web.url(0, "/");
    let args = [
        "--seed",
        &seed,
        "--output",
        "c",
        "--delay",
        "1h",
        "--progress",
        "off",
        "--metrics",
        "127.0.0.1:0",
        "-v",
    ];
    let crawl = cmd.start(&args);
    let address = address(&crawl);
    crawl.until("answered 200");
    crawl.ensure_printed("takes commands");
    (crawl, address)
}

/// Returns the address of a crawl's metrics.
fn address(crawl: &Running) -> String {
    crawl.until("metrics at ");
    let stderr = crawl.stderr();
    let (_, url) = stderr.split_once("metrics at http://").unwrap();
    let (address, _) = url.split_once("/metrics").unwrap();
    address.to_owned()
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(MAX_WAIT)).unwrap();
    stream
}

/// Sends requests for paths on one connection, and reads all responses to the end.
fn request(address: &str, method: &str, paths: &[&str]) -> String {
    let mut stream = connect(address);
    let last = paths.len() - 1;
    for (number, path) in paths.iter().enumerate() {
        let end = if number == last {
            "close"
        } else {
            "keep-alive"
        };
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: {end}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
    }
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    answers
}

/// Returns the metrics, once the site's robots.txt counts as fetched.
fn metrics(dir: &Dir, address: &str) -> String {
    // The crawl loop answers this command only after it has processed all earlier events, so the
    // metrics count these events.
    let mut talk = Talk::to(dir);
    let began = Instant::now();
    loop {
        talk.send(&serde_json::json!({"do": "state"}));
        let answer = request(address, "GET", &["/metrics"]);
        if answer.contains("purpose=\"robots\"") {
            return answer;
        }
        assert!(began.elapsed() < MAX_WAIT, "{answer}");
    }
}

fn end(crawl: Running) {
    crawl.signal("INT");
    assert_eq!(crawl.end().0, 130);
}

#[test]
fn metrics_contain_no_host_or_url() {
    let (dir, cmd) = setup("metrics");
    let web = TestWeb::builder().seed(5).hosts(1).pages(3).start();
    let (crawl, address) = start(&web, &cmd);
    let answer = metrics(&dir, &address);
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"),
        "{head}"
    );
    for line in [
        "crawl_requests_total{purpose=\"robots\",status=\"2xx\"} 1",
        "crawl_hosts{state=\"gap\"} 1",
        "crawl_phase{phase=\"crawling\"} 1",
        "crawl_exchange_seconds_count 1",
        "crawl_round 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let host = web.url(0, "");
    let host = host.trim_start_matches("http://").trim_end_matches('/');
    assert!(!text.contains(host) && !text.contains("http"), "{text}");
    end(crawl);
}

#[test]
fn a_crawl_between_rounds_is_waiting() {
    let (_dir, cmd) = setup("metrics");
    let web = TestWeb::builder().seed(5).hosts(1).pages(3).start();
    let seed = web.url(0, "/");
    let args = "--output c --delay 0s --every 1h --metrics 127.0.0.1:0 --progress off";
    let args: Vec<&str> = args.split(' ').chain(["--seed", &seed]).collect();
    let crawl = cmd.start(&args);
    let address = address(&crawl);
    crawl.until("the next round starts at ");
    let answer = request(&address, "GET", &["/metrics"]);
    let current: Vec<&str> = answer
        .lines()
        .filter(|line| line.starts_with("crawl_phase"))
        .collect();
    assert!(
        current.contains(&"crawl_phase{phase=\"waiting\"} 1"),
        "{current:?}"
    );
    assert_eq!(
        current.iter().filter(|line| line.ends_with(" 1")).count(),
        1
    );
    assert!(answer.contains("crawl_requests_total{purpose=\"robots\",status=\"2xx\"} 1"));
    crawl.signal("INT");
    crawl.end();
}

#[test]
fn other_paths_and_requests_over_the_limit_are_refused() {
    let (_dir, cmd) = setup("metrics-bounds");
    let web = TestWeb::builder().seed(5).hosts(1).pages(3).start();
    let (crawl, address) = start(&web, &cmd);
    assert!(request(&address, "GET", &["/"]).starts_with("HTTP/1.1 404"));
    assert!(request(&address, "POST", &["/metrics"]).starts_with("HTTP/1.1 405"));
    let long = format!("/metrics?{}", "x".repeat(100_000));
    let mut stream = connect(&address);
    let sent = write!(stream, "GET {long} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let refused = sent.and_then(|()| {
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    // The connection may be closed before the whole request is sent.
    assert!(
        refused
            .as_ref()
            .is_ok_and(|text| text.starts_with("HTTP/1.1 4"))
            || refused.is_err(),
        "{refused:?}"
    );
    // The limit is 20 requests at once and then 10 per second, so 300 requests would take half a
    // minute.
    let answers = request(&address, "GET", &["/metrics"; 300]);
    assert!(answers.contains("HTTP/1.1 429"));
    end(crawl);
}

#[test]
fn another_name_is_refused_and_silent_connections_give_way() {
    let (_dir, cmd) = setup("metrics-names");
    let web = TestWeb::builder().seed(5).hosts(1).pages(3).start();
    let (crawl, address) = start(&web, &cmd);
    for (host, status) in [("rebound.example", "421"), ("localhost:1", "200")] {
        let mut stream = connect(&address);
        let head = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{answer}"
        );
    }
    let half_open: Vec<_> = (0..60)
        .map(|_| {
            let mut stream = connect(&address);
            // Ignore errors: a connection that was evicted accepts no more bytes.
            let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\n");
            stream
        })
        .collect();
    assert!(request(&address, "GET", &["/metrics"]).starts_with("HTTP/1.1 200"));
    drop(half_open);
    end(crawl);
}

#[test]
fn an_address_in_use_is_refused_before_any_request() {
    let (_dir, cmd) = setup("metrics-in-use");
    let web = TestWeb::builder().hosts(1).start();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seed = web.url(0, "/");
    let ran = cmd.run(&["--seed", &seed, "--output", "c", "--metrics", &address]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("set --metrics to another port"),
        "{}",
        ran.stderr
    );
    assert!(web.log().is_empty());
}

/// Runs promtool with a text on its stdin.
fn promtool(dir: &Dir, args: &[&str], stdin: &str) {
    let program = std::env::var("CRAWL_PROMTOOL").expect("cargo xtask test sets it");
    let mut child = Command::new(program)
        .args(args)
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(stdin.as_bytes())
        .unwrap();
    let ran = Ran::of_child(child);
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    if args == ["check", "metrics"] {
        assert_eq!(ran.stderr, "");
    }
}

#[test]
#[ignore = "needs promtool: cargo xtask test --step test-with-servers"]
fn promtool_finds_nothing_wrong_with_the_metrics_nor_with_the_documentation() {
    let (dir, cmd) = setup("promtool");
    let web = TestWeb::builder().seed(5).hosts(1).pages(3).start();
    let (crawl, address) = start(&web, &cmd);
    let answer = metrics(&dir, &address);
    let (_, text) = answer.split_once("\r\n\r\n").unwrap();
    promtool(&dir, &["check", "metrics"], text);
    end(crawl);
    let page = include_str!("../../../../docs/operating.md");
    let mut blocks = page.split("```yaml\n").skip(1);
    let mut block = || blocks.next().unwrap().split("```").next().unwrap();
    dir.write("prometheus.yml", block());
    dir.write("rules.yml", block());
    promtool(&dir, &["check", "config", "prometheus.yml"], "");
    promtool(&dir, &["check", "rules", "rules.yml"], "");
}
