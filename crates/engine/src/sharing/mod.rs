//! Cooperates with the other workers of a crawl: balances buckets, takes their links, and detects
//! the end of the whole crawl.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crawl_frontier::FrontierError;
use crawl_frontier::shared::{SendGuard, SharedError, Survey, WorkerFrontier};
use crawl_weburl::HostKey;

use crate::config::Config;
use crate::messages::Event;
use crate::messages::sharing::{HostOwnership, SharedNews, SharedRequest};

/// How often the other workers are checked per lease, and the limits of the interval between two
/// checks.
const LOOKS_PER_LEASE: u32 = 60;
const MIN_LOOK_INTERVAL: Duration = Duration::from_millis(50);
const MAX_LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// How many checks in a row must find a group without a worker before a warning is logged: workers
/// started together don't begin at the same moment.
const LOOKS_BEFORE_WARNING: u32 = 20;

/// Maximum additional pages granted to a worker at a time.
const MAX_ALLOWED_AT_ONCE: u64 = 256;

/// The hosts that this worker owns in a shared frontier, for the crawl loop.
pub(crate) struct OwnedHosts {
    frontier: Arc<dyn WorkerFrontier>,
    guard: Arc<dyn SendGuard>,
}

impl OwnedHosts {
    pub(crate) fn new(frontier: Arc<dyn WorkerFrontier>) -> OwnedHosts {
        let guard = frontier.send_guard();
        OwnedHosts { frontier, guard }
    }
}

impl HostOwnership for OwnedHosts {
    fn bucket_of(&self, host: &HostKey) -> i32 {
        self.frontier.bucket_of(host)
    }

    fn owns(&self, host: &HostKey) -> bool {
        self.frontier.owns(host)
    }

    fn taken_over_for(&self, host: &HostKey) -> Option<Duration> {
        self.frontier.taken_over_for(host)
    }

    fn leased_buckets(&self) -> BTreeSet<i32> {
        self.frontier.leased_buckets()
    }

    fn may_send(&self) -> bool {
        Instant::now() < self.guard.ends_at()
    }
}

/// Aborts the fetcher's requests before a worker's leases expire.
pub(crate) struct WorkersGuard(pub(crate) Arc<dyn SendGuard>);

impl crawl_fetcher::SendGuard for WorkersGuard {
    fn ends_at(&self) -> Instant {
        self.0.ends_at()
    }
}

/// The thread that talks to the shared frontier, so that the crawl loop never waits for it.
pub(crate) struct WorkerThread {
    requests: Sender<SharedRequest>,
    thread: JoinHandle<()>,
}

impl WorkerThread {
    /// Starts the thread. `send_event` sends an event to the crawl loop, and returns whether the
    /// loop still exists.
    pub(crate) fn start(
        frontier: Arc<dyn WorkerFrontier>,
        config: &Config,
        send_event: impl Fn(Event) -> bool + Send + 'static,
    ) -> io::Result<WorkerThread> {
        let lease = config
            .shared
            .as_ref()
            .map_or(Duration::ZERO, |shared| shared.lease);
        let interval = (lease / LOOKS_PER_LEASE).clamp(MIN_LOOK_INTERVAL, MAX_LOOK_INTERVAL);
        let (requests, received) = channel();
        let links = Links {
            frontier,
            send_event,
            interval,
            max_pages: config.budgets.max_pages,
            counts_bytes: config.budgets.max_bytes.is_some(),
            rest: None,
            is_drained: false,
            leaving: BTreeSet::new(),
            crawl_meta: 0,
            wanted: None,
            living: 1,
            unserved: None,
        };
        let thread = std::thread::Builder::new()
            .name("crawl-workers".to_owned())
            .spawn(move || links.run(&received))?;
        Ok(WorkerThread { requests, thread })
    }

    /// Sends a request to the thread, which is gone only if the crawl is ending.
    pub(crate) fn send(&self, request: SharedRequest) {
        let _ = self.requests.send(request);
    }

    /// Ends the thread.
    pub(crate) fn end(self) {
        drop(self.requests);
        // A panic of the thread has ended the crawl already.
        let _ = self.thread.join();
    }
}

/// The state of the thread.
struct Links<SendEvent> {
    frontier: Arc<dyn WorkerFrontier>,
    send_event: SendEvent,
    interval: Duration,
    /// Maximum pages of all workers together.
    max_pages: Option<u64>,
    counts_bytes: bool,
    /// The current rest of the coordinator, if this thread knows of one.
    rest: Option<u64>,
    is_drained: bool,
    /// Buckets that must be handed over and are not yet.
    leaving: BTreeSet<i32>,
    /// The version of the crawl's metadata when links were taken last.
    crawl_meta: u64,
    /// A pending request for more pages: the page count, and the rests before it.
    wanted: Option<(u64, u64)>,
    living: u64,
    /// A group that has work but no worker, and the number of consecutive checks that found it so.
    unserved: Option<(i32, u32)>,
}

impl<SendEvent: Fn(Event) -> bool> Links<SendEvent> {
    fn run(mut self, requests: &Receiver<SharedRequest>) {
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
            let Err(error) = done else { continue };
            // While the leases are valid, failed operations are retried.
            let error = match self.frontier.check() {
                Ok(()) if matches!(error, FrontierError::Shared(SharedError::Engine { .. })) => {
                    tracing::warn!(%error, "the frontier did not answer");
                    continue;
                }
                Ok(()) => error,
                Err(lost) => lost,
            };
            (self.send_event)(Event::Broken(error.into()));
            return;
        }
    }

    fn news(&self, news: SharedNews) {
        // If the loop is gone, this thread ends with the next request.
        (self.send_event)(Event::Shared(news));
    }

    fn perform(&mut self, request: SharedRequest) -> Result<(), FrontierError> {
        match request {
            SharedRequest::HandOver(buckets) => {
                let handed_over = self.frontier.hand_over(&buckets);
                self.leaving.retain(|bucket| !buckets.contains(bucket));
                self.news(SharedNews::HandedOver(buckets));
                handed_over
            }
            SharedRequest::Rest { rest, pages } => {
                self.rest = rest;
                self.wanted = None;
                let pages = self.max_pages.and(rest).map(|_| pages);
                self.frontier.rest(rest.is_some(), pages)
            }
            SharedRequest::MorePages { pages, rests } => {
                self.wanted = Some((pages, rests));
                self.request_pages()
            }
        }
    }

    /// Requests more pages. If none are left, the next check tries again.
    fn request_pages(&mut self) -> Result<(), FrontierError> {
        let (Some((pages, rests)), Some(max)) = (self.wanted, self.max_pages) else {
            return Ok(());
        };
        let fair = max / (4 * self.living.max(1));
        let more = fair.clamp(1, MAX_ALLOWED_AT_ONCE);
        let allowed = self.frontier.allow(pages, more, max)?;
        if allowed > pages {
            self.wanted = None;
            let pages = allowed;
            self.news(SharedNews::Allowed { pages, rests });
        }
        Ok(())
    }

    /// Checks the state of the other workers.
    fn look(&mut self) -> Result<(), FrontierError> {
        self.frontier.check()?;
        let survey = self.frontier.survey()?;
        self.living = survey.living;
        if self.counts_bytes {
            self.news(SharedNews::OthersBytes(survey.others_bytes));
        }
        if self.max_pages.is_some_and(|max| survey.pages >= max) {
            self.news(SharedNews::PagesSpent);
        }
        if survey.is_drained && !std::mem::replace(&mut self.is_drained, true) {
            self.news(SharedNews::Drain);
        }
        let is_more_kept = survey.crawl_meta > self.crawl_meta;
        if survey.own_links_wait || is_more_kept {
            self.crawl_meta = survey.crawl_meta;
            // Must happen before the links are taken, which until then keep the crawl from ending.
            self.note_work()?;
            self.news(SharedNews::LinksWait);
        }
        self.request_pages()?;
        for group in &survey.to_forward {
            self.frontier.forward_links(*group)?;
        }
        self.warn_of_unserved(survey.unserved_group);
        let rest = self.rest.filter(|_| is_over(&survey));
        if let Some(rest) = rest {
            // Buckets of workers that ended earlier stay without an owner: those workers listed the
            // deferred URLs.
            self.news(SharedNews::Over { rest });
        } else if !self.is_drained {
            self.balance(&survey)?;
        }
        Ok(())
    }

    /// Warns once when a group has had work but no worker for a while.
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

    /// Records that this worker has work. The coordinator reports when it has none.
    fn note_work(&mut self) -> Result<(), FrontierError> {
        match self.rest.take() {
            Some(_) => self.frontier.rest(false, None),
            None => Ok(()),
        }
    }

    /// Takes free buckets, and hands over those beyond a fair share and those that must move to
    /// another group.
    fn balance(&mut self, survey: &Survey) -> Result<(), FrontierError> {
        // Buckets that move belong to another group, whatever is fair.
        let moving = survey.moving.iter().copied();
        let moving: Vec<i32> = moving
            .filter(|bucket| self.leaving.insert(*bucket))
            .collect();
        if !moving.is_empty() {
            self.news(SharedNews::Leave(moving));
        }
        let owned = self.frontier.owned_buckets();
        let count = owned.len() as u64;
        let served = self.frontier.served_buckets();
        let fair = served.div_ceil(survey.group_living.max(1));
        let wanted = fair.saturating_sub(count).min(survey.free_buckets);
        if wanted > 0 {
            // Must happen before the buckets are taken: a worker with their pending URLs is not at
            // rest.
            self.note_work()?;
            let (_, origins) = self.frontier.take_free(wanted)?;
            self.news(SharedNews::Taken(origins));
            return Ok(());
        }
        let staying = count.saturating_sub(self.leaving.len() as u64);
        let surplus = usize::try_from(staying.saturating_sub(fair)).unwrap_or(usize::MAX);
        if surplus > 0 {
            let staying = owned
                .into_iter()
                .filter(|bucket| !self.leaving.contains(bucket));
            let staying: Vec<i32> = staying.collect();
            // Spread out: neighbours may have been handed over at once by a worker before.
            let each = staying.len().checked_div(surplus).unwrap_or(1);
            let leaving: Vec<i32> = staying
                .into_iter()
                .step_by(each.max(1))
                .take(surplus)
                .collect();
            self.leaving.extend(&leaving);
            self.news(SharedNews::Leave(leaving));
        }
        Ok(())
    }
}

/// Whether no worker has anything left to do, as seen by a worker without work.
fn is_over(survey: &Survey) -> bool {
    !survey.links_wait && survey.pending_open == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crawl_is_over_when_no_worker_has_anything_to_do() {
        let survey = Survey {
            living: 2,
            ..Survey::default()
        };
        assert!(is_over(&survey));
        let waits = Survey {
            links_wait: true,
            ..survey.clone()
        };
        let works = Survey {
            pending_open: 3,
            ..survey.clone()
        };
        assert!(!is_over(&waits) && !is_over(&works));
    }
}
