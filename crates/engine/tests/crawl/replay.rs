//! What a replay tool shows of an archive after a second round.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crawl_archive::DigestAlgorithm;
use crawl_testweb::{Script, TestWeb};
use crawl_weburl::canonicalize;

use crate::recrawl::{again, eager, gzip_with, row};

/// `CRAWL_PYWB_PYTHON` names the Python of an environment with pywb 2.10 in it, which is one of
/// its own: pywb needs an old client of redis.
#[test]
#[ignore = "needs pywb: cargo xtask test sets it up"]
fn pywb_shows_every_page_of_a_second_round() {
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

    let mut expected = BTreeMap::new();
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
            for row in [before, after] {
                let moment = row.fetched_at.rfc3339_millis();
                let moment: String = moment.chars().filter(char::is_ascii_digit).collect();
                expected.insert(format!("{} {}", &moment[..14], row.url), body.clone());
            }
        }
    }
    assert!(unmodified >= 50 && expected.keys().any(|asked| asked.ends_with("/packed")));
    let shown = pywb(&crawl.output("archive"), expected.keys());
    assert_eq!(shown.len(), expected.len());
    for ((asked, body), shown) in expected.iter().zip(shown) {
        let digest = DigestAlgorithm::Sha1.of(&[body]);
        assert_eq!(shown, format!("200 {digest}"), "{asked}");
    }
}

/// What a server of the web sends for a URL, asked without the crawler.
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

/// Status and digest of each answer.
fn pywb<'a>(archive: &Path, asked: impl Iterator<Item = &'a String>) -> Vec<String> {
    let python = std::env::var_os("CRAWL_PYWB_PYTHON").expect("CRAWL_PYWB_PYTHON names no Python");
    let program = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/crawl/replay.py");
    let asked: Vec<&str> = asked.map(String::as_str).collect();
    let mut child = Command::new(python)
        .arg(program)
        .arg(archive.join("index.cdxj"))
        .arg(archive.join(""))
        // It looks for a config.yaml where it runs.
        .current_dir(archive)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(asked.join("\n").as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let shown = String::from_utf8(output.stdout).unwrap();
    shown.lines().map(str::to_owned).collect()
}
