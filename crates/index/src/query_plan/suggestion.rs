//! The query as it may be meant, which answers suggest.

use super::{Planner, Unit};
use crate::query::{Query, QueryTerm, TermMatch};

impl Planner<'_> {
    /// The query with what is meant, where that is not what was typed.
    pub(super) fn suggestion(&self, query: &Query, meant: &[Meant]) -> Option<String> {
        if meant.iter().all(|term| !term.is_other) {
            return None;
        }
        let terms = meant.iter().map(|term| term.text.clone());
        let sites = query.sites.iter().map(|site| format!("site:{site}"));
        let not_sites = query.not_sites.iter().map(|site| format!("-site:{site}"));
        let all: Vec<_> = terms.chain(sites).chain(not_sites).collect();
        Some(all.join(" "))
    }
}

/// A term of the query, as it may be meant.
pub(super) struct Meant {
    text: String,
    is_other: bool,
}

impl Meant {
    /// With the signs that it was typed with.
    pub(super) fn as_typed(term: &QueryTerm) -> Meant {
        let quote = if term.how == TermMatch::Phrase {
            "\""
        } else {
            ""
        };
        let star = if term.how == TermMatch::Prefix {
            "*"
        } else {
            ""
        };
        let not = if term.is_not { "-" } else { "" };
        let title = if term.in_title { "title:" } else { "" };
        Meant {
            text: format!("{not}{title}{quote}{}{quote}{star}", term.text),
            is_other: false,
        }
    }

    pub(super) fn by(term: &QueryTerm, units: &[Unit]) -> Meant {
        if units.iter().all(|unit| !unit.is_meant) {
            return Meant::as_typed(term);
        }
        let words: Vec<_> = units.iter().map(|unit| unit.written.as_str()).collect();
        let text = words.join(" ");
        Meant {
            is_other: true,
            ..Meant::as_typed(&QueryTerm {
                text,
                ..term.clone()
            })
        }
    }
}
