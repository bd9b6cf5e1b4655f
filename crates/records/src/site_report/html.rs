//! Renders the site report as a page. First come the checks with what to fix, then plots of the
//! site's structure.

use maud::{Markup, html};

use super::SiteReport;
use super::page_statistics::{SIZE_BINS, TIME_BINS};
use crate::letter_grade::percent;
use crate::number_format::{counted, grouped, size};
use crate::report_page::svg_plots::{PlotFigure, bars, rows_height};
use crate::reported_crawl::ReportedCrawlSummary;
use crate::self_contained_report_page::{checks, fold, page};
use crate::site_faults::SiteFaultReport;
use crate::site_problem_checks::{of_links, of_pages};

impl SiteReport {
    /// Renders a self-contained page. `faults` must be the faults of the same crawl.
    #[must_use]
    pub fn html(&self, faults: &SiteFaultReport) -> String {
        let body = html! {
            p.sums {
                (ReportedCrawlSummary::visited_words(self.crawl.visited, self.pages))
                @if self.unread > 0 { "; " (grouped(self.unread)) " of them can't be read from the archive, so their texts and links are unknown" }
            }
            (self.crawl.note())
            h2 { "What to fix" }
            (self.to_fix(faults))
            (self.build())
        };
        let host = self.crawl.host();
        let description = format!("What to fix on {host}: links, texts, images, speed and reach.");
        page(&format!("Report of the site {host}"), &description, &body)
    }

    /// Renders what the owner of the site should fix.
    pub(crate) fn to_fix(&self, faults: &SiteFaultReport) -> Markup {
        let mut all = of_links(faults, Some(self));
        all.extend(of_pages(self));
        let unchecked = faults.unchecked.len() as u64;
        let title = counted(unchecked, "link was not checked", "links were not checked");
        html! {
            (checks(&all))
            @if unchecked > 0 { (fold(&title, &faults.unchecked_table())) }
        }
    }

    /// Renders plots of the pages' distances, times and sizes.
    fn build(&self) -> Markup {
        let clicks = self.clicks.iter().enumerate();
        let clicks = clicks.map(|(at, pages)| (counted(at as u64, "click", "clicks"), *pages));
        let times = named(&TIME_BINS, &self.times, |ms| format!("{} ms", grouped(ms)));
        let sizes = named(&SIZE_BINS, &self.sizes, size);
        let plots = [
            plot("clicks", "Clicks from the start", clicks.collect()),
            plot("times", "Response time", times),
            plot("sizes", "Page size", sizes),
        ];
        html! {
            @if plots.iter().any(Option::is_some) {
                h2 { "How the site is built" }
                div.plots { @for plot in plots.iter().flatten() { (plot) } }
            }
        }
    }
}

/// Draws one bar for each bin that has pages. `None` if all pages are in the same bin, because then
/// no plot is needed.
fn plot(id: &str, title: &str, rows: Vec<(String, u64)>) -> Option<Markup> {
    let rows: Vec<_> = rows.into_iter().filter(|(_, pages)| *pages > 0).collect();
    if rows.len() < 2 {
        return None;
    }
    let all: u64 = rows.iter().map(|(_, pages)| pages).sum();
    let (most, pages) = rows.iter().rev().max_by_key(|(_, pages)| *pages)?;
    let words = format!(
        "Most of the {}: {} ({}).",
        counted(all, "page", "pages"),
        most,
        percent(*pages, all)
    );
    let figure = PlotFigure {
        id,
        title,
        words: &words,
        height: rows_height(rows.len()),
        drawing: bars(&rows, grouped),
        legend: &[],
        table: html! {
            thead { tr { th scope="col" { (title) } th scope="col" { "pages" } } }
            tbody { @for (name, pages) in &rows { tr { td { (name) } td.n { (grouped(*pages)) } } } }
        },
    };
    Some(figure.draw())
}

/// Returns the count of each bin with a name that shows the bin's limits: `100 ms to 200 ms`.
fn named(ends: &[u64], bins: &[u64], show: impl Fn(u64) -> String) -> Vec<(String, u64)> {
    let starts = std::iter::once(None).chain(ends.iter().copied().map(Some));
    let ends = ends.iter().copied().map(Some).chain([None]);
    let names = starts.zip(ends).map(|limits| match limits {
        (None, Some(end)) => format!("below {}", show(end)),
        (Some(start), Some(end)) => format!("{} to {}", show(start), show(end)),
        (start, None) => format!("{} or more", show(start.unwrap_or(0))),
    });
    names.zip(bins.iter().copied()).collect()
}
