//! The words of META ROBOTS and X-Robots-Tag, and the robots that they address.

use crawl_dates::{DatePrecision, TimeWithPrecision};

use crate::product_token::ProductToken;

/// A directive that has no value, such as `noindex`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValuelessDirective {
    All,
    None,
    Index,
    Noindex,
    Follow,
    Nofollow,
    Noarchive,
    Nosnippet,
    Noai,
    Noimageai,
}

/// A parsed directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ParsedDirective {
    Word(ValuelessDirective),
    MaxSnippet(i32),
    UnavailableAfter(i64),
}

const WORDS: [(&str, ValuelessDirective); 11] = [
    ("all", ValuelessDirective::All),
    ("none", ValuelessDirective::None),
    ("index", ValuelessDirective::Index),
    ("noindex", ValuelessDirective::Noindex),
    ("follow", ValuelessDirective::Follow),
    ("nofollow", ValuelessDirective::Nofollow),
    ("noarchive", ValuelessDirective::Noarchive),
    ("nocache", ValuelessDirective::Noarchive),
    ("nosnippet", ValuelessDirective::Nosnippet),
    ("noai", ValuelessDirective::Noai),
    ("noimageai", ValuelessDirective::Noimageai),
];

/// Parses a META's content. Accepts spaces instead of commas as separators.
pub(super) fn of_meta(content: &str) -> Vec<ParsedDirective> {
    let mut directives = Vec::new();
    let mut parts = content.split(',').map(str::trim);
    while let Some(part) = parts.next() {
        take_part(part, &mut parts, &mut directives);
    }
    directives
}

/// Parses the part of a header's value that addresses `agent`. The directives after a robot's name
/// and a colon are for this robot, up to the next name. Directives before the first name are for
/// all robots.
pub(super) fn of_header(value: &str, agent: &ProductToken) -> Vec<ParsedDirective> {
    let mut directives = Vec::new();
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
        let before = directives.len();
        take_part(rest, &mut parts, &mut directives);
        if !ours {
            directives.truncate(before);
        }
    }
    directives
}

/// Parses one part of a list that is split at commas. A date may contain commas, so it may continue
/// in the next parts.
fn take_part<'a>(
    part: &'a str,
    more: &mut (impl Iterator<Item = &'a str> + Clone),
    directives: &mut Vec<ParsedDirective>,
) {
    let Some((name, value)) = part.split_once(':') else {
        directives.extend(
            part.split_ascii_whitespace()
                .filter_map(word)
                .map(ParsedDirective::Word),
        );
        return;
    };
    let (name, value) = (name.trim(), value.trim());
    let directive = match name.to_ascii_lowercase().as_str() {
        "max-snippet" => limit(value).map(ParsedDirective::MaxSnippet),
        "unavailable_after" => moment_in(value, more).map(ParsedDirective::UnavailableAfter),
        _ => None,
    };
    directives.extend(directive);
}

/// Maximum commas in a time, as in `Thursday, March 5, 2020, 10:00 GMT`.
const MAX_COMMAS: usize = 3;

/// Parses a time that begins with `text`, and takes the parts of `more` that belong to it.
fn moment_in<'a>(text: &str, more: &mut (impl Iterator<Item = &'a str> + Clone)) -> Option<i64> {
    let mut text = text.to_owned();
    let mut seconds = moment(&text);
    let mut ahead = more.clone();
    for _ in 0..MAX_COMMAS {
        let Some(part) = ahead.next() else { break };
        text = format!("{text}, {part}");
        if let Some(longer) = moment(&text) {
            seconds = Some(longer);
            *more = ahead.clone();
        }
    }
    seconds
}

/// Parses a time to seconds since 1970. Returns `None` if the text is not a time or gives no day.
fn moment(text: &str) -> Option<i64> {
    let moment = TimeWithPrecision::parse(text)?;
    (moment.precision >= DatePrecision::Day).then_some(moment.unix_seconds)
}

/// Returns whether a directive of this name has a value. Also true for unsupported directives that
/// have values, so that their names are not taken for names of robots.
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

fn word(text: &str) -> Option<ValuelessDirective> {
    WORDS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text))
        .map(|&(_, word)| word)
}

fn limit(text: &str) -> Option<i32> {
    text.parse().ok().filter(|&n| n >= -1)
}
