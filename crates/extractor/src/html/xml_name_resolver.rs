//! Resolves element names in XML syntax: prefixes and namespaces.

use super::element_name::{self, ElementName};
use super::tokenizer::Tag;

/// Maximum number of namespace declarations in scope at a time; further ones are ignored.
const MAX_BINDINGS: usize = 64;
/// Maximum bytes of a prefix; declarations of longer prefixes are ignored.
const MAX_PREFIX_BYTES: usize = 64;

/// The namespaces whose elements are read: XHTML, SVG and MathML.
const OF_A_PAGE: [&str; 4] = [
    "http://www.w3.org/1999/xhtml",
    "http://www.w3.org/2000/svg",
    "http://www.w3.org/1998/Math/MathML",
    // The empty namespace, declared with `xmlns=""`.
    "",
];

/// The name given to elements whose namespace is not in [`OF_A_PAGE`]. Such elements are ignored.
const FOREIGN: ElementName = ElementName::of(b"");

/// Resolves the names of tags by the namespace declarations (`xmlns`) in scope.
#[derive(Debug, Default)]
pub(super) struct XmlNameResolver {
    /// The declarations in scope, innermost last.
    bindings: Vec<PrefixBinding>,
    /// The open elements with declarations, outermost first.
    open: Vec<DeclaringElement>,
}

/// A prefix, and whether it is declared for one of the namespaces in [`OF_A_PAGE`].
#[derive(Debug)]
struct PrefixBinding {
    /// Empty for the default namespace.
    prefix: Box<str>,
    is_of_page: bool,
}

/// An open element that declares namespaces.
#[derive(Debug)]
struct DeclaringElement {
    /// The name as written, with its prefix.
    name: ElementName,
    /// The number of open elements with this name: this element, and those within it.
    count: u32,
    /// The number of declarations in scope outside this element.
    around: usize,
}

impl XmlNameResolver {
    /// Records a start tag. `written` is its name with the prefix. Returns the resolved name.
    pub(super) fn start(&mut self, tag: &Tag<'_>, written: &str) -> ElementName {
        let around = self.bindings.len();
        self.declare(tag);
        let meaning = self.meaning(tag.name, written);
        if tag.self_closing {
            self.bindings.truncate(around);
        } else if self.bindings.len() > around {
            self.open.push(DeclaringElement {
                name: tag.name,
                count: 1,
                around,
            });
        } else if let Some(innermost) = self.open.last_mut().filter(|open| open.name == tag.name) {
            innermost.count = innermost.count.saturating_add(1);
        }
        meaning
    }

    /// Records an end tag. `written` is its name with the prefix. Returns the resolved name.
    pub(super) fn end(&mut self, tag: &Tag<'_>, written: &str) -> ElementName {
        let meaning = self.meaning(tag.name, written);
        if let Some(place) = self.open.iter().rposition(|open| open.name == tag.name) {
            // Also end the elements within this one, whose end tags are missing.
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
            // A root element named `html` counts as XHTML, whatever namespace it declares.
            let is_root = prefix.is_empty() && tag.name == element_name::HTML;
            self.bindings.push(PrefixBinding {
                prefix: prefix.into(),
                is_of_page: is_root || OF_A_PAGE.contains(&attribute.value().trim()),
            });
        }
    }

    fn meaning(&self, name: ElementName, written: &str) -> ElementName {
        let (prefix, local) = written.split_once(':').unwrap_or(("", written));
        let mut bindings = self.bindings.iter().rev();
        let binding = bindings.find(|binding| *binding.prefix == *prefix);
        match binding {
            Some(binding) if !binding.is_of_page => FOREIGN,
            Some(_) if !prefix.is_empty() => ElementName::of(local.as_bytes()),
            // A name without a declared prefix stays as it is.
            _ => name,
        }
    }
}
