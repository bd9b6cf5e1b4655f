//! Describes the elements of links that have no text.

use std::collections::HashMap;

use crawl_extractor::{Link, LinkElement, Rel};

use super::PageFault;
use crate::broken_links::key;

/// The links without text that lead to broken pages, and the elements that contain these links.
#[derive(Debug, Default)]
pub(super) struct TextlessBrokenLinks {
    /// The element of each link. The key consists of the keys of the linking page and of the
    /// target.
    elements: HashMap<(u64, u64), Option<String>>,
}

impl TextlessBrokenLinks {
    /// Collects the faults whose links have no text.
    pub(super) fn of(faults: &[PageFault]) -> TextlessBrokenLinks {
        let unnamed = faults.iter().filter(|fault| fault.text.is_none());
        let places = unnamed.filter_map(place).map(|place| (place, None));
        TextlessBrokenLinks {
            elements: places.collect(),
        }
    }

    /// Records a description of a link's element, such as `image`, if the link is broken and has no
    /// text.
    pub(super) fn found(&mut self, page: &str, to: &str, link: Option<&Link>) {
        if let Some(link) = link
            && !self.elements.is_empty()
            && let Some(element) = self.elements.get_mut(&(key(page), key(to)))
        {
            element.get_or_insert_with(|| element_words(link));
        }
    }

    /// Sets [`PageFault::element`] of each fault whose link has no text.
    pub(super) fn write_to(&self, faults: &mut [PageFault]) {
        for fault in faults.iter_mut().filter(|fault| fault.text.is_none()) {
            let element = place(fault).and_then(|place| self.elements.get(&place)?.clone());
            fault.element = element;
        }
    }
}

fn place(fault: &PageFault) -> Option<(u64, u64)> {
    Some((key(fault.page.as_deref()?), key(&fault.to)))
}

/// Returns the usual words for the element that contains a link.
pub(super) fn element_words(link: &Link) -> String {
    let words = match link.element {
        LinkElement::A | LinkElement::Area => "link without text",
        LinkElement::Img | LinkElement::SvgImage => "image",
        LinkElement::Script => "script",
        LinkElement::Link if link.rel.contains(Rel::STYLESHEET) => "style sheet",
        LinkElement::Link if link.rel.contains(Rel::ICON) => "icon",
        LinkElement::Link => return relation_words(link.rel),
        LinkElement::Style | LinkElement::StyleSheet | LinkElement::Any => "style sheet",
        LinkElement::Frame | LinkElement::Iframe => "frame",
        LinkElement::MetaRefresh => "refresh",
        LinkElement::Header => "response header",
        other => return other.to_string(),
    };
    words.to_owned()
}

/// Returns the name of a `link` element's first link type: `canonical`, `preload` and so on.
fn relation_words(rel: Rel) -> String {
    match rel.to_string().split(' ').next() {
        Some("") | None => "link element".to_owned(),
        Some("alternate") => "alternate version".to_owned(),
        Some("preload" | "modulepreload" | "prefetch") => "preloaded resource".to_owned(),
        Some("canonical") => "canonical URL".to_owned(),
        Some(name) => format!("rel={name}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::site_faults::{FaultKind, faults};
    use crate::test_crawl_builder::TestCrawlBuilder;
    use serde_json::json;

    #[test]
    fn a_broken_link_without_text_has_the_name_of_its_element() {
        let mut made = TestCrawlBuilder::new();
        let url = |path: &str| format!("https://e.example{path}");
        made.page(
            &url("/"),
            "text/html",
            "<link rel=stylesheet href=/a.css><script src=/b.js></script><img src=/c.png>\
             <a href=/d></a><a href=/e>the text</a><link rel=icon href=/f.ico><link rel=canonical href=/g>\
             <link rel=alternate hreflang=fr href=/h><link rel=preload href=/i as=font>",
        );
        for path in [
            "/a.css", "/b.js", "/c.png", "/d", "/e", "/f.ico", "/g", "/h", "/i",
        ] {
            made.row(&url(path), &json!({"status": 404, "via": url("/")}));
        }
        let found = faults(made.finish().path(), &FaultKind::ALL).unwrap();
        let elements = found.faults.iter();
        let elements: Vec<_> = elements.map(|fault| fault.element.as_deref()).collect();
        let expected = [
            Some("style sheet"),
            Some("script"),
            Some("image"),
            Some("link without text"),
            None,
            Some("icon"),
            Some("canonical URL"),
            Some("alternate version"),
            Some("preloaded resource"),
        ];
        assert_eq!(elements, expected);
        let text = found.to_string();
        assert!(
            text.contains("/a.css  not found (404)  (style sheet)\n"),
            "{text}"
        );
        assert!(found.html().contains("</a> (script)"), "{}", found.html());
    }
}
