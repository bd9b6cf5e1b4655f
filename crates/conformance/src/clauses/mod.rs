//! The clauses, by topic.

mod http;
mod multiple_hosts;
mod non_link_references;
mod pace_restarts_and_traps;
mod page_directives;
mod robots_fetch;
mod robots_rules;

use crate::clause::{Clause, ClausePage, RequirementLevel, ScriptedReplyInput};

/// Returns all clauses, in the order of reports.
pub fn clauses() -> impl Iterator<Item = Clause> {
    [
        robots_rules::CLAUSES,
        robots_fetch::CLAUSES,
        multiple_hosts::CLAUSES,
        http::CLAUSES,
        page_directives::CLAUSES,
        non_link_references::CLAUSES,
        pace_restarts_and_traps::CLAUSES,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// Returns a clause about rules of robots.txt.
const fn rule(
    (id, title, source): (&'static str, &'static str, &'static str),
    robots: &'static str,
    never: &'static [&'static str],
    always: &'static [&'static str],
) -> Clause {
    Clause {
        id,
        title,
        source,
        robots,
        never,
        always,
        ..Clause::BASE
    }
}

/// Returns a page with status 200 and an HTML body.
const fn html(path: &'static str, body: &'static str) -> ClausePage {
    ClausePage {
        path,
        status: 200,
        headers: &[("content-type", "text/html; charset=utf-8")],
        body,
    }
}

impl Clause {
    const fn level(self, level: RequirementLevel) -> Clause {
        Clause { level, ..self }
    }

    const fn shown_by(self, shows: &'static [&'static str]) -> Clause {
        Clause { shows, ..self }
    }

    const fn hiding(self, hidden: &'static [&'static str]) -> Clause {
        Clause { hidden, ..self }
    }

    const fn with(self, pages: &'static [ClausePage]) -> Clause {
        Clause { pages, ..self }
    }

    const fn special(
        self,
        special: fn(&ScriptedReplyInput<'_>) -> Option<crawl_testweb::ScriptedReply>,
    ) -> Clause {
        Clause {
            special: Some(special),
            ..self
        }
    }

    const fn judged_by(
        self,
        judge: fn(&crate::crawl_trace::CrawlTrace) -> crate::crawl_trace::ClauseVerdict,
    ) -> Clause {
        Clause {
            judge: Some(judge),
            ..self
        }
    }
}
