//! Self-contained HTML pages: no scripts, fonts or requests.

use crawl_weburl::safe_line;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("html/page.css");

/// Maximum number of hosts listed in `report.html`, those with the most requests first.
/// Beyond the limit: a count.
pub(crate) const MAX_LISTED_HOSTS: usize = 1000;

/// Renders a self-contained page with a heading.
pub(crate) fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (title) }
                    (body)
                }
            }
        }
    };
    page.into_string()
}

/// Renders a heading, and a table that scrolls on narrow screens.
pub(crate) fn table(title: &str, class: &str, rows: &Markup) -> Markup {
    html! {
        h2 { (title) }
        (scrolling_table(title, class, rows))
    }
}

/// Renders a table that scrolls on narrow screens, without a heading.
pub(crate) fn scrolling_table(title: &str, class: &str, rows: &Markup) -> Markup {
    html! {
        div class=(class) role="region" aria-label=(title) tabindex="0" { table { (rows) } }
    }
}

/// Renders a page's URL as a link, with `rel` values that pass neither credit nor referrer. If no
/// browser would fetch the URL, it is rendered as plain text.
pub(crate) fn link(url: &str) -> Markup {
    let text = safe_line(url);
    html! {
        @if url.starts_with("http://") || url.starts_with("https://") {
            a href=(text) rel="nofollow noopener noreferrer" { (text) }
        } @else {
            (text)
        }
    }
}
