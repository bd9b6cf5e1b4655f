//! Pages that scripts build, their screenshots, and third-party programs that read the archive.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crawl_archive::rows::{PageRow, WarcRecordLocation};
use crawl_archive::{DigestAlgorithm, WarcRecord, read_record};
use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};
use serde_json::{Value, json};

use crate::harness::{Cmd, Dir, Ran, setup};
use crate::third_party_replay_tools::{export, named, run_program};

/// The HTML of a page whose script fills it from JSON.
const SHELL: &str = "<!doctype html><meta charset=utf-8><title>..</title><div id=root></div>\
    <script src=\"/app.js\"></script>";

const APP: &str = r#"
fetch("/api" + location.pathname).then((answer) => answer.json()).then((page) => {
  document.title = page.title;
  document.body.style.background = "teal";
  document.getElementById("root").innerHTML = `<h1>${page.title}</h1><p>${page.text}</p>`
    + page.links.map((link) => `<a href="${link}">${link}</a>`).join(" ");
});
"#;

/// A page as its script builds it, in plain HTML.
struct Page {
    path: &'static str,
    api: &'static str,
    links: &'static [&'static str],
}

const PAGES: [Page; 3] = [
    Page {
        path: "/",
        api: "/api/",
        links: &["/Green?b=2&a=1", "/black/"],
    },
    Page {
        path: "/Green?b=2&a=1",
        api: "/api/Green",
        links: &["/"],
    },
    Page {
        path: "/black/",
        api: "/api/black/",
        links: &["/"],
    },
];

impl Page {
    fn text(&self) -> String {
        format!("All about the tea of {}. ", self.api).repeat(9)
    }

    fn json(&self) -> String {
        let (title, text, links) = (format!("Tea of {}", self.path), self.text(), self.links);
        json!({ "title": title, "text": text, "links": links }).to_string()
    }

    fn html(&self) -> String {
        let links: Vec<String> = (self.links.iter())
            .map(|link| format!("<a href=\"{link}\">{link}</a>"))
            .collect();
        let (path, text, links) = (self.path, self.text(), links.join(" "));
        format!("<div><h1>Tea of {path}</h1><p>{text}</p>{links}</div>")
    }
}

/// Crawls the pages with screenshots, and then stops their server, so that later requests can only
/// be answered from the archive.
fn rendered_crawl() -> (Dir, Cmd, Vec<PageRow>) {
    let of_type = |kind| HttpAnswer::of(200).header("Content-Type", kind);
    let mut web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(0, "/app.js", of_type("text/javascript").body(APP));
    for page in &PAGES {
        let data = of_type("application/json").body(page.json());
        web = web
            .script(0, page.path, HttpAnswer::html(SHELL))
            .script(0, page.api, data);
    }
    let web = web.start();
    let (dir, mut cmd) = setup("rendered");
    for (name, variable) in [
        ("CRAWL_BROWSER", "CRAWL_CHROMIUM"),
        ("LD_LIBRARY_PATH", "CRAWL_CHROMIUM_LIBRARIES"),
        ("FONTCONFIG_FILE", "CRAWL_CHROMIUM_FONTS"),
    ] {
        cmd.env(name, named(variable).to_str().unwrap());
    }
    let seed = web.url(0, "/");
    let mut args = vec!["--seed", &seed, "--output", "c", "--render", "on"];
    args.extend(["--screenshots", "--browser-sandbox=off", "--delay", "0s"]);
    // A timeout that no page reaches, however slow the machine.
    args.extend(["--render-timeout", "10m"]);
    let ran = cmd.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let rows = dir.rows("c/pages.jsonl").into_iter();
    let rows: Vec<PageRow> = rows
        .map(|row| serde_json::from_value(row).unwrap())
        .collect();
    assert_eq!(rows.len(), PAGES.len());
    (dir, cmd, rows)
}

/// Returns the record of a page's screenshot.
fn screenshot(dir: &Dir, row: &PageRow) -> WarcRecord {
    let render = row.render.as_ref().unwrap();
    let WarcRecordLocation { file, offset } = row.warc.as_ref().unwrap();
    let path = dir.file("c/archive").join(file);
    let record = read_record(&path, offset + render.screenshot_after.unwrap()).unwrap();
    assert_eq!(render.screenshot_bytes, Some(record.block.len() as u64));
    record
}

fn timestamp(row: &PageRow) -> String {
    let moment = row.fetched_at.rfc3339_millis();
    let digits = moment.chars().filter(char::is_ascii_digit);
    digits.take(14).collect()
}

/// Returns the HTML that ReplayWeb.page and pywb must show for a page.
fn expected(row: &PageRow) -> String {
    let path = format!("/{}", row.url.splitn(4, '/').nth(3).unwrap());
    let mut pages = PAGES.iter();
    pages.find(|page| page.path == path).unwrap().html()
}

#[test]
#[ignore = "needs Chromium: cargo xtask test sets it up"]
fn a_screenshot_is_archived_after_its_page_and_removed_with_it() {
    let (dir, cmd, rows) = rendered_crawl();
    for row in &rows {
        let record = screenshot(&dir, row);
        assert_eq!(record.kind(), "resource");
        assert_eq!(record.url(), Some(format!("urn:view:{}", row.url).as_str()));
        let millis = record.date().unwrap().as_millis();
        assert_eq!(millis, row.fetched_at.as_millis());
        assert!(record.block.starts_with(b"\x89PNG"));
    }
    cmd.run(&["verify", "c"]).ok();
    let index = dir.read("c/archive/index.cdxj");
    assert_eq!(index.matches("urn:view:").count(), 2 * rows.len());
    let (gone, kept) = (&rows[0], &rows[1..]);
    let forgotten = cmd.run(&["forget", "c", &gone.url]);
    assert_eq!(forgotten.code, 0, "{}", forgotten.stderr);
    let rows = dir.rows("c/pages.jsonl").into_iter();
    let rows: Vec<PageRow> = rows
        .map(|row| serde_json::from_value(row).unwrap())
        .collect();
    assert_eq!(rows.len(), kept.len());
    for row in &rows {
        assert_eq!(
            screenshot(&dir, row).url().unwrap(),
            format!("urn:view:{}", row.url)
        );
    }
    let index = dir.read("c/archive/index.cdxj");
    assert!(
        !index.contains(&format!("\"urn:view:{}\"", gone.url)),
        "{index}"
    );
    cmd.run(&["verify", "c"]).ok();
    // Forgetting the page erases the data that only this page requested. The script remains,
    // because other pages use it.
    let (data, script) = (format!("{}api/", gone.url), format!("{}app.js", gone.url));
    let requests = dir.rows("c/requests.jsonl");
    assert!(requests.iter().all(|row| row["via"] != gone.url.as_str()));
    let is_left = |url: &str| {
        let is_requested = requests.iter().any(|row| row["url"] == url);
        assert_eq!(
            index.contains(&format!("\"{url}\"")),
            is_requested,
            "{index}"
        );
        is_requested
    };
    assert_eq!((is_left(&data), is_left(&script)), (false, true));
    let message = format!(
        "other pages may use 1 resource of the erased pages too, so these are kept; to erase \
         them:\n  crawl forget c {script}\n"
    );
    assert_eq!(forgotten.stderr, message);
}

#[test]
#[ignore = "needs the Python validators: cargo xtask test sets them up"]
fn others_accept_an_archive_with_doms_and_screenshots() {
    let (dir, cmd, _) = rendered_crawl();
    export(&cmd, &["--out", "whole.wacz"]);
    let python = named("CRAWL_PYTHON_BIN").join("python");
    // This script also checks the WARC files in the package.
    let check = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../wacz/tests/wacz/check.py");
    fs::create_dir(dir.file("unpacked")).unwrap();
    let mut command = Command::new(python);
    let command = command
        .arg(check)
        .args([dir.file("whole.wacz"), dir.file("unpacked")]);
    let ran = Ran::of_command(command);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let counts = ran.stdout.split(", ").nth(1).unwrap().to_owned();
    // The captures: robots.txt, sitemap.xml, the script, and three pages, each with its data and
    // its screenshot.
    assert_eq!(counts, "12 captures");
}

/// A pywb server that shows an archive to browsers.
struct Pywb(Child, String);

impl Pywb {
    fn start(python: &Path, archive: &Path) -> Pywb {
        let program = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/replay.py");
        let mut child = Command::new(python)
            .arg(program)
            .args([archive.join("index.cdxj"), archive.join(""), "serve".into()])
            .current_dir(archive)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut port).unwrap();
        let origin = format!("http://127.0.0.1:{}", port.trim());
        Pywb(child, origin)
    }
}

impl Drop for Pywb {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs Chromium, pywb and ReplayWeb.page: cargo xtask test sets them up"]
fn replay_tools_show_pages_that_scripts_build_and_their_screenshots() {
    let (dir, cmd, rows) = rendered_crawl();
    let archive = dir.file("c/archive");
    let python = named("CRAWL_PYWB_PYTHON");
    let images = rows.iter().map(|row| (row, screenshot(&dir, row).block));
    let images: Vec<(&PageRow, Vec<u8>)> = images.collect();
    let wanted = |row: &PageRow| format!("{} urn:view:{}", timestamp(row), row.url);
    let wanted: Vec<String> = rows.iter().map(wanted).collect();
    let args = [archive.join("index.cdxj"), archive.join("")];
    let shown = run_program(&python, "replay.py", &args, &archive, &wanted.join("\n"));
    let digests = images
        .iter()
        .map(|(_, image)| DigestAlgorithm::Sha1.of(&[image]));
    let answers: Vec<String> = digests.map(|digest| format!("200 {digest}")).collect();
    assert_eq!(shown.lines().collect::<Vec<_>>(), answers);

    export(&cmd, &["--out", "whole.wacz"]);
    fs::rename(dir.file("whole.wacz"), archive.join("whole.wacz")).unwrap();
    let sources = ["whole.wacz", "index.cdxj"];
    let captures: Vec<Value> = (sources.iter())
        .flat_map(|source| rows.iter().map(move |row| (source, row)))
        .map(|(source, row)| json!([source, timestamp(row), row.url, expected(row)]))
        .collect();
    let images: Vec<Value> = (sources.iter())
        .flat_map(|source| images.iter().map(move |image| (source, image)))
        .map(|(source, (row, image))| {
            let digest = DigestAlgorithm::Sha256.of(&[image]);
            let digest = digest.trim_start_matches("sha256:");
            json!([
                source,
                timestamp(row),
                format!("urn:view:{}", row.url),
                digest
            ])
        })
        .collect();
    let pywb = Pywb::start(&python, &archive);
    let context = json!({
        "viewer": named("CRAWL_REPLAYWEB"), "archive": archive, "captures": captures,
        "images": images, "pywb": pywb.1,
    });
    let python = named("CRAWL_PYTHON_BIN").join("python");
    run_program(&python, "replayweb.py", &[], &archive, &context.to_string());
}

#[test]
#[ignore = "needs Chromium: cargo xtask test sets it up"]
fn the_browser_is_named_in_the_archive_and_the_report() {
    let (dir, cmd, rows) = rendered_crawl();
    let report: Value = serde_json::from_str(&dir.read("c/report.json")).unwrap();
    let browser = report["crawl"]["browser"].as_str().unwrap();
    assert!(browser.contains("Chrom"), "{browser}");
    let file = &rows[0].warc.as_ref().unwrap().file;
    let warcinfo = read_record(&dir.file("c/archive").join(file), 0).unwrap();
    let fields = String::from_utf8(warcinfo.block).unwrap();
    assert!(
        fields.contains(&format!("browser: {browser}\r\n")),
        "{fields}"
    );
    let text = cmd.run(&["report", "c"]).ok();
    assert!(text.contains(&format!("browser   {browser}\n")), "{text}");
    let page = dir.read("c/report.html");
    assert!(page.contains(&format!("rendered with {browser}.")));
}
