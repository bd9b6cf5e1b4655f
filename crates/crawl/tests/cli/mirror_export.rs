//! `crawl export --to mirror`: mirrors that a browser can open without a server.

use std::fs;
use std::path::{Path, PathBuf};

use crawl_extractor::{Link, ReadingLimits, read_css, read_html};
use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};

use crate::harness::{Cmd, Dir, setup};

const QUICK: [&str; 6] = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];

fn typed(content_type: &str, body: &str) -> HttpAnswer {
    HttpAnswer::of(200)
        .header("content-type", content_type)
        .body(body)
}

/// Crawls a site whose pages use style sheets, scripts, images and redirects.
fn crawled() -> (Dir, Cmd, TestWeb) {
    let (dir, cmd) = setup("mirror");
    let home = "<!doctype html><html><head><base href=/docs/><title>\u{e9}</title>\
        <meta http-equiv=content-security-policy content=\"default-src 'self'\">\
        <link rel=stylesheet href=/style.css?v=2 integrity=sha256-x crossorigin>\
        <script src=../app.js></script></head>\
        <body style=\"background:url('/img/back.svg')\">\
        <a href=tea>tea</a> <a href=TEA>another</a> <a href='/search?q=a%20b#top'>found</a>\
        <a href=/old#brew>moved</a> <a href=/private>private</a> <a href=/unarchived>kept out</a>\
        <img srcset='/img/1x.png 1x, /img/2x.png 2x' src=/img/1x.png alt=x>\
        <form action=/search><input name=q></form></body></html>";
    let web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(
            0,
            "/robots.txt",
            typed("text/plain", "User-agent: *\nDisallow: /private\n"),
        )
        .script(0, "/", typed("text/html; charset=utf-8", home))
        .script(
            0,
            "/docs/tea",
            HttpAnswer::html("<p id=brew>Tea. <a href=../>home</a> <a href=#brew>here</a>"),
        )
        .script(
            0,
            "/docs/TEA",
            HttpAnswer::html("<p>Another tea. <a href=tea>tea</a>"),
        )
        .script(
            0,
            "/search?q=a%20b",
            HttpAnswer::html("<p id=top><a href=/docs/tea/black>black</a>"),
        )
        .script(0, "/docs/tea/black", HttpAnswer::html("<p>Black tea."))
        .script(0, "/old", HttpAnswer::redirect(301, "/docs/tea"))
        .script(
            0,
            "/unarchived",
            HttpAnswer::html("<p>no").header("x-robots-tag", "noarchive"),
        )
        .script(
            0,
            "/style.css?v=2",
            typed(
                "text/css",
                "@import 'more.css'; p{background:url(img/back.svg#a)}",
            ),
        )
        .script(
            0,
            "/more.css",
            typed("text/css", "p{background:url(img/none.png)}"),
        )
        .script(
            0,
            "/app.js",
            typed("text/javascript", "document.title = 'read';"),
        )
        .script(
            0,
            "/img/back.svg",
            typed("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>"),
        )
        .script(0, "/img/1x.png", typed("image/png", "\u{89}PNG 1"))
        .script(0, "/img/2x.png", typed("image/png", "\u{89}PNG 2"))
        .start();
    let seed = web.url(0, "/");
    let mut args = vec!["--seed", &seed, "--output", "c", "--resources", "all"];
    args.extend(QUICK);
    let ran = cmd.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    (dir, cmd, web)
}

fn export(cmd: &Cmd) -> String {
    let ran = cmd.run(&["export", "c", "--to", "mirror", "--out", "site"]);
    assert_eq!((ran.code, &*ran.stdout), (0, ""), "{}", ran.stderr);
    ran.stderr
}

/// Returns all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .collect();
    files.sort();
    files
}

fn links(file: &Path) -> Vec<Link> {
    let body = fs::read(file).unwrap();
    let limits = ReadingLimits::default();
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("html") => {
            let page = read_html(&body, Some("text/html"), &limits);
            assert_eq!(page.base, None, "{}", file.display());
            page.links
        }
        Some("css") => read_css(&body, Some("text/css"), &limits).links,
        _ => Vec::new(),
    }
}

#[test]
fn every_local_reference_of_every_file_leads_to_a_file() {
    let (dir, cmd, web) = crawled();
    let requests = web.log().len();
    let message = export(&cmd);
    assert_eq!(web.log().len(), requests);
    let host = web.authority(0).replace(':', "_");
    assert!(
        message.starts_with("site written: 5 pages, 6 other files, ")
            && message.contains(&format!("; open site/{host}/index.html\n"))
            && message.ends_with(
                "1 page left out: the site forbids copies (noarchive, Content-Usage and the like)\n"
            ),
        "{message}"
    );
    let mut local = 0;
    for file in files(&dir.file("site")) {
        for link in links(&file) {
            let (path, _) = link.href.split_once('#').unwrap_or((&link.href, ""));
            if path.is_empty() {
                continue;
            }
            if link.href.contains("://") {
                assert!(link.href.starts_with(&web.url(0, "/")), "{}", link.href);
                continue;
            }
            let target = file.parent().unwrap().join(path);
            assert!(target.is_file(), "{} in {}", link.href, file.display());
            local += 1;
        }
    }
    assert_eq!(local, 15);
}

#[test]
fn pages_are_readable_without_a_server() {
    let (dir, cmd, web) = crawled();
    export(&cmd);
    let host = web.authority(0).replace(':', "_");
    let origin = web.url(0, "");
    let origin = origin.trim_end_matches('/');
    let home = dir
        .read(&format!("site/{host}/index.html"))
        .replace(origin, "ORIGIN");
    for expected in [
        "<base >",
        "<meta  >",
        "<link rel=stylesheet href=\"style_v=2.css\"  >",
        "<script src=\"app.js\">",
        "url(&quot;img/back.svg&quot;)",
        "<a href=\"docs/tea-2.html\">tea</a> <a href=\"docs/TEA.html\">another</a>",
        "<a href='search_q=a_b.html#top'>",
        "<a href=\"docs/tea-2.html#brew\">moved</a>",
        "<a href=\"ORIGIN/private\">private</a> <a href=\"ORIGIN/unarchived\">",
        "srcset='img/1x.png 1x, img/2x.png 2x' src=\"img/1x.png\"",
        "<form action=\"ORIGIN/search\">",
    ] {
        assert!(home.contains(expected), "{expected}\n{home}");
    }
    // The page declared its charset only in a header field, so its file starts with a byte order
    // mark.
    assert!(home.starts_with('\u{feff}'), "{home}");
}

#[test]
fn a_mirror_replaces_only_an_earlier_mirror() {
    let (dir, cmd, _web) = crawled();
    export(&cmd);
    let first = files(&dir.file("site"));
    export(&cmd);
    assert_eq!(files(&dir.file("site")), first);
    dir.write("letters/dear.txt", "love");
    let ran = cmd.run(&["export", "c", "--to", "mirror", "--out", "letters"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains(
            "letters already exists\nhint: choose a new folder, an empty one, or an earlier mirror"
        ),
        "{}",
        ran.stderr
    );
    dir.write("empty/pages.jsonl", "");
    let ran = cmd.run(&["export", "empty", "--to", "mirror", "--out", "x"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("`--warc on`"), "{}", ran.stderr);
    assert!(!dir.file("x").exists());
}
