//! Crawls that can't reach their seeds: the message, and what is left on the disk.

use std::fs;
use std::net::SocketAddr;

use crawl_testweb::{HttpAnswer, TestWeb};
use tokio::net::TcpSocket;

use crate::harness::setup;

/// Returns a port of 127.0.0.1 that refuses connections, and reserves it until this process ends, so
/// that no other test listens on it.
pub(crate) fn closed_port() -> u16 {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let port = socket.local_addr().unwrap().port();
    std::mem::forget(socket);
    port
}

#[test]
fn an_unreached_crawl_reports_the_reason_and_leaves_no_folder() {
    let (dir, cmd) = setup("unreached");
    let port = closed_port();
    let seed = format!("http://127.0.0.1:{port}/");
    let ran = cmd.run(&[&seed, "--output", "deep/er/crawl", "--index", "on"]);
    assert_eq!(
        ran.refusal(&dir),
        format!(
            "1\nerror: can't connect to http://127.0.0.1:{port}: connection refused\nhint: check that the \
             server is running, and its port; then run the same command again"
        )
    );
    assert!(!dir.file("deep").exists());
    // With `--quiet`, the same error is printed.
    let quiet = cmd.run(&[&seed, "--output", "c", "--quiet"]);
    assert_eq!(quiet.refusal(&dir), ran.refusal(&dir));
    // Neither run left a directory behind: only `home` exists, the folder of the user's own files.
    let entries: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
    assert!(
        entries
            .iter()
            .all(|entry| entry.as_ref().unwrap().file_name() == "home"),
        "{entries:?}"
    );
}

#[test]
fn each_of_several_unreached_hosts_is_described() {
    let (dir, cmd) = setup("unreached-several");
    let ports = [closed_port(), closed_port()];
    let seeds = ports.map(|port| format!("http://127.0.0.1:{port}/"));
    let ran = cmd.run(&[&seeds[0], &seeds[1], "--output", "c"]);
    assert_eq!(ran.code, 1);
    let head = "error: can't reach any of 2 hosts\n  can't connect to http://127.0.0.1:";
    assert!(ran.stderr.starts_with(head), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches(": connection refused\n").count(), 2);
    assert!(!dir.file("c").exists());
}

#[test]
fn a_directory_that_existed_stays() {
    let (dir, cmd) = setup("unreached-existing");
    fs::create_dir(dir.file("c")).unwrap();
    let port = closed_port();
    let seed = format!("http://127.0.0.1:{port}/");
    let message =
        format!("can't connect to http://127.0.0.1:{port}: connection refused\n  next try: ");
    for _ in 0..2 {
        let ran = cmd.run(&[&seed, "--output", "c"]);
        assert_eq!(ran.code, 1);
        assert!(ran.stderr.starts_with(&message), "{}", ran.stderr);
        assert!(dir.file("c/report.json").is_file());
    }
}

#[test]
fn a_crawl_that_is_stopped_before_any_answer_leaves_no_folder() {
    let (dir, cmd) = setup("unreached-stopped");
    let seed = format!("http://127.0.0.1:{}/", closed_port());
    let args = [&seed, "--output", "c", "--wait-unreachable", "1h"];
    let crawl = cmd.start(&[&args[..], &["-v"]].concat());
    crawl.until("connect_refused");
    crawl.signal("INT");
    let (code, stderr) = crawl.end();
    assert_eq!(code, 130, "{stderr}");
    let words = "error: interrupted before a server answered\n\
                 hint: run the same command again later\n";
    assert!(stderr.ends_with(words), "{stderr}");
    assert!(!dir.file("c").exists());
    let limited = cmd.run(&[&args[..], &["--max-time", "1s"]].concat());
    assert_eq!(
        limited.refusal(&dir),
        "1\nerror: ended by --max-time before a server answered\n\
         hint: run the same command again later"
    );
    assert!(!dir.file("c").exists());
}

#[test]
fn one_answer_keeps_the_directory() {
    let (dir, cmd) = setup("unreached-answered");
    let web = TestWeb::builder()
        .hosts(1)
        .sitemap(false)
        .script(0, "/robots.txt", HttpAnswer::of(503))
        .start();
    let closed = format!("http://127.0.0.1:{}/", closed_port());
    let ran = cmd.run(&[&web.url(0, "/"), &closed, "--output", "c"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.starts_with("can't reach any of 2 hosts\n"),
        "{}",
        ran.stderr
    );
    let words = "its robots.txt answered service unavailable (503); next try from 2";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    assert!(dir.file("c/requests.jsonl").is_file());
}

#[test]
fn fetched_pages_are_reported_despite_an_unreachable_host() {
    let (_dir, cmd) = setup("unreached-left");
    let web = TestWeb::builder()
        .hosts(1)
        .sitemap(false)
        .script(0, "/", HttpAnswer::html("<title>Tea</title>"))
        .start();
    let port = closed_port();
    let closed = format!("http://127.0.0.1:{port}/");
    let ran = cmd.run(&[&web.url(0, "/"), &closed, "--output", "c"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let head = format!(
        "fetched what was reachable; can't connect to http://127.0.0.1:{port}: connection refused\n"
    );
    assert!(ran.stderr.contains(&head), "{}", ran.stderr);
}

#[test]
fn an_origin_without_a_listener_does_not_stop_the_other_origin_of_its_host() {
    let (dir, cmd) = setup("unreached-origin");
    let web = TestWeb::builder()
        .hosts(1)
        .sitemap(false)
        .script(0, "/robots.txt", HttpAnswer::of(404))
        .script(
            0,
            "/",
            HttpAnswer::html("<title>Tea</title><a href=/more>more</a>"),
        )
        .script(0, "/more", HttpAnswer::html("<title>More tea</title>"))
        .start();
    let (open, closed) = (web.address(0).port(), closed_port());
    let ip = web.address(0).ip();
    let resolve = [open, closed].map(|port| format!("e.test:{port}:{ip}"));
    let listening = format!("http://e.test:{open}/");
    let refused = format!("https://e.test:{closed}/");
    let args = ["--resolve", &resolve[0], "--resolve", &resolve[1]];
    let args = [&args[..], &["--contact", "a@b.example", "--delay", "0s"]].concat();
    // Try both orders of the seeds, because either may be requested first.
    for (out, seeds) in [("c", [&listening, &refused]), ("d", [&refused, &listening])] {
        let ran = cmd.run(&[&args[..], &[seeds[0], seeds[1], "--output", out]].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let outcome = format!(
            "fetched what was reachable; can't connect to https://e.test:{closed}: connection \
             refused\n"
        );
        assert!(ran.stderr.contains(&outcome), "{}", ran.stderr);
        assert_eq!(dir.rows(&format!("{out}/pages.jsonl")).len(), 2);
        let waiting = dir.rows(&format!("{out}/waiting.jsonl"));
        let origins: Vec<_> = waiting.iter().map(|row| &row["origin"]).collect();
        let origin = format!("https://e.test:{closed}");
        assert_eq!(origins, [&serde_json::Value::Null, &origin.into()]);
        let hosts = dir.rows(&format!("{out}/hosts.jsonl"));
        assert_eq!(hosts[0]["coverage"], "partial");
    }
}
