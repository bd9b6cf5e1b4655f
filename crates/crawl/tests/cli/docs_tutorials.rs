//! Runs the commands in docs/getting-started.md, docs/small-site.md and docs/extract.md on the
//! sites that these pages describe. The commands must print what the pages show.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crawl_testweb::{HttpAnswer, TestWeb};
use expect_test::expect_file;

use crate::harness::{Cmd, Ran, setup};

const PAGE: &str = include_str!("../../../../docs/getting-started.md");
const SMALL_SITE: &str = include_str!("../../../../docs/small-site.md");
const EXTRACT: &str = include_str!("../../../../docs/extract.md");

/// The site's address, as shown in the documentation page.
const ADDRESS: &str = "127.0.0.1:8000";

/// Serves the site of the documentation page, at another address than [`ADDRESS`].
fn site() -> TestWeb {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tea");
    let file = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let web = TestWeb::builder().hosts(1).sitemap(false);
    let web = web.robots(0, &file("robots.txt")).start();
    web.script(0, "/", HttpAnswer::html(&file("index.html")));
    for name in ["docs/first.html", "docs/second.html", "docs/third.html"] {
        web.script(0, &format!("/{name}"), HttpAnswer::html(&file(name)));
    }
    web
}

/// Runs a command of the documentation page in a shell, as typed there, but without the default gap
/// of one second between requests.
fn run(cmd: &Cmd, typed: &str, address: &str) -> Ran {
    let typed = match typed.strip_prefix("crawl http://") {
        Some(rest) => format!("crawl --progress off --delay 0s http://{rest}"),
        None => typed.to_owned(),
    };
    let program = Path::new(env!("CARGO_BIN_EXE_crawl")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", program.display());
    let crawl = cmd.command(&[]);
    let set = crawl
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &typed.replace(ADDRESS, address)])
        .current_dir(crawl.get_current_dir().unwrap())
        .env_clear()
        .envs(set)
        .env("PATH", path);
    Ran::of_command(&mut shell)
}

/// Masks the parts of a text that vary between runs and servers.
fn mask(text: &str) -> String {
    let mut mask = String::new();
    for line in text.lines() {
        let line = match line.trim_start().split(' ').next() {
            Some("took:") => "took",
            // Compare only the text before the comma: the server used in the documentation page
            // sends a different body for a missing page.
            Some("fetched:") => line.split(',').next().unwrap_or_default(),
            _ => line,
        };
        let words = line.split(' ').map(|word| match word.split_once('=') {
            Some((name @ ("start" | "end" | "for_ms" | "bytes" | "gap_asked" | "why"), _)) => name,
            _ if word.starts_with("20") && word.ends_with('Z') => "TIME",
            _ => word,
        });
        let masked = words.collect::<Vec<_>>().join(" ");
        // Skip a repeated line: if a commit ends between a URL's lease and its request, the URL is
        // leased and checked again.
        let is_lease =
            masked.contains("TRACE leased") || masked.contains("TRACE robots.txt allows");
        if is_lease && mask.lines().rev().take(2).any(|earlier| earlier == masked) {
            continue;
        }
        mask.push_str(&masked);
        mask.push('\n');
    }
    mask
}

/// Replaces the output shown in a documentation page with what its commands print now, and counts
/// the commands run. `run` returns the output, or `None` for a command that is not run.
fn played(text: &str, address: &str, run: &dyn Fn(&str) -> Option<Ran>) -> (String, usize) {
    let mut page = String::new();
    let mut lines = text.lines().peekable();
    let (mut in_block, mut commands) = (false, 0);
    while let Some(line) = lines.next() {
        page.push_str(line);
        page.push('\n');
        if line.starts_with("```") {
            in_block = line == "```console";
        }
        let Some(ran) = Some(line).filter(|_| in_block).and_then(run) else {
            continue;
        };
        commands += 1;
        let is_output = |line: &&str| !line.starts_with("$ ") && !line.starts_with("```");
        let mut shown = String::new();
        while let Some(line) = lines.next_if(is_output) {
            shown.push_str(line);
            shown.push('\n');
        }
        let printed = format!("{}{}", ran.stdout, ran.stderr);
        let printed = printed.replace(address, ADDRESS);
        page.push_str(match mask(&shown) == mask(&printed) {
            true => &shown,
            false => &printed,
        });
    }
    (page, commands)
}

#[test]
fn getting_started_shows_the_output_of_its_commands() {
    let (_dir, cmd) = setup("tea");
    let web = site();
    let address = web.address(0).to_string();
    let is_run = |typed: &str| typed.contains(ADDRESS) || typed.contains("tea-");
    let (page, commands) = played(PAGE, &address, &|line| {
        let typed = line.strip_prefix("$ crawl ");
        typed
            .is_some_and(is_run)
            .then(|| run(&cmd, &line[2..], &address))
    });
    assert!(commands >= 7, "{commands}");
    expect_file!["../../../../docs/getting-started.md"].assert_eq(&page);
}

/// Copies the files of examples/small-site, with changes that its owner would make.
fn copy_small_site(cmd: &Cmd, address: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/small-site");
    let here = cmd.command(&[]).get_current_dir().unwrap().to_owned();
    let config = fs::read_to_string(folder.join("site.toml")).unwrap();
    let config = config.replace(ADDRESS, address);
    let config = config.replace("delay = \"1s\"", "delay = \"0s\"");
    // Make every page due in every round, however long earlier rounds took.
    let config = config.replace("revisit-most = \"7d\"", "revisit-most = \"0s\"");
    fs::write(here.join("site.toml"), config).unwrap();
    fs::copy(folder.join("nightly.sh"), here.join("nightly.sh")).unwrap();
    here
}

#[test]
fn the_small_site_shows_the_output_of_its_commands() {
    let (_dir, cmd) = setup("small");
    let web = site();
    let address = web.address(0).to_string();
    let here = copy_small_site(&cmd, &address);
    let (page, commands) = played(SMALL_SITE, &address, &|line| {
        let typed = line.strip_prefix("$ ");
        let typed = typed.filter(|typed| typed.starts_with("crawl ") || typed.starts_with("sh "));
        typed.map(|typed| run(&cmd, typed, &address))
    });
    assert!(commands >= 8, "{commands}");
    assert!(here.join("site.html").is_file());
    // The next night's round reports the broken links, and nothing else.
    web.script(0, "/docs/third.html", HttpAnswer::of(410));
    let night = run(&cmd, "sh ./nightly.sh", &address).ok();
    let report = night.replace(&address, ADDRESS);
    assert_eq!(
        report,
        "2 new faults: broken 2 (1 known); 1 link not checked\n\nhttp://127.0.0.1:8000/\n  broken    \
         \u{20}    http://127.0.0.1:8000/docs/third.html  gone (410)  \"Wait\"\n\n\
         http://127.0.0.1:8000/docs/second.html\n  broken         \
         http://127.0.0.1:8000/docs/third.html  gone (410)  \"The third step\"\n\nlinks not \
         checked:\n\nhttp://127.0.0.1:8000/\n  not checked    \
         http://127.0.0.1:8000/private/notes.html  robots.txt  \"Notes of the cook\"\n"
    );
    expect_file!["../../../../docs/small-site.md"].assert_eq(&page);
}

/// Copies examples/teapots to where the commands look for it, writes the rules that the page shows
/// to shop.toml, and serves the shop.
fn teapots(cmd: &Cmd) -> TestWeb {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/teapots");
    let copy = cmd
        .command(&[])
        .get_current_dir()
        .unwrap()
        .join("examples/teapots");
    fs::create_dir_all(copy.join("kanne")).unwrap();
    let robots = fs::read_to_string(folder.join("robots.txt")).unwrap();
    let web = TestWeb::builder().hosts(1).sitemap(false);
    let web = web.robots(0, &robots).start();
    let items = [41, 42, 43].map(|number| format!("kanne/{number}.html"));
    for name in ["index.html", "seite-2.html"]
        .into_iter()
        .chain(items.iter().map(|name| &**name))
    {
        let html = fs::read_to_string(folder.join(name)).unwrap();
        fs::write(copy.join(name), &html).unwrap();
        let path = if name == "index.html" { "" } else { name };
        web.script(0, &format!("/{path}"), HttpAnswer::html(&html));
    }
    let rules = EXTRACT
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let rules = rules.replace(ADDRESS, &web.address(0).to_string());
    let here = copy.join("../../shop.toml");
    fs::write(here, rules + "[politeness]\ndelay = \"0s\"\n").unwrap();
    web
}

#[test]
fn the_extraction_tutorial_shows_the_output_of_its_commands() {
    let (_dir, cmd) = setup("teapots");
    let web = teapots(&cmd);
    let address = web.address(0).to_string();
    let (page, commands) = played(EXTRACT, &address, &|line| {
        let typed = line.strip_prefix("$ ");
        let typed = typed.filter(|typed| !typed.starts_with("python3 "));
        typed.map(|typed| run(&cmd, typed, &address))
    });
    assert!(commands >= 9, "{commands}");
    expect_file!["../../../../docs/extract.md"].assert_eq(&page.replace('\r', ""));
}
