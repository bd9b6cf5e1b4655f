//! Suggests a corrected query.

use super::{PlannedWord, QueryPlanner};
use crate::query::{Query, QueryTerm, QueryTermKind};

impl QueryPlanner<'_> {
    /// Returns the corrected query; `None` if nothing was corrected.
    pub(super) fn suggestion(
        &self,
        query: &Query,
        suggested: &[MaybeCorrectedTerm],
    ) -> Option<String> {
        if suggested.iter().all(|term| !term.is_other) {
            return None;
        }
        let terms = suggested.iter().map(|term| term.text.clone());
        let sites = query.sites.iter().map(|site| format!("site:{site}"));
        let not_sites = query.not_sites.iter().map(|site| format!("-site:{site}"));
        let all: Vec<_> = terms.chain(sites).chain(not_sites).collect();
        Some(all.join(" "))
    }
}

/// A term of the query, possibly corrected.
pub(super) struct MaybeCorrectedTerm {
    text: String,
    is_other: bool,
}

impl MaybeCorrectedTerm {
    /// Returns the uncorrected term with its operators.
    pub(super) fn as_typed(term: &QueryTerm) -> MaybeCorrectedTerm {
        let quote = if term.how == QueryTermKind::Phrase {
            "\""
        } else {
            ""
        };
        let star = if term.how == QueryTermKind::Prefix {
            "*"
        } else {
            ""
        };
        let not = if term.is_not { "-" } else { "" };
        let title = if term.in_title { "title:" } else { "" };
        MaybeCorrectedTerm {
            text: format!("{not}{title}{quote}{}{quote}{star}", term.text),
            is_other: false,
        }
    }

    pub(super) fn by(term: &QueryTerm, words: &[PlannedWord]) -> MaybeCorrectedTerm {
        if words.iter().all(|word| !word.is_correction) {
            return MaybeCorrectedTerm::as_typed(term);
        }
        let texts: Vec<_> = words.iter().map(|word| word.written.as_str()).collect();
        let text = texts.join(" ");
        MaybeCorrectedTerm {
            is_other: true,
            ..MaybeCorrectedTerm::as_typed(&QueryTerm {
                text,
                ..term.clone()
            })
        }
    }
}
