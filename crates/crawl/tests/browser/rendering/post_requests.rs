//! POST requests that rendered pages make.

use std::path::PathBuf;

use crawl_archive::WarcReader;
use crawl_testweb::{HttpAnswer, TestWeb};

use super::{json, render, rows, run, script};

/// A script that posts to its own origin and to others, and shows the answers.
const APP: &str = r#"
const post = (url, body) => fetch(url, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
}).then((answer) => answer.json()).then((found) => found.text, () => "refused");
Promise.all([
  post("/search", { query: "tea" }),
  post("/search", { query: "tea" }),
  post("/private/search", {}),
  post("http://OTHER/search", {}),
  fetch("/upload", { method: "PUT", body: "tea" }).then(() => "sent", () => "refused"),
]).then((texts) => { document.getElementById("root").textContent = texts.join(", "); });
navigator.sendBeacon("/beacon", "tea");
"#;

const SHELL: &str = "<title>Tea</title><div id=root></div><script src=/app.js></script>\
    <form method=post action=/form><button>x</button></form><script>document.forms[0].submit()</script>";

/// Crawls the page. Returns the web, the folder of the crawl, and the exported page as Markdown.
fn crawl(args: &[&str]) -> (TestWeb, tempfile::TempDir, String) {
    let web = TestWeb::scripted(2)
        .robots(0, "User-agent: *\nDisallow: /private/\n")
        .script(0, "/", HttpAnswer::html(SHELL))
        .script(0, "/search", json("{\"text\":\"found\"}"))
        .start();
    let other = web.url(1, "").replace("http://", "");
    let app = APP.replace("OTHER", other.trim_end_matches('/'));
    web.script(0, "/app.js", script(&app));
    let usual = ["--render", "on", "--delay", "0s", "--index", "on"];
    let folder = render(&web, &[&usual, args].concat());
    let pages = rows(&folder, "pages.jsonl");
    assert_eq!(
        pages[0]["render"]["error"],
        serde_json::Value::Null,
        "{pages:?}"
    );
    run(
        folder.path(),
        &["export", "out", "--to", "markdown", "--out", "md"],
    );
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder.path().join("md")).unwrap() {
        let host = entry.unwrap().path();
        if host.is_dir() {
            files.extend(
                std::fs::read_dir(host)
                    .unwrap()
                    .map(|file| file.unwrap().path()),
            );
        }
    }
    assert_eq!(files.len(), 1, "{files:?}");
    let text = std::fs::read_to_string(&files[0]).unwrap();
    (web, folder, text)
}

#[test]
fn posts_of_a_page_go_to_its_own_origin_and_are_archived() {
    let (web, folder, text) = crawl(&["--render-post"]);
    assert!(
        text.contains("found, found, refused, refused, refused"),
        "{text}"
    );
    let log = web.log();
    let others: Vec<_> = log.iter().filter(|entry| entry.method != "GET").collect();
    assert_eq!(others.len(), 2, "{others:?}");
    for entry in others {
        assert_eq!((entry.host, entry.path.as_str()), (0, "/search"));
        assert_eq!(entry.header("content-type"), Some("application/json"));
        assert_eq!(entry.header("content-length"), Some("15"));
    }
    let page = web.url(0, "/");
    let requests = rows(&folder, "requests.jsonl");
    let posts: Vec<_> = requests
        .iter()
        .filter(|row| row["method"] == "POST")
        .collect();
    assert_eq!(posts.len(), 2, "{requests:?}");
    for row in posts {
        assert_eq!(row["url"], web.url(0, "/search"));
        assert_eq!(row["purpose"], "render");
        assert_eq!(row["via"], page.as_str());
    }
    let refused = rows(&folder, "excluded.jsonl");
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0]["url"], web.url(0, "/private/search"));
    let mut bodies = 0;
    for entry in std::fs::read_dir(folder.path().join("out/archive")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "gz") {
            for record in WarcReader::open(&path).unwrap() {
                let record = record.unwrap();
                if record.kind() == "request"
                    && record.block.starts_with(b"POST /search HTTP/1.1\r\n")
                {
                    assert!(record.block.ends_with(b"\r\n\r\n{\"query\":\"tea\"}"));
                    bodies += 1;
                }
            }
        }
    }
    assert_eq!(bodies, 2);
    run(folder.path(), &["verify", "out"]);
    let audit = String::from_utf8(run(folder.path(), &["audit", "out"]).stdout).unwrap();
    assert!(audit.contains("breaches   none"), "{audit}");
}

#[test]
fn posts_of_a_page_are_refused_by_default() {
    let (web, _, text) = crawl(&[]);
    assert!(
        text.contains("refused, refused, refused, refused, refused"),
        "{text}"
    );
    assert!(web.log().iter().all(|entry| entry.method == "GET"));
}
