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
