//! Titles, descriptions and headings: which pages lack them, and which share them.

use std::collections::BTreeMap;

use crawl_extractor::ExtractedPage;
use crawl_weburl::CanonicalUrl;

use super::{SharedText, SiteReport};

/// Collects the titles, descriptions and headings of pages, to find those that several pages share.
#[derive(Default)]
pub(super) struct TitleAndHeadingCollector {
    titles: PagesByText,
    descriptions: PagesByText,
    headings: PagesByText,
}

impl TitleAndHeadingCollector {
    /// Adds the texts of the page at `url`. Reports list the page as `row_url`, the URL in its row.
    pub(super) fn add(
        &mut self,
        page: &ExtractedPage,
        url: &CanonicalUrl,
        row_url: &str,
        report: &mut SiteReport,
    ) {
        let description = page.meta_pairs().find(|(name, _)| *name == "description");
        let description = description.map(|(_, content)| {
            let words: Vec<&str> = content.split_whitespace().collect();
            words.join(" ")
        });
        // Don't compare the texts of a page that declares another URL as canonical, because the
        // page at that URL is expected to have the same texts.
        let is_own = page.stands_elsewhere(url, None).is_none();
        for (text, shared, without) in [
            (
                page.title.as_deref(),
                &mut self.titles,
                &mut report.without_title,
            ),
            (
                description.as_deref().filter(|text| !text.is_empty()),
                &mut self.descriptions,
                &mut report.without_description,
            ),
            (
                page.outline.heading.as_deref(),
                &mut self.headings,
                &mut report.without_heading,
            ),
        ] {
            match text {
                None => without.push(row_url.to_owned()),
                Some(text) if is_own => shared.add(text, row_url),
                Some(_) => {}
            }
        }
    }

    /// Writes the shared texts to the report, and sorts the pages without a text.
    pub(super) fn write_to(self, report: &mut SiteReport) {
        report.double_titles = self.titles.shared();
        report.double_descriptions = self.descriptions.shared();
        report.double_headings = self.headings.shared();
        report.without_title.sort_unstable();
        report.without_description.sort_unstable();
        report.without_heading.sort_unstable();
    }
}

/// Collects the pages by text.
#[derive(Default)]
struct PagesByText(BTreeMap<String, Vec<String>>);

impl PagesByText {
    fn add(&mut self, text: &str, url: &str) {
        self.0
            .entry(text.to_owned())
            .or_default()
            .push(url.to_owned());
    }

    /// Returns the texts shared by several pages. Texts with the most pages come first.
    fn shared(self) -> Vec<SharedText> {
        let texts = self.0.into_iter().filter(|(_, pages)| pages.len() > 1);
        let mut texts: Vec<SharedText> = texts
            .map(|(text, mut pages)| {
                pages.sort_unstable();
                SharedText { text, pages }
            })
            .collect();
        texts.sort_by_key(|text| std::cmp::Reverse(text.pages.len()));
        texts
    }
}
