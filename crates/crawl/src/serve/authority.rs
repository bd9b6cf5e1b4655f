//! The host and port in a request.

use std::net::IpAddr;

use axum::http::{HeaderMap, Uri, header};
use crawl_weburl::host_and_port;

/// Host and port as in a `Host` field (RFC 9110 section 7.2): `uri-host [ ":" port ]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostFieldAuthority {
    /// The text as sent, in lower case.
    pub(crate) text: String,
    /// The IP address. `None` if the host is a name.
    address: Option<IpAddr>,
}

impl HostFieldAuthority {
    /// Parses a `Host` field. `None` if RFC 3986 section 3.2 doesn't allow the text, such as
    /// `[::1]evil.example`, or if it includes user information.
    pub(crate) fn parse(text: &str) -> Option<HostFieldAuthority> {
        let (host, port) = host_and_port(text);
        let address = match host.strip_prefix('[') {
            Some(rest) => Some(rest.strip_suffix(']')?.parse().map(IpAddr::V6).ok()?),
            None if is_reg_name(host) => host.parse().map(IpAddr::V4).ok(),
            None => return None,
        };
        is_port(port.unwrap_or_default()).then(|| HostFieldAuthority {
            text: text.to_ascii_lowercase(),
            address,
        })
    }

    /// Returns whether the host can only mean this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let name = host_and_port(&self.text).0;
        self.address
            .map_or(name == "localhost", |address| address.is_loopback())
    }
}

/// Returns the server's name in a request, as sent (RFC 9112 section 3.2). A request target that is
/// an absolute URL overrides `Host`. `None` if `Host` is missing or repeated.
pub(crate) fn named(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    if let Some(authority) = uri.authority() {
        return Some(authority.to_string());
    }
    let mut fields = headers.get_all(header::HOST).iter();
    let field = fields.next()?;
    let text = String::from_utf8_lossy(field.as_bytes()).into_owned();
    fields.next().is_none().then_some(text)
}

/// Returns whether a request names only this machine.
pub(crate) fn names_loopback(uri: &Uri, headers: &HeaderMap) -> bool {
    let name = named(uri, headers);
    let authority = name.as_deref().and_then(HostFieldAuthority::parse);
    authority.is_some_and(|authority| authority.is_loopback())
}

/// Matches a non-empty `reg-name` of RFC 3986 section 3.2.2, which includes IPv4 addresses.
fn is_reg_name(host: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%".contains(&byte);
    !host.is_empty() && host.bytes().all(allowed)
}

/// Matches a port, which may be empty (RFC 3986 section 3.2.3).
fn is_port(port: &str) -> bool {
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    is_number && (port.is_empty() || port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::HostFieldAuthority;

    fn is_loopback(text: &str) -> Option<bool> {
        HostFieldAuthority::parse(text).map(|authority| authority.is_loopback())
    }

    #[test]
    fn rfc9110_7_2_a_host_is_an_address_or_a_name_and_a_port() {
        for text in [
            "127.0.0.1:8787",
            "LocalHost",
            "localhost:",
            "[::1]:8787",
            "127.9.9.9",
        ] {
            assert_eq!(is_loopback(text), Some(true), "{text}");
        }
        let other_hosts = [
            "example.org:80",
            "localhost.example.org",
            "[2001:db8::1]",
            "127.1",
            "0:1",
        ];
        for text in other_hosts {
            assert_eq!(is_loopback(text), Some(false), "{text}");
        }
    }

    #[test]
    fn rfc3986_3_2_other_text_is_not_a_host() {
        for text in [
            "",
            ":80",
            "[::1]evil.example",
            "[::1]evil.example:80",
            "[::1]]",
            "[::1",
            "::1",
            "[127.0.0.1]",
            "[::1%25lo]",
            "[v1.a]",
            "a@localhost",
            "localhost@evil.example",
            "localhost:80:80",
            "localhost:+80",
            "localhost:65536",
            "localhost:x",
            "localhost/evil",
            "localhost evil",
            "localhost\u{fffd}",
        ] {
            assert_eq!(HostFieldAuthority::parse(text), None, "{text}");
        }
    }
}
