//! Converts plain text to HTML. Blank lines, underlines and numbers determine the title, headings
//! and paragraphs.

use crate::html_writer::{HtmlPageWriter, PageHead};
use crate::limits::DocumentLimits;

/// Maximum characters of a heading line.
const MAX_HEADING_CHARS: usize = 120;

/// The characters that can underline a heading in reStructuredText or Markdown.
const UNDERLINES: [char; 8] = ['=', '-', '~', '^', '"', '*', '#', '+'];

pub(crate) fn to_html(text: &str, limits: &DocumentLimits, modified: Option<&str>) -> String {
    let lines: Vec<&str> = text.trim_start_matches('\u{feff}').lines().collect();
    let mut page = HtmlPageWriter::new(limits.html_bytes);
    let mut title = None;
    let mut levels: Vec<char> = Vec::new();
    let mut at = 0;
    while at < lines.len() && !page.is_full() {
        let line = lines[at].trim();
        if line.is_empty() || underline(line).is_some() {
            at += 1;
            continue;
        }
        let next = lines.get(at + 1).copied().unwrap_or_default();
        let is_short = line.chars().count() <= MAX_HEADING_CHARS;
        let starts_alone = at == 0 || lines[at - 1].trim().is_empty();
        if let Some(mark) = underline(next).filter(|_| is_short && underlines(line, next)) {
            let position = levels.iter().position(|level| *level == mark);
            let level = position.unwrap_or_else(|| {
                levels.push(mark);
                levels.len() - 1
            });
            page.heading(level + 1, None, line);
            title.get_or_insert(line);
            at += 2;
        } else if let Some(level) = numbered(lines[at]).filter(|_| is_short && starts_alone)
            && next.trim().is_empty()
        {
            page.heading(level + 1, None, line);
            at += 1;
        } else {
            let rest = lines[at..].iter().position(|line| line.trim().is_empty());
            let end = at + rest.unwrap_or(lines.len() - at);
            // An underlined heading may follow the paragraph without a blank line. In that case,
            // the paragraph ends before the heading.
            let heading = (at + 1..end.saturating_sub(1))
                .find(|at| underlines(lines[*at].trim(), lines[at + 1]));
            let end = heading.unwrap_or(end);
            let is_first = title.is_none() && end == at + 1 && is_short;
            if is_first && !line.ends_with(['.', ',', ';', ':']) {
                title = Some(line);
                page.heading(1, None, line);
            } else {
                page.element("p", None, &lines[at..end].join("\n"));
            }
            // Only the first paragraph can be the title. If it isn't, set an empty title, so that
            // no later paragraph becomes the title.
            title.get_or_insert_default();
            at = end;
        }
    }
    let head = PageHead {
        title: title.map(str::to_owned),
        modified: modified.map(str::to_owned),
        ..PageHead::default()
    };
    page.finish(&head, &[])
}

/// Returns the character that the line consists of, if the line can underline a heading.
fn underline(line: &str) -> Option<char> {
    let line = line.trim_end();
    let mark = line
        .chars()
        .next()
        .filter(|mark| UNDERLINES.contains(mark))?;
    (line.len() >= 3 && line.chars().all(|other| other == mark)).then_some(mark)
}

/// Returns whether `next` underlines `line`, which makes `line` a heading. The underline must have
/// at least three quarters of the length of `line`.
fn underlines(line: &str, next: &str) -> bool {
    underline(next).is_some()
        && !line.is_empty()
        && underline(line).is_none()
        && next.trim_end().chars().count() * 4 >= line.chars().count() * 3
}

/// Returns the level of a numbered heading: 2 for `2.1 Queries` or `2.1.  Queries`. `None` if the
/// line is not a numbered heading.
fn numbered(line: &str) -> Option<usize> {
    let (number, name) = line.split_once(char::is_whitespace)?;
    let parts: Vec<&str> = number.trim_end_matches('.').split('.').collect();
    let is_number = |part: &&str| {
        !part.is_empty() && part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let begins = name.trim_start().chars().next()?;
    let is_name = begins.is_alphabetic() && !begins.is_lowercase();
    let ends = name.trim_end().ends_with(['.', ',', ';', ':']);
    (parts.iter().all(is_number) && is_name && !ends).then_some(parts.len())
}

#[cfg(test)]
mod tests {
    use super::to_html;
    use crate::limits::DocumentLimits;

    fn body(text: &str) -> String {
        let html = to_html(text, &DocumentLimits::default(), None);
        let (head, rest) = html.split_once("<main>\n").unwrap();
        let title = head.split_once("<title>").map_or("", |(_, title)| title);
        let title = title.split_once("</title>").map_or("", |(title, _)| title);
        let body = rest.split_once("</main>").unwrap().0;
        format!("{title}|{body}")
    }

    #[test]
    fn underlined_and_numbered_lines_are_headings() {
        let text = "Brewing tea\n===========\n\nWater & leaves.\nThen wait.\n\nCups\n----\n\nTwo.\n\n\
            2.1  Pots of clay\n\n   They are warm.\n\n2. boil the water\n";
        assert_eq!(
            body(text),
            "Brewing tea|<h1>Brewing tea</h1>\n<p>Water &amp; leaves.\nThen wait.</p>\n\
            <h2>Cups</h2>\n<p>Two.</p>\n<h3>2.1  Pots of clay</h3>\n<p>They are warm.</p>\n\
            <p>2. boil the water</p>\n"
        );
    }

    #[test]
    fn a_first_line_alone_is_the_title() {
        assert_eq!(
            body("\u{feff}Opening hours\n\nAt nine."),
            "Opening hours|<h1>Opening hours</h1>\n<p>At nine.</p>\n"
        );
        assert_eq!(
            body("It opens at nine.\n\nCups"),
            "|<p>It opens at nine.</p>\n<p>Cups</p>\n"
        );
        assert_eq!(body("\n\n"), "|");
    }

    #[test]
    fn no_text_is_markup() {
        assert_eq!(
            body("a\nb <script>x</script>\0"),
            "|<p>a\nb &lt;script&gt;x&lt;/script&gt; </p>\n"
        );
    }
}
