//! A crawl that is controlled over the socket in its directory.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crawl_testweb::{HostsInScope, HttpAnswer, LinkMix, TestWeb};
use serde_json::{Value, json};

use crate::harness::{Cmd, Dir, MAX_WAIT, Ran, Running, setup};

const SOCKET: &str = "c/state/control.sock";

/// Starts a crawl, and waits until it accepts commands.
fn start(cmd: &Cmd, args: &[&str]) -> Running {
    let crawl = cmd.start(&[args, &["-v"]].concat());
    crawl.until("takes commands");
    crawl
}

/// A connection that sends and receives lines.
pub(crate) struct Talk(BufReader<UnixStream>);

impl Talk {
    pub(crate) fn to(dir: &Dir) -> Talk {
        let stream = UnixStream::connect(dir.file(SOCKET)).unwrap();
        stream.set_read_timeout(Some(MAX_WAIT)).unwrap();
        Talk(BufReader::new(stream))
    }

    pub(crate) fn send(&mut self, command: &Value) -> Value {
        self.0
            .get_mut()
            .write_all(format!("{command}\n").as_bytes())
            .unwrap();
        self.receive().unwrap()
    }

    fn receive(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    pub(crate) fn done(&mut self, command: &Value) {
        assert_eq!(self.send(command), json!({"ok": true}), "{command}");
    }

    /// Sets the delay for all hosts.
    fn delay(&mut self, delay: &str) {
        self.done(&json!({"do": "delay", "delay": delay}));
    }

    /// Pauses the crawl, and waits until no request is in flight.
    fn pause(&mut self) {
        self.done(&json!({"do": "pause"}));
        while self.send(&json!({"do": "state"}))["in_flight"] != 0 {}
    }
}

/// Starts a site that is fetched one page at a time.
fn site() -> TestWeb {
    TestWeb::builder().seed(5).hosts(1).pages(30).start()
}

const QUICK: [&str; 6] = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];

/// Returns arguments for a crawl that can't end before it gets its commands, even on a fast
/// machine.
fn args(seed: &str) -> Vec<&str> {
    let slow = ["--delay", "5s", "--delay-factor", "0", "--progress", "off"];
    [&["--seed", seed, "--output", "c"], &slow[..]].concat()
}

fn fetched(dir: &Dir) -> Vec<String> {
    let rows = dir.rows("c/pages.jsonl");
    let url = |row: &Value| row["url"].as_str().unwrap().to_owned();
    rows.iter().map(url).collect()
}

#[test]
fn a_pause_stops_requests_until_it_is_resumed() {
    let (dir, cmd) = setup("pause");
    let web = site();
    let seed = web.url(0, "/");
    let crawl = start(&cmd, &args(&seed));
    let mut talk = Talk::to(&dir);
    talk.pause();
    let request_count = web.log().len();
    // With this delay, requests are allowed immediately, but a paused crawl may not send any.
    talk.delay("0s");
    let goes_on = web.wait_for(Duration::from_millis(400), |log| log.len() > request_count);
    assert!(!goes_on);
    let state = talk.send(&json!({"do": "state"}));
    assert_eq!(
        (&state["phase"], &state["paused"]),
        (&json!("paused"), &json!(true))
    );
    talk.done(&json!({"do": "resume"}));
    let (code, stderr) = crawl.end();
    assert_eq!(code, 0, "{stderr}");
    assert!(web.log().len() > request_count);
    let mut fetched_urls = fetched(&dir);
    fetched_urls.retain(|url| !url.ends_with("/sitemap.xml"));
    let truth = web.truth(HostsInScope::Host).fetched_with_sitemaps();
    assert_eq!(
        fetched_urls
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>(),
        truth
    );
    assert!(!dir.file(SOCKET).exists(), "it goes with the crawl");
}

#[test]
fn a_crawl_pauses_while_its_disk_is_low_and_reports_it() {
    let (dir, cmd) = setup("disk-low");
    let web = site();
    let seed = web.url(0, "/");
    let mut args = args(&seed);
    args.extend(["--min-free", "1000000TiB"]);
    let crawl = cmd.start(&[&args[..], &["-v"]].concat());
    crawl.until("the disk is low: ");
    crawl.ensure_printed("takes commands");
    let state = Talk::to(&dir).send(&json!({"do": "state"}));
    assert_eq!(state["phase"], "disk_low");
    crawl.signal("INT");
    let (code, stderr) = crawl.end();
    assert_eq!(code, 130, "{stderr}");
    assert!(web.log().is_empty());
}

#[test]
fn an_added_url_is_fetched_and_a_refusal_has_its_reason() {
    let (dir, cmd) = setup("add");
    let web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(0, "/", HttpAnswer::html("<a href=/a>a</a>"))
        .script(0, "/a", HttpAnswer::html("a"))
        .script(0, "/hidden", HttpAnswer::html("nobody links here"))
        .start();
    let seed = web.url(0, "/");
    let crawl = start(&cmd, &args(&seed));
    let mut talk = Talk::to(&dir);
    talk.pause();
    let add = |url: &str| json!({"do": "add", "url": url});
    let refused = talk.send(&add("http://192.168.0.1/"));
    assert_eq!(
        refused,
        json!({
            "error": "http://192.168.0.1/ is in a private range",
            "hint": "name it as a seed, or start with --allow-private",
        })
    );
    let with_password = seed.replace("http://", "http://me:s3cret@");
    let hidden = seed.replace("http://", "http://..@");
    let refused = talk.send(&add(&with_password));
    let hint = "remove it, and set it for the host in a file for --config: [site.\"HOST\"] \
                basic-auth = \"env:NAME\"";
    assert_eq!(
        refused,
        json!({
            "error": format!("the URL `{hidden}` contains a user name or password"),
            "hint": hint,
        })
    );
    assert!(!dir.read("c/state/order.jsonl").contains("s3cret"));
    let refused = talk.send(&json!({"do": "add", "url": "http://a.example/", "depth": 3}));
    let error = "not a command: unknown field `depth`, expected `url`";
    assert_eq!(refused["error"], error);
    talk.done(&add(&web.url(0, "/hidden")));
    talk.delay("0s");
    talk.done(&json!({"do": "resume"}));
    assert_eq!(crawl.end().0, 0);
    assert!(fetched(&dir).contains(&web.url(0, "/hidden")));
}

#[test]
fn a_parked_host_gets_no_requests_until_it_is_unparked() {
    let (dir, cmd) = setup("park");
    let web = site();
    let (seed, host) = (web.url(0, "/"), web.authority(0).to_owned());
    let crawl = start(&cmd, &args(&seed));
    let mut talk = Talk::to(&dir);
    talk.pause();
    talk.done(&json!({"do": "park", "host": host}));
    let state = talk.send(&json!({"do": "state"}));
    assert_eq!(state["parked"], json!([host]));
    talk.done(&json!({"do": "resume"}));
    let (_, stderr) = crawl.end();
    assert!(
        stderr.contains(&format!("ended: {host} is parked\n")),
        "{stderr}"
    );

    // After a restart the host is still parked.
    web.take_log();
    let again = cmd.run(&["--output", "c", "--progress", "off"]);
    assert!(
        again.stderr.contains(&format!("ended: {host} is parked\n")),
        "{}",
        again.stderr
    );
    assert!(web.take_log().is_empty());

    // Unpark the host while no crawl runs.
    let unpark = ["control", "c", "unpark", &host];
    let confirmed = format!("unparked {host}: its URLs are fetched again\n");
    assert_eq!(cmd.run(&unpark).ok(), confirmed);
    let refused = cmd.run(&unpark);
    assert_eq!(refused.code, 2);
    let error = format!("error: {host} is not parked\nhint: ");
    assert!(refused.stderr.starts_with(&error), "{}", refused.stderr);
    let last = cmd.run(&[&["--output", "c"], &QUICK[..]].concat());
    assert_eq!(last.code, 0, "{}", last.stderr);
    assert!(!web.take_log().is_empty());
}

#[test]
fn the_socket_of_a_killed_run_is_replaced() {
    let (dir, cmd) = setup("stale");
    let web = site();
    let seed = web.url(0, "/");
    let killed = start(&cmd, &args(&seed));
    killed.signal("KILL");
    killed.end();
    let stale = std::fs::metadata(dir.file(SOCKET)).unwrap();
    assert!(stale.file_type().is_socket());
    let nobody = cmd.run(&["control", "c", "state"]);
    assert_eq!(
        nobody.refusal(&dir),
        "2\nerror: no crawl is running in c\nhint: give the directory of a running crawl"
    );

    let crawl = start(&cmd, &args(&seed));
    let mode = std::fs::metadata(dir.file(SOCKET))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut talk = Talk::to(&dir);
    assert_eq!(talk.send(&json!({"do": "state"}))["round"], 1);
    talk.delay("0s");
    assert_eq!(crawl.end().0, 0);
    assert!(!dir.file(SOCKET).exists());
}

#[test]
fn a_watcher_gets_states_until_the_end() {
    let (dir, cmd) = setup("watch");
    let web = site();
    let seed = web.url(0, "/");
    let crawl = start(&cmd, &args(&seed));
    let mut talk = Talk::to(&dir);
    talk.pause();
    talk.delay("0s");
    let mut watch = Talk::to(&dir);
    let first = watch.send(&json!({"do": "watch"}));
    assert_eq!(first["phase"], "paused");
    let mut second_watcher = cmd.command(&["control", "c", "watch"]).spawn().unwrap();
    // Read a state from the second watcher, so that the crawl can't end before this watcher has
    // connected.
    let mut states = BufReader::new(second_watcher.stdout.take().unwrap());
    states.read_line(&mut String::new()).unwrap();
    talk.done(&json!({"do": "resume"}));
    let next = watch.receive();
    assert!(next.is_none_or(|state| state["phase"] != "paused"));
    while watch.receive().is_some() {}
    assert_eq!(crawl.end().0, 0);
    assert_eq!(Ran::of_child(second_watcher).code, 0);
    drop(states);
}

#[test]
fn the_command_line_controls_a_crawl_with_a_long_path() {
    let (dir, cmd) = setup("long");
    let web = site();
    let seed = web.url(0, "/");
    let deep = dir.file(&"d".repeat(120)).join("e".repeat(120));
    let deep = deep.to_str().unwrap();
    let mut args = args(&seed);
    args[3] = deep;
    let crawl = start(&cmd, &args);
    let paused = cmd.run(&["control", deep, "pause"]).ok();
    assert!(paused.starts_with("paused: "), "{paused}");
    let host = web.authority(0);
    for (action, confirmed) in [
        (
            &["control", deep, "delay", "5ms"][..],
            "the delay between requests to each host is at least 5ms",
        ),
        (
            &["control", deep, "delay", "1ms", "--host", host],
            &format!("the delay between requests to {host} is at least 1ms"),
        ),
        (
            &["control", deep, "park", host],
            &format!("parked {host}: "),
        ),
        (
            &["control", deep, "unpark", host],
            &format!("unparked {host}: "),
        ),
    ] {
        let output = cmd.run(action).ok();
        assert!(output.starts_with(confirmed), "{action:?}: {output}");
    }
    let state: Value = serde_json::from_str(&cmd.run(&["control", deep, "state"]).ok()).unwrap();
    assert_eq!(state["phase"], "paused");
    let refused = cmd.run(&["control", deep, "park", "no such/host"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused
            .stderr
            .starts_with("error: unknown host `no such/host`\n"),
        "{}",
        refused.stderr
    );
    let resumed = cmd.run(&["control", deep, "resume"]).ok();
    assert!(resumed.starts_with("resumed"), "{resumed}");
    assert_eq!(crawl.end().0, 0);
    // The audit judges each gap by the delay that applied at the time.
    let audit = cmd.run(&["audit", deep]);
    assert_eq!(audit.code, 0, "{}", audit.stdout);
}
