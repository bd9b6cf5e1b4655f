//! The JSON API: answers and errors.

use expect_test::expect;
use serde_json::json;

use crate::indexed_crawl_directory::{PAGES, Site};
use crate::server_harness::Server;

const ORIGIN: &str = "http://site.example";

#[test]
fn a_query_finds_pages_with_marked_words() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let answer = server.get("/api/search?q=unreachable+robots").json();
    assert_eq!(
        (&answer["query"], &answer["lacks_words"]),
        (&json!("unreachable robots"), &json!(true))
    );
    let hit = &answer["results"][0];
    assert_eq!(hit["url"], "http://site.example/rules");
    assert_eq!(hit["language"], "en");
    assert_eq!(hit["modified"], 1_790_000_000);
    let parts = hit["excerpt_parts"].as_array().unwrap();
    let marked: Vec<_> = parts.iter().filter(|part| part["match"] == true).collect();
    assert!(!marked.is_empty(), "{hit}");
    let joined: String = parts
        .iter()
        .map(|part| part["text"].as_str().unwrap())
        .collect();
    assert_eq!(hit["excerpt"], joined);
}

#[test]
fn limit_and_offset_are_kept_and_the_last_word_may_be_a_beginning() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let answer = server.get("/api/search?q=lantern&limit=7&offset=28").json();
    assert_eq!(answer["total"], 30);
    assert_eq!(answer["results"].as_array().unwrap().len(), 2);
    let whole = server.get("/api/search?q=lanter").json();
    assert_eq!(
        (&whole["total"], whole.get("did_you_mean")),
        (&json!(30), None)
    );
    let correction = server.get("/api/search?q=lantenr").json();
    assert_eq!(correction["did_you_mean"], "lantern");
    let without = server.get("/api/search?q=zzzz+lantern").json();
    assert_eq!(
        (&without["total"], &without["unknown"]),
        (&json!(30), &json!(["zzzz"]))
    );
    let nothing = server.get("/api/search?q=+").json();
    assert_eq!(nothing, json!({"query": "", "total": 0, "results": []}));
}

#[test]
fn pages_are_counted_and_narrowed_by_facets() {
    let site = Site::new(ORIGIN);
    site.index_versions(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let plain = server.get("/api/search?q=boat").json();
    assert_eq!(plain.get("facets"), None);
    // Only the newest version of a page is counted.
    assert_eq!(plain["total"], 3, "{plain}");
    let counted = server.get("/api/search?q=boat&facets=true").json();
    let count =
        |value: &str, name: &str, count: u64| json!({"value": value, "name": name, "count": count});
    assert_eq!(
        counted["facets"],
        json!({
            "folder": [
                count("site.example/handbook", "handbook", 2),
                count("site.example/files", "files", 1)
            ],
            "language": [count("en", "English", 2)],
            "version": [count("v1.10", "v1.10", 2), count("v1.9", "v1.9", 2)],
            "type": [count("html", "Web page", 2), count("pdf", "PDF", 1)],
        })
    );
    let first = |filter: &str| {
        let answer = server
            .get(&format!("/api/search?q=boat+rudder&{filter}"))
            .json();
        answer["results"][0]["url"].clone()
    };
    assert_eq!(
        first("version=v1.9"),
        "http://site.example/handbook/v1.9/rudder"
    );
    assert_eq!(first("type=pdf"), "http://site.example/files/boat.pdf");
    assert_eq!(
        first("folder=site.example/files/"),
        "http://site.example/files/boat.pdf"
    );
    assert_eq!(first("language=fr"), serde_json::Value::Null);
    assert_eq!(server.get("/api/search?q=boat&facets=maybe").status, 400);
}

#[test]
fn a_page_is_shown_as_far_as_it_allows() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let page = server
        .get("/api/page?url=HTTP://SITE.example:80/rules%23part")
        .json();
    assert_eq!(page["title"], "How rules are read");
    assert_eq!(page["headings"][0]["id"], "unreachable");
    let page = server
        .get("/api/page?url=http://site.example/silent")
        .json();
    assert_eq!(
        (&page["title"], &page["text"]),
        (&json!("A secret garden"), &json!(""))
    );
}

#[test]
fn stats_count_the_index() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let stats = server.get("/api/stats").json();
    assert_eq!(stats["hosts"][0], json!(["site.example", PAGES]));
    assert_eq!(stats["pages"], PAGES);
    assert_eq!(server.get("/api/crawl").json(), json!({"running": false}));
}

#[test]
fn a_commit_is_seen_by_a_running_server() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    assert_eq!(server.get("/api/search?q=zeppelin").json()["total"], 0);
    let mut writer = crawl_index::IndexWriter::open(&site.file("index")).unwrap();
    let page = crawl_index::IndexedPage {
        url: "http://site.example/z".to_owned(),
        title: "Zeppelin".to_owned(),
        ..crawl_index::IndexedPage::default()
    };
    writer.put(&page).unwrap();
    writer.commit("more").unwrap();
    assert_eq!(server.get("/api/search?q=zeppelin").json()["total"], 1);
}

#[test]
fn searches_fail_only_while_the_index_is_rebuilt() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let search = || server.get("/api/search?q=lantern");
    assert_eq!(search().status, 200);
    crawl_index::remove(&site.file("index")).unwrap();
    let without = search();
    let answer = without.json();
    // The server may still read index files that it has open. If it can't, it must report an error
    // and not crash.
    assert!(without.status == 200 || answer["error"] == "can't read the search index");
    assert!(!without.body.contains(&site.path().display().to_string()));
    site.index(ORIGIN);
    assert_eq!(search().json()["total"], 30);
    site.write("index/meta.json", "{");
    let damaged = search();
    assert!(matches!(damaged.status, 200 | 500), "{damaged:?}");
    assert_eq!(server.get("/robots.txt").status, 200);
}

#[test]
fn refusals_are_json_with_a_hint() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let long = format!("/api/search?q={}", "a".repeat(4097));
    let refused: String = [
        "/api/search",
        "/api/search?q=a%01",
        &long,
        "/api/search?q=a&limit=0",
        "/api/search?q=a&limit=1000",
        "/api/search?q=a&offset=x",
        "/api/search?q=a&q=b",
        "/api/page",
        "/api/page?url=nonsense",
        "/api/page?url=http://site.example/unknown",
        "/api/page?url=http://site.example/over",
        "/api/nothing",
        "/api/crawl/stop",
    ]
    .map(|path| server.get(path).refusal())
    .concat();
    expect![[r#"
        400 `q` is missing | request `/api/search?q=WORDS`
        400 the query contains control characters | send words in UTF-8, percent-encoded
        400 the query has 4097 bytes | the maximum is 4096 bytes
        400 invalid value: `limit=0` | set `limit` to a number from 1 to 50
        400 invalid value: `limit=1000` | set `limit` to a number from 1 to 50
        400 invalid value: `offset=x` | set `offset` to a number from 0 to 950
        400 can't read the parameters: duplicate field `q` | give each parameter only once
        400 `url` is missing | request `/api/page?url=URL`
        400 unusable `url`: not a URL: relative URL without a base | give a whole URL such as `https://example.org/page`, percent-encoded
        404 the index has no such page | `crawl explain DIR URL` shows why a URL was not fetched
        404 the index has no such page | `crawl explain DIR URL` shows why a URL was not fetched
        404 not found | the search page is `/`, the API is described in `/api/openapi.json`
        405 the method GET isn't allowed here | the field `Allow` lists the allowed methods
    "#]].assert_eq(&refused);
}

#[test]
fn rfc9110_15_5_6_a_405_response_lists_the_allowed_methods() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let check = |method: &str, path: &str, allowed: &str| {
        let reply = server.request(method, path, &[], "");
        assert_eq!(
            (reply.status, reply.field("allow")),
            (405, Some(allowed)),
            "{method} {path}"
        );
        assert!(
            reply
                .refusal()
                .starts_with(&format!("405 the method {method} isn't allowed here"))
        );
    };
    check("POST", "/api/search?q=a", "GET,HEAD");
    check("DELETE", "/", "GET,HEAD");
    check("GET", "/api/crawl/pause", "POST");
    let head = server.request("HEAD", "/api/stats", &[], "");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}
