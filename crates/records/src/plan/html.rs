//! Renders the plan as a self-contained page: what to decide first, then the load of each host.

use crawl_weburl::safe_line;
use maud::{Markup, html};

use super::text::{bytes, gap, hours, origin_lines};
use super::{CostPlan, HostPlan};
use crate::number_format::counted;
use crate::self_contained_report_page::{HtmlTable, MAX_LISTED_HOSTS, TableCell, page};

/// Maximum rules listed on the page of `plan --html`, those that exclude the most URLs first.
/// Beyond the limit: a count.
const MAX_RULES: usize = 1000;

impl CostPlan {
    /// Renders the plan as a self-contained HTML page. All text from servers is escaped.
    #[must_use]
    pub fn to_html(&self) -> String {
        let title = match self.seeds.first() {
            Some(seed) => format!("Plan of a crawl of {}", safe_line(seed)),
            None => "Plan of a crawl".to_owned(),
        };
        let purpose = self.purpose.as_deref().unwrap_or("unstated");
        let excluded = self.excluded.values().sum();
        let body = html! {
            p.sums {
                (counted(self.pages, "known page", "known pages")) "; "
                (counted(self.requests, "request", "requests")) " to fetch them; "
                (counted(excluded, "URL", "URLs")) " excluded."
            }
            h2 { "What to expect" }
            div.cards {
                section.card { h3 { "Time" } p { (safe_line(&hours(&self.hours))) "." } }
                section.card { h3 { "Data" } p { (safe_line(&bytes(&self.bytes))) "." } }
                section.card {
                    h3 { "This plan" }
                    p {
                        "Purpose: " (purpose) ". " (counted(self.asked, "request was", "requests were"))
                        " sent, only for robots.txt and sitemaps."
                        @if let Some(uncounted) = self.uncounted_words() {
                            " Computed without " (uncounted) "."
                        }
                    }
                }
            }
            (rules(self))
            (statements(self))
            h2 { "Load of each host" }
            (hosts(self))
        };
        let description = "The load that the crawl would cause, before it starts.";
        page(&title, description, &body)
    }
}

/// Renders the rules that exclude URLs.
fn rules(plan: &CostPlan) -> Markup {
    let rules = plan.hosts.iter();
    let mut rules: Vec<_> = rules
        .flat_map(|host| host.rules.iter().map(move |rule| (&host.host, rule)))
        .collect();
    rules.sort_by_key(|(_, rule)| std::cmp::Reverse(rule.urls));
    let rows = rules.iter().take(MAX_RULES).map(|(host, rule)| {
        vec![
            TableCell::text(host),
            TableCell::text(&rule.reason),
            TableCell::text(rule.rule.as_deref().unwrap_or_default()),
            match rule.line {
                Some(line) => TableCell::count(line.into()),
                None => TableCell::Empty,
            },
            TableCell::count(rule.urls),
        ]
    });
    let table = HtmlTable {
        name: "Rules that exclude URLs",
        columns: &["host", "reason", "rule", "line", "URLs"],
        rows: rows.collect(),
        more: rules.len().saturating_sub(MAX_RULES) as u64,
    };
    html! { @if !rules.is_empty() { h2 { "What is excluded" } (table.draw()) } }
}

/// Renders the statements of robots.txt files about the pace of a crawl and the use of pages.
fn statements(plan: &CostPlan) -> Markup {
    let purpose = plan.purpose.as_deref();
    let hosts = plan.slowest_first();
    let origins = hosts.iter().flat_map(|host| &host.origins);
    let origins =
        origins.filter(|origin| origin.crawl_delay_ms.is_some() || origin.usage.is_some());
    let origins: Vec<_> = origins.collect();
    let rows = origins.iter().take(MAX_LISTED_HOSTS).map(|origin| {
        let lines = origin_lines(origin, purpose);
        let lines = html! { ul { @for line in &lines { li { (safe_line(line)) } } } };
        vec![
            TableCell::link(&format!("{}/robots.txt", origin.origin)),
            TableCell::Markup(lines),
        ]
    });
    let table = HtmlTable {
        name: "Statements of robots.txt",
        columns: &["robots.txt", "says"],
        rows: rows.collect(),
        more: origins.len().saturating_sub(MAX_LISTED_HOSTS) as u64,
    };
    html! { @if !origins.is_empty() { h2 { "What sites request" } (table.draw()) } }
}

fn hosts(plan: &CostPlan) -> Markup {
    let hosts = plan.slowest_first();
    let rows = hosts.iter().take(MAX_LISTED_HOSTS).map(|host| row(host));
    HtmlTable {
        name: "Hosts",
        columns: &["host", "pages", "sitemaps", "delay", "time", "data"],
        rows: rows.collect(),
        more: hosts.len().saturating_sub(MAX_LISTED_HOSTS) as u64,
    }
    .draw()
}

fn row(host: &HostPlan) -> Vec<TableCell> {
    let seconds = (host.hours.expected.unwrap_or(host.hours.least) * 3600.0).round();
    let octets = host.bytes.expected.unwrap_or(host.bytes.least).round();
    vec![
        TableCell::text(&host.host),
        TableCell::count(host.pages),
        TableCell::count(host.sitemaps),
        TableCell::Words(host.gap_ms, gap(host)),
        TableCell::Words(seconds as u64, hours(&host.hours)),
        TableCell::Words(octets as u64, bytes(&host.bytes)),
    ]
}
