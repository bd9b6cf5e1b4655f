//! Reads each file in the folders of `tests/cases`, and compares the result with the expected one:
//! the file of the same name plus `.found.txt`.
#![expect(clippy::disallowed_methods, reason = "the cases lie in files")]

use std::fmt::{Debug, Write as _};
use std::path::PathBuf;

use crawl_extractor::{
    ContentKind, ReadingLimits, UnresolvedFeedUrl, document_kind, read_feed, read_html,
    read_sitemap,
};
use crawl_weburl::{CanonicalUrl, canonicalize};
use expect_test::expect_file;

use crate::show_oddities;

/// Checks each file in a folder, ordered by name. There must be at least `least` files.
fn check(folder: &str, least: usize, show: impl Fn(&[u8]) -> String) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cases")
        .join(folder);
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| !path.to_string_lossy().ends_with(".found.txt"));
    paths.sort();
    assert!(paths.len() >= least, "{} cases", paths.len());
    for path in paths {
        let mut expected_path = path.clone().into_os_string();
        expected_path.push(".found.txt");
        let shown = show(&std::fs::read(&path).unwrap());
        expect_file![PathBuf::from(expected_path)].assert_eq(&shown);
    }
}

#[test]
fn cases_of_encodings() {
    check("encodings", 45, |body| {
        let page = read_html(body, None, &ReadingLimits::default());
        let links: Vec<_> = page
            .links
            .iter()
            .map(|link| (&link.href, &link.text))
            .collect();
        format!(
            "{} by {:?}\n{:?}\n{links:?}\n{}",
            page.charset,
            page.charset_source,
            page.title,
            show_oddities(&page.oddities)
        )
    });
}

#[test]
fn cases_of_feeds() {
    let at = canonicalize(None, "https://at.org/feeds/all").unwrap();
    let resolved = |url: &UnresolvedFeedUrl| {
        let resolved = url.resolve(&at);
        resolved.as_ref().map_or("unusable".to_owned(), |url| {
            CanonicalUrl::as_str(url).to_owned()
        })
    };
    check("feeds", 15, |body| {
        let feed = read_feed(body, None, &ReadingLimits::default());
        let mut shown = format!(
            "{:?}, sniffed as {:?}\n",
            feed.kind,
            document_kind(None, body)
        );
        line(&mut shown, "title", feed.title.as_ref());
        line(
            &mut shown,
            "home",
            feed.home.as_ref().map(resolved).as_ref(),
        );
        for next in &feed.next {
            line(&mut shown, "next", Some(&resolved(next)));
        }
        for entry in &feed.entries {
            shown.push_str("entry\n");
            line(
                &mut shown,
                "  url",
                entry.url.as_ref().map(resolved).as_ref(),
            );
            line(&mut shown, "  title", entry.title.as_ref());
            line(&mut shown, "  published", entry.published.as_ref());
            line(&mut shown, "  updated", entry.updated.as_ref());
            line(&mut shown, "  id", entry.id.as_ref());
            for enclosure in &entry.enclosures {
                line(&mut shown, "  enclosure", Some(&resolved(enclosure)));
            }
        }
        shown + &show_oddities(&feed.oddities)
    });
}

#[test]
fn cases_of_sitemaps() {
    check("sitemaps", 8, |body| {
        let sitemap = read_sitemap(body, None, &ReadingLimits::default());
        let sniffed: ContentKind = document_kind(None, body);
        let mut shown = format!("{:?}, sniffed as {sniffed:?}\n", sitemap.kind);
        for entry in &sitemap.entries {
            line(&mut shown, "entry", Some(&entry.loc));
            line(&mut shown, "  lastmod", entry.lastmod.as_ref());
            for alternate in &entry.alternates {
                line(&mut shown, "  alternate", Some(alternate));
            }
            for image in &entry.images {
                line(&mut shown, "  image", Some(image));
            }
            for video in &entry.videos {
                line(&mut shown, "  video", Some(video));
            }
            line(&mut shown, "  news", entry.news.as_ref());
        }
        shown + &show_oddities(&sitemap.oddities)
    });
}

fn line(shown: &mut String, name: &str, value: Option<&impl Debug>) {
    if let Some(value) = value {
        let _ = writeln!(shown, "{name} {value:?}");
    }
}
