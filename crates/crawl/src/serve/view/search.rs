//! The search page.

use crawl_index::{FacetFilters, IndexStats, SearchResults};
use crawl_records::counted;
use crawl_weburl::safe_line;
use maud::{Markup, html};

use super::layout::PageLayout;
use super::results::{results, status, tips};
use super::times::day;
use crate::serve::search_request::{MAX_QUERY_BYTES, SearchRequest, named_filters};
use crate::serve::server_state::ServerState;

/// Renders the page, with results if there was a query.
pub(super) fn page(
    app: &ServerState,
    title: &str,
    stats: &IndexStats,
    answered: Option<(&SearchRequest, &SearchResults)>,
) -> Markup {
    let query = answered.map_or("", |(request, _)| request.query.as_str());
    let named = match query {
        "" => title.to_owned(),
        query => format!("{} · {title}", safe_line(query)),
    };
    PageLayout::new(app, &named)
        .script("search.js")
        .page(html! {
            a.skip href="#answer" { "Skip to the results" }
            header.top { h1 { a href="/" { (title) } } }
            main.narrow {
                (form(query, answered.map(|(request, _)| &request.filters), title))
                p #status .quiet role="status" {
                    @if let Some((request, answer)) = answered { (status(request, answer)) }
                }
                section #answer aria-label="Results" tabindex="-1" data-title=(title) {
                    @match answered {
                        Some((request, answer)) => (results(request, answer)),
                        None => (welcome()),
                    }
                }
            }
            (footer(stats))
        })
}

fn form(query: &str, filters: Option<&FacetFilters>, title: &str) -> Markup {
    let active_filters = filters.map(named_filters).unwrap_or_default();
    html! {
        form #search .search role="search" action="/" method="get" autocomplete="off" {
            label.hidden for="q" { (title) }
            div.field {
                input #q type="search" name="q" value=(query) maxlength=(MAX_QUERY_BYTES)
                    placeholder="Search" autocapitalize="none" spellcheck="false"
                    enterkeyhint="search" aria-controls="answer" autofocus;
                kbd title="Press / to search" { "/" }
            }
            @for (name, value) in active_filters {
                input type="hidden" name=(name) value=(value);
            }
            button type="submit" { "Search" }
        }
    }
}

/// Renders the text shown before a search.
fn welcome() -> Markup {
    html! {
        div.welcome {
            h2 { "To narrow your search" }
            (tips())
        }
    }
}

fn footer(stats: &IndexStats) -> Markup {
    html! {
        footer.foot {
            p {
                (counted(stats.pages, "page", "pages"))
                @if let Some((machine, person)) = stats.fetched_at.and_then(day) {
                    ", last visited " time datetime=(machine) { (person) }
                }
            }
        }
    }
}
