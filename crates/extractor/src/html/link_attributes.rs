//! The HTML attributes that contain addresses.

use super::name::{self, Name};
use crate::link::{Element, LinkKind};

/// An attribute that contains addresses.
pub(super) struct Holder {
    pub(super) attribute: &'static str,
    pub(super) kind: LinkKind,
    pub(super) holds: Holds,
}

/// The content of an attribute's value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Address,
    Srcset,
    /// An address. Some authors misunderstand the attribute and write a description instead.
    AddressOrProse,
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
    Holder {
        holds: Holds::AddressOrProse,
        ..page("longdesc")
    },
];
const SOURCE: &[Holder] = &[resource("src"), srcset("srcset")];
const VIDEO: &[Holder] = &[resource("src"), resource("poster")];
const SRC: &[Holder] = &[resource("src")];
const BACKGROUND: &[Holder] = &[resource("background")];

/// Returns the element with this name, and its attributes that always contain addresses, whatever
/// its other attributes are. An HTML parser reads `image` as `img`.
pub(super) fn holders(name: Name) -> Option<(Element, &'static [Holder])> {
    Some(match name {
        name::IMG | name::IMAGE => (Element::Img, IMG),
        name::SOURCE => (Element::Source, SOURCE),
        name::VIDEO => (Element::Video, VIDEO),
        name::AUDIO => (Element::Audio, SRC),
        name::BGSOUND => (Element::Bgsound, SRC),
        name::TRACK => (Element::Track, SRC),
        name::SCRIPT => (Element::Script, SRC),
        name::BODY => (Element::Body, BACKGROUND),
        name::TABLE => (Element::Table, BACKGROUND),
        name::THEAD => (Element::Thead, BACKGROUND),
        name::TBODY => (Element::Tbody, BACKGROUND),
        name::TFOOT => (Element::Tfoot, BACKGROUND),
        name::TR => (Element::Tr, BACKGROUND),
        name::TD => (Element::Td, BACKGROUND),
        name::TH => (Element::Th, BACKGROUND),
        name::BLOCKQUOTE => (Element::Blockquote, CITE),
        name::Q => (Element::Q, CITE),
        name::DEL => (Element::Del, CITE),
        name::INS => (Element::Ins, CITE),
        _ => return None,
    })
}
