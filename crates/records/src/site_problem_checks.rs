//! What the owner of a site should fix: checks of links, texts, images, speed and reach.

mod element_checks;
mod page_checks;

use std::collections::{BTreeMap, HashSet};

use crawl_weburl::safe_line;
use maud::{Markup, html};

use crate::broken_links::key;
use crate::number_format::{counted, grouped};
use crate::self_contained_report_page::{
    HtmlTable, ProblemShare, SiteCheckResult, SiteOrigin, TableCell,
};
use crate::site_faults::{FaultKind, MOVED_TO, PageFault, SiteFaultReport};
use crate::site_report::{RedirectChain, SiteReport};

pub(crate) use page_checks::of_pages;

/// Maximum rows in a table of what to fix.
/// Beyond the limit: a count.
pub(crate) const MAX_ROWS: usize = 1_000;
/// Number of pages that a cell shows before it is unfolded.
const MAX_SHOWN_PAGES: usize = 3;
/// Minimum number of pages of a site whose template may be blamed for a problem. On a smaller site,
/// even a problem on all pages is not blamed on the template.
const MIN_TEMPLATE_PAGES: u64 = 3;
/// Maximum number of pages listed for a broken link on a page of reports.
/// Beyond the limit: a count.
const MAX_LISTED_PAGES: usize = 100;

/// Returns the checks of a crawl's links, the most urgent first. If `site` is given, the checks
/// include redirect chains.
pub(crate) fn of_links(
    faults: &SiteFaultReport,
    site: Option<&SiteReport>,
) -> Vec<SiteCheckResult> {
    let mut checks = Vec::new();
    let origin = faults.crawl.origin();
    let kinds = match faults.kinds[..] {
        [] => &FaultKind::ALL[..],
        ref kinds => kinds,
    };
    let is_searched = |check: &&LinkFaultCheck| check.kinds.iter().any(|kind| kinds.contains(kind));
    for check in LINK_CHECKS.iter().filter(is_searched) {
        let links_to = FaultsByTarget::of(faults, check.kinds);
        let is_redirect = check.kinds.contains(&FaultKind::Redirect);
        let chains = site.filter(|_| is_redirect);
        let chains = chains.map_or(&[][..], |site| site.redirect_chains.as_slice());
        let findings = (!links_to.targets.is_empty() || !chains.is_empty()).then(|| {
            html! {
                @if !links_to.targets.is_empty() { (links_to.table(check, &origin)) }
                @if !chains.is_empty() { (chain_table(chains, &origin)) }
            }
        });
        let causes = match links_to.targets.is_empty() {
            true => counted(chains.len() as u64, "redirect chain", "redirect chains"),
            false => links_to.counted(check),
        };
        checks.push(SiteCheckResult {
            id: check.id,
            title: check.title,
            // Faults that a baseline lists are not in `faults`, so the share of affected pages is
            // unknown.
            measure: (faults.known == 0).then_some(ProblemShare {
                affected: links_to.pages,
                items: faults.graded.len() as u64,
                other_documents: links_to.other_documents,
                of: "pages",
                have: check.have,
                causes: findings.is_some().then(|| causes.clone()),
            }),
            advice: check.advice,
            summary: links_to.summary(&causes),
            findings,
        });
    }
    checks
}

/// A check of links, for faults of some kinds.
struct LinkFaultCheck {
    id: &'static str,
    title: &'static str,
    kinds: &'static [FaultKind],
    have: &'static str,
    advice: &'static str,
    /// The name of a target with the problem, in the singular and in the plural.
    target: [&'static str; 2],
    /// The names of the columns: target, problem, and the pages with the link.
    columns: [&'static str; 3],
}

const LINK_CHECKS: &[LinkFaultCheck] = &[
    LinkFaultCheck {
        id: "broken-links",
        title: "Broken links",
        kinds: &[FaultKind::Broken, FaultKind::Unreachable],
        have: "have a broken link",
        advice: "On the pages to fix, correct or remove the link, or restore its target.",
        target: ["broken address", "broken addresses"],
        columns: ["broken link", "answer", "pages to fix"],
    },
    LinkFaultCheck {
        id: "redirects",
        title: "Redirects to update",
        kinds: &[FaultKind::Redirect],
        have: "link to an address that moved permanently",
        advice: "Replace the old address by the new one: each redirect costs visitors a request.",
        target: ["moved address", "moved addresses"],
        columns: ["old address", "new address", "pages to fix"],
    },
    LinkFaultCheck {
        id: "anchors",
        title: "Links to missing anchors",
        kinds: &[FaultKind::Fragment, FaultKind::TextFragment],
        have: "link to a place that doesn't exist in the target page",
        advice: "Correct the part after #, or add the id to the target page.",
        target: ["missing anchor", "missing anchors"],
        columns: ["link", "problem", "pages to fix"],
    },
    LinkFaultCheck {
        id: "insecure",
        title: "Insecure resources",
        kinds: &[FaultKind::Mixed],
        have: "use https but load or submit something over http",
        advice: "Load the resource over https: browsers block it or warn about it.",
        target: ["insecure resource", "insecure resources"],
        columns: ["resource", "element", "pages to fix"],
    },
];

/// The faults of some kinds, grouped by target.
struct FaultsByTarget<'f> {
    /// Each target and problem, with its faults.
    targets: Vec<((&'f str, &'f str), Vec<&'f PageFault>)>,
    /// Keys of the HTML pages that were checked. Empty if this is unknown.
    graded: &'f HashSet<u64>,
    /// Number of distinct pages with at least one of the faults. If `graded` isn't empty, only the
    /// pages in `graded` count.
    pages: u64,
    /// Number of other documents with at least one of the faults, such as style sheets, sitemaps
    /// and feeds. 0 if `graded` is empty.
    other_documents: u64,
}

impl<'f> FaultsByTarget<'f> {
    fn of(faults: &'f SiteFaultReport, kinds: &[FaultKind]) -> FaultsByTarget<'f> {
        let mut by_target: BTreeMap<(&str, &str), Vec<&PageFault>> = BTreeMap::new();
        let mut pages = Vec::new();
        for fault in &faults.faults {
            if kinds.contains(&fault.kind) {
                let target = (fault.to.as_str(), fault.why.as_str());
                by_target.entry(target).or_default().push(fault);
                pages.extend(fault.page.as_deref().map(key));
            }
        }
        pages.sort_unstable();
        pages.dedup();
        let linked_from = pages.len();
        if !faults.graded.is_empty() {
            pages.retain(|page| faults.graded.contains(page));
        }
        let mut targets: Vec<_> = by_target.into_iter().collect();
        targets.sort_by_key(|(_, faults)| std::cmp::Reverse(faults.len()));
        FaultsByTarget {
            targets,
            graded: &faults.graded,
            pages: pages.len() as u64,
            other_documents: (linked_from - pages.len()) as u64,
        }
    }

    fn counted(&self, check: &LinkFaultCheck) -> String {
        let [one, more] = check.target;
        counted(self.targets.len() as u64, one, more)
    }

    /// Describes where the faults are: `2 moved addresses on 44 pages and in 1 other document`.
    fn summary(&self, causes: &str) -> String {
        let pages = counted(self.pages, "page", "pages");
        let others = |one, more| counted(self.other_documents, one, more);
        match (self.pages, self.other_documents) {
            (0, 0) => causes.to_owned(),
            (_, 0) => format!("{causes} on {pages}"),
            (0, _) => format!("{causes} in {}", others("document", "documents")),
            _ => {
                let others = others("other document", "other documents");
                format!("{causes} on {pages} and in {others}")
            }
        }
    }

    /// Renders the targets with the pages to fix.
    fn table(&self, check: &LinkFaultCheck, origin: &SiteOrigin) -> Markup {
        let rows = self.targets.iter().take(MAX_ROWS);
        let rows = rows.map(|((to, why), faults)| {
            vec![
                origin.cell(to),
                reason(why, origin),
                TableCell::Markup(self.pages_with_text(faults, origin)),
            ]
        });
        HtmlTable {
            name: check.title,
            columns: &check.columns,
            rows: rows.collect(),
            more: left_out(self.targets.len()),
        }
        .draw()
    }

    /// Renders the pages with one target, each with the link's text.
    fn pages_with_text(&self, faults: &[&PageFault], origin: &SiteOrigin) -> Markup {
        let pages = faults.iter().map(|fault| {
            html! {
                @match &fault.page {
                    Some(page) => (origin.link(page)),
                    None => "a seed of the crawl",
                }
                @if let Some(text) = &fault.text { " “" (safe_line(text)) "”" }
                @else if let Some(element) = &fault.element { " (" (element) ")" }
            }
        });
        // A style sheet or sitemap with the link is not made from the template.
        let is_graded = |page: &str| self.graded.contains(&key(page));
        let graded = faults.iter().filter_map(|fault| fault.page.as_deref());
        let graded = graded.filter(|page| is_graded(page)).count() as u64;
        let note = template_note(graded, self.graded.len() as u64);
        page_list(pages.take(MAX_LISTED_PAGES).collect(), faults.len(), note)
    }
}

/// Renders the reason of a fault. If the target moved, renders its new address as a link.
fn reason(why: &str, origin: &SiteOrigin) -> TableCell {
    match why.strip_prefix(MOVED_TO) {
        Some(to) => origin.cell(to),
        None => TableCell::text(why),
    }
}

/// Renders a list of links to `pages`, which all have the same problem. `note` is a remark about
/// the problem.
fn page_links(pages: &[String], origin: &SiteOrigin, note: Option<String>) -> Markup {
    let links = pages.iter().map(|page| origin.link(page));
    page_list(links.take(MAX_LISTED_PAGES).collect(), pages.len(), note)
}

/// Returns a note that a problem on `pages` of `all` pages is probably in the template of the site,
/// so that one change fixes all pages. `None` if fewer than nine in ten pages have the problem, or
/// the site has only a few pages.
fn template_note(pages: u64, all: u64) -> Option<String> {
    let is_in_template = all >= MIN_TEMPLATE_PAGES && pages * 10 >= all * 9;
    let place = match pages >= all {
        true => "on every page".to_owned(),
        false => format!("on {} of {} pages", grouped(pages), grouped(all)),
    };
    is_in_template.then(|| format!("{place}: probably in the template"))
}

/// Renders a list of pages: the first few, and the rest collapsed. If there is a note, all pages are
/// collapsed. `all` is the total number of pages, including those that are not in `pages`.
fn page_list(pages: Vec<Markup>, all: usize, note: Option<String>) -> Markup {
    let shown = if note.is_some() { 0 } else { MAX_SHOWN_PAGES };
    let (first, others) = pages.split_at(pages.len().min(shown));
    let unlisted = all.saturating_sub(pages.len()) as u64;
    let folded = all.saturating_sub(first.len()) as u64;
    let folded = match first {
        [] => counted(folded, "page", "pages"),
        _ => counted(folded, "more page", "more pages"),
    };
    html! {
        @if let Some(note) = note { strong { (note) } }
        @if !first.is_empty() { ul { @for page in first { li { (page) } } } }
        @if !others.is_empty() {
            details {
                summary { (folded) }
                ul {
                    @for page in others { li { (page) } }
                    @if unlisted > 0 { li { "and " (counted(unlisted, "other page", "other pages")) } }
                }
            }
        }
    }
}

/// Renders a table with one column, whose name is also the table's name.
fn url_table(name: &str, urls: &[String], origin: &SiteOrigin) -> Markup {
    HtmlTable {
        name,
        columns: &[name],
        rows: urls
            .iter()
            .take(MAX_ROWS)
            .map(|url| vec![origin.cell(url)])
            .collect(),
        more: left_out(urls.len()),
    }
    .draw()
}

pub(crate) fn left_out(rows: usize) -> u64 {
    rows.saturating_sub(MAX_ROWS) as u64
}

fn chain_table(chains: &[RedirectChain], origin: &SiteOrigin) -> Markup {
    let rows = chains.iter().take(MAX_ROWS).map(|chain| {
        let last = chain.to.last().map_or("", String::as_str);
        vec![
            origin.cell(&chain.url),
            origin.cell(last),
            TableCell::count(chain.to.len() as u64),
            TableCell::count(chain.links),
        ]
    });
    HtmlTable {
        name: "Redirect chains",
        columns: &["chain starts at", "ends at", "redirects", "links to it"],
        rows: rows.collect(),
        more: left_out(chains.len()),
    }
    .draw()
}

#[cfg(test)]
mod tests;
