//! Replays of a crawl from its archive, with its own settings and with others.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use crawl_testweb::{HttpAnswer, TestWeb};
use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::setup;

fn site() -> TestWeb {
    let web = TestWeb::builder().pages(1).sitemap(false).start();
    let links = "<a href=/a>a</a><a href=/out>out</a>";
    web.script(0, "/", HttpAnswer::html(links));
    web.script(0, "/a", HttpAnswer::html("<a href=/b>b</a>"));
    web.script(0, "/b", HttpAnswer::html("b"));
    web
}

#[test]
fn a_crawl_is_replayed_by_its_own_settings_and_by_others() {
    let (dir, cmd) = setup("policy-replay");
    let web = site();
    let seed = web.url(0, "/");
    let quick = ["--delay", "150ms", "--commit-within", "150ms"];
    let crawl = ["--seed", &seed, "--output", "c", "--exclude", "/out$"];
    let ran = cmd.run(&[&crawl[..], &quick, &["--progress", "off"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    web.take_log();
    let again = cmd.run(&["replay", "c", "--output", "again", "--json"]);
    let again: Value = serde_json::from_str(&again.ok()).unwrap();
    assert_eq!(again["settings"], json!([]));
    assert_eq!(again["not_archived"], 0);
    assert_eq!(again["difference"], Value::Null);
    assert_eq!(again["first_difference"], Value::Null);
    let compared = &again["comparison"];
    assert_eq!(
        compared["order"],
        json!({"is_same": true, "hosts_same": 1, "hosts_other": 0})
    );
    assert_eq!(compared["a"]["took_ms"], compared["b"]["took_ms"]);
    // A replay with invalid input leaves no directory behind.
    let nowhere = cmd.run(&["replay", "nowhere", "--output", "x"]);
    let is_reported = nowhere.stderr.contains("no crawl in `nowhere`");
    assert!(nowhere.code == 2 && is_reported, "{}", nowhere.stderr);
    let rows = dir.read("c/pages.jsonl");
    fs::remove_file(dir.file("c/pages.jsonl")).unwrap();
    fs::create_dir(dir.file("c/pages.jsonl")).unwrap();
    let unreadable = cmd.run(&["replay", "c", "--output", "x"]);
    assert_eq!(unreadable.code, 3, "{}", unreadable.stderr);
    assert!(!dir.file("x").exists());
    fs::remove_dir(dir.file("c/pages.jsonl")).unwrap();
    // A line that isn't a row is skipped and reported.
    dir.write("c/pages.jsonl", &format!("{{}}\n{rows}"));
    let flawed = cmd.run(&["replay", "c", "--output", "x"]).ok();
    assert!(flawed.contains("\nflaw of A "), "{flawed}");
    dir.write("c/pages.jsonl", &rows);
    // Simulate a crawl that was killed before its last page and not resumed.
    dir.write("c/waiting.jsonl", "");
    let rows = dir.read("c/requests.jsonl");
    let end_of_kept_rows = rows.trim_end().rfind('\n').unwrap() + 1;
    dir.write("c/requests.jsonl", &rows[..end_of_kept_rows]);
    let killed = cmd.run(&["replay", "c", "--output", "killed"]).ok();
    for line in [
        ": the records end there\n",
        "note      the last run of A has not ended\n",
    ] {
        assert!(killed.contains(line), "{killed}");
    }
    dir.write("c/requests.jsonl", &rows);
    // Replay with other settings, which admit a page that the crawl excluded and set a longer gap.
    dir.write("other.toml", "[politeness]\ndelay = \"5s\"\n");
    let replay_with_others = cmd
        .run(&["replay", "c", "--config", "other.toml", "--output", "slow"])
        .ok();
    for line in [
        "  politeness.delay = \"5s\", was \"150ms\"\n",
        "  scope.exclude = [], was [",
        "unknown   1 of 6 requests have no answer in the archive\n",
        &format!("only B    1\n  {}\n", web.url(0, "/out")),
    ] {
        assert!(
            replay_with_others.contains(line),
            "{line}\n{replay_with_others}"
        );
    }
    assert_eq!(web.log(), []);
    // Commands that read a crawl also read its replay.
    let report = cmd.run(&["report", "slow"]).ok();
    assert!(report.contains("/c: no requests were sent\n"), "{report}");
    assert!(dir.read("slow/report.html").contains("A replay of"));
    let audit = cmd.run(&["audit", "slow"]);
    assert_eq!(audit.code, 0, "{}", audit.stdout);
    let reason = "there is no archive (a replay keeps none)";
    assert!(audit.stdout.contains(reason), "{}", audit.stdout);
    let indexed = cmd.run(&["index", "slow"]);
    let reason = "the crawl in `slow` has no archive: a replay keeps none";
    assert!(indexed.stderr.contains(reason), "{}", indexed.stderr);
    let explained = cmd.run(&["explain", "slow", &web.url(0, "/out")]).ok();
    assert!(explained.contains("not_archived"), "{explained}");
    // A replay can't be resumed or overwritten.
    for args in [
        &["--output", "slow"][..],
        &["--seed", &seed, "--output", "slow"],
        &["--output", "slow", "--config", "slow/crawl.toml"],
        &["replay", "c", "--output", "slow"],
    ] {
        let ran = cmd.run(args);
        let reason = "`slow` holds the replay of another crawl";
        assert!(
            ran.code == 2 && ran.stderr.contains(reason),
            "{args:?} {}",
            ran.stderr
        );
    }
    let onto_itself = cmd.run(&["replay", "c", "--output", "c"]);
    assert_eq!(onto_itself.code, 2, "{}", onto_itself.stderr);
    let nothing = cmd.run(&["replay", "slow", "--output", "more"]);
    let reason = "`slow` has no archive to replay";
    assert!(nothing.stderr.contains(reason), "{}", nothing.stderr);
    assert_eq!(web.log(), []);
}

/// Replays a copy of a crawl, as if it came from someone else.
#[test]
fn a_foreign_directory_runs_no_program_and_writes_no_file_in_a_replay() {
    let (dir, cmd) = setup("foreign-replay");
    let web = site();
    let seed = web.url(0, "/");
    let more = ["--delay", "1ms", "--exclude", "/out$", "--progress", "off"];
    let crawl = [&["--seed", &seed, "--output", "own"], &more[..]].concat();
    assert_eq!(cmd.run(&crawl).code, 0);
    let copied = std::process::Command::new("cp")
        .args(["-r", "own", "c"])
        .current_dir(dir.path())
        .status();
    assert!(copied.unwrap().success());
    let own = dir.read("c/crawl.toml");
    let at = |name: &str| dir.file(name).display().to_string();
    let with = |changes: &[(&str, &str)]| {
        let mut toml = own.clone();
        for (from, to) in changes {
            assert!(toml.contains(from), "{from}: {toml}");
            toml = toml.replace(from, to);
        }
        dir.write("c/crawl.toml", &toml);
    };

    dir.write("browser.sh", "#!/bin/sh\ntouch ran\nexit 1\n");
    let program = dir.file("browser.sh");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    with(&[
        ("\nrender = \"off\"", "\nrender = \"on\""),
        (
            "\nbrowser = \"\"",
            &format!("\nbrowser = \"{}\"", program.display()),
        ),
        ("\nbrowser-sandbox = \"on\"", "\nbrowser-sandbox = \"off\""),
        ("\nmax-body = \"10MiB\"", "\nmax-body = \"1TiB\""),
        ("\nca-file = []", "\nca-file = [\"ca.pem\"]"),
    ]);
    let ran = cmd.run(&["replay", "c", "--output", "r"]);
    expect![[r#"
        2
        error: `c/crawl.toml` isn't marked as yours: its mark doesn't match: the file was written by another user, edited, or moved. It sets keys that only you may set:
          [fetch] ca-file = ["ca.pem"]  (sets which certificates are trusted)
          [fetch] max-body = "1TiB"  (could exhaust this machine's memory)
          [render] browser = "DIR/browser.sh"  (sets the program that renders pages)
          [render] browser-sandbox = "off"  (switches the browser's sandbox off)
          [render] render = "on"  (runs a browser)
        hint: read the file, then accept it with `crawl replay c --config c/crawl.toml`, or set each key with its flag"#]]
    .assert_eq(&ran.refusal(&dir));
    // The guarded keys are refused even if the command names a seed.
    let ran = cmd.run(&["replay", "c", "--output", "r", "--seed", &seed]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(!dir.file("ran").exists() && !dir.file("r").exists());
    // The replay doesn't read a file of hosts that the directory's crawl.toml names.
    dir.write("hosts.txt", "secret.example\n");
    let host_list = format!("\nhost = [\"@{}\"]", at("hosts.txt"));
    with(&[("\nhost = []", &host_list)]);
    let ran = cmd.run(&["replay", "c", "--output", "r"]);
    let error = "`host` contains the file";
    assert!(
        ran.code == 2 && ran.stderr.contains(error),
        "{}",
        ran.stderr
    );

    // The replay accepts guarded keys that affect only requests, and ignores keys that apply only
    // to a single run.
    dir.write("victim.txt", "precious");
    with(&[
        ("\nlog = \"\"", &format!("\nlog = \"{}\"", at("victim.txt"))),
        ("\nlog-max-size = \"100MiB\"", "\nlog-max-size = \"64KiB\""),
        ("\ncookies = \"\"", "\ncookies = \"cookies.txt\""),
        ("\nverbose = 0", "\nverbose = 2"),
        ("\nproxy = \"\"", "\nproxy = \"http://127.0.0.1:9\""),
        ("\noutput = \"", &format!("\noutput = \"{}", at("stolen"))),
    ]);
    let replayed = cmd.run(&["replay", "c", "--output", "r"]).ok();
    assert!(replayed.contains("\nended     finished\n"), "{replayed}");
    assert_eq!(dir.read("victim.txt"), "precious");
    let onto_itself = cmd.run(&["replay", "c"]);
    let error = "`c` already holds a crawl";
    assert!(
        onto_itself.code == 2 && onto_itself.stderr.contains(error),
        "{}",
        onto_itself.stderr
    );
}

#[test]
fn a_replay_takes_over_no_log_and_no_display_settings() {
    let (dir, cmd) = setup("replay-log");
    let web = site();
    let seed = web.url(0, "/");
    let more = ["--delay", "1ms", "-v", "--log", "c.log", "--recrawl"];
    let crawl = [&["--seed", &seed, "--output", "c"], &more[..]].concat();
    assert_eq!(cmd.run(&crawl).code, 0);
    let log = dir.read("c.log");
    let replayed = cmd.run(&["replay", "c", "--output", "r"]).ok();
    assert!(
        replayed.starts_with("settings  unchanged: each"),
        "{replayed}"
    );
    assert_eq!(dir.read("c.log"), log);
    let logged = cmd.run(&["replay", "c", "--output", "s", "--log", "s.log"]);
    assert_eq!(logged.code, 0, "{}", logged.stderr);
    assert!(dir.read("s.log").contains("answered 200"));
}

#[test]
fn runs_with_other_settings_are_counted_as_a_cause_of_differences() {
    let (_dir, cmd) = setup("replay-runs");
    let web = site();
    web.script(0, "/out", HttpAnswer::html("out"));
    let seed = web.url(0, "/");
    let crawl = ["--seed", &seed, "--output", "c", "--progress", "off"];
    let quick = ["--delay", "1ms", "--delay-factor", "0"];
    let excluding = ["--exclude", "/b$", "--max-pages", "2"];
    let ran = cmd.run(&[&crawl[..], &quick, &excluding].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(cmd.run(&[&crawl[..], &quick].concat()).code, 0);
    assert_eq!(
        cmd.run(&[&crawl[..], &quick, &["--recrawl"]].concat()).code,
        0
    );
    let replayed = cmd.run(&["replay", "c", "--output", "r"]).ok();
    let line =
        "settings  those of A's crawl.toml: 1 run of A had others, so the replay may diverge\n";
    assert!(replayed.starts_with(line), "{replayed}");
    let replayed = cmd.run(&["replay", "c", "--output", "s", "--json"]).ok();
    let replayed: Value = serde_json::from_str(&replayed).unwrap();
    assert_eq!(replayed["runs_with_other_settings"], 1);
    assert_eq!(replayed["settings"], json!([]));
}

#[test]
fn a_replay_has_the_order_of_a_crawl_without_gaps() {
    let (dir, cmd) = setup("policy-replay-quick");
    let web = TestWeb::builder().seed(4).hosts(1).pages(120).start();
    let seed = web.url(0, "/");
    let quick = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];
    let ran = cmd.run(&[&["--seed", &seed, "--output", "c"], &quick[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let rows = dir.rows("c/requests.jsonl");
    let of = |purpose: &'static str| rows.iter().filter(move |row| row["purpose"] == purpose);
    assert!(of("page").all(|row| row["after"]["pages"].is_u64()));
    assert!(of("robots").all(|row| row["after"].is_null()));
    let again = cmd.run(&["replay", "c", "--output", "again", "--json"]);
    let again: Value = serde_json::from_str(&again.ok()).unwrap();
    assert_eq!(again["difference"], Value::Null, "{again:#}");
    assert_eq!(again["not_archived"], 0);
    let order = json!({"is_same": true, "hosts_same": 1, "hosts_other": 0});
    assert_eq!(again["comparison"]["order"], order);
}

#[test]
fn a_replay_parks_the_hosts_that_were_parked_between_two_runs() {
    let (_dir, cmd) = setup("parked-replay");
    let web = site();
    let (seed, host) = (web.url(0, "/"), web.authority(0).to_owned());
    let quick = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];
    let first = cmd.run(&[&["--seed", &seed, "--output", "c"][..], &quick].concat());
    assert_eq!(first.code, 0, "{}", first.stderr);
    for (command, code) in [("park", 0), ("unpark", 0)] {
        cmd.run(&["control", "c", command, &host]).ok();
        let round = cmd.run(&[&["--output", "c", "--recrawl"][..], &quick].concat());
        assert!(command == "park" || round.code == code, "{}", round.stderr);
        let again = format!("after-{command}");
        let replayed = cmd.run(&["replay", "c", "--output", &again, "--json"]).ok();
        let replayed: Value = serde_json::from_str(&replayed).unwrap();
        assert_eq!(
            replayed["difference"],
            Value::Null,
            "{command} {replayed:#}"
        );
        assert_eq!(
            replayed["comparison"]["order"]["is_same"], true,
            "{command}"
        );
    }
}

#[test]
fn bodies_dropped_by_a_filter_are_counted_apart_from_withheld_ones() {
    let (_dir, cmd) = setup("unwanted-replay");
    let web = TestWeb::builder()
        .hosts(1)
        .sitemap(false)
        .script(
            0,
            "/",
            HttpAnswer::html("<p>home <a href=/feed>f</a><a href=/s>s</a>"),
        )
        .script(
            0,
            "/feed",
            HttpAnswer::of(200)
                .header("content-type", "application/rss+xml")
                .body("<rss version=2.0><channel><item><link>/item</link></item></channel></rss>"),
        )
        .script(0, "/item", HttpAnswer::html("<p>item"))
        .script(0, "/s", HttpAnswer::html("<p>s"))
        .start();
    let seed = web.url(0, "/");
    let quick = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];
    let filter = [
        "--seed",
        &seed,
        "--output",
        "c",
        "--content-type",
        "text/html",
    ];
    let ran = cmd.run(&[&filter[..], &quick].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let replayed = cmd.run(&["replay", "c", "--output", "again"]).ok();
    let item = web.url(0, "/item");
    for part in [
        "\n  1 body is not archived because of --content-type or another filter of documents",
        &format!("\ndiffers   from {item}: the replay doesn't send this request\n"),
        &format!("\nonly A    1\n  {item}\n"),
        "\ndigest    0\n",
    ] {
        assert!(replayed.contains(part), "{part}: {replayed}");
    }
    assert!(!replayed.contains("at the site's request"), "{replayed}");
}

#[test]
fn a_page_without_an_archived_body_does_not_end_a_replay() {
    let (_dir, cmd) = setup("withheld-replay");
    let web = TestWeb::builder()
        .hosts(1)
        .sitemap(false)
        .script(0, "/", HttpAnswer::html("<a href=/a>a</a><a href=/b>b</a>"))
        .script(
            0,
            "/a",
            HttpAnswer::html("<meta name=robots content=noarchive><p>a"),
        )
        .script(0, "/b", HttpAnswer::html("<p>b"))
        .start();
    let seed = web.url(0, "/");
    let quick = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];
    for round in [&["--seed", &seed][..], &["--recrawl"]] {
        let ran = cmd.run(&[&["--output", "c"], round, &quick].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let replayed = cmd.run(&["replay", "c", "--output", "again", "--json"]);
    let replayed: Value = serde_json::from_str(&replayed.ok()).unwrap();
    assert_eq!(replayed["difference"], Value::Null);
    assert_eq!(
        (&replayed["not_archived"], &replayed["withheld"]),
        (&json!(0), &json!(2))
    );
    let explained = cmd.run(&["explain", "again", &web.url(0, "/a")]).ok();
    for part in [
        "  answer: 200, 0 bytes",
        "  error: body longer than the limit",
    ] {
        assert!(explained.contains(part), "{explained}");
    }
}
