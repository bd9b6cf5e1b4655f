//! Seeds as users type them: a whole URL, or a host as in the address bar of a browser.
//!
//! A bare host is requested over https. If no https connection can be made, the crawl falls back to
//! http and reports it. Loopback names and addresses use http from the start, because servers there
//! rarely have a certificate. A continued crawl keeps the scheme it started with.

use crawl_scope::SeedSettings;
use crawl_weburl::{CanonicalUrl, UnusableUrlError, canonicalize, class_of_host, host_and_port};

use crate::error::CommandError;

/// A seed as parsed from what the operator typed: its URL, and another to fall back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParsedSeed {
    /// The URL where the crawl starts.
    pub(crate) url: CanonicalUrl,
    /// The http URL to fall back to if no https connection can be made. Set if the host was typed
    /// without a scheme.
    pub(crate) stand_in: Option<CanonicalUrl>,
    /// The seed's own scope, depth and label.
    pub(crate) terms: SeedSettings,
    /// Whether this is a sitemap whose entries are seeds.
    pub(crate) is_sitemap: bool,
}

impl ParsedSeed {
    fn plain(url: CanonicalUrl, stand_in: Option<CanonicalUrl>) -> ParsedSeed {
        let terms = SeedSettings::default();
        ParsedSeed {
            url,
            stand_in,
            terms,
            is_sitemap: false,
        }
    }
}

/// Returns whether a word is a seed rather than a command: a URL, `localhost`, an IPv6 address in
/// brackets, or a host with a dot or a port.
pub(crate) fn is_seed(word: &str) -> bool {
    if word.starts_with('-') {
        return false;
    }
    if has_scheme(word) {
        return true;
    }
    let (host, port) = host_and_port(authority(word));
    let is_port = port.is_some_and(|port| port.parse::<u16>().is_ok());
    let is_name = !host.starts_with(['.', '~']) && host.chars().all(may_be_in_host);
    !host.is_empty()
        && (is_port || port.is_none())
        && (host.starts_with('[') || is_name)
        && (is_port || host.contains(['.', '[']) || host == "localhost")
}

/// Parses a seed.
///
/// # Errors
/// The reason why a crawler can't fetch the seed.
pub(crate) fn read(typed: &str) -> Result<ParsedSeed, UnusableUrlError> {
    let typed = typed.trim();
    if has_scheme(typed) || !is_seed(typed) {
        return Ok(ParsedSeed::plain(canonicalize(None, typed)?, None));
    }
    let https = canonicalize(None, &format!("https://{typed}"))?;
    let http = canonicalize(None, &format!("http://{typed}"))?;
    let host = https.host();
    Ok(match host_and_port(authority(typed)).1 {
        Some("443") => ParsedSeed::plain(https, None),
        port if port == Some("80") || class_of_host(host).is_some() => {
            ParsedSeed::plain(http, None)
        }
        _ => ParsedSeed::plain(https, Some(http)),
    })
}

/// Parses the URL of a page as a crawl would: whole, or as a bare `host/path`.
///
/// # Errors
/// A message that quotes the input.
pub(crate) fn read_page(typed: &str) -> Result<ParsedSeed, CommandError> {
    read(typed).map_err(|why| {
        CommandError::usage(format!("unusable URL `{typed}`: {why}"))
            .hint("give a URL such as `https://example.org/page` or `example.org/page`")
    })
}

pub(super) fn has_scheme(word: &str) -> bool {
    let starts = |scheme: &str| {
        let begins = word.get(..scheme.len());
        begins.is_some_and(|begins| begins.eq_ignore_ascii_case(scheme))
    };
    word.contains("://") || starts("http:") || starts("https:")
}

/// Returns the host and port of a word without a scheme: the part before the path.
fn authority(word: &str) -> &str {
    word.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Returns whether a character may occur in a typed host name. Letters beyond ASCII may, since they
/// are converted to Punycode.
fn may_be_in_host(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::{is_seed, read};

    #[test]
    fn a_seed_is_a_url_or_a_host_with_a_dot_or_a_port() {
        for seed in [
            "http://a/",
            "HTTPS://a/",
            "ftp://a/",
            "http:a.example",
            "example.org",
            "www.example.org/docs?x=1#y",
            "example.org:8080/a",
            "müller.example",
            "localhost",
            "localhost:8080",
            "intranet:8080",
            "127.0.0.1",
            "[::1]:80",
        ] {
            assert!(is_seed(seed), "{seed}");
        }
        for word in [
            "serach",
            "./a.b",
            "../x",
            "/tmp/a.b",
            "~/a.b",
            "a b.c",
            "me@e.example",
            "",
            "a:",
            "a:b",
            "mailto:me@e.example",
            "dir/",
            "-x.y",
            "--sede=http://a/",
            "*.a.b",
        ] {
            assert!(!is_seed(word), "{word}");
        }
    }

    fn check(typed: &str, expect: &str) {
        let text = match read(typed) {
            Ok(seed) => match seed.stand_in {
                Some(http) => format!("{}, else {http}", seed.url),
                None => seed.url.to_string(),
            },
            Err(why) => why.to_string(),
        };
        assert_eq!(text, expect, "{typed}");
    }

    #[test]
    fn bare_host_uses_https_first() {
        check(
            "example.org",
            "https://example.org/, else http://example.org/",
        );
        check(
            "Example.org:8443/a",
            "https://example.org:8443/a, else http://example.org:8443/a",
        );
        check("example.org:80/a", "http://example.org/a");
        check("example.org:443", "https://example.org/");
        check("http://example.org", "http://example.org/");
        check("example", "not a URL: relative URL without a base");
    }

    #[test]
    fn loopback_names_and_addresses_use_http() {
        check("localhost:8080", "http://localhost:8080/");
        check("a.localhost", "http://a.localhost/");
        check("127.0.0.1:8080/x", "http://127.0.0.1:8080/x");
        check("[::1]:8080", "http://[::1]:8080/");
        check("192.168.1.7", "http://192.168.1.7/");
        check("127.0.0.1:443", "https://127.0.0.1/");
    }
}
