//! A whole crawl by the program, against servers on loopback.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crawl_testweb::{ConnectionBehaviour, HostsInScope, HttpAnswer, TestWeb};
use expect_test::expect;

use crate::harness::{Dir, MAX_WAIT, Ran, in_shell, setup};

/// Flags for a quick crawl of loopback.
const QUICK: [&str; 6] = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];

fn args<'a>(seed: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["--seed", seed, "--output", "c"];
    args.extend(QUICK);
    args.extend(more);
    args
}

/// Replaces the delay in the flags with one second, so that the crawl can be interrupted.
fn slow<'a>(quick: &[&'a str]) -> Vec<&'a str> {
    let slow = quick.iter().map(|arg| match *arg {
        "0s" => "1s",
        other => other,
    });
    slow.collect()
}

fn fetched(dir: &Dir) -> Vec<String> {
    let rows = dir.rows("c/pages.jsonl");
    let url = |row: &serde_json::Value| row["url"].as_str().unwrap().to_owned();
    rows.iter().map(url).collect()
}

/// Returns the fetched pages without sitemaps, because the test web doesn't count sitemaps as
/// pages.
fn pages(dir: &Dir) -> BTreeSet<String> {
    let urls = fetched(dir).into_iter();
    urls.filter(|url| !url.ends_with("/sitemap.xml")).collect()
}

#[test]
fn a_site_is_crawled_and_recorded() {
    let (dir, cmd) = setup("site");
    let web = TestWeb::builder().seed(7).hosts(1).pages(40).start();
    let seed = web.url(0, "/");
    let ran = cmd.run(&args(&seed, &[]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout, "");

    let urls = fetched(&dir);
    let set: BTreeSet<String> = urls.iter().cloned().collect();
    assert_eq!(set.len(), urls.len(), "a URL is listed once");
    assert_eq!(
        pages(&dir),
        web.truth(HostsInScope::Host).fetched_with_sitemaps()
    );
    assert_eq!(web.log()[0].path, "/robots.txt");

    assert!(ran.stderr.starts_with("finished\n"), "{}", ran.stderr);
    for line in [
        "  fetched:  ",
        "  excluded: ",
        "  failed:   ",
        "  took:     ",
        "  output:   c\n",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {}", ran.stderr);
    }
    let report: serde_json::Value = serde_json::from_str(&dir.read("c/report.json")).unwrap();
    assert_eq!(report["pages"]["total"], urls.len());
    assert_eq!(report["requests"]["short_gaps"], 0);
    assert!(dir.read("c/crawl.toml").contains("[crawl]\nversion = "));
    assert!(dir.file("c/archive/index.cdxj").is_file());

    web.take_log();
    let again = cmd.run(&args(&seed, &[]));
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(
        again.stderr.starts_with("finished: nothing left to do\n"),
        "{}",
        again.stderr
    );
    assert!(web.log().is_empty(), "a finished crawl asks nobody");
    assert_eq!(fetched(&dir).len(), urls.len());
}

#[test]
fn a_budget_ends_the_crawl_and_output_alone_resumes_it() {
    let (dir, cmd) = setup("budget");
    let web = TestWeb::builder().seed(3).hosts(1).pages(30).start();
    let seed = web.url(0, "/");
    let ran = cmd.run(&args(&seed, &["--max-pages", "5"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with("ended by --max-pages\n"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("  continue: crawl --output c --max-pages MORE\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(fetched(&dir).len(), 5);
    let started = |dir: &Dir| {
        let toml = dir.read("c/crawl.toml");
        toml.lines()
            .find(|line| line.starts_with("started = "))
            .unwrap()
            .to_owned()
    };
    let first = started(&dir);

    let ran = cmd.run(&["--output", "c", "--max-pages", "unlimited"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        pages(&dir),
        web.truth(HostsInScope::Host).fetched_with_sitemaps()
    );
    assert_eq!(started(&dir), first);
}

#[test]
fn quiet_prints_nothing() {
    let (_dir, cmd) = setup("quiet");
    let web = TestWeb::builder().hosts(1).pages(3).start();
    let ran = cmd.run(&args(&web.url(0, "/"), &["-q"]));
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, "", "")
    );
}

#[test]
fn progress_as_json_lines() {
    let (_dir, cmd) = setup("progress");
    let web = TestWeb::builder().hosts(1).pages(3).start();
    let seed = web.url(0, "/");
    let ran = cmd.run(&["--seed", &seed, "--delay", "0s", "--progress", "json"]);
    let line = ran
        .stderr
        .lines()
        .rfind(|line| line.starts_with('{'))
        .unwrap();
    let object: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(object["pending"], 0);
    assert!(object["pages"].as_u64() > Some(3), "{line}");
}

#[test]
fn log_file_names_each_exchange() {
    let (dir, cmd) = setup("log");
    let web = TestWeb::builder().hosts(1).pages(3).start();
    let seed = web.url(0, "/");
    let ran = cmd.run(&args(&seed, &["--log", "crawl.log"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let log = dir.read("crawl.log");
    for url in fetched(&dir) {
        assert!(log.contains(&url), "{url}");
    }
}

#[test]
fn seed_that_can_not_be_fetched_is_exit_1() {
    let (dir, cmd) = setup("noseed");
    let web = TestWeb::builder()
        .hosts(1)
        .script(0, "/", HttpAnswer::of(404))
        .start();
    let ran = cmd.run(&args(&web.url(0, "/"), &["--sitemaps", "off"]));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with("can't fetch http://"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains(": not found (404)\n"), "{}", ran.stderr);
    // Nothing listens on this port.
    let nothing = [
        "--seed",
        "http://127.0.0.9:9/",
        "--output",
        "d",
        "--wait-unreachable",
        "0s",
        "--progress",
        "off",
    ];
    let ran = cmd.run(&nothing);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("127.0.0.9:9"), "{}", ran.stderr);
    assert!(!dir.file("d").exists());
}

#[test]
fn failed_pages_fail_the_run_only_on_request() {
    let (_dir, cmd) = setup("failed");
    let page = HttpAnswer::html("<a href=/gone>x</a>");
    let web = TestWeb::builder()
        .hosts(1)
        .script(0, "/", page)
        .script(0, "/gone", HttpAnswer::of(500))
        .start();
    let seed = web.url(0, "/");
    let quick = args(&seed, &["--sitemaps", "off", "--retries", "0"]);
    assert_eq!(cmd.run(&quick).code, 0);
    assert_eq!(
        cmd.run(&[&quick[..], &["--fail-on-error"]].concat()).code,
        1
    );
}

#[test]
fn incomplete_hosts_fail_the_run_only_on_request() {
    let (dir, cmd) = setup("partial");
    let web = TestWeb::builder()
        .sitemap(false)
        .script(0, "/", HttpAnswer::html("<a href=/a>a</a><a href=/b>b</a>"))
        .script(0, "/a", HttpAnswer::html("a"))
        .script(0, "/b", HttpAnswer::of(403))
        .start();
    let seed = web.url(0, "/");
    let quick = args(&seed, &["--sitemaps", "off"]);
    let run = |more: &[&str]| cmd.run(&[&quick[..], more].concat());
    let partial = run(&["--fail-on-partial", "--max-pages", "1"]);
    assert_eq!(partial.code, 1, "{}", partial.stderr);
    assert!(
        partial.stderr.contains("  hosts:    1 partial\n"),
        "{}",
        partial.stderr
    );
    assert_eq!(run(&["--max-pages", "2"]).code, 0);
    let report = |dir: &str| cmd.run(&["report", dir, "--fail-on-partial"]);
    let report_before = report("c");
    assert_eq!(report_before.code, 1, "{}", report_before.stderr);
    let line = "    coverage: partial: budget 1 (max-pages: 1)";
    assert!(
        report_before.stdout.contains(line),
        "{}",
        report_before.stdout
    );
    for printed in ["--faults", "--site", "--broken", "--changes"] {
        let ran = cmd.run(&["report", "c", printed, "--fail-on-partial"]);
        assert_eq!(ran.code, 1, "{printed}: {}", ran.stderr);
    }
    run(&[]);
    let line = "    coverage: partial: refused 1 (forbidden (403): 1)\n";
    assert!(report("c").stdout.contains(line), "{}", report("c").stdout);
    assert!(
        dir.read("c/hosts.jsonl")
            .contains("\"coverage\":\"partial\"")
    );
    let (_dir, cmd) = setup("whole");
    let whole = ["--exclude", "/b$", "--fail-on-partial", "--sitemaps", "off"];
    let ran = cmd.run(&args(&seed, &whole));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let report = cmd.run(&["report", "c", "--fail-on-partial"]);
    assert_eq!(report.code, 0);
    let line = "    coverage: complete (excluded: scope: 1)\n";
    assert!(report.stdout.contains(line), "{}", report.stdout);
}

#[test]
fn a_host_without_any_page_is_empty_and_counts_as_not_complete() {
    let forbids = || HttpAnswer::text("User-agent: *\nDisallow: /\n");
    for (name, robots, root) in [
        ("disallowed", forbids(), HttpAnswer::html("never fetched")),
        ("missing", HttpAnswer::of(404), HttpAnswer::of(404)),
    ] {
        let (dir, cmd) = setup(name);
        let web = TestWeb::builder()
            .hosts(2)
            .sitemap(false)
            .script(0, "/", HttpAnswer::html("a page"))
            .script(1, "/robots.txt", robots)
            .script(1, "/", root)
            .start();
        let (served, empty) = (web.url(0, "/"), web.url(1, "/"));
        let both = ["--seed", &empty, "--sitemaps", "off", "--fail-on-partial"];
        let ran = cmd.run(&args(&served, &both));
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        let line = "  hosts:    1 complete, 1 empty\n";
        assert!(ran.stderr.contains(line), "{}", ran.stderr);
        let hosts = dir.rows("c/hosts.jsonl");
        let host = hosts.iter().find(|host| host["host"] == web.authority(1));
        assert_eq!(host.unwrap()["coverage"], "empty", "{hosts:?}");
        assert_eq!(cmd.run(&["report", "c", "--fail-on-partial"]).code, 1);
    }
}

#[test]
fn a_surt_prefix_adds_a_part_of_another_host() {
    let (dir, cmd) = setup("surt");
    let web = TestWeb::builder().hosts(2).sitemap(false).start();
    let (inside, outside) = (web.url(1, "/docs/a"), web.url(1, "/blog"));
    let links = format!("<a href='{inside}'>a</a><a href='{outside}'>b</a>");
    web.script(0, "/", HttpAnswer::html(&links));
    web.script(1, "/docs/a", HttpAnswer::html("a"));
    let (address, port) = web.authority(1).split_once(':').unwrap();
    let surt = format!("http://({address}:{port})/docs/");
    let more = ["--sitemaps", "off", "--allow-private", "--surt", &surt];
    let ran = cmd.run(&args(&web.url(0, "/"), &more));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let requested_paths: Vec<_> = web.log_of(1).into_iter().map(|entry| entry.path).collect();
    assert_eq!(requested_paths, ["/robots.txt", "/docs/a"]);
    assert!(dir.read("c/excluded.jsonl").contains(&outside));
    let refused = cmd.run(&args(&web.url(0, "/"), &["--surt", "example.org/docs"]));
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("isn't a SURT prefix"),
        "{}",
        refused.stderr
    );
}

#[test]
fn listed_hosts_are_added_and_excluded_ones_removed() {
    let (dir, cmd) = setup("hosts");
    let page = || HttpAnswer::html("a page");
    let web = TestWeb::builder().hosts(4).sitemap(false);
    let web = web.script(1, "/", page()).script(2, "/", page()).start();
    let links: String = (1..4)
        .map(|host| format!("<a href='{}'>{host}</a>", web.url(host, "/")))
        .collect();
    web.script(0, "/", HttpAnswer::html(&links));
    // The second and third hosts are in scope, but the third is also excluded.
    dir.write(
        "mine.txt",
        &format!("# mine\n{}\n{}\n", web.authority(1), web.authority(2)),
    );
    dir.write("not.txt", web.authority(2));
    let more = "--sitemaps off --allow-private --host @mine.txt --exclude-host @not.txt";
    let more: Vec<&str> = more.split(' ').collect();
    let ran = cmd.run(&args(&web.url(0, "/"), &more));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let request_counts = [0, 1, 2, 3].map(|host| web.log_of(host).len());
    assert_eq!(request_counts, [2, 2, 0, 0]);
    let rule = |url: &str| {
        let rows = dir.rows("c/excluded.jsonl");
        let row = rows.iter().find(|row| row["url"] == url).unwrap();
        row["rule"].as_str().unwrap().to_owned()
    };
    let excluded = format!("exclude-host {}", web.authority(2));
    assert_eq!(rule(&web.url(2, "/")), excluded);
    assert_eq!(rule(&web.url(3, "/")), "host");
    let explained = cmd.run(&["explain", "c", &web.url(2, "/")]).ok();
    assert!(explained.contains(&excluded), "{explained}");
    // The directory no longer needs the list files, because `crawl.toml` has the hosts themselves.
    let stored: toml::Table = dir.read("c/crawl.toml").parse().unwrap();
    let listed = stored["scope"]["host"].as_array().unwrap();
    assert_eq!(listed.len(), 2);
    dir.write(
        "c/crawl.toml",
        &dir.read("c/crawl.toml")
            .replace("exclude-host = [", "exclude-host = ['@x', "),
    );
    let refused = cmd.run(&["--output", "c"]);
    assert_eq!(refused.code, 2);
    let problem =
        "`exclude-host` contains the file `@x`, which isn't allowed in a directory's crawl.toml";
    assert!(refused.stderr.contains(problem), "{}", refused.stderr);
}

#[test]
fn a_spent_budget_is_named_where_a_run_ends_for_another_reason() {
    let (dir, cmd) = setup("group-unreachable");
    let web = TestWeb::builder().hosts(2).pages(12).sitemap(false);
    let web = web.connection_mode(1, ConnectionBehaviour::Refused).start();
    let (full, refused) = (web.authority(0), web.url(1, "/"));
    dir.write(
        "study.toml",
        &format!("[group.few]\nhosts = [\"{full}\"]\nmax-pages = 4\n"),
    );
    let more = [
        "--seed",
        &refused,
        "--config",
        "study.toml",
        "--wait-unreachable",
        "0s",
    ];
    let ran = cmd.run(&args(&web.url(0, "/"), &more));
    assert!(ran.stderr.contains("can't connect to "), "{}", ran.stderr);
    let rule = "max-pages of group few";
    let excluded = dir.rows("c/excluded.jsonl");
    let left_out: Vec<_> = excluded
        .iter()
        .filter(|row| row["reason"] == "budget")
        .collect();
    assert!(!left_out.is_empty(), "{excluded:?}");
    assert!(
        left_out.iter().all(|row| row["rule"] == rule),
        "{left_out:?}"
    );
    assert!(
        !left_out.iter().any(|row| row["url"] == refused),
        "{left_out:?}"
    );
    let url = left_out[0]["url"].as_str().unwrap();
    let explained = cmd.run(&["explain", "c", url]).ok();
    let reason = format!("not fetched: a budget is spent\n  reason: budget, by `{rule}`\n");
    assert!(explained.contains(&reason), "{explained}");
}

#[test]
fn a_group_from_a_file_has_its_budget_and_reports_it() {
    let (dir, cmd) = setup("group");
    let web = TestWeb::builder().hosts(1).pages(12).sitemap(false).start();
    dir.write("hosts.txt", web.authority(0));
    dir.write(
        "study.toml",
        "[group.\"small sites\"]\nhosts = [\"@hosts.txt\"]\nmax-pages = 4\ndelay = \"70ms\"\n",
    );
    let more = ["--sitemaps", "off", "--config", "study.toml"];
    let ran = cmd.run(&args(&web.url(0, "/"), &more));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let rule = "max-pages of group small sites";
    assert!(
        ran.stderr.contains(&format!("ended by {rule}\n")),
        "{}",
        ran.stderr
    );
    assert_eq!(dir.rows("c/pages.jsonl").len(), 4);
    let requests = dir.rows("c/requests.jsonl");
    let gaps = requests.iter().map(|row| row["gap_asked"].as_u64());
    assert!(gaps.skip(1).all(|gap| gap >= Some(70)), "{requests:?}");
    let audited = cmd.run(&["audit", "c"]).ok();
    assert!(audited.contains("breaches   none"), "{audited}");
    let excluded = dir.rows("c/excluded.jsonl");
    let left_out = excluded
        .iter()
        .find(|row| row["reason"] == "budget")
        .unwrap();
    assert_eq!(left_out["rule"], rule);
    let explained = cmd
        .run(&["explain", "c", left_out["url"].as_str().unwrap()])
        .ok();
    assert!(explained.contains(rule), "{explained}");
    let hosts = dir.rows("c/hosts.jsonl");
    assert_eq!(hosts[0]["coverage"], "partial");
    assert!(
        hosts[0]["missing"][0]["evidence"].get(rule).is_some(),
        "{hosts:?}"
    );
    // The directory remembers the group, so the file that defined it isn't needed.
    let request_count = web.log().len();
    let again = cmd.run(&["--output", "c", "--progress", "off"]);
    assert_eq!(
        (again.code, web.log().len()),
        (0, request_count),
        "{}",
        again.stderr
    );
    dir.write(
        "bad.toml",
        "[group.a]\nhosts = [\"e.example\"]\nmax-page = 1\n[group.b]\nhosts = [\"e.example\"]\n",
    );
    let refused = cmd.run(&["config", "--check", "bad.toml"]);
    expect![[r#"
        2
        error: bad.toml:3:1: unknown key `max-page` in [group."a"]
        hint: did you mean `max-pages`?
        error: bad.toml:4:8: unusable host in [group."b"]: `e.example` is listed twice
        hint: a host can be in only one group; a name includes its subdomains"#]]
    .assert_eq(&refused.refusal(&dir));
}

#[test]
fn directory_that_holds_something_else_is_refused() {
    let (dir, cmd) = setup("foreign");
    dir.write("c/thesis.txt", "dear");
    let ran = cmd.run(&args("http://127.0.0.1:9/", &[]));
    assert!(
        ran.refusal(&dir).starts_with("2\nerror: "),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("thesis.txt") && ran.stderr.contains("\nhint: "),
        "{}",
        ran.stderr
    );
    assert_eq!(dir.file("c").read_dir().unwrap().count(), 1);
}

#[test]
fn interrupt_drains_and_the_same_command_resumes() {
    let (dir, cmd) = setup("interrupt");
    let web = TestWeb::builder()
        .seed(5)
        .hosts(1)
        .pages(60)
        .latency(Duration::from_millis(20))
        .start();
    let seed = web.url(0, "/");
    let quick = args(&seed, &[]);
    let child = cmd.command(&slow(&quick)).spawn().unwrap();
    assert!(web.wait_for(MAX_WAIT, |log| log.len() > 3));
    // A second process is refused while the first one runs.
    let second = cmd.run(&quick);
    assert_eq!(second.code, 2, "{}", second.stderr);
    assert!(second.stderr.contains("in use"), "{}", second.stderr);
    let ran = interrupt(child);
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    assert!(ran.stderr.contains("\ninterrupted; "), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("  continue: crawl --output c\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(cmd.run(&quick).code, 0);
    let urls = fetched(&dir);
    let set: BTreeSet<String> = urls.iter().cloned().collect();
    assert_eq!(set.len(), urls.len());
    assert_eq!(
        pages(&dir),
        web.truth(HostsInScope::Host).fetched_with_sitemaps()
    );
}

fn interrupt(child: Child) -> Ran {
    signal(&child, "INT");
    Ran::of_child(child)
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-s", name, &id]).status();
    assert!(sent.unwrap().success());
}

fn slow_web() -> TestWeb {
    let web = TestWeb::builder().seed(6).hosts(1).pages(60);
    web.latency(Duration::from_millis(20)).start()
}

/// Starts a program on its own terminal, and closes the terminal on command.
const ON_A_TERMINAL: &str = r#"
import os, pty, select, signal, sys
pid, terminal = pty.fork()
if pid == 0:
    # These tests may have been started by nohup.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    ready, _, _ = select.select([terminal, sys.stdin], [], [])
    if sys.stdin in ready:
        break
    os.read(terminal, 65536)
os.close(terminal)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

fn on_a_terminal(command: &Command) -> Command {
    let mut with = Command::new("python3");
    with.args(["-c", ON_A_TERMINAL])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(command.get_current_dir().unwrap())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::piped());
    with
}

/// When a terminal is closed, the program's stdout and stderr are closed, and the system sends
/// SIGHUP.
#[test]
fn a_closed_terminal_drains_and_saves() {
    let (dir, cmd) = setup("hangup");
    let web = slow_web();
    let seed = web.url(0, "/");
    let plain = [
        "--seed",
        &seed,
        "--output",
        "c",
        "--delay",
        "0s",
        "--delay-factor",
        "0",
        "--index",
        "on",
        "-v",
    ];
    let mut child = on_a_terminal(&cmd.command(&slow(&plain))).spawn().unwrap();
    assert!(web.wait_for(MAX_WAIT, |log| log.len() > 3));
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let report: serde_json::Value = serde_json::from_str(&dir.read("c/report.json")).unwrap();
    let total = fetched(&dir).len();
    assert_eq!(report["pages"]["total"], total);
    assert!(dir.file("c/report.html").is_file());
    let search = cmd.run(&["search", "c", "site:127.0.0.1", "--json"]);
    assert_eq!(search.code, 0, "{}", search.stderr);
    assert_eq!(cmd.run(&args(&seed, &["--index", "on"])).code, 0);
    assert!(fetched(&dir).len() > total);
    assert_eq!(
        pages(&dir),
        web.truth(HostsInScope::Host).fetched_with_sitemaps()
    );
}

#[test]
fn sighup_stays_ignored_under_nohup() {
    let (dir, cmd) = setup("nohup");
    let web = slow_web();
    let seed = web.url(0, "/");
    let crawl = cmd.command(&args(&seed, &[]));
    let child = in_shell(&crawl, "trap '' HUP").spawn().unwrap();
    assert!(web.wait_for(MAX_WAIT, |log| log.len() > 5));
    signal(&child, "HUP");
    let ran = Ran::of_child(child);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        pages(&dir),
        web.truth(HostsInScope::Host).fetched_with_sitemaps()
    );
}

#[test]
fn the_kinds_of_records_can_t_change_after_the_start() {
    let web = TestWeb::builder().seed(2).pages(3).start();
    let (_dir, cmd) = setup("kept");
    let url = web.url(0, "/");
    let quick = ["--delay", "0s", "--delay-factor", "0", "-q"];
    let begin = ["--seed", &url, "--output", "out"];
    assert_eq!(cmd.run(&[&begin[..], &quick].concat()).code, 0);
    let other_flags = cmd.run(&["--output", "out", "--warc", "off"]);
    assert_eq!(other_flags.code, 2);
    expect![[r#"
        error: --warc is off, but the crawl in out was started with on
        hint: keep --warc unchanged, or start over with another --output
    "#]]
    .assert_eq(&other_flags.stderr);
    assert_eq!(cmd.run(&["--output", "out", "--links", "on"]).code, 2);
    assert_eq!(cmd.run(&["--output", "out", "--warc", "on", "-q"]).code, 0);
}
