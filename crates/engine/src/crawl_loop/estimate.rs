//! The share of a run that is done, and the time that is left: by what is known to be left, and by
//! the budgets.

use std::time::Duration;

use crate::config::Budgets;

/// URLs that wait, up to which the budgets of hosts count in the estimate: above, going through
/// all hosts several times a second would cost too much.
pub(crate) const MAX_URLS_BY_HOST: u64 = 20_000;

/// The work of a run, done and to be done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkDone {
    /// Length of this run so far, pauses among it.
    pub(super) elapsed: Duration,
    /// The part of `--max-time` that this run spent.
    pub(super) active: Duration,
    /// Of the round and of this run.
    pub(super) pages: Amount,
    pub(super) bytes: Amount,
    /// Microseconds that servers spent.
    pub(super) server_time: Amount,
    /// URLs that wait or are asked for, on hosts that have room for them.
    pub(super) pages_left: u64,
    /// The time that the host with the most to wait for takes at its gap; none where that is not
    /// known.
    pub(super) slowest_host: Option<Duration>,
}

/// An amount, over all runs of the round and in this one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Amount {
    pub(super) of_round: u64,
    pub(super) of_run: u64,
}

/// The share of a run that is done, and the time that is left.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Estimate {
    /// 0 at the start, 1 at the end.
    pub(super) share_done: f64,
    /// None where there is nothing yet to tell it by.
    pub(super) left: Option<Duration>,
    /// Where it is that of the slowest host: the rate so far says less.
    pub(super) is_of_slowest_host: bool,
}

/// The estimate by whichever end comes first.
pub(crate) fn estimate(course: &WorkDone, budgets: &Budgets) -> Estimate {
    let pages = course.pages.of_round;
    let all_pages = pages + course.pages_left;
    let server_time = budgets.max_server_time.map(micros);
    let amounts = [
        Some((
            course.pages,
            all_pages.min(budgets.max_pages.unwrap_or(u64::MAX)),
        )),
        budgets.max_bytes.map(|most| (course.bytes, most)),
        server_time.map(|most| (course.server_time, most)),
    ];
    let by_amount = amounts.into_iter().flatten();
    let mut by_amount = by_amount.map(|(spent, most)| spent.estimate(most, course.elapsed));
    // What is known needs so long at least, unless a budget of pages ends the run before.
    let slowest = course
        .slowest_host
        .filter(|_| budgets.max_pages.is_none_or(|most| all_pages <= most));
    let of_pages = by_amount.next().map(|pages| match slowest {
        Some(slowest) if pages.left.is_none_or(|left| left < slowest) => Estimate {
            left: Some(slowest),
            is_of_slowest_host: true,
            ..pages
        },
        _ => pages,
    });
    let by_time = budgets.max_time.map(|most| Estimate {
        share_done: share(micros(course.active), micros(most)),
        left: Some(most.saturating_sub(course.active)),
        is_of_slowest_host: false,
    });
    let first_end = |one: Estimate, other: Estimate| Estimate {
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
        .fold(Estimate::default(), first_end)
}

impl Amount {
    /// The estimate where the run ends with `most`, at the rate of this run so far.
    fn estimate(self, most: u64, elapsed: Duration) -> Estimate {
        let rate = self.of_run as f64 / elapsed.as_secs_f64().max(0.001);
        let rest = most.saturating_sub(self.of_round) as f64;
        Estimate {
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

    use super::{Amount, WorkDone, estimate};
    use crate::config::Budgets;

    /// 50 pages of a thousand bytes in 100 s, in this run alone, and 950 URLs that wait.
    fn course() -> WorkDone {
        let of = |amount| Amount {
            of_round: amount,
            of_run: amount,
        };
        WorkDone {
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
    fn check(course: &WorkDone, budgets: &Budgets, share_done: f64, left: Option<u64>) {
        let found = estimate(course, budgets);
        assert!((found.share_done - share_done).abs() < 0.000_1, "{found:?}");
        assert_eq!(found.left.map(|left| left.as_secs()), left);
    }

    #[test]
    fn ours_the_budget_that_ends_first_counts() {
        let none = Budgets::default();
        check(&course(), &none, 0.05, Some(1900));
        let pages = Budgets {
            max_pages: Some(150),
            ..none.clone()
        };
        check(&course(), &pages, 1.0 / 3.0, Some(200));
        let bytes = Budgets {
            max_bytes: Some(100_000),
            ..pages.clone()
        };
        check(&course(), &bytes, 0.5, Some(100));
        let server = Budgets {
            max_server_time: Some(Duration::from_secs(16)),
            ..none.clone()
        };
        check(&course(), &server, 0.625, Some(60));
        let time = Budgets {
            max_time: Some(Duration::from_secs(125)),
            ..bytes
        };
        check(&course(), &time, 0.8, Some(25));
        // One that is larger than the web counts for nothing.
        let ample = Budgets {
            max_pages: Some(1_000_000),
            ..none
        };
        check(&course(), &ample, 0.05, Some(1900));
    }

    #[test]
    fn ours_the_slowest_host_counts_where_it_takes_longer_than_the_rate_says() {
        let slowest = |seconds, max_pages: Option<u64>, max_time: Option<u64>| {
            let course = WorkDone {
                slowest_host: Some(Duration::from_secs(seconds)),
                ..course()
            };
            let budgets = Budgets {
                max_pages,
                max_time: max_time.map(Duration::from_secs),
                ..Budgets::default()
            };
            let found = estimate(&course, &budgets);
            (found.left.unwrap().as_secs(), found.is_of_slowest_host)
        };
        assert_eq!(slowest(1_899, None, None), (1_900, false));
        assert_eq!(slowest(1_901, None, None), (1_901, true));
        assert_eq!(slowest(9_000, None, Some(300)), (200, false));
        // A budget of pages that ends the run before the host is through.
        assert_eq!(slowest(9_000, Some(150), None), (200, false));
        let none_yet = WorkDone {
            pages_left: 3,
            slowest_host: Some(Duration::from_secs(6)),
            ..WorkDone::default()
        };
        let found = estimate(&none_yet, &Budgets::default());
        assert_eq!(found.left, Some(Duration::from_secs(6)));
    }

    #[test]
    fn ours_without_a_page_there_is_no_rate() {
        let nothing = WorkDone {
            pages_left: 3,
            ..WorkDone::default()
        };
        check(&nothing, &Budgets::default(), 0.0, None);
        let over = WorkDone {
            pages_left: 0,
            ..course()
        };
        check(&over, &Budgets::default(), 1.0, Some(0));
        // What earlier runs fetched is done, and tells nothing of this run's rate.
        let resumed = WorkDone {
            pages: Amount {
                of_round: 50,
                of_run: 25,
            },
            ..course()
        };
        check(&resumed, &Budgets::default(), 0.05, Some(3800));
    }
}
