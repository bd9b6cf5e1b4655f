//! Measures the quality of a ranking with queries whose relevant pages are known.

use super::queries::{JudgedQuery, RelevanceGrade};

/// Number of results to consider, as many as people look at.
pub(super) const DEPTH: usize = 10;

/// The quality of a ranking, between 0 and 1. For several queries, this is the mean of their
/// qualities.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RankingQuality {
    /// The reciprocal rank of the first page that answers the query. 0 if no such page is among the
    /// first ten results.
    pub(super) reciprocal_rank: f64,
    /// The fraction of the relevant pages that are among the first ten results.
    pub(super) recall: f64,
    /// Discounted cumulative gain of the first ten pages, relative to the best possible order. The
    /// gains of the two grades are 3 and 1.
    pub(super) gain: f64,
}

/// Measures how well a ranking answers a query. `ranked` has the paths of the pages, best first.
pub(super) fn quality(ranked: &[String], judged: &JudgedQuery) -> RankingQuality {
    let grade = |path: &String| {
        let page = judged.pages.iter().find(|(page, _)| page == path);
        page.map(|(_, grade)| *grade)
    };
    let grades: Vec<Option<RelevanceGrade>> = ranked.iter().take(DEPTH).map(grade).collect();
    let first = grades
        .iter()
        .position(|g| *g == Some(RelevanceGrade::Answers));
    let relevant = grades.iter().flatten().count();
    let mut best: Vec<Option<RelevanceGrade>> =
        judged.pages.iter().map(|(_, g)| Some(*g)).collect();
    best.sort_unstable_by(|a, b| b.cmp(a));
    best.truncate(DEPTH);
    RankingQuality {
        reciprocal_rank: first.map_or(0.0, |rank| 1.0 / (rank + 1) as f64),
        recall: relevant as f64 / judged.pages.len() as f64,
        gain: discounted(&grades) / discounted(&best),
    }
}

/// Returns the mean of each measure.
pub(super) fn mean(qualities: &[RankingQuality]) -> RankingQuality {
    let of = |measure: fn(&RankingQuality) -> f64| {
        let count = qualities.len().max(1) as f64;
        qualities.iter().map(measure).sum::<f64>() / count
    };
    RankingQuality {
        reciprocal_rank: of(|quality| quality.reciprocal_rank),
        recall: of(|quality| quality.recall),
        gain: of(|quality| quality.gain),
    }
}

/// Returns the quantile of the values for `part`, a fraction from 0 to 1. Returns 0 without values.
pub(super) fn percentile(values: &mut [u64], part: f64) -> u64 {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    let at = (part * last as f64).round() as usize;
    values.get(at).copied().unwrap_or(0)
}

fn discounted(grades: &[Option<RelevanceGrade>]) -> f64 {
    let gain = |grade: &Option<RelevanceGrade>| match grade {
        Some(RelevanceGrade::Answers) => 3.0,
        Some(RelevanceGrade::Useful) => 1.0,
        None => 0.0,
    };
    let discount = |rank: usize| ((rank + 2) as f64).log2();
    let gains = grades.iter().enumerate();
    gains.map(|(rank, g)| gain(g) / discount(rank)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::queries::parse;
    use super::{mean, percentile, quality};

    /// Checks a ranking. `expected` has the reciprocal rank, recall and gain in hundredths.
    #[track_caller]
    fn check(ranked: &str, expected: [u32; 3]) {
        let judged = parse("tune\thowto\ttea\ta=2 b=2 c=1 d=1\n").unwrap();
        let ranked: Vec<String> = ranked.split_whitespace().map(str::to_owned).collect();
        let quality = quality(&ranked, &judged[0]);
        let hundredths = |value: f64| (value * 100.0).round() as u32;
        let actual = [quality.reciprocal_rank, quality.recall, quality.gain].map(hundredths);
        assert_eq!(actual, expected);
    }

    #[test]
    fn ranks_count_pages_that_answer() {
        check("a b c d", [100, 100, 100]);
        check("c x a", [33, 50, 43]);
        check("c d", [0, 50, 28]);
        check("x x x x x x x x x a", [10, 25, 15]);
        check("x x x x x x x x x x a", [0, 0, 0]);
        check("", [0, 0, 0]);
    }

    #[test]
    fn means_and_percentiles() {
        let judged = parse("tune\thowto\ttea\ta=2\n").unwrap();
        let of = |path: &str| quality(&[path.to_owned()], &judged[0]);
        assert_eq!(mean(&[of("a"), of("b")]).reciprocal_rank, 0.5);
        assert_eq!(mean(&[]).recall, 0.0);
        let mut values: Vec<u64> = (1..=101).rev().collect();
        assert_eq!(percentile(&mut values, 0.5), 51);
        assert_eq!(percentile(&mut values, 0.99), 100);
        assert_eq!(percentile(&mut [], 0.5), 0);
    }
}
