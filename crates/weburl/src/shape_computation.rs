//! Derives the shape of a URL.

use std::fmt::Write as _;

use crate::canonical::CanonicalUrl;
use crate::query::{name_of, parts, value_of};
use crate::shape::{TrapSigns, UrlShape};
use crate::spellings::SessionId;

/// Maximum bytes of a pattern. URLs whose patterns would differ only after these bytes have the
/// same pattern.
const MAX_PATTERN_BYTES: usize = 256;
/// Maximum parameter names in a pattern, in sorted order.
const MAX_NAMES: usize = 12;
/// Maximum parameter names in a shape, in sorted order.
const MAX_KEPT_NAMES: usize = 64;
/// A number of segments that few paths exceed. In a path with more segments, the segments are
/// sorted to find repetitions. In a shorter path, each segment is compared with the later ones.
const USUAL_SEGMENTS: usize = 16;
/// Minimum length of a random id. A shorter segment is a word or a number.
const MIN_TOKEN_BYTES: usize = 16;

/// Returns the segments of a path, and whether it ends with a slash.
fn segments(url: &CanonicalUrl) -> (Vec<&str>, bool) {
    let path = url.path();
    let mut segments = Vec::with_capacity(USUAL_SEGMENTS);
    let mut begin = 1;
    for (at, byte) in path.bytes().enumerate().skip(1) {
        if byte == b'/' {
            segments.push(&path[begin..at]);
            begin = at + 1;
        }
    }
    segments.push(&path[begin..]);
    let is_folder = segments.last().is_some_and(|last| last.is_empty());
    if is_folder {
        segments.pop();
    }
    (segments, is_folder)
}

fn signs(url: &CanonicalUrl, segments: &[&str], again: &RepeatedSegments) -> TrapSigns {
    TrapSigns {
        date: is_dated(segments, url),
        token: has_token(segments, url),
        repeats: again.most >= 3,
        query: url.as_url().query().is_some_and(|query| !query.is_empty()),
    }
}

impl CanonicalUrl {
    /// Returns the URL's shape. The shape is computed once and then kept, because every thread that
    /// handles a page needs the shape.
    pub fn shape(&self) -> &UrlShape {
        self.kept_shape()
            .get_or_init(|| Box::new(UrlShape::of(self)))
    }
}

impl UrlShape {
    /// Computes the shape of a URL.
    #[must_use]
    pub fn of(url: &CanonicalUrl) -> UrlShape {
        let mut names: Vec<String> = parts(url).map(|part| name_of(part).to_owned()).collect();
        names.sort_unstable();
        names.dedup();
        // The shape is kept with the URL, so keep few names: a list of thousands of names takes
        // many times the memory of the URL.
        names.truncate(MAX_KEPT_NAMES);
        let (segments, is_folder) = segments(url);
        let again = RepeatedSegments::of(&segments);
        let is_program = url.as_url().query().is_some();
        let mut pattern = String::with_capacity(url.path_and_query().len());
        again.push_pattern(&mut pattern, &segments, is_program);
        if is_folder && !segments.is_empty() {
            pattern.push('/');
        }
        let signs = signs(url, &segments, &again);
        if url.as_url().query().is_some() {
            pattern.push('?');
            pattern.push_str(&names[..names.len().min(MAX_NAMES)].join("&"));
        }
        pattern.truncate(pattern.floor_char_boundary(MAX_PATTERN_BYTES));
        UrlShape::new(pattern, names, signs)
    }
}

/// The repeated segments of a path.
#[derive(Debug, PartialEq, Eq)]
struct RepeatedSegments {
    /// How often the most frequent segment occurs.
    most: usize,
    /// The range from the first to the last repeated segment.
    stretch: std::ops::Range<usize>,
}

impl RepeatedSegments {
    fn of(segments: &[&str]) -> RepeatedSegments {
        match segments.len() <= USUAL_SEGMENTS {
            true => RepeatedSegments::of_few(segments),
            false => RepeatedSegments::of_many(segments),
        }
    }

    fn of_many(segments: &[&str]) -> RepeatedSegments {
        let places = segments.iter().enumerate();
        let mut places: Vec<(&str, usize)> = places
            .filter(|(_, segment)| has_letter(segment))
            .map(|(at, segment)| (*segment, at))
            .collect();
        places.sort_unstable();
        let (mut most, mut start, mut end) = (0, segments.len(), 0);
        for same in places.chunk_by(|one, next| one.0 == next.0) {
            most = most.max(same.len());
            if let [(_, first), .., (_, last)] = same {
                (start, end) = (start.min(*first), end.max(last + 1));
            }
        }
        RepeatedSegments {
            most,
            stretch: start..end,
        }
    }

    /// Finds the repeated segments of a short path. Compares each segment with the later ones, so
    /// that no list has to be sorted.
    fn of_few(segments: &[&str]) -> RepeatedSegments {
        let mut repeats = RepeatedSegments {
            most: 0,
            stretch: segments.len()..0,
        };
        for (at, segment) in segments.iter().enumerate() {
            if !has_letter(segment) {
                continue;
            }
            let mut count = 1;
            for (later, other) in segments.iter().enumerate().skip(at + 1) {
                if other == segment {
                    count += 1;
                    let stretch = &mut repeats.stretch;
                    *stretch = stretch.start.min(at)..stretch.end.max(later + 1);
                }
            }
            repeats.most = repeats.most.max(count);
        }
        repeats
    }

    fn push_pattern(&self, pattern: &mut String, segments: &[&str], is_program: bool) {
        for (at, segment) in segments.iter().enumerate() {
            if at == self.stretch.start {
                let mut distinct = segments[self.stretch.clone()].to_vec();
                distinct.sort_unstable();
                distinct.dedup();
                // Writing to a string can't fail.
                let _ = write!(pattern, "/({})+", distinct.join("|"));
            }
            if !self.stretch.contains(&at) {
                pattern.push('/');
                let is_name = at + 1 == segments.len() && !is_program;
                push_slot(pattern, segment, is_name);
            }
        }
        if pattern.is_empty() {
            pattern.push('/');
        }
    }
}

/// Appends the form of a segment without variable parts. A last segment with letters (`is_name`)
/// becomes `*` and its extension.
fn push_slot(pattern: &mut String, segment: &str, is_name: bool) {
    let bare = segment.split(';').next().unwrap_or(segment);
    if is_token(bare) || bare.starts_with("(S(") {
        return pattern.push('~');
    }
    let (stem, ending) = match bare.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() && is_ending(ending) => (stem, Some(ending)),
        _ => (bare, None),
    };
    if !is_name || !has_letter(stem) {
        return push_hashed(pattern, bare);
    }
    pattern.push('*');
    if let Some(ending) = ending {
        pattern.push('.');
        pattern.push_str(ending);
    }
}

/// Appends the text with each run of digits replaced by one `#`.
fn push_hashed(pattern: &mut String, text: &str) {
    let mut rest = text;
    while let Some(run) = rest.bytes().position(|byte| byte.is_ascii_digit()) {
        pattern.push_str(&rest[..run]);
        pattern.push('#');
        rest = rest[run..].trim_start_matches(|c: char| c.is_ascii_digit());
    }
    pattern.push_str(rest);
}

fn has_letter(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

fn is_ending(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns whether a text looks random: long, alphanumeric, with many changes between letters and
/// digits.
fn is_token(text: &str) -> bool {
    let is_plain = || text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let changes = text
        .as_bytes()
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit());
    // Neither a date with a time (only digits) nor a name with a number (one or two changes between
    // letters and digits) looks random.
    text.len() >= MIN_TOKEN_BYTES && is_plain() && changes.count() >= 4
}

fn has_token(segments: &[&str], url: &CanonicalUrl) -> bool {
    segments.iter().any(|segment| is_token(segment))
        || parts(url).any(|part| is_token(value_of(part)))
        || SessionId::find(url).is_some()
}

fn is_dated(segments: &[&str], url: &CanonicalUrl) -> bool {
    const NAMES: [&str; 9] = [
        "year",
        "month",
        "day",
        "week",
        "date",
        "cal",
        "yyyy",
        "mon",
        "yearmonth",
    ];
    let in_query = parts(url).any(|part| {
        let name = name_of(part).to_ascii_lowercase();
        let value = value_of(part);
        let numeric = value.bytes().any(|byte| byte.is_ascii_digit());
        (numeric && NAMES.contains(&name.as_str())) || is_date(value)
    });
    let month_after = |pair: &[&str]| is_year(pair[0]) && is_day_or_month(pair[1]);
    in_query
        || segments.iter().any(|segment| is_date(segment))
        || segments.windows(2).any(month_after)
}

/// Returns whether a text is a date: `2031-05`, `2031-05-07`, `20310507`, `203105`.
fn is_date(text: &str) -> bool {
    // Check the first byte first, which rules out most segments.
    if !text.starts_with(['1', '2']) {
        return false;
    }
    let mut parts = text.split(['-', '_', '.']);
    let first = parts.next().unwrap_or_default();
    match (parts.next(), parts.next(), parts.next()) {
        (None, ..) => {
            matches!(first.len(), 6 | 8)
                && first.is_ascii()
                && is_year(&first[..4])
                && first
                    .as_bytes()
                    .chunks(2)
                    .skip(2)
                    .all(is_two_digits_of_a_date)
        }
        (Some(month), day, None) => {
            is_year(first) && is_day_or_month(month) && day.is_none_or(is_day_or_month)
        }
        _ => false,
    }
}

fn is_two_digits_of_a_date(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(is_day_or_month)
}

fn is_year(text: &str) -> bool {
    text.len() == 4
        && text
            .parse()
            .is_ok_and(|year: u16| (1900..2200).contains(&year))
}

fn is_day_or_month(text: &str) -> bool {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits
        && text.len() <= 2
        && text
            .parse()
            .is_ok_and(|number: u8| (1..=31).contains(&number))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::RepeatedSegments;
    use crate::{TrapSigns, UrlShape, canonicalize};

    #[expect(
        clippy::needless_pass_by_value,
        reason = "expectations are written in place"
    )]
    fn check(path: &str, expect: Expect) {
        let shape = UrlShape::of(&canonicalize(None, &format!("http://a.example{path}")).unwrap());
        let signs = shape.signs;
        let named = [
            ("date", signs.date),
            ("token", signs.token),
            ("repeats", signs.repeats),
            ("query", signs.query),
        ];
        let mut summary = shape.pattern;
        for (name, _) in named.into_iter().filter(|(_, is)| *is) {
            summary = format!("{summary} {name}");
        }
        expect.assert_eq(&summary);
    }

    #[test]
    fn names_and_numbers() {
        check("/", expect!["/"]);
        check("/about", expect!["/*"]);
        check("/docs/guide.html", expect!["/docs/*.html"]);
        check("/docs/guide/", expect!["/docs/*/"]);
        check("/docs/page-12.html", expect!["/docs/*.html"]);
        check("/docs/10-best-ways-to-write.html", expect!["/docs/*.html"]);
        check(
            "/api/java.base/java/util/List.html",
            expect!["/api/java.base/java/util/*.html"],
        );
        check("/user/17/posts/3", expect!["/user/#/posts/#"]);
        check("/x?b=1&a=2&b=3", expect!["/x?a&b query"]);
        check("/x?", expect!["/x?"]);
        // The text looks like a file extension but has no file name before it.
        check("/.html", expect!["/*"]);
        check("/x.", expect!["/*"]);
        check("/notes.v1-2", expect!["/*"]);
        check("/1.2", expect!["/#.#"]);
    }

    #[test]
    fn dates() {
        check("/blog/2031/05/", expect!["/blog/#/#/ date"]);
        check(
            "/blog/2031/05/07/title-of-it",
            expect!["/blog/#/#/#/* date"],
        );
        check("/cal?month=2031-05", expect!["/cal?month date query"]);
        check("/events/2031-05-07", expect!["/events/#-#-# date"]);
        check("/events/20310507", expect!["/events/# date"]);
        check("/release/2031", expect!["/release/#"]);
        check("/v/3.11.2/x", expect!["/v/#.#.#/*"]);
        check("/cal?year=1&week=52", expect!["/cal?week&year date query"]);
        check("/list?from=2031-05-07", expect!["/list?from date query"]);
    }

    #[test]
    fn numbers_that_are_not_dates() {
        check("/cal?year=all", expect!["/cal?year query"]);
        check("/events/20319907", expect!["/events/#"]);
        check("/events/2031050712", expect!["/events/#"]);
        check("/events/2031-05-07-08", expect!["/events/#-#-#-#"]);
        check("/events/2031-99", expect!["/events/#-#"]);
        check("/02031/05/", expect!["/#/#/"]);
        check("/1899/05/", expect!["/#/#/"]);
        check("/2031/005/", expect!["/#/#/"]);
        check("/2031/32/", expect!["/#/#/"]);
        check("/2031/+5/", expect!["/#/+#/"]);
    }

    #[test]
    fn tokens() {
        check("/s/8f3a91c0d4e75b26/docs/3", expect!["/s/~/docs/# token"]);
        check("/x?sid=8f3a91c0d4e75b26", expect!["/x?sid token query"]);
        check("/x;jsessionid=8f3a91c0d4e75b26/y", expect!["/x/* token"]);
        check(
            "/docs/internationalization2/x",
            expect!["/docs/internationalization#/*"],
        );
        check("/archive/20260101120000/x", expect!["/archive/#/*"]);
        check(
            "/(S(lit3py55t21z5v55vlm25s55))/a.aspx",
            expect!["/~/*.aspx token"],
        );
        // Tokens need four changes between letters and digits, and 16 bytes.
        check("/a/aaaa1bbbb2cccccc/x", expect!["/a/~/* token"]);
        check("/a/aaaa1bbbbcccc222/x", expect!["/a/aaaa#bbbbcccc#/*"]);
        check("/a/aaaa1bbbb2ccccc/x", expect!["/a/aaaa#bbbb#ccccc/*"]);
        check("/a/aaaa1bbbb2-ccccc/x", expect!["/a/aaaa#bbbb#-ccccc/*"]);
    }

    #[test]
    fn repeated_segments() {
        check("/a/b/a/b/a/b/c", expect!["/(a|b)+/* repeats"]);
        check("/x/news/news/news/", expect!["/x/(news)+/ repeats"]);
        check("/docs/docs/", expect!["/(docs)+/"]);
        check("/1/1/1/", expect!["/#/#/#/"]);
    }

    #[test]
    fn a_family_ends_with_parameters_ids_or_repeats() {
        for (path, family, repeats) in [
            ("/blog/2031/05?cal=3&view=month", Some("/blog/#/#?"), false),
            ("/s/8f3a91c0d4e75b26/docs?a", Some("/s/~"), false),
            ("/a/b/a/b/c?d", Some("/(a|b)+"), true),
            ("/docs/guide.html", None, false),
        ] {
            let url = canonicalize(None, &format!("http://a.example{path}")).unwrap();
            let shape = UrlShape::of(&url);
            assert_eq!(shape.family(), family);
            assert_eq!(shape.has_repeats(), repeats, "{path}");
        }
    }

    #[test]
    fn each_sign_alone() {
        let none = TrapSigns::default();
        assert!(!none.any());
        for sign in [
            TrapSigns { date: true, ..none },
            TrapSigns {
                token: true,
                ..none
            },
            TrapSigns {
                repeats: true,
                ..none
            },
            TrapSigns {
                query: true,
                ..none
            },
        ] {
            assert!(sign.any(), "{sign:?}");
        }
    }

    #[test]
    fn a_pattern_names_twelve_parameters() {
        let names: Vec<String> = ('a'..='m').map(String::from).collect();
        let url = format!("http://a.example/x?{}", names.join("&"));
        let shape = UrlShape::of(&canonicalize(None, &url).unwrap());
        assert_eq!(shape.pattern, "/x?a&b&c&d&e&f&g&h&i&j&k&l");
        assert_eq!(shape.names, names);
    }

    proptest! {
        #[test]
        fn any_url_has_a_valid_shape(path in "(/[a-z0-9;()%.-]{0,20}){0,12}", query in "(\\?[a-z0-9=&%é]{0,40})?") {
            let url = canonicalize(None, &format!("http://a.example{path}{query}")).unwrap();
            let shape = UrlShape::of(&url);
            prop_assert!(shape.pattern.starts_with('/') && shape.pattern.len() <= super::MAX_PATTERN_BYTES);
            prop_assert!(shape.family().is_none_or(|family| shape.pattern.starts_with(family)));
        }
    }

    proptest! {
        #[test]
        fn few_and_many_segments_give_the_same_repeats(
            segments in proptest::collection::vec("[ab1]{0,2}", 0..20),
        ) {
            let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
            prop_assert_eq!(RepeatedSegments::of_few(&segments), RepeatedSegments::of_many(&segments));
        }
    }
}
