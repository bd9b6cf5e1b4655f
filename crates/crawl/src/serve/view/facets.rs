//! Links that narrow the results to a folder, a version, a language or a type. `page/facets.js`
//! creates the same elements.

use crawl_index::{FacetCount, FacetCounts, FacetFilters};
use crawl_records::grouped;
use maud::{Markup, html};

use super::result_page_urls::{link, place};
use crate::serve::search_request::SearchRequest;

/// A facet: its label, its values, and a function that returns the filter for this facet. The
/// filter holds the chosen value.
struct ShownFacet<'a> {
    label: &'static str,
    values: &'a [FacetCount],
    chosen: fn(&mut FacetFilters) -> &mut Option<String>,
}

/// Renders each facet whose values differ between the results, with a link for each value. The
/// chosen value gets a link that removes it.
pub(super) fn narrowing(request: &SearchRequest, facets: &FacetCounts) -> Markup {
    let all = [
        ShownFacet {
            label: "Folder",
            values: &facets.folder,
            chosen: |filters| &mut filters.folder,
        },
        ShownFacet {
            label: "Version",
            values: &facets.version,
            chosen: |filters| &mut filters.version,
        },
        ShownFacet {
            label: "Language",
            values: &facets.language,
            chosen: |filters| &mut filters.language,
        },
        ShownFacet {
            label: "Type",
            values: &facets.document_type,
            chosen: |filters| &mut filters.document_type,
        },
    ];
    let shown: Vec<Markup> = all
        .iter()
        .filter_map(|facet| list(request, facet))
        .collect();
    html! {
        @if !shown.is_empty() {
            nav.facets aria-label="Narrow the results" {
                @for facet in &shown { (facet) }
            }
        }
    }
}

fn list(request: &SearchRequest, facet: &ShownFacet<'_>) -> Option<Markup> {
    let with = |value: Option<&str>| {
        let mut filters = request.filters.clone();
        *(facet.chosen)(&mut filters) = value.map(str::to_owned);
        link(&request.query, &filters, 1)
    };
    let mut filters = request.filters.clone();
    let chosen = (facet.chosen)(&mut filters).take();
    let is_chosen = |of: &&FacetCount| chosen.as_ref() == Some(&of.value);
    let name = facet
        .values
        .iter()
        .find(is_chosen)
        .map(|of| of.name.as_str());
    let other_values: Vec<_> = facet.values.iter().filter(|of| !is_chosen(of)).collect();
    // Hide a facet that can't narrow the results, because all pages share its only value.
    let is_shown = chosen.is_some() || other_values.len() > 1;
    is_shown.then(|| {
        html! {
            div.facet {
                span.facet-name { (facet.label) }
                ul aria-label=(facet.label) {
                    @if let Some(value) = &chosen {
                        li {
                            a.chosen href=(with(None)) {
                                (place(name.unwrap_or(value)))
                                span.hidden { ", selected: show all" }
                                span aria-hidden="true" { " \u{d7}" }
                            }
                        }
                    }
                    @for of in other_values {
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
