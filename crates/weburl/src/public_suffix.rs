//! The public suffixes of a host name: the levels above domains that can be registered.

use crate::host_parsing::host_address;

/// The public suffixes of a host name, by the [Public Suffix List](https://publicsuffix.org/).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostPublicSuffixes<'a> {
    /// The suffix that a domain registry manages (section ICANN), such as `co.uk`.
    pub registry: Option<&'a str>,
    /// The longest suffix, such as `github.io`. This may be the suffix of a company that gives out
    /// subdomains (section PRIVATE).
    pub longest: Option<&'a str>,
}

/// Returns the public suffixes of a host without a trailing dot. An address has none, and neither
/// has a name under an unlisted top-level domain.
///
/// ```
/// use crawl_weburl::public_suffixes;
///
/// let suffixes = public_suffixes("www.example.github.io");
/// assert_eq!(suffixes.registry, Some("io"));
/// assert_eq!(suffixes.longest, Some("github.io"));
/// ```
#[must_use]
pub fn public_suffixes(host: &str) -> HostPublicSuffixes<'_> {
    if host_address(host).is_some() {
        return HostPublicSuffixes::default();
    }
    let longest = known_suffix(host);
    let mut registry = longest;
    // The list returns only the longest rule that matches, so look up the domain above that rule.
    while let Some((suffix, psl::Type::Private)) = registry {
        let above = suffix.split_once('.');
        registry = above.and_then(|(_, above)| known_suffix(above));
    }
    HostPublicSuffixes {
        registry: registry.map(|(suffix, _)| suffix),
        longest: longest.map(|(suffix, _)| suffix),
    }
}

/// Returns the domain one label below a suffix of the host, or `None` if the host is the suffix.
///
/// ```
/// use crawl_weburl::domain_below;
///
/// assert_eq!(domain_below("www.example.co.uk", "co.uk"), Some("example.co.uk"));
/// assert_eq!(domain_below("co.uk", "co.uk"), None);
/// ```
#[must_use]
pub fn domain_below<'a>(host: &'a str, suffix: &str) -> Option<&'a str> {
    let labels = host.strip_suffix(suffix)?.strip_suffix('.')?;
    let begin = labels.rfind('.').map_or(0, |dot| dot + 1);
    (begin < labels.len()).then(|| &host[begin..])
}

fn known_suffix(name: &str) -> Option<(&str, psl::Type)> {
    let suffix = psl::suffix(name.as_bytes())?;
    let kind = suffix.typ()?;
    let begin = name.len().checked_sub(suffix.as_bytes().len())?;
    Some((name.get(begin..)?, kind))
}

#[cfg(test)]
mod tests {
    use super::{domain_below, public_suffixes};

    /// Checks the suffixes of a host. `expected` has the registry suffix, the domain below it, the
    /// longest suffix, and the domain below the longest suffix.
    fn check(host: &str, expected: [&str; 4]) {
        let suffixes = public_suffixes(host);
        let below = |suffix: Option<&str>| suffix.and_then(|suffix| domain_below(host, suffix));
        let actual = [
            suffixes.registry,
            below(suffixes.registry),
            suffixes.longest,
            below(suffixes.longest),
        ];
        assert_eq!(actual.map(Option::unwrap_or_default), expected, "{host}");
    }

    #[test]
    fn private_suffixes_are_below_those_of_registries() {
        check(
            "www.example.com",
            ["com", "example.com", "com", "example.com"],
        );
        check("bbc.co.uk", ["co.uk", "bbc.co.uk", "co.uk", "bbc.co.uk"]);
        check("co.uk", ["co.uk", "", "co.uk", ""]);
        check(
            "a.b.github.io",
            ["io", "github.io", "github.io", "b.github.io"],
        );
        check("github.io", ["io", "github.io", "github.io", ""]);
        check(
            "bucket.s3.amazonaws.com",
            [
                "com",
                "amazonaws.com",
                "s3.amazonaws.com",
                "bucket.s3.amazonaws.com",
            ],
        );
        let city = ["kawasaki.jp", "city.kawasaki.jp"];
        check(
            "www.city.kawasaki.jp",
            [city, city].concat().try_into().unwrap(),
        );
    }

    #[test]
    fn an_unlisted_name_has_no_suffix() {
        for host in [
            "localhost",
            "intranet.example",
            "192.0.2.7",
            "[::1]",
            "",
            ".",
        ] {
            check(host, [""; 4]);
        }
    }
}
