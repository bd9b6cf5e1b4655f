//! The META element DOCUMENT-STATE, which declares how often a page changes.

use serde::{Deserialize, Serialize};

/// How often a page changes, according to its META element DOCUMENT-STATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DocumentStateMeta {
    /// `Static`: the page never changes.
    #[serde(rename = "s")]
    Static,
    /// `Dynamic`: the page changes on every visit.
    #[serde(rename = "d")]
    Dynamic,
}

impl DocumentStateMeta {
    /// Returns the first valid state in the META elements of a page.
    pub(crate) fn of<'a>(
        metas: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Option<DocumentStateMeta> {
        let mut metas = metas.into_iter();
        metas.find_map(|(name, content)| {
            let content = content.trim();
            if !name.eq_ignore_ascii_case("document-state") {
                None
            } else if content.eq_ignore_ascii_case("static") {
                Some(DocumentStateMeta::Static)
            } else if content.eq_ignore_ascii_case("dynamic") {
                Some(DocumentStateMeta::Dynamic)
            } else {
                None
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::DocumentStateMeta;

    #[test]
    fn document_states_are_read() {
        let of = |name, content| DocumentStateMeta::of([("x", "static"), (name, content)]);
        assert_eq!(
            of("Document-State", " STATIC "),
            Some(DocumentStateMeta::Static)
        );
        assert_eq!(
            of("document-state", "dynamic"),
            Some(DocumentStateMeta::Dynamic)
        );
        assert_eq!(of("document-state", "cosmic"), None);
    }
}
