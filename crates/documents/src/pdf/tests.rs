//! Tests with PDF documents that are assembled here, object by object.

use super::{iso_date, titled, to_html};
use crate::limits::{DocumentConversionError, DocumentLimits};

/// Builds a document from objects. The first object is the catalogue. Objects refer to others by
/// number, such as `4 0 R` for the fourth object.
fn document(objects: &[String], trailer: &str) -> Vec<u8> {
    let mut text = String::from("%PDF-1.4\n");
    let mut places = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        places.push(text.len());
        text.push_str(&format!("{} 0 obj\n{object}\nendobj\n", at + 1));
    }
    let start = text.len();
    text.push_str(&format!(
        "xref\n0 {}\n0000000000 65535 f \n",
        objects.len() + 1
    ));
    for place in places {
        text.push_str(&format!("{place:010} 00000 n \n"));
    }
    let size = objects.len() + 1;
    text.push_str(&format!(
        "trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n"
    ));
    text.into_bytes()
}

/// The lines of a page. Each line has a font size, a height above the bottom of the page, and a
/// text.
type Lines<'a> = &'a [(u32, u32, &'a str)];

/// Builds a document from the lines of its pages, an outline (levels and titles), and an
/// information dictionary.
fn pages(pages: &[Lines<'_>], outline: &[(usize, &str)], info: &str) -> Vec<u8> {
    let first_page = 4;
    let first_entry = first_page + 2 * pages.len();
    let outlines = match outline {
        [] => String::new(),
        _ => format!("/Outlines {} 0 R", first_entry + outline.len()),
    };
    let kids = (0..pages.len()).map(|at| format!("{} 0 R ", first_page + 2 * at));
    let mut objects = vec![
        format!("<< /Type /Catalog /Pages 2 0 R /Lang (en-GB) {outlines} >>"),
        format!(
            "<< /Type /Pages /Kids [{}] /Count {} >>",
            kids.collect::<String>(),
            pages.len()
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".into(),
    ];
    for (at, lines) in pages.iter().enumerate() {
        let lines = lines.iter().map(|(size, height, text)| {
            format!("BT /F1 {size} Tf 72 {height} Td ({text}) Tj ET\n")
        });
        let content: String = lines.collect();
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {} 0 R \
            /Resources << /Font << /F1 3 0 R >> >> >>",
            first_page + 2 * at + 1
        ));
        objects.push(format!(
            "<< /Length {} >>\nstream\n{content}endstream",
            content.len()
        ));
    }
    // Link each entry to the next entry of the same level, and to its first child.
    for (at, (level, title)) in outline.iter().enumerate() {
        let rest = &outline[at + 1..];
        let under = rest.first().is_some_and(|(next, _)| next > level);
        let next = rest.iter().position(|(next, _)| next <= level);
        let next = next.filter(|next| rest[*next].0 == *level);
        let mut entry = format!("<< /Title ({title})");
        if under {
            entry.push_str(&format!(" /First {} 0 R", first_entry + at + 1));
        }
        if let Some(next) = next {
            entry.push_str(&format!(" /Next {} 0 R", first_entry + at + 1 + next));
        }
        objects.push(entry + " >>");
    }
    if !outline.is_empty() {
        objects.push(format!("<< /Type /Outlines /First {first_entry} 0 R >>"));
    }
    objects.push(info.to_owned());
    document(&objects, &format!("/Info {} 0 R", objects.len()))
}

fn main_of(html: &str) -> &str {
    html.split_once("<main>\n")
        .unwrap()
        .1
        .split_once("</main>")
        .unwrap()
        .0
}

fn read(bytes: &[u8]) -> String {
    to_html(bytes, &DocumentLimits::default()).unwrap()
}

#[test]
fn sizes_make_headings_and_distances_make_paragraphs() {
    let bytes = pages(
        &[
            &[
                (24, 760, "The tea house"),
                (16, 720, "Opening"),
                (
                    11,
                    700,
                    "We open at nine and close when the last guest has gone, which dif-",
                ),
                (11, 686, "fers from day to day. Ring \\(twice\\)."),
                (11, 650, "In winter there is soup."),
            ],
            &[
                (16, 760, "Prices"),
                (11, 740, "A cup is two coins, and the second one is free."),
            ],
        ],
        &[],
        "<< /Author (Ada L.) /CreationDate (D:20250403201500+02'00') /ModDate (D:2025050) >>",
    );
    let html = read(&bytes);
    assert_eq!(
        main_of(&html),
        "<h1 id=\"page=1\">The tea house</h1>\n<h2 id=\"page=1\">Opening</h2>\n\
        <p>We open at nine and close when the last guest has gone, which differs from day to day. \
        Ring (twice).</p>\n<p>In winter there is soup.</p>\n<h2 id=\"page=2\">Prices</h2>\n\
        <p>A cup is two coins, and the second one is free.</p>\n"
    );
    for part in [
        "<html lang=\"en-GB\">",
        "<title>The tea house</title>",
        "name=\"author\" content=\"Ada L.\"",
        "published_time\" content=\"2025-04-03T20:15:00+02:00\"",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
}

#[test]
fn an_outline_decides_the_headings() {
    let bytes = pages(
        &[&[
            (11, 760, "1 Pots"),
            (11, 740, "They are warm."),
            (11, 700, "1.1 Lids"),
            (11, 680, "They are round."),
            (11, 640, "2 Cups"),
            (20, 620, "BIG WORDS"),
        ]],
        &[
            (1, "1 Pots"),
            (2, "1.1 Lids"),
            (1, "2 Cups"),
            (1, "Elsewhere"),
        ],
        "<< /Title (Microsoft Word - report_final.doc) >>",
    );
    let html = read(&bytes);
    assert_eq!(
        main_of(&html),
        "<h1 id=\"page=1\">1 Pots</h1>\n<p>They are warm.</p>\n<h2 id=\"page=1\">1.1 Lids</h2>\n\
        <p>They are round.</p>\n<h1 id=\"page=1\">2 Cups</h1>\n<p>BIG WORDS</p>\n"
    );
    assert!(html.contains("<title>BIG WORDS</title>"), "{html}");
}

#[test]
fn running_lines_are_kept_once_outside_the_main_text() {
    let page = |words: &'static str, foot: &'static str| {
        [
            (11, 800, "Tea house handbook"),
            (11, 500, words),
            (11, 30, foot),
        ]
    };
    let (a, b, c) = (
        page("Pots are warm.", "Page 1 of 3"),
        page("Cups are blue.", "Page 2 of 3"),
        page("Doors are open.", "Page 3 of 3"),
    );
    let html = read(&pages(&[&a, &b, &c], &[], "<< >>"));
    assert_eq!(
        main_of(&html),
        "<p>Pots are warm.</p>\n<p>Cups are blue.</p>\n<p>Doors are open.</p>\n"
    );
    assert!(
        html.contains("<footer>\n<p>Tea house handbook</p>\n<p>Page 1 of 3</p>"),
        "{html}"
    );
}

#[test]
fn a_damaged_document_is_broken() {
    let limits = DocumentLimits::default();
    assert!(matches!(
        to_html(b"%PDF-1.4 and no more", &limits),
        Err(DocumentConversionError::Broken(_))
    ));
    let whole = pages(&[&[(11, 700, "words")]], &[], "<< >>");
    assert!(to_html(&whole[..whole.len() / 2], &limits).is_err());
}

#[test]
fn a_cyclic_outline_ends() {
    let whole = pages(
        &[&[(11, 700, "Pots")]],
        &[(1, "Pots"), (1, "Cups")],
        "<< >>",
    );
    let text = String::from_utf8(whole).unwrap();
    let circle = text.replace("/Next 7 0 R", "/Next 6 0 R");
    assert_ne!(circle, text);
    assert!(read(circle.as_bytes()).contains("<h1 id=\"page=1\">Pots</h1>"));
}

/// Returns the main text of a document with two pages. The first page also draws the form `A`,
/// whose entries and content are given, and can draw the form `B`.
fn drawn(pages_entry: &str, form: &str, content: &str) -> String {
    let stream = |entries: &str, content: &str| {
        let length = content.len();
        format!("<< /Length {length} {entries} >>\nstream\n{content}\nendstream")
    };
    let text = |word: &str| format!("BT /F 11 Tf 72 700 Td ({word}) Tj ET");
    let page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842]";
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!(
            "<< /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 /Resources << /Font << /F 5 0 R >> \
            /XObject << /A 8 0 R /B 9 0 R >> >> {pages_entry} >>"
        ),
        format!("{page} /Contents 6 0 R >>"),
        format!("{page} /Contents 7 0 R >>"),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".into(),
        stream("", &format!("{} /A Do", text("first"))),
        stream("", &text("second")),
        stream(form, content),
        stream("/Subtype /Form", &format!("{} /A Do", text("inner"))),
    ];
    main_of(&read(&document(&objects, ""))).to_owned()
}

#[test]
fn a_cycle_of_parents_ends() {
    let whole = drawn("", "/Subtype /Form", "");
    assert_eq!(whole, "<p>first second</p>\n");
    for cycle in ["/Parent 2 0 R", "/Parent 3 0 R", "/Parent 10 0 R"] {
        assert_eq!(drawn(cycle, "/Subtype /Form", ""), whole, "{cycle}");
    }
}

#[test]
fn a_form_that_draws_itself_ends() {
    let form = "/Subtype /Form";
    let own = "/Subtype /Form /Resources << /XObject << /X 8 0 R >> >>";
    let other = "/Subtype /Form /Resources << /XObject << /X 9 0 R >> >>";
    for (entries, content) in [
        (form, "/A Do"),
        (form, "/B Do"),
        (own, "/X Do"),
        (other, "/X Do"),
    ] {
        let main = drawn("", entries, content);
        assert!(main.contains("first") && main.contains("second"), "{main}");
    }
    let shared = "/Subtype /Form /Resources << /Font << /F 5 0 R >> /XObject << /A 8 0 R >> >>";
    let main = drawn("", shared, "BT /F 11 Tf 72 600 Td (drawn) Tj ET");
    assert!(main.contains("drawn"), "a form may list itself: {main}");
}

#[test]
fn images_are_not_read_as_forms() {
    let image = "/Subtype /Image";
    let main = drawn("", image, "BT /F 11 Tf 72 600 Td (pixels) Tj ET /A Do");
    assert_eq!(main, "<p>first second</p>\n");
}

#[test]
fn dates_and_titles_are_taken_as_they_are_written() {
    let date = |text: &str| iso_date(text).unwrap_or_default();
    assert_eq!(date("D:20250403201500Z"), "2025-04-03T20:15:00Z");
    assert_eq!(date("D:20250403201500-05'30"), "2025-04-03T20:15:00-05:30");
    assert_eq!(date("20250403"), "2025-04-03");
    assert_eq!(date("D:2025"), "2025-01-01");
    assert_eq!(date("in spring"), "");
    assert_eq!(
        titled("Microsoft Word - House rules").as_deref(),
        Some("House rules")
    );
    assert_eq!(titled("scan0001.tif"), None);
    assert_eq!(titled("Untitled"), None);
}
