//! Packages a single round of a crawl with several rounds.

use std::{fs, slice};

use crawl_archive::{RevisitOriginal, RevisitProfile, Timestamp};
use crawl_wacz::WaczError;

use crate::test_crawl::{Crawl, Page};

const TEA: &str = "http://e.example/tea";

/// Makes a crawl with three rounds. Round 1 has one page. In round 2 the page is unmodified, and a
/// second page has the same body. In round 3 the first page is again unmodified, and a third page
/// is new.
pub(crate) fn of_three_rounds() -> Crawl {
    of_three_rounds_with(0)
}

/// Makes the crawl of [`of_three_rounds`]. In round 2, the clock is `clock_error` microseconds
/// ahead.
fn of_three_rounds_with(clock_error: u64) -> Crawl {
    let mut crawl = Crawl::new(u64::MAX);
    let date = crawl.now();
    let original = RevisitOriginal { url: TEA, date };
    let html = "<title>Tea</title>green";
    let unmodified = |round| Page {
        round,
        status: 304,
        body: "",
        revisit: Some(RevisitProfile::NotModified(original)),
        ..Page::html(TEA, "")
    };
    crawl.page(Page::html(TEA, html));
    crawl.clock_error = clock_error;
    crawl.page(unmodified(2));
    crawl.page(Page {
        round: 2,
        revisit: Some(RevisitProfile::IdenticalPayload(original)),
        ..Page::html("http://e.example/copy", html)
    });
    crawl.clock_error = 0;
    crawl.page(unmodified(3));
    crawl.page(Page {
        round: 3,
        ..Page::html("http://e.example/new", "<title>New</title>")
    });
    crawl.sync();
    crawl
}

#[test]
fn an_unmodified_page_has_the_title_and_text_of_its_original() {
    let package = of_three_rounds().package(None);
    let pages = package.pages();
    let of_tea = pages
        .iter()
        .filter(|page| page["url"] != "http://e.example/new");
    let titles_and_texts: Vec<_> = of_tea.map(|page| (&page["title"], &page["text"])).collect();
    assert_eq!(titles_and_texts, [(&"Tea".into(), &"green".into()); 4]);
    assert_eq!(
        package.data_package()["rounds"],
        serde_json::json!([1, 2, 3])
    );
}

#[test]
fn a_round_has_its_captures_even_if_the_clock_was_wrong() {
    let crawl = of_three_rounds_with(3 * 3_600_000_000);
    let paths = |round| {
        let captures = crawl.package(Some(round)).captures();
        let paths = captures.iter().map(|record| {
            let url = record.url().unwrap();
            url.trim_start_matches("http://e.example/").to_owned()
        });
        paths.collect::<Vec<_>>().join(" ")
    };
    assert_eq!([1, 2, 3].map(paths), ["tea", "copy tea", "new tea"]);
}

#[test]
fn a_round_names_the_file_with_the_payloads_it_refers_to() {
    let crawl = of_three_rounds();
    let first = crawl.package(Some(1));
    assert_eq!((first.packaged.captures, first.packaged.pages), (1, 1));
    assert_eq!(first.data_package()["rounds"], serde_json::json!([1]));
    let folder = tempfile::tempdir().unwrap();
    let earlier = folder.path().join("round-1.wacz");
    fs::copy(&first.packaged.file, &earlier).unwrap();

    let second = crawl
        .package_with_earlier(Some(2), slice::from_ref(&earlier))
        .unwrap();
    let packaged = &second.packaged;
    assert_eq!((packaged.captures, packaged.pages), (2, 2));
    assert_eq!(
        (packaged.revisits_of_earlier, packaged.without_container),
        (2, 0)
    );
    for record in second.captures() {
        assert_eq!(record.kind(), "revisit");
        let container = record.field("WARC-Refers-To-Container");
        assert_eq!(container, Some("file://round-1.wacz"));
        assert_eq!(record.field("WARC-Refers-To-Target-URI"), Some(TEA));
    }
    let required = &second.data_package()["relation"]["requires"];
    assert_eq!(required[0]["filename"], "round-1.wacz");
    assert_eq!(required[0]["size"], fs::metadata(&earlier).unwrap().len());
    // The page list contains the text of revisited pages too, so full-text search finds them.
    assert!(second.pages().iter().all(|page| page["text"] == "green"));

    let alone = crawl.package(Some(3));
    let packaged = &alone.packaged;
    assert_eq!((packaged.captures, packaged.pages), (2, 2));
    assert_eq!(
        (packaged.revisits_of_earlier, packaged.without_container),
        (1, 1)
    );
    let captures = alone.captures();
    assert!(
        captures
            .iter()
            .all(|record| record.field("WARC-Refers-To-Container").is_none())
    );
    assert!(alone.data_package()["relation"].is_null());
}

#[test]
fn files_that_are_not_of_an_earlier_round_are_refused() {
    let crawl = of_three_rounds();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.wacz");
    let refused = || {
        let error = crawl
            .package_with_earlier(Some(2), slice::from_ref(&path))
            .err()
            .unwrap();
        assert!(matches!(error, WaczError::NotEarlier { .. }), "{error}");
    };
    refused();
    fs::write(&path, "no ZIP").unwrap();
    refused();
    let error = crawl.package_with_earlier(Some(4), &[]).err().unwrap();
    assert_eq!(
        error.to_string(),
        "there is no round 4: the last one is round 3"
    );
    assert!(crawl.now() > Timestamp::from_micros(0));
}
