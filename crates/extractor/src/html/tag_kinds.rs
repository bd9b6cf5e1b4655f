//! Classifies tags with one table look-up. Most tags of a page have no kind, and are ignored.

use super::name::{self, Name};

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
    /// The tag affects the outline of the page.
    pub(crate) const SHOWN: TagKinds = TagKinds(16);
    /// The tag is a `template`, whose content may be inert (not shown).
    pub(crate) const TEMPLATE: TagKinds = TagKinds(32);
    /// The tag begins a new line or cell, so the words before and after it are separate.
    pub(crate) const SEPARATES_WORDS: TagKinds = TagKinds(64);
    /// The tag is a part of a ruby: base text or a reading.
    pub(crate) const RUBY: TagKinds = TagKinds(128);
    /// The tag affects the text of a link.
    pub(crate) const IN_LINK: TagKinds = TagKinds(TagKinds::SEPARATES_WORDS.0 | TagKinds::RUBY.0);
    /// The tag hides the text after it, or changes how that text is read.
    pub(crate) const CHANGES_CONTEXT: TagKinds =
        TagKinds(TagKinds::RAW.0 | TagKinds::FOREIGN.0 | TagKinds::TEMPLATE.0);

    /// Returns the kinds of tags with this name.
    #[inline]
    pub(crate) fn of(name: Name) -> TagKinds {
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

const KINDS: [(TagKinds, &[Name]); 8] = [
    (
        TagKinds::RAW,
        &[
            name::SCRIPT,
            name::STYLE,
            name::XMP,
            name::IFRAME,
            name::NOEMBED,
            name::NOFRAMES,
            name::TITLE,
            name::TEXTAREA,
            name::PLAINTEXT,
        ],
    ),
    (TagKinds::FOREIGN, &[name::SVG, name::MATH]),
    (
        TagKinds::ABOUT_PAGE,
        &[name::LINK, name::BASE, name::META, name::TITLE, name::STYLE],
    ),
    (
        TagKinds::LINKS,
        &[
            name::A,
            name::APPLET,
            name::AREA,
            name::AUDIO,
            name::BGSOUND,
            name::BLOCKQUOTE,
            name::BODY,
            name::BUTTON,
            name::DEL,
            name::EMBED,
            name::FORM,
            name::FRAME,
            name::IFRAME,
            name::IMAGE,
            name::IMG,
            name::INPUT,
            name::INS,
            name::LINK,
            name::OBJECT,
            name::Q,
            name::SCRIPT,
            name::SOURCE,
            name::TABLE,
            name::TBODY,
            name::TD,
            name::TFOOT,
            name::TH,
            name::THEAD,
            name::TR,
            name::TRACK,
            name::VIDEO,
        ],
    ),
    (
        TagKinds::SHOWN,
        &[
            name::A,
            name::H1,
            name::IMG,
            name::INPUT,
            name::SCRIPT,
            name::STYLE,
            name::TEXTAREA,
            name::TITLE,
        ],
    ),
    (TagKinds::TEMPLATE, &[name::TEMPLATE]),
    (
        TagKinds::RUBY,
        &[name::RUBY, name::RB, name::RT, name::RTC, name::RP],
    ),
    (
        TagKinds::SEPARATES_WORDS,
        &[
            name::ARTICLE,
            name::BLOCKQUOTE,
            name::BR,
            name::DD,
            name::DIV,
            name::DL,
            name::DT,
            name::FIGCAPTION,
            name::FIGURE,
            name::FOOTER,
            name::H1,
            name::H2,
            name::H3,
            name::H4,
            name::H5,
            name::H6,
            name::HEADER,
            name::HR,
            name::LI,
            name::OL,
            name::OPTION,
            name::P,
            name::PRE,
            name::SECTION,
            name::TABLE,
            name::TD,
            name::TH,
            name::TR,
            name::UL,
        ],
    ),
];

/// The names that have a kind, each at the index that [`place`] returns for it.
static TABLE: [(Name, TagKinds); 256] = {
    let mut table = [(Name::of(b""), TagKinds(0)); 256];
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
const FACTOR: u64 = 0x72df_7047_c4a3_1057;

/// Returns the index of a name in the table.
#[inline]
const fn place(name: Name) -> usize {
    (name.number().wrapping_mul(FACTOR) >> 56) as usize
}

#[cfg(test)]
mod tests {
    use super::super::link_attributes::holders;
    use super::super::name::{self, Name};
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
            name::B,
            name::SPAN,
            Name::of(b""),
            Name::of(b"a\0"),
            Name::of(b"link-rel"),
        ] {
            assert_eq!(TagKinds::of(name), TagKinds(0), "{name:?}");
        }
    }

    #[test]
    fn each_element_with_an_address_attribute_has_the_kind_links() {
        let with_holders = TABLE.iter().filter(|(name, _)| holders(*name).is_some());
        assert!(
            with_holders
                .clone()
                .all(|(_, kinds)| kinds.is(TagKinds::LINKS))
        );
        assert_eq!(with_holders.count(), 20);
    }
}
