//! `crawl inspect`, on documents from stdin and from files.

use serde_json::{Value, json};

use crate::harness::setup;

#[test]
fn page_from_stdin() {
    let (_dir, cmd) = setup("inspect");
    let page = "<title> A  b </title><base href=/c/><meta name=robots content=noindex>\
        <a rel='nofollow next' href='x y'>T</a><a href='mailto:a@b'>m</a>";
    let args = [
        "inspect",
        "-",
        "--base",
        "http://e.example/p",
        "--content-type",
        "text/html",
    ];
    let output: Value = serde_json::from_str(&cmd.run_with_stdin(&args, page).ok()).unwrap();
    assert_eq!(output["title"], "A b");
    assert_eq!(output["base"], "http://e.example/c/");
    assert_eq!(output["links"][0]["url"], "http://e.example/c/x%20y");
    assert_eq!(output["links"][0]["rel"], json!(["nofollow", "next"]));
    assert_eq!(output["links"][1]["url"], Value::Null);
    assert_eq!(
        output["links"][1]["unusable"],
        "scheme `mailto` is not http or https"
    );
    assert!(output["directives"]["noindex"].is_string());
    assert_eq!(output["directives"]["nofollow"], Value::Null);
}

#[test]
fn text_of_a_page() {
    let (dir, cmd) = setup("inspect-text");
    dir.write(
        "p.html",
        "<html lang=en-GB><title>Tea</title><meta name=description content='How to'>\
         <meta name=keywords content='tea, leaf'><link rel=canonical href=/tea>\
         <meta property=article:published_time content=2024-03-05><meta property=og:type content=article>\
         <script type='application/ld+json'>{\"@type\":\"Article\",\"headline\":\"Tea\"}</script>\
         <nav><a href=/>Home</a></nav><main><h1 id=tea>Tea</h1><p>Water the leaves, wait for \
         three minutes, and pour it into the cup that you like best of all.</main>",
    );
    let args = ["inspect", "p.html", "--base", "http://e.example/p"];
    let output: Value = serde_json::from_str(&cmd.run(&args).ok()).unwrap();
    let text = &output["text"];
    assert_eq!(text["title"], "Tea");
    assert_eq!(
        text["headings"],
        json!([{"level": 1, "id": "tea", "text": "Tea", "main": true}])
    );
    assert_eq!(text["description"], "How to");
    assert_eq!(text["keywords"], json!(["tea", "leaf"]));
    assert_eq!(text["canonical"], json!({"href": "/tea", "source": "link"}));
    assert_eq!(
        text["language"]["declared"],
        json!({"tag": "en-GB", "source": "lang"})
    );
    assert_eq!(text["language"]["detected"]["code"], "en");
    assert_eq!(
        text["dates"]["published"],
        json!({"kind": "published", "at": "2024-03-05T00:00:00Z", "precision": "day",
            "source": "meta", "name": "article:published_time"})
    );
    assert_eq!(text["dates"]["modified"], Value::Null);
    assert_eq!(text["open_graph"]["type"], "article");
    assert_eq!(text["json_ld"][0]["types"], json!(["Article"]));
    assert_eq!(
        text["main_text"],
        "Tea\nWater the leaves, wait for three minutes, and pour it into the cup that you like best of all."
    );
    assert_eq!(text["blocks"][1]["kind"], "paragraph");
    assert_eq!(text["oddities"], json!([]));
}

#[test]
fn sitemap_from_a_file() {
    let (dir, cmd) = setup("sitemap");
    dir.write("s.xml", "<?xml version=\"1.0\"?><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>http://e.example/a</loc><changefreq>daily</changefreq></url></urlset>");
    let args = ["inspect", "s.xml", "--base", "http://e.example/s.xml"];
    let output: Value = serde_json::from_str(&cmd.run(&args).ok()).unwrap();
    assert_eq!(
        (&output["read_as"], &output["kind"]),
        (&json!("sitemap"), &json!("url_set"))
    );
    assert_eq!(output["entries"][0]["changefreq"], "daily");
}

#[test]
fn missing_file_and_bad_base() {
    let (dir, cmd) = setup("missing");
    let ran = cmd.run(&["inspect", "no.html", "--base", "http://e.example/"]);
    assert!(
        ran.refusal(&dir)
            .starts_with("2\nerror: can't read no.html: ")
    );
    let ran = cmd.run(&["inspect", "no.html", "--base", "/x"]);
    assert!(
        ran.refusal(&dir)
            .starts_with("2\nerror: unusable --base `/x`: ")
    );
}
