//! The embedded snippet, and which sites may read results.

use crate::indexed_crawl_directory::Site;
use crate::server_harness::Server;

const ORIGIN: &str = "http://site.example";
const HOME: &str = "https://www.site.example";

#[test]
fn pages_of_named_origins_read_results_and_no_others() {
    let site = Site::new(ORIGIN);
    let server = Server::start(
        site.path(),
        &[
            "--allow-origin",
            HOME,
            "--allow-origin",
            "http://a.example:8080",
        ],
    );
    let allowed = |path: &str, origin: &str| {
        let reply = server.get_with(path, &[("origin", origin)]);
        assert_eq!(reply.field("vary"), Some("origin"), "{path}");
        assert_eq!(reply.field("access-control-allow-credentials"), None);
        reply
            .field("access-control-allow-origin")
            .map(str::to_owned)
    };
    for path in [
        "/api/search?q=a",
        "/api/search",
        "/api/stats",
        "/api/page",
        "/api/openapi.json",
    ] {
        assert_eq!(allowed(path, HOME).as_deref(), Some(HOME), "{path}");
        for other in [
            "https://site.example",
            "http://www.site.example",
            "null",
            "https://www.site.example.evil.example",
        ] {
            assert_eq!(allowed(path, other), None, "{path} {other}");
        }
    }
    for path in [
        "/",
        "/crawl",
        "/api/crawl",
        "/api/crawl/events/x",
        "/api/crawl/pause",
    ] {
        assert_eq!(allowed(path, HOME), None, "{path}");
    }
}

#[test]
fn a_preflight_allows_no_command() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &["--allow-origin", HOME]);
    let fields = [
        ("origin", HOME),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type"),
    ];
    let reply = server.request("OPTIONS", "/api/crawl/pause", &fields, "");
    assert_eq!(reply.field("access-control-allow-origin"), None);
}

#[test]
fn the_snippet_may_be_loaded_from_anywhere() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let snippet = server.get("/embed.js");
    assert_eq!(snippet.status, 200);
    assert_eq!(
        snippet.field("content-type"),
        Some("text/javascript; charset=utf-8")
    );
    assert_eq!(
        snippet.field("cross-origin-resource-policy"),
        Some("cross-origin")
    );
    assert_eq!(snippet.field("cache-control"), Some("public, max-age=600"));
    let tag = snippet.field("etag").unwrap();
    let again = server.get_with("/embed.js", &[("if-none-match", &format!("\"x\", {tag}"))]);
    assert_eq!(again.status, 304);
}
