//! Which documents the operator wants, by type, size and language.

use std::fmt;
use std::str::FromStr;

/// The operator's filter on responses. The default accepts every document.
///
/// ```
/// use crawl_scope::ContentFilter;
///
/// let filter = ContentFilter {
///     types: vec!["image/*".parse()?],
///     max_size: Some(1_000),
///     ..ContentFilter::default()
/// };
/// assert_eq!(filter.of_type("Image/PNG; q=1"), None);
/// let page = filter.of_type("text/html").unwrap();
/// assert_eq!(page.to_string(), "content-type text/html");
/// assert_eq!(filter.too_long(1_001).unwrap().to_string(), "max-size 1000");
/// # Ok::<(), crawl_scope::BadMediaRange>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentFilter {
    /// Accepted media types. If not empty, a document's type must match an entry.
    pub types: Vec<MediaRange>,
    /// Minimum size of a body, in bytes.
    pub min_size: u64,
    /// Maximum size of a body, in bytes.
    pub max_size: Option<u64>,
    /// Accepted languages. If not empty, a page's language must match an entry.
    pub languages: Vec<LanguageRange>,
}

/// The reason why a document is unwanted. `Display` formats it in the form used in rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnwantedReason {
    /// The media type matches none of [`ContentFilter::types`]. Contains the media type.
    Type(String),
    /// The body is shorter than the minimum. Contains the minimum, in bytes.
    TooShort(u64),
    /// The body is longer than the maximum. Contains the maximum, in bytes.
    TooLong(u64),
    /// The language matches none of [`ContentFilter::languages`]. Contains the language.
    Language(String),
    /// Only the status of the document was requested, with HEAD.
    Body,
}

impl ContentFilter {
    /// Returns whether the filter accepts every document.
    #[must_use]
    pub fn wants_all(&self) -> bool {
        *self == ContentFilter::default()
    }

    /// Judges the value of a `Content-Type` field, ignoring its parameters. Returns `None` if the
    /// type is wanted.
    #[must_use]
    pub fn of_type(&self, content_type: &str) -> Option<UnwantedReason> {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let is_wanted =
            self.types.is_empty() || self.types.iter().any(|range| range.holds(essence));
        (!is_wanted).then(|| UnwantedReason::Type(essence.to_ascii_lowercase()))
    }

    /// Judges the length of a complete body. Returns `None` if the body is long enough.
    #[must_use]
    pub fn too_short(&self, bytes: u64) -> Option<UnwantedReason> {
        (bytes < self.min_size).then_some(UnwantedReason::TooShort(self.min_size))
    }

    /// Judges the length of a body, or of the part received so far. Returns `None` if it is not too
    /// long.
    #[must_use]
    pub fn too_long(&self, bytes: u64) -> Option<UnwantedReason> {
        let max = self.max_size.filter(|max| bytes > *max)?;
        Some(UnwantedReason::TooLong(max))
    }

    /// Judges a language tag (BCP 47). Returns `None` if the language is wanted.
    #[must_use]
    pub fn of_language(&self, tag: &str) -> Option<UnwantedReason> {
        let mut ranges = self.languages.iter();
        let is_wanted = self.languages.is_empty() || ranges.any(|range| range.holds(tag));
        (!is_wanted).then(|| UnwantedReason::Language(tag.to_owned()))
    }
}

impl fmt::Display for UnwantedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnwantedReason::Type(essence) => write!(f, "content-type {essence}"),
            UnwantedReason::TooShort(min) => write!(f, "min-size {min}"),
            UnwantedReason::TooLong(max) => write!(f, "max-size {max}"),
            UnwantedReason::Language(tag) => write!(f, "language {tag}"),
            UnwantedReason::Body => f.write_str("off-scope-method head"),
        }
    }
}

/// A media type, or all types of a kind, written as in an `Accept` header: `text/html`, `image/*`,
/// `*/*` (RFC 9110 section 12.5.1). Case-insensitive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaRange {
    kind: String,
    /// The subtype. `None` matches every subtype.
    subtype: Option<String>,
}

/// The text is neither a media type nor a range of media types.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` isn't a media type")]
pub struct BadMediaRange(pub String);

impl MediaRange {
    fn holds(&self, essence: &str) -> bool {
        let (kind, subtype) = essence.split_once('/').unwrap_or((essence, ""));
        let is_kind = self.kind == "*" || self.kind.eq_ignore_ascii_case(kind);
        let wanted = self.subtype.as_deref();
        is_kind && wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(subtype))
    }
}

impl FromStr for MediaRange {
    type Err = BadMediaRange;

    fn from_str(text: &str) -> Result<MediaRange, BadMediaRange> {
        // Whether a text is a token (RFC 9110 section 5.6.2) without `*`, which is reserved for
        // ranges.
        let is_token = |text: &str| {
            let is_byte = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'+-.^_`|~".contains(&b);
            !text.is_empty() && text.bytes().all(is_byte)
        };
        let lower = text.to_ascii_lowercase();
        let (kind, subtype) = match lower.split_once('/') {
            Some(("*", "*")) => ("*", None),
            Some((kind, "*")) if is_token(kind) => (kind, None),
            Some((kind, subtype)) if is_token(kind) && is_token(subtype) => (kind, Some(subtype)),
            _ => return Err(BadMediaRange(text.to_owned())),
        };
        Ok(MediaRange {
            kind: kind.to_owned(),
            subtype: subtype.map(str::to_owned),
        })
    }
}

impl fmt::Display for MediaRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}",
            self.kind,
            self.subtype.as_deref().unwrap_or("*")
        )
    }
}

/// A basic language range (RFC 4647 section 2.1): `de` matches `de`, `de-AT` and `de-Latn-DE`; `*`
/// matches every tag. Case-insensitive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanguageRange(String);

/// The text is not a language range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` isn't a language range")]
pub struct BadLanguageRange(pub String);

impl LanguageRange {
    /// Returns whether the range matches a tag by basic filtering (RFC 4647 section 3.3.1).
    fn holds(&self, tag: &str) -> bool {
        let range = self.0.as_str();
        let Some((head, rest)) = tag.split_at_checked(range.len()) else {
            return range == "*";
        };
        range == "*"
            || head.eq_ignore_ascii_case(range) && (rest.is_empty() || rest.starts_with('-'))
    }
}

impl FromStr for LanguageRange {
    type Err = BadLanguageRange;

    fn from_str(text: &str) -> Result<LanguageRange, BadLanguageRange> {
        let mut subtags = text.split('-');
        let fits = |subtag: &str| (1..=8).contains(&subtag.len());
        let first = subtags.next().unwrap_or_default();
        let is_first = fits(first) && first.bytes().all(|byte| byte.is_ascii_alphabetic());
        let is_rest =
            |subtag: &str| fits(subtag) && subtag.bytes().all(|byte| byte.is_ascii_alphanumeric());
        match text == "*" || is_first && subtags.all(is_rest) {
            true => Ok(LanguageRange(text.to_owned())),
            false => Err(BadLanguageRange(text.to_owned())),
        }
    }
}

impl fmt::Display for LanguageRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{ContentFilter, LanguageRange, MediaRange};

    #[test]
    fn rfc9110_12_5_1_a_media_range_is_a_type_or_all_of_a_kind() {
        for (range, types) in [
            (
                "text/html",
                "+text/html +TEXT/HTML;charset=utf-8 -text/plain -text -",
            ),
            (
                "image/*",
                "+image/png +image/svg+xml -imagery/png -text/html",
            ),
            ("*/*", "+text/html +image/png +nonsense"),
        ] {
            let filter = ContentFilter {
                types: vec![range.to_uppercase().parse().unwrap()],
                ..ContentFilter::default()
            };
            for found in types.split(' ') {
                let (wanted, found) = found.split_at(1);
                assert_eq!(
                    filter.of_type(found).is_none(),
                    wanted == "+",
                    "{range} {found}"
                );
            }
            let read: MediaRange = range.parse().unwrap();
            assert_eq!(read.to_string(), range);
        }
        for bad in [
            "",
            "text",
            "*/html",
            "text/",
            "/html",
            "text/html; q=1",
            "a b/c",
            "a/b/c",
        ] {
            assert!(bad.parse::<MediaRange>().is_err(), "{bad}");
        }
    }

    #[test]
    fn rfc4647_3_3_1_a_range_matches_itself_and_tags_that_extend_it_by_a_hyphen() {
        for (range, tags) in [
            ("de", "+de +de-DE +DE-at +de-Latn-DE-1996 -deu -d -den-x -"),
            ("de-de", "+de-DE +de-DE-1996 -de-Deva -de-Latn-DE -de"),
            ("*", "+de +x-y +ü"),
        ] {
            let filter = ContentFilter {
                languages: vec![range.parse().unwrap()],
                ..ContentFilter::default()
            };
            for found in tags.split(' ') {
                let (wanted, tag) = found.split_at(1);
                assert_eq!(
                    filter.of_language(tag).is_none(),
                    wanted == "+",
                    "{range} {tag}"
                );
            }
        }
        for bad in [
            "",
            "d e",
            "de_AT",
            "de-",
            "-de",
            "languages-x",
            "1a",
            "de,en",
        ] {
            assert!(bad.parse::<LanguageRange>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_size_at_a_bound_is_wanted() {
        let filter = ContentFilter {
            min_size: 10,
            max_size: Some(20),
            ..ContentFilter::default()
        };
        assert!(filter.too_short(10).is_none() && filter.too_long(20).is_none());
        assert_eq!(filter.too_short(9).unwrap().to_string(), "min-size 10");
        assert_eq!(filter.too_long(21).unwrap().to_string(), "max-size 20");
        let all = ContentFilter::default();
        assert!(all.wants_all() && !filter.wants_all());
        assert!(all.too_short(0).is_none() && all.too_long(u64::MAX).is_none());
        assert!(all.of_type("").is_none() && all.of_language("").is_none());
    }
}
