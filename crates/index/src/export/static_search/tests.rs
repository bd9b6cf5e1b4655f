//! Reads bundles back from their files, as described in `word_files.rs` and `page_texts.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;

use super::inverted_index_builder::by_utf16;
use super::{Manifest, StaticSearchReport, StaticSearchWriter};
use crate::export::sample_pages::{full, odd};
use crate::index_document::path_words;
use crate::synonyms_and_pins::SearchRules;
use crate::words::{Stemmer, words};
use crawl_index_entry::{Heading, IndexedPage};

/// A bundle in a temporary folder.
struct Made {
    _dir: tempfile::TempDir,
    path: PathBuf,
    report: StaticSearchReport,
    manifest: Manifest,
}

/// A word read from a word file, with the words that have the same stem. For each page, `pages` has
/// whether the word is in the title, its weight, and the bits of the pieces.
#[derive(Clone, Debug, Default)]
struct ShardWord {
    class: Vec<String>,
    stem: String,
    class_pages: u32,
    compounds: Vec<String>,
    pages: BTreeMap<u32, (bool, u8, Option<u32>)>,
    /// For each page with a heading that contains the word: the bits of the headings.
    headings: BTreeMap<u32, u32>,
    only_beside: BTreeSet<u32>,
}

fn make(pages: &[IndexedPage]) -> Made {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("search");
    let mut bundle = StaticSearchWriter::create(&path, 100).unwrap();
    for page in pages {
        bundle.page(page).unwrap();
    }
    let report = bundle.finish().unwrap();
    let manifest = fs::read(path.join("search.json")).unwrap();
    Made {
        _dir: dir,
        path,
        report,
        manifest: serde_json::from_slice(&manifest).unwrap(),
    }
}

fn page(url: &str, title: &str, text: &str) -> IndexedPage {
    IndexedPage {
        url: url.to_owned(),
        title: title.to_owned(),
        text: text.to_owned(),
        language: Some("en".to_owned()),
        ..IndexedPage::default()
    }
}

impl Made {
    fn data(&self, name: &str) -> Vec<u8> {
        let file = fs::read(self.path.join(&self.manifest.data).join(name)).unwrap();
        let mut raw = Vec::new();
        GzDecoder::new(file.as_slice())
            .read_to_end(&mut raw)
            .unwrap();
        raw
    }

    fn text(&self, page: u32, piece: u32) -> Value {
        serde_json::from_slice(&self.data(&format!("texts/{page}-{piece}"))).unwrap()
    }

    fn shard_of(&self, word: &str) -> usize {
        let begins = &self.manifest.words;
        begins
            .partition_point(|begin| by_utf16(begin, word).is_le())
            .saturating_sub(1)
    }

    fn find(&self, word: &str) -> Option<ShardWord> {
        self.shard(self.shard_of(word)).remove(word)
    }

    fn shard(&self, n: usize) -> BTreeMap<String, ShardWord> {
        let mut rest = self.data(&format!("words/{n}")).into_iter();
        let mut words = BTreeMap::new();
        let mut name: Vec<u8> = Vec::new();
        while rest.len() > 0 {
            let class_pages = number(&mut rest);
            let same_as_first = number(&mut rest) as usize;
            let more = number(&mut rest) as usize;
            let stem_end: Vec<u8> = rest.by_ref().take(more).collect();
            let compounds: Vec<String> = (0..number(&mut rest))
                .map(|_| {
                    let length = number(&mut rest) as usize;
                    String::from_utf8(rest.by_ref().take(length).collect()).unwrap()
                })
                .collect();
            let mut class = Vec::new();
            for _ in 0..number(&mut rest) {
                let same = number(&mut rest) as usize;
                let more = number(&mut rest) as usize;
                name.truncate(same);
                name.extend(rest.by_ref().take(more));
                let count = number(&mut rest) as usize;
                let heads: Vec<u32> = (0..count).map(|_| number(&mut rest)).collect();
                let weights: Vec<u8> = rest.by_ref().take(count).collect();
                let texts: Vec<u8> = rest.by_ref().take(count).collect();
                assert!(texts.iter().all(|text| *text < 64));
                let (mut at, mut pages) = (0, BTreeMap::new());
                for (head, weight) in heads.iter().zip(weights) {
                    at += head / 16;
                    let pieces = (head & 2 != 0).then(|| number(&mut rest));
                    pages.insert(at, (head & 1 == 1, weight, pieces));
                }
                let (mut at, mut headings) = (0, BTreeMap::new());
                let mut only_beside = BTreeSet::new();
                for head in heads {
                    at += head / 16;
                    if head & 4 != 0 {
                        headings.insert(at, number(&mut rest));
                    }
                    if head & 8 != 0 {
                        only_beside.insert(at);
                    }
                }
                let word = String::from_utf8(name.clone()).unwrap();
                class.push((word, pages, headings, only_beside));
            }
            let first: &String = &class[0].0;
            let mut stem = first.as_bytes()[..same_as_first].to_vec();
            stem.extend(stem_end);
            let stem = String::from_utf8(stem).unwrap();
            let names: Vec<String> = class.iter().map(|(word, ..)| word.clone()).collect();
            for (word, pages, headings, only_beside) in class {
                let word_data = ShardWord {
                    class: names.clone(),
                    stem: stem.clone(),
                    class_pages,
                    compounds: compounds.clone(),
                    pages,
                    headings,
                    only_beside,
                };
                assert!(
                    words.insert(word, word_data).is_none(),
                    "a word stands there twice"
                );
            }
        }
        words
    }

    /// Returns all files of the bundle with their content.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(&self.path, &self.path, &mut files);
        files
    }
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect(root, &path, files),
            false => {
                let name = path.strip_prefix(root).unwrap().to_path_buf();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
}

fn number(bytes: &mut impl Iterator<Item = u8>) -> u32 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes.next().unwrap();
        value |= u32::from(byte & 0x7F) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

/// Returns pages with so many different words that the bundle needs several word files.
fn many() -> Vec<IndexedPage> {
    let word = |n: usize| {
        let letter = |n: usize| char::from(b"bcdfghklmnprstvz"[n % 16]);
        format!(
            "{}a{}o{}u{}",
            letter(n),
            letter(n / 16),
            letter(n / 256),
            letter(n / 4096)
        )
    };
    let text = |page: usize| {
        let words = (0..300).map(|n| word(page * 131 + n * 7));
        words.collect::<Vec<_>>().join(" ")
    };
    let mut pages: Vec<IndexedPage> = (0..60)
        .map(|n| {
            page(
                &format!("http://a.example/{n:02}"),
                &format!("Page {n}"),
                &text(n),
            )
        })
        .collect();
    pages[7].text = format!("{}\n", text(7)).repeat(8);
    pages[9].text.push_str(" happy happiness 東京都 🦀 𝒳yz ﬀ");
    pages
}

#[test]
fn each_word_leads_to_its_pages() {
    let pages = many();
    let made = make(&pages);
    let shards: Vec<_> = (0..made.manifest.words.len())
        .map(|n| made.shard(n))
        .collect();
    assert!(shards.len() > 2, "{:?}", made.manifest.words);
    let mut all = BTreeSet::new();
    for (n, page) in (0..).zip(&pages) {
        let stemmer = Stemmer::of(page.language.as_deref());
        let mut expected_words: BTreeMap<String, bool> = BTreeMap::new();
        for (text, is_title) in [
            (page.text.as_str(), false),
            (&path_words(page.path()), false),
            (&page.title, true),
        ] {
            expected_words.extend(
                words(text, &stemmer)
                    .into_iter()
                    .map(|word| (word.text, is_title)),
            );
        }
        for (word, in_title) in expected_words {
            let word_data = &shards[made.shard_of(&word)][&word];
            assert_eq!(
                word_data.stem,
                stemmer.stem_of(&word).unwrap_or(word.clone())
            );
            let (title, weight, pieces) = word_data.pages[&n];
            assert_eq!(title, in_title, "{word}");
            // The weight of a word that all pages have is close to zero.
            assert!(weight > 0 && word_data.class_pages as usize >= word_data.pages.len());
            assert_eq!(pieces.is_some(), n == 7);
            all.insert(word);
        }
    }
    let sites = 60 + 2;
    assert_eq!(made.report.words, all.len() as u64 + sites);
}

#[test]
fn words_that_only_the_text_outside_the_main_text_has_are_marked() {
    let mut pages = [
        page("http://a.example/tea", "Tea", "Leaves and imprints"),
        page("http://a.example/cup", "Cup", "Leaves in a cup"),
    ];
    for page in &mut pages {
        page.beside = "Imprints and leaves".to_owned();
    }
    let made = make(&pages);
    let marked = |word: &str| made.find(word).unwrap().only_beside.len();
    assert_eq!(["imprints", "leaves", "cup"].map(marked), [1, 0, 0]);
}

#[test]
fn a_word_of_most_titles_has_no_title_weight() {
    let title = |n: u32| format!("Chapter {n} (Manual)");
    let site: Vec<IndexedPage> = (0..20)
        .map(|n| {
            page(
                &format!("http://m.example/{n}"),
                &title(n),
                "manual and text",
            )
        })
        .collect();
    let weight = |made: &Made, word: &str| made.find(word).unwrap().pages[&0].1;
    let made = make(&site);
    assert_eq!(weight(&made, "manual"), weight(&made, "text"));
    assert!(made.find("manual").unwrap().pages[&0].0);
    // On a site with fewer than twenty pages, no word counts as shared by most titles.
    let made = make(&site[..19]);
    assert!(weight(&made, "manual") > weight(&made, "text"));
}

#[test]
fn words_of_one_heading_have_a_bit_in_common() {
    let heading = |text: &str| Heading {
        level: 2,
        text: text.to_owned(),
        id: None,
        at: 0,
    };
    let with_headings = IndexedPage {
        headings: vec![heading("Cache prefix"), heading("Session timeout")],
        ..page(
            "http://a.example/a",
            "Settings",
            "cache prefix session timeout",
        )
    };
    let without = page("http://a.example/b", "Other", "cache prefix");
    let made = make(&[with_headings, without]);
    let bits = |word: &str| made.find(word).unwrap().headings.get(&0).copied();
    assert!(bits("cache").is_some_and(|bits| bits > 0));
    assert_eq!(bits("cache"), bits("prefix"));
    assert_ne!(bits("cache"), bits("timeout"));
    assert_eq!(bits("settings"), None);
    assert!(!made.find("cache").unwrap().headings.contains_key(&1));
}

#[test]
fn change_lists_have_a_prior_that_depends_on_the_query() {
    let path = |n: u32| format!("http://a.example/releases/{n}");
    let mut pages: Vec<IndexedPage> = (1..4)
        .map(|n| page(&path(n), &format!("Release notes {n}"), "fixed"))
        .collect();
    pages.push(page("http://a.example/guide", "Guide", "fixed"));
    assert_eq!(make(&pages).manifest.priors, [(1, 3, 550, 1000)]);
}

#[test]
fn links_raise_the_prior_of_a_page_as_in_the_index() {
    let mut pages: Vec<IndexedPage> = (0..6)
        .map(|n| page(&format!("http://a.example/{n}"), "Tea", "kettle"))
        .collect();
    // A prior depends on the number of binary digits of the link count: 2 and 3 have two, 200 has
    // eight.
    for (page, links) in pages.iter_mut().zip([2, 0, 200, 3, 0, 200]) {
        page.linked_from = links;
    }
    let made = make(&pages);
    // Each binary digit adds 0.016 to the prior. Pages with the same prior have consecutive
    // numbers.
    let priors = [(2, 3, 1032, 1032), (4, 5, 1128, 1128)];
    assert_eq!(made.manifest.priors, priors);
    let urls = (0..6).map(|n| made.text(n, 0)["u"].clone());
    let urls: Vec<_> = urls.collect();
    assert_eq!(
        urls,
        [1, 4, 0, 3, 2, 5].map(|n| format!("http://a.example/{n}"))
    );
}

#[test]
fn words_of_one_stem_are_one_class_in_the_files_of_each() {
    let made = make(&many());
    for word in ["happy", "happiness"] {
        assert_eq!(made.find(word).unwrap().class, ["happiness", "happy"]);
    }
    assert_eq!(made.find("東京").unwrap().class, ["東京"]);
    assert!(made.find("東京都").is_none());
    assert!(
        made.find("\u{2}a.example/07")
            .unwrap()
            .pages
            .contains_key(&7)
    );
}

#[test]
fn pieces_name_the_texts_that_have_the_word() {
    let made = make(&many());
    let mut pieces = 0;
    while made
        .path
        .join(&made.manifest.data)
        .join(format!("texts/7-{pieces}"))
        .exists()
    {
        pieces += 1;
    }
    assert!(pieces > 1);
    for word in words(&many()[7].text, &Stemmer::of(None))
        .into_iter()
        .take(50)
    {
        let bits = made.find(&word.text).unwrap().pages[&7].2.unwrap();
        for piece in 0..pieces {
            let text = made.text(7, piece)["x"].as_str().unwrap().to_owned();
            let here = words(&text, &Stemmer::of(None))
                .iter()
                .any(|other| other.text == word.text);
            assert_eq!(bits & (1 << piece) != 0, here, "{} in {piece}", word.text);
        }
    }
}

#[test]
fn the_same_pages_give_the_same_bytes_in_any_order() {
    let mut pages = many();
    pages.push(full());
    let first = make(&pages);
    pages.reverse();
    let second = make(&pages);
    assert_eq!(first.report, second.report);
    assert!(first.files() == second.files());
    let bytes: usize = first.files().values().map(Vec::len).sum();
    assert_eq!(first.report.bytes, bytes as u64);
    assert_eq!(first.report.files, first.files().len() as u64);
    pages[3].text.push('!');
    assert_ne!(make(&pages).manifest.data, first.manifest.data);
}

#[test]
fn text_beyond_max_snippet_is_not_in_any_file() {
    let untold = IndexedPage {
        max_snippet: Some(0),
        description: "secretdescription".into(),
        ..page("http://a.example/a", "Told", "secretword")
    };
    let heading = |text: &str| Heading {
        level: 2,
        text: text.to_owned(),
        ..Heading::default()
    };
    let short = IndexedPage {
        max_snippet: Some(7),
        headings: vec![heading("äbcdefgh"), heading("äbcdefgh and more")],
        ..page("http://a.example/b", "Short", "äbcdefgh and more")
    };
    let made = make(&[untold, short]);
    assert_eq!(made.text(0, 0)["x"], "");
    assert!(made.text(0, 0).get("d").is_none());
    assert_eq!(made.text(1, 0)["x"], "äbcdefg");
    assert!(made.text(1, 0).get("h").is_none());
    // Even a page that allows no excerpts is found by its words.
    assert!(made.find("secretword").unwrap().pages.contains_key(&0));
    assert!(made.find("more").unwrap().pages.contains_key(&1));
}

#[test]
fn withheld_text_is_found_but_in_no_file() {
    let made = make(&[IndexedPage {
        withheld: "Confidential".to_owned(),
        ..page("http://a.example/a", "Lamps", "Public")
    }]);
    assert!(made.find("confidential").is_some());
    assert!(!made.text(0, 0).to_string().contains("onfidential"));
}

#[test]
fn expired_pages_are_left_out_and_others_have_their_expiry() {
    let until = |url: &str, until| IndexedPage {
        until: Some(until),
        ..page(url, "t", "x")
    };
    let twin = IndexedPage {
        same_as: Some("http://a.example/b".into()),
        ..page("http://a.example/c", "t", "x")
    };
    let pages = [
        until("http://a.example/a", 100),
        until("http://a.example/b", 101),
        twin,
    ];
    let made = make(&pages);
    assert_eq!((made.report.pages, made.report.left_out), (1, 2));
    assert_eq!(made.manifest.until, [(0, 101)]);
}

#[test]
fn no_page_and_odd_pages() {
    let empty = make(&[]);
    assert_eq!((empty.manifest.pages, empty.manifest.words.len()), (0, 1));
    assert!(empty.shard(0).is_empty());
    let mut pages = odd();
    pages.sort_by(|a, b| a.url.cmp(&b.url));
    let made = make(&pages);
    for (n, page) in (0..).zip(&pages) {
        let text = made.text(n, 0);
        assert_eq!(text["u"], page.url.as_str());
        assert_eq!(
            text["t"],
            crawl_weburl::without_bidi_controls(page.name()).as_ref()
        );
    }
    // Pages in any encoding can load the script.
    let script = fs::read_to_string(made.path.join("search.js")).unwrap();
    assert!(script.is_ascii() && script.contains(r"\u2026"));
    for word in ["東京", "ไทย", "한국어", "quoted", "script"] {
        assert!(made.find(word).is_some(), "{word}");
    }
}

#[test]
fn only_a_bundle_is_replaced() {
    let made = make(&[full()]);
    StaticSearchWriter::create(&made.path, 0).unwrap();
    let manifest = made.path.join("search.json");
    for foreign in [
        "{}",
        "no JSON",
        r#"{"format":1,"data":"..","pages":0,"words":[],"until":[]}"#,
    ] {
        fs::write(&manifest, foreign).unwrap();
        let refused = StaticSearchWriter::create(&made.path, 0)
            .unwrap_err()
            .to_string();
        assert!(refused.ends_with("already exists"), "{refused}");
    }
}

#[test]
fn words_know_the_compounds_that_end_in_them() {
    let german = |url: &str, text: &str| IndexedPage {
        language: Some("de".to_owned()),
        ..page(url, "", text)
    };
    let made = make(&[
        german("http://a.example/1", "Versicherung Unfallversicherung"),
        german("http://a.example/2", "Krankenversicherungen"),
        german("http://a.example/3", "Krankenversicherungen Sicherung"),
    ]);
    assert!(made.manifest.compounds);
    let compounds = |word: &str| made.find(word).unwrap().compounds;
    assert_eq!(
        compounds("versicherung"),
        ["krankenversicherungen", "unfallversicherung"]
    );
    assert!(compounds("krankenversicherungen").is_empty());
    // For each end (the last letters of words), the words with this end are listed. The search uses
    // them to find compounds of words that no page has.
    assert_eq!(
        compounds("\u{3}erung"),
        ["sicherung", "unfallversicherung", "versicherung"]
    );
    // English doesn't write compounds as one word, so none are looked up.
    let made = make(&[page("http://a.example/1", "", "ground playground")]);
    assert!(!made.manifest.compounds);
    assert!(made.find("ground").unwrap().compounds.is_empty());
}

#[test]
fn pins_name_pages_that_are_there() {
    let dir = tempfile::tempdir().unwrap();
    let rules = "synonyms = [['K8s', 'kubernetes']]\n\
        [[pins]]\nqueries = ['How to get here?']\nurl = 'http://a.example/visit'\n\
        [[pins]]\nqueries = ['gone']\nurl = 'http://a.example/gone'\n";
    let rules = SearchRules::parse(rules).unwrap();
    let path = dir.path().join("search");
    let mut bundle = StaticSearchWriter::create(&path, 0)
        .unwrap()
        .with_rules(rules);
    bundle
        .page(&page("http://a.example/visit", "", "b"))
        .unwrap();
    bundle.page(&page("http://a.example/a", "", "a")).unwrap();
    bundle.finish().unwrap();
    let manifest = fs::read(path.join("search.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["pins"], serde_json::json!({"how to get here": 1}));
    assert_eq!(
        manifest["synonyms"],
        serde_json::json!({"k8s": ["kubernetes"], "kubernetes": ["k8s"]})
    );
}
