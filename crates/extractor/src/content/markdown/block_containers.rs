//! Tracks the lists, quotes and tables around a block.

use crate::html::element_name::{self, ElementName};
use crate::html::tokenizer::Tag;

/// Maximum number of open lists, quotes and tables; deeper ones are ignored.
const MAX_OPEN: usize = 256;

/// Maximum number of nested lists and quotes to write around a block.
const MAX_DEPTH: usize = 16;

/// Maximum columns of a table; further cells are joined to the last column.
pub(super) const MAX_COLUMNS: usize = 64;

/// Maximum value of `colspan`, and of `rowspan` (HTML, "forming a table").
const MAX_SPANS: [u32; 2] = [1000, 65_534];

/// A list item or a quote around a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockContainer {
    /// A list item. `id` is unique among the items of the page. `number` is the number shown, in a
    /// numbered list.
    Item { id: u32, number: Option<u32> },
    /// A quote. `id` is unique among the quotes of the page.
    Quote { id: u32 },
}

/// The position of a block in a table. Rows and columns are numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableCellPosition {
    /// The number of the table on the page. In a nested table, the number of the outermost table.
    pub(super) table: u32,
    pub(super) row: u32,
    pub(super) column: u32,
    /// Whether the cell is a `th`.
    pub(super) is_head: bool,
    /// Whether the block is in a table nested within the cell.
    pub(super) is_nested: bool,
}

/// The lists, quotes and table cell that a block is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EnclosingContainers {
    pub(super) around: Vec<BlockContainer>,
    pub(super) cell: Option<TableCellPosition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenContainer {
    /// A list. `next` is the number of the next item, if the list is numbered.
    List {
        next: Option<u32>,
    },
    Item {
        id: u32,
        number: Option<u32>,
    },
    Quote {
        id: u32,
    },
    Table {
        id: u32,
        row: u32,
    },
    /// A row. `column` is the last column that its cells occupy so far.
    Row {
        column: u32,
    },
    Cell {
        is_head: bool,
        column: u32,
    },
}

/// The open lists, quotes and tables.
#[derive(Debug)]
pub(super) struct OpenContainers {
    open: Vec<OpenContainer>,
    last_id: u32,
    /// For each column of the outermost table, the number of rows that its last cell still
    /// occupies, including the current row.
    spanned_rows: [u32; MAX_COLUMNS],
}

impl Default for OpenContainers {
    fn default() -> OpenContainers {
        OpenContainers {
            open: Vec::new(),
            last_id: 0,
            spanned_rows: [0; MAX_COLUMNS],
        }
    }
}

impl OpenContainers {
    /// Begins an element, and ends elements whose end tags may be omitted there.
    pub(super) fn start(&mut self, tag: &Tag<'_>) {
        match tag.name {
            element_name::UL | element_name::MENU | element_name::DIR => {
                self.push(OpenContainer::List { next: None });
            }
            element_name::OL => {
                let start = tag.attributes.get("start");
                let start = start.and_then(|start| start.trim().parse().ok());
                self.push(OpenContainer::List {
                    next: Some(start.unwrap_or(1)),
                });
            }
            element_name::LI => self.item(),
            element_name::BLOCKQUOTE => {
                let id = self.next_id();
                self.push(OpenContainer::Quote { id });
            }
            element_name::TABLE => {
                let id = self.next_id();
                self.push(OpenContainer::Table { id, row: 0 });
                self.end_spans();
            }
            // A cell can't extend into the next row group.
            element_name::THEAD | element_name::TBODY | element_name::TFOOT => self.end_spans(),
            element_name::TR => self.row(),
            element_name::TD | element_name::TH => self.cell(tag),
            _ => {}
        }
    }

    /// Ends an element.
    pub(super) fn end(&mut self, tag: ElementName) {
        match tag {
            element_name::UL | element_name::OL | element_name::MENU | element_name::DIR => {
                self.pop(|open| matches!(open, OpenContainer::List { .. }));
            }
            element_name::LI => self.pop(|open| matches!(open, OpenContainer::Item { .. })),
            element_name::BLOCKQUOTE => {
                self.pop(|open| matches!(open, OpenContainer::Quote { .. }));
            }
            element_name::TD | element_name::TH => {
                self.pop_of_table(|open| matches!(open, OpenContainer::Cell { .. }));
            }
            element_name::TR => self.pop_of_table(|open| matches!(open, OpenContainer::Row { .. })),
            element_name::TABLE => {
                let table = |open: &OpenContainer| matches!(open, OpenContainer::Table { .. });
                if let Some(at) = self.open.iter().rposition(table) {
                    self.open.truncate(at);
                }
            }
            _ => {}
        }
    }

    /// Returns the list items, quotes and table cell around the block that just ended.
    pub(super) fn place(&self) -> EnclosingContainers {
        let around = self.open.iter().filter_map(|open| match *open {
            OpenContainer::Item { id, number } => Some(BlockContainer::Item { id, number }),
            OpenContainer::Quote { id } => Some(BlockContainer::Quote { id }),
            _ => None,
        });
        EnclosingContainers {
            around: around.take(MAX_DEPTH).collect(),
            cell: self.cell_place(),
        }
    }

    fn cell_place(&self) -> Option<TableCellPosition> {
        let mut tables = self.open.iter().enumerate();
        let (at, table, row) = tables.find_map(|(at, open)| match *open {
            OpenContainer::Table { id, row } => Some((at, id, row)),
            _ => None,
        })?;
        let inner = &self.open[at + 1..];
        let (is_head, column) = inner.iter().find_map(|open| match *open {
            OpenContainer::Cell { is_head, column } => Some((is_head, column)),
            _ => None,
        })?;
        Some(TableCellPosition {
            table,
            row,
            column,
            is_head,
            is_nested: inner
                .iter()
                .any(|open| matches!(open, OpenContainer::Table { .. })),
        })
    }

    fn item(&mut self) {
        // A new item ends the previous item of the same list.
        let list = self.position_in_cell(|open| matches!(open, OpenContainer::List { .. }));
        if let Some(list) = list {
            self.open.truncate(list + 1);
        }
        let number = match list.map(|list| &mut self.open[list]) {
            Some(OpenContainer::List { next: Some(next) }) => {
                let number = *next;
                *next = next.saturating_add(1);
                Some(number)
            }
            _ => None,
        };
        let id = self.next_id();
        self.push(OpenContainer::Item { id, number });
    }

    fn row(&mut self) {
        if let Some(table) = self
            .open
            .iter()
            .rposition(|open| matches!(open, OpenContainer::Table { .. }))
        {
            self.open.truncate(table + 1);
            if let Some(OpenContainer::Table { row, .. }) = self.open.last_mut() {
                *row = row.saturating_add(1);
            }
            self.push(OpenContainer::Row { column: 0 });
            if self.is_in_outermost_table() {
                for rows in &mut self.spanned_rows {
                    *rows = rows.saturating_sub(1);
                }
            }
        }
    }

    /// Begins a cell, in the next column that no cell of an earlier row occupies (HTML, "forming a
    /// table").
    fn cell(&mut self, tag: &Tag<'_>) {
        let in_row = |open: &OpenContainer| {
            matches!(
                open,
                OpenContainer::Table { .. } | OpenContainer::Row { .. }
            )
        };
        let Some(at) = self.open.iter().rposition(in_row) else {
            return;
        };
        if matches!(self.open[at], OpenContainer::Table { .. }) {
            self.row();
        } else {
            self.open.truncate(at + 1);
        }
        let is_outermost = self.is_in_outermost_table();
        let Some(OpenContainer::Row { column: last }) = self.open.last_mut() else {
            return;
        };
        let span = |name, max| span(tag.attributes.get(name).unwrap_or_default(), max);
        let mut before = *last as usize;
        if is_outermost {
            let later = self.spanned_rows.iter().skip(before);
            before += later.take_while(|rows| **rows > 0).count();
        }
        let columns = span("colspan", MAX_SPANS[0]).unwrap_or(1).max(1);
        let column = u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1);
        *last = column.saturating_add(columns - 1);
        if is_outermost {
            // A span of zero rows ends with the row group.
            let rows = match span("rowspan", MAX_SPANS[1]) {
                Some(0) => u32::MAX,
                rows => rows.unwrap_or(1),
            };
            let spanned = self.spanned_rows.iter_mut().skip(before);
            for occupied in spanned.take(columns as usize) {
                *occupied = rows.max(*occupied);
            }
        }
        self.push(OpenContainer::Cell {
            is_head: tag.name == element_name::TH,
            column,
        });
    }

    /// Ends the cells of the outermost table that would extend into further rows.
    fn end_spans(&mut self) {
        if self.is_in_outermost_table() {
            self.spanned_rows.fill(0);
        }
    }

    /// Returns whether exactly one table is open.
    fn is_in_outermost_table(&self) -> bool {
        let is_table = |open: &&OpenContainer| matches!(open, OpenContainer::Table { .. });
        self.open.iter().filter(is_table).take(2).count() == 1
    }

    fn push(&mut self, open: OpenContainer) {
        if self.open.len() < MAX_OPEN {
            self.open.push(open);
        }
    }

    fn next_id(&mut self) -> u32 {
        self.last_id = self.last_id.saturating_add(1);
        self.last_id
    }

    /// Closes the innermost element that satisfies `is_target`, with the elements open within it.
    /// Closes nothing outside the current cell.
    fn pop(&mut self, is_target: impl Fn(&OpenContainer) -> bool) {
        if let Some(at) = self.position_in_cell(is_target) {
            self.open.truncate(at);
        }
    }

    fn pop_of_table(&mut self, is_target: impl Fn(&OpenContainer) -> bool) {
        let is_table = |open: &OpenContainer| matches!(open, OpenContainer::Table { .. });
        self.pop_to(is_target, is_table);
    }

    fn pop_to(
        &mut self,
        is_target: impl Fn(&OpenContainer) -> bool,
        is_stop: impl Fn(&OpenContainer) -> bool,
    ) {
        let position = self
            .open
            .iter()
            .rposition(|open| is_target(open) || is_stop(open));
        if let Some(at) = position.filter(|at| is_target(&self.open[*at])) {
            self.open.truncate(at);
        }
    }

    fn position_in_cell(&self, is_target: impl Fn(&OpenContainer) -> bool) -> Option<usize> {
        let is_cell = |open: &OpenContainer| {
            matches!(
                open,
                OpenContainer::Cell { .. } | OpenContainer::Table { .. }
            )
        };
        let position = self
            .open
            .iter()
            .rposition(|open| is_target(open) || is_cell(open))?;
        is_target(&self.open[position]).then_some(position)
    }
}

/// Returns the value of `colspan` or `rowspan` (HTML, "rules for parsing non-negative integers").
/// `None` if the value is not a number.
fn span(value: &str, max: u32) -> Option<u32> {
    let value = value.trim_ascii_start();
    let value = value.strip_prefix('+').unwrap_or(value);
    let end = value.bytes().position(|byte| !byte.is_ascii_digit());
    let digits = &value[..end.unwrap_or(value.len())];
    match digits.parse() {
        Ok(number) => Some(max.min(number)),
        // Only numbers that are too large have digits and can't be parsed.
        Err(_) => (!digits.is_empty()).then_some(max),
    }
}
