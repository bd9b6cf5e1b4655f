//! The fuzz targets of this crate, which check properties of all converted documents.

#![allow(clippy::unwrap_used, reason = "a check that fails should panic")]

#[cfg(test)]
#[path = "../../fuzz/src/run_without_fuzzer.rs"]
mod run_without_fuzzer;

use crate::limits::{DocumentConversionError, DocumentLimits};

/// The byte that separates the parts (DOCX) or objects (PDF) in the input of a fuzz target.
const PART_END: u8 = 0x1e;
/// Limits that are low enough for short documents to reach them.
const SMALL: DocumentLimits = DocumentLimits {
    html_bytes: 40,
    part_bytes: 200,
};

/// Converts a DOCX. The first byte of the input determines whether the rest is a whole file, or the
/// parts to build a file from.
pub fn docx(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let file = match first % 4 {
        0 => rest.to_vec(),
        _ => package(rest),
    };
    if let Some((short, whole)) = check(&file, crate::docx::to_html) {
        assert!(short <= whole);
    }
}

/// Builds a DOCX from parts without compressing them, so that a fuzzer can change their texts.
fn package(parts: &[u8]) -> Vec<u8> {
    use std::io::{Cursor, Write as _};

    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    let names = [
        "word/document.xml",
        "word/styles.xml",
        "docProps/core.xml",
        "word/footnotes.xml",
        "word/endnotes.xml",
    ];
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, part) in names.iter().zip(parts.split(|byte| *byte == PART_END)) {
        zip.start_file(*name, stored).unwrap();
        zip.write_all(part).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Converts a PDF. The first byte of the input determines whether the rest is a whole file, or the
/// objects to build a file from. A panic of the PDF library counts as an unreadable file, because
/// the crawler runs the library in a separate process.
pub fn pdf(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let file = match first % 4 {
        0 => rest.to_vec(),
        _ => objects(rest),
    };
    check(&file, |bytes, limits| {
        let read = std::panic::catch_unwind(|| crate::pdf::to_html(bytes, limits));
        read.unwrap_or_else(|_| Err(DocumentConversionError::Broken("a panic".to_owned())))
    });
}

/// Builds a PDF from objects and adds the table of their offsets. The first object is the
/// catalogue, the second the information dictionary.
fn objects(objects: &[u8]) -> Vec<u8> {
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for object in objects.split(|byte| *byte == PART_END) {
        places.push(file.len());
        file.extend(format!("{} 0 obj\n", places.len()).bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let (start, size) = (file.len(), places.len() + 1);
    file.extend(format!("xref\n0 {size}\n0000000000 65535 f \n").bytes());
    for place in places {
        file.extend(format!("{place:010} 00000 n \n").bytes());
    }
    let trailer = format!("trailer\n<< /Size {size} /Root 1 0 R /Info 2 0 R >>\n");
    file.extend(format!("{trailer}startxref\n{start}\n%%EOF\n").bytes());
    file
}

/// Converts a file to two pages: the first with the default limits, the second with [`SMALL`] ones.
/// Checks that both pages contain only the expected tags, whatever the texts of the document are,
/// and that the second page is short. Returns the length of the main text of the second page, then
/// that of the first.
///
/// The second main text may be longer than the first. With the default limits, a line that repeats
/// on many pages of a PDF is moved to the footer. With the low limits, the repetitions may be cut
/// off, and then the line stays in the main text.
fn check(
    file: &[u8],
    to_html: impl Fn(&[u8], &DocumentLimits) -> Result<String, DocumentConversionError>,
) -> Option<(usize, usize)> {
    let html = to_html(file, &DocumentLimits::default());
    let short = to_html(file, &SMALL);
    let html = html.ok()?;
    check_tags(&html);
    let short = short.unwrap();
    check_tags(&short);
    let main = |html: &str| {
        let (_, main) = html.split_once("<main>\n").unwrap();
        let (main, _) = main.split_once("</main>\n").unwrap();
        main.len()
    };
    // The page may exceed the limit by one element, which may begin just below the limit. A
    // character of its text takes up to six bytes in HTML.
    assert!(main(&short) <= SMALL.html_bytes * 7 + 40);
    Some((main(&short), main(&html)))
}

fn check_tags(html: &str) {
    const NAMES: [&str; 14] = [
        "!doctype", "html", "meta", "title", "main", "footer", "p", "li", "h1", "h2", "h3", "h4",
        "h5", "h6",
    ];
    for tag in html.split('<').skip(1) {
        let name = tag.trim_start_matches('/');
        let end = name.find([' ', '>']).unwrap();
        assert!(NAMES.contains(&&name[..end]), "<{tag}");
        assert_eq!(tag.matches('>').count(), 1, "<{tag}");
        assert_eq!(tag.split('>').next().unwrap().matches('"').count() % 2, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::run_without_fuzzer::run_without_fuzzer;

    #[test]
    fn any_docx_is_read() {
        run_without_fuzzer("docx", 500, super::docx);
    }

    #[test]
    fn any_pdf_is_read() {
        run_without_fuzzer("pdf", 200, super::pdf);
    }
}
