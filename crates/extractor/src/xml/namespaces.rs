//! The namespaces of XML elements.

use quick_xml::events::BytesStart;

use super::unescaped;

/// Maximum number of namespace prefixes in scope at a time; further ones are ignored.
const MAX_BINDINGS: usize = 64;

/// The namespace of an element. Only namespaces that feeds use are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum XmlNamespace {
    /// No namespace, or one of the namespaces that some versions of RSS use for their own elements.
    None,
    Atom,
    Rdf,
    /// Dublin Core, for the dates in RSS 1.0.
    DublinCore,
    Other,
}

/// The namespace prefixes in scope.
#[derive(Default)]
pub(super) struct NamespaceBindings {
    /// The declared prefixes: each with its namespace, and the depth of the element that declares
    /// it.
    all: Vec<(String, XmlNamespace, usize)>,
}

impl NamespaceBindings {
    /// Records the namespace declarations of `tag`, for an element at `depth`.
    pub(super) fn enter(&mut self, tag: &BytesStart<'_>, depth: usize, attributes: usize) {
        if !tag.contains("xmlns") {
            return;
        }
        let mut attributes_of_tag = tag.html_attributes();
        let declarations = attributes_of_tag.with_checks(false).take(attributes);
        for attribute in declarations.filter_map(Result::ok) {
            let name = attribute.key.into_inner();
            let prefix = match name.strip_prefix("xmlns") {
                Some("") => "",
                Some(rest) => rest.strip_prefix(':').unwrap_or_default(),
                None => continue,
            };
            let has_room = prefix.len() <= 64 && self.all.len() < MAX_BINDINGS;
            if has_room && (name == "xmlns" || !prefix.is_empty()) {
                let space = space_named(&unescaped(&attribute.value));
                self.all.push((prefix.to_owned(), space, depth));
            }
        }
    }

    /// Drops the namespace declarations of elements at `depth` or deeper.
    pub(super) fn exit(&mut self, depth: usize) {
        while self.all.last().is_some_and(|(_, _, at)| *at >= depth) {
            self.all.pop();
        }
    }

    /// Returns the namespace of the element `name`. An undeclared prefix gets its usual meaning,
    /// for example Atom for `atom:`.
    pub(super) fn space_of(&self, name: &str) -> XmlNamespace {
        let prefix = name.split_once(':').map_or("", |(prefix, _)| prefix);
        let binding = self
            .all
            .iter()
            .rev()
            .find(|(declared, _, _)| declared == prefix);
        match (binding, prefix) {
            (Some((_, space, _)), _) => *space,
            (None, "") => XmlNamespace::None,
            (None, "atom") => XmlNamespace::Atom,
            (None, "rdf") => XmlNamespace::Rdf,
            (None, "dc" | "dcterms") => XmlNamespace::DublinCore,
            (None, _) => XmlNamespace::Other,
        }
    }
}

fn space_named(url: &str) -> XmlNamespace {
    match url.trim() {
        "http://www.w3.org/2005/Atom" | "http://purl.org/atom/ns#" => XmlNamespace::Atom,
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#" => XmlNamespace::Rdf,
        "http://purl.org/dc/elements/1.1/" | "http://purl.org/dc/terms/" => {
            XmlNamespace::DublinCore
        }
        ""
        | "http://purl.org/rss/1.0/"
        | "http://channel.netscape.com/rdf/simple/0.9/"
        | "http://my.netscape.com/rdf/simple/0.9/"
        | "http://backend.userland.com/rss2"
        | "http://backend.userland.com/RSS2"
        | "http://blogs.law.harvard.edu/tech/rss" => XmlNamespace::None,
        _ => XmlNamespace::Other,
    }
}

/// Returns a hash of a name (FNV-1a). A collision of two names has an effect only if an end tag has
/// to be repaired.
pub(super) fn fingerprint(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
