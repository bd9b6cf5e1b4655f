//! Reads `word/styles.xml`, to find out which paragraph styles are those of titles and headings.

use std::collections::HashMap;

use super::xml::{XmlEvent, XmlReader};

/// Maximum number of `basedOn` references to follow from a paragraph's style.
const MAX_BASES: usize = 8;

/// The role of a paragraph, as determined by its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParagraphStyle {
    Body,
    Title,
    /// A heading. Contains the level, from 1.
    Heading(usize),
}

/// The styles of a document, by their ids.
#[derive(Debug, Default)]
pub(super) struct DocxStyles {
    by_id: HashMap<String, DocxStyle>,
}

#[derive(Debug, Default)]
struct DocxStyle {
    own: Option<ParagraphStyle>,
    based_on: Option<String>,
}

impl DocxStyles {
    pub(super) fn read(xml: &str) -> DocxStyles {
        let mut styles = DocxStyles::default();
        let mut steps = XmlReader::new(xml);
        let mut open: Option<(String, DocxStyle)> = None;
        while let Some(step) = steps.next() {
            match step {
                XmlEvent::Start(tag) => match (tag.name(), &mut open) {
                    ("style", _) => {
                        let id = tag.attribute("styleId");
                        open = id.map(|id| (id, DocxStyle::default()));
                    }
                    ("name", Some((_, style))) => {
                        style.own = style.own.or(tag.value().and_then(|name| by_name(&name)));
                    }
                    ("basedOn", Some((_, style))) => style.based_on = tag.value(),
                    ("outlineLvl", Some((_, style))) => {
                        let level = tag.value().and_then(|level| level.parse().ok());
                        let level = level.filter(|level: &usize| *level < 9);
                        let is_title = style.own == Some(ParagraphStyle::Title);
                        let heading = level.map(|level| ParagraphStyle::Heading(level + 1));
                        style.own = heading.filter(|_| !is_title).or(style.own);
                    }
                    _ => {}
                },
                XmlEvent::End(name) if name == "style" => styles.by_id.extend(open.take()),
                _ => {}
            }
        }
        styles
    }

    /// Returns the role of paragraphs with the style `id`.
    pub(super) fn of(&self, id: &str) -> ParagraphStyle {
        let mut id = id;
        for _ in 0..MAX_BASES {
            let Some(style) = self.by_id.get(id) else {
                // Some programs use built-in styles without defining them. In that case, the id is
                // the name of the built-in style.
                return by_name(id).unwrap_or(ParagraphStyle::Body);
            };
            if let Some(own) = style.own {
                return own;
            }
            let Some(base) = &style.based_on else {
                break;
            };
            id = base;
        }
        ParagraphStyle::Body
    }
}

/// Returns the role of a built-in style. `None` if the style is not one of a title or heading. Word
/// processors store English names in documents of all languages.
fn by_name(name: &str) -> Option<ParagraphStyle> {
    let name = name.to_ascii_lowercase();
    if name == "title" {
        return Some(ParagraphStyle::Title);
    }
    let level = name.strip_prefix("heading")?.trim().parse().ok();
    level
        .filter(|level| (1..=9).contains(level))
        .map(ParagraphStyle::Heading)
}
