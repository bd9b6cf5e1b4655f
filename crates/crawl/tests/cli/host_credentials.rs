//! Credentials, cookies and header fields for single hosts: who receives them, and that no output
//! contains them.

use std::fs;
use std::path::Path;

use crawl_archive::WarcReader;
use crawl_testweb::{HttpAnswer, LogEntry, TestWeb};

use crate::harness::{Dir, setup};

const PASSWORD: &str = "s3cret-word";
/// The credentials as sent in a request.
const BASIC: &str = "Basic bWU6czNjcmV0LXdvcmQ=";
const KEY: &str = "k3y-of-the-file";
const COOKIE: &str = "c00kie-value";

fn config(host: &str, more: &str) -> String {
    format!(
        "[site.\"{host}\"]\nbasic-auth = \"env:LOGIN\"\n{more}\n\
         [site.\"{host}\".headers]\nX-Key = \"{KEY}\"\n\
         [site.\"{host}\".cookies]\nsession = \"env:SESSION\"\n"
    )
}

/// Returns the contents of all files in a directory, with archives unpacked.
fn all_text(dir: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&all_text(&path));
        } else if path.extension().is_some_and(|end| end == "gz") {
            for record in WarcReader::open(&path).unwrap() {
                text.push_str(&String::from_utf8_lossy(&record.unwrap().block));
            }
        } else {
            text.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap()));
        }
    }
    text
}

fn secret_fields(entry: &LogEntry) -> [Option<&str>; 3] {
    ["authorization", "x-key", "cookie"].map(|name| entry.header(name))
}

fn run(dir: &Dir, cmd: &crate::harness::Cmd, args: &[&str]) -> String {
    let quick = [
        "--delay",
        "0s",
        "--delay-factor",
        "0",
        "--progress",
        "off",
        "--add-seed",
    ];
    let args: Vec<&str> = args.iter().copied().chain(quick).collect();
    let ran = cmd.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let shown = format!("{}{}{}", ran.stdout, ran.stderr, all_text(dir.path()));
    // Leave out the operator's own configuration file, which may contain secrets.
    shown.replace(&dir.read("c.toml"), "")
}

#[test]
fn secrets_go_to_their_host_and_to_no_output() {
    let (dir, mut cmd) = setup("access");
    cmd.env("LOGIN", &format!("me:{PASSWORD}"));
    cmd.env("SESSION", COOKIE);
    let web = TestWeb::builder().hosts(2).pages(3).sitemap(false).start();
    web.script(
        0,
        "/",
        HttpAnswer::html("<a href=/away>x</a><a href=/p>y</a>"),
    );
    web.script(0, "/away", HttpAnswer::redirect(302, &web.url(1, "/")));
    let host = web.address(0).ip().to_string();
    dir.write("c.toml", &config(&host, ""));
    let seed = web.url(0, "/");
    let args = [
        "--config",
        "c.toml",
        "--seed",
        &seed,
        "--output",
        "c",
        "--log",
        "log",
        "-vv",
        "--scope",
        "any",
        "--allow-private",
    ];
    let shown = run(&dir, &cmd, &args);
    for secret in [PASSWORD, BASIC, KEY, COOKIE] {
        assert!(!shown.contains(secret), "{secret} is written");
    }
    assert!(shown.contains("Authorization: [redacted]"));
    let all = [Some(BASIC), Some(KEY), Some("session=c00kie-value")];
    for entry in web.take_log() {
        let expect = if entry.host == 0 { all } else { [None; 3] };
        assert_eq!(secret_fields(&entry), expect, "{}", entry.path);
    }

    // The directory remembers references to the environment (`env:NAME`), but no secret that was
    // given literally.
    let stored = dir.read("c/crawl.toml");
    assert!(stored.contains("basic-auth = \"env:LOGIN\"") && !stored.contains("X-Key"));
    web.script(0, "/", HttpAnswer::html("<a href=/more>x</a>"));
    let more = web.url(0, "/more");
    let kept_seed = format!(
        "seed = [\"{more}\"]\n{}",
        config(&host, "").replace(KEY, "env:SESSION")
    );
    dir.write("c.toml", &kept_seed);
    run(
        &dir,
        &cmd,
        &[
            "--config",
            "c.toml",
            "--output",
            "c",
            "--scope",
            "any",
            "--allow-private",
        ],
    );
    let log = web.log();
    let entry = log.iter().find(|entry| entry.path == "/more").unwrap();
    assert_eq!(secret_fields(entry)[1], Some(COOKIE));
}

#[test]
fn unsendable_values_are_refused_by_name() {
    let (dir, mut cmd) = setup("refused");
    cmd.env("EMPTY", "no colon");
    for (keys, message) in [
        (
            "basic-auth = \"env:NOWHERE\"",
            "unusable `basic-auth` in [site.\"a.example\"]: the environment variable `NOWHERE` isn't set, or isn't UTF-8",
        ),
        (
            "basic-auth = \"env:EMPTY\"",
            "unusable `basic-auth` in [site.\"a.example\"]: basic-auth isn't USER:PASSWORD",
        ),
        (
            "headers = { User-Agent = \"Mozilla\" }",
            "unusable `headers` in [site.\"a.example\"]: the crawler sets `User-Agent` itself",
        ),
        (
            "cookies = { a = \"b;c\" }",
            "unusable `cookies` in [site.\"a.example\"]: the value of `a` contains characters that aren't allowed there",
        ),
        ("basic_outh = \"\"", "unknown key `basic_outh`"),
    ] {
        dir.write("c.toml", &format!("[site.\"a.example\"]\n{keys}\n"));
        let ran = cmd.run(&["--config", "c.toml", "--seed", "http://127.0.0.1:9/"]);
        assert_eq!(ran.code, 2, "{keys}");
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
}

/// The exports that contain text of pages, each with the folder or file that it writes.
const EXPORTS: [(&str, &str); 6] = [
    ("markdown", "pages"),
    ("llms-txt", "llms.txt"),
    ("sitemap", "sitemaps"),
    ("static", "search"),
    ("meilisearch", "documents.json"),
    ("csv", "tables"),
];

/// A page that repeats a secret is archived as received. No command that reads the archive prints
/// the secret, and an index built without knowing the secret doesn't contain it.
#[test]
fn no_command_prints_an_echoed_secret() {
    let (dir, mut cmd) = setup("echoed");
    cmd.env("LOGIN", &format!("me:{PASSWORD}"));
    cmd.env("SESSION", COOKIE);
    let web = TestWeb::builder().hosts(1).pages(1).sitemap(false).start();
    let page = |title: &str, words: &str| {
        let filler = "This is a page of the shop with some words of its own, and no two are alike.";
        HttpAnswer::html(&format!(
            "<title>{title}</title><main><h1>{title}</h1><p>{filler} {words}</main>"
        ))
    };
    let entities = KEY.replace('-', "&#45;");
    for (path, answer) in [
        (
            "/",
            page(
                "Shop",
                "<a href=/raw>a</a> <a href=/entity>b</a> <a href=/alt>c</a> <a href=/text>d</a>",
            ),
        ),
        (
            "/raw",
            page("Raw", &format!("Your key is {KEY}, again {COOKIE}.")),
        ),
        (
            "/entity",
            page("Entity", &format!("Your key is {entities}.")),
        ),
        (
            "/alt",
            page(
                "Alt",
                &format!("<img alt='{KEY}' src=/i.png> <a href='/gone#{KEY}'>{KEY}</a>"),
            ),
        ),
        (
            "/text",
            HttpAnswer::text(&format!("A plain text with {PASSWORD} in it.\n")),
        ),
    ] {
        web.script(0, path, answer);
    }
    let host = web.address(0).ip().to_string();
    dir.write("c.toml", &config(&host, ""));
    let seed = web.url(0, "/");
    let crawl = ["--config", "c.toml", "--seed", &seed, "--output", "c"];
    run(&dir, &cmd, &[&crawl[..], &["--index", "on"]].concat());
    let flagged = dir.rows("c/pages.jsonl");
    let flagged = flagged.iter().filter(|row| row["echoes_secret"] == true);
    assert_eq!(flagged.count(), 4);

    for round in ["as crawled", "indexed anew", "indexed from nothing"] {
        let mut shown = String::new();
        for (to, out) in EXPORTS {
            let ran = cmd.run(&["export", "c", "--to", to, "--out", out]);
            assert_eq!(ran.code, 0, "{round} {to}: {}", ran.stderr);
            let path = dir.file(out);
            shown += &match path.is_dir() {
                true => all_text(&path),
                false => fs::read_to_string(&path).unwrap(),
            };
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
        assert!(shown.contains("some words of its own"), "{round}");
        for args in [
            &["search", "c", "key", "--json"][..],
            &["report", "c", "--broken"],
            &["report", "c", "--faults"],
            &["report", "c", "--site"],
            &["explain", "c", &web.url(0, "/raw")],
        ] {
            let ran = cmd.run(args);
            shown += &(ran.stdout + &ran.stderr);
        }
        for secret in [PASSWORD, KEY, COOKIE] {
            assert!(!shown.contains(secret), "{round}: {secret}");
        }
        if round == "indexed anew" {
            fs::remove_dir_all(dir.file("c/index")).unwrap();
        }
        let ran = cmd.run(&["index", "c"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
}
