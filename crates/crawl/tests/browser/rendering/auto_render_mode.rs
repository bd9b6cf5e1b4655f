//! A crawl with `--render auto` of a site that has both static pages and pages built by scripts.

use std::collections::BTreeMap;

use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};

use super::{SHELL, json, render, requests, rows, run, script};

/// The number of pages that scripts build.
const BUILT: usize = 45;
/// The number of static pages with little text. Their scripts add nothing to them.
const SHORT: usize = 80;
/// The number of static pages with much text. Their scripts add nothing to them.
const LONG: usize = 120;

/// The app: a menu that is the same on all pages, and an article for each page.
const APP: &str = r##"
const get = async (path) => (await fetch(path)).json();
(async () => {
  const [menu, article] = [await get("/api/menu"), await get("/api" + location.pathname)];
  document.title = article.title;
  document.getElementById("root").innerHTML = `<nav>${menu.text}</nav><p>${article.text}</p>`;
})();
"##;

/// A script that counts visitors, like scripts of many real sites.
const COUNTER: &str = "navigator.sendBeacon('/count', location.href);
    new Image().src = '/count.gif?' + Math.random();";

fn built(number: usize) -> String {
    match number % 3 {
        0 => format!("/shop/tea-{number}"),
        1 => format!("/shop/cups/{number}/"),
        _ => format!("/story-{number}"),
    }
}

fn short(number: usize) -> String {
    match number % 4 {
        0 => format!("/photos/{number}"),
        1 => format!("/contact/office-{number}.html"),
        2 => format!("/note-{number}"),
        _ => format!("/{}/7", "x".repeat(number + 1)),
    }
}

fn long(number: usize) -> String {
    format!("/news/2031/{}/item-{number}", number % 12 + 1)
}

fn site() -> TestWeb {
    let paths = (0..BUILT).map(built);
    let paths = paths
        .chain((0..SHORT).map(short))
        .chain((0..LONG).map(long));
    let links: String = paths
        .map(|path| format!("<a href=\"{path}\">x</a>"))
        .collect();
    let counter = "<script src=\"/count.js\"></script><script>start(1)</script>";
    let mut spec = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(
            0,
            "/",
            HttpAnswer::html(&format!("<p>{}{links}", "All pages. ".repeat(120))),
        )
        .script(0, "/app.js", script(APP))
        .script(0, "/count.js", script(COUNTER))
        .script(0, "/api/menu", json("{\"text\":\"Home\"}"));
    for number in 0..BUILT {
        let path = built(number);
        let text = format!("word{number}built ").repeat(9);
        let article = format!("{{\"title\":\"built{number}\",\"text\":\"{text}\"}}");
        spec = spec.script(0, &path, HttpAnswer::html(SHELL)).script(
            0,
            &format!("/api{path}"),
            json(&article),
        );
    }
    for number in 0..SHORT {
        let page = format!("<title>short{number}</title><p>word{number}short{counter}");
        spec = spec.script(0, &short(number), HttpAnswer::html(&page));
    }
    for number in 0..LONG {
        let text = format!("word{number}long ").repeat(100);
        let page = format!("<title>long{number}</title><p>{text}{counter}");
        spec = spec.script(0, &long(number), HttpAnswer::html(&page));
    }
    spec.start()
}

#[test]
fn only_pages_that_need_it_are_rendered() {
    let web = site();
    let args = ["--render", "auto", "--delay", "0s", "--index", "on"];
    let folder = render(&web, &args);
    let pages = rows(&folder, "pages.jsonl");
    assert_eq!(pages.len(), 1 + BUILT + SHORT + LONG);
    let mut rendered = BTreeMap::new();
    for page in pages.iter().filter(|page| !page["render"].is_null()) {
        assert!(page["render"]["error"].is_null(), "{page}");
        let title = page["title"].as_str().unwrap();
        let kind = title.trim_end_matches(|letter: char| letter.is_ascii_digit());
        *rendered.entry(kind.to_owned()).or_insert(0) += 1;
    }
    assert_eq!(rendered.get("built"), Some(&BUILT), "{rendered:?}");
    let in_vain: usize = rendered.values().sum::<usize>() - BUILT;
    assert!(in_vain <= (SHORT + LONG) / 10, "{rendered:?}");
    for word in [
        "word7built",
        "word44built",
        "word3short",
        "word79short",
        "word5long",
    ] {
        let found = run(folder.path(), &["search", "out", word]);
        let found = String::from_utf8(found.stdout).unwrap();
        assert!(found.contains("1 page\n"), "{word}: {found}");
    }
    // Scripts and data are requested once, and no document is requested again.
    let [seen, listed] = requests(&web, &folder);
    assert_eq!(seen, listed);
    assert!(seen.values().all(|count| *count == 1), "{seen:?}");
    let resources = seen.len() - pages.len();
    // Requests for resources: an article for each page, two scripts, the menu, robots.txt and the
    // sitemap.
    assert_eq!(resources, BUILT + 5, "{seen:?}");
}
