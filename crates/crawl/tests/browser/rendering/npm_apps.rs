//! Crawls of single-page applications built from npm packages: React, Vue and Svelte.

use std::fs;
use std::path::Path;

use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{render, requests, rows, run};
use crate::named;

/// The articles: their path, a word that no other article has, and the articles they link to.
const ARTICLES: [(&str, &str, &[&str]); 8] = [
    ("/", "overview", &["/growing", "/picking"]),
    ("/growing", "terraces", &["/regions/assam", "/drafts"]),
    ("/picking", "baskets", &["/brewing"]),
    ("/brewing", "kettles", &["/serving"]),
    ("/serving", "saucers", &["/regions/yunnan"]),
    ("/regions/assam", "lowlands", &[]),
    ("/regions/yunnan", "mountains", &[]),
    (DRAFTS, "unfinished", &[]),
];

/// The article that must not be indexed.
const DRAFTS: &str = "/drafts";

/// The article that names another article as its canonical URL.
const SERVING: &str = "/serving";

/// Returns the JSON of an article.
fn article(path: &str, word: &str, links: &[&str]) -> Value {
    let links = links.iter();
    json!({
        "title": format!("Tea: {word}"),
        "description": format!("What {word} have to do with tea."),
        "text": [
            format!("Here you read about {word}, and about nothing else."),
            format!("Who knows {word} knows half of what there is to know about tea."),
        ],
        "links": links.map(|to| json!({"to": to, "title": to})).collect::<Vec<_>>(),
        "robots": (path == DRAFTS).then_some("noindex"),
        "canonical": (path == SERVING).then_some("/brewing"),
    })
}

fn api(path: &str) -> String {
    let name = if path == "/" { "/index" } else { path };
    format!("/api{name}.json")
}

/// Returns the names of the files in the folder of an app's scripts.
fn assets(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap();
    let name = |file: fs::DirEntry| file.file_name().into_string().unwrap();
    files.map(|file| name(file.unwrap())).collect()
}

/// Serves an app as servers of single-page applications do: its files, and the empty page at every
/// other path.
fn serve(app: &str) -> TestWeb {
    let folder = named("CRAWL_APPS").join(app);
    let shell = fs::read_to_string(folder.join("index.html")).unwrap();
    let mut spec = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .robots(0, "User-agent: *\nDisallow: /account/\n")
        .handler(0, move |_| Some(HttpAnswer::html(&shell).into()));
    for name in assets(&folder.join("assets")) {
        let source = fs::read_to_string(folder.join("assets").join(&name)).unwrap();
        spec = spec.script(0, &format!("/assets/{name}"), super::script(&source));
    }
    for (path, word, links) in ARTICLES {
        let text = article(path, word, links).to_string();
        spec = spec.script(0, &api(path), super::json(&text));
    }
    spec.start()
}

/// Exports the pages as Markdown, and returns the text of all exported files.
fn markdown(crawl: &TempDir) -> String {
    let folder = crawl.path();
    run(
        folder,
        &["export", "out", "--to", "markdown", "--out", "texts"],
    );
    let mut all = String::new();
    let mut folders = vec![folder.join("texts")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => all.push_str(&fs::read_to_string(path).unwrap()),
            }
        }
    }
    all
}

/// Crawls an app, and checks that its articles are read and that each request is made once.
fn check(app: &str) {
    let web = serve(app);
    let args = ["--render", "auto", "--delay", "0s", "--index", "on"];
    let folder = render(&web, &args);
    let pages = rows(&folder, "pages.jsonl");
    assert_eq!(pages.len(), ARTICLES.len(), "{app}: {pages:?}");
    let texts = markdown(&folder);
    for (path, word, _) in ARTICLES {
        let url = web.url(0, path);
        let page = pages.iter().find(|page| page["url"] == url).unwrap();
        assert_eq!(page["title"], format!("Tea: {word}"), "{app}: {page}");
        assert!(page["render"]["error"].is_null(), "{app}: {page}");
        let indexed = match path {
            DRAFTS => "noindex: <meta name=\"robots\" content=\"noindex\">".to_owned(),
            SERVING => format!("canonical: {}", web.url(0, "/brewing")),
            _ => "yes".to_owned(),
        };
        assert_eq!(page["indexed"], indexed, "{app}: {page}");
        let text = format!("Who knows {word} knows half of");
        assert_eq!(texts.contains(&text), indexed == "yes", "{app}: {texts}");
        let found = run(folder.path(), &["search", "out", word]);
        let found = String::from_utf8(found.stdout).unwrap();
        assert_eq!(found.contains(&url), indexed == "yes", "{app}: {found}");
    }
    let [seen, listed] = requests(&web, &folder);
    assert_eq!(seen, listed, "{app}");
    let files = assets(&named("CRAWL_APPS").join(app).join("assets"));
    let mut expected: Vec<_> = files
        .iter()
        .map(|name| format!("/assets/{name}"))
        .chain(ARTICLES.iter().map(|(path, ..)| (*path).to_owned()))
        .chain(ARTICLES.iter().map(|(path, ..)| api(path)))
        .chain(["/robots.txt", "/sitemap.xml"].map(str::to_owned))
        .collect();
    expected.sort();
    assert!(seen.keys().eq(&expected), "{app}: {seen:?}");
    assert!(seen.values().all(|count| *count == 1), "{app}: {seen:?}");
    let audit = run(folder.path(), &["audit", "out"]);
    let audit = String::from_utf8(audit.stdout).unwrap();
    assert!(audit.contains("breaches   none"), "{app}: {audit}");
}

#[test]
fn an_app_of_react_is_read() {
    check("react");
}

#[test]
fn an_app_of_vue_is_read() {
    check("vue");
}

#[test]
fn an_app_of_svelte_is_read() {
    check("svelte");
}
