//! Delays that an operator set during a crawl, and the settings that applied before each reread of
//! `crawl.toml`.

use std::path::Path;

use crawl_archive::rows::DelayRow;

use super::{SETTLING_MS, readable};
use crate::error::RecordsError;
use crate::rows::{RowsOf, delays};

/// All delays in time order. Memory: about 100 bytes each.
#[derive(Debug, Default)]
pub(super) struct Delays(Vec<DelayRow>);

impl Delays {
    /// Reads `state/delays.jsonl`, or the rows of all workers after `crawl gather`. Empty if there
    /// is no such file.
    pub(super) fn read(dir: &Path) -> Result<Delays, RecordsError> {
        let rows: RowsOf<DelayRow> = delays(dir)?;
        // Skip a malformed line: it was never completely on disk, so no request was sent after it.
        let rows = rows.filter_map(|row| readable(row).transpose());
        Ok(Delays(rows.collect::<Result<_, _>>()?))
    }

    /// Returns each reread of the settings with the previous settings, in time order.
    pub(super) fn rereads(&self) -> impl Iterator<Item = &DelayRow> {
        self.0.iter().filter(|row| row.reread.is_some())
    }

    /// Returns the lowest minimum delay, in milliseconds, that a worker applied to a host at
    /// `moment` or just before. `usual` is the delay in `crawl.toml`.
    pub(super) fn least(&self, host: &str, worker: Option<&str>, usual: u64, moment: u64) -> u64 {
        let mut least = usual;
        let mut now = usual;
        let before = moment.saturating_sub(SETTLING_MS);
        // Delays set by the operator override reread settings.
        let set = self.0.iter();
        let set = set.filter(|row| row.reread.is_none() && row.worker.as_deref() == worker);
        let until = set.take_while(|row| row.at <= moment);
        for row in until.filter(|row| row.host.as_deref().is_none_or(|of| of == host)) {
            now = row.delay.unwrap_or(usual);
            least = match row.at <= before {
                true => now,
                false => least.min(now),
            };
        }
        least.min(now)
    }
}

#[cfg(test)]
mod tests {
    use crawl_archive::rows::{DelayRow, RereadSettings};

    use super::Delays;

    #[test]
    fn the_least_that_was_in_force_just_then() {
        let row = |at, host: Option<&str>, delay| DelayRow {
            at,
            host: host.map(str::to_owned),
            delay,
            ..DelayRow::default()
        };
        let delays = Delays(vec![
            row(10_000, None, Some(500)),
            row(20_000, Some("a.example"), Some(3_000)),
            row(20_500, None, Some(4_000)),
            DelayRow {
                worker: Some("w2".to_owned()),
                ..row(22_000, None, Some(3_500))
            },
            DelayRow {
                at: 25_000,
                reread: Some(RereadSettings::default()),
                ..DelayRow::default()
            },
            row(30_000, None, None),
        ]);
        let check = |moment, a, b| {
            let least = |host| delays.least(host, None, 1_000, moment);
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
        assert_eq!(delays.least("a.example", Some("w2"), 1_000, 29_000), 3_500);
        assert_eq!(Delays::default().least("a.example", None, 7, 5), 7);
    }
}
