//! The use of a permit: from the scheduler's leave to a request.

use std::net::IpAddr;
use std::time::Duration;

use crawl_scheduler::{Permit, Purpose, Tick};
use crawl_weburl::CanonicalUrl;

use super::{Coordinator, request_rows};
use crate::control::Stop;
use crate::messages::Effect;

/// The time for which a host is left alone that another crawl is asking.
const OTHER_CRAWL_WAIT: Duration = Duration::from_secs(10);

impl Coordinator {
    /// Uses a permit, or finds out first where its request would go.
    pub(super) fn issue(&mut self, now: Tick, permit: Permit, out: &mut Vec<Effect>) {
        if !self.locks.hold(permit.host()) {
            let host = permit.host().clone();
            self.scheduler.give_back(now, permit);
            self.locks.tell_who_asks(&host);
            let later = now + OTHER_CRAWL_WAIT;
            return self.scheduler.wait_for_other_crawl(now, &host, later);
        }
        if let Some(url) = self.url_to_find(&permit) {
            self.in_flight += 1;
            return out.push(Effect::FindAddress { permit, url });
        }
        self.use_permit(now, permit, out);
    }

    /// The URL whose address is to be found before it is asked for: an origin's robots.txt, since
    /// its name may lead elsewhere by now, and else where the host's address is not known. What
    /// goes through a proxy counts at no address.
    fn url_to_find(&self, permit: &Permit) -> Option<CanonicalUrl> {
        if self.config.fetch.proxy.is_some() {
            return None;
        }
        match permit.purpose() {
            Purpose::Robots { origin } => Some(origin.robots_url()),
            Purpose::Hop { of } => self.origins.pending_hop(of).cloned(),
            Purpose::Page { .. } if self.scheduler.has_address(permit.host()) => None,
            Purpose::Page { origin } => Some(origin.url("/")),
        }
    }

    /// Uses a permit whose request now counts at its address, unless that has no room, or nothing
    /// is to be asked any more.
    pub(super) fn address_found(
        &mut self,
        now: Tick,
        permit: Permit,
        address: Option<IpAddr>,
        out: &mut Vec<Effect>,
    ) {
        self.in_flight -= 1;
        let is_held = self.ending.is_some()
            || self.stop != Stop::No
            || self.steering.is_paused()
            || self.scheduler.is_parked(permit.host())
            || self.spent_budget().is_some()
            || !self.has_room(now);
        if is_held {
            return self.scheduler.give_back(now, permit);
        }
        let permit = match address {
            Some(address) => self.scheduler.count_at(now, permit, address),
            None => Some(permit),
        };
        if let Some(permit) = permit {
            self.use_permit(now, permit, out);
        }
    }

    fn use_permit(&mut self, now: Tick, permit: Permit, out: &mut Vec<Effect>) {
        let job = match permit.purpose().clone() {
            Purpose::Page { origin } => self.next_page(now, &origin, out),
            Purpose::Robots { origin } => {
                let url = origin.robots_url();
                self.robots_job(origin, url, 0).map(Some)
            }
            Purpose::Hop { of } => self.pending_fetch_job(now, of),
        };
        match job {
            Ok(Some(job)) => {
                self.in_flight += 1;
                self.requests += 1;
                let purpose = request_rows::purpose(&job);
                let (spans, url) = (&mut self.spans, job.url());
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
    use crawl_scheduler::Poll;
    use crawl_weburl::Origin;

    use super::super::Coordinator;
    use super::super::by_itself::{at, coordinator};
    use crate::control::Stop;
    use crate::messages::Effect;
    use crate::summary::Ended;

    #[test]
    fn ours_a_permit_whose_address_was_found_is_used_unless_the_run_is_held() {
        type Hold = fn(&mut Coordinator);
        let holds: [(Hold, bool); 5] = [
            (|_| {}, false),
            (|it| it.ending = Some(Ended::Finished), true),
            (|it| it.stop = Stop::Drain, true),
            (|it| it.unsettled = it.max_unsettled(), true),
            (|it| it.totals.pages = 7, true),
        ];
        for (number, (hold, is_held)) in holds.into_iter().enumerate() {
            let mut coordinator = coordinator(|config| config.budgets.max_pages = Some(7));
            let origin = Origin::parse("http://a.example").unwrap();
            coordinator.scheduler.set_pending(at(20), &origin, 1);
            let Poll::Issue(permit) = coordinator.scheduler.poll(at(20)) else {
                panic!("no permit");
            };
            coordinator.in_flight = 1;
            hold(&mut coordinator);
            let mut out = Vec::new();
            coordinator.address_found(at(20), permit, None, &mut out);
            let is_sent = out
                .iter()
                .any(|effect| matches!(effect, Effect::Fetch { .. }));
            assert_eq!(is_sent, !is_held, "{number}");
            assert_eq!(coordinator.in_flight, u32::from(is_sent), "{number}");
        }
    }
}
