//! `crawl inspect`.

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
    let found: Value = serde_json::from_str(&cmd.run_with_stdin(&args, page).ok()).unwrap();
    assert_eq!(found["title"], "A b");
    assert_eq!(found["base"], "http://e.example/c/");
    assert_eq!(found["links"][0]["url"], "http://e.example/c/x%20y");
    assert_eq!(found["links"][0]["rel"], json!(["nofollow", "next"]));
    assert_eq!(found["links"][1]["url"], Value::Null);
    assert_eq!(
        found["links"][1]["unusable"],
        "scheme `mailto` is not http or https"
    );
    assert!(found["directives"]["noindex"].is_string());
    assert_eq!(found["directives"]["nofollow"], Value::Null);
}

#[test]
fn sitemap_from_a_file() {
    let (dir, cmd) = setup("sitemap");
    dir.write("s.xml", "<?xml version=\"1.0\"?><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>http://e.example/a</loc><changefreq>daily</changefreq></url></urlset>");
    let args = ["inspect", "s.xml", "--base", "http://e.example/s.xml"];
    let found: Value = serde_json::from_str(&cmd.run(&args).ok()).unwrap();
    assert_eq!(
        (&found["read_as"], &found["kind"]),
        (&json!("sitemap"), &json!("url_set"))
    );
    assert_eq!(found["entries"][0]["changefreq"], "daily");
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
