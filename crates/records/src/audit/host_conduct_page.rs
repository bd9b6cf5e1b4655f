//! Renders a page that shows the owner of a host how a crawl treated it: every request with the
//! pause before it, the robots.txt in force, and what the crawl kept.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use bytes::Bytes;
use crawl_archive::Timestamp;
use crawl_archive::rows::{PageRow, RequestRow, RobotsVerdict};
use crawl_policy::RobotsStatus;
use crawl_weburl::{CanonicalUrl, HostKey, Origin, canonicalize, safe_line};
use maud::{Markup, html};

use super::audited_settings::AuditedSettings;
use super::robots_exchanges::{RobotsExchange, RobotsExchangeLocator, key};
use super::robots_freshness::MAX_WAIT;
use super::robots_responses::{MAX_HOPS, RobotsResponses, target};
use super::settings_history::SettingsHistory;
use super::text::undecided_words;
use super::{AuditReport, ROUNDING_MS, read_settings, readable};
use crate::error::RecordsError;
use crate::number_format::{counted, grouped, size};
use crate::round_row_filter::ExclusionsInForce;
use crate::row_file_reader::{pages, requests};
use crate::self_contained_report_page::{HtmlTable, TableCell, fold, page};

/// Everything that the page about a host shows.
struct HostConduct<'a> {
    host: &'a HostKey,
    audit: &'a AuditReport,
    /// The requests to the host, in the order in which they started.
    requests: Vec<RequestRow>,
    /// For each request, the milliseconds to add to its times, because the clock may have been set
    /// back during the crawl (see [`ClockPeriods`](super::clock_periods::ClockPeriods)).
    added: Vec<u64>,
    /// The row of `pages.jsonl` for each request, reduced to what the page shows. The key is the
    /// hash of the request's URL and start (see [`key`]).
    pages: HashMap<u64, PageVerdict>,
    /// The robots.txt responses, in the order in which they ended.
    copies: Vec<ShownRobotsResponse>,
    /// The responses in `copies`, as the audit judges them.
    responses: RobotsResponses,
    settings: SettingsHistory,
    /// Number of URLs that were not requested because of robots.txt, by the disallowing rule.
    excluded: BTreeMap<String, u64>,
    /// The reason why the page isn't signed, if it should be signed.
    unsigned: Option<&'a str>,
}

/// The robots.txt verdict on a page, and a description of the copy that the crawl kept.
struct PageVerdict {
    robots: Option<RobotsVerdict>,
    words: String,
}

/// A robots.txt response of the host.
struct ShownRobotsResponse {
    /// The origin that the robots.txt has rules for.
    origin: Option<Origin>,
    /// When the response ended, in milliseconds since 1970.
    end: u64,
    /// The worker that sent the request.
    worker: Option<String>,
    /// The content of the robots.txt. After a 304, the previous content. `None` if there is no
    /// robots.txt, or if it wasn't archived.
    body: Option<Bytes>,
    words: String,
    /// The meaning of the response for the pages of the origin, as text that completes the sentence
    /// in `words`.
    meaning: &'static str,
}

/// The value of [`ShownRobotsResponse::meaning`] if the response makes robots.txt unreachable.
const NOTHING: &str = ", so nothing may be fetched";

/// Renders a self-contained HTML page about the requests of the crawl in `dir` to `host`. `audit`
/// is the audit of the same crawl. `unsigned` is the reason why the page will not be signed
/// although the crawl has keys. Returns `None` if the host got no request.
///
/// Memory: about 500 bytes for each request to the host, and for each redirect of a robots.txt.
///
/// # Errors
/// The records can't be read.
pub fn conduct_page(
    dir: &Path,
    host: &HostKey,
    audit: &AuditReport,
    unsigned: Option<&str>,
) -> Result<Option<String>, RecordsError> {
    let (clock, _, settings) = read_settings(dir)?;
    let (mut own, mut rules) = (Vec::new(), Vec::new());
    let mut rows = requests(dir)?;
    while let Some(row) = rows.next() {
        let Some(row) = readable(row)? else {
            continue;
        };
        let is_own = row.host == host.as_str();
        if row.purpose == "hop" || (is_own && row.purpose == "robots") {
            rules.push((row.clone(), rows.line()));
        }
        if is_own {
            own.push((clock.added_at(rows.line()), row));
        }
    }
    if own.is_empty() {
        return Ok(None);
    }
    own.sort_by_key(|(added, row)| row.start.saturating_add(*added));
    let (added, own): (Vec<u64>, Vec<RequestRow>) = own.into_iter().unzip();
    let mut responses = responses(dir, &rules, &settings)?;
    let hops = rules.into_iter().map(|(row, _)| row);
    let mut hops: Vec<RequestRow> = hops.filter(|row| row.purpose == "hop").collect();
    hops.sort_by_key(|row| row.start);
    let conduct = HostConduct {
        pages: page_verdicts(dir, &own)?,
        copies: copies(&mut responses, &own, &hops)?,
        responses,
        settings,
        excluded: excluded_by_robots(dir, host)?,
        requests: own,
        added,
        host,
        audit,
        unsigned,
    };
    Ok(Some(conduct.to_html()))
}

/// Judges the responses to requests for robots.txt as the audit does. `rules` are the requests for
/// the host's robots.txt and all redirects, each with its line in `requests.jsonl`.
fn responses(
    dir: &Path,
    rules: &[(RequestRow, u64)],
    settings: &SettingsHistory,
) -> Result<RobotsResponses, RecordsError> {
    let wanted = rules.iter().map(|(row, _)| key(&row.url, row.start));
    let exchanges = RobotsExchangeLocator::find(dir, &wanted.collect())?;
    let exchanges = exchanges.unwrap_or_else(|| RobotsExchangeLocator::without_archive(dir));
    let mut responses = RobotsResponses::new(exchanges);
    for (row, line) in rules {
        responses.take(row, *line, settings.at(row.worker.as_deref(), row.end))?;
    }
    Ok(responses)
}

fn page_verdicts(
    dir: &Path,
    requests: &[RequestRow],
) -> Result<HashMap<u64, PageVerdict>, RecordsError> {
    let keys: HashSet<u64> = requests
        .iter()
        .map(|row| key(&row.url, row.start))
        .collect();
    let mut verdicts = HashMap::new();
    for row in pages(dir)? {
        let Some(row) = readable(row)? else {
            continue;
        };
        let key = key(&row.url, row.fetched_at.as_millis());
        if keys.contains(&key) {
            let words = kept_words(&row);
            let robots = row.robots;
            verdicts.insert(key, PageVerdict { robots, words });
        }
    }
    Ok(verdicts)
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

/// Reads the responses to the requests for the host's robots.txt from the archive. Follows their
/// redirects, which may lead to other hosts. `hops` are all requests of the crawl that followed
/// such a redirect.
fn copies(
    responses: &mut RobotsResponses,
    requests: &[RequestRow],
    hops: &[RequestRow],
) -> Result<Vec<ShownRobotsResponse>, RecordsError> {
    let fetches = requests.iter().filter(|row| row.purpose == "robots");
    let mut read = |row: &RequestRow| responses.exchange(row);
    let mut copies: Vec<ShownRobotsResponse> = Vec::new();
    for row in fetches {
        let mut steps = vec![row];
        let mut exchange = read(row)?;
        while let Some(next) = next_hop(steps.last().copied(), exchange.as_ref(), hops) {
            if steps.len() > usize::from(MAX_HOPS) {
                break;
            }
            steps.push(next);
            exchange = read(next)?;
        }
        let last = steps.last().copied().unwrap_or(row);
        let is_archived = exchange.is_some();
        let is_conditional = exchange.as_ref().is_some_and(|found| found.conditional);
        let target = exchange.as_ref().and_then(|found| redirect(last, found));
        let body = match last.status {
            Some(200..=299) => exchange.and_then(|found| found.body),
            // The file is unchanged, so use the body of the previous copy.
            Some(304) if is_conditional => {
                let origin = Origin::parse(&row.url).ok();
                let mut earlier = copies.iter().rev().filter(|copy| copy.origin == origin);
                earlier.find_map(|copy| copy.body.clone())
            }
            _ => None,
        };
        let is_followed = steps.len() > usize::from(MAX_HOPS);
        let meaning = match (last.status, &body) {
            (_, Some(_)) => "",
            (Some(200..=399), None) if !is_archived => {
                ", and is not archived, so the rules are not known here"
            }
            (Some(200..=299), None) => ", and can't be read",
            (Some(304), None) if is_conditional => ", and can't be read",
            (Some(400..=499), None) if last.challenged => ", and requested a signature",
            (Some(300..=399), None) if target.is_some() && !is_followed => {
                ", and the answer of its target is not known"
            }
            (Some(300), None) if target.is_none() => NOTHING,
            (Some(status), None) if RobotsStatus::of(status) != RobotsStatus::Unreachable => {
                ", so there are no rules"
            }
            (Some(_) | None, None) => NOTHING,
        };
        let mut words = format!("{}, {} answered {}", time(last.end), row.url, row.answer());
        for step in steps.iter().skip(1) {
            words += &format!(", then {} answered {}", step.url, step.answer());
        }
        copies.push(ShownRobotsResponse {
            origin: Origin::parse(&row.url).ok(),
            end: last.end,
            worker: last.worker.clone(),
            body,
            words,
            meaning,
        });
    }
    copies.sort_by_key(|copy| copy.end);
    Ok(copies)
}

/// Returns the target of a redirect. If a server refused a request because it was not signed, the
/// target is the same URL, because the request is sent again with a signature.
fn redirect(row: &RequestRow, exchange: &RobotsExchange) -> Option<CanonicalUrl> {
    let url = canonicalize(None, &row.url).ok()?;
    match row.challenged {
        true => Some(url),
        false => target(row.status?, exchange, &url),
    }
}

/// Returns the request that followed the redirect in `row`: the first later request to its target.
fn next_hop<'a>(
    row: Option<&RequestRow>,
    exchange: Option<&RobotsExchange>,
    hops: &'a [RequestRow],
) -> Option<&'a RequestRow> {
    let row = row?;
    let target = redirect(row, exchange?)?;
    let first = hops.partition_point(|hop| hop.start + ROUNDING_MS < row.end);
    let mut later = hops.iter().skip(first);
    later.find(|hop| hop.url == target.as_str())
}

fn excluded_by_robots(dir: &Path, host: &HostKey) -> Result<BTreeMap<String, u64>, RecordsError> {
    let mut rules = BTreeMap::new();
    for row in ExclusionsInForce::open(dir)? {
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

impl HostConduct<'_> {
    fn to_html(&self) -> String {
        let first = self.requests.first().map(|row| time(row.start));
        let last = self.requests.last().map(|row| time(row.end));
        let body = html! {
            p.sums {
                (counted(self.requests.len() as u64, "request", "requests")) " from "
                (first.unwrap_or_default()) " to " (last.unwrap_or_default()) "."
            }
            @if let Some(why) = self.unsigned {
                p { "This page is not signed, so its origin can't be verified: " (safe_line(why)) "." }
            }
            h2 { "Verdict of the audit" }
            (self.verdict())
            h2 { "What robots.txt kept away" }
            (self.exclusions())
            h2 { "Every request" }
            (self.table().draw())
            h2 { "The robots.txt in force" }
            @for (number, copy) in (1..).zip(&self.copies) { (self.copy_text(number, copy)) }
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
        let unjudged = self.unjudged();
        html! {
            @if all > 0 {
                p {
                    (counted(all, "breach was", "breaches were")) " found in the whole crawl; "
                    (counted(own.len() as u64, "one of the first twenty concerns", "of the first twenty concern"))
                    " this host."
                }
                ul { @for breach in own { li { (safe_line(&breach.rule)) ": " (safe_line(&breach.what)) } } }
            } @else if unjudged.is_empty() {
                p { "No breach of a rule was found in the whole crawl." }
            } @else {
                p { "No breach of a rule was found in the part of the crawl that could be judged." }
            }
            @if !unjudged.is_empty() {
                p { "Could not be judged:" }
                ul { @for words in &unjudged { li { (safe_line(words)) } } }
            }
        }
    }

    /// Describes each kind of check in the whole crawl that the audit left undecided.
    fn unjudged(&self) -> Vec<String> {
        let audit = self.audit;
        let rules = audit.rules_unchecked.iter();
        let rules = rules.map(|why| format!("whether robots.txt was obeyed: {why}"));
        let undecided = audit.undecided.iter().map(|(why, count)| {
            let checks = counted(*count, "check", "checks");
            format!("{checks}: {}", undecided_words(why))
        });
        let flaws = audit
            .flaws
            .iter()
            .map(|flaw| format!("damaged records: {flaw}"));
        let signatures = audit.signatures_unchecked.iter();
        let signatures = signatures.map(|why| format!("the signatures of requests: {why}"));
        rules
            .chain(undecided)
            .chain(flaws)
            .chain(signatures)
            .collect()
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

    fn table(&self) -> HtmlTable<'_> {
        let mut last: Option<(u64, u64, &RequestRow)> = None;
        let rows = self.requests.iter().zip(&self.added).map(|(row, added)| {
            let is_comparable = last.is_none_or(|(of, ..)| of == *added);
            let pause = last.map(|(_, end, _)| row.start.saturating_sub(end));
            let required = required_pause(last.map(|(.., last)| last), row);
            if last.is_none_or(|(of, end, _)| (of, end) <= (*added, row.end)) {
                last = Some((*added, row.end, row));
            }
            vec![
                TableCell::text(&time(row.start)),
                TableCell::link(&row.url),
                TableCell::text(&row.purpose),
                TableCell::text(&row.answer()),
                match pause {
                    Some(_) if !is_comparable => {
                        TableCell::text("not known: the clock was set back")
                    }
                    Some(pause) => TableCell::Words(
                        pause,
                        format!("{} ms, {} required", grouped(pause), grouped(required)),
                    ),
                    None => TableCell::text("first request"),
                },
                TableCell::Markup(self.rule(row)),
                self.kept(row),
            ]
        });
        let rows = rows.collect();
        HtmlTable {
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

    /// Renders the reason why a request was allowed: the robots.txt in force, and the line of its
    /// rule.
    fn rule(&self, row: &RequestRow) -> Markup {
        if matches!(row.purpose.as_str(), "robots" | "hop" | "tdmrep") {
            return html! { "needed for the rules" };
        }
        let origin = Origin::parse(&row.url).ok();
        let settings = self.settings.at(row.worker.as_deref(), row.start);
        let number = origin.and_then(|origin| self.in_force(&origin, row.start, settings));
        let page = self.pages.get(&key(&row.url, row.start));
        let robots = page.and_then(|page| page.robots.as_ref());
        html! {
            @if let Some(number) = number { a href=(format!("#robots-{number}")) { "copy " (number) } }
            @match robots.and_then(|robots| Some((robots.line?, robots.rule.as_deref()?))) {
                Some((line, rule)) => { ", line " (line) ": " code { (safe_line(rule)) } }
                None if robots.is_some() => { ", no line forbids it" }
                None => {}
            }
        }
    }

    /// Returns the number, from 1, of the copy whose rules applied at `moment`: the last one that was
    /// completely received by then. If that response made robots.txt unreachable, returns the last
    /// good copy before it, as long as that copy was valid. `None` if there was no response yet, or
    /// if this page doesn't list the copy.
    fn in_force(&self, origin: &Origin, moment: u64, settings: &AuditedSettings) -> Option<usize> {
        let end = self.responses.in_force(origin, moment, settings)?.end;
        let is_it =
            |copy: &ShownRobotsResponse| copy.end == end && copy.origin.as_ref() == Some(origin);
        let index = self.copies.iter().position(is_it)?;
        Some(index + 1)
    }

    /// Describes what the response in copy `number` means for the pages of its origin.
    fn meaning(&self, number: usize, copy: &ShownRobotsResponse) -> String {
        let settings = self.settings.at(copy.worker.as_deref(), copy.end);
        let origin = copy.origin.as_ref();
        match origin.and_then(|origin| self.in_force(origin, copy.end, settings)) {
            Some(earlier) if earlier < number => {
                let meaning = Some(copy.meaning).filter(|meaning| *meaning != NOTHING);
                format!(
                    "{}, so copy {earlier} stays in force",
                    meaning.unwrap_or_default()
                )
            }
            _ => copy.meaning.to_owned(),
        }
    }

    /// Renders a robots.txt with numbered lines.
    fn copy_text(&self, number: usize, copy: &ShownRobotsResponse) -> Markup {
        let text = copy.body.as_deref().map(String::from_utf8_lossy);
        let lines = text.as_deref().map(|text| {
            let lines = (1..).zip(text.lines());
            lines
                .map(|(line, text)| format!("{line:>4}  {}\n", safe_line(text)))
                .collect::<String>()
        });
        let words = format!(
            "Copy {number}: {}{}",
            copy.words,
            self.meaning(number, copy)
        );
        html! {
            div id=(format!("robots-{number}")) {
                @match &lines {
                    Some(lines) => {
                        (fold(&safe_line(&words), &html! { pre tabindex="0" { (lines) } }))
                    }
                    None => p { (safe_line(&words)) "." },
                }
            }
        }
    }

    fn kept(&self, row: &RequestRow) -> TableCell {
        match self.pages.get(&key(&row.url, row.start)) {
            Some(page) => TableCell::text(&page.words),
            None if row.purpose == "robots" || row.purpose == "hop" => TableCell::text("the rules"),
            None => TableCell::text("no copy"),
        }
    }
}

/// Returns the pause in milliseconds that was required between two requests. The row of the later
/// request is not enough: after a restart, it has only the rest of the wait that the earlier
/// response demanded.
fn required_pause(earlier: Option<&RequestRow>, row: &RequestRow) -> u64 {
    let demands = |earlier: &&RequestRow| {
        matches!(earlier.status, Some(429 | 503)) || row.why == "retry-after"
    };
    let wait = earlier
        .filter(demands)
        .and_then(|earlier| earlier.wait_asked);
    row.gap_asked.max(wait.unwrap_or_default().min(MAX_WAIT))
}

fn time(millis: u64) -> String {
    Timestamp::from_micros(millis.saturating_mul(1000)).rfc3339_millis()
}
