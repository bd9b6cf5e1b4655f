//! The HTML pages of `crawl serve`: their content and their header fields.

use expect_test::expect;

use crate::indexed_crawl_directory::Site;
use crate::server_harness::{Reply, Server};

const ORIGIN: &str = "http://site.example";

fn page(server: &Server, path: &str) -> Reply {
    let reply = server.get_with(path, &[("accept", "text/html")]);
    assert_eq!(
        reply.field("content-type"),
        Some("text/html; charset=utf-8"),
        "{path}"
    );
    reply
}

#[test]
fn results_are_there_without_a_script() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let reply = page(&server, "/?q=unreachable+robots");
    assert_eq!(reply.status, 200);
    for part in [
        "<title>unreachable robots · Search site.example</title>",
        "<input id=\"q\" type=\"search\" name=\"q\" value=\"unreachable robots\"",
        "<p class=\"quiet\" id=\"status\" role=\"status\">",
        "for “unreachable robots”</p>",
        "<h2 class=\"title\" lang=\"en\" dir=\"auto\"><a href=\"http://site.example/rules#:~:text=reads-,robots%2Etxt,-before\">How rules are read</a></h2>",
        "<mark>",
        "<time datetime=\"2026-09-21\">21 Sep 2026</time>",
        "<p>35 pages, last visited <time datetime=\"2026-11-20\">20 Nov 2026</time></p>",
    ] {
        assert!(reply.body.contains(part), "{part}\n{}", reply.body);
    }
    let german = page(&server, "/?q=h%C3%B6flichkeit").body;
    assert!(
        german.contains("<h2 class=\"title\" lang=\"de\" dir=\"auto\">"),
        "{german}"
    );
    assert!(
        german.contains("<bdi>site.example › de › einführung</bdi>"),
        "{german}"
    );
}

#[test]
fn pages_of_results_follow_each_other() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let second = page(&server, "/?q=lantern&page=2").body;
    for part in [
        "Results 11 to 20 of 30 for “lantern”",
        "<ol class=\"hits\" start=\"11\">",
        "<a rel=\"prev\" href=\"/?q=lantern\">Previous</a>",
        "<a rel=\"next\" href=\"/?q=lantern&amp;page=3\">Next</a>",
    ] {
        assert!(second.contains(part), "{part}\n{second}");
    }
    let beyond = page(&server, "/?q=lantern&page=9");
    assert_eq!(beyond.status, 200);
    let message = "No more results for “lantern”";
    assert!(beyond.body.contains(message), "{}", beyond.body);
    assert_eq!(page(&server, "/?q=lantern&page=101").status, 400);
}

#[test]
fn text_of_pages_and_queries_is_escaped() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &["--title", "<b>Mine</b>"]);
    for path in [
        "/?q=hostile",
        "/?q=%3Cscript%3Ealert(1)%3C/script%3E",
        "/?q=%22%3E%3Cimg%20src=x%3E",
        "/?q=a&page=%3Cimg%20src=x%3E",
        "/crawl",
        "/%3Cimg%20src=x%3E",
    ] {
        let body = page(&server, path).body;
        for part in ["<script>", "<img", "<b>", "<x>", " onerror=\""] {
            assert!(!body.contains(part), "{path}: {part}\n{body}");
        }
    }
    assert!(page(&server, "/").body.contains("&lt;b&gt;Mine&lt;/b&gt;"));
}

#[test]
fn a_search_without_results_has_suggestions() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let body = page(&server, "/?q=zeppelin").body;
    assert!(
        body.contains("No results for “zeppelin”") && body.contains("check the spelling"),
        "{body}"
    );
    let body = page(&server, "/?q=lantenr").body;
    assert!(
        body.contains("Showing results for <a href=\"/?q=lantern\">lantern</a>"),
        "{body}"
    );
}

#[test]
fn a_problem_is_a_page_for_a_person() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let reply = page(&server, "/nowhere");
    assert_eq!(reply.status, 404);
    assert!(reply.body.contains("<h1>Not Found</h1>"), "{}", reply.body);
    assert!(
        reply.body.contains("<code>/api/openapi.json</code>"),
        "{}",
        reply.body
    );
    let length: usize = reply.field("content-length").unwrap().parse().unwrap();
    assert_eq!(length, reply.body.len());
    assert_eq!(page(&server, "/?q=a%00").status, 400);
}

#[test]
fn the_crawl_s_page_is_its_report() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let body = page(&server, "/crawl").body;
    for part in [
        "<h1>Crawl of site.example</h1>",
        "No crawl is running",
        "<section id=\"live\" aria-label=\"Running crawl\" hidden>",
        "<dt>Pages</dt><dd>2</dd>",
        "<dt>Failed</dt><dd>1</dd>",
        "<caption>Excluded</caption><tbody><tr><th scope=\"row\">robots</th>",
        "needs a token: start the server with <code>--token-file FILE</code>",
    ] {
        assert!(body.contains(part), "{part}\n{body}");
    }
}

#[test]
fn responses_have_security_headers() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let names = [
        "content-security-policy",
        "x-content-type-options",
        "x-frame-options",
        "referrer-policy",
        "permissions-policy",
        "cross-origin-opener-policy",
        "cross-origin-embedder-policy",
        "cross-origin-resource-policy",
        "x-robots-tag",
        "cache-control",
    ];
    let shown = |reply: &Reply| {
        let lines = names.map(|name| format!("{name}: {}\n", reply.field(name).unwrap()));
        lines.concat()
    };
    expect![[r#"
        content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'
        x-content-type-options: nosniff
        x-frame-options: DENY
        referrer-policy: same-origin
        permissions-policy: accelerometer=(), autoplay=(), browsing-topics=(), camera=(), display-capture=(), encrypted-media=(), fullscreen=(), geolocation=(), gyroscope=(), hid=(), identity-credentials-get=(), idle-detection=(), magnetometer=(), microphone=(), midi=(), payment=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), storage-access=(), usb=(), xr-spatial-tracking=()
        cross-origin-opener-policy: same-origin
        cross-origin-embedder-policy: require-corp
        cross-origin-resource-policy: same-origin
        x-robots-tag: noindex
        cache-control: no-cache
    "#]].assert_eq(&shown(&server.get("/")));
    let data = shown(&server.get("/api/stats"));
    expect![[r#"
        content-security-policy: default-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'
        x-content-type-options: nosniff
        x-frame-options: DENY
        referrer-policy: same-origin
        permissions-policy: accelerometer=(), autoplay=(), browsing-topics=(), camera=(), display-capture=(), encrypted-media=(), fullscreen=(), geolocation=(), gyroscope=(), hid=(), identity-credentials-get=(), idle-detection=(), magnetometer=(), microphone=(), midi=(), payment=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), storage-access=(), usb=(), xr-spatial-tracking=()
        cross-origin-opener-policy: same-origin
        cross-origin-embedder-policy: require-corp
        cross-origin-resource-policy: same-origin
        x-robots-tag: noindex
        cache-control: no-cache
    "#]].assert_eq(&data);
    for path in [
        "/api/nothing",
        "/robots.txt",
        "/api/crawl/pause",
        "/assets/x.js",
    ] {
        assert_eq!(shown(&server.get(path)), data, "{path}");
    }
    for path in ["/", "/crawl", "/api/search?q=a", "/embed.js"] {
        assert_eq!(server.get(path).field("set-cookie"), None);
    }
}

#[test]
fn files_are_cached_forever_under_a_content_hash() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let body = server.get("/").body + &server.get("/crawl").body;
    let paths: Vec<&str> = body
        .split('"')
        .filter(|text| text.starts_with("/assets/"))
        .collect();
    assert!(paths.len() >= 6, "{body}");
    for path in paths {
        let file = server.get(path);
        assert_eq!(file.status, 200, "{path}");
        assert_eq!(
            file.field("cache-control"),
            Some("public, max-age=31536000, immutable")
        );
        let tag = file.field("etag").unwrap();
        let packed = server.get_with(path, &[("accept-encoding", "br;q=0.5, gzip")]);
        let is_large = file.body.len() > 1024;
        let coding = packed.field("content-encoding");
        assert_eq!(coding, is_large.then_some("gzip"), "{path}");
        assert_eq!(packed.body != file.body, is_large, "{path}");
        let again = server.get_with(path, &[("if-none-match", tag)]);
        assert_eq!((again.status, again.body.as_str()), (304, ""));
    }
}

#[test]
fn robots_txt_keeps_crawlers_off_result_pages() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let robots = server.get("/robots.txt").body;
    expect![[r"
        User-agent: *
        Disallow: /api/
        Disallow: /crawl
        Disallow: /?
    "]]
    .assert_eq(&robots);
}

#[test]
fn a_crawl_without_an_index_shows_its_state() {
    let site = Site::without_index(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let reply = server.get_with("/?q=tea", &[("accept", "text/html")]);
    assert_eq!(
        (reply.status, reply.field("location")),
        (303, Some("/crawl"))
    );
    assert_eq!(page(&server, "/crawl").status, 200);
    let search = server.get_with("/api/search?q=tea", &[]);
    assert_eq!(search.status, 404);
    assert!(
        search.body.contains("this crawl has no search index"),
        "{}",
        search.body
    );
    // The server opens a new index without a restart.
    site.index(ORIGIN);
    assert_eq!(page(&server, "/?q=lantern").status, 200);
}
