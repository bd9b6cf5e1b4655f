//! Tests of ways to find URLs other than links: images and other parts of pages, feeds, headers,
//! forms and sitemaps.

use std::collections::BTreeSet;

use crawl_engine::{EmbeddedResourcePolicy, RunMode};
use crawl_testweb::{HttpAnswer, LinkMix, TestWeb, TestWebBuilder};

use crate::support::Crawl;

/// Returns hosts that give only scripted answers.
fn bare(hosts: u32) -> TestWebBuilder {
    let mut spec = TestWeb::builder()
        .hosts(hosts)
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false);
    for host in 0..hosts {
        spec = spec
            .script(host, "/robots.txt", HttpAnswer::of(404))
            .script(host, "/sitemap.xml", HttpAnswer::of(404));
    }
    spec
}

fn css(text: &str) -> HttpAnswer {
    HttpAnswer::of(200)
        .header("content-type", "text/css")
        .body(text)
}

fn xml(kind: &str, text: &str) -> HttpAnswer {
    HttpAnswer::of(200).header("content-type", kind).body(text)
}

/// Returns the paths of all URLs that have a row, by host.
fn listed_paths(web: &TestWeb, crawl: &Crawl) -> BTreeSet<(u32, String)> {
    let place = |url: &str| {
        let hosts = 0..web.hosts();
        let mut roots = hosts.map(|host| (host, web.url(host, "")));
        let (host, root) = roots.find(|(_, root)| url.starts_with(root)).unwrap();
        (host, url[root.len()..].to_owned())
    };
    crawl.statuses().keys().map(|url| place(url)).collect()
}

fn check(web: &TestWeb, crawl: &Crawl, expected: &[(u32, &str)]) {
    crawl.run().unwrap();
    let expected = expected
        .iter()
        .map(|(host, path)| (*host, (*path).to_owned()));
    assert_eq!(listed_paths(web, crawl), expected.collect());
}

fn with_parts() -> TestWeb {
    let web = bare(2).start();
    let away = |path| web.url(1, path);
    let page = format!(
        "<link rel=stylesheet href=/s.css><script src={}></script><img src=/i.png srcset='/i2.png 2x'>\
         <a href=/p>p</a><style>body {{ background: url(/b.png) }}</style>",
        away("/x.js")
    );
    web.script(0, "/", HttpAnswer::html(&page));
    web.script(0, "/p", HttpAnswer::html("<img src=/p.png>"));
    web.script(
        0,
        "/s.css",
        css("@import '/t.css'; a { src: url(/f.woff2) }"),
    );
    web.script(
        0,
        "/t.css",
        css(&format!("b {{ src: url({}) }}", away("/g.woff2"))),
    );
    for path in ["/i.png", "/i2.png", "/b.png", "/p.png", "/f.woff2"] {
        web.script(0, path, xml("image/png", "x"));
    }
    for path in ["/x.js", "/g.woff2"] {
        web.script(1, path, xml("font/woff2", "x"));
    }
    web
}

#[test]
fn a_guessed_sitemap_that_is_a_page_does_not_count() {
    let web = bare(1).start();
    web.script(
        0,
        "/",
        HttpAnswer::html("<title>a page</title><a href=/p>p</a>"),
    );
    web.script(0, "/p", HttpAnswer::html("<title>another</title>"));
    // The server answers a request for the sitemap with an ordinary page, as some servers do for
    // every URL.
    let any = "<title>Welcome</title><a href=/of-the-welcome>x</a>";
    web.script(0, "/sitemap.xml", HttpAnswer::html(any));
    let mut crawl = Crawl::of(&web);
    crawl.config.index = true;
    check(&web, &crawl, &[(0, "/"), (0, "/p")]);
    let requests = crawl.requests();
    assert!(
        requests
            .iter()
            .any(|row| row.purpose == "sitemap" && row.status == Some(200))
    );
    // The answer to the guessed URL is archived although it has no row.
    assert!(crawl.archive_holds("Welcome"));
    crawl.config.recrawl = true;
    assert_eq!(crawl.run().unwrap().indexed.unwrap().pages, Some(2));
    assert!(crawl.pages().iter().all(|row| !row.url.ends_with(".xml")));
    // A real sitemap is read and has a row. Once it no longer exists, its next visit has a row with
    // that result.
    let urls = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>/q</loc></url></urlset>";
    web.script(0, "/sitemap.xml", xml("application/xml", urls));
    crawl.run().unwrap();
    web.script(0, "/sitemap.xml", HttpAnswer::html(any));
    crawl.run().unwrap();
    let rows = crawl.pages();
    let changes = rows.iter().filter(|row| row.url.ends_with(".xml"));
    let changes: Vec<_> = changes.map(|row| row.change.as_deref()).collect();
    assert_eq!(changes, [Some("new"), Some("gone")]);
}

#[test]
fn parts_of_pages_are_fetched_if_configured() {
    let web = with_parts();
    let mut crawl = Crawl::of(&web);
    crawl.config.fetch.allow_private = true;
    check(&web, &crawl, &[(0, "/"), (0, "/p")]);

    let own = [
        (0, "/"),
        (0, "/p"),
        (0, "/s.css"),
        (0, "/t.css"),
        (0, "/i.png"),
        (0, "/i2.png"),
        (0, "/b.png"),
        (0, "/p.png"),
        (0, "/f.woff2"),
    ];
    let mut crawl = Crawl::of(&web);
    crawl.config.fetch.allow_private = true;
    crawl.config.resources = EmbeddedResourcePolicy::Own;
    // An image or a style sheet has the depth of its page, so a depth limit of 1 does not exclude
    // it.
    crawl.config.scope.max_depth = Some(1);
    check(&web, &crawl, &own);
    assert_eq!(crawl.excluded()[&web.url(1, "/x.js")], "scope");

    let mut crawl = Crawl::of(&web);
    crawl.config.fetch.allow_private = true;
    crawl.config.resources = EmbeddedResourcePolicy::All;
    let all: Vec<_> = own
        .into_iter()
        .chain([(1, "/x.js"), (1, "/g.woff2")])
        .collect();
    check(&web, &crawl, &all);
    let purposes = crawl
        .requests()
        .into_iter()
        .filter(|row| row.purpose == "resource");
    assert_eq!(purposes.count(), 9);
    // The robots.txt of another host is fetched before any image or script on that host.
    assert_eq!(web.log_of(1)[0].path, "/robots.txt");
}

#[test]
fn a_part_that_is_excluded_is_left_alone() {
    let web = with_parts();
    let mut crawl = Crawl::of(&web);
    crawl.config.fetch.allow_private = true;
    crawl.config.resources = EmbeddedResourcePolicy::All;
    crawl.config.scope.exclude = vec![r"\.png$".to_owned(), r"\.js$".to_owned()];
    let expected = [
        (0, "/"),
        (0, "/p"),
        (0, "/s.css"),
        (0, "/t.css"),
        (0, "/f.woff2"),
        (1, "/g.woff2"),
    ];
    check(&web, &crawl, &expected);
}

const RSS: &str = "<rss version='2.0'><channel><title>News</title><link>/home</link>\
    <item><link>/one</link></item><item><link>http://elsewhere.example/</link></item></channel></rss>";
const ATOM: &str = "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='/blog/'><title>Blog</title>\
    <link rel='next' href='page2.atom'/><entry><link href='two'/></entry></feed>";
const JSON: &str = r#"{"version": "https://jsonfeed.org/version/1.1", "title": "J", "items": [{"id": "1", "url": "/three"}]}"#;

fn with_feeds() -> TestWeb {
    let link = |kind: &str, href: &str| {
        format!("<link rel=alternate type=application/{kind} href={href}>")
    };
    let page = [
        link("rss+xml", "/rss"),
        link("atom+xml", "/atom"),
        link("feed+json", "/json"),
    ];
    bare(1)
        .script(0, "/", HttpAnswer::html(&page.concat()))
        .script(0, "/rss", xml("application/rss+xml", RSS))
        .script(0, "/atom", xml("application/xml", ATOM))
        .script(0, "/json", xml("application/feed+json", JSON))
        .script(
            0,
            "/blog/page2.atom",
            xml("text/xml", "<feed xmlns='http://www.w3.org/2005/Atom'/>"),
        )
        .start()
}

#[test]
fn feeds_lead_to_their_entries() {
    let web = with_feeds();
    let mut crawl = Crawl::of(&web);
    // Entries of a feed have the same depth as the feed.
    crawl.config.scope.max_depth = Some(1);
    let listed = [
        (0, "/"),
        (0, "/rss"),
        (0, "/atom"),
        (0, "/json"),
        (0, "/home"),
        (0, "/one"),
        (0, "/blog/two"),
        (0, "/blog/page2.atom"),
        (0, "/three"),
    ];
    check(&web, &crawl, &listed);
    assert_eq!(
        crawl.page(&web.url(0, "/rss")).title.as_deref(),
        Some("News")
    );
    assert_eq!(crawl.excluded()["http://elsewhere.example/"], "scope");

    let mut crawl = Crawl::of(&web);
    crawl.config.feeds = false;
    check(&web, &crawl, &[(0, "/")]);
}

#[test]
fn links_in_headers_are_followed() {
    let answer = HttpAnswer::of(200)
        .header("content-type", "application/pdf")
        .header(
            "link",
            "</next>; rel=next, </barred>; rel=\"next nofollow\", </font>; rel=preload",
        )
        .header("refresh", "3; url=/later")
        .body("%PDF-1.7");
    let web = bare(1)
        .script(0, "/", answer)
        .script(
            0,
            "/next",
            HttpAnswer::html("n").header("link", "</last>; rel=last"),
        )
        .script(
            0,
            "/later",
            HttpAnswer::html("<meta name=robots content=nofollow>")
                .header("link", "</no>; rel=next"),
        )
        .start();
    let crawl = Crawl::of(&web);
    check(
        &web,
        &crawl,
        &[(0, "/"), (0, "/next"), (0, "/later"), (0, "/last")],
    );
    let excluded = crawl.excluded();
    assert_eq!(excluded[&web.url(0, "/barred")], "nofollow");
    assert_eq!(excluded[&web.url(0, "/no")], "meta");
}

#[test]
fn a_page_with_another_canonical_url_has_it_in_its_row() {
    let page = |href: &str| HttpAnswer::html(&format!("<link rel=canonical href='{href}'>a"));
    let web = bare(1)
        .script(0, "/", HttpAnswer::html("<a href=/a>a</a><a href=/c>c</a><a href=/d>d</a>"))
        .script(0, "/a", page("/b"))
        .script(0, "/b", page("/b"))
        .script(
            0,
            "/c",
            HttpAnswer::html("c").header("Link", "</b>; rel=canonical"),
        )
        // In a head, `<meta name=url>` states the canonical URL. Here it is in the body. It doesn't
        // count, because a visitor may have written it.
        .script(0, "/d", HttpAnswer::html("d <meta name=url content=/b>"))
        .start();
    let crawl = Crawl::of(&web);
    let paths = [(0, "/"), (0, "/a"), (0, "/c"), (0, "/d"), (0, "/b")];
    check(&web, &crawl, &paths);
    let canonical = |path| crawl.page(&web.url(0, path)).canonical;
    assert_eq!(canonical("/a"), Some(web.url(0, "/b")));
    assert_eq!(canonical("/b"), None);
    assert_eq!(canonical("/c"), Some(web.url(0, "/b")));
    assert_eq!(canonical("/d"), None);
}

#[test]
fn forms_are_followed_if_configured() {
    let page =
        "<form action=/search?old=1><input name=q></form><form method=post action=/post></form>";
    let web = bare(1).script(0, "/", HttpAnswer::html(page)).start();
    check(&web, &Crawl::of(&web), &[(0, "/")]);
    let mut crawl = Crawl::of(&web);
    crawl.config.forms = true;
    check(&web, &crawl, &[(0, "/"), (0, "/search")]);
}

#[test]
fn sitemaps_name_other_forms_and_an_order() {
    let sitemap = "<urlset xmlns:xhtml='http://www.w3.org/1999/xhtml' xmlns:image='http://www.google.com/schemas/sitemap-image/1.1'>\
        <url><loc>/low</loc><priority>0.1</priority></url>\
        <url><loc>/mid</loc><xhtml:link rel='alternate' hreflang='de' href='/de'/></url>\
        <url><loc>/high</loc><priority>1.0</priority><image:image><image:loc>/i.png</image:loc></image:image></url></urlset>";
    let web = bare(1)
        .script(0, "/", HttpAnswer::html("root"))
        .script(0, "/sitemap.xml", xml("application/xml", sitemap))
        .start();
    let mut crawl = Crawl::of(&web);
    crawl.config.resources = EmbeddedResourcePolicy::Own;
    crawl.run().unwrap();
    let paths: Vec<_> = web.log().into_iter().map(|entry| entry.path).collect();
    let expected = [
        "/robots.txt",
        "/",
        "/sitemap.xml",
        "/high",
        "/mid",
        "/de",
        "/low",
        "/i.png",
    ];
    assert_eq!(paths, expected);
}

/// Host 0 has a sitemap index with one sitemap, which lists two pages of each other host.
#[test]
fn pages_of_other_hosts_need_a_robots_txt_that_names_the_sitemap() {
    let web = bare(4).start();
    let entries = (1..4).map(|host| {
        let (listed, linked) = (web.url(host, "/listed"), web.url(host, "/linked"));
        format!("<url><loc>{listed}</loc></url><url><loc>{linked}</loc></url>")
    });
    let map = format!("<urlset>{}</urlset>", entries.collect::<String>());
    let index = "<sitemapindex><sitemap><loc>/map.xml</loc></sitemap></sitemapindex>";
    web.script(0, "/sitemap.xml", xml("application/xml", index));
    web.script(0, "/map.xml", xml("application/xml", &map));
    let link = format!("<a href={}>linked</a>", web.url(1, "/linked"));
    web.script(0, "/", HttpAnswer::html(&link));
    // The robots.txt of host 2 names the sitemap, and the robots.txt of host 3 names the sitemap
    // index. The robots.txt of host 1 names neither.
    for (host, path) in [(2, "/map.xml"), (3, "/sitemap.xml")] {
        let robots = format!("Sitemap: {}", web.url(0, path));
        web.script(host, "/robots.txt", xml("text/plain", &robots));
    }
    for (host, path) in (1..4).flat_map(|host| [(host, "/listed"), (host, "/linked")]) {
        web.script(host, path, HttpAnswer::html("a page"));
    }
    let mut crawl = Crawl::of(&web);
    crawl.config.fetch.allow_private = true;
    crawl.config.scope.mode = crawl_scope::ScopeMode::Any;
    let own = [(0, "/"), (0, "/map.xml"), (0, "/sitemap.xml")];
    let foreign = [
        (2, "/linked"),
        (2, "/listed"),
        (3, "/linked"),
        (3, "/listed"),
    ];
    let expected = [&own[..], &foreign, &[(1, "/linked")]].concat();
    check(&web, &crawl, &expected);
    let row = crawl.excluded_row(&web.url(1, "/listed"));
    assert_eq!(row.reason, "sitemap");
    let (robots, map) = (web.url(1, "/robots.txt"), web.url(0, "/map.xml"));
    assert_eq!(row.rule, Some(format!("{robots} does not name {map}")));
    // A plan counts the same pages, except pages that only links lead to.
    let mut plan = Crawl::of(&web);
    plan.config.fetch.allow_private = true;
    plan.config.scope.mode = crawl_scope::ScopeMode::Any;
    plan.config.extent = RunMode::Plan;
    plan.run().unwrap();
    let planned = |(host, path): &(u32, &str)| plan.excluded_row(&web.url(*host, path)).reason;
    assert!(foreign.iter().all(|page| planned(page) == "planned"));
    assert_eq!(planned(&(1, "/listed")), "sitemap");
    // If the user names a sitemap as a seed, no robots.txt needs to name it.
    let mut crawl = Crawl::of(&web);
    let seed = crawl_weburl::canonicalize(None, &web.url(0, "/sitemap.xml")).unwrap();
    crawl.config.fetch.allow_private = true;
    crawl.config.seeds = vec![seed.clone()];
    crawl.config.seed_sitemaps = [seed].into();
    let is_of_root = |(host, path): &&(u32, &str)| (*host, *path) != (0, "/");
    let mut expected: Vec<_> = expected.iter().filter(is_of_root).copied().collect();
    expected.push((1, "/listed"));
    check(&web, &crawl, &expected);
}

/// A sitemap index lists more URLs than the limit allows.
#[test]
fn sitemaps_add_no_more_urls_than_allowed() {
    let web = bare(1).start();
    let map = |entries: String| xml("application/xml", &entries);
    let names = (0..5).map(|n| format!("<sitemap><loc>/map{n}.xml</loc></sitemap>"));
    let index = format!("<sitemapindex>{}</sitemapindex>", names.collect::<String>());
    web.script(0, "/sitemap.xml", map(index));
    for n in 0..5 {
        let pages = (0..10).map(|p| format!("<url><loc>/{n}/{p}</loc></url>"));
        let pages = format!("<urlset>{}</urlset>", pages.collect::<String>());
        web.script(0, &format!("/map{n}.xml"), map(pages));
    }
    let mut crawl = Crawl::of(&web);
    crawl.config.max_sitemap_urls = Some(28);
    let summary = crawl.run().unwrap();
    // The limit of 28 URLs allows five sitemaps and 23 pages.
    let pages = crawl.pages();
    let of_maps = pages
        .iter()
        .filter(|page| page.url.matches('/').count() == 4);
    assert_eq!(of_maps.count(), 23);
    assert_eq!(summary.unusable["sitemap_limit"], 27);
    let errors = pages
        .iter()
        .filter(|page| page.error.as_deref() == Some("sitemap_limit"));
    assert_eq!(errors.count(), 3);
}

#[test]
fn requests_have_a_referer_if_configured() {
    let web = bare(2).start();
    let away = web.url(1, "/away");
    web.script(
        0,
        "/",
        HttpAnswer::html(&format!("<a href=/p?q#f>p</a><a href={away}>a</a>")),
    );
    web.script(
        0,
        "/p?q",
        HttpAnswer::html("<a href=/r>r</a><img src=/i.png>"),
    );
    web.script(0, "/r", HttpAnswer::redirect(302, "/target"));
    for path in ["/target", "/i.png"] {
        web.script(0, path, HttpAnswer::html("t"));
    }
    web.script(1, "/away", HttpAnswer::html("a"));
    for referer in [false, true] {
        let mut crawl = Crawl::of(&web);
        crawl.config.fetch.allow_private = true;
        crawl.config.fetch.referer = referer;
        crawl.config.resources = EmbeddedResourcePolicy::All;
        crawl.config.scope.mode = crawl_scope::ScopeMode::Any;
        crawl.run().unwrap();
        let mut referred = web.take_log();
        referred.retain(|entry| entry.header("referer").is_some());
        let referred = referred
            .iter()
            .map(|entry| (entry.host, &*entry.path, entry.header("referer").unwrap()));
        let (root, page) = (web.url(0, "/"), web.url(0, "/p?q"));
        let expect = [
            (0, "/i.png", &*page),
            (0, "/p?q", &*root),
            (0, "/r", &*page),
            (1, "/away", &*root),
        ];
        let expect = expect.into_iter().filter(|_| referer);
        assert_eq!(referred.collect::<BTreeSet<_>>(), expect.collect());
    }
}
