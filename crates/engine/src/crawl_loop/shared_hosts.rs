//! A crawl that several workers share: hosts that come and go, and the end of all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crawl_scheduler::Tick;
use crawl_weburl::{HostKey, Origin};

use super::Coordinator;
use crate::messages::sharing::{HostOwnership, SharedNews, SharedRequest};
use crate::messages::{Effect, WriterMessage};
use crate::summary::Ended;

/// A worker with fewer granted pages left than this requests more.
const FEW_PAGES: u64 = 16;

/// The interval between two looks for hosts that can be handed over.
const HAND_OVER_INTERVAL: Duration = Duration::from_millis(20);

/// A worker's part in a shared crawl: which hosts are its own, how many pages it may fetch, and
/// when there is nothing left for any worker.
///
/// - News of the other workers come in with [`take_in`](Self::take_in), which returns what the loop
///   does about them.
/// - Each step of the loop calls [`step`](Self::step). If it returns true, the loop evicts the hosts
///   that leave (see [`is_leaving`](Self::is_leaving)) and reports the buckets that are busy still to
///   [`hand_over`](Self::hand_over).
/// - A run that would end if it were alone asks [`end_with_others`](Self::end_with_others).
///
/// Emits [`Effect::Share`]: requests for pages, rests, and buckets to hand over. A *rest* begins when
/// this worker reports that it has nothing to do. Rests are numbered, as news may answer an earlier
/// one.
pub(crate) struct SharedHosts {
    owners: Arc<dyn HostOwnership>,
    /// Buckets to hand over, with whether that was requested. No page is fetched from their hosts.
    leaving: BTreeMap<i32, bool>,
    looked_at: Tick,
    /// The number of the rest that this worker is in.
    rest: Option<u64>,
    /// Rests that were begun.
    rests: u64,
    /// No other worker has anything to do either.
    is_over: bool,
    /// Links of others are being admitted.
    takes_links: bool,
    /// Pages that this worker may have; `None` if there is no limit.
    allowed: Option<u64>,
    /// More pages were requested.
    asks_for_pages: bool,
    /// No worker may have any more pages.
    are_pages_spent: bool,
    /// Bytes of bodies of all other workers.
    others_bytes: u64,
}

/// The loop's reaction to news of the other workers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NewsReaction {
    Nothing,
    /// Wake these origins, with their numbers of URLs: they are this worker's now.
    Wake(Vec<(Origin, u64)>),
    /// Have the writer admit links of other workers.
    TakeLinks,
    /// End the run, as all hosts are handed over.
    End,
}

/// The state of the loop at one of its steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerState {
    /// Committed pages of this worker.
    pub(super) pages: u64,
    /// Leased URLs that may become pages.
    pub(super) leases: u64,
    /// Something is in flight or not committed.
    pub(super) is_busy: bool,
    pub(super) is_ending: bool,
}

impl SharedHosts {
    fn new(owners: Arc<dyn HostOwnership>, allowed: Option<u64>) -> SharedHosts {
        SharedHosts {
            owners,
            leaving: BTreeMap::new(),
            looked_at: Tick::ZERO,
            rest: None,
            rests: 0,
            is_over: false,
            takes_links: false,
            allowed,
            asks_for_pages: false,
            are_pages_spent: false,
            others_bytes: 0,
        }
    }

    /// Returns whether this worker has nothing to do, and waits for others.
    pub(super) fn rests(&self) -> bool {
        self.rest.is_some()
    }

    /// Returns the bytes of bodies of all other workers.
    pub(super) fn others_bytes(&self) -> u64 {
        self.others_bytes
    }

    /// Returns whether no worker may have any more pages.
    fn are_pages_spent(&self) -> bool {
        self.are_pages_spent
    }

    /// Returns whether a host is this worker's, and is to stay so.
    fn keeps(&self, host: &HostKey) -> bool {
        self.owners.owns(host) && !self.is_leaving(host)
    }

    /// Returns the time for which a host has been this worker's, if it was taken over from another.
    fn taken_over_for(&self, host: &HostKey) -> Option<Duration> {
        self.owners.taken_over_for(host)
    }

    fn bucket_of(&self, host: &HostKey) -> i32 {
        self.owners.bucket_of(host)
    }

    /// Returns whether a host is about to be handed over.
    fn is_leaving(&self, host: &HostKey) -> bool {
        self.leaving.contains_key(&self.owners.bucket_of(host))
    }

    /// Returns whether another page may be fetched by a worker that has this number of pages.
    fn may_fetch(&self, pages: u64) -> bool {
        self.allowed.is_none_or(|allowed| pages < allowed) && self.owners.may_send()
    }

    /// Takes in news of the other workers. `pages` are the committed pages of this one.
    fn take_in(&mut self, news: SharedNews, pages: u64, out: &mut Vec<Effect>) -> NewsReaction {
        match news {
            SharedNews::Taken(origins) => {
                self.end_rest(pages, out);
                return NewsReaction::Wake(origins);
            }
            SharedNews::Leave(buckets) => {
                let buckets = buckets.into_iter().map(|bucket| (bucket, false));
                self.leaving.extend(buckets);
                self.looked_at = Tick::ZERO;
            }
            SharedNews::HandedOver(buckets) => {
                for bucket in buckets {
                    self.leaving.remove(&bucket);
                }
            }
            SharedNews::LinksWait => {
                if !std::mem::replace(&mut self.takes_links, true) {
                    self.end_rest(pages, out);
                    return NewsReaction::TakeLinks;
                }
            }
            // A rest that began since the request gave the pages back.
            SharedNews::Allowed { rests, .. } if rests != self.rests => {}
            SharedNews::Allowed { pages, .. } => {
                self.asks_for_pages = false;
                self.allowed = Some(pages);
            }
            SharedNews::OthersBytes(bytes) => self.others_bytes = bytes,
            SharedNews::PagesSpent => self.are_pages_spent = true,
            SharedNews::Over { rest } => self.is_over = self.rest == Some(rest),
            SharedNews::Drain => return NewsReaction::End,
        }
        NewsReaction::Nothing
    }

    /// The writer admitted links of others, and some may be left. Returns whether to admit those now.
    fn links_taken(&mut self, are_left: bool) -> bool {
        self.takes_links = are_left;
        are_left
    }

    /// Ends a rest of a busy worker, and requests more pages before it has none. Returns whether to
    /// look for hosts to hand over now.
    fn step(&mut self, now: Tick, state: WorkerState, out: &mut Vec<Effect>) -> bool {
        if state.is_busy {
            self.end_rest(state.pages, out);
        }
        let pages = state.pages + state.leases;
        let is_short = self
            .allowed
            .is_some_and(|allowed| allowed < pages + FEW_PAGES);
        let may_have = !state.is_ending && !self.rests() && !self.are_pages_spent;
        if is_short && may_have && !std::mem::replace(&mut self.asks_for_pages, true) {
            let rests = self.rests;
            out.push(Effect::Share(SharedRequest::MorePages { pages, rests }));
        }
        let is_due = now.since(self.looked_at) >= HAND_OVER_INTERVAL;
        let looks = !self.leaving.is_empty() && is_due;
        if looks {
            self.looked_at = now;
        }
        looks
    }

    /// Ends the rest of this worker, if it is in one, and reports that to the others: the thread that
    /// shares may have noted the rest after it sent the news that ends it.
    fn end_rest(&mut self, pages: u64, out: &mut Vec<Effect>) {
        self.is_over = false;
        if self.rest.take().is_some() {
            // A request from before the rest is forgotten with it.
            self.asks_for_pages = false;
            let rest = None;
            out.push(Effect::Share(SharedRequest::Rest { rest, pages }));
        }
    }

    /// Returns the end of a worker with nothing in flight that would end so if it were alone; `None`
    /// while other workers may still find something for it. The worker then rests.
    fn end_with_others(
        &mut self,
        alone: Ended,
        pages: u64,
        out: &mut Vec<Effect>,
    ) -> Option<Ended> {
        if self.is_over {
            return Some(alone);
        }
        // URLs of hosts that leave are this worker's until they are handed over.
        if self.leaving.is_empty() && !self.rests() {
            // Pages that it does not need are for others.
            self.allowed = self.allowed.map(|_| pages);
            self.asks_for_pages = false;
            self.rests += 1;
            let rest = Some(self.rests);
            self.rest = rest;
            out.push(Effect::Share(SharedRequest::Rest { rest, pages }));
        }
        None
    }

    /// Returns the buckets with leases and the buckets of `hosts`.
    fn busy_buckets<'a>(&self, hosts: impl IntoIterator<Item = &'a HostKey>) -> BTreeSet<i32> {
        let mut busy = self.owners.leased_buckets();
        busy.extend(hosts.into_iter().map(|host| self.owners.bucket_of(host)));
        busy
    }

    /// Requests the hand-over of the leaving buckets that are not `busy`, and returns them.
    fn hand_over(&mut self, busy: &BTreeSet<i32>, out: &mut Vec<Effect>) -> Vec<i32> {
        let leaving = self.leaving.iter_mut();
        let free = leaving.filter(|(bucket, is_asked)| !**is_asked && !busy.contains(bucket));
        let free: Vec<i32> = free
            .map(|(bucket, is_asked)| {
                *is_asked = true;
                *bucket
            })
            .collect();
        if !free.is_empty() {
            out.push(Effect::Share(SharedRequest::HandOver(free.clone())));
        }
        free
    }
}

impl Coordinator {
    /// Shares the crawl with other workers from now on.
    pub(crate) fn share_crawl(&mut self, owners: Arc<dyn HostOwnership>) {
        let pages = self.totals.of_all_runs().pages;
        let allowed = self.config.budgets.max_pages.map(|_| pages);
        self.shared = Some(SharedHosts::new(owners, allowed));
    }

    /// Returns whether this worker may fetch from a host: from any if it is alone.
    pub(super) fn keeps_host(&self, host: &HostKey) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.keeps(host))
    }

    /// A host that was taken over waits for a gap: its last owner may have sent a request until then.
    pub(super) fn note_taken_over(&mut self, now: Tick, host: &HostKey) {
        let shared = self.shared.as_ref();
        let ago = shared.and_then(|shared| shared.taken_over_for(host));
        let Some(ago) = ago else { return };
        let ago = u64::try_from(ago.as_micros()).unwrap_or(u64::MAX);
        let taken = Tick::from_micros(now.as_micros().saturating_sub(ago));
        let gap = self.own_delay(host);
        // Each of its slots may have been in use.
        for _ in 0..self.config.politeness.per_host.max(1) {
            self.scheduler
                .note_past_request(now, host, taken, gap, None);
        }
    }

    /// Takes in news of the other workers.
    pub(super) fn told_of_workers(&mut self, now: Tick, news: SharedNews, out: &mut Vec<Effect>) {
        let pages = self.totals.of_all_runs().pages;
        let Some(shared) = &mut self.shared else {
            return;
        };
        match shared.take_in(news, pages, out) {
            NewsReaction::Nothing => {}
            NewsReaction::Wake(origins) => {
                for (origin, urls) in origins {
                    self.wake(now, &origin, urls);
                }
            }
            NewsReaction::TakeLinks => self.write(WriterMessage::TakeLinks, out),
            NewsReaction::End => self.end.end(Ended::HandedOver),
        }
    }

    /// The writer admitted links of others, and some may be left. Returns whether to admit those now.
    pub(super) fn links_taken(&mut self, are_left: bool) -> bool {
        let shared = self.shared.as_mut();
        shared.is_some_and(|shared| shared.links_taken(are_left))
    }

    /// Requests pages from the other workers and hands buckets over to them, in each step of the loop.
    pub(super) fn attend_to_workers(&mut self, now: Tick, out: &mut Vec<Effect>) {
        let state = WorkerState {
            pages: self.totals.of_all_runs().pages,
            leases: self.backlog.leases(),
            is_busy: !self.is_drained(),
            is_ending: self.end.is_ending(),
        };
        let shared = self.shared.as_mut();
        if shared.is_some_and(|shared| shared.step(now, state, out)) {
            self.hand_over(now, out);
        }
    }

    /// Returns whether the other workers leave room for another page.
    pub(super) fn may_ask(&self) -> bool {
        let pages = self.totals.of_all_runs().pages + self.backlog.leases();
        let shared = self.shared.as_ref();
        shared.is_none_or(|shared| shared.may_fetch(pages))
    }

    /// Returns whether no worker may have any more pages; `None` if this one is alone.
    pub(super) fn are_pages_spent(&self) -> Option<bool> {
        self.shared.as_ref().map(SharedHosts::are_pages_spent)
    }

    /// Returns the end of this worker where it would end so if it were alone; `None` while other
    /// workers may still find something for it.
    pub(super) fn end_with_others(&mut self, alone: Ended, out: &mut Vec<Effect>) -> Option<Ended> {
        let pages = self.totals.of_all_runs().pages;
        match &mut self.shared {
            Some(shared) => shared.end_with_others(alone, pages, out),
            None => Some(alone),
        }
    }

    /// Evicts hosts that are about to be handed over, and requests the hand-over of buckets with nothing
    /// in flight.
    fn hand_over(&mut self, now: Tick, out: &mut Vec<Effect>) {
        let Some(shared) = &self.shared else { return };
        let mut busy = shared.busy_buckets(self.hosts.hosts_on_their_way());
        let hosts = self.scheduler.known_hosts();
        let leaving = hosts.filter(|host| shared.is_leaving(host));
        let leaving: Vec<HostKey> = leaving.cloned().collect();
        let mut evicted = Vec::new();
        for host in leaving {
            match self.scheduler.hand_over(now, &host) {
                Some(origins) => evicted.push((host, origins)),
                None => {
                    busy.insert(shared.bucket_of(&host));
                }
            }
        }
        if let Some(shared) = &mut self.shared {
            let free = shared.hand_over(&busy, out);
            if !free.is_empty() {
                self.hosts
                    .leave(|host| free.contains(&shared.bucket_of(host)));
            }
        }
        for (host, origins) in evicted {
            self.forget_host(&host, &origins);
        }
    }

    /// Nothing is known any more of a host that left memory.
    pub(super) fn forget_host(&mut self, host: &HostKey, origins: &[Origin]) {
        for origin in origins {
            self.origins.forget(origin);
        }
        self.host_budgets.forget(host);
        self.retries.forget(host);
        self.hosts.forget(host);
    }
}

#[cfg(test)]
mod tests {
    use crawl_fetcher::{FetchRequest, Validators};
    use crawl_scheduler::Poll;

    use super::super::request_rows;
    use super::*;
    use crate::crawl_loop::Next;
    use crate::crawl_loop::by_itself::{at, coordinator};
    use crate::messages::{Committed, Event, Job};
    use crate::simulated::script::moved;

    /// Every host is this worker's, in one bucket.
    struct OneBucket;

    impl HostOwnership for OneBucket {
        fn bucket_of(&self, _: &HostKey) -> i32 {
            7
        }

        fn owns(&self, _: &HostKey) -> bool {
            true
        }

        fn taken_over_for(&self, _: &HostKey) -> Option<Duration> {
            None
        }

        fn leased_buckets(&self) -> BTreeSet<i32> {
            BTreeSet::new()
        }

        fn may_send(&self) -> bool {
            true
        }
    }

    fn shared(allowed: Option<u64>) -> SharedHosts {
        SharedHosts::new(Arc::new(OneBucket), allowed)
    }

    fn idle(pages: u64) -> WorkerState {
        WorkerState {
            pages,
            leases: 0,
            is_busy: false,
            is_ending: false,
        }
    }

    #[test]
    fn ours_news_of_other_workers_have_the_loop_act() {
        let origin = Origin::parse("http://a.example").unwrap();
        let origins = vec![(origin, 3)];
        for (news, expected) in [
            (
                SharedNews::Taken(origins.clone()),
                NewsReaction::Wake(origins),
            ),
            (SharedNews::LinksWait, NewsReaction::TakeLinks),
            // Links are being admitted already.
            (SharedNews::LinksWait, NewsReaction::Nothing),
            (SharedNews::OthersBytes(7), NewsReaction::Nothing),
            (SharedNews::PagesSpent, NewsReaction::Nothing),
            (SharedNews::Drain, NewsReaction::End),
        ] {
            let mut worker = shared(None);
            worker.takes_links = expected == NewsReaction::Nothing;
            let reaction = worker.take_in(news, 0, &mut Vec::new());
            assert_eq!(reaction, expected);
        }
    }

    #[test]
    fn ours_more_pages_are_requested_once_before_there_are_none() {
        for (allowed, pages, is_asked) in [
            (None, 1_000, false),
            (Some(100), 100 - FEW_PAGES, false),
            (Some(100), 101 - FEW_PAGES, true),
        ] {
            let mut worker = shared(allowed);
            let mut out = Vec::new();
            worker.step(at(20), idle(pages), &mut out);
            worker.step(at(20), idle(pages), &mut out);
            assert_eq!(out.len(), usize::from(is_asked), "{allowed:?} {pages}");
            assert_eq!(worker.may_fetch(100), allowed.is_none());
        }
        for state in [
            WorkerState {
                is_ending: true,
                ..idle(100)
            },
            WorkerState {
                leases: 1,
                ..idle(100 - FEW_PAGES - 1)
            },
        ] {
            let mut out = Vec::new();
            shared(Some(100)).step(at(20), state, &mut out);
            assert!(out.is_empty(), "{state:?}");
        }
    }

    #[test]
    fn ours_a_bucket_is_handed_over_once_and_when_nothing_of_it_is_busy() {
        let mut worker = shared(None);
        let host = HostKey::parse("a.example").unwrap();
        assert!(worker.keeps(&host) && !worker.step(at(20), idle(0), &mut Vec::new()));
        worker.take_in(SharedNews::Leave(vec![7]), 0, &mut Vec::new());
        assert!(!worker.keeps(&host));
        let mut out = Vec::new();
        assert!(worker.step(at(20), idle(0), &mut out));
        // The next look is an interval later.
        assert!(!worker.step(at(20), idle(0), &mut out));
        let busy = worker.busy_buckets([&host]);
        assert!(worker.hand_over(&busy, &mut out).is_empty() && out.is_empty());
        // The run doesn't end before its hosts are handed over.
        assert_eq!(worker.end_with_others(Ended::Finished, 0, &mut out), None);
        assert!(!worker.rests());
        assert_eq!(worker.hand_over(&BTreeSet::new(), &mut out), [7]);
        assert!(worker.hand_over(&BTreeSet::new(), &mut out).is_empty());
        assert_eq!(out.len(), 1);
        worker.take_in(SharedNews::HandedOver(vec![7]), 0, &mut out);
        assert!(worker.keeps(&host));
    }

    /// Its thread may see that all is over after it sent what brings this worker more to do, and
    /// before it hears of that.
    #[test]
    fn ours_what_was_seen_in_one_rest_ends_no_later_one() {
        let mut coordinator = coordinator(|_| {});
        coordinator.share_crawl(Arc::new(OneBucket));
        let mut step = |event: Option<Event>| {
            let mut out = Vec::new();
            if let Some(event) = event {
                coordinator.handle(at(20), event, &mut out);
            }
            let is_done = matches!(coordinator.advance(at(20), &mut out), Next::Done);
            let rests = out.iter().filter_map(|effect| match effect {
                Effect::Share(SharedRequest::Rest { rest, .. }) => Some(*rest),
                _ => None,
            });
            (is_done, rests.collect::<Vec<_>>())
        };
        let over = |rest| Some(Event::Shared(SharedNews::Over { rest }));
        let taken = || Some(Event::Shared(SharedNews::Taken(Vec::new())));
        assert_eq!(step(None), (false, vec![Some(1)]));
        assert_eq!(step(taken()), (false, vec![None, Some(2)]));
        assert_eq!(step(over(1)), (false, Vec::new()));
        assert_eq!(
            step(Some(Event::Shared(SharedNews::LinksWait))),
            (false, vec![None])
        );
        let committed = Committed {
            items: WriterMessage::TakeLinks.weight(),
            leaves_links: Some(false),
            ..Committed::default()
        };
        assert_eq!(
            step(Some(Event::Committed(Box::new(committed)))),
            (false, vec![Some(3)])
        );
        assert_eq!(step(over(2)), (false, Vec::new()));
        assert_eq!(step(over(3)), (true, Vec::new()));
    }

    /// Else it would have pages that the store takes for free, and gives to another.
    #[test]
    fn ours_leave_that_was_asked_for_before_a_rest_counts_no_longer() {
        let mut coordinator = coordinator(|config| config.budgets.max_pages = Some(57));
        coordinator.share_crawl(Arc::new(OneBucket));
        let mut step = |news: Option<SharedNews>| {
            let mut out = Vec::new();
            if let Some(news) = news {
                coordinator.handle(at(20), Event::Shared(news), &mut out);
            }
            coordinator.attend_to_workers(at(20), &mut out);
            let asked = out.iter().find_map(|effect| match effect {
                Effect::Share(SharedRequest::MorePages { rests, .. }) => Some(*rests),
                _ => None,
            });
            let may_ask = coordinator.may_ask();
            let _ = coordinator.advance(at(20), &mut out);
            (asked, may_ask)
        };
        let allowed = |rests| Some(SharedNews::Allowed { pages: 7, rests });
        assert_eq!(step(None), (Some(0), false));
        assert_eq!(step(allowed(0)), (None, false), "it rested meanwhile");
        assert_eq!(step(Some(SharedNews::Taken(Vec::new()))), (Some(1), false));
        assert_eq!(step(allowed(1)), (None, false), "and once more");
        let mut out = Vec::new();
        let shared = coordinator.shared.as_mut().unwrap();
        shared.end_rest(0, &mut out);
        let rests = shared.rests;
        let news = SharedNews::Allowed { pages: 7, rests };
        coordinator.handle(at(20), Event::Shared(news), &mut out);
        assert!(coordinator.may_ask());
    }

    /// Learning that the redirect leads to a host of another worker, the next owner would take the
    /// rules for unreachable, and end with pages that nobody asked for.
    #[test]
    fn ours_a_robots_txt_of_a_host_that_is_handed_over_is_left_to_its_next_owner() {
        for leaves in [false, true] {
            let mut coordinator = coordinator(|_| {});
            coordinator.share_crawl(Arc::new(OneBucket));
            let origin = Origin::parse("http://a.example").unwrap();
            coordinator.scheduler.set_pending(at(20), &origin, 1);
            let Poll::Issue(permit) = coordinator.scheduler.poll(at(20)) else {
                panic!("no permit");
            };
            coordinator.requests.sent();
            let mut out = Vec::new();
            if leaves {
                let news = Event::Shared(SharedNews::Leave(vec![7]));
                coordinator.handle(at(21), news, &mut out);
                coordinator.attend_to_workers(at(21), &mut out);
            }
            let request = FetchRequest::robots(origin.robots_url(), Validators::default());
            let redirect = moved("/rules.txt");
            let result = redirect.result(&request.url, at(22));
            let job = Job::Robots {
                of: origin.clone(),
                request,
                hop: 0,
            };
            let none = tracing::Span::none();
            let fetched = request_rows::ended(job, permit.spend(), result, none);
            coordinator.handle(at(22), fetched, &mut out);
            let copies = out.iter().filter(|effect| match effect {
                Effect::Write(WriterMessage::Robots(robots)) => robots.copy.is_some(),
                _ => false,
            });
            assert_eq!(copies.count(), 0, "{leaves}: {out:?}");
            let follows = coordinator.origins.take_pending_fetch(&origin).is_some();
            assert_eq!(follows, !leaves);
            let next = coordinator.scheduler.poll(at(40));
            assert_eq!(matches!(next, Poll::Issue(_)), !leaves, "{next:?}");
        }
    }
}
