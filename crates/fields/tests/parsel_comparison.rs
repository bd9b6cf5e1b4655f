//! Compares the fields of five pages with the results of parsel, the selector library of Scrapy.
#![cfg(feature = "tree")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the pages lie in files, and parsel is a program"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crawl_fields::{CompiledRules, PageToMatch, RuleConfig};
use expect_test::expect_file;
use serde_json::{Map, Value};

/// The fields whose values differ from parsel's, and the reason for each difference.
const DIFFERENCES: [(&str, Why); 3] = [
    ("shop.rows", Why::Tbody),
    ("shop.products.name", Why::Spaces),
    ("forum.posts.text", Why::Spaces),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Why {
    /// In this crate, blocks and line breaks separate words, as on the screen. In parsel, the text
    /// of `a<br>b` is `ab`.
    Spaces,
    /// This crate follows the HTML standard and puts table rows in a TBODY, so `table > tr` never
    /// matches. parsel uses libxml2, which doesn't insert a TBODY.
    Tbody,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parsel")
}

/// Returns the fields of each page, by the name of the page's rule.
fn extracted() -> Value {
    #[derive(serde::Deserialize)]
    struct File {
        extract: Vec<RuleConfig>,
    }
    let text = std::fs::read_to_string(folder().join("rules.toml")).unwrap();
    let file: File = toml::from_str(&text).unwrap();
    let pages = file.extract.into_iter().map(|rule| {
        let name = rule.name.clone();
        let html = std::fs::read_to_string(folder().join(format!("{name}.html"))).unwrap();
        let facts = PageToMatch {
            url: &format!("https://{name}.example/list/page.html?page=2"),
            ..PageToMatch::default()
        };
        let rules = CompiledRules::compile(&[rule]).unwrap();
        let extract = rules.extract(&html, &facts).pop().unwrap();
        (name, Value::Object(extract.fields))
    });
    Value::Object(pages.collect::<Map<_, _>>())
}

/// Collects the values of all leaves by their paths, such as `shop.products[0].name`. An empty list
/// counts as a leaf.
fn flatten(path: &str, value: &Value, into: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                flatten(&format!("{path}.{name}"), value, into);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                flatten(&format!("{path}[{at}]"), item, into);
            }
        }
        value => drop(into.insert(path.trim_start_matches('.').to_owned(), value.clone())),
    }
}

/// Returns a path without list indices.
fn field_of(path: &str) -> String {
    let parts = path.split('[');
    let parts = parts.map(|part| part.split_once(']').map_or(part, |(_, rest)| rest));
    parts.collect()
}

#[test]
fn five_pages_give_the_fields_that_a_person_sees() {
    let text = serde_json::to_string_pretty(&extracted()).unwrap() + "\n";
    expect_file![folder().join("expected.json")].assert_eq(&text);
}

/// The environment variable `CRAWL_PYTHON_BIN` names the folder with the programs of a Python
/// environment that contains parsel.
#[test]
#[ignore = "needs parsel: cargo xtask test sets it up"]
fn parsel_finds_the_same_fields() {
    let python = PathBuf::from(std::env::var_os("CRAWL_PYTHON_BIN").unwrap()).join("python");
    let read = Command::new(python)
        .arg(folder().join("fields.py"))
        .arg(folder())
        .output()
        .unwrap();
    assert!(
        read.status.success(),
        "{}",
        String::from_utf8_lossy(&read.stderr)
    );
    let (mut ours, mut theirs) = (BTreeMap::new(), BTreeMap::new());
    flatten("", &extracted(), &mut ours);
    let values: Value = serde_json::from_slice(&read.stdout).unwrap();
    flatten("", &values, &mut theirs);
    let mut differing: Vec<_> = ours.keys().chain(theirs.keys()).collect();
    differing.retain(|path| ours.get(*path) != theirs.get(*path));
    let fields: Vec<String> = differing.iter().map(|path| field_of(path)).collect();
    let unspaced = |value: Option<&Value>| {
        let text = value.map(ToString::to_string).unwrap_or_default();
        text.split_whitespace().collect::<String>()
    };
    for path in &differing {
        let expected = DIFFERENCES
            .iter()
            .find(|(field, _)| *field == field_of(path));
        let is_explained = match expected {
            Some((_, Why::Spaces)) => unspaced(ours.get(*path)) == unspaced(theirs.get(*path)),
            Some((_, Why::Tbody)) => ours
                .get(*path)
                .is_none_or(|value| *value == Value::Array(vec![])),
            None => false,
        };
        let (ours, theirs) = (ours.get(*path), theirs.get(*path));
        assert!(is_explained, "{path}: {ours:?}, but parsel has {theirs:?}");
    }
    for (field, why) in DIFFERENCES {
        assert!(
            fields.iter().any(|name| name == field),
            "{field} no longer differs ({why:?})"
        );
    }
}
