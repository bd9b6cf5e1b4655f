//! Document types in the search index: `html,markdown,pdf`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crawl_documents::{DocumentKind, DocumentLimits};
use crawl_engine::DocumentIndexingSettings;

use super::ValueParseError;
use super::text_serde::as_string;

/// The names of all types, in the order in which they are displayed.
const KINDS: [(&str, Option<DocumentKind>); 5] = [
    ("html", None),
    ("text", Some(DocumentKind::Text)),
    ("markdown", Some(DocumentKind::Markdown)),
    ("docx", Some(DocumentKind::Docx)),
    ("pdf", Some(DocumentKind::Pdf)),
];

/// The document types to index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexedDocumentTypes {
    html: bool,
    kinds: BTreeSet<DocumentKind>,
}

/// Limits for reading one document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentReadingLimits {
    pub(crate) timeout: Duration,
    /// Maximum memory of the process that reads the document, in bytes.
    pub(crate) memory: u64,
    /// Maximum size of the document after its conversion to HTML, in bytes.
    pub(crate) text: u64,
}

impl IndexedDocumentTypes {
    /// Returns the engine's rules for these types. PDF and DOCX are read by a process of this same
    /// program.
    pub(crate) fn rules(&self, bounds: &DocumentReadingLimits) -> DocumentIndexingSettings {
        DocumentIndexingSettings {
            html: self.html,
            kinds: self.kinds.clone(),
            program: std::env::current_exe().ok(),
            timeout: bounds.timeout,
            memory: bounds.memory,
            limits: DocumentLimits {
                html_bytes: usize::try_from(bounds.text).unwrap_or(usize::MAX),
                ..DocumentLimits::default()
            },
        }
    }
}

impl Default for IndexedDocumentTypes {
    fn default() -> Self {
        let usual = DocumentIndexingSettings::default();
        IndexedDocumentTypes {
            html: usual.html,
            kinds: usual.kinds,
        }
    }
}

impl FromStr for IndexedDocumentTypes {
    type Err = ValueParseError;

    fn from_str(text: &str) -> Result<IndexedDocumentTypes, ValueParseError> {
        let mut types = IndexedDocumentTypes {
            html: false,
            kinds: BTreeSet::new(),
        };
        for name in text.split(',').map(str::trim) {
            if name == "all" {
                types.html = true;
                types
                    .kinds
                    .extend(KINDS.iter().filter_map(|(_, kind)| *kind));
                continue;
            }
            match KINDS.iter().find(|(known, _)| *known == name) {
                Some((_, Some(kind))) => drop(types.kinds.insert(*kind)),
                Some((_, None)) => types.html = true,
                None => {
                    return Err(ValueParseError::new(format!(
                        "can't index `{name}`: valid types are html, text, markdown, docx, pdf and \
                         all"
                    )));
                }
            }
        }
        Ok(types)
    }
}

impl fmt::Display for IndexedDocumentTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has = |kind: &Option<DocumentKind>| match kind {
            Some(kind) => self.kinds.contains(kind),
            None => self.html,
        };
        let names = KINDS
            .iter()
            .filter(|(_, kind)| has(kind))
            .map(|(name, _)| *name);
        f.write_str(&names.collect::<Vec<_>>().join(","))
    }
}

as_string!(IndexedDocumentTypes);

#[cfg(test)]
mod tests {
    use super::IndexedDocumentTypes;

    #[test]
    fn types_are_read_and_written() {
        for (text, written) in [
            ("html", Some("html")),
            ("pdf, html", Some("html,pdf")),
            ("all", Some("html,text,markdown,docx,pdf")),
            ("pdf,pdf", Some("pdf")),
            ("odt", None),
            ("", None),
            ("html,", None),
        ] {
            let read = text
                .parse::<IndexedDocumentTypes>()
                .ok()
                .map(|types| types.to_string());
            assert_eq!(read.as_deref(), written, "{text}");
        }
        assert_eq!(
            IndexedDocumentTypes::default().to_string(),
            "html,markdown,docx,pdf"
        );
    }
}
