//! The kinds of tags, found by one look-up: most tags of a page are of none, and are passed over.

use super::name::{self, Name};

/// The kinds that the name of a tag has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TagKinds(u16);

impl TagKinds {
    /// The text behind its start tag is read without markup.
    pub(crate) const RAW: TagKinds = TagKinds(1);
    /// It begins a drawing or a formula.
    pub(crate) const FOREIGN: TagKinds = TagKinds(2);
    /// It says something of the page: its base, its title and such.
    pub(crate) const ABOUT_PAGE: TagKinds = TagKinds(4);
    /// It may hold links of HTML, by other attributes than `style`.
    pub(crate) const LINKS: TagKinds = TagKinds(8);
    /// It tells of what the page shows.
    pub(crate) const SHOWN: TagKinds = TagKinds(16);
    /// Its content may be inert.
    pub(crate) const TEMPLATE: TagKinds = TagKinds(32);
    /// It begins a new line, or a new cell: the words around it are two.
    pub(crate) const SEPARATES_WORDS: TagKinds = TagKinds(64);
    /// A part of a ruby: base text or a reading.
    pub(crate) const RUBY: TagKinds = TagKinds(128);
    /// Affects the text of a link.
    pub(crate) const IN_LINK: TagKinds = TagKinds(TagKinds::SEPARATES_WORDS.0 | TagKinds::RUBY.0);
    /// The text behind it is read in another way, or is not shown.
    pub(crate) const CHANGES_CONTEXT: TagKinds =
        TagKinds(TagKinds::RAW.0 | TagKinds::FOREIGN.0 | TagKinds::TEMPLATE.0);

    /// The kinds of the tags of that name.
    #[inline]
    pub(crate) fn of(name: Name) -> TagKinds {
        match &TABLE[place(name)] {
            (known, kinds) if *known == name => *kinds,
            _ => TagKinds(0),
        }
    }

    /// Returns whether any of these is among them.
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

/// The names that have a kind, each at a place of its own.
static TABLE: [(Name, TagKinds); 256] = {
    let mut table = [(Name::of(b""), TagKinds(0)); 256];
    let mut kind = 0;
    while kind < KINDS.len() {
        let (bit, names) = KINDS[kind];
        let mut at = 0;
        while at < names.len() {
            let (known, kinds) = &mut table[place(names[at])];
            let is_free = kinds.0 == 0 || known.is(names[at]);
            assert!(is_free, "two names share a place: take another factor");
            *known = names[at];
            kinds.0 |= bit.0;
            at += 1;
        }
        kind += 1;
    }
    table
};

/// By this factor no two of the names above have the same place.
const FACTOR: u64 = 0x72df_7047_c4a3_1057;

/// The place of a name in the table.
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
    fn ours_a_name_has_the_kinds_that_it_is_listed_with_and_no_others() {
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
    fn ours_each_element_with_an_attribute_for_addresses_may_hold_links() {
        let with_holders = TABLE.iter().filter(|(name, _)| holders(*name).is_some());
        assert!(
            with_holders
                .clone()
                .all(|(_, kinds)| kinds.is(TagKinds::LINKS))
        );
        assert_eq!(with_holders.count(), 20);
    }
}
