//! Pending URLs at the end of a run, and why they wait.

use std::collections::{HashMap, HashSet};

use crawl_archive::Timestamp;
use crawl_archive::rows::PendingOriginRow;
use crawl_frontier::FrontierError;
use crawl_scheduler::Tick;
use crawl_weburl::{HostKey, Origin};

use super::Coordinator;
use crate::summary::EndReason;

impl Coordinator {
    /// Returns the rows of `waiting.jsonl` for a run that ended for the reason `ended`.
    pub(crate) fn waiting_urls(
        &self,
        now: Tick,
        ended: &EndReason,
    ) -> Result<Vec<PendingOriginRow>, FrontierError> {
        let unreachable: HashMap<&HostKey, (&str, Tick)> = match ended {
            EndReason::NoFetchableHost(hosts) => hosts
                .iter()
                .filter_map(|host| Some((&host.host, (host.why.as_str(), host.next_try?))))
                .collect(),
            _ => HashMap::new(),
        };
        let by_operator = self.hosts.paused_by_operator(now);
        let tried_at_start = self.hosts.tried_at_start(now, &self.robots);
        let parked: HashSet<&HostKey> = self.hosts.parked().collect();
        let (reason, detail) = of_end(ended);
        // Read the buckets (sets of hosts) before the origins, because another thread may take more
        // buckets at any time. If a row named a bucket that was taken later, its pending URLs would
        // be missing from the rows.
        let buckets = self.shared.bucket_epochs();
        let mut rows = vec![PendingOriginRow {
            urls: self.frontier.counts().pending,
            reason: reason.to_owned(),
            detail: detail.map(str::to_owned),
            round: Some(self.report.round().number),
            buckets,
            ..PendingOriginRow::default()
        }];
        for (origin, urls) in self.frontier.origins() {
            let host = origin.host_key();
            let mut next_try = None;
            let without_robots = self.why_without_robots(now, &origin)?;
            let (reason, detail) = if let Some((why, retry_at)) = without_robots {
                let until = unreachable.get(&host).map(|(_, until)| *until);
                next_try = Some(until.map_or(retry_at, |until| until.max(retry_at)));
                ("robots", Some(why))
            } else if parked.contains(&host) {
                ("parked", None)
            } else if let Some((why, until)) = unreachable.get(&host) {
                next_try = Some(*until);
                let reason = by_operator.get(&host).copied().unwrap_or("unreachable");
                // If `why` lists unreachable robots.txt files, it lists those of all origins of the
                // host. Name only the file of this origin.
                match (is_of_robots(why), self.robots.why_unreachable(&origin)) {
                    (false, _) => (reason, Some((*why).to_owned())),
                    (true, None) => ("unreachable", None),
                    (true, Some(own)) => match self.robots.are_in_force(now, &origin)? {
                        true => ("unreachable", Some(own.to_owned())),
                        false => ("robots", Some(own.to_owned())),
                    },
                }
            } else if let Some(budget) = self.hosts.budgets().spent_by(&host) {
                ("budget", Some(budget))
            } else {
                (reason, detail.map(str::to_owned))
            };
            rows.push(PendingOriginRow {
                origin: Some(origin.to_string()),
                urls,
                reason: reason.to_owned(),
                detail,
                next_try: next_try.map(|at| Timestamp::from_micros(at.as_micros())),
                tried_at_start: reason == "robots"
                    && tried_at_start.contains(&host)
                    && self.robots.is_unanswered_at(&origin),
                bucket: self.shared.bucket_of(&host),
                ..PendingOriginRow::default()
            });
        }
        Ok(rows)
    }

    /// Returns why the pages of an origin wait for its robots.txt, which is unreachable, and when
    /// robots.txt may be fetched again. `None` if the pages don't have to wait for it.
    fn why_without_robots(
        &self,
        now: Tick,
        origin: &Origin,
    ) -> Result<Option<(String, Tick)>, FrontierError> {
        // Check first whether a reason is known: few origins have one, and the check below reads
        // from disk.
        let Some(why) = self.robots.why_unreachable(origin).map(str::to_owned) else {
            return Ok(None);
        };
        let retry_at = self.robots.retry_at(now, origin)?;
        Ok(retry_at.map(|retry_at| (why, retry_at)))
    }
}

/// Returns whether the reason for an unreachable host is a list of robots.txt files that can't be
/// fetched.
fn is_of_robots(why: &str) -> bool {
    why.split_once("/robots.txt")
        .is_some_and(|(origin, _)| origin.contains("://"))
}

/// Returns the name of a run's end, and of the budget that ended it.
fn of_end(ended: &EndReason) -> (&'static str, Option<&str>) {
    match ended {
        EndReason::Finished => ("finished", None),
        EndReason::Budget(budget) => ("budget", Some(budget)),
        EndReason::TableBudget(budget) => ("budget", Some(budget)),
        EndReason::Interrupted => ("interrupted", None),
        EndReason::HandedOver => ("handed_over", None),
        EndReason::NoFetchableHost(_) => ("unreachable", None),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crawl_archive::rows::PendingOriginRow;
    use crawl_fetcher::robots::RobotsFetchResult;
    use crawl_fetcher::{Exchange, ExchangeFailure, FailureKind, FetchRequest, Validators};
    use crawl_frontier::UrlToAdmit;
    use crawl_scheduler::{DailyHours, PaceFromRobots, RobotsState};
    use crawl_weburl::{CanonicalUrl, Origin, canonicalize};

    use super::super::Coordinator;
    use super::super::fixtures::{at, coordinator};
    use crate::simulated_crawl_tests::scripted_servers::{answer, failure};
    use crate::summary::{EndReason, UnfetchableHost};

    #[test]
    fn each_origin_with_pending_urls_has_a_reason() {
        let mut coordinator = coordinator(|config| config.budgets.per_host.max_pages = Some(1));
        let urls = ["full", "parked", "resting", "waiting"]
            .map(|name| canonicalize(None, &format!("http://{name}.example/")).unwrap());
        let frontier = Arc::clone(&coordinator.frontier);
        let mut transaction = frontier.begin().unwrap();
        for url in &urls {
            transaction.admit(UrlToAdmit::seed(url.clone())).unwrap();
        }
        transaction.commit().unwrap();
        let [full, parked, resting, _] = urls.map(|url| url.host_key());
        coordinator.hosts.budgets_mut().settled(&full, 0);
        assert!(coordinator.hosts.budgets_mut().is_full(at(20), &full));
        coordinator.hosts.park_again(at(20), [&parked]);
        let unreachable = EndReason::NoFetchableHost(vec![UnfetchableHost {
            host: resting,
            why: "it sent a Retry-After".to_owned(),
            next_try: Some(at(500)),
            is_tried_at_start: false,
        }]);
        let rows_of = |ended: &EndReason| {
            let rows = coordinator.waiting_urls(at(20), ended).unwrap();
            let show = |row: PendingOriginRow| {
                let origin = row.origin.unwrap_or_else(|| "crawl".to_owned());
                let detail = row.detail.unwrap_or_default();
                let next_try = row.next_try.map(|at| format!(", {at}"));
                let next_try = next_try.unwrap_or_default();
                format!("{origin}: {} {} {detail}{next_try}", row.urls, row.reason)
            };
            rows.into_iter().map(show).collect::<Vec<_>>()
        };
        let expected = |crawl: &str, resting: &str, waiting: &str| {
            [
                format!("crawl: 4 {crawl}"),
                "http://full.example: 1 budget max-pages-per-host".to_owned(),
                "http://parked.example: 1 parked ".to_owned(),
                format!("http://resting.example: 1 {resting}"),
                format!("http://waiting.example: 1 {waiting}"),
            ]
        };
        assert_eq!(
            rows_of(&unreachable),
            expected(
                "unreachable ",
                "unreachable it sent a Retry-After, 1970-01-01T00:08:20.000Z",
                "unreachable "
            )
        );
        for (ended, word) in [
            (EndReason::Interrupted, "interrupted "),
            (EndReason::Budget("max-time"), "budget max-time"),
        ] {
            assert_eq!(rows_of(&ended), expected(word, word, word));
        }
    }

    #[test]
    fn a_host_that_the_operator_keeps_waiting_is_not_unreachable() {
        for is_quiet in [true, false] {
            let hours = is_quiet.then(|| DailyHours::new(0, 60));
            let mut coordinator = coordinator(|config| {
                config.politeness.quiet = hours.into_iter().collect();
            });
            let seed = canonicalize(None, "http://a.example/").unwrap();
            let origin = seed.origin();
            let mut transaction = coordinator.frontier.begin().unwrap();
            transaction.admit(UrlToAdmit::seed(seed)).unwrap();
            transaction.commit().unwrap();
            coordinator.hosts.set_pending(at(20), &origin, 1);
            if !is_quiet {
                let scheduler = coordinator.hosts.scheduler();
                scheduler.wait_for_other_crawl(at(20), &origin.host_key(), at(500));
            }
            let ended = coordinator.hosts.natural_end(at(20), &coordinator.robots);
            let rows = coordinator.waiting_urls(at(20), &ended.unwrap()).unwrap();
            let expected = if is_quiet {
                "quiet_hours"
            } else {
                "other_crawl"
            };
            assert_eq!(rows[1].reason, expected);
            assert!(rows[1].next_try.is_some() && rows[1].detail.is_some());
        }
    }

    /// Adds a pending seed of an origin whose robots.txt gets no usable answer at 20 s.
    fn add_origin_without_robots(
        coordinator: &mut Coordinator,
        answer: impl FnOnce(&CanonicalUrl) -> Result<Exchange, ExchangeFailure>,
    ) -> Origin {
        let seed = canonicalize(None, "http://down.example/").unwrap();
        let origin = seed.origin();
        let mut transaction = coordinator.frontier.begin().unwrap();
        transaction.admit(UrlToAdmit::seed(seed)).unwrap();
        transaction.commit().unwrap();
        let request = FetchRequest::robots(origin.robots_url(), Validators::default());
        let result = answer(&request.url);
        let unreachable = RobotsFetchResult::of(&request, &result, 0);
        let robots = &mut coordinator.robots;
        robots.learn(&origin, &unreachable, &result).unwrap();
        origin
    }

    #[test]
    fn a_robots_txt_without_an_answer_is_tried_at_start_unless_its_host_is_paused() {
        for is_paused in [false, true] {
            let mut coordinator = coordinator(|_| {});
            let origin = add_origin_without_robots(&mut coordinator, |_| {
                Err(failure(FailureKind::Timeout, at(20), at(20)))
            });
            let retry_at = at(320);
            let scheduler = coordinator.hosts.scheduler();
            scheduler.set_pending(at(20), &origin, 1);
            scheduler.set_robots(at(20), &origin, RobotsState::Unreachable { retry_at });
            if is_paused {
                let https = Origin::parse("https://down.example").unwrap();
                let state = RobotsState::InForce {
                    pace: PaceFromRobots::default(),
                    until: at(1_000_000),
                };
                scheduler.set_pending(at(20), &https, 1);
                scheduler.set_robots(at(20), &https, state);
                scheduler.wait_for_other_crawl(at(20), &origin.host_key(), at(500));
            }
            let ended = EndReason::Interrupted;
            let rows = coordinator.waiting_urls(at(30), &ended).unwrap();
            assert_eq!(rows[1].reason, "robots");
            assert_eq!(rows[1].tried_at_start, !is_paused);
        }
    }

    /// The pause of a host may be longer than the wait for its robots.txt.
    #[test]
    fn the_robots_txt_of_a_paused_host_is_named_after_its_wait_too() {
        let mut coordinator = coordinator(|_| {});
        let origin =
            add_origin_without_robots(&mut coordinator, |url| answer(503, "").result(url, at(20)));
        let robots = &coordinator.robots;
        let host = origin.host_key();
        let ended = EndReason::NoFetchableHost(vec![UnfetchableHost {
            why: robots.why_host_waits(&host).unwrap(),
            host,
            next_try: Some(at(500)),
            is_tried_at_start: false,
        }]);
        // The wait for robots.txt takes five minutes.
        for now in [30, 400] {
            let rows = coordinator.waiting_urls(at(now), &ended).unwrap();
            let row = &rows[1];
            let detail = row.detail.as_deref();
            assert_eq!(
                (row.reason.as_str(), detail),
                ("robots", Some("robots.txt answered 503"))
            );
            assert_eq!(
                row.next_try.unwrap().to_string(),
                "1970-01-01T00:08:20.000Z"
            );
        }
    }
}
