//! The query of a URL as a list of parts between `&`, each as written.

use std::ops::Range;

use crate::canonical::{CanonicalUrl, canonicalize};

/// Returns the name of a part `name=value`, or the whole part if it has no value.
pub(crate) fn name_of(part: &str) -> &str {
    part.split_once('=').map_or(part, |(name, _)| name)
}

/// Returns the value of a part, or an empty string.
pub(crate) fn value_of(part: &str) -> &str {
    part.split_once('=').map_or("", |(_, value)| value)
}

/// Returns the parts of a query, in order, as written.
pub(crate) fn parts(url: &CanonicalUrl) -> impl Iterator<Item = &str> {
    url.as_url()
        .query()
        .into_iter()
        .flat_map(|query| query.split('&'))
}

/// Returns the URL with only the wanted parts of its query, or `None` if that changes nothing. If
/// no part remains, the question mark is removed too.
pub(crate) fn retain(
    url: &CanonicalUrl,
    mut wanted: impl FnMut(&str) -> bool,
) -> Option<CanonicalUrl> {
    let query = url.as_url().query()?;
    let parts_kept: Vec<&str> = query.split('&').filter(|part| wanted(part)).collect();
    let parts_kept = parts_kept.join("&");
    (parts_kept != query || parts_kept.is_empty())
        .then(|| with_query(url, &parts_kept))
        .flatten()
}

/// Returns the URL with its query replaced. An empty `query` removes the question mark too. `None`
/// if the result is not a valid URL.
pub(crate) fn with_query(url: &CanonicalUrl, query: &str) -> Option<CanonicalUrl> {
    let text = url.as_str();
    let before = text.split('?').next().unwrap_or(text);
    let text = match query {
        "" => before.to_owned(),
        query => format!("{before}?{query}"),
    };
    canonicalize(None, &text).ok()
}

/// Returns the URL with a range of its text replaced by `with`. `None` if the result is not a valid
/// URL.
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
    /// Returns the names and values of the parameters, in order and as written.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        parts(self).map(|part| (name_of(part), value_of(part)))
    }

    /// Returns the URL without the unwanted parameters, or `None` if it has none of them.
    #[must_use]
    pub fn without_parameters(
        &self,
        mut is_unwanted: impl FnMut(&str) -> bool,
    ) -> Option<CanonicalUrl> {
        let named = |part: &str| !part.is_empty();
        let mut is_changed = false;
        let url = retain(self, |part| {
            let unwanted = named(part) && is_unwanted(name_of(part));
            is_changed |= unwanted;
            !unwanted
        });
        url.filter(|_| is_changed)
    }
}

#[cfg(test)]
mod tests {
    use crate::{CanonicalUrl, canonicalize};

    #[test]
    fn parameters_are_returned_as_written() {
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
    fn only_named_parameters_are_removed() {
        let check = |query: &str, without: Option<&str>| {
            let url = canonicalize(None, &format!("http://a.example/x{query}")).unwrap();
            let without_b = url.without_parameters(|name| name == "b");
            assert_eq!(
                without_b.as_ref().map(CanonicalUrl::path_and_query),
                without,
                "{query}"
            );
        };
        check("?a=1&b=2&c&b", Some("/x?a=1&c"));
        check("?b=2", Some("/x"));
        // An empty part, as in `a&&b`, is kept, even if another part is removed.
        check("?a&&b", Some("/x?a&"));
        check("?a&", None);
        check("?", None);
        check("", None);
    }
}
