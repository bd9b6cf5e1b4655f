//! The site that a report is about. The URLs of the site are shown as paths.

use crawl_weburl::{canonicalize, safe_line};
use maud::{Markup, html};

use super::{TableCell, anchor};

/// The scheme, host and port of the site that a page reports on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SiteOrigin(Option<String>);

impl SiteOrigin {
    /// Returns the origin of a URL. If the URL is missing or unusable, the site is unknown, and no
    /// URL is shortened.
    pub(crate) fn of(url: Option<&str>) -> SiteOrigin {
        let url = url.and_then(|url| canonicalize(None, url).ok());
        SiteOrigin(url.map(|url| url.origin_text().to_owned()))
    }

    /// Returns the host and port. `None` if the site is unknown.
    pub(crate) fn host(&self) -> Option<&str> {
        let origin = self.0.as_deref()?;
        Some(origin.split_once("://").map_or(origin, |(_, host)| host))
    }

    /// Renders a URL as a link. If the URL is on this site, the link text is only its path.
    pub(crate) fn link(&self, url: &str) -> Markup {
        anchor(url, self.path(url))
    }

    /// Creates a table cell with a link to `url`, as [`SiteOrigin::link`] renders it.
    pub(crate) fn cell(&self, url: &str) -> TableCell {
        TableCell::Markup(self.link(url))
    }

    fn path<'u>(&self, url: &'u str) -> Option<&'u str> {
        let path = url.strip_prefix(self.0.as_deref()?)?;
        path.starts_with('/').then_some(path)
    }
}

/// Renders a URL as text that may break into lines after `/`, `?` and `&`.
pub(super) fn breakable(url: &str) -> Markup {
    let url = safe_line(url);
    let parts: Vec<&str> = url.split_inclusive(['/', '?', '&']).collect();
    let may_break = |at: usize| {
        let part = parts[at];
        part.len() > 1 && !part.ends_with(":/") && at + 1 < parts.len()
    };
    html! { @for (at, part) in parts.iter().enumerate() { (part) @if may_break(at) { wbr; } } }
}

#[cfg(test)]
mod tests {
    use super::{SiteOrigin, breakable};

    #[test]
    fn a_url_of_the_site_is_shown_as_its_path_with_the_full_url_in_the_link() {
        let site = SiteOrigin::of(Some("http://E.example:8080"));
        assert_eq!(site.host(), Some("e.example:8080"));
        assert_eq!(
            site.link("http://e.example:8080/a/b?c=<d>").into_string(),
            "<a href=\"http://e.example:8080/a/b?c=&lt;d&gt;\" title=\"http://e.example:8080/a/b?c=&lt;d&gt;\" \
             rel=\"nofollow noopener noreferrer\">/a/<wbr>b?<wbr>c=&lt;d&gt;</a>"
        );
        let shown = |url: &str| {
            let html = site.link(url).into_string().replace("<wbr>", "");
            let (_, text) = html.split_once('>').unwrap();
            text.trim_end_matches("</a>").to_owned()
        };
        assert_eq!(shown("http://e.example:8080/"), "/");
        for other in [
            "https://e.example:8080/a",
            "http://e.example:80801/a",
            "http://e.example/a",
        ] {
            assert_eq!(shown(other), other);
        }
    }

    #[test]
    fn without_a_site_urls_are_whole() {
        let none = SiteOrigin::of(None);
        assert_eq!(none, SiteOrigin::of(Some("no url")));
        assert_eq!(none.host(), None);
        let html = none.link("http://e.example/a").into_string();
        assert!(html.contains(">http://e.example/<wbr>a</a>") && !html.contains("title="));
    }

    #[test]
    fn a_url_may_break_only_after_a_part_of_its_path() {
        let html = breakable("https://e.example/one/two?a=1&b=2/").into_string();
        assert_eq!(
            html,
            "https://e.example/<wbr>one/<wbr>two?<wbr>a=1&amp;<wbr>b=2/"
        );
    }
}
