//! Pages of generated hosts: about as long as real pages, and with as many links.

use std::ops::Range;

use crate::torture::random::SeededRandom;

/// The robots.txt of every host.
pub(super) const ROBOTS: &str = "User-agent: *\nDisallow: /private/\n";
/// Number of links from each page to its own children.
const CHILDREN: u32 = 8;
/// Number of links in the menu, which is part of every page.
const MENU: u32 = 40;
/// Words per page.
const WORDS: usize = 400;
/// Number of different words in all pages together.
const VOCABULARY: usize = 8_192;
/// Bytes of inline style and script in each page, about as in real pages.
const HEAD_BYTES: usize = 6_000;

/// Generates the pages of hosts.
pub(super) struct PageGenerator {
    pages_a_host: u32,
    vocabulary: Vec<String>,
    head: String,
}

impl PageGenerator {
    pub(super) fn new(pages_a_host: u32) -> PageGenerator {
        PageGenerator {
            pages_a_host,
            vocabulary: vocabulary(),
            head: head(),
        }
    }

    /// Returns a page. The same numbers always give the same page.
    pub(super) fn html(&self, host: u32, page: u32) -> String {
        let mut dice = SeededRandom::of(u64::from(host) << 32 | u64::from(page));
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <title>Page {page} of host {host}</title>\n"
        );
        html.push_str(&self.head);
        html.push_str("</head><body><ul class=\"menu\">\n");
        for n in 0..MENU.min(self.pages_a_host) {
            link(&mut html, n);
        }
        html.push_str("</ul>\n<main>\n");
        for n in children(page, self.pages_a_host) {
            link(&mut html, n);
        }
        for at in 0..WORDS {
            html.push_str(if at % 40 == 0 { "\n<p>" } else { " " });
            html.push_str(&self.vocabulary[dice.below(VOCABULARY as u64) as usize]);
        }
        html.push_str("\n</main></body></html>\n");
        html
    }
}

/// Returns the path of a page in its URL. The first page has the path `/`.
pub(super) fn path(page: u32) -> String {
    match page {
        0 => "/".to_owned(),
        _ => format!("/d{}/p{page}.html", page % 10),
    }
}

fn link(html: &mut String, page: u32) {
    let (path, number) = (path(page), page.to_string());
    for part in [
        "<li><a class=\"reference\" href=\"",
        &path,
        "\">Page ",
        &number,
        "</a></li>\n",
    ] {
        html.push_str(part);
    }
}

/// Returns the children of a page, in a tree that contains all pages.
fn children(page: u32, pages: u32) -> Range<u32> {
    let first = page.saturating_mul(CHILDREN).saturating_add(1);
    first.min(pages)..first.saturating_add(CHILDREN).min(pages)
}

fn vocabulary() -> Vec<String> {
    let word = |number: usize| {
        let mut dice = SeededRandom::of(number as u64);
        let letters = 2 + dice.below(9);
        (0..letters)
            .map(|_| char::from(b"etaoinsrhldcumfpgwyb"[dice.below(20) as usize]))
            .collect()
    };
    (0..VOCABULARY).map(word).collect()
}

fn head() -> String {
    let (mut style, mut script) = ("<style>\n".to_owned(), "<script>\n".to_owned());
    while style.len() + script.len() < HEAD_BYTES {
        let number = style.len();
        style += &format!(".c{number} > a {{ margin: 0 {number}px; color: #123456 }}\n");
        script += &format!("function f{number}(a) {{ return a < {number} && '<b>' }}\n");
    }
    format!("{style}</style>\n{script}</script>\n")
}

#[cfg(test)]
mod tests {
    use super::{children, path};

    #[test]
    fn the_tree_holds_each_page_once() {
        for pages in [1, 2, 9, 1_000] {
            let pages_found: Vec<u32> = (0..pages).flat_map(|page| children(page, pages)).collect();
            assert_eq!(pages_found, (1..pages).collect::<Vec<_>>());
        }
        assert!(children(u32::MAX, u32::MAX).is_empty());
    }

    #[test]
    fn the_first_page_is_the_home_page() {
        assert_eq!((path(0), path(14)), ("/".into(), "/d4/p14.html".into()));
    }
}
