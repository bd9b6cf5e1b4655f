//! Packages a killed crawl, whose archive and lists may end at any byte.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};

use crate::test_crawl::{Crawl, Page};

#[test]
fn the_intact_captures_of_a_killed_crawl_are_packaged() {
    let mut crawl = Crawl::new(u64::MAX);
    for number in 0..6 {
        let url = format!("http://e.example/{number}");
        crawl.page(Page::html(&url, "<title>page</title>text"));
    }
    crawl.sync();
    let warc = crawl.files().remove(0);
    let log = crawl.path().join("archive/captures.cdxj");
    let (records, lines) = (fs::read(&warc).unwrap(), fs::read(&log).unwrap());
    let cut = |path, bytes: &[u8], length: usize| {
        fs::write(path, bytes).unwrap();
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(length as u64).unwrap();
    };
    let mut seen = BTreeSet::new();
    for (file, bytes, other, whole) in [
        (&warc, &records, &log, &lines),
        (&log, &lines, &warc, &records),
    ] {
        cut(other, whole, whole.len());
        // Cut the file at many offsets, and between each two records.
        let ends = bytes.windows(3).enumerate().skip(1);
        let ends = ends.filter(|(_, head)| *head == b"\x1f\x8b\x08");
        let anywhere = (1..=bytes.len()).rev().step_by(97);
        for length in anywhere.chain(ends.map(|(end, _)| end)) {
            cut(file, bytes, length);
            let Ok(package) = crawl.package_with_earlier(None, &[]) else {
                continue;
            };
            let captures = package.captures();
            let urls: BTreeSet<_> = captures
                .iter()
                .map(|record| record.url().unwrap())
                .collect();
            for page in package.pages() {
                assert!(urls.contains(page["url"].as_str().unwrap()), "{page}");
            }
            assert_eq!(package.packaged.pages, captures.len() as u64);
            seen.insert(captures.len());
            // A missing or incomplete record must be reported.
            let is_whole = *file == log || captures.len() == 6;
            assert!(
                is_whole || !package.packaged.damages.is_empty(),
                "{length} of {}: {} captures",
                bytes.len(),
                captures.len()
            );
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
}
