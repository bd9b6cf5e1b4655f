//! Reads the log of the delays set by an operator, and of the settings of each run.

use std::path::Path;

use crawl_archive::rows::DelayRow;

use super::readable;
use crate::error::RecordsError;
use crate::row_file_reader::{RowFileReader, delays};

/// All rows of `state/delays.jsonl`, in time order. Memory: about 100 bytes per row, and a few
/// thousand bytes per row with settings.
#[derive(Debug, Default)]
pub(super) struct OperatorDelayLog(Vec<DelayRow>);

/// Reads the rows of `state/delays.jsonl` in file order. In a directory that `crawl gather` wrote,
/// these are the rows of all workers. Empty if there is no such file.
pub(super) fn read_rows(dir: &Path) -> Result<Vec<DelayRow>, RecordsError> {
    let rows: RowFileReader<DelayRow> = delays(dir)?;
    // Skip malformed lines. Such a line was never completely on disk, and the crawl sent no
    // request after it.
    rows.filter_map(|row| readable(row).transpose()).collect()
}

/// Returns whether a row is for the start of a run.
pub(super) fn is_start(row: &DelayRow) -> bool {
    row.host.is_none() && row.delay.is_none() && row.reread.is_none()
}

impl OperatorDelayLog {
    pub(super) fn of(mut rows: Vec<DelayRow>) -> OperatorDelayLog {
        rows.sort_by_key(|row| row.at);
        OperatorDelayLog(rows)
    }

    /// Returns all rows, in time order.
    pub(super) fn rows(&self) -> &[DelayRow] {
        &self.0
    }

    /// Returns the start times of runs with their workers, in order.
    pub(super) fn starts(&self) -> impl Iterator<Item = (u64, Option<String>)> {
        let starts = self.0.iter().filter(|row| is_start(row));
        starts.map(|row| (row.at, row.worker.clone()))
    }

    /// Returns the shortest delay, in milliseconds, that a worker applied to a host at some time
    /// from `from` to `to`. `usual` is the delay in the settings.
    pub(super) fn least(
        &self,
        host: &str,
        worker: Option<&str>,
        usual: u64,
        (from, to): (u64, u64),
    ) -> u64 {
        let until = self.0.partition_point(|row| row.at <= to);
        // A delay that the operator set overrides the delay in reread settings.
        let set = self.0.iter().take(until).rev().filter(|row| {
            row.reread.is_none()
                && row.worker.as_deref() == worker
                && row.host.as_deref().is_none_or(|of| of == host)
        });
        let mut least = u64::MAX;
        for row in set {
            least = least.min(row.delay.unwrap_or(usual));
            if row.at <= from {
                return least;
            }
        }
        least.min(usual)
    }
}

#[cfg(test)]
mod tests {
    use crawl_archive::rows::{DelayRow, ExclusionsChangedByReload};

    use super::OperatorDelayLog;

    #[test]
    fn the_least_that_was_in_force_just_then() {
        let row = |at, host: Option<&str>, delay| DelayRow {
            at,
            host: host.map(str::to_owned),
            delay,
            ..DelayRow::default()
        };
        let delays = OperatorDelayLog::of(vec![
            row(10_000, None, Some(500)),
            row(20_000, Some("a.example"), Some(3_000)),
            row(20_500, None, Some(4_000)),
            DelayRow {
                worker: Some("w2".to_owned()),
                ..row(22_000, None, Some(3_500))
            },
            DelayRow {
                at: 25_000,
                reread: Some(ExclusionsChangedByReload::default()),
                ..DelayRow::default()
            },
            row(30_000, None, None),
        ]);
        let check = |moment, a, b| {
            let least = |host| delays.least(host, None, 1_000, (moment - 1_000, moment));
            assert_eq!((least("a.example"), least("b.example")), (a, b), "{moment}");
        };
        check(9_999, 1_000, 1_000);
        check(10_000, 500, 500);
        check(20_400, 500, 500);
        check(21_200, 3_000, 500);
        check(21_600, 4_000, 4_000);
        check(26_500, 4_000, 4_000);
        check(30_000, 1_000, 1_000);
        check(99_000, 1_000, 1_000);
        let of_worker = delays.least("a.example", Some("w2"), 1_000, (28_000, 29_000));
        assert_eq!(of_worker, 3_500);
        assert_eq!(
            delays.least("a.example", None, 1_000, (10_500, 20_400)),
            500
        );
        assert_eq!(
            OperatorDelayLog::default().least("a.example", None, 7, (5, 5)),
            7
        );
    }
}
