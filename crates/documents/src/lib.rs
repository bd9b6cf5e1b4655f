//! Converts documents that are not HTML to HTML: plain text, Markdown, DOCX and PDF.
//!
//! Each document becomes a small page with a title, headings, paragraphs, dates and an author. The
//! search index reads these pages in the same way as fetched HTML pages. The crate does no I/O,
//! runs no scripts and follows no links.
//!
//! [`DocumentKind::of`] detects the kind of a document; [`DocumentKind::to_html`] converts it.
//! Converting text or Markdown takes linear time and can't fail, but Markdown may take a hundred
//! times its size in memory. PDF and DOCX are compressed and complex, so their parsers may panic or
//! take unbounded time and memory. Read untrusted ones in a separate process
//! ([`DocumentKind::needs_process`]).
//!
//! ```
//! use crawl_documents::{DocumentKind, DocumentLimits};
//!
//! let kind = DocumentKind::of(Some("text/markdown"), "/tea", b"# Tea").unwrap();
//! let html = kind.to_html(b"# Tea\n\nPour *slowly*.", &DocumentLimits::default(), None).unwrap();
//! assert!(html.contains("<h1>Tea</h1>\n<p>Pour <em>slowly</em>.</p>"));
//! ```

mod document_kind;
#[cfg(feature = "docx")]
mod docx;
#[cfg(all(any(test, fuzzing), feature = "docx", feature = "pdf"))]
pub mod fuzz_checks;
mod html_writer;
mod limits;
#[cfg(feature = "markdown")]
mod markdown_to_html;
#[cfg(feature = "pdf")]
mod pdf;
mod plain_text_to_html;

pub use document_kind::DocumentKind;
pub use limits::{DocumentConversionError, DocumentLimits};
