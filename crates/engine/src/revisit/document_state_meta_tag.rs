//! The META element DOCUMENT-STATE, which declares how often a page changes.

use serde::{Deserialize, Serialize};

/// How often a page changes, according to its META element DOCUMENT-STATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DeclaredChangeRate {
    /// `Static`: the page never changes.
    #[serde(rename = "s")]
    Static,
    /// `Dynamic`: the page changes on every visit.
    #[serde(rename = "d")]
    Dynamic,
}

impl DeclaredChangeRate {
    /// Returns the first valid state in the META elements of a page.
    pub(crate) fn of<'a>(
        metas: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Option<DeclaredChangeRate> {
        let mut metas = metas.into_iter();
        metas.find_map(|(name, content)| {
            let content = content.trim();
            if !name.eq_ignore_ascii_case("document-state") {
                None
            } else if content.eq_ignore_ascii_case("static") {
                Some(DeclaredChangeRate::Static)
            } else if content.eq_ignore_ascii_case("dynamic") {
                Some(DeclaredChangeRate::Dynamic)
            } else {
                None
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::DeclaredChangeRate;

    #[test]
    fn document_states_are_read() {
        let of = |name, content| DeclaredChangeRate::of([("x", "static"), (name, content)]);
        assert_eq!(
            of("Document-State", " STATIC "),
            Some(DeclaredChangeRate::Static)
        );
        assert_eq!(
            of("document-state", "dynamic"),
            Some(DeclaredChangeRate::Dynamic)
        );
        assert_eq!(of("document-state", "cosmic"), None);
    }
}
