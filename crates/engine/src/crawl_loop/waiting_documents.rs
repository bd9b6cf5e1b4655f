//! Documents that wait for a reading process: how many may wait per host, and how much memory all
//! of them may take.
//!
//! Waiting documents don't count towards the limits on unsettled items and on unread bytes. Slow
//! documents therefore hold up only requests to their own host, until all of them together fill
//! [`MAX_BYTES`]. In a replay no document waits, since each is read as soon as it is fetched.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use crawl_scheduler::Tick;
use crawl_weburl::{HostKey, Origin};

/// Maximum waiting documents of a host.
/// Beyond the limit: the host gets no permit.
const MAX_HOST_DOCUMENTS: u64 = 16;
/// Maximum bytes of waiting documents of a host.
/// Beyond the limit: the host gets no permit.
const MAX_HOST_BYTES: u64 = 16 << 20;
/// If at least this many documents wait, each host may have only one waiting document.
const MANY_DOCUMENTS: u64 = 128;
/// Maximum bytes of all waiting documents.
/// Beyond the limit: no host gets a permit.
const MAX_BYTES: u64 = 256 << 20;
/// Bytes to count for a waiting document besides its body: its URL, headers and place in the queue.
const DOCUMENT_OVERHEAD: u64 = 16 << 10;
/// Number of waiting documents that fill [`MAX_BYTES`] even if their bodies are empty.
#[cfg(test)]
pub(super) const MAX_DOCUMENTS: u64 = MAX_BYTES / DOCUMENT_OVERHEAD;

/// How long waiting documents may still be read after a stop. After that, they are given up and
/// their URLs are pending again.
const STOP_GRACE: Duration = Duration::from_millis(250);

/// When a run that is being stopped gives up the documents that still wait to be read, if at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopGraceDeadline {
    /// There is nothing to give up, or it was given up already.
    No,
    At(Tick),
    Now,
}

/// Counts the documents that wait for a reading process, and decides which hosts have too many to
/// get another permit.
///
/// [`add`](Self::add) and [`remove`](Self::remove) come in pairs. If
/// [`turns_away`](Self::turns_away) reports a host as full, its permit is not used. Later, `remove`
/// returns the origins that may get permits again. After [`stop`](Self::stop), each step of the
/// loop calls [`give_up`](Self::give_up). Emits no effects.
#[derive(Debug, Default)]
pub(super) struct WaitingDocumentTracker {
    /// The number of waiting documents of each host, and their total bytes.
    hosts: HashMap<HostKey, (u64, u64)>,
    count: u64,
    /// The bytes of the bodies of all waiting documents.
    bytes: u64,
    /// By host: the origins whose permits were not used because the host was full.
    turned_away: BTreeMap<HostKey, BTreeSet<Origin>>,
    stopped_at: Option<Tick>,
    are_given_up: bool,
}

impl WaitingDocumentTracker {
    /// Returns whether another document may wait.
    pub(super) fn have_room(&self) -> bool {
        self.bytes + self.count * DOCUMENT_OVERHEAD < MAX_BYTES
    }

    pub(super) fn body_bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether a host gets no permits until one of its documents is read.
    fn is_full(&self, host: &HostKey) -> bool {
        let max = match self.count < MANY_DOCUMENTS {
            true => MAX_HOST_DOCUMENTS,
            false => 1,
        };
        let of_host = self.hosts.get(host);
        of_host.is_some_and(|(count, bytes)| *count >= max || *bytes >= MAX_HOST_BYTES)
    }

    /// Returns whether a host has too many waiting documents. If so, [`remove`](Self::remove)
    /// returns the origin once there is room.
    pub(super) fn turns_away(&mut self, host: &HostKey, origin: &Origin) -> bool {
        let is_full = self.is_full(host);
        if is_full {
            let of_host = self.turned_away.entry(host.clone()).or_default();
            of_host.insert(origin.clone());
        }
        is_full
    }

    pub(super) fn add(&mut self, host: HostKey, bytes: u64) {
        let of_host = self.hosts.entry(host).or_default();
        *of_host = (of_host.0 + 1, of_host.1 + bytes);
        self.count += 1;
        self.bytes += bytes;
    }

    /// Removes a document of a host. Returns the origins that got no permit before and may get one
    /// now.
    pub(super) fn remove(&mut self, host: &HostKey, bytes: u64) -> BTreeSet<Origin> {
        if let Some((count, all)) = self.hosts.get_mut(host) {
            *count -= 1;
            *all = all.saturating_sub(bytes);
            self.count -= 1;
            self.bytes = self.bytes.saturating_sub(bytes);
            if *count == 0 {
                self.hosts.remove(host);
            }
        }
        // Fewer than `MANY_DOCUMENTS` wait now, so each host may have more than one waiting
        // document again.
        if self.count == MANY_DOCUMENTS - 1 {
            let (still, woken) = std::mem::take(&mut self.turned_away)
                .into_iter()
                .partition(|(host, _)| self.is_full(host));
            self.turned_away = still;
            let woken: BTreeMap<HostKey, BTreeSet<Origin>> = woken;
            return woken.into_values().flatten().collect();
        }
        match self.is_full(host) {
            true => BTreeSet::new(),
            false => self.turned_away.remove(host).unwrap_or_default(),
        }
    }

    /// Starts the grace period in which waiting documents may still be read.
    pub(super) fn stop(&mut self, now: Tick) {
        self.stopped_at.get_or_insert(now);
    }

    /// Returns when to give up the waiting documents: once the grace period after a stop is over.
    pub(super) fn give_up(&mut self, now: Tick) -> StopGraceDeadline {
        let Some(stopped_at) = self.stopped_at else {
            return StopGraceDeadline::No;
        };
        if self.count == 0 || self.are_given_up {
            return StopGraceDeadline::No;
        }
        let until = stopped_at + STOP_GRACE;
        if now < until {
            return StopGraceDeadline::At(until);
        }
        self.are_given_up = true;
        StopGraceDeadline::Now
    }
}

#[cfg(test)]
mod tests {
    use crawl_frontier::UrlToAdmit;
    use crawl_weburl::{Origin, canonicalize};

    use super::super::fixtures::{at, coordinator, copy, open_to_all};
    use super::super::{Coordinator, DriverStep};
    use super::{MANY_DOCUMENTS, MAX_BYTES, MAX_HOST_DOCUMENTS, STOP_GRACE};
    use crate::control::StopUrgency;
    use crate::messages::{Effect, Event};

    fn origin(host: &str) -> Origin {
        Origin::parse(&format!("http://{host}.example")).unwrap()
    }

    fn wait(coordinator: &mut Coordinator, host: &str, count: u64) {
        wait_with(coordinator, host, count, 1);
    }

    fn wait_with(coordinator: &mut Coordinator, host: &str, count: u64, bytes: u64) {
        for _ in 0..count {
            coordinator.backlog.written(1, 0);
            let event = Event::DocumentWaits {
                host: origin(host).host_key(),
                bytes,
            };
            coordinator.handle(at(20), event, &mut Vec::new());
        }
    }

    fn hosts_with_permits(coordinator: &mut Coordinator, now: u64) -> Vec<String> {
        let mut out = Vec::new();
        coordinator.advance(at(now), &mut out);
        let host = |effect: &Effect| match effect {
            Effect::Fetch { job, .. } => Some(job.url().host().to_owned()),
            // An idle host may have been evicted together with its address. Its permit then causes
            // an address look-up.
            Effect::FindAddress { url, .. } => Some(url.host().to_owned()),
            _ => None,
        };
        out.iter().filter_map(host).collect()
    }

    /// Creates a crawl of two hosts, each with pending URLs.
    fn two_hosts() -> Coordinator {
        let mut coordinator = coordinator(|_| {});
        let frontier = std::sync::Arc::clone(&coordinator.frontier);
        let mut transaction = frontier.begin().unwrap();
        for (number, host) in [(1, "a"), (2, "b")] {
            for page in 0..3 {
                let url = canonicalize(None, &format!("{}/{page}", origin(host))).unwrap();
                transaction.admit(UrlToAdmit::seed(url)).unwrap();
            }
            coordinator.wake(at(20), &origin(host), 3);
            coordinator.robots.keep(copy(&origin(host), ""));
            let scheduler = coordinator.hosts.scheduler();
            scheduler.set_robots(at(20), &origin(host), open_to_all());
            let address = std::net::Ipv4Addr::new(192, 0, 2, number).into();
            scheduler.set_address(at(20), &origin(host).host_key(), address);
        }
        transaction.commit().unwrap();
        coordinator
    }

    #[test]
    fn a_host_with_waiting_documents_gets_no_permit() {
        let mut coordinator = two_hosts();
        wait(&mut coordinator, "a", MAX_HOST_DOCUMENTS);
        assert_eq!(hosts_with_permits(&mut coordinator, 21), ["b.example"]);
        let event = Event::DocumentEnded {
            host: origin("a").host_key(),
            bytes: 1,
        };
        coordinator.handle(at(22), event, &mut Vec::new());
        assert_eq!(hosts_with_permits(&mut coordinator, 22), ["a.example"]);
    }

    #[test]
    fn documents_of_a_thousand_hosts_hold_up_no_other_host() {
        let mut coordinator = two_hosts();
        // More documents wait than items may be unsettled, and the last commit was long ago.
        for host in 0..1000 {
            wait(&mut coordinator, &format!("host-{host}"), 1);
        }
        assert_eq!(hosts_with_permits(&mut coordinator, 60).len(), 2);
    }

    #[test]
    fn while_many_documents_wait_a_host_may_have_only_one() {
        let mut coordinator = two_hosts();
        wait(&mut coordinator, "c", MANY_DOCUMENTS);
        wait(&mut coordinator, "a", 1);
        assert_eq!(hosts_with_permits(&mut coordinator, 21), ["b.example"]);
    }

    #[test]
    fn no_host_gets_a_permit_while_the_documents_fill_their_memory() {
        let mut coordinator = two_hosts();
        wait_with(&mut coordinator, "c", 1, MAX_BYTES);
        assert!(hosts_with_permits(&mut coordinator, 21).is_empty());
        let event = Event::DocumentEnded {
            host: origin("c").host_key(),
            bytes: MAX_BYTES,
        };
        coordinator.handle(at(22), event, &mut Vec::new());
        assert_eq!(hosts_with_permits(&mut coordinator, 22).len(), 2);
    }

    #[test]
    fn a_stop_gives_up_documents_that_are_not_read_soon() {
        let mut coordinator = two_hosts();
        wait(&mut coordinator, "a", 3);
        let mut out = Vec::new();
        coordinator.handle(at(21), Event::Stop(StopUrgency::Drain), &mut out);
        let until = at(21) + STOP_GRACE;
        let next = coordinator.advance(at(21), &mut out);
        assert_eq!(next, DriverStep::Wait(Some(until)));
        assert!(out.is_empty());
        for _ in 0..2 {
            assert_eq!(coordinator.advance(until, &mut out), DriverStep::Wait(None));
            assert!(matches!(*out, [Effect::GiveUpDocuments]));
        }
    }
}
