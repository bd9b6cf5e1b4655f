//! `crawl report --broken` and `--changes`: broken links, and what changed between rounds.

use crawl_testweb::{ConnectionBehaviour, HttpAnswer, LinkMix, TestWeb};
use serde_json::{Value, json};

use crate::harness::{Cmd, setup};

/// Starts a site with a missing page that two pages link to, one of them through a redirect.
fn site() -> TestWeb {
    TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .robots(0, "User-agent: *\nDisallow: /barred\n")
        .script(
            0,
            "/",
            HttpAnswer::html(
                "<a href=/a>a</a><a href=/gone>our <i>news</i></a><a href=/barred>b</a>",
            ),
        )
        .script(
            0,
            "/a",
            HttpAnswer::html("<a href=/moved rel=nofollow>x</a><a href=/moved>there</a>"),
        )
        .script(0, "/moved", HttpAnswer::redirect(302, "/gone"))
        .script(0, "/gone", HttpAnswer::of(404))
        .start()
}

fn crawl(cmd: &Cmd, web: &TestWeb, dir: &str, more: &[&str]) {
    let seed = web.url(0, "/");
    let args = [
        "--seed",
        &seed,
        "--output",
        dir,
        "--delay",
        "0s",
        "--delay-factor",
        "0",
    ];
    let ran = cmd.run(&[&args[..], &["--progress", "off"], more].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// Returns the list of broken links as JSON, and as text with the host removed.
fn broken(cmd: &Cmd, web: &TestWeb, dir: &str) -> (Value, String) {
    let json = cmd.run(&["report", dir, "--broken", "--json"]).ok();
    let text = cmd.run(&["report", dir, "--broken", "--all"]).ok();
    let text = text.replace(&web.url(0, ""), "");
    (serde_json::from_str(&json).unwrap(), text)
}

#[test]
fn a_broken_page_is_listed_with_each_link_to_it() {
    let (_dir, cmd) = setup("broken");
    let web = site();
    let all = "1 broken page, 3 links to it\n\n404  /gone\n     on /  \"our news\"\n     \
               on /a  \"there\"\n        via /moved\n     on /a  \"x\"  (nofollow)\n        \
               via /moved\n";
    for (dir, more, source) in [
        ("a", &[][..], "archive"),
        ("l", &["--links", "on"], "links.jsonl"),
        ("w", &["--links", "on", "--warc", "off"], "links.jsonl"),
    ] {
        crawl(&cmd, &web, dir, more);
        let (json, text) = broken(&cmd, &web, dir);
        assert_eq!(
            (json["source"].as_str(), text.as_str()),
            (Some(source), all)
        );
        assert_eq!(
            json["pages"][0]["links"].as_array().unwrap().len() as u64,
            json["links"]
        );
    }
    let short = cmd.run(&["report", "a", "--broken"]).ok();
    assert_eq!(
        short.replace(&web.url(0, ""), ""),
        "1 broken page, 3 links to it\n\n404  /gone  3 links on 2 pages: /, /a\n\n\
         run with --all to list every link with its text\n"
    );
    crawl(&cmd, &web, "n", &["--warc", "off"]);
    let (json, text) = broken(&cmd, &web, "n");
    assert_eq!(json["source"], "via");
    assert!(
        text.contains("via /moved\n\nneither links nor an archive were kept"),
        "{text}"
    );
}

#[test]
fn a_broken_page_fails_a_build_on_request() {
    let (dir, cmd) = setup("ci");
    let web = site();
    crawl(&cmd, &web, "c", &[]);
    for (flags, code) in [
        (&[][..], 0),
        (&["--broken"], 0),
        (&["--fail-on-broken"], 1),
        (&["--broken", "--fail-on-broken"], 1),
        (&["--changes", "--fail-on-broken", "--json"], 1),
        (&["--html", "r.html", "--fail-on-broken"], 1),
        (&["--faults", "--fail-on-broken"], 1),
        (&["--site", "--fail-on-broken"], 1),
        (&["--site", "--fail-on-partial"], 0),
    ] {
        let ran = cmd.run(&[&["report", "c"], flags].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (code, ""), "{flags:?}");
    }
    let page = dir.read("r.html");
    let (before, broken) = page.split_once("id=\"broken-links\"").unwrap();
    assert!(before.contains("What to fix") && broken.contains(&web.url(0, "/gone")));
    let report: Value = serde_json::from_str(&dir.read("c/report.json")).unwrap();
    assert_eq!(report["broken"]["pages"], 1);
    assert_eq!(report["broken"]["first"][0]["url"], web.url(0, "/gone"));

    // Once the link is fixed, the next round succeeds.
    web.script(0, "/gone", HttpAnswer::html("back"));
    crawl(&cmd, &web, "c", &["--recrawl"]);
    let ran = cmd.run(&["report", "c", "--broken", "--fail-on-broken"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "no broken pages\n"));
    let changes = cmd.run(&["report", "c", "--changes", "--json"]).ok();
    let changes: Value = serde_json::from_str(&changes).unwrap();
    assert_eq!(changes["round"], 2);
    assert_eq!(changes["new"], json!([web.url(0, "/gone")]));
    let text = cmd.run(&["report", "c", "--changes"]).ok();
    assert!(text.starts_with("round 2: 1 new, 0 changed, "), "{text}");
}

#[test]
fn exclusive_lists_are_refused() {
    let (dir, cmd) = setup("lists");
    for flags in [
        ["--broken", "--changes"],
        ["--broken", "--html=x"],
        ["--changes", "--html=x"],
        ["--all", "--json"],
    ] {
        let ran = cmd.run(&[&["report", "c"], &flags[..]].concat());
        assert_eq!(ran.code, 2, "{flags:?}");
    }
    let ran = cmd.run(&["report", "c", "--broken"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains("\nhint: "));
    assert!(!dir.file("x").exists());
}

#[test]
fn a_redirect_without_an_end_is_broken() {
    let (dir, cmd) = setup("loops");
    let web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(
            0,
            "/",
            HttpAnswer::html("<a href=/a></a><a href=/b></a><a href=/self></a><a href=/1></a>"),
        )
        .script(0, "/a", HttpAnswer::redirect(301, "/b"))
        .script(0, "/b", HttpAnswer::redirect(302, "/a"))
        .script(0, "/self", HttpAnswer::redirect(302, "/self"))
        .script(0, "/1", HttpAnswer::redirect(302, "/2"))
        .script(0, "/2", HttpAnswer::redirect(302, "/3"))
        .script(0, "/3", HttpAnswer::redirect(302, "/4"))
        .start();
    crawl(&cmd, &web, "c", &["--max-redirects", "2"]);
    let rows = dir.read("c/pages.jsonl");
    let rows = rows
        .lines()
        .map(|row| serde_json::from_str::<Value>(row).unwrap());
    let redirects: Vec<Value> = rows
        .filter(|row| row["redirect"].is_string())
        .map(|row| json!([row["url"], row["redirect"], row["error"]]))
        .collect();
    let redirects = json!(redirects).to_string().replace(&web.url(0, ""), "");
    let mut redirects: Vec<Value> = serde_json::from_str(&redirects).unwrap();
    redirects.sort_by_key(Value::to_string);
    let expected = json!([
        ["/1", "/2", null],
        ["/2", "/3", null],
        ["/3", "/4", "too_many_redirects"],
        ["/self", "/self", "redirect_loop"],
    ]);
    // `/a` and `/b` redirect to each other. The one that is settled last reports the loop, and it
    // may be either.
    let (of_two, other_rows): (Vec<_>, Vec<_>) = redirects
        .into_iter()
        .partition(|row| row[0] == "/a" || row[0] == "/b");
    assert_eq!(json!(other_rows), expected);
    let errors = of_two.iter().filter(|row| row[2] == "redirect_loop");
    assert_eq!((of_two.len(), errors.count()), (2, 1), "{of_two:?}");
    let (json, text) = broken(&cmd, &web, "c");
    assert_eq!(json["pages"].as_array().unwrap().len(), 3, "{text}");
    assert!(text.contains("301  /a (redirect loop)"), "{text}");
    let report = cmd.run(&["report", "c", "--json"]).ok();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["broken"]["pages"], 3);
    assert_eq!(report["pages"]["failed"], 3);
    assert_eq!(report["pages"]["by_outcome"]["redirect_loop"], 2);
    let code = cmd.run(&["report", "c", "--fail-on-broken"]).code;
    assert_eq!(code, 1);
    // The next round reports the same broken links.
    crawl(&cmd, &web, "c", &["--max-redirects", "2", "--recrawl"]);
    assert_eq!(broken(&cmd, &web, "c").1, text);
}

#[test]
fn two_crawls_of_one_site_are_compared() {
    let (_dir, cmd) = setup("compared");
    let web = site();
    crawl(&cmd, &web, "one", &[]);
    crawl(&cmd, &web, "other", &["--exclude", "/a$"]);
    let json = cmd.run(&["report", "--compare", "one", "other", "--json"]);
    let comparison: Value = serde_json::from_str(&json.ok()).unwrap();
    let only_one = [web.url(0, "/a"), web.url(0, "/moved")];
    assert_eq!(comparison["pages"]["only_a"], json!(only_one));
    assert_eq!(comparison["pages"]["only_b"], json!([]));
    assert_eq!(comparison["pages"]["both"], 2);
    let rule = &comparison["excluded"][0];
    assert_eq!(
        (&rule["rule"], &rule["b"]),
        (&json!("exclude /a$"), &json!(1))
    );
    let text = cmd.run(&["report", "--compare", "one", "other"]).ok();
    assert!(
        text.contains(&format!("only A    2\n  {}\n", only_one[0])),
        "{text}"
    );
    let of_round = cmd.run(&["report", "--compare", "one", "other", "--round", "1"]);
    assert!(of_round.ok().contains("round     1 of 1 in A and 1 in B"));
    let no_round = cmd.run(&["report", "--compare", "one", "other", "--round", "2"]);
    let reason = "has no round 2\nhint: only round 1 exists";
    assert!(
        no_round.code == 2 && no_round.stderr.contains(reason),
        "{}",
        no_round.stderr
    );
    let nothing = cmd.run(&["report", "--compare", "one", "none"]);
    assert_eq!(nothing.code, 2, "{}", nothing.stderr);
}

#[test]
fn faults_fail_a_build_unless_a_baseline_lists_them() {
    let (dir, cmd) = setup("faults");
    let web = site();
    web.script(
        0,
        "/a",
        HttpAnswer::html("<a href=/moved>there</a><a href=/#no>no</a><img src=/none.png>"),
    );
    web.script(0, "/none.png", HttpAnswer::of(404));
    crawl(&cmd, &web, "f", &["--resources", "all"]);
    let faults = |more: &[&str]| cmd.run(&[&["report", "f", "--faults"], more].concat());
    let host = web.url(0, "");
    let text = faults(&[]).ok().replace(&host, "");
    assert_eq!(
        text,
        "4 faults: broken 3, fragment 1; 1 link not checked\n\n/\n  broken         /gone  not \
         found (404)  \"our news\"\n\n/a\n  fragment       /#no  no such anchor #no  \"no\"\n  \
         broken         /moved  not found (404), after a redirect to /gone  \"there\"\n  broken  \
         \u{20}      /none.png  not found (404)  (image)\n\nlinks not checked:\n\n/\n  not checked    \
         /barred  robots.txt  \"b\"\n"
    );
    let failed = faults(&[
        "--fail-on-faults",
        "--kinds",
        "fragment",
        "--format",
        "github",
    ]);
    assert_eq!(failed.code, 1);
    assert_eq!(failed.stdout.lines().count(), 1);
    let known_faults = faults(&["--format", "jsonl"]).ok();
    let known_faults = known_faults.lines().skip(1).collect::<Vec<_>>().join("\n");
    std::fs::write(dir.path().join("known.jsonl"), known_faults).unwrap();
    let baseline = ["--baseline", "known.jsonl", "--fail-on-faults"];
    let ran = faults(&baseline);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout
            .starts_with("1 new fault: broken 1 (3 known); 1 link not checked\n"),
        "{}",
        ran.stdout
    );
    let known_faults = faults(&["--format", "jsonl"]).ok();
    std::fs::write(dir.path().join("known.jsonl"), known_faults).unwrap();
    let ran = faults(&[&baseline[..], &["--format", "json"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&json["known"], &json["mended"]), (&json!(4), &json!(0)));
    for (format, begin) in [("junit", "<?xml version"), ("html", "<!DOCTYPE html>")] {
        assert!(faults(&["--format", format]).ok().starts_with(begin));
    }
    std::fs::write(dir.path().join("known.jsonl"), "no fault\n").unwrap();
    let ran = faults(&baseline);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("hint: write a baseline with"),
        "{}",
        ran.stderr
    );
    let ran = faults(&["--kinds", "odd"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("valid kinds: broken, "),
        "{}",
        ran.stderr
    );
    let ran = faults(&["--kinds", "brokn"]);
    assert!(
        ran.stderr.contains("did you mean `broken`?"),
        "{}",
        ran.stderr
    );
}

#[test]
fn findings_about_a_site_are_reported_in_three_formats() {
    let (dir, cmd) = setup("site");
    let web = site();
    crawl(&cmd, &web, "s", &[]);
    let host = web.url(0, "");
    let text = cmd
        .run(&["report", "s", "--site", "--max-clicks", "0"])
        .ok();
    let text = text.replace(&host, "");
    for told in [
        "2 pages\n",
        "\nwithout a title: 2\n  /\n  /a\n",
        "\nmore than 0 clicks from the start: 1\n  1 click  /a\n",
        "\nexcluded by robots.txt, but linked: 1\n  /barred  `Disallow: /barred`  1 link\n",
    ] {
        assert!(text.contains(told), "{told} {text}");
    }
    let json = cmd.run(&["report", "s", "--site", "--json"]).ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["clicks"], &json["deep"]),
        (&json!([1, 1]), &json!([]))
    );
    assert_eq!(
        cmd.run(&["report", "s", "--site", "--html", "s.html"]).ok(),
        ""
    );
    let page = std::fs::read_to_string(dir.path().join("s.html")).unwrap();
    assert!(page.contains("id=\"robots\"") && page.contains("<figure id=\"clicks\">"));
}

#[test]
fn links_to_hosts_that_give_no_robots_txt_are_unreachable() {
    let (_dir, cmd) = setup("dead-hosts");
    let web = TestWeb::builder()
        .hosts(4)
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .connection_mode(1, ConnectionBehaviour::Refused)
        .script(2, "/robots.txt", HttpAnswer::of(503))
        .script(
            3,
            "/robots.txt",
            HttpAnswer::of(429).header("retry-after", "9999"),
        )
        .start();
    let [refused, down, busy] = [1, 2, 3].map(|host| web.url(host, "/x"));
    let page = format!(
        "<a href={refused}>one</a><a href={down}>two</a><a href={busy}>three</a><a href=/gone>four</a>"
    );
    web.script(0, "/", HttpAnswer::html(&page));
    web.script(0, "/gone", HttpAnswer::of(404));
    let gone = web.url(0, "/gone");
    let seed = web.url(0, "/");
    let ran = cmd.run(&[
        "--seed",
        &seed,
        "--output",
        "c",
        "--hops-off-scope",
        "1",
        "--allow-private",
        "--delay",
        "0s",
        "--delay-factor",
        "0",
        "--wait-unreachable",
        "0s",
        "--progress",
        "off",
    ]);
    assert!(ran.stderr.contains("; next try from "), "{}", ran.stderr);
    let faults: Value = serde_json::from_str(
        &cmd.run(&["report", "c", "--faults", "--format", "json"])
            .ok(),
    )
    .unwrap();
    let listed: Vec<_> = faults["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| {
            (
                fault["to"].clone(),
                fault["kind"].clone(),
                fault["text"].clone(),
            )
        })
        .collect();
    assert_eq!(
        listed,
        [
            (json!(gone), json!("broken"), json!("four")),
            (json!(refused), json!("unreachable"), json!("one")),
            (json!(down), json!("unreachable"), json!("two")),
        ],
        "{faults}"
    );
    let broken = cmd.run(&["report", "c", "--broken", "--all"]).ok();
    assert!(
        broken.contains(&refused) && broken.contains(&down),
        "{broken}"
    );
    assert!(!broken.contains(&busy), "{broken}");
    // The first line explains the difference from the count of the whole report.
    let head = "3 broken pages (2 on hosts that could not be reached), 3 links to them\n";
    assert!(broken.starts_with(head), "{broken}");
    let report = cmd.run(&["report", "c"]).ok();
    assert!(report.contains("\nbroken    1\n"), "{report}");
}
