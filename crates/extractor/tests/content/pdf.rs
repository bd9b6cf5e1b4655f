//! The text of PDFs.

use crawl_extractor::{PdfError, pdf_text};

/// A PDF of one page that shows `text`.
fn pdf(text: &str) -> Vec<u8> {
    let stream = format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R \
         /Resources << /Font << /F1 5 0 R >> >> >>"
            .to_owned(),
        format!(
            "<< /Length {} >>\nstream\n{stream}\nendstream",
            stream.len()
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut table = "xref\n0 6\n0000000000 65535 f \n".to_owned();
    for (at, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", file.len());
        file += &format!("{} 0 obj\n{object}\nendobj\n", at + 1);
    }
    let start = file.len();
    file += &format!("{table}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n");
    file.into_bytes()
}

#[test]
fn ours_text_of_a_pdf() {
    let text = pdf_text(&pdf("Hello from a page"), 1 << 20, 1 << 20).unwrap();
    assert_eq!(text.text.trim(), "Hello from a page");
    assert!(!text.cut);
    let text = pdf_text(&pdf("Hello from a page"), 1 << 20, 6).unwrap();
    assert!(text.cut && text.text.len() <= 6);
}

#[test]
fn ours_what_is_no_pdf_has_a_reason() {
    assert_eq!(pdf_text(b"<html>", 100, 100), Err(PdfError::NotPdf));
    let long = PdfError::TooLong { bytes: 6, limit: 5 };
    assert_eq!(pdf_text(b"%PDF-1", 5, 100), Err(long));
    let body = pdf("x");
    for end in [8, 40, body.len() / 2, body.len() - 30] {
        let _ = pdf_text(&body[..end], 1 << 20, 1 << 20);
    }
    let broken = pdf_text(b"%PDF-1.4\nnothing else", 1 << 20, 1 << 20);
    assert!(
        matches!(broken, Err(PdfError::Unreadable(_) | PdfError::Panicked)),
        "{broken:?}"
    );
}
