//! A crawl that several workers share: hosts that come and go, and the end of all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crawl_scheduler::Tick;
use crawl_weburl::{HostKey, Origin};

use super::Coordinator;
use crate::messages::sharing::{HostOwnership, SharedNews, SharedRequest};
use crate::messages::{Effect, WriterMessage};
use crate::summary::Ended;

/// The pages that are left of those that this worker may have at which it asks for leave for more.
const FEW_PAGES: u64 = 16;

/// How often it is looked which hosts can be handed over.
const HAND_OVER_INTERVAL: Duration = Duration::from_millis(20);

/// The coordinator's view of the workers that share its crawl.
pub(crate) struct SharedHosts {
    owners: Arc<dyn HostOwnership>,
    /// Buckets whose hosts are asked no more, as they are to be handed over, and whether that was
    /// asked for.
    leaving: BTreeMap<i32, bool>,
    looked_at: Tick,
    /// The number of the rest that this worker is in: it told the others that it has nothing to do.
    rest: Option<u64>,
    /// Rests that were begun.
    rests: u64,
    /// No other worker has anything to do either.
    is_over: bool,
    /// Links of others are being admitted.
    takes_links: bool,
    /// How many pages this worker may have; none where there is no limit.
    allowed: Option<u64>,
    /// Leave for more was asked for.
    asks_for_pages: bool,
    /// No worker may have any more pages.
    are_pages_spent: bool,
    /// Bytes of bodies of all other workers.
    others_bytes: u64,
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

    /// This worker has something to do. Where the others were told otherwise they hear of it: its
    /// thread may have noted a rest after it sent what ends that.
    fn end_rest(&mut self, pages: u64, out: &mut Vec<Effect>) {
        self.is_over = false;
        if self.rest.take().is_some() {
            // What was asked for before is forgotten with it.
            self.asks_for_pages = false;
            let rest = None;
            out.push(Effect::Share(SharedRequest::Rest { rest, pages }));
        }
    }

    /// Bytes of bodies of all other workers.
    pub(super) fn others_bytes(&self) -> u64 {
        self.others_bytes
    }

    /// Returns whether a host is this worker's, and is to stay so.
    fn keeps(&self, host: &HostKey) -> bool {
        self.owners.owns(host) && !self.leaving.contains_key(&self.owners.bucket_of(host))
    }
}

impl Coordinator {
    /// Shares the crawl with other workers from now on.
    pub(crate) fn share_crawl(&mut self, owners: Arc<dyn HostOwnership>) {
        let allowed = self
            .config
            .budgets
            .max_pages
            .map(|_| self.totals.of_all_runs().pages);
        self.shared = Some(SharedHosts::new(owners, allowed));
    }

    /// Returns whether a host may be asked by this worker: any where it is alone.
    pub(super) fn keeps_host(&self, host: &HostKey) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.keeps(host))
    }

    /// A host that was taken over waits for a gap: its last owner may have asked it until then.
    pub(super) fn note_taken_over(&mut self, now: Tick, host: &HostKey) {
        let ago = self
            .shared
            .as_ref()
            .and_then(|it| it.owners.taken_over_for(host));
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

    /// Takes in what is told of the other workers.
    pub(super) fn told_of_workers(&mut self, now: Tick, news: SharedNews, out: &mut Vec<Effect>) {
        let pages = self.totals.of_all_runs().pages;
        let Some(shared) = &mut self.shared else {
            return;
        };
        match news {
            SharedNews::Taken(origins) => {
                shared.end_rest(pages, out);
                for (origin, urls) in origins {
                    self.wake(now, &origin, urls);
                }
            }
            SharedNews::Leave(buckets) => {
                shared
                    .leaving
                    .extend(buckets.into_iter().map(|b| (b, false)));
                shared.looked_at = Tick::ZERO;
            }
            SharedNews::HandedOver(buckets) => {
                for b in buckets {
                    shared.leaving.remove(&b);
                }
            }
            SharedNews::LinksWait => {
                if !std::mem::replace(&mut shared.takes_links, true) {
                    shared.end_rest(pages, out);
                    self.write(WriterMessage::TakeLinks, out);
                }
            }
            // A rest that began since it was asked for gave it back.
            SharedNews::Allowed { rests, .. } if rests != shared.rests => {}
            SharedNews::Allowed { pages, .. } => {
                shared.asks_for_pages = false;
                shared.allowed = Some(pages);
            }
            SharedNews::OthersBytes(bytes) => shared.others_bytes = bytes,
            SharedNews::PagesSpent => shared.are_pages_spent = true,
            SharedNews::Over { rest } => shared.is_over = shared.rest == Some(rest),
            SharedNews::Drain => {
                self.end.end(Ended::HandedOver);
            }
        }
    }

    /// Links of others are admitted, and some may be left. Returns whether to admit those now.
    pub(super) fn links_taken(&mut self, are_left: bool) -> bool {
        let Some(shared) = &mut self.shared else {
            return false;
        };
        shared.takes_links = are_left;
        shared.takes_links
    }

    /// Requests pages from the other workers and hands buckets over to them, in each step of the loop.
    pub(super) fn attend_to_workers(&mut self, now: Tick, out: &mut Vec<Effect>) {
        let is_busy = !self.is_drained();
        let pages = self.totals.of_all_runs().pages;
        let Some(shared) = &mut self.shared else {
            return;
        };
        if is_busy {
            shared.end_rest(pages, out);
        }
        let pages = pages + self.backlog.leases();
        let is_short = shared
            .allowed
            .is_some_and(|allowed| allowed < pages + FEW_PAGES);
        let may_have = !self.end.is_ending() && !shared.rests() && !shared.are_pages_spent;
        if is_short && may_have && !std::mem::replace(&mut shared.asks_for_pages, true) {
            let rests = shared.rests;
            out.push(Effect::Share(SharedRequest::MorePages { pages, rests }));
        }
        if !shared.leaving.is_empty() && now.since(shared.looked_at) >= HAND_OVER_INTERVAL {
            shared.looked_at = now;
            self.hand_over(now, out);
        }
    }

    /// Returns whether another page may be asked for, as far as other workers go.
    pub(super) fn may_ask(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| {
            let may_have = shared.allowed;
            let has_leave = may_have.is_none_or(|allowed| {
                self.totals.of_all_runs().pages + self.backlog.leases() < allowed
            });
            has_leave && shared.owners.may_send()
        })
    }

    /// Returns whether no worker may have any more pages.
    pub(super) fn are_pages_spent(&self) -> Option<bool> {
        self.shared.as_ref().map(|shared| shared.are_pages_spent)
    }

    /// The end of this worker, of whom nothing is in flight, where it would end so if it were alone:
    /// none while others may still find something for it.
    pub(super) fn end_with_others(&mut self, alone: Ended, out: &mut Vec<Effect>) -> Option<Ended> {
        let pages = self.totals.of_all_runs().pages;
        let Some(shared) = &mut self.shared else {
            return Some(alone);
        };
        if shared.is_over {
            return Some(alone);
        }
        if !shared.leaving.is_empty() {
            // What waits there is this worker's until it is handed over.
            return None;
        }
        if !shared.rests() {
            // Leave that it does not need is for others.
            shared.allowed = shared.allowed.map(|_| pages);
            shared.asks_for_pages = false;
            shared.rests += 1;
            let rest = Some(shared.rests);
            shared.rest = rest;
            out.push(Effect::Share(SharedRequest::Rest { rest, pages }));
        }
        None
    }

    /// Lets go of hosts that are to be handed over, and has those buckets handed over of which
    /// nothing is under way.
    fn hand_over(&mut self, now: Tick, out: &mut Vec<Effect>) {
        let Some(shared) = &self.shared else { return };
        let owners = Arc::clone(&shared.owners);
        let is_leaving = |host: &HostKey| shared.leaving.contains_key(&owners.bucket_of(host));
        let hosts: Vec<HostKey> = self
            .scheduler
            .known_hosts()
            .filter(|it| is_leaving(it))
            .cloned()
            .collect();
        let mut busy = owners.leased_buckets();
        busy.extend(
            self.hosts
                .hosts_on_their_way()
                .map(|host| owners.bucket_of(host)),
        );
        for host in hosts {
            match self.scheduler.hand_over(now, &host) {
                Some(origins) => self.forget_host(&host, &origins),
                None => {
                    busy.insert(owners.bucket_of(&host));
                }
            }
        }
        let Some(shared) = &mut self.shared else {
            return;
        };
        let leaving = shared.leaving.iter_mut();
        let free = leaving.filter(|(b, is_asked)| !**is_asked && !busy.contains(b));
        let free: Vec<i32> = free
            .map(|(b, is_asked)| {
                *is_asked = true;
                *b
            })
            .collect();
        if !free.is_empty() {
            self.hosts
                .leave(|host| free.contains(&owners.bucket_of(host)));
            out.push(Effect::Share(SharedRequest::HandOver(free)));
        }
    }

    /// Nothing is known any more of a host that left memory.
    pub(super) fn forget_host(&mut self, host: &HostKey, origins: &[Origin]) {
        for origin in origins {
            self.origins.forget(origin);
        }
        self.host_budgets.forget(host);
        self.retries.forget(host);
        self.locks.free(host);
        self.spans.forget(host);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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
