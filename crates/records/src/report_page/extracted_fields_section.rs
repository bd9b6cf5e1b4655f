//! Renders the part of the report about the fields that rules found.

use crawl_weburl::safe_line;
use maud::{Markup, html};

use crate::extraction_report::{ExtractRuleCounts, ExtractedFieldCounts, ExtractionReport};
use crate::number_format::counted;
use crate::self_contained_report_page::{HtmlTable, TableCell, link};

const COLUMNS: [&str; 7] = [
    "field",
    "filled",
    "in part",
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

fn of_rule(rule: &ExtractRuleCounts) -> Markup {
    let table = HtmlTable {
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

fn row(field: &ExtractedFieldCounts) -> Vec<TableCell> {
    let failure = field.failures.first();
    let lacking = match (failure, field.missing_on.first()) {
        (Some(failure), _) => {
            TableCell::Markup(html! { (safe_line(&failure.text)) ": " (link(&failure.url)) })
        }
        (None, Some(url)) => TableCell::link(url),
        (None, None) => TableCell::Empty,
    };
    let value = field
        .values
        .first()
        .map_or("", |example| example.text.as_str());
    vec![
        TableCell::text(&field.field),
        TableCell::count(field.filled),
        TableCell::count(field.partial),
        TableCell::count(field.missing),
        TableCell::count(field.failed),
        TableCell::text(value),
        lacking,
    ]
}
