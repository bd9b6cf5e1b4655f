//! Renders answers to the questions of a site owner: what was fetched, when, how often, why the
//! crawl ended, and how to opt out.

use crawl_weburl::safe_line;
use maud::{Markup, html};

use crate::host_coverage::HostCoverage;
use crate::host_reports::HostReport;
use crate::number_format::{counted, grouped, size};
use crate::plot_data::{HostPlotData, PlotData, PolitenessSettings, ResponseClass};
use crate::report::CrawlReport;
use crate::report_text::{coverage_words, kept, robots_line};
use crate::self_contained_report_page::link;

use super::time_format::{moment, span};

/// Maximum number of origins and rules listed per host.
const MAX_LINES: usize = 10;

/// Renders a section for each host in `figures`, with the answers to its owner's questions.
pub(super) fn sites(report: &CrawlReport, figures: &PlotData) -> Markup {
    let (asked, _) = report.hosts_asked();
    let shown = asked.iter().zip(&figures.hosts);
    let more = asked.len().saturating_sub(figures.hosts.len()) as u64;
    html! {
        @if !asked.is_empty() {
            h2 { "Your site" }
            (left_out(report, &figures.manners))
            @for (host, of) in shown {
                details class="site" open[asked.len() == 1] {
                    summary { b { (safe_line(&host.host)) } " " (verdict(host.coverage)) }
                    (site(host, of))
                }
            }
            @if more > 0 {
                p { (counted(more, "more host is", "more hosts are")) " in the table of hosts and in " code { "report.json" } "." }
            }
        }
    }
}

/// Explains to a site owner how to opt out of this crawl.
fn left_out(report: &CrawlReport, manners: &PolitenessSettings) -> Markup {
    let agent = manners.agent.as_deref().unwrap_or("crawl");
    html! {
        div class="card" {
            h3 { "How to opt out" }
            p { "Add these lines to your robots.txt. A running crawl rereads the file within a day." }
            pre { "User-agent: " (safe_line(agent)) "\nDisallow: /" }
            p {
                @match &report.crawl.operator.contact {
                    Some(contact) => {
                        "Or write to " (contact_link(contact)) ", who is responsible for this crawl and can delete what was fetched."
                    }
                    None => "No contact was given: this crawl may fetch only from hosts of its own machine or network."
                }
                @if let Some(page) = &report.crawl.operator.study_page { " About the study: " (link(page)) "." }
            }
        }
    }
}

fn contact_link(contact: &str) -> Markup {
    let is_address = contact.contains('@') && !contact.contains(['/', '?', ' ', ':']);
    html! {
        @if is_address { a href=(format!("mailto:{}", safe_line(contact))) { (safe_line(contact)) } }
        @else { (link(contact)) }
    }
}

/// Renders a coverage verdict as a word with a symbol.
pub(super) fn verdict(coverage: Option<HostCoverage>) -> Markup {
    let Some(coverage) = coverage else {
        return Markup::default();
    };
    let sign = match coverage {
        HostCoverage::Whole => "●",
        HostCoverage::Partial => "◐",
        HostCoverage::Blocked => "○",
        HostCoverage::Empty => "∅",
    };
    html! { span class="verdict" { span aria-hidden="true" { (sign) " " } (coverage.word()) } }
}

fn site(host: &HostReport, of: &HostPlotData) -> Markup {
    let answers = ResponseClass::ALL
        .into_iter()
        .zip(of.answers)
        .filter(|(_, requests)| *requests > 0);
    let answers: Vec<_> = answers
        .map(|(answer, requests)| format!("{}: {}", answer.name(), grouped(requests)))
        .collect();
    html! {
        dl {
            dt { "sent" }
            dd {
                (counted(host.requests, "request", "requests")) ", " (grouped(host.robots_requests)) " of them for robots.txt"
                @if host.requests > 0 { "; from " (moment(of.first_start_ms)) " to " (moment(of.last_end_ms)) " UTC" }
            }
            dt { "received" }
            dd { (counted(host.pages, "page", "pages")) ", " (size(host.bytes)) "; " (grouped(host.failed)) " failed" }
            @if !answers.is_empty() {
                dt { "answers" } dd { (answers.join("; ")) }
            }
            @if host.requests > 1 {
                dt { "how often" }
                dd {
                    "every " (span(of.last_end_ms.saturating_sub(of.first_start_ms) / (host.requests - 1))) " on average, "
                    (grouped(of.most_in_a_minute)) " in the busiest minute; your server spent " (span(host.busy_ms)) " on them"
                }
            }
            (pace(host))
            @if !host.robots.is_empty() {
                dt { "your robots.txt" }
                dd {
                    @for (origin, robots) in host.robots.iter().take(MAX_LINES) {
                        div { (safe_line(origin)) ": " (safe_line(&robots_line(robots))) ", last requested at " (moment(robots.at_ms)) " UTC" }
                    }
                    (others(host.robots.len()))
                }
            }
            @if !of.rules.is_empty() {
                dt { "your rules that were respected" }
                dd {
                    @for ((rule, line), urls) in most_urls(of).into_iter().take(MAX_LINES) {
                        div {
                            (safe_line(rule)) @if let Some(line) = line { " (line " (line) ")" }
                            ": " (counted(*urls, "URL", "URLs")) " not fetched"
                        }
                    }
                    (others(of.rules.len()))
                }
            }
            dt { "why it ended" }
            dd { (why_ended(host)) }
        }
    }
}

/// Returns the rules of a site, those that excluded the most URLs first.
fn most_urls(of: &HostPlotData) -> Vec<(&(String, Option<u32>), &u64)> {
    let mut rules: Vec<_> = of.rules.iter().collect();
    rules.sort_by_key(|(_, urls)| std::cmp::Reverse(**urls));
    rules
}

fn others(all: usize) -> Markup {
    let more = all.saturating_sub(MAX_LINES) as u64;
    html! { @if more > 0 { div { "and " (counted(more, "other", "others")) } } }
}

fn pace(host: &HostReport) -> Markup {
    let (gaps, waits) = (&host.gaps, &host.waits);
    let longest = gaps.most_asked_ms.zip(gaps.most_asked_by.as_deref());
    html! {
        @if let Some((least, asked)) = gaps.least_seen_ms.zip(gaps.asked_then_ms) {
            dt { "gaps" }
            dd {
                "the shortest " (span(least)) " (" (span(asked)) " required), " (kept(gaps.short))
                @if let Some((longest, by)) = longest { "; the longest required was " (span(longest)) " (" (safe_line(by)) ")" }
                @for (rule, of) in &gaps.by_site {
                    "; " (counted(of.count, "gap", "gaps")) " by your " (safe_line(rule)) ", " (span(of.asked_ms)) " in total"
                }
            }
        }
        @if waits.count > 0 {
            dt { "waits that you required" }
            dd {
                (grouped(waits.count)) ", the longest " (span(waits.longest_asked_ms)) "; "
                (span(waits.given_ms)) " waited of " (span(waits.asked_ms)) " in total; " (kept(waits.short))
            }
        }
    }
}

fn why_ended(host: &HostReport) -> Markup {
    let words = coverage_words(host).unwrap_or_default();
    html! {
        @match host.coverage {
            Some(HostCoverage::Whole) => "nothing was left to fetch: ",
            Some(HostCoverage::Partial) => "something was left: ",
            Some(HostCoverage::Blocked) => "your site refused the crawl: ",
            Some(HostCoverage::Empty) => "no page of your site was fetched: ",
            None => "none of its pages were to be fetched"
        }
        (safe_line(&words))
        @if host.waiting > 0 { "; " (counted(host.waiting, "URL waits", "URLs wait")) " for the next run" }
    }
}
