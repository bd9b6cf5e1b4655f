//! Renders the sample or random walk of a crawl: how pages were chosen, and the estimates from
//! them.

use crawl_sample::IntervalEstimate;
use crawl_weburl::safe_line;
use maud::{Markup, html};

use crate::number_format::{counted, grouped};
use crate::random_walk_report::RandomWalkReport;
use crate::report::SampleSettings;
use crate::sample_report::{SampleReport, length_words, share_words};
use crate::self_contained_report_page::link;

use super::svg_plots::{PlotFigure, bars, rows_height, shares};

/// Maximum number of statuses or types in a plot. The plot shows those with the largest shares, and
/// the table shows all.
const MAX_SHARES: usize = 6;

/// Renders a drawn sample.
pub(super) fn drawn(sample: &SampleReport, settings: Option<&SampleSettings>) -> Markup {
    html! {
        h2 { "Sample" }
        p {
            (grouped(sample.drawn)) " drawn from " (counted(sample.frame, "URL", "URLs"))
            " found, in " (counted(sample.strata, "stratum", "strata"))
            @if let Some(settings) = settings {
                " by " (safe_line(&settings.by)) ", at most " (grouped(settings.pages)) " from each, with the seed "
                code { (safe_line(&settings.seed)) }
            }
            ". "
            @if sample.certain > 0 {
                (counted(sample.certain, "page was", "pages were")) " read to find them, and "
                (if sample.certain == 1 { "represents only itself" } else { "represent only themselves" }) ". "
            }
            @if sample.without_row > 0 {
                (counted(sample.without_row, "drawn URL has", "drawn URLs have")) " no row."
            }
        }
        (estimates(sample))
    }
}

fn estimates(sample: &SampleReport) -> Markup {
    let Some(estimates) = &sample.estimates else {
        return html! { p { "No estimates: drawn pages are still waiting, or none has a row." } };
    };
    let greatest = |what: &str, found: &std::collections::BTreeMap<String, IntervalEstimate>| {
        let mut rows: Vec<_> = found
            .iter()
            .map(|(name, share)| (format!("{what} {name}"), *share))
            .collect();
        rows.sort_by(|one, other| other.1.value.total_cmp(&one.1.value));
        rows
    };
    let answered = estimates.answered.iter();
    let answered = answered.map(|share| ("return a page".to_owned(), *share));
    let statuses = greatest("status", &estimates.statuses);
    let types = greatest("type", &estimates.types);
    let plotted: Vec<_> = answered
        .clone()
        .chain(statuses.iter().take(MAX_SHARES).cloned())
        .chain(types.iter().take(MAX_SHARES).cloned())
        .collect();
    let all = answered.chain(statuses).chain(types);
    let lengths = [
        ("bytes per page", estimates.mean_bytes),
        ("bytes in total", estimates.total_bytes),
    ];
    let lengths: Vec<_> = lengths
        .iter()
        .filter_map(|(name, length)| Some((*name, length_words(length.as_ref()?))))
        .collect();
    let words = match lengths.as_slice() {
        [(_, mean), (_, total)] => format!(
            "Shares of all URLs; types as shares of those that return a page. Bytes per page: {mean}; in total: {total}."
        ),
        _ => "Shares of all URLs. None returns a page.".to_owned(),
    };
    let table = html! {
        thead { tr { th scope="col" { "share" } th scope="col" { "estimate and 95 % interval" } } }
        tbody {
            @for (name, share) in all {
                tr { th scope="row" { (safe_line(&name)) } td.n { (share_words(&share)) } }
            }
            @for (name, length) in &lengths { tr { th scope="row" { (name) } td.n { (length) } } }
        }
    };
    PlotFigure {
        id: "sample",
        title: "Estimates",
        words: &words,
        height: rows_height(plotted.len()),
        drawing: shares(&plotted, share_words),
        legend: &["estimate", "95 % interval"],
        table,
    }
    .draw()
}

/// Renders a random walk.
pub(super) fn walked(walk: &RandomWalkReport) -> Markup {
    let rows = walk.most_visited.iter();
    let rows: Vec<_> = rows.map(|page| (page.url.clone(), page.steps)).collect();
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let restarts = walk.restarts.iter();
    let restarts: Vec<_> = restarts
        .map(|(why, steps)| format!("{why}: {}", grouped(*steps)))
        .collect();
    let table = html! {
        thead { tr { th scope="col" { "page" } th scope="col" { "steps" } } }
        tbody {
            @for page in &walk.most_visited {
                tr { th scope="row" { (link(&page.url)) } td.n { (grouped(page.steps)) } }
            }
        }
    };
    let words = format!(
        "{} of {} returned a page. The bars show the most visited URLs.",
        percent(walk.answered),
        counted(walk.steps, "step", "steps"),
    );
    html! {
        h2 { "Random walk" }
        p {
            (counted(walk.walkers, "walker", "walkers")) " took " (counted(walk.steps, "step", "steps"))
            " to " (counted(walk.pages, "URL", "URLs")) ". "
            @if !restarts.is_empty() { "Restarts at a seed: " (safe_line(&restarts.join(", "))) ". " }
            "The probability of reaching a page is unknown, so there are no intervals."
        }
        p {
            "Of the steps: "
            @for (at, (status, share)) in walk.statuses.iter().enumerate() {
                @if at > 0 { ", " } "status " (safe_line(status)) " " (percent(*share))
            }
            "."
            @if !walk.types.is_empty() {
                " Of those that return a page: "
                @for (at, (kind, share)) in walk.types.iter().enumerate() {
                    @if at > 0 { ", " } (safe_line(kind)) " " (percent(*share))
                }
                "."
            }
        }
        (PlotFigure {
            id: "walk",
            title: "Most visited",
            words: &words,
            height: rows_height(rows.len()),
            drawing: bars(&rows, grouped),
            legend: &[],
            table,
        }.draw())
    }
}
