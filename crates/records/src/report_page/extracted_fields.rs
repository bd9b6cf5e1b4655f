//! The part of the report about the fields that rules found.

use crawl_weburl::safe_line;
use maud::{Markup, html};

use crate::extraction_report::{ExtractionReport, FieldCounts, RuleCounts};
use crate::html::{Cell, Table, link};
use crate::number_format::counted;

const COLUMNS: [&str; 6] = [
    "field",
    "filled",
    "missing",
    "failed",
    "such as",
    "without it",
];

/// Renders one table per rule: its fields, and warnings about the rule.
pub(super) fn fields(extraction: &ExtractionReport) -> Markup {
    html! {
        h2 { "Fields" }
        @for rule in &extraction.rules { (of_rule(rule)) }
    }
}

fn of_rule(rule: &RuleCounts) -> Markup {
    let table = Table {
        name: &rule.rule,
        columns: &COLUMNS,
        rows: rule.fields.iter().map(row).collect(),
        more: 0,
    };
    html! {
        h3 { (safe_line(&rule.rule)) }
        p {
            "Read " (counted(rule.pages, "page", "pages")) "."
            @for (limit, pages) in &rule.cut {
                " " (counted(*pages, "page was", "pages were")) " read only to the limit of " (safe_line(limit)) "."
            }
        }
        @for warning in rule.warnings() { p { strong { "Warning: " } (safe_line(&warning)) } }
        (table.draw())
    }
}

fn row(field: &FieldCounts) -> Vec<Cell> {
    let failure = field.failures.first();
    let lacking = match (failure, field.missing_on.first()) {
        (Some(failure), _) => {
            Cell::Markup(html! { (safe_line(&failure.text)) ": " (link(&failure.url)) })
        }
        (None, Some(url)) => Cell::link(url),
        (None, None) => Cell::Empty,
    };
    let value = field
        .values
        .first()
        .map_or("", |example| example.text.as_str());
    vec![
        Cell::text(&field.field),
        Cell::count(field.filled),
        Cell::count(field.missing),
        Cell::count(field.failed),
        Cell::text(value),
        lacking,
    ]
}
