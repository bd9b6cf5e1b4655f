//! Checks each request when it is sent.

use std::time::Duration;

use crawl_fetcher::{Exchange, ExchangeFailure, FailureKind};
use crawl_frontier::{Frontier, KnownState};
use crawl_scheduler::Tick;

use super::super::web::TrialWeb;
use super::{DAY, HostPause, InvariantChecker, LOOK_UP, PAUSE, SeenOrigin, SeenRequest};
use crate::messages::RequestJob;

impl InvariantChecker {
    /// Checks a request that is sent now. Returns its number.
    pub(in super::super) fn sent(
        &mut self,
        worker: usize,
        now: Tick,
        job: &RequestJob,
        web: &TrialWeb,
        frontier: &dyn Frontier,
    ) -> usize {
        self.requests += 1;
        let url = job.url().clone();
        let host = url.host().to_owned();
        self.check_robots(now, job, web);
        self.check_owner(worker, now, &host);
        self.check_limits(worker, now, &host);
        self.check_gap(now, &host, job);
        if let RequestJob::Page { .. } = job {
            let mut excluded = self.orders.excluded.iter();
            let rule = excluded.find(|rule| rule.strip_suffix('$') == Some(url.path()));
            let rule = rule.cloned();
            self.require(rule.is_none(), || {
                format!("{url} is requested, but excluded by {rule:?}")
            });
            let is_settled = self.settled.contains(&(url.to_string(), self.round));
            self.require(!is_settled, || {
                format!("{url} is settled and requested again")
            });
            let state = frontier.known(&url).unwrap().map(|url| url.state);
            let is_leased = matches!(state, Some(KnownState::Leased { .. }));
            self.require(is_leased, || {
                format!("{url} is requested in state {state:?}")
            });
        }
        let address = TrialWeb::address(&host);
        let seen = self.hosts.entry(host.clone()).or_default();
        seen.worker = worker;
        seen.in_flight += 1;
        let seen = SeenRequest {
            worker,
            url,
            host,
            address,
            start: now,
            end: None,
            wait_until: None,
            logged: None,
            is_detached: false,
        };
        let number = self.requests as usize;
        self.seen.insert(number, seen);
        number
    }

    fn check_robots(&mut self, now: Tick, job: &RequestJob, web: &TrialWeb) {
        let RequestJob::Page { lease, .. } = job else {
            return;
        };
        let url = &lease.url;
        self.require(web.allows(url), || format!("robots.txt disallows {url}"));
        let origin = self.origins.entry(url.origin()).or_default();
        let is_first = origin.pages == 0 || origin.is_unreachable;
        origin.pages += 1;
        let usable = origin.usable;
        let is_fresh = usable.is_some_and(|(end, valid)| is_first || now <= end + valid + LOOK_UP);
        self.require(is_fresh, || {
            format!("no fresh robots.txt for {url}: {usable:?}")
        });
        // The host has a pace only once its rules are read.
        let host = self.hosts.entry(url.host().to_owned()).or_default();
        if is_fresh {
            host.crawl_delay = web.crawl_delay(url.host());
        }
    }

    /// Checks that no other worker sends requests to a host.
    fn check_owner(&mut self, worker: usize, now: Tick, host: &str) {
        let seen = self.hosts.get(host);
        let busy = seen.filter(|seen| seen.worker != worker && seen.in_flight > 0);
        let owner = busy.map(|seen| seen.worker);
        self.require(owner.is_none(), || {
            format!("{now}: w{worker} requests {host} beside w{owner:?}")
        });
    }

    fn check_limits(&mut self, worker: usize, now: Tick, host: &str) {
        let own = self.seen.values().filter(|seen| seen.worker == worker);
        let in_flight = own.clone().filter(|seen| seen.end.is_none());
        let address = TrialWeb::address(host);
        let to_address = in_flight.clone().filter(|seen| seen.address == address);
        let (all, to_address) = (in_flight.count() as u32, to_address.count() as u32);
        let limits = &self.politeness;
        let is_kept = all < limits.concurrency && to_address < limits.per_address;
        self.require(is_kept, || {
            format!("{now}: {all} requests in flight, {to_address} to {address}")
        });
        let own = self.seen.values().filter(|seen| seen.worker == worker);
        let ended = own.filter(|seen| seen.end.is_some());
        let unlogged = ended.filter(|seen| seen.host == host && seen.logged.is_none());
        let unlogged = unlogged.map(|seen| seen.url.to_string()).next();
        self.require(unlogged.is_none(), || {
            format!("a request to {host} before the row of {unlogged:?}")
        });
    }

    fn check_gap(&mut self, now: Tick, host: &str, job: &RequestJob) {
        let url = job.url();
        let waits = self.seen.values().filter(|seen| seen.host == host);
        let waits = waits.filter_map(|seen| seen.wait_until);
        // Round the waits that were restored from `requests.jsonl` down to milliseconds, as in its
        // rows.
        let earlier = self.waits.get(host).into_iter().flatten();
        let earlier = earlier.map(|wait| wait.until.as_micros() / 1000 * 1000);
        let wait = waits.chain(earlier.map(Tick::from_micros)).max();
        self.require(wait.is_none_or(|until| until <= now), || {
            format!("{now}: {url} is requested before the wait until {wait:?} is over")
        });
        let delay = self.delay(now, host);
        let is_paused = self.orders.is_paused;
        self.require(!is_paused, || {
            format!("{now}: {url} is requested in a pause")
        });
        let is_parked = self.orders.parked.contains(host);
        self.require(!is_parked, || {
            format!("{now}: {url} is requested, but parked")
        });
        let seen = self.hosts.entry(host.to_owned()).or_default();
        let pause = seen.pause.as_ref().filter(|pause| pause.blocks(job));
        let pause = pause.map(|pause| pause.until);
        let gap = delay.max(seen.crawl_delay);
        let width = match seen.crawl_delay {
            Duration::ZERO => self.politeness.per_host,
            _ => 1,
        };
        let recent = seen.ends.iter().filter(|end| **end + gap > now).count() as u32;
        let busy = recent + seen.in_flight;
        let last = seen.ends.iter().max().copied();
        let earlier = seen.earlier;
        self.require(busy < width, || {
            format!("{now}: {url} is requested within {gap:?} after {last:?}, {busy} of {width}")
        });
        self.require(pause.is_none_or(|until| until <= now), || {
            format!("{now}: {url} is requested in the pause until {pause:?}")
        });
        let is_late = earlier.is_none_or(|(end, before)| end + before.min(delay) <= now);
        let is_alone = self.politeness.per_host == 1;
        self.require(is_late || !is_alone, || {
            format!("{now}: {url} is requested too soon after {earlier:?} of an earlier run")
        });
    }

    /// Records how a request ended.
    pub(in super::super) fn ended(
        &mut self,
        now: Tick,
        number: usize,
        job: &RequestJob,
        result: &Result<Exchange, ExchangeFailure>,
    ) {
        let host = self.seen.get(&number).map(|seen| seen.host.clone());
        let delay = self.delay(now, &host.unwrap_or_default());
        let Some(seen) = self.seen.get_mut(&number) else {
            return;
        };
        seen.end = Some(now);
        if seen.is_detached {
            return;
        }
        let host = self.hosts.entry(seen.host.clone()).or_default();
        host.in_flight -= 1;
        host.ends.push(now);
        let answer = result.as_ref().ok();
        let status = answer.map(|answer| answer.status);
        let field = |name: &str| {
            let value = answer?.headers.get(name)?.to_str().ok()?;
            value.trim_start_matches("max-age=").parse().ok()
        };
        let wait = field("retry-after").map(Duration::from_secs);
        let wait = wait.map(|wait| wait.min(self.politeness.max_retry_after));
        if let Some(429 | 503) = status {
            seen.wait_until = Some(now + wait.unwrap_or(self.politeness.wait_first));
        } else if let (Some(300..=303 | 400..), Some(wait)) = (status, wait) {
            seen.wait_until = Some(now + wait);
        }
        let has_failed = |failure: &ExchangeFailure| failure.kind == FailureKind::ConnectRefused;
        if result.as_ref().is_err_and(has_failed) && self.politeness.per_host == 1 {
            let until = now + PAUSE.max(10 * delay);
            let of = match job {
                RequestJob::Robots { of, .. } => Some(of.clone()),
                _ => None,
            };
            let before = host.pause.take().filter(|pause| pause.until > now);
            let only = of.filter(|of| before.is_none_or(|before| before.only.as_ref() == Some(of)));
            host.pause = Some(HostPause { until, only });
        }
        if let RequestJob::Robots { of, .. } = job {
            let origin = self.origins.entry(of.clone()).or_default();
            match status {
                Some(200..=299 | 400..=428 | 430..=499) => {
                    let valid =
                        field("cache-control").map_or(DAY, |age| Duration::from_secs(age.max(60)));
                    *origin = SeenOrigin {
                        usable: Some((now, valid)),
                        ..SeenOrigin::default()
                    };
                }
                Some(300..400) => {}
                _ => origin.is_unreachable = true,
            }
        }
    }
}
