//! The use of a permit: all steps from the scheduler's permit to the request.

use crawl_archive::rows::RenderEventRow;
use crawl_frontier::FrontierError;
use crawl_scheduler::{Permit, RequestPurpose, Tick};
use crawl_weburl::CanonicalUrl;

use super::login_requests::LoginPermitUse;
use super::render_requests::RenderPermitUse;
use super::robots::open_without_robots;
use super::{Coordinator, request_rows};
use crate::messages::{Effect, RequestJob};

impl Coordinator {
    /// Uses a permit, or first looks up the address that its request would go to.
    pub(super) fn issue(&mut self, now: Tick, permit: Permit, out: &mut Vec<Effect>) {
        let Some(permit) = self.hosts.hold(now, permit) else {
            return;
        };
        match self.url_to_find(&permit) {
            Some(url) => {
                let permit = self.hosts.set_aside(now, permit);
                out.push(Effect::FindAddress { permit, url });
            }
            // The permit was issued for a look-up, but needs none, for example because its host is
            // excluded.
            None if permit.is_set_aside() => self.hosts.skip_look_up(permit),
            None => self.use_permit(now, permit, out),
        }
    }

    /// Returns the URL whose address must be looked up before the request. `None` if no look-up is
    /// needed, for example because a proxy connects to the host. A request for robots.txt always
    /// needs a look-up, since the name may have a new address. Other requests need a look-up if the
    /// host's address is unknown.
    fn url_to_find(&self, permit: &Permit) -> Option<CanonicalUrl> {
        if self.config.fetch.proxy.is_some() || self.scope.is_left_out(permit.host()) {
            return None;
        }
        match permit.purpose() {
            RequestPurpose::Hop { of } if self.scope.is_left_out(&of.host_key()) => None,
            RequestPurpose::Robots { origin } => Some(origin.robots_url()),
            RequestPurpose::Hop { of } => self.robots.pending_hop(of).cloned(),
            RequestPurpose::Page { .. } if self.hosts.has_address(permit.host()) => None,
            RequestPurpose::Page { origin } => Some(origin.url("/")),
        }
    }

    /// Uses the oldest permit whose address look-up ended.
    ///
    /// # Errors
    /// No request may be sent now: no permit is ready, or the request must wait for room. The error
    /// is the time at which there is room, if known.
    pub(super) fn use_found(
        &mut self,
        now: Tick,
        out: &mut Vec<Effect>,
    ) -> Result<(), Option<Tick>> {
        if let Some(permit) = self.hosts.next_looked_up(now)? {
            self.use_permit(now, permit, out);
        }
        Ok(())
    }

    fn use_permit(&mut self, now: Tick, permit: Permit, out: &mut Vec<Effect>) {
        let before = out.len();
        self.turns.begin();
        let job = self.job_for(now, &permit, out);
        // Login requests don't count as part of a turn, because a replay doesn't log in.
        let is_sent = matches!(&job, Ok(Some(job)) if !matches!(job, RequestJob::Login(_)));
        let progress = (
            self.hosts.requests().ended_in_run(),
            self.report.of_all_runs().messages,
        );
        if let Some(turn) = (self.turns).record(now, permit.purpose(), is_sent, progress) {
            // The use of the permit must be recorded before its request is sent.
            out.insert(before, Effect::NoteTurn(turn));
        }
        // Record dropped resources (those that pages stopped waiting for) ahead of the turn,
        // because they influence what the turn does.
        for (page, key) in self.renders.take_dropped() {
            let step = RenderEventRow {
                page: Some(page.0),
                url: self.loggable(&key.url),
                ..self.render_step(now, "dropped")
            };
            out.insert(before, Effect::NoteRender(Box::new(step)));
        }
        match job {
            Ok(Some(job)) => {
                self.hosts.sent();
                let purpose = request_rows::purpose(&job);
                let (spans, url) = (self.hosts.spans(), job.shown_url());
                let span = self.events.exchange(spans, &permit, &url, purpose);
                out.push(Effect::Fetch { permit, job, span });
            }
            Ok(None) => self.hosts.give_back_unneeded(now, permit),
            Err(error) => {
                self.fail(error);
                self.hosts.give_back(now, permit);
            }
        }
    }

    /// Returns the request that a permit is used for, if there is one.
    fn job_for(
        &mut self,
        now: Tick,
        permit: &Permit,
        out: &mut Vec<Effect>,
    ) -> Result<Option<RequestJob>, FrontierError> {
        match permit.purpose().clone() {
            RequestPurpose::Page { origin } => match self.login_turn(now, &origin, out) {
                Ok(LoginPermitUse::Page) => {
                    let job = match self.render_turn(now, &origin, out) {
                        Ok(RenderPermitUse::Page) => {
                            self.next_page(now, permit.host(), &origin, out)
                        }
                        Ok(RenderPermitUse::Send(job)) => Ok(Some(job)),
                        Ok(RenderPermitUse::Nothing) => Ok(None),
                        Err(error) => Err(error),
                    };
                    if self.renders.waiting_at(&origin) > 0 {
                        // The origin's resources need permits, even if its pages don't.
                        self.hosts.set_pending(now, &origin, 1);
                    }
                    job
                }
                Ok(LoginPermitUse::Send(job)) => Ok(Some(job)),
                Ok(LoginPermitUse::Nothing) => Ok(None),
                Err(error) => Err(error),
            },
            RequestPurpose::Robots { origin } if self.scope.is_left_out(permit.host()) => {
                self.hosts.set_robots(now, &origin, open_without_robots());
                self.scope.leave_out(&origin);
                Ok(None)
            }
            RequestPurpose::Robots { origin } => {
                let url = origin.robots_url();
                let job = self.robots.job(origin, url, 0);
                job.map(Some)
            }
            RequestPurpose::Hop { of } => {
                let scope = &self.scope;
                let job = self.robots.pending_job(of.clone(), scope);
                if matches!(job, Ok(None)) {
                    self.hosts.begin_rules_again(now, &of);
                }
                job
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::time::Duration;

    use crawl_scheduler::{Permit, PollOutcome, RequestPurpose, Tick};
    use crawl_weburl::{CanonicalUrl, Origin, canonicalize};
    use tokio::sync::oneshot;

    use super::super::Coordinator;
    use super::super::fixtures::{at, config, coordinator, open_to_all, pages, run_report};
    use super::super::host_locks::HostLocks;
    use super::super::robots::RobotsFollowUpRequest;
    use crate::config::Config;
    use crate::control::{CrawlCommand, PostedCommand, StopUrgency};
    use crate::messages::{Effect, Event};
    use crate::summary::EndReason;

    fn origin() -> Origin {
        Origin::parse("http://a.example").unwrap()
    }

    fn url(path: &str) -> CanonicalUrl {
        canonicalize(None, &format!("http://a.example{path}")).unwrap()
    }

    /// Polls the permit of the only host with work.
    fn permit(coordinator: &mut Coordinator) -> Permit {
        match coordinator.hosts.poll(at(20)) {
            PollOutcome::Issue(permit) => permit,
            other => panic!("no permit: {other:?}"),
        }
    }

    fn next_request(coordinator: &mut Coordinator, now: u64) -> Option<Tick> {
        match coordinator.hosts.poll(at(now)) {
            PollOutcome::Issue(_) => Some(at(now)),
            PollOutcome::SleepUntil(tick) => Some(tick),
            PollOutcome::Idle => None,
        }
    }

    fn send(coordinator: &mut Coordinator, command: CrawlCommand) {
        let (answer, _) = oneshot::channel();
        coordinator.command(at(20), PostedCommand { command, answer }, &mut Vec::new());
    }

    /// Handles the end of the address look-up for a permit, and takes a step of the loop.
    fn address_found(
        coordinator: &mut Coordinator,
        permit: Permit,
        address: Option<IpAddr>,
    ) -> Vec<Effect> {
        let mut out = Vec::new();
        let permit = coordinator.hosts.set_aside(at(20), permit);
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
    fn a_permit_is_used_after_its_look_up_unless_the_run_is_held() {
        type Hold = fn(&mut Coordinator);
        let holds: [(Hold, bool); 7] = [
            (|_| {}, false),
            (|coordinator| coordinator.end.end(EndReason::Finished), true),
            (|coordinator| coordinator.end.stop(StopUrgency::Drain), true),
            (
                |coordinator| coordinator.backlog.written(u64::from(u32::MAX), 0),
                true,
            ),
            (
                |coordinator| coordinator.report = run_report(1, pages(0), pages(0), pages(7)),
                true,
            ),
            (|coordinator| send(coordinator, CrawlCommand::Pause), true),
            (
                |coordinator| {
                    coordinator
                        .hosts
                        .scheduler()
                        .park(at(20), &origin().host_key());
                },
                true,
            ),
        ];
        for (number, (hold, is_held)) in holds.into_iter().enumerate() {
            let mut coordinator = coordinator(|config| config.budgets.max_pages = Some(7));
            coordinator.hosts.set_pending(at(20), &origin(), 1);
            let permit = permit(&mut coordinator);
            hold(&mut coordinator);
            let out = address_found(&mut coordinator, permit, None);
            assert_eq!(sent(&out), usize::from(!is_held), "{number}");
            let in_flight = coordinator.hosts.in_flight();
            assert_eq!(in_flight, u32::from(!is_held), "{number}");
        }
    }

    #[test]
    fn a_request_counts_at_the_address_found_for_it() {
        let address = "192.0.2.7".parse().unwrap();
        for (per_address, is_sent) in [(1, false), (2, true)] {
            let mut coordinator = coordinator(|config| config.politeness.per_address = per_address);
            let second_origin = Origin::parse("http://b.example").unwrap();
            coordinator.hosts.set_pending(at(20), &second_origin, 1);
            let first = permit(&mut coordinator);
            let first = address_found(&mut coordinator, first, Some(address));
            assert_eq!(sent(&first), 1);
            coordinator.hosts.set_pending(at(20), &origin(), 1);
            let second = permit(&mut coordinator);
            let second = address_found(&mut coordinator, second, Some(address));
            assert!(coordinator.hosts.has_address(&origin().host_key()));
            assert_eq!(sent(&second), usize::from(is_sent));
            assert_eq!(coordinator.hosts.requests().count(), 1 + u32::from(is_sent));
        }
    }

    #[test]
    fn look_ups_do_not_count_as_requests() {
        let mut coordinator = coordinator(|config| {
            config.politeness.concurrency = 1;
            config.politeness.look_ups = 3;
        });
        for host in 0..5 {
            let origin = Origin::parse(&format!("http://h{host}.example")).unwrap();
            coordinator.hosts.set_pending(at(20), &origin, 1);
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
        // Only one request may be in flight, so the other two permits wait. Their addresses are not
        // looked up again.
        assert_eq!((requests, coordinator.hosts.requests().found()), (1, 2));
        coordinator.end.stop(StopUrgency::Drain);
        let _ = coordinator.advance(at(20), &mut out);
        assert_eq!(coordinator.hosts.requests().found(), 0);
    }

    #[test]
    fn an_address_is_looked_up_if_it_is_unknown_or_may_have_changed() {
        type Change = fn(&mut Coordinator);
        let nothing: Change = |_| {};
        let page: Change = |coordinator| {
            coordinator
                .hosts
                .set_robots(at(20), &origin(), open_to_all());
        };
        let address_known: Change = |coordinator| {
            let address = "192.0.2.7".parse().unwrap();
            coordinator
                .hosts
                .set_robots(at(20), &origin(), open_to_all());
            coordinator
                .hosts
                .scheduler()
                .set_address(at(20), &origin().host_key(), address);
        };
        for (number, (change, proxy, expected)) in [
            (nothing, None, Some("/robots.txt")),
            (page, None, Some("/")),
            (address_known, None, None),
            (nothing, Some("http://proxy.example:3128"), None),
            (page, Some("http://proxy.example:3128"), None),
        ]
        .into_iter()
        .enumerate()
        {
            let mut coordinator =
                coordinator(|config| config.fetch.proxy = proxy.map(str::to_owned));
            coordinator.hosts.set_pending(at(20), &origin(), 1);
            change(&mut coordinator);
            let permit = permit(&mut coordinator);
            let expected = expected.map(url);
            assert_eq!(coordinator.url_to_find(&permit), expected, "{number}");
            let mut out = Vec::new();
            coordinator.issue(at(20), permit, &mut out);
            let looked_up = out.iter().find_map(|effect| match effect {
                Effect::FindAddress { url, .. } => Some(url.clone()),
                _ => None,
            });
            assert_eq!(looked_up, expected, "{number}");
        }
    }

    #[test]
    fn a_hop_follows_the_redirect_or_starts_again() {
        let hop = RobotsFollowUpRequest::Hop(url("/rules"), 1);
        for (pending, expected) in [(Some(hop), Some("/rules")), (None, None)] {
            let mut coordinator = coordinator(|_| {});
            let of = origin();
            if let Some(pending) = pending {
                coordinator.robots.set_pending_fetch(&of, pending);
            }
            let purpose = RequestPurpose::Hop { of: of.clone() };
            let scheduler = coordinator.hosts.scheduler();
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
                assert_eq!(next, Some(RequestPurpose::Robots { origin: of }));
            }
        }
    }

    #[test]
    fn a_host_of_another_crawl_waits_for_ten_seconds() {
        let dir = tempfile::tempdir().unwrap();
        let shared = |config: &mut Config| {
            config.host_locks = Some(dir.path().join("hosts.lock"));
            config.wait_unreachable = Duration::from_secs(1);
        };
        let locks = || {
            let mut config = config();
            shared(&mut config);
            HostLocks::shared(&config, None, at(10)).unwrap()
        };
        let mut second = locks();
        assert!(
            second
                .hold(&origin().host_key(), Duration::ZERO, at(10))
                .is_ok()
        );
        let mut coordinator = coordinator(shared);
        coordinator.share_hosts(locks());
        coordinator.hosts.set_pending(at(20), &origin(), 1);
        let permit = permit(&mut coordinator);
        let mut out = Vec::new();
        coordinator.issue(at(20), permit, &mut out);
        assert!(out.is_empty());
        assert_eq!(coordinator.hosts.in_flight(), 0);
        assert_eq!(next_request(&mut coordinator, 20), Some(at(30)));
        let Some(EndReason::NoFetchableHost(hosts)) =
            coordinator.hosts.natural_end(at(20), &coordinator.robots)
        else {
            panic!("it is waited for");
        };
        assert!(
            hosts[0]
                .why
                .starts_with("another crawl is fetching from it, since"),
            "{hosts:?}"
        );
        second.free(&origin().host_key(), at(20));
        let permit = match coordinator.hosts.poll(at(30)) {
            PollOutcome::Issue(permit) => permit,
            other => panic!("no permit: {other:?}"),
        };
        coordinator.issue(at(30), permit, &mut out);
        assert_eq!(out.len(), 1);
    }

    #[test]
    fn a_permit_without_a_url_is_given_back() {
        let mut coordinator = coordinator(|_| {});
        let scheduler = coordinator.hosts.scheduler();
        scheduler.set_pending(at(20), &origin(), 3);
        scheduler.set_robots(at(20), &origin(), open_to_all());
        let permit = permit(&mut coordinator);
        // No request follows: pages can't be judged without robots.txt, and robots.txt is not
        // fetched because no URL is pending.
        address_found(&mut coordinator, permit, None);
        assert_eq!(
            (
                coordinator.hosts.requests().count(),
                coordinator.hosts.in_flight()
            ),
            (0, 0)
        );
        assert_eq!(next_request(&mut coordinator, 20), None);
    }
}
