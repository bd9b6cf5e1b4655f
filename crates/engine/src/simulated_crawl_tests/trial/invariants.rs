//! Checks the invariants of a crawl after each event, from what servers see and what is on disk.
//! Shares no code with the scheduler and the writer, and knows their rules only from
//! `docs/architecture.md`.

mod records;
mod requests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crawl_frontier::Frontier;
use crawl_scheduler::{Politeness, Tick};
use crawl_weburl::{CanonicalUrl, HostKey, Origin};

use super::simulated_disk::SimulatedDisk;
use crate::config::Config;
use crate::control::CrawlCommand;
use crate::crawl_totals::CrawlTotals;
use crate::messages::RequestJob;

/// The maximum time between a permit and its request, during which the address is looked up.
const LOOK_UP: Duration = Duration::from_secs(30);
/// The minimum pause after a failed connection.
const PAUSE: Duration = Duration::from_secs(5);
/// How long a robots.txt is valid if its answer has no usable `Cache-Control`.
const DAY: Duration = Duration::from_secs(86_400);

/// How a life of the program (the time from its start to its end or death) ended. The cause
/// determines which of the written bytes stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LifeEndCause {
    /// The run ended normally and committed everything.
    Clean,
    /// The program was killed. All written bytes stay.
    Kill,
    /// The run failed. All written bytes stay.
    Failure,
    /// The power was cut. Only synced bytes are sure to stay.
    PowerCut,
}

/// A request that a server saw.
struct SeenRequest {
    worker: usize,
    url: CanonicalUrl,
    host: String,
    address: IpAddr,
    start: Tick,
    end: Option<Tick>,
    /// When the wait that the server requested in its answer ends.
    wait_until: Option<Tick>,
    /// The length of `requests.jsonl` in bytes, up to and including the row of the request.
    logged: Option<u64>,
    /// Whether the host has been handed over to another owner since this request.
    is_detached: bool,
}

/// A wait that an earlier run of the program recorded.
struct EarlierRunWait {
    /// For a wait that only a row of `requests.jsonl` records: the worker whose directory has the
    /// row, and the length of the file up to and including the row. `None` if the host's committed
    /// state records the wait.
    only: Option<(usize, u64)>,
    end: Tick,
    until: Tick,
}

#[derive(Default)]
struct SeenHost {
    /// The worker that sent the last request.
    worker: usize,
    in_flight: u32,
    /// When the requests of this life (run of the program) ended.
    ends: Vec<Tick>,
    /// When the last request of earlier lives (runs of the program) ended, and the delay at that
    /// time.
    earlier: Option<(Tick, Duration)>,
    crawl_delay: Duration,
    pause: Option<HostPause>,
}

/// A pause of a host after a failed connection.
#[derive(Clone)]
struct HostPause {
    until: Tick,
    /// The only origin that the pause applies to. `None` if it applies to the whole host. A pause
    /// of a single origin is not recorded.
    only: Option<Origin>,
}

#[derive(Default)]
struct SeenOrigin {
    /// The last robots.txt answer that set rules: when it ended, and how long it is valid.
    usable: Option<(Tick, Duration)>,
    /// Pages requested since the last robots.txt answer that set rules.
    pages: u32,
    /// Whether robots.txt was unreachable since its last answer that set rules.
    is_unreachable: bool,
}

/// A crawl directory, which belongs to one worker.
struct WorkerRecords {
    dir: PathBuf,
    read_to: u64,
    rows: CrawlTotals,
    /// Whether the last life (run of the program) sent requests and did not end cleanly.
    is_unclean: bool,
    /// Whether the process was frozen in this life (run of the program).
    was_frozen: bool,
}

/// The effects of the operator's commands.
#[derive(Default)]
struct CommandEffects {
    is_paused: bool,
    /// The delay that a command set for all hosts in this life (run of the program). `host_delays`
    /// has the delays of single hosts.
    delay: Option<Duration>,
    host_delays: HashMap<String, Duration>,
    /// When a command last changed a delay. Requests that were permitted under an earlier, shorter
    /// delay may still be sent for a while.
    longer_since: Option<Tick>,
    parked: BTreeSet<String>,
    /// The host of each command to unpark a host that was not answered yet.
    unparking: Vec<String>,
    /// Patterns of URLs that must not be requested.
    excluded: Vec<String>,
    added: Vec<String>,
    /// URLs that a command added, which are visited even if they are not due.
    named: BTreeSet<String>,
}

impl HostPause {
    /// Returns whether the pause forbids a request. If another host's robots.txt redirected the
    /// request here, only a pause of the whole host forbids it, because the scheduler doesn't know
    /// which origin of this host the redirect leads to.
    fn blocks(&self, job: &RequestJob) -> bool {
        let origin = match job {
            RequestJob::Robots { of, .. } => of,
            _ => &job.url().origin(),
        };
        self.only.as_ref().is_none_or(|only| only == origin)
    }
}

impl SeenHost {
    /// Forgets the facts that were only in the memory of the process that sent requests to the
    /// host.
    fn end_life(&mut self, now: Tick, delay: Duration, is_clean: bool) {
        let last = self.ends.iter().max().copied();
        let last = if self.in_flight > 0 { Some(now) } else { last };
        *self = SeenHost {
            worker: self.worker,
            earlier: last.map(|end| (end, delay)).or(self.earlier),
            pause: self
                .pause
                .take()
                .filter(|pause| is_clean && pause.only.is_none()),
            ..SeenHost::default()
        };
    }
}

fn key(host: &str) -> HostKey {
    HostKey::parse(host).unwrap()
}

/// Checks the invariants of a trial's crawl: its requests when they are sent, and its records when
/// they are committed.
pub(super) struct InvariantChecker {
    /// The directory of each worker.
    records: Vec<WorkerRecords>,
    politeness: Politeness,
    warc: bool,
    round: u32,
    /// The maximum number of pages of all workers.
    pub(super) max_pages: Option<u64>,
    /// The requests of processes that are alive, by the numbers that [`sent`](Self::sent) returned.
    seen: BTreeMap<usize, SeenRequest>,
    /// For each host, the waits that servers requested in earlier lives and that are on record.
    waits: HashMap<String, Vec<EarlierRunWait>>,
    hosts: HashMap<String, SeenHost>,
    origins: BTreeMap<Origin, SeenOrigin>,
    /// Settled pages, each with its round.
    settled: BTreeSet<(String, u32)>,
    /// Pages whose rows were written. At the end of the crawl, the URLs that they link to must be
    /// known.
    linking: BTreeSet<String>,
    /// When the next visit of each page is due, as of the end of the last round.
    visits: BTreeMap<String, u32>,
    /// The pages to visit again in this round.
    due: BTreeSet<String>,
    /// The number of rows when the round began.
    rows_before: u64,
    /// The effects of the operator's commands.
    orders: CommandEffects,
    /// The first invariant that was broken.
    pub(super) breach: Option<String>,
    pub(super) requests: u64,
    /// How many times a worker took over a host that another worker had sent requests to.
    pub(super) handovers: u32,
}

impl InvariantChecker {
    /// Creates a checker of the directories of one or more workers.
    pub(super) fn new(dirs: &[PathBuf], warc: bool) -> InvariantChecker {
        let records = dirs.iter().map(|dir| WorkerRecords {
            dir: dir.clone(),
            read_to: 0,
            rows: CrawlTotals::default(),
            is_unclean: false,
            was_frozen: false,
        });
        InvariantChecker {
            records: records.collect(),
            max_pages: None,
            politeness: Politeness::default(),
            warc,
            round: 1,
            seen: BTreeMap::new(),
            waits: HashMap::new(),
            hosts: HashMap::new(),
            origins: BTreeMap::new(),
            settled: BTreeSet::new(),
            linking: BTreeSet::new(),
            visits: BTreeMap::new(),
            due: BTreeSet::new(),
            rows_before: 0,
            orders: CommandEffects::default(),
            breach: None,
            requests: 0,
            handovers: 0,
        }
    }

    pub(super) fn require(&mut self, is_kept: bool, breach: impl FnOnce() -> String) {
        if !is_kept && self.breach.is_none() {
            self.breach = Some(breach());
        }
    }

    /// Begins a life of the program. If the last life sent requests and did not end cleanly, every
    /// host of the worker waits a full delay.
    pub(super) fn begin(&mut self, worker: usize, now: Tick, config: &Config) {
        let politeness = &config.politeness;
        self.orders.excluded.clone_from(&config.scope.exclude);
        let records = &mut self.records[worker];
        let was_unclean = std::mem::take(&mut records.is_unclean);
        records.was_frozen = false;
        let hosts = self.hosts.values_mut();
        for host in hosts.filter(|host| was_unclean && host.worker == worker) {
            if let Some((end, _)) = &mut host.earlier {
                *end = now;
            }
        }
        // A restored wait is at most the longest `Retry-After` that the operator allows now.
        for wait in self.waits.values_mut().flatten() {
            wait.until = wait.until.min(wait.end + politeness.max_retry_after);
        }
        self.politeness = politeness.clone();
    }

    /// Enters a round that began at this time, in seconds. In a new round, the crawl must revisit
    /// exactly the pages whose next visits were due by then.
    pub(super) fn enter_round(&mut self, number: u32, began: u32) {
        if number == self.round {
            return;
        }
        let last = self.round;
        self.require(number == last + 1, || {
            format!("round {number} follows round {last}")
        });
        self.round = number;
        let due = self.visits.iter().filter(|(_, due)| **due <= began);
        self.due = due.map(|(url, _)| url.clone()).collect();
        self.rows_before = self.rows();
    }

    pub(super) fn round(&self) -> u32 {
        self.round
    }

    /// Returns whether a page was visited in an earlier round.
    fn is_old(&self, url: &str) -> bool {
        let visits = self
            .settled
            .range((url.to_owned(), 0)..(url.to_owned(), self.round));
        visits.count() > 0
    }

    pub(super) fn end(
        &mut self,
        worker: usize,
        now: Tick,
        death: LifeEndCause,
        disk: &SimulatedDisk,
    ) {
        let records = &mut self.records[worker];
        let synced = disk.synced(&records.dir.join("requests.jsonl"));
        let CommandEffects {
            parked,
            added,
            named,
            delay,
            host_delays,
            ..
        } = std::mem::take(&mut self.orders);
        let ordered = host_delays.into_values().chain(delay).min();
        let set = self.politeness.delay;
        let delay = ordered.map_or(set, |ordered| ordered.min(set));
        self.orders = CommandEffects {
            parked,
            added,
            named,
            ..CommandEffects::default()
        };
        let seen = std::mem::take(&mut self.seen).into_iter();
        let (own, others): (Vec<_>, Vec<_>) = seen.partition(|(_, seen)| seen.worker == worker);
        self.seen = others.into_iter().collect();
        records.is_unclean = death != LifeEndCause::Clean && !own.is_empty();
        for host in self.hosts.values_mut() {
            if host.worker == worker {
                host.end_life(now, delay, death == LifeEndCause::Clean);
            }
        }
        // The first page after an answer for robots.txt may be requested under an expired copy.
        // After a restart this no longer applies, so count a page.
        for (origin, seen) in &mut self.origins {
            let host = self.hosts.get(origin.host_key().host());
            if host.is_none_or(|host| host.worker == worker) {
                seen.pages += 1;
            }
        }
        for (_, seen) in own {
            if let (Some(end), Some(until), Some(length)) = (seen.end, seen.wait_until, seen.logged)
            {
                let only = (death != LifeEndCause::Clean).then_some((worker, length));
                let waits = self.waits.entry(seen.host).or_default();
                waits.push(EarlierRunWait { only, end, until });
            }
        }
        if death == LifeEndCause::PowerCut {
            let is_kept = |wait: &EarlierRunWait| {
                wait.only
                    .is_none_or(|(by, length)| by != worker || length <= synced)
            };
            for waits in self.waits.values_mut() {
                waits.retain(is_kept);
            }
        }
    }

    /// Records that a command is posted.
    pub(super) fn commanded(&mut self, command: &CrawlCommand) {
        match command {
            CrawlCommand::Resume => self.orders.is_paused = false,
            CrawlCommand::Add(url) => {
                self.orders.named.insert(url.clone());
            }
            CrawlCommand::Unpark(host) => {
                self.orders.parked.remove(host.as_str());
                self.orders.unparking.push(host.as_str().to_owned());
            }
            _ => {}
        }
    }

    /// Records that a command was carried out.
    pub(super) fn obeyed(&mut self, now: Tick, command: &CrawlCommand) {
        let orders = &mut self.orders;
        match command {
            CrawlCommand::Pause => orders.is_paused = true,
            // Commands to park and unpark a host are answered once they are committed. So a later
            // command to unpark this host may already have taken effect.
            CrawlCommand::Park(host)
                if orders.unparking.iter().all(|other| other != host.as_str()) =>
            {
                orders.parked.insert(host.as_str().to_owned());
            }
            // Accept the command even if the host is not parked, because a command to park the
            // host may be sent at the same time.
            CrawlCommand::Unpark(host) => {
                orders.parked.remove(host.as_str());
                let position = orders
                    .unparking
                    .iter()
                    .position(|other| other == host.as_str());
                position.map(|position| orders.unparking.swap_remove(position));
            }
            CrawlCommand::Add(url) => orders.added.push(url.clone()),
            CrawlCommand::Rules(rules) => {
                orders.excluded.clone_from(&rules.exclude);
                // Delays of earlier commands override the reloaded settings.
                orders.longer_since = Some(now);
            }
            CrawlCommand::Delay { host, delay } => {
                orders.longer_since = Some(now);
                match host {
                    Some(host) => {
                        orders.host_delays.insert(host.as_str().to_owned(), *delay);
                    }
                    None => {
                        orders.delay = Some(*delay);
                        let hosts = orders.host_delays.values_mut();
                        hosts.for_each(|of_host| *of_host = (*of_host).min(*delay));
                    }
                }
                // Drop the pauses, because a pause after a failure is a multiple of the delay.
                for host in self.hosts.values_mut() {
                    host.pause = None;
                }
            }
            _ => {}
        }
    }

    /// Returns the delay of a host. Shortly after a delay became longer, returns a shorter one,
    /// because a request may have been permitted before the change.
    fn delay(&self, now: Tick, host: &str) -> Duration {
        let CommandEffects {
            delay,
            host_delays,
            longer_since,
            ..
        } = &self.orders;
        let set = self.politeness.delay;
        let ordered = host_delays.get(host).copied().or(*delay).unwrap_or(set);
        match longer_since.is_some_and(|since| now < since + LOOK_UP) {
            true => ordered.min(set).min(Duration::from_secs(1)),
            false => ordered,
        }
    }

    /// Records that a worker's process is frozen for a while.
    pub(super) fn froze(&mut self, worker: usize) {
        self.records[worker].was_frozen = true;
    }

    /// Checks that a worker has no requests in flight to hosts that it hands over. If the worker's
    /// leases have ended, another worker may have taken the hosts already.
    pub(super) fn handed_over(&mut self, worker: usize, is_left: impl Fn(&HostKey) -> bool) {
        let hosts = self.hosts.iter();
        let mut busy = hosts.filter(|(host, seen)| {
            seen.in_flight > 0 && seen.worker == worker && is_left(&key(host))
        });
        let busy = busy.next().map(|(host, _)| host.clone());
        self.require(busy.is_none(), || {
            format!("{busy:?} is handed over with requests in flight")
        });
    }

    /// Records that a worker takes hosts over, which then wait for a full gap. `is_start` is true
    /// if the worker is about to read its own records. `is_released` is true if the last owner of
    /// the hosts has committed their state.
    pub(super) fn taken_over(
        &mut self,
        worker: usize,
        now: Tick,
        (is_start, is_released): (bool, bool),
        is_taken: impl Fn(&HostKey) -> bool,
        frontier: &dyn Frontier,
    ) {
        let delay = self.politeness.delay;
        let mut busy = None;
        for (name, host) in &mut self.hosts {
            if !is_taken(&key(name)) {
                continue;
            }
            // A frozen process can't abort its requests in time, so its requests may still be in
            // flight.
            if host.in_flight > 0 && !self.records[host.worker].was_frozen {
                busy = Some(name.clone());
            }
            host.end_life(now, delay, is_released);
            host.earlier = Some((now, delay));
            let last = std::mem::replace(&mut host.worker, worker);
            self.handovers += u32::from(last != worker);
            for seen in self.seen.values_mut().filter(|seen| seen.host == *name) {
                seen.is_detached = true;
                seen.wait_until = seen.wait_until.filter(|_| is_released);
            }
            let waits = self.waits.entry(name.clone()).or_default();
            waits.retain(|wait| {
                wait.only
                    .is_none_or(|(by, _)| is_start && by == worker && last == worker)
            });
        }
        self.require(busy.is_none(), || {
            format!("{now}: w{worker} takes over {busy:?} with requests in flight")
        });
        let origins = self.origins.iter_mut();
        for (origin, seen) in origins.filter(|(origin, _)| is_taken(&origin.host_key())) {
            seen.pages += 1;
            if frontier.robots(origin).unwrap().is_none() {
                *seen = SeenOrigin::default();
            }
        }
    }

    /// Forgets the robots.txt files whose copies were not committed.
    pub(super) fn forget_uncommitted(&mut self, frontier: &dyn Frontier) {
        for (origin, seen) in &mut self.origins {
            if frontier.robots(origin).unwrap().is_none() {
                *seen = SeenOrigin::default();
            }
        }
    }
}
