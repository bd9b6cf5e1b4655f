//! The page about the crawl: its current state and its report.

use std::collections::BTreeMap;
use std::fmt::Display;

use crawl_engine::CrawlPhase;
use crawl_records::{
    CrawlReport, PendingCounts, broken_table, counted, failure_words, grouped, in_words, link,
    outcome_words, size, status_words,
};
use crawl_weburl::safe_line;
use maud::{Markup, html};

use super::layout::PageLayout;
use super::result_page_urls::place;
use super::times::{duration, moment};
use crate::control::protocol::{CrawlStateSnapshot, HostQueueReport};
use crate::serve::access_guard::ControlAccess;
use crate::serve::live_state_feed::LiveStateMessage;
use crate::serve::server_state::ServerState;

/// Maximum hosts of the report to list, those with most requests first.
const MAX_HOSTS_LISTED: usize = 200;
/// Maximum rows of each table other than the table of hosts.
const MAX_ROWS_LISTED: usize = 50;

/// Renders the page. `moment` is `None` if the crawl couldn't be queried.
pub(super) fn page(
    app: &ServerState,
    report: &CrawlReport,
    moment: Option<&LiveStateMessage>,
    controls: ControlAccess,
) -> Markup {
    let title = match report.crawl.seeds.first() {
        Some(seed) => format!("Crawl of {}", place(seed)),
        None => "Crawl".to_owned(),
    };
    let state = moment.and_then(|moment| moment.state.as_ref());
    PageLayout::new(app, &title).script("crawl.js").page(html! {
        a.skip href="#report" { "Skip to the report" }
        header.top.wide {
            h1 { (title) }
            p #phase .pill role="status" data-phase=[state.map(|state| state.phase.name())] {
                (state.map_or("No crawl is running", |state| shown_phase(state.phase)))
            }
            a href="/" { "Search" }
        }
        main.wide {
            (live(state, controls, report.pages.rounds.len() > 1))
            section #report aria-label="Report" tabindex="-1" { (summary(report, state.is_some())) }
        }
    })
}

/// Returns the phase as shown on the page. `page/crawl.js` has the same words.
fn shown_phase(phase: CrawlPhase) -> &'static str {
    match phase {
        CrawlPhase::Crawling => "Crawling",
        CrawlPhase::Paused => "Paused",
        CrawlPhase::DiskLow => "Waiting for free disk space",
        CrawlPhase::WaitingForWorkers => "Waiting for other workers",
        CrawlPhase::Draining => "Finishing requests",
        CrawlPhase::Writing => "Writing the report",
        CrawlPhase::Waiting => "Waiting for the next round",
    }
}

/// Renders the current state, which `page/crawl.js` keeps up to date. Totals are only in the
/// report, so that no number is shown twice.
fn live(state: Option<&CrawlStateSnapshot>, controls: ControlAccess, has_rounds: bool) -> Markup {
    let number = |of: fn(&CrawlStateSnapshot) -> u64| {
        state.map_or_else(String::new, |state| grouped(of(state)))
    };
    html! {
        section #live aria-label="Running crawl" hidden[state.is_none()] {
            p #waits { (state.map(waits_for).unwrap_or_default()) }
            dl.tiles {
                (tile("Pending", "waiting", &number(|state| state.waiting)))
                (tile("In flight", "in_flight", &number(|state| u64::from(state.in_flight))))
                (tile("Pages per second", "pages_per_second",
                    &state.map_or_else(String::new, |state| format!("{:.1}", state.pages_per_second))))
                (tile("Running for", "elapsed_ms",
                    &state.map_or_else(String::new, |state| duration(state.elapsed_ms))))
                @if has_rounds {
                    (tile("Visits in this round", "pages", &number(|state| state.pages)))
                }
            }
            (steering(state, controls))
            div.two {
                div {
                    h2 #hosts-name { "Hosts with pending URLs" }
                    div.scroll tabindex="0" role="region" aria-labelledby="hosts-name" {
                        (hosts(state.map_or(&[], |state| &state.hosts)))
                    }
                }
                div {
                    h2 #latest-name { "Latest pages" }
                    ol #latest .latest aria-labelledby="latest-name" {
                        @for page in state.map_or(&[][..], |state| &state.latest) {
                            li {
                                span.status { (page.status.map_or_else(|| "–".to_owned(), |status| status.to_string())) }
                                bdi { (link(&page.url)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Describes what the crawl waits for.
fn waits_for(state: &CrawlStateSnapshot) -> String {
    match state.phase {
        CrawlPhase::Paused => return "Paused: no requests are sent until you resume.".to_owned(),
        CrawlPhase::DiskLow => return "Waiting until the disk has free space.".to_owned(),
        CrawlPhase::WaitingForWorkers => {
            return "Waiting for URLs from the other workers.".to_owned();
        }
        CrawlPhase::Draining => return "Waiting for the last responses.".to_owned(),
        CrawlPhase::Writing => return "Writing the report and the index.".to_owned(),
        CrawlPhase::Waiting => {
            let next = state.next_round.as_deref();
            return format!(
                "The next round starts at {}.",
                next.unwrap_or("a later time")
            );
        }
        CrawlPhase::Crawling => {}
    }
    if state.in_flight > 0 {
        let responses = counted(state.in_flight.into(), "response", "responses");
        return format!("Waiting for {responses}.");
    }
    let next = state.hosts.iter();
    let next = next.filter_map(|host| Some((host.next_in_ms?, host)));
    match next.min_by_key(|(ms, _)| *ms) {
        Some((0, host)) => format!("About to send a request to {}.", host.host),
        Some((ms, host)) => format!(
            "Waiting {} until {} may get the next request (delay {}).",
            duration(ms),
            host.host,
            duration(host.gap_ms)
        ),
        None if state.waiting > 0 && state.hosts.iter().all(|host| host.parked) => {
            "Waiting: the hosts with pending URLs are parked.".to_owned()
        }
        None => String::new(),
    }
}

fn hosts(hosts: &[HostQueueReport]) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th scope="col" { "Host" }
                    th.n scope="col" { "Pending" }
                    th.n scope="col" { "Delay" }
                    th.n scope="col" { "Next request in" }
                    th.act scope="col" { span.hidden { "Park" } }
                }
            }
            tbody #hosts {
                @for host in hosts {
                    tr {
                        th scope="row" { bdi { (host.host) } }
                        td.n { (grouped(host.waiting)) }
                        td.n { (duration(host.gap_ms)) }
                        td.n { (next(host)) }
                        td.act {}
                    }
                }
            }
        }
    }
}

fn next(host: &HostQueueReport) -> String {
    match host.next_in_ms {
        _ if host.parked => "parked".to_owned(),
        Some(ms) => duration(ms),
        None => "–".to_owned(),
    }
}

/// Renders the controls of the crawl, hidden. The page's script reveals the controls, because they
/// don't work without it.
fn steering(state: Option<&CrawlStateSnapshot>, controls: ControlAccess) -> Markup {
    let is_paused = state.is_some_and(|state| state.paused);
    if controls == ControlAccess::Closed {
        return html! {
            p.quiet {
                "Controlling the crawl from here needs a token: start the server with "
                code { "--token-file FILE" } "."
            }
        };
    }
    html! {
        form #controls .controls data-controls=(controls.name()) hidden {
            p.pair {
                label for="token" { "Token" }
                input #token type="password" autocomplete="off" spellcheck="false";
            }
            p.pair {
                button type="button" data-do="pause" hidden[is_paused] { "Pause" }
                button type="button" data-do="resume" hidden[!is_paused] { "Resume" }
            }
            p.pair {
                label for="add" { "URL to fetch" }
                input #add type="url" placeholder="http://" autocomplete="off";
                button type="button" data-do="add" { "Add" }
            }
            p.pair {
                label for="delay" { "Delay between requests" }
                input #delay .short type="text" placeholder="2s" autocomplete="off" spellcheck="false";
                label for="delay-host" { "to host" }
                input #delay-host type="text" placeholder="all hosts" autocomplete="off"
                    spellcheck="false" list="host-names";
                datalist #host-names {}
                button type="button" data-do="delay" { "Set" }
            }
            p.pair #parked hidden {}
            p #command-result .quiet role="status" {}
        }
    }
}

/// Renders the report: first what to fix, then how the crawl went. While a crawl runs,
/// `page/crawl.js` replaces the report with newer ones.
fn summary(report: &CrawlReport, is_running: bool) -> Markup {
    let requests = &report.requests;
    let count = requests.first_start_ms.zip(requests.last_end_ms);
    let ended = requests
        .last_end_ms
        .and_then(|ms| moment(i64::try_from(ms / 1000).ok()?));
    let pending = report.pending.as_ref().map_or(0, |pending| pending.total);
    html! {
        h2 { "What to fix" }
        @if report.broken.pages == 0 {
            p.quiet { (if is_running { "No broken page so far." } else { "No page is broken." }) }
        } @else {
            p {
                (counted(report.broken.pages, "page is broken", "pages are broken"))
                @if is_running { " so far" }
                "."
            }
            (broken_table(&report.broken))
        }
        p.quiet {
            "Titles, descriptions, headings, images, redirects and all links to broken pages: "
            code { "crawl report DIR --site --html FILE" } "."
        }
        h2 { (if is_running { "How the crawl goes" } else { "How the crawl went" }) }
        dl.tiles {
            (tile("Pages", "", &grouped(report.pages.total)))
            (tile("Failed", "", &grouped(report.pages.failed)))
            (tile("Excluded", "", &grouped(report.excluded.decided())))
            @if pending > 0 { (tile("Pending", "", &grouped(pending))) }
            (tile(&in_all_rounds(report, "Requests"), "", &grouped(requests.total)))
            (tile("Received", "", &size(report.pages.bytes)))
            @if let Some((first, last)) = count.filter(|_| !is_running) {
                (tile("Duration", "", &duration(last.saturating_sub(first))))
            }
            (tile("Delays violated", "", &grouped(requests.short_gaps)))
            (tile("Waits violated", "", &grouped(requests.short_waits)))
        }
        p.quiet {
            @if let Some(all) = &report.pages.all_rounds {
                "Each page is counted once, by its last visit. All rounds: "
                (counted(all.visits, "visit", "visits")) ", " (grouped(all.failed)) " failed, "
                (size(all.bytes)) ". "
            }
            @if let Some(held_by) = report.pending.as_ref().and_then(PendingCounts::held_by) {
                "Pending URLs are held by: " (held_by) ". "
            }
            @if let Some(ended) = ended { "Last request: " (ended) ". " }
            "For programs: " code { "crawl report DIR --json" } "."
        }
        @for flaw in &report.flaws {
            p.flaw { strong { "Flaw: " } (safe_line(flaw)) }
        }
        div.tables {
            (table("Outcomes", &in_words(&report.pages.by_outcome, |outcome| outcome_words(outcome))))
            (table("Statuses", &in_words(&report.pages.by_status, |status| status_words(*status))))
            (table("Not rendered", &in_words(&report.pages.unrendered, |error| failure_words(error))))
            (table("Types", &report.pages.by_type))
            (table("Depths", &report.pages.by_depth))
            @if report.pages.rounds.len() > 1 { (table("Rounds", &report.pages.rounds)) }
            (table("Excluded", &report.excluded.by_decision()))
            (table("Requests", &requests.by_purpose))
            (table("No answer", &in_words(&requests.by_failure, |failure| failure_words(failure))))
        }
        @if !report.excluded.put_aside.is_empty() {
            div.tables.one { (table("Put aside, by evidence", &report.excluded.put_aside)) }
        }
        (reported_hosts(report))
    }
}

/// Returns the label of a number that is a sum over all rounds. The label mentions the rounds if
/// the crawl has several.
fn in_all_rounds<'a>(report: &CrawlReport, name: &'a str) -> std::borrow::Cow<'a, str> {
    match report.pages.all_rounds {
        Some(_) => format!("{name} in all rounds").into(),
        None => name.into(),
    }
}

fn tile(name: &str, live: &str, value: &str) -> Markup {
    let live = (!live.is_empty()).then_some(live);
    html! {
        div.tile { dt { (name) } dd data-live=[live] { (value) } }
    }
}

fn table<K: Display, V: Display>(name: &str, counts: &BTreeMap<K, V>) -> Markup {
    if counts.is_empty() {
        return html! {};
    }
    let value = |value: &V| match value.to_string().parse() {
        Ok(number) => html! { td.n { (grouped(number)) } },
        Err(_) => html! { td { (value) } },
    };
    html! {
        div.card {
            table {
                caption { (name) }
                tbody {
                    @for (name, count) in counts.iter().take(MAX_ROWS_LISTED) {
                        tr { th scope="row" { (safe_line(&name.to_string())) } (value(count)) }
                    }
                    @if counts.len() > MAX_ROWS_LISTED {
                        tr { td colspan="2" { "and " (grouped((counts.len() - MAX_ROWS_LISTED) as u64)) " more" } }
                    }
                }
            }
        }
    }
}

fn reported_hosts(report: &CrawlReport) -> Markup {
    let (hosts, unasked) = report.hosts_asked();
    let more = (hosts.len().saturating_sub(MAX_HOSTS_LISTED)) as u64;
    html! {
        h2 #all-hosts { "Hosts" }
        div.scroll tabindex="0" role="region" aria-labelledby="all-hosts" {
            table {
                thead {
                    tr {
                        th scope="col" { "Host" }
                        @for name in ["Pages", "Failed", "Received", "Requests", "Excluded", "Shortest delay", "Required"] {
                            th.n scope="col" { (name) }
                        }
                    }
                }
                tbody {
                    @for host in hosts.iter().take(MAX_HOSTS_LISTED) {
                        tr {
                            th scope="row" { bdi { (host.host) } }
                            td.n { (grouped(host.pages)) }
                            td.n { (grouped(host.failed)) }
                            td.n { (size(host.bytes)) }
                            td.n { (grouped(host.requests)) }
                            td.n { (grouped(host.decided_exclusions())) }
                            td.n { (host.gaps.least_seen_ms.map_or_else(|| "–".to_owned(), duration)) }
                            td.n { (host.gaps.asked_then_ms.map_or_else(|| "–".to_owned(), duration)) }
                        }
                    }
                }
            }
        }
        @if more > 0 {
            p.quiet { "And " (counted(more, "more host", "more hosts")) "." }
        }
        @if unasked > 0 {
            p.quiet { "And " (counted(unasked, "host", "hosts")) " never contacted." }
        }
    }
}

#[cfg(test)]
mod tests {
    use crawl_engine::CrawlPhase;

    use super::waits_for;
    use crate::control::protocol::{CrawlStateSnapshot, HostQueueReport};

    fn state(phase: CrawlPhase) -> CrawlStateSnapshot {
        let json = r#"{"phase":"crawling","paused":false,"round":1,"pages":3,"failed":0,"barred":0,
            "waiting":9,"in_flight":0,"octets":9,"pages_per_second":0.5,"elapsed_ms":8,"latest":[],
            "hosts":[],"parked":[]}"#;
        CrawlStateSnapshot {
            phase,
            ..serde_json::from_str(json).unwrap()
        }
    }

    fn host(name: &str, next_in_ms: Option<u64>) -> HostQueueReport {
        HostQueueReport {
            host: name.to_owned(),
            waiting: 4,
            next_in_ms,
            gap_ms: 2_000,
            parked: next_in_ms.is_none(),
        }
    }

    #[test]
    fn the_reason_for_a_wait_is_shown() {
        let mut crawl = state(CrawlPhase::Crawling);
        crawl.hosts = vec![host("b.example", Some(1_500)), host("a.example", Some(900))];
        let words = "Waiting 900 ms until a.example may get the next request (delay 2 s).";
        assert_eq!(waits_for(&crawl), words);
        crawl.hosts = vec![host("a.example", Some(0))];
        assert_eq!(waits_for(&crawl), "About to send a request to a.example.");
        crawl.hosts = vec![host("a.example", None)];
        assert!(waits_for(&crawl).contains("are parked"));
        crawl.in_flight = 2;
        assert_eq!(waits_for(&crawl), "Waiting for 2 responses.");
        let mut rest = state(CrawlPhase::Waiting);
        rest.next_round = Some("2026-11-21T00:00:00Z".to_owned());
        assert_eq!(
            waits_for(&rest),
            "The next round starts at 2026-11-21T00:00:00Z."
        );
        assert!(waits_for(&state(CrawlPhase::Paused)).contains("until you resume"));
    }
}
