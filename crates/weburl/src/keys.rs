//! The keys that follow from a URL: origin, host key, site.

use std::fmt;
use std::sync::Arc;

use url::{Host, Position, Url};

use crate::address::{AddressClass, classify};
use crate::canonical::{CanonicalUrl, Unusable, canonicalize};

/// Scheme, host and port: what one robots.txt speaks for (RFC 9309 section 2.3).
///
/// Written as `http://example.org`, with a port only where it is not the default.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(Arc<str>);

/// The key that a gap is kept for: the host name or address, without scheme.
///
/// A trailing dot is dropped. The port counts on loopback only, where each port is a
/// server of its own; elsewhere the ports of a host are one machine.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostKey(Arc<str>);

/// The registrable domain by the public suffix list; an address, or a name without a
/// registrable part, is its own site.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site(Arc<str>);

impl Origin {
    pub(crate) fn of(url: &Url) -> Origin {
        Origin(url[..Position::BeforePath].into())
    }

    /// Reads an origin back from its written form.
    ///
    /// # Errors
    /// [`Unusable`] where `text` is not an http or https URL.
    pub fn parse(text: &str) -> Result<Origin, Unusable> {
        canonicalize(None, text).map(|url| url.origin())
    }

    /// The written form, such as `http://example.org:8080`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The URL of this origin's robots.txt.
    #[must_use]
    pub fn robots_url(&self) -> CanonicalUrl {
        self.url("/robots.txt")
    }

    /// A path of this origin; `path` begins with `/`.
    ///
    /// # Panics
    /// Where `path` does not begin with `/`: the path is the program's own.
    #[must_use]
    pub fn url(&self, path: &str) -> CanonicalUrl {
        assert!(path.starts_with('/'), "not a path: {path}");
        canonicalize(None, &format!("{}{path}", self.0)).expect("invariant: an origin and a path")
    }

    /// The host that serves this origin.
    #[must_use]
    pub fn host_key(&self) -> HostKey {
        self.url("/").host_key()
    }

    /// The registrable domain of this origin.
    #[must_use]
    pub fn site(&self) -> Site {
        self.url("/").site()
    }
}

impl HostKey {
    pub(crate) fn of(url: &Url) -> HostKey {
        let loopback = match url.host() {
            Some(Host::Ipv4(v4)) => classify(v4.into()) == AddressClass::Loopback,
            Some(Host::Ipv6(v6)) => classify(v6.into()) == AddressClass::Loopback,
            Some(Host::Domain(name)) => is_localhost(name),
            None => false,
        };
        let host = url.host_str().unwrap_or_default().trim_end_matches('.');
        match (loopback, url.port_or_known_default()) {
            (true, Some(port)) => HostKey(format!("{host}:{port}").into()),
            _ => HostKey(host.into()),
        }
    }

    /// Reads a host key back from its written form.
    ///
    /// # Errors
    /// [`Unusable`] where `text` is no host.
    pub fn parse(text: &str) -> Result<HostKey, Unusable> {
        canonicalize(None, &format!("http://{text}/")).map(|url| url.host_key())
    }

    /// The written form, such as `example.org`, `127.0.0.1:8080` or `[::1]:80`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host without port, as a resolver takes it.
    #[must_use]
    pub fn host(&self) -> &str {
        match self.0.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
            _ => &self.0,
        }
    }
}

impl Site {
    pub(crate) fn of(url: &Url) -> Site {
        let host = url.host_str().unwrap_or_default().trim_end_matches('.');
        let registrable = match url.host() {
            Some(Host::Domain(_)) => psl::domain_str(host),
            _ => None,
        };
        Site(registrable.unwrap_or(host).into())
    }

    /// The written form, such as `example.co.uk`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
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
    fn ours_the_host_of_a_key_has_no_port() {
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
