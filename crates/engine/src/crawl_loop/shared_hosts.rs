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
mod tests;
