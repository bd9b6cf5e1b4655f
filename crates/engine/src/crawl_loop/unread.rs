//! Pages between the fetcher and the readers, and those that come back unread at the end of a run.

use crawl_scheduler::Tick;

use super::Coordinator;
use super::lease::counts_as_page;
use crate::messages::page::FetchedPage;
use crate::messages::{Effect, WriterMessage};

impl Coordinator {
    /// Takes the number of threads that read pages.
    pub(crate) fn read_by(&mut self, threads: usize) {
        self.backlog.read_by(threads);
    }

    pub(super) fn hand_to_readers(&mut self, page: FetchedPage, out: &mut Vec<Effect>) {
        self.backlog
            .handed_to_readers(page.exchange.body.len() as u64);
        out.push(Effect::Read(Box::new(page)));
    }

    /// A page came back from the readers as it was: its URL is pending again, as after a kill. Its
    /// request stands in `requests.jsonl`.
    pub(super) fn given_back(&mut self, now: Tick, page: FetchedPage, out: &mut Vec<Effect>) {
        let FetchedPage {
            lease, exchange, ..
        } = page;
        tracing::debug!(url = %lease.url, "fetched and not read to the end, as the time is over");
        self.backlog.dropped_unread(exchange.body.len() as u64);
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
    use crawl_frontier::Admission;

    use super::super::by_itself::{at, context, coordinator, leased};
    use crate::messages::page::FetchedPage;
    use crate::messages::{Effect, Event, WriterMessage};
    use crate::simulated::script::answer;

    #[test]
    fn ours_a_page_that_comes_back_unread_counts_for_nothing() {
        let mut coordinator = coordinator(|_| {});
        let url = coordinator.config.seeds[0].clone();
        let lease = leased(&*coordinator.frontier, Admission::seed(url.clone()));
        let host = url.host_key();
        let before = coordinator.host_budgets.stored(&host);
        coordinator.host_budgets.settled(&host);
        coordinator.traps.leased(&lease.origin);
        coordinator.backlog.leased();
        coordinator.backlog.page_ended();
        let exchange = answer(200, "text").result(&url, at(20)).unwrap();
        let page = FetchedPage {
            context: context(&lease, ""),
            scope: std::sync::Arc::clone(coordinator.scope.current()),
            host: coordinator.host_state(&host),
            lease,
            exchange: Box::new(exchange),
        };
        let mut out = Vec::new();
        coordinator.hand_to_readers(page, &mut out);
        assert_eq!(coordinator.backlog.bytes(), (4, 4));
        let Some(Effect::Read(page)) = out.pop() else {
            panic!("it is not read");
        };
        coordinator.handle(at(20), Event::GivenBackUnread(page), &mut out);
        assert_eq!(coordinator.backlog.bytes(), (0, 0));
        assert_eq!(
            (coordinator.backlog.leases(), coordinator.traps.all_leases()),
            (0, 0)
        );
        assert_eq!(coordinator.host_budgets.stored(&host), before);
        assert_eq!(coordinator.frontier.pending(&url.origin()), 1);
        // The host's state alone is on its way.
        assert!(matches!(*out, [Effect::Write(WriterMessage::Host(_))]));
        assert_eq!(coordinator.backlog.unsettled(), 1);
        coordinator.hosts.check_invariants(1);
    }
}
