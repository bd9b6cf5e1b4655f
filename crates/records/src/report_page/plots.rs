//! The plots of a report, each with its data table.

use std::ops::Range;

use crawl_weburl::safe_line;
use maud::{Markup, html};

use crate::histograms::{GapHistograms, Histogram};
use crate::number_format::{counted, grouped, size};
use crate::plot_data::{PlotData, RequestsOverTime, ResponseClass};
use crate::report::CrawlReport;
use crate::report_text::kept;
use crate::row_token_wording::outcome_words;

use super::svg_plots::{
    AXES_HEIGHT, AxisMark, BarStacking, PlotFigure, bars, curve, rows_height, short, strips,
    strips_height,
};
use super::time_format::{marks, moment, span};

/// Maximum number of bars in a plot. One more bar sums up the rest.
const MAX_BARS: usize = 10;
/// Maximum number of depths in a plot. One more bar sums up the rest.
const MAX_DEPTHS: usize = 15;
/// Maximum number of hosts whose requests are drawn over time.
const MAX_STRIPS: usize = 12;

/// Returns the plots of a report. Leaves out plots that would have only one bar or one point in
/// time.
pub(super) fn plots(report: &CrawlReport, gaps: &GapHistograms, figures: &PlotData) -> Vec<Markup> {
    let of_time = figures.time.as_ref();
    let times = &figures.response_times;
    let plots = [
        of_time.and_then(progress),
        of_time.and_then(answers),
        outcomes(report),
        gap_plot(report, gaps),
        of_time.and_then(|time| hosts_by_time(report, figures, time)),
        histogram(
            ("response-times", "Response times"),
            "milliseconds from request to end of response",
            times,
            ["request", "requests"],
            &span,
        ),
        histogram(
            ("sizes", "Body sizes"),
            "bytes of the body, as received",
            &figures.sizes,
            ["page", "pages"],
            &size,
        ),
        types(report),
        depths(report),
    ];
    plots.into_iter().flatten().collect()
}

/// Returns the range from the first to the last bin that isn't empty. `None` if fewer than two bins
/// have values, because a plot would have a single bar.
fn plotted(counts: &[u64]) -> Option<Range<usize>> {
    let mut filled = (0..counts.len()).filter(|bin| counts[*bin] > 0);
    let first = filled.next()?;
    Some(first..filled.next_back()? + 1)
}

/// Renders a data table with a last line of totals. `head` has the names of the columns.
fn summed(head: &[&str], rows: &[(String, Vec<u64>)]) -> Markup {
    let columns = head.len() - 1;
    let sum = |column: usize| rows.iter().map(|(_, values)| values[column]).sum();
    html! {
        thead { tr { @for name in head { th scope="col" { (name) } } } }
        tbody {
            @for (name, values) in rows {
                tr { th scope="row" { (safe_line(name)) } @for value in values { td.n { (grouped(*value)) } } }
            }
        }
        tfoot { tr { th scope="row" { "all" } @for column in 0..columns { td.n { (grouped(sum(column))) } } } }
    }
}

fn progress(time: &RequestsOverTime) -> Option<Markup> {
    plotted(&time.pages)?;
    let mut sum = 0;
    let sums: Vec<u64> = time
        .pages
        .iter()
        .map(|pages| {
            sum += pages;
            sum
        })
        .collect();
    let axis = time.axis;
    let half = sums
        .iter()
        .position(|reached| *reached * 2 >= sum)
        .unwrap_or(0);
    let words = format!(
        "{} in {}; half of them by {} UTC.",
        counted(sum, "page", "pages"),
        span(axis.width_ms.saturating_mul(axis.bins as u64)),
        moment(axis.start_of(half + 1)),
    );
    let rows = time.pages.iter().enumerate();
    let rows: Vec<_> = rows
        .filter(|(_, pages)| **pages > 0)
        .map(|(bin, pages)| (axis_label(time, bin), vec![*pages]))
        .collect();
    let figure = PlotFigure {
        id: "progress",
        title: "Progress",
        words: &words,
        height: AXES_HEIGHT,
        drawing: curve(&sums, &marks(axis), "total pages, by time (UTC)"),
        legend: &[],
        table: summed(&["from (UTC)", "pages"], &rows),
    };
    Some(figure.draw())
}

fn axis_label(time: &RequestsOverTime, bin: usize) -> String {
    let at = time.axis.start_of(bin);
    match time.axis.width_ms {
        ..60_000 => format!("{}:{:02}.{:03}", moment(at), at / 1000 % 60, at % 1000),
        _ => moment(at),
    }
}

fn answers(time: &RequestsOverTime) -> Option<Markup> {
    let bins: Vec<Vec<u64>> = time
        .answers
        .iter()
        .map(|answers| answers.to_vec())
        .collect();
    let sums: Vec<u64> = bins.iter().map(|bin| bin.iter().sum()).collect();
    plotted(&sums)?;
    let sum = |answer: ResponseClass| -> u64 { bins.iter().map(|bin| bin[answer as usize]).sum() };
    let all: u64 = bins.iter().flatten().sum();
    let parts = ResponseClass::ALL.map(|answer| (answer, sum(answer)));
    let parts = parts.iter().filter(|(_, requests)| *requests > 0);
    let parts: Vec<_> = parts
        .map(|(answer, requests)| format!("{} {}", grouped(*requests), answer.name()))
        .collect();
    let words = format!(
        "{}, in spans of {}: {}.",
        counted(all, "request", "requests"),
        span(time.axis.width_ms),
        parts.join("; "),
    );
    // Omit columns of response kinds that never occurred, and rows of time bins without a request.
    let has_answers = ResponseClass::ALL.map(|answer| sum(answer) > 0);
    let shown = |answer: &ResponseClass| has_answers[*answer as usize];
    let rows = bins.iter().enumerate().filter(|(at, _)| sums[*at] > 0);
    let rows: Vec<_> = rows
        .map(|(at, bin)| {
            let answers = ResponseClass::ALL.into_iter().filter(shown);
            let counts = answers.map(|answer| bin[answer as usize]).collect();
            (axis_label(time, at), counts)
        })
        .collect();
    let names = ResponseClass::ALL
        .into_iter()
        .filter(shown)
        .map(ResponseClass::name);
    let head: Vec<&str> = std::iter::once("from (UTC)").chain(names).collect();
    let legend = ResponseClass::ALL.map(|answer| match shown(&answer) {
        true => answer.name(),
        false => "",
    });
    let figure = PlotFigure {
        id: "answers",
        title: "Requests and answers",
        words: &words,
        height: AXES_HEIGHT,
        drawing: BarStacking::Stacked.draw(&bins, &marks(time.axis), "requests, by time (UTC)"),
        legend: &legend,
        table: summed(&head, &rows),
    };
    Some(figure.draw())
}

/// Returns the largest rows in descending order, and the sum of the rest.
fn most_first(rows: impl Iterator<Item = (String, u64)>) -> Vec<(String, u64)> {
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    if rows.len() > MAX_BARS + 1 {
        let rest = rows.split_off(MAX_BARS);
        let sum = rest.iter().map(|(_, count)| count).sum();
        rows.push((format!("{} others", grouped(rest.len() as u64)), sum));
    }
    rows
}

fn bar_figure(id: &str, title: &str, what: &str, rows: &[(String, u64)]) -> Option<Markup> {
    let [(first, most), _, ..] = rows else {
        return None;
    };
    let all: u64 = rows.iter().map(|(_, count)| count).sum();
    let words = format!(
        "{}; most of them, {}: {}.",
        counted(all, "page", "pages"),
        grouped(*most),
        safe_line(first)
    );
    let table: Vec<_> = rows
        .iter()
        .map(|(name, count)| (name.clone(), vec![*count]))
        .collect();
    let figure = PlotFigure {
        id,
        title,
        words: &words,
        height: rows_height(rows.len()),
        drawing: bars(rows, grouped),
        legend: &[],
        table: summed(&[what, "pages"], &table),
    };
    Some(figure.draw())
}

fn outcomes(report: &CrawlReport) -> Option<Markup> {
    let rows = report.pages.by_outcome.iter();
    let rows = most_first(rows.map(|(name, count)| (outcome_words(name), *count)));
    bar_figure("outcomes", "Outcomes", "outcome", &rows)
}

fn types(report: &CrawlReport) -> Option<Markup> {
    let typed: u64 = report.pages.by_type.values().sum();
    let untyped = report.pages.total.saturating_sub(typed);
    let rows = report
        .pages
        .by_type
        .iter()
        .map(|(name, count)| (name.clone(), *count));
    let untyped = (untyped > 0).then(|| ("not stated".to_owned(), untyped));
    bar_figure(
        "types",
        "Content types",
        "type",
        &most_first(rows.chain(untyped)),
    )
}

fn depths(report: &CrawlReport) -> Option<Markup> {
    let depths = &report.pages.by_depth;
    let (deepest, _) = depths.last_key_value().filter(|_| depths.len() > 1)?;
    let shown =
        usize::try_from(*deepest).map_or(MAX_DEPTHS, |deepest| (deepest + 1).min(MAX_DEPTHS + 1));
    let mut bins = vec![vec![0]; shown];
    for (depth, pages) in depths {
        let bin = usize::try_from(*depth).unwrap_or(usize::MAX).min(shown - 1);
        bins[bin][0] += pages;
    }
    let label = |bin: usize| match bin {
        MAX_DEPTHS => format!("{bin}+"),
        bin => bin.to_string(),
    };
    let marks: Vec<AxisMark> = (0..shown)
        .map(|bin| (bin as f64 + 0.5, label(bin)))
        .collect();
    let all: u64 = depths.values().sum();
    let words = format!(
        "{} by the number of links followed from a seed, at most {}.",
        counted(all, "page", "pages"),
        grouped(u64::from(*deepest)),
    );
    let rows: Vec<_> = bins
        .iter()
        .enumerate()
        .map(|(bin, pages)| (label(bin), pages.clone()))
        .collect();
    let figure = PlotFigure {
        id: "depth",
        title: "Depth",
        words: &words,
        height: AXES_HEIGHT,
        drawing: BarStacking::Stacked.draw(&bins, &marks, "links followed from a seed"),
        legend: &[],
        table: summed(&["depth", "pages"], &rows),
    };
    Some(figure.draw())
}

/// Returns axis marks at the limits between the bins in `range`. `show` formats their labels.
fn limits(
    histogram: &Histogram,
    range: &Range<usize>,
    show: impl Fn(u64) -> String,
) -> Vec<AxisMark> {
    let starts = histogram.bins().map(|(start, _, _)| start).enumerate();
    let inner = starts.take(range.end).skip(range.start + 1);
    inner
        .map(|(at, start)| ((at - range.start) as f64, show(start)))
        .collect()
}

/// Describes a bin: `below 1 kB`, `1 kB to 3 kB`, `10 MB or more`.
fn bin_words(start: u64, end: Option<u64>, show: &dyn Fn(u64) -> String) -> String {
    match (start, end) {
        (0, Some(1)) => "0".to_owned(),
        (0 | 1, Some(end)) => format!("below {}", show(end)),
        (start, Some(end)) => format!("{} to {}", show(start), show(end)),
        (start, None) => format!("{} or more", show(start)),
    }
}

fn histogram(
    (id, title): (&str, &str),
    axis: &str,
    histogram: &Histogram,
    [one, more]: [&str; 2],
    show: &dyn Fn(u64) -> String,
) -> Option<Markup> {
    let counts: Vec<u64> = histogram.bins().map(|(_, _, count)| count).collect();
    let range = plotted(&counts)?;
    let shown = || histogram.bins().take(range.end).skip(range.start);
    let (start, end, largest) = shown().max_by_key(|(_, _, count)| *count)?;
    let words = format!(
        "{}; most of them, {}: {}.",
        counted(histogram.total(), one, more),
        grouped(largest),
        bin_words(start, end, show)
    );
    let bins: Vec<Vec<u64>> = shown().map(|(_, _, count)| vec![count]).collect();
    let rows: Vec<_> = shown()
        .map(|(start, end, count)| (bin_words(start, end, show), vec![count]))
        .collect();
    let figure = PlotFigure {
        id,
        title,
        words: &words,
        height: AXES_HEIGHT,
        drawing: BarStacking::Stacked.draw(&bins, &limits(histogram, &range, short), axis),
        legend: &[],
        table: summed(&["from, to", more], &rows),
    };
    Some(figure.draw())
}

fn gap_plot(report: &CrawlReport, gaps: &GapHistograms) -> Option<Markup> {
    let (asked, seen) = (&gaps.asked, &gaps.seen);
    let pairs = asked.bins().zip(seen.bins());
    let counts: Vec<u64> = pairs
        .clone()
        .map(|((_, _, asked), (_, _, seen))| asked + seen)
        .collect();
    let range = plotted(&counts)?;
    let shown = || pairs.clone().take(range.end).skip(range.start);
    let bins: Vec<Vec<u64>> = shown()
        .map(|((_, _, asked), (_, _, seen))| vec![asked, seen])
        .collect();
    let rows: Vec<_> = shown()
        .map(|((start, end, asked), (_, _, seen))| {
            (bin_words(start, end, &span), vec![asked, seen])
        })
        .collect();
    let words = format!(
        "{} between two requests to a host: {}.",
        counted(asked.total(), "gap", "gaps"),
        kept(report.requests.short_gaps),
    );
    let figure = PlotFigure {
        id: "gaps",
        title: "Required and actual gaps",
        words: &words,
        height: AXES_HEIGHT,
        drawing: BarStacking::Beside.draw(
            &bins,
            &limits(asked, &range, seconds),
            "seconds from the end of a request to the next",
        ),
        legend: &["required", "actual"],
        table: summed(&["from, to", "required", "actual"], &rows),
    };
    Some(figure.draw())
}

/// Formats milliseconds as seconds: `0.2`, `10`.
fn seconds(ms: u64) -> String {
    match ms % 1000 / 100 {
        0 => (ms / 1000).to_string(),
        tenths => format!("{}.{tenths}", ms / 1000),
    }
}

fn hosts_by_time(
    report: &CrawlReport,
    figures: &PlotData,
    time: &RequestsOverTime,
) -> Option<Markup> {
    let (asked, _) = report.hosts_asked();
    let rows = asked
        .iter()
        .zip(&figures.hosts)
        .filter(|(host, _)| host.requests > 0)
        .take(MAX_STRIPS);
    let rows: Vec<_> = rows.collect();
    if rows.len() < 2 || time.axis.bins < 2 {
        return None;
    }
    let strips_of = rows.iter().map(|(host, of)| {
        (
            host.host.as_str(),
            grouped(host.requests),
            of.requests.as_slice(),
        )
    });
    let rest = asked.iter().filter(|host| host.requests > 0).count() - rows.len();
    let more = match rest {
        0 => String::new(),
        rest => format!(
            " {} fewer requests are not shown.",
            counted(rest as u64, "host with", "hosts with")
        ),
    };
    let words = format!(
        "When requests were sent to {}, in spans of {}: the stronger the colour, the more requests.{more}",
        counted(rows.len() as u64, "host", "hosts"),
        span(time.axis.width_ms),
    );
    let head: Vec<&str> = vec!["host", "requests", "first tenth", "last tenth"];
    let table: Vec<_> = rows
        .iter()
        .map(|(host, of)| {
            let tenth = of.requests.len().div_ceil(10);
            let first = of.requests.iter().take(tenth).sum();
            let last = of.requests.iter().rev().take(tenth).sum();
            (host.host.clone(), vec![host.requests, first, last])
        })
        .collect();
    let figure = PlotFigure {
        id: "hosts-by-time",
        title: "Hosts by time",
        words: &words,
        height: strips_height(rows.len()),
        drawing: strips(strips_of, &marks(time.axis), "time (UTC)"),
        legend: &[],
        table: summed(&head, &table),
    };
    Some(figure.draw())
}
