//! Renders the plan as a self-contained page.

use crawl_weburl::safe_line;
use maud::{Markup, html};

use super::text::{bytes, gap, hours, origin_lines, rule_words};
use super::{HostPlan, Plan};
use crate::html::{MAX_LISTED_HOSTS, page, table};
use crate::numbers::{counted, grouped};

impl Plan {
    /// Renders the plan as a self-contained HTML page. All text from servers is escaped.
    #[must_use]
    pub fn to_html(&self) -> String {
        let title = match self.seeds.first() {
            Some(seed) => format!("Plan of a crawl of {}", safe_line(seed)),
            None => "Plan of a crawl".to_owned(),
        };
        let purpose = self.purpose.as_deref().unwrap_or("unstated");
        let body = html! {
            p { "Purpose: " (purpose) ". " (counted(self.pages, "page is", "pages are")) " known." }
            p { "Hours: " (safe_line(&hours(&self.hours))) "." }
            p { "Bytes: " (safe_line(&bytes(&self.bytes))) "." }
            p { (counted(self.asked, "request was", "requests were")) " sent for this plan, only for robots.txt and sitemaps." }
            (hosts(self))
        };
        page(&title, &body)
    }
}

fn hosts(plan: &Plan) -> Markup {
    let hosts = plan.slowest_first();
    let more = hosts.len().saturating_sub(MAX_LISTED_HOSTS) as u64;
    let purpose = plan.purpose.as_deref();
    let list = html! {
        tr {
            @for name in ["host", "pages", "sitemaps", "gap", "hours", "bytes", "excluded", "robots.txt"] {
                th { (name) }
            }
        }
        @for host in hosts.iter().take(MAX_LISTED_HOSTS) { (row(host, purpose)) }
    };
    html! {
        (table("Hosts", "t w", &list))
        @if more > 0 {
            p { "And " (counted(more, "more host", "more hosts")) "." }
        }
    }
}

fn row(host: &HostPlan, purpose: Option<&str>) -> Markup {
    let rules: Vec<_> = host.rules.iter().map(rule_words).collect();
    let origins = host.origins.iter();
    let statements: Vec<_> = origins
        .flat_map(|origin| origin_lines(origin, purpose))
        .collect();
    html! {
        tr {
            td data-name="host" { (safe_line(&host.host)) }
            td.n data-name="pages" { (grouped(host.pages)) }
            td.n data-name="sitemaps" { (grouped(host.sitemaps)) }
            td data-name="gap" { (safe_line(&gap(host))) }
            td data-name="hours" { (safe_line(&hours(&host.hours))) }
            td data-name="bytes" { (safe_line(&bytes(&host.bytes))) }
            td data-name="excluded" { (safe_line(&rules.join("; "))) }
            td data-name="robots.txt" { (safe_line(&statements.join("; "))) }
        }
    }
}
