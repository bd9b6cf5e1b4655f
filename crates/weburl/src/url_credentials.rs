//! User names and passwords in URLs. A crawler must neither send nor store them.

use std::fmt::{self, Display};

/// A URL that contains a user name or password, of which only scheme and host are kept. Displayed
/// as `http://..@host/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlWithCredentials {
    scheme: &'static str,
    host: String,
}

impl UrlWithCredentials {
    /// Finds a user name or password in a URL or a host as typed, even in one that can't be parsed.
    /// `None` if there is neither.
    #[must_use]
    pub fn find(typed: &str) -> Option<UrlWithCredentials> {
        // Remove these characters, because URL parsers ignore them (WHATWG URL, section 4.4).
        let typed = typed.trim().replace(['\t', '\n', '\r'], "");
        // A colon ends the scheme only if no slash, `?` or `#` comes before it.
        let scheme = typed.split_once(':');
        let scheme = scheme.filter(|(scheme, _)| !scheme.contains(['/', '\\', '?', '#']));
        let (scheme, rest) = scheme.unwrap_or(("", &typed));
        if scheme.eq_ignore_ascii_case("mailto") {
            return None;
        }
        let rest = rest.trim_start_matches(['/', '\\']);
        let authority = rest.split(['/', '\\', '?', '#']).next();
        let (_, host) = authority?.rsplit_once('@')?;
        let scheme = match scheme.eq_ignore_ascii_case("https") {
            true => "https",
            false => "http",
        };
        Some(UrlWithCredentials {
            scheme,
            host: host.to_owned(),
        })
    }

    /// Returns the host and the port as typed.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }
}

impl Display for UrlWithCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://..@{}/", self.scheme, self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::UrlWithCredentials;

    #[test]
    fn credentials_are_found_however_they_are_typed_and_never_displayed() {
        let shown = |typed: &str| UrlWithCredentials::find(typed).map(|found| found.to_string());
        for typed in [
            "http://me:s3cret@a.example/p",
            " HTTP:\\\\me:s3cret@a.example\\p",
            "me:s3cret@a.example",
            "http:me@a.example?q",
            "ht\ntp://:s3\tcret@x@a.example",
            "http://me:s3cret@a.example/ not a URL",
        ] {
            let expected = Some("http://..@a.example/");
            assert_eq!(shown(typed).as_deref(), expected, "{typed}");
        }
        let https = shown("https://me@a.example:444/");
        assert_eq!(https.as_deref(), Some("https://..@a.example:444/"));
        for typed in [
            "http://a.example/@b",
            "a.example?x@y",
            "a.example/t?at=12:30@home",
            "mailto:me@a.example",
            "",
        ] {
            assert_eq!(shown(typed), None, "{typed}");
        }
    }
}
