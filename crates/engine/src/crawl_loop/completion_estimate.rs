//! Estimates how much of a run is done and how much time it still takes, from the known URLs and
//! the budgets.

use std::time::Duration;

use crate::config::CrawlBudgets;

/// Maximum number of pending URLs for which the estimate considers the budgets of hosts. With more
/// URLs, visiting all hosts would take too long, since progress is reported several times a second.
pub(crate) const MAX_URLS_BY_HOST: u64 = 20_000;

/// The work done in a run and the work left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkDoneAndLeft {
    /// Length of this run so far, pauses included.
    pub(super) elapsed: Duration,
    /// How much of `--max-time` this run has used.
    pub(super) active: Duration,
    /// Number of settled pages.
    pub(super) pages: RoundAndRunTotal,
    pub(super) bytes: RoundAndRunTotal,
    /// Server response time in microseconds.
    pub(super) server_time: RoundAndRunTotal,
    /// Number of pending and leased URLs. If at most [`MAX_URLS_BY_HOST`] URLs are pending, leaves
    /// out the pending ones that exceed the budgets of their hosts.
    pub(super) pages_left: u64,
    /// How long the slowest host needs to fetch its URLs at its gap; `None` if unknown.
    pub(super) slowest_host: Option<Duration>,
}

/// An amount: its sum over all runs of the round, and its sum over this run alone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundAndRunTotal {
    pub(super) of_round: u64,
    pub(super) of_run: u64,
}

/// How much of a run is done, and how much time it still takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CompletionEstimate {
    /// The share of the run that is done: 0 at the start, 1 at the end.
    pub(super) share_done: f64,
    /// The remaining time; `None` if there is nothing to estimate it from.
    pub(super) left: Option<Duration>,
    /// Whether `left` is the time that the slowest host needs. If false, `left` is based on the
    /// rate of the run so far.
    pub(super) is_of_slowest_host: bool,
}

/// Estimates when the run ends: when a budget is used up or when all known URLs are fetched,
/// whichever comes first.
pub(crate) fn estimate(work: &WorkDoneAndLeft, budgets: &CrawlBudgets) -> CompletionEstimate {
    let pages = work.pages.of_round;
    let all_pages = pages + work.pages_left;
    let server_time = budgets.max_server_time.map(micros);
    let amounts = [
        Some((
            work.pages,
            all_pages.min(budgets.max_pages.unwrap_or(u64::MAX)),
        )),
        budgets.max_bytes.map(|most| (work.bytes, most)),
        server_time.map(|most| (work.server_time, most)),
    ];
    let by_amount = amounts.into_iter().flatten();
    let mut by_amount = by_amount.map(|(spent, most)| spent.estimate(most, work.elapsed));
    // Fetching the known URLs takes at least this long, unless a page budget ends the run earlier.
    let slowest = work
        .slowest_host
        .filter(|_| budgets.max_pages.is_none_or(|most| all_pages <= most));
    let of_pages = by_amount.next().map(|pages| match slowest {
        Some(slowest) if pages.left.is_none_or(|left| left < slowest) => CompletionEstimate {
            left: Some(slowest),
            is_of_slowest_host: true,
            ..pages
        },
        _ => pages,
    });
    let by_time = budgets.max_time.map(|most| CompletionEstimate {
        share_done: share(micros(work.active), micros(most)),
        left: Some(most.saturating_sub(work.active)),
        is_of_slowest_host: false,
    });
    let first_end = |one: CompletionEstimate, other: CompletionEstimate| CompletionEstimate {
        share_done: one.share_done.max(other.share_done),
        ..match (one.left, other.left) {
            (Some(left), Some(sooner)) if sooner < left => other,
            (None, Some(_)) => other,
            _ => one,
        }
    };
    of_pages
        .into_iter()
        .chain(by_amount)
        .chain(by_time)
        .fold(CompletionEstimate::default(), first_end)
}

impl RoundAndRunTotal {
    /// Estimates how much of the run is done and how long it still takes, if it ends when this
    /// amount reaches `most`. Assumes that the amount grows at the average rate of this run so far.
    fn estimate(self, most: u64, elapsed: Duration) -> CompletionEstimate {
        let rate = self.of_run as f64 / elapsed.as_secs_f64().max(0.001);
        let rest = most.saturating_sub(self.of_round) as f64;
        CompletionEstimate {
            share_done: share(self.of_round, most),
            left: Duration::try_from_secs_f64(rest / rate).ok(),
            is_of_slowest_host: false,
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => (part as f64 / whole as f64).min(1.0),
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{RoundAndRunTotal, WorkDoneAndLeft, estimate};
    use crate::config::CrawlBudgets;

    /// Returns the state of a run that fetched 50 pages of 1,000 bytes each in 100 s, with 950 URLs
    /// pending. No earlier run fetched anything.
    fn work() -> WorkDoneAndLeft {
        let of = |amount| RoundAndRunTotal {
            of_round: amount,
            of_run: amount,
        };
        WorkDoneAndLeft {
            elapsed: Duration::from_secs(100),
            active: Duration::from_secs(100),
            pages: of(50),
            bytes: of(50_000),
            server_time: of(10_000_000),
            pages_left: 950,
            slowest_host: None,
        }
    }

    #[track_caller]
    fn check(work: &WorkDoneAndLeft, budgets: &CrawlBudgets, share_done: f64, left: Option<u64>) {
        let estimated = estimate(work, budgets);
        assert!(
            (estimated.share_done - share_done).abs() < 0.000_1,
            "{estimated:?}"
        );
        assert_eq!(estimated.left.map(|left| left.as_secs()), left);
    }

    #[test]
    fn the_budget_that_ends_first_counts() {
        let none = CrawlBudgets::default();
        check(&work(), &none, 0.05, Some(1900));
        let pages = CrawlBudgets {
            max_pages: Some(150),
            ..none.clone()
        };
        check(&work(), &pages, 1.0 / 3.0, Some(200));
        let bytes = CrawlBudgets {
            max_bytes: Some(100_000),
            ..pages.clone()
        };
        check(&work(), &bytes, 0.5, Some(100));
        let server = CrawlBudgets {
            max_server_time: Some(Duration::from_secs(16)),
            ..none.clone()
        };
        check(&work(), &server, 0.625, Some(60));
        let time = CrawlBudgets {
            max_time: Some(Duration::from_secs(125)),
            ..bytes
        };
        check(&work(), &time, 0.8, Some(25));
        // Budgets that the crawl can't use up have no effect.
        let ample = CrawlBudgets {
            max_pages: Some(1_000_000),
            ..none
        };
        check(&work(), &ample, 0.05, Some(1900));
    }

    #[test]
    fn the_slowest_host_decides_the_time_if_it_takes_longer_than_the_rate() {
        let slowest = |seconds, max_pages: Option<u64>, max_time: Option<u64>| {
            let work = WorkDoneAndLeft {
                slowest_host: Some(Duration::from_secs(seconds)),
                ..work()
            };
            let budgets = CrawlBudgets {
                max_pages,
                max_time: max_time.map(Duration::from_secs),
                ..CrawlBudgets::default()
            };
            let estimated = estimate(&work, &budgets);
            (
                estimated.left.unwrap().as_secs(),
                estimated.is_of_slowest_host,
            )
        };
        assert_eq!(slowest(1_899, None, None), (1_900, false));
        assert_eq!(slowest(1_901, None, None), (1_901, true));
        assert_eq!(slowest(9_000, None, Some(300)), (200, false));
        // A page budget ends the run before the slowest host is done.
        assert_eq!(slowest(9_000, Some(150), None), (200, false));
        let none_yet = WorkDoneAndLeft {
            pages_left: 3,
            slowest_host: Some(Duration::from_secs(6)),
            ..WorkDoneAndLeft::default()
        };
        let estimated = estimate(&none_yet, &CrawlBudgets::default());
        assert_eq!(estimated.left, Some(Duration::from_secs(6)));
    }

    #[test]
    fn without_a_page_there_is_no_rate() {
        let nothing = WorkDoneAndLeft {
            pages_left: 3,
            ..WorkDoneAndLeft::default()
        };
        check(&nothing, &CrawlBudgets::default(), 0.0, None);
        let over = WorkDoneAndLeft {
            pages_left: 0,
            ..work()
        };
        check(&over, &CrawlBudgets::default(), 1.0, Some(0));
        // Pages of earlier runs count as done, but are left out of the rate of this run.
        let resumed = WorkDoneAndLeft {
            pages: RoundAndRunTotal {
                of_round: 50,
                of_run: 25,
            },
            ..work()
        };
        check(&resumed, &CrawlBudgets::default(), 0.05, Some(3800));
    }
}
