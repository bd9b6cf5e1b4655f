//! Settings that are reloaded while a crawl runs: by SIGHUP, and by `crawl control DIR reload`.

use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};
use expect_test::expect;
use serde_json::{Value, json};

use crate::control::Talk;
use crate::harness::{Cmd, Dir, Running, setup};

/// Starts a site whose first page links to many pages of two kinds.
fn site() -> TestWeb {
    let links = |kind: &str, count: usize| {
        let link = |page| format!("<a href={kind}{page}>p</a> ");
        (0..count).map(link).collect::<String>()
    };
    let web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(
            0,
            "/",
            HttpAnswer::html(&(links("/kept", 5) + &links("/out", 20))),
        )
        .start();
    for page in 0..5 {
        web.script(0, &format!("/kept{page}"), HttpAnswer::html("kept"));
    }
    for page in 0..20 {
        web.script(0, &format!("/out{page}"), HttpAnswer::html("out"));
    }
    web
}

fn write(dir: &Dir, web: &TestWeb, more: &str) {
    let seed = web.url(0, "/");
    dir.write("site.toml", &format!("seed = [\"{seed}\"]\n{more}"));
}

/// Pauses a crawl after its first page, and waits until no request is in flight. Many pages are
/// left, each with a gap of at least two seconds.
fn paused(dir: &Dir, crawl: &Running) -> Talk {
    crawl.until("takes commands");
    let mut talk = Talk::to(dir);
    let state = json!({"do": "state"});
    while talk.send(&state)["pages"] == 0 {}
    talk.done(&json!({"do": "pause"}));
    while talk.send(&state)["in_flight"] != 0 {}
    talk
}

fn requests_for(web: &TestWeb, what: &str) -> usize {
    let log = web.log();
    log.iter()
        .filter(|entry| entry.path.starts_with(what))
        .count()
}

fn audited(cmd: &Cmd) -> Value {
    let ran = cmd.run(&["audit", "c", "--json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

const SLOW: &str = "[politeness]\ndelay = \"2s\"\ndelay-factor = 0\n";

#[test]
fn sighup_makes_a_crawl_without_a_terminal_reload_its_settings() {
    let (dir, cmd) = setup("reload");
    let web = site();
    write(&dir, &web, SLOW);
    let args = [
        "--config",
        "site.toml",
        "--output",
        "c",
        "-v",
        "--progress",
        "off",
    ];
    let crawl = cmd.start_as_daemon(&args);
    let mut talk = paused(&dir, &crawl);
    let before = (requests_for(&web, "/out"), requests_for(&web, "/kept"));
    // All errors are reported, and nothing changes.
    write(&dir, &web, "[politeness]\ndelay = 5\n[scop]\n");
    crawl.signal("HUP");
    crawl.until("settings not reloaded: the crawl continues unchanged");
    let stderr = crawl.stderr();
    for told in ["site.toml:3:", "`delay`", "unknown key or table `scop`"] {
        assert!(stderr.contains(told), "{told}: {stderr}");
    }
    assert!(dir.read("c/crawl.toml").contains("delay = \"2s\""));
    let rows = dir.rows("c/state/delays.jsonl");
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["settings"]["politeness"]["delay"], "2s");

    let new = "[politeness]\ndelay = \"0s\"\ndelay-factor = 0\nconcurrency = 3\n\
               [scope]\nexclude = [\"/out\"]\nmax-depth = 9\nmax-pages = 900\n";
    write(&dir, &web, new);
    crawl.signal("HUP");
    crawl.until("effective at the next start");
    let toml = dir.read("c/crawl.toml");
    assert!(toml.contains("delay = \"0s\"") && toml.contains("exclude = [\"/out\"]"));
    assert!(toml.contains("concurrency = 256"), "{toml}");
    talk.done(&json!({"do": "resume"}));
    let (code, stderr) = crawl.end();
    assert_eq!(code, 0, "{stderr}");
    let messages = stderr
        .lines()
        .filter(|line| line.starts_with("settings reloaded") || line.starts_with("effective at"));
    expect![[r#"
        settings reloaded: [politeness] delay = "0s", [scope] exclude: 1 added, 0 removed, [scope] max-pages = 900
        effective at the next start: [politeness] concurrency, [scope] max-depth"#]]
    .assert_eq(&messages.collect::<Vec<_>>().join("\n"));
    assert_eq!(requests_for(&web, "/out"), before.0);
    assert_eq!(requests_for(&web, "/kept"), 5, "{before:?}");
    let excluded = dir.rows("c/excluded.jsonl");
    let by_rule = excluded.iter().filter(|row| row["rule"] == "exclude /out");
    assert_eq!(by_rule.count(), 20 - before.0);

    // Each gap is judged by the rule in force at the time.
    let audit = audited(&cmd);
    assert_eq!(audit["undecided"], json!({}), "{audit}");
    let rows = dir.rows("c/state/delays.jsonl");
    assert_eq!(rows[1]["settings"]["politeness"]["delay"], "0s", "{rows:?}");
    assert_eq!(rows[1]["reread"]["added"], json!(["exclude /out"]));
    let url = web.url(0, "/out19");
    let explained = cmd.run(&["explain", "c", &url]).ok();
    assert!(explained.contains("by `exclude /out`"), "{explained}");
    assert!(explained.contains("rule in force since: "), "{explained}");
    // The stored settings count as the user's own, so the crawl resumes without a message.
    let ran = cmd.run(&["--output", "c", "--progress", "off"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(requests_for(&web, "/out"), before.0);
}

#[test]
fn a_crawl_reloads_its_settings_on_a_command() {
    let (dir, cmd) = setup("reload-told");
    let web = site();
    write(&dir, &web, SLOW);
    dir.write("out.txt", "a.example\n");
    let args = [
        "--config",
        "site.toml",
        "--exclude-host",
        "@out.txt",
        "--exclude",
        "/out1",
        "--output",
        "c",
        "-v",
        "--progress",
        "off",
    ];
    let crawl = cmd.start(&args);
    let mut talk = paused(&dir, &crawl);
    let nothing = cmd.run(&["control", "c", "reload"]).ok();
    assert_eq!(
        nothing,
        "settings reloaded: politeness, exclusions and budgets are unchanged\n"
    );
    // A flag overrides the file, and the list that the flag names is reloaded.
    write(
        &dir,
        &web,
        "[politeness]\ndelay = \"0s\"\ndelay-factor = 0\nper-host = 4\n[scope]\nexclude = [\"/kept\"]\n",
    );
    dir.write("out.txt", "a.example\nb.example\nc.example\n");
    let message = cmd.run(&["control", "c", "reload"]).ok();
    expect![[r#"
        settings reloaded: [politeness] delay = "0s", [politeness] per-host = 4, [scope] exclude-host: 2 added, 0 removed
    "#]]
    .assert_eq(&message);
    write(&dir, &web, "[politeness]\nper-host = 0\nper-address = 0\n");
    let refused = cmd.run(&["control", "c", "reload"]);
    assert_eq!(refused.code, 2, "{}", refused.stdout);
    assert!(
        refused.stderr.matches("error: ").count() >= 2,
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("site.toml:3:1"),
        "{}",
        refused.stderr
    );
    talk.done(&json!({"do": "resume"}));
    let (code, stderr) = crawl.end();
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(requests_for(&web, "/kept"), 5);
    assert_eq!(audited(&cmd)["undecided"], json!({}));

    // Without a file there is nothing to reload.
    let seed = web.url(0, "/");
    let args = [
        "--seed",
        &seed,
        "--output",
        "d",
        "--delay",
        "2s",
        "-v",
        "--progress",
        "off",
    ];
    let crawl = cmd.start(&args);
    crawl.until("takes commands");
    let refused = cmd.run(&["control", "d", "reload"]);
    expect![[r#"
        2
        error: can't reload settings: the crawl was started without --config
        hint: `crawl control d delay` sets a delay; to change other settings, stop the crawl and start it with `--config FILE`"#]]
    .assert_eq(&refused.refusal(&dir));
    crawl.signal("INT");
    assert_eq!(crawl.end().0, 130);
}

#[test]
fn a_group_added_by_a_reload_counts_earlier_fetches() {
    let (dir, cmd) = setup("reload-group");
    let web = site();
    write(&dir, &web, SLOW);
    let args = [
        "--config",
        "site.toml",
        "--output",
        "c",
        "-v",
        "--progress",
        "off",
    ];
    let crawl = cmd.start(&args);
    let mut talk = paused(&dir, &crawl);
    let quick = "[politeness]\ndelay = \"0s\"\ndelay-factor = 0\n";
    let host = web.authority(0).split(':').next().unwrap();
    let group =
        |pages: u32| format!("{quick}[group.few]\nhosts = [\"{host}\"]\nmax-pages = {pages}\n");
    write(&dir, &web, &group(6));
    let message = cmd.run(&["control", "c", "reload"]).ok();
    assert!(
        message.contains("[group.\"few\"] max-pages = 6"),
        "{message}"
    );
    assert!(!message.contains("next start"), "{message}");
    talk.done(&json!({"do": "resume"}));
    let (code, stderr) = crawl.end();
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(dir.rows("c/pages.jsonl").len(), 6);
    let waiting = dir.rows("c/waiting.jsonl");
    assert_eq!(
        waiting[0]["detail"], "max-pages of group few",
        "{waiting:?}"
    );
    let toml = dir.read("c/crawl.toml");
    assert!(toml.contains("[group.few]"), "{toml}");
    assert_eq!(audited(&cmd)["undecided"], json!({}));
    // With a larger budget the same directory is resumed.
    write(&dir, &web, &group(900));
    let ran = cmd.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(dir.rows("c/pages.jsonl").len(), 26);
}

/// A reload is recorded in `state/delays.jsonl` before `crawl.toml` is written. After a kill in
/// between, the last row of `delays.jsonl` has rules that are not in `crawl.toml` and that applied
/// to no request.
#[test]
fn a_kill_during_a_reload_keeps_the_old_rules() {
    let (dir, cmd) = setup("reload-killed");
    let web = site();
    write(
        &dir,
        &web,
        "[politeness]\ndelay = \"20ms\"\ndelay-factor = 0\n",
    );
    let args = [
        "--config",
        "site.toml",
        "--output",
        "c",
        "--progress",
        "off",
    ];
    let ran = cmd.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let requests = dir.rows("c/requests.jsonl");
    let last = requests.iter().filter_map(|row| row["end"].as_u64()).max();
    let row = json!({"at": last.unwrap() + 1, "host": null, "delay": null,
        "settings": {"politeness": {"delay": "9s"}}, "reread": {"added": ["exclude /out"]}});
    let recorded = dir.read("c/state/delays.jsonl");
    dir.write("c/state/delays.jsonl", &format!("{recorded}{row}\n"));
    let audit = audited(&cmd);
    assert_eq!(
        (&audit["breaches"], &audit["undecided"]),
        (&json!([]), &json!({}))
    );
    // Added rules that never reached `crawl.toml` affect no URL, and the next start doesn't apply
    // them.
    let explained = cmd.run(&["explain", "c", &web.url(0, "/out9")]).ok();
    assert!(!explained.contains("exclude"), "{explained}");
    let request_count = web.log().len();
    let again = cmd.run(&["--output", "c", "--progress", "off"]);
    assert_eq!(
        (again.code, web.log().len()),
        (0, request_count),
        "{}",
        again.stderr
    );
    let rows = dir.rows("c/state/delays.jsonl");
    assert_eq!(rows[2]["settings"], rows[0]["settings"], "{rows:?}");
}
