//! Shared crawls: how hosts move between workers, and when all workers end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crawl_scheduler::Tick;
use crawl_weburl::{HostKey, Origin};

use crate::messages::Effect;
use crate::messages::shared_frontier_messages::{
    HostOwnership, SharedFrontierNews, SharedFrontierRequest,
};
use crate::summary::EndReason;

/// A worker requests permission for more pages if it may fetch fewer further pages than this.
const FEW_PAGES: u64 = 16;

/// How often to check for hosts that can be handed over.
const HAND_OVER_INTERVAL: Duration = Duration::from_millis(20);

/// This worker's part in a shared crawl: which hosts it owns, how many pages it may fetch, and when
/// no worker has anything left to do. A process that crawls alone owns all hosts.
///
/// - [`take_in`](Self::take_in) handles news of the other workers, and returns how the loop reacts.
/// - Each step of the loop calls [`step`](Self::step). If it returns true, the loop evicts the
///   hosts that must be handed over (see [`is_leaving`](Self::is_leaving)), and calls
///   [`hand_over`](Self::hand_over) with the buckets (sets of hosts) that are still busy.
/// - [`end_with_others`](Self::end_with_others) ends a run that would end if it were alone, as soon
///   as the other workers have nothing to do either.
///
/// Emits [`Effect::Share`]: requests for pages, rests, and buckets to hand over. A *rest* begins
/// when this worker reports that it has nothing to do. Rests are numbered, because news may refer
/// to an earlier rest.
#[derive(Default)]
pub(crate) struct WorkerCoordination {
    /// Which hosts this worker owns. `None` if this process crawls alone.
    owners: Option<Arc<dyn HostOwnership>>,
    /// Buckets (sets of hosts) that must be handed over, and for each, whether the hand-over was
    /// requested. No pages of their hosts are fetched.
    leaving: BTreeMap<i32, bool>,
    looked_at: Tick,
    /// The number of the current rest (a time without work); `None` if this worker has work.
    rest: Option<u64>,
    /// The number of rests (times without work) so far.
    rests: u64,
    /// The number of messages about new work for this worker.
    work_news: u64,
    /// Whether the crawl is over, since the other workers have nothing to do either.
    is_over: bool,
    /// Whether the writer is admitting links that other workers found.
    takes_links: bool,
    /// The number of pages that this worker may fetch, including those that it has fetched already;
    /// `None` if there is no limit.
    allowed: Option<u64>,
    /// Whether this worker has requested permission for more pages and got no answer yet.
    asks_for_pages: bool,
    /// The number of pages and leases at the last request for permission. `None` if there was no
    /// request since the last rest. Another request is sent only once this number has changed.
    /// Otherwise small grants would cause requests without pause.
    asked_at: Option<u64>,
    /// Whether no worker may fetch any more pages.
    are_pages_spent: bool,
    /// Bytes of bodies that all other workers fetched.
    others_bytes: u64,
}

/// How the loop reacts to news of the other workers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WorkerNewsReaction {
    Nothing,
    /// This worker took over hosts. Wake these origins of the hosts, each with its number of
    /// pending URLs.
    Wake(Vec<(Origin, u64)>),
    /// Have the writer admit links that other workers found.
    TakeLinks,
    /// End the run, since all hosts are handed over.
    End,
}

/// The state of this worker at a step of the loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerState {
    /// Number of this worker's committed pages.
    pub(super) pages: u64,
    /// Number of leased URLs that may count as pages.
    pub(super) leases: u64,
    /// Whether a request is in flight, or something is not committed.
    pub(super) is_busy: bool,
    pub(super) is_ending: bool,
}

impl WorkerCoordination {
    /// Shares the crawl with other workers. `allowed` is the number of pages that this worker may
    /// fetch, including those that it has fetched already; `None` if there is no limit.
    pub(super) fn share(&mut self, owners: Arc<dyn HostOwnership>, allowed: Option<u64>) {
        self.owners = Some(owners);
        self.allowed = allowed;
    }

    /// Returns whether other workers may take part in the crawl.
    pub(super) fn is_shared(&self) -> bool {
        self.owners.is_some()
    }

    /// Returns whether this worker has nothing to do and waits for other workers.
    pub(super) fn rests(&self) -> bool {
        self.rest.is_some()
    }

    pub(super) fn others_bytes(&self) -> u64 {
        self.others_bytes
    }

    /// Returns whether no worker may fetch any more pages; `None` if this process crawls alone.
    pub(super) fn are_pages_spent(&self) -> Option<bool> {
        self.is_shared().then_some(self.are_pages_spent)
    }

    /// Returns whether this worker owns a host and does not have to hand it over.
    pub(super) fn keeps(&self, host: &HostKey) -> bool {
        let owners = self.owners.as_ref();
        owners.is_none_or(|owners| owners.owns(host)) && !self.is_leaving(host)
    }

    /// Returns for how long this worker has owned a host. `None` if the host was not taken over
    /// from another worker.
    pub(super) fn taken_over_for(&self, host: &HostKey) -> Option<Duration> {
        self.owners.as_ref()?.taken_over_for(host)
    }

    /// Returns the bucket (set of hosts) of a host; `None` if this process crawls alone.
    pub(super) fn bucket_of(&self, host: &HostKey) -> Option<i32> {
        Some(self.owners.as_ref()?.bucket_of(host))
    }

    /// Returns the buckets (sets of hosts) that this worker owns, each with the number of times
    /// that workers have taken it. Empty if this process crawls alone.
    pub(super) fn bucket_epochs(&self) -> BTreeMap<i32, i64> {
        let owners = self.owners.as_ref();
        owners.map_or_else(BTreeMap::new, |owners| owners.bucket_epochs())
    }

    pub(super) fn is_leaving(&self, host: &HostKey) -> bool {
        let bucket = self.bucket_of(host);
        bucket.is_some_and(|bucket| self.leaving.contains_key(&bucket))
    }

    /// Returns whether this worker may fetch another page after it has fetched `pages`.
    pub(super) fn may_fetch(&self, pages: u64) -> bool {
        let owners = self.owners.as_ref();
        self.allowed.is_none_or(|allowed| pages < allowed)
            && owners.is_none_or(|owners| owners.may_send())
    }

    /// Handles news about the other workers. `pages` is the number of this worker's committed
    /// pages.
    pub(super) fn take_in(
        &mut self,
        news: SharedFrontierNews,
        pages: u64,
        out: &mut Vec<Effect>,
    ) -> WorkerNewsReaction {
        self.work_news += u64::from(news.gives_work());
        match news {
            SharedFrontierNews::Taken(origins) => {
                self.end_rest(pages, out);
                return WorkerNewsReaction::Wake(origins);
            }
            SharedFrontierNews::Leave(buckets) => {
                let buckets = buckets.into_iter().map(|bucket| (bucket, false));
                self.leaving.extend(buckets);
                self.looked_at = Tick::ZERO;
            }
            SharedFrontierNews::HandedOver(buckets) => {
                for bucket in buckets {
                    self.leaving.remove(&bucket);
                }
            }
            SharedFrontierNews::LinksWait => {
                if !std::mem::replace(&mut self.takes_links, true) {
                    self.end_rest(pages, out);
                    return WorkerNewsReaction::TakeLinks;
                }
            }
            // The answer is outdated: since the request, this worker has rested, and has given its
            // allowed pages back.
            SharedFrontierNews::Allowed { rests, .. } if rests != self.rests => {}
            SharedFrontierNews::Allowed { pages, .. } => {
                self.asks_for_pages = false;
                self.allowed = Some(pages);
            }
            SharedFrontierNews::OthersBytes(bytes) => self.others_bytes = bytes,
            SharedFrontierNews::PagesSpent => self.are_pages_spent = true,
            SharedFrontierNews::Over { rest } => self.is_over = self.rest == Some(rest),
            SharedFrontierNews::Drain => return WorkerNewsReaction::End,
        }
        WorkerNewsReaction::Nothing
    }

    /// Records that the writer admitted links that other workers found, and whether more links are
    /// left for it to admit.
    pub(super) fn links_taken(&mut self, are_left: bool) {
        self.takes_links = are_left;
    }

    /// Ends this worker's rest (time without work) if the worker is busy, and requests a larger
    /// page budget before the allowed pages are used up. Returns whether to check now for hosts to
    /// hand over.
    pub(super) fn step(&mut self, now: Tick, state: WorkerState, out: &mut Vec<Effect>) -> bool {
        if state.is_busy {
            self.end_rest(state.pages, out);
        }
        let pages = state.pages + state.leases;
        let is_short = self
            .allowed
            .is_some_and(|allowed| allowed < pages + FEW_PAGES);
        let may_have = !state.is_ending && !self.rests() && !self.are_pages_spent;
        let is_new = !self.asks_for_pages && self.asked_at != Some(pages);
        if is_short && may_have && is_new {
            self.asks_for_pages = true;
            self.asked_at = Some(pages);
            let rests = self.rests;
            out.push(Effect::Share(SharedFrontierRequest::MorePages {
                pages,
                rests,
            }));
        }
        let is_due = now.since(self.looked_at) >= HAND_OVER_INTERVAL;
        let looks = !self.leaving.is_empty() && is_due;
        if looks {
            self.looked_at = now;
        }
        looks
    }

    /// Ends the current rest (time without work), and reports that this worker has work. Also
    /// reports this if news of work has already ended the rest, because the sharing thread may have
    /// recorded the rest after it sent that news.
    pub(super) fn end_rest(&mut self, pages: u64, out: &mut Vec<Effect>) {
        self.is_over = false;
        if self.rest.take().is_some() {
            // When a rest (time without work) ends, earlier requests for pages are cancelled.
            self.cancel_request_for_pages();
            out.push(self.rest_request(pages));
        }
    }

    fn cancel_request_for_pages(&mut self) {
        self.asks_for_pages = false;
        self.asked_at = None;
    }

    /// Returns the request that reports whether this worker rests.
    fn rest_request(&self, pages: u64) -> Effect {
        Effect::Share(SharedFrontierRequest::Rest {
            rest: self.rest,
            pages,
            work_news: self.work_news,
        })
    }

    /// Returns `alone` (how the run would end without other workers) once the other workers have
    /// nothing to do either. Until then, returns `None`, and this worker rests, since others may
    /// find URLs for it. Call this when nothing is in flight.
    pub(super) fn end_with_others(
        &mut self,
        alone: EndReason,
        pages: u64,
        out: &mut Vec<Effect>,
    ) -> Option<EndReason> {
        if self.is_over || !self.is_shared() {
            return Some(alone);
        }
        // Hosts that must be handed over may still have pending URLs. So before the hand-over, this
        // worker can't report that it has nothing to do.
        if self.leaving.is_empty() && !self.rests() {
            // Give unused page allowance back to the other workers.
            self.allowed = self.allowed.map(|_| pages);
            self.cancel_request_for_pages();
            self.rests += 1;
            self.rest = Some(self.rests);
            out.push(self.rest_request(pages));
        }
        None
    }

    /// Returns the buckets (sets of hosts) that contain leased URLs or one of `hosts`.
    pub(super) fn busy_buckets<'a>(
        &self,
        hosts: impl IntoIterator<Item = &'a HostKey>,
    ) -> BTreeSet<i32> {
        let owners = self.owners.as_ref();
        let mut busy = owners.map_or_else(BTreeSet::new, |owners| owners.leased_buckets());
        busy.extend(hosts.into_iter().filter_map(|host| self.bucket_of(host)));
        busy
    }

    /// Requests the hand-over of all buckets (sets of hosts) that must be handed over and are not
    /// in `busy`. Returns these buckets.
    pub(super) fn hand_over(&mut self, busy: &BTreeSet<i32>, out: &mut Vec<Effect>) -> Vec<i32> {
        let leaving = self.leaving.iter_mut();
        let free = leaving.filter(|(bucket, is_asked)| !**is_asked && !busy.contains(bucket));
        let free: Vec<i32> = free
            .map(|(bucket, is_asked)| {
                *is_asked = true;
                *bucket
            })
            .collect();
        if !free.is_empty() {
            out.push(Effect::Share(SharedFrontierRequest::HandOver(free.clone())));
        }
        free
    }
}

#[cfg(test)]
mod tests;
