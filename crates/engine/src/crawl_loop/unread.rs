//! Pages between the fetcher and the readers: how many bytes may wait, and what becomes of them
//! and of requests under way when the time of a run is over.

use std::time::Duration;

use crawl_scheduler::Tick;

use super::Coordinator;
use super::lease::counts_as_page;
use crate::messages::page::FetchedPage;
use crate::messages::{Effect, WriterMessage};

/// Bytes of pages that wait for a reader at which no more permits are asked for, for each thread
/// that reads. Of the pages that take longest, Chinese ones for an index, a thread of a debug
/// build reads as many in a second.
const MAX_UNREAD_BYTES: u64 = 4 << 20;

/// The time for which what is under way goes on once the time of a run is over: each page that is
/// given up costs its server a second request.
const GRACE: Duration = Duration::from_millis(500);

/// Pages that were fetched and are not begun to be read.
pub(crate) struct UnreadPages {
    bytes: u64,
    /// The bytes at which no more permits are asked for.
    max_bytes: u64,
    /// True once they are given up.
    are_given_up: bool,
}

impl Default for UnreadPages {
    fn default() -> UnreadPages {
        UnreadPages {
            bytes: 0,
            max_bytes: MAX_UNREAD_BYTES,
            are_given_up: false,
        }
    }
}

impl UnreadPages {
    pub(super) fn have_room(&self) -> bool {
        self.bytes < self.max_bytes
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Coordinator {
    /// Takes the number of threads that read pages.
    pub(crate) fn read_by(&mut self, threads: usize) {
        self.unread.max_bytes = MAX_UNREAD_BYTES.saturating_mul(threads.max(1) as u64);
    }

    pub(super) fn hand_to_readers(&mut self, page: FetchedPage, out: &mut Vec<Effect>) {
        let bytes = page.exchange.body.len() as u64;
        self.unsettled_bytes += bytes;
        self.unread.bytes += bytes;
        out.push(Effect::Read(Box::new(page)));
    }

    /// A reader began to read a page of so many bytes.
    pub(super) fn reading_began(&mut self, bytes: u64) {
        self.unread.bytes = self.unread.bytes.saturating_sub(bytes);
    }

    /// Gives up requests and pages that are not read where the time of the run is over for long
    /// enough; else says when that will be.
    pub(super) fn give_up(&mut self, now: Tick, out: &mut Vec<Effect>) -> Option<Tick> {
        let until = self.deadline()? + GRACE;
        if self.unread.are_given_up {
            return None;
        }
        if now < until {
            return Some(until);
        }
        self.unread.are_given_up = true;
        out.push(Effect::GiveUp);
        None
    }

    /// A page came back from the readers as it was: its URL is pending again, as after a kill. Its
    /// request stands in `requests.jsonl`.
    pub(super) fn given_back(&mut self, now: Tick, page: FetchedPage, out: &mut Vec<Effect>) {
        let FetchedPage {
            lease, exchange, ..
        } = page;
        tracing::debug!(url = %lease.url, "fetched and not read to the end, as the time is over");
        let bytes = exchange.body.len() as u64;
        self.unsettled_bytes = self.unsettled_bytes.saturating_sub(bytes);
        let host = lease.url.host_key();
        if counts_as_page(&lease, exchange.status) {
            self.host_budgets.unsettled(&host);
        }
        self.release(now, lease);
        // The state that went with the page counts it, and is dropped.
        let state = self.host_state(&host);
        self.hosts.states_kept(now, &[host]);
        self.write(WriterMessage::Host(Box::new(state)), out);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crawl_frontier::Admission;

    use super::super::by_itself::{at, context, coordinator, leased};
    use super::GRACE;
    use crate::messages::page::FetchedPage;
    use crate::messages::{Effect, Event, WriterMessage};
    use crate::simulated::script::answer;

    #[test]
    fn ours_what_is_under_way_is_given_up_once_and_not_before_its_grace_is_over() {
        let mut coordinator =
            coordinator(|config| config.budgets.max_time = Some(Duration::from_secs(100)));
        let until = at(110) + GRACE;
        let mut out = Vec::new();
        for now in [at(20), at(110)] {
            assert_eq!(coordinator.give_up(now, &mut out), Some(until));
            assert!(out.is_empty());
        }
        for now in [until, until + GRACE] {
            assert_eq!(coordinator.give_up(now, &mut out), None);
            assert!(matches!(*out, [Effect::GiveUp]));
        }
    }

    #[test]
    fn ours_each_reader_has_four_mebibytes_of_pages_waiting() {
        for (readers, most) in [(0, 4 << 20), (1, 4 << 20), (3, 12 << 20)] {
            let mut coordinator = coordinator(|_| {});
            coordinator.read_by(readers);
            coordinator.unread.bytes = most;
            assert!(!coordinator.unread.have_room(), "{readers}");
            coordinator.reading_began(1);
            assert!(coordinator.unread.have_room(), "{readers}");
            coordinator.reading_began(u64::MAX);
            assert_eq!(coordinator.unread.bytes(), 0);
        }
    }

    #[test]
    fn ours_a_page_that_comes_back_unread_counts_for_nothing() {
        let mut coordinator = coordinator(|_| {});
        let url = coordinator.config.seeds[0].clone();
        let lease = leased(&*coordinator.frontier, Admission::seed(url.clone()));
        let host = url.host_key();
        let before = coordinator.host_budgets.stored(&host);
        coordinator.host_budgets.settled(&host);
        coordinator.traps.leased(&lease.origin);
        (coordinator.unsettled, coordinator.leases_out) = (1, 1);
        let exchange = answer(200, "text").result(&url, at(20)).unwrap();
        let page = FetchedPage {
            context: context(&lease, ""),
            scope: std::sync::Arc::clone(&coordinator.scope),
            host: coordinator.host_state(&host),
            lease,
            exchange: Box::new(exchange),
        };
        let mut out = Vec::new();
        coordinator.hand_to_readers(page, &mut out);
        assert_eq!(
            (coordinator.unsettled_bytes, coordinator.unread.bytes()),
            (4, 4)
        );
        let Some(Effect::Read(page)) = out.pop() else {
            panic!("it is not read");
        };
        coordinator.handle(at(20), Event::GivenBackUnread(page), &mut out);
        assert_eq!(
            (coordinator.unsettled_bytes, coordinator.unread.bytes()),
            (0, 0)
        );
        assert_eq!(
            (coordinator.leases_out, coordinator.traps.all_leases()),
            (0, 0)
        );
        assert_eq!(coordinator.host_budgets.stored(&host), before);
        assert_eq!(coordinator.frontier.pending(&url.origin()), 1);
        // The host's state alone is on its way.
        assert!(matches!(*out, [Effect::Write(WriterMessage::Host(_))]));
        assert_eq!(coordinator.unsettled, 1);
        coordinator.hosts.check_invariants(1);
    }
}
