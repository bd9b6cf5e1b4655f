//! The report as one page that needs nothing else: no script, no font, no request.

use std::collections::BTreeMap;
use std::fmt::Display;

use crawl_weburl::safe_line;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::numbers::{counted, grouped, size};
use crate::report::{BrokenCounts, BrokenRow, Report};
use crate::text::{coverage_words, gaps, kept, operator_lines, robots_line, unasked_line, waits};

const STYLE: &str = "\
:root{color-scheme:light dark;--page:#fff;--text:#1b1b1b;--line:#999;--link:#0b57d0}\
@media(prefers-color-scheme:dark){:root{--page:#16181c;--text:#e4e4e4;--line:#5a5e66;--link:#8ab4f8}}\
body{font:16px/1.5 sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;\
background:var(--page);color:var(--text)}\
h1,p,.t{overflow-wrap:anywhere}a{color:var(--link)}\
.t{overflow-x:auto;margin:1rem 0}table{border-collapse:collapse}\
td,th{border:1px solid var(--line);padding:.2rem .6rem;text-align:left;vertical-align:top}\
th,td.n{white-space:nowrap}td.n{text-align:right}.w td{min-width:10rem}.w td.n{min-width:0}";

/// Hosts that the page lists, those with most requests first.
pub(crate) const MAX_LISTED_HOSTS: usize = 1000;

impl Report {
    /// The report as a self-contained HTML page. Whatever came from a server is escaped.
    #[must_use]
    pub fn to_html(&self) -> String {
        let title = match self.crawl.seeds.first() {
            Some(seed) => format!("Crawl of {}", safe_line(seed)),
            None => "Crawl".to_owned(),
        };
        let body = html! {
            @if let Some(started) = &self.crawl.started {
                p { "Started " (safe_line(started)) "." }
            }
            @for (what, text) in operator_lines(&self.crawl.operator) {
                p { (what) ": " (safe_line(text)) }
            }
            p {
                (counted(self.pages.total, "page", "pages")) ", " (size(self.pages.bytes)) "; "
                (grouped(self.pages.failed)) " failed; "
                (grouped(self.excluded.total)) " excluded; "
                (counted(self.requests.total, "request", "requests"))
                ". Gaps: " (kept(self.requests.short_gaps))
                ". Waits: " (kept(self.requests.short_waits)) "."
            }
            p { "Coverage of the hosts: " (self.coverage_line()) "." }
            @for flaw in &self.flaws {
                p { strong { "Flaw: " (safe_line(flaw)) } }
            }
            (counts("Pages by outcome", &self.pages.by_outcome))
            (counts("Pages by status", &self.pages.by_status))
            (counts("Pages by type", &self.pages.by_type))
            (counts("Pages by depth", &self.pages.by_depth))
            (rows("Rounds", &self.pages.rounds, ToString::to_string))
            (broken(&self.broken))
            (counts("Excluded by reason", &self.excluded.by_reason))
            (counts("Put aside, with the evidence", &self.excluded.put_aside))
            (counts("Requests by purpose", &self.requests.by_purpose))
            (counts("Requests without an answer", &self.requests.by_failure))
            (hosts(self))
        };
        page(&title, &body)
    }
}

/// A page that needs nothing else, under a heading.
pub(crate) fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                (body)
            }
        }
    };
    page.into_string()
}

fn broken(broken: &BrokenCounts) -> Markup {
    let more = broken.pages.saturating_sub(broken.first.len() as u64);
    let list = html! {
        tr { th { "page" } th { "answer" } th { "first link to it" } }
        @for row in &broken.first {
            tr {
                td { (link(&row.url)) }
                td { (safe_line(&answer(row))) }
                td { @if let Some(via) = &row.via { (link(via)) } @else { "a seed" } }
            }
        }
    };
    html! {
        @if broken.pages > 0 {
            (table("Broken pages", "t w", &list))
            @if more > 0 {
                p { "And " (counted(more, "more broken page", "more broken pages")) "." }
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
        @for host in hosts.iter().take(MAX_LISTED_HOSTS) {
            @let robots = host.robots.iter().map(|(origin, copy)| format!("{origin}: {}", robots_line(copy)));
            tr {
                td { (safe_line(&host.host)) }
                td { (safe_line(&coverage_words(host).unwrap_or_default())) }
                td.n { (grouped(host.pages)) }
                td.n { (size(host.bytes)) }
                td.n { (grouped(host.requests)) }
                td.n { (grouped(host.excluded)) }
                td { (safe_line(&gaps(host))) }
                td { (safe_line(&waits(host))) }
                td { (safe_line(&robots.collect::<Vec<_>>().join("; "))) }
            }
        }
    };
    html! {
        (table("Hosts", "t w", &list))
        @if more > 0 {
            p { "And " (counted(more, "more host", "more hosts")) "." }
        }
        @if let Some(line) = unasked_line(unasked) {
            p { "And " (line) "." }
        }
    }
}

fn answer(broken: &BrokenRow) -> String {
    match (broken.status, &broken.error) {
        (Some(status), Some(error)) if status < 400 => format!("{status} ({error})"),
        (Some(status), _) => status.to_string(),
        (None, Some(error)) => error.clone(),
        (None, None) => "none".to_owned(),
    }
}

fn counts<K: Display>(title: &str, counts: &BTreeMap<K, u64>) -> Markup {
    rows(title, counts, |count| grouped(*count))
}

fn rows<K: Display, V>(title: &str, rows: &BTreeMap<K, V>, show: impl Fn(&V) -> String) -> Markup {
    let list = html! {
        @for (name, value) in rows {
            tr { td { (safe_line(&name.to_string())) } td.n { (show(value)) } }
        }
    };
    html! { @if !rows.is_empty() { (table(title, "t", &list)) } }
}

/// A heading, and a table in a box that scrolls by itself where the screen is narrower.
pub(crate) fn table(title: &str, class: &str, rows: &Markup) -> Markup {
    html! {
        h2 { (title) }
        div class=(class) role="region" aria-label=(title) tabindex="0" { table { (rows) } }
    }
}

/// A page's URL, as a link that gives it no credit and tells it nothing. What no browser fetches is
/// text.
fn link(url: &str) -> Markup {
    let text = safe_line(url);
    html! {
        @if url.starts_with("http://") || url.starts_with("https://") {
            a href=(text) rel="nofollow noopener noreferrer" { (text) }
        } @else {
            (text)
        }
    }
}
