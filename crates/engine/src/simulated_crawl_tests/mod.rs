//! Tests of the crawl loop in virtual time. Whole crawls of a generated web of many hosts run in an
//! instant. The same seed gives the same requests.

mod confidence_intervals;
mod content_filter;
mod failures_and_redirects;
mod live_settings_changes;
mod mirrors;
mod off_scope_hops;
mod operator_commands;
mod plan_accuracy;
mod random_walk_sampling;
mod replays;
mod replays_with_rendering;
mod robots;
mod sample;
pub(crate) mod scripted_servers;
mod seed_settings;
mod slow_reader;
mod trial;
mod walk_bias;

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use crawl_archive::RowFileWriter;
use crawl_archive::rows::{DelayRow, RequestRow};
use crawl_fetcher::{
    BodyMemoryReservation, Exchange, ExchangeFailure, FailureKind, FetchConfig, SentRequestRecord,
};
use crawl_frontier::{Frontier, MemoryFrontier};
use crawl_policy::ProductToken;
use crawl_sample::SampleMethod;
use crawl_scheduler::{Politeness, SpentPermit, Tick};
use crawl_scope::ScopeMode;
use crawl_weburl::{CanonicalUrl, canonicalize};
use http::{HeaderMap, HeaderValue, Version};
use tokio::sync::oneshot;
use tracing::Span;

use self::content_filter::filtered;
use self::scripted_servers::failure;
use self::slow_reader::{SlowReader, SlowReaderStep};
use crate::config::{Config, ScopeRules, TrapAvoidance};
use crate::content_filter::body_filter;
use crate::control::{CommandAnswer, CommandRefusal, CrawlCommand, PostedCommand};
use crate::crawl_loop::{Coordinator, DriverStep, request_rows};
use crate::crawl_totals::CrawlTotals;
use crate::messages::replay_message_key::KeyedMessage;
use crate::messages::{Effect, Event, RequestJob, WriterMessage};
use crate::page_reading::PageReader;
use crate::page_reading::UnreadPage;
use crate::page_reading::page_encoder::PageEncoder;
use crate::revisit::visit::{RevisitRules, Round};
use crate::sampling::SampleState;
use crate::scope_seeds::ScopeSeeds;
use crate::shared_trap_detector::SharedTrapDetector;
use crate::state::crawl_directory::OutputWriters;
use crate::state::stored_parked_hosts::parked;
use crate::summary::EndReason;
use crate::write::Writer;

const HOSTS: u64 = 60;
const PAGES: u64 = 12;
/// The IP address of all hosts.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
/// The start time of all crawls, in 2026.
const START: Tick = Tick::from_micros(1_795_000_000_000_000);

/// Derives a pseudorandom number, evenly distributed, from a seed and other numbers.
fn drawn(seed: u64, what: &[u64]) -> u64 {
    let mix = |sum: u64, part: &u64| {
        let mixed = (sum ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ (mixed >> 29)
    };
    what.iter().fold(seed ^ 0x5DEE_CE66, mix)
}

/// A web whose pages are computed from a seed.
struct SimulatedWeb {
    seed: u64,
    /// Whether the first host has an endless calendar.
    has_calendar: bool,
    /// The number of requests for each URL so far.
    asked: BTreeMap<String, u64>,
    /// The number of extra bytes in each page.
    padding: usize,
}

impl SimulatedWeb {
    fn robots(&self, host: u64) -> String {
        let delay = match drawn(self.seed, &[host, 1]) % 4 {
            0 => "Crawl-delay: 3\n",
            1 => "Request-rate: 1/2s\n",
            _ => "",
        };
        format!("User-agent: *\nDisallow: /p0\n{delay}")
    }

    /// Returns a page with ten links, most of them to the page's own host. Each page links to the
    /// next one, so that all pages can be reached.
    fn page(&self, host: u64, page: u64) -> String {
        let mut html = format!("<a href=/p{}>next</a>", page % PAGES + 1);
        for link in 0..9 {
            let draw = drawn(self.seed, &[host, page, link]);
            let to = match draw % 5 {
                0 => (host + draw / 7) % HOSTS,
                _ => host,
            };
            html += &format!(
                "<a href=http://h{to}.example/p{}>x</a>",
                draw / 31 % (PAGES + 1)
            );
        }
        if self.has_calendar && host == 0 {
            html += "<a href=/cal?month=1>calendar</a>";
        }
        format!(
            "{html}<a href=http://h{}.example/p1>on</a>",
            (host + 1) % HOSTS
        )
    }

    fn answer(&mut self, url: &CanonicalUrl) -> (u16, Option<u64>, String) {
        let name = url.host();
        let host = name.trim_start_matches('h').trim_end_matches(".example");
        let host: u64 = host.parse().unwrap();
        let tries = self.asked.entry(url.to_string()).or_default();
        *tries += 1;
        match url.path_and_query() {
            "/robots.txt" => (200, None, self.robots(host)),
            path => match path.strip_prefix("/p").and_then(|page| page.parse().ok()) {
                Some(page)
                    if *tries == 1 && drawn(self.seed, &[host, page, 99]).is_multiple_of(20) =>
                {
                    (503, Some(90), String::new())
                }
                Some(page) => {
                    let page = self.page(host, page);
                    (200, None, page + &" ".repeat(self.padding))
                }
                None => match path.strip_prefix("/cal?month=").map(str::parse::<u64>) {
                    Some(Ok(month)) => {
                        let next = month + 1;
                        let html = format!("Month {month}. <a href=/cal?month={next}>next</a>");
                        (200, None, html)
                    }
                    _ => (404, None, String::new()),
                },
            },
        }
    }
}

trait SimulatedServers {
    /// Returns the result of a request that is sent now.
    fn exchange(&mut self, job: &RequestJob, now: Tick) -> Result<Exchange, ExchangeFailure>;

    /// Returns whether messages to the writer may overtake each other, as messages from several
    /// reader threads do.
    fn is_overtaking(&self) -> bool {
        false
    }
}

impl SimulatedServers for SimulatedWeb {
    fn exchange(&mut self, job: &RequestJob, now: Tick) -> Result<Exchange, ExchangeFailure> {
        let url = job.url().clone();
        let (status, rest, body) = self.answer(&url);
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("text/html"));
        if let Some(seconds) = rest {
            headers.insert("retry-after", HeaderValue::from(seconds));
        }
        let took = drawn(self.seed, &[now.as_micros(), body.len() as u64]) % 400_000 + 1_000;
        Ok(Exchange {
            url,
            sent: SentRequestRecord::default(),
            started: now,
            ended: now + Duration::from_micros(took),
            first_byte: Duration::from_micros(took),
            address: Some(SocketAddr::from((ADDRESS, 80))),
            status,
            version: Version::HTTP_11,
            headers,
            body: Bytes::from(body),
            truncated: None,
            tls: None,
            challenged: false,
            unmet_signature: None,
            room: BodyMemoryReservation::default(),
        })
    }
}

pub(crate) fn config(dir: &Path) -> Config {
    let seed = canonicalize(None, "http://h0.example/p1").unwrap();
    let agent = ProductToken::new("crawl").unwrap();
    Config {
        scope: ScopeRules {
            mode: ScopeMode::Any,
            ..ScopeRules::default()
        },
        traps: TrapAvoidance::OFF,
        max_sitemap_urls: None,
        politeness: Politeness {
            per_address: 16,
            // Don't limit the rate per address. All hosts have the same address, but the tests
            // expect that each host is requested at its own pace.
            address_rate: None,
            look_ups: 4,
            ..Politeness::default()
        },
        hosts_in_memory: 10,
        wait_unreachable: Duration::from_secs(3600),
        fetch: FetchConfig::new("crawl/0.0"),
        warc: None,
        ..Config::new(agent, "0.0", None, vec![seed], dir)
    }
}

/// An exchange in flight. Exchanges are ordered by the time when they end.
struct SimulatedExchange {
    ends: Tick,
    number: u64,
    job: RequestJob,
    spent: SpentPermit,
    result: Result<Exchange, ExchangeFailure>,
    span: Span,
}

impl PartialEq for SimulatedExchange {
    fn eq(&self, other: &SimulatedExchange) -> bool {
        self.number == other.number
    }
}
impl Eq for SimulatedExchange {}
impl PartialOrd for SimulatedExchange {
    fn partial_cmp(&self, other: &SimulatedExchange) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for SimulatedExchange {
    fn cmp(&self, other: &SimulatedExchange) -> std::cmp::Ordering {
        (other.ends, other.number).cmp(&(self.ends, self.number))
    }
}

/// An operator who steers the crawl: receives the time and the requests that have ended, and
/// returns commands.
type SimulatedOperator<'a> = dyn FnMut(Tick, &[RequestRow]) -> Vec<CrawlCommand> + 'a;

/// The result of a simulated crawl.
struct SimulationResult {
    /// The requests, ordered by the time when they ended.
    requests: Vec<RequestRow>,
    totals: CrawlTotals,
    ended: EndReason,
    /// The result of each command, in the order of the commands.
    answers: Vec<Result<CommandAnswer, CommandRefusal>>,
    /// The rows of the delay log that record changes of the rules.
    rereads: Vec<DelayRow>,
    ended_at: Tick,
    /// The maximum number of bytes waiting for the reader at any time.
    most_waiting: usize,
    /// URLs whose pages the reader gave back unread.
    given_back: BTreeSet<String>,
}

/// The size of the pages of a web, and how fast they are read.
#[derive(Clone, Copy, Default)]
struct PageCosts {
    /// The number of extra bytes in each page.
    padding: usize,
    /// How long the reader takes for each page.
    takes: Duration,
}

/// Runs a whole crawl without commands of an operator. Returns its requests, ordered by the time
/// when they ended, and its totals.
fn crawl(seed: u64) -> (Vec<RequestRow>, CrawlTotals) {
    let dir = tempfile::tempdir().unwrap();
    let frontier = Arc::new(MemoryFrontier::new());
    let played = play(
        config(dir.path()),
        frontier,
        seed,
        Round::first(0),
        &mut |_, _| Vec::new(),
    );
    assert_eq!(played.ended, EndReason::Finished);
    (played.requests, played.totals)
}

/// Runs a crawl over a frontier. An operator steers the crawl.
fn play(
    config: Config,
    frontier: Arc<MemoryFrontier>,
    seed: u64,
    round: Round,
    person: &mut SimulatedOperator<'_>,
) -> SimulationResult {
    play_pages(config, frontier, seed, round, person, PageCosts::default())
}

fn play_pages(
    config: Config,
    frontier: Arc<MemoryFrontier>,
    seed: u64,
    round: Round,
    person: &mut SimulatedOperator<'_>,
    pages: PageCosts,
) -> SimulationResult {
    let mut web = SimulatedWeb {
        seed,
        has_calendar: config.traps.traps,
        asked: BTreeMap::new(),
        padding: pages.padding,
    };
    let run = SimulatedRunSettings {
        config,
        frontier,
        seed,
        round,
        page_takes: pages.takes,
        earlier: &mut |_| {},
    };
    play_run(run, person, &mut web)
}

struct SimulatedRunSettings<'a> {
    config: Config,
    frontier: Arc<MemoryFrontier>,
    seed: u64,
    round: Round,
    /// How long the reader takes for each page.
    page_takes: Duration,
    /// Sets up the coordinator with the state that earlier runs left.
    earlier: &'a mut dyn FnMut(&mut Coordinator),
}

/// Simulates a run. If nothing can happen until the operator acts, advances virtual time by hours.
fn play_run(
    run: SimulatedRunSettings<'_>,
    person: &mut SimulatedOperator<'_>,
    servers: &mut dyn SimulatedServers,
) -> SimulationResult {
    let SimulatedRunSettings {
        config,
        frontier,
        seed,
        round,
        ..
    } = run;
    let config = Arc::new(config);
    let per_address = config.politeness.per_address as usize;
    let filter = body_filter(&config.wanted);
    let frontier: Arc<dyn Frontier> = frontier;
    let mut scope_seeds = ScopeSeeds::read(&*frontier, &config).unwrap();
    let scope = scope_seeds.scope(&config).unwrap();
    let rows = |name: &str| RowFileWriter::open(&config.output.join(name), None).unwrap();
    let is_walk = matches!(config.sample, Some(SampleMethod::Walk(_)));
    let files = OutputWriters {
        archive: None,
        pages: rows("pages.jsonl"),
        excluded: rows("excluded.jsonl"),
        links: None,
        extracts: None,
        walk: is_walk.then(|| rows("walk.jsonl")),
        index: None,
        requests: None,
    };
    let shared = Arc::clone(&frontier);
    let visits = RevisitRules {
        round,
        revisits: config.revisits,
    };
    let traps = SharedTrapDetector::new(&config.traps, None);
    let sampling = SampleState::open(&config, &*frontier).unwrap();
    SampleState::note_method(&config, &*frontier).unwrap();
    let mut writer = Writer::new(shared, files, CrawlTotals::default(), visits, scope_seeds)
        .with_traps(traps.clone())
        .with_sampling(sampling.clone());
    let (reader, mut encoder) = (
        PageReader::new(&config, &visits).with_crawl_state(Arc::clone(&frontier), traps.clone()),
        PageEncoder::new(&config, &visits),
    );
    let parked_frontier = Arc::clone(&frontier);
    let mut coordinator =
        Coordinator::new(config, frontier, scope, CrawlTotals::default(), START, seed);
    coordinator.share_traps(traps);
    coordinator.sample(sampling);
    let mut slow_reader = SlowReader::new(run.page_takes);
    let (mut now, mut number) = (START, 0);
    let (mut effects, mut requests) = (Vec::new(), Vec::new());
    let (mut flights, mut asked, mut rereads) = (BinaryHeap::new(), Vec::new(), Vec::new());
    coordinator.enter_round(visits);
    coordinator.park_again(now, &parked(&*parked_frontier).unwrap());
    (run.earlier)(&mut coordinator);
    coordinator.begin(now, &mut effects);
    loop {
        let (mut items, mut found) = (Vec::new(), Vec::new());
        for effect in effects.drain(..) {
            match effect {
                Effect::FindAddress { permit, .. } => found.push(Event::AddressFound {
                    permit,
                    address: Some(ADDRESS.into()),
                }),
                Effect::Fetch { permit, job, span } => {
                    number += 1;
                    let result = servers.exchange(&job, now);
                    let result = result.map(|answer| filtered(answer, &job, filter.as_ref()));
                    let ended = result.as_ref().map(|exchange| exchange.ended);
                    flights.push(SimulatedExchange {
                        ends: ended.unwrap_or_else(|failure| failure.ended),
                        number,
                        job,
                        spent: permit.spend(),
                        result,
                        span,
                    });
                }
                Effect::Log(line) => requests.push(line.row().clone()),
                Effect::NoteTurn(_) | Effect::NoteCommand(_) | Effect::NoteRender(_) => {}
                Effect::Share(_) => unreachable!("no worker shares this crawl"),
                Effect::ReadCredentials(_) => unreachable!("no site needs a login"),
                Effect::Render { .. } => unreachable!("no page is rendered"),
                Effect::NoteDelay(row) => assert_eq!(row.at, now.as_millis()),
                Effect::NoteRules(rules) => {
                    assert_eq!(rules.row.at, now.as_millis());
                    rules.answer.send(Ok(CommandAnswer::Done)).unwrap();
                    rereads.push(rules.row);
                }
                Effect::Read(reading) => slow_reader.take(reading),
                Effect::GiveUpDocuments => unreachable!("documents are read like pages"),
                Effect::GiveUp => {
                    slow_reader.gives_back = true;
                    reader.gives_back.store(true, Ordering::Relaxed);
                    let given_up = |flight: SimulatedExchange| {
                        let started = flight.spent.issued();
                        SimulatedExchange {
                            ends: now,
                            result: Err(failure(FailureKind::GivenUp, started, now)),
                            ..flight
                        }
                    };
                    flights = flights.into_iter().map(given_up).collect();
                }
                Effect::Write(WriterMessage::Side(item)) => {
                    items.push(WriterMessage::Side(encoder.robots(item)));
                }
                Effect::Write(item) => items.push(item),
            }
        }
        assert!(
            flights.len() <= per_address,
            "{} requests to one address",
            flights.len()
        );
        for event in found {
            coordinator.handle(now, event, &mut effects);
            coordinator.check_invariants();
        }
        while let Some(step) = slow_reader.step(now) {
            match step {
                SlowReaderStep::Tell(event) => coordinator.handle(now, *event, &mut effects),
                SlowReaderStep::Read(page) => {
                    let mut early = |batch| items.push(WriterMessage::Links(batch));
                    match reader.read(page, &mut early) {
                        Ok(page) => items.push(WriterMessage::Page(Box::new(encoder.page(page)))),
                        Err(UnreadPage::LeftOut(page) | UnreadPage::Scripted(page, _)) => {
                            slow_reader.given_back.insert(page.lease.url.to_string());
                            let stopped = Event::ReadingStopped(page);
                            coordinator.handle(now, stopped, &mut effects);
                        }
                    }
                }
            }
        }
        if !items.is_empty() {
            if servers.is_overtaking() {
                items.reverse();
            }
            let items = items.into_iter().map(KeyedMessage::unnamed).collect();
            let committed = writer.commit(items, &AtomicBool::new(false)).unwrap();
            coordinator.handle(now, Event::Committed(Box::new(committed)), &mut effects);
            coordinator.check_invariants();
            continue;
        }
        for command in person(now, &requests) {
            let (answer, answered) = oneshot::channel();
            coordinator.handle(
                now,
                Event::Command(PostedCommand { command, answer }),
                &mut effects,
            );
            coordinator.check_invariants();
            asked.push(answered);
        }
        if !effects.is_empty() {
            continue;
        }
        let next = coordinator.advance(now, &mut effects);
        coordinator.check_invariants();
        if !effects.is_empty() {
            continue;
        }
        let DriverStep::Wait(wake) = next else { break };
        let first = flights.peek().map(|flight: &SimulatedExchange| flight.ends);
        let timer = [wake, slow_reader.ends()].into_iter().flatten().min();
        match (first, timer) {
            (Some(ends), timer) if timer.is_none_or(|timer| ends <= timer) => {
                now = ends;
                let flight = flights.pop().unwrap();
                let event =
                    request_rows::ended(flight.job, flight.spent, flight.result, flight.span);
                coordinator.handle(now, event, &mut effects);
                coordinator.check_invariants();
            }
            (_, Some(timer)) => now = timer,
            (_, None) => now = now + Duration::from_secs(3600),
        }
        let days = now.since(START).as_secs() / 86_400;
        assert!(days < 30, "nothing is under way, and nothing will happen");
    }
    let answers = asked.into_iter().map(|mut asked| asked.try_recv().unwrap());
    SimulationResult {
        requests,
        totals: coordinator.totals(),
        ended: coordinator.outcome().unwrap(),
        answers: answers.collect(),
        rereads,
        ended_at: now,
        most_waiting: slow_reader.most_waiting,
        given_back: slow_reader.given_back,
    }
}

#[test]
fn every_page_is_fetched_once_and_every_pace_is_kept() {
    for seed in 0..2 {
        let (requests, totals) = crawl(seed);
        let web = SimulatedWeb {
            seed,
            has_calendar: false,
            asked: BTreeMap::new(),
            padding: 0,
        };
        // All pages are fetched: each host has /p1 to /p12. robots.txt excludes /p0, and the
        // guessed sitemap has no row.
        assert_eq!(totals.pages, HOSTS * PAGES, "seed {seed}");
        assert!(requests.iter().all(|row| !row.url.ends_with("/p0")));
        let mut last: BTreeMap<&str, &RequestRow> = BTreeMap::new();
        for row in &requests {
            let host: u64 = row.host[1..].split('.').next().unwrap().parse().unwrap();
            let robots = web.robots(host);
            let pace = match () {
                () if robots.contains("Crawl-delay") => 3000,
                () if robots.contains("Request-rate") => 2000,
                () => 1000,
            };
            if let Some(before) = last.insert(&row.host, row) {
                // The pace that robots.txt sets applies only once robots.txt was read, not to the
                // request for it.
                let pace = if before.purpose == "robots" {
                    1000
                } else {
                    pace
                };
                let wait = before.wait_asked.unwrap_or_default();
                assert!(
                    row.start + 1 >= before.end + wait.max(pace),
                    "seed {seed}: {before:?} then {row:?}"
                );
            } else {
                assert_eq!(row.purpose, "robots", "seed {seed}");
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_requests() {
    let (one, other) = (crawl(7).0, crawl(7).0);
    assert!(one.len() > 700);
    assert_eq!(one, other);
    assert_ne!(crawl(8).0, one);
}

/// After each event, the simulation checks the counters, including the number of leases in
/// `LeasedUrlJudge`.
#[test]
fn a_space_without_end_is_left_and_every_lease_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config {
        traps: TrapAvoidance::default(),
        ..config(dir.path())
    };
    let frontier = Arc::new(MemoryFrontier::new());
    let round = Round::first(0);
    let played = play(config, Arc::clone(&frontier), 5, round, &mut |_, _| {
        Vec::new()
    });
    assert_eq!(played.ended, EndReason::Finished);
    let months = played
        .requests
        .iter()
        .filter(|row| row.url.contains("/cal"));
    let months = months.count();
    assert!((2..500).contains(&months), "{months} months");
    assert!(frontier.counts().deferred > 0);
}
