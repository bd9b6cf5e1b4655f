//! The report as an HTML page: for the appendix of a paper, and for site owners.

mod plots;
mod sample;
mod sites;
mod sketch;
pub(crate) mod svg;
mod times;

use std::collections::BTreeMap;
use std::fmt::Display;

use crawl_weburl::safe_line;
use maud::{Markup, html};

use crate::bins::GapHistograms;
use crate::coverage::Coverage;
use crate::figures::Figures;
use crate::hosts::HostReport;
use crate::html::{MAX_LISTED_HOSTS, link, page, scrolling_table, table};
use crate::numbers::{counted, grouped, size};
use crate::report::{BrokenCounts, Report};
use crate::text::{
    all_rounds, coverage_words, gaps, in_words as named, kept, label_counts, operator_lines,
    robots_line, unvisited_line, waits,
};
use crate::words::{answer_words, failure_words, outcome_words, status_words};

use sites::verdict;
use times::{moment, span};

/// Maximum rows in a table of counts of `report.html`; one more row sums up the rest.
/// Beyond the limit: one row for the others.
const MAX_ROWS: usize = 100;
/// Number of broken pages shown before the list is expanded.
const MAX_OPEN_BROKEN: usize = 10;
/// Maximum number of seeds listed on the page.
const MAX_SEEDS: usize = 20;

/// Renders the page. All text from servers is escaped.
pub(crate) fn page_of(report: &Report, gaps: &GapHistograms, figures: &Figures) -> String {
    let title = match report.crawl.seeds.first() {
        Some(seed) => format!("Crawl of {}", safe_line(seed)),
        None => "Crawl".to_owned(),
    };
    let body = html! {
        @if let Some(of) = &report.crawl.replay_of {
            p { "A replay of " (safe_line(of)) ": no requests were sent, and all times are virtual." }
        }
        p class="sums" {
            (counted(report.pages.total, "page", "pages")) ", " (size(report.pages.bytes)) "; "
            (grouped(report.pages.failed)) " failed; "
            (grouped(report.excluded.total)) " excluded; "
            (counted(report.requests.total, "request", "requests"))
            ". Gaps: " (kept(report.requests.short_gaps))
            ". Waits: " (kept(report.requests.short_waits)) "."
        }
        @if let Some(all) = &report.pages.all_rounds {
            p { "Each page is counted once, by its last visit. All rounds: " (all_rounds(all)) "." }
        }
        @for flaw in &report.flaws {
            p { strong { "Flaw: " (safe_line(flaw)) } }
        }
        div class="cards" {
            (requests_section(report))
            (permissions_section(report, figures))
            (politeness_section(report, figures))
            (coverage_section(report))
        }
        @if let Some(sample) = &report.sample { (sample::drawn(sample, report.crawl.sample.as_ref())) }
        @if let Some(walk) = &report.walk { (sample::walked(walk)) }
        h2 { "Plots" }
        (plots::plots(report, gaps, figures))
        (sketch::sketch(&figures.links))
        (sites::sites(report, figures))
        (hosts(report))
        (broken(&report.broken))
        (counts("Pages by outcome", &named(&report.pages.by_outcome, |outcome| outcome_words(outcome))))
        (counts("Pages by status", &named(&report.pages.by_status, |status| status_words(*status))))
        (counts("Pages by type", &report.pages.by_type))
        (counts("Pages by depth", &report.pages.by_depth))
        (rounds(report))
        (labels(report))
        (counts("Excluded by reason", &report.excluded.by_reason))
        (counts("Put aside, with the evidence", &report.excluded.put_aside))
        (counts("Requests by purpose", &report.requests.by_purpose))
        (counts("Requests without an answer", &named(&report.requests.by_failure, |failure| failure_words(failure))))
    };
    page(&title, &body)
}

fn card(title: &str, body: &Markup) -> Markup {
    html! { section class="card" { h2 { (title) } (body) } }
}

fn requests_section(report: &Report) -> Markup {
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
        }
    };
    card("Requests", &body)
}

fn permissions_section(report: &Report, figures: &Figures) -> Markup {
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
            @if let Some(agent) = &manners.agent { ", and read for the agent " code { (safe_line(agent)) } }
            @if let Some(rules) = &manners.robots { " by the rules of " (safe_line(rules)) }
            ". " (counted(permissions.allowed_by_rule, "page is", "pages are")) " allowed by a rule, "
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

fn politeness_section(report: &Report, figures: &Figures) -> Markup {
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

fn coverage_section(report: &Report) -> Markup {
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
                (Coverage::Whole, "everything found and allowed was answered"),
                (Coverage::Partial, "something is missing"),
                (Coverage::Blocked, "the host refused the crawl"),
                (Coverage::Empty, "the host allowed nothing, or no page of it could be fetched"),
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

fn broken(broken: &BrokenCounts) -> Markup {
    let more = broken.pages.saturating_sub(broken.first.len() as u64);
    let list = html! {
        tr { th { "page" } th { "answer" } th { "first found on" } }
        @for row in &broken.first {
            tr {
                td data-name="page" { (link(&row.url)) }
                td data-name="answer" { (safe_line(&answer_words(row.status, row.error.as_deref()))) }
                td data-name="first found on" { @if let Some(via) = &row.via { (link(via)) } @else { "a seed" } }
            }
        }
    };
    html! {
        @if broken.pages > 0 {
            h2 { "Broken pages" }
            details open[broken.first.len() <= MAX_OPEN_BROKEN] {
                summary { (counted(broken.pages, "page had", "pages had")) " no answer, or answered with an error" }
                (scrolling_table("Broken pages", "t w", &list))
                @if more > 0 {
                    p { "And " (counted(more, "more broken page", "more broken pages")) "." }
                }
            }
        }
    }
}

fn hosts(report: &Report) -> Markup {
    let (hosts, unasked) = report.hosts_asked();
    let more = hosts.len().saturating_sub(MAX_LISTED_HOSTS) as u64;
    let list = html! {
        tr {
            @for name in ["host", "coverage", "pages", "received", "requests", "excluded", "gaps", "waits", "robots.txt"] {
                th { (name) }
            }
        }
        @for host in hosts.iter().take(MAX_LISTED_HOSTS) { (host_row(host)) }
    };
    html! {
        (table("Hosts", "t w", &list))
        @if more > 0 {
            p { "And " (counted(more, "more host", "more hosts")) "." }
        }
        @if let Some(line) = unvisited_line(unasked) {
            p { "And " (line) "." }
        }
    }
}

fn host_row(host: &HostReport) -> Markup {
    let robots = host
        .robots
        .iter()
        .map(|(origin, copy)| format!("{origin}: {}", robots_line(copy)));
    html! {
        tr {
            td data-name="host" { (safe_line(&host.host)) }
            td data-name="coverage" { (safe_line(&coverage_words(host).unwrap_or_default())) }
            td.n data-name="pages" { (grouped(host.pages)) }
            td.n data-name="received" { (size(host.bytes)) }
            td.n data-name="requests" { (grouped(host.requests)) }
            td.n data-name="excluded" { (grouped(host.excluded)) }
            td data-name="gaps" { (safe_line(&gaps(host))) }
            td data-name="waits" { (safe_line(&waits(host))) }
            td data-name="robots.txt" { (safe_line(&robots.collect::<Vec<_>>().join("; "))) }
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
    html! { @if !counts.is_empty() { (table(title, "t", &list)) } }
}

/// Renders the last rounds of the crawl.
fn rounds(report: &Report) -> Markup {
    let rounds = &report.pages.rounds;
    let list = html! {
        @for (number, round) in rounds.iter().skip(rounds.len().saturating_sub(MAX_ROWS)) {
            tr { td.n { (number) } td { (round) } }
        }
    };
    html! { @if !rounds.is_empty() { (table("Rounds", "t", &list)) } }
}

/// Renders the labels of seeds, those with the most pages first.
fn labels(report: &Report) -> Markup {
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
    html! { @if !labels.is_empty() { (table("Labels of seeds", "t", &list)) } }
}

#[cfg(test)]
mod tests;
