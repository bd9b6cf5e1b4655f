//! Which attributes of which elements of HTML hold addresses.

use html5ever::{LocalName, local_name};

use crate::link::{Element, LinkKind};

/// An attribute that holds addresses.
pub(super) struct Holder {
    pub(super) attribute: &'static str,
    pub(super) kind: LinkKind,
    pub(super) holds: Holds,
}

/// How an attribute holds its addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Address,
    Srcset,
}

const fn resource(attribute: &'static str) -> Holder {
    Holder {
        attribute,
        kind: LinkKind::Resource,
        holds: Holds::Address,
    }
}

const fn srcset(attribute: &'static str) -> Holder {
    Holder {
        holds: Holds::Srcset,
        ..resource(attribute)
    }
}

const fn page(attribute: &'static str) -> Holder {
    Holder {
        kind: LinkKind::Page,
        ..resource(attribute)
    }
}

const CITE: &[Holder] = &[Holder {
    kind: LinkKind::Other,
    ..resource("cite")
}];
const IMG: &[Holder] = &[
    resource("src"),
    srcset("srcset"),
    resource("lowsrc"),
    page("longdesc"),
];
const SOURCE: &[Holder] = &[resource("src"), srcset("srcset")];
const VIDEO: &[Holder] = &[resource("src"), resource("poster")];
const SRC: &[Holder] = &[resource("src")];
const BACKGROUND: &[Holder] = &[resource("background")];

/// The element of that name, and those of its attributes that hold addresses whatever the
/// others say. `image` is `img` to a parser of HTML.
pub(super) fn holders(name: &LocalName) -> Option<(Element, &'static [Holder])> {
    Some(match *name {
        local_name!("img") | local_name!("image") => (Element::Img, IMG),
        local_name!("source") => (Element::Source, SOURCE),
        local_name!("video") => (Element::Video, VIDEO),
        local_name!("audio") => (Element::Audio, SRC),
        local_name!("bgsound") => (Element::Bgsound, SRC),
        local_name!("track") => (Element::Track, SRC),
        local_name!("script") => (Element::Script, SRC),
        local_name!("body") => (Element::Body, BACKGROUND),
        local_name!("table") => (Element::Table, BACKGROUND),
        local_name!("thead") => (Element::Thead, BACKGROUND),
        local_name!("tbody") => (Element::Tbody, BACKGROUND),
        local_name!("tfoot") => (Element::Tfoot, BACKGROUND),
        local_name!("tr") => (Element::Tr, BACKGROUND),
        local_name!("td") => (Element::Td, BACKGROUND),
        local_name!("th") => (Element::Th, BACKGROUND),
        local_name!("blockquote") => (Element::Blockquote, CITE),
        local_name!("q") => (Element::Q, CITE),
        local_name!("del") => (Element::Del, CITE),
        local_name!("ins") => (Element::Ins, CITE),
        _ => return None,
    })
}
