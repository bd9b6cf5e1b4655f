//! Small sites with broken links. Each is recorded in three ways: with `links.jsonl`, with an
//! archive, or with neither.
#![expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is used"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crawl_archive::{
    ArchiveOptions, ArchiveWriter, Capture, CaptureEncoder, CaptureMetadata, CapturedRequest,
    RecordIds, Timestamp,
};
use crawl_weburl::canonicalize;
use expect_test::{Expect, expect};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;

use super::{EveryLinkDisplay, broken_links, is_wait};
use crate::error::RecordsError;
use crate::test_crawl_builder::TestCrawlBuilder;

/// An exchange that a test crawl records.
#[derive(Clone)]
struct Made {
    path: &'static str,
    status: u16,
    via: Option<&'static str>,
    round: u32,
    change: Option<&'static str>,
    fields: &'static [(&'static str, &'static str)],
    body: &'static str,
    withheld: bool,
    /// The value of `redirect` in the row.
    redirect: Option<&'static str>,
    error: Option<&'static str>,
}

fn page(path: &'static str, via: Option<&'static str>, body: &'static str) -> Made {
    Made {
        path,
        status: 200,
        via,
        round: 1,
        change: Some("new"),
        fields: &[("content-type", "text/html")],
        body,
        withheld: false,
        redirect: None,
        error: None,
    }
}

fn answered(path: &'static str, via: Option<&'static str>, status: u16) -> Made {
    Made {
        status,
        change: None,
        ..page(path, via, "")
    }
}

fn url(path: &str) -> String {
    match path.starts_with('/') {
        true => format!("http://e.example{path}"),
        false => path.to_owned(),
    }
}

/// Creates a redirect whose row names its target.
fn redirect(path: &'static str, via: Option<&'static str>, to: &'static str) -> Made {
    Made {
        redirect: Some(to),
        ..answered(path, via, 301)
    }
}

impl Made {
    fn with_error(self, error: &'static str) -> Made {
        Made {
            error: Some(error),
            ..self
        }
    }

    fn in_round(self, round: u32, change: Option<&'static str>) -> Made {
        Made {
            round,
            change,
            ..self
        }
    }

    fn row(&self, warc: Option<(String, u64)>) -> String {
        let status = Some(self.status).filter(|status| *status > 0);
        let kind = self.fields.iter().find(|(name, _)| *name == "content-type");
        json!({"url": url(self.path), "status": status,
            "fetched_at": "2026-11-20T23:59:59.123Z", "ms": 1, "bytes": 0,
            "content_type": kind.map(|kind| kind.1), "digest": null, "depth": 0,
            "via": self.via.map(url), "title": null, "robots": null,
            "warc": warc.map(|(file, offset)| json!({"file": file, "offset": offset})),
            "withheld": self.withheld.then_some("noarchive"), "round": self.round,
            "change": self.change, "redirect": self.redirect.map(url),
            "error": self.error.or(status.is_none().then_some("connect_refused"))})
        .to_string()
    }

    fn keep(&self, archive: &mut ArchiveWriter, encoder: &mut CaptureEncoder) -> (String, u64) {
        let mut headers = HeaderMap::new();
        for (name, value) in self.fields {
            headers.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        let capture = Capture {
            url: &canonicalize(None, &url(self.path)).unwrap(),
            started: Timestamp::from_micros(1_795_132_800_000_000),
            millis: 1,
            address: None,
            protocol: http::Version::HTTP_11,
            tls: None,
            request: CapturedRequest {
                method: "GET",
                headers: &[],
                body: &[],
            },
            status: self.status,
            reason: None,
            headers: &headers,
            body: self.body.as_bytes(),
            truncated: None,
            revisit: None,
            about: CaptureMetadata::default(),
        };
        let encoded = encoder.encode(&capture, &RecordIds::random());
        let receipt = archive.append(&encoded).unwrap();
        (receipt.file, receipt.offset)
    }
}

fn lines(dir: &Path, name: &str, rows: Vec<String>) {
    let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::write(dir.join(name), rows).unwrap();
}

/// A row of `links.jsonl`: the page, the target, the text and the relation.
type LinkMade = (
    &'static str,
    &'static str,
    Option<&'static str>,
    Option<&'static str>,
);

/// Writes a crawl with rows, and optionally with links and an archive.
fn crawl(made: &[Made], links: Option<&[LinkMade]>, archives: bool) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut archive = archives.then(|| {
        ArchiveWriter::open(dir.path(), ArchiveOptions::default(), &BTreeMap::new()).unwrap()
    });
    let mut encoder = CaptureEncoder::default();
    let mut rows = Vec::new();
    for made in made {
        let archive = archive.as_mut().filter(|_| made.status > 0);
        rows.push(made.row(archive.map(|archive| made.keep(archive, &mut encoder))));
    }
    if let Some(archive) = &mut archive {
        archive.sync().unwrap();
    }
    lines(dir.path(), "pages.jsonl", rows);
    if let Some(links) = links {
        let row = |(from, to, text, rel): &LinkMade| {
            json!({"from": url(from), "to": url(to), "rel": rel, "text": text}).to_string()
        };
        lines(dir.path(), "links.jsonl", links.iter().map(row).collect());
    }
    dir
}

fn check(dir: &Path, source: &str, expect: Expect) {
    let links_found = broken_links(dir).unwrap();
    assert_eq!(links_found.source, source);
    let links: usize = links_found.pages.iter().map(|page| page.links.len()).sum();
    assert_eq!(links_found.links, links as u64);
    let json = serde_json::to_string(&links_found).unwrap();
    assert_eq!(
        serde_json::from_str::<super::BrokenLinkReport>(&json).unwrap(),
        links_found
    );
    expect.assert_eq(&EveryLinkDisplay(&links_found).to_string());
}

/// Creates a site with two broken pages. The first has two links and a chain of redirects, and the
/// second is on a dead host.
fn site() -> Vec<Made> {
    vec![
        page(
            "/",
            None,
            "<a href=/a>A</a> <a href=gone rel=nofollow>old <b>news</b></a> <a href=/a>again</a>",
        ),
        page(
            "/a",
            Some("/"),
            "<base href=/x/><a href=../moved?utm_source=a>it moved</a> \
             <a href=http://dead.example/>\u{1b}[31mdead</a> <a href=#top>top</a>",
        ),
        redirect("/moved", Some("/a"), "/further"),
        redirect("/further", Some("/moved"), "/gone"),
        answered("/gone", Some("/"), 404),
        answered("http://dead.example/", Some("/a"), 0),
        Made {
            fields: &[("content-type", "application/xml")],
            ..page(
                "/sitemap.xml",
                Some("/robots.txt"),
                "<urlset><url><loc>http://e.example/gone</loc></url></urlset>",
            )
        },
    ]
}

#[test]
fn every_page_with_a_broken_link_is_listed() {
    check(
        crawl(&site(), None, true).path(),
        "archive",
        expect![[r#"
            2 broken pages, 4 links to them

            ---  http://dead.example/ (connection refused)
                 on http://e.example/a  "�[31mdead"

            404  http://e.example/gone
                 on http://e.example/  "old news"  (nofollow)
                 on http://e.example/a  "it moved"
                    via http://e.example/moved
                    via http://e.example/further
                 on http://e.example/sitemap.xml
        "#]],
    );
}

#[test]
fn recorded_links_are_used_after_one_round() {
    let links: [LinkMade; 5] = [
        ("/", "/a", Some("A"), None),
        ("/", "/gone", Some("old news"), Some("nofollow")),
        ("/", "/a", Some("again"), None),
        ("/a", "/moved?utm_source=a", Some("it moved"), None),
        ("/a", "http://dead.example/", None, None),
    ];
    let expected = expect![[r#"
        2 broken pages, 3 links to them

        ---  http://dead.example/ (connection refused)
             on http://e.example/a

        404  http://e.example/gone
             on http://e.example/  "old news"  (nofollow)
             on http://e.example/a  "it moved"
                via http://e.example/moved
                via http://e.example/further
    "#]];
    check(
        crawl(&site(), Some(&links), true).path(),
        "links.jsonl",
        expected,
    );
}

#[test]
fn first_referrers_are_listed_if_nothing_else_was_kept() {
    check(
        crawl(&site(), None, false).path(),
        "via",
        expect![[r#"
            2 broken pages, 3 links to them

            ---  http://dead.example/ (connection refused)
                 on http://e.example/a

            404  http://e.example/gone
                 on http://e.example/
                 on http://e.example/a
                    via http://e.example/moved
                    via http://e.example/further

            neither links nor an archive were kept, so only the page that first led to each is listed
        "#]],
    );
}

/// Creates a crawl with two rounds. In the second round, the first page no longer has its link,
/// another page is unchanged, and a third page is broken.
fn two_rounds() -> Vec<Made> {
    let same = Made {
        status: 304,
        ..page("/a", Some("/"), "")
    };
    let mut rounds = vec![
        page("/", None, "<a href=/a>a</a><a href=/gone>lost</a>"),
        page("/a", Some("/"), "<a href=/gone>kept</a><a href=/b>b</a>"),
        page("/b", Some("/a"), "<a href=/gone>on a page that is gone</a>"),
        page("/gone", Some("/"), "here"),
    ];
    rounds.extend([
        page("/", None, "<a href=/a>a</a>").in_round(2, Some("changed")),
        same.in_round(2, Some("same")),
        answered("/b", Some("/a"), 410).in_round(2, Some("gone")),
        answered("/gone", Some("/"), 404).in_round(2, Some("gone")),
    ]);
    rounds
}

#[test]
fn pages_are_read_as_they_are_now() {
    let dir = crawl(&two_rounds(), None, true);
    check(
        dir.path(),
        "archive",
        expect![[r#"
            2 broken pages, 2 links to them

            410  http://e.example/b
                 on http://e.example/a  "b"

            404  http://e.example/gone
                 on http://e.example/a  "kept"
        "#]],
    );
    let links: [LinkMade; 5] = [
        ("/", "/a", Some("a"), None),
        ("/", "/gone", Some("lost"), None),
        ("/a", "/gone", Some("kept"), None),
        ("/b", "/gone", Some("on a page that is gone"), None),
        ("/", "/a", Some("a"), None),
    ];
    check(
        crawl(&two_rounds(), Some(&links), false).path(),
        "links.jsonl",
        expect![[r#"
            2 broken pages, 3 links to them

            410  http://e.example/b
                 on http://e.example/a

            404  http://e.example/gone
                 on http://e.example/
                 on http://e.example/a  "kept"
        "#]],
    );
}

#[test]
fn working_pages_are_not_listed() {
    let fine = [
        page("/", None, "<a href=/x>x</a>"),
        // A page that was broken in the first round, and works in the second.
        answered("/x", Some("/"), 500),
        page("/x", Some("/"), "").in_round(2, Some("new")),
    ];
    check(
        crawl(&fine, None, true).path(),
        "archive",
        expect![[r#"
            no broken pages
        "#]],
    );
    // A broken page stays broken even if no page links to it any more.
    let remaining = [
        page("/", None, "<a href=/x>x</a>"),
        page("/x", Some("/"), ""),
        page("/", None, "").in_round(2, Some("changed")),
        answered("/x", Some("/"), 404).in_round(2, Some("gone")),
        answered("/seed", None, 503).in_round(2, None),
    ];
    check(
        crawl(&remaining, None, true).path(),
        "archive",
        expect![[r#"
            2 broken pages, 0 links to them

            503  http://e.example/seed
                 no page links to it; it was a seed

            404  http://e.example/x
                 no page links to it any more; first found on http://e.example/
        "#]],
    );
    let nothing = tempfile::tempdir().unwrap();
    assert!(matches!(
        broken_links(nothing.path()),
        Err(RecordsError::NoCrawl { .. })
    ));
}

#[test]
fn unreadable_pages_are_counted() {
    let withheld = Made {
        withheld: true,
        ..page("/", None, "")
    };
    let made = [
        withheld,
        answered("/gone", Some("/"), 404),
        answered("http://seed.example/", None, 500),
        redirect("/to-seed", None, "http://seed.example/"),
    ];
    check(
        crawl(&made, None, true).path(),
        "archive",
        expect![[r#"
            2 broken pages, 2 links to them

            404  http://e.example/gone
                 on http://e.example/

            500  http://seed.example/
                 on http://e.example/to-seed

            1 page can't be read from the archive and may contain more links
        "#]],
    );
}

/// Creates a site with a loop of two redirects, a redirect to itself, a chain that is too long, and
/// a chain that ends.
fn loops() -> Vec<Made> {
    vec![
        page(
            "/",
            None,
            "<a href=/a>A</a> <a href=/self>self</a> <a href=/long>long</a> <a href=/fine>fine</a>",
        ),
        redirect("/a", Some("/"), "/b"),
        redirect("/b", Some("/a"), "/a").with_error("redirect_loop"),
        redirect("/self", Some("/"), "/self").with_error("redirect_loop"),
        redirect("/long", Some("/"), "/longer"),
        redirect("/longer", Some("/long"), "/longest").with_error("too_many_redirects"),
        redirect("/fine", Some("/"), "/"),
    ]
}

#[test]
fn redirects_without_an_end_are_broken() {
    check(
        crawl(&loops(), None, true).path(),
        "archive",
        expect![[r#"
            3 broken pages, 3 links to them

            301  http://e.example/a (redirect loop)
                 on http://e.example/  "A"

            301  http://e.example/longer (too many redirects)
                 on http://e.example/  "long"
                    via http://e.example/long

            301  http://e.example/self (redirect loop)
                 on http://e.example/  "self"
        "#]],
    );
}

/// The loop error is in the row of the URL that was fetched last, which may be a different URL of
/// the loop in each round.
#[test]
fn a_loop_is_named_by_the_same_page_in_each_round() {
    let report = |error: &[&str]| {
        let made: Vec<Made> = ["/a", "/b", "/c"]
            .into_iter()
            .zip(["/b", "/c", "/a"])
            .map(|(from, to)| match error.contains(&from) {
                true => redirect(from, Some("/"), to).with_error("redirect_loop"),
                false => redirect(from, Some("/"), to),
            })
            .chain([
                page("/", None, "<a href=/b>B</a> <a href=/in>in</a>"),
                redirect("/in", Some("/"), "/c"),
            ])
            .collect();
        let dir = crawl(&made, None, true);
        EveryLinkDisplay(&broken_links(dir.path()).unwrap()).to_string()
    };
    let first = report(&["/a"]);
    expect![[r#"
        1 broken page, 2 links to it

        301  http://e.example/a (redirect loop)
             on http://e.example/  "B"
                via http://e.example/b
                via http://e.example/c
             on http://e.example/  "in"
                via http://e.example/in
                via http://e.example/c
    "#]]
    .assert_eq(&first);
    for rows in [&["/b"][..], &["/c"], &["/a", "/b"], &["/c", "/b"]] {
        assert_eq!(report(rows), first, "{rows:?}");
    }
}

#[test]
fn targets_in_redirect_rows_need_no_archive() {
    let links: [LinkMade; 2] = [("/", "/old", Some("x"), None), ("/", "/gone", None, None)];
    let made = [
        page("/", None, ""),
        redirect("/old", Some("/"), "/gone"),
        answered("/gone", Some("/"), 404),
    ];
    check(
        crawl(&made, Some(&links), false).path(),
        "links.jsonl",
        expect![[r#"
            1 broken page, 2 links to it

            404  http://e.example/gone
                 on http://e.example/
                 on http://e.example/  "x"
                    via http://e.example/old
        "#]],
    );
}

/// Links in sitemaps and feeds are read from the archive as the crawl itself read them.
#[test]
fn all_links_of_archived_sitemaps_and_feeds_are_read() {
    let mut crawl = TestCrawlBuilder::new();
    let sitemap = "<urlset><url><loc>http://e.example/loc</loc>
        <xhtml:link rel=\"alternate\" hreflang=\"de\" href=\"http://e.example/de\"/>
        <image:image><image:loc>http://e.example/image</image:loc></image:image>
        <video:video><video:thumbnail_loc>http://e.example/still</video:thumbnail_loc>
        <video:content_loc>http://e.example/film</video:content_loc>
        <video:player_loc>http://e.example/player</video:player_loc></video:video></url></urlset>";
    crawl.gzip_file("http://e.example/map.gz", sitemap);
    let one = "http://e.example/line\n";
    crawl.page("http://e.example/map.txt", "text/plain", one);
    crawl.requested_as_sitemaps(&[url("/map.gz"), url("/map.txt")]);
    let feed = "<feed xmlns=\"http://www.w3.org/2005/Atom\"><link href=\"/home\"/>
        <link rel=\"next\" href=\"/next\"/><entry><title>News</title><link href=\"/entry\"/>
        <link rel=\"enclosure\" href=\"/sound\"/></entry></feed>";
    crawl.page("http://e.example/feed", "application/atom+xml", feed);
    let targets = [
        "loc", "de", "image", "still", "film", "player", "line", "home", "next", "entry", "sound",
    ];
    for target in targets {
        crawl.row(&url(&format!("/{target}")), &json!({"status": 404}));
    }
    let report = broken_links(crawl.finish().path()).unwrap();
    let lines = report.pages.iter().map(|page| {
        let links: Vec<_> = page.links.iter().map(|link| &link.page[17..]).collect();
        format!("{} of {}\n", &page.url[17..], links.join(", "))
    });
    expect![[r#"
        de of map.gz
        entry of feed
        film of map.gz
        home of feed
        image of map.gz
        line of map.txt
        loc of map.gz
        next of feed
        player of map.gz
        sound of feed
        still of map.gz
    "#]]
    .assert_eq(&lines.collect::<String>());
}

#[test]
fn a_host_that_is_spared_is_not_unreachable() {
    for pause in [
        "it sent a Retry-After",
        "it answered 429 or 503",
        "its robots.txt answered 429",
        "its robots.txt names another visit time",
        "its rate limit is used up",
        "it has quiet hours",
        "it is parked",
        "another crawl is fetching from it, since 2026-03-08T10:00:00Z",
    ] {
        assert!(is_wait(pause), "{pause}");
    }
    for failure in [
        "3 requests in a row failed: connect_timeout",
        "its robots.txt is unreachable",
        "robots.txt: connect_refused",
        "its robots.txt answered 503",
    ] {
        assert!(!is_wait(failure), "{failure}");
    }
}

#[test]
fn a_broken_page_is_one_line_with_its_first_sources() {
    let mut made = vec![page(
        "/",
        None,
        "<a href=/gone>1</a><a href=/gone>2</a><a href=/x>x</a>",
    )];
    made.extend(["/1", "/2", "/3", "/4"].map(|path| page(path, None, "<a href=/gone>a</a>")));
    made.push(answered("/gone", Some("/"), 404));
    made.push(answered("/x", Some("/"), 410));
    made.push(answered("/seed", None, 503));
    let links_found = broken_links(crawl(&made, None, true).path()).unwrap();
    expect![[r#"
        3 broken pages, 7 links to them

        404  http://e.example/gone  6 links on 5 pages: http://e.example/, http://e.example/1, http://e.example/2 and 2 more
        503  http://e.example/seed  no page links to it; it was a seed
        410  http://e.example/x  1 link on http://e.example/

        run with --all to list every link with its text
    "#]]
    .assert_eq(&links_found.to_string());
}
