//! Size limits for documents, and reasons why a document can't be read.

/// Size limits for the conversion of one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentLimits {
    /// Maximum bytes of HTML to write; the rest of the document is dropped.
    pub html_bytes: usize,
    /// Maximum unpacked bytes to read from one part of a DOCX; the rest of the part is dropped.
    pub part_bytes: u64,
}

impl Default for DocumentLimits {
    fn default() -> Self {
        DocumentLimits {
            html_bytes: 8 << 20,
            part_bytes: 64 << 20,
        }
    }
}

/// The reason why a document can't be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentConversionError {
    /// The document is damaged, or is not of the declared type.
    #[error("broken: {0}")]
    Broken(String),
    /// The document needs a password.
    #[error("encrypted")]
    Encrypted,
    /// This program was built without a reader for documents of this kind.
    #[error("built without a reader of it")]
    NotBuiltIn,
}
