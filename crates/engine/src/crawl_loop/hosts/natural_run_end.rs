//! How a run ends when no host can get a request soon.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crawl_scheduler::{GapReason, PauseReason, PausedHost, Tick, WaitingHost};
use crawl_weburl::HostKey;

use super::super::robots::OriginRobotsTracker;
use super::Hosts;
use crate::summary::{EndReason, UnfetchableHost};

/// The longest gap that a run waits for. Longer gaps occur, for example because of a `Crawl-delay`
/// of years.
const MAX_GAP_WORTH_WAITING: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a crawl in rounds waits before it tries a failed login again, or checks whether refused
/// credentials have changed.
const LOGIN_RETRY: Duration = Duration::from_secs(60 * 60);

impl Hosts {
    /// Returns how a run with nothing in flight ends. `None` if the run continues, because some
    /// host may get a request soon. `robots` provides the reason why the robots.txt of a host is
    /// unreachable.
    pub(crate) fn natural_end(&self, now: Tick, robots: &OriginRobotsTracker) -> Option<EndReason> {
        let resting = self.scheduler.host_summary(now);
        match resting.soonest {
            // The scheduler can't issue any permit: the work is done, or all pending URLs are on
            // parked hosts or on hosts with a spent budget.
            None => Some(
                match (self.frontier.counts().pending, self.budgets.spent()) {
                    (0, _) => EndReason::Finished,
                    _ if !resting.parked.is_empty() => EndReason::NoFetchableHost(
                        self.describe_parked(now, resting.parked).collect(),
                    ),
                    (_, None) => EndReason::Finished,
                    (_, Some(ended)) => ended,
                },
            ),
            Some(soonest)
                if soonest > now + self.config.wait_unreachable
                    && resting.ready == 0
                    && !self.has_gap_worth_waiting(now) =>
            {
                let hosts = resting.paused.into_iter().map(|rest| UnfetchableHost {
                    is_tried_at_start: is_tried_at_start(&rest, robots),
                    why: self.why_paused(now, &rest, robots),
                    host: rest.host,
                    next_try: Some(rest.until),
                });
                let waiting = self.scheduler.waiting_hosts(now).into_iter();
                let hosts = hosts.chain(waiting.map(describe_waiting));
                let hosts = hosts.chain(self.describe_parked(now, resting.parked));
                Some(EndReason::NoFetchableHost(hosts.collect()))
            }
            Some(_) => None,
        }
    }

    /// Returns whether a host without a pause may get its next request within
    /// [`MAX_GAP_WORTH_WAITING`].
    fn has_gap_worth_waiting(&self, now: Tick) -> bool {
        let latest = now + MAX_GAP_WORTH_WAITING;
        let mut waiting = self.scheduler.waiting_hosts(now).into_iter();
        waiting.any(|waiting| waiting.until <= latest)
    }

    /// Returns the paused hosts that the next run may try before their pauses end.
    pub(crate) fn tried_at_start(
        &self,
        now: Tick,
        robots: &OriginRobotsTracker,
    ) -> HashSet<HostKey> {
        let paused = self.scheduler.host_summary(now).paused.into_iter();
        let tried = paused.filter(|rest| is_tried_at_start(rest, robots));
        tried.map(|rest| rest.host).collect()
    }

    /// Returns the hosts that are paused because of quiet hours or another crawl's requests, and
    /// not because of how they answer. The values are the reasons in `waiting.jsonl`.
    pub(crate) fn paused_by_operator(&self, now: Tick) -> HashMap<HostKey, &'static str> {
        let paused = self.scheduler.host_summary(now).paused.into_iter();
        let own = [PauseReason::QuietHours, PauseReason::OtherCrawl];
        let paused = paused.filter(|rest| own.contains(&rest.why));
        paused.map(|rest| (rest.host, rest.why.name())).collect()
    }

    fn why_paused(&self, now: Tick, rest: &PausedHost, robots: &OriginRobotsTracker) -> String {
        let host = &rest.host;
        let why_of_robots = match rest.why {
            PauseReason::OtherCrawl => {
                return self
                    .residents
                    .describe_holder(now, self.delay_in_force(host), host);
            }
            // At least one robots.txt of the host could be fetched, so an unreachable robots.txt of
            // another origin doesn't explain the wait.
            PauseReason::Failures(_) if has_answered(rest, robots) => None,
            PauseReason::Robots | PauseReason::Failures(_) => robots.why_unreachable_host(host),
            // Name only a robots.txt whose answer demanded a wait. One that is unreachable for
            // another reason doesn't explain this pause.
            PauseReason::Wait | PauseReason::RetryAfter => robots.why_host_waits(host),
            _ => None,
        };
        let last_failure = self.last_failures.get(host);
        why_of_robots.unwrap_or_else(|| describe_pause(rest.why, last_failure.map(String::as_str)))
    }

    fn describe_parked(
        &self,
        now: Tick,
        hosts: Vec<HostKey>,
    ) -> impl Iterator<Item = UnfetchableHost> {
        hosts.into_iter().map(move |host| {
            let (why, next_try) = match self.without_login.get(&host) {
                Some(why) => (why.clone(), Some(now + LOGIN_RETRY)),
                None => ("it is parked".to_owned(), None),
            };
            UnfetchableHost {
                host,
                why,
                next_try,
                is_tried_at_start: false,
            }
        })
    }
}

/// Returns whether the next run may try a paused host before its pause ends. True if the host waits
/// only for its robots.txt, and the last request for that file got no answer.
fn is_tried_at_start(rest: &PausedHost, robots: &OriginRobotsTracker) -> bool {
    rest.why == PauseReason::Robots && robots.is_unanswered(&rest.host)
}

/// Returns whether the robots.txt of at least one origin of the host could be fetched.
fn has_answered(rest: &PausedHost, robots: &OriginRobotsTracker) -> bool {
    let mut origins = rest.with_rules.iter();
    origins.any(|origin| robots.why_unreachable(origin).is_none())
}

fn describe_waiting(waiting: WaitingHost) -> UnfetchableHost {
    let seconds = waiting.gap.as_secs();
    UnfetchableHost {
        host: waiting.host,
        why: match waiting.why {
            GapReason::CrawlDelay => format!("its robots.txt has a Crawl-delay of {seconds} s"),
            GapReason::RequestRate => "its robots.txt has a Request-rate".to_owned(),
            why => format!("the gap before its next request is long ({why})"),
        },
        next_try: Some(waiting.until),
        is_tried_at_start: false,
    }
}

/// Describes why a host is paused. `last_failure` is how the host's last request failed, if known.
/// `split_failure` in `crates/records` finds the failure in this text by the words before it, so
/// change both functions together.
fn describe_pause(why: PauseReason, last_failure: Option<&str>) -> String {
    match why {
        PauseReason::RetryAfter => "it sent a Retry-After".to_owned(),
        PauseReason::Wait => "it answered 429 or 503".to_owned(),
        PauseReason::Failures(count) => {
            let requests = match count {
                1 => "a request failed".to_owned(),
                _ => format!("{count} requests in a row failed"),
            };
            match last_failure {
                Some(failure) => format!("{requests}: {failure}"),
                None => requests,
            }
        }
        PauseReason::Robots => "its robots.txt is unreachable".to_owned(),
        PauseReason::VisitTime => "its robots.txt names another visit time".to_owned(),
        PauseReason::RateLimit => "its rate limit is used up".to_owned(),
        PauseReason::QuietHours => "it has quiet hours".to_owned(),
        PauseReason::OtherCrawl => "another crawl is fetching from it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use crawl_frontier::UrlToAdmit;
    use crawl_scheduler::{PaceFromRobots, PauseReason, RobotsState, Tick};
    use crawl_weburl::canonicalize;

    use super::super::super::fixtures::{at, coordinator};
    use super::describe_pause;
    use crate::summary::{EndReason, UnfetchableHost};

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn long_pauses_end_a_run_and_gaps_do_not() {
        let origin = canonicalize(None, "http://a.example/").unwrap().origin();
        let host = origin.host_key();
        // A run continues only if the host is retried within 60 seconds.
        for (retry, ends) in [(80, false), (81, true)] {
            let mut coordinator = coordinator(|_| {});
            let retry_at = at(retry);
            let state = RobotsState::Unreachable { retry_at };
            coordinator.hosts.set_robots(at(20), &origin, state);
            coordinator.hosts.set_pending(at(20), &origin, 1);
            let resting = UnfetchableHost {
                host: host.clone(),
                why: "its robots.txt is unreachable".to_owned(),
                next_try: Some(retry_at),
                is_tried_at_start: false,
            };
            let expected = ends.then(|| EndReason::NoFetchableHost(vec![resting]));
            assert_eq!(
                coordinator.hosts.natural_end(at(20), &coordinator.robots),
                expected,
                "{retry}"
            );
        }
        let longest = Tick::NEVER.as_micros() / 1_000_000;
        for (gap, ends) in [
            (3_600, false),
            (24 * 3_600, false),
            (24 * 3_600 + 1, true),
            (longest, true),
        ] {
            let mut coordinator = coordinator(|_| {});
            let scheduler = coordinator.hosts.scheduler();
            scheduler.note_past_request(at(20), &host, at(20), SECOND, None);
            let pace = PaceFromRobots {
                crawl_delay: Some(Duration::from_secs(gap)),
                ..PaceFromRobots::default()
            };
            let until = at(1_000_000_000);
            let state = RobotsState::InForce { pace, until };
            scheduler.set_robots(at(20), &origin, state);
            scheduler.set_pending(at(20), &origin, 1);
            let resting = UnfetchableHost {
                host: host.clone(),
                why: format!("its robots.txt has a Crawl-delay of {gap} s"),
                next_try: Some(at(20) + Duration::from_secs(gap)),
                is_tried_at_start: false,
            };
            let expected = ends.then(|| EndReason::NoFetchableHost(vec![resting]));
            assert_eq!(
                coordinator.hosts.natural_end(at(20), &coordinator.robots),
                expected,
                "{gap}"
            );
        }
    }

    #[test]
    fn a_paused_host_keeps_no_run_waiting_for_a_longer_gap() {
        let origin = |name: &str| canonicalize(None, &format!("http://{name}.example/"));
        let [slow, resting] = ["slow", "resting"].map(|name| origin(name).unwrap().origin());
        let day = 24 * 3_600;
        for (gap, ends) in [(day, false), (day + 1, true)] {
            let mut coordinator = coordinator(|_| {});
            let scheduler = coordinator.hosts.scheduler();
            scheduler.note_past_request(at(20), &slow.host_key(), at(20), SECOND, None);
            let pace = PaceFromRobots {
                crawl_delay: Some(Duration::from_secs(gap)),
                ..PaceFromRobots::default()
            };
            let until = at(1_000_000_000);
            scheduler.set_robots(at(20), &slow, RobotsState::InForce { pace, until });
            let retry_at = at(3_600);
            scheduler.set_robots(at(20), &resting, RobotsState::Unreachable { retry_at });
            for origin in [&slow, &resting] {
                scheduler.set_pending(at(20), origin, 1);
            }
            let end = coordinator.hosts.natural_end(at(20), &coordinator.robots);
            let is_end =
                matches!(&end, Some(EndReason::NoFetchableHost(hosts)) if hosts.len() == 2);
            assert_eq!(is_end, ends, "{gap}: {end:?}");
        }
    }

    #[test]
    fn each_reason_of_a_pause_is_described() {
        let reasons = [
            PauseReason::RetryAfter,
            PauseReason::Wait,
            PauseReason::Failures(20),
            PauseReason::Robots,
            PauseReason::VisitTime,
            PauseReason::RateLimit,
            PauseReason::QuietHours,
            PauseReason::OtherCrawl,
        ];
        let words: BTreeSet<String> = reasons
            .into_iter()
            .map(|why| describe_pause(why, Some("connect_refused")))
            .collect();
        assert_eq!(words.len(), reasons.len());
        let failed = "20 requests in a row failed: connect_refused";
        assert!(words.contains(failed), "{words:?}");
        for count in [1, 20] {
            let failed = describe_pause(PauseReason::Failures(count), Some("connect_refused"));
            let (_, failure) = crawl_records::split_failure(&failed).unwrap();
            assert_eq!(failure, "connect_refused");
        }
        let one = describe_pause(PauseReason::Failures(1), None);
        assert_eq!(one, "a request failed");
        assert_eq!(reasons.map(PauseReason::name), PauseReason::NAMES);
    }

    #[test]
    fn a_run_without_permits_has_a_reason_to_end() {
        let origin = canonicalize(None, "http://a.example/").unwrap().origin();
        let host = origin.host_key();
        let parked = UnfetchableHost {
            host: host.clone(),
            why: "it is parked".to_owned(),
            next_try: None,
            is_tried_at_start: false,
        };
        let full = EndReason::Budget("max-pages-per-host");
        for (pending, is_parked, is_full, expected) in [
            (false, true, true, EndReason::Finished),
            (true, true, true, EndReason::NoFetchableHost(vec![parked])),
            (true, false, true, full),
            (true, false, false, EndReason::Finished),
        ] {
            let shown = format!("{pending} {is_parked} {is_full}");
            let mut coordinator = coordinator(|config| config.budgets.per_host.max_pages = Some(1));
            if pending {
                let mut transaction = coordinator.frontier.begin().unwrap();
                let seed = coordinator.config.seeds[0].clone();
                transaction.admit(UrlToAdmit::seed(seed)).unwrap();
                transaction.commit().unwrap();
            }
            if is_parked {
                coordinator.hosts.set_pending(at(20), &origin, 1);
                coordinator.hosts.scheduler().park(at(20), &host);
            }
            if is_full {
                coordinator.hosts.budgets_mut().settled(&host, 0);
                assert!(coordinator.hosts.budgets_mut().is_full(at(20), &host));
            }
            assert_eq!(
                coordinator.hosts.natural_end(at(20), &coordinator.robots),
                Some(expected),
                "{shown}"
            );
        }
    }

    #[test]
    fn parked_hosts_are_named_after_paused_ones() {
        let mut coordinator = coordinator(|_| {});
        for name in ["a", "b"] {
            let origin = canonicalize(None, &format!("http://{name}.example/")).unwrap();
            let retry_at = at(500);
            let state = RobotsState::Unreachable { retry_at };
            let scheduler = coordinator.hosts.scheduler();
            scheduler.set_robots(at(20), &origin.origin(), state);
            scheduler.set_pending(at(20), &origin.origin(), 1);
        }
        let parked = canonicalize(None, "http://a.example/").unwrap().host_key();
        coordinator.hosts.scheduler().park(at(20), &parked);
        let Some(EndReason::NoFetchableHost(hosts)) =
            coordinator.hosts.natural_end(at(20), &coordinator.robots)
        else {
            panic!("the run goes on");
        };
        let shown: Vec<_> = hosts
            .iter()
            .map(|host| (host.host.as_str(), host.next_try))
            .collect();
        assert_eq!(shown, [("b.example", Some(at(500))), ("a.example", None)]);
    }
}
