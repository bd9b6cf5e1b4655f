//! Converts DOCX (Office Open XML, ISO/IEC 29500-1) to HTML: paragraphs, headings (found by their
//! style), the text of tables and footnotes, and the document's properties.

mod styles;
mod xml;

use std::io::{Cursor, Read as _};

use zip::ZipArchive;

use crate::html_writer::{HtmlPageWriter, PageHead};
use crate::limits::{DocumentConversionError, DocumentLimits};
use styles::{DocxStyles, ParagraphStyle};
use xml::{XmlEvent, XmlReader};

pub(crate) fn to_html(
    bytes: &[u8],
    limits: &DocumentLimits,
) -> Result<String, DocumentConversionError> {
    let mut parts = DocxParts {
        zip: ZipArchive::new(Cursor::new(bytes))
            .map_err(|why| DocumentConversionError::Broken(why.to_string()))?,
        max_bytes: limits.part_bytes,
    };
    let document = parts
        .read("word/document.xml")
        .ok_or_else(|| DocumentConversionError::Broken("it has no word/document.xml".to_owned()))?;
    let styles = parts.read("word/styles.xml").unwrap_or_default();
    let mut head = properties(&parts.read("docProps/core.xml").unwrap_or_default());
    let mut reader = DocumentReader {
        page: HtmlPageWriter::new(limits.html_bytes),
        styles: DocxStyles::read(&styles),
        titles: Vec::new(),
    };
    reader.read(&document);
    if head.title.is_none() && !reader.titles.is_empty() {
        head.title = Some(reader.titles.join(" "));
    }
    let notes = [
        parts.read("word/footnotes.xml"),
        parts.read("word/endnotes.xml"),
    ];
    let notes: Vec<String> = notes
        .iter()
        .flatten()
        .flat_map(|xml| paragraphs(xml))
        .collect();
    Ok(reader.page.finish(&head, &notes))
}

/// The parts of a DOCX package: the files in a ZIP archive.
struct DocxParts<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    max_bytes: u64,
}

impl DocxParts<'_> {
    /// Reads a part as text. Stops at the size limit or at the first damaged byte. `None` if the
    /// part is missing.
    fn read(&mut self, name: &str) -> Option<String> {
        let part = self.zip.by_name(name).ok()?;
        let mut bytes = Vec::new();
        // If the part is truncated or damaged, keep what was read before the error.
        let _ = part.take(self.max_bytes).read_to_end(&mut bytes);
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Reads a document's properties: Dublin Core in `docProps/core.xml` (ISO/IEC 29500-2 section 8).
fn properties(xml: &str) -> PageHead {
    let mut head = PageHead::default();
    let mut name = String::new();
    let mut steps = XmlReader::new(xml);
    while let Some(step) = steps.next() {
        match step {
            XmlEvent::Start(tag) => name = tag.name().to_owned(),
            XmlEvent::End(_) => name.clear(),
            XmlEvent::Text(text) => {
                let field = match name.as_str() {
                    "title" => &mut head.title,
                    "creator" => &mut head.author,
                    "description" => &mut head.description,
                    "keywords" => &mut head.keywords,
                    "created" => &mut head.published,
                    "modified" => &mut head.modified,
                    "language" => &mut head.language,
                    _ => continue,
                };
                field.get_or_insert_default().push_str(&text);
            }
        }
    }
    head
}

/// Returns the texts of those paragraphs of a part that are not blank.
fn paragraphs(xml: &str) -> Vec<String> {
    let mut lines = Vec::new();
    walk(xml, &mut |paragraph| {
        lines.push(paragraph.text);
        true
    });
    lines
}

/// A paragraph (`w:p`).
#[derive(Debug, Default)]
struct Paragraph {
    text: String,
    style: String,
    /// The outline level that the paragraph itself declares. 0 to 8 override the level of its
    /// style, and other values are ignored.
    outline: Option<usize>,
    is_list_item: bool,
}

struct DocumentReader {
    page: HtmlPageWriter,
    styles: DocxStyles,
    /// The texts of the paragraphs in a title style.
    titles: Vec<String>,
}

impl DocumentReader {
    fn read(&mut self, xml: &str) {
        walk(xml, &mut |paragraph| {
            let style = match paragraph.outline {
                Some(level) if level < 9 => ParagraphStyle::Heading(level + 1),
                _ => self.styles.of(&paragraph.style),
            };
            match style {
                ParagraphStyle::Title => {
                    self.titles.push(paragraph.text.trim().to_owned());
                    self.page.heading(1, None, &paragraph.text);
                }
                ParagraphStyle::Heading(level) => self.page.heading(level, None, &paragraph.text),
                ParagraphStyle::Body if paragraph.is_list_item => {
                    self.page.element("li", None, &paragraph.text);
                }
                ParagraphStyle::Body => self.page.element("p", None, &paragraph.text),
            }
            !self.page.is_full()
        });
    }
}

/// Calls `visit` for each paragraph that is not blank, until `visit` returns false. Skips deleted
/// text, and the content of `mc:Fallback`, which repeats other content in a simpler form.
fn walk(xml: &str, visit: &mut dyn FnMut(Paragraph) -> bool) {
    let mut steps = XmlReader::new(xml);
    // A paragraph can contain a text box with further paragraphs, so several paragraphs may be open
    // at a time.
    let mut open: Vec<Paragraph> = Vec::new();
    let mut fallbacks = 0_usize;
    let mut is_text = false;
    while let Some(step) = steps.next() {
        match step {
            XmlEvent::Start(tag) => match (tag.name(), open.last_mut()) {
                ("Fallback", _) => fallbacks += 1,
                _ if fallbacks > 0 => {}
                ("p", _) => open.push(Paragraph::default()),
                ("t", _) => is_text = true,
                ("tab" | "br" | "cr", Some(paragraph)) => paragraph.text.push(' '),
                ("pStyle", Some(paragraph)) => paragraph.style = tag.value().unwrap_or_default(),
                ("outlineLvl", Some(paragraph)) => {
                    paragraph.outline = tag.value().and_then(|level| level.parse().ok());
                }
                ("numPr", Some(paragraph)) => paragraph.is_list_item = true,
                _ => {}
            },
            XmlEvent::End(name) => match name.as_str() {
                "Fallback" => fallbacks = fallbacks.saturating_sub(1),
                "t" => is_text = false,
                "p" if fallbacks == 0 => {
                    let done = open.pop().filter(|done| !done.text.trim().is_empty());
                    if let Some(paragraph) = done
                        && !visit(paragraph)
                    {
                        return;
                    }
                }
                _ => {}
            },
            XmlEvent::Text(text) => {
                if let Some(paragraph) = open.last_mut().filter(|_| is_text && fallbacks == 0) {
                    paragraph.text.push_str(&text);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
