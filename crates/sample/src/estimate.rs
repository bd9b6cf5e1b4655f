//! Estimates totals, means and shares of a frame from a sample.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::sample_draw::StratumDrawCounts;
use crate::student_t_quantile::t_975;

/// A difference smaller than this fraction of the sum of squares that it was computed from is
/// treated as zero, because floating-point errors (about 1e-16 per operation) could have caused it.
const MAX_ROUNDING: f64 = 1e-12;

/// The variance of a share is mixed with a second variance: the one that would result if all strata
/// had the same share. This is the weight of the second variance. The weight of the first one is
/// the number of sampled pages with the rarer value.
const ALIKE_PAGES: f64 = 10.0;

/// The probability that a page is in a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InclusionProbability<'a> {
    /// The page is in every sample, because the crawl always reads it.
    Certain,
    /// The page was drawn at random from a stratum.
    Drawn {
        /// The name of the stratum.
        stratum: &'a str,
        /// The number of URLs drawn from the stratum.
        drawn: u64,
        /// The number of URLs in the stratum, drawn or not.
        of: u64,
    },
}

impl<'a> InclusionProbability<'a> {
    /// Returns the probability of a page that was drawn from a stratum.
    #[must_use]
    pub fn of(stratum: &StratumDrawCounts<'a>) -> InclusionProbability<'a> {
        InclusionProbability::Drawn {
            stratum: stratum.name,
            drawn: stratum.drawn,
            of: stratum.of,
        }
    }
}

/// An estimate with its 95 % interval. If the precision is unknown, both ends of the interval are
/// infinite (null in JSON).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalEstimate {
    /// The estimated value.
    pub value: f64,
    /// The lower end of the interval.
    #[serde(deserialize_with = "low_end")]
    pub low: f64,
    /// The upper end of the interval.
    #[serde(deserialize_with = "high_end")]
    pub high: f64,
}

fn low_end<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NEG_INFINITY))
}

fn high_end<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
}

impl IntervalEstimate {
    /// Returns true if both ends of the interval are finite, so the precision is known.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.low.is_finite() && self.high.is_finite()
    }

    /// Returns whether the interval contains a value.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    fn around(value: f64, half: f64) -> IntervalEstimate {
        IntervalEstimate {
            value,
            low: value - half,
            high: value + half,
        }
    }
}

/// Estimates a total, a mean or a share over those pages of a frame that are of a certain kind,
/// such as pages with a response.
///
/// Each page of the sample is added with two numbers: its value, and 1 if the page is of that kind.
/// A page of another kind (because it failed or redirects, for example) is added with two zeros.
/// Leaving it out gives the same result. So nothing is assumed about the value of a page without a
/// response.
///
/// Totals use the Horvitz-Thompson estimator. A mean is the ratio of two totals. The variance of a
/// mean is that of its residuals (Särndal, Swensson and Wretman 1992, chapters 3 and 5), with the
/// finite population correction. Memory: about 100 bytes per stratum.
#[derive(Clone, Debug, Default)]
pub struct SubsetEstimator {
    /// Sums over the pages that were not drawn at random, because the crawl always reads them.
    certain: EstimateSums,
    strata: BTreeMap<String, (u64, u64, EstimateSums)>,
}

/// Sums over pages. `y` is the value of a page; `z` is 1 if the page is of the chosen kind, else 0.
#[derive(Clone, Copy, Debug, Default)]
struct EstimateSums {
    y: f64,
    z: f64,
    yy: f64,
    yz: f64,
    zz: f64,
}

impl EstimateSums {
    fn add(&mut self, y: f64, z: f64) {
        self.y += y;
        self.z += z;
        self.yy += y * y;
        self.yz += y * z;
        self.zz += z * z;
    }

    /// Returns the variance of `y - ratio * z` over this many pages. Pages that were not added
    /// count as zeros. The result is exactly 0 if all terms are equal, and infinite for a single
    /// page.
    fn variance(&self, ratio: f64, pages: f64) -> f64 {
        if pages < 2.0 {
            return f64::INFINITY;
        }
        let (sum, squares) = self.residuals(ratio);
        let spread = squares - sum * sum / pages;
        let rounding = MAX_ROUNDING * (self.yy + ratio * ratio * self.zz);
        match spread > rounding {
            true => spread / (pages - 1.0),
            false => 0.0,
        }
    }

    /// Returns the sum of `y - ratio * z` over all pages, and the sum of the squares of these
    /// terms.
    fn residuals(&self, ratio: f64) -> (f64, f64) {
        let squares = self.yy - 2.0 * ratio * self.yz + ratio * ratio * self.zz;
        (self.y - ratio * self.z, squares)
    }
}

impl SubsetEstimator {
    /// Adds a page of the sample. `kind` is 1 if the page is of the chosen kind, else 0. `value`
    /// must be 0 if `kind` is 0. In `probability`, at least one page must be drawn, and at most as
    /// many as the stratum has; other numbers are clamped.
    pub fn add(&mut self, probability: InclusionProbability<'_>, value: f64, kind: f64) {
        match probability {
            InclusionProbability::Certain => self.certain.add(value, kind),
            InclusionProbability::Drawn { stratum, drawn, of } => {
                match self.strata.get_mut(stratum) {
                    Some((_, _, sums)) => sums.add(value, kind),
                    None => {
                        let mut sums = EstimateSums::default();
                        sums.add(value, kind);
                        let drawn = drawn.max(1);
                        let of = of.max(drawn);
                        self.strata.insert(stratum.to_owned(), (drawn, of, sums));
                    }
                }
            }
        }
    }

    /// Changes the value of a page from 0 to 1. The page must have been added with 1 as its `kind`.
    pub fn mark(&mut self, probability: InclusionProbability<'_>) {
        let sums = match probability {
            InclusionProbability::Certain => Some(&mut self.certain),
            InclusionProbability::Drawn { stratum, .. } => {
                self.strata.get_mut(stratum).map(|(_, _, sums)| sums)
            }
        };
        if let Some(sums) = sums {
            sums.y += 1.0;
            sums.yy += 1.0;
            sums.yz += 1.0;
        }
    }

    /// Estimates the sum of the values over all pages of the frame. The interval is unbounded if
    /// the variance is unknown: either all sampled pages within each stratum are equal, or only one
    /// page was drawn from a larger stratum.
    #[must_use]
    pub fn total(&self) -> IntervalEstimate {
        let (total, _) = self.totals();
        IntervalEstimate::around(total, self.half_width(self.variance(0.0)))
    }

    /// Estimates the mean value over the pages of the chosen kind. Returns `None` if the sample
    /// contains no such page. The interval is unbounded if the interval of [`Self::total`] is
    /// unbounded.
    #[must_use]
    pub fn mean(&self) -> Option<IntervalEstimate> {
        let (total, kind) = self.totals();
        let ratio = (kind > 0.0).then(|| total / kind)?;
        let variance = self.variance(ratio) / (kind * kind);
        Some(IntervalEstimate::around(ratio, self.half_width(variance)))
    }

    /// Estimates the share of pages with value 1 among the pages of the chosen kind. All values
    /// must be 0 or 1. Returns `None` if the sample has no such page.
    ///
    /// The interval is Wilson's, with the effective sample size (Franco, Little, Louis and Slud
    /// 2019). Near shares of 0 and 1, it contains the true value more reliably than the interval of
    /// a mean.
    ///
    /// If few sampled pages have the rarer value, their strata depend on chance. If these strata
    /// are small, the estimated share becomes too small, and its variance even more so, and too few
    /// intervals contain the true value. So the variance is moved towards the one that would result
    /// if all strata had the same share.
    #[must_use]
    pub fn share(&self) -> Option<IntervalEstimate> {
        let (total, kind) = self.totals();
        let share = (kind > 0.0).then(|| (total / kind).min(1.0))?;
        let Some(t) = self.t() else {
            return Some(IntervalEstimate::around(share, 0.0));
        };
        let variance = self.share_variance(share) / (kind * kind);
        if !variance.is_finite() {
            return Some(IntervalEstimate {
                value: share,
                low: 0.0,
                high: 1.0,
            });
        }
        let pages = match variance > 0.0 {
            true => share * (1.0 - share) / variance,
            false => self.pages_without_variance(kind),
        };
        let shrink = 1.0 + t * t / pages;
        let middle = (share + t * t / (2.0 * pages)) / shrink;
        let spread = share * (1.0 - share) / pages + t * t / (4.0 * pages * pages);
        let half = t / shrink * spread.sqrt();
        Some(IntervalEstimate {
            value: share,
            low: (middle - half).max(0.0).min(share),
            high: (middle + half).min(1.0).max(share),
        })
    }

    /// Returns the estimated total of the values, and the estimated number of pages of the chosen
    /// kind.
    fn totals(&self) -> (f64, f64) {
        let strata = self.strata.values().map(|(drawn, of, sums)| {
            let weight = *of as f64 / *drawn as f64;
            (weight * sums.y, weight * sums.z)
        });
        let certain = (self.certain.y, self.certain.z);
        strata.fold(certain, |(y, z), (of_y, of_z)| (y + of_y, z + of_z))
    }

    /// Returns the strata that were drawn only in part: the number of drawn pages, the number of
    /// all pages, and the sums.
    fn uncertain(&self) -> impl Iterator<Item = (f64, f64, &EstimateSums)> {
        let strata = self.strata.values().filter(|(drawn, of, _)| drawn < of);
        strata.map(|(drawn, of, sums)| (*drawn as f64, *of as f64, sums))
    }

    fn variance(&self, ratio: f64) -> f64 {
        let strata = self.uncertain().map(|(drawn, of, sums)| {
            of * of * (1.0 - drawn / of) * sums.variance(ratio, drawn) / drawn
        });
        strata.sum()
    }

    /// Returns the variance of the total of the residuals, for values that are all 0 or 1.
    fn share_variance(&self, share: f64) -> f64 {
        let variance = self.variance(share);
        if !variance.is_finite() || variance <= 0.0 {
            return variance;
        }
        let (mut pages, mut drawn_pages, mut of_kind, mut of_value) = (0.0, 0.0, 0.0, 0.0);
        let (mut sum, mut squares, mut factor) = (0.0, 0.0, 0.0);
        for (drawn, of, sums) in self.uncertain() {
            let (of_sum, of_squares) = sums.residuals(share);
            sum += of / drawn * of_sum;
            squares += of / drawn * of_squares;
            factor += of * of * (1.0 - drawn / of) / drawn;
            pages += of;
            drawn_pages += drawn;
            of_kind += sums.z;
            of_value += sums.y;
        }
        // Dividing by `drawn_pages - 1.0` is safe, because a positive variance requires at least
        // two pages.
        let spread = (squares / pages - (sum / pages).powi(2)) * drawn_pages / (drawn_pages - 1.0);
        let rarer = of_value.min(of_kind - of_value);
        (rarer * variance + ALIKE_PAGES * spread * factor) / (rarer + ALIKE_PAGES)
    }

    /// Returns the quantile of Student's t for the available degrees of freedom, or `None` if every
    /// page was drawn.
    fn t(&self) -> Option<f64> {
        let degrees = self.uncertain().map(|(drawn, _, _)| drawn as u64 - 1);
        let (strata, degrees) = degrees.fold((0, 0_u64), |(strata, sum), of| {
            (strata + 1, sum.saturating_add(of))
        });
        (strata > 0).then(|| t_975(degrees))
    }

    fn half_width(&self, variance: f64) -> f64 {
        match (self.t(), variance > 0.0) {
            (Some(t), true) => t * variance.sqrt(),
            (Some(_), false) => f64::INFINITY,
            (None, _) => 0.0,
        }
    }

    /// Returns the effective sample size for a share of exactly 0 or 1, for which the variance
    /// contains no information. It is the number of pages of the chosen kind in the partly drawn
    /// strata of the sample, divided by the share of all pages of this kind that were not read.
    fn pages_without_variance(&self, kind: f64) -> f64 {
        let (mut drawn_pages, mut certain_pages) = (0.0, self.certain.z);
        for (drawn, of, sums) in self.strata.values() {
            match drawn < of {
                true => drawn_pages += sums.z,
                false => certain_pages += sums.z,
            }
        }
        let unknown = (kind - certain_pages - drawn_pages).max(f64::MIN_POSITIVE);
        drawn_pages.max(1.0) * kind / unknown
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{InclusionProbability, IntervalEstimate, SubsetEstimator};

    fn drawn(stratum: &str, drawn: u64, of: u64) -> InclusionProbability<'_> {
        InclusionProbability::Drawn { stratum, drawn, of }
    }

    fn near(found: IntervalEstimate, value: f64, half: f64) {
        let expected = IntervalEstimate::around(value, half);
        for (found, expected) in [
            (found.value, expected.value),
            (found.low, expected.low),
            (found.high, expected.high),
        ] {
            assert!(
                (found - expected).abs() < 2e-3 * half.max(1e-9),
                "{found} {expected}"
            );
        }
    }

    /// The expected values were computed by hand, for two strata and a page that is always read.
    #[test]
    fn a_total_is_that_of_horvitz_and_thompson() {
        let mut estimate = SubsetEstimator::default();
        estimate.add(InclusionProbability::Certain, 7.0, 1.0);
        for value in [1.0, 3.0, 5.0] {
            estimate.add(drawn("a", 3, 9), value, 1.0);
        }
        for value in [2.0, 4.0] {
            estimate.add(drawn("b", 2, 2), value, 1.0);
        }
        // Total: 7 + 3 * 9 + 6 = 40. Variance: 81 * (1 - 1/3) * 4 / 3 = 72. The t quantile for 2
        // degrees of freedom is 4.3027.
        near(estimate.total(), 40.0, 4.302_7 * 72_f64.sqrt());
        // An estimated twelve pages are of the chosen kind. The residuals in stratum a are 1, 3 and
        // 5 minus the mean.
        near(
            estimate.mean().unwrap(),
            40.0 / 12.0,
            4.302_7 * 72_f64.sqrt() / 12.0,
        );
    }

    /// The expected values were computed by hand. One of six sampled pages has the value 1, and its
    /// stratum contains a tenth of the frame. The variance of equal strata would be 10,530, but the
    /// computed one is only 1,078.
    #[test]
    fn a_rare_value_in_a_small_stratum_gives_a_wide_interval() {
        let mut estimate = SubsetEstimator::default();
        for value in [0.0, 0.0, 0.0] {
            estimate.add(drawn("large", 3, 900), value, 1.0);
        }
        for value in [1.0, 0.0, 0.0] {
            estimate.add(drawn("small", 3, 100), value, 1.0);
        }
        let share = estimate.share().unwrap();
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-3;
        assert!(near(share.value, 1.0 / 30.0), "{share:?}");
        assert!(
            near(share.low, 0.000_5) && near(share.high, 0.717_9),
            "{share:?}"
        );
    }

    #[test]
    fn a_page_that_did_not_answer_counts_as_none_of_the_kind() {
        let (mut told, mut untold) = (SubsetEstimator::default(), SubsetEstimator::default());
        for value in [1.0, 0.0, 1.0, 1.0] {
            told.add(drawn("a", 6, 60), value, 1.0);
            untold.add(drawn("a", 6, 60), value, 1.0);
        }
        told.add(drawn("a", 6, 60), 0.0, 0.0);
        told.add(drawn("a", 6, 60), 0.0, 0.0);
        assert_eq!(told.share(), untold.share());
        assert_eq!(told.total(), untold.total());
        let share = told.share().unwrap();
        assert_eq!(share.value, 0.75);
        assert!(share.low > 0.2 && share.high < 0.98, "{share:?}");
    }

    #[test]
    fn strata_drawn_whole_are_known_exactly() {
        let mut estimate = SubsetEstimator::default();
        assert_eq!(estimate.share(), None);
        assert_eq!(estimate.mean(), None);
        for value in [0.0, 1.0] {
            estimate.add(drawn("a", 2, 2), value, 1.0);
        }
        assert_eq!(estimate.share(), Some(IntervalEstimate::around(0.5, 0.0)));
        assert_eq!(estimate.total(), IntervalEstimate::around(1.0, 0.0));
    }

    /// Within each stratum all pages are equal. Only the pages that are always read make the ratio
    /// inexact, so any computed variance is a rounding error.
    #[test]
    fn pages_that_are_alike_give_no_interval_without_width() {
        for certain in 1..40 {
            for strata in [&["a"][..], &["a", "b", "c"]] {
                let mut estimate = SubsetEstimator::default();
                for number in 0..certain {
                    estimate.add(
                        InclusionProbability::Certain,
                        f64::from(u8::from(number > 0)),
                        1.0,
                    );
                }
                for stratum in strata {
                    for _ in 0..10 {
                        estimate.add(drawn(stratum, 10, 496), 1.0, 1.0);
                    }
                }
                let share = estimate.share().unwrap();
                assert!(share.value > 0.99 && share.low < 0.95, "{share:?}");
                assert!(!estimate.total().is_bounded(), "{:?}", estimate.total());
                let mean = estimate.mean().unwrap();
                assert!(!mean.is_bounded() && mean.holds(0.0), "{mean:?}");
            }
        }
        // The interval is bounded if the values vary in at least one stratum.
        let mut estimate = SubsetEstimator::default();
        for value in [1_000_000.0, 1_000_010.0] {
            estimate.add(drawn("a", 2, 3), value, 1.0);
            estimate.add(drawn("b", 2, 3), 7.0, 1.0);
        }
        assert!(estimate.total().is_bounded());
    }

    #[test]
    fn a_single_page_gives_no_variance_for_its_stratum() {
        let mut estimate = SubsetEstimator::default();
        for value in [0.0, 1.0, 1.0] {
            estimate.add(drawn("a", 3, 30), value, 1.0);
        }
        estimate.add(drawn("b", 1, 10), 1.0, 1.0);
        assert_eq!(estimate.total().value, 30.0);
        assert!(!estimate.total().is_bounded());
        assert!(!estimate.mean().unwrap().is_bounded());
        let share = estimate.share().unwrap();
        assert_eq!((share.value, share.low, share.high), (0.75, 0.0, 1.0));
    }

    #[test]
    fn numbers_that_no_draw_has_are_taken_for_the_nearest() {
        for (of_drawn, of) in [(0, 0), (0, 5), (u64::MAX, 1), (1, u64::MAX)] {
            let mut estimate = SubsetEstimator::default();
            estimate.add(drawn("a", of_drawn, of), 1.0, 1.0);
            estimate.add(drawn("b", 0, 5), 1.0, 1.0);
            let share = estimate.share().unwrap();
            assert_eq!((share.value, share.low, share.high), (1.0, 0.0, 1.0));
            assert!(estimate.total().value >= 2.0);
        }
    }

    #[test]
    fn a_share_of_none_has_an_upper_end() {
        let mut estimate = SubsetEstimator::default();
        let page = drawn("a", 50, 5000);
        for _ in 0..50 {
            estimate.add(page, 0.0, 1.0);
        }
        let mut marked = estimate.clone();
        marked.mark(page);
        let mut added = SubsetEstimator::default();
        for number in 0..50 {
            added.add(page, f64::from(u8::from(number == 7)), 1.0);
        }
        assert_eq!(marked.share(), added.share());
        let share = estimate.share().unwrap();
        // The rule of three gives an upper end of 6 %, and Wilson's interval a slightly higher one.
        assert_eq!((share.value, share.low), (0.0, 0.0));
        assert!((0.06..0.09).contains(&share.high), "{share:?}");
    }

    proptest! {
        #[test]
        fn a_share_is_within_its_interval_and_the_interval_within_zero_to_one(
            pages in prop::collection::vec((0_u8..3, any::<bool>(), any::<bool>()), 1..60),
            more in 0_u64..100,
        ) {
            let mut estimate = SubsetEstimator::default();
            let count = |stratum: u8| pages.iter().filter(|page| page.0 == stratum).count() as u64;
            for (stratum, is_part, is_kind) in &pages {
                let name = stratum.to_string();
                let of = count(*stratum);
                let kind = f64::from(u8::from(*is_kind));
                let value = f64::from(u8::from(*is_part)) * kind;
                let drawn = drawn(&name, of.max(2), of.max(2) + more * u64::from(*stratum));
                estimate.add(drawn, value, kind);
            }
            if let Some(share) = estimate.share() {
                prop_assert!(share.holds(share.value), "{share:?}");
                prop_assert!(share.low >= 0.0 && share.high <= 1.0, "{share:?}");
                if more == 0 {
                    prop_assert_eq!(share.low, share.high);
                }
            }
        }
    }
}
