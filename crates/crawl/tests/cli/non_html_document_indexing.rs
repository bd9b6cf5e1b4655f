//! Indexing of documents other than HTML: which text is read from them, and that a hostile document
//! disturbs no other document.

use std::io::{Cursor, Write as _};

use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};
use serde_json::Value;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::harness::{Cmd, Dir, setup};

const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/// Returns a PDF of these objects, the first of which is its catalogue.
fn pdf(objects: &[String]) -> Vec<u8> {
    let mut text = String::from("%PDF-1.4\n");
    let mut places = String::new();
    for (at, object) in objects.iter().enumerate() {
        places.push_str(&format!("{:010} 00000 n \n", text.len()));
        text.push_str(&format!("{} 0 obj\n{object}\nendobj\n", at + 1));
    }
    let (start, size) = (text.len(), objects.len() + 1);
    text.push_str(&format!("xref\n0 {size}\n0000000000 65535 f \n{places}"));
    text.push_str(&format!(
        "trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    ));
    text.into_bytes()
}

fn stream(dictionary: &str, content: &str) -> String {
    let length = content.len();
    format!("<< /Length {length} {dictionary} >>\nstream\n{content}\nendstream")
}

/// Returns a PDF with a page for each content. Pages may refer to the objects in `more`, whose
/// numbers start at 4.
fn pdf_of_pages(contents: &[&str], resources: &str, more: &[String]) -> Vec<u8> {
    let first = 4 + more.len();
    let kids = (0..contents.len()).map(|at| format!("{} 0 R ", first + 2 * at));
    let (kids, count) = (kids.collect::<String>(), contents.len());
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{kids}] /Count {count} >>"),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".into(),
    ];
    objects.extend_from_slice(more);
    for (at, content) in contents.iter().enumerate() {
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {} 0 R \
             /Resources << /Font << /F1 3 0 R >> {resources} >> >>",
            first + 2 * at + 1
        ));
        objects.push(stream("", content));
    }
    pdf(&objects)
}

/// Returns the PDF operators that write a line of text.
fn line(size: u32, height: u32, text: &str) -> String {
    format!("BT /F1 {size} Tf 72 {height} Td ({text}) Tj ET\n")
}

/// Returns a PDF whose page draws a form, which draws the next form ten times, and so on.
fn pdf_without_end() -> Vec<u8> {
    let levels = 16;
    let forms: Vec<String> = (0..levels)
        .map(|at| {
            let next = 4 + (at + 1) % levels;
            let dictionary = format!(
                "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X {next} 0 R >> >>"
            );
            let content = if at + 1 == levels { String::new() } else { "/X Do ".repeat(10) };
            stream(&dictionary, &content)
        })
        .collect();
    pdf_of_pages(&["/X Do"], "/XObject << /X 4 0 R >>", &forms)
}

/// Returns a PDF whose page draws a form that draws itself.
fn pdf_that_holds_itself() -> Vec<u8> {
    let dictionary = "/Type /XObject /Subtype /Form /BBox [0 0 9 9] \
                      /Resources << /XObject << /X 4 0 R >> >>";
    let form = stream(dictionary, "/X Do");
    pdf_of_pages(&["/X Do"], "/XObject << /X 4 0 R >>", &[form])
}

/// Returns a PDF whose page draws a form, which draws the next form, and so on, so many times that
/// the PDF library overflows the stack.
fn pdf_of_nested_forms() -> Vec<u8> {
    let levels = 3_000;
    let forms: Vec<String> = (0..levels)
        .map(|at| {
            let next = 5 + at;
            let dictionary = format!(
                "/Type /XObject /Subtype /Form /BBox [0 0 9 9] \
                 /Resources << /XObject << /X {next} 0 R >> >>"
            );
            stream(&dictionary, if at + 1 < levels { "/X Do" } else { "" })
        })
        .collect();
    pdf_of_pages(&["/X Do"], "/XObject << /X 4 0 R >>", &forms)
}

fn docx(document: &str) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("word/document.xml", SimpleFileOptions::default())
        .unwrap();
    zip.write_all(document.as_bytes()).unwrap();
    zip.finish().unwrap().into_inner()
}

fn paragraph(style: &str, text: &str) -> String {
    format!("<w:p><w:pPr><w:pStyle w:val=\"{style}\"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>")
}

fn file(content_type: &str, body: impl Into<Vec<u8>>) -> HttpAnswer {
    HttpAnswer::of(200)
        .header("content-type", content_type)
        .body(body)
}

fn web(files: Vec<(&str, HttpAnswer)>) -> TestWeb {
    let links = files
        .iter()
        .map(|(path, _)| format!("<li><a href={path}>{path}</a>"));
    let links: String = links.collect();
    let home = format!("<title>Home</title><p>All that we have written down.</p><ul>{links}</ul>");
    let mut builder = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(0, "/", HttpAnswer::html(&home));
    for (path, answer) in files {
        builder = builder.script(0, path, answer);
    }
    builder.start()
}

fn crawl(cmd: &Cmd, web: &TestWeb, more: &[&str]) -> String {
    let seed = web.url(0, "/");
    let mut args = vec![
        "--seed", &seed, "--output", "c", "--index", "on", "--delay", "0s",
    ];
    args.extend(["--delay-factor", "0", "--progress", "off"]);
    args.extend(more);
    let ran = cmd.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stderr
}

/// Returns the path of each page and whether the page is indexed, according to `pages.jsonl`.
fn indexed(dir: &Dir) -> Vec<(String, String)> {
    let rows = dir.rows("c/pages.jsonl");
    let mut all: Vec<_> = rows
        .iter()
        .map(|row| {
            let url = row["url"].as_str().unwrap();
            let path = url.splitn(4, '/').last().unwrap().to_owned();
            (path, row["indexed"].as_str().unwrap_or("-").to_owned())
        })
        .collect();
    all.sort();
    all
}

fn first(cmd: &Cmd, query: &str) -> Value {
    let ran = cmd.run(&["search", "c", query, "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    answer["results"][0].clone()
}

fn documents() -> Vec<(&'static str, HttpAnswer)> {
    let cover = line(24, 760, "Harbour handbook")
        + &line(
            11,
            700,
            "How boats come in, and what they owe for the night.",
        );
    let moorings = line(16, 760, "Moorings")
        + &line(
            11,
            730,
            "Each skipper is given a numbered bollard by the harbourmaster.",
        );
    let body = [
        paragraph("Title", "Minutes of the council"),
        paragraph("Heading1", "Lighthouse"),
        paragraph(
            "Normal",
            "The lantern is to be repainted before the equinox.",
        ),
    ];
    vec![
        (
            "/handbook.pdf",
            file(
                "application/pdf",
                pdf_of_pages(&[&cover, &moorings], "", &[]),
            ),
        ),
        (
            "/minutes",
            file(DOCX, docx(&format!("<w:body>{}</w:body>", body.concat()))),
        ),
        (
            "/fishing.md",
            file(
                "text/plain",
                "---\ntitle: Fishing rights\nlastmod: 2024-05-06\n---\n\n## Eels\n\nNo *weirs* at all.\n",
            ),
        ),
        (
            "/tides.txt",
            file(
                "text/plain",
                "Tide table\n==========\n\nThe estuary fills twice.\n",
            )
            .header("last-modified", "Tue, 03 Nov 2020 10:00:00 GMT"),
        ),
        (
            "/buoys.txt",
            file(
                "text/plain",
                "\u{feff}Buoys\n=====\n\nThe shoal is marked.\n"
                    .encode_utf16()
                    .flat_map(u16::to_le_bytes)
                    .collect::<Vec<u8>>(),
            ),
        ),
    ]
}

#[test]
fn pdf_docx_markdown_and_text_are_found_by_their_words_and_sections() {
    let (dir, cmd) = setup("documents");
    let web = web(documents());
    crawl(&cmd, &web, &["--index-types", "all"]);
    for (path, answer) in indexed(&dir) {
        assert_eq!(answer, "yes", "{path}");
    }
    let check = |query: &str, path: &str, title: &str| {
        let hit = first(&cmd, query);
        assert_eq!(
            hit["url"].as_str(),
            Some(web.url(0, path).as_str()),
            "{hit}"
        );
        assert_eq!(hit["title"].as_str(), Some(title), "{hit}");
        hit
    };
    let all = || {
        let bollard = check(
            "numbered bollard harbourmaster",
            "/handbook.pdf",
            "Harbour handbook",
        );
        // The result names the page, because viewers can open a PDF at a page.
        assert!(bollard.to_string().contains("page=2"), "{bollard}");
        check("lantern equinox", "/minutes", "Minutes of the council");
        let eels = check("weirs", "/fishing.md", "Fishing rights");
        assert_eq!(eels["modified"], 1_714_953_600, "{eels}");
        let tides = check("estuary", "/tides.txt", "Tide table");
        assert_eq!(tides["modified"], 1_604_397_600, "{tides}");
        check("shoal", "/buoys.txt", "Buoys");
    };
    all();
    // An index rebuilt from the archive gives the same results.
    let ran = cmd.run(&["index", "c", "--json"]);
    let built: Value = serde_json::from_str(&ran.ok()).unwrap();
    assert_eq!(built["pages"], 6, "{built}");
    all();
    let ran = cmd.run(&["index", "c", "--json", "--index-types", "html,pdf"]);
    let built: Value = serde_json::from_str(&ran.ok()).unwrap();
    assert_eq!(built["pages"], 2, "{built}");
    assert_eq!(built["left_out"]["no_page"], 4, "{built}");
}

#[test]
fn plain_text_is_not_indexed_by_default() {
    let (dir, cmd) = setup("documents-usual");
    let web = web(documents());
    crawl(&cmd, &web, &[]);
    let out: Vec<_> = indexed(&dir)
        .into_iter()
        .filter(|(_, answer)| answer != "yes")
        .collect();
    let no_page = |path: &str| (path.to_owned(), "no_page".to_owned());
    assert_eq!(out, [no_page("buoys.txt"), no_page("tides.txt")]);
}

#[test]
fn a_document_without_end_is_given_up() {
    let (dir, cmd) = setup("documents-endless");
    let web = web(vec![(
        "/endless.pdf",
        file("application/pdf", pdf_without_end()),
    )]);
    crawl(&cmd, &web, &["--document-timeout", "1s"]);
    let pages = indexed(&dir);
    let is_given_up = |(path, answer): &(String, String)| {
        path == "endless.pdf" && answer.starts_with("document_timeout")
    };
    assert!(pages.iter().any(is_given_up), "{pages:?}");
}

#[test]
fn a_hostile_document_harms_only_itself() {
    let (dir, cmd) = setup("documents-hostile");
    let long = paragraph("Normal", &"a ".repeat(1000)).repeat(30_000);
    let bomb = docx(&format!("<w:body>{long}</w:body>"));
    assert!(bomb.len() < 400_000, "{}", bomb.len());
    let closed = file(
        "application/pdf",
        pdf_of_pages(&[&line(11, 700, "closed words")], "", &[]),
    )
    .header("x-robots-tag", "noindex");
    let web = web(vec![
        ("/bomb.docx", file(DOCX, bomb)),
        (
            "/broken.docx",
            file(DOCX, b"PK\x03\x04 and no more".to_vec()),
        ),
        (
            "/broken.pdf",
            file("application/pdf", "%PDF-1.4 and no more"),
        ),
        ("/closed.pdf", closed),
        ("/deep.pdf", file("application/pdf", pdf_of_nested_forms())),
        // Dense markup makes the parser use about a hundred times the size of the text.
        (
            "/dense.md",
            file("text/markdown", "*a*\n\n".repeat(600_000)),
        ),
        (
            "/good.pdf",
            file(
                "application/pdf",
                pdf_of_pages(&[&line(11, 700, "good words")], "", &[]),
            ),
        ),
        (
            "/itself.pdf",
            file("application/pdf", pdf_that_holds_itself()),
        ),
        (
            "/long.md",
            file(
                "text/markdown",
                "# Harbour log\n\n".to_owned() + &"One more line of it.\n".repeat(20_000),
            )
            .header("last-modified", "Tue, 03 Nov 2020 10:00:00 GMT"),
        ),
    ]);
    // The time limit is so long that the memory limit is reached first on any machine.
    let bounds = ["--document-timeout", "60s", "--document-memory", "160MiB"];
    crawl(&cmd, &web, &bounds);
    let first_word = |answer: &str| answer.split(':').next().unwrap().to_owned();
    let names: Vec<_> = indexed(&dir)
        .into_iter()
        .map(|(path, answer)| format!("{path} {}", first_word(&answer)))
        .collect();
    assert_eq!(
        names,
        [
            " yes",
            "bomb.docx document_memory",
            "broken.docx document_unreadable",
            "broken.pdf document_unreadable",
            "closed.pdf noindex",
            "deep.pdf document_crashed",
            "dense.md document_memory",
            "good.pdf yes",
            "itself.pdf empty",
            "long.md yes",
        ]
    );
    assert_eq!(first(&cmd, "harbour log")["modified"], 1_604_397_600);
    let ran = cmd.run(&["index", "c", "--json"]);
    let built: Value = serde_json::from_str(&ran.ok()).unwrap();
    assert_eq!(built["pages"], 3, "{built}");
    assert_eq!(built["left_out"]["document_memory"], 2, "{built}");
}
