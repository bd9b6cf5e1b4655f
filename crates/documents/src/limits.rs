//! The most that is read of a document, and why one can't be read.

/// The most that is read of one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentLimits {
    /// Bytes of HTML; the rest of the document is left out.
    pub html_bytes: usize,
    /// Bytes of one part of a DOCX once it is unpacked; of a longer one the beginning is read.
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

/// Why a document can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// It is not what its type says, or broken.
    #[error("broken: {0}")]
    Broken(String),
    /// It needs a password.
    #[error("encrypted")]
    Encrypted,
    /// This program was built without a reader of its kind.
    #[error("built without a reader of it")]
    NotBuiltIn,
}
