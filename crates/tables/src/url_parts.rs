//! Splits a URL into the same parts as Common Crawl's index.

use crawl_archive::surt;
use crawl_weburl::{
    CanonicalUrl, HostPublicSuffixes, canonicalize, domain_below, host_address, public_suffixes,
    without_trailing_dot,
};

/// A URL, with the parts that tables have columns for.
pub(crate) struct UrlParts {
    url: CanonicalUrl,
    pub(crate) surt: String,
    pub(crate) host_key: String,
}

impl UrlParts {
    /// Splits a URL into its parts. `None` if the text is not a URL that a crawler can fetch.
    pub(crate) fn of(url: &str) -> Option<UrlParts> {
        let url = canonicalize(None, url).ok()?;
        Some(UrlParts {
            surt: surt(&url),
            host_key: url.host_key().to_string(),
            url,
        })
    }

    pub(crate) fn host(&self) -> &str {
        without_trailing_dot(self.url.host())
    }

    /// Returns the host if it is a name; `None` if it is an IP address.
    fn name(&self) -> Option<&str> {
        let host = self.host();
        host_address(host).is_none().then_some(host)
    }

    /// Returns a label of the host name, counted from the end: 0 for the top-level domain, 1 for
    /// the label before it.
    pub(crate) fn label_from_end(&self, place: usize) -> Option<&str> {
        self.name()?.rsplit('.').nth(place)
    }

    pub(crate) fn name_reversed(&self) -> Option<String> {
        let labels: Vec<&str> = self.name()?.rsplit('.').collect();
        Some(labels.join("."))
    }

    pub(crate) fn suffixes(&self) -> HostPublicSuffixes<'_> {
        public_suffixes(self.host())
    }

    pub(crate) fn domain_below(&self, suffix: Option<&str>) -> Option<&str> {
        domain_below(self.host(), suffix?)
    }

    pub(crate) fn scheme(&self) -> &str {
        self.url.scheme()
    }

    /// Returns the port if it is not the default port of the scheme.
    pub(crate) fn port(&self) -> Option<u16> {
        self.url.as_url().port()
    }

    pub(crate) fn path(&self) -> &str {
        self.url.path()
    }

    pub(crate) fn query(&self) -> Option<&str> {
        self.url.as_url().query()
    }
}

/// Returns the host key of a URL.
pub(crate) fn host_key(url: &str) -> Option<String> {
    let url = canonicalize(None, url).ok()?;
    Some(url.host_key().to_string())
}
