//! The canonical form of a URL.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use percent_encoding::{AsciiSet, percent_encode};
use url::{Position, Url};

use crate::shape::UrlShape;
use crate::url_keys::{HostKey, Origin, OriginKeys, Site};

/// Maximum bytes of a URL. A longer one is [`UnusableUrlError::TooLong`], because servers commonly
/// reject more than 8 KiB of request line.
/// Beyond the limit: the link is dropped.
pub const MAX_URL_BYTES: usize = 8 * 1024;

/// Maximum bytes of the paths that the program adds to an origin, such as `/robots.txt`.
const MAX_OWN_PATH_BYTES: usize = 64;

/// An http or https URL in canonical form.
///
/// The canonical form is that of the WHATWG URL Standard: lower-case scheme and host, IDNA as
/// Punycode, default port dropped, dot segments resolved, `^` encoded in the path. Fragment, user
/// name and password are removed, because a crawler requests no fragments and must not use or store
/// credentials in links. Two URLs are the same if their canonical forms are equal. URLs are ordered
/// by bytes. A clone shares the text and the keys of the original.
#[derive(Clone)]
pub struct CanonicalUrl(Arc<Parts>);

struct Parts {
    /// Invariant: the URL is http or https and has a host, no fragment, no credentials, and at most
    /// `MAX_URL_BYTES`.
    url: Url,
    /// The URL's keys. Computed on first use, and shared with links on the same page to the same
    /// origin.
    keys: OnceLock<Arc<OriginKeys>>,
    /// The URL's [`UrlShape`], its text without variable parts. Computed on first use, because most
    /// URLs never need it.
    shape: OnceLock<Box<UrlShape>>,
}

/// Why a string can't be crawled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnusableUrlError {
    /// The string has only blanks.
    #[error("empty URL")]
    Empty,
    /// The scheme is neither http nor https.
    #[error("scheme `{0}` is not http or https")]
    Scheme(String),
    /// The string is not a URL by the WHATWG URL Standard.
    #[error("not a URL: {0}")]
    Malformed(url::ParseError),
    /// The URL has more than [`MAX_URL_BYTES`], or would have with a path such as `/robots.txt`.
    #[error("URL of {bytes} bytes, more than {MAX_URL_BYTES}")]
    TooLong {
        /// The length of the URL in bytes.
        bytes: usize,
    },
}

impl UnusableUrlError {
    /// Returns a short fixed name for counters.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            UnusableUrlError::Empty => "empty",
            UnusableUrlError::Scheme(_) => "scheme",
            UnusableUrlError::Malformed(_) => "malformed",
            UnusableUrlError::TooLong { .. } => "too_long",
        }
    }
}

/// Converts a URL to canonical form. Relative references are resolved against `base`: the URL of
/// the page, or its base element.
///
/// # Errors
/// Fails with an [`UnusableUrlError`] that explains why `raw` can't be crawled. Never panics.
pub fn canonicalize(
    base: Option<&CanonicalUrl>,
    raw: &str,
) -> Result<CanonicalUrl, UnusableUrlError> {
    let raw = raw.trim_matches(|c: char| c <= ' ');
    if raw.is_empty() && base.is_none() {
        return Err(UnusableUrlError::Empty);
    }
    if raw.len() > MAX_URL_BYTES {
        return Err(UnusableUrlError::TooLong { bytes: raw.len() });
    }
    let parsed = match base {
        Some(base) => base.as_url().join(&without_extra_slashes(raw)),
        None => Url::parse(raw),
    };
    let url = CanonicalUrl::new(parsed.map_err(UnusableUrlError::Malformed)?)?;
    // Share the keys, because most links of a page stay on its origin.
    if let Some(keys) = base.map(CanonicalUrl::keys)
        && keys.origin.as_str() == url.origin_text()
    {
        let _ = url.0.keys.set(Arc::clone(keys));
    }
    Ok(url)
}

/// Returns a reference with exactly two slashes in front of its host. References that don't start
/// with a host are returned unchanged. By the URL Standard, further slashes are ignored in http
/// URLs (section 4.4, "special authority ignore slashes state"), but `url` 2.5 does so for absolute
/// URLs only.
fn without_extra_slashes(reference: &str) -> Cow<'_, str> {
    let is_slash = |c: char| matches!(c, '/' | '\\');
    if !reference.starts_with(is_slash) {
        return Cow::Borrowed(reference);
    }
    // URL parsers ignore tabs and line breaks, so skip these too.
    let rest = reference.trim_start_matches(['/', '\\', '\t', '\n', '\r']);
    let start = &reference[..reference.len() - rest.len()];
    match start.matches(is_slash).count() {
        0..=2 => Cow::Borrowed(reference),
        _ => Cow::Owned(format!("//{rest}")),
    }
}

/// Returns a URL reference from a header field as text. If the bytes aren't valid UTF-8, those that
/// aren't ASCII are percent-encoded, as curl and Chromium do. Replacing them by U+FFFD would yield
/// another URL.
#[must_use]
pub fn reference_from_bytes(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => percent_encode(bytes, &AsciiSet::EMPTY).into(),
    }
}

/// Returns the target of a redirect from its `Location` field (RFC 9110 section 10.2.2). `url` is the
/// URL that redirects. `None` if the field is empty: browsers treat it like a missing one.
#[must_use]
pub fn location_target(
    url: &CanonicalUrl,
    location: &[u8],
) -> Option<Result<CanonicalUrl, UnusableUrlError>> {
    let location = location.trim_ascii();
    (!location.is_empty()).then(|| canonicalize(Some(url), &reference_from_bytes(location)))
}

impl CanonicalUrl {
    fn new(mut url: Url) -> Result<CanonicalUrl, UnusableUrlError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UnusableUrlError::Scheme(url.scheme().to_owned()));
        }
        url.set_fragment(None);
        // Since 2025, `^` belongs to the path percent-encode set. `url` 2.5 does not follow this
        // yet.
        if url.path().contains('^') {
            url.set_path(&url.path().replace('^', "%5E"));
        }
        // Ignore errors: both calls fail only for URLs without a host, and http URLs have one.
        if !url.username().is_empty() {
            let _ = url.set_username("");
        }
        if url.password().is_some() {
            let _ = url.set_password(None);
        }
        // Reject an origin that is too long to append the crawler's own paths to, such as
        // `/robots.txt`.
        let origin_bytes = url[..Position::BeforePath].len();
        match url.as_str().len().max(origin_bytes + MAX_OWN_PATH_BYTES) {
            bytes if bytes > MAX_URL_BYTES => Err(UnusableUrlError::TooLong { bytes }),
            _ => {
                let (keys, shape) = (OnceLock::new(), OnceLock::new());
                Ok(CanonicalUrl(Arc::new(Parts { url, keys, shape })))
            }
        }
    }

    /// Returns the URL of `origin` with this path, which begins with `/`.
    pub(crate) fn of_origin(origin: &Origin, path: &str) -> Result<CanonicalUrl, UnusableUrlError> {
        let url = canonicalize(None, &format!("{origin}{path}"))?;
        let _ = url.0.keys.set(Arc::new(OriginKeys::new(origin.clone())));
        Ok(url)
    }

    fn keys(&self) -> &Arc<OriginKeys> {
        let new = || Arc::new(OriginKeys::new(Origin::of_text(self.origin_text())));
        self.0.keys.get_or_init(new)
    }

    /// Returns the cell that holds the URL's [`UrlShape`] once it is computed.
    pub(crate) fn kept_shape(&self) -> &OnceLock<Box<UrlShape>> {
        &self.0.shape
    }

    /// Returns the text before the path, which is the same as the text of the URL's origin.
    #[must_use]
    pub fn origin_text(&self) -> &str {
        &self.0.url[..Position::BeforePath]
    }

    /// Returns the whole URL, ASCII only.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.as_url().as_str()
    }

    /// Returns the URL as a parsed [`Url`].
    #[must_use]
    pub fn as_url(&self) -> &Url {
        &self.0.url
    }

    /// Returns `http` or `https`.
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.as_url().scheme()
    }

    /// Returns the host name or address as in the URL, with an IPv6 address in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.as_url()[Position::BeforeHost..Position::AfterHost]
    }

    /// Returns the port, even if it is the scheme's default.
    #[must_use]
    pub fn port(&self) -> u16 {
        let port = self.as_url().port_or_known_default();
        port.expect("invariant: http and https have a default port")
    }

    /// Returns path and query, beginning with `/`. Robots rules are matched against this text, and
    /// origin-form request lines contain it.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        &self.as_url()[Position::BeforePath..Position::AfterQuery]
    }

    /// Returns the path alone, beginning with `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        self.as_url().path()
    }

    /// Returns scheme, host and port.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.keys().origin.clone()
    }

    /// Returns the key of the host. The crawler keeps a minimum gap between requests to URLs with
    /// the same key.
    #[must_use]
    pub fn host_key(&self) -> HostKey {
        self.keys().host_key().clone()
    }

    /// Returns the registrable domain.
    #[must_use]
    pub fn site(&self) -> Site {
        self.keys().site().clone()
    }
}

impl Origin {
    /// Parses an origin from its written form.
    ///
    /// # Errors
    /// Fails with [`UnusableUrlError`] if `text` is not an http or https URL.
    pub fn parse(text: &str) -> Result<Origin, UnusableUrlError> {
        canonicalize(None, text).map(|url| url.origin())
    }

    /// Returns the URL of this origin's robots.txt.
    #[must_use]
    pub fn robots_url(&self) -> CanonicalUrl {
        self.url("/robots.txt")
    }

    /// Returns the URL of a path on this origin.
    ///
    /// # Panics
    /// Panics if `path` does not begin with `/`, or if the URL would be longer than
    /// [`MAX_URL_BYTES`]. Only pass paths that the program defines, of at most 64 bytes.
    #[must_use]
    pub fn url(&self, path: &str) -> CanonicalUrl {
        assert!(path.starts_with('/'), "not a path: {path}");
        CanonicalUrl::of_origin(self, path).expect("invariant: an origin and a path")
    }
}

impl HostKey {
    /// Parses a host key from its written form.
    ///
    /// # Errors
    /// Fails with [`UnusableUrlError`] if `text` is not a host.
    pub fn parse(text: &str) -> Result<HostKey, UnusableUrlError> {
        // Reject characters at which a URL parser would end the host or the credentials, and
        // control characters, which it would ignore.
        let is_outside =
            |c: char| matches!(c, '/' | '\\' | '?' | '#' | '@') || c.is_ascii_control();
        if text.contains(is_outside) {
            let error = url::ParseError::InvalidDomainCharacter;
            return Err(UnusableUrlError::Malformed(error));
        }
        canonicalize(None, &format!("http://{text}/")).map(|url| url.host_key())
    }
}

impl PartialEq for CanonicalUrl {
    fn eq(&self, other: &CanonicalUrl) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.as_str() == other.as_str()
    }
}

impl Eq for CanonicalUrl {}

impl Hash for CanonicalUrl {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl PartialOrd for CanonicalUrl {
    fn partial_cmp(&self, other: &CanonicalUrl) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CanonicalUrl {
    fn cmp(&self, other: &CanonicalUrl) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl fmt::Display for CanonicalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for CanonicalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CanonicalUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::{
        CanonicalUrl, MAX_OWN_PATH_BYTES, MAX_URL_BYTES, UnusableUrlError, canonicalize,
        reference_from_bytes,
    };

    fn check(base: Option<&str>, raw: &str, expect: Expect) {
        let base = base.map(|base| canonicalize(None, base).unwrap());
        let actual = match canonicalize(base.as_ref(), raw) {
            Ok(url) => url.to_string(),
            Err(why) => format!("unusable ({}): {why}", why.name()),
        };
        expect.assert_eq(&actual);
    }

    #[test]
    fn further_slashes_before_a_host_are_ignored() {
        let base = "https://a.example/x/y";
        for reference in [
            "///b.example/p",
            "////b.example/p",
            "//\\b.example/p",
            "/\t//b.example/p",
        ] {
            check(Some(base), reference, expect!["https://b.example/p"]);
        }
        check(Some(base), "//b.example/p", expect!["https://b.example/p"]);
        check(
            Some(base),
            "/b.example//p",
            expect!["https://a.example/b.example//p"],
        );
        check(
            Some(base),
            "///",
            expect!["unusable (malformed): not a URL: empty host"],
        );
    }

    #[test]
    fn references_in_header_fields_keep_bytes_that_are_not_utf_8() {
        assert_eq!(reference_from_bytes(b"/caf\xe9?q=\xe9"), "/caf%E9?q=%E9");
        assert_eq!(reference_from_bytes("/café".as_bytes()), "/café");
    }

    #[test]
    fn whatwg_form() {
        check(
            None,
            "  HTTP://Example.ORG:80/a/../b/./c?Q=1 \n",
            expect!["http://example.org/b/c?Q=1"],
        );
        check(
            None,
            "https://example.org:443",
            expect!["https://example.org/"],
        );
        check(
            None,
            "http://example.org:8080",
            expect!["http://example.org:8080/"],
        );
        check(
            None,
            "http://bücher.example/ü?ü",
            expect!["http://xn--bcher-kva.example/%C3%BC?%C3%BC"],
        );
        check(None, "http://0x7f.1/", expect!["http://127.0.0.1/"]);
        check(None, "http://[::0001]/", expect!["http://[::1]/"]);
        check(
            None,
            "http:\\\\example.org\\a",
            expect!["http://example.org/a"],
        );
    }

    #[test]
    fn whatwg_a_caret_is_encoded_in_the_path_alone() {
        for raw in [
            "/^GSPC/..;/a%5eb^/?q=^x#^",
            "//e.example/^GSPC/..;/a%5eb^/?q=^x",
        ] {
            check(
                Some("http://e.example/^/"),
                raw,
                expect!["http://e.example/%5EGSPC/..;/a%5eb%5E/?q=^x"],
            );
        }
        check(
            Some("http://e.example//a^b/c"),
            "d",
            expect!["http://e.example//a%5Eb/d"],
        );
        let of = |raw: &str| canonicalize(None, raw).unwrap();
        assert_eq!(of("http://e.example/a^b"), of("http://e.example/a%5Eb"));
        // Only the encoded form of this URL exceeds the limit.
        check(
            None,
            &format!("http://e.example/{}", "^".repeat(3000)),
            expect!["unusable (too_long): URL of 9017 bytes, more than 8192"],
        );
    }

    #[test]
    fn fragment_and_credentials_are_dropped() {
        check(
            None,
            "http://example.org/a#b",
            expect!["http://example.org/a"],
        );
        check(
            None,
            "http://u:p@example.org/",
            expect!["http://example.org/"],
        );
        check(
            None,
            "http://example.org/?#",
            expect!["http://example.org/?"],
        );
    }

    #[test]
    fn relative_references() {
        let base = Some("http://example.org/a/b?q");
        check(base, "c", expect!["http://example.org/a/c"]);
        check(base, "?x", expect!["http://example.org/a/b?x"]);
        check(base, "#top", expect!["http://example.org/a/b?q"]);
        check(base, "", expect!["http://example.org/a/b?q"]);
        check(base, "//other.example/x", expect!["http://other.example/x"]);
        check(base, "/../../x", expect!["http://example.org/x"]);
    }

    #[test]
    fn unusable_links_are_values_with_a_reason() {
        check(None, " ", expect!["unusable (empty): empty URL"]);
        check(
            None,
            "a/b",
            expect!["unusable (malformed): not a URL: relative URL without a base"],
        );
        check(
            None,
            "mailto:a@b.example",
            expect!["unusable (scheme): scheme `mailto` is not http or https"],
        );
        check(
            Some("http://e.example/"),
            "javascript:x()",
            expect!["unusable (scheme): scheme `javascript` is not http or https"],
        );
        check(
            None,
            "http://",
            expect!["unusable (malformed): not a URL: empty host"],
        );
        check(
            None,
            "http://a b/",
            expect!["unusable (malformed): not a URL: invalid international domain name"],
        );
        check(
            None,
            "http://e.example:99999/",
            expect!["unusable (malformed): not a URL: invalid port number"],
        );
        let robots = |host: usize| {
            let url = canonicalize(None, &format!("http://{}/", "a".repeat(host)));
            url.map(|url| url.origin().robots_url().as_str().len())
        };
        let longest = MAX_URL_BYTES - "http://".len() - MAX_OWN_PATH_BYTES;
        assert_eq!(robots(longest), Ok("http:///robots.txt".len() + longest));
        let bytes = MAX_URL_BYTES + 1;
        assert_eq!(
            robots(longest + 1),
            Err(UnusableUrlError::TooLong { bytes })
        );
        let long = format!("http://e.example/{}", "a".repeat(MAX_URL_BYTES));
        check(
            None,
            &long,
            expect!["unusable (too_long): URL of 8209 bytes, more than 8192"],
        );
    }

    #[test]
    fn a_url_may_have_8192_bytes_before_and_after() {
        let long = |path: usize| format!("http://e.example/{}", "a".repeat(path));
        let longest = canonicalize(None, &long(MAX_URL_BYTES - 17)).unwrap();
        assert_eq!(longest.as_str().len(), MAX_URL_BYTES);
        // A text this long is rejected without parsing, although the URL without its fragment would
        // be short enough.
        check(
            None,
            &format!("http://e.example/#{}", "a".repeat(MAX_URL_BYTES)),
            expect!["unusable (too_long): URL of 8210 bytes, more than 8192"],
        );
        // Percent-encoding lengthens the URL.
        check(
            Some("http://e.example/"),
            &format!("/{}", "ü".repeat(2000)),
            expect!["unusable (too_long): URL of 12017 bytes, more than 8192"],
        );
    }

    #[test]
    fn each_part_is_returned() {
        let parts = |url: &str| {
            let url = canonicalize(None, url).unwrap();
            let (scheme, host, port) = (url.scheme(), url.host(), url.port());
            let (path, whole) = (url.path(), url.path_and_query());
            format!("{scheme} {host} {port} {path} {whole} {url:?}")
        };
        assert_eq!(
            parts("http://a.example/b/c?d"),
            "http a.example 80 /b/c /b/c?d CanonicalUrl(http://a.example/b/c?d)"
        );
        assert_eq!(
            parts("https://[::1]/"),
            "https [::1] 443 / / CanonicalUrl(https://[::1]/)"
        );
        assert_eq!(
            parts("https://a.example:8443"),
            "https a.example 8443 / / CanonicalUrl(https://a.example:8443/)"
        );
    }

    #[test]
    fn a_clone_and_a_link_within_the_origin_share_keys() {
        let page = canonicalize(None, "http://a.example/x").unwrap();
        let copy = page.clone();
        assert_eq!(page.as_str().as_ptr(), copy.as_str().as_ptr());
        let link = canonicalize(Some(&page), "/y?z").unwrap();
        let text = |url: &CanonicalUrl| url.host_key().as_str().as_ptr();
        assert_eq!(text(&link), text(&copy));
        for other in [
            "https://a.example/",
            "http://a.example:81/",
            "//b.a.example/",
        ] {
            let away = canonicalize(Some(&page), other).unwrap();
            let anew = canonicalize(None, away.as_str()).unwrap();
            assert_eq!(
                (away.origin(), away.host_key()),
                (anew.origin(), anew.host_key())
            );
            assert_ne!(away.origin(), page.origin());
        }
    }

    proptest! {
        #[test]
        fn canonical_form_is_its_own_canonical_form(raw in "(https?://)?[a-z0-9.:/?#%@ \\[\\]éß-]{0,60}") {
            if let Ok(url) = canonicalize(None, &raw) {
                prop_assert_eq!(&canonicalize(None, url.as_str()).unwrap(), &url);
                prop_assert!(url.as_str().is_ascii());
                prop_assert!(url.path_and_query().starts_with('/'));
                prop_assert_eq!(format!("{}{}", url.origin(), url.path_and_query()), url.to_string());
            }
        }

        #[test]
        fn nothing_panics(base in "\\PC{0,40}", raw in "\\PC{0,80}") {
            let base = canonicalize(None, &base).ok();
            let _ = canonicalize(base.as_ref(), &raw);
        }
    }
}
