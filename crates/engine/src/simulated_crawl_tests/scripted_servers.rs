//! Servers that answer as a test specifies. The outcome of a crawl is reported as text.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::{ExcludedRow, PageRow};
use crawl_fetcher::{
    BodyMemoryReservation, Exchange, ExchangeFailure, FailureKind, FailurePhase, FaultyParty,
    SentRequestRecord,
};
use crawl_frontier::{Frontier, MemoryFrontier};
use crawl_scheduler::Tick;
use crawl_weburl::{CanonicalUrl, canonicalize};
use http::{HeaderMap, HeaderName, HeaderValue, Version};

use super::{
    ADDRESS, START, SimulatedRunSettings, SimulatedServers, SimulationResult, config, play_run,
};
use crate::config::Config;
use crate::control::CrawlCommand;
use crate::crawl_loop::Coordinator;
use crate::crawl_totals::CrawlTotals;
use crate::messages::RequestJob;
use crate::revisit::visit::Round;
use crate::summary::{EndReason, UnfetchableHost};

/// The duration of an exchange, unless the test sets another.
const TAKES: Duration = Duration::from_millis(100);

/// An answer of a server.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedAnswer {
    status: u16,
    fields: Vec<(&'static str, String)>,
    body: String,
    /// The failure that ends the exchange, after the body if there is one.
    failure: Option<FailureKind>,
    takes: Duration,
}

pub(crate) fn answer(status: u16, body: &str) -> SimulatedAnswer {
    SimulatedAnswer {
        status,
        fields: Vec::new(),
        body: body.to_owned(),
        failure: None,
        takes: TAKES,
    }
}

pub(super) fn page(body: &str) -> SimulatedAnswer {
    answer(200, body).with("content-type", "text/html")
}

pub(crate) fn moved(to: &str) -> SimulatedAnswer {
    answer(302, "").with("location", to)
}

pub(super) fn fails(kind: FailureKind) -> SimulatedAnswer {
    page("").but(kind)
}

impl SimulatedAnswer {
    pub(super) fn with(mut self, name: &'static str, value: &str) -> SimulatedAnswer {
        self.fields.push((name, value.to_owned()));
        self
    }

    /// Makes the answer break off with a failure of this kind.
    pub(super) fn but(mut self, kind: FailureKind) -> SimulatedAnswer {
        self.failure = Some(kind);
        self
    }

    pub(super) fn after(self, seconds: u64) -> SimulatedAnswer {
        self.taking(Duration::from_secs(seconds))
    }

    pub(super) fn taking(mut self, takes: Duration) -> SimulatedAnswer {
        self.takes = takes;
        self
    }

    pub(crate) fn result(
        &self,
        url: &CanonicalUrl,
        started: Tick,
    ) -> Result<Exchange, ExchangeFailure> {
        let ended = started + self.takes;
        let field = |(name, value): &(&'static str, String)| {
            let value = HeaderValue::from_str(value).unwrap();
            (HeaderName::from_static(name), value)
        };
        let exchange = Exchange {
            url: url.clone(),
            sent: SentRequestRecord::default(),
            started,
            ended,
            first_byte: self.takes,
            address: Some(SocketAddr::from((ADDRESS, 80))),
            status: self.status,
            version: Version::HTTP_11,
            headers: HeaderMap::from_iter(self.fields.iter().map(field)),
            body: self.body.clone().into(),
            tls: None,
            truncated: None,
            challenged: false,
            unmet_signature: None,
            room: BodyMemoryReservation::default(),
        };
        match self.failure {
            None => Ok(exchange),
            Some(kind) => Err(ExchangeFailure {
                answer: (!self.body.is_empty()).then(|| Box::new(exchange)),
                ..failure(kind, started, ended)
            }),
        }
    }
}

pub(crate) fn failure(kind: FailureKind, started: Tick, ended: Tick) -> ExchangeFailure {
    ExchangeFailure {
        kind,
        phase: FailurePhase::FirstByte,
        fault: FaultyParty::Url,
        retry: !kind.is_refusal(),
        started,
        ended,
        address: None,
        detail: "as the test says".to_owned(),
        signed: false,
        answer: None,
    }
}

/// The answers of each URL, one per request, in order. The last answer repeats. URLs that are not
/// listed do not exist.
pub(super) struct ServerScript {
    answers: BTreeMap<&'static str, Vec<SimulatedAnswer>>,
    asked: BTreeMap<String, usize>,
}

impl SimulatedServers for ServerScript {
    fn exchange(&mut self, job: &RequestJob, now: Tick) -> Result<Exchange, ExchangeFailure> {
        let request = job.request();
        let tries = self.asked.entry(request.url.to_string()).or_default();
        *tries += 1;
        let Some(answers) = self.answers.get(request.url.as_str()) else {
            return answer(404, "").result(&request.url, now);
        };
        let answer = answers.get(*tries - 1).or(answers.last()).unwrap();
        answer.result(&request.url, now)
    }
}

/// A crawl of `http://a.example/`: its frontier, how long a page takes to read, and the commands
/// during the crawl.
#[derive(Default)]
pub(super) struct SimulatedCrawl {
    pub(super) frontier: Arc<MemoryFrontier>,
    pub(super) page_takes: Duration,
    /// Commands, each with its time in seconds after the start of the crawl.
    pub(super) commands: Vec<(u64, CrawlCommand)>,
}

/// The answers that a test specifies, by URL, one per request.
pub(super) type SimulatedAnswersByUrl = [(&'static str, Vec<SimulatedAnswer>)];

impl SimulatedCrawl {
    /// Runs the crawl. Returns a report of its requests ordered by end, then its rows, then how the
    /// run ended.
    pub(super) fn run(
        &self,
        change: impl FnOnce(&mut Config),
        earlier: impl FnMut(&mut Coordinator),
        answers: &SimulatedAnswersByUrl,
    ) -> (SimulationResult, String) {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path());
        config.seeds = vec![canonicalize(None, "http://a.example/").unwrap()];
        config.wait_unreachable = Duration::from_secs(60);
        change(&mut config);
        let mut earlier = earlier;
        let run = SimulatedRunSettings {
            config,
            frontier: Arc::clone(&self.frontier),
            seed: 1,
            round: Round::first(0),
            page_takes: self.page_takes,
            earlier: &mut earlier,
        };
        let mut script = ServerScript {
            answers: answers.iter().cloned().collect(),
            asked: BTreeMap::new(),
        };
        let mut commands = self.commands.clone();
        let played = play_run(
            run,
            &mut |now, _| {
                let since = now.since(START).as_secs();
                let due = commands.iter().take_while(|(at, _)| *at <= since).count();
                commands.drain(..due).map(|(_, command)| command).collect()
            },
            &mut script,
        );
        let report = report(dir.path(), &played, &*self.frontier);
        (played, report)
    }
}

/// Crawls `http://a.example/` and returns a report of the outcome.
pub(super) fn crawl(change: impl FnOnce(&mut Config), answers: &SimulatedAnswersByUrl) -> String {
    SimulatedCrawl::default().run(change, |_| {}, answers).1
}

fn report(dir: &Path, played: &SimulationResult, frontier: &dyn Frontier) -> String {
    let mut report = String::new();
    for row in &played.requests {
        let since = row.start - START.as_millis();
        report += &format!(
            "{}.{:03} {} {} {}\n",
            since / 1000,
            since % 1000,
            row.purpose,
            row.url,
            row.answer()
        );
    }
    for row in rows::<PageRow>(dir, "pages.jsonl") {
        let end = match (row.error, row.status) {
            (Some(error), None) => error,
            (Some(error), Some(status)) => format!("{status}, {error}"),
            (None, status) => status.unwrap_or_default().to_string(),
        };
        report += &format!("page {}: {end}, {} bytes\n", row.url, row.bytes);
    }
    for row in rows::<ExcludedRow>(dir, "excluded.jsonl") {
        let rule = row.rule.unwrap_or_default();
        report += &format!("excluded {}: {}: {rule}\n", row.url, row.reason);
    }
    let CrawlTotals {
        pages,
        failed,
        seeds_fetched,
        ..
    } = played.totals;
    let pending = frontier.counts().pending;
    report +=
        &format!("{pages} pages, {failed} failed, {seeds_fetched} seeds, {pending} pending\n");
    let since = |moment: Tick| moment.since(START).as_secs();
    let end = match &played.ended {
        EndReason::NoFetchableHost(hosts) => {
            let host = |host: &UnfetchableHost| {
                let next = host.next_try.map(since);
                format!("{} until {next:?}, {}", host.host, host.why)
            };
            let hosts: Vec<_> = hosts.iter().map(host).collect();
            format!("unreachable: {}", hosts.join("; "))
        }
        other => format!("{other:?}"),
    };
    report + &format!("{end}, after {} s\n", since(played.ended_at))
}

pub(super) fn rows<Row: serde::de::DeserializeOwned>(dir: &Path, name: &str) -> Vec<Row> {
    let text = std::fs::read_to_string(dir.join(name)).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
