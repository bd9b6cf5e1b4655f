//! Pages on their way to the readers, and pages that the readers give back unread at the end of a
//! run.

use crawl_scheduler::Tick;
use crawl_weburl::HostKey;

use super::Coordinator;
use super::page_requests::counts_as_page;
use crate::messages::Effect;
use crate::messages::page_pipeline_stages::FetchedPage;
use crate::priority::is_undecided_guess;

impl Coordinator {
    pub(super) fn hand_to_readers(&mut self, page: FetchedPage, out: &mut Vec<Effect>) {
        self.backlog
            .handed_to_readers(page.exchange.body.len() as u64);
        out.push(Effect::Read(Box::new(page)));
    }

    /// Takes back a page that was not read. Its URL is pending again, as after a kill, but its
    /// request stays in `requests.jsonl`.
    pub(super) fn take_back(&mut self, now: Tick, page: FetchedPage, out: &mut Vec<Effect>) {
        self.backlog.dropped_unread(page.exchange.body.len() as u64);
        self.unsettle(now, page, out);
    }

    /// Makes the URL of a fetched page pending again. The page must not be with a reader.
    pub(super) fn unsettle(&mut self, now: Tick, page: FetchedPage, out: &mut Vec<Effect>) {
        let FetchedPage {
            lease, exchange, ..
        } = page;
        tracing::debug!(url = %lease.url, "fetched and not read to the end, as the time is over");
        let host = lease.url.host_key();
        if is_undecided_guess(&lease, exchange.status) {
            self.guessed_sitemap_decided(now, &host, None);
        } else if counts_as_page(&lease, exchange.status) {
            let bytes = exchange.body.len() as u64;
            self.hosts.page_unsettled(&host, bytes);
        }
        self.release(now, lease);
        // The host state that was sent with the page counts the page as fetched. Replace that state
        // with a newer one that doesn't count the page.
        self.write_state(&host, out);
        self.hosts.states_kept(now, &[host]);
    }

    /// Ends the wait for the verdict on a guessed sitemap. If `bytes` is given, the sitemap counts
    /// as a page with a body of this length. Otherwise it doesn't count.
    pub(super) fn guessed_sitemap_decided(
        &mut self,
        now: Tick,
        host: &HostKey,
        bytes: Option<u64>,
    ) {
        let origins = self.hosts.page_ended(host);
        if let Some(bytes) = bytes {
            self.hosts.page_settled(host, bytes);
        }
        for origin in origins {
            self.wake_pending(now, &origin);
        }
        self.wake_group(now, host);
        self.hosts.free_if_idle(now, host);
    }
}

#[cfg(test)]
mod tests {
    use crawl_frontier::UrlToAdmit;

    use super::super::fixtures::{at, context, coordinator, leased};
    use crate::messages::page_pipeline_stages::FetchedPage;
    use crate::messages::{Effect, Event, WriterMessage};
    use crate::simulated_crawl_tests::scripted_servers::answer;

    #[test]
    fn a_page_returned_unread_does_not_count() {
        let mut coordinator = coordinator(|_| {});
        let url = coordinator.config.seeds[0].clone();
        let lease = leased(&*coordinator.frontier, UrlToAdmit::seed(url.clone()));
        let host = url.host_key();
        let before = coordinator.hosts.budgets_mut().stored(&host);
        coordinator.hosts.budgets_mut().settled(&host, 4);
        coordinator.leased_url_judge.leased(&lease.origin);
        coordinator.backlog.leased();
        coordinator.backlog.page_ended();
        let exchange = answer(200, "text").result(&url, at(20)).unwrap();
        let page = FetchedPage {
            context: context(&lease, ""),
            scope: std::sync::Arc::clone(coordinator.scope.current()),
            host: coordinator.hosts.state(&host),
            lease,
            exchange: Box::new(exchange),
            rendering: crate::messages::render::PageSourceToRead::default(),
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
            (
                coordinator.backlog.leases(),
                coordinator.leased_url_judge.all_leases()
            ),
            (0, 0)
        );
        assert_eq!(coordinator.hosts.budgets_mut().stored(&host), before);
        assert_eq!(coordinator.frontier.pending(&url.origin()), 1);
        // The host's state is the only message to the writer.
        assert!(matches!(*out, [Effect::Write(WriterMessage::Host(_))]));
        assert_eq!(coordinator.backlog.unsettled(), 1);
        coordinator.hosts.check_invariants(1);
    }
}
