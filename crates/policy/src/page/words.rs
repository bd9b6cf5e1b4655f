//! The words of META ROBOTS and X-Robots-Tag, apart from whom they mean.

use crate::agent::ProductToken;
use crate::date::{is_weekday, unix_seconds};

/// A word without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    All,
    None,
    Index,
    Noindex,
    Follow,
    Nofollow,
    Noarchive,
    Nosnippet,
    Noimageindex,
    Notranslate,
    Indexifembedded,
    Noai,
    Noimageai,
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Word(Word),
    MaxSnippet(i32),
    MaxVideoPreview(i32),
    MaxImagePreview(&'static str),
    UnavailableAfter(i64),
}

/// The sizes of an image preview, the strictest first.
pub(super) const PREVIEWS: [&str; 3] = ["none", "standard", "large"];

const WORDS: [(&str, Word); 14] = [
    ("all", Word::All),
    ("none", Word::None),
    ("index", Word::Index),
    ("noindex", Word::Noindex),
    ("follow", Word::Follow),
    ("nofollow", Word::Nofollow),
    ("noarchive", Word::Noarchive),
    ("nocache", Word::Noarchive),
    ("nosnippet", Word::Nosnippet),
    ("noimageindex", Word::Noimageindex),
    ("notranslate", Word::Notranslate),
    ("indexifembedded", Word::Indexifembedded),
    ("noai", Word::Noai),
    ("noimageai", Word::Noimageai),
];

/// What a META's content says. Blanks in place of commas are forgiven.
pub(super) fn of_meta(content: &str) -> Vec<Said> {
    let mut said = Vec::new();
    let mut parts = content.split(',').map(str::trim);
    while let Some(part) = parts.next() {
        take_part(part, &mut parts, &mut said);
    }
    said
}

/// What a header's value says to `agent`. A robot's name with a colon governs all that
/// follows up to the next name; what stands before the first name is for all.
pub(super) fn of_header(value: &str, agent: &ProductToken) -> Vec<Said> {
    let mut said = Vec::new();
    let mut ours = true;
    let mut parts = value.split(',').map(str::trim);
    while let Some(part) = parts.next() {
        let mut rest = part;
        while let Some((name, behind)) = rest.split_once(':')
            && !is_valued(name.trim())
        {
            ours = name.trim().eq_ignore_ascii_case(agent.as_str());
            rest = behind.trim();
        }
        let before = said.len();
        take_part(rest, &mut parts, &mut said);
        if !ours {
            said.truncate(before);
        }
    }
    said
}

/// Reads one part of a list. A date that begins with its weekday goes on behind the comma.
fn take_part<'a>(part: &'a str, more: &mut impl Iterator<Item = &'a str>, said: &mut Vec<Said>) {
    let Some((name, value)) = part.split_once(':') else {
        said.extend(
            part.split_ascii_whitespace()
                .filter_map(word)
                .map(Said::Word),
        );
        return;
    };
    let (name, value) = (name.trim(), value.trim());
    let found = match name.to_ascii_lowercase().as_str() {
        "max-snippet" => limit(value).map(Said::MaxSnippet),
        "max-video-preview" => limit(value).map(Said::MaxVideoPreview),
        "max-image-preview" => PREVIEWS
            .into_iter()
            .find(|size| size.eq_ignore_ascii_case(value))
            .map(Said::MaxImagePreview),
        "unavailable_after" => match is_weekday(value) {
            true => more
                .next()
                .and_then(|date| unix_seconds(&format!("{value}, {date}"))),
            false => unix_seconds(value),
        }
        .map(Said::UnavailableAfter),
        _ => None,
    };
    said.extend(found);
}

fn is_valued(name: &str) -> bool {
    [
        "max-snippet",
        "max-video-preview",
        "max-image-preview",
        "unavailable_after",
    ]
    .iter()
    .any(|valued| valued.eq_ignore_ascii_case(name))
}

fn word(text: &str) -> Option<Word> {
    WORDS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text))
        .map(|&(_, word)| word)
}

fn limit(text: &str) -> Option<i32> {
    text.parse().ok().filter(|&n| n >= -1)
}
