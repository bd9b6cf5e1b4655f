//! Renders what a crawl did on one host, for the owner of the host: every request with the pause
//! before it, the robots.txt in force, and what was kept.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use bytes::Bytes;
use crawl_archive::Timestamp;
use crawl_archive::rows::{PageRow, RequestRow, RobotsVerdict};
use crawl_weburl::{HostKey, canonicalize, safe_line};
use maud::{Markup, html};

use super::exchange::{Exchanges, key};
use super::{Audit, readable};
use crate::error::RecordsError;
use crate::html::{Cell, Table, fold, page};
use crate::numbers::{counted, grouped, size};
use crate::rows::{excluded, pages, requests};

/// Everything that the page about a host shows.
struct Conduct<'a> {
    host: &'a HostKey,
    audit: &'a Audit,
    /// The requests to the host, in the order of their starts.
    requests: Vec<RequestRow>,
    /// Facts about the page of each request, by URL and start.
    pages: HashMap<u64, KeptPage>,
    /// The copies of robots.txt, in the order of their ends.
    copies: Vec<RobotsText>,
    /// Number of URLs that were not requested, by the rule of robots.txt.
    excluded: BTreeMap<String, u64>,
}

/// The parts of a page that the crawl kept.
struct KeptPage {
    robots: Option<RobotsVerdict>,
    words: String,
}

/// A robots.txt that the host answered.
struct RobotsText {
    /// When it had arrived, in milliseconds since 1970.
    end: u64,
    /// The file. `None` if there was none, or if it wasn't archived.
    body: Option<Bytes>,
    words: String,
}

/// Renders a self-contained HTML page about the requests of the crawl in `dir` to `host`. `audit` is
/// the audit of the same crawl. `None` if the host got no request.
///
/// Memory: about 500 bytes for each request to the host.
///
/// # Errors
/// The records can't be read.
pub fn conduct_page(
    dir: &Path,
    host: &HostKey,
    audit: &Audit,
) -> Result<Option<String>, RecordsError> {
    let mut own = Vec::new();
    for row in requests(dir)? {
        own.extend(readable(row)?.filter(|row| row.host == host.as_str()));
    }
    if own.is_empty() {
        return Ok(None);
    }
    own.sort_by_key(|row| row.start);
    let conduct = Conduct {
        pages: kept_pages(dir, &own)?,
        copies: copies(dir, &own)?,
        excluded: excluded_by_robots(dir, host)?,
        requests: own,
        host,
        audit,
    };
    Ok(Some(conduct.to_html()))
}

fn kept_pages(dir: &Path, requests: &[RequestRow]) -> Result<HashMap<u64, KeptPage>, RecordsError> {
    let keys: HashSet<u64> = requests
        .iter()
        .map(|row| key(&row.url, row.start))
        .collect();
    let mut kept = HashMap::new();
    for row in pages(dir)? {
        let Some(row) = readable(row)? else {
            continue;
        };
        let key = key(&row.url, row.fetched_at.as_millis());
        if keys.contains(&key) {
            let words = kept_words(&row);
            let robots = row.robots;
            kept.insert(key, KeptPage { robots, words });
        }
    }
    Ok(kept)
}

fn kept_words(row: &PageRow) -> String {
    let bytes = size(row.bytes);
    match (&row.withheld, &row.unwanted, &row.warc) {
        (Some(why), _, _) => format!("no copy, because of {why}"),
        (None, Some(filter), _) => format!("no copy, because of {filter}"),
        (None, None, Some(_)) if row.repeats_body() => {
            "no new copy, because it is unchanged".to_owned()
        }
        (None, None, Some(_)) => format!("copy of {bytes}"),
        (None, None, None) => format!("no copy; {bytes} were read"),
    }
}

/// Reads the answers to the requests for robots.txt from the archive.
fn copies(dir: &Path, requests: &[RequestRow]) -> Result<Vec<RobotsText>, RecordsError> {
    let rows = requests.iter();
    let rows: Vec<_> = rows
        .filter(|row| matches!(row.purpose.as_str(), "robots" | "hop"))
        .collect();
    let wanted = rows.iter().map(|row| key(&row.url, row.start)).collect();
    let mut exchanges = Exchanges::find(dir, &wanted)?;
    let mut copies: Vec<RobotsText> = Vec::new();
    for row in rows {
        let exchange = match &mut exchanges {
            Some(exchanges) => exchanges.read(&row.url, row.start)?,
            None => None,
        };
        let body = match row.status {
            Some(200..=299) => exchange.and_then(|found| found.body),
            // The file is unchanged.
            Some(304) => copies.last().and_then(|copy| copy.body.clone()),
            _ => None,
        };
        let meaning = match (row.status, &body) {
            (_, Some(_)) => "",
            (Some(200..=299), None) => ", and is not archived",
            (Some(400..=499), None) if row.challenged => ", and asked for a signature",
            (Some(429 | 500..) | None, None) => ", so nothing may be fetched",
            _ => ", so there are no rules",
        };
        copies.push(RobotsText {
            end: row.end,
            body,
            words: format!(
                "{}, {} answered {}{meaning}",
                time(row.end),
                row.url,
                row.answer()
            ),
        });
    }
    copies.sort_by_key(|copy| copy.end);
    Ok(copies)
}

fn excluded_by_robots(dir: &Path, host: &HostKey) -> Result<BTreeMap<String, u64>, RecordsError> {
    let mut rules = BTreeMap::new();
    for row in excluded(dir)? {
        let Some(row) = readable(row)?.filter(|row| row.reason == "robots") else {
            continue;
        };
        let url = canonicalize(None, &row.url);
        if url.is_ok_and(|url| url.host_key() == *host) {
            *rules.entry(row.rule.unwrap_or_default()).or_default() += 1;
        }
    }
    Ok(rules)
}

impl Conduct<'_> {
    fn to_html(&self) -> String {
        let first = self.requests.first().map(|row| time(row.start));
        let last = self.requests.last().map(|row| time(row.end));
        let body = html! {
            p.sums {
                (counted(self.requests.len() as u64, "request", "requests")) " from "
                (first.unwrap_or_default()) " to " (last.unwrap_or_default()) "."
            }
            h2 { "Verdict of the audit" }
            (self.verdict())
            h2 { "What robots.txt kept away" }
            (self.exclusions())
            h2 { "Every request" }
            (self.table().draw())
            h2 { "The robots.txt in force" }
            @for (number, copy) in (1..).zip(&self.copies) { (copy_text(number, copy)) }
            @if self.copies.is_empty() { p { "No robots.txt of this host was requested." } }
        };
        page(
            &format!("Requests to {}", safe_line(self.host.as_str())),
            "Every request of a crawl to one host, with its gap and the rule that allowed it.",
            &body,
        )
    }

    fn verdict(&self) -> Markup {
        let own = self.audit.breaches.iter();
        let own: Vec<_> = own
            .filter(|breach| breach.host == self.host.as_str())
            .collect();
        let all = self.audit.breach_count();
        html! {
            @if all == 0 {
                p { "No breach of a rule was found in the whole crawl." }
            } @else {
                p {
                    (counted(all, "breach was", "breaches were")) " found in the whole crawl; "
                    (counted(own.len() as u64, "one of the first twenty concerns", "of the first twenty concern"))
                    " this host."
                }
                ul { @for breach in own { li { (safe_line(&breach.rule)) ": " (safe_line(&breach.what)) } } }
            }
            @if let Some(why) = &self.audit.rules_unchecked {
                p { "The requests were not checked against robots.txt: " (why) "." }
            }
        }
    }

    fn exclusions(&self) -> Markup {
        let count = self.excluded.values().sum();
        html! {
            @if count == 0 {
                p { "No known URL of this host is disallowed." }
            } @else {
                p { (counted(count, "known URL was", "known URLs were")) " not requested, because of these lines:" }
                ul { @for (rule, urls) in &self.excluded { li { code { (safe_line(rule)) } ": " (grouped(*urls)) } } }
            }
        }
    }

    fn table(&self) -> Table<'_> {
        let mut last_end: Option<u64> = None;
        let rows = self.requests.iter().map(|row| {
            let pause = last_end.map(|end| row.start.saturating_sub(end));
            last_end = last_end.max(Some(row.end));
            vec![
                Cell::text(&time(row.start)),
                Cell::link(&row.url),
                Cell::text(&row.purpose),
                Cell::text(&row.answer()),
                match pause {
                    Some(pause) => Cell::Words(
                        pause,
                        format!("{} ms, {} required", grouped(pause), grouped(row.gap_asked)),
                    ),
                    None => Cell::text("first request"),
                },
                Cell::Markup(self.rule(row)),
                self.kept(row),
            ]
        });
        let rows = rows.collect();
        Table {
            name: "Requests",
            columns: &[
                "sent",
                "URL",
                "purpose",
                "answer",
                "pause before",
                "allowed by",
                "kept",
            ],
            rows,
            more: 0,
        }
    }

    /// Renders what allowed a request: the copy of robots.txt in force and its line.
    fn rule(&self, row: &RequestRow) -> Markup {
        if matches!(row.purpose.as_str(), "robots" | "hop" | "tdmrep") {
            return html! { "needed for the rules" };
        }
        let number = self.copies.partition_point(|copy| copy.end <= row.start);
        let page = self.pages.get(&key(&row.url, row.start));
        let robots = page.and_then(|page| page.robots.as_ref());
        html! {
            @if number > 0 { a href=(format!("#robots-{number}")) { "copy " (number) } }
            @match robots.and_then(|robots| Some((robots.line?, robots.rule.as_deref()?))) {
                Some((line, rule)) => { ", line " (line) ": " code { (safe_line(rule)) } }
                None if robots.is_some() => { ", no line forbids it" }
                None => {}
            }
        }
    }

    fn kept(&self, row: &RequestRow) -> Cell {
        match self.pages.get(&key(&row.url, row.start)) {
            Some(page) => Cell::text(&page.words),
            None if row.purpose == "robots" || row.purpose == "hop" => Cell::text("the rules"),
            None => Cell::text("no copy"),
        }
    }
}

/// Renders a robots.txt with numbered lines.
fn copy_text(number: usize, copy: &RobotsText) -> Markup {
    let text = copy.body.as_deref().map(String::from_utf8_lossy);
    let lines = text.as_deref().map(|text| {
        let lines = (1..).zip(text.lines());
        lines
            .map(|(line, text)| format!("{line:>4}  {}\n", safe_line(text)))
            .collect::<String>()
    });
    html! {
        div id=(format!("robots-{number}")) {
            @match &lines {
                Some(lines) => {
                    (fold(
                        &format!("Copy {number}: {}", safe_line(&copy.words)),
                        &html! { pre tabindex="0" { (lines) } },
                    ))
                }
                None => p { "Copy " (number) ": " (safe_line(&copy.words)) "." },
            }
        }
    }
}

fn time(millis: u64) -> String {
    Timestamp::from_micros(millis.saturating_mul(1000)).rfc3339_millis()
}
