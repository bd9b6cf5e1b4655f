//! Links that narrow the results to a folder, a version, a language or a type. `page/facets.js`
//! makes the same elements.

use crawl_index::{FacetCount, FacetFilters, Facets};
use crawl_records::grouped;
use maud::{Markup, html};

use super::addresses::{link, place};
use crate::serve::search_request::SearchRequest;

/// A facet, its values, and where the filters keep the one that is chosen.
struct Facet<'a> {
    label: &'static str,
    values: &'a [FacetCount],
    chosen: fn(&mut FacetFilters) -> &mut Option<String>,
}

/// The facets that tell the results apart, each with its values as links; and what is chosen, with
/// a link that shows all again.
pub(super) fn narrowing(asked: &SearchRequest, facets: &Facets) -> Markup {
    let all = [
        Facet {
            label: "Folder",
            values: &facets.folder,
            chosen: |filters| &mut filters.folder,
        },
        Facet {
            label: "Version",
            values: &facets.version,
            chosen: |filters| &mut filters.version,
        },
        Facet {
            label: "Language",
            values: &facets.language,
            chosen: |filters| &mut filters.language,
        },
        Facet {
            label: "Type",
            values: &facets.document_type,
            chosen: |filters| &mut filters.document_type,
        },
    ];
    let shown: Vec<Markup> = all.iter().filter_map(|facet| list(asked, facet)).collect();
    html! {
        @if !shown.is_empty() {
            nav.facets aria-label="Narrow the results" {
                @for facet in &shown { (facet) }
            }
        }
    }
}

fn list(asked: &SearchRequest, facet: &Facet<'_>) -> Option<Markup> {
    let with = |value: Option<&str>| {
        let mut filters = asked.filters.clone();
        *(facet.chosen)(&mut filters) = value.map(str::to_owned);
        link(&asked.query, &filters, 1)
    };
    let mut filters = asked.filters.clone();
    let chosen = (facet.chosen)(&mut filters).take();
    let is_chosen = |of: &&FacetCount| chosen.as_ref() == Some(&of.value);
    let name = facet
        .values
        .iter()
        .find(is_chosen)
        .map(|of| of.name.as_str());
    let others: Vec<_> = facet.values.iter().filter(|of| !is_chosen(of)).collect();
    // One value that all pages have tells nothing.
    let is_shown = chosen.is_some() || others.len() > 1;
    is_shown.then(|| {
        html! {
            div.facet {
                span.facet-name { (facet.label) }
                ul aria-label=(facet.label) {
                    @if let Some(value) = &chosen {
                        li {
                            a.chosen href=(with(None)) {
                                (place(name.unwrap_or(value)))
                                span.hidden { ", chosen: show all" }
                                span aria-hidden="true" { " \u{d7}" }
                            }
                        }
                    }
                    @for of in others {
                        li {
                            a href=(with(Some(&of.value))) { (place(&of.name)) }
                            span.count { " " (grouped(of.count)) }
                        }
                    }
                }
            }
        }
    })
}
