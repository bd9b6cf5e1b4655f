//! Names of XML elements and what they belong to.

use quick_xml::events::BytesStart;

use super::unescaped;

/// Namespaces that prefixes can stand for at the same time; others are not followed.
const MAX_BINDINGS: usize = 64;

/// The vocabulary of an element, of those that feeds are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// No namespace, or one that versions of RSS use for themselves.
    None,
    Atom,
    Rdf,
    /// Dublin Core, which tells the dates in RSS 1.0.
    DublinCore,
    Other,
}

/// The namespaces of the prefixes in force.
#[derive(Default)]
pub(super) struct Bindings {
    /// Prefix, what it stands for, and the depth of the element that says so.
    all: Vec<(String, Space, usize)>,
}

impl Bindings {
    /// Takes what `tag` says, of an element at `depth`.
    pub(super) fn enter(&mut self, tag: &BytesStart<'_>, depth: usize, attributes: usize) {
        if !tag.contains("xmlns") {
            return;
        }
        let mut found = tag.html_attributes();
        let found = found.with_checks(false).take(attributes);
        for attribute in found.filter_map(Result::ok) {
            let name = attribute.key.into_inner();
            let prefix = match name.strip_prefix("xmlns") {
                Some("") => "",
                Some(rest) => rest.strip_prefix(':').unwrap_or_default(),
                None => continue,
            };
            let known = prefix.len() <= 64 && self.all.len() < MAX_BINDINGS;
            if known && (name == "xmlns" || !prefix.is_empty()) {
                let space = space_named(&unescaped(&attribute.value));
                self.all.push((prefix.to_owned(), space, depth));
            }
        }
    }

    /// Forgets what was said at `depth`.
    pub(super) fn leave(&mut self, depth: usize) {
        while self.all.last().is_some_and(|(_, _, at)| *at >= depth) {
            self.all.pop();
        }
    }

    /// The vocabulary of an element of that name. A prefix that nobody declared means what it
    /// usually does.
    pub(super) fn space_of(&self, name: &str) -> Space {
        let prefix = name.split_once(':').map_or("", |(prefix, _)| prefix);
        let bound = self.all.iter().rev().find(|(known, _, _)| known == prefix);
        match (bound, prefix) {
            (Some((_, space, _)), _) => *space,
            (None, "") => Space::None,
            (None, "atom") => Space::Atom,
            (None, "rdf") => Space::Rdf,
            (None, "dc" | "dcterms") => Space::DublinCore,
            (None, _) => Space::Other,
        }
    }
}

fn space_named(url: &str) -> Space {
    match url.trim() {
        "http://www.w3.org/2005/Atom" | "http://purl.org/atom/ns#" => Space::Atom,
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#" => Space::Rdf,
        "http://purl.org/dc/elements/1.1/" | "http://purl.org/dc/terms/" => Space::DublinCore,
        ""
        | "http://purl.org/rss/1.0/"
        | "http://channel.netscape.com/rdf/simple/0.9/"
        | "http://my.netscape.com/rdf/simple/0.9/"
        | "http://backend.userland.com/rss2"
        | "http://backend.userland.com/RSS2"
        | "http://blogs.law.harvard.edu/tech/rss" => Space::None,
        _ => Space::Other,
    }
}

/// A number that tells names apart (FNV-1a); that two names share one is no harm.
pub(super) fn fingerprint(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
