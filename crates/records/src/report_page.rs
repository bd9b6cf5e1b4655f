//! The report as an HTML page: what to fix, how the crawl went, plots, and details. The page is for
//! site owners and for the appendix of a paper.

mod extracted_fields_section;
mod link_graph;
mod plots;
mod sample_section;
mod site_owner_section;
pub(crate) mod svg_plots;
mod time_format;

use std::collections::BTreeMap;
use std::fmt::Display;

use crawl_weburl::safe_line;
use maud::{Markup, html};

use crate::histograms::GapHistograms;
use crate::host_coverage::HostCoverage;
use crate::host_reports::HostReport;
use crate::number_format::{counted, grouped, size};
use crate::plot_data::PlotData;
use crate::report::{BrokenPagesSummary, CrawlReport};
use crate::report_text::{
    all_rounds, coverage_words, gaps, in_words as named, kept, label_counts, operator_lines,
    robots_line, unvisited_line, waits,
};
use crate::reported_crawl::ReportedCrawlSummary;
use crate::row_token_wording::{answer_words, failure_words, outcome_words, status_words};
use crate::self_contained_report_page::{
    HtmlTable, MAX_LISTED_HOSTS, TableCell, fold, link, page, scrolling_table,
};

use site_owner_section::verdict;
use time_format::{moment, span};

/// Maximum rows in a table of counts of `report.html`; one more row sums up the rest.
/// Beyond the limit: one row for the others.
const MAX_ROWS: usize = 100;
/// Maximum number of seeds listed on the page.
const MAX_SEEDS: usize = 20;

/// What the owner of a site should fix on its pages.
pub(crate) struct SiteFixSection {
    /// The checks with their findings.
    pub(crate) checks: Markup,
    /// Number of HTML pages that were checked.
    pub(crate) html_pages: u64,
}

/// Renders the page. `to_fix` is the part about what to fix. `None` if the archived pages were not
/// read. All text from servers is escaped.
pub(crate) fn page_of(
    report: &CrawlReport,
    gaps: &GapHistograms,
    figures: &PlotData,
    to_fix: Option<&SiteFixSection>,
) -> String {
    let title = match report.crawl.seeds.first() {
        Some(seed) => format!("Crawl of {}", safe_line(seed)),
        None => "Crawl".to_owned(),
    };
    let plots = plots::plots(report, gaps, figures);
    let sketch = link_graph::sketch(&figures.links);
    let body = html! {
        @if let Some(of) = &report.crawl.replay_of {
            p { "A replay of " (safe_line(of)) ": no requests were sent, and all times are virtual." }
        }
        (sums(report, to_fix.map(|to_fix| to_fix.html_pages)))
        @for flaw in &report.flaws {
            p { strong { "Flaw: " (safe_line(flaw)) } }
        }
        h2 { "What to fix" }
        @match to_fix {
            Some(to_fix) => (to_fix.checks),
            None => (broken_alone(&report.broken)),
        }
        h2 { "How the crawl went" }
        div.cards {
            (requests_section(report))
            (permissions_section(report, figures))
            (politeness_section(report, figures))
            (coverage_section(report))
        }
        @if let Some(extraction) = &report.extraction { (extracted_fields_section::fields(extraction)) }
        @if let Some(sample) = &report.sample { (sample_section::drawn(sample, report.crawl.sample.as_ref())) }
        @if let Some(walk) = &report.walk { (sample_section::walked(walk)) }
        @if !plots.is_empty() || sketch.is_some() {
            h2 { "Plots" }
            div.plots { @for plot in &plots { (plot) } }
            @if let Some(sketch) = sketch { (sketch) }
        }
        (site_owner_section::sites(report, figures))
        h2 { "Details" }
        (fold("Hosts", &hosts(report)))
        (fold("Counts", &all_counts(report)))
    };
    let description = "What to fix on the crawled sites, how the crawl went, and its numbers.";
    page(&title, description, &body)
}

/// Renders the headline numbers. `html_pages` is the number of HTML pages, if the archived pages
/// were read.
fn sums(report: &CrawlReport, html_pages: Option<u64>) -> Markup {
    html! {
        p.sums {
            @match html_pages {
                Some(html_pages) => (ReportedCrawlSummary::visited_words(report.pages.total, html_pages)),
                None => { (counted(report.pages.total, "URL", "URLs")) " visited" },
            }
            ", " (size(report.pages.bytes)) "; "
            (grouped(report.pages.failed)) " failed; "
            (grouped(report.excluded.decided())) " excluded; "
            @if let Some(pending) = report.pending.as_ref().filter(|pending| pending.total > 0) {
                (pending) " pending; "
            }
            (counted(report.requests.total, "request", "requests"))
            ". Gaps: " (kept(report.requests.short_gaps))
            ". Waits: " (kept(report.requests.short_waits)) "."
        }
        @if let Some(all) = &report.pages.all_rounds {
            p { "Each page is counted once, by its last visit. All rounds: " (all_rounds(all)) "." }
        }
    }
}

/// Renders the broken pages, and the command that finds more to fix. Used if the archived pages of
/// the crawl were not read.
fn broken_alone(broken: &BrokenPagesSummary) -> Markup {
    html! {
        @if broken.pages == 0 { p { "No page is broken." } }
        @else { (broken_table(broken)) }
        p.soft {
            "For titles, descriptions, headings, images, redirects and links to every broken page, run "
            code { "crawl report DIR --site --html FILE" } ", which reads the archived pages."
        }
    }
}

fn card(title: &str, body: &Markup) -> Markup {
    html! { section class="card" { h2 { (title) } (body) } }
}

fn requests_section(report: &CrawlReport) -> Markup {
    let (hosts, _) = report.hosts_asked();
    let requests = &report.requests;
    let seeds = &report.crawl.seeds;
    let more = seeds.len().saturating_sub(MAX_SEEDS) as u64;
    let body = html! {
        p {
            (counted(requests.total, "request", "requests")) " to " (counted(hosts.len() as u64, "host", "hosts"))
            @if let Some((first, last)) = requests.first_start_ms.zip(requests.last_end_ms) {
                ", from " (moment(first)) " to " (moment(last)) " UTC (" (span(last.saturating_sub(first))) ")"
            }
            ". By purpose: " (in_words(&requests.by_purpose)) "."
        }
        p {
            "Started from " (counted(seeds.len() as u64, "seed", "seeds")) ": "
            @for (at, seed) in seeds.iter().take(MAX_SEEDS).enumerate() { @if at > 0 { ", " } (link(seed)) }
            @if more > 0 { ", and " (grouped(more)) " more" }
            "."
        }
        p class="soft" {
            @if let Some(started) = &report.crawl.started { "Started " (safe_line(started)) "." }
            @if let Some(version) = &report.crawl.version { " By crawl " (safe_line(version)) "." }
            @if let Some(browser) = &report.crawl.browser { " Pages were rendered with " (safe_line(browser)) "." }
        }
    };
    card("Requests", &body)
}

fn permissions_section(report: &CrawlReport, figures: &PlotData) -> Markup {
    let (manners, permissions) = (&figures.manners, &figures.permissions);
    let mut states: BTreeMap<&str, u64> = BTreeMap::new();
    for robots in report.hosts.iter().flat_map(|host| host.robots.values()) {
        *states.entry(robots.state.as_str()).or_default() += 1;
    }
    let origins: u64 = states.values().sum();
    let purpose = manners.purpose.as_deref().unwrap_or("unstated");
    let (allowed, refused) = (permissions.purpose_allowed, permissions.purpose_refused);
    let silent = report.pages.visits().saturating_sub(allowed + refused);
    let body = html! {
        p {
            "robots.txt was requested from " (counted(origins, "origin", "origins"))
            @if origins > 0 { " (" (in_words(&states)) ")" }
            ". "
            @if manners.agent.is_some() || manners.robots.is_some() {
                "robots.txt rules"
                @if let Some(rules) = &manners.robots { " of " (robots_rules(rules)) }
                @if let Some(agent) = &manners.agent { ", for user agent " code { (safe_line(agent)) } }
                ". "
            } (counted(permissions.allowed_by_rule, "page is", "pages are")) " allowed by a rule, "
            (grouped(permissions.no_rule)) " because no rule matches. "
            (counted(report.excluded.by_reason.get("robots").copied().unwrap_or(0), "URL was", "URLs were")) " excluded by a rule."
        }
        p {
            "Declared purpose: " (safe_line(purpose)) ". "
            @if purpose != "unstated" {
                "Sites allow it for " (counted(allowed, "page", "pages")) ", refuse it for " (grouped(refused))
                ", and don't mention it for " (grouped(silent)) ". "
            }
            @if permissions.withheld > 0 {
                "No copy of " (counted(permissions.withheld, "page", "pages")) " was kept, as the site requests."
            }
            @if permissions.statements.is_empty() { "No site states how its pages may be used." }
            @else {
                "Usage statements of sites: "
                @for (at, ((vocabulary, channel), pages)) in permissions.statements.iter().enumerate() {
                    @if at > 0 { ", " } (safe_line(vocabulary)) " (" (safe_line(channel)) "): " (counted(*pages, "page", "pages"))
                }
                "."
            }
        }
        @for (what, text) in operator_lines(&report.crawl.operator) {
            p { (what) ": " (link(text)) }
        }
    };
    card("Permissions", &body)
}

/// Returns the name of the rules for reading robots.txt: `RFC 9309` for `rfc9309`.
fn robots_rules(profile: &str) -> String {
    match profile.strip_prefix("rfc") {
        Some(number) => format!("RFC {}", safe_line(number)),
        None => safe_line(profile).into_owned(),
    }
}

fn politeness_section(report: &CrawlReport, figures: &PlotData) -> Markup {
    let manners = &figures.manners;
    let busy: u64 = report.hosts.iter().map(|host| host.busy_ms).sum();
    let mut by_site: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (rule, gaps) in report.hosts.iter().flat_map(|host| &host.gaps.by_site) {
        let sum = by_site.entry(rule).or_default();
        *sum = (sum.0 + gaps.count, sum.1.saturating_add(gaps.asked_ms));
    }
    let waits = report.hosts.iter().map(|host| &host.waits);
    let count: u64 = waits.clone().map(|waits| waits.count).sum();
    let longest = waits.map(|waits| waits.longest_asked_ms).max().unwrap_or(0);
    let gaps: u64 = report.hosts.iter().map(|host| host.gaps.count).sum();
    let most_requests = figures
        .hosts
        .iter()
        .map(|host| host.most_in_a_minute)
        .max()
        .unwrap_or(0);
    let body = html! {
        p {
            @if let Some(delay) = &manners.delay {
                "Between two requests to a host: at least " (safe_line(delay))
                @if let Some(factor) = manners.delay_factor { " and " (factor) " times its response time" }
                ". "
            }
            (counted(gaps, "gap", "gaps")) " between requests: " (kept(report.requests.short_gaps)) "."
        }
        p {
            @if by_site.is_empty() { "No site set its own pace. " }
            @for (rule, (gaps, asked)) in &by_site {
                "Sites' " (safe_line(rule)) ": " (counted(*gaps, "gap", "gaps")) ", " (span(*asked)) " in total. "
            }
            @if count == 0 { "No response required a wait (Retry-After, 429, 503)." }
            @else {
                (counted(count, "response", "responses")) " required a wait (Retry-After, 429, 503), the longest "
                (span(longest)) ": " (kept(report.requests.short_waits)) "."
            }
        }
        p {
            "Servers spent " (span(busy)) " on these requests. At most "
            (counted(u64::from(report.crawl.per_host), "request", "requests")) " to a host at once; "
            (grouped(most_requests)) " in the busiest minute of any host."
        }
    };
    card("Politeness", &body)
}

fn coverage_section(report: &CrawlReport) -> Markup {
    let mut missing: BTreeMap<String, u64> = BTreeMap::new();
    for shortfall in report.hosts.iter().flat_map(|host| &host.missing) {
        *missing
            .entry(failure_words(shortfall.reason.name()))
            .or_default() += shortfall.urls;
    }
    let body = html! {
        p { "Coverage of the hosts: " (report.coverage_line()) "." }
        @if missing.is_empty() { p { "Nothing is missing of what links and sitemaps lead to and sites allow." } }
        @else { p { "Missing URLs by reason: " (in_words(&missing)) "." } }
        ul class="key" {
            @for (coverage, meaning) in [
                (HostCoverage::Whole, "everything found and allowed was answered"),
                (HostCoverage::Partial, "something is missing"),
                (HostCoverage::Blocked, "the host refused the crawl"),
                (HostCoverage::Empty, "the host allowed nothing, or no page of it could be fetched"),
            ] {
                li { (verdict(Some(coverage))) " " (meaning) }
            }
        }
    };
    card("Completeness", &body)
}

fn in_words<K: Display>(counts: &BTreeMap<K, u64>) -> String {
    let parts = counts.iter().take(MAX_ROWS);
    let parts = parts.map(|(name, count)| format!("{name}: {}", grouped(*count)));
    safe_line(&parts.collect::<Vec<_>>().join(", ")).into_owned()
}

/// Renders the first broken pages of a crawl, each with the page that first linked to it.
#[must_use]
pub fn broken_table(broken: &BrokenPagesSummary) -> Markup {
    let rows = broken.first.iter().map(|row| {
        vec![
            TableCell::link(&row.url),
            TableCell::text(&answer_words(row.status, row.error.as_deref())),
            match &row.via {
                Some(via) => TableCell::link(via),
                None => TableCell::text("a seed of the crawl"),
            },
        ]
    });
    HtmlTable {
        name: "Broken pages",
        columns: &["broken page", "answer", "first linked from"],
        rows: rows.collect(),
        more: broken.pages.saturating_sub(broken.first.len() as u64),
    }
    .draw()
}

fn hosts(report: &CrawlReport) -> Markup {
    let (hosts, unasked) = report.hosts_asked();
    let table = HtmlTable {
        name: "Hosts",
        columns: &[
            "host",
            "coverage",
            "pages",
            "received",
            "requests",
            "excluded",
            "pending",
            "gaps",
            "waits",
            "robots.txt",
        ],
        rows: hosts
            .iter()
            .take(MAX_LISTED_HOSTS)
            .map(|host| host_row(host))
            .collect(),
        more: hosts.len().saturating_sub(MAX_LISTED_HOSTS) as u64,
    };
    html! {
        (table.draw())
        @if let Some(line) = unvisited_line(unasked) {
            p { "And " (line) "." }
        }
    }
}

fn host_row(host: &HostReport) -> Vec<TableCell> {
    let robots = host
        .robots
        .iter()
        .map(|(origin, copy)| format!("{origin}: {}", robots_line(copy)));
    let waits = match host.waits.count {
        0 => TableCell::Empty,
        _ => TableCell::text(&waits(host)),
    };
    vec![
        TableCell::text(&host.host),
        TableCell::text(&coverage_words(host).unwrap_or_default()),
        TableCell::count(host.pages),
        TableCell::Number(host.bytes, size(host.bytes)),
        TableCell::count(host.requests),
        TableCell::count(host.decided_exclusions()),
        TableCell::count(host.waiting),
        TableCell::text(&gaps(host)),
        waits,
        TableCell::text(&robots.collect::<Vec<_>>().join("; ")),
    ]
}

/// Renders the tables of counts.
fn all_counts(report: &CrawlReport) -> Markup {
    let (pages, requests) = (&report.pages, &report.requests);
    let failures = named(&requests.by_failure, |failure| failure_words(failure));
    let unrendered = named(&pages.unrendered, |error| failure_words(error));
    html! {
        div.cards {
            (counts("Pages by outcome", &named(&pages.by_outcome, |outcome| outcome_words(outcome))))
            (counts("Pages by status", &named(&pages.by_status, |status| status_words(*status))))
            (counts("Pages by type", &pages.by_type))
            (counts("Pages by depth", &pages.by_depth))
            (counts("Pages that could not be rendered", &unrendered))
            (rounds(report))
            (labels(report))
            (counts("Excluded by reason", &report.excluded.by_decision()))
            (counts("Put aside, with the evidence", &report.excluded.put_aside))
            (counts("Requests by purpose", &requests.by_purpose))
            (counts("Requests without an answer", &failures))
        }
    }
}

fn counts<K: Display + Ord>(title: &str, counts: &BTreeMap<K, u64>) -> Markup {
    let mut rows: Vec<_> = counts.iter().collect();
    let mut rest = 0;
    if rows.len() > MAX_ROWS {
        rows.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        rest = rows
            .split_off(MAX_ROWS)
            .iter()
            .map(|(_, count)| **count)
            .sum();
        rows.sort();
    }
    let list = html! {
        @for (name, count) in rows {
            tr { td { (safe_line(&name.to_string())) } td.n { (grouped(*count)) } }
        }
        @if rest > 0 { tr { td { "others" } td.n { (grouped(rest)) } } }
    };
    html! { @if !counts.is_empty() { (titled(title, &list)) } }
}

/// Renders a table of counts with `title` as its heading.
fn titled(title: &str, rows: &Markup) -> Markup {
    html! { div { h4 { (title) } (scrolling_table(title, rows)) } }
}

/// Renders the last rounds of the crawl.
fn rounds(report: &CrawlReport) -> Markup {
    let rounds = &report.pages.rounds;
    let list = html! {
        @for (number, round) in rounds.iter().skip(rounds.len().saturating_sub(MAX_ROWS)) {
            tr { td.n { (number) } td { (round) } }
        }
    };
    html! { @if !rounds.is_empty() { (titled("Rounds", &list)) } }
}

/// Renders the labels of seeds, in descending order of their pages.
fn labels(report: &CrawlReport) -> Markup {
    let mut labels: Vec<_> = report.pages.by_label.iter().collect();
    labels.sort_by_key(|(_, of_label)| std::cmp::Reverse(of_label.total));
    let list = html! {
        @for (label, of_label) in labels.iter().take(MAX_ROWS) {
            tr { td { (safe_line(label)) } td.n { (label_counts(of_label)) } }
        }
        @if labels.len() > MAX_ROWS {
            tr { td { "others" } td.n { (grouped((labels.len() - MAX_ROWS) as u64)) } }
        }
    };
    html! { @if !labels.is_empty() { (titled("Labels of seeds", &list)) } }
}

#[cfg(test)]
mod tests;
