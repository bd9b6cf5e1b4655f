//! Documents that wait for a reading process, by host: how many may wait, and what holds their
//! hosts back.
//!
//! They count neither as unsettled nor as unread: a host whose documents take long holds up itself
//! alone. A replay reads each document where it is fetched, so none wait there.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use crawl_scheduler::Tick;
use crawl_weburl::{HostKey, Origin};

use super::Coordinator;
use crate::control::Stop;
use crate::messages::Effect;

/// Documents of one host that may wait before it gets no further permit.
const MAX_HOST_DOCUMENTS: u64 = 16;
/// Bytes of documents of one host that may wait before it gets no further permit.
const MAX_HOST_BYTES: u64 = 16 << 20;
/// Documents of all hosts beyond which each may have a single one waiting.
const MANY_DOCUMENTS: u64 = 128;
/// Documents of all hosts at which no host gets a permit.
const MAX_DOCUMENTS: u64 = 512;

/// The time that documents have once a stop was asked for. Then their URLs are pending again.
const STOP_GRACE: Duration = Duration::from_millis(250);

#[derive(Debug, Default)]
pub(super) struct WaitingDocuments {
    /// Count and bytes.
    hosts: HashMap<HostKey, (u64, u64)>,
    count: u64,
    /// Origins of hosts that were full when their turn came.
    turned_away: BTreeSet<Origin>,
    stopped_at: Option<Tick>,
    are_given_up: bool,
}

impl WaitingDocuments {
    pub(super) fn have_room(&self) -> bool {
        self.count < MAX_DOCUMENTS
    }

    /// Returns whether a host has to wait until one of its documents was read.
    pub(super) fn is_full(&self, host: &HostKey) -> bool {
        let max = match self.count < MANY_DOCUMENTS {
            true => MAX_HOST_DOCUMENTS,
            false => 1,
        };
        let of_host = self.hosts.get(host);
        of_host.is_some_and(|(count, bytes)| *count >= max || *bytes >= MAX_HOST_BYTES)
    }

    /// Notes an origin whose host is full, to be woken later.
    pub(super) fn turn_away(&mut self, origin: &Origin) {
        self.turned_away.insert(origin.clone());
    }

    pub(super) fn stop(&mut self, now: Tick) {
        self.stopped_at.get_or_insert(now);
    }
}

impl Coordinator {
    /// A page turned out to be a document, and waits for a process that reads it.
    pub(super) fn document_waits(&mut self, host: HostKey, bytes: u64) {
        let of_host = self.documents.hosts.entry(host).or_default();
        *of_host = (of_host.0 + 1, of_host.1 + bytes);
        self.documents.count += 1;
    }

    /// A document was read, or is about to be given back.
    pub(super) fn document_ended(&mut self, now: Tick, host: &HostKey, bytes: u64) {
        // The disk is waited for from now on, not since the page was fetched.
        self.note_nothing_waits(now);
        let documents = &mut self.documents;
        if let Some((count, all)) = documents.hosts.get_mut(host) {
            *count -= 1;
            *all = all.saturating_sub(bytes);
            documents.count -= 1;
            if *count == 0 {
                documents.hosts.remove(host);
            }
        }
        let (still, woken) = std::mem::take(&mut self.documents.turned_away)
            .into_iter()
            .partition(|origin: &Origin| self.documents.is_full(&origin.host_key()));
        self.documents.turned_away = still;
        for origin in woken {
            self.wake(now, &origin, self.frontier.pending(&origin));
        }
    }

    /// Jobs and messages that are not committed, without the documents that wait.
    pub(super) fn unsettled_but_documents(&self) -> u64 {
        self.unsettled.saturating_sub(self.documents.count)
    }

    /// Gives the documents up that still wait some time after a stop; returns when that will be.
    pub(super) fn give_up_documents(&mut self, now: Tick, out: &mut Vec<Effect>) -> Option<Tick> {
        let documents = &mut self.documents;
        if self.stop == Stop::No || documents.count == 0 || documents.are_given_up {
            return None;
        }
        let until = documents.stopped_at? + STOP_GRACE;
        if now < until {
            return Some(until);
        }
        documents.are_given_up = true;
        out.push(Effect::GiveUpDocuments);
        None
    }
}

#[cfg(test)]
mod tests {
    use crawl_frontier::Admission;
    use crawl_weburl::{Origin, canonicalize};

    use super::super::by_itself::{at, coordinator, copy, open_to_all};
    use super::super::{Coordinator, Next};
    use super::{MAX_DOCUMENTS, MAX_HOST_DOCUMENTS, STOP_GRACE};
    use crate::control::Stop;
    use crate::messages::{Effect, Event};

    fn origin(host: &str) -> Origin {
        Origin::parse(&format!("http://{host}.example")).unwrap()
    }

    fn wait(coordinator: &mut Coordinator, host: &str, count: u64) {
        for _ in 0..count {
            coordinator.unsettled += 1;
            let event = Event::DocumentWaits {
                host: origin(host).host_key(),
                bytes: 1,
            };
            coordinator.handle(at(20), event, &mut Vec::new());
        }
    }

    /// The hosts that get a permit now.
    fn asked(coordinator: &mut Coordinator, now: u64) -> Vec<String> {
        let mut out = Vec::new();
        coordinator.advance(at(now), &mut out);
        let host = |effect: &Effect| match effect {
            Effect::Fetch { job, .. } => Some(job.url().host().to_owned()),
            // An idle host may have been evicted with its address.
            Effect::FindAddress { url, .. } => Some(url.host().to_owned()),
            _ => None,
        };
        out.iter().filter_map(host).collect()
    }

    /// A crawl with two hosts that each have URLs waiting.
    fn two_hosts() -> Coordinator {
        let mut coordinator = coordinator(|_| {});
        let frontier = std::sync::Arc::clone(&coordinator.frontier);
        let mut transaction = frontier.begin().unwrap();
        for (number, host) in [(1, "a"), (2, "b")] {
            for page in 0..3 {
                let url = canonicalize(None, &format!("{}/{page}", origin(host))).unwrap();
                transaction.admit(Admission::seed(url)).unwrap();
            }
            coordinator.wake(at(20), &origin(host), 3);
            coordinator.origins.keep(copy(&origin(host), ""));
            let scheduler = &mut coordinator.scheduler;
            scheduler.set_robots(at(20), &origin(host), open_to_all());
            let address = std::net::Ipv4Addr::new(192, 0, 2, number).into();
            scheduler.set_address(at(20), &origin(host).host_key(), address);
        }
        transaction.commit().unwrap();
        coordinator
    }

    #[test]
    fn ours_a_host_whose_documents_wait_gets_no_permit_while_others_do() {
        let mut coordinator = two_hosts();
        wait(&mut coordinator, "a", MAX_HOST_DOCUMENTS);
        assert_eq!(asked(&mut coordinator, 21), ["b.example"]);
        let event = Event::DocumentEnded {
            host: origin("a").host_key(),
            bytes: 1,
        };
        coordinator.handle(at(22), event, &mut Vec::new());
        assert_eq!(asked(&mut coordinator, 22), ["a.example"]);
    }

    #[test]
    fn ours_documents_that_wait_use_up_no_room_of_other_pages() {
        let mut coordinator = two_hosts();
        // As many items as may be unsettled, and the last commit is long ago.
        wait(&mut coordinator, "c", MAX_DOCUMENTS - 1);
        assert_eq!(asked(&mut coordinator, 60).len(), 2);
        let mut coordinator = two_hosts();
        wait(&mut coordinator, "c", MAX_DOCUMENTS);
        assert_eq!(asked(&mut coordinator, 21).len(), 0);
    }

    #[test]
    fn ours_a_stop_gives_documents_up_that_are_not_read_soon() {
        let mut coordinator = two_hosts();
        wait(&mut coordinator, "a", 3);
        let mut out = Vec::new();
        coordinator.handle(at(21), Event::Stop(Stop::Drain), &mut out);
        let until = at(21) + STOP_GRACE;
        let next = coordinator.advance(at(21), &mut out);
        assert_eq!(next, Next::Wait(Some(until)));
        assert!(out.is_empty());
        for _ in 0..2 {
            assert_eq!(coordinator.advance(until, &mut out), Next::Wait(None));
            assert!(matches!(*out, [Effect::GiveUpDocuments]));
        }
    }
}
