//! Seeds: URLs and hosts, given as plain arguments or with `--seed`.

use std::collections::BTreeSet;

use crawl_testweb::{HostsInScope, HttpAnswer, TestWeb};
use expect_test::expect;

use crate::harness::{Dir, setup};

const QUICK: [&str; 6] = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];

fn fetched(dir: &Dir) -> BTreeSet<String> {
    let rows = dir.rows("c/pages.jsonl");
    let url = |row: &serde_json::Value| row["url"].as_str().unwrap().to_owned();
    rows.iter().map(url).collect()
}

#[test]
fn a_url_alone_is_crawled() {
    let (dir, cmd) = setup("url");
    let web = TestWeb::builder().seed(7).hosts(1).pages(10).start();
    let seed = web.url(0, "/");
    let ran = cmd.run(&[&[&seed, "--output", "c"], &QUICK[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let truth = web.truth(HostsInScope::Host).fetched_with_sitemaps();
    assert!(fetched(&dir).is_superset(&truth), "{}", ran.stderr);
    // Without any flags, the directory is named after the host, and requests are a second apart.
    let web = TestWeb::builder().pages(1).sitemap(false);
    let web = web.script(0, "/", HttpAnswer::html("alone")).start();
    let authority = web.authority(0).replace(':', "-");
    let ran = cmd.run(&[&web.url(0, "/")]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        dir.file(&format!("crawl-{authority}/pages.jsonl"))
            .is_file()
    );
}

#[test]
fn hosts_and_urls_are_seeds_in_the_order_in_which_they_are_typed() {
    let (dir, cmd) = setup("several");
    let page = || HttpAnswer::html("alone");
    let web = TestWeb::builder().hosts(3).sitemap(false);
    let web = web
        .script(0, "/", page())
        .script(1, "/", page())
        .script(2, "/x", page())
        .start();
    let first = web.authority(0);
    let second = web.url(1, "/");
    let third = format!("{}/x", web.authority(2));
    let words = [
        &QUICK[..],
        &[first, "--seed", &second, "--output", "c", &third],
    ];
    let ran = cmd.run(&words.concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let seeds = [web.url(0, "/"), second, web.url(2, "/x")];
    assert!(fetched(&dir).is_superset(&BTreeSet::from(seeds.clone())));
    let stored: toml::Table = dir.read("c/crawl.toml").parse().unwrap();
    let stored: Vec<&str> = stored["seed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|seed| seed.as_str().unwrap())
        .collect();
    assert_eq!(stored, seeds);
}

/// Commands that take a page accept `host:port/path`, just as a crawl does.
#[test]
fn a_bare_host_and_path_is_a_url_for_every_command() {
    let (dir, cmd) = setup("bare");
    let web = TestWeb::builder().pages(1).sitemap(false);
    let web = web
        .script(
            0,
            "/robots.txt",
            HttpAnswer::text("User-agent: *\nDisallow: /no\n"),
        )
        .script(0, "/", HttpAnswer::html("<a href=/no>no</a>"))
        .start();
    let bare = web.authority(0);
    let ran = cmd.run(&[&[bare, "--output", "c"], &QUICK[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let explained = cmd.run(&["explain", "c", &format!("{bare}/no")]).ok();
    assert!(explained.contains("Disallow: /no"), "{explained}");
    for (path, code) in [("/no", 1), ("/yes", 0)] {
        let ran = cmd.run(&["robots", &format!("{bare}{path}")]);
        assert_eq!(ran.code, code, "{}", ran.stderr);
    }
    dir.write("page.html", "<a href=next>x</a>");
    let read = cmd
        .run(&["inspect", "page.html", "--base", &format!("{bare}/a/")])
        .ok();
    assert!(read.contains(&web.url(0, "/a/next")), "{read}");
}

#[test]
fn a_fallback_to_http_is_reported() {
    let (dir, cmd) = setup("stand-in");
    // This server accepts connections but doesn't speak TLS.
    let web = TestWeb::builder()
        .domain("test")
        .hosts(1)
        .sitemap(false)
        .script(0, "/", HttpAnswer::html("alone"))
        .start();
    let (host, resolve) = (web.authority(0), web.resolve().remove(0));
    let words = [
        host,
        "--resolve",
        &resolve,
        "--output",
        "c",
        "--connect-timeout",
        "1s",
    ];
    let words = [&words[..], &QUICK].concat();
    let ran = cmd.run(&words);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let message = format!("): crawling http://{host}/ instead\n");
    assert!(
        ran.stderr
            .starts_with(&format!("can't connect to https://{host}/ (")),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains(&message), "{}", ran.stderr);
    let requests = dir.rows("c/requests.jsonl");
    assert_eq!(requests.len(), web.log().len(), "each request is logged");
    assert!(
        dir.read("c/crawl.toml")
            .contains(&format!("seed = [\"http://{host}/\"]"))
    );
    // The same command resumes with the chosen scheme, and tests no connections.
    let connections = web.connections();
    let again = cmd.run(&words);
    assert!(again.stderr.starts_with("finished: "), "{}", again.stderr);
    assert_eq!(web.connections(), connections);
}

#[test]
fn without_any_connection_https_is_crawled() {
    let (dir, cmd) = setup("neither");
    // A directory that existed before the run is not removed, although nothing answers.
    std::fs::create_dir(dir.file("c")).unwrap();
    let words = [
        "none.test:9",
        "--resolve",
        "none.test:9:127.0.0.9",
        "--output",
        "c",
        "--wait-unreachable",
        "0s",
    ];
    let ran = cmd.run(&[&words[..], &QUICK].concat());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(!ran.stderr.contains("instead"), "{}", ran.stderr);
    let seed = "seed = [\"https://none.test:9/\"]";
    assert!(dir.read("c/crawl.toml").contains(seed));
}

#[test]
fn files_and_crawls_are_not_taken_for_hosts() {
    let (dir, cmd) = setup("files");
    dir.write(
        "crawl-a.example/crawl.toml",
        "seed = [\"https://a.example/\"]\n",
    );
    dir.write("b.example/crawl.toml", "seed = [\"https://b.example/\"]\n");
    dir.write("site.toml", "seed = [\"https://a.example/\"]\n");
    dir.write("mine/crawl.toml", "seed = [\"https://a.example/\"]\n");
    expect![[r#"
        2
        error: `crawl-a.example` is the directory of a crawl, not a host
        hint: continue it with `crawl --output crawl-a.example`; to crawl a host with that name, give `https://crawl-a.example/`"#]]
    .assert_eq(&cmd.run(&["crawl-a.example"]).refusal(&dir));
    expect![[r#"
        2
        error: `site.toml` is a file, not a host
        hint: read settings from it with `crawl --config site.toml`; to crawl a host with that name, give `https://site.toml/`"#]]
    .assert_eq(&cmd.run(&["site.toml"]).refusal(&dir));
    let ran = cmd.run(&["mine"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr
            .contains("hint: `crawl --output mine` continues the crawl in it"),
        "{}",
        ran.stderr
    );
    // A folder may have the same name as the host of the seed.
    let ran = cmd.run(&["b.example"]);
    assert!(
        ran.stderr.starts_with("error: no contact"),
        "{}",
        ran.stderr
    );
}

#[test]
fn seeds_are_taken_from_lists_stdin_and_sitemaps() {
    let (dir, cmd) = setup("lists");
    let mut web = TestWeb::builder().hosts(1).sitemap(false);
    for path in ["/typed", "/listed", "/piped", "/mapped"] {
        web = web.script(0, path, HttpAnswer::html("alone"));
    }
    let web = web.start();
    let url = |path: &str| web.url(0, path);
    dir.write(
        "list.txt",
        &format!("# mine\n{}\n\n{}\n", url("/listed"), url("/typed")),
    );
    let map = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>";
    let map = format!("{map}<url><loc>{}</loc></url></urlset>", url("/mapped"));
    dir.write("map.xml", &map);
    let typed = url("/typed");
    let files = [
        "--seed-file",
        "list.txt",
        "--seed-file",
        "-",
        "--seed-file",
        "map.xml",
    ];
    let words = [&QUICK[..], &[&typed, "--output", "c"], &files].concat();
    let ran = cmd.run_with_stdin(&words, &url("/piped"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let seeds = ["/typed", "/listed", "/piped", "/mapped"].map(url);
    assert!(fetched(&dir).is_superset(&BTreeSet::from(seeds.clone())));
    // The directory remembers seeds from a list too: a run without seeds resumes with them.
    let stored: toml::Table = dir.read("c/crawl.toml").parse().unwrap();
    let stored = stored["seed"].as_array().unwrap().iter();
    let stored: BTreeSet<_> = stored.map(|seed| seed.as_str().unwrap()).collect();
    assert_eq!(stored, seeds.iter().map(String::as_str).collect());
}

#[test]
fn a_file_of_settings_names_lists_of_seeds() {
    let (dir, cmd) = setup("key");
    dir.write(
        "conf/study.toml",
        "seed = [\"a.example\"]\nseed-file = [\"more.txt\"]\n",
    );
    // The path of a seed file is relative to the working directory, not to the settings file.
    dir.write("more.txt", "b.example\n");
    let of_file = ["config", "--effective", "--config", "conf/study.toml"];
    let printed = cmd.run(&of_file).ok();
    assert!(
        printed.contains("seed = [\"a.example\", \"b.example\"]"),
        "{printed}"
    );
    assert!(!printed.contains("seed-file"), "{printed}");
    // Seeds given by a flag replace those of the settings and of the seed file.
    let printed = cmd
        .run(&[&of_file[..], &["--seed", "c.example"]].concat())
        .ok();
    assert!(printed.contains("seed = [\"c.example\"]"), "{printed}");
    dir.write("more.txt", "example\n");
    let refused = cmd
        .run(&["config", "--check", "conf/study.toml"])
        .refusal(&dir);
    assert!(
        refused.contains("more.txt:1:1: unusable seed `example`"),
        "{refused}"
    );
    dir.write("c/crawl.toml", "seed-file = [\"more.txt\"]\n");
    let refused = cmd.run(&["--output", "c"]).refusal(&dir);
    assert!(
        refused.contains("`seed-file` isn't allowed in a directory's crawl.toml"),
        "{refused}"
    );
}

#[test]
fn all_errors_in_seed_lists_are_reported_at_once() {
    let (dir, cmd) = setup("lists");
    dir.write("a.txt", "http://a.example/\nexample\n");
    dir.write("b.txt", "# none\n");
    let files = ["a.txt", "b.txt", "c.txt"].map(|file| ["--seed-file", file]);
    let ran = cmd.run(&files.concat());
    expect![[r#"
        2
        error: a.txt:2:1: unusable seed `example`: not a URL: relative URL without a base
        hint: write one URL, host or JSON object with `url` per line, such as `https://example.org/` or `example.org`; lines starting with `#` are skipped
        error: b.txt: the list has no seeds
        hint: write one URL, host or JSON object with `url` per line, such as `https://example.org/` or `example.org`; lines starting with `#` are skipped
        error: can't read c.txt: No such file or directory (os error 2)
        hint: give an existing file; relative paths start at the current folder
        error: no contact given, which is required to crawl a.example
        hint: add --contact MAIL-OR-URL, or set CRAWL_CONTACT, so that owners of visited sites can reach you"#]].assert_eq(&ran.refusal(&dir));
    // Contradicting lines are reported along with a broken one.
    dir.write(
        "a.txt",
        "{\"url\":\"http://127.0.0.1/\",\"depth\":1}\n{\"url\":\"http://127.0.0.1/\",\"depth\":2}\nexample\n",
    );
    let ran = cmd.run(&["--seed-file", "a.txt"]);
    expect![[r#"
        2
        error: a.txt:3:1: unusable seed `example`: not a URL: relative URL without a base
        hint: write one URL, host or JSON object with `url` per line, such as `https://example.org/` or `example.org`; lines starting with `#` are skipped
        error: a.txt:2:1: the seed `http://127.0.0.1/` of a.txt:1:1 has a different scope, depth or label
        hint: set the same values for both, or give one a smaller `scope`: `prefix` for its folder, `page` for only the page"#]].assert_eq(&ran.refusal(&dir));
}
