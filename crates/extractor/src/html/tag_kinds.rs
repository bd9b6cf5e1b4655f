//! Classifies tags with one table look-up. Most tags of a page have no kind, and are ignored.

use super::element_name::{self, ElementName};

/// The kinds of a tag, which depend only on its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TagKinds(u16);

impl TagKinds {
    /// The text after the start tag contains no markup.
    pub(crate) const RAW: TagKinds = TagKinds(1);
    /// The tag begins a drawing or a formula.
    pub(crate) const FOREIGN: TagKinds = TagKinds(2);
    /// The tag contains metadata of the page, such as its base or title.
    pub(crate) const ABOUT_PAGE: TagKinds = TagKinds(4);
    /// The tag may contain HTML links in attributes other than `style`.
    pub(crate) const LINKS: TagKinds = TagKinds(8);
    /// The tag affects the [`VisibleContentCounts`](crate::VisibleContentCounts) of the page, or
    /// is passed to its observer.
    pub(crate) const SHOWN: TagKinds = TagKinds(16);
    /// The tag is a `template`, whose content may be inert (not shown).
    pub(crate) const TEMPLATE: TagKinds = TagKinds(32);
    /// The tag begins a new line or cell, so the words before and after it are separate.
    pub(crate) const SEPARATES_WORDS: TagKinds = TagKinds(64);
    /// The tag is a part of a ruby: base text or a reading.
    pub(crate) const RUBY: TagKinds = TagKinds(128);
    /// The element may contain a large part of the page, and requires an end tag.
    pub(crate) const CONTAINER: TagKinds = TagKinds(256);
    /// The tag affects the text of a link.
    pub(crate) const IN_LINK: TagKinds = TagKinds(TagKinds::SEPARATES_WORDS.0 | TagKinds::RUBY.0);
    /// The tag hides the text after it, or changes how that text is read.
    pub(crate) const CHANGES_CONTEXT: TagKinds =
        TagKinds(TagKinds::RAW.0 | TagKinds::FOREIGN.0 | TagKinds::TEMPLATE.0);

    /// Returns the kinds of tags with this name.
    #[inline]
    pub(crate) fn of(name: ElementName) -> TagKinds {
        match &TABLE[place(name)] {
            (listed, kinds) if *listed == name => *kinds,
            _ => TagKinds(0),
        }
    }

    /// Returns whether the tag has any of the kinds in `kind`.
    #[inline]
    pub(crate) fn is(self, kind: TagKinds) -> bool {
        self.0 & kind.0 != 0
    }
}

const KINDS: [(TagKinds, &[ElementName]); 9] = [
    (
        TagKinds::RAW,
        &[
            element_name::SCRIPT,
            element_name::STYLE,
            element_name::XMP,
            element_name::IFRAME,
            element_name::NOEMBED,
            element_name::NOFRAMES,
            element_name::TITLE,
            element_name::TEXTAREA,
            element_name::PLAINTEXT,
        ],
    ),
    (TagKinds::FOREIGN, &[element_name::SVG, element_name::MATH]),
    (
        TagKinds::ABOUT_PAGE,
        &[
            element_name::LINK,
            element_name::BASE,
            element_name::META,
            element_name::TITLE,
            element_name::STYLE,
        ],
    ),
    (
        TagKinds::LINKS,
        &[
            element_name::A,
            element_name::APPLET,
            element_name::AREA,
            element_name::AUDIO,
            element_name::BGSOUND,
            element_name::BLOCKQUOTE,
            element_name::BODY,
            element_name::BUTTON,
            element_name::DEL,
            element_name::EMBED,
            element_name::FORM,
            element_name::FRAME,
            element_name::IFRAME,
            element_name::IMAGE,
            element_name::IMG,
            element_name::INPUT,
            element_name::INS,
            element_name::LINK,
            element_name::OBJECT,
            element_name::Q,
            element_name::SCRIPT,
            element_name::SOURCE,
            element_name::TABLE,
            element_name::TBODY,
            element_name::TD,
            element_name::TFOOT,
            element_name::TH,
            element_name::THEAD,
            element_name::TR,
            element_name::TRACK,
            element_name::VIDEO,
        ],
    ),
    (
        TagKinds::SHOWN,
        &[
            element_name::A,
            element_name::H1,
            element_name::IMG,
            element_name::INPUT,
            element_name::SCRIPT,
            element_name::STYLE,
            element_name::TEXTAREA,
            element_name::TITLE,
        ],
    ),
    (TagKinds::TEMPLATE, &[element_name::TEMPLATE]),
    (
        TagKinds::RUBY,
        &[
            element_name::RUBY,
            element_name::RB,
            element_name::RT,
            element_name::RTC,
            element_name::RP,
        ],
    ),
    (
        TagKinds::SEPARATES_WORDS,
        &[
            element_name::ARTICLE,
            element_name::BLOCKQUOTE,
            element_name::BR,
            element_name::DD,
            element_name::DIV,
            element_name::DL,
            element_name::DT,
            element_name::FIGCAPTION,
            element_name::FIGURE,
            element_name::FOOTER,
            element_name::H1,
            element_name::H2,
            element_name::H3,
            element_name::H4,
            element_name::H5,
            element_name::H6,
            element_name::HEADER,
            element_name::HR,
            element_name::LI,
            element_name::OL,
            element_name::OPTION,
            element_name::P,
            element_name::PRE,
            element_name::SECTION,
            element_name::TABLE,
            element_name::TD,
            element_name::TH,
            element_name::TR,
            element_name::UL,
        ],
    ),
    (
        TagKinds::CONTAINER,
        &[
            element_name::ARTICLE,
            element_name::ASIDE,
            element_name::DIV,
            element_name::FOOTER,
            element_name::FORM,
            element_name::HEADER,
            element_name::MAIN,
            element_name::NAV,
            element_name::OL,
            element_name::SECTION,
            element_name::TABLE,
            element_name::UL,
        ],
    ),
];

/// The names that have a kind, each at the index that [`place`] returns for it.
static TABLE: [(ElementName, TagKinds); 256] = {
    let mut table = [(ElementName::of(b""), TagKinds(0)); 256];
    let mut kind = 0;
    while kind < KINDS.len() {
        let (bit, names) = KINDS[kind];
        let mut at = 0;
        while at < names.len() {
            let (entry, kinds) = &mut table[place(names[at])];
            let is_free = kinds.0 == 0 || entry.is(names[at]);
            assert!(is_free, "two names share a place: take another factor");
            *entry = names[at];
            kinds.0 |= bit.0;
            at += 1;
        }
        kind += 1;
    }
    table
};

/// With this factor, no two of the names have the same index in the table.
const FACTOR: u64 = 0xe029_927d_b599_960f;

/// Returns the index of a name in the table.
#[inline]
const fn place(name: ElementName) -> usize {
    (name.number().wrapping_mul(FACTOR) >> 56) as usize
}

#[cfg(test)]
mod tests {
    use super::super::element_name::{self, ElementName};
    use super::super::link_attributes::holders;
    use super::{KINDS, TABLE, TagKinds};

    #[test]
    fn a_name_has_exactly_the_kinds_it_is_listed_with() {
        for (_, names) in KINDS {
            for name in names {
                for (kind, names) in KINDS {
                    assert_eq!(
                        TagKinds::of(*name).is(kind),
                        names.contains(name),
                        "{name:?}"
                    );
                }
            }
        }
        for name in [
            element_name::B,
            element_name::SPAN,
            ElementName::of(b""),
            ElementName::of(b"a\0"),
            ElementName::of(b"link-rel"),
        ] {
            assert_eq!(TagKinds::of(name), TagKinds(0), "{name:?}");
        }
    }

    #[test]
    fn each_element_with_a_url_attribute_has_the_kind_links() {
        let with_holders = TABLE.iter().filter(|(name, _)| holders(*name).is_some());
        assert!(
            with_holders
                .clone()
                .all(|(_, kinds)| kinds.is(TagKinds::LINKS))
        );
        assert_eq!(with_holders.count(), 20);
    }
}
