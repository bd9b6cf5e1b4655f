//! Joins the Markdown of the blocks of a page's main text.

use super::block_containers::{BlockContainer, EnclosingContainers, MAX_COLUMNS};
use super::inline_markdown_writer::longest_run;
use super::markdown_builder::MarkdownBlock;
use crate::content::page_content::{Block, BlockKind, PageContent};

/// Writes the main text of `content` as Markdown. `blocks` has one entry for each block of
/// `content`.
pub(super) fn render(content: &PageContent, blocks: &[MarkdownBlock]) -> String {
    let pairs = content.blocks.iter().zip(blocks);
    let main: Vec<_> = pairs.filter(|(block, _)| block.is_main()).collect();
    let mut page = MarkdownPageWriter::default();
    let mut rest = &main[..];
    while let [(block, markdown), after @ ..] = rest {
        let table = cells_of_table(rest);
        if table > 1 {
            if !markdown.figure.is_empty() {
                page.block(&markdown.place, &markdown.figure);
            }
            page.block(&markdown.place, &rows_of_table(&rest[..table]));
            rest = &rest[table..];
            continue;
        }
        if !markdown.figure.is_empty() {
            page.block(&markdown.place, &markdown.figure);
        }
        let written = block_text(content, block, markdown);
        if !written.is_empty() {
            page.block(&markdown.place, &written);
        }
        rest = after;
    }
    page.out
}

/// Returns the Markdown of a single block.
fn block_text(content: &PageContent, block: &Block, markdown: &MarkdownBlock) -> String {
    let words = &markdown.words;
    match block.kind {
        BlockKind::Heading { level } if !words.is_empty() => {
            let words = words.replace("\\\n", " ");
            let text = words.trim_end_matches('#');
            // Escape `#` signs at the end of a heading. Otherwise, Markdown takes them for a
            // closing sequence and doesn't show them (CommonMark 4.2).
            let escape = if text.ends_with(' ') { "\\" } else { "" };
            let signs = &words[text.len()..];
            format!("{} {text}{escape}{signs}", "#".repeat(usize::from(level)))
        }
        BlockKind::Code => {
            let code = content.quotable_text_of(block);
            if code.is_empty() {
                return String::new();
            }
            let fence = "`".repeat(longest_run(&code, '`').max(2) + 1);
            let language = markdown.language.as_deref().unwrap_or_default();
            format!("{fence}{language}\n{code}\n{fence}")
        }
        BlockKind::Term if !words.contains('\n') && !words.is_empty() => {
            match words.find("**") {
                Some(0) => words.clone(),
                // A part of the term is already bold, and `**` can't be nested in `**`.
                Some(_) => format!("<strong>{words}</strong>"),
                None => format!("**{words}**"),
            }
        }
        _ => words.clone(),
    }
}

/// Returns the number of leading blocks that belong to the same table, if Markdown can express the
/// table: it has at least two columns, and its cells have no lists, quotes, code or nested tables.
/// Otherwise returns 0.
fn cells_of_table(blocks: &[(&Block, &MarkdownBlock)]) -> usize {
    let Some(first) = blocks.first().and_then(|(_, first)| first.place.cell) else {
        return 0;
    };
    let in_table = |markdown: &MarkdownBlock| {
        let cell = markdown.place.cell;
        cell.filter(|cell| cell.table == first.table)
    };
    let count = blocks
        .iter()
        .take_while(|(_, markdown)| in_table(markdown).is_some())
        .count();
    let around = blocks[0].1.place.around.len();
    let mut columns = 0;
    for (block, markdown) in &blocks[..count] {
        let is_text = matches!(
            block.kind,
            BlockKind::Cell | BlockKind::Paragraph | BlockKind::Caption
        );
        let cell = in_table(markdown);
        let is_nested = cell.is_none_or(|cell| cell.is_nested);
        if !is_text || is_nested || markdown.place.around.len() != around {
            return 0;
        }
        columns = columns.max(cell.map_or(0, |cell| cell.column));
    }
    match columns {
        0 | 1 => 0,
        _ => count,
    }
}

/// Returns the cells as a table of GitHub Flavored Markdown. The first row is the table's head if
/// all cells of the row are head cells. Otherwise the head is empty.
fn rows_of_table(cells: &[(&Block, &MarkdownBlock)]) -> String {
    let mut rows: Vec<(u32, bool, Vec<String>)> = Vec::new();
    for (_, markdown) in cells {
        let Some(cell) = markdown.place.cell else {
            continue;
        };
        if rows.last().is_none_or(|(row, ..)| *row != cell.row) {
            rows.push((cell.row, true, Vec::new()));
        }
        let Some((_, is_head, row)) = rows.last_mut() else {
            continue;
        };
        *is_head &= cell.is_head;
        let column = cell.column.saturating_sub(1) as usize;
        // Limit the number of columns, because each row is padded to the width of the widest one.
        let column = column.min(MAX_COLUMNS - 1);
        row.resize(row.len().max(column + 1), String::new());
        let words = markdown.words.replace("\\\n", "<br>");
        if !row[column].is_empty() {
            row[column].push_str("<br>");
        }
        row[column].push_str(&words);
    }
    let columns = rows.iter().map(|(.., row)| row.len()).max().unwrap_or(0);
    let line = |row: &[String]| {
        let cell = |at| row.get(at).map_or("", String::as_str);
        let cells: Vec<&str> = (0..columns).map(cell).collect();
        format!("| {} |", cells.join(" | "))
    };
    let has_head = rows.first().is_some_and(|(_, is_head, _)| *is_head);
    let mut lines = Vec::with_capacity(rows.len() + 2);
    lines.push(match rows.first() {
        Some((.., head)) if has_head => line(head),
        _ => line(&[]),
    });
    lines.push(format!("|{}", " --- |".repeat(columns)));
    let body = rows.iter().skip(usize::from(has_head));
    lines.extend(body.map(|(.., row)| line(row)));
    lines.join("\n")
}

/// The page written so far.
#[derive(Default)]
struct MarkdownPageWriter {
    out: String,
    /// The lists, quotes and table cell around the previously written block.
    last: EnclosingContainers,
}

impl MarkdownPageWriter {
    /// Writes a block of one or more lines.
    fn block(&mut self, place: &EnclosingContainers, text: &str) {
        let shared = shared(&self.last.around, &place.around);
        if !self.out.is_empty() {
            self.out.push('\n');
            if !self.is_next_item(place, shared) {
                let gap = prefix(&place.around[..shared], shared);
                self.out.push_str(gap.trim_end());
                self.out.push('\n');
            }
        }
        // Only the first block of a list item gets the item's marker.
        let first = prefix(&place.around, shared);
        let later = prefix(&place.around, place.around.len());
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.out.push('\n');
            }
            let prefix = if at == 0 { &first } else { &later };
            match line.is_empty() {
                true => self.out.push_str(prefix.trim_end()),
                false => {
                    self.out.push_str(prefix);
                    self.out.push_str(line);
                }
            }
        }
        self.last = place.clone();
    }

    /// Returns whether the block begins the next item of the same list, or a list within the last
    /// item. If so, no empty line is written before the block.
    fn is_next_item(&self, place: &EnclosingContainers, shared: usize) -> bool {
        let opens_item = matches!(place.around.get(shared), Some(BlockContainer::Item { .. }));
        let was_item = self
            .last
            .around
            .iter()
            .any(|around| matches!(around, BlockContainer::Item { .. }));
        opens_item && was_item && (shared > 0 || self.last.around.len() > shared)
    }
}

/// Returns the number of outermost list items and quotes that two blocks have in common.
fn shared(one: &[BlockContainer], other: &[BlockContainer]) -> usize {
    let pairs = one.iter().zip(other);
    pairs.take_while(|(one, other)| one == other).count()
}

/// Returns the prefix of a line of a block, such as `> - `. List items with an index below `from`
/// have already begun, so white space replaces their markers.
fn prefix(around: &[BlockContainer], from: usize) -> String {
    let mut prefix = String::new();
    for (at, around) in around.iter().enumerate() {
        let mark = match around {
            BlockContainer::Quote { .. } => "> ".to_owned(),
            BlockContainer::Item { number: None, .. } => "- ".to_owned(),
            BlockContainer::Item {
                number: Some(number),
                ..
            } => format!("{number}. "),
        };
        match around {
            BlockContainer::Item { .. } if at < from => {
                prefix.extend(std::iter::repeat_n(' ', mark.len()));
            }
            _ => prefix.push_str(&mark),
        }
    }
    prefix
}
