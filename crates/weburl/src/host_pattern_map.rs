//! A map from host patterns to values. A pattern is a host name, which also matches its subdomains,
//! or an address.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::IpAddr;

use crate::host_parsing::{host_address, host_and_port};
use crate::url_keys::HostKey;

/// Values by host name, for per-host settings.
///
/// A pattern is a host name, which includes its subdomains, or an address. A pattern on loopback
/// may include a port, because each port is a separate host there. An IPv4 address also matches its
/// IPv4-mapped IPv6 address. The longest matching pattern wins; patterns are not combined.
///
/// ```
/// use crawl_weburl::{HostKey, HostPatternMap};
///
/// let mut table = HostPatternMap::default();
/// table.insert("example.org", 5)?;
/// let host = HostKey::parse("www.example.org").unwrap();
/// assert_eq!(table.find(&host), Some(("example.org", &5)));
/// # Ok::<(), crawl_weburl::HostPatternError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HostPatternMap<T> {
    by_pattern: BTreeMap<Box<str>, T>,
}

/// Why a pattern is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostPatternError {
    /// The pattern is neither a name nor an address.
    #[error("not a host name or address: `{0}`")]
    NoHost(String),
    /// The pattern has a port but is not on loopback. Ports distinguish hosts only on loopback.
    #[error("a port counts on loopback only: `{0}`")]
    Port(String),
    /// The host already has a value.
    #[error("named twice: `{0}`")]
    Twice(String),
}

impl<T> Default for HostPatternMap<T> {
    fn default() -> HostPatternMap<T> {
        HostPatternMap {
            by_pattern: BTreeMap::new(),
        }
    }
}

impl<T> HostPatternMap<T> {
    /// Adds a pattern: `example.org`, `192.0.2.7`, `[2001:db8::7]`, `127.0.0.1:8080`.
    ///
    /// # Errors
    /// Fails with [`HostPatternError`] if the pattern is invalid or already present.
    pub fn insert(&mut self, pattern: &str, value: T) -> Result<(), HostPatternError> {
        let key = HostKey::parse(pattern)
            .ok()
            .filter(|_| !pattern.contains('*'));
        let key = key.ok_or_else(|| HostPatternError::NoHost(pattern.to_owned()))?;
        let has_port = |host: &str| host_and_port(host).1.is_some_and(|port| !port.is_empty());
        let name = match has_port(pattern) {
            false => key.host(),
            true if has_port(key.as_str()) => key.as_str(),
            true => return Err(HostPatternError::Port(pattern.to_owned())),
        };
        match self.by_pattern.entry(name.into()) {
            Entry::Occupied(_) => Err(HostPatternError::Twice(pattern.to_owned())),
            Entry::Vacant(place) => {
                place.insert(value);
                Ok(())
            }
        }
    }

    /// Returns the pattern that applies to a host, and its value.
    #[must_use]
    pub fn find(&self, host: &HostKey) -> Option<(&str, &T)> {
        let (name, port) = host_and_port(host.as_str());
        self.find_name(name, port)
    }

    /// Does the same as [`HostPatternMap::find`] for a name and a port that are not a host key,
    /// such as a registrable domain without a port.
    #[must_use]
    pub fn find_name(&self, name: &str, port: Option<&str>) -> Option<(&str, &T)> {
        if self.by_pattern.is_empty() {
            return None;
        }
        let get = |name: &str| self.by_pattern.get_key_value(name);
        let mut rest = Some(name);
        while let Some(name) = rest {
            let with_port = port.and_then(|port| get(&format!("{name}:{port}")));
            if let Some((pattern, value)) = with_port.or_else(|| get(name)) {
                return Some((pattern, value));
            }
            // This loop needs no special case for addresses. The end of an address, such as `0.1`,
            // is never a pattern, because a name that ends in a number is parsed as an address.
            rest = name.split_once('.').map(|(_, domain)| domain);
        }
        // Systems connect to an IPv4-mapped address by IPv4 (RFC 4291 section 2.5.5.2).
        match host_address(name).filter(|_| name.starts_with('[')) {
            Some(IpAddr::V6(v6)) => self.find_name(&v6.to_ipv4_mapped()?.to_string(), port),
            _ => None,
        }
    }

    /// Returns whether the table has no patterns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_pattern.is_empty()
    }

    /// Returns all patterns with their values, sorted by pattern.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        let pairs = self.by_pattern.iter();
        pairs.map(|(pattern, value)| (&**pattern, value))
    }
}

#[cfg(test)]
mod tests {
    use super::{HostPatternError, HostPatternMap};
    use crate::url_keys::HostKey;

    fn table(patterns: &[&str]) -> HostPatternMap<()> {
        let mut table = HostPatternMap::default();
        for pattern in patterns {
            table.insert(pattern, ()).unwrap();
        }
        table
    }

    #[test]
    fn the_longest_pattern_wins() {
        let table = table(&[
            "example.org",
            "www.Example.org",
            "org",
            "192.0.2.7",
            "[2001:db8::7]",
            "127.0.0.1",
            "127.0.0.1:8080",
            "localhost:81",
            "localhost",
            "bücher.example",
        ]);
        let check = |host: &str, pattern: Option<&str>| {
            let host = HostKey::parse(host).unwrap();
            assert_eq!(table.find(&host).map(|(pattern, _)| pattern), pattern);
        };
        check("example.org", Some("example.org"));
        check("a.b.example.org", Some("example.org"));
        check("www.example.org", Some("www.example.org"));
        check("x.www.example.org", Some("www.example.org"));
        check("badexample.org", Some("org"));
        check("example.com", None);
        check("192.0.2.7", Some("192.0.2.7"));
        check("192.0.2.8", None);
        check("[2001:db8::7]", Some("[2001:db8::7]"));
        check("[::ffff:192.0.2.7]", Some("192.0.2.7"));
        check("[::ffff:192.0.2.8]", None);
        check("[::ffff:7f00:1]:8080", Some("127.0.0.1:8080"));
        check("[::ffff:7f00:1]:8081", Some("127.0.0.1"));
        check("127.0.0.1:8080", Some("127.0.0.1:8080"));
        check("127.0.0.1:8081", Some("127.0.0.1"));
        check("localhost:81", Some("localhost:81"));
        check("a.localhost:81", Some("localhost:81"));
        check("a.localhost:82", Some("localhost"));
        check("www.xn--bcher-kva.example", Some("xn--bcher-kva.example"));
    }

    #[test]
    fn a_pattern_must_be_a_host() {
        let mut table = table(&["example.org"]);
        let mut check = |pattern: &str, why: fn(String) -> HostPatternError| {
            let result = table.insert(pattern, ());
            assert_eq!(result, Err(why(pattern.to_owned())), "{pattern}");
        };
        check("", HostPatternError::NoHost);
        check("*.example.org", HostPatternError::NoHost);
        check("http://example.org", HostPatternError::NoHost);
        check("example.org/a", HostPatternError::NoHost);
        check("user@example.org", HostPatternError::NoHost);
        check("example.org:8443", HostPatternError::Port);
        check("EXAMPLE.org.", HostPatternError::Twice);
    }
}
