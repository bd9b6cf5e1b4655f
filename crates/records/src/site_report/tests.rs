//! A small site with one example of each finding.

use std::fs;

use serde_json::json;

use super::{SiteReport, site};
use crate::site_faults::{FaultKind, faults};
use crate::test_crawl_builder::TestCrawlBuilder;

const HOST: &str = "https://e.example";

fn made_site() -> tempfile::TempDir {
    let mut made = TestCrawlBuilder::new();
    let mut page = |path: &str, head: &str, body: &str, via: Option<&str>, ms: u64| {
        let html = format!("<html><head>{head}</head><body>{body}</body></html>");
        let columns = json!({"charset": "UTF-8", "ms": ms, "depth": u32::from(via.is_some()),
            "via": via.map(|via| format!("{HOST}{via}"))});
        made.page_with(&format!("{HOST}{path}"), "text/html", &html, &columns);
    };
    let about = |title: &str, text: &str| {
        format!("<title>{title}</title><meta name=description content='{text}'>")
    };
    page(
        "/",
        &about("Home", "The start"),
        "<a href=/a>a</a> <a href=/one>by way of two</a> <a href=/private/x>x</a> <a href=/private/x>x</a>",
        None,
        7,
    );
    page(
        "/a",
        &about("A page", "Same words"),
        "<a href=/b>b</a> <a href=/a>self</a>",
        Some("/"),
        150,
    );
    page(
        "/b",
        &about("A page", " Same\n  words"),
        "<a href=/c>c</a>",
        Some("/a"),
        7,
    );
    page(
        "/c",
        "<title>  </title>",
        "<a href=/>home</a>",
        Some("/b"),
        2_500,
    );
    page("/end", &about("<b>End", "Of two"), "end", Some("/two"), 7);
    page(
        "/alone",
        &about("Alone", "Linked from nowhere"),
        "<a href=/alone>self</a>",
        Some("/sitemap.xml"),
        7,
    );
    page(
        "/copy",
        &format!(
            "{}<link rel=canonical href=/a>",
            about("A page", "Same words")
        ),
        "a copy",
        Some("/sitemap.xml"),
        7,
    );
    let sitemap =
        ["/alone", "/a", "/copy"].map(|path| format!("<url><loc>{HOST}{path}</loc></url>"));
    made.page(
        &format!("{HOST}/sitemap.xml"),
        "application/xml",
        &format!("<urlset>{}</urlset>", sitemap.concat()),
    );
    made.row(
        &format!("{HOST}/one"),
        &json!({"status": 301, "redirect": format!("{HOST}/two")}),
    );
    made.row(
        &format!("{HOST}/two"),
        &json!({"status": 302, "redirect": format!("{HOST}/end")}),
    );
    let dir = made.finish();
    let barred = |path: &str| {
        json!({"url": format!("{HOST}{path}"), "reason": "robots", "rule": "Disallow: /private/",
            "line": 2, "found_on": null})
        .to_string()
    };
    let rows = format!(
        "{}\n{}\n",
        barred("/private/x"),
        barred("/private/unlinked")
    );
    fs::write(dir.path().join("excluded.jsonl"), rows).unwrap();
    dir
}

#[test]
fn each_list_has_exactly_its_entries() {
    let dir = made_site();
    let report = site(dir.path(), 2).unwrap();
    let path = |urls: &[String]| {
        let paths: Vec<_> = urls
            .iter()
            .map(|url| url[HOST.len()..].to_owned())
            .collect();
        paths.join(" ")
    };
    assert_eq!((report.pages, report.unread), (7, 0));
    assert_eq!(
        (
            path(&report.without_title),
            path(&report.without_description)
        ),
        ("/c".into(), "/c".into())
    );
    assert_eq!(report.double_titles.len(), 1);
    assert_eq!(path(&report.double_titles[0].pages), "/a /b");
    assert_eq!(report.double_descriptions[0].text, "Same words");
    assert_eq!(path(&report.orphans), "/alone /copy");
    assert_eq!(report.clicks, [1, 2, 1, 1]);
    assert_eq!(
        (path(&[report.deep[0].url.clone()]), report.deep[0].number),
        ("/c".into(), 3)
    );
    assert_eq!((report.slow[0].number, report.slow[1].number), (2_500, 150));
    assert_eq!(report.times, [5, 1, 0, 0, 0, 1, 0]);
    assert_eq!(report.redirect_chains.len(), 1);
    assert_eq!(path(&report.redirect_chains[0].to), "/two /end");
    assert_eq!(report.barred.len(), 1);
    assert_eq!(
        (report.barred[0].links, report.barred[0].line),
        (2, Some(2))
    );
    assert_eq!(path(&report.barred[0].linked_from), "/");
    assert_eq!((report.median_ms, report.slow_pages()), (Some(7), 1));
    assert_eq!(report.large_pages(), 0);
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<SiteReport>(&json).unwrap(), report);
}

#[test]
fn headings_and_images_are_read_from_the_archived_pages() {
    let mut made = TestCrawlBuilder::new();
    for (path, body) in [
        ("/", "<h1>Tea</h1><img src=cup.png><img src=b.png alt=B>"),
        ("/a", "<h1> Tea </h1><img src=1.png><img src=2.png>"),
        ("/b", "<h1></h1><h2>Tea</h2>"),
    ] {
        let columns = json!({"charset": "UTF-8"});
        made.page_with(&format!("{HOST}{path}"), "text/html", body, &columns);
    }
    let report = site(made.finish().path(), 2).unwrap();
    assert_eq!(report.without_heading, [format!("{HOST}/b")]);
    assert_eq!(report.double_headings[0].text, "Tea");
    assert_eq!(report.images, 4);
    let images = &report.without_alt;
    assert_eq!(
        images
            .iter()
            .map(|page| page.without_alt)
            .collect::<Vec<_>>(),
        [2, 1]
    );
    assert_eq!(images[0].sources, ["1.png", "2.png"]);
    assert!(
        report
            .to_string()
            .contains("images without alternative text: 2\n  2 images  https://e.example/a\n")
    );
}

#[test]
fn the_page_begins_with_fixes_and_draws_only_bins_with_pages() {
    let dir = made_site();
    let report = site(dir.path(), 2).unwrap();
    let faults = faults(dir.path(), &FaultKind::ALL).unwrap();
    let html = report.html(&faults);
    let at = |part: &str| html.find(part).unwrap_or_else(|| panic!("{part}: {html}"));
    assert!(at("What to fix") < at("id=\"titles\"") && at("id=\"titles\"") < at("<svg"));
    // All pages have nearly the same size, so there is nothing to plot.
    assert_eq!(html.matches("<svg").count(), 2);
    assert!(html.contains("3 clicks") && html.contains("below 100 ms") && !html.contains(": 0,"));
    // The slow page takes 2,500 ms, and the median is 7 ms.
    assert!(html.contains("357 ×"), "{html}");
    assert!(html.contains("<code>Disallow: /private/</code> (line 2)"));
    assert!(html.contains(
        "<a href=\"https://e.example/c\" title=\"https://e.example/c\" rel=\"nofollow noopener noreferrer\">/c</a>"
    ));
    assert!(!html.contains("id=\"images\""), "there are no images");
    let text = report.to_string();
    assert!(text.contains("excluded by robots.txt, but linked: 1\n  https://e.example/private/x  `Disallow: /private/`  2 links"), "{text}");
    let mut odd = report;
    odd.double_titles[0].text = "<script>\u{1b}".into();
    let html = odd.html(&faults);
    assert!(html.contains("&lt;script&gt;") && !html.contains('\u{1b}'));
    assert_eq!(html.matches("<script>").count(), 1, "the page's own script");
    assert!(site(&dir.path().join("none"), 2).is_err());
}

#[test]
fn a_redirect_loop_is_a_broken_link_and_not_a_chain() {
    let mut made = TestCrawlBuilder::new();
    made.page_with(
        &format!("{HOST}/"),
        "text/html",
        "<a href=/loop>wishlist</a><a href=/one>two redirects</a>",
        &json!({"charset": "UTF-8"}),
    );
    let loops = format!("{HOST}/loop");
    made.row(
        &loops,
        &json!({"status": 302, "redirect": loops, "error": "redirect_loop", "via": format!("{HOST}/")}),
    );
    for (from, to) in [("/one", "/two"), ("/two", "/end")] {
        let to = format!("{HOST}{to}");
        made.row(
            &format!("{HOST}{from}"),
            &json!({"status": 302, "redirect": to}),
        );
    }
    let dir = made.finish();
    let report = site(dir.path(), 2).unwrap();
    let chains: Vec<_> = report
        .redirect_chains
        .iter()
        .map(|chain| &chain.url)
        .collect();
    assert_eq!(chains, [&format!("{HOST}/one")]);
    let faults = faults(dir.path(), &FaultKind::ALL).unwrap();
    assert_eq!(
        (faults.faults.len(), faults.faults[0].to.as_str()),
        (1, &*loops)
    );
}

#[test]
fn the_page_names_the_links_that_were_not_checked() {
    let dir = made_site();
    let report = site(dir.path(), 2).unwrap();
    let faults = faults(dir.path(), &FaultKind::ALL).unwrap();
    let html = report.html(&faults);
    let (_, folded) = html
        .split_once("<summary><h3>1 link was not checked</h3></summary>")
        .unwrap();
    assert!(folded.contains("/private/<wbr>x</a>") && folded.contains(">robots.txt</td>"));
    assert!(html.contains("<h1>Report of the site e.example</h1>"));
    assert!(html.contains("<meta name=\"description\" content=\"What to fix on e.example"));
    assert!(html.contains("URLs visited, 7 of them HTML pages of the site"));
}

#[test]
fn pages_outside_the_scope_are_left_out() {
    let mut made = TestCrawlBuilder::new();
    let other = |path: &str| format!("https://other.test/{path}");
    let own = |path: &str| format!("{HOST}/{path}");
    let home = format!(
        "<title>Home</title><a href='{}'>o</a><a href='{}'>b</a><a href=/private>p</a>",
        other("page"),
        other("barred"),
    );
    let html = json!({"charset": "UTF-8"});
    made.page_with(&own(""), "text/html", &home, &html);
    let listed = json!({"charset": "UTF-8", "depth": 1, "via": own("sitemap.xml")});
    let alone = "<title>Alone</title>";
    made.page_with(&own("alone"), "text/html", alone, &listed);
    let sitemap = format!("<urlset><url><loc>{}</loc></url></urlset>", own("alone"));
    made.page(&own("sitemap.xml"), "application/xml", &sitemap);
    let off_scope = json!({"charset": "UTF-8", "hops_off_scope": 1, "ms": 9_000});
    let foreign = format!("<img src=a.png><a href='{}'>click here</a>", own("alone"));
    made.page_with(&other("page"), "text/html", &foreign, &off_scope);
    let image = json!({"hops_off_scope": 1, "ms": 9_000});
    made.page_with(&other("a.png"), "image/png", "x", &image);
    let dir = made.finish();
    let barred = [own("private"), other("barred")].map(|url| {
        let row = json!({"url": url, "reason": "robots", "rule": "Disallow: /", "line": 2,
            "found_on": null});
        format!("{row}\n")
    });
    fs::write(dir.path().join("excluded.jsonl"), barred.concat()).unwrap();
    let report = site(dir.path(), 2).unwrap();
    assert_eq!((report.pages, report.images, report.files.files), (2, 0, 0));
    assert_eq!((report.slow_pages(), report.files.slow_files()), (0, 0));
    // A link on a page of another site doesn't help the visitors of this one.
    assert_eq!(report.orphans, [own("alone")]);
    let barred: Vec<_> = report.barred.iter().map(|barred| &barred.url).collect();
    assert_eq!(barred, [&own("private")]);
    assert!(!report.to_string().contains("other.test"), "{report}");
    let faults = faults(dir.path(), &FaultKind::ALL).unwrap();
    let html = report.html(&faults);
    assert!(
        html.contains("5 URLs visited, 2 of them HTML pages of the site"),
        "{html}"
    );
}
