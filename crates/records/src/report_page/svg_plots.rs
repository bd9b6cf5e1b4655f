//! Draws columns, bars, curves and strips. Plots are 340 units wide, so that their text is readable
//! on a phone.

use std::fmt::Display;

use crawl_sample::IntervalEstimate;
use crawl_weburl::safe_line;
use maud::{Markup, html};

use crate::self_contained_report_page::scrolling_table;

/// The width of every plot, in view box units.
pub(super) const WIDTH: f64 = 340.0;
/// The left edge of the plot area in plots with a value axis, in view box units.
const LEFT: f64 = 38.0;
const TOP: f64 = 8.0;
/// The height of the plot area, in view box units.
const HEIGHT: f64 = 120.0;
const RIGHT: f64 = WIDTH - 6.0;
const BOTTOM: f64 = TOP + HEIGHT;

/// The total height of a plot with axes and axis labels, in view box units.
pub(super) const AXES_HEIGHT: f64 = BOTTOM + 30.0;

/// The height of a row of bars or strips with its label, in view box units.
const ROW: f64 = 27.0;

/// Maximum characters of a label in a plot; its table has the full label.
const MAX_LABEL: usize = 44;

/// A plot with its text alternative and data table.
pub(crate) struct PlotFigure<'a> {
    /// An id that is unique within the page.
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    /// A sentence that describes the plot: its caption and its text for screen readers.
    pub(crate) words: &'a str,
    pub(crate) height: f64,
    pub(crate) drawing: Markup,
    /// The meanings of the classes `c0`, `c1` .. An empty text means that the class isn't drawn.
    pub(crate) legend: &'a [&'a str],
    pub(crate) table: Markup,
}

impl PlotFigure<'_> {
    pub(crate) fn draw(&self) -> Markup {
        let (title_id, words_id) = (format!("{}-title", self.id), format!("{}-words", self.id));
        let of_table = format!("{}: data", self.title);
        html! {
            figure id=(self.id) {
                h3 { (self.title) }
                svg viewBox=(format!("0 0 {WIDTH} {}", self.height)) role="img"
                    aria-labelledby=(format!("{title_id} {words_id}")) {
                    title id=(title_id) { (self.title) }
                    desc id=(words_id) { (self.words) }
                    (self.drawing)
                }
                @if !self.legend.is_empty() {
                    ul class="legend" {
                        @for (at, name) in self.legend.iter().enumerate() {
                            @if !name.is_empty() { li { span class=(format!("c{at}")) {} (name) } }
                        }
                    }
                }
                figcaption { (self.words) }
                details {
                    summary { "Data" }
                    (scrolling_table(&of_table, &self.table))
                }
            }
        }
    }
}

/// How columns of several series are drawn in the same bin: on top of each other, or next to each
/// other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BarStacking {
    Stacked,
    Beside,
}

/// A mark on the horizontal axis: its position in bins, and its label.
pub(super) type AxisMark = (f64, String);

impl BarStacking {
    /// Draws columns. `bins` has the value of each series, for each bin.
    pub(super) fn draw(self, bins: &[Vec<u64>], marks: &[AxisMark], axis: &str) -> Markup {
        let highest = bins.iter().map(|bin| match self {
            BarStacking::Stacked => bin.iter().sum(),
            BarStacking::Beside => bin.iter().copied().max().unwrap_or(0),
        });
        let top = round_up(highest.max().unwrap_or(0));
        let step = (RIGHT - LEFT) / bins.len().max(1) as f64;
        html! {
            (axes(top, marks, step, axis))
            @for (at, bin) in bins.iter().enumerate() {
                @for (class, [x, y, width, height]) in self.rectangles(bin, LEFT + step * at as f64, step, top) {
                    rect class=(class) x=(unit(x)) y=(unit(y)) width=(unit(width)) height=(unit(height)) {}
                }
            }
        }
    }

    fn rectangles(self, bin: &[u64], left: f64, step: f64, top: u64) -> Vec<(String, [f64; 4])> {
        let mut below = 0;
        let mut rectangles = Vec::new();
        for (series, value) in bin.iter().enumerate() {
            let place = match self {
                BarStacking::Stacked => {
                    let bottom = y_of(below, top);
                    below += value;
                    let y = y_of(below, top);
                    [left + step * 0.08, y, step * 0.84, bottom - y]
                }
                BarStacking::Beside => {
                    let width = step * 0.84 / bin.len() as f64;
                    // A count of one must be visible even if another count is a million.
                    let y = y_of(*value, top).min(BOTTOM - 0.8);
                    [
                        left + step * 0.08 + width * series as f64,
                        y,
                        width * 0.92,
                        BOTTOM - y,
                    ]
                }
            };
            if *value > 0 {
                rectangles.push((format!("c{series}"), place));
            }
        }
        rectangles
    }
}

/// Draws a non-decreasing curve through the value at the end of each bin, with the area below the
/// curve filled.
pub(super) fn curve(values: &[u64], marks: &[AxisMark], axis: &str) -> Markup {
    let top = round_up(values.last().copied().unwrap_or(0));
    let step = (RIGHT - LEFT) / values.len().max(1) as f64;
    let mut line = format!("M{} {}", unit(LEFT), unit(BOTTOM));
    for (at, value) in values.iter().enumerate() {
        let x = LEFT + step * (at + 1) as f64;
        line += &format!(" L{} {}", unit(x), unit(y_of(*value, top)));
    }
    let area = format!("{line} L{} {} Z", unit(RIGHT), unit(BOTTOM));
    html! {
        (axes(top, marks, step, axis))
        path class="area" d=(area) {}
        path class="curve" d=(line) {}
    }
}

fn axes(top: u64, marks: &[AxisMark], step: f64, axis: &str) -> Markup {
    let levels: &[u64] = if top > 1 {
        &[0, top / 2, top]
    } else {
        &[0, top]
    };
    html! {
        @for level in levels {
            @let y = y_of(*level, top);
            line class="grid" x1=(unit(LEFT)) x2=(unit(RIGHT)) y1=(unit(y)) y2=(unit(y)) {}
            text class="soft end" x=(unit(LEFT - 4.0)) y=(unit(y + 3.5)) { (short(*level)) }
        }
        @for (at, label) in marks {
            @let x = LEFT + step * at;
            line class="grid" x1=(unit(x)) x2=(unit(x)) y1=(unit(BOTTOM)) y2=(unit(BOTTOM + 3.0)) {}
            text class=(anchor(x)) x=(unit(x)) y=(unit(BOTTOM + 13.0)) { (label) }
        }
        text class="soft middle" x=(unit((LEFT + RIGHT) / 2.0)) y=(unit(BOTTOM + 26.0)) { (axis) }
    }
}

/// Returns the CSS classes that align an axis label at `x`, so that it doesn't extend beyond the
/// plot.
fn anchor(x: f64) -> &'static str {
    match x {
        x if x > RIGHT - 16.0 => "soft end",
        x if x < LEFT + 4.0 => "soft",
        _ => "soft middle",
    }
}

/// Draws one bar per row, labelled with the name and the value as `show` formats it.
pub(crate) fn bars(rows: &[(String, u64)], show: impl Fn(u64) -> String) -> Markup {
    let largest = rows.iter().map(|(_, value)| *value).max().unwrap_or(0);
    html! {
        @for (at, (name, value)) in rows.iter().enumerate() {
            @let y = ROW * at as f64;
            (row_label(name, &show(*value), y))
            rect class="track" x="0" y=(unit(y + 15.0)) width=(unit(WIDTH)) height="7" rx="2" {}
            @if *value > 0 {
                rect class="c0" x="0" y=(unit(y + 15.0)) width=(unit(part(*value, largest, WIDTH).max(1.0))) height="7" rx="2" {}
            }
        }
    }
}

/// Draws one row per share (from 0 to 1): a bar for the share's interval, and a mark for the share
/// itself. If the interval is unbounded, draws only the mark.
pub(super) fn shares(
    rows: &[(String, IntervalEstimate)],
    show: impl Fn(&IntervalEstimate) -> String,
) -> Markup {
    let place = |share: f64| share.clamp(0.0, 1.0) * WIDTH;
    html! {
        @for (at, (name, share)) in rows.iter().enumerate() {
            @let y = ROW * at as f64;
            (row_label(name, &show(share), y))
            rect class="track" x="0" y=(unit(y + 15.0)) width=(unit(WIDTH)) height="7" rx="2" {}
            @if share.is_bounded() {
                rect class="c1" x=(unit(place(share.low))) y=(unit(y + 15.0))
                    width=(unit((place(share.high) - place(share.low)).max(1.0))) height="7" {}
            }
            rect class="c0" x=(unit((place(share.value) - 1.0).max(0.0))) y=(unit(y + 13.0)) width="2" height="11" {}
        }
    }
}

/// Draws one strip per row: a cell per time bin, darker for larger values. A row has a name (on the
/// left), a text (on the right), and the values of its bins.
pub(super) fn strips<'a>(
    rows: impl Iterator<Item = (&'a str, String, &'a [u64])> + Clone,
    marks: &[AxisMark],
    axis: &str,
) -> Markup {
    let largest = rows
        .clone()
        .flat_map(|(_, _, cells)| cells)
        .copied()
        .max()
        .unwrap_or(0);
    let count = rows.clone().count();
    let bins = rows
        .clone()
        .map(|(_, _, cells)| cells.len())
        .max()
        .unwrap_or(1);
    let step = WIDTH / bins.max(1) as f64;
    let bottom = ROW * count as f64;
    html! {
        @for (at, (name, shown, cells)) in rows.enumerate() {
            @let y = ROW * at as f64;
            (row_label(name, &shown, y))
            rect class="track" x="0" y=(unit(y + 15.0)) width=(unit(WIDTH)) height="8" {}
            @for (at, cell) in cells.iter().enumerate() {
                @if *cell > 0 {
                    rect class="c0" x=(unit(step * at as f64)) y=(unit(y + 15.0)) width=(unit(step)) height="8"
                        fill-opacity=(format!("{:.2}", 0.25 + part(*cell, largest, 0.75))) {}
                }
            }
        }
        @for (at, label) in marks {
            @let x = step * at;
            text class=(if x < 4.0 { "soft" } else if x > WIDTH - 16.0 { "soft end" } else { "soft middle" })
                x=(unit(x)) y=(unit(bottom + 11.0)) { (label) }
        }
        text class="soft middle" x=(unit(WIDTH / 2.0)) y=(unit(bottom + 24.0)) { (axis) }
    }
}

/// Returns the height of a plot with this many bars.
pub(crate) fn rows_height(rows: usize) -> f64 {
    ROW * rows.max(1) as f64
}

/// Returns the height of a plot with this many strips, including the labels of the time axis.
pub(super) fn strips_height(rows: usize) -> f64 {
    rows_height(rows) + 30.0
}

fn row_label(name: &str, value: &str, y: f64) -> Markup {
    html! {
        text x="0" y=(unit(y + 11.0)) { (shortened(name)) }
        text class="end" x=(unit(WIDTH)) y=(unit(y + 11.0)) { (value) }
    }
}

/// Shortens a name that is too long for a plot by removing its middle. Characters other than ASCII
/// count twice, because they may be twice as wide.
fn shortened(name: &str) -> String {
    let name = safe_line(name);
    let width = |c: char| if c.is_ascii() { 1 } else { 2 };
    if name.chars().map(width).sum::<usize>() <= MAX_LABEL {
        return name.into_owned();
    }
    let mut room = MAX_LABEL - 2;
    let fits = |room: &mut usize, least: usize, c: char| {
        let remaining = room
            .checked_sub(width(c))
            .filter(|remaining| *remaining >= least)?;
        *room = remaining;
        Some(c)
    };
    let start: String = name
        .chars()
        .map_while(|c| fits(&mut room, MAX_LABEL / 3, c))
        .collect();
    let mut end: Vec<char> = name
        .chars()
        .rev()
        .map_while(|c| fits(&mut room, 0, c))
        .collect();
    end.reverse();
    start + "…" + &end.into_iter().collect::<String>()
}

/// Scales `length` by `value` / `most`.
pub(super) fn part(value: u64, most: u64, length: f64) -> f64 {
    value as f64 / most.max(1) as f64 * length
}

fn y_of(value: u64, top: u64) -> f64 {
    BOTTOM - part(value, top, HEIGHT)
}

/// Formats a length or a position in view box units for an SVG attribute.
pub(super) fn unit(number: f64) -> impl Display {
    format!("{number:.1}")
}

/// Rounds up to 1, 2, 4, 6, 8, 10, 12, 16, 20, 40 .. for the end of an axis. Every result above 1
/// is even, so that the middle of the axis is a whole number.
fn round_up(number: u64) -> u64 {
    let mut scale: u64 = 1;
    loop {
        let steps = [1, 2, 4, 6, 8, 10, 12, 16].map(|step| scale.saturating_mul(step));
        if let Some(top) = steps.into_iter().find(|top| *top >= number) {
            return top;
        }
        let Some(next) = scale.checked_mul(10) else {
            return number;
        };
        scale = next;
    }
}

/// Formats `1200` as `1.2k`.
pub(super) fn short(number: u64) -> String {
    let units = [
        (1_000_000_000_000, "T"),
        (1_000_000_000, "G"),
        (1_000_000, "M"),
        (1_000, "k"),
    ];
    match units.into_iter().find(|(unit, _)| number >= *unit) {
        None => number.to_string(),
        Some((unit, name)) => match number % unit / (unit / 10) {
            0 => format!("{}{name}", number / unit),
            tenths => format!("{}.{tenths}{name}", number / unit),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_LABEL, round_up, short, shortened};

    #[test]
    fn axes_end_at_round_numbers() {
        let tops = [0, 1, 2, 3, 5, 7, 11, 41, 61, 100, 10_910].map(round_up);
        assert_eq!(tops, [1, 1, 2, 4, 6, 8, 12, 60, 80, 100, 12_000]);
        assert_eq!(round_up(u64::MAX), u64::MAX);
        assert_eq!(
            [0, 999, 1000, 1250, 20_000, 3_000_000].map(short),
            ["0", "999", "1k", "1.2k", "20k", "3M"]
        );
    }

    #[test]
    fn a_long_label_keeps_its_beginning_and_its_end() {
        assert_eq!(shortened("www.example.org"), "www.example.org");
        let long = shortened(&format!("www.{}.example.org", "a".repeat(200)));
        assert_eq!(long.chars().count(), MAX_LABEL - 1);
        assert!(
            long.starts_with("www.aaa") && long.ends_with("a.example.org") && long.contains('…')
        );
        let wide = shortened(&"宽".repeat(100));
        assert!(wide.chars().count() <= MAX_LABEL / 2, "{wide}");
        assert_eq!(shortened("a\u{202e}b\nc"), "ab\u{fffd}c");
    }
}
