//! The names of elements in XML's syntax: prefixes and the vocabularies that they stand for.

use super::name::{self, Name};
use super::tokenizer::Tag;

/// Declarations of vocabularies in force at the same time; others are not followed.
const MAX_BINDINGS: usize = 64;
/// Bytes of a prefix that is known.
const MAX_PREFIX_BYTES: usize = 64;

/// The vocabularies whose elements are those of a page: XHTML, and drawings and formulas within.
const OF_A_PAGE: [&str; 4] = [
    "http://www.w3.org/1999/xhtml",
    "http://www.w3.org/2000/svg",
    "http://www.w3.org/1998/Math/MathML",
    // No vocabulary: a page that forgot to name it.
    "",
];

/// The name of elements that are of no page's vocabulary.
const FOREIGN: Name = Name::of(b"");

/// Finds the name of each tag by the declarations (`xmlns`) in force.
#[derive(Debug, Default)]
pub(super) struct XmlNames {
    /// The declarations in force, innermost last.
    bindings: Vec<Binding>,
    /// The open elements with declarations, outermost first.
    open: Vec<Declaring>,
}

/// A prefix and whether it stands for a vocabulary of pages.
#[derive(Debug)]
struct Binding {
    /// Empty for the default.
    prefix: Box<str>,
    is_of_page: bool,
}

/// An open element that declares vocabularies.
#[derive(Debug)]
struct Declaring {
    /// The name as written, with its prefix.
    name: Name,
    /// The open elements of that name, with itself.
    count: u32,
    /// The number of bindings outside of it.
    around: usize,
}

impl XmlNames {
    /// Takes a start tag, `written` with its prefix. Returns the name that it means.
    pub(super) fn start(&mut self, tag: &Tag<'_>, written: &str) -> Name {
        let around = self.bindings.len();
        self.declare(tag);
        let meaning = self.meaning(tag.name, written);
        if tag.self_closing {
            self.bindings.truncate(around);
        } else if self.bindings.len() > around {
            self.open.push(Declaring {
                name: tag.name,
                count: 1,
                around,
            });
        } else if let Some(innermost) = self.open.last_mut().filter(|open| open.name == tag.name) {
            innermost.count = innermost.count.saturating_add(1);
        }
        meaning
    }

    /// Takes an end tag, `written` with its prefix. Returns the name that it means.
    pub(super) fn end(&mut self, tag: &Tag<'_>, written: &str) -> Name {
        let meaning = self.meaning(tag.name, written);
        if let Some(place) = self.open.iter().rposition(|open| open.name == tag.name) {
            // Elements within whose end tags are missing end too.
            self.open.truncate(place + 1);
            let ended = &mut self.open[place];
            ended.count -= 1;
            let around = ended.around;
            if ended.count == 0 {
                self.bindings.truncate(around);
                self.open.pop();
            }
        }
        meaning
    }

    fn declare(&mut self, tag: &Tag<'_>) {
        for attribute in tag.attributes.iter() {
            let prefix = match attribute.name().strip_prefix("xmlns") {
                Some("") => "",
                Some(rest) => match rest.strip_prefix(':') {
                    Some(prefix) if !prefix.is_empty() => prefix,
                    _ => continue,
                },
                None => continue,
            };
            if prefix.len() > MAX_PREFIX_BYTES || self.bindings.len() >= MAX_BINDINGS {
                continue;
            }
            // A root `html` is a page, whatever vocabulary it wrote down.
            let is_root = prefix.is_empty() && tag.name == name::HTML;
            self.bindings.push(Binding {
                prefix: prefix.into(),
                is_of_page: is_root || OF_A_PAGE.contains(&attribute.value().trim()),
            });
        }
    }

    fn meaning(&self, name: Name, written: &str) -> Name {
        let (prefix, local) = written.split_once(':').unwrap_or(("", written));
        let mut bindings = self.bindings.iter().rev();
        let binding = bindings.find(|binding| *binding.prefix == *prefix);
        match binding {
            Some(binding) if !binding.is_of_page => FOREIGN,
            Some(_) if !prefix.is_empty() => Name::of(local.as_bytes()),
            // Without a declaration, a name with a prefix is one of its own.
            _ => name,
        }
    }
}
