//! The host of a URL as text: a name, or an address, and the port behind it.

use std::net::IpAddr;

/// The host of `example.org:81` and its port, as they stand there. The colons of an IPv6 address
/// stand in brackets.
///
/// ```
/// use crawl_weburl::host_and_port;
///
/// assert_eq!(host_and_port("example.org:81"), ("example.org", Some("81")));
/// assert_eq!(host_and_port("[::1]"), ("[::1]", None));
/// ```
#[must_use]
pub fn host_and_port(text: &str) -> (&str, Option<&str>) {
    let behind = text.rfind(']').unwrap_or(0);
    match text[behind..].rfind(':') {
        Some(colon) => {
            let (host, port) = text.split_at(behind + colon);
            (host, Some(&port[1..]))
        }
        None => (text, None),
    }
}

/// The address that a host is, where it is one and no name; an IPv6 address with or without
/// brackets.
#[must_use]
pub fn host_address(host: &str) -> Option<IpAddr> {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    bare.unwrap_or(host).parse().ok()
}

/// Returns whether a name is one of this machine, whatever a resolver says (RFC 6761 section 6.3).
/// It is in lower case, and without a trailing dot.
#[must_use]
pub fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::{host_address, host_and_port};

    #[test]
    fn ours_colons_in_brackets_begin_no_port() {
        for (text, host, port) in [
            ("example.org", "example.org", None),
            ("example.org:81", "example.org", Some("81")),
            ("a:", "a", Some("")),
            ("a:b:c", "a:b", Some("c")),
            ("[::1]", "[::1]", None),
            ("[::1]:80", "[::1]", Some("80")),
            ("", "", None),
        ] {
            assert_eq!(host_and_port(text), (host, port), "{text}");
        }
    }

    #[test]
    fn ours_an_address_may_stand_in_brackets() {
        for host in ["[::1]", "::1", "192.0.2.7"] {
            assert!(host_address(host).is_some(), "{host}");
        }
        for host in ["[::1", "::1]", "example.org", "192.0.2.7:80", ""] {
            assert!(host_address(host).is_none(), "{host}");
        }
    }
}
