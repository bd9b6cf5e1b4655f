//! Links in the headers of a response.

use crate::link::{Link, LinkCollector, LinkElement, LinkKind, kind_of_link};
use crate::link_rel::Rel;
use crate::meta_refresh::refresh_target;
use crate::reading_limits::ReadingLimits;

/// Returns the links in the value of a `Link` header, parsed as in RFC 8288 appendix B. If a
/// response has several `Link` headers, call this function for each, or join their values with
/// commas.
///
/// URLs are relative to the URL of the requested page, not to its `base`. Skips links that the
/// header declares for another page (with `anchor`), as section 3.2 allows. Skips links beyond
/// [`ReadingLimits::links`] and [`ReadingLimits::resources`]. Never fails.
#[must_use]
pub fn link_header(value: &str, limits: &ReadingLimits) -> Vec<Link> {
    let mut links = LinkCollector::default();
    let mut parser = LinkHeaderParser { rest: value };
    while let Some(target) = parser.target() {
        let parameters = parser.parameters();
        let is_of_other_page = parameters
            .anchor
            .is_some_and(|anchor| !anchor.is_empty() && !anchor.starts_with('#'));
        let media_type = parameters.media_type.filter(|value| value.len() <= 255);
        let media_type = media_type.map(|value| value.to_ascii_lowercase());
        let rel = Rel::parse(&parameters.rel.unwrap_or_default());
        let kind = kind_of_link(rel, media_type.as_deref());
        if is_of_other_page || target.trim().is_empty() {
            continue;
        }
        if let Ok(href) = links.room(target, kind, limits) {
            let link = Link::new(href, LinkElement::Header, "link", kind);
            links.push(Link {
                rel,
                media_type,
                ..link
            });
        }
    }
    links.found
}

/// Returns the target of a `Refresh` header. `None` if the value has no target, or if the target is
/// longer than [`ReadingLimits::href_bytes`]. Browsers read the header like a `meta` refresh (HTML
/// Standard 4.2.5.3).
#[must_use]
pub fn refresh_header(value: &str, limits: &ReadingLimits) -> Option<Link> {
    let target = refresh_target(value)?;
    let href = LinkCollector::default()
        .room(target, LinkKind::Page, limits)
        .ok()?;
    Some(Link::new(
        href,
        LinkElement::Header,
        "refresh",
        LinkKind::Page,
    ))
}

/// The relevant parameters of one link. If a name occurs more than once, its first value counts.
#[derive(Default)]
struct LinkParameters {
    rel: Option<String>,
    anchor: Option<String>,
    media_type: Option<String>,
}

struct LinkHeaderParser<'a> {
    rest: &'a str,
}

impl<'a> LinkHeaderParser<'a> {
    /// Returns the next URL in angle brackets, and advances past it.
    fn target(&mut self) -> Option<&'a str> {
        loop {
            self.rest = self.rest.trim_start_matches(|c| is_blank(c) || c == ',');
            if let Some(inner) = self.rest.strip_prefix('<') {
                let (target, rest) = inner.split_once('>')?;
                self.rest = rest;
                return Some(target);
            }
            // This isn't a link, so skip to the next comma.
            self.rest = &self.rest[self.rest.find(',')?..];
        }
    }

    fn parameters(&mut self) -> LinkParameters {
        let mut parameters = LinkParameters::default();
        loop {
            self.skip_blanks();
            let Some(rest) = self.rest.strip_prefix(';') else {
                return parameters;
            };
            self.rest = rest;
            self.skip_blanks();
            let name = self.take_until(|c| is_blank(c) || matches!(c, '=' | ';' | ','));
            self.skip_blanks();
            let value = match self.rest.strip_prefix('=') {
                Some(rest) => {
                    self.rest = rest;
                    self.skip_blanks();
                    self.value()
                }
                None => String::new(),
            };
            let place = match name.to_ascii_lowercase().as_str() {
                "rel" => &mut parameters.rel,
                "anchor" => &mut parameters.anchor,
                "type" => &mut parameters.media_type,
                _ => continue,
            };
            place.get_or_insert(value);
        }
    }

    /// Reads a parameter's value: a token or a quoted string. Skips text between a quoted string
    /// and the next separator.
    fn value(&mut self) -> String {
        let Some(quoted) = self.rest.strip_prefix('"') else {
            return self
                .take_until(|c| matches!(c, ';' | ','))
                .trim_end_matches(is_blank)
                .to_owned();
        };
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        self.rest = "";
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.rest = &quoted[at + 1..];
                    break;
                }
                '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
                _ => value.push(character),
            }
        }
        self.take_until(|c| matches!(c, ';' | ','));
        value
    }

    fn take_until(&mut self, ends: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(is_blank);
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}
