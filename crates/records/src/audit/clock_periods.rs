//! Finds where the clock was set back between two runs, and makes the times of the rows comparable.
//!
//! A run's clock never goes backwards, and rows are in the order in which their requests ended. So
//! if a request ended at an earlier time than the request in the row before it, and it was sent by
//! a later run, the clock was set back between the two runs.

use std::collections::HashMap;

use crawl_archive::rows::{DelayRow, RequestRow};

use super::operator_delays::is_start;
use super::{SETTLING_MS, readable};
use crate::error::RecordsError;
use crate::row_file_reader::RowFileReader;

const DAY_MS: u64 = 24 * 3600 * 1000;

/// The periods of a crawl. The clock was set back between each period and the next, so there is
/// only one period if the clock was never set back.
///
/// Each period has a number of whole days. Times of different periods are comparable after the days
/// of their periods are added. Whole days keep the time of day, which matters for quiet hours and
/// visiting hours.
#[derive(Debug)]
pub(super) struct ClockPeriods(Vec<ClockPeriod>);

/// A period during which the clock was not set back.
#[derive(Debug, Default)]
struct ClockPeriod {
    /// The line in `requests.jsonl` of the period's first request.
    line: u64,
    /// The index in `state/delays.jsonl` of the row for the start of the period's first run.
    start_row: usize,
    /// The time to add to the times of the period: whole days, in milliseconds.
    added: u64,
    /// The latest end of a request, in milliseconds since 1970 by the clock of the period.
    last_end: u64,
}

impl ClockPeriods {
    /// Finds the periods. `requests` are the rows of `requests.jsonl`, and `delays` are the rows of
    /// `state/delays.jsonl`, both in file order. `is_single` returns whether a host may have only
    /// one request in flight.
    pub(super) fn find(
        mut requests: RowFileReader<RequestRow>,
        delays: &[DelayRow],
        is_single: impl Fn(&str) -> bool,
    ) -> Result<ClockPeriods, RecordsError> {
        let mut periods = ClockPeriods(vec![ClockPeriod::default()]);
        let starts = delays.iter().enumerate().filter(|(_, row)| is_start(row));
        let mut starts: Vec<(usize, u64)> = starts.map(|(index, row)| (index, row.at)).collect();
        // The end of the last request to each host.
        let mut ends: HashMap<String, u64> = HashMap::new();
        // The clock can only have been set back before the second run or a later one.
        while let (Some(row), true) = (requests.next(), starts.len() > 1) {
            let Some(row) = readable(row)? else {
                continue;
            };
            let Some(period) = periods.0.last_mut() else {
                break;
            };
            // With several requests in flight, rows may be a little out of order.
            let is_earlier = row.end.saturating_add(SETTLING_MS) < period.last_end
                || (ends.get(&row.host)).is_some_and(|end| row.end < *end && is_single(&row.host));
            // Skip the first start, which began the current period.
            let later = starts.iter().enumerate().skip(1);
            let begun = later.filter(|(_, (_, at))| *at <= row.start);
            match begun.max_by_key(|(_, (_, at))| *at) {
                Some((place, &(start_row, at))) if is_earlier => {
                    let behind = period.last_end.saturating_add(period.added) - at;
                    let added = (behind / DAY_MS + 1).saturating_mul(DAY_MS);
                    starts.drain(..place);
                    ends.clear();
                    periods.0.push(ClockPeriod {
                        line: requests.line(),
                        start_row,
                        added,
                        last_end: row.end,
                    });
                }
                _ => period.last_end = period.last_end.max(row.end),
            }
            ends.insert(row.host, row.end);
        }
        Ok(periods)
    }

    /// Returns whether the clock was set back at some time.
    pub(super) fn are_several(&self) -> bool {
        self.0.len() > 1
    }

    /// Returns the milliseconds to add to the times of a line of `requests.jsonl`.
    pub(super) fn added_at(&self, line: u64) -> u64 {
        let count = self.0.partition_point(|period| period.line <= line);
        self.added(count)
    }

    /// Adds the whole days of its period to the time of each row of `state/delays.jsonl`. `rows`
    /// must have all rows, in file order.
    pub(super) fn correct(&self, rows: &mut [DelayRow]) {
        for (index, row) in rows.iter_mut().enumerate() {
            let count = self.0.partition_point(|period| period.start_row <= index);
            row.at = row.at.saturating_add(self.added(count));
        }
    }

    /// Returns the possible corrected values of a time from an unknown period. There is one value
    /// for each period that may contain the time, with the whole days of that period added.
    pub(super) fn meanings(&self, time: u64) -> Vec<u64> {
        let periods = self.0.iter().enumerate();
        let possible = periods.filter(|(index, period)| {
            // The last period also has the times of requests whose rows are lost.
            time <= period.last_end || index + 1 == self.0.len()
        });
        possible
            .map(|(_, period)| time.saturating_add(period.added))
            .collect()
    }

    /// Returns the milliseconds to add to the times of the period that is number `count`, counted
    /// from 1. Returns 0 if `count` is 0.
    fn added(&self, count: usize) -> u64 {
        let period = count.checked_sub(1).and_then(|index| self.0.get(index));
        period.map_or(0, |period| period.added)
    }
}
