//! The fields of a page that are the same in both JSON formats (OpenSearch and Meilisearch).

use serde::Serialize;

use super::date::rfc3339;
use crawl_index_entry::IndexedPage;

/// All fields of a page except its text.
#[derive(Debug, Serialize)]
pub(super) struct ExportedPageMetadata<'p> {
    pub(super) title: &'p str,
    pub(super) host: &'p str,
    pub(super) path: &'p str,
    /// The folders that contain the page, outermost first, such as `/docs/` and `/docs/tea/`.
    pub(super) folders: Vec<&'p str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) description: &'p str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) keywords: &'p [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) authors: &'p [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) section: Option<&'p str>,
    /// The texts of links to the page.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) anchors: &'p [String],
    pub(super) linked_from: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) language: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) published: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) modified: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fetched: Option<String>,
    /// The time after which the page should no longer be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unavailable_after: Option<String>,
    /// The maximum length of an excerpt that the page allows, in characters. `None` allows any
    /// length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_snippet: Option<u32>,
}

impl<'p> ExportedPageMetadata<'p> {
    pub(super) fn of(page: &'p IndexedPage) -> ExportedPageMetadata<'p> {
        ExportedPageMetadata {
            title: page.name(),
            host: page.host(),
            path: page.path(),
            folders: folders(page.path()),
            description: &page.description,
            keywords: &page.keywords,
            authors: &page.authors,
            section: page.section.as_deref(),
            anchors: &page.anchors,
            linked_from: page.linked_from,
            language: page.language.as_deref(),
            published: page.published.and_then(rfc3339),
            modified: page.modified.and_then(rfc3339),
            fetched: rfc3339(page.fetched_at),
            unavailable_after: page.until.and_then(rfc3339),
            max_snippet: page.max_snippet,
        }
    }
}

/// The part of a page's text below one heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExportedSection<'p> {
    /// The text of the heading. Empty for the text before the first heading.
    pub(super) heading: &'p str,
    /// The level of the heading from 1 to 6; 0 for the text before the first heading.
    pub(super) level: u8,
    pub(super) id: Option<&'p str>,
    /// The text of the section, without the line of its heading.
    pub(super) text: &'p str,
}

/// Splits the text of a page by its headings. The text before the first heading is a section of its
/// own. A section without heading and text is left out.
pub(super) fn sections(page: &IndexedPage) -> Vec<ExportedSection<'_>> {
    let mut sections = Vec::with_capacity(page.headings.len() + 1);
    let mut open = ExportedSection {
        heading: "",
        level: 0,
        id: None,
        text: "",
    };
    let mut start = 0;
    for heading in &page.headings {
        // A heading outside the main text takes the offset of the main text that follows it.
        let at = heading.at.clamp(start, page.text.len());
        sections.extend(open.with(page.text.get(start..at)));
        open = ExportedSection {
            heading: &heading.text,
            level: heading.level,
            id: heading.id.as_deref(),
            text: "",
        };
        start = at;
    }
    sections.extend(open.with(page.text.get(start..)));
    sections
}

impl<'p> ExportedSection<'p> {
    /// Sets the text of the section, without the words of its heading at the start. `None` if
    /// neither heading nor text has any words.
    fn with(self, text: Option<&'p str>) -> Option<ExportedSection<'p>> {
        let text = text.unwrap_or_default().trim();
        let text = text.strip_prefix(self.heading).unwrap_or(text).trim();
        let has_words = !text.is_empty() || !self.heading.trim().is_empty();
        has_words.then_some(ExportedSection { text, ..self })
    }
}

/// Returns up to 16 folders that contain a path, outermost first. For `/docs/tea/green.html`, they
/// are `/docs/` and `/docs/tea/`.
fn folders(path: &str) -> Vec<&str> {
    let path = path.split('?').next().unwrap_or_default();
    let ends = path.match_indices('/').skip(1).take(16);
    ends.map(|(at, _)| &path[..=at]).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{folders, sections};
    use crawl_index_entry::{Heading, IndexedPage};

    fn check(text: &str, headings: &[(u8, &str, usize)], expected: Expect) {
        let heading = |(level, text, at): &(u8, &str, usize)| Heading {
            level: *level,
            text: (*text).to_owned(),
            id: Some(text.to_lowercase()),
            at: *at,
        };
        let page = IndexedPage {
            text: text.to_owned(),
            headings: headings.iter().map(heading).collect(),
            ..IndexedPage::default()
        };
        let line = |section: &super::ExportedSection<'_>| {
            let (level, heading) = (section.level, section.heading);
            format!("{level} {heading} | {}", section.text.replace('\n', " / "))
        };
        let lines: Vec<_> = sections(&page).iter().map(line).collect();
        expected.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn a_heading_opens_a_section() {
        check(
            "Intro\nTea\nBoil.\nPour.\nCups\nWash.",
            &[(1, "Tea", 5), (2, "Cups", 21)],
            expect![[r#"
                0  | Intro
                1 Tea | Boil. / Pour.
                2 Cups | Wash."#]],
        );
    }

    #[test]
    fn headings_outside_of_the_text_have_none() {
        check(
            "Tea\nBoil.",
            &[(2, "Menu", 0), (1, "Tea", 0), (2, "Footer", 9)],
            expect![[r#"
                2 Menu | 
                1 Tea | Boil.
                2 Footer | "#]],
        );
        check("", &[], expect![""]);
    }

    #[test]
    fn places_that_are_none_lose_nothing_else() {
        check(
            "Grüße",
            &[(1, "A", 3), (1, "B", 1), (1, "C", 99)],
            expect![[r#"
                1 A | 
                1 B | 
                1 C | "#]],
        );
    }

    #[test]
    fn folders_of_a_path() {
        assert_eq!(
            folders("/docs/tea/green.html?a=/b/"),
            ["/docs/", "/docs/tea/"]
        );
        assert!(folders("/").is_empty());
        assert!(folders("").is_empty());
    }
}
