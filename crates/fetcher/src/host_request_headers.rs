//! Access that the operator configures for some hosts: credentials, cookies and header fields.

use std::collections::HashMap;
use std::fmt;

use crawl_weburl::{AddressClass, CanonicalUrl, HostKey, class_of_host, host_and_port};
use data_encoding::BASE64;
use http::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue};

/// The text that replaces a secret value in records.
pub(crate) const REDACTED: &str = "[redacted]";

/// Fields that the operator can't set, because the crawler sets them itself: its identity, what it
/// accepts, and framing.
const OWN_FIELDS: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "signature",
    "signature-agent",
    "signature-input",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Header fields for one host, sent with each request to this host and to no other host.
///
/// The values are secrets: `Debug` hides them, and records of exchanges contain `[redacted]`
/// instead. The fields are sent only over https, unless the host is on loopback or the operator
/// allows plain http.
#[derive(Clone)]
pub struct HostRequestHeaders {
    host: String,
    fields: HeaderMap,
    plain_http: bool,
}

/// Why a field can't be sent. The error does not contain the field's value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostRequestHeadersError {
    /// An invalid header field name, or a cookie name that contains separators.
    #[error("`{0}` isn't a valid name")]
    Name(String),
    /// The crawler sets this field itself.
    #[error("the crawler sets `{0}` itself")]
    Own(String),
    /// The field's value contains bytes that are not allowed.
    #[error("the value of `{0}` contains characters that aren't allowed there")]
    Value(String),
    /// The credentials are not in the form `USER:PASSWORD`.
    #[error("basic-auth isn't USER:PASSWORD")]
    NoPassword,
}

impl HostRequestHeaders {
    /// Creates an empty set of fields for the host with this name or address. A host on loopback
    /// may be followed by a port; without a port, every port matches.
    #[must_use]
    pub fn new(host: &str) -> HostRequestHeaders {
        let has_port = host_and_port(host).1.is_some_and(|port| !port.is_empty());
        let key = HostKey::parse(host).ok();
        let name = key.as_ref().map(|key| match has_port {
            true => key.as_str(),
            false => key.host(),
        });
        HostRequestHeaders {
            host: name.unwrap_or(host).to_owned(),
            fields: HeaderMap::new(),
            plain_http: false,
        }
    }

    /// Allows sending the fields over plain http too.
    #[must_use]
    pub fn over_plain_http(self) -> HostRequestHeaders {
        HostRequestHeaders {
            plain_http: true,
            ..self
        }
    }

    /// Adds credentials in the form `USER:PASSWORD` (RFC 7617).
    ///
    /// # Errors
    /// Fails if the colon is missing or control characters occur.
    pub fn basic_auth(
        self,
        credentials: &str,
    ) -> Result<HostRequestHeaders, HostRequestHeadersError> {
        if credentials.chars().any(char::is_control) {
            return Err(HostRequestHeadersError::Value("basic-auth".to_owned()));
        }
        if !credentials.contains(':') {
            return Err(HostRequestHeadersError::NoPassword);
        }
        let value = format!("Basic {}", BASE64.encode(credentials.as_bytes()));
        self.insert(AUTHORIZATION, &value)
    }

    /// Adds a header field.
    ///
    /// # Errors
    /// Fails if the name is invalid or reserved for the crawler, or if the value is not allowed in
    /// a field.
    pub fn header(
        self,
        name: &str,
        value: &str,
    ) -> Result<HostRequestHeaders, HostRequestHeadersError> {
        let header_name: HeaderName = name
            .parse()
            .map_err(|_| HostRequestHeadersError::Name(name.to_owned()))?;
        if OWN_FIELDS.contains(&header_name.as_str()) {
            return Err(HostRequestHeadersError::Own(name.to_owned()));
        }
        self.insert(header_name, value)
    }

    /// Adds a cookie (RFC 6265 section 4.2.1) to the cookies added before.
    ///
    /// # Errors
    /// Fails if the name or value contains characters that separate cookies.
    pub fn cookie(
        self,
        name: &str,
        value: &str,
    ) -> Result<HostRequestHeaders, HostRequestHeadersError> {
        let fits = |text: &str, barred: &str| {
            text.chars()
                .all(|c| c.is_ascii_graphic() && !barred.contains(c))
        };
        if name.is_empty() || !fits(name, "()<>@,;:\\\"/[]?={}") {
            return Err(HostRequestHeadersError::Name(name.to_owned()));
        }
        if !fits(value, ",;\\\"") {
            return Err(HostRequestHeadersError::Value(name.to_owned()));
        }
        let before = self.fields.get(COOKIE).and_then(|text| text.to_str().ok());
        let cookies = match before {
            Some(before) => format!("{before}; {name}={value}"),
            None => format!("{name}={value}"),
        };
        self.insert(COOKIE, &cookies)
    }

    pub(crate) fn fields(&self) -> &HeaderMap {
        &self.fields
    }

    fn insert(
        mut self,
        name: HeaderName,
        value: &str,
    ) -> Result<HostRequestHeaders, HostRequestHeadersError> {
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| HostRequestHeadersError::Value(name.to_string()))?;
        // Sensitive values are kept out of HTTP/2's compression tables and the client's logs.
        value.set_sensitive(true);
        self.fields.insert(name, value);
        Ok(self)
    }
}

impl fmt::Debug for HostRequestHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.fields.keys().map(HeaderName::as_str).collect();
        f.debug_struct("HostRequestHeaders")
            .field("host", &self.host)
            .field("fields", &names)
            .field("plain_http", &self.plain_http)
            .finish()
    }
}

/// The fields of all hosts for which the operator set any.
#[derive(Debug)]
pub(crate) struct RequestHeadersByHost {
    by_host: HashMap<String, HostRequestHeaders>,
    proxied: bool,
}

impl RequestHeadersByHost {
    pub(crate) fn new(all: &[HostRequestHeaders], proxied: bool) -> RequestHeadersByHost {
        let pairs = all
            .iter()
            .map(|access| (access.host.clone(), access.clone()));
        RequestHeadersByHost {
            by_host: pairs.collect(),
            proxied,
        }
    }

    /// Returns the fields to send with a request for this URL. The host must match exactly, not by
    /// parent domain, and the connection must be safe from eavesdropping.
    pub(crate) fn fields(&self, url: &CanonicalUrl) -> Option<&HeaderMap> {
        if self.by_host.is_empty() {
            return None;
        }
        let key = url.host_key();
        let access = self.by_host.get(key.as_str());
        let access = access.or_else(|| self.by_host.get(key.host()))?;
        (is_private(url, self.proxied) || access.plain_http).then_some(&access.fields)
    }
}

/// Returns whether a request for this URL is safe from eavesdropping: the request is encrypted, or
/// goes to loopback without a proxy.
pub(crate) fn is_private(url: &CanonicalUrl, is_proxied: bool) -> bool {
    let is_loopback = class_of_host(url.host()) == Some(AddressClass::Loopback);
    url.scheme() == "https" || (is_loopback && !is_proxied)
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;

    use super::*;

    fn example() -> HostRequestHeaders {
        let access = HostRequestHeaders::new("Example.org")
            .basic_auth("me:pass:word")
            .unwrap();
        let access = access.header("X-Key", "k3y").unwrap();
        let access = access.cookie("a", "1").unwrap();
        access.cookie("b", "2=3").unwrap()
    }

    fn sent(all: &[HostRequestHeaders], proxied: bool, url: &str) -> Vec<String> {
        let accesses = RequestHeadersByHost::new(all, proxied);
        let fields = accesses.fields(&canonicalize(None, url).unwrap()).cloned();
        let mut lines: Vec<_> = fields
            .unwrap_or_default()
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn fields_go_to_their_host_over_https() {
        let all = [example()];
        let expect = [
            "authorization: Basic bWU6cGFzczp3b3Jk",
            "cookie: a=1; b=2=3",
            "x-key: k3y",
        ];
        assert_eq!(sent(&all, false, "https://example.org/a"), expect);
        assert_eq!(sent(&all, true, "https://EXAMPLE.org.:8443/"), expect);
        for other in [
            "http://example.org/",
            "https://www.example.org/",
            "https://example.com/",
            "https://org/",
        ] {
            assert_eq!(sent(&all, false, other), [""; 0], "{other}");
        }
        let plain = [example().over_plain_http()];
        assert_eq!(sent(&plain, false, "http://example.org/"), expect);
    }

    #[test]
    fn loopback_is_safe_unless_a_proxy_is_used() {
        let access = |host| [HostRequestHeaders::new(host).header("x-key", "1").unwrap()];
        for (host, url) in [
            ("127.0.0.1", "http://127.0.0.1:81/"),
            ("127.0.0.1:", "http://127.0.0.1:81/"),
            ("127.0.0.1:81", "http://127.0.0.1:81/"),
            ("localhost", "http://localhost/"),
            ("[::1]", "http://[::1]:8/"),
            ("LOCALHOST.", "http://localhost:9/"),
        ] {
            assert_eq!(sent(&access(host), false, url), ["x-key: 1"], "{url}");
            assert_eq!(sent(&access(host), true, url), [""; 0], "{url}");
        }
        let other_port = sent(&access("127.0.0.1:81"), false, "http://127.0.0.1:82/");
        assert_eq!(other_port, [""; 0]);
    }

    #[test]
    fn values_are_not_shown() {
        let shown = format!(
            "{:?} {:?}",
            example(),
            RequestHeadersByHost::new(&[example()], false)
        );
        for secret in ["pass", "bWU6", "k3y", "2=3"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert!(shown.contains("authorization"), "{shown}");
    }

    #[test]
    fn errors_name_the_field_without_its_value() {
        let new = || HostRequestHeaders::new("a.example");
        let message = |result: Result<HostRequestHeaders, HostRequestHeadersError>| {
            result.unwrap_err().to_string()
        };
        assert_eq!(
            message(new().header("a b", "s")),
            "`a b` isn't a valid name"
        );
        assert_eq!(
            message(new().header("User-Agent", "s")),
            "the crawler sets `User-Agent` itself"
        );
        let expect = "the value of `x-a` contains characters that aren't allowed there";
        assert_eq!(message(new().header("X-A", "s\r\nHost: b")), expect);
        assert_eq!(
            message(new().basic_auth("s")),
            "basic-auth isn't USER:PASSWORD"
        );
        assert_eq!(
            message(new().cookie("a;b", "s")),
            "`a;b` isn't a valid name"
        );
        let expect = "the value of `a` contains characters that aren't allowed there";
        assert_eq!(message(new().cookie("a", "s; b=c")), expect);
    }
}
