//! What the owner of a site should fix: checks of links, texts, images, speed and reach.

mod pages;

use std::collections::BTreeMap;

use crawl_weburl::safe_line;
use maud::{Markup, html};

use crate::broken::key;
use crate::faults::{Fault, FaultKind, Faults, MOVED_TO};
use crate::html::{Cell, Check, Measure, Table, link};
use crate::numbers::counted;
use crate::site::{RedirectChain, SiteReport};

pub(crate) use pages::of_pages;

/// Maximum rows in a table of what to fix.
/// Beyond the limit: a count.
pub(crate) const MAX_ROWS: usize = 1_000;
/// Number of pages that a cell shows before it is unfolded.
const MAX_SHOWN_PAGES: usize = 3;
/// Maximum number of pages listed for a broken link on a page of reports.
/// Beyond the limit: a count.
const MAX_LISTED_PAGES: usize = 100;

/// Returns the checks of a crawl's links, those most urgent first. `site` adds redirect chains.
pub(crate) fn of_links(faults: &Faults, site: Option<&SiteReport>) -> Vec<Check> {
    let mut checks = Vec::new();
    let kinds = match faults.kinds[..] {
        [] => &FaultKind::ALL[..],
        ref kinds => kinds,
    };
    let is_searched = |links: &&Links| links.kinds.iter().any(|kind| kinds.contains(kind));
    for links in LINKS.iter().filter(is_searched) {
        let links_to = Targets::of(faults, links.kinds);
        let is_redirect = links.kinds.contains(&FaultKind::Redirect);
        let chains = site.filter(|_| is_redirect);
        let chains = chains.map_or(&[][..], |site| site.redirect_chains.as_slice());
        let findings = (!links_to.targets.is_empty() || !chains.is_empty()).then(|| {
            html! {
                @if !links_to.targets.is_empty() { (links_to.table(links)) }
                @if !chains.is_empty() { (chain_table(chains)) }
            }
        });
        checks.push(Check {
            id: links.id,
            title: links.title,
            // Faults that a baseline lists are left out, so their share is unknown.
            measure: (faults.known == 0).then_some(Measure {
                affected: links_to.pages,
                items: faults.graded.len() as u64,
                of: "pages",
                have: links.have,
            }),
            advice: links.advice,
            findings,
        });
    }
    checks
}

/// One kind of link check.
struct Links {
    id: &'static str,
    title: &'static str,
    kinds: &'static [FaultKind],
    have: &'static str,
    advice: &'static str,
    /// The columns: target, problem, and the pages with the link.
    columns: [&'static str; 3],
}

const LINKS: &[Links] = &[
    Links {
        id: "broken-links",
        title: "Broken links",
        kinds: &[FaultKind::Broken, FaultKind::Unreachable],
        have: "have a broken link",
        advice: "On the pages to fix, correct or remove the link, or restore its target.",
        columns: ["broken link", "answer", "pages to fix"],
    },
    Links {
        id: "redirects",
        title: "Redirects to update",
        kinds: &[FaultKind::Redirect],
        have: "link to an address that moved permanently",
        advice: "Replace the old address by the new one: each redirect costs visitors a request.",
        columns: ["old address", "new address", "pages to fix"],
    },
    Links {
        id: "anchors",
        title: "Links to missing anchors",
        kinds: &[FaultKind::Fragment, FaultKind::TextFragment],
        have: "link to a place that doesn't exist in the target page",
        advice: "Correct the part after #, or add the id to the target page.",
        columns: ["link", "problem", "pages to fix"],
    },
    Links {
        id: "insecure",
        title: "Insecure resources",
        kinds: &[FaultKind::Mixed],
        have: "use https but load or submit something over http",
        advice: "Load the resource over https: browsers block it or warn about it.",
        columns: ["resource", "element", "pages to fix"],
    },
];

/// The faults of some kinds, by target.
struct Targets<'f> {
    /// The faults of each target and problem.
    targets: Vec<((&'f str, &'f str), Vec<&'f Fault>)>,
    /// Number of distinct graded pages with one of the faults.
    pages: u64,
}

impl<'f> Targets<'f> {
    fn of(faults: &'f Faults, kinds: &[FaultKind]) -> Targets<'f> {
        let mut by_target: BTreeMap<(&str, &str), Vec<&Fault>> = BTreeMap::new();
        let mut pages = Vec::new();
        for fault in &faults.faults {
            if kinds.contains(&fault.kind) {
                let target = (fault.to.as_str(), fault.why.as_str());
                by_target.entry(target).or_default().push(fault);
                pages.extend(fault.page.as_deref().map(key));
            }
        }
        pages.retain(|page| faults.graded.contains(page));
        pages.sort_unstable();
        pages.dedup();
        let mut targets: Vec<_> = by_target.into_iter().collect();
        targets.sort_by_key(|(_, faults)| std::cmp::Reverse(faults.len()));
        Targets {
            targets,
            pages: pages.len() as u64,
        }
    }

    fn table(&self, links: &Links) -> Markup {
        let rows = self.targets.iter().take(MAX_ROWS);
        let rows = rows.map(|((to, why), faults)| {
            vec![
                Cell::link(to),
                reason(why),
                Cell::Markup(pages_with_text(faults)),
            ]
        });
        Table {
            name: links.title,
            columns: &links.columns,
            rows: rows.collect(),
            more: left_out(self.targets.len()),
        }
        .draw()
    }
}

/// Renders the reason of a fault. That of a moved page is the new address, as a link.
fn reason(why: &str) -> Cell {
    match why.strip_prefix(MOVED_TO) {
        Some(to) => Cell::link(to),
        None => Cell::text(why),
    }
}

fn pages_with_text(faults: &[&Fault]) -> Markup {
    let pages = faults.iter().map(|fault| {
        html! {
            @match &fault.page { Some(page) => (link(page)), None => "a seed of the crawl" }
            @if let Some(text) = &fault.text { " “" (safe_line(text)) "”" }
        }
    });
    page_list(pages.take(MAX_LISTED_PAGES).collect(), faults.len())
}

fn page_links(pages: &[String], all: usize) -> Markup {
    let links = pages.iter().map(|page| link(page));
    page_list(links.take(MAX_LISTED_PAGES).collect(), all)
}

/// Renders a list of pages: the first few, and the others folded. `all` is the number of pages,
/// including those that are not listed.
fn page_list(pages: Vec<Markup>, all: usize) -> Markup {
    let (first, others) = pages.split_at(pages.len().min(MAX_SHOWN_PAGES));
    let unlisted = all.saturating_sub(pages.len()) as u64;
    let folded = all.saturating_sub(first.len()) as u64;
    html! {
        ul { @for page in first { li { (page) } } }
        @if !others.is_empty() {
            details {
                summary { (counted(folded, "more page", "more pages")) }
                ul {
                    @for page in others { li { (page) } }
                    @if unlisted > 0 { li { "and " (counted(unlisted, "other page", "other pages")) } }
                }
            }
        }
    }
}

pub(crate) fn left_out(rows: usize) -> u64 {
    rows.saturating_sub(MAX_ROWS) as u64
}

fn chain_table(chains: &[RedirectChain]) -> Markup {
    let rows = chains.iter().take(MAX_ROWS).map(|chain| {
        let last = chain.to.last().map_or("", String::as_str);
        vec![
            Cell::link(&chain.url),
            Cell::link(last),
            Cell::count(chain.to.len() as u64),
            Cell::count(chain.links),
        ]
    });
    Table {
        name: "Redirect chains",
        columns: &["chain starts at", "ends at", "redirects", "links to it"],
        rows: rows.collect(),
        more: left_out(chains.len()),
    }
    .draw()
}

#[cfg(test)]
mod tests;
