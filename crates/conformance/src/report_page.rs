//! The report as an HTML page.

use maud::{DOCTYPE, Markup, html};

use crate::crawl_trace::ClauseOutcome;
use crate::report::{ConformanceReport, evidence_lines, word};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;\
color:#1b1b1b;background:#fff}table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #ccc;\
padding:.3rem .6rem;text-align:left;vertical-align:top}pre{overflow-x:auto;background:#f4f4f4;padding:.5rem}\
.fail{color:#a40000;font-weight:bold}@media(prefers-color-scheme:dark){body{color:#eee;background:#181818}\
pre{background:#262626}.fail{color:#ff9a9a}}";

impl ConformanceReport {
    /// Formats the report as an HTML page without scripts.
    pub fn html(&self) -> String {
        let failed = || {
            let clauses = self.clauses.iter();
            clauses.filter(|judged| judged.verdict.outcome == ClauseOutcome::Fail)
        };
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width";
                    title { "Conformance of a crawler" }
                    style { (maud::PreEscaped(STYLE)) }
                }
                body {
                    h1 { "Conformance of a crawler" }
                    p { code { (self.command) } ", product token " code { (self.token) } }
                    p { (self.counts.to_string()) }
                    @if failed().next().is_some() {
                        h2 { "Failures" }
                    }
                    @for judged in failed() {
                        h3 id=(judged.id) { (judged.id) ": " (judged.title) }
                        p { (judged.level.name()) ", " (judged.source) ". " (judged.verdict.reason) }
                        pre { (evidence_lines(&judged.verdict, "")) }
                    }
                    h2 { "All clauses" }
                    (self.table())
                }
            }
        };
        page.into_string()
    }

    fn table(&self) -> Markup {
        html! {
            table {
                thead {
                    tr { th { "Clause" } th { "Title" } th { "Source" } th { "Level" } th { "Verdict" } th { "Reason" } }
                }
                tbody {
                    @for judged in &self.clauses {
                        tr {
                            td { (judged.id) }
                            td { (judged.title) }
                            td { (judged.source) }
                            td { (judged.level.name()) }
                            @if judged.verdict.outcome == ClauseOutcome::Fail {
                                td.fail { a href={ "#" (judged.id) } { "FAIL" } }
                            } @else {
                                td { (word(judged.verdict.outcome)) }
                            }
                            td { (judged.verdict.reason) }
                        }
                    }
                }
            }
        }
    }
}
