//! Finds problems with elements that browsers, screen readers and search engines need: images, link
//! texts, viewport, language, and `noindex`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crawl_archive::rows::PageRow;
use crawl_extractor::{
    DecodedPage, ExtractedPage, ImageAndLanguageAudit, LinkElement, audit_elements,
};
use crawl_policy::{PageDirectives, ProductToken, RobotsProfile};
use crawl_weburl::{CanonicalUrl, canonicalize, safe_line};
use serde::{Deserialize, Serialize};

use super::{PageWithoutAltTexts, SiteReport};

/// Maximum number of images listed for a page.
const MAX_SOURCES: usize = 5;
/// Maximum characters of a data URL to show.
const MAX_SHOWN_DATA: usize = 48;
/// English link texts that don't describe where the link leads.
const VAGUE_TEXTS: [&str; 16] = [
    "click",
    "click here",
    "click this",
    "continue reading",
    "details",
    "go",
    "here",
    "learn more",
    "link",
    "more",
    "more info",
    "more information",
    "read more",
    "see more",
    "this",
    "this page",
];

/// An image and the pages that show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageOccurrences {
    /// The URL of the image, or its `src` as written if that isn't a usable URL. Empty without a
    /// `src`.
    pub image: String,
    /// The URLs of the pages.
    pub pages: Vec<String>,
}

impl ImageOccurrences {
    /// Returns the address as text for people: data URLs are shortened.
    pub(crate) fn shown(&self) -> String {
        let image = safe_line(&self.image);
        if image.is_empty() {
            return "an img without src".to_owned();
        }
        match image.char_indices().nth(MAX_SHOWN_DATA) {
            Some((end, _)) if !image.starts_with("http") => format!("{}..", &image[..end]),
            _ => image.into_owned(),
        }
    }
}

/// A link text that doesn't describe where the link leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VagueLinkText {
    /// The text, in lower case.
    pub text: String,
    /// Number of links with this text.
    pub links: u64,
    /// The URLs of the pages with these links.
    pub pages: Vec<String>,
}

/// A page with `noindex` that other pages link to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkedNoindexPage {
    /// The URL of the page.
    pub url: String,
    /// The META element or the `X-Robots-Tag` header with `noindex`, as written.
    pub directive: String,
    /// Number of links from other pages.
    pub links: u64,
    /// The first five pages with such a link.
    pub linked_from: Vec<String>,
}

impl LinkedNoindexPage {
    /// Counts a link from another page, and lists that page unless `max_listed` pages are listed
    /// already.
    pub(super) fn linked(&mut self, from: &str, max_listed: usize) {
        self.links += 1;
        let is_listed = self.linked_from.iter().any(|page| page == from);
        if !is_listed && self.linked_from.len() < max_listed {
            self.linked_from.push(from.to_owned());
        }
    }
}

/// Collects images without alternative text or size, and vague link texts.
#[derive(Default)]
pub(super) struct ElementProblemCollector {
    without_alt: BTreeMap<String, Vec<String>>,
    without_size: BTreeMap<String, Vec<String>>,
    vague_links: BTreeMap<String, (u64, Vec<String>)>,
}

impl ElementProblemCollector {
    /// Adds a page. `base` is the base URL of its links, `text` its decoded body, and `robots_tags`
    /// are the values of its `X-Robots-Tag` headers.
    pub(super) fn add(
        &mut self,
        row: &PageRow,
        base: &CanonicalUrl,
        page: &ExtractedPage,
        text: &DecodedPage<'_>,
        robots_tags: &[String],
        report: &mut SiteReport,
    ) {
        let ImageAndLanguageAudit {
            images,
            without_text,
            sources,
            unsized_sources,
            has_language,
            ..
        } = audit_elements(text);
        report.images += images;
        add_images(&mut self.without_alt, &sources, base, &row.url);
        add_images(&mut self.without_size, &unsized_sources, base, &row.url);
        if without_text > 0 {
            report.without_alt.push(PageWithoutAltTexts {
                url: row.url.clone(),
                without_alt: without_text,
                sources: sources.into_iter().take(MAX_SOURCES).collect(),
            });
        }
        if !has_language {
            report.without_language.push(row.url.clone());
        }
        if !page.meta_pairs().any(|(name, _)| name == "viewport") {
            report.without_viewport.push(row.url.clone());
        }
        if let Some(directive) = noindex(page, robots_tags) {
            report.noindex.push(LinkedNoindexPage {
                url: row.url.clone(),
                directive,
                links: 0,
                linked_from: Vec::new(),
            });
        }
        let language = row.language.as_deref().unwrap_or("en");
        if language.eq_ignore_ascii_case("en") || language.to_ascii_lowercase().starts_with("en-") {
            self.add_links(page, &row.url);
        }
    }

    fn add_links(&mut self, page: &ExtractedPage, url: &str) {
        let links = page
            .links
            .iter()
            .filter(|link| link.element == LinkElement::A);
        for text in links.filter_map(|link| link.text.as_deref()) {
            let words = text.trim_matches(|c: char| !c.is_alphanumeric());
            let words = words.to_lowercase();
            if VAGUE_TEXTS.contains(&words.as_str()) {
                let (links, pages) = self.vague_links.entry(words).or_default();
                *links += 1;
                push_once(pages, url);
            }
        }
    }

    /// Writes the images and link texts to the report, and sorts the lists of pages.
    pub(super) fn write_to(self, report: &mut SiteReport) {
        report.images_without_alt = by_pages(self.without_alt);
        report.images_without_size = by_pages(self.without_size);
        let vague = self.vague_links.into_iter();
        let vague = vague.map(|(text, (links, pages))| VagueLinkText { text, links, pages });
        report.vague_links = vague.collect();
        report.vague_links.sort_by_key(|text| Reverse(text.links));
        let most_images =
            |page: &PageWithoutAltTexts| (Reverse(page.without_alt), page.url.clone());
        report.without_alt.sort_by_cached_key(most_images);
        report.without_viewport.sort_unstable();
        report.without_language.sort_unstable();
        report
            .noindex
            .sort_unstable_by(|one, other| one.url.cmp(&other.url));
    }
}

fn add_images(
    images: &mut BTreeMap<String, Vec<String>>,
    sources: &[String],
    base: &CanonicalUrl,
    page: &str,
) {
    for source in sources {
        let image = match canonicalize(Some(base), source) {
            Ok(url) if !source.is_empty() => url.to_string(),
            _ => source.clone(),
        };
        push_once(images.entry(image).or_default(), page);
    }
}

/// Appends `page`, unless it is already the last entry. All elements of a page are added before
/// those of the next page, so comparing with the last entry is enough to avoid duplicates.
fn push_once(pages: &mut Vec<String>, page: &str) {
    if pages.last().is_none_or(|last| last != page) {
        pages.push(page.to_owned());
    }
}

fn by_pages(images: BTreeMap<String, Vec<String>>) -> Vec<ImageOccurrences> {
    let images = images.into_iter();
    let mut images: Vec<_> = images
        .map(|(image, pages)| ImageOccurrences { image, pages })
        .collect();
    images.sort_by_key(|image| Reverse(image.pages.len()));
    images
}

/// Returns the directive, as written, that keeps a page out of all search engines.
fn noindex(page: &ExtractedPage, robots_tags: &[String]) -> Option<String> {
    let agent = ProductToken::new("crawl").ok()?;
    let headers = robots_tags.iter().map(String::as_str);
    let directives =
        PageDirectives::read(headers, page.meta_pairs(), &agent, RobotsProfile::Rfc9309);
    directives.noindex.map(|cited| cited.text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::site_report::{SiteReport, site};
    use crate::test_crawl_builder::TestCrawlBuilder;

    const HOST: &str = "https://e.example";

    fn report(pages: &[(&str, &str, Option<&str>)]) -> SiteReport {
        let mut made = TestCrawlBuilder::new();
        for (path, html, language) in pages {
            let columns = json!({"charset": "UTF-8", "language": language});
            made.page_with(&format!("{HOST}{path}"), "text/html", html, &columns);
        }
        site(made.finish().path(), 2).unwrap()
    }

    #[test]
    fn a_page_needs_a_viewport_and_a_language() {
        let report = report(&[
            ("/a", "<html lang=en><meta name=Viewport content=x>", None),
            ("/b", "<html lang=' '><p lang=de>x", None),
        ]);
        let url = [format!("{HOST}/b")];
        assert_eq!(report.without_viewport, url);
        assert_eq!(report.without_language, url);
    }

    #[test]
    fn long_pages_should_be_sent_compressed() {
        let mut made = TestCrawlBuilder::new();
        let words: String = (0..600).map(|word| format!("{word} ")).collect();
        let columns = json!({"charset": "UTF-8"});
        for (path, html) in [("/long", words.as_str()), ("/short", "x")] {
            made.page_with(&format!("{HOST}{path}"), "text/html", html, &columns);
        }
        made.gzipped_page(&format!("{HOST}/gzipped"), &words.repeat(9));
        let report = site(made.finish().path(), 2).unwrap();
        assert_eq!(report.read_pages(), 3);
        assert_eq!(report.uncompressed, [format!("{HOST}/long")]);
    }

    #[test]
    fn images_are_grouped_by_their_url() {
        let report = report(&[
            (
                "/a",
                "<img src=x.png><img src=/y.png width=1 height=1>",
                None,
            ),
            ("/b/", "<img src=../x.png><img src='../x.png'>", None),
            ("/c", "<img alt='' src=/y.png><img>", None),
        ]);
        let images = |images: &[super::ImageOccurrences]| {
            let lines = images.iter().map(|image| {
                let name = image.image.strip_prefix(HOST).unwrap_or(&image.image);
                format!("{name} {}", image.pages.len())
            });
            lines.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(images(&report.images_without_alt), "/x.png 2,  1, /y.png 1");
        assert_eq!(
            images(&report.images_without_size),
            "/x.png 2,  1, /y.png 1"
        );
    }

    #[test]
    fn an_image_without_an_address_has_a_name_and_a_data_url_is_short() {
        let shown = |image: &str| {
            let image = image.to_owned();
            super::ImageOccurrences {
                image,
                pages: Vec::new(),
            }
            .shown()
        };
        assert_eq!(shown(""), "an img without src");
        let data = format!("data:image/png;base64,{}", "A".repeat(900));
        assert_eq!(shown(&data), format!("{}..", &data[..48]));
        let long = format!("http://a.example/{}", "a".repeat(90));
        assert_eq!(shown(&long), long);
    }

    #[test]
    fn meaningless_english_link_texts_are_counted() {
        let html = "<a href=/>Click here!</a> <a href=/x>click here</a> <a href=/y>More…</a>\
                    <a href=/z>More tea</a>";
        let report = report(&[("/a", html, None), ("/b", html, Some("de"))]);
        let texts = report.vague_links.iter();
        let texts: Vec<_> = texts
            .map(|link| (link.text.as_str(), link.links, link.pages.len()))
            .collect();
        assert_eq!(texts, [("click here", 2, 1), ("more", 1, 1)]);
    }

    #[test]
    fn pages_with_noindex_are_listed_if_other_pages_link_to_them() {
        let hidden = "<meta name=robots content='noindex, follow'><a href=/hidden>self</a>";
        let report = report(&[
            ("/", "<a href=/hidden>h</a><a href=/hidden>h</a>", None),
            ("/hidden", hidden, None),
            ("/unlinked", "<meta name=robots content=noindex>", None),
        ]);
        let [page] = &report.noindex[..] else {
            panic!("{:?}", report.noindex)
        };
        assert_eq!(
            (page.url.as_str(), page.links),
            ("https://e.example/hidden", 2)
        );
        assert_eq!(
            page.directive,
            "<meta name=\"robots\" content=\"noindex, follow\">"
        );
        assert_eq!(page.linked_from, [format!("{HOST}/")]);
    }
}
