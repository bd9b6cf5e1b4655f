//! Replay tools, and the pages that they show of an archive after a second round.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crawl_archive::DigestAlgorithm;
use crawl_testweb::{Script, TestWeb};
use crawl_weburl::canonicalize;
use serde_json::{Value, json};

use crate::recrawl::{again, eager, gzip_with, row};
use crate::support::Crawl;

/// A crawl of two rounds.
struct TwoRounds {
    crawl: Crawl,
    captures: Vec<Capture>,
}

/// A page as it was archived, or its revisit.
struct Capture {
    round: u32,
    /// To the second, as replay tools name it.
    timestamp: String,
    url: String,
    body: Vec<u8>,
    is_html: bool,
}

/// Crawls more than fifty pages twice; nothing changes. The server is gone afterwards, so whatever
/// is shown comes from the archive.
fn two_rounds() -> TwoRounds {
    let html = "<title>packed</title><p>the same content in other bytes each time";
    let web = TestWeb::builder()
        .seed(11)
        .pages(60)
        .gzip(false)
        .script(
            0,
            "/packed",
            Script::from(gzip_with(html, 1)).then(gzip_with(html, 22)),
        )
        .start();
    let mut crawl = eager(&web);
    let packed = web.url(0, "/packed");
    crawl
        .config
        .seeds
        .push(canonicalize(None, &packed).unwrap());
    crawl.run().unwrap();
    again(&mut crawl);

    let mut captures = Vec::new();
    let mut unmodified = 0;
    for before in crawl.pages() {
        if before.round == 1 && before.status == Some(200) {
            let after = row(&crawl, 2, &before.url);
            assert_eq!(after.change.as_deref(), Some("same"), "{}", before.url);
            unmodified += u64::from(after.status == Some(304));
            let body = match before.url == packed {
                true => html.as_bytes().to_vec(),
                false => body_of(&web, &before.url),
            };
            let is_html = before
                .content_type
                .as_deref()
                .is_some_and(|kind| kind.starts_with("text/html"));
            for row in [before, after] {
                let moment = row.fetched_at.rfc3339_millis();
                let mut timestamp: String = moment.chars().filter(char::is_ascii_digit).collect();
                timestamp.truncate(14);
                captures.push(Capture {
                    round: row.round,
                    timestamp,
                    url: row.url,
                    body: body.clone(),
                    is_html,
                });
            }
        }
    }
    assert!(unmodified >= 50 && captures.iter().any(|capture| capture.url == packed));
    TwoRounds { crawl, captures }
}

/// `CRAWL_PYWB_PYTHON` names the Python of an environment with pywb 2.10 in it, which is one of
/// its own: pywb needs an old client of redis.
#[test]
#[ignore = "needs pywb: cargo xtask test sets it up"]
fn pywb_shows_every_page_of_a_second_round() {
    let TwoRounds { crawl, captures } = two_rounds();
    let asked: Vec<String> = captures
        .iter()
        .map(|capture| format!("{} {}", capture.timestamp, capture.url))
        .collect();
    let python = named("CRAWL_PYWB_PYTHON");
    let archive = crawl.output("archive");
    let args = [archive.join("index.cdxj"), archive.join("")];
    let shown = said(&python, "replay.py", &args, &archive, &asked.join("\n"));
    assert_eq!(shown.lines().count(), asked.len());
    for ((capture, asked), shown) in captures.iter().zip(asked).zip(shown.lines()) {
        let digest = DigestAlgorithm::Sha1.of(&[&capture.body]);
        assert_eq!(shown, format!("200 {digest}"), "{asked}");
    }
}

/// `CRAWL_REPLAYWEB` names the folder of ReplayWeb.page, which brings wabac.js with it; the others
/// are those of the tests in a browser.
#[test]
#[ignore = "needs Chromium and ReplayWeb.page: cargo xtask test sets them up"]
fn replayweb_page_shows_every_page_of_a_second_round() {
    let TwoRounds { crawl, captures } = two_rounds();
    let archive = crawl.output("archive");
    let mut files: Vec<PathBuf> = fs::read_dir(&archive)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "gz"))
        .collect();
    files.sort();
    let whole: Vec<u8> = files
        .iter()
        .flat_map(|file| fs::read(file).unwrap())
        .collect();
    fs::write(archive.join("whole.warc.gz"), whole).unwrap();
    let of_round = |source, round, step| {
        let captures = captures.iter();
        let captures = captures.filter(move |capture| capture.is_html && capture.round == round);
        captures.step_by(step).map(move |capture| {
            let html = String::from_utf8_lossy(&capture.body);
            json!([source, capture.timestamp, capture.url, html])
        })
    };
    let revisits: Vec<Value> = of_round("index.cdxj", 2, 1).collect();
    assert!(revisits.len() >= 50);
    let asked: Vec<Value> = revisits
        .into_iter()
        .chain(of_round("index.cdxj", 1, 10))
        .chain(of_round("whole.warc.gz", 1, 10))
        .chain(of_round("whole.warc.gz", 2, 5))
        .collect();
    let told = json!({ "viewer": named("CRAWL_REPLAYWEB"), "archive": archive, "captures": asked });
    let python = named("CRAWL_PYTHON_BIN").join("python");
    said(&python, "replayweb.py", &[], &archive, &told.to_string());
}

/// The answer of a server of the web for a URL, asked without the crawler.
fn body_of(web: &TestWeb, url: &str) -> Vec<u8> {
    let path = &url[web.url(0, "").len()..];
    let mut stream = TcpStream::connect(web.address(0)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let head = answer.windows(4).position(|at| at == b"\r\n\r\n").unwrap();
    answer.split_off(head + 4)
}

/// The path that a variable names.
fn named(variable: &str) -> PathBuf {
    std::env::var_os(variable)
        .unwrap_or_else(|| panic!("{variable} is not set: cargo xtask test sets it"))
        .into()
}

/// The output of a program beside this file, told this.
fn said(python: &Path, program: &str, args: &[PathBuf], folder: &Path, told: &str) -> String {
    let programs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/crawl");
    let mut child = Command::new(python)
        .arg(programs.join(program))
        .args(args)
        // pywb looks for a config.yaml where it runs.
        .current_dir(folder)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(told.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    String::from_utf8(output.stdout).unwrap()
}
