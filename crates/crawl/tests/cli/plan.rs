//! `crawl plan`: what a crawl would cost, without fetching a page.

use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};
use expect_test::expect;
use serde_json::Value;

use crate::harness::{Cmd, Dir, setup};

/// Sets up the program with its own folder for temporary files.
fn planner(name: &str) -> (Dir, Cmd) {
    let (dir, mut cmd) = setup(name);
    std::fs::create_dir(dir.file("tmp")).unwrap();
    cmd.env("TMPDIR", dir.file("tmp").to_str().unwrap());
    (dir, cmd)
}

fn plan<'a>(seed: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["plan", "--seed", seed, "--output", "c"], more].concat()
}

/// Starts a site of four pages, three of them in its sitemap, and two disallowed ones.
fn web() -> TestWeb {
    let web = TestWeb::builder().pages(4).mix(LinkMix::plain()).start();
    let url = |path: &str| web.url(0, path);
    let listed = ["/", "/a", "/b", "/private/x", "/private/y"].map(url);
    let robots = format!(
        "User-agent: *\nContent-Signal: ai-train=no\nCrawl-delay: 0.5\nDisallow: /private/\nSitemap: {}\n",
        url("/map.txt")
    );
    web.script(0, "/robots.txt", HttpAnswer::text(&robots));
    web.script(0, "/map.txt", HttpAnswer::text(&listed.join("\n")));
    web
}

#[test]
fn a_plan_fetches_only_robots_txt_and_sitemaps_and_cleans_up() {
    let (dir, cmd) = planner("plan");
    let web = web();
    let ran = cmd.run(&plan(&web.url(0, "/"), &["--delay", "100ms"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let paths: Vec<_> = web.log().into_iter().map(|entry| entry.path).collect();
    assert_eq!(paths, ["/robots.txt", "/map.txt"]);
    assert_eq!(dir.file("tmp").read_dir().unwrap().count(), 0);
    assert!(!dir.file("c").exists());
    // Mask the times, because they depend on the machine.
    let lines = ran.stdout.lines().map(|line| {
        let line = line.split(", responses take").next().unwrap();
        let line = line.replace(web.authority(0), "HOST");
        match line.trim_start().starts_with("time") {
            true => line.replace(|c: char| c.is_ascii_digit(), "") + "\n",
            false => line + "\n",
        }
    });
    expect![[r#"
        seed      http://HOST/
        purpose   unstated
        pages     3 known
        requests  5
        time      . min; hosts are crawled in parallel; HOST takes longest
        bytes     36.1 kB to 354 kB; the sum over all hosts
        excluded  2
          robots: 2
        hosts     1
          HOST: 3 pages known
            sitemaps: 1
            time: . min; if its sitemaps list all pages; pages found only through links come on top
            gap: 500 ms (crawl-delay)
            bytes: 36.1 kB to 354 kB; none of its pages was measured; 12 to 118 kB of HTML per page, the 10th and 90th percentiles of online shops in the Web Almanac 2019, figure 13.11
            excluded: 2 URLs by robots Disallow: /private/ (line 4)
            http://HOST/robots.txt: Crawl-delay 500 ms (line 3)
            http://HOST/robots.txt: content-signal: ai-train=no (line 2)
            http://HOST/robots.txt: preferences don't bind a crawl without a stated purpose
        sent      2 requests, only for robots.txt and sitemaps
    "#]]
    .assert_eq(&lines.collect::<String>());
}

#[test]
fn a_plan_compares_preferences_with_the_purpose() {
    let (dir, cmd) = planner("purpose");
    let web = web();
    let seed = web.url(0, "/");
    let ran = cmd.run(&plan(&seed, &["--json", "--purpose", "train-ai"]));
    let plan_of: Value = serde_json::from_str(&ran.stdout).unwrap();
    // Only the seed and the sitemap are excluded. The URLs in the sitemap stay unknown, because a
    // plan doesn't fetch a sitemap that the planned crawl would not fetch.
    assert_eq!(plan_of["excluded"]["usage"], 2, "{}", ran.stdout);
    let host = &plan_of["hosts"][0];
    assert_eq!(host["pages"], 0);
    assert_eq!(host["rules"][0]["rule"], "Content-Signal: ai-train=no");
    assert_eq!(host["origins"][0]["usage"]["train-ai"], "refused");
    assert_eq!(host["origins"][0]["crawl_delay_ms"], 500);
    let ran = cmd.run(&plan(
        &seed,
        &["--html", "plan.html", "--purpose", "search"],
    ));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    let page = dir.read("plan.html");
    assert!(page.contains("for search: not stated") && page.contains("3 known pages;"));
    assert!(
        web.log()
            .iter()
            .all(|entry| !entry.path.starts_with("/tdmrep"))
    );
}

#[test]
fn a_plan_takes_sizes_from_an_earlier_sample_and_budgets_from_the_flags() {
    let (_dir, cmd) = planner("sizes");
    let web = TestWeb::builder()
        .pages(12)
        .mix(LinkMix::plain())
        .gzip(false)
        .start();
    let seed = web.url(0, "/");
    let quick = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];
    let crawl = ["--seed", seed.as_str(), "--output", "c"];
    let ran = cmd.run(&[&crawl[..], &quick, &["--sample", "11"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let plan_of = |more: &[&str]| -> Value {
        let ran = cmd.run(&[&plan(&seed, &["--json"])[..], &quick, more].concat());
        serde_json::from_str(&ran.stdout).unwrap()
    };
    let all = plan_of(&[]);
    let number = |plan: &Value, key: &str| plan["bytes"][key].as_f64().unwrap();
    assert_eq!(all["pages"], 12);
    assert!(number(&all, "least") <= number(&all, "expected"), "{all}");
    let few = plan_of(&["--max-pages-per-host", "3"]);
    // The sitemap uses up the budget too.
    assert_eq!((&few["pages"], &few["requests"]), (&2.into(), &4.into()));
    // It is unknown which three pages the crawl would fetch, so the estimate has only bounds.
    assert!(number(&few, "most") < number(&all, "expected"));
    let reason = few["hosts"][0]["bytes"]["why"].as_str().unwrap();
    assert!(
        reason.contains("which pages the budget leaves out"),
        "{reason}"
    );
}

/// The plan says what a crawl with the same settings then does.
#[test]
fn a_crawl_sends_the_requests_that_were_planned() {
    let (dir, cmd) = planner("planned");
    let web = TestWeb::builder().pages(12).mix(LinkMix::plain()).start();
    let seed = web.url(0, "/");
    let quick = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];
    for (name, limit) in [
        ("all", &[][..]),
        ("host", &["--max-pages-per-host", "3"]),
        ("crawl", &["--max-pages", "4"]),
        ("sample", &["--sample", "5", "--frame-depth", "0"]),
        (
            "sample-of-crawl",
            &[
                "--sample",
                "5",
                "--sample-by",
                "crawl",
                "--frame-depth",
                "0",
            ],
        ),
    ] {
        let ran = cmd.run(&[&plan(&seed, &["--json"])[..], &quick, limit].concat());
        let plan_of: Value = serde_json::from_str(&ran.stdout).unwrap();
        let before = web.log().len();
        let crawl = ["--seed", seed.as_str(), "--output", name];
        let ran = cmd.run(&[&crawl[..], &quick, limit].concat());
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        let sent = web.log().len() - before;
        assert_eq!(
            plan_of["requests"],
            sent,
            "{name}: {}",
            dir.read(&format!("{name}/pages.jsonl"))
        );
        assert_eq!(plan_of["uncounted"], serde_json::json!([]), "{name}");
    }
}

#[test]
fn a_plan_names_the_limits_that_it_does_not_count() {
    let (dir, cmd) = planner("uncounted");
    let web = web();
    let tables = format!(
        "seed = [{:?}]\n[scope]\nmax-time = \"1h\"\nmax-bytes-per-host = \"1MB\"\n\
         [sample]\nsample = 3\nsample-by = \"path\"\n\
         [site.\"a.example\"]\nmax-server-time = \"1m\"\n\
         [group.g]\nhosts = [\"b.example\", \"c.example\"]\nmax-bytes = \"1kB\"\n",
        web.url(0, "/")
    );
    dir.write("c.toml", &tables);
    let ran = cmd.run(&["plan", "--config", "c.toml", "--output", "c"]);
    let line = "without   max-time, max-bytes-per-host, max-server-time of a.example, max-bytes of group g, \
                sample-by path, which may end the crawl earlier\n";
    assert!(ran.stdout.contains(line), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_random_walk_is_not_planned() {
    let (_dir, cmd) = planner("walk");
    let ran = cmd.run(&["plan", "http://127.0.0.1:9/", "--walk", "1000"]);
    assert_eq!(ran.code, 2);
    assert_eq!(
        ran.stderr,
        "error: can't plan a random walk: its pages are unknown before it\n\
         hint: a walk fetches at most 4000 pages (steps x walkers)\n"
    );
}

#[test]
fn a_plan_uses_the_requests_in_flight_of_each_host() {
    let (dir, cmd) = planner("in-flight");
    let web = TestWeb::builder()
        .hosts(2)
        .pages(12)
        .mix(LinkMix::plain())
        .start();
    let seeds = [web.url(0, "/"), web.url(1, "/")];
    let site = format!("[site.{:?}]\nper-host = 4\n", web.authority(1));
    let text =
        format!("seed = {seeds:?}\n[politeness]\ndelay = \"50ms\"\ndelay-factor = 0\n{site}");
    dir.write("c.toml", &text);
    let ran = cmd.run(&["plan", "--config", "c.toml", "--output", "c", "--json"]);
    let plan_of: Value = serde_json::from_str(&ran.stdout).unwrap();
    // The quotient of the time that all requests take one after the other, and the planned time.
    let at_once = |host: &str| {
        let hosts = plan_of["hosts"].as_array().unwrap();
        let host = hosts.iter().find(|plan| plan["host"] == host).unwrap();
        let number = |key: &str| host[key].as_f64().unwrap();
        let requests = number("requests");
        let in_turn = (requests - 1.0) * number("gap_ms") + requests * number("answer_ms");
        (in_turn / 3_600_000.0 / host["hours"]["least"].as_f64().unwrap()).round()
    };
    assert_eq!([0, 1].map(|host| at_once(web.authority(host))), [1.0, 4.0]);
}

#[test]
fn a_plan_applies_the_budgets_of_sites_and_groups() {
    let (dir, cmd) = planner("tables");
    let web = TestWeb::builder()
        .hosts(2)
        .pages(12)
        .mix(LinkMix::plain())
        .start();
    let pages_of = |tables: &str, more: &[&str]| {
        let seeds = [web.url(0, "/"), web.url(1, "/")];
        let quick = "[politeness]\ndelay = \"0s\"\ndelay-factor = 0";
        dir.write("c.toml", &format!("seed = {seeds:?}\n{quick}\n{tables}"));
        let args = ["plan", "--config", "c.toml", "--output", "c", "--json"];
        let ran = cmd.run(&[&args[..], more].concat());
        let plan: Value = serde_json::from_str(&ran.stdout).unwrap();
        plan["pages"].clone()
    };
    assert_eq!(pages_of("", &[]), 24);
    let hosts = [web.authority(0), web.authority(1)];
    let site = hosts.map(|host| format!("[site.{host:?}]\nmax-pages = 5\n"));
    // The sitemaps use up the budgets too.
    assert_eq!(pages_of(&site[0], &[]), 16);
    assert_eq!(pages_of(&site.concat(), &["--max-pages-per-host", "1"]), 8);
    let group = format!("[group.g]\nhosts = {hosts:?}\nmax-pages = 7\n");
    assert_eq!(pages_of(&group, &[]), 5);
}

#[test]
fn an_unreachable_host_has_no_plan() {
    let (_dir, cmd) = planner("unasked");
    let web = TestWeb::builder().start();
    web.script(0, "/robots.txt", HttpAnswer::of(503));
    let seed = web.url(0, "/");
    let ran = cmd.run(&plan(&seed, &["--wait-unreachable", "0s"]));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let reason = "its robots.txt can't be fetched, so no page may be fetched now";
    assert!(ran.stdout.contains(reason), "{}", ran.stdout);
}

#[test]
fn a_crawl_delay_longer_than_a_run_waits_is_named() {
    let (_dir, cmd) = planner("delayed");
    let rules = "User-agent: *\nCrawl-delay: 100000\n";
    let web = || TestWeb::builder().sitemap(false).robots(0, rules).start();
    let planned = web();
    let seed = planned.url(0, "/");
    let reason = "its robots.txt has a Crawl-delay of 100000 s";
    let ran = cmd.run(&plan(&seed, &["--sitemaps", "off"]));
    let words = format!("its pages are not known yet: {reason}");
    assert!(ran.stdout.contains(&words), "{}", ran.stdout);
    let crawl = |seed: &str, output: &str| {
        cmd.run(&["--seed", seed, "--output", output, "--sitemaps", "off"])
    };
    // The delay holds after the request of the plan, too.
    let ran = crawl(&seed, "b");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let words = "another crawl was asked to wait until ";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    let web = web();
    let ran = crawl(&web.url(0, "/"), "c");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    for words in [reason, "  next try: from ", "  continue: ", "(from "] {
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    assert!(!ran.stderr.contains("park"), "{}", ran.stderr);
}
