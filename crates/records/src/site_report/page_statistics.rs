//! Statistics of the response times and sizes of pages and files: counts per bin, the highest
//! values, and the median.

use serde::{Deserialize, Serialize};

/// Pages that take this many milliseconds or more are slow.
pub(crate) const SLOW_FROM: u64 = 1_000;
/// Pages of this many bytes or more are large.
pub(crate) const LARGE_FROM: u64 = 500_000;
/// Pages of this many bytes or more should be sent compressed. Shorter pages fit into one packet
/// anyway.
pub(crate) const COMPRESSED_FROM: u64 = 1_400;

/// Upper limits of the time bins, in milliseconds.
pub(super) const TIME_BINS: [u64; 6] = [100, 200, 500, 1_000, 2_000, 5_000];
/// Upper limits of the size bins, in bytes.
pub(super) const SIZE_BINS: [u64; 6] = [10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000];

/// A page or file with one measured number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageWithMeasurement {
    /// The URL of the page or file.
    pub url: String,
    /// The number: clicks in the list `deep`, milliseconds in `slow`, bytes in `large`.
    pub number: u64,
}

/// Maximum number of pages listed as the slowest or the largest.
const MAX_EXTREMES: usize = 20;

/// Adds one to the first bin whose upper limit in `ends` is above `value`, or to the last bin,
/// which has no limit.
pub(super) fn bin(bins: &mut [u64], ends: &[u64], value: u64) {
    let at = ends
        .iter()
        .position(|end| value < *end)
        .unwrap_or(ends.len());
    bins[at] += 1;
}

/// Returns how many counted values are at least `least`, which must be a limit in `ends`.
pub(super) fn count_from(least: u64, ends: &[u64], bins: &[u64]) -> u64 {
    let first = ends.partition_point(|end| *end <= least);
    bins.iter().skip(first).sum()
}

/// Returns the pages with the highest numbers, and the median of all numbers. For an even count,
/// the median is the lower of the middle two numbers. The median is `None` without pages.
pub(super) fn extremes(mut pages: Vec<(u64, String)>) -> (Vec<PageWithMeasurement>, Option<u64>) {
    pages.sort_unstable_by(|one, other| (other.0, &one.1).cmp(&(one.0, &other.1)));
    let median = pages.get(pages.len() / 2).map(|(number, _)| *number);
    pages.truncate(MAX_EXTREMES);
    let pages = pages.into_iter();
    let pages = pages.map(|(number, url)| PageWithMeasurement { url, number });
    (pages.collect(), median)
}

#[cfg(test)]
mod tests {
    use super::{bin, count_from, extremes};

    #[test]
    fn values_are_counted_from_the_limit_of_a_bin() {
        let mut bins = [0; 3];
        for value in [9, 10, 99, 100] {
            bin(&mut bins, &[10, 100], value);
        }
        assert_eq!(bins, [1, 2, 1]);
        assert_eq!(count_from(10, &[10, 100], &bins), 3);
        assert_eq!(count_from(100, &[10, 100], &bins), 1);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let median = |numbers: &[u64]| {
            let pages = numbers.iter().map(|number| (*number, number.to_string()));
            extremes(pages.collect()).1
        };
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[9]), Some(9));
        assert_eq!(median(&[1, 900, 3]), Some(3));
        assert_eq!(median(&[1, 2, 3, 4]), Some(2));
    }
}
