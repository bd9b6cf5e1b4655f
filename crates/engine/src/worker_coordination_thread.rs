//! Cooperates with the other workers of a crawl: balances buckets (sets of hosts), takes links
//! found by other workers, and detects the end of the whole crawl.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crawl_frontier::FrontierError;
use crawl_frontier::worker_frontier::{
    SendDeadline, SharedCrawlStatus, SharedFrontierError, WorkerFrontier,
};
use crawl_weburl::HostKey;

use crate::config::Config;
use crate::messages::Event;
use crate::messages::shared_frontier_messages::{
    HostOwnership, SharedFrontierNews, SharedFrontierRequest,
};

/// The number of checks of the other workers during the duration of a lease.
const LOOKS_PER_LEASE: u32 = 60;
/// The minimum interval between two checks of the other workers.
const MIN_LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// The maximum interval between two checks of the other workers.
const MAX_LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The number of consecutive checks that must find a group of frontier servers without a worker
/// before a warning is logged. A group may have no worker at first, since workers don't start at
/// exactly the same time.
const LOOKS_BEFORE_WARNING: u32 = 20;

/// Maximum additional pages to grant to a worker at a time.
const MAX_ALLOWED_AT_ONCE: u64 = 256;

/// Determines for the crawl loop which hosts this worker owns in a shared frontier.
pub(crate) struct WorkerHostOwnership {
    frontier: Arc<dyn WorkerFrontier>,
    guard: Arc<dyn SendDeadline>,
}

impl WorkerHostOwnership {
    pub(crate) fn new(frontier: Arc<dyn WorkerFrontier>) -> WorkerHostOwnership {
        let guard = frontier.send_deadline();
        WorkerHostOwnership { frontier, guard }
    }
}

impl HostOwnership for WorkerHostOwnership {
    fn bucket_of(&self, host: &HostKey) -> i32 {
        self.frontier.bucket_of(host)
    }

    fn owns(&self, host: &HostKey) -> bool {
        self.frontier.owns(host)
    }

    fn bucket_epochs(&self) -> BTreeMap<i32, i64> {
        self.frontier.bucket_epochs()
    }

    fn taken_over_for(&self, host: &HostKey) -> Option<Duration> {
        self.frontier.taken_over_for(host)
    }

    fn leased_buckets(&self) -> BTreeSet<i32> {
        self.frontier.leased_buckets()
    }

    fn may_send(&self) -> bool {
        !self.guard.is_over()
    }
}

/// Tells the fetcher when this worker's leases expire, so that no request outlasts them.
pub(crate) struct LeaseDeadlineSource(pub(crate) Arc<dyn SendDeadline>);

impl crawl_fetcher::SendDeadlineSource for LeaseDeadlineSource {
    fn ends_at(&self) -> Instant {
        self.0.ends_at()
    }
}

/// The thread that communicates with the shared frontier, so that the crawl loop never waits for a
/// reply.
pub(crate) struct WorkerCoordinationThread {
    requests: Sender<SharedFrontierRequest>,
    thread: JoinHandle<()>,
}

impl WorkerCoordinationThread {
    /// Starts the thread. `send_event` sends an event to the crawl loop, and returns false if the
    /// loop has ended.
    pub(crate) fn start(
        frontier: Arc<dyn WorkerFrontier>,
        config: &Config,
        send_event: impl Fn(Event) -> bool + Send + 'static,
    ) -> io::Result<WorkerCoordinationThread> {
        let (requests, received) = channel();
        let links = SharingThreadState::new(frontier, config, send_event);
        let thread = std::thread::Builder::new()
            .name("crawl-workers".to_owned())
            .spawn(move || links.run(&received))?;
        Ok(WorkerCoordinationThread { requests, thread })
    }

    /// Sends a request to the thread. If the thread has ended, the crawl is ending, so the request
    /// is dropped.
    pub(crate) fn send(&self, request: SharedFrontierRequest) {
        let _ = self.requests.send(request);
    }

    pub(crate) fn end(self) {
        drop(self.requests);
        // Ignore a panic of the thread: it has already ended the crawl.
        let _ = self.thread.join();
    }
}

/// The coordinator's reports of rests, which are times without work.
#[derive(Default)]
struct RestReports {
    /// The number of the current rest. `None` while the coordinator has work.
    current: Option<u64>,
    /// How many pieces of news of work ([`SharedFrontierNews::gives_work`]) were sent to the
    /// coordinator.
    work_news: u64,
}

impl RestReports {
    fn note_news(&mut self, news: &SharedFrontierNews) {
        self.work_news += u64::from(news.gives_work());
    }

    /// Handles a report that the coordinator sent after it had handled `work_news` pieces of news
    /// of work. Returns false if more news of work is on its way to the coordinator, because the
    /// report is then outdated. If the frontier recorded an outdated rest, the other workers could
    /// end although this worker has work.
    fn report(&mut self, rest: Option<u64>, work_news: u64) -> bool {
        let is_current = rest.is_none() || work_news == self.work_news;
        if is_current {
            self.current = rest;
        }
        is_current
    }
}

/// The state of the thread that communicates with the shared frontier. Only
/// [`SharingThreadState::run`] reads a clock, so simulations call the other methods.
pub(crate) struct SharingThreadState<SendEvent> {
    frontier: Arc<dyn WorkerFrontier>,
    send_event: SendEvent,
    /// The time between two checks of the other workers.
    pub(crate) interval: Duration,
    /// Maximum pages of all workers together.
    max_pages: Option<u64>,
    counts_bytes: bool,
    rests: RestReports,
    /// The last report that a rest began or ended, with the number of pages that this worker has
    /// used. `None` once the frontier has recorded the report.
    unreported: Option<(bool, Option<u64>)>,
    is_drained: bool,
    /// Buckets (sets of hosts) that this worker must hand over but hasn't yet.
    leaving: BTreeSet<i32>,
    /// Buckets (sets of hosts) that the coordinator has handed over. The frontier has not recorded
    /// this yet.
    unrecorded: BTreeSet<i32>,
    /// Reloaded settings that the frontier has not recorded yet.
    new_settings: Option<String>,
    /// The version of the crawl's metadata when this worker last took links.
    crawl_meta: u64,
    /// The request for permission to fetch more pages that is not granted yet: this worker's page
    /// count, and the number of its rests (times without work) before the request.
    wanted: Option<(u64, u64)>,
    living: u64,
    /// A group of frontier servers that has work but no worker, and how many checks in a row found
    /// this.
    unserved: Option<(i32, u32)>,
}

impl<SendEvent: Fn(Event) -> bool> SharingThreadState<SendEvent> {
    pub(crate) fn new(
        frontier: Arc<dyn WorkerFrontier>,
        config: &Config,
        send_event: SendEvent,
    ) -> SharingThreadState<SendEvent> {
        let lease = config
            .shared
            .as_ref()
            .map_or(Duration::ZERO, |shared| shared.lease);
        SharingThreadState {
            frontier,
            send_event,
            interval: (lease / LOOKS_PER_LEASE).clamp(MIN_LOOK_INTERVAL, MAX_LOOK_INTERVAL),
            max_pages: config.budgets.max_pages,
            counts_bytes: config.budgets.max_bytes.is_some(),
            rests: RestReports::default(),
            unreported: None,
            is_drained: false,
            leaving: BTreeSet::new(),
            unrecorded: BTreeSet::new(),
            new_settings: None,
            crawl_meta: 0,
            wanted: None,
            living: 1,
            unserved: None,
        }
    }

    fn run(mut self, requests: &Receiver<SharedFrontierRequest>) {
        let mut next_look = Instant::now();
        loop {
            let timeout = next_look.saturating_duration_since(Instant::now());
            let done = match requests.recv_timeout(timeout) {
                Ok(request) => self.perform(request),
                Err(RecvTimeoutError::Timeout) => {
                    next_look = Instant::now() + self.interval;
                    self.look()
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if !self.continues_after(done) {
                return;
            }
        }
    }

    /// Checks the result of an operation. Returns false, and notifies the crawl loop, if the worker
    /// must end. If only the database did not answer, the thread continues while the worker's
    /// leases are valid.
    pub(crate) fn continues_after(&self, done: Result<(), FrontierError>) -> bool {
        let Err(error) = done else { return true };
        let error = match self.frontier.check() {
            Ok(())
                if matches!(
                    error,
                    FrontierError::Shared(SharedFrontierError::DatabaseServer { .. })
                ) =>
            {
                tracing::warn!(%error, "the frontier did not answer");
                return true;
            }
            Ok(()) => error,
            Err(lost) => lost,
        };
        (self.send_event)(Event::Broken(error.into()));
        false
    }

    fn news(&mut self, news: SharedFrontierNews) {
        self.rests.note_news(&news);
        // Ignore failure: if the loop has ended, this thread ends soon too.
        (self.send_event)(Event::Shared(news));
    }

    /// Performs a request of the crawl loop.
    pub(crate) fn perform(&mut self, request: SharedFrontierRequest) -> Result<(), FrontierError> {
        match request {
            SharedFrontierRequest::HandOver(buckets) => {
                self.unrecorded.extend(buckets);
                self.hand_over()
            }
            SharedFrontierRequest::Rest {
                rest,
                pages,
                work_news,
            } => {
                if !self.rests.report(rest, work_news) {
                    return Ok(());
                }
                self.wanted = None;
                let pages = self.max_pages.and(rest).map(|_| pages);
                self.unreported = Some((rest.is_some(), pages));
                self.report_rest()
            }
            SharedFrontierRequest::MorePages { pages, rests } => {
                self.wanted = Some((pages, rests));
                self.request_pages()
            }
            SharedFrontierRequest::ReplaceSettings(settings) => {
                self.new_settings = Some(settings);
                self.replace_settings()
            }
        }
    }

    /// Records reloaded settings in the frontier, so that workers with these settings can join. If
    /// the frontier does not answer, the next check tries again.
    fn replace_settings(&mut self) -> Result<(), FrontierError> {
        if let Some(settings) = &self.new_settings {
            self.frontier.replace_settings(settings)?;
            self.new_settings = None;
        }
        Ok(())
    }

    /// Records in the frontier that buckets (sets of hosts) are handed over. If the frontier does
    /// not answer, the next check tries again.
    fn hand_over(&mut self) -> Result<(), FrontierError> {
        if self.unrecorded.is_empty() {
            return Ok(());
        }
        let buckets: Vec<i32> = self.unrecorded.iter().copied().collect();
        self.frontier.hand_over(&buckets)?;
        self.leaving
            .retain(|bucket| !self.unrecorded.contains(bucket));
        self.unrecorded.clear();
        self.news(SharedFrontierNews::HandedOver(buckets));
        Ok(())
    }

    /// Reports a rest or its end to the frontier. If the frontier does not answer, the next check
    /// tries again. Without the report, the crawl might never end, or the other workers might end
    /// while this one has work.
    fn report_rest(&mut self) -> Result<(), FrontierError> {
        // Hand over the buckets (sets of hosts) first. A resting worker's pending URLs don't keep
        // the crawl from ending. So if the frontier still counted these buckets as this worker's,
        // the crawl could end although their URLs are pending.
        self.hand_over()?;
        if let Some((rests, pages)) = self.unreported {
            self.frontier.set_idle(rests, pages)?;
            self.unreported = None;
        }
        Ok(())
    }

    /// Requests pages from the shared budget. If none are left, the next check tries again.
    fn request_pages(&mut self) -> Result<(), FrontierError> {
        let (Some((pages, rests)), Some(max)) = (self.wanted, self.max_pages) else {
            return Ok(());
        };
        // Report the rest first. If it were reported after the grant, the frontier would take back
        // the granted pages.
        self.report_rest()?;
        let fair = max / (4 * self.living.max(1));
        let more = fair.clamp(1, MAX_ALLOWED_AT_ONCE);
        let allowed = self.frontier.allow(pages, more, max)?;
        if allowed > pages {
            self.wanted = None;
            let pages = allowed;
            self.news(SharedFrontierNews::Allowed { pages, rests });
        }
        Ok(())
    }

    /// Checks the state of the other workers.
    pub(crate) fn look(&mut self) -> Result<(), FrontierError> {
        self.frontier.check()?;
        self.replace_settings()?;
        self.report_rest()?;
        let survey = self.frontier.survey()?;
        self.living = survey.living;
        if self.counts_bytes {
            self.news(SharedFrontierNews::OthersBytes(survey.others_bytes));
        }
        if self.max_pages.is_some_and(|max| survey.pages >= max) {
            self.news(SharedFrontierNews::PagesSpent);
        }
        if survey.is_drained && !std::mem::replace(&mut self.is_drained, true) {
            self.news(SharedFrontierNews::Drain);
        }
        let is_more_kept = survey.crawl_meta > self.crawl_meta;
        if survey.has_own_unqueued_work || is_more_kept {
            // Report the work before taking the links. Until the links are taken, they keep the
            // crawl from ending. After that, only the report does.
            self.note_work()?;
            self.crawl_meta = survey.crawl_meta;
            self.news(SharedFrontierNews::LinksWait);
        }
        self.request_pages()?;
        for group in &survey.to_forward {
            self.frontier.forward_links(*group)?;
        }
        self.warn_of_unserved(survey.unserved_group);
        let rest = self.rests.current.filter(|_| is_over(&survey));
        if let Some(rest) = rest {
            // Take no buckets (sets of hosts) at the end of the crawl. Buckets of workers that have
            // ended stay without an owner, because these workers have already listed the deferred
            // URLs.
            self.news(SharedFrontierNews::Over { rest });
        } else if !self.is_drained {
            self.balance(&survey)?;
        }
        Ok(())
    }

    /// Warns once if a group of frontier servers has had work but no worker for a while.
    fn warn_of_unserved(&mut self, group: Option<i32>) {
        self.unserved = group.map(|group| match self.unserved {
            Some((before, looks)) if before == group => (group, looks.saturating_add(1)),
            _ => (group, 1),
        });
        if let Some((group, LOOKS_BEFORE_WARNING)) = self.unserved {
            tracing::warn!(
                "group {group} of the frontier has URLs to fetch but no worker, so this crawl \
                 does not end; hint: start a worker with a new --worker name to serve the group"
            );
        }
    }

    /// Reports to the shared frontier that this worker has work. When the worker has no work, the
    /// coordinator reports that.
    fn note_work(&mut self) -> Result<(), FrontierError> {
        if self.rests.current.take().is_some() {
            let pages = self.unreported.and_then(|(_, pages)| pages);
            self.unreported = Some((false, pages));
        }
        self.report_rest()
    }

    /// Takes free buckets (sets of hosts) if this worker owns less than its fair share, or hands
    /// over its surplus. Always hands over buckets that must move to another group of frontier
    /// servers.
    fn balance(&mut self, survey: &SharedCrawlStatus) -> Result<(), FrontierError> {
        // Hand over buckets (sets of hosts) that must move, even if this worker owns less than its
        // fair share.
        let moving = survey.moving.iter().copied();
        let moving: Vec<i32> = moving
            .filter(|bucket| self.leaving.insert(*bucket))
            .collect();
        if !moving.is_empty() {
            self.news(SharedFrontierNews::Leave(moving));
        }
        let owned = self.frontier.owned_buckets();
        let count = owned.len() as u64;
        let served = self.frontier.served_buckets();
        let fair = served.div_ceil(survey.group_living.max(1));
        let wanted = fair.saturating_sub(count).min(survey.free_buckets);
        if wanted > 0 {
            // Report the work before taking the buckets (sets of hosts), because a worker that owns
            // pending URLs has work.
            let taken = self
                .note_work()
                .and_then(|()| self.frontier.take_free(wanted));
            // Send the news even if the frontier doesn't answer. The report above may have ended
            // this worker's rest, even though the worker got no buckets. The news makes the
            // coordinator report a new rest.
            let (origins, done) = match taken {
                Ok((_, origins)) => (origins, Ok(())),
                Err(error) => (Vec::new(), Err(error)),
            };
            self.news(SharedFrontierNews::Taken(origins));
            return done;
        }
        let staying = count.saturating_sub(self.leaving.len() as u64);
        let surplus = usize::try_from(staying.saturating_sub(fair)).unwrap_or(usize::MAX);
        if surplus > 0 {
            let staying = owned
                .into_iter()
                .filter(|bucket| !self.leaving.contains(bucket));
            let staying: Vec<i32> = staying.collect();
            // Choose buckets (sets of hosts) that are far apart, because neighbouring ones may have
            // come from the same worker.
            let each = staying.len().checked_div(surplus).unwrap_or(1);
            let leaving: Vec<i32> = staying
                .into_iter()
                .step_by(each.max(1))
                .take(surplus)
                .collect();
            self.leaving.extend(&leaving);
            self.news(SharedFrontierNews::Leave(leaving));
        }
        Ok(())
    }
}

/// Returns whether no worker has anything left to do. Called only by a worker without work.
fn is_over(survey: &SharedCrawlStatus) -> bool {
    !survey.has_unqueued_work && survey.pending_open == 0
}

#[cfg(test)]
mod tests {
    use crawl_frontier::{MemoryCrawl, MemoryWorker, UrlToAdmit};

    use super::*;
    use crate::simulated_crawl_tests::config;

    #[test]
    fn a_crawl_is_over_when_no_worker_has_anything_to_do() {
        let survey = SharedCrawlStatus {
            living: 2,
            ..SharedCrawlStatus::default()
        };
        assert!(is_over(&survey));
        let waits = SharedCrawlStatus {
            has_unqueued_work: true,
            ..survey.clone()
        };
        let works = SharedCrawlStatus {
            pending_open: 3,
            ..survey.clone()
        };
        assert!(!is_over(&waits) && !is_over(&works));
    }

    /// Starts two workers of a crawl. The first one owns the only bucket, with one pending URL.
    fn worker_with_url_and_other() -> (Arc<MemoryWorker>, Arc<MemoryWorker>) {
        let crawl = MemoryCrawl::new(1, Duration::from_secs(60), Instant::now);
        let worker = crawl.open("w0", None).unwrap();
        let mut seeding = worker.begin_worker().unwrap();
        let url = crawl_weburl::canonicalize(None, "http://a.example/").unwrap();
        seeding.admit(UrlToAdmit::seed(url)).unwrap();
        seeding.commit().unwrap();
        let other = crawl.open("w1", None).unwrap();
        (worker, other)
    }

    #[test]
    fn a_report_that_the_frontier_did_not_answer_is_repeated() {
        let (worker, other) = worker_with_url_and_other();
        let config = config(std::path::Path::new("unused"));
        let mut links = SharingThreadState::new(Arc::clone(&worker) as _, &config, |_| true);
        let report = |rest| SharedFrontierRequest::Rest {
            rest,
            pages: 0,
            work_news: 0,
        };
        for (rest, pending) in [(Some(1), 0), (None, 1)] {
            worker.cut_off(true);
            assert!(links.perform(report(rest)).is_err() && links.look().is_err());
            worker.cut_off(false);
            links.look().unwrap();
            assert_eq!(other.survey().unwrap().pending_open, pending);
        }
        links.perform(report(Some(2))).unwrap();
        worker.cut_off(true);
        assert!(links.note_work().is_err());
        worker.cut_off(false);
        links.look().unwrap();
        assert_eq!(other.survey().unwrap().pending_open, 1);
    }

    #[test]
    fn a_hand_over_that_the_frontier_did_not_answer_is_repeated_before_a_rest() {
        let (worker, other) = worker_with_url_and_other();
        let config = config(std::path::Path::new("unused"));
        let mut links = SharingThreadState::new(Arc::clone(&worker) as _, &config, |_| true);
        worker.cut_off(true);
        let buckets = worker.owned_buckets();
        assert!(
            links
                .perform(SharedFrontierRequest::HandOver(buckets.clone()))
                .is_err()
        );
        worker.cut_off(false);
        let rest = SharedFrontierRequest::Rest {
            rest: Some(1),
            pages: 0,
            work_news: 0,
        };
        links.perform(rest).unwrap();
        let survey = other.survey().unwrap();
        assert_eq!((survey.pending_open, survey.free_buckets), (1, 1));
        // The buckets were handed over once. A later check leaves them to their new owner.
        assert_eq!(other.take_free(1).unwrap().0, 1);
        links.look().unwrap();
        assert_eq!(other.owned_buckets(), buckets);
    }

    #[test]
    fn a_rest_reported_before_news_of_work_arrives_is_not_recorded() {
        for news in [
            SharedFrontierNews::LinksWait,
            SharedFrontierNews::Taken(Vec::new()),
        ] {
            let mut rests = RestReports::default();
            assert!(rests.report(Some(1), 0));
            rests.current = None;
            rests.note_news(&news);
            // The coordinator sent this report before it handled the news, so it is outdated.
            assert!(!rests.report(Some(2), 0));
            assert_eq!(rests.current, None);
            assert!(rests.report(None, 1) && rests.report(Some(3), 1));
            assert_eq!(rests.current, Some(3));
        }
        let mut rests = RestReports::default();
        rests.note_news(&SharedFrontierNews::PagesSpent);
        assert!(rests.report(Some(1), 0));
    }
}
