//! Crawls over IPv6 and HTTP/2, whose archives are checked by other programs.

use std::fs;
use std::path::Path;
use std::process::Command;

use crawl_archive::read_record;
use crawl_testweb::NginxEndpoint;
use tempfile::TempDir;

use crate::crawl_harness::Crawl;
use crate::nginx_harness::Nginx;
use crate::{archive_external_check, named};

/// The folder with a self-signed certificate and its key. The certificate is for `a.test` only, and
/// valid for a hundred years.
const FIXTURES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../fetcher/tests/exchanges/fixtures"
);

/// Creates a site of four pages and a style sheet.
fn site() -> TempDir {
    let dir = tempfile::Builder::new().prefix("site").tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    let links: String = (1..4)
        .map(|n| format!("<a href=p{n}.html>{n}</a>"))
        .collect();
    write(
        "index.html",
        &format!("<title>front</title>{links}<a href=gone>no</a>"),
    );
    for number in 1..4_usize {
        let words = "words of a page. ".repeat(number * 900);
        write(
            &format!("p{number}.html"),
            &format!("<title>{number}</title><p>{words}"),
        );
    }
    dir
}

/// Crawls the site, and has other programs check the archive and the WACZ file. In every record of
/// a page, `field` must be `expected`.
fn check(nginx: &Nginx, flags: &str, (field, expected): (&str, &str)) {
    let flags = format!("--delay 0s --delay-factor 0 {flags}");
    let crawl = Crawl::new(&nginx.url(), flags.trim_end());
    crawl.finish("a@example.org");
    let pages = crawl.pages();
    assert_eq!(
        pages.iter().filter(|row| row.status == Some(200)).count(),
        4
    );
    archive_external_check::check_places(&crawl.output(), &pages);
    for row in &pages {
        let place = row.warc.as_ref().unwrap();
        let file = crawl.output().join("archive").join(&place.file);
        let record = read_record(&file, place.offset).unwrap();
        assert_eq!(record.field(field), Some(expected), "{row:?}");
    }
    archive_external_check::check(&crawl.output());
    check_wacz(&crawl.output());
}

fn check_wacz(output: &Path) {
    let dir = tempfile::tempdir().unwrap();
    let wacz = dir.path().join("crawl.wacz");
    let ended = Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(["export", "--to", "wacz", "--out"])
        .args([&wacz, output])
        .output()
        .unwrap();
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wacz/tests/wacz/check.py");
    let checked = Command::new(named("CRAWL_PYTHON_BIN").join("python"))
        .arg(script)
        .args([&wacz, dir.path()])
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{complaint}");
}

#[test]
#[ignore = "needs nginx and the Python validators: cargo xtask test sets them up"]
fn a_crawl_over_ipv6_is_archived_as_others_read_it() {
    let site = site();
    let nginx = Nginx::serve_by(site.path(), NginxEndpoint::Ipv6);
    check(&nginx, "", ("WARC-IP-Address", "::1"));
}

#[test]
#[ignore = "needs nginx and the Python validators: cargo xtask test sets them up"]
fn a_crawl_over_http_2_is_archived_as_others_read_it() {
    let site = site();
    let fixture = |name: &str| Path::new(FIXTURES).join(name);
    let certificate = fixture("a.test.pem");
    let endpoint = NginxEndpoint::Http2 {
        host: "a.test",
        certificate: certificate.clone(),
        key: fixture("a.test.key.pem"),
    };
    let nginx = Nginx::serve_by(site.path(), endpoint);
    let flags = format!(
        "--resolve a.test:{}:127.0.0.1 --ca-file {}",
        nginx.port(),
        certificate.display()
    );
    check(&nginx, &flags, ("WARC-Protocol", "h2"));
}
