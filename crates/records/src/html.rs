//! Pages that need nothing else: no script, no font, no request.

use crawl_weburl::safe_line;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("html/page.css");

/// Hosts that a page lists, those with most requests first.
pub(crate) const MAX_LISTED_HOSTS: usize = 1000;

/// A page that needs nothing else, under a heading.
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

/// A heading, and a table in a box that scrolls by itself where the screen is narrower.
pub(crate) fn table(title: &str, class: &str, rows: &Markup) -> Markup {
    html! {
        h2 { (title) }
        (scrolling_table(title, class, rows))
    }
}

/// The same without its heading.
pub(crate) fn scrolling_table(title: &str, class: &str, rows: &Markup) -> Markup {
    html! {
        div class=(class) role="region" aria-label=(title) tabindex="0" { table { (rows) } }
    }
}

/// A page's URL, as a link that gives it no credit and tells it nothing. What no browser fetches is
/// text.
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
