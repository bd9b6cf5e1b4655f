//! The text of a PDF.

use std::panic::{AssertUnwindSafe, catch_unwind};

use thiserror::Error;

/// The text that was read of a PDF.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PdfText {
    /// The text of all pages, lines as they were found.
    pub text: String,
    /// True if it was cut.
    pub cut: bool,
}

/// The reason why a PDF has no text for us.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PdfError {
    /// It is longer than the caller allows.
    #[error("a pdf of {bytes} bytes, where {limit} are allowed")]
    TooLong {
        /// Its size.
        bytes: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// It does not begin as a PDF does (ISO 32000-1 section 7.5.2, with the first 1,024 bytes
    /// looked at as readers do).
    #[error("no pdf: it does not begin with `%PDF-`")]
    NotPdf,
    /// The reader made nothing of it.
    #[error("unreadable pdf: {0}")]
    Unreadable(String),
    /// The reader panicked.
    #[error("the pdf reader panicked")]
    Panicked,
}

/// The text of the PDF in `body`, at most `text_bytes` of it; a body of more than `body_bytes`
/// is refused.
///
/// The reader beneath bounds neither its time nor its memory: a small file may unpack to a large
/// one, and describe itself in circles. Panics are caught, but whoever reads PDFs of strangers
/// must do it in a child process with limits of its own.
///
/// # Errors
/// [`PdfError`] says what was wrong.
pub fn pdf_text(body: &[u8], body_bytes: usize, text_bytes: usize) -> Result<PdfText, PdfError> {
    if body.len() > body_bytes {
        return Err(PdfError::TooLong {
            bytes: body.len(),
            limit: body_bytes,
        });
    }
    let head = &body[..body.len().min(1024)];
    if !head.windows(5).any(|window| window == b"%PDF-") {
        return Err(PdfError::NotPdf);
    }
    let read = catch_unwind(AssertUnwindSafe(|| {
        pdf_extract::extract_text_from_mem(body)
    }));
    match read {
        Ok(Ok(mut text)) => {
            let end = text.floor_char_boundary(text_bytes);
            let cut = end < text.len();
            text.truncate(end);
            Ok(PdfText { text, cut })
        }
        Ok(Err(error)) => Err(PdfError::Unreadable(error.to_string())),
        Err(_) => Err(PdfError::Panicked),
    }
}
