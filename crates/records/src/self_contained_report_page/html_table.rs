//! Renders tables. Each column has one fact, each cell has a label for small screens, and a script
//! makes the columns sortable.

use crawl_weburl::safe_line;
use maud::{Markup, html};

use super::link;
use crate::number_format::{counted, grouped};

/// Maximum rows of a table that are shown before it is unfolded.
const MAX_SHOWN: usize = 20;
/// Maximum rows that phones show before the reader asks for more; `parts.css` has the same number.
const MAX_SHOWN_ON_PHONES: usize = 5;
/// Maximum number of columns of a table that phones show as a table, with one line per row.
const MAX_PHONE_COLUMNS: usize = 2;
/// Maximum number of columns of a table that screens of medium width show as a table. Wider tables
/// are shown as a list of blocks.
const MAX_NARROW_COLUMNS: usize = 5;

/// A cell of a table.
pub(crate) enum TableCell {
    /// No value. Small screens hide the cell.
    Empty,
    Markup(Markup),
    /// A number and its text. The column is sorted by the number.
    Number(u64, String),
    /// A number and a sentence about it. The column is sorted by the number.
    Words(u64, String),
}

impl TableCell {
    /// Creates a cell with text, and escapes it, because the text may come from a server.
    pub(crate) fn text(text: &str) -> TableCell {
        match text.is_empty() {
            true => TableCell::Empty,
            false => TableCell::Markup(html! { (safe_line(text)) }),
        }
    }

    /// Creates a cell with a link to `url`.
    pub(crate) fn link(url: &str) -> TableCell {
        TableCell::Markup(link(url))
    }

    /// Creates a cell with a number. The column is sorted by the number.
    pub(crate) fn count(number: u64) -> TableCell {
        TableCell::Number(number, grouped(number))
    }

    fn draw(&self, column: &str) -> Markup {
        html! {
            @match self {
                TableCell::Empty => td.none {},
                TableCell::Markup(markup) => td data-name=(column) { (markup) },
                TableCell::Number(number, shown) => td.n data-name=(column) data-value=(number) { (shown) },
                TableCell::Words(number, words) => td data-name=(column) data-value=(number) { (safe_line(words)) },
            }
        }
    }
}

/// A table with named columns.
pub(crate) struct HtmlTable<'a> {
    /// The table's name for screen readers (`aria-label`).
    pub(crate) name: &'a str,
    pub(crate) columns: &'a [&'a str],
    pub(crate) rows: Vec<Vec<TableCell>>,
    /// The number of rows that were left out of `rows`.
    pub(crate) more: u64,
}

impl HtmlTable<'_> {
    /// Renders the table: the first rows, and the others folded. Phones show only the first few
    /// rows, and a check box that shows the others without a script.
    pub(crate) fn draw(&self) -> Markup {
        let (first, others) = self.rows.split_at(self.rows.len().min(MAX_SHOWN));
        let folded = format!("{}, continued", self.name);
        html! {
            (self.part(self.name, first, self.rows.len()))
            @if !others.is_empty() {
                details.rest {
                    summary { (counted(others.len() as u64, "more row", "more rows")) }
                    (self.part(&folded, others, 0))
                }
            }
            @if self.more > 0 { p.soft { "And " (grouped(self.more)) " more, which are not listed here." } }
        }
    }

    /// Renders `rows` as one table. `all` is the number of rows of the whole table. If phones don't
    /// show all of them at first, a check box that shows the rest follows.
    fn part(&self, name: &str, rows: &[Vec<TableCell>], all: usize) -> Markup {
        let class = match self.columns.len() {
            columns if columns <= MAX_PHONE_COLUMNS => "t",
            columns if columns <= MAX_NARROW_COLUMNS => "t m",
            _ => "t w",
        };
        html! {
            div class=(class) role="region" aria-label=(name) tabindex="0" {
                table.sort {
                    thead { tr { @for column in self.columns { th scope="col" { (column) } } } }
                    tbody {
                        @for row in rows {
                            tr { @for (cell, column) in row.iter().zip(self.columns) { (cell.draw(column)) } }
                        }
                    }
                }
                @if all > MAX_SHOWN_ON_PHONES {
                    label.all { input type="checkbox"; " Show all " (grouped(all as u64)) " rows" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HtmlTable, TableCell};

    #[test]
    fn each_cell_names_its_column_unless_it_is_empty() {
        let rows = (0..25).map(|number| match number {
            0 => vec![TableCell::text("<b>"), TableCell::text("")],
            _ => vec![
                TableCell::link("http://e.example/"),
                TableCell::count(number * 1000),
            ],
        });
        let table = HtmlTable {
            name: "Things",
            columns: &["thing", "number"],
            rows: rows.collect(),
            more: 3,
        };
        let html = table.draw().into_string();
        assert!(html.contains("<td data-name=\"thing\">&lt;b&gt;</td><td class=\"none\"></td>"));
        assert!(html.contains("data-name=\"number\" data-value=\"2000\">2,000</td>"));
        let (shown, folded) = html
            .split_once("<details class=\"rest\"><summary>5 more rows")
            .unwrap();
        assert_eq!(
            (
                shown.matches("<tr>").count(),
                folded.matches("<tr>").count()
            ),
            (21, 6)
        );
        assert!(folded.contains("aria-label=\"Things, continued\""));
        assert!(folded.ends_with("And 3 more, which are not listed here.</p>"));
        assert!(!html.contains("data-name=\"\""));
    }
}
