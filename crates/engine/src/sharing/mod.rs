//! The other workers of a crawl: buckets are balanced among them, links of theirs are taken, and the
//! end of all is found.

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

/// Looks at the other workers for each lease, and the bounds of the time between two.
const LOOKS_PER_LEASE: u32 = 60;
const MIN_LOOK_INTERVAL: Duration = Duration::from_millis(50);
const MAX_LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Looks in a row that find a group without a worker, until that is warned of: workers that are
/// started together don't begin at one moment.
const LOOKS_BEFORE_WARNING: u32 = 20;

/// The most pages that a worker is given leave for at a time.
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

/// Ends the fetcher's requests before a worker's leases end.
pub(crate) struct WorkersGuard(pub(crate) Arc<dyn SendGuard>);

impl crawl_fetcher::SendGuard for WorkersGuard {
    fn ends_at(&self) -> Instant {
        self.0.ends_at()
    }
}

/// The thread that speaks with the frontier of all workers, so that the crawl loop need not wait.
pub(crate) struct WorkerThread {
    requests: Sender<SharedRequest>,
    thread: JoinHandle<()>,
}

impl WorkerThread {
    /// Starts it. `tell` hands an event to the crawl loop, and says whether that is still there.
    pub(crate) fn start(
        frontier: Arc<dyn WorkerFrontier>,
        config: &Config,
        tell: impl Fn(Event) -> bool + Send + 'static,
    ) -> io::Result<WorkerThread> {
        let lease = config
            .shared
            .as_ref()
            .map_or(Duration::ZERO, |shared| shared.lease);
        let interval = (lease / LOOKS_PER_LEASE).clamp(MIN_LOOK_INTERVAL, MAX_LOOK_INTERVAL);
        let (requests, received) = channel();
        let links = Links {
            frontier,
            tell,
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

    /// Asks something of it. It is gone only where the crawl ends.
    pub(crate) fn ask(&self, request: SharedRequest) {
        let _ = self.requests.send(request);
    }

    /// Ends it.
    pub(crate) fn end(self) {
        drop(self.requests);
        // A panic of it ended the crawl by itself.
        let _ = self.thread.join();
    }
}

/// The thread's state.
struct Links<Tell> {
    frontier: Arc<dyn WorkerFrontier>,
    tell: Tell,
    interval: Duration,
    /// Pages that all workers together may have.
    max_pages: Option<u64>,
    counts_bytes: bool,
    /// The rest that the coordinator is in, as far as this thread knows: it has nothing to do.
    rest: Option<u64>,
    is_drained: bool,
    /// Buckets that are to be handed over, and are not yet.
    leaving: BTreeSet<i32>,
    /// How much was kept of the crawl when its links were taken last.
    crawl_meta: u64,
    /// The pages with which leave for more was asked for, and not given yet, and the rests before.
    wanted: Option<(u64, u64)>,
    living: u64,
    /// A group that has work and no worker, and in how many looks in a row it was seen so.
    unserved: Option<(i32, u32)>,
}

impl<Tell: Fn(Event) -> bool> Links<Tell> {
    fn run(mut self, requests: &Receiver<SharedRequest>) {
        let mut next_look = Instant::now();
        loop {
            let left = next_look.saturating_duration_since(Instant::now());
            let done = match requests.recv_timeout(left) {
                Ok(request) => self.perform(request),
                Err(RecvTimeoutError::Timeout) => {
                    next_look = Instant::now() + self.interval;
                    self.look()
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let Err(error) = done else { continue };
            // While the leases hold, what failed is tried again.
            let error = match self.frontier.check() {
                Ok(()) if matches!(error, FrontierError::Shared(SharedError::Engine { .. })) => {
                    tracing::warn!(%error, "the frontier did not answer");
                    continue;
                }
                Ok(()) => error,
                Err(lost) => lost,
            };
            (self.tell)(Event::Broken(error.into()));
            return;
        }
    }

    fn news(&self, news: SharedNews) {
        // Where the loop is gone, this thread ends with the next request.
        (self.tell)(Event::Shared(news));
    }

    fn perform(&mut self, request: SharedRequest) -> Result<(), FrontierError> {
        match request {
            SharedRequest::HandOver(buckets) => {
                let handed_over = self.frontier.hand_over(&buckets);
                self.leaving.retain(|b| !buckets.contains(b));
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
                self.ask_for_pages()
            }
        }
    }

    /// Asks for leave to have more pages; where there is none left, the next look asks again.
    fn ask_for_pages(&mut self) -> Result<(), FrontierError> {
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

    /// Looks at the other workers.
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
            // Before they are taken: until then they stand in the way of an end.
            self.be_at_work()?;
            self.news(SharedNews::LinksWait);
        }
        self.ask_for_pages()?;
        for group in &survey.to_forward {
            self.frontier.forward_links(*group)?;
        }
        self.warn_of_unserved(survey.unserved_group);
        let rest = self.rest.filter(|_| is_over(&survey));
        if let Some(rest) = rest {
            // Buckets of those that ended before stay without an owner: they list what was put aside.
            self.news(SharedNews::Over { rest });
        } else if !self.is_drained {
            self.balance(&survey)?;
        }
        Ok(())
    }

    /// Warns of a group that has work and no worker for a while, once for as long as it has none.
    fn warn_of_unserved(&mut self, group: Option<i32>) {
        self.unserved = group.map(|group| match self.unserved {
            Some((before, looks)) if before == group => (group, looks.saturating_add(1)),
            _ => (group, 1),
        });
        if let Some((group, LOOKS_BEFORE_WARNING)) = self.unserved {
            tracing::warn!(
                "group {group} of the frontier has URLs to fetch and no worker, so this crawl does \
                 not end; hint: start a worker with a --worker name that is new: it works there"
            );
        }
    }

    /// Notes that this worker has something to do. The coordinator says when it has not.
    fn be_at_work(&mut self) -> Result<(), FrontierError> {
        match self.rest.take() {
            Some(_) => self.frontier.rest(false, None),
            None => Ok(()),
        }
    }

    /// Takes buckets that nobody owns, and hands over those that are more than a fair share, or are to
    /// be moved to another group.
    fn balance(&mut self, survey: &Survey) -> Result<(), FrontierError> {
        // Another group is to have them, whatever is fair.
        let moving = survey.moving.iter().copied();
        let moving: Vec<i32> = moving.filter(|b| self.leaving.insert(*b)).collect();
        if !moving.is_empty() {
            self.news(SharedNews::Leave(moving));
        }
        let owned = self.frontier.owned_buckets();
        let count = owned.len() as u64;
        let served = self.frontier.served_buckets();
        let fair = served.div_ceil(survey.group_living.max(1));
        let wanted = fair.saturating_sub(count).min(survey.free_buckets);
        if wanted > 0 {
            // Before they are taken: what waits in them is not at rest.
            self.be_at_work()?;
            let (_, origins) = self.frontier.take_free(wanted)?;
            self.news(SharedNews::Taken(origins));
            return Ok(());
        }
        let staying = count.saturating_sub(self.leaving.len() as u64);
        let surplus = usize::try_from(staying.saturating_sub(fair)).unwrap_or(usize::MAX);
        if surplus > 0 {
            let staying = owned.into_iter().filter(|b| !self.leaving.contains(b));
            let staying: Vec<i32> = staying.collect();
            // From all over: neighbours may be what a worker before handed over at once.
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

/// Returns whether no worker has anything left to do, seen by one that has not.
fn is_over(survey: &Survey) -> bool {
    !survey.links_wait && survey.pending_open == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_a_crawl_is_over_when_no_worker_has_anything_to_do() {
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
