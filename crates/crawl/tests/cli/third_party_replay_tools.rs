//! Replay tools, and the pages that they show from an archive after a second round.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crawl_archive::DigestAlgorithm;
use crawl_archive::rows::PageRow;
use crawl_testweb::{HttpAnswer, ReplySequence, TestWeb};
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};

use crate::harness::{Cmd, Dir, Ran, setup};

/// A crawl of two rounds.
struct TwoRounds {
    dir: Dir,
    cmd: Cmd,
    captures: Vec<Capture>,
}

/// A capture in the archive: a page, or a later visit that found it unchanged.
struct Capture {
    round: u32,
    /// The time to the second, by which replay tools identify captures.
    timestamp: String,
    url: String,
    body: Vec<u8>,
    is_html: bool,
}

/// Number of pages with their own style sheet and image.
const ILLUSTRATED: usize = 50;

/// Crawls more than a hundred unchanged pages twice, half of them with resources. The server is
/// stopped afterwards, so everything shown comes from the archive. The WARC files of the second
/// round have the given compression.
fn two_rounds(second: &str) -> TwoRounds {
    let html = "<title>packed</title><p>the same content in other bytes each time";
    let mut web = TestWeb::builder().seed(11).pages(60).gzip(false).script(
        0,
        "/packed",
        ReplySequence::from(gzip_with(html, 1)).then(gzip_with(html, 22)),
    );
    let mut links = String::new();
    for number in 0..ILLUSTRATED {
        let at = format!("/illustrated/{number}");
        let page = format!(
            "<title>{number}</title><link rel=stylesheet href={at}.css><img src={at}.png>{number}"
        );
        let css = HttpAnswer::of(200).header("content-type", "text/css");
        let image = HttpAnswer::of(200).header("content-type", "image/png");
        links.push_str(&format!("<a href={at}>{number}</a>"));
        web = web
            .script(0, &at, HttpAnswer::html(&page))
            .script(
                0,
                &format!("{at}.css"),
                css.body(format!("p {{ margin: {number}px }}")),
            )
            .script(
                0,
                &format!("{at}.png"),
                image.body([b"\x89PNG", &[number as u8; 99][..]].concat()),
            );
    }
    let web = web
        .script(0, "/illustrated/", HttpAnswer::html(&links))
        .start();
    let packed = web.url(0, "/packed");
    let seeds = [web.url(0, "/"), web.url(0, "/illustrated/"), packed.clone()];
    let mut args = vec!["--output", "c", "--recrawl", "--resources", "all"];
    // Replay tools distinguish captures by second, so delay the requests to make a round take
    // longer than that.
    args.extend(["--delay", "5ms", "--delay-factor", "0", "--progress", "off"]);
    args.extend(seeds.iter().flat_map(|seed| ["--seed", seed]));
    let (dir, cmd) = setup("replay");
    for compression in ["gzip", second] {
        let ran = cmd.run(&[&args[..], &["--warc-compression", compression]].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let rows: Vec<PageRow> = dir
        .rows("c/pages.jsonl")
        .into_iter()
        .map(|row| serde_json::from_value(row).unwrap())
        .collect();
    let of_round = |round| rows.iter().filter(move |row| row.round == round);

    let mut captures = Vec::new();
    let mut unmodified = 0;
    for before in of_round(1) {
        if before.status == Some(200) {
            let after = of_round(2).find(|after| after.url == before.url).unwrap();
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
                    url: row.url.clone(),
                    body: body.clone(),
                    is_html,
                });
            }
        }
    }
    assert!(unmodified >= 50 && captures.iter().any(|capture| capture.url == packed));
    let loaded = captures.iter().filter(|capture| !capture.is_html);
    assert!(loaded.count() >= 4 * ILLUSTRATED);
    TwoRounds { dir, cmd, captures }
}

/// `CRAWL_PYWB_PYTHON` is the Python of an environment with pywb 2.10. This environment is separate
/// because pywb needs an old redis client.
#[test]
#[ignore = "needs pywb: cargo xtask test sets it up"]
fn pywb_shows_every_page_of_a_second_round() {
    let TwoRounds { dir, cmd, captures } = two_rounds("none");
    let captures_to_check: Vec<String> = captures
        .iter()
        .map(|capture| format!("{} {}", capture.timestamp, capture.url))
        .collect();
    let python = named("CRAWL_PYWB_PYTHON");
    let check = |index: PathBuf, archive: PathBuf| {
        let args = [index, archive.join("")];
        let shown = run_program(
            &python,
            "replay.py",
            &args,
            &archive,
            &captures_to_check.join("\n"),
        );
        assert_eq!(shown.lines().count(), captures_to_check.len());
        for ((capture, captures_to_check), shown) in
            captures.iter().zip(&captures_to_check).zip(shown.lines())
        {
            let digest = DigestAlgorithm::Sha1.of(&[&capture.body]);
            assert_eq!(shown, format!("200 {digest}"), "{captures_to_check}");
        }
    };
    let archive = dir.file("c/archive");
    check(archive.join("index.cdxj"), archive);
    // pywb accepts only a self-contained package.
    export(&cmd, &["--out", "whole.wacz"]);
    manage_pywb(&python, &dir, &["init", "crawl"]);
    manage_pywb(
        &python,
        &dir,
        &["add", "--unpack-wacz", "crawl", "whole.wacz"],
    );
    let collection = dir.file("collections/crawl");
    check(
        collection.join("indexes/index.cdxj"),
        collection.join("archive"),
    );
}

/// Packages the crawl or one of its rounds.
pub(crate) fn export(cmd: &Cmd, args: &[&str]) {
    let ran = cmd.run(&[&["export", "c", "--to", "wacz"], args].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

fn manage_pywb(python: &Path, dir: &Dir, args: &[&str]) {
    let manager = python.with_file_name("wb-manager");
    let ran = Ran::of_command(Command::new(manager).args(args).current_dir(dir.path()));
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
}

/// `CRAWL_REPLAYWEB` is the folder of ReplayWeb.page, which includes wabac.js. The other required
/// variables are those of `tests/browser`.
#[test]
#[ignore = "needs Chromium and ReplayWeb.page: cargo xtask test sets them up"]
fn replayweb_page_shows_every_page_of_a_second_round() {
    let TwoRounds { dir, cmd, captures } = two_rounds("gzip");
    let archive = dir.file("c/archive");
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
    let asked_of = |source: &str, capture: &Capture| {
        let html = String::from_utf8_lossy(&capture.body);
        json!([source, capture.timestamp, capture.url, html])
    };
    let of_round = |source, round, step| {
        let captures = captures.iter();
        let captures = captures.filter(move |capture| capture.is_html && capture.round == round);
        captures
            .step_by(step)
            .map(move |capture| asked_of(source, capture))
    };
    export(&cmd, &["--out", "whole.wacz"]);
    let (first, second) = ("round-1.wacz", "round-2.wacz");
    export(&cmd, &["--round", "1", "--out", first]);
    export(&cmd, &["--round", "2", "--earlier", first, "--out", second]);
    for name in ["whole.wacz", first, second] {
        fs::rename(dir.file(name), archive.join(name)).unwrap();
    }
    // List both files in one collection, because the second one refers to the first one by name.
    let files = ["round-1.wacz", "round-2.wacz"].map(|name| json!({ "name": name, "path": name }));
    let both = json!({ "profile": "multi-wacz-package", "resources": files });
    fs::write(archive.join("both.json"), both.to_string()).unwrap();
    let are_apart = |pair: &&[Capture]| pair[0].timestamp != pair[1].timestamp;
    let pairs = captures.chunks(2).filter(are_apart);
    let of_both: Vec<Value> = pairs
        .map(|pair| &pair[1])
        .filter(|capture| capture.is_html)
        .step_by(20)
        .map(|capture| asked_of("both.json", capture))
        .collect();
    assert!(of_both.len() >= 3, "{}", of_both.len());
    let revisits: Vec<Value> = of_round("index.cdxj", 2, 2).collect();
    assert!(revisits.len() >= 50);
    let captures_to_check: Vec<Value> = revisits
        .into_iter()
        .chain(of_round("index.cdxj", 1, 20))
        .chain(of_round("whole.warc.gz", 1, 20))
        .chain(of_round("whole.warc.gz", 2, 10))
        .chain(of_round("whole.wacz", 2, 8))
        .chain(of_round("whole.wacz", 1, 20))
        .chain(of_round("round-1.wacz", 1, 20))
        .chain(of_both)
        .collect();
    let context = json!({ "viewer": named("CRAWL_REPLAYWEB"), "archive": archive, "captures": captures_to_check });
    let python = named("CRAWL_PYTHON_BIN").join("python");
    run_program(&python, "replayweb.py", &[], &archive, &context.to_string());
}

/// Returns the body with which the test web responds to a URL, fetched without the crawler.
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

/// Returns a page as a gzip file whose header contains a file name of `name_bytes` bytes. With
/// another length, the same page has another compressed size, as from a real server.
fn gzip_with(html: &str, name_bytes: usize) -> HttpAnswer {
    let mut gzip = GzBuilder::new()
        .filename(vec![b'x'; name_bytes])
        .write(Vec::new(), Compression::default());
    gzip.write_all(html.as_bytes()).unwrap();
    HttpAnswer::html("")
        .body(gzip.finish().unwrap())
        .header("content-encoding", "gzip")
}

/// Returns the path in an environment variable.
pub(crate) fn named(variable: &str) -> PathBuf {
    std::env::var_os(variable)
        .unwrap_or_else(|| panic!("{variable} is not set: cargo xtask test sets it"))
        .into()
}

/// Runs a Python program from this crate's `tests` folder with `input` on stdin. Returns its
/// output, and panics if it fails.
pub(crate) fn run_program(
    python: &Path,
    program: &str,
    args: &[PathBuf],
    folder: &Path,
    input: &str,
) -> String {
    let programs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut child = Command::new(python)
        .arg(programs.join(program))
        .args(args)
        // pywb reads config.yaml from its working directory.
        .current_dir(folder)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let ran = Ran::of_child(child);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stdout
}
