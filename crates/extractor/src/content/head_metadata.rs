//! Metadata in a page's head.

use super::content_limits::{ContentLimits, ContentOddityKind, ContentOddityList};
use super::dates::{DateCollector, DateSource, kind_of_meta};
use super::language::{LanguageSource, PageLanguage};
use crate::collapsed_text_builder::{CollapsedTextBuilder, trim};

/// Maximum number of authors of a page.
const MAX_AUTHORS: usize = 32;

/// Basic OpenGraph properties (ogp.me). If a property occurs more than once, its first value
/// counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenGraph {
    /// The title (`og:title`).
    pub title: Option<String>,
    /// The type of page (`og:type`), such as `article`.
    pub kind: Option<String>,
    /// The description (`og:description`).
    pub description: Option<String>,
    /// The URL of the page (`og:url`), as written. An `og:url` in the body is ignored, because
    /// visitors of the site may have written it, for example in a comment.
    pub url: Option<String>,
    /// The URL of an image (`og:image`), as written.
    pub image: Option<String>,
    /// The language and the region (`og:locale`), such as `en_GB`.
    pub locale: Option<String>,
    /// The name of the site (`og:site_name`).
    pub site_name: Option<String>,
}

/// Collects metadata from `meta` elements.
pub(super) struct HeadMetadataCollector {
    pub(super) description: Option<String>,
    pub(super) twitter_description: Option<String>,
    pub(super) keywords: Vec<String>,
    pub(super) authors: Vec<String>,
    pub(super) section: Option<String>,
    pub(super) open_graph: OpenGraph,
    pub(super) language: PageLanguage,
    pub(super) dates: DateCollector,
    limits: (usize, usize),
}

impl HeadMetadataCollector {
    pub(super) fn new(limits: &ContentLimits) -> HeadMetadataCollector {
        HeadMetadataCollector {
            description: None,
            twitter_description: None,
            keywords: Vec::new(),
            authors: Vec::new(),
            section: None,
            open_graph: OpenGraph::default(),
            language: PageLanguage::default(),
            dates: DateCollector::new(limits),
            limits: (limits.field_bytes, limits.keywords),
        }
    }

    /// Processes a `meta` element.
    pub(super) fn meta(
        &mut self,
        meta: MetaElement<'_>,
        offset: usize,
        oddities: &mut ContentOddityList,
    ) {
        if meta
            .equiv
            .is_some_and(|equiv| trim(equiv).eq_ignore_ascii_case("content-language"))
        {
            self.language
                .declare(meta.content, LanguageSource::Meta, offset, oddities);
        }
        for names in [meta.name, meta.property].into_iter().flatten() {
            // RDFa allows several properties in one `meta`.
            for name in names.split_ascii_whitespace().take(4) {
                let is_own_url = name.eq_ignore_ascii_case("og:url");
                if meta.is_in_head || !is_own_url {
                    self.named(name, meta.content, offset, oddities);
                }
            }
        }
    }

    fn named(
        &mut self,
        name: &str,
        content: &str,
        offset: usize,
        oddities: &mut ContentOddityList,
    ) {
        let mut lower = [0; 64];
        let Some(lower) = lower.get_mut(..name.len()) else {
            return;
        };
        lower.copy_from_slice(name.as_bytes());
        lower.make_ascii_lowercase();
        let name = std::str::from_utf8(lower).unwrap_or_default();
        if let Some(kind) = kind_of_meta(name) {
            let origin = (DateSource::Meta, name);
            self.dates.add(kind, content, origin, offset, oddities);
        }
        let graph = &mut self.open_graph;
        let slot = match name {
            "description" => &mut self.description,
            "twitter:description" => &mut self.twitter_description,
            "og:title" => &mut graph.title,
            "og:type" => &mut graph.kind,
            "og:description" => &mut graph.description,
            "og:url" => &mut graph.url,
            "og:image" | "og:image:url" => &mut graph.image,
            "og:locale" => {
                self.language
                    .declare(content, LanguageSource::OpenGraph, offset, oddities);
                &mut graph.locale
            }
            "og:site_name" => &mut graph.site_name,
            "article:section" => &mut self.section,
            "author" | "article:author" | "dc.creator" | "dcterms.creator" | "citation_author" => {
                return self.author(content, offset, oddities);
            }
            "keywords" => {
                return self.keywords(content, [',', ';', '、', '，', '،'], offset, oddities);
            }
            "article:tag" => return self.keywords(content, ['\0'; 5], offset, oddities),
            _ => return,
        };
        if slot.is_none() {
            *slot = field(content, self.limits.0, offset, oddities);
        }
    }

    /// Adds the name of an author. Ignores a URL, which leads to a page about the author.
    fn author(&mut self, content: &str, offset: usize, oddities: &mut ContentOddityList) {
        let name = field(content, self.limits.0, offset, oddities);
        let name = name.filter(|name| !name.contains("://") && !self.authors.contains(name));
        let has_room = self.authors.len() < MAX_AUTHORS;
        self.authors.extend(name.filter(|_| has_room));
    }

    fn keywords(
        &mut self,
        content: &str,
        separators: [char; 5],
        offset: usize,
        oddities: &mut ContentOddityList,
    ) {
        for word in content.split(separators) {
            if self.keywords.len() >= self.limits.1 {
                return oddities.note(ContentOddityKind::KeywordsFull, offset);
            }
            let word = field(word, self.limits.0, offset, oddities);
            self.keywords
                .extend(word.filter(|word| !self.keywords.contains(word)));
        }
    }
}

/// A `meta` element with a `content` attribute.
#[derive(Clone, Copy, Debug)]
pub(super) struct MetaElement<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) property: Option<&'a str>,
    pub(super) equiv: Option<&'a str>,
    pub(super) content: &'a str,
    /// Whether the element is in the head. Visitors of the site may have written elements after the
    /// head, for example in a comment.
    pub(super) is_in_head: bool,
}

/// Returns `text` with white space collapsed, cut at `limit` bytes. `None` if it is empty.
fn field(
    text: &str,
    limit: usize,
    offset: usize,
    oddities: &mut ContentOddityList,
) -> Option<String> {
    let mut collapsed = CollapsedTextBuilder::new(limit);
    collapsed.push(text);
    let (text, cut) = collapsed.take();
    if cut {
        oddities.note(ContentOddityKind::FieldCut, offset);
    }
    text
}
