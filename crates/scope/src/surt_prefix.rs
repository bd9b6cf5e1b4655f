//! Prefixes of SURTs, the notation of URLs in web archives. A SURT has the labels of the host in
//! reverse order, so that a prefix can describe a domain with its subdomains.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crawl_weburl::CanonicalUrl;

/// The beginning of a SURT: a domain with everything below it (`org,example,`), or one host and the
/// beginning of a path (`org,example,www)/docs/`).
///
/// As in Heritrix, the prefix may begin with `http://(` or `https://(`. Each of them matches both
/// http and https. A label matches only a whole label of the host, and `www` is an ordinary label.
/// If the prefix contains a port, the URL's port must be the same.
///
/// ```
/// use crawl_scope::SurtPrefix;
/// use crawl_weburl::canonicalize;
///
/// let domain: SurtPrefix = "http://(org,example,".parse()?;
/// let folder: SurtPrefix = "org,example,www)/docs/".parse()?;
/// let page = canonicalize(None, "https://www.example.org/docs/a").unwrap();
/// assert!(domain.holds(&page) && folder.holds(&page));
/// let blog = canonicalize(None, "https://www.example.org/blog").unwrap();
/// assert!(domain.holds(&blog) && !folder.holds(&blog));
/// # Ok::<(), crawl_scope::BadSurtPrefix>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurtPrefix {
    /// The prefix as given.
    text: String,
    /// The labels of the host, from last to first. An IP address is one label.
    labels: Vec<String>,
    port: Option<u16>,
    /// The beginning of the path and query. `None` if the prefix ends within the host, so that
    /// subdomains match too.
    path: Option<String>,
}

/// A text that is not a SURT prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` isn't a SURT prefix: {why}")]
pub struct BadSurtPrefix {
    /// The text as given.
    pub text: String,
    /// The defect of the text.
    pub why: &'static str,
}

impl SurtPrefix {
    /// Returns whether a URL begins with this prefix.
    #[must_use]
    pub fn holds(&self, url: &CanonicalUrl) -> bool {
        if self.port.is_some_and(|port| port != url.port()) {
            return false;
        }
        let labels = labels_of(url.host());
        match &self.path {
            Some(path) => labels == self.labels && url.path_and_query().starts_with(path.as_str()),
            None => labels.starts_with(&self.labels),
        }
    }
}

impl FromStr for SurtPrefix {
    type Err = BadSurtPrefix;

    fn from_str(text: &str) -> Result<SurtPrefix, BadSurtPrefix> {
        let bad = |why| BadSurtPrefix {
            text: text.to_owned(),
            why,
        };
        let schemeless = ["http://", "https://"]
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme));
        let rest = schemeless.unwrap_or(text);
        let rest = rest.strip_prefix('(').unwrap_or(rest);
        let (host, path) = match rest.split_once(')') {
            Some((host, path)) => (host, Some(path.to_owned())),
            None => (rest, None),
        };
        if path.is_none() && !host.ends_with(',') {
            return Err(bad(
                "a domain ends in a comma, and a host in a closing bracket",
            ));
        }
        let (host, port) = match host.rsplit_once(':') {
            Some((host, port)) if !host.contains('[') || host.ends_with(']') => {
                let port = port.parse().map_err(|_| bad("its port isn't a number"))?;
                (host, Some(port))
            }
            _ => (host, None),
        };
        let host = host.strip_suffix(',').unwrap_or(host).to_ascii_lowercase();
        let labels: Vec<String> = match is_address(&host) {
            true => vec![host],
            false => host.split(',').map(str::to_owned).collect(),
        };
        let is_label = |label: &String| {
            let is_name = !label.is_empty() && !label.contains(['.', ':', '/', '(', ' ']);
            is_name || is_address(label)
        };
        if !labels.iter().all(is_label) {
            return Err(bad(
                "the labels of a host are in reverse order, separated by commas",
            ));
        }
        Ok(SurtPrefix {
            text: text.to_owned(),
            labels,
            port,
            path,
        })
    }
}

impl fmt::Display for SurtPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns the labels of a host, from last to first. An IP address is one label.
fn labels_of(host: &str) -> Vec<String> {
    match is_address(host) {
        true => vec![host.to_owned()],
        false => host
            .trim_end_matches('.')
            .rsplit('.')
            .map(str::to_owned)
            .collect(),
    }
}

fn is_address(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;

    use super::SurtPrefix;

    #[test]
    fn a_prefix_matches_whole_labels_and_the_beginning_of_a_path() {
        for (prefix, held, others) in [
            (
                "org,example,",
                &["http://example.org/", "https://a.b.example.org:81/x?y"][..],
                &["http://examples.org/", "http://org/", "http://example.com/"][..],
            ),
            (
                "https://(ORG,example,www,)/docs/",
                &[
                    "http://www.example.org/docs/a",
                    "http://www.example.org:81/docs/",
                ],
                &["http://example.org/docs/", "http://www.example.org/docs"],
            ),
            (
                "org,example)",
                &["http://example.org/", "http://example.org/a?b"],
                &["http://www.example.org/"],
            ),
            (
                "http://(org,example,:81)/a",
                &["http://example.org:81/a?b"],
                &["http://example.org/a"],
            ),
            (
                "127.0.0.1)/a",
                &["http://127.0.0.1/a", "http://127.0.0.1:80/ab"],
                &["http://127.0.0.2/a", "http://127.0.0.1/b"],
            ),
            ("[::1]:81)/", &["http://[::1]:81/"], &["http://[::1]/"]),
        ] {
            let surt: SurtPrefix = prefix.parse().unwrap();
            let holds = |url: &str| surt.holds(&canonicalize(None, url).unwrap());
            for url in held {
                assert!(holds(url), "{prefix} {url}");
            }
            for url in others {
                assert!(!holds(url), "{prefix} {url}");
            }
            assert_eq!(surt.to_string(), prefix);
        }
    }

    #[test]
    fn a_prefix_that_could_end_within_a_label_is_refused() {
        for prefix in [
            "",
            ",",
            ")",
            "org,example",
            "org,,example,",
            "example.org)/",
            "www.example.org,",
            "http://example.org/",
            "org,example:x)/",
        ] {
            let refused = prefix.parse::<SurtPrefix>();
            assert!(refused.is_err(), "{prefix}: {refused:?}");
        }
    }
}
