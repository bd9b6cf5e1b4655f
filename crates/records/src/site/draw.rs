//! Renders the site report as a page with plots.

use maud::{Markup, html};

use super::{SIZE_BINS, SiteReport, TIME_BINS};
use crate::html::page;
use crate::numbers::{counted, grouped, size};
use crate::report_page::svg::{Figure, bars, rows_height};

/// Maximum entries per list on the page.
const MAX_LISTED: usize = 1_000;

impl SiteReport {
    /// Renders a self-contained page. All text from servers is escaped.
    #[must_use]
    pub fn html(&self) -> String {
        let of_clicks = |at: usize| counted(at as u64, "click", "clicks");
        let clicks = self.clicks.iter().enumerate();
        let clicks = clicks.map(|(at, pages)| (of_clicks(at), *pages)).collect();
        let times = named(&TIME_BINS, &self.times, |ms| format!("{} ms", grouped(ms)));
        let sizes = named(&SIZE_BINS, &self.sizes, size);
        let body = html! {
            p class="sums" {
                (counted(self.pages, "page", "pages"))
                @if self.unread > 0 { "; " (grouped(self.unread)) " of them not in the archive" }
            }
            div class="plots" {
                (plot("clicks", "Clicks from the start", &clicks))
                (plot("times", "Response time", &times))
                (plot("sizes", "Page size", &sizes))
            }
            @for (title, lines) in self.lists() {
                @if !lines.is_empty() {
                    h2 { (title) ": " (grouped(lines.len() as u64)) }
                    ul { @for line in lines.iter().take(MAX_LISTED) { li { (line) } } }
                    @if lines.len() > MAX_LISTED {
                        p { "and " (grouped((lines.len() - MAX_LISTED) as u64)) " more" }
                    }
                }
            }
        };
        page("The site", &body)
    }
}

/// Draws one bar per bin, with the number of its pages.
fn plot(id: &str, title: &str, rows: &Vec<(String, u64)>) -> Markup {
    let words: Vec<String> = rows
        .iter()
        .map(|(name, pages)| format!("{name}: {pages}"))
        .collect();
    let words = format!("Pages by {}: {}.", title.to_lowercase(), words.join(", "));
    Figure {
        id,
        title,
        words: &words,
        height: rows_height(rows.len()),
        drawing: bars(rows, grouped),
        legend: &[],
        table: html! {
            thead { tr { th { (title) } th { "pages" } } }
            tbody { @for (name, pages) in rows { tr { td { (name) } td class="n" { (grouped(*pages)) } } } }
        },
    }
    .draw()
}

/// Returns the bins with names that show their limits.
fn named(ends: &[u64], bins: &[u64], show: impl Fn(u64) -> String) -> Vec<(String, u64)> {
    let below = ends.iter().map(|end| format!("below {}", show(*end)));
    let above = ends.last().map(|end| format!("{} or more", show(*end)));
    below.chain(above).zip(bins.iter().copied()).collect()
}
