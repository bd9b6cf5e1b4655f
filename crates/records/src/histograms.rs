//! Histograms with few bins, and time series: the data of plots, in constant memory.

/// A histogram: counts values between limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Histogram {
    /// Upper limits of the bins, in ascending order. A bin excludes its upper limit.
    limits: &'static [u64],
    /// The count of each bin. There is one more bin than there are limits, because the last bin is
    /// unbounded.
    counts: Vec<u64>,
}

impl Histogram {
    /// Creates an empty histogram. `limits` must be in ascending order.
    pub(crate) fn new(limits: &'static [u64]) -> Histogram {
        Histogram {
            limits,
            counts: vec![0; limits.len() + 1],
        }
    }

    pub(crate) fn add(&mut self, value: u64) {
        let bin = self.limits.partition_point(|limit| *limit <= value);
        self.counts[bin] += 1;
    }

    /// Returns the start, end and count of each bin, in ascending order. The last bin has no end.
    pub(crate) fn bins(&self) -> impl Iterator<Item = (u64, Option<u64>, u64)> + Clone {
        let starts = std::iter::once(0).chain(self.limits.iter().copied());
        let ends = self.limits.iter().copied().map(Some).chain([None]);
        let bins = starts.zip(ends).zip(&self.counts);
        bins.map(|((start, end), count)| (start, end, *count))
    }

    /// Returns the number of values counted so far.
    pub(crate) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Upper limits of the bins for delays between requests to a host, in milliseconds.
const GAPS: [u64; 10] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000,
];

/// Histograms of the delays between requests to the same host, over all hosts, in milliseconds.
#[derive(Debug)]
pub(crate) struct GapHistograms {
    /// Delays that a setting or a site's rule required.
    pub(crate) asked: Histogram,
    /// Delays observed between requests.
    pub(crate) seen: Histogram,
}

impl GapHistograms {
    pub(crate) fn new() -> GapHistograms {
        GapHistograms {
            asked: Histogram::new(&GAPS),
            seen: Histogram::new(&GAPS),
        }
    }
}

/// Maximum number of bins on a time axis of `report.html`.
/// Beyond the limit: longer intervals.
pub(crate) const MAX_TIME_BINS: u64 = 60;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Widths of time bins in milliseconds: round numbers of seconds, minutes, hours or days.
const WIDTHS: [u64; 26] = [
    10,
    20,
    50,
    100,
    200,
    500,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
];

/// Time bins of equal width, from the first request to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeBins {
    /// Start of the first bin, in milliseconds since the Unix epoch.
    pub(crate) start_ms: u64,
    /// Width of a bin, in milliseconds.
    pub(crate) width_ms: u64,
    /// Number of bins, from 1 to [`MAX_TIME_BINS`].
    pub(crate) bins: usize,
}

impl TimeBins {
    /// Creates an axis from `first_ms` to `last_ms` with the smallest width that needs at most
    /// [`MAX_TIME_BINS`] bins.
    pub(crate) fn new(first_ms: u64, last_ms: u64) -> TimeBins {
        let last_ms = last_ms.max(first_ms);
        let bins = |width: u64| last_ms / width - first_ms / width + 1;
        let listed = WIDTHS
            .into_iter()
            .find(|width| bins(*width) <= MAX_TIME_BINS);
        let width_ms = listed.unwrap_or_else(|| {
            // Divide by one less than the maximum. The time span may start and end in the middle of
            // a bin, so it may need one bin more.
            let least = (last_ms - first_ms) / (MAX_TIME_BINS - 1) + 1;
            least.div_ceil(DAY).saturating_mul(DAY)
        });
        TimeBins {
            start_ms: first_ms / width_ms * width_ms,
            width_ms,
            bins: usize::try_from(bins(width_ms)).unwrap_or(1),
        }
    }

    /// Returns the index of the bin that contains `at_ms`, or of the nearest bin if `at_ms` is off
    /// the axis.
    pub(crate) fn bin(&self, at_ms: u64) -> usize {
        let bin = at_ms.saturating_sub(self.start_ms) / self.width_ms;
        usize::try_from(bin).map_or(self.bins - 1, |bin| bin.min(self.bins - 1))
    }

    /// Returns the start of the bin with this index, in milliseconds since the Unix epoch.
    pub(crate) fn start_of(&self, bin: usize) -> u64 {
        let since = self.width_ms.saturating_mul(bin as u64);
        self.start_ms.saturating_add(since)
    }
}

#[cfg(test)]
mod tests {
    use super::{Histogram, MAX_TIME_BINS, TimeBins};

    #[test]
    fn a_bin_holds_its_start_and_not_its_end() {
        let mut histogram = Histogram::new(&[1, 10]);
        for value in [0, 1, 9, 10, u64::MAX] {
            histogram.add(value);
        }
        let bins: Vec<_> = histogram.bins().collect();
        assert_eq!(bins, [(0, Some(1), 1), (1, Some(10), 2), (10, None, 2)]);
        assert_eq!(histogram.total(), 5);
    }

    #[test]
    fn a_time_axis_has_few_bins_for_any_span() {
        let check = |first: u64, last: u64, width: u64, bins: usize| {
            let axis = TimeBins::new(first, last);
            assert_eq!((axis.width_ms, axis.bins), (width, bins), "{first} {last}");
            assert!(axis.bins as u64 <= MAX_TIME_BINS);
            assert_eq!(axis.bin(first), 0);
            assert_eq!(axis.bin(last.max(first)), bins - 1);
            assert!(axis.start_ms <= first && first < axis.start_of(1));
            assert_eq!(axis.bin(0).max(axis.bin(u64::MAX)), bins - 1);
        };
        check(0, 0, 10, 1);
        check(7, 3, 10, 1);
        check(999, 1_001, 10, 2);
        check(1_000_000, 1_032_050, 1000, 33);
        check(0, 59_999, 1000, 60);
        check(0, 60_000, 2000, 31);
        check(86_400_000, 9 * 86_400_000, 6 * 3_600_000, 33);
        check(0, 3_000 * 86_400_000, 51 * 86_400_000, 59);
    }
}
