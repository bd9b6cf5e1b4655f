//! When enough is enough: budgets, and the end of a run.

use std::time::Duration;

use crawl_scheduler::{PauseReason, Tick};
use crawl_weburl::HostKey;

use super::Coordinator;
use super::shared_hosts::SharedHosts;
use crate::summary::{Ended, UnreachableHost};

/// A gap that is longer, as a `Crawl-delay` of years asks for, is no reason to stay.
const MAX_GAP_WORTH_WAITING: Duration = Duration::from_secs(24 * 60 * 60);

impl Coordinator {
    /// The end of this run by `--max-time`, for which a pause does not count.
    pub(crate) fn deadline(&self) -> Option<Tick> {
        let time = self.config.budgets.max_time?;
        Some(self.totals.started() + time + self.steering.paused())
    }

    /// The name of a budget of the whole crawl that leaves room for no further page.
    pub(crate) fn spent_budget(&self) -> Option<&'static str> {
        let budgets = &self.config.budgets;
        let of_round = self.totals.of_round();
        let others_bytes = self.shared.as_ref().map_or(0, SharedHosts::others_bytes);
        // Of those that all workers may have, each has leave for some.
        let are_pages_spent = self.are_pages_spent().unwrap_or_else(|| {
            budgets
                .max_pages
                .is_some_and(|max| of_round.pages + self.backlog.leases() >= max)
        });
        if are_pages_spent {
            Some("max-pages")
        } else if budgets
            .max_bytes
            .is_some_and(|max| of_round.bytes + others_bytes >= max)
        {
            Some("max-bytes")
        } else if budgets
            .max_server_time
            .is_some_and(|max| self.host_budgets.served() >= max)
        {
            Some("max-server-time")
        } else {
            None
        }
    }

    pub(crate) fn natural_end(&mut self, now: Tick) -> Option<Ended> {
        let resting = self.scheduler.host_summary(now);
        match resting.soonest {
            // Nothing can ever be issued: the work is done, or only hosts hold some that are
            // parked or full.
            None => Some(
                match (self.frontier.counts().pending, self.host_budgets.spent()) {
                    (0, _) => Ended::Finished,
                    _ if !resting.parked.is_empty() => {
                        Ended::Unreachable(resting.parked.into_iter().map(parked).collect())
                    }
                    (_, None) => Ended::Finished,
                    (_, Some(ended)) => ended,
                },
            ),
            Some(soonest)
                if soonest > now + self.config.wait_unreachable
                    && resting.ready == 0
                    && (resting.waiting_hosts == 0 || soonest > now + MAX_GAP_WORTH_WAITING) =>
            {
                let hosts = resting.paused.into_iter().map(|rest| UnreachableHost {
                    why: self
                        .origins
                        .why_unreachable_host(&rest.host)
                        .unwrap_or_else(|| match rest.why {
                            PauseReason::OtherCrawl => self.hosts.who_asks(&rest.host),
                            why => paused_words(why),
                        }),
                    host: rest.host,
                    next_try: Some(rest.until),
                });
                let hosts = hosts.chain(resting.parked.into_iter().map(parked));
                Some(Ended::Unreachable(hosts.collect()))
            }
            Some(_) => None,
        }
    }
}

fn parked(host: HostKey) -> UnreachableHost {
    UnreachableHost {
        host,
        why: "it is parked".to_owned(),
        next_try: None,
    }
}

fn paused_words(why: PauseReason) -> String {
    match why {
        PauseReason::RetryAfter => "it sent a Retry-After".to_owned(),
        PauseReason::Wait => "it answered 429 or 503".to_owned(),
        PauseReason::Failures(count) => format!("{count} requests failed in a row"),
        PauseReason::Robots => "its robots.txt can't be had".to_owned(),
        PauseReason::VisitTime => "its robots.txt names another visit time".to_owned(),
        PauseReason::RateLimit => "its rate limit is used up".to_owned(),
        PauseReason::QuietHours => "it has quiet hours".to_owned(),
        PauseReason::OtherCrawl => "another crawl is asking it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use crawl_frontier::Admission;
    use crawl_scheduler::{PauseReason, RobotsState};
    use crawl_weburl::canonicalize;

    use super::super::by_itself::{at, coordinator, open_to_all, run_totals};
    use super::paused_words;
    use crate::config::Budgets;
    use crate::control::{Phase, Stop};
    use crate::summary::{Ended, UnreachableHost};
    use crate::totals::Totals;

    const SECOND: Duration = Duration::from_secs(1);

    fn totals(pages: u64, failed: u64, bytes: u64) -> Totals {
        Totals {
            pages,
            failed,
            bytes,
            ..Totals::default()
        }
    }

    #[test]
    fn ours_each_budget_of_a_crawl_is_spent_when_it_is_reached() {
        let host = canonicalize(None, "http://a.example/").unwrap().host_key();
        // Six pages and one on its way, of a thousand bytes and a second each.
        for (budgets, spent) in [
            (Budgets::default(), None),
            (
                Budgets {
                    max_pages: Some(7),
                    max_bytes: Some(1),
                    ..Budgets::default()
                },
                Some("max-pages"),
            ),
            (
                Budgets {
                    max_pages: Some(8),
                    max_bytes: Some(6_000),
                    max_server_time: Some(SECOND),
                    ..Budgets::default()
                },
                Some("max-bytes"),
            ),
            (
                Budgets {
                    max_bytes: Some(6_001),
                    max_server_time: Some(6 * SECOND),
                    ..Budgets::default()
                },
                Some("max-server-time"),
            ),
            (
                Budgets {
                    max_server_time: Some(7 * SECOND),
                    ..Budgets::default()
                },
                None,
            ),
        ] {
            let shown = format!("{budgets:?}");
            let mut coordinator = coordinator(|config| config.budgets = budgets);
            // What earlier rounds fetched does not count.
            let (before, totals) = (totals(100, 0, 100_000), totals(106, 0, 106_000));
            coordinator.totals = run_totals(2, before, before, totals);
            coordinator.backlog.leased();
            let served = 6 * SECOND;
            coordinator.host_budgets.asked(&host, at(10), served, 0);
            assert_eq!(coordinator.spent_budget(), spent, "{shown}");
        }
    }

    #[test]
    fn ours_progress_tells_what_this_run_did_and_how_fast() {
        let mut coordinator = coordinator(|_| {});
        let (before, now) = (totals(100, 2, 1_000), totals(150, 7, 9_000));
        coordinator.totals = run_totals(2, before, totals(110, 0, 0), now);
        let progress = coordinator.progress(at(30));
        assert_eq!(progress.phase, Phase::Crawling);
        assert_eq!((progress.pages, progress.failed), (50, 5));
        assert_eq!(progress.bytes, 8_000);
        assert_eq!(progress.elapsed, 20 * SECOND);
        assert!((progress.pages_per_second - 2.0).abs() < 1e-9);
        coordinator.end.stop(Stop::Drain);
        assert_eq!(coordinator.progress(at(30)).phase, Phase::Draining);
    }

    #[test]
    fn ours_hosts_that_rest_for_long_end_a_run_and_a_usual_gap_does_not() {
        let origin = canonicalize(None, "http://a.example/").unwrap().origin();
        let host = origin.host_key();
        // It waits for 60 seconds at most.
        for (retry, ends) in [(80, false), (81, true)] {
            let mut coordinator = coordinator(|_| {});
            let retry_at = at(retry);
            let state = RobotsState::Unreachable { retry_at };
            coordinator.scheduler.set_robots(at(20), &origin, state);
            coordinator.scheduler.set_pending(at(20), &origin, 1);
            let resting = UnreachableHost {
                host: host.clone(),
                why: "its robots.txt can't be had".to_owned(),
                next_try: Some(retry_at),
            };
            let expected = ends.then(|| Ended::Unreachable(vec![resting]));
            assert_eq!(coordinator.natural_end(at(20)), expected, "{retry}");
        }
        for (gap, ends) in [(3_600, false), (24 * 3_600, false), (24 * 3_600 + 1, true)] {
            let mut coordinator = coordinator(|_| {});
            let scheduler = &mut coordinator.scheduler;
            scheduler.note_past_request(at(20), &host, at(20), gap * SECOND, None);
            scheduler.set_robots(at(20), &origin, open_to_all());
            scheduler.set_pending(at(20), &origin, 1);
            let expected = ends.then(|| Ended::Unreachable(Vec::new()));
            assert_eq!(coordinator.natural_end(at(20)), expected, "{gap}");
        }
    }

    #[test]
    fn ours_each_reason_of_a_pause_has_words_of_its_own() {
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
        let words: BTreeSet<String> = reasons.into_iter().map(paused_words).collect();
        assert_eq!(words.len(), reasons.len());
        assert!(words.contains("20 requests failed in a row"), "{words:?}");
        assert_eq!(reasons.map(PauseReason::name), PauseReason::NAMES);
    }

    #[test]
    fn ours_a_run_with_nothing_to_issue_says_why() {
        let origin = canonicalize(None, "http://a.example/").unwrap().origin();
        let host = origin.host_key();
        let parked = UnreachableHost {
            host: host.clone(),
            why: "it is parked".to_owned(),
            next_try: None,
        };
        let full = Ended::Budget("max-pages-per-host");
        for (pending, is_parked, is_full, expected) in [
            (false, true, true, Ended::Finished),
            (true, true, true, Ended::Unreachable(vec![parked])),
            (true, false, true, full),
            (true, false, false, Ended::Finished),
        ] {
            let shown = format!("{pending} {is_parked} {is_full}");
            let mut coordinator = coordinator(|config| config.budgets.per_host.max_pages = Some(1));
            if pending {
                let mut transaction = coordinator.frontier.begin().unwrap();
                let seed = coordinator.config.seeds[0].clone();
                transaction.admit(Admission::seed(seed)).unwrap();
                transaction.commit().unwrap();
            }
            if is_parked {
                coordinator.scheduler.set_pending(at(20), &origin, 1);
                coordinator.scheduler.park(at(20), &host);
            }
            if is_full {
                coordinator.host_budgets.settled(&host);
                assert!(coordinator.host_budgets.is_full(at(20), &host));
            }
            assert_eq!(coordinator.natural_end(at(20)), Some(expected), "{shown}");
        }
    }

    #[test]
    fn ours_parked_hosts_are_named_behind_those_that_rest() {
        let mut coordinator = coordinator(|_| {});
        for name in ["a", "b"] {
            let origin = canonicalize(None, &format!("http://{name}.example/")).unwrap();
            let retry_at = at(500);
            let state = RobotsState::Unreachable { retry_at };
            let scheduler = &mut coordinator.scheduler;
            scheduler.set_robots(at(20), &origin.origin(), state);
            scheduler.set_pending(at(20), &origin.origin(), 1);
        }
        let parked = canonicalize(None, "http://a.example/").unwrap().host_key();
        coordinator.scheduler.park(at(20), &parked);
        let Some(Ended::Unreachable(hosts)) = coordinator.natural_end(at(20)) else {
            panic!("the run goes on");
        };
        let shown: Vec<_> = hosts
            .iter()
            .map(|host| (host.host.as_str(), host.next_try))
            .collect();
        assert_eq!(shown, [("b.example", Some(at(500))), ("a.example", None)]);
    }
}
