//! The outline of a page, as far as interstitials are told apart by it.

/// Letters of a title or heading that are kept.
const MAX_NAME: usize = 200;

/// The visible parts of a page, roughly. Names are in lower case.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outline {
    pub(super) title: String,
    /// Of the first `h1`.
    pub(super) heading: String,
    /// Fields for a password.
    pub(super) passwords: usize,
    /// Elements `a`.
    pub(super) links: usize,
    /// Letters of text outside of tags, without blanks.
    pub(super) letters: usize,
    /// All of it but comments, in lower case; scripts too.
    pub(super) markup: String,
}

/// Elements whose content is no text of the page.
const SILENT: [&str; 4] = ["script", "style", "template", "textarea"];

impl Outline {
    /// Reads once over the bytes, as UTF-8 where they are.
    pub(super) fn of(bytes: &[u8]) -> Outline {
        let html = String::from_utf8_lossy(bytes).to_lowercase();
        let mut outline = Outline::default();
        let mut inside: Option<&'static str> = None;
        let mut rest = html.as_str();
        while let Some(at) = rest.find('<') {
            outline.text(&rest[..at], inside);
            rest = &rest[at..];
            if let Some(comment) = rest.strip_prefix("<!--") {
                rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
                continue;
            }
            let tag = tag(rest);
            outline.markup.push_str(&rest[..tag.bytes]);
            rest = &rest[tag.bytes..];
            match tag.name {
                "title" if outline.title.is_empty() => inside = Some("title"),
                "h1" if outline.heading.is_empty() => inside = Some("h1"),
                "/title" | "/h1" => inside = None,
                "a" => outline.links += 1,
                "input" if attribute(tag.rest, "type") == Some("password") => {
                    outline.passwords += 1;
                }
                name => {
                    if let Some(element) = SILENT.into_iter().find(|known| *known == name) {
                        let end = rest.find(&format!("</{element}")).unwrap_or(rest.len());
                        outline.markup.push_str(&rest[..end]);
                        rest = &rest[end..];
                    }
                }
            }
        }
        outline.text(rest, inside);
        for name in [&mut outline.title, &mut outline.heading] {
            *name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        }
        outline
    }

    fn text(&mut self, text: &str, inside: Option<&str>) {
        self.markup.push_str(text);
        let name = match inside {
            Some("title") => Some(&mut self.title),
            Some(_) => Some(&mut self.heading),
            None => None,
        };
        if let Some(name) = name {
            let room = MAX_NAME.saturating_sub(name.chars().count());
            name.extend(text.chars().take(room));
        }
        if inside != Some("title") {
            self.letters += text.chars().filter(|c| !c.is_whitespace()).count();
        }
    }
}

/// A tag at the beginning of `html`.
struct Tag<'a> {
    /// With the slash of an end tag.
    name: &'a str,
    /// The text behind the name.
    rest: &'a str,
    /// All of it.
    bytes: usize,
}

fn tag(html: &str) -> Tag<'_> {
    let mut quote = None;
    let end = html.char_indices().skip(1).find(|(_, c)| match quote {
        Some(open) => {
            if *c == open {
                quote = None;
            }
            false
        }
        None => {
            // A quote opens a value only after `=`; elsewhere it is a letter.
            if matches!(c, '"' | '\'') {
                quote = Some(*c);
            }
            *c == '>'
        }
    });
    // A quote that is never closed would swallow the page.
    let end = end.map(|(at, _)| at).or_else(|| html.find('>'));
    let bytes = end.map_or(html.len(), |at| at + 1);
    let inner = html[1..bytes].trim_end_matches('>');
    let name = inner
        .find(|c: char| c.is_whitespace() || (c == '/'))
        .filter(|at| *at > 0)
        .unwrap_or(inner.len());
    let name = match inner.strip_prefix('/') {
        Some(end) => 1 + end.find(char::is_whitespace).unwrap_or(end.len()),
        None => name,
    };
    Tag {
        name: &inner[..name],
        rest: &inner[name..],
        bytes,
    }
}

/// The value of an attribute; the first of that name counts.
fn attribute<'a>(mut rest: &'a str, wanted: &str) -> Option<&'a str> {
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '=' | '/'))?;
        let name = &rest[..end];
        rest = rest[end..].trim_start();
        let Some(after) = rest.strip_prefix('=') else {
            if name.is_empty() {
                return None;
            }
            continue;
        };
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (value, left) = match quote {
            Some(quote) => after[1..].split_once(quote).unwrap_or((&after[1..], "")),
            None => {
                let end = after.find(char::is_whitespace).unwrap_or(after.len());
                after.split_at(end)
            }
        };
        if name == wanted {
            return Some(value.trim());
        }
        rest = left;
    }
}

#[cfg(test)]
mod tests {
    use super::{Outline, attribute};

    #[test]
    fn an_outline_has_what_a_person_sees() {
        let html = "<!doctype html><TITLE>A\n b</TITLE><!-- <input type=password> -->\
            <script>'<input type=password>'</script><h1 class='x>y'>Go <b>on</b></h1>\
            <a href=/>ab</a><input name=p TYPE = \"Password\"><p>cd";
        let outline = Outline::of(html.as_bytes());
        assert_eq!(
            (outline.title.as_str(), outline.heading.as_str()),
            ("a b", "go on")
        );
        assert_eq!(
            (outline.passwords, outline.links, outline.letters),
            (1, 1, 8)
        );
        assert!(!outline.markup.contains("<!--"));
    }

    #[test]
    fn attributes_are_read_as_written() {
        for (tag, expect) in [
            (" type=password", Some("password")),
            (" a b=c type='password' type=text", Some("password")),
            (" data-type=password", None),
            (" title='type=password'", None),
            ("/type=password/", Some("password/")),
            (" type", None),
            ("", None),
            ("=", None),
        ] {
            assert_eq!(attribute(tag, "type"), expect, "{tag}");
        }
    }

    #[test]
    fn broken_markup_ends_somewhere() {
        for html in [
            "<",
            "<a",
            "<a href='",
            "<!--",
            "<script>",
            "< >",
            "</",
            "<title>",
            "\u{0}<\u{ff}",
        ] {
            let _ = Outline::of(html.as_bytes());
        }
        let many = "<a href=\"".repeat(8_000);
        assert!(Outline::of(many.as_bytes()).links > 0);
    }
}
