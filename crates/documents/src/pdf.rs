//! Converts PDF (ISO 32000-1) to HTML. Glyphs are joined into lines, and lines into paragraphs.
//! Lines that equal a title in the document's outline become headings. If no line does, lines in a
//! larger font become headings.

mod layout;
mod lines;
mod reference_cycles;

use std::collections::HashSet;

use pdf_extract::{Dictionary, Document, Object, ObjectId, decode_text_string, output_doc_page};

use crate::html_writer::{HtmlPageWriter, MAX_FIELD_BYTES, PageHead};
use crate::limits::{DocumentConversionError, DocumentLimits};
use layout::DocumentLayout;
use lines::GlyphLineBuilder;

/// Maximum number of bookmarks of a PDF to read.
/// Beyond the limit: ignored.
const MAX_OUTLINE_ENTRIES: usize = 10_000;

pub(crate) fn to_html(
    bytes: &[u8],
    limits: &DocumentLimits,
) -> Result<String, DocumentConversionError> {
    let broken = |why: &dyn ToString| DocumentConversionError::Broken(why.to_string());
    let mut document = Document::load_mem(bytes).map_err(|why| broken(&why))?;
    // Try an empty password, which is sufficient if the encryption only restricts editing.
    if document.is_encrypted() && document.decrypt("").is_err() {
        return Err(DocumentConversionError::Encrypted);
    }
    reference_cycles::remove_cycles(&mut document);
    let mut reader = GlyphLineBuilder::new(limits.html_bytes);
    let mut fault = None;
    for page in document.get_pages().into_keys() {
        // If a page is broken, lose only the text of this page.
        if let Err(why) = output_doc_page(&document, &mut reader, page) {
            fault.get_or_insert(why);
        }
        if reader.is_full() {
            break;
        }
    }
    let lines = reader.finish();
    if let Some(why) = fault.filter(|_| lines.is_empty()) {
        return Err(broken(&why));
    }
    let layout = DocumentLayout::of(lines, &outline(&document));
    let mut page = HtmlPageWriter::new(limits.html_bytes);
    for block in &layout.blocks {
        match block.level {
            // Use ids such as `page=3`, because a link with `#page=3` opens a PDF at page 3 (RFC
            // 8118 section 3).
            Some(level) => {
                let id = format!("page={}", block.page);
                page.heading(level, Some(&id), &block.text);
            }
            None => page.element("p", None, &block.text),
        }
    }
    let mut head = information(&document);
    head.title = head.title.or(layout.title);
    Ok(page.finish(&head, &layout.beside))
}

/// Reads the metadata of a document from the information dictionary (ISO 32000-1 section 14.3.3),
/// and the language from the catalogue.
fn information(document: &Document) -> PageHead {
    let info = document.trailer.get_deref(b"Info", document);
    let info = info.and_then(Object::as_dict).ok();
    let field = |name: &[u8]| text_of(document, info?, name);
    let language = document.catalog().ok();
    PageHead {
        title: field(b"Title").and_then(|title| titled(&title)),
        author: field(b"Author"),
        description: field(b"Subject"),
        keywords: field(b"Keywords"),
        published: field(b"CreationDate").and_then(|date| iso_date(&date)),
        modified: field(b"ModDate").and_then(|date| iso_date(&date)),
        language: language.and_then(|catalog| text_of(document, catalog, b"Lang")),
    }
}

fn text_of(document: &Document, dictionary: &Dictionary, name: &[u8]) -> Option<String> {
    let mut text = decode_text_string(dictionary.get_deref(name, document).ok()?).ok()?;
    text.truncate(text.floor_char_boundary(MAX_FIELD_BYTES));
    Some(text).filter(|text| !text.trim().is_empty())
}

/// Returns the title to display. `None` if the title is a file name or `untitled`, which some
/// programs write if the author gave no title.
fn titled(title: &str) -> Option<String> {
    let title = title.trim();
    let (_, name) = title.split_once("Microsoft Word - ").unwrap_or(("", title));
    let is_file = !name.contains(' ') && name.contains('.')
        || [
            ".doc", ".docx", ".dvi", ".indd", ".odt", ".pdf", ".tex", ".xls", ".xlsx",
        ]
        .iter()
        .any(|ending| name.to_lowercase().ends_with(ending));
    let is_none = name.is_empty() || name.eq_ignore_ascii_case("untitled");
    (!is_file && !is_none).then(|| name.to_owned())
}

/// Converts a date such as `D:20250403201500+02'00'` (ISO 32000-1 section 7.9.4) to RFC 3339.
fn iso_date(date: &str) -> Option<String> {
    let date = date.trim().trim_start_matches("D:");
    let length = date.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, zone) = date.split_at(length);
    let part = |from: usize, to: usize| digits.get(from..to);
    let day = format!(
        "{}-{}-{}",
        part(0, 4)?,
        part(4, 6).unwrap_or("01"),
        part(6, 8).unwrap_or("01")
    );
    let (Some(hour), Some(minute)) = (part(8, 10), part(10, 12)) else {
        return Some(day);
    };
    let second = part(12, 14).unwrap_or("00");
    let zone: String = zone.chars().filter(|c| *c != '\'').collect();
    let zone = match zone.len() {
        5 => format!("{}:{}", &zone.get(..3)?, &zone.get(3..)?),
        _ => "Z".to_owned(),
    };
    Some(format!("{day}T{hour}:{minute}:{second}{zone}"))
}

/// Returns the titles in the outline (the bookmarks) in document order, each with its level, from
/// 1.
fn outline(document: &Document) -> Vec<(usize, String)> {
    let mut entries = Vec::new();
    let mut seen: HashSet<ObjectId> = HashSet::new();
    let reference = |dictionary: &Dictionary, name: &[u8]| {
        dictionary.get(name).and_then(Object::as_reference).ok()
    };
    let root = document
        .catalog()
        .and_then(|catalog| catalog.get_deref(b"Outlines", document));
    let first = root.and_then(Object::as_dict).ok();
    let mut open: Vec<(usize, ObjectId)> = Vec::new();
    open.extend(
        first
            .and_then(|root| reference(root, b"First"))
            .map(|id| (1, id)),
    );
    while let Some((level, id)) = open.pop() {
        let Ok(entry) = document.get_object(id).and_then(Object::as_dict) else {
            continue;
        };
        if !seen.insert(id) || entries.len() >= MAX_OUTLINE_ENTRIES {
            continue;
        }
        if let Some(title) = text_of(document, entry, b"Title") {
            entries.push((level, title));
        }
        open.extend(reference(entry, b"Next").map(|id| (level, id)));
        open.extend(reference(entry, b"First").map(|id| (level + 1, id)));
    }
    entries
}

#[cfg(test)]
mod tests;
