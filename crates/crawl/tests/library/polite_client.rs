//! Requests of a program that chooses its own URLs.

use std::time::Duration;

use crawl::{PoliteClient, PoliteError, PoliteResponse};
use crawl_testweb::{HttpAnswer, ScriptedReply, TestWeb, TestWebBuilder, gaps};

/// The gap between two requests to a host.
const DELAY: Duration = Duration::from_millis(40);

fn client() -> PoliteClient {
    let builder = PoliteClient::builder().agent("examplebot").delay(DELAY);
    builder.allow_private(true).build().unwrap()
}

fn web() -> TestWebBuilder {
    TestWeb::builder().hosts(1).sitemap(false)
}

/// Returns the paths of all requests to a web, in order.
fn paths(web: &TestWeb) -> Vec<String> {
    web.log().into_iter().map(|entry| entry.path).collect()
}

#[tokio::test]
async fn concurrent_calls_are_sent_in_turn_after_robots_txt() {
    let web = web().robots(0, "User-agent: *\nDisallow: /private\n");
    let web = web
        .script(0, "/a", HttpAnswer::html("<p>tea").gzip())
        .script(0, "/b", HttpAnswer::of(404))
        .script(0, "/c", HttpAnswer::redirect(302, "/a"))
        .start();
    let client = client();
    let urls = ["/a", "/b", "/c"].map(|path| web.url(0, path));
    let [a, b, c] = &urls;
    let (a, b, c) = tokio::join!(client.get(a), client.get(b), client.get(c));
    assert_eq!(a.unwrap().body(), "<p>tea");
    assert_eq!(b.unwrap().status(), 404);
    let c = c.unwrap();
    assert_eq!((c.status(), c.redirect()), (302, Some(urls[0].clone())));
    let mut paths = paths(&web);
    assert_eq!(paths.remove(0), "/robots.txt");
    paths.sort_unstable();
    assert_eq!(paths, ["/a", "/b", "/c"]);
    let min_gap = i64::try_from(DELAY.as_micros()).unwrap();
    assert!(gaps(&web.log()).iter().all(|gap| *gap >= min_gap));
}

#[tokio::test]
async fn a_body_that_is_not_complete_has_an_error() {
    let coded =
        |coding: &str, body: &str| HttpAnswer::html(body).header("content-encoding", coding);
    let web = web()
        .script(0, "/whole", HttpAnswer::html("tea").gzip())
        .script(0, "/broken", coded("gzip", "tea without any coding"))
        .script(0, "/cut", coded("gzip", "tea"))
        .script(0, "/unknown", coded("compress", "tea"))
        .script(0, "/endless", ScriptedReply::endless_body())
        .script(0, "/bomb", ScriptedReply::gzip_bomb(4 << 20))
        .start();
    let client = client();
    for (path, body, error) in [
        ("/whole", 3, ""),
        ("/broken", 0, "encoding_broken: "),
        ("/cut", 0, "encoding_cut_short"),
        ("/unknown", 3, "encoding_unknown: compress"),
        ("/endless", 10 << 20, "body_truncated"),
        ("/bomb", 1 << 20, "decompression_bomb"),
    ] {
        let response = client.get(&web.url(0, path)).await.unwrap();
        let shown = response.error().unwrap_or_default();
        assert!(shown.starts_with(error), "{path}: {shown}");
        assert_eq!(response.error().is_some(), !error.is_empty(), "{path}");
        assert_eq!(response.body().len(), body, "{path}");
    }
}

#[tokio::test]
async fn a_disallowed_url_is_never_requested() {
    let text = "User-agent: examplebot\nDisallow: /private\n\nUser-agent: *\nDisallow: /\n";
    let web = web()
        .robots(0, text)
        .script(0, "/a", HttpAnswer::html("a"))
        .start();
    let client = client();
    let private = web.url(0, "/private/diary");
    // The first call waits for the rules, and the second one finds them in memory.
    for _ in 0..2 {
        match client.get(&private).await.unwrap_err() {
            PoliteError::Disallowed { url, rule, line } => {
                assert_eq!(
                    (url, &*rule, line),
                    (private.clone(), "Disallow: /private", 2)
                );
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(client.get(&web.url(0, "/a")).await.unwrap().status(), 200);
    assert_eq!(paths(&web), ["/robots.txt", "/a"]);
}

#[tokio::test]
async fn rules_that_can_not_be_read_allow_nothing() {
    let web = web().script(0, "/robots.txt", HttpAnswer::of(503)).start();
    let client = client();
    for _ in 0..2 {
        match client.get(&web.url(0, "/a")).await.unwrap_err() {
            PoliteError::RulesUnknown { retry_after, .. } => {
                assert!(retry_after > Duration::ZERO);
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(paths(&web), ["/robots.txt"]);
}

#[tokio::test]
async fn a_redirect_of_robots_txt_is_followed() {
    let web = TestWeb::builder().hosts(2).sitemap(false);
    let web = web.robots(1, "User-agent: *\nDisallow: /x\n").start();
    let to = web.url(1, "/robots.txt");
    let one = self::web().script(0, "/robots.txt", HttpAnswer::redirect(301, &to));
    let one = one.script(0, "/y", HttpAnswer::html("y")).start();
    let client = client();
    let refused = client.get(&one.url(0, "/x")).await;
    assert!(matches!(refused, Err(PoliteError::Disallowed { .. })));
    assert_eq!(client.get(&one.url(0, "/y")).await.unwrap().body(), "y");
    assert_eq!(paths(&one), ["/robots.txt", "/y"]);
}

#[tokio::test]
async fn calls_that_new_rules_disallow_wait_for_no_gap() {
    let slow = "User-agent: *\nCrawl-delay: 3600\nDisallow: /\n";
    let web = web().robots(0, slow).start();
    let client = client();
    let urls = ["/a", "/b"].map(|path| web.url(0, path));
    let (a, b) = tokio::join!(client.get(&urls[0]), client.get(&urls[1]));
    for refused in [a, b] {
        assert!(matches!(refused, Err(PoliteError::Disallowed { .. })));
    }
    assert_eq!(paths(&web), ["/robots.txt"]);
}

#[tokio::test]
async fn a_call_that_is_dropped_sends_nothing() {
    let web = web().script(0, "/a", HttpAnswer::html("a")).start();
    let client = client();
    let (dropped, a) = (web.url(0, "/dropped"), web.url(0, "/a"));
    tokio::select! {
        biased;
        _ = client.get(&dropped) => panic!("it can't be answered yet"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(client.get(&a).await.unwrap().status(), 200);
    assert_eq!(paths(&web), ["/robots.txt", "/a"]);
}

#[tokio::test]
async fn failures_name_their_url() {
    let client = client();
    let error = |result: Result<PoliteResponse, PoliteError>| result.unwrap_err().to_string();
    assert!(error(client.get("example.org").await).starts_with("unusable URL `example.org`"));
    // No server listens on this port.
    let refused = error(client.get("http://127.0.0.1:9/").await);
    assert!(
        refused.starts_with("robots.txt of http://127.0.0.1:9 can't be read"),
        "{refused}"
    );
    // Without a contact, other people's servers get no requests.
    let refused = error(client.get("http://93.184.215.14/").await);
    assert!(
        refused.contains("can't be read: address_refused"),
        "{refused}"
    );
}
