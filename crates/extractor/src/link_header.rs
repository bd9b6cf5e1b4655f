//! Links in the headers of an answer.

use crate::limits::Limits;
use crate::link::{Element, Link, LinkKind, Links, kind_of_link};
use crate::refresh::refresh_target;
use crate::rel::Rel;

/// The links in the value of a `Link` header, parsed as RFC 8288 appendix B says; several
/// headers are read one by one, or joined by commas.
///
/// Addresses are relative to the page that was asked for, whatever its `base` says. A link
/// that speaks of another page (`anchor`) is left out, as section 3.2 allows; so are those
/// beyond [`Limits::links`] and [`Limits::resources`]. Never fails.
#[must_use]
pub fn link_header(value: &str, limits: &Limits) -> Vec<Link> {
    let mut links = Links::default();
    let mut parser = Parser { rest: value };
    while let Some(target) = parser.target() {
        let parameters = parser.parameters();
        let elsewhere = parameters
            .anchor
            .is_some_and(|anchor| !anchor.is_empty() && !anchor.starts_with('#'));
        let media_type = parameters.media_type.filter(|value| value.len() <= 255);
        let media_type = media_type.map(|value| value.to_ascii_lowercase());
        let rel = Rel::parse(&parameters.rel.unwrap_or_default());
        let kind = kind_of_link(rel, media_type.as_deref());
        if elsewhere || target.trim().is_empty() {
            continue;
        }
        if let Ok(href) = links.room(target, kind, limits) {
            let link = Link::new(href, Element::Header, "link", kind);
            links.push(Link {
                rel,
                media_type,
                ..link
            });
        }
    }
    links.found
}

/// The target of a `Refresh` header by its value, which browsers read like a `meta` that
/// refreshes (HTML Standard 4.2.5.3).
#[must_use]
pub fn refresh_header(value: &str, limits: &Limits) -> Option<Link> {
    let target = refresh_target(value)?;
    let href = Links::default().room(target, LinkKind::Page, limits).ok()?;
    Some(Link::new(href, Element::Header, "refresh", LinkKind::Page))
}

/// The parameters of one link that matter; of each, the first counts.
#[derive(Default)]
struct Parameters {
    rel: Option<String>,
    anchor: Option<String>,
    media_type: Option<String>,
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    /// The next address between angle brackets, and what stands behind it is next.
    fn target(&mut self) -> Option<&'a str> {
        loop {
            self.rest = self.rest.trim_start_matches(|c| is_blank(c) || c == ',');
            if let Some(inner) = self.rest.strip_prefix('<') {
                let (target, behind) = inner.split_once('>')?;
                self.rest = behind;
                return Some(target);
            }
            // No link stands here: on to the next comma.
            self.rest = &self.rest[self.rest.find(',')?..];
        }
    }

    fn parameters(&mut self) -> Parameters {
        let mut found = Parameters::default();
        loop {
            self.skip_blanks();
            let Some(behind) = self.rest.strip_prefix(';') else {
                return found;
            };
            self.rest = behind;
            self.skip_blanks();
            let name = self.take_until(|c| is_blank(c) || matches!(c, '=' | ';' | ','));
            self.skip_blanks();
            let value = match self.rest.strip_prefix('=') {
                Some(behind) => {
                    self.rest = behind;
                    self.skip_blanks();
                    self.value()
                }
                None => String::new(),
            };
            let place = match name.to_ascii_lowercase().as_str() {
                "rel" => &mut found.rel,
                "anchor" => &mut found.anchor,
                "type" => &mut found.media_type,
                _ => continue,
            };
            place.get_or_insert(value);
        }
    }

    /// A token, or a quoted string; what stands behind it up to the next separator is none's.
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
