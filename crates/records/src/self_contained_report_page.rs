//! Self-contained HTML pages, which are built from checks, tables and plots. The pages load no
//! fonts or other files. Their only script makes tables sortable, and they are complete without it.

mod html_table;
mod site_check_result;
mod site_origin;

use crawl_weburl::safe_line;
use maud::{DOCTYPE, Markup, PreEscaped, html};

pub(crate) use html_table::{HtmlTable, TableCell};
pub(crate) use site_check_result::{ProblemShare, SiteCheckResult, checks};
pub(crate) use site_origin::SiteOrigin;
use site_origin::breakable;

const STYLE: &str = include_str!("self_contained_report_page/page.css");

/// The style sheet of tables and grades, also used by the pages of `crawl serve`.
pub const PARTS_STYLE: &str = include_str!("self_contained_report_page/parts.css");

/// The script that makes tables sortable, also used by the pages of `crawl serve`. Its function
/// `makeSortable(element)` prepares the tables in an element.
pub const SORT_SCRIPT: &str = include_str!("self_contained_report_page/sort.js");

/// Maximum number of hosts listed in `report.html`, those with the most requests first.
/// Beyond the limit: a count.
pub(crate) const MAX_LISTED_HOSTS: usize = 1000;

/// Renders a self-contained page with a heading. `description` summarizes the page in one
/// sentence.
pub(crate) fn page(title: &str, description: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="description" content=(description);
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(PARTS_STYLE)) }
            }
            body {
                main {
                    h1 { (title) }
                    (body)
                }
                script { (PreEscaped(SORT_SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// Renders a part of a page that is folded until the reader opens it.
pub(crate) fn fold(title: &str, body: &Markup) -> Markup {
    html! {
        details.fold {
            summary { h3 { (title) } }
            (body)
        }
    }
}

/// Renders a table that scrolls on narrow screens.
pub(crate) fn scrolling_table(title: &str, rows: &Markup) -> Markup {
    html! {
        div.t role="region" aria-label=(title) tabindex="0" { table { (rows) } }
    }
}

/// Renders a page's URL as a link, with `rel` values that pass neither credit nor referrer. A URL
/// that no browser would fetch is rendered as plain text.
#[must_use]
pub fn link(url: &str) -> Markup {
    anchor(url, None)
}

/// Renders a URL as a link. The link shows `shortened`, if that is given, in place of the URL.
fn anchor(url: &str, shortened: Option<&str>) -> Markup {
    let full = safe_line(url);
    let shown = breakable(shortened.unwrap_or(url));
    html! {
        @if url.starts_with("http://") || url.starts_with("https://") {
            a href=(full) title=[shortened.map(|_| &full)] rel="nofollow noopener noreferrer" { (shown) }
        } @else {
            (shown)
        }
    }
}
