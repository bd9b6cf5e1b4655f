//! Tests that replay crawls over their own archives. The readers and the writer are delayed at
//! random, and the crawl is killed and resumed now and then. The replay must send the requests in
//! the same order.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crawl_archive::rows::{RequestRow, RunStartEvent};
use crawl_archive::{RowLogWriter, RowReader, WarcCompression};
use crawl_fetcher::{Exchange, ExchangeFailure, FailureKind};
use crawl_scheduler::{SnapshotCompleteness, SpentPermit, Tick};
use crawl_scope::ScopeMode;
use crawl_weburl::{HostKey, canonicalize};
use tokio::sync::oneshot;
use tracing::Span;

use super::replays_with_rendering::{SimulatedBrowser, render_config};
use super::scripted_servers::{answer, failure};
use super::{ADDRESS, START, SimulatedServers, config, drawn};
use crate::config::{Config, TrapAvoidance};
use crate::control::{CrawlCommand, PostedCommand, StopUrgency};
use crate::crawl_loop::{Coordinator, DriverStep, request_rows};
use crate::frontier_meta_keys::META_TRAPS;
use crate::messages::page_pipeline_stages::FetchedPage;
use crate::messages::replay_message_key::{KeyedMessage, MessageKeyAssigner, ReplayMessageKey};
use crate::messages::{Effect, Event, RequestJob, WriterMessage, lines_to_log, order_to_log};
use crate::page_reading::page_encoder::PageEncoder;
use crate::page_reading::{PageReader, UnreadPage};
use crate::render::RenderMode;
use crate::replay::{RecordedCrawl, ReplayTimingMode, replay};
use crate::shared_trap_detector::SharedTrapDetector;
use crate::state::crawl_directory::{self, CrawlDirectory};
use crate::state::expire_robots_rules::take_rechecked;
use crate::state::replay_order_log::ReplayOrderLog;
use crate::state::stored_parked_hosts::parked;
use crate::write::{Writer, run_end};

const HOSTS: u64 = 5;
const PAGES: u64 = 14;
const MONTHS: u64 = 20;

/// Five hosts that link to each other. Some pages have nothing new, redirect, fail, or are answered
/// 503.
pub(super) struct UnreliableHosts {
    seed: u64,
    /// Whether the pages are empty until scripts build them.
    are_scripted: bool,
    asked: BTreeMap<String, u64>,
    /// The number of exchanges so far. The duration of an exchange depends on it.
    exchanges: u64,
}

impl UnreliableHosts {
    fn page(&self, host: u64, page: u64) -> String {
        let link = |number: u64| {
            let draw = drawn(self.seed, &[host, page, number]);
            let (to, path) = (draw % HOSTS, draw / 7 % PAGES);
            match draw % 3 {
                0 => format!("<a href=http://h{to}.example/p{path}>x</a>"),
                1 => format!("<a href=/p{path}>x</a>"),
                _ => format!("<a href=/months/{path}>x</a>"),
            }
        };
        let words: Vec<String> = (0..60)
            .map(|word| format!("w{}", drawn(self.seed, &[host, page, word, 5])))
            .collect();
        let links: String = (0..6).map(link).collect();
        format!(
            "<p>{} <a href=http://h{}.example/p{}>next</a>{links}",
            words.join(" "),
            (host + page) % HOSTS,
            (page + 1) % PAGES
        )
    }

    /// Returns a page that shows only what its four scripts contain: from its host, from another
    /// host, from a disallowed path, and from a URL that all pages of all hosts need.
    fn shell(&self, host: u64, page: u64) -> String {
        let other = (host + page) % HOSTS;
        format!(
            "<div id=root></div><script src=/s/{page}></script><script src=/p3.js></script>\
             <script src=http://h{other}.example/s/{}></script>\
             <script src=http://h0.example/s/0></script>",
            page / 2
        )
    }

    /// Returns a script that adds a page's text, and then needs data.
    fn script(&self, host: u64, page: u64) -> String {
        format!("{} then=/data/{}", self.page(host, page), page % 3)
    }

    fn month(&self, host: u64, month: u64) -> String {
        let back = drawn(self.seed, &[host, month, 8]) % PAGES;
        let next = (month + 1).min(MONTHS);
        format!("<p>no events <a href=/months/{next}>next</a><a href=/p{back}>up</a>")
    }
}

impl SimulatedServers for UnreliableHosts {
    fn exchange(&mut self, job: &RequestJob, now: Tick) -> Result<Exchange, ExchangeFailure> {
        let url = job.request().url;
        let tries = self.asked.entry(url.to_string()).or_default();
        *tries += 1;
        let tries = *tries;
        self.exchanges += 1;
        let takes = drawn(self.seed, &[self.exchanges, 3]) % 40_000 + 500;
        let host: u64 = url.host()[1..2].parse().unwrap();
        let path = url.path_and_query();
        let number = |begin: &str| {
            let rest = path.strip_prefix(begin)?;
            rest.parse::<u64>().ok()
        };
        let draw = drawn(self.seed, &[host, number("/p").unwrap_or(99), 4]) % 16;
        let html = |text: String| answer(200, &text).with("content-type", "text/html");
        let answer = match (path, number("/p"), number("/months/")) {
            ("/robots.txt", ..) => answer(200, "User-agent: *\nDisallow: /p3\n"),
            (_, Some(_), _) if draw == 0 && tries == 1 => answer(503, "").with("retry-after", "0"),
            (_, Some(_), _) if draw == 1 && tries < 3 => answer(500, ""),
            (_, Some(page), _) if draw == 2 => {
                answer(302, "").with("location", &format!("/p{}", (page + 5) % PAGES))
            }
            (_, Some(_), _) if draw == 3 => {
                let ended = now + Duration::from_micros(takes);
                return Err(failure(FailureKind::Reset, now, ended));
            }
            (_, Some(page), _) if self.are_scripted => html(self.shell(host, page)),
            (_, Some(page), _) => html(self.page(host, page)),
            (_, _, Some(month)) => html(self.month(host, month)),
            _ => match (number("/s/"), number("/data/")) {
                (Some(page), _) if page % 5 == 1 && tries == 1 => answer(503, ""),
                (Some(page), _) if page % 7 == 4 => {
                    let ended = now + Duration::from_micros(takes);
                    return Err(failure(FailureKind::Reset, now, ended));
                }
                (Some(page), _) => answer(200, &self.script(host, page)),
                (_, Some(page)) => answer(200, &format!("<p>data {page}")),
                _ => answer(404, ""),
            },
        };
        answer
            .taking(Duration::from_micros(takes))
            .result(&url, now)
    }
}

/// Something that happens at a set virtual time in a recorded crawl, such as the end of an exchange
/// or a commit.
pub(super) enum ScheduledEvent {
    /// The end of an exchange.
    Fetched(
        Box<(
            RequestJob,
            SpentPermit,
            Result<Exchange, ExchangeFailure>,
            Span,
        )>,
    ),
    /// A reader becomes free and reads a page.
    Read(Box<FetchedPage>, Option<ReplayMessageKey>),
    /// The arrival of a message at the writer.
    Came(Box<KeyedMessage>),
    /// A commit of the messages that have arrived at the writer.
    Commit,
    /// Any other event.
    Other(Box<Event>),
}

struct At {
    at: Tick,
    number: u64,
    due: ScheduledEvent,
}

impl PartialEq for At {
    fn eq(&self, other: &At) -> bool {
        self.number == other.number
    }
}
impl Eq for At {}
impl PartialOrd for At {
    fn partial_cmp(&self, other: &At) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for At {
    fn cmp(&self, other: &At) -> std::cmp::Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// A run of a crawl on disk, with delayed readers and writer.
struct DelayedRun {
    seed: u64,
    now: Tick,
    coordinator: Coordinator,
    reader: PageReader,
    encoder: PageEncoder,
    writer: Writer,
    requests: RowLogWriter,
    order: ReplayOrderLog,
    keys: MessageKeyAssigner,
    effects: Vec<Effect>,
    due: BinaryHeap<At>,
    number: u64,
    /// Messages that arrived for the next commit.
    came: Vec<KeyedMessage>,
    is_committing: bool,
    /// Commands to send, each after this number of events.
    commands: VecDeque<(u64, CrawlCommand)>,
    happened: u64,
    browser: SimulatedBrowser,
    /// The number of events after which the run is stopped. `None` to let the run end by itself.
    stop_after: Option<u64>,
}

impl DelayedRun {
    fn open(config: &Arc<Config>, seed: u64, now: Tick) -> DelayedRun {
        let mut directory = crawl_directory::open(config, 1).unwrap();
        let visits = directory.take_up_round(config, now, &|| false).unwrap();
        let CrawlDirectory {
            frontier,
            files,
            mut requests,
            sampling,
            totals,
            mut scope_seeds,
            resumed,
            cut_off,
            last_end,
            ..
        } = directory;
        let scope = scope_seeds.scope(config).unwrap();
        let mut coordinator = Coordinator::new(
            Arc::clone(config),
            Arc::clone(&frontier),
            scope,
            totals,
            now,
            seed,
        );
        coordinator.enter_round(visits);
        let stored = frontier.meta(META_TRAPS).unwrap();
        let traps = SharedTrapDetector::new(&config.traps, stored.as_deref());
        coordinator.share_traps(traps.clone());
        coordinator.sample(sampling.clone());
        let parked = parked(&*frontier).unwrap();
        coordinator.park_again(now, &parked);
        if resumed {
            coordinator
                .restore(match cut_off {
                    true => SnapshotCompleteness::WritesMayBeLost,
                    false => SnapshotCompleteness::Complete,
                })
                .unwrap();
        }
        for row in requests.tail::<RequestRow>(20_000).unwrap().rows {
            coordinator.note_past_request(now, &row).unwrap();
        }
        let run = RunStartEvent {
            settings: config.settings_digest.clone(),
            has_render_steps: true,
            at: now.as_millis(),
            round: visits.round.number,
            round_began: visits.round.began,
            requests: requests.len(),
            settled: totals.messages,
            before: last_end,
            parked: Some(parked.iter().map(ToString::to_string).collect()),
            rechecked: take_rechecked(&*frontier, now).unwrap(),
        };
        let order = ReplayOrderLog::open(&config.output, run).unwrap();
        let reader =
            PageReader::new(config, &visits).with_crawl_state(Arc::clone(&frontier), traps.clone());
        let writer = Writer::new(frontier, files, totals, visits, scope_seeds)
            .with_traps(traps)
            .with_sampling(sampling)
            .with_replay_order_log(order.clone());
        DelayedRun {
            seed,
            now,
            coordinator,
            encoder: PageEncoder::new(config, &visits),
            reader,
            writer,
            requests,
            order,
            keys: MessageKeyAssigner::new(),
            effects: Vec::new(),
            due: BinaryHeap::new(),
            number: 0,
            came: Vec::new(),
            is_committing: false,
            commands: VecDeque::new(),
            happened: 0,
            browser: SimulatedBrowser::new(config),
            stop_after: None,
        }
    }

    /// Returns a random time up to this many microseconds from now.
    fn late(&self, max: u64) -> Tick {
        self.now + Duration::from_micros(drawn(self.seed, &[self.number, max]) % max)
    }

    fn plan(&mut self, at: Tick, due: ScheduledEvent) {
        self.number += 1;
        let number = self.number;
        self.due.push(At { at, number, due });
    }

    fn perform(&mut self, servers: &mut UnreliableHosts) {
        while !self.effects.is_empty() {
            let effects = std::mem::take(&mut self.effects);
            let lines = || lines_to_log(&effects);
            self.order.begin_rows(lines()).unwrap();
            self.requests.append_requests(lines()).unwrap();
            self.order.note(order_to_log(&effects)).unwrap();
            for effect in effects {
                let key = self.keys.of(&effect);
                match effect {
                    Effect::FindAddress { permit, .. } => {
                        let address = Some(ADDRESS.into());
                        let event = Event::AddressFound { permit, address };
                        self.coordinator.handle(self.now, event, &mut self.effects);
                    }
                    Effect::Fetch { permit, job, span } => {
                        let result = servers.exchange(&job, self.now);
                        let ended = result.as_ref().map(|exchange| exchange.ended);
                        let ended = ended.unwrap_or_else(|failure| failure.ended);
                        let fetched = Box::new((job, permit.spend(), result, span));
                        self.plan(ended, ScheduledEvent::Fetched(fetched));
                    }
                    Effect::Read(page) => {
                        self.plan(self.late(9_000), ScheduledEvent::Read(page, key));
                    }
                    Effect::Write(WriterMessage::Side(item)) => {
                        let message = WriterMessage::Side(self.encoder.robots(item));
                        let keyed = Box::new(KeyedMessage { key, message });
                        self.plan(self.late(9_000), ScheduledEvent::Came(keyed));
                    }
                    Effect::Write(message) => {
                        let keyed = Box::new(KeyedMessage { key, message });
                        self.plan(self.late(9_000), ScheduledEvent::Came(keyed));
                    }
                    Effect::Log(_)
                    | Effect::NoteTurn(_)
                    | Effect::NoteDelay(_)
                    | Effect::NoteCommand(_)
                    | Effect::NoteRender(_) => {}
                    Effect::Render {
                        page,
                        url,
                        fetched,
                        answer,
                    } => self.browser.open(page, url.to_string(), fetched, answer),
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    /// Sends a command as an operator does.
    fn command(&mut self, command: CrawlCommand) {
        let (answer, _) = oneshot::channel();
        let event = Event::Command(PostedCommand { command, answer });
        self.coordinator.handle(self.now, event, &mut self.effects);
    }

    /// Runs the crawl until it ends, or kills it after `left` events. Returns false if it was
    /// killed.
    fn go(&mut self, servers: &mut UnreliableHosts, mut left: u64) -> bool {
        self.coordinator.begin(self.now, &mut self.effects);
        loop {
            if let Some((after, _)) = self.commands.front()
                && *after <= self.happened
                && let Some((_, command)) = self.commands.pop_front()
            {
                self.command(command);
            }
            if self.stop_after == Some(self.happened) {
                let stop = Event::Stop(StopUrgency::Drain);
                self.coordinator.handle(self.now, stop, &mut self.effects);
            }
            self.perform(servers);
            for event in self.browser.advance() {
                self.plan(self.late(15_000), ScheduledEvent::Other(Box::new(event)));
            }
            let next = self.coordinator.advance(self.now, &mut self.effects);
            self.coordinator.check_invariants();
            if !self.effects.is_empty() {
                continue;
            }
            let DriverStep::Wait(wake) = next else {
                return true;
            };
            if left == 0 {
                return false;
            }
            left -= 1;
            self.happened += 1;
            let first = self.due.peek().map(|at| at.at);
            match (first, wake) {
                (Some(at), wake) if wake.is_none_or(|wake| at <= wake) => self.happen(),
                (_, Some(wake)) => self.now = self.now.max(wake),
                (_, None) => panic!("nothing is under way"),
            }
        }
    }

    fn happen(&mut self) {
        let Some(At { at, due, .. }) = self.due.pop() else {
            return;
        };
        self.now = self.now.max(at);
        match due {
            ScheduledEvent::Fetched(fetched) => {
                let (job, spent, result, span) = *fetched;
                let event = request_rows::ended(job, spent, result, span);
                self.coordinator.handle(self.now, event, &mut self.effects);
            }
            ScheduledEvent::Read(page, key) => {
                let bytes = page.exchange.body.len() as u64;
                let began = Event::ReadingBegan { bytes };
                self.coordinator.handle(self.now, began, &mut self.effects);
                let page = match self.reader.read(page, &mut |_| {}) {
                    Ok(page) => page,
                    Err(UnreadPage::Scripted(page, shell)) => {
                        let event = Event::Scripted { page, shell };
                        return self.plan(self.late(9_000), ScheduledEvent::Other(Box::new(event)));
                    }
                    Err(other) => panic!("{other:?}"),
                };
                let message = WriterMessage::Page(Box::new(self.encoder.page(page)));
                let keyed = Box::new(KeyedMessage { key, message });
                self.plan(self.late(20_000), ScheduledEvent::Came(keyed));
            }
            ScheduledEvent::Came(keyed) => {
                self.came.push(*keyed);
                if !self.is_committing {
                    self.is_committing = true;
                    self.plan(self.late(30_000), ScheduledEvent::Commit);
                }
            }
            ScheduledEvent::Other(event) => {
                self.coordinator.handle(self.now, *event, &mut self.effects);
            }
            ScheduledEvent::Commit => {
                self.is_committing = false;
                let group = std::mem::take(&mut self.came);
                let committed = self.writer.commit(group, &AtomicBool::new(false)).unwrap();
                let event = Event::Committed(Box::new(committed));
                self.coordinator.handle(self.now, event, &mut self.effects);
            }
        }
    }
}

pub(super) fn requests(dir: &Path) -> Vec<RequestRow> {
    let rows = RowReader::<RequestRow>::open(&dir.join("requests.jsonl"), None).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Crawls into a folder in several runs: the first `kills` runs are killed, and then one run
/// completes each of `rounds` rounds. Returns the configuration.
fn crawl(dir: &Path, seed: u64, kills: u64, rounds: u32) -> Config {
    crawl_steered(dir, seed, kills, rounds, Vec::new)
}

/// How a crawl is disturbed, and whether its pages must be rendered.
#[derive(Clone, Copy)]
pub(super) struct ReplayTestSettings {
    pub(super) seed: u64,
    /// The number of runs that are killed first.
    pub(super) kills: u64,
    pub(super) rounds: u32,
    /// The commands that are sent in each run, each after this number of events.
    pub(super) commands: fn() -> Vec<(u64, CrawlCommand)>,
    /// The number of events after which the first run is stopped. The next run continues the crawl.
    pub(super) stop_after: Option<u64>,
    pub(super) render: Option<RenderMode>,
}

/// Crawls into a folder like [`crawl`], but sends these commands in each run.
fn crawl_steered(
    dir: &Path,
    seed: u64,
    kills: u64,
    rounds: u32,
    commands: fn() -> Vec<(u64, CrawlCommand)>,
) -> Config {
    let course = ReplayTestSettings {
        seed,
        kills,
        rounds,
        commands,
        stop_after: None,
        render: None,
    };
    crawl_by(dir, course)
}

/// Crawls into a folder in several runs, like [`crawl`].
pub(super) fn crawl_by(dir: &Path, course: ReplayTestSettings) -> Config {
    let ReplayTestSettings {
        seed,
        kills,
        rounds,
        commands,
        stop_after,
        render,
    } = course;
    let mut config = config(&dir.join("c"));
    config.render = render.map(render_config);
    let seeds = (0..HOSTS).map(|host| format!("http://h{host}.example/p{}", seed % PAGES));
    config.seeds = seeds.map(|url| canonicalize(None, &url).unwrap()).collect();
    config.scope.mode = ScopeMode::Any;
    config.traps = TrapAvoidance::default();
    config.warc = Some(WarcCompression::Gzip);
    config.commit_within = Duration::from_secs(60);
    config.politeness.delay = Duration::ZERO;
    config.politeness.delay_factor = 0.0;
    config.politeness.per_host = 3;
    config.politeness.per_address = 64;
    let mut servers = UnreliableHosts {
        seed,
        are_scripted: render.is_some(),
        asked: BTreeMap::new(),
        exchanges: 0,
    };
    let mut now = START;
    let stopped = u64::from(stop_after.is_some());
    let unfinished = kills + stopped;
    for number in 0..unfinished + u64::from(rounds) {
        config.recrawl = number > unfinished;
        let shared = Arc::new(config.clone());
        let mut run = DelayedRun::open(&shared, seed + 1000 * number, now);
        run.commands = commands().into();
        run.stop_after = stop_after.filter(|_| number == 0);
        let events = match number >= stopped && number < unfinished {
            true => 20 + drawn(seed, &[number, 6]) % 400,
            false => u64::MAX,
        };
        let is_over = run.go(&mut servers, events);
        now = run.now + Duration::from_millis(7);
        if is_over {
            run.order.end().unwrap();
            let ended = run.coordinator.outcome().unwrap();
            let waiting = run.coordinator.waiting_urls(now, &ended).unwrap();
            run_end::write_derived(&shared, run.writer, &ended, &waiting, false).unwrap();
        }
    }
    config.recrawl = false;
    config
}

/// Runs a crawl, replays it, and compares the requests.
fn check(seed: u64, kills: u64, rounds: u32) {
    check_steered(seed, kills, rounds, Vec::new);
}

fn check_steered(seed: u64, kills: u64, rounds: u32, commands: fn() -> Vec<(u64, CrawlCommand)>) {
    let dir = tempfile::tempdir().unwrap();
    let mut config = crawl_steered(dir.path(), seed, kills, rounds, commands);
    let sent = requests(&config.output);
    let recorded = RecordedCrawl::open(&config.output).unwrap();
    config.output = dir.path().join("again");
    let replayed = replay(config.clone(), recorded, ReplayTimingMode::AsRecorded).unwrap();
    let again = requests(&config.output);
    let summary = |row: &RequestRow| {
        let times = (row.start, row.end);
        (row.url.clone(), row.purpose.clone(), row.answer(), times)
    };
    for (number, (sent, again)) in sent.iter().zip(&again).enumerate() {
        assert_eq!(
            summary(again),
            summary(sent),
            "seed {seed}, request {number}"
        );
    }
    assert_eq!(again.len(), sent.len(), "seed {seed}");
    assert_eq!(replayed.difference, None, "seed {seed}");
}

#[test]
fn a_replay_repeats_the_order_of_a_crawl_without_gaps() {
    for seed in 0..4 {
        check(seed, 0, 1);
    }
}

#[test]
fn a_replay_repeats_the_order_of_several_rounds() {
    for seed in 20..22 {
        check(seed, 0, 3);
    }
}

#[test]
fn a_replay_repeats_the_order_of_a_killed_crawl() {
    for seed in 40..46 {
        check(seed, 1 + seed % 4, 1 + u32::from(seed % 3 == 0));
    }
    // With this seed, a link finds a shorter path to a URL that was requeued.
    check(47, 3, 1);
}

#[test]
fn a_replay_repeats_the_commands_of_its_crawl() {
    let commands = || {
        let host = |name: &str| HostKey::parse(name).unwrap();
        vec![
            // This URL is only reached by the command, because no page links to it.
            (30, CrawlCommand::Add("HTTP://h7.example/p2#x".to_owned())),
            (60, CrawlCommand::Park(host("h2.example"))),
            (
                70,
                CrawlCommand::Delay {
                    host: Some(host("h1.example")),
                    delay: Duration::from_millis(300),
                },
            ),
            (150, CrawlCommand::Unpark(host("h2.example"))),
        ]
    };
    let dir = tempfile::tempdir().unwrap();
    let config = crawl_steered(dir.path(), 60, 0, 1, commands);
    let sent = requests(&config.output);
    assert!(sent.iter().any(|row| row.host == "h7.example"));
    let order = std::fs::read_to_string(config.output.join("state/order.jsonl")).unwrap();
    assert!(order.contains("\"about\":\"http://h7.example/p2\""));
    for seed in 60..63 {
        check_steered(seed, seed % 2, 1, commands);
    }
}

/// If a message of a recorded commit group never arrives in the replay, the replay can't keep the
/// recorded order. It must still commit the group's other messages.
#[test]
fn a_group_with_a_missing_message_loses_no_page() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = crawl(dir.path(), 1, 0, 1);
    let log = config.output.join("state/order.jsonl");
    let rows = std::fs::read_to_string(&log).unwrap();
    let with_page = |row: &&str| row.starts_with("{\"group\"") && row.contains("\"e");
    let group = rows.lines().filter(with_page).nth(3).unwrap();
    let longer = group.replace("]}", ",\"t999999\"]}");
    std::fs::write(&log, rows.replacen(group, &longer, 1)).unwrap();
    let urls = |dir: &Path| -> BTreeSet<String> {
        let rows = requests(dir).into_iter();
        rows.map(|row| row.url).collect()
    };
    let sent = urls(&config.output);
    let recorded = RecordedCrawl::open(&config.output).unwrap();
    config.output = dir.path().join("again");
    let replayed = replay(config.clone(), recorded, ReplayTimingMode::AsRecorded).unwrap();
    assert!(replayed.difference.is_some());
    assert_eq!(urls(&config.output), sent);
}
