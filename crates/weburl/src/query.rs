//! A URL's query, part by part, as it is written.

use std::ops::Range;

use crate::canonical::{CanonicalUrl, canonicalize};

/// The name of a part `name=value`; the whole part where it has no value.
pub(crate) fn name_of(part: &str) -> &str {
    part.split_once('=').map_or(part, |(name, _)| name)
}

/// The value of a part; empty where it has none.
pub(crate) fn value_of(part: &str) -> &str {
    part.split_once('=').map_or("", |(_, value)| value)
}

/// The parts of a query, in order, as written.
pub(crate) fn parts(url: &CanonicalUrl) -> impl Iterator<Item = &str> {
    url.as_url()
        .query()
        .into_iter()
        .flat_map(|query| query.split('&'))
}

/// The URL with those parts alone that are wanted; nothing where that changes nothing. A query
/// without parts leaves no question mark.
pub(crate) fn retain(
    url: &CanonicalUrl,
    mut wanted: impl FnMut(&str) -> bool,
) -> Option<CanonicalUrl> {
    let query = url.as_url().query()?;
    let kept: Vec<&str> = query.split('&').filter(|part| wanted(part)).collect();
    let kept = kept.join("&");
    (kept != query || kept.is_empty())
        .then(|| with_query(url, &kept))
        .flatten()
}

/// The URL with another query.
pub(crate) fn with_query(url: &CanonicalUrl, query: &str) -> Option<CanonicalUrl> {
    let text = url.as_str();
    let before = text.split('?').next().unwrap_or(text);
    let text = match query {
        "" => before.to_owned(),
        query => format!("{before}?{query}"),
    };
    canonicalize(None, &text).ok()
}

/// The URL with a stretch of its text replaced.
pub(crate) fn spliced(url: &CanonicalUrl, range: Range<usize>, with: &str) -> Option<CanonicalUrl> {
    let text = url.as_str();
    let text = format!(
        "{}{with}{}",
        text.get(..range.start)?,
        text.get(range.end..)?
    );
    canonicalize(None, &text).ok()
}

impl CanonicalUrl {
    /// Names and values of its parameters, in order and as written.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        parts(self).map(|part| (name_of(part), value_of(part)))
    }

    /// The URL without the parameters of some names; nothing where it has none of them.
    #[must_use]
    pub fn without_parameters(
        &self,
        mut is_unwanted: impl FnMut(&str) -> bool,
    ) -> Option<CanonicalUrl> {
        let named = |part: &str| !part.is_empty();
        let mut found = false;
        let url = retain(self, |part| {
            let unwanted = named(part) && is_unwanted(name_of(part));
            found |= unwanted;
            !unwanted
        });
        url.filter(|_| found)
    }
}

#[cfg(test)]
mod tests {
    use crate::{CanonicalUrl, canonicalize};

    #[test]
    fn ours_parameters_stand_as_they_are_written() {
        let url = canonicalize(None, "http://a.example/x?b=1&a&b=2=3&=4&").unwrap();
        let parameters: Vec<_> = url.parameters().collect();
        assert_eq!(
            parameters,
            [("b", "1"), ("a", ""), ("b", "2=3"), ("", "4"), ("", "")]
        );
        let without = canonicalize(None, "http://a.example/x").unwrap();
        assert_eq!(without.parameters().count(), 0);
    }

    #[test]
    fn ours_named_parameters_are_taken_out_and_nothing_else() {
        let check = |query: &str, without: Option<&str>| {
            let url = canonicalize(None, &format!("http://a.example/x{query}")).unwrap();
            let found = url.without_parameters(|name| name == "b");
            assert_eq!(
                found.as_ref().map(CanonicalUrl::path_and_query),
                without,
                "{query}"
            );
        };
        check("?a=1&b=2&c&b", Some("/x?a=1&c"));
        check("?b=2", Some("/x"));
        // The empty part stays, and alone it is no reason for another URL.
        check("?a&&b", Some("/x?a&"));
        check("?a&", None);
        check("?", None);
        check("", None);
    }
}
