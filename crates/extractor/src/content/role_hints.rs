//! Hints in an element's attributes about the role of its text.

use super::element_roles::ElementRole;
use crate::html::element_name::{self, ElementName};
use crate::html::is_hidden;
use crate::html::tokenizer::Tag;

/// Maximum bytes of one `class` or `id` to examine.
pub(super) const MAX_NAME_BYTES: usize = 512;

/// The attributes of a tag that hint at the role of its text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoleHints<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) class: Option<&'a str>,
    pub(super) role: Option<&'a str>,
    pub(super) itemprop: Option<&'a str>,
    pub(super) level: Option<&'a str>,
    pub(super) hidden: bool,
    /// Whether snippets must not contain the element's text (`data-nosnippet`).
    pub(super) nosnippet: bool,
}

impl<'a> RoleHints<'a> {
    pub(super) fn of(tag: &Tag<'a>) -> RoleHints<'a> {
        let get = |name| tag.attributes.get(name);
        let role: Option<&str> = get("role");
        RoleHints {
            id: get("id"),
            class: get("class"),
            role: role.and_then(|value| value.split_ascii_whitespace().next()),
            itemprop: get("itemprop"),
            level: get("aria-level"),
            hidden: is_hidden(tag)
                || get("class").is_some_and(|class| holds_line_numbers(tag.name, class)),
            // Search engines respect the attribute only on these elements.
            nosnippet: matches!(
                tag.name,
                element_name::DIV | element_name::SECTION | element_name::SPAN
            ) && get("data-nosnippet").is_some(),
        }
    }

    /// Returns the words in the class and the id.
    pub(super) fn words(self) -> impl Iterator<Item = &'a str> {
        [self.class, self.id]
            .into_iter()
            .flatten()
            .flat_map(|value| {
                let value = &value[..value.floor_char_boundary(MAX_NAME_BYTES)];
                value.split(|c: char| !c.is_ascii_alphanumeric())
            })
            .filter(|word| !word.is_empty())
    }
}

/// How clearly an element is marked as surroundings: menus, notices, comments and other text
/// outside the main text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SurroundingsHint {
    /// The element is not marked as surroundings.
    #[default]
    No,
    /// A form. This is a weak sign, because some sites put the whole page into a form.
    Form,
    /// A class or id that usually marks surroundings, but may have another meaning.
    Named,
    /// A class or id that marks readers' comments.
    Comments,
    /// A class or id that always marks surroundings, such as that of a cookie notice.
    Certain,
    /// An element or role that marks surroundings, such as `nav`.
    Element,
}

/// How clearly an element is marked as containing the main text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MainTextHint {
    #[default]
    No,
    /// An element that can be a part of the main text, but never all of it, such as `section`.
    Part,
    /// A class or id that marks the main text.
    Named,
    /// `article`.
    Article,
    /// `itemprop=articleBody`.
    Body,
    /// `main`.
    Main,
}

/// Returns how clearly an element is marked as surroundings, ignoring its id and a class equal to
/// the id. Use this if the id is derived from a heading, because then the id says nothing about the
/// element's role. `within` is true if the element is in a `main` or `article`.
pub(super) fn surround_without_id(
    part: ElementRole,
    traits: &RoleHints<'_>,
    within: bool,
) -> SurroundingsHint {
    let named = RoleHints {
        id: None,
        class: traits.class.filter(|class| Some(*class) != traits.id),
        ..*traits
    };
    judge(part, &named, within).0
}

/// Returns the letters and digits of an id or heading in lower case, without a leading number. If a
/// document generator derived an id from a heading, both have the same letters.
pub(super) fn letters(text: &str) -> Box<str> {
    let characters = text.chars().filter(|c| c.is_alphanumeric());
    let characters = characters.skip_while(char::is_ascii_digit);
    characters.flat_map(char::to_lowercase).collect()
}

/// Returns whether an id may be derived from a heading. Both must be results of [`letters`].
/// Ignores a number at the end of the id, because generators add one if two headings are equal.
pub(super) fn is_made_from(id: &str, heading: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    !heading.is_empty() && (id == heading || id.trim_end_matches(is_digit) == heading)
}

/// Returns whether a heading has several words. If it has a single word, an id that equals the word
/// may also be the name of a layout element.
pub(super) fn has_words(heading: &str) -> bool {
    let mut words = heading.split_whitespace();
    let mut words = words
        .by_ref()
        .filter(|word| word.contains(char::is_alphabetic));
    words.nth(1).is_some()
}

/// Returns how clearly an element is marked as surroundings, and how clearly as main text. `within`
/// is true if the element is in a `main` or `article`.
pub(super) fn judge(
    part: ElementRole,
    traits: &RoleHints<'_>,
    within: bool,
) -> (SurroundingsHint, MainTextHint) {
    if let Some(role) = traits.role.and_then(by_role) {
        return role;
    }
    if traits
        .itemprop
        .is_some_and(|value| value.eq_ignore_ascii_case("articleBody"))
    {
        return (SurroundingsHint::No, MainTextHint::Body);
    }
    match part {
        ElementRole::Page => (SurroundingsHint::No, MainTextHint::No),
        ElementRole::Main => (SurroundingsHint::No, MainTextHint::Main),
        ElementRole::Nav | ElementRole::Footer | ElementRole::Control | ElementRole::Dialog => {
            (SurroundingsHint::Element, MainTextHint::No)
        }
        ElementRole::Aside if within && is_note(traits) => {
            (SurroundingsHint::No, MainTextHint::Part)
        }
        ElementRole::Aside => (SurroundingsHint::Element, MainTextHint::No),
        ElementRole::Header if !within => (SurroundingsHint::Element, MainTextHint::No),
        ElementRole::Form => (
            by_name(traits).0.max(SurroundingsHint::Form),
            MainTextHint::No,
        ),
        _ => {
            // Ignore the id of a section within a text: it is usually derived from the section's
            // heading.
            let is_of_text = within && part == ElementRole::Section;
            let (surround, favour) = by_name(&RoleHints {
                id: traits.id.filter(|_| !is_of_text),
                ..*traits
            });
            let favour = match part {
                ElementRole::Article => favour.max(MainTextHint::Article),
                ElementRole::Plain | ElementRole::Cell | ElementRole::Table => favour,
                _ => MainTextHint::Part,
            };
            (surround, favour)
        }
    }
}

/// Returns whether an element is navigation (links to other pages) or a control, such as a search
/// form.
pub(super) fn is_navigation(part: ElementRole, traits: &RoleHints<'_>) -> bool {
    const ROLES: [&str; 8] = [
        "navigation",
        "search",
        "menu",
        "menubar",
        "toolbar",
        "tablist",
        "button",
        "directory",
    ];
    // DocBook gives these classes to its tables of links to the previous and the next page.
    const CLASSES: [&str; 2] = ["navheader", "navfooter"];
    match traits.role {
        Some(role) => ROLES.iter().any(|name| role.eq_ignore_ascii_case(name)),
        None => {
            matches!(part, ElementRole::Nav | ElementRole::Control)
                || traits.class.is_some_and(|class| CLASSES.contains(&class))
        }
    }
}

fn by_role(role: &str) -> Option<(SurroundingsHint, MainTextHint)> {
    const SURROUND: [&str; 14] = [
        "navigation",
        "banner",
        "contentinfo",
        "complementary",
        "search",
        "menu",
        "menubar",
        "toolbar",
        "tablist",
        "dialog",
        "alertdialog",
        "alert",
        "button",
        "directory",
    ];
    let is = |name: &&str| role.eq_ignore_ascii_case(name);
    if role.eq_ignore_ascii_case("main") {
        Some((SurroundingsHint::No, MainTextHint::Main))
    } else if role.eq_ignore_ascii_case("article") {
        Some((SurroundingsHint::No, MainTextHint::Article))
    } else {
        SURROUND
            .iter()
            .any(is)
            .then_some((SurroundingsHint::Element, MainTextHint::No))
    }
}

fn by_name(traits: &RoleHints<'_>) -> (SurroundingsHint, MainTextHint) {
    let (mut surround, mut favour) = (SurroundingsHint::No, MainTextHint::No);
    for value in [traits.class, traits.id].into_iter().flatten() {
        let value = &value.as_bytes()[..value.len().min(MAX_NAME_BYTES)];
        for word in value.split(|byte| !byte.is_ascii_alphanumeric()) {
            let (s, f) = of_word(word);
            (surround, favour) = (surround.max(s), favour.max(f));
        }
    }
    (surround, favour)
}

/// Words in the class or id of elements that are surroundings (menus, sidebars and the like).
const AROUND: [&str; 63] = [
    "nav",
    "navbar",
    "navi",
    "navigation",
    "navheader",
    "navfooter",
    "menu",
    "menubar",
    "submenu",
    "topbar",
    "breadcrumb",
    "breadcrumbs",
    "sidebar",
    "sidenav",
    "sphinxsidebar",
    "rail",
    "footer",
    "colophon",
    "masthead",
    "toc",
    "related",
    "recommended",
    "recommend",
    "recommendation",
    "recommendations",
    "teaser",
    "teasers",
    "outbrain",
    "taboola",
    "addthis",
    "recirc",
    "share",
    "sharing",
    "social",
    "promo",
    "advert",
    "advertisement",
    "ads",
    "ad",
    "sponsor",
    "sponsored",
    "newsletter",
    "subscribe",
    "signup",
    "pagination",
    "pager",
    "pagenav",
    "prevnext",
    "skip",
    "skiplink",
    "widget",
    "widgets",
    "trending",
    "popular",
    "mostread",
    "tagcloud",
    "blogroll",
    "toolbar",
    "copyright",
    "tags",
    "byline",
    "postmeta",
    "userinfo",
];
/// Words in the class or id of elements with readers' comments.
const COMMENTS: [&str; 12] = [
    "comments",
    "comment",
    "commentlist",
    "disqus",
    "responses",
    "comentarios",
    "commentaires",
    "kommentare",
    "kommentarer",
    "commenti",
    "reacties",
    "livefyre",
];
/// Words in the class or id of notices that cover a page.
const NOTICES: [&str; 9] = [
    "cookie", "cookies", "consent", "gdpr", "modal", "popup", "overlay", "lightbox", "paywall",
];
/// Words in the class or id of elements that contain the main text.
const TEXTS: [&str; 13] = [
    "content",
    "article",
    "entry",
    "post",
    "story",
    "prose",
    "markdown",
    "hentry",
    "maincontent",
    "mainbody",
    "bodytext",
    "articlebody",
    "documentwrapper",
];
/// The word in the class or id of an element that is only a part of the main text.
const PART: &str = "section";

/// The lengths of the words in `AROUND`, `COMMENTS`, `NOTICES`, `TEXTS` and `PART`, by their first
/// letter. Bit `n` is set if there is a word of `n` letters. A look-up in this table quickly rules
/// out most words of a class or id.
const LENGTHS: [u32; 26] = {
    let mut lengths = [0; 26];
    add_lengths(&mut lengths, &AROUND);
    add_lengths(&mut lengths, &COMMENTS);
    add_lengths(&mut lengths, &NOTICES);
    add_lengths(&mut lengths, &TEXTS);
    add_lengths(&mut lengths, &[PART]);
    lengths
};

const fn add_lengths(lengths: &mut [u32; 26], words: &[&str]) {
    let mut n = 0;
    while n < words.len() {
        let word = words[n].as_bytes();
        lengths[(word[0] - b'a') as usize] |= 1 << word.len();
        n += 1;
    }
}

/// Returns how clearly a word of a class or id marks its element as surroundings or as main text,
/// ignoring case.
fn of_word(word: &[u8]) -> (SurroundingsHint, MainTextHint) {
    let first = word.first().map(u8::to_ascii_lowercase);
    let lengths = first.and_then(|first| LENGTHS.get(usize::from(first.wrapping_sub(b'a'))));
    let length = u32::try_from(word.len()).unwrap_or(u32::MAX);
    if lengths.is_none_or(|lengths| lengths.checked_shr(length).unwrap_or(0) & 1 == 0) {
        return (SurroundingsHint::No, MainTextHint::No);
    }
    let is = |other: &&str| word.eq_ignore_ascii_case(other.as_bytes());
    if AROUND.iter().any(is) {
        (SurroundingsHint::Named, MainTextHint::No)
    } else if COMMENTS.iter().any(is) {
        (SurroundingsHint::Comments, MainTextHint::No)
    } else if NOTICES.iter().any(is) {
        (SurroundingsHint::Certain, MainTextHint::No)
    } else if TEXTS.iter().any(is) {
        (SurroundingsHint::No, MainTextHint::Named)
    } else if is(&PART) {
        (SurroundingsHint::No, MainTextHint::Part)
    } else {
        (SurroundingsHint::No, MainTextHint::No)
    }
}

/// Returns whether an `aside` is a remark that belongs to the text around it, such as a warning or
/// a tip.
fn is_note(traits: &RoleHints<'_>) -> bool {
    const NOTES: [&str; 9] = [
        "note",
        "admonition",
        "warning",
        "tip",
        "callout",
        "important",
        "caution",
        "info",
        "example",
    ];
    let mut words = traits.words();
    words.any(|word| NOTES.iter().any(|note| word.eq_ignore_ascii_case(note)))
}

/// Classes that mark the line numbers of code, for each element that may have them. On other
/// elements, these classes mark the code itself.
const LINE_NUMBERS: [(ElementName, &[&str]); 5] = [
    (
        element_name::TD,
        &[
            "blob-num",
            "gutter",
            "hljs-ln-numbers",
            "lineno",
            "linenos",
            "rouge-gutter",
        ],
    ),
    (
        element_name::SPAN,
        &[
            "hljs-ln-n",
            "line-number",
            "line-numbers-rows",
            "lineno",
            "linenos",
            "linenumber",
            "ln",
            "lnt",
        ],
    ),
    (element_name::A, &["lineno", "linenos"]),
    (element_name::DIV, &["linenodiv"]),
    (element_name::PRE, &["lineno", "src-line-numbers"]),
];

fn holds_line_numbers(name: ElementName, class: &str) -> bool {
    let Some((_, classes)) = LINE_NUMBERS.iter().find(|(element, _)| *element == name) else {
        return false;
    };
    let mut own = class.split_ascii_whitespace().take(16);
    own.any(|class| classes.iter().any(|name| class.eq_ignore_ascii_case(name)))
}
