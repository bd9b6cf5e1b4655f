//! Other politeness for some hosts.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use crawl_weburl::{HostKey, host_and_port};
use thiserror::Error;

use crate::daily_hours::DailyHours;

/// Politeness by host name, for the hosts that the operator knows better.
///
/// A pattern is a host name, which stands for its subdomains too, or an address; on
/// loopback, where each port is a host of its own, it may name the port. Of several that
/// match the longest counts, and it alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolitenessOverrides {
    by_pattern: BTreeMap<Box<str>, PolitenessOverride>,
}

/// The values that differ for the hosts of one pattern; `None`: as for every host.
///
/// A wait that a host itself asks for still lengthens its gap, whatever stands here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolitenessOverride {
    /// Instead of [`Politeness::delay`](crate::Politeness::delay).
    pub delay: Option<Duration>,
    /// Instead of [`Politeness::delay_factor`](crate::Politeness::delay_factor).
    pub delay_factor: Option<f64>,
    /// Instead of [`Politeness::per_host`](crate::Politeness::per_host).
    pub per_host: Option<u32>,
    /// Instead of [`Politeness::per_site`](crate::Politeness::per_site), for sites (registrable domains) that the
    /// pattern matches.
    pub per_site: Option<u32>,
    /// Instead of [`Politeness::site_delay`](crate::Politeness::site_delay), for sites that the pattern matches.
    pub site_delay: Option<Duration>,
    /// Instead of [`Politeness::quiet`](crate::Politeness::quiet).
    pub quiet: Option<Vec<DailyHours>>,
}

/// The reason why a pattern is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BadHostPattern {
    /// Neither a name nor an address.
    #[error("not a host name or address: `{0}`")]
    NoHost(String),
    /// A port where ports do not tell hosts apart.
    #[error("a port counts on loopback only: `{0}`")]
    Port(String),
    /// The host has a table already.
    #[error("named twice: `{0}`")]
    Twice(String),
}

impl PolitenessOverrides {
    /// Adds a pattern: `example.org`, `192.0.2.7`, `[2001:db8::7]`, `127.0.0.1:8080`.
    ///
    /// # Errors
    /// [`BadHostPattern`] where it is none, or the same host has one.
    pub fn insert(
        &mut self,
        pattern: &str,
        limits: PolitenessOverride,
    ) -> Result<(), BadHostPattern> {
        let plain = pattern.bytes().all(|byte| !b"/@?#\\*".contains(&byte));
        let key = HostKey::parse(pattern).ok().filter(|_| plain);
        let key = key.ok_or_else(|| BadHostPattern::NoHost(pattern.to_owned()))?;
        let has_port = |host: &str| host_and_port(host).1.is_some_and(|port| !port.is_empty());
        let name = match has_port(pattern) {
            false => key.host(),
            true if has_port(key.as_str()) => key.as_str(),
            true => return Err(BadHostPattern::Port(pattern.to_owned())),
        };
        match self.by_pattern.entry(name.into()) {
            Entry::Occupied(_) => Err(BadHostPattern::Twice(pattern.to_owned())),
            Entry::Vacant(place) => {
                place.insert(limits);
                Ok(())
            }
        }
    }

    /// The pattern that counts for a host, and what it says.
    #[must_use]
    pub fn find(&self, host: &HostKey) -> Option<(&str, &PolitenessOverride)> {
        let (name, port) = host_and_port(host.as_str());
        self.find_name(name, port)
    }

    /// All patterns, in the order of their text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &PolitenessOverride)> {
        let pairs = self.by_pattern.iter();
        pairs.map(|(pattern, limits)| (&**pattern, limits))
    }

    pub(crate) fn find_name(
        &self,
        name: &str,
        port: Option<&str>,
    ) -> Option<(&str, &PolitenessOverride)> {
        if self.by_pattern.is_empty() {
            return None;
        }
        let get = |name: &str| self.by_pattern.get_key_value(name);
        let mut rest = Some(name);
        while let Some(name) = rest {
            let with_port = port.and_then(|port| get(&format!("{name}:{port}")));
            if let Some((pattern, limits)) = with_port.or_else(|| get(name)) {
                return Some((pattern, limits));
            }
            // An address has no subdomains; no pattern is a part of one, since a name
            // that ends in a number is read as an address.
            rest = name.split_once('.').map(|(_, domain)| domain);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::HostKey;

    use super::{BadHostPattern, PolitenessOverride, PolitenessOverrides};

    fn table(patterns: &[&str]) -> PolitenessOverrides {
        let mut overrides = PolitenessOverrides::default();
        for pattern in patterns {
            overrides
                .insert(pattern, PolitenessOverride::default())
                .unwrap();
        }
        overrides
    }

    #[test]
    fn ours_the_longest_pattern_wins() {
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
        check("127.0.0.1:8080", Some("127.0.0.1:8080"));
        check("127.0.0.1:8081", Some("127.0.0.1"));
        check("localhost:81", Some("localhost:81"));
        check("a.localhost:81", Some("localhost:81"));
        check("a.localhost:82", Some("localhost"));
        check("www.xn--bcher-kva.example", Some("xn--bcher-kva.example"));
    }

    #[test]
    fn ours_a_pattern_is_a_host_and_nothing_else() {
        let mut overrides = table(&["example.org"]);
        let mut check = |pattern: &str, why: fn(String) -> BadHostPattern| {
            let result = overrides.insert(pattern, PolitenessOverride::default());
            assert_eq!(result, Err(why(pattern.to_owned())), "{pattern}");
        };
        check("", BadHostPattern::NoHost);
        check("*.example.org", BadHostPattern::NoHost);
        check("http://example.org", BadHostPattern::NoHost);
        check("example.org/a", BadHostPattern::NoHost);
        check("user@example.org", BadHostPattern::NoHost);
        check("example.org:8443", BadHostPattern::Port);
        check("EXAMPLE.org.", BadHostPattern::Twice);
    }
}
