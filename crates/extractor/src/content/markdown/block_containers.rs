//! Tracks the lists, quotes and tables around a block.

use crate::html::element_name::{self, ElementName};
use crate::html::tokenizer::Tag;

/// Maximum number of open lists, quotes and tables; deeper ones are ignored.
const MAX_OPEN: usize = 256;

/// Maximum number of nested lists and quotes to write around a block.
const MAX_DEPTH: usize = 16;

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
pub(super) struct BlockContainers {
    pub(super) around: Vec<BlockContainer>,
    pub(super) cell: Option<TableCellPosition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
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
    Row {
        column: u32,
    },
    Cell {
        is_head: bool,
    },
}

/// The open lists, quotes and tables.
#[derive(Debug, Default)]
pub(super) struct OpenContainers {
    open: Vec<Open>,
    last_id: u32,
}

impl OpenContainers {
    /// Begins an element, and ends elements whose end tags may be omitted there.
    pub(super) fn start(&mut self, tag: &Tag<'_>) {
        match tag.name {
            element_name::UL | element_name::MENU | element_name::DIR => {
                self.push(Open::List { next: None });
            }
            element_name::OL => {
                let start = tag.attributes.get("start");
                let start = start.and_then(|start| start.trim().parse().ok());
                self.push(Open::List {
                    next: Some(start.unwrap_or(1)),
                });
            }
            element_name::LI => self.item(),
            element_name::BLOCKQUOTE => {
                let id = self.next_id();
                self.push(Open::Quote { id });
            }
            element_name::TABLE => {
                let id = self.next_id();
                self.push(Open::Table { id, row: 0 });
            }
            element_name::TR => self.row(),
            element_name::TD | element_name::TH => self.cell(tag.name == element_name::TH),
            _ => {}
        }
    }

    /// Ends an element.
    pub(super) fn end(&mut self, tag: ElementName) {
        match tag {
            element_name::UL | element_name::OL | element_name::MENU | element_name::DIR => {
                self.pop(|open| matches!(open, Open::List { .. }));
            }
            element_name::LI => self.pop(|open| matches!(open, Open::Item { .. })),
            element_name::BLOCKQUOTE => self.pop(|open| matches!(open, Open::Quote { .. })),
            element_name::TD | element_name::TH => {
                self.pop_of_table(|open| matches!(open, Open::Cell { .. }));
            }
            element_name::TR => self.pop_of_table(|open| matches!(open, Open::Row { .. })),
            element_name::TABLE => {
                let table = |open: &Open| matches!(open, Open::Table { .. });
                if let Some(at) = self.open.iter().rposition(table) {
                    self.open.truncate(at);
                }
            }
            _ => {}
        }
    }

    /// Returns the lists, quotes and table cell around the block that ends here.
    pub(super) fn place(&self) -> BlockContainers {
        let around = self.open.iter().filter_map(|open| match *open {
            Open::Item { id, number } => Some(BlockContainer::Item { id, number }),
            Open::Quote { id } => Some(BlockContainer::Quote { id }),
            _ => None,
        });
        BlockContainers {
            around: around.take(MAX_DEPTH).collect(),
            cell: self.cell_place(),
        }
    }

    fn cell_place(&self) -> Option<TableCellPosition> {
        let mut tables = self.open.iter().enumerate();
        let (at, table, row) = tables.find_map(|(at, open)| match *open {
            Open::Table { id, row } => Some((at, id, row)),
            _ => None,
        })?;
        let inner = &self.open[at + 1..];
        let column = inner.iter().find_map(|open| match open {
            Open::Row { column } => Some(*column),
            _ => None,
        })?;
        let is_head = inner.iter().find_map(|open| match open {
            Open::Cell { is_head } => Some(*is_head),
            _ => None,
        })?;
        Some(TableCellPosition {
            table,
            row,
            column,
            is_head,
            is_nested: inner.iter().any(|open| matches!(open, Open::Table { .. })),
        })
    }

    fn item(&mut self) {
        // A new item ends the previous item of the same list.
        let list = self.position_in_cell(|open| matches!(open, Open::List { .. }));
        if let Some(list) = list {
            self.open.truncate(list + 1);
        }
        let number = match list.map(|list| &mut self.open[list]) {
            Some(Open::List { next: Some(next) }) => {
                let number = *next;
                *next = next.saturating_add(1);
                Some(number)
            }
            _ => None,
        };
        let id = self.next_id();
        self.push(Open::Item { id, number });
    }

    fn row(&mut self) {
        if let Some(table) = self
            .open
            .iter()
            .rposition(|open| matches!(open, Open::Table { .. }))
        {
            self.open.truncate(table + 1);
            if let Some(Open::Table { row, .. }) = self.open.last_mut() {
                *row = row.saturating_add(1);
            }
            self.push(Open::Row { column: 0 });
        }
    }

    fn cell(&mut self, is_head: bool) {
        let in_row = |open: &Open| matches!(open, Open::Table { .. } | Open::Row { .. });
        let Some(at) = self.open.iter().rposition(in_row) else {
            return;
        };
        if matches!(self.open[at], Open::Table { .. }) {
            self.row();
        } else {
            self.open.truncate(at + 1);
        }
        if let Some(Open::Row { column }) = self.open.last_mut() {
            *column = column.saturating_add(1);
        }
        self.push(Open::Cell { is_head });
    }

    fn push(&mut self, open: Open) {
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
    fn pop(&mut self, is_target: impl Fn(&Open) -> bool) {
        if let Some(at) = self.position_in_cell(is_target) {
            self.open.truncate(at);
        }
    }

    fn pop_of_table(&mut self, is_target: impl Fn(&Open) -> bool) {
        let is_table = |open: &Open| matches!(open, Open::Table { .. });
        self.pop_to(is_target, is_table);
    }

    fn pop_to(&mut self, is_target: impl Fn(&Open) -> bool, is_stop: impl Fn(&Open) -> bool) {
        let position = self
            .open
            .iter()
            .rposition(|open| is_target(open) || is_stop(open));
        if let Some(at) = position.filter(|at| is_target(&self.open[*at])) {
            self.open.truncate(at);
        }
    }

    fn position_in_cell(&self, is_target: impl Fn(&Open) -> bool) -> Option<usize> {
        let is_cell = |open: &Open| matches!(open, Open::Cell { .. } | Open::Table { .. });
        let position = self
            .open
            .iter()
            .rposition(|open| is_target(open) || is_cell(open))?;
        is_target(&self.open[position]).then_some(position)
    }
}
