//! Packages of a whole crawl.

use std::fs;

use crawl_archive::{WarcCompression, WarcTruncation};
use crawl_wacz::WaczError;

use crate::test_crawl::{Crawl, Package, Page};

fn of_some_pages() -> Crawl {
    some_pages(Crawl::new(4000))
}

fn some_pages(mut crawl: Crawl) -> Crawl {
    crawl.page(Page {
        depth: 0,
        ..Page::html("http://e.example/", "<title>Tea</title><p>green<p>black")
    });
    for number in 0..20 {
        let url = format!("http://e.example/page/{number}");
        let filling = format!("{number} {}", "words ".repeat(number * 7));
        crawl.page(Page::html(
            &url,
            &format!("<title>{number}</title>{filling}"),
        ));
    }
    crawl.page(Page {
        content_type: "image/png",
        ..Page::html("http://e.example/a.png", "no picture")
    });
    crawl.page(Page {
        status: 404,
        ..Page::html("http://e.example/gone", "<title>Gone</title>")
    });
    crawl.page(Page {
        truncated: Some(WarcTruncation::Withheld),
        ..Page::html("http://e.example/no-copy", "")
    });
    crawl.sync();
    crawl
}

#[test]
fn wacz_1_1_1_the_archive_is_there_byte_for_byte_with_an_index_of_each_capture() {
    let crawl = of_some_pages();
    let package = crawl.package(None);
    let files = crawl.files();
    assert!(files.len() > 2, "{} files", files.len());
    for file in &files {
        let name = file.file_name().unwrap().to_string_lossy();
        let entry = &package.entries[&format!("archive/{name}")];
        assert!(*entry == fs::read(file).unwrap(), "{name}");
    }
    let packaged = &package.packaged;
    assert_eq!((packaged.captures, packaged.pages), (24, 21));
    assert_eq!(packaged.warc_files, files.len() as u64);
    let index = package.index();
    let mut sorted: Vec<_> = index.lines().collect();
    sorted.sort_unstable();
    assert_eq!(sorted, index.lines().collect::<Vec<_>>());
    let log = fs::read_to_string(crawl.path().join("archive/captures.cdxj")).unwrap();
    let mut log: Vec<_> = log.lines().collect();
    log.sort_unstable();
    assert_eq!(sorted, log);
    assert_eq!(package.captures().len(), 24);
}

#[test]
fn records_with_another_compression_are_in_gzip_members() {
    let expected = of_some_pages().package(None);
    for compression in [WarcCompression::Zstd, WarcCompression::Plain] {
        let crawl = some_pages(Crawl::with_compression(40_000, compression));
        let files = crawl.files();
        let first = files[0].file_name().unwrap().to_string_lossy();
        assert!(first.ends_with(compression.suffix()), "{first}");
        let package = crawl.package(None);
        let warcs: Vec<_> = package.entries.range("archive/".to_owned()..).collect();
        let warcs = warcs
            .iter()
            .filter(|(name, _)| name.starts_with("archive/"));
        for (name, bytes) in warcs.clone() {
            let name = name.strip_prefix("archive/").unwrap();
            assert!(name.ends_with(".warc.gz") && bytes.starts_with(&[0x1f, 0x8b]));
            let warcinfo = package.record(name, 0);
            assert_eq!(warcinfo.kind(), "warcinfo");
            assert_eq!(warcinfo.field("WARC-Filename"), Some(name));
        }
        assert_eq!(warcs.count(), files.len());
        let blocks = |package: &Package| {
            let captures = package.captures().into_iter();
            captures.map(|record| record.block).collect::<Vec<_>>()
        };
        assert_eq!(blocks(&package), blocks(&expected));
    }
}

#[test]
fn wacz_1_1_1_seeds_and_other_pages_have_lists_with_titles_and_texts() {
    let package = of_some_pages().package(None);
    assert_eq!(package.text("pages/pages.jsonl").lines().count(), 2);
    let pages = package.pages();
    assert_eq!(pages.len(), 21);
    let first = &pages[0];
    assert_eq!(first["url"], "http://e.example/");
    assert_eq!(first["ts"], "2026-11-20T23:59:59.000Z");
    assert_eq!(first["title"], "Tea");
    assert_eq!(first["text"], "green\nblack");
    assert_eq!(
        (&first["seed"], &first["mime"]),
        (&true.into(), &"text/html".into())
    );
    let mut ids: Vec<_> = pages
        .iter()
        .map(|page| page["id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 21);
    let about = package.data_package();
    assert_eq!(about["profile"], "data-package");
    assert_eq!(about["wacz_version"], "1.1.1");
    assert_eq!(about["created"], "2026-11-20T23:59:59Z");
    assert_eq!(about["mainPageUrl"], "http://e.example/");
    assert_eq!(about["mainPageDate"], first["ts"]);
    assert_eq!(about["contributors"][0]["title"], "A. Author");
    assert_eq!(about["contributors"][0]["email"], "a@example.org");
    assert_eq!(
        about["resources"].as_array().unwrap().len(),
        package.entries.len() - 2
    );
}

#[test]
fn the_same_crawl_gives_the_same_bytes() {
    let crawl = of_some_pages();
    assert!(crawl.package(None).bytes() == crawl.package(None).bytes());
}

#[test]
fn a_crawl_without_captures_and_a_foreign_name_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("crawl.toml"), "").unwrap();
    let refused = |expected: fn(&WaczError) -> bool| {
        let error = Package::of(dir.path(), None, &[]).err().unwrap();
        assert!(expected(&error), "{error}");
    };
    refused(|error| matches!(error, WaczError::NoCaptures { .. }));
    fs::create_dir(dir.path().join("archive")).unwrap();
    let line = "org,e)/ 20261120235959 {\"url\": \"http://e.org/\", \"length\": \"1\", \
                \"offset\": \"0\", \"filename\": \"../crawl.toml\"}\n";
    fs::write(dir.path().join("archive/captures.cdxj"), line).unwrap();
    refused(|error| matches!(error, WaczError::Archive(_)));
}
