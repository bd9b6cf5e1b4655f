//! When enough is enough: budgets, and the end of a run.

use std::time::Duration;

use crawl_scheduler::{PauseReason, Tick};
use crawl_weburl::HostKey;

use super::Coordinator;
use crate::summary::{Ended, UnreachableHost};

/// Items on their way to the disk at which no more permits are asked for, at least. It
/// bounds the bodies in memory behind the fetcher, and is large enough for a group commit
/// to pay while the next group gathers.
const MAX_UNSETTLED: u64 = 512;

/// A gap that is longer, as a `Crawl-delay` of years asks for, is no reason to stay.
const MAX_GAP_WORTH_WAITING: Duration = Duration::from_secs(24 * 60 * 60);

impl Coordinator {
    /// The end of this run by `--max-time`, for which a pause does not count.
    pub(crate) fn deadline(&self) -> Option<Tick> {
        let time = self.config.budgets.max_time?;
        Some(self.started + time + self.steering.paused())
    }

    /// The name of a budget of the whole crawl that leaves room for no further page.
    pub(crate) fn spent_budget(&self) -> Option<&'static str> {
        let budgets = &self.config.budgets;
        let of_round = self.totals.since(&self.visits.round.before);
        if budgets
            .max_pages
            .is_some_and(|max| of_round.pages + self.leases_out >= max)
        {
            Some("max-pages")
        } else if budgets.max_bytes.is_some_and(|max| of_round.bytes >= max) {
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

    /// Room for every request that may be in flight, and a group behind it.
    pub(crate) fn max_unsettled(&self) -> u64 {
        MAX_UNSETTLED.max(2 * u64::from(self.config.politeness.concurrency))
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
                    (_, Some(budget)) => Ended::Budget(budget),
                },
            ),
            Some(soonest)
                if soonest > now + self.config.wait_unreachable
                    && resting.ready == 0
                    && (resting.waiting_hosts == 0 || soonest > now + MAX_GAP_WORTH_WAITING) =>
            {
                let hosts = resting.paused.into_iter().map(|rest| UnreachableHost {
                    why: self.origins.why_unreachable(&rest.host).unwrap_or_else(|| {
                        match rest.why {
                            PauseReason::OtherCrawl => self.locks.who_asks(&rest.host),
                            why => paused_words(why),
                        }
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

    use crawl_scheduler::PauseReason;

    use super::paused_words;

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
    }
}
