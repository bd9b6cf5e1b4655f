//! The use of a permit: from the scheduler's leave to a request.

use std::time::Duration;

use crawl_scheduler::{Admission, Permit, Purpose, Tick};
use crawl_weburl::CanonicalUrl;

use super::{Coordinator, request_rows};
use crate::messages::Effect;

/// The time for which a host is left alone that another crawl is asking.
const OTHER_CRAWL_WAIT: Duration = Duration::from_secs(10);

impl Coordinator {
    /// Uses a permit, or finds out first where its request would go.
    pub(super) fn issue(&mut self, now: Tick, permit: Permit, out: &mut Vec<Effect>) {
        if !self.hosts.hold(permit.host()) {
            let host = permit.host().clone();
            self.scheduler.give_back(now, permit);
            let later = now + OTHER_CRAWL_WAIT;
            return self.scheduler.wait_for_other_crawl(now, &host, later);
        }
        match self.url_to_find(&permit) {
            Some(url) => {
                let permit = self.scheduler.set_aside(now, permit);
                self.requests.look_up_began();
                out.push(Effect::FindAddress { permit, url });
            }
            // No request follows, for example to an excluded host.
            None if permit.is_set_aside() => self.requests.skip_look_up(permit),
            None => self.use_permit(now, permit, out),
        }
    }

    /// The URL whose address is to be found before it is asked for: an origin's robots.txt, since
    /// its name may lead elsewhere by now, and else where the host's address is not known. What
    /// goes through a proxy counts at no address.
    fn url_to_find(&self, permit: &Permit) -> Option<CanonicalUrl> {
        if self.config.fetch.proxy.is_some() {
            return None;
        }
        match permit.purpose() {
            Purpose::Robots { .. } | Purpose::Page { .. }
                if self.scope.is_left_out(permit.host()) =>
            {
                None
            }
            Purpose::Hop { of }
                if self.scope.is_left_out(permit.host())
                    || self.scope.is_left_out(&of.host_key()) =>
            {
                None
            }
            Purpose::Robots { origin } => Some(origin.robots_url()),
            Purpose::Hop { of } => self.origins.pending_hop(of).cloned(),
            Purpose::Page { .. } if self.scheduler.has_address(permit.host()) => None,
            Purpose::Page { origin } => Some(origin.url("/")),
        }
    }

    /// Uses the oldest permit whose look-up ended.
    ///
    /// # Errors
    /// No such permit, or no room for its request before the given tick.
    pub(super) fn use_found(
        &mut self,
        now: Tick,
        out: &mut Vec<Effect>,
    ) -> Result<(), Option<Tick>> {
        let (permit, address) = self.requests.next_found().ok_or(None)?;
        match self.scheduler.admit(now, permit, address) {
            Admission::Send(permit) => self.use_permit(now, permit, out),
            Admission::GivenBack => {}
            Admission::Wait(permit, until) => {
                self.requests.put_back(permit, address);
                return Err(until);
            }
        }
        Ok(())
    }

    /// Gives back all permits whose look-up ended, because the run sends no more requests.
    pub(super) fn give_found_back(&mut self, now: Tick) {
        while let Some((permit, _)) = self.requests.next_found() {
            self.scheduler.give_back(now, permit);
        }
    }

    fn use_permit(&mut self, now: Tick, permit: Permit, out: &mut Vec<Effect>) {
        let before = out.len();
        self.turns.begin();
        let job = match permit.purpose().clone() {
            Purpose::Page { origin } => self.next_page(now, permit.host(), &origin, out),
            Purpose::Robots { origin } if self.scope.is_left_out(permit.host()) => {
                self.leave_out(now, &origin);
                Ok(None)
            }
            Purpose::Robots { origin } => {
                let url = origin.robots_url();
                self.robots_job(origin, url, 0).map(Some)
            }
            Purpose::Hop { of } => self.pending_fetch_job(now, of),
        };
        let is_sent = matches!(job, Ok(Some(_)));
        let progress = (
            self.requests.ended_in_run(),
            self.totals.of_all_runs().messages,
        );
        if let Some(turn) = (self.turns).record(now, permit.purpose(), is_sent, progress) {
            // It is noted before its request is sent.
            out.insert(before, Effect::NoteTurn(turn));
        }
        match job {
            Ok(Some(job)) => {
                self.requests.sent();
                let purpose = request_rows::purpose(&job);
                let (spans, url) = (self.hosts.spans(), job.url());
                let span = self.events.exchange(spans, &permit, url, purpose);
                out.push(Effect::Fetch { permit, job, span });
            }
            Ok(None) => {
                let (host, purpose) = (permit.host().clone(), permit.purpose().clone());
                self.scheduler.give_back(now, permit);
                if let Purpose::Hop { .. } = purpose {
                    self.scheduler.cancel_request(now, &host, &purpose);
                }
                self.free_if_idle(&host);
            }
            Err(error) => {
                self.fail(error);
                self.scheduler.give_back(now, permit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::time::Duration;

    use crawl_scheduler::{Permit, Poll, Purpose, Tick};
    use crawl_weburl::{CanonicalUrl, Origin, canonicalize};
    use tokio::sync::oneshot;

    use super::super::Coordinator;
    use super::super::by_itself::{at, config, coordinator, open_to_all, pages};
    use super::super::host_locks::HostLocks;
    use super::super::robots_state::PendingRobotsFetch;
    use crate::config::Config;
    use crate::control::{Command, PostedCommand, Stop};
    use crate::messages::{Effect, Event};
    use crate::summary::Ended;

    fn origin() -> Origin {
        Origin::parse("http://a.example").unwrap()
    }

    fn url(path: &str) -> CanonicalUrl {
        canonicalize(None, &format!("http://a.example{path}")).unwrap()
    }

    /// A permit of the one host that has something to ask.
    fn permit(coordinator: &mut Coordinator) -> Permit {
        match coordinator.scheduler.poll(at(20)) {
            Poll::Issue(permit) => permit,
            other => panic!("no permit: {other:?}"),
        }
    }

    fn asks_at(coordinator: &mut Coordinator, now: u64) -> Option<Tick> {
        match coordinator.scheduler.poll(at(now)) {
            Poll::Issue(_) => Some(at(now)),
            Poll::SleepUntil(tick) => Some(tick),
            Poll::Idle => None,
        }
    }

    fn tell(coordinator: &mut Coordinator, command: Command) {
        let (answer, _) = oneshot::channel();
        coordinator.told(at(20), PostedCommand { command, answer }, &mut Vec::new());
    }

    /// Handles the end of a permit's look-up, and advances.
    fn address_found(
        coordinator: &mut Coordinator,
        permit: Permit,
        address: Option<IpAddr>,
    ) -> Vec<Effect> {
        let mut out = Vec::new();
        let permit = coordinator.scheduler.set_aside(at(20), permit);
        coordinator.requests.look_up_began();
        let event = Event::AddressFound { permit, address };
        coordinator.handle(at(20), event, &mut out);
        let _ = coordinator.advance(at(20), &mut out);
        out
    }

    fn sent(out: &[Effect]) -> usize {
        let is_sent = |effect: &&Effect| matches!(effect, Effect::Fetch { .. });
        out.iter().filter(is_sent).count()
    }

    #[test]
    fn ours_a_permit_whose_address_was_found_is_used_unless_the_run_is_held() {
        type Hold = fn(&mut Coordinator);
        let holds: [(Hold, bool); 7] = [
            (|_| {}, false),
            (|it| it.end.end(Ended::Finished), true),
            (|it| it.end.stop(Stop::Drain), true),
            (|it| it.backlog.written(u64::from(u32::MAX), 0), true),
            (|it| it.totals.committed(pages(7)), true),
            (|it| tell(it, Command::Pause), true),
            (|it| it.scheduler.park(at(20), &origin().host_key()), true),
        ];
        for (number, (hold, is_held)) in holds.into_iter().enumerate() {
            let mut coordinator = coordinator(|config| config.budgets.max_pages = Some(7));
            coordinator.scheduler.set_pending(at(20), &origin(), 1);
            let permit = permit(&mut coordinator);
            hold(&mut coordinator);
            let out = address_found(&mut coordinator, permit, None);
            assert_eq!(sent(&out), usize::from(!is_held), "{number}");
            let in_flight = coordinator.scheduler.in_flight();
            assert_eq!(in_flight, u32::from(!is_held), "{number}");
        }
    }

    #[test]
    fn ours_a_request_counts_at_the_address_that_was_found_for_it() {
        let address = "192.0.2.7".parse().unwrap();
        for (per_address, is_sent) in [(1, false), (2, true)] {
            let mut coordinator = coordinator(|config| config.politeness.per_address = per_address);
            let other = Origin::parse("http://b.example").unwrap();
            coordinator.scheduler.set_pending(at(20), &other, 1);
            let first = permit(&mut coordinator);
            let first = address_found(&mut coordinator, first, Some(address));
            assert_eq!(sent(&first), 1);
            coordinator.scheduler.set_pending(at(20), &origin(), 1);
            let second = permit(&mut coordinator);
            let second = address_found(&mut coordinator, second, Some(address));
            assert!(coordinator.scheduler.has_address(&origin().host_key()));
            assert_eq!(sent(&second), usize::from(is_sent));
            assert_eq!(coordinator.requests.count(), 1 + u32::from(is_sent));
        }
    }

    #[test]
    fn names_are_looked_up_beside_the_requests_in_flight() {
        let mut coordinator = coordinator(|config| {
            config.politeness.concurrency = 1;
            config.politeness.look_ups = 3;
        });
        for host in 0..5 {
            let origin = Origin::parse(&format!("http://h{host}.example")).unwrap();
            coordinator.scheduler.set_pending(at(20), &origin, 1);
        }
        let mut out = Vec::new();
        let _ = coordinator.advance(at(20), &mut out);
        let mut permits = Vec::new();
        for effect in out.drain(..) {
            if let Effect::FindAddress { permit, .. } = effect {
                permits.push(permit);
            }
        }
        assert_eq!(permits.len(), 3);
        let mut requests = 0;
        for permit in permits {
            let address = None;
            let event = Event::AddressFound { permit, address };
            coordinator.handle(at(20), event, &mut out);
            let _ = coordinator.advance(at(20), &mut out);
            requests = sent(&out);
        }
        // The concurrency is 1, so two wait, without another look-up.
        assert_eq!((requests, coordinator.requests.found()), (1, 2));
        coordinator.end.stop(Stop::Drain);
        let _ = coordinator.advance(at(20), &mut out);
        assert_eq!(coordinator.requests.found(), 0);
    }

    #[test]
    fn ours_the_address_is_looked_for_where_it_may_have_changed_or_is_not_known() {
        type Change = fn(&mut Coordinator);
        let nothing: Change = |_| {};
        let page: Change = |it| it.scheduler.set_robots(at(20), &origin(), open_to_all());
        let found: Change = |it| {
            let address = "192.0.2.7".parse().unwrap();
            it.scheduler.set_robots(at(20), &origin(), open_to_all());
            it.scheduler
                .set_address(at(20), &origin().host_key(), address);
        };
        for (number, (change, proxy, expected)) in [
            (nothing, None, Some("/robots.txt")),
            (page, None, Some("/")),
            (found, None, None),
            (nothing, Some("http://proxy.example:3128"), None),
            (page, Some("http://proxy.example:3128"), None),
        ]
        .into_iter()
        .enumerate()
        {
            let mut coordinator =
                coordinator(|config| config.fetch.proxy = proxy.map(str::to_owned));
            coordinator.scheduler.set_pending(at(20), &origin(), 1);
            change(&mut coordinator);
            let permit = permit(&mut coordinator);
            let expected = expected.map(url);
            assert_eq!(coordinator.url_to_find(&permit), expected, "{number}");
            let mut out = Vec::new();
            coordinator.issue(at(20), permit, &mut out);
            let asked = out.iter().find_map(|effect| match effect {
                Effect::FindAddress { url, .. } => Some(url.clone()),
                _ => None,
            });
            assert_eq!(asked, expected, "{number}");
        }
    }

    #[test]
    fn ours_a_hop_goes_to_where_the_redirect_leads_and_without_one_robots_txt_is_asked_anew() {
        let hop = PendingRobotsFetch::Hop(url("/rules"), 1);
        for (pending, expected) in [(Some(hop), Some("/rules")), (None, None)] {
            let mut coordinator = coordinator(|_| {});
            let of = origin();
            if let Some(pending) = pending {
                coordinator.origins.set_pending_fetch(&of, pending);
            }
            let purpose = Purpose::Hop { of: of.clone() };
            let scheduler = &mut coordinator.scheduler;
            scheduler.set_pending(at(20), &of, 1);
            scheduler.set_robots(at(20), &of, open_to_all());
            scheduler.queue_request(at(20), &of.host_key(), purpose);
            let permit = permit(&mut coordinator);
            assert_eq!(coordinator.url_to_find(&permit), expected.map(url));
            let out = address_found(&mut coordinator, permit, None);
            let sent = out.iter().find_map(|effect| match effect {
                Effect::Fetch { job, .. } => Some(job.url().clone()),
                _ => None,
            });
            assert_eq!(sent, expected.map(url));
            if expected.is_none() {
                let next = out.iter().find_map(|effect| match effect {
                    Effect::FindAddress { permit, .. } => Some(permit.purpose().clone()),
                    _ => None,
                });
                assert_eq!(next, Some(Purpose::Robots { origin: of }));
            }
        }
    }

    #[test]
    fn ours_a_host_that_another_crawl_asks_is_left_alone_for_ten_seconds() {
        let dir = tempfile::tempdir().unwrap();
        let shared = |config: &mut Config| {
            config.host_locks = Some(dir.path().join("hosts.lock"));
            config.wait_unreachable = Duration::from_secs(1);
        };
        let locks = || {
            let mut config = config();
            shared(&mut config);
            HostLocks::shared(&config, at(10)).unwrap()
        };
        let mut other = locks();
        assert!(other.hold(&origin().host_key()));
        let mut coordinator = coordinator(shared);
        coordinator.share_hosts(locks());
        coordinator.scheduler.set_pending(at(20), &origin(), 1);
        let permit = permit(&mut coordinator);
        let mut out = Vec::new();
        coordinator.issue(at(20), permit, &mut out);
        assert!(out.is_empty());
        assert_eq!(coordinator.scheduler.in_flight(), 0);
        assert_eq!(asks_at(&mut coordinator, 20), Some(at(30)));
        let Some(Ended::Unreachable(hosts)) = coordinator.natural_end(at(20)) else {
            panic!("it is waited for");
        };
        assert!(
            hosts[0]
                .why
                .starts_with("another crawl is asking it, since"),
            "{hosts:?}"
        );
        other.free(&origin().host_key());
        let permit = match coordinator.scheduler.poll(at(30)) {
            Poll::Issue(permit) => permit,
            other => panic!("no permit: {other:?}"),
        };
        coordinator.issue(at(30), permit, &mut out);
        assert_eq!(out.len(), 1);
    }

    #[test]
    fn ours_a_permit_for_which_no_url_is_left_is_given_back() {
        let mut coordinator = coordinator(|_| {});
        let scheduler = &mut coordinator.scheduler;
        scheduler.set_pending(at(20), &origin(), 3);
        scheduler.set_robots(at(20), &origin(), open_to_all());
        let permit = permit(&mut coordinator);
        // Its robots.txt is not at hand any more, so that comes first; no URL waits either.
        address_found(&mut coordinator, permit, None);
        assert_eq!(
            (
                coordinator.requests.count(),
                coordinator.scheduler.in_flight()
            ),
            (0, 0)
        );
        assert_eq!(asks_at(&mut coordinator, 20), None);
    }
}
