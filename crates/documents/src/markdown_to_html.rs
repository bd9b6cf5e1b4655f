//! Converts Markdown to HTML. Metadata is taken from the front matter (`title`, `date`, `author`
//! and others).

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};

use crate::html_writer::{HtmlPageWriter, PageHead};
use crate::limits::DocumentLimits;

pub(crate) fn to_html(text: &str, limits: &DocumentLimits, modified: Option<&str>) -> String {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    let mut head = PageHead::default();
    let mut heading = None;
    let mut is_metadata = false;
    let mut is_title = false;
    let parser = Parser::new_ext(text.trim_start_matches('\u{feff}'), options);
    let events = parser.filter(|event| {
        match event {
            Event::Start(Tag::MetadataBlock(_)) => is_metadata = true,
            Event::End(TagEnd::MetadataBlock(_)) => is_metadata = false,
            Event::Text(text) if is_metadata => read_head(&mut head, text),
            Event::Start(Tag::Heading { .. }) if heading.is_none() => {
                is_title = true;
                heading = Some(String::new());
            }
            Event::End(TagEnd::Heading(_)) => is_title = false,
            Event::Text(text) | Event::Code(text) if is_title => {
                heading.get_or_insert_default().push_str(text);
            }
            _ => {}
        }
        true
    });
    let mut body = String::new();
    html::push_html(&mut body, events);
    head.title = head.title.or(heading);
    head.modified = head.modified.or(modified.map(str::to_owned));
    let mut page = HtmlPageWriter::new(limits.html_bytes);
    page.raw(&body);
    page.finish(&head, &[])
}

/// Parses the front matter, which has lines such as `name: value` or `name = "value"`. A list is
/// only parsed if it is on one line and in brackets.
fn read_head(head: &mut PageHead, lines: &str) {
    for line in lines.lines() {
        let Some(at) = line.find([':', '=']) else {
            continue;
        };
        let name = line[..at].trim().to_ascii_lowercase();
        let is_mark = |c: char| matches!(c, '"' | '\'' | '[' | ']') || c.is_whitespace();
        let value = line[at + 1..].split(',');
        let value: Vec<&str> = value.map(|value| value.trim_matches(is_mark)).collect();
        let value = Some(value.join(", ")).filter(|value| !value.is_empty());
        let field = match name.as_str() {
            "title" => &mut head.title,
            "author" | "authors" => &mut head.author,
            "description" | "summary" => &mut head.description,
            "keywords" | "tags" => &mut head.keywords,
            "date" | "published" | "created" => &mut head.published,
            "lastmod" | "updated" | "modified" | "last_modified_at" => &mut head.modified,
            "lang" | "language" => &mut head.language,
            _ => continue,
        };
        if field.is_none() {
            *field = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::to_html;
    use crate::limits::DocumentLimits;

    fn html(text: &str) -> String {
        to_html(text, &DocumentLimits::default(), None)
    }

    #[test]
    fn front_matter_has_title_dates_and_author() {
        let page = html(
            "---\ntitle: \"Tea, brewed\"\ndate: 2025-04-05\nauthors: [Ada, 'Bo']\nlang: en\ntags:\n  - x\n\
            ---\n# Another\n\nPour & wait.\n",
        );
        for part in [
            "<html lang=\"en\">",
            "<title>Tea, brewed</title>",
            "name=\"author\" content=\"Ada, Bo\"",
            "article:published_time\" content=\"2025-04-05\"",
            "<h1>Another</h1>\n<p>Pour &amp; wait.</p>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("keywords"), "{page}");
        assert!(!page.contains("authors:"), "{page}");
    }

    #[test]
    fn without_front_matter_the_first_heading_is_the_title() {
        let page = html("Words.\n\nThe *best* `tea`\n---\n\n| a | b |\n|---|---|\n| 1 | 2 |\n");
        assert!(page.contains("<title>The best tea</title>"), "{page}");
        assert!(page.contains("<td>2</td>"), "{page}");
    }

    #[test]
    fn deep_nesting_is_read_to_its_end() {
        let page = html(&format!("{}deep words", "> ".repeat(50_000)));
        assert!(page.contains("deep words"));
        let page = html(&format!("{}words", "[".repeat(50_000)));
        assert!(page.contains("words"));
    }
}
