//! The host of a URL as text: a name or an address, and the port after it.

use std::net::IpAddr;

use crate::address_class::{AddressClass, classify};

/// Splits `example.org:81` into host and port, unchanged. Colons of an IPv6 address must be in
/// brackets.
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

/// Parses a host as an address, or returns `None` if it is a name. An IPv6 address may be in
/// brackets.
#[must_use]
pub fn host_address(host: &str) -> Option<IpAddr> {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    bare.unwrap_or(host).parse().ok()
}

/// Removes a trailing dot, which only marks a name as fully qualified.
#[must_use]
pub fn without_trailing_dot(host: &str) -> &str {
    host.trim_end_matches('.')
}

/// Returns the class of a lower-case host if no look-up is needed. That is the case for an address,
/// and for `localhost` and names under it, which are loopback whatever a resolver returns (RFC 6761
/// section 6.3). `None` for all other names.
///
/// ```
/// use crawl_weburl::{AddressClass, class_of_host};
///
/// assert_eq!(class_of_host("[fd00::1]"), Some(AddressClass::Private));
/// assert_eq!(class_of_host("a.localhost."), Some(AddressClass::Loopback));
/// assert_eq!(class_of_host("example.org"), None);
/// ```
#[must_use]
pub fn class_of_host(host: &str) -> Option<AddressClass> {
    let name = without_trailing_dot(host);
    let is_localhost = name == "localhost" || name.ends_with(".localhost");
    match host_address(name) {
        Some(address) => Some(classify(address)),
        None => is_localhost.then_some(AddressClass::Loopback),
    }
}

#[cfg(test)]
mod tests {
    use super::{class_of_host, host_address, host_and_port};
    use crate::address_class::AddressClass;

    #[test]
    fn colons_in_brackets_do_not_begin_a_port() {
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
    fn an_address_may_be_in_brackets() {
        for host in ["[::1]", "::1", "192.0.2.7"] {
            assert!(host_address(host).is_some(), "{host}");
        }
        for host in ["[::1", "::1]", "example.org", "192.0.2.7:80", ""] {
            assert!(host_address(host).is_none(), "{host}");
        }
    }

    #[test]
    fn some_hosts_have_a_class_without_a_look_up() {
        for (host, class) in [
            ("127.0.0.5", Some(AddressClass::Loopback)),
            ("[::1]", Some(AddressClass::Loopback)),
            ("localhost", Some(AddressClass::Loopback)),
            ("localhost.", Some(AddressClass::Loopback)),
            ("a.localhost", Some(AddressClass::Loopback)),
            ("10.1.2.3", Some(AddressClass::Private)),
            ("[fd00::1]", Some(AddressClass::Private)),
            ("93.184.215.14", Some(AddressClass::Public)),
            ("0.0.0.0", Some(AddressClass::Unusable)),
            ("notlocalhost", None),
            ("localhost.example", None),
            ("example.org.", None),
            ("", None),
        ] {
            assert_eq!(class_of_host(host), class, "{host}");
        }
    }
}
