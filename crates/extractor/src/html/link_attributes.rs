//! The HTML attributes that contain URLs.

use super::element_name::{self, ElementName};
use crate::link::{LinkElement, LinkKind};

/// An attribute that contains URLs.
pub(super) struct LinkAttribute {
    pub(super) attribute: &'static str,
    pub(super) kind: LinkKind,
    pub(super) holds: LinkAttributeSyntax,
}

/// The form of an attribute's value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkAttributeSyntax {
    Url,
    Srcset,
    /// A URL, or a description, if the author misunderstood the attribute.
    UrlOrProse,
}

const fn resource(attribute: &'static str) -> LinkAttribute {
    LinkAttribute {
        attribute,
        kind: LinkKind::Resource,
        holds: LinkAttributeSyntax::Url,
    }
}

const fn srcset(attribute: &'static str) -> LinkAttribute {
    LinkAttribute {
        holds: LinkAttributeSyntax::Srcset,
        ..resource(attribute)
    }
}

const fn page(attribute: &'static str) -> LinkAttribute {
    LinkAttribute {
        kind: LinkKind::Page,
        ..resource(attribute)
    }
}

const CITE: &[LinkAttribute] = &[LinkAttribute {
    kind: LinkKind::Other,
    ..resource("cite")
}];
const IMG: &[LinkAttribute] = &[
    resource("src"),
    srcset("srcset"),
    resource("lowsrc"),
    LinkAttribute {
        holds: LinkAttributeSyntax::UrlOrProse,
        ..page("longdesc")
    },
];
const SOURCE: &[LinkAttribute] = &[resource("src"), srcset("srcset")];
const VIDEO: &[LinkAttribute] = &[resource("src"), resource("poster")];
const SRC: &[LinkAttribute] = &[resource("src")];
const BACKGROUND: &[LinkAttribute] = &[resource("background")];

/// Returns the element with this name, and those of its attributes that contain URLs regardless of
/// its other attributes. An HTML parser reads `image` as `img`.
pub(super) fn holders(name: ElementName) -> Option<(LinkElement, &'static [LinkAttribute])> {
    Some(match name {
        element_name::IMG | element_name::IMAGE => (LinkElement::Img, IMG),
        element_name::SOURCE => (LinkElement::Source, SOURCE),
        element_name::VIDEO => (LinkElement::Video, VIDEO),
        element_name::AUDIO => (LinkElement::Audio, SRC),
        element_name::BGSOUND => (LinkElement::Bgsound, SRC),
        element_name::TRACK => (LinkElement::Track, SRC),
        element_name::SCRIPT => (LinkElement::Script, SRC),
        element_name::BODY => (LinkElement::Body, BACKGROUND),
        element_name::TABLE => (LinkElement::Table, BACKGROUND),
        element_name::THEAD => (LinkElement::Thead, BACKGROUND),
        element_name::TBODY => (LinkElement::Tbody, BACKGROUND),
        element_name::TFOOT => (LinkElement::Tfoot, BACKGROUND),
        element_name::TR => (LinkElement::Tr, BACKGROUND),
        element_name::TD => (LinkElement::Td, BACKGROUND),
        element_name::TH => (LinkElement::Th, BACKGROUND),
        element_name::BLOCKQUOTE => (LinkElement::Blockquote, CITE),
        element_name::Q => (LinkElement::Q, CITE),
        element_name::DEL => (LinkElement::Del, CITE),
        element_name::INS => (LinkElement::Ins, CITE),
        _ => return None,
    })
}
