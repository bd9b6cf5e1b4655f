//! Tests of invalid indexes and meaningless queries.

use std::fs;

use crawl_index::{
    IndexError, IndexSearcher, IndexWriter, MAX_QUERY_BYTES, MAX_RESULTS, QueryError, SearchOptions,
};
use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::support::{found, indexed, page, search, write};

fn words_of(error: &IndexError, dir: &std::path::Path) -> String {
    error.to_string().replace(&dir.display().to_string(), "DIR")
}

#[track_caller]
fn check_open(prepare: impl FnOnce(&std::path::Path), expected: Expect) {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path());
    let error = IndexSearcher::open(dir.path()).map(drop).unwrap_err();
    expected.assert_eq(&words_of(&error, dir.path()));
}

#[test]
fn directories_without_an_index() {
    check_open(|_| {}, expect!["DIR holds no search index"]);
    check_open(
        |dir| fs::write(dir.join("format.json"), r#"{"format":0}"#).unwrap(),
        expect!["the search index in DIR is of format 0, and this program reads 5"],
    );
    check_open(
        |dir| fs::write(dir.join("format.json"), r#"{"form"#).unwrap(),
        expect![
            "the search index in DIR is damaged: format.json: EOF while parsing a string at line 1 column 6"
        ],
    );
    check_open(
        |dir| fs::write(dir.join("format.json"), r#"{"format":5}"#).unwrap(),
        expect!["DIR holds no search index"],
    );
}

#[test]
fn damaged_indexes() {
    let pages = [page("http://a.example/", "Tea", "words words words")];
    check_open(
        |dir| {
            write(dir, &pages);
            fs::write(dir.join("meta.json"), "{}").unwrap();
        },
        expect![[
            r#"the search index in DIR is damaged: Data corrupted: 'Data corruption (in file `"meta.json"`): Meta file cannot be deserialized. Error("missing field `segments`", line: 1, column: 2). Content: "{}".'"#
        ]],
    );
    // Truncate, empty, change and delete each file in turn.
    let whole = tempfile::tempdir().unwrap();
    write(whole.path(), &pages);
    for entry in fs::read_dir(whole.path()).unwrap() {
        let name = entry.unwrap().file_name();
        // Skip the locks and the list of managed files, because readers don't need them.
        let is_segment = name.len() > 32 && !name.to_string_lossy().starts_with('.');
        if !is_segment {
            continue;
        }
        for damage in 0..4 {
            let dir = tempfile::tempdir().unwrap();
            for entry in fs::read_dir(whole.path()).unwrap() {
                let path = entry.unwrap().path();
                fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
            }
            let file = dir.path().join(&name);
            let mut bytes = fs::read(&file).unwrap();
            match damage {
                0 => bytes.truncate(bytes.len() / 2),
                1 => bytes.clear(),
                2 => {
                    let middle = bytes.len() / 2;
                    bytes[middle] ^= 0x55;
                }
                _ => fs::remove_file(&file).unwrap(),
            }
            if damage != 3 {
                fs::write(&file, bytes).unwrap();
            }
            // Opening must return an error or an index, but not panic.
            let error = IndexSearcher::open(dir.path())
                .and_then(|index| index.search("words", &SearchOptions::default()).map(drop));
            let error = error.unwrap_err();
            let is_named = matches!(error, IndexError::Damaged { .. } | IndexError::Disk { .. });
            assert!(is_named, "{} {damage}: {error}", name.display());
        }
    }
}

/// Checks the error that a writer returns for a changed index.
#[track_caller]
fn check_writer(change: impl FnOnce(&std::path::Path), expected: Expect) {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = IndexWriter::open(dir.path()).unwrap();
    for url in ["http://a.example/1", "http://a.example/2"] {
        writer.put(&page(url, "Tea", url)).unwrap();
    }
    writer.commit(r#"{"log":1,"octets":200}"#).unwrap();
    writer.drop_url("http://a.example/1");
    writer.commit(r#"{"log":1,"octets":300}"#).unwrap();
    writer.close().unwrap();
    change(dir.path());
    let error = IndexWriter::open(dir.path()).map(drop).unwrap_err();
    let name = |name: &str| match name.split_once('.') {
        // Replace the random names of segments.
        Some((segment, ending)) if segment.len() == 32 && !ending.contains('.') => {
            "SEGMENT.FILE".to_owned()
        }
        Some((segment, _)) if segment.len() == 32 => "SEGMENT.DELETIONS".to_owned(),
        _ if name.len() == 32 => "SEGMENT".to_owned(),
        _ => name.to_owned(),
    };
    let words = words_of(&error, dir.path());
    let words: Vec<_> = words.split(' ').map(name).collect();
    expected.assert_eq(&words.join(" "));
}

fn replace_in(dir: &std::path::Path, file: &str, from: &str, to: &str) {
    let text = fs::read_to_string(dir.join(file)).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(dir.join(file), text.replacen(from, to, 1)).unwrap();
}

#[test]
fn writers_refuse_changed_indexes() {
    let change_file = |ending: &'static str| {
        move |dir: &std::path::Path| {
            let entries = fs::read_dir(dir)
                .unwrap()
                .map(|entry| entry.unwrap().path());
            let mut files = entries.filter(|path| path.to_string_lossy().ends_with(ending));
            let file = files.next().unwrap();
            let mut bytes = fs::read(&file).unwrap();
            bytes[0] ^= 1;
            fs::write(file, bytes).unwrap();
        }
    };
    for ending in ["idx", "pos", "term", "store", "fast", "fieldnorm"] {
        check_writer(
            change_file(ending),
            expect!["the search index in DIR is damaged: SEGMENT.FILE is not as it was written"],
        );
    }
    check_writer(
        change_file("del"),
        expect!["the search index in DIR is damaged: SEGMENT.DELETIONS is not as it was written"],
    );
    // Trusting these counts would allocate gigabytes for deletions, or read documents that don't
    // exist.
    check_writer(
        |dir| {
            replace_in(
                dir,
                "meta.json",
                "\"max_doc\": 2",
                "\"max_doc\": 4294967295",
            );
        },
        expect!["the search index in DIR is damaged: meta.json miscounts the pages of SEGMENT"],
    );
    check_writer(
        |dir| {
            replace_in(
                dir,
                "meta.json",
                "\"num_deleted_docs\": 1",
                "\"num_deleted_docs\": 2",
            );
        },
        expect!["the search index in DIR is damaged: meta.json miscounts the pages of SEGMENT"],
    );
    // Change the note that records how far the source was read.
    check_writer(
        |dir| replace_in(dir, "meta.json", "octets\\\":300", "octets\\\":900"),
        expect!["the search index in DIR is damaged: its note is not as it was written"],
    );
    // List a foreign file, which tantivy would delete because no commit uses it.
    check_writer(
        |dir| fs::write(dir.join(".managed.json"), r#"["../pages.jsonl"]"#).unwrap(),
        expect!["the search index in DIR is damaged: .managed.json names `../pages.jsonl`"],
    );
    check_writer(
        |dir| {
            let file = fs::File::create(dir.join("meta.json")).unwrap();
            file.set_len(30 << 30).unwrap();
        },
        expect!["the search index in DIR is damaged: meta.json has more than 16777216 bytes"],
    );
}

#[test]
fn two_writers_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let _first = IndexWriter::open(dir.path()).unwrap();
    let error = IndexWriter::open(dir.path()).map(drop).unwrap_err();
    expect!["another process writes to the search index in DIR"]
        .assert_eq(&words_of(&error, dir.path()));
}

#[test]
fn two_readers_are_not() {
    let (dir, first) = indexed(&[page("http://a.example/", "Tea", "words")]);
    let second = IndexSearcher::open(dir.path()).unwrap();
    assert_eq!(found(&first, "tea"), found(&second, "tea"));
}

#[test]
fn an_empty_index_finds_nothing() {
    let (_dir, index) = indexed(&[]);
    for query in ["tea", "", "\"a b\"", "site:a.example", "te*", "-tea"] {
        assert_eq!(found(&index, query), "", "{query}");
    }
    let stats = index.stats().unwrap();
    assert_eq!((stats.pages, stats.fetched_at), (0, None));
}

#[test]
fn queries_of_any_length() {
    let (_dir, index) = indexed(&[page("http://a.example/", "Tea", "words")]);
    let long = "tea ".repeat(MAX_QUERY_BYTES / 4);
    assert_eq!(search(&index, &long).total, 1);
    let too_long = "x".repeat(100 << 10);
    let error = index
        .search(&too_long, &SearchOptions::default())
        .unwrap_err();
    expect!["the query has 102400 bytes, and at most 4096 are read"].assert_eq(&error.to_string());
    let far = SearchOptions {
        offset: MAX_RESULTS,
        ..SearchOptions::default()
    };
    let error = index.search("tea", &far).unwrap_err();
    assert!(matches!(
        error,
        IndexError::Query(QueryError::TooFar { .. })
    ));
}

#[test]
fn the_cost_of_a_query_is_bounded() {
    let (_dir, index) = indexed(&[page("http://a.example/", "Tea", "words of tea")]);
    for query in [
        "abcdefgh/".repeat(450),
        "a* ".repeat(1000),
        "-abcdefgh ".repeat(400),
        "site:a.example ".repeat(270),
        "\"a b\" ".repeat(600),
        "東".repeat(1300),
        "a_".repeat(2000),
    ] {
        let answer = index.search(&query, &SearchOptions::default()).unwrap();
        assert!(answer.total <= 1, "{query}");
    }
}

#[test]
fn queries_of_signs_alone() {
    let (_dir, index) = indexed(&[page("http://a.example/", "Tea", "words")]);
    for query in [
        "",
        " ",
        "\u{0}\u{1}\u{7f}",
        "\"",
        "-",
        "--",
        "*",
        "**",
        "\"\"",
        "site:",
        "title:*",
        "💡",
    ] {
        assert_eq!(search(&index, query).total, 0, "{query:?}");
    }
    assert_eq!(found(&index, "\u{0}tea\u{1b}"), "/");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_query_has_an_answer(query in r#"([a-z]{0,9}|["*:\-\u{0}-\u{20}é東👩‍👩 .]|site:|title:|\PC){0,24}"#) {
        thread_local! {
            static INDEX: (tempfile::TempDir, IndexSearcher) = indexed(&[
                page("http://a.example/", "Tea \u{1}", "words 東京 café -\"* \u{0}"),
                page("http://a.example/2", "", "other words"),
            ]);
        }
        INDEX.with(|(_, index)| {
            let answer = index.search(&query, &SearchOptions::default()).unwrap();
            prop_assert!(answer.results.len() <= answer.total);
            Ok(())
        })?;
    }
}
