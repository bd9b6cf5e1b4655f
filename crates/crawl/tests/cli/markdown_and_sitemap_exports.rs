//! `crawl export` to files for a site to publish: Markdown, llms.txt, sitemaps.

use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};
use expect_test::expect;

use crate::harness::{Cmd, Dir, setup};

const QUICK: [&str; 6] = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];

fn export(cmd: &Cmd, to: &str, out: &str) -> String {
    let ran = cmd.run(&["export", "c", "--to", to, "--out", out]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stderr + &ran.stdout
}

/// Crawls two rounds of a site. `/tea.html` changes in between.
fn crawled() -> (Dir, Cmd, TestWeb) {
    let (dir, cmd) = setup("site-files");
    let page = |title: &str, words: &str| {
        let page = format!(
            "<title>{title}</title><meta name=description content='On {title}.'><main><h1>{title}\
             </h1><p>{words} More of it stands on <a href=/>the first page</a>, of course.</main>"
        );
        HttpAnswer::html(&page)
    };
    let tea =
        |words| page("Green tea", words).header("last-modified", "Fri, 02 Jan 2026 03:04:05 GMT");
    let home = "Here we sell <a href=/tea.html>tea</a> and <a href=/cups>cups</a>; and \
        <a href=/hidden>no more</a> or <a href=/cups/old>old cups</a>.";
    let web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(0, "/", page("Tea house", home))
        .script(0, "/tea.html", tea("Leaves of the tea bush."))
        .script(
            0,
            "/cups",
            page("Cups", "Of clay.")
                .header("last-modified", "Fri, 02 Jan 2026 03:04:05 GMT")
                .header("content-usage", "ai-use=n"),
        )
        .script(
            0,
            "/cups/old",
            page("Old cups", "Chipped.").header("x-robots-tag", "noarchive"),
        )
        .script(
            0,
            "/hidden",
            page("Hidden", "No.").header("x-robots-tag", "noindex"),
        )
        .start();
    let seed = web.url(0, "/");
    let mut args = vec![
        "--seed",
        &seed,
        "--output",
        "c",
        "--index",
        "on",
        "--recrawl",
    ];
    args.extend(QUICK);
    let first = cmd.run(&args);
    assert_eq!(first.code, 0, "{}", first.stderr);
    web.script(0, "/tea.html", tea("Steamed leaves of the tea bush."));
    let second = cmd.run(&args);
    assert_eq!(second.code, 0, "{}", second.stderr);
    (dir, cmd, web)
}

/// Returns the name of the folder for the files of the web's host.
fn folder(web: &TestWeb) -> String {
    let url = web.url(0, "");
    url.trim_start_matches("http://")
        .trim_end_matches('/')
        .replace(':', "_")
}

#[test]
fn pages_become_files_that_link_to_each_other() {
    let (dir, cmd, web) = crawled();
    let message = export(&cmd, "markdown", "md");
    assert_eq!(
        message,
        "md written: 3 pages; 1 page left out, since the site forbids copies (noarchive, \
         Content-Usage and the like)\n"
    );
    let text = dir.read(&format!("md/{}/tea.md", folder(&web)));
    let (front, text) = text.split_once("---\n\n").unwrap();
    assert!(
        front.starts_with("---\ntitle: \"Green tea\"\nurl: \"http://127."),
        "{front}"
    );
    expect![[r"
        # Green tea

        Steamed leaves of the tea bush. More of it stands on [the first page](index.md), of course.
    "]]
    .assert_eq(text);
    let home = dir.read(&format!("md/{}/index.md", folder(&web)));
    let hidden = web.url(0, "/hidden");
    let old = web.url(0, "/cups/old");
    let links =
        format!("[tea](tea.md) and [cups](cups.md); and [no more]({hidden}) or [old cups]({old})");
    assert!(home.contains(&links), "{home}");
    let again = cmd.run(&["export", "c", "--to", "markdown", "--out", "md"]);
    assert_eq!(again.code, 2, "{}", again.stderr);
    assert!(
        again.stderr.contains("choose a new or empty folder"),
        "{}",
        again.stderr
    );
}

#[test]
fn a_list_for_models_omits_pages_that_refuse_ai_input() {
    let (dir, cmd, web) = crawled();
    let message = export(&cmd, "llms-txt", "llms.txt");
    assert_eq!(
        message,
        "llms.txt written: 3 pages; 1 page left out (expired, or the site refuses \
         ai-input)\n"
    );
    let origin = web.url(0, "");
    let origin = origin.trim_end_matches('/');
    let text = dir.read("llms.txt").replace(origin, "ORIGIN");
    let host = origin.trim_start_matches("http://");
    expect![[r"
        # Tea house

        > On Tea house.

        ## HOST

        - [Tea house](ORIGIN/): On Tea house.
        - [Green tea](ORIGIN/tea.html): On Green tea.

        ## /cups/

        - [Old cups](ORIGIN/cups/old): On Old cups.
    "]]
    .assert_eq(&text.replace(host, "HOST"));
    let streamed = cmd.run(&["export", "c", "--to", "llms-txt", "--out", "-"]);
    assert_eq!(streamed.stdout, dir.read("llms.txt"));
}

#[test]
fn a_sitemap_has_the_times_of_observed_changes() {
    let (dir, cmd, web) = crawled();
    let message = export(&cmd, "sitemap", "maps");
    assert_eq!(
        message,
        "maps written: 4 pages in 1 file, 2 with a date of change\n"
    );
    let text = dir.read(&format!("maps/{}/sitemap.xml", folder(&web)));
    let entry = |path: &str| {
        let line = format!("<url><loc>{}</loc>", web.url(0, path));
        let line = text.lines().find_map(|found| found.strip_prefix(&line));
        line.unwrap_or_else(|| panic!("{path} is not in {text}"))
            .to_owned()
    };
    assert_eq!(entry("/"), "</url>");
    assert_eq!(
        entry("/cups"),
        "<lastmod>2026-01-02T03:04:05Z</lastmod></url>"
    );
    // The page's header has a date in January, but the text changed later, so the date of the
    // second fetch applies.
    let rows = dir.rows("c/pages.jsonl");
    let changed = rows.iter().find(|row| row["change"] == "changed").unwrap();
    let second = changed["fetched_at"]
        .as_str()
        .unwrap()
        .split('.')
        .next()
        .unwrap();
    assert_eq!(
        entry("/tea.html"),
        format!("<lastmod>{second}Z</lastmod></url>")
    );
}
