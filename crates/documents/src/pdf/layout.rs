//! Groups lines into paragraphs and headings, by font size and spacing or by the document's
//! outline.

use std::collections::{HashMap, HashSet};

use super::lines::TextLine;

/// Maximum characters of a heading line.
const MAX_HEADING_CHARS: usize = 200;
/// Minimum font size of a heading, as a multiple of the body font size.
const HEADING_SIZE: f64 = 1.12;
/// Maximum line spacing within a paragraph, as a multiple of the font size.
const MAX_LEADING: f64 = 1.6;
/// Minimum number of pages that must begin or end with the same line for it to count as a running
/// line (a page header or footer). The line must also be on more than a third of all pages.
const MIN_PAGES_WITH_RUNNING_LINES: u32 = 3;

/// A paragraph or heading.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TextBlock {
    pub(super) text: String,
    /// The level of the heading, from 1. `None` if the block is a paragraph.
    pub(super) level: Option<usize>,
    /// The number of the page on which the block begins, from 1.
    pub(super) page: u32,
}

/// The blocks of a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DocumentLayout {
    pub(super) blocks: Vec<TextBlock>,
    /// The page headers and footers (running lines), without repetitions.
    pub(super) beside: Vec<String>,
    /// The title: the first heading in the largest font size on the first page.
    pub(super) title: Option<String>,
}

impl DocumentLayout {
    /// Groups lines into blocks. `outline` contains the levels and titles of the document's
    /// outline.
    pub(super) fn of(lines: Vec<TextLine>, outline: &[(usize, String)]) -> DocumentLayout {
        let (lines, beside) = without_running_lines(lines);
        let headings = PdfHeadingRule::of(&lines, outline);
        let mut layout = DocumentLayout {
            beside,
            title: headings.title.clone(),
            ..DocumentLayout::default()
        };
        let mut last: Option<&TextLine> = None;
        for line in &lines {
            let level = headings.level(line);
            let continues = last.is_some_and(|last| {
                // The first line of a page continues the last paragraph unless that paragraph's
                // last line ends a sentence.
                let is_near = last.page != line.page && !last.text.ends_with(['.', '!', '?', ':'])
                    || last.page == line.page
                        && (0.0..=line.size * MAX_LEADING).contains(&(last.height - line.height));
                is_near && (last.size - line.size).abs() < 0.5
            });
            match layout.blocks.last_mut() {
                // Join consecutive heading lines, unless headings are found by the outline. In that
                // case, a heading line equals a title in the outline, so it is complete.
                Some(block)
                    if continues
                        && block.level == level
                        && !(level.is_some() && headings.is_by_outline)
                        && block.text.len() < 64 * 1024 =>
                {
                    join(&mut block.text, &line.text);
                }
                _ => layout.blocks.push(TextBlock {
                    text: line.text.clone(),
                    level,
                    page: line.page,
                }),
            }
            last = Some(line);
        }
        layout
    }
}

/// Appends a line to a paragraph or heading. Joins a word that is hyphenated at the end of a line.
fn join(text: &mut String, line: &str) {
    let mut ending = text.chars().rev();
    let is_hyphenated = ending.next() == Some('-')
        && ending.next().is_some_and(char::is_lowercase)
        && line.starts_with(char::is_lowercase);
    match is_hyphenated {
        true => drop(text.pop()),
        false => text.push(' '),
    }
    text.push_str(line);
}

/// Determines which lines are headings. These are the lines that equal a title in the outline or,
/// if there are none, the lines in a larger font.
struct PdfHeadingRule {
    /// The levels of the titles in the outline. Titles are stored in the form that [`key`] returns.
    outline: HashMap<String, usize>,
    is_by_outline: bool,
    /// The font sizes of headings, largest first, in quarters of a point.
    sizes: Vec<i64>,
    body: f64,
    title: Option<String>,
}

impl PdfHeadingRule {
    fn of(lines: &[TextLine], outline: &[(usize, String)]) -> PdfHeadingRule {
        let titles = outline.iter().map(|(level, title)| (key(title), *level));
        let titles: HashMap<String, usize> = titles.filter(|(key, _)| !key.is_empty()).collect();
        let is_by_outline = lines
            .iter()
            .any(|line| titles.contains_key(&key(&line.text)));
        let mut letters: HashMap<i64, usize> = HashMap::new();
        for line in lines {
            *letters.entry(quarters(line.size)).or_default() += line.text.len();
        }
        let largest = letters
            .iter()
            .max_by_key(|(size, letters)| (**letters, **size));
        let body = largest.map_or(0.0, |(size, _)| *size as f64 / 4.0);
        let may_head = |line: &&TextLine| line.size >= body * HEADING_SIZE && is_name(&line.text);
        let mut sizes: Vec<i64> = lines
            .iter()
            .filter(may_head)
            .map(|line| quarters(line.size))
            .collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes.dedup();
        let first = lines.first().map_or(0, |line| line.page);
        let first_page = lines.iter().take_while(|line| line.page == first);
        let of_title = first_page
            .filter(may_head)
            .map(|line| quarters(line.size))
            .max();
        let mut of_title = lines
            .iter()
            .skip_while(|line| Some(quarters(line.size)) != of_title)
            .take_while(|line| Some(quarters(line.size)) == of_title);
        let title = of_title.next().map(|first| {
            let mut title = first.text.clone();
            of_title.for_each(|line| join(&mut title, &line.text));
            title
        });
        PdfHeadingRule {
            outline: titles,
            is_by_outline,
            sizes,
            body,
            title,
        }
    }

    fn level(&self, line: &TextLine) -> Option<usize> {
        if self.is_by_outline {
            return self.outline.get(&key(&line.text)).copied();
        }
        let is_heading = line.size >= self.body * HEADING_SIZE && is_name(&line.text);
        let size = quarters(line.size);
        let level = || self.sizes.iter().position(|known| *known == size);
        is_heading.then(level).flatten().map(|level| level + 1)
    }
}

fn quarters(size: f64) -> i64 {
    (size * 4.0).round() as i64
}

fn is_name(text: &str) -> bool {
    text.chars().filter(|c| c.is_alphabetic()).count() >= 2
        && text.chars().count() <= MAX_HEADING_CHARS
}

/// Returns the letters and digits of a line in lower case. Lines and titles of the outline are
/// compared in this form.
fn key(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Separates running lines (page headers and footers) from the other lines. A running line is the
/// first or last line of many pages, and only its digits may differ from page to page. Returns the
/// other lines, and each running line once.
fn without_running_lines(lines: Vec<TextLine>) -> (Vec<TextLine>, Vec<String>) {
    let is_edge: Vec<bool> = (0..lines.len())
        .map(|at| {
            let page = |at: usize| lines.get(at).map(|line| line.page);
            page(at) != page(at + 1) || at == 0 || page(at - 1) != page(at)
        })
        .collect();
    let without_digits =
        |line: &TextLine| -> String { line.text.chars().filter(|c| !c.is_ascii_digit()).collect() };
    let mut pages_with: HashMap<String, HashSet<u32>> = HashMap::new();
    for (line, _) in lines.iter().zip(&is_edge).filter(|(_, is_edge)| **is_edge) {
        let pages = pages_with.entry(without_digits(line)).or_default();
        pages.insert(line.page);
    }
    let pages = lines
        .iter()
        .map(|line| line.page)
        .collect::<HashSet<_>>()
        .len();
    let is_running = |line: &TextLine| {
        let on = pages_with
            .get(&without_digits(line))
            .map_or(0, HashSet::len);
        on >= MIN_PAGES_WITH_RUNNING_LINES as usize && on * 3 > pages
    };
    let mut beside: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    let mut rest = Vec::with_capacity(lines.len());
    for (line, is_edge) in lines.into_iter().zip(is_edge) {
        if is_edge && is_running(&line) {
            let words = without_digits(&line);
            if seen.insert(words) {
                beside.push(line.text);
            }
        } else {
            rest.push(line);
        }
    }
    (rest, beside)
}
