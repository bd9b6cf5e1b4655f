//! Tests of a static search in a browser: run the checks in `checks.py`, which drive Chromium
//! through Playwright.
//!
//! Environment variables name the required programs; `cargo xtask test --step browser` sets them:
//! `CRAWL_PYTHON_BIN` (with playwright), `CRAWL_CHROMIUM`, `CRAWL_CHROMIUM_LIBRARIES`,
//! `CRAWL_CHROMIUM_FONTS`, `CRAWL_AXE`.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod ranking;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crawl_index::export::{ExportError, StaticSearchWriter};
use crawl_index::words::{Stemmer, WordRelation, words};
use crawl_index::{Heading, IndexSearcher, IndexWriter, IndexedPage, SearchOptions, SearchRules};
use serde_json::{Value, json};

/// Returns the path in the environment variable `variable`.
fn named(variable: &str) -> PathBuf {
    std::env::var_os(variable)
        .unwrap_or_else(|| panic!("{variable} is not set: cargo xtask test --step browser sets it"))
        .into()
}

#[test]
fn the_static_search_passes_its_browser_checks() {
    let dir = tempfile::tempdir().unwrap();
    let index = index(&dir.path().join("index"));
    // A site that embeds the search, with files of its own.
    let site = dir.path().join("site");
    let rules = SearchRules::parse(RULES).unwrap();
    let bundle = StaticSearchWriter::create(&site.join("search"), 0).unwrap();
    let mut bundle = bundle.with_rules(rules);
    index
        .each_page(|page| -> Result<(), ExportError> { bundle.page(&page) })
        .unwrap();
    bundle.finish().unwrap();
    embedding(&site);
    let expectations = json!({
        "folder": site,
        "words": texts().into_iter().map(as_words).collect::<Vec<_>>(),
        "answers": QUERIES.map(|query| answer(&index, query)),
        "leads": LEADS.map(|query| lead(&index, query)),
    });
    let expectations_file = dir.path().join("setup.json");
    fs::write(&expectations_file, expectations.to_string()).unwrap();
    let checks = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/checks.py");
    let status = Command::new(named("CRAWL_PYTHON_BIN").join("python"))
        .arg(checks)
        .arg(&expectations_file)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .status();
    assert!(
        status.unwrap().success(),
        "a check failed; its name is above"
    );
}

/// Queries for which the index and the static search find the same pages.
const QUERIES: [&str; 28] = [
    "green tea",
    "gree",
    "zzzz lantern",
    "\"green tea\" zzzz",
    "-coffee",
    "brewed",
    "\"boiling water\"",
    "\"water boiling\"",
    "\"spring harvest\"",
    "tea -black",
    "title:coffee",
    "site:tea.example/docs tea",
    "site:Tea.Example/Shop/T%C3%BCr kettle",
    "site:tea.example/shop kettle",
    "-site:tea.example/Shop/T%C3%BCr kettle",
    "site:http://tea.example:80/Shop/Tür/ kettle",
    "site:\"tea.example/my shop\" kettle",
    "lantenr",
    "teapot",
    "vorplatz",
    "platz",
    "東京",
    "東京都",
    "os.path.join",
    "naïve café",
    "nosuchword",
    "secretword",
    "c++",
];

/// Queries whose first result links to the same URL in the index and in the static search.
const LEADS: [&str; 4] = ["boiling leaves", "steeping times", "rinse", "lantern café"];

/// The site owner's search rules.
const RULES: &str = "synonyms = [['cha', 'green']]\n\
    [[pins]]\nqueries = ['opening times']\nurl = 'http://tea.example/coffee.html'\n\
    [[pins]]\nqueries = ['gone page']\nurl = 'http://tea.example/gone.html'\n";

fn page(path: &str, title: &str, text: &str) -> IndexedPage {
    IndexedPage {
        url: format!("http://tea.example{path}"),
        title: title.to_owned(),
        text: text.to_owned(),
        language: Some("en".to_owned()),
        ..IndexedPage::default()
    }
}

fn pages() -> Vec<IndexedPage> {
    let heading = |level, text: &str, at| Heading {
        level,
        text: text.to_owned(),
        id: Some(text.to_lowercase().replace(' ', "-")),
        at,
    };
    let guide = format!(
        "Green tea\nSteep the leaves.\n{}\nBrewing it\nPour boiling water over the leaves of green tea.",
        "Leaves dry in the sun and the wind. ".repeat(700)
    );
    let steeping = "Steeping\nIt is simple.\nTimes\nEach has its own.\nSteeping times of oolong\n\
        Three minutes, and one more each time.\nRinse & dry\nRinse the pot.";
    let german = |path: &str, title: &str, text: &str| IndexedPage {
        language: Some("de".to_owned()),
        ..page(path, title, text)
    };
    let mut pages = vec![
        IndexedPage {
            headings: vec![
                heading(1, "Green tea", 0),
                heading(2, "Brewing it", guide.find("Brewing").unwrap_or(0)),
            ],
            ..page("/docs/green.html", "Green tea", &guide)
        },
        page(
            "/docs/black.html",
            "Black tea",
            "Black tea is brewed with boiling water.",
        ),
        // This page has the phrase of a query only in its title. The next page has it only in its
        // text.
        page("/harvest.html", "Spring harvest", "It is early."),
        page(
            "/picking.html",
            "Picking",
            "The spring harvest is the best.",
        ),
        page(
            "/coffee.html",
            "Coffee",
            "Water that is boiling spoils coffee. No tea pot is needed.",
        ),
        IndexedPage {
            headings: vec![
                heading(1, "Steeping", 0),
                heading(2, "Times", steeping.find("Times").unwrap_or(0)),
                heading(
                    3,
                    "Steeping times of oolong",
                    steeping.find("Steeping times").unwrap_or(0),
                ),
                Heading {
                    id: None,
                    ..heading(2, "Rinse & dry", steeping.find("Rinse").unwrap_or(0))
                },
            ],
            ..page("/docs/steeping.html", "Steeping", steeping)
        },
        german(
            "/krank.html",
            "Krankenversicherung",
            "Wer krank ist, hat eine.",
        ),
        german("/versicherung.html", "Versicherung", "Sie zahlt."),
        german(
            "/platz.html",
            "Anfahrt",
            "Der Bahnhofsvorplatz liegt im Norden.",
        ),
        german(
            "/pflicht.html",
            "Alles",
            "Die Versicherung ist eine Pflicht.",
        ),
        page(
            "/lanterns.html",
            "Lanterns",
            "A lantern hangs in the naïve café.",
        ),
        page("/Shop/T%C3%BCr/kettle.html", "Steel", "A kettle of steel."),
        page("/my%20shop/kettle.html", "Tin", "A kettle of tin."),
        page("/shop/kettle.html", "Iron", "A kettle of iron."),
        page(
            "/code.html",
            "Names",
            "Use os.path.join, ThreadPool and C++ here.",
        ),
        IndexedPage {
            language: Some("ja".to_owned()),
            ..page("/tokyo.html", "東京", "東京都のお茶")
        },
        IndexedPage {
            max_snippet: Some(0),
            ..page("/untold.html", "Untold", "A secretword stands here.")
        },
        page(
            "/hostile.html?q=<script>",
            "<img src=x onerror=alert(1)> hostile",
            "<script>alert(2)</script> \u{202e}hostile text",
        ),
    ];
    for n in 0..30 {
        let path = format!("/chapters/{n}.html");
        pages.push(page(
            &path,
            &format!("Chapter {n}"),
            &format!("The chapter numbered {n}."),
        ));
    }
    pages
}

fn index(dir: &Path) -> IndexSearcher {
    let mut writer = IndexWriter::open(dir).unwrap();
    for page in pages() {
        writer.put(&page).unwrap();
    }
    writer.reconcile("", 0).unwrap();
    writer.close().unwrap();
    IndexSearcher::open(dir).unwrap()
}

fn answer(index: &IndexSearcher, query: &str) -> Value {
    let answer = index.search(query, &SearchOptions::default()).unwrap();
    let urls: Vec<_> = answer.results.into_iter().map(|hit| hit.url).collect();
    json!({"query": query, "urls": urls})
}

fn lead(index: &IndexSearcher, query: &str) -> Value {
    let answer = index.search(query, &SearchOptions::default()).unwrap();
    let first = serde_json::to_value(answer.results.first().unwrap()).unwrap();
    json!({
        "query": query,
        "url": first["url"],
        "leads_to": first["leads_to"],
        "passage_url": first["passage_url"],
        "section": first["section"],
        "sections": first["sections"],
    })
}

/// Returns texts that JavaScript must split into the same words as the index.
fn texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "Running the Cafés\nNaïve, Straße Ærø",
        "os.path.join user_agent __init__ ThreadPool HTTPServer parseHTMLPage x86_64 iPhone",
        "C++ and C#, a+b F#, C+++ 3.14 1,000,000 10.0.0.1 e.g. U.S.A. don't l'index ’quoted’",
        "http://a.example/b-c_d?e=f&g=%20 mail@a.example --delay=5 a/b a:b key:value 12:30",
        "東京都 café 검색 한국어 ｶﾀｶﾅ カタカナ ひらがな 中文字",
        "ﾊﾞﾅﾅ と ﾍﾟﾝ、バナナ ハ\u{3099}ナナ",
        "Привет мир, ἄνθρωπος שלום עולם مرحبا بالعالم हिन्दी में",
        "\u{202e}turned\u{200b}hidden soft\u{ad}hyphen 💡 ﬀ Ⅷ ½ ² ① Å x² 10³ m²n",
        "שָׁלוֹם مُحَمَّد مـحمد أحمد ٢٠٢٤ ۱۴۰۳ ३७ ٣٫١٤ ١٬٠٠٠ \u{200f}عربي\u{200f}",
        "x != y (??)\n|> z\n\n=> && i<=3 --flag http://a -- ... ----- 中 == 文",
        "CO₂, C₆H₁₂O₆ 10 km² µm²x lamps² ¹⁴C x₁₂ صندوق کتابی مصطفى",
        "צה\"ל דו״ח ארה”ב ג׳ירפה 19\" rack \"a\"b",
        "",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.push(format!("a {} b", "x".repeat(200)));
    texts
}

fn as_words(text: String) -> Value {
    let kind = |kind| match kind {
        WordRelation::Plain => "plain",
        WordRelation::Part => "part",
        WordRelation::Character => "character",
        WordRelation::Pair => "pair",
    };
    let all_words = words(&text, &Stemmer::of(Some("xx")));
    let words = all_words
        .into_iter()
        .map(|word| json!([word.text, word.position, kind(word.kind)]));
    let words: Vec<Value> = words.collect();
    json!({"text": text, "words": words})
}

/// Writes a page that embeds the search with one script tag, under a strict content security
/// policy.
fn embedding(site: &Path) {
    let page = "<!doctype html><html lang=en><head><meta charset=utf-8><title>A site</title>\
        <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; script-src 'self'; \
        style-src 'self'; connect-src 'self'\"></head><body><main><h1>A site of its own</h1>\
        <input name=other aria-label=Other><script src=/search/search.js data-label=\"Find it\" data-limit=5 data-shortcut=/ \
        defer></script><p>Some text.</p></main></body></html>";
    fs::write(site.join("embedded.html"), page).unwrap();
}
