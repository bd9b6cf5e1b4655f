//! The keys derived from a URL: origin, host key, site. The functions that parse them are next to
//! [`canonicalize`](crate::canonicalize).

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::address_class::AddressClass;
use crate::host_parsing::{class_of_host, host_address, host_and_port, without_trailing_dot};

/// Scheme, host and port: the scope of one robots.txt (RFC 9309 section 2.3).
///
/// Written as `http://example.org`, with a port only if it is not the default.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(Arc<str>);

/// The host name or address, without the scheme. The crawler keeps a minimum gap between requests
/// with the same key.
///
/// A trailing dot is dropped. The port is included only on loopback, where each port is a separate
/// server; elsewhere all ports of a host are one machine.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostKey(Arc<str>);

/// The registrable domain by the public suffix list. An address, or a name without a registrable
/// part, is its own site.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site(Arc<str>);

/// The keys of the URLs of one origin, each computed on first use.
pub(crate) struct OriginKeys {
    pub(crate) origin: Origin,
    host_key: OnceLock<HostKey>,
    site: OnceLock<Site>,
}

impl OriginKeys {
    pub(crate) fn new(origin: Origin) -> OriginKeys {
        OriginKeys {
            origin,
            host_key: OnceLock::new(),
            site: OnceLock::new(),
        }
    }

    pub(crate) fn host_key(&self) -> &HostKey {
        self.host_key.get_or_init(|| self.origin.host_key())
    }

    pub(crate) fn site(&self) -> &Site {
        self.site.get_or_init(|| self.origin.site())
    }
}

impl Origin {
    /// Creates an origin from `text`, the part of a canonical URL before its path.
    pub(crate) fn of_text(text: &str) -> Origin {
        Origin(text.into())
    }

    /// Returns the scheme, the host as in a URL, and the port if it is not the default.
    fn parts(&self) -> (&str, &str, Option<u16>) {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("http", &self.0));
        let (host, port) = host_and_port(rest);
        (scheme, host, port.and_then(|port| port.parse().ok()))
    }

    /// Returns the written form, such as `http://example.org:8080`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the host that serves this origin.
    #[must_use]
    pub fn host_key(&self) -> HostKey {
        let (scheme, host, port) = self.parts();
        let name = without_trailing_dot(host);
        let is_loopback = class_of_host(name) == Some(AddressClass::Loopback);
        let usual = if scheme == "https" { 443 } else { 80 };
        HostKey(match is_loopback {
            true => format!("{name}:{}", port.unwrap_or(usual)).into(),
            false => name.into(),
        })
    }

    /// Returns the registrable domain of this origin.
    #[must_use]
    pub fn site(&self) -> Site {
        Site::of_host(self.parts().1)
    }
}

impl HostKey {
    /// Returns the written form, such as `example.org`, `127.0.0.1:8080` or `[::1]:80`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the host without a port, in the form that a resolver expects.
    #[must_use]
    pub fn host(&self) -> &str {
        host_and_port(&self.0).0
    }

    /// Returns the registrable domain of this host.
    #[must_use]
    pub fn site(&self) -> Site {
        Site::of_host(self.host())
    }
}

impl Site {
    fn of_host(host: &str) -> Site {
        let name = without_trailing_dot(host);
        let registrable = match host_address(name) {
            Some(_) => None,
            None => psl::domain_str(name),
        };
        Site(registrable.unwrap_or(name).into())
    }

    /// Returns the written form, such as `example.co.uk`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! written {
    ($($key:ident),*) => {$(
        impl fmt::Display for $key {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $key {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($key), "({})"), self.0)
            }
        }
    )*};
}
written!(Origin, HostKey, Site);

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{HostKey, Origin};
    use crate::canonicalize;

    fn check(url: &str, expect: Expect) {
        let url = canonicalize(None, url).unwrap();
        let keys = format!("{} {} {}", url.origin(), url.host_key(), url.site());
        assert_eq!(Origin::parse(url.origin().as_str()).unwrap(), url.origin());
        assert_eq!(
            HostKey::parse(url.host_key().as_str()).unwrap(),
            url.host_key()
        );
        assert_eq!(url.origin().host_key(), url.host_key());
        assert_eq!(url.host_key().site(), url.site());
        expect.assert_eq(&keys);
    }

    #[test]
    fn keys_of_names() {
        check(
            "http://www.Example.co.uk/x",
            expect!["http://www.example.co.uk www.example.co.uk example.co.uk"],
        );
        check(
            "https://example.org:8443/",
            expect!["https://example.org:8443 example.org example.org"],
        );
        check(
            "http://example.org./",
            expect!["http://example.org. example.org example.org"],
        );
        check("http://co.uk/", expect!["http://co.uk co.uk co.uk"]);
        check(
            "http://intranet/",
            expect!["http://intranet intranet intranet"],
        );
        check(
            "http://a.github.io/",
            expect!["http://a.github.io a.github.io a.github.io"],
        );
    }

    #[test]
    fn keys_of_addresses_and_loopback() {
        check(
            "http://192.0.2.7:81/",
            expect!["http://192.0.2.7:81 192.0.2.7 192.0.2.7"],
        );
        check(
            "http://127.0.0.5:8080/",
            expect!["http://127.0.0.5:8080 127.0.0.5:8080 127.0.0.5"],
        );
        check(
            "https://localhost/",
            expect!["https://localhost localhost:443 localhost"],
        );
        check(
            "http://a.localhost:81/",
            expect!["http://a.localhost:81 a.localhost:81 a.localhost"],
        );
        check(
            "http://notlocalhost:81/",
            expect!["http://notlocalhost:81 notlocalhost notlocalhost"],
        );
        check("http://[::1]:9/", expect!["http://[::1]:9 [::1]:9 [::1]"]);
        check(
            "http://[2606:2800::1]/",
            expect!["http://[2606:2800::1] [2606:2800::1] [2606:2800::1]"],
        );
    }

    #[test]
    fn text_with_more_than_a_host_is_no_key() {
        for text in [
            "",
            "a b",
            "a\tb",
            "a.example/secret",
            "a.example\\x",
            "a.example?x",
            "a.example#x",
            "me@a.example",
            "http://a.example",
            "::1",
        ] {
            assert!(HostKey::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_host_of_a_key_has_no_port() {
        for (key, host) in [
            ("example.org", "example.org"),
            ("127.0.0.1:8080", "127.0.0.1"),
            ("localhost:443", "localhost"),
            ("[::1]:80", "[::1]"),
            ("[2606:2800::1]", "[2606:2800::1]"),
        ] {
            assert_eq!(HostKey::parse(key).unwrap().host(), host);
        }
    }

    #[test]
    fn robots_txt_of_an_origin() {
        let origin = canonicalize(None, "https://example.org:8443/a?b")
            .unwrap()
            .origin();
        assert_eq!(
            origin.robots_url().as_str(),
            "https://example.org:8443/robots.txt"
        );
    }
}
