//! Tests of a crawl's search index: its contents, and that it stays in step with the settled pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use crawl_engine::{
    ArchivePresence, EndReason, EngineError, IndexRebuildReason, IndexRebuildSettings,
    ProgressSnapshot, RevisitIntervals, StopUrgency, reindex,
};
use crawl_index::{IndexError, IndexSearcher, IndexedPage};
use crawl_testweb::{HttpAnswer, LinkMix, LogEntry, TestWeb};

use crate::support::Crawl;

fn indexed_crawl(web: &TestWeb) -> Crawl {
    let mut crawl = Crawl::of(web);
    crawl.config.index = true;
    crawl.config.revisits = RevisitIntervals {
        least: Duration::ZERO,
        most: Duration::ZERO,
    };
    crawl
}

fn index(crawl: &Crawl) -> IndexSearcher {
    IndexSearcher::open(&crawl.output("index")).unwrap()
}

/// Returns all pages that a search can find, by URL.
fn searchable(crawl: &Crawl) -> BTreeMap<String, IndexedPage> {
    let mut pages = BTreeMap::new();
    index(crawl)
        .each_page::<IndexError>(|page| {
            pages.insert(page.url.clone(), page);
            Ok(())
        })
        .unwrap();
    pages
}

/// Returns the paths of all pages that a search can find.
fn paths(crawl: &Crawl) -> Vec<String> {
    let path = |url: &String| url.splitn(4, '/').last().unwrap_or_default().to_owned();
    searchable(crawl).keys().map(path).collect()
}

fn web_of(pages: &[(&str, HttpAnswer)]) -> TestWeb {
    let links: String = pages
        .iter()
        .map(|(path, _)| format!("<li><a href={path}>link to {path}</a>"))
        .collect();
    let mut web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(
            0,
            "/",
            HttpAnswer::html(&format!("<title>Home</title>{links}")),
        );
    for (path, answer) in pages {
        web = web.script(0, path, answer.clone());
    }
    web.start()
}

fn text(title: &str, words: &str) -> HttpAnswer {
    HttpAnswer::html(&format!("<title>{title}</title><main><p>{words}</main>"))
}

#[test]
fn pages_are_searchable_or_their_rows_state_why_not() {
    let meta = |name: &str, content: &str| {
        let meta = format!("<meta name={name} content='{content}'>");
        HttpAnswer::html(&format!(
            "{meta}<title>Kept out</title><p>Words of {name} {content}."
        ))
    };
    let web = web_of(&[
        ("/a", text("Apples", "Apples are red.")),
        ("/a-longer-twin", text("Apples", "Apples are red.")),
        ("/noindex", meta("robots", "noindex")),
        ("/none", meta("robots", "none")),
        (
            "/header",
            text("Header", "Words.").header("x-robots-tag", "noindex"),
        ),
        ("/over", meta("robots", "unavailable_after: 2001-01-01")),
        (
            "/usage",
            text("Usage", "Words.").header("content-usage", "search=n"),
        ),
        ("/master", meta("url", "http://127.0.0.1/elsewhere")),
        (
            "/canonical",
            HttpAnswer::html("<link rel=canonical href=/a><p>Words."),
        ),
        (
            "/linked",
            text("L", "Words.").header("link", "</a>; rel=canonical"),
        ),
        (
            "/comment",
            HttpAnswer::html("<title>Tea</title><p>Green.<link rel=canonical href=/missing>"),
        ),
        ("/lost", text("404 Not Found", "Sorry.")),
        ("/moved", HttpAnswer::redirect(301, "/a")),
        (
            "/image",
            HttpAnswer::of(200)
                .header("content-type", "image/png")
                .body("PNG"),
        ),
        ("/missing", HttpAnswer::of(404)),
        ("/archive", meta("robots", "noarchive")),
    ]);
    let crawl = indexed_crawl(&web);
    let summary = crawl.run().unwrap();
    assert_eq!(paths(&crawl), ["", "a", "archive", "comment", "master"]);
    let indexed = summary.indexed.unwrap();
    assert_eq!((indexed.pages, indexed.duplicates), (Some(5), 1));
    assert_eq!(indexed.canonical_elsewhere, 1);
    let reasons: BTreeMap<_, _> = crawl
        .pages()
        .into_iter()
        .map(|row| {
            let reason = row.indexed.unwrap_or_default();
            let path = row.url.splitn(4, '/').last().unwrap_or_default().to_owned();
            (
                path,
                reason.split(':').next().unwrap_or_default().to_owned(),
            )
        })
        .collect();
    for (path, why) in [
        ("a", "yes"),
        ("a-longer-twin", "yes"),
        ("noindex", "noindex"),
        ("none", "noindex"),
        ("header", "noindex"),
        ("over", "unavailable_after"),
        ("usage", "usage"),
        // This page is indexed although it names another page as the canonical one, because that
        // page is outside the crawl.
        ("master", "yes"),
        ("canonical", "canonical"),
        ("linked", "canonical"),
        // This page is indexed, because its canonical link does not count: the link is in the body,
        // where a visitor may have written it.
        ("comment", "yes"),
        ("lost", "soft_404"),
        ("moved", "redirect"),
        ("image", "no_page"),
        ("missing", "not_found"),
        ("archive", "yes"),
    ] {
        assert_eq!(reasons.get(path).map(String::as_str), Some(why), "{path}");
    }
    // The text of a link on the home page counts as search text of the link's target.
    let apples = &searchable(&crawl)[&web.url(0, "/a")];
    assert_eq!(
        (apples.linked_from, apples.anchors.as_slice()),
        (1, &["link to /a".to_owned()][..])
    );
}

#[test]
fn later_rounds_update_and_remove() {
    let web = web_of(&[
        ("/changes", text("Changes", "Before.")),
        ("/goes", text("Goes", "Words of goes.")),
        ("/hides", text("Hides", "Words of hides.")),
        ("/barred", text("Barred", "Words of barred.")),
        ("/fails", text("Fails", "Words of fails.")),
        (
            "/stays",
            text("Stays", "Words of stays.").header("etag", "\"1\""),
        ),
        (
            "/hides-unchanged",
            text("H", "Words of header.").header("etag", "\"2\""),
        ),
    ]);
    let mut crawl = indexed_crawl(&web);
    crawl.config.robots_times.most = Duration::from_micros(1);
    crawl.run().unwrap();
    assert_eq!(paths(&crawl).len(), 8);
    web.script(0, "/changes", text("Changes", "After."));
    web.script(0, "/goes", HttpAnswer::of(410));
    web.script(
        0,
        "/hides",
        text("Hides", "Now.").header("x-robots-tag", "noindex"),
    );
    web.script(
        0,
        "/robots.txt",
        HttpAnswer::text("User-agent: *\nDisallow: /barred\n"),
    );
    web.script(0, "/fails", HttpAnswer::of(500));
    web.script(0, "/new", text("New", "Words of new."));
    let unchanged = HttpAnswer::of(304).header("x-robots-tag", "noindex");
    web.script(0, "/hides-unchanged", unchanged);
    web.script(
        0,
        "/",
        HttpAnswer::html("<title>Home</title><a href=/new>new</a>"),
    );
    crawl.config.recrawl = true;
    crawl.run().unwrap();
    assert_eq!(paths(&crawl), ["", "changes", "fails", "new", "stays"]);
    assert_eq!(searchable(&crawl)[&web.url(0, "/changes")].text, "After.");
    // The home page no longer links to this page, so the link text of the first round is gone.
    assert_eq!(searchable(&crawl)[&web.url(0, "/changes")].anchors.len(), 0);
    assert_matches_archive(&crawl);
}

#[test]
fn a_page_that_redirects_to_a_login_stays_in_the_index() {
    let login = HttpAnswer::html(
        "<title>Log in</title><form method=post><input name=u><input type=password name=p></form>",
    );
    let web = web_of(&[
        ("/hop", text("Hop", "Words of hop.")),
        ("/login", login.clone()),
        ("/member", text("Member", "Words of member.")),
        ("/moved", text("Moved", "Words of moved.")),
        ("/staff", text("Staff", "Words of staff.")),
    ]);
    for n in 0..10 {
        let page = text("Filler", &format!("Words of filler {n}."));
        web.script(0, &format!("/filler/{n}"), page);
    }
    let fillers: String = (0..10)
        .map(|n| format!("<a href=/filler/{n}>f</a>"))
        .collect();
    web.script(
        0,
        "/hop",
        HttpAnswer::html(&format!("<title>Hop</title><p>Hop {fillers}")),
    );
    let mut crawl = indexed_crawl(&web);
    crawl.run().unwrap();
    let all = paths(&crawl);
    assert_eq!(all.len(), 15);
    web.script(0, "/hop", HttpAnswer::redirect(302, "/login?next=hop"));
    web.script(0, "/login?next=hop", login);
    web.script(0, "/member", HttpAnswer::redirect(302, "/login"));
    web.script(0, "/moved", HttpAnswer::redirect(301, "/nothing"));
    web.script(0, "/staff", HttpAnswer::redirect(302, "/hop"));
    crawl.config.recrawl = true;
    // In the second round, the servers send the same redirects again.
    for _ in 0..2 {
        let indexed = crawl.run().unwrap().indexed.unwrap();
        let left_out = indexed.left_out.get("redirect").copied();
        let expected = all.iter().filter(|path| *path != "moved");
        assert!(expected.eq(paths(&crawl).iter()), "{:?}", paths(&crawl));
        assert_eq!((left_out, indexed.kept.len()), (Some(1), 0));
        assert_matches_archive(&crawl);
    }
    let member = text("Member", "New words of member.");
    web.script(0, "/member", member);
    web.script(0, "/hop", HttpAnswer::of(404));
    crawl.run().unwrap();
    let expected = all
        .iter()
        .filter(|path| !["hop", "moved", "staff"].contains(&path.as_str()));
    assert!(expected.eq(paths(&crawl).iter()), "{:?}", paths(&crawl));
    assert_eq!(
        searchable(&crawl)[&web.url(0, "/member")].text,
        "New words of member."
    );
    assert_matches_archive(&crawl);
}

/// Returns the paths of conditional requests.
fn conditional(web: &TestWeb) -> BTreeSet<String> {
    let log = web.take_log().into_iter();
    let is_conditional = |entry: &LogEntry| entry.header("if-none-match").is_some();
    log.filter(is_conditional).map(|entry| entry.path).collect()
}

#[test]
fn header_fields_of_a_304_apply_to_the_stored_page() {
    let limits = || text("A", "Words of limits.").header("etag", "\"1\"");
    let names = || text("B", "Words of names.").header("etag", "\"2\"");
    let tag = ("x-robots-tag", "max-snippet: 50");
    let same = text("C", "Words of same.").header("etag", "\"3\"");
    let web = web_of(&[
        ("/limits", limits()),
        ("/names", names()),
        ("/same", same.header(tag.0, tag.1)),
    ]);
    let max_snippet = |crawl: &Crawl, path: &str| searchable(crawl)[&web.url(0, path)].max_snippet;
    let mut crawl = indexed_crawl(&web);
    crawl.run().unwrap();
    assert_eq!(paths(&crawl), ["", "limits", "names", "same"]);
    assert_eq!(max_snippet(&crawl, "/limits"), None);
    let unchanged = |name: &str, value: &str| HttpAnswer::of(304).header(name, value);
    web.script(0, "/limits", unchanged("x-robots-tag", "nosnippet"));
    let canonical = unchanged("link", "</same>; rel=\"canonical\"");
    web.script(0, "/names", canonical);
    web.script(0, "/same", unchanged(tag.0, tag.1));
    crawl.config.recrawl = true;
    crawl.run().unwrap();
    assert_eq!(paths(&crawl), ["", "limits", "same"]);
    assert_eq!(max_snippet(&crawl, "/limits"), Some(0));
    assert_eq!(max_snippet(&crawl, "/same"), Some(50));
    assert_matches_archive(&crawl);
    // Once its header fields have changed, a page is fetched in full, so that its own directives
    // count again.
    web.script(0, "/limits", limits());
    web.script(0, "/names", names().header("x-robots-tag", "nosnippet"));
    web.take_log();
    crawl.run().unwrap();
    assert_eq!(conditional(&web), BTreeSet::from(["/same".to_owned()]));
    assert_eq!(paths(&crawl), ["", "limits", "names", "same"]);
    assert_eq!(max_snippet(&crawl, "/limits"), None);
    assert_eq!(max_snippet(&crawl, "/names"), Some(0));
    assert_matches_archive(&crawl);
}

#[test]
fn without_an_archive_new_header_fields_of_a_304_apply_at_the_next_visit() {
    let page = || text("A", "Words.").header("etag", "\"1\"");
    let web = web_of(&[("/a", page())]);
    let mut crawl = indexed_crawl(&web);
    crawl.config.warc = None;
    crawl.run().unwrap();
    let nosnippet = |answer: HttpAnswer| answer.header("x-robots-tag", "nosnippet");
    web.script(0, "/a", nosnippet(HttpAnswer::of(304)));
    crawl.config.recrawl = true;
    crawl.run().unwrap();
    assert_eq!(paths(&crawl), ["", "a"]);
    web.script(0, "/a", nosnippet(page()));
    web.take_log();
    crawl.run().unwrap();
    assert_eq!(conditional(&web), BTreeSet::new());
    assert_eq!(searchable(&crawl)[&web.url(0, "/a")].max_snippet, Some(0));
}

#[test]
fn a_page_that_was_never_fetched_is_not_left_out_of_the_index() {
    let web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .start();
    web.script(
        0,
        "/robots.txt",
        HttpAnswer::text("User-agent: *\nDisallow: /barred\n"),
    );
    web.script(
        0,
        "/",
        HttpAnswer::html("<title>Home</title><a href=/barred>x</a>"),
    );
    let mut crawl = indexed_crawl(&web);
    for round in [1, 2, 3] {
        let summary = crawl.run().unwrap();
        let left_out = summary.indexed.unwrap().left_out;
        assert_eq!((summary.round, left_out), (round, BTreeMap::new()));
        crawl.config.recrawl = true;
    }
}

/// Checks that an index built from the archive equals the index that was updated during the crawl.
fn assert_matches_archive(crawl: &Crawl) {
    let grown = searchable(crawl);
    let rules = IndexRebuildSettings::of(&crawl.config);
    let mut progress = 0;
    let done = reindex(&crawl.config.output, &rules, &|| false, &mut |read| {
        progress = read;
    })
    .unwrap();
    assert!(done.pages > 0 && progress >= done.pages);
    let built = searchable(crawl);
    let urls = |pages: &BTreeMap<String, IndexedPage>| pages.keys().cloned().collect::<Vec<_>>();
    assert_eq!(urls(&built), urls(&grown));
    for (url, page) in built {
        assert_eq!(page, grown[&url], "{url}");
    }
}

#[test]
fn an_index_built_from_the_archive_is_the_same() {
    let web = TestWeb::builder().seed(5).pages(60).start();
    let crawl = indexed_crawl(&web);
    let summary = crawl.run().unwrap();
    assert!(summary.indexed.unwrap().pages > Some(30));
    assert_matches_archive(&crawl);
    // The crawl continues after the rebuild, and updates the rebuilt index.
    let mut again = crawl;
    again.config.recrawl = true;
    again.run().unwrap();
    assert_matches_archive(&again);
}

#[test]
fn a_page_is_indexed_under_its_own_url_where_its_canonical_url_leads_to_no_indexed_page() {
    let web = TestWeb::builder().pages(1).mix(LinkMix::plain()).start();
    let named = |to: &str, words: &str| {
        HttpAnswer::html(&format!(
            "<link rel=canonical href={to}><title>T</title><p>Words of {words}."
        ))
    };
    let links = [
        "back", "gone", "fails", "circle-a", "circle-b", "barred", "moved", "first", "hidden",
    ];
    let links: String = links
        .iter()
        .map(|to| format!("<a href=/{to}>{to}</a> "))
        .collect();
    for (path, answer) in [
        (
            "/robots.txt",
            HttpAnswer::text("User-agent: *\nDisallow: /private\n"),
        ),
        (
            "/",
            HttpAnswer::html(&format!("<title>Home</title><p>Home {links}")),
        ),
        ("/back", named("/back.html", "back")),
        ("/back.html", HttpAnswer::redirect(301, "/back")),
        ("/gone", named("/none", "gone")),
        ("/none", HttpAnswer::of(404)),
        ("/fails", named("/error", "fails")),
        ("/error", HttpAnswer::of(500)),
        ("/circle-a", named("/circle-b", "one side")),
        ("/circle-b", named("/circle-a", "the other side")),
        ("/barred", named("/private/x", "barred")),
        ("/moved", named("/old", "moved")),
        ("/old", HttpAnswer::redirect(301, "/new")),
        (
            "/new",
            HttpAnswer::html("<title>New</title><p>Words of the new one."),
        ),
        ("/first", named("/second", "first")),
        ("/second", named("/too/deep", "second")),
        ("/hidden", named("/noindex", "hidden")),
        (
            "/noindex",
            HttpAnswer::html("<meta name=robots content=noindex><p>No."),
        ),
    ] {
        web.script(0, path, answer);
    }
    let mut crawl = indexed_crawl(&web);
    crawl.config.scope.exclude = vec!["^/too/".to_owned()];
    // `/error` fails. If a busy machine makes another request fail too, wait for the host.
    crawl.config.wait_unreachable = Duration::from_mins(2);
    assert_eq!(crawl.run().unwrap().ended, EndReason::Finished);
    let expected = [
        "", "back", "barred", "circle-a", "fails", "gone", "hidden", "new", "second",
    ];
    assert_eq!(paths(&crawl), expected);
    assert_matches_archive(&crawl);
    // Once the canonical page exists, it is indexed in place of the page that names it.
    web.script(
        0,
        "/none",
        HttpAnswer::html("<title>There</title><p>Words that were missing."),
    );
    crawl.config.recrawl = true;
    crawl.run().unwrap();
    let expected = [
        "", "back", "barred", "circle-a", "fails", "hidden", "new", "none", "second",
    ];
    assert_eq!(paths(&crawl), expected);
    assert_matches_archive(&crawl);
}

#[test]
fn settled_pages_are_indexed_however_often_a_run_is_cut_off() {
    let web = TestWeb::builder().seed(8).pages(80).start();
    let crawl = indexed_crawl(&web);
    let cuts: [fn(&ProgressSnapshot) -> StopUrgency; 3] = [
        |progress| {
            if progress.pages >= 10 {
                StopUrgency::Now
            } else {
                StopUrgency::No
            }
        },
        |progress| {
            if progress.pages >= 30 {
                StopUrgency::Drain
            } else {
                StopUrgency::No
            }
        },
        |progress| {
            if progress.pages >= 50 {
                StopUrgency::Now
            } else {
                StopUrgency::No
            }
        },
    ];
    for judge in cuts {
        crawl.run_until(judge).unwrap();
        let rows: Vec<_> = crawl.pages().into_iter().map(|row| row.url).collect();
        // Every page in the index has a row.
        assert!(searchable(&crawl).keys().all(|url| rows.contains(url)));
    }
    let summary = crawl.run().unwrap();
    let rows = crawl.pages().into_iter();
    let indexed = rows
        .filter(|row| row.indexed.as_deref() == Some("yes"))
        .count() as u64;
    let index = summary.indexed.unwrap();
    assert_eq!(index.pages, Some(indexed - index.duplicates));
    assert_eq!(searchable(&crawl).len() as u64, indexed - index.duplicates);
    let log = fs::metadata(crawl.output("state/indexing.jsonl")).unwrap();
    assert_eq!(log.len(), 0, "what was read to its end is let go");
    assert_matches_archive(&crawl);
}

#[test]
fn an_index_that_is_lost_or_was_off_is_rebuilt() {
    let web = TestWeb::builder().seed(5).pages(20).start();
    let mut crawl = indexed_crawl(&web);
    crawl.run().unwrap();
    let all = paths(&crawl);
    fs::remove_dir_all(crawl.output("index")).unwrap();
    crawl.run().unwrap();
    assert_eq!(paths(&crawl), all);
    // This run has no index, so its pages are not in the log from which the index is updated.
    crawl.config.index = false;
    crawl.config.recrawl = true;
    crawl.run().unwrap();
    crawl.config.index = true;
    crawl.config.recrawl = false;
    crawl.run().unwrap();
    assert_eq!(paths(&crawl), all);
    assert_matches_archive(&crawl);
}

#[test]
fn without_an_archive_there_is_nothing_to_build_it_from() {
    let web = TestWeb::builder().seed(5).pages(20).start();
    let mut crawl = indexed_crawl(&web);
    crawl.config.warc = None;
    // The index grows without an archive, too.
    let summary = crawl.run().unwrap();
    assert!(summary.indexed.unwrap().pages > Some(5));
    fs::remove_dir_all(crawl.output("index")).unwrap();
    let refused = crawl.run().unwrap_err();
    assert!(
        matches!(refused, EngineError::NoArchive { .. }),
        "{refused}"
    );
}

#[test]
fn an_index_of_another_format_is_refused_until_rebuilt() {
    let web = TestWeb::builder().seed(5).pages(10).start();
    let crawl = indexed_crawl(&web);
    crawl.run().unwrap();
    fs::write(crawl.output("index/format.json"), "{\"format\":0}").unwrap();
    let refused = crawl.run().unwrap_err();
    let is_named = matches!(refused, EngineError::Index(IndexError::OtherFormat { .. }));
    assert!(is_named, "{refused}");
    let rules = IndexRebuildSettings::of(&crawl.config);
    reindex(&crawl.config.output, &rules, &|| false, &mut |_| {}).unwrap();
    crawl.run().unwrap();
    assert_matches_archive(&crawl);
}

/// Damages a file of an index. If `how` is 0, flips one bit; if 1, cuts off the second half;
/// otherwise empties the file.
fn damage(file: &std::path::Path, how: usize) {
    let mut bytes = fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    match how {
        0 => bytes[middle] ^= 0x10,
        1 => bytes.truncate(middle),
        _ => bytes.clear(),
    }
    fs::write(file, bytes).unwrap();
}

/// Returns the files of an index, except lock files. The key is the extension of the name, or the
/// whole name of a JSON file.
fn files(crawl: &Crawl) -> BTreeMap<String, std::path::PathBuf> {
    let entries = fs::read_dir(crawl.output("index")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_none_or(|end| end != "lock"));
    let ending = |path: std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let ending = name.rsplit('.').next().unwrap_or_default().to_owned();
        match ending == "json" {
            true => (name, path),
            false => (ending, path),
        }
    };
    paths.map(ending).collect()
}

#[test]
fn a_damaged_index_is_rebuilt_during_the_crawl() {
    let web = web_of(&[
        ("/a", text("Apples", "Apples are red.")),
        ("/b", text("Bananas", "Bananas are yellow.")),
        ("/changes", text("Changes", "Before.")),
    ]);
    let mut crawl = indexed_crawl(&web);
    crawl.run().unwrap();
    crawl.config.recrawl = true;
    let names: Vec<String> = files(&crawl).into_keys().collect();
    let (mut round, mut deletions) = (1, 0);
    for name in names.iter().map(String::as_str).chain(["del"]) {
        for how in 0..3 {
            // The file may not exist, since files of deletions are created and removed as the index
            // changes.
            let Some(file) = files(&crawl).remove(name) else {
                continue;
            };
            deletions += usize::from(name == "del");
            damage(&file, how);
            round += 1;
            let after = format!("After {round}.");
            web.script(0, "/changes", text("Changes", &after));
            let summary = crawl.run().unwrap();
            let index = summary.indexed.unwrap();
            assert_eq!((index.pages, index.fault), (Some(4), None), "{name} {how}");
            assert_eq!(paths(&crawl), ["", "a", "b", "changes"], "{name} {how}");
            assert_eq!(searchable(&crawl)[&web.url(0, "/changes")].text, after);
            assert_eq!(crawl.pages().len(), 4 * round, "{name} {how}");
        }
    }
    assert!(deletions > 0, "{names:?}");
    assert_matches_archive(&crawl);
}

#[test]
fn a_damaged_index_without_an_archive_stops_no_crawl() {
    let web = web_of(&[("/a", text("Apples", "Apples are red."))]);
    let mut crawl = indexed_crawl(&web);
    crawl.config.warc = None;
    crawl.config.recrawl = true;
    crawl.run().unwrap();
    damage(&files(&crawl)["store"], 0);
    // The damage is reported again at each start.
    for round in 2..4 {
        let summary = crawl.run().unwrap();
        let (fault, has_archive) = summary.indexed.unwrap().fault.unwrap();
        assert!(
            matches!(&fault, IndexRebuildReason::Damaged(why) if why.ends_with("is not as it was written")),
            "{fault}"
        );
        assert_eq!(has_archive, ArchivePresence::No);
        assert_eq!(crawl.pages().len(), 2 * round);
    }
}

#[test]
fn rows_and_files_are_not_trusted_when_an_index_is_built() {
    let web = TestWeb::builder().seed(5).pages(20).start();
    let crawl = indexed_crawl(&web);
    let summary = crawl.run().unwrap();
    let before = summary.indexed.unwrap();
    let path = crawl.output("pages.jsonl");
    let mut rows = fs::read_to_string(&path).unwrap();
    let indexed: Vec<_> = crawl
        .pages()
        .into_iter()
        .filter(|row| row.indexed.as_deref() == Some("yes"))
        .collect();
    let mut change = |url: &str, from: &str, to: &str| {
        assert_eq!(from.len(), to.len(), "committed lengths stay");
        let begin = rows.find(&format!("{{\"url\":\"{url}\"")).unwrap();
        let at = begin + rows[begin..].find(from).unwrap();
        rows.replace_range(at..at + from.len(), to);
    };
    // Damage two rows. In one, the name of the archive file becomes a path. In the other, zeros
    // replace the URL, as after a power cut.
    change(&indexed[1].url, "\"file\":\"crawl", "\"file\":\"../wl");
    let zeros = "\0".repeat(indexed[2].url.len());
    change(&indexed[2].url, &indexed[2].url, &zeros);
    fs::write(&path, rows).unwrap();
    let rules = IndexRebuildSettings::of(&crawl.config);
    let done = reindex(&crawl.config.output, &rules, &|| false, &mut |_| {}).unwrap();
    assert_eq!(done.left_out["archive_name_foreign"], 1);
    assert_eq!(done.left_out["row_unreadable"], 1);
    assert_eq!(
        done.pages + done.duplicates,
        before.pages.unwrap() + before.duplicates - 2
    );

    // Replace an archive file by a FIFO that nothing ever writes into.
    let warc = &indexed[0].warc.as_ref().unwrap().file;
    let warc = crawl.output("archive").join(warc);
    fs::remove_file(&warc).unwrap();
    nix::unistd::mkfifo(&warc, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let refused = reindex(&crawl.config.output, &rules, &|| false, &mut |_| {}).unwrap_err();
    let message = "` is a FIFO, where a regular file should be";
    assert!(refused.to_string().ends_with(message), "{refused}");
    fs::remove_file(&warc).unwrap();
    fs::write(&warc, "").unwrap();
    let done = reindex(&crawl.config.output, &rules, &|| false, &mut |_| {}).unwrap();
    assert_eq!(done.pages, 0);
    assert!(done.left_out["archive_unreadable"] > 0);
}

#[test]
fn a_stopped_build_keeps_the_old_index() {
    let web = TestWeb::builder().seed(5).pages(10).start();
    let crawl = indexed_crawl(&web);
    crawl.run().unwrap();
    let before = searchable(&crawl);
    let rules = IndexRebuildSettings::of(&crawl.config);
    let done = reindex(&crawl.config.output, &rules, &|| true, &mut |_| {}).unwrap();
    assert!(done.is_stopped);
    assert_eq!(searchable(&crawl), before);
    assert!(!crawl.output("index.new").exists());
}
