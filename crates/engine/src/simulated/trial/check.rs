//! Checks the invariants of a crawl after each event, from what servers see and what is on disk.
//! Shares no code with the scheduler and the writer, and knows their rules only from
//! `docs/architecture.md`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crawl_archive::rows::{PageRow, RequestRow};
use crawl_fetcher::{Exchange, Failure, FailureKind};
use crawl_frontier::{Frontier, KnownState};
use crawl_scheduler::{Politeness, Tick};
use crawl_weburl::{CanonicalUrl, Origin, canonicalize};

use super::disk::SimulatedDisk;
use super::web::TrialWeb;
use crate::messages::Job;
use crate::summary::Ended;
use crate::totals::Totals;

/// How much later than its permit a request may be sent: its address is looked up first.
const LOOK_UP: Duration = Duration::from_secs(30);
/// The minimum pause after a failed connection.
const PAUSE: Duration = Duration::from_secs(5);
/// How long a robots.txt is valid if it states no time.
const DAY: Duration = Duration::from_secs(86_400);

/// How a life of the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
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
struct Seen {
    url: CanonicalUrl,
    host: String,
    address: IpAddr,
    start: Tick,
    end: Option<Tick>,
    /// Until when the server's answer asked to wait.
    wait_until: Option<Tick>,
    /// The length of `requests.jsonl` with the row of the request.
    logged: Option<u64>,
}

#[derive(Default)]
struct HostSeen {
    in_flight: u32,
    /// The ends of requests in this life.
    ends: Vec<Tick>,
    /// When the last request of earlier lives ended, and the delay at that time.
    earlier: Option<(Tick, Duration)>,
    crawl_delay: Duration,
    pause_until: Option<Tick>,
}

#[derive(Default)]
struct OriginSeen {
    /// The last answer with rules: its end, and how long it is valid.
    usable: Option<(Tick, Duration)>,
    /// Pages requested since then.
    pages: u32,
    /// Whether robots.txt was unreachable since then.
    is_unreachable: bool,
}

pub(super) struct Checker {
    dir: PathBuf,
    politeness: Politeness,
    warc: bool,
    round: u32,
    /// The requests of this life.
    seen: Vec<Seen>,
    /// For each host, the recorded requests of earlier lives that asked to wait: when each ended,
    /// and until when to wait.
    waits: HashMap<String, Vec<(Tick, Tick)>>,
    hosts: HashMap<String, HostSeen>,
    origins: BTreeMap<Origin, OriginSeen>,
    /// Settled pages, each with its round.
    settled: BTreeSet<(String, u32)>,
    /// Pages whose links must be known, by their rows.
    linking: BTreeSet<String>,
    read_to: u64,
    rows: Totals,
    /// Whether the last life sent requests and did not end cleanly.
    is_unclean: bool,
    /// The first broken rule.
    pub(super) breach: Option<String>,
    pub(super) requests: u64,
}

impl Checker {
    pub(super) fn new(dir: &Path, warc: bool) -> Checker {
        Checker {
            dir: dir.to_owned(),
            politeness: Politeness::default(),
            warc,
            round: 1,
            seen: Vec::new(),
            waits: HashMap::new(),
            hosts: HashMap::new(),
            origins: BTreeMap::new(),
            settled: BTreeSet::new(),
            linking: BTreeSet::new(),
            read_to: 0,
            rows: Totals::default(),
            is_unclean: false,
            breach: None,
            requests: 0,
        }
    }

    pub(super) fn require(&mut self, is_kept: bool, breach: impl FnOnce() -> String) {
        if !is_kept && self.breach.is_none() {
            self.breach = Some(breach());
        }
    }

    /// Begins a life of the program. After an unclean end of a life that sent
    /// requests, every host waits a full delay.
    pub(super) fn begin(&mut self, now: Tick, politeness: &Politeness) {
        for host in self.hosts.values_mut() {
            if self.is_unclean
                && let Some((end, _)) = &mut host.earlier
            {
                *end = now;
            }
        }
        self.is_unclean = false;
        // A restored wait is at most the longest `Retry-After` that the operator allows now.
        for (end, until) in self.waits.values_mut().flatten() {
            *until = (*until).min(*end + politeness.max_retry_after);
        }
        self.politeness = politeness.clone();
    }

    pub(super) fn enter_round(&mut self, round: u32) {
        self.round = round;
    }

    /// Ends a life of the program.
    pub(super) fn end(&mut self, now: Tick, death: Death, disk: &SimulatedDisk) {
        let synced = disk.synced(&self.dir.join("requests.jsonl"));
        let delay = self.politeness.delay;
        self.is_unclean = death != Death::Clean && !self.seen.is_empty();
        for host in self.hosts.values_mut() {
            let last = host.ends.iter().max().copied();
            let last = if host.in_flight > 0 { Some(now) } else { last };
            let earlier = last.map(|end| (end, delay)).or(host.earlier);
            let crawl_delay = Duration::ZERO;
            let pause_until = host.pause_until.filter(|_| death == Death::Clean);
            *host = HostSeen {
                earlier,
                crawl_delay,
                pause_until,
                ..HostSeen::default()
            };
        }
        // Only an answer allows a page beyond the age of a copy.
        for origin in self.origins.values_mut() {
            origin.pages += 1;
        }
        for seen in std::mem::take(&mut self.seen) {
            let is_recorded = match (death, seen.logged) {
                (_, None) => false,
                (Death::PowerCut, Some(length)) => length <= synced,
                (Death::Clean | Death::Kill | Death::Failure, Some(_)) => true,
            };
            if let (Some(end), Some(until)) = (seen.end, seen.wait_until)
                && is_recorded
            {
                let waits = self.waits.entry(seen.host).or_default();
                waits.push((end, until));
            }
        }
    }

    /// Forgets the robots.txt files whose copies were not committed.
    pub(super) fn forget_uncommitted(&mut self, frontier: &dyn Frontier) {
        for (origin, seen) in &mut self.origins {
            if frontier.robots(origin).unwrap().is_none() {
                *seen = OriginSeen::default();
            }
        }
    }

    /// Checks a request that is sent now. Returns its number.
    pub(super) fn sent(
        &mut self,
        now: Tick,
        job: &Job,
        web: &TrialWeb,
        frontier: &dyn Frontier,
    ) -> usize {
        self.requests += 1;
        let url = job.url().clone();
        let host = url.host().to_owned();
        self.check_robots(now, job, web);
        self.check_limits(now, &host);
        self.check_gap(now, &host, &url);
        if let Job::Page { .. } = job {
            let is_settled = self.settled.contains(&(url.to_string(), self.round));
            self.require(!is_settled, || {
                format!("{url} is settled and requested again")
            });
            let state = frontier.known(&url).unwrap().map(|url| url.state);
            let is_leased = matches!(state, Some(KnownState::Leased { .. }));
            self.require(is_leased, || {
                format!("{url} is requested in state {state:?}")
            });
        }
        let address = TrialWeb::address(&host);
        self.hosts.entry(host.clone()).or_default().in_flight += 1;
        self.seen.push(Seen {
            url,
            host,
            address,
            start: now,
            end: None,
            wait_until: None,
            logged: None,
        });
        self.seen.len() - 1
    }

    fn check_robots(&mut self, now: Tick, job: &Job, web: &TrialWeb) {
        let Job::Page { lease, .. } = job else {
            return;
        };
        let url = &lease.url;
        self.require(web.allows(url), || format!("robots.txt disallows {url}"));
        let origin = self.origins.entry(url.origin()).or_default();
        let is_first = origin.pages == 0 || origin.is_unreachable;
        origin.pages += 1;
        let usable = origin.usable;
        let is_fresh = usable.is_some_and(|(end, valid)| is_first || now <= end + valid + LOOK_UP);
        self.require(is_fresh, || {
            format!("no fresh robots.txt for {url}: {usable:?}")
        });
        // The host has a pace only once its rules are read.
        let host = self.hosts.entry(url.host().to_owned()).or_default();
        if is_fresh {
            host.crawl_delay = web.crawl_delay(url.host());
        }
    }

    fn check_limits(&mut self, now: Tick, host: &str) {
        let in_flight = self.seen.iter().filter(|seen| seen.end.is_none());
        let address = TrialWeb::address(host);
        let to_address = in_flight.clone().filter(|seen| seen.address == address);
        let (all, to_address) = (in_flight.count() as u32, to_address.count() as u32);
        let limits = &self.politeness;
        let is_kept = all < limits.concurrency && to_address < limits.per_address;
        self.require(is_kept, || {
            format!("{now}: {all} requests in flight, {to_address} to {address}")
        });
        let ended = self.seen.iter().filter(|seen| seen.end.is_some());
        let unlogged = ended.filter(|seen| seen.host == host && seen.logged.is_none());
        let unlogged = unlogged.map(|seen| seen.url.to_string()).next();
        self.require(unlogged.is_none(), || {
            format!("a request to {host} before the row of {unlogged:?}")
        });
    }

    fn check_gap(&mut self, now: Tick, host: &str, url: &CanonicalUrl) {
        let waits = self.seen.iter().filter(|seen| seen.host == host);
        let waits = waits.filter_map(|seen| seen.wait_until);
        // A wait that is restored from `requests.jsonl` has lost its microseconds.
        let earlier = self.waits.get(host).into_iter().flatten();
        let earlier = earlier.map(|(_, until)| until.as_micros() / 1000 * 1000);
        let wait = waits.chain(earlier.map(Tick::from_micros)).max();
        self.require(wait.is_none_or(|until| until <= now), || {
            format!("{now}: {url} is requested before the wait until {wait:?} is over")
        });
        let delay = self.politeness.delay;
        let seen = self.hosts.entry(host.to_owned()).or_default();
        let pause = seen.pause_until;
        let gap = delay.max(seen.crawl_delay);
        let width = match seen.crawl_delay {
            Duration::ZERO => self.politeness.per_host,
            _ => 1,
        };
        let recent = seen.ends.iter().filter(|end| **end + gap > now).count() as u32;
        let busy = recent + seen.in_flight;
        let last = seen.ends.iter().max().copied();
        let earlier = seen.earlier;
        self.require(busy < width, || {
            format!("{now}: {url} is requested within {gap:?} after {last:?}, {busy} of {width}")
        });
        self.require(pause.is_none_or(|until| until <= now), || {
            format!("{now}: {url} is requested in the pause until {pause:?}")
        });
        let is_late = earlier.is_none_or(|(end, before)| end + before.min(delay) <= now);
        let is_alone = self.politeness.per_host == 1;
        self.require(is_late || !is_alone, || {
            format!("{now}: {url} is requested too soon after {earlier:?} of an earlier run")
        });
    }

    /// Records how a request ended.
    pub(super) fn ended(
        &mut self,
        now: Tick,
        number: usize,
        job: &Job,
        result: &Result<Exchange, Failure>,
    ) {
        let seen = &mut self.seen[number];
        seen.end = Some(now);
        let host = self.hosts.entry(seen.host.clone()).or_default();
        host.in_flight -= 1;
        host.ends.push(now);
        let answer = result.as_ref().ok();
        let status = answer.map(|answer| answer.status);
        let field = |name: &str| {
            let value = answer?.headers.get(name)?.to_str().ok()?;
            value.trim_start_matches("max-age=").parse().ok()
        };
        if matches!(status, Some(429 | 503)) {
            let wait = field("retry-after").map(Duration::from_secs);
            let wait = wait.map(|wait| wait.min(self.politeness.max_retry_after));
            seen.wait_until = Some(now + wait.unwrap_or(self.politeness.wait_first));
        }
        let has_failed = |failure: &Failure| failure.kind == FailureKind::ConnectRefused;
        if result.as_ref().is_err_and(has_failed) && self.politeness.per_host == 1 {
            host.pause_until = Some(now + PAUSE.max(10 * self.politeness.delay));
        }
        if let Job::Robots { of, .. } = job {
            let origin = self.origins.entry(of.clone()).or_default();
            match status {
                Some(200..=299 | 400..=428 | 430..=499) => {
                    let valid = field("cache-control").map_or(DAY, Duration::from_secs);
                    *origin = OriginSeen {
                        usable: Some((now, valid)),
                        ..OriginSeen::default()
                    };
                }
                Some(300..400) => {}
                _ => origin.is_unreachable = true,
            }
        }
    }

    /// Records that the row of a request is in `requests.jsonl`, which now has this length.
    pub(super) fn logged(&mut self, row: &RequestRow, length: u64) {
        let seen = self.seen.iter_mut().find(|seen| {
            let is_same = seen.start.as_millis() == row.start && seen.url.as_str() == row.url;
            is_same && seen.end.is_some() && seen.logged.is_none()
        });
        match seen {
            Some(seen) => seen.logged = Some(length),
            None => self.require(false, || format!("no server saw the request of {row:?}")),
        }
    }

    /// Checks a commit: files must be synced up to their committed lengths, and the rows must agree
    /// with the state and the totals.
    pub(super) fn committed(
        &mut self,
        frontier: &dyn Frontier,
        disk: &SimulatedDisk,
        totals: &Totals,
    ) {
        let marks = frontier.marks().unwrap();
        for (name, length) in &marks {
            let synced = disk.synced(&self.dir.join(name));
            self.require(*length <= synced, || {
                format!("{name} is committed to {length}, but synced to {synced}")
            });
        }
        let synced = disk.synced(&self.dir.join("requests.jsonl"));
        let to = marks.get("pages.jsonl").copied().unwrap_or(0);
        for row in self.new_rows(to) {
            self.check_row(&row, frontier, (&marks, synced));
        }
        let rows = self.rows;
        let is_equal = (totals.pages, totals.failed) == (rows.pages, rows.failed);
        self.require(is_equal, || format!("{totals:?} of {rows:?}"));
        let counts = frontier.counts();
        let states = counts.pending
            + counts.leased
            + counts.fetched
            + counts.failed
            + counts.excluded
            + counts.deferred;
        self.require(states == counts.known, || format!("{counts:?}"));
    }

    fn new_rows(&mut self, to: u64) -> Vec<PageRow> {
        let mut rows = Vec::new();
        if to == self.read_to {
            return rows;
        }
        let mut file = BufReader::new(File::open(self.dir.join("pages.jsonl")).unwrap());
        file.seek(SeekFrom::Start(self.read_to)).unwrap();
        while self.read_to < to {
            let mut line = String::new();
            file.read_line(&mut line).unwrap();
            self.read_to += line.len() as u64;
            match serde_json::from_str(&line) {
                Ok(row) => rows.push(row),
                Err(error) => self.require(false, || format!("a torn row: {line:?}: {error}")),
            }
        }
        let read_to = self.read_to;
        self.require(read_to == to, || format!("rows end at {read_to}, not {to}"));
        rows
    }

    fn check_row(
        &mut self,
        row: &PageRow,
        frontier: &dyn Frontier,
        (marks, synced): (&BTreeMap<String, u64>, u64),
    ) {
        let is_failed = row.status.is_none_or(|status| status >= 400);
        self.rows.pages += 1;
        self.rows.failed += u64::from(is_failed);
        let url = &row.url;
        let is_new = self.settled.insert((url.clone(), row.round));
        self.require(is_new, || {
            format!("{url} has two rows in round {}", row.round)
        });
        let canonical = canonicalize(None, url).unwrap();
        let state = frontier.known(&canonical).unwrap().map(|url| url.state);
        let is_settled = matches!(
            state,
            Some(KnownState::Fetched { .. } | KnownState::Failed { .. })
        );
        self.require(is_settled, || format!("{url} has a row, and is {state:?}"));
        let place = row.warc.as_ref();
        let length = place.and_then(|place| marks.get(&format!("archive/{}", place.file)));
        let is_archived = place.is_some_and(|place| length.is_some_and(|end| place.offset < *end));
        let needs_archive = self.warc && row.status.is_some() && row.withheld.is_none();
        self.require(is_archived || !needs_archive, || {
            format!("{url} is settled without its record: {place:?}, {length:?}")
        });
        if row.status == Some(200) && row.error.is_none() {
            self.linking.insert(url.clone());
        }
        let mut requests = self.seen.iter().filter(|seen| seen.url == canonical);
        if let Some(last) = requests.next_back() {
            let logged = last.logged;
            self.require(logged.is_some_and(|length| length <= synced), || {
                format!("{url} is settled, but its request is not synced: {logged:?} of {synced}")
            });
        }
    }

    /// Checks a crawl that is finished: nothing is left, and every link is known.
    pub(super) fn finished(&mut self, web: &TrialWeb, frontier: &dyn Frontier) {
        let counts = frontier.counts();
        let is_done = counts.pending + counts.leased == 0;
        self.require(is_done, || format!("finished with {counts:?}"));
        for page in std::mem::take(&mut self.linking) {
            let page = canonicalize(None, &page).unwrap();
            for link in web.links(&page) {
                let url = canonicalize(None, &link).unwrap();
                let is_known = frontier.known(&url).unwrap().is_some();
                self.require(is_known, || format!("{url} is linked by {page} and lost"));
            }
        }
    }

    /// Checks the reason for which a run ended. Only a run that is not saved may lose rows of
    /// requests.
    pub(super) fn over(&mut self, ended: &Ended, is_saved: bool, max_pages: Option<u64>) {
        let pages = self.rows.pages;
        let is_full = max_pages.is_some_and(|max| pages >= max);
        let is_spent = *ended == Ended::Budget("max-pages");
        self.require(is_full || !is_spent, || {
            format!("{pages} pages end a run of {max_pages:?}")
        });
        let unlogged = self.seen.iter().find(|seen| seen.logged.is_none());
        let unlogged = unlogged.map(|seen| seen.url.to_string());
        self.require(unlogged.is_none() || !is_saved, || {
            format!("the run ended without the row of {unlogged:?}")
        });
    }

    /// Returns the number of rows.
    pub(super) fn rows(&self) -> u64 {
        self.rows.pages
    }
}
