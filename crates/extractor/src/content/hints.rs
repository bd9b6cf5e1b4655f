//! Hints about text in the attributes of elements.

use super::elements::Part;
use crate::html::name::{self, Name};
use crate::html::tokenizer::Tag;

/// Bytes of one `class` or `id` that are looked at.
pub(super) const MAX_NAME_BYTES: usize = 512;

/// The attributes of a tag that matter here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traits<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) class: Option<&'a str>,
    pub(super) role: Option<&'a str>,
    pub(super) itemprop: Option<&'a str>,
    pub(super) level: Option<&'a str>,
    pub(super) hidden: bool,
}

impl<'a> Traits<'a> {
    pub(super) fn of(tag: &Tag<'a>) -> Traits<'a> {
        let get = |name| tag.attributes.get(name);
        let role: Option<&str> = get("role");
        Traits {
            id: get("id"),
            class: get("class"),
            role: role.and_then(|value| value.split_ascii_whitespace().next()),
            itemprop: get("itemprop"),
            level: get("aria-level"),
            hidden: get("hidden").is_some()
                || get("style").is_some_and(hides)
                || get("class").is_some_and(|class| holds_line_numbers(tag.name, class)),
        }
    }

    /// The words of the class and id.
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

/// The degree to which an element itself says that it surrounds the main text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Surround {
    /// Not at all.
    #[default]
    No,
    /// A form: some sites put the whole page into one.
    Form,
    /// By its class or id, which may mean anything.
    Named,
    /// Comments of readers.
    Comments,
    /// By its class or id, beyond doubt: a notice about cookies, say.
    Certain,
    /// By what the element is, or its role.
    Element,
}

/// The degree to which an element itself says that it holds the main text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Favour {
    #[default]
    No,
    /// A part of a text: never the whole.
    Part,
    /// By its class or id.
    Named,
    /// `article`.
    Article,
    /// `itemprop=articleBody`.
    Body,
    /// `main`.
    Main,
}

/// The degree to which an element surrounds the main text, its id apart: what is left of it
/// where a generator made the id from a heading, and perhaps the class from the id.
pub(super) fn surround_without_id(part: Part, traits: &Traits<'_>, within: bool) -> Surround {
    let named = Traits {
        id: None,
        class: traits.class.filter(|class| Some(*class) != traits.id),
        ..*traits
    };
    judge(part, &named, within).0
}

/// The letters and digits of an id or heading in lower case, without a number before them:
/// generators of documents make an id from a heading by these.
pub(super) fn letters(text: &str) -> Box<str> {
    let kept = text.chars().filter(|c| c.is_alphanumeric());
    let kept = kept.skip_while(char::is_ascii_digit);
    kept.flat_map(char::to_lowercase).collect()
}

/// Returns whether an id may be made from a heading, by the [`letters`] of both: where two
/// headings are alike, the second id has a number behind.
pub(super) fn is_made_from(id: &str, heading: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    !heading.is_empty() && (id == heading || id.trim_end_matches(is_digit) == heading)
}

/// Returns whether a heading has several words: an id of one may also name a part that pages are
/// built of.
pub(super) fn has_words(heading: &str) -> bool {
    let mut words = heading.split_whitespace();
    let mut words = words
        .by_ref()
        .filter(|word| word.contains(char::is_alphabetic));
    words.nth(1).is_some()
}

/// The role that an element gives its text. `within`: it stands in a `main` or `article`.
pub(super) fn judge(part: Part, traits: &Traits<'_>, within: bool) -> (Surround, Favour) {
    if let Some(role) = traits.role.and_then(by_role) {
        return role;
    }
    if traits
        .itemprop
        .is_some_and(|value| value.eq_ignore_ascii_case("articleBody"))
    {
        return (Surround::No, Favour::Body);
    }
    match part {
        Part::Page => (Surround::No, Favour::No),
        Part::Main => (Surround::No, Favour::Main),
        Part::Nav | Part::Footer | Part::Control | Part::Dialog => (Surround::Element, Favour::No),
        Part::Aside if within && is_note(traits) => (Surround::No, Favour::Part),
        Part::Aside => (Surround::Element, Favour::No),
        Part::Header if !within => (Surround::Element, Favour::No),
        Part::Form => (by_name(traits).0.max(Surround::Form), Favour::No),
        _ => {
            // A section of the text has its id from its heading.
            let is_of_text = within && part == Part::Section;
            let (surround, favour) = by_name(&Traits {
                id: traits.id.filter(|_| !is_of_text),
                ..*traits
            });
            let favour = match part {
                Part::Article => favour.max(Favour::Article),
                Part::Plain | Part::Cell | Part::Table => favour,
                _ => Favour::Part,
            };
            (surround, favour)
        }
    }
}

/// Returns whether an element says that it leads to other pages, or is there to be clicked at.
pub(super) fn is_navigation(part: Part, traits: &Traits<'_>) -> bool {
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
    // DocBook's tables of links to the pages before and after.
    const CLASSES: [&str; 2] = ["navheader", "navfooter"];
    match traits.role {
        Some(role) => ROLES.iter().any(|known| role.eq_ignore_ascii_case(known)),
        None => {
            matches!(part, Part::Nav | Part::Control)
                || traits.class.is_some_and(|class| CLASSES.contains(&class))
        }
    }
}

fn by_role(role: &str) -> Option<(Surround, Favour)> {
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
        Some((Surround::No, Favour::Main))
    } else if role.eq_ignore_ascii_case("article") {
        Some((Surround::No, Favour::Article))
    } else {
        SURROUND
            .iter()
            .any(is)
            .then_some((Surround::Element, Favour::No))
    }
}

fn by_name(traits: &Traits<'_>) -> (Surround, Favour) {
    let (mut surround, mut favour) = (Surround::No, Favour::No);
    for value in [traits.class, traits.id].into_iter().flatten() {
        let value = &value.as_bytes()[..value.len().min(MAX_NAME_BYTES)];
        for word in value.split(|byte| !byte.is_ascii_alphanumeric()) {
            let (s, f) = of_word(word);
            (surround, favour) = (surround.max(s), favour.max(f));
        }
    }
    (surround, favour)
}

/// Words in names of what stands around a text.
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
/// Of what readers wrote.
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
/// Of what stands before a page.
const NOTICES: [&str; 9] = [
    "cookie", "cookies", "consent", "gdpr", "modal", "popup", "overlay", "lightbox", "paywall",
];
/// Of what holds a text.
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
/// Of a part of it.
const PART: &str = "section";

/// For each first letter the lengths that such words have, as bits: most words of names have
/// another one.
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

/// Returns what a word of a name, of whatever case, says of its element.
fn of_word(word: &[u8]) -> (Surround, Favour) {
    let first = word.first().map(u8::to_ascii_lowercase);
    let lengths = first.and_then(|first| LENGTHS.get(usize::from(first.wrapping_sub(b'a'))));
    let length = u32::try_from(word.len()).unwrap_or(u32::MAX);
    if lengths.is_none_or(|lengths| lengths.checked_shr(length).unwrap_or(0) & 1 == 0) {
        return (Surround::No, Favour::No);
    }
    let is = |known: &&str| word.eq_ignore_ascii_case(known.as_bytes());
    if AROUND.iter().any(is) {
        (Surround::Named, Favour::No)
    } else if COMMENTS.iter().any(is) {
        (Surround::Comments, Favour::No)
    } else if NOTICES.iter().any(is) {
        (Surround::Certain, Favour::No)
    } else if TEXTS.iter().any(is) {
        (Surround::No, Favour::Named)
    } else if is(&PART) {
        (Surround::No, Favour::Part)
    } else {
        (Surround::No, Favour::No)
    }
}

/// Returns whether an `aside` is a remark that belongs to the text.
fn is_note(traits: &Traits<'_>) -> bool {
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

/// Classes of elements that hold the numbers of lines of code, by the elements that have them.
/// Others mark the code itself.
const LINE_NUMBERS: [(Name, &[&str]); 5] = [
    (
        name::TD,
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
        name::SPAN,
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
    (name::A, &["lineno", "linenos"]),
    (name::DIV, &["linenodiv"]),
    (name::PRE, &["lineno", "src-line-numbers"]),
];

fn holds_line_numbers(name: Name, class: &str) -> bool {
    let Some((_, known)) = LINE_NUMBERS.iter().find(|(known, _)| *known == name) else {
        return false;
    };
    let mut classes = class.split_ascii_whitespace().take(16);
    classes.any(|class| known.iter().any(|name| class.eq_ignore_ascii_case(name)))
}

/// Returns whether a `style` attribute hides its element.
fn hides(style: &str) -> bool {
    style.split(';').take(32).any(|declaration| {
        let (name, value) = declaration.split_once(':').unwrap_or_default();
        let is = |value: &str, known: &str| {
            let value = value.trim();
            value
                .get(..known.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(known))
        };
        let name = name.trim();
        (name.eq_ignore_ascii_case("display") && is(value, "none"))
            || (name.eq_ignore_ascii_case("visibility") && is(value, "hidden"))
    })
}
