//! The `rel` of a link: a set of link types.

use std::fmt;
use std::ops::BitOr;

/// A set of link types, such as that in a `rel` attribute. [`Rel::parse`] ignores case, and drops
/// link types that have no constant here.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Rel(u64);

macro_rules! link_types {
    ($($(#[$doc:meta])* $constant:ident = $bit:literal, $name:literal;)*) => {
        impl Rel {
            $($(#[$doc])* pub const $constant: Rel = Rel(1 << $bit);)*
        }
        const NAMES: &[(&str, Rel)] = &[$(($name, Rel::$constant),)*];
    };
}

link_types! {
    /// The page's author does not vouch for the target.
    NOFOLLOW = 0, "nofollow";
    /// User-generated content.
    UGC = 1, "ugc";
    /// A paid link.
    SPONSORED = 2, "sponsored";
    /// The preferred URL of this page.
    CANONICAL = 3, "canonical";
    /// Another form of this page: a language, a feed, a style sheet.
    ALTERNATE = 4, "alternate";
    /// The next page of a series.
    NEXT = 5, "next";
    /// The previous page of a series.
    PREV = 6, "prev";
    /// The first page of a series.
    FIRST = 7, "first";
    /// The last page of a series.
    LAST = 8, "last";
    /// The level above.
    UP = 9, "up";
    /// A table of contents.
    CONTENTS = 10, "contents";
    /// An index.
    INDEX = 11, "index";
    /// The start of a collection.
    START = 12, "start";
    /// Help.
    HELP = 13, "help";
    /// The licence.
    LICENSE = 14, "license";
    /// The author.
    AUTHOR = 15, "author";
    /// A permanent URL of a section.
    BOOKMARK = 16, "bookmark";
    /// A tag.
    TAG = 17, "tag";
    /// A short URL of this page.
    SHORTLINK = 18, "shortlink";
    /// The AMP form of this page.
    AMPHTML = 19, "amphtml";
    /// The same person elsewhere.
    ME = 20, "me";
    /// A style sheet.
    STYLESHEET = 21, "stylesheet";
    /// An icon.
    ICON = 22, "icon";
    /// An icon for a home screen.
    APPLE_TOUCH_ICON = 23, "apple-touch-icon";
    /// An icon in one colour.
    MASK_ICON = 24, "mask-icon";
    /// A resource that the page will need.
    PRELOAD = 25, "preload";
    /// A script module that the page will need.
    MODULEPRELOAD = 26, "modulepreload";
    /// A resource that the next page may need.
    PREFETCH = 27, "prefetch";
    /// A web application's manifest.
    MANIFEST = 28, "manifest";
    /// The target must get no access to this page.
    NOOPENER = 29, "noopener";
    /// The target must not learn the URL of this page.
    NOREFERRER = 30, "noreferrer";
    /// The target is on another site.
    EXTERNAL = 31, "external";
    /// A chapter (HTML 4).
    CHAPTER = 32, "chapter";
    /// A section (HTML 4).
    SECTION = 33, "section";
    /// A section within a section (HTML 4).
    SUBSECTION = 34, "subsection";
    /// An appendix (HTML 4).
    APPENDIX = 35, "appendix";
    /// A glossary (HTML 4).
    GLOSSARY = 36, "glossary";
    /// The top of a collection.
    TOP = 37, "top";
    /// The site's first page.
    HOME = 38, "home";
    /// A list of older pages.
    ARCHIVES = 39, "archives";
    /// A list of the site's pages.
    SITEMAP = 40, "sitemap";
    /// The terms of use.
    TERMS_OF_SERVICE = 41, "terms-of-service";
    /// The site's treatment of its readers' data.
    PRIVACY_POLICY = 42, "privacy-policy";
    /// A page that may be shown next.
    PRERENDER = 43, "prerender";
}

/// Old or alternative names of link types, each with the link type that is meant.
const ALIASES: &[(&str, Rel)] = &[
    ("previous", Rel::PREV),
    ("copyright", Rel::LICENSE),
    ("toc", Rel::CONTENTS),
    ("apple-touch-icon-precomposed", Rel::APPLE_TOUCH_ICON),
];

impl Rel {
    /// The link types of resources that a browser loads to show the page.
    pub(crate) const RESOURCES: Rel = union(&[
        Rel::STYLESHEET,
        Rel::ICON,
        Rel::APPLE_TOUCH_ICON,
        Rel::MASK_ICON,
        Rel::PRELOAD,
        Rel::MODULEPRELOAD,
        Rel::MANIFEST,
    ]);

    /// The link types of pages that a person could open.
    pub(crate) const PAGES: Rel = union(&[
        Rel::CANONICAL,
        Rel::ALTERNATE,
        Rel::NEXT,
        Rel::PREV,
        Rel::FIRST,
        Rel::LAST,
        Rel::UP,
        Rel::CONTENTS,
        Rel::INDEX,
        Rel::START,
        Rel::HELP,
        Rel::LICENSE,
        Rel::AUTHOR,
        Rel::BOOKMARK,
        Rel::TAG,
        Rel::SHORTLINK,
        Rel::AMPHTML,
        Rel::ME,
        Rel::CHAPTER,
        Rel::SECTION,
        Rel::SUBSECTION,
        Rel::APPENDIX,
        Rel::GLOSSARY,
        Rel::TOP,
        Rel::HOME,
        Rel::ARCHIVES,
        Rel::SITEMAP,
        Rel::TERMS_OF_SERVICE,
        Rel::PRIVACY_POLICY,
        Rel::PRERENDER,
    ]);

    /// Parses a list of link types, separated by white space. Commas separate types, too: Google
    /// documents `rel="ugc,nofollow"` ("Qualify your outbound links"), so sites write it.
    #[must_use]
    pub fn parse(value: &str) -> Rel {
        let types = || NAMES.iter().chain(ALIASES);
        value
            .split(|c: char| c.is_ascii_whitespace() || c == ',')
            .fold(Rel::default(), |set, token| {
                let listed = types().find(|(name, _)| name.eq_ignore_ascii_case(token));
                listed.map_or(set, |&(_, rel)| set | rel)
            })
    }

    /// Returns whether this set contains all types of `other`.
    #[must_use]
    pub fn contains(self, other: Rel) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether this set and `other` have a type in common.
    #[must_use]
    pub fn intersects(self, other: Rel) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

const fn union(sets: &[Rel]) -> Rel {
    let (mut all, mut at) = (0, 0);
    while at < sets.len() {
        all |= sets[at].0;
        at += 1;
    }
    Rel(all)
}

impl BitOr for Rel {
    type Output = Rel;

    fn bitor(self, other: Rel) -> Rel {
        Rel(self.0 | other.0)
    }
}

/// Writes the types in a fixed order, separated by one space.
impl fmt::Display for Rel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = NAMES.iter().filter(|(_, rel)| self.contains(*rel));
        for (position, (name, _)) in names.enumerate() {
            if position > 0 {
                f.write_str(" ")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Rel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rel({self})")
    }
}
