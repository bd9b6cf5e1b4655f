//! The part of a URL that rules are matched against.

use std::borrow::Cow;
use std::fmt;

use url::{Position, Url};

/// The path and query of a URL, beginning with `/`: the part that rules are matched against.
///
/// A whole URL is rejected. A URL without its scheme, such as `example.org/page`, is rejected too,
/// because its host would be taken for a part of the path.
///
/// ```
/// use crawl_policy::RequestPath;
///
/// let path = RequestPath::new("/page?sort=asc")?;
/// assert_eq!(path.as_str(), "/page?sort=asc");
/// assert!(RequestPath::new("https://example.org/page").is_err());
/// assert!(RequestPath::new("example.org/page").is_err());
/// # Ok::<(), crawl_policy::RequestPathError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestPath<'a>(
    // Invariant: the text begins with `/`.
    Cow<'a, str>,
);

/// A text that is not a path, because it does not begin with `/`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("path `{0}` does not begin with `/`")]
pub struct RequestPathError(pub String);

impl<'a> RequestPath<'a> {
    /// Creates a path with an optional query from `text`. Escapes are kept, and a fragment is
    /// ignored when matching. `//host/page` is accepted too: it is the path of
    /// `http://example.org//host/page`.
    ///
    /// # Errors
    /// Fails with [`RequestPathError`] if `text` does not begin with `/`.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Result<RequestPath<'a>, RequestPathError> {
        let text = text.into();
        match text.starts_with('/') {
            true => Ok(RequestPath(text)),
            false => Err(RequestPathError(text.into_owned())),
        }
    }

    /// Returns the path and query of `url`.
    #[must_use]
    pub fn of(url: &'a Url) -> RequestPath<'a> {
        let text = &url[Position::BeforePath..Position::AfterQuery];
        match text.starts_with('/') {
            true => RequestPath(Cow::Borrowed(text)),
            // Give `mailto:` and other URLs without a host a path that begins with a slash.
            false => RequestPath(Cow::Owned(format!("/{text}"))),
        }
    }

    /// Extracts the path and query from an unparsed URL as Google's parser does, for test cases
    /// written for that parser. Parse other URLs with [`Url`] instead: this method never fails and
    /// normalises nothing.
    ///
    /// Scheme and host end at the first of `/ ? ;` after `://` or a leading `//`. The fragment is
    /// dropped, and a URL without a path has the path `/`.
    #[must_use]
    pub fn of_unparsed(url: &'a str) -> RequestPath<'a> {
        let url = url.split('#').next().unwrap_or_default();
        let behind = match url.strip_prefix("//") {
            Some(rest) => rest,
            None => {
                let early = url.find(['/', '?', ';']);
                match url.find("://") {
                    Some(at) if early.is_none_or(|early| at < early) => &url[at + 3..],
                    _ => url,
                }
            }
        };
        RequestPath(match behind.find(['/', '?', ';']) {
            None => Cow::Borrowed("/"),
            Some(at) if behind[at..].starts_with('/') => Cow::Borrowed(&behind[at..]),
            Some(at) => Cow::Owned(format!("/{}", &behind[at..])),
        })
    }

    /// Returns the text, which begins with `/`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Copies the path, so that it outlives the text that it was borrowed from.
    #[must_use]
    pub fn into_owned(self) -> RequestPath<'static> {
        RequestPath(Cow::Owned(self.0.into_owned()))
    }
}

impl fmt::Display for RequestPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::RequestPath;

    #[test]
    fn a_path_begins_with_a_slash() {
        for path in ["/", "/a?b#c", "//host/a", "/http://a.example/"] {
            assert_eq!(RequestPath::new(path).unwrap().as_str(), path);
        }
        for bad in ["", "a", "a.example/b", "https://a.example/b", "?q", " /a"] {
            let message = RequestPath::new(bad).unwrap_err().to_string();
            assert_eq!(message, format!("path `{bad}` does not begin with `/`"));
        }
    }

    #[test]
    fn the_path_of_a_parsed_url() {
        for (url, path) in [
            ("https://a.example", "/"),
            ("https://u:p@a.example:80/a?b=c#d", "/a?b=c"),
            ("mailto:a@b.example", "/a@b.example"),
        ] {
            assert_eq!(RequestPath::of(&Url::parse(url).unwrap()).as_str(), path);
        }
    }

    #[test]
    fn the_path_of_an_unparsed_url_is_extracted_as_google_does() {
        for (url, path) in [
            ("http://a.example", "/"),
            ("http://a.example?x", "/?x"),
            ("http://u:p@a.example:80/a?b=http://c/#d", "/a?b=http://c/"),
            ("//a.example/a;b", "/a;b"),
            ("/a://b", "/a://b"),
            ("a.example", "/"),
            ("a.example/b", "/b"),
        ] {
            assert_eq!(RequestPath::of_unparsed(url).as_str(), path, "{url}");
        }
    }
}
