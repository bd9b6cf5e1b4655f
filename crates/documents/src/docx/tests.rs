//! Tests with DOCX packages that are assembled here, part by part.

use std::io::{Cursor, Write as _};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::to_html;
use crate::limits::{DocumentConversionError, DocumentLimits};

const STYLES: &str = r#"<w:styles xmlns:w="w">
    <w:style w:type="paragraph" w:styleId="Titel"><w:name w:val="Title"/></w:style>
    <w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>
    <w:style w:type="paragraph" w:styleId="Own"><w:name w:val="My own"/>
        <w:basedOn w:val="berschrift1"/></w:style>
    <w:style w:type="paragraph" w:styleId="Deep"><w:name w:val="Deep"/>
        <w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>
    <w:style w:type="paragraph" w:styleId="A"><w:name w:val="A"/><w:basedOn w:val="B"/></w:style>
    <w:style w:type="paragraph" w:styleId="B"><w:name w:val="B"/><w:basedOn w:val="A"/></w:style>
    </w:styles>"#;

const PROPERTIES: &str = r#"<cp:coreProperties xmlns:cp="c" xmlns:dc="d" xmlns:dcterms="t">
    <dc:creator>Ada L.</dc:creator><dc:title></dc:title>
    <dcterms:created>2024-03-04T05:06:07Z</dcterms:created>
    <dcterms:modified>2025-01-02T03:04:05Z</dcterms:modified></cp:coreProperties>"#;

fn package(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn html(body: &str) -> String {
    let document = format!("<w:document xmlns:w=\"w\"><w:body>{body}</w:body></w:document>");
    let bytes = package(&[
        ("word/document.xml", &document),
        ("word/styles.xml", STYLES),
        ("docProps/core.xml", PROPERTIES),
    ]);
    to_html(&bytes, &DocumentLimits::default()).unwrap()
}

fn paragraph(style: &str, text: &str) -> String {
    format!("<w:p><w:pPr><w:pStyle w:val=\"{style}\"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>")
}

#[test]
fn styles_make_titles_and_headings() {
    let body = [
        paragraph("Titel", "House rules"),
        paragraph("berschrift1", "Doors &amp; keys"),
        paragraph("Normal", "Close them."),
        paragraph("Own", "Kitchen"),
        paragraph("Deep", "Ovens"),
        paragraph("A", "Cold."),
        paragraph("Heading2", "Sinks"),
    ];
    let html = html(&body.concat());
    let main = html.split_once("<main>\n").unwrap().1;
    assert_eq!(
        main,
        "<h1>House rules</h1>\n<h1>Doors &amp; keys</h1>\n<p>Close them.</p>\n<h1>Kitchen</h1>\n\
        <h3>Ovens</h3>\n<p>Cold.</p>\n<h2>Sinks</h2>\n</main>\n"
    );
    assert!(html.contains("<title>House rules</title>"), "{html}");
    assert!(
        html.contains("name=\"author\" content=\"Ada L.\""),
        "{html}"
    );
    assert!(
        html.contains("published_time\" content=\"2024-03-04T05:06:07Z\""),
        "{html}"
    );
    assert!(
        html.contains("modified_time\" content=\"2025-01-02T03:04:05Z\""),
        "{html}"
    );
}

#[test]
fn boxes_tables_and_lists_are_read_and_second_forms_are_not() {
    let html = html(
        "<w:p><w:r><w:t>Around</w:t><w:tab/><w:t>it</w:t></w:r><mc:AlternateContent><mc:Choice>\
        <w:p><w:r><w:t>in a box</w:t></w:r></w:p></mc:Choice><mc:Fallback><w:p><w:r><w:t>again</w:t>\
        </w:r></w:p></mc:Fallback></mc:AlternateContent></w:p><w:tbl><w:tr><w:tc><w:p><w:r>\
        <w:t>cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl><w:p><w:pPr><w:numPr/></w:pPr><w:r>\
        <w:t>item</w:t><w:delText>old</w:delText></w:r></w:p>",
    );
    let main = html.split_once("<main>\n").unwrap().1;
    assert_eq!(
        main,
        "<p>in a box</p>\n<p>Around it</p>\n<p>cell</p>\n<li>item</li>\n</main>\n"
    );
}

#[test]
fn a_package_without_a_document_is_broken() {
    let limits = DocumentLimits::default();
    let no_document = package(&[("a.txt", "a")]);
    let error = DocumentConversionError::Broken("it has no word/document.xml".to_owned());
    assert_eq!(to_html(&no_document, &limits), Err(error));
    assert!(matches!(
        to_html(b"PK\x03\x04", &limits),
        Err(DocumentConversionError::Broken(_))
    ));
}

#[test]
fn a_part_is_unpacked_up_to_its_limit_and_nesting_has_no_bound() {
    let body = paragraph("Normal", "first") + &" ".repeat(20 << 20) + &paragraph("Normal", "last");
    let document = format!("<w:document><w:body>{body}</w:body></w:document>");
    let bytes = package(&[("word/document.xml", &document)]);
    assert!(bytes.len() < 100_000);
    let limits = DocumentLimits {
        part_bytes: 1 << 20,
        ..DocumentLimits::default()
    };
    let read = to_html(&bytes, &limits).unwrap();
    assert!(read.contains("first") && !read.contains("last"), "{read}");
    let deep = format!(
        "{}<w:p><w:t>deep words</w:t></w:p>",
        "<w:p><w:tbl>".repeat(200_000)
    );
    let bytes = package(&[("word/document.xml", &deep)]);
    let read = to_html(&bytes, &DocumentLimits::default()).unwrap();
    assert!(read.contains("deep words"), "{read}");
}

#[test]
fn a_long_title_or_property_is_cut() {
    let long = "&".repeat(1 << 20);
    let document = format!(
        "<w:body>{}</w:body>",
        paragraph("Titel", &"t ".repeat(1 << 20))
    );
    let properties = format!("<p><dc:creator><![CDATA[{long}]]></dc:creator></p>");
    let bytes = package(&[
        ("word/document.xml", &document),
        ("word/styles.xml", STYLES),
        ("docProps/core.xml", &properties),
    ]);
    let limits = DocumentLimits {
        html_bytes: 1000,
        ..DocumentLimits::default()
    };
    let html = to_html(&bytes, &limits).unwrap();
    assert!(html.len() < 40_000, "{}", html.len());
    assert!(html.contains("<title>t t "), "{}", &html[..200]);
}
