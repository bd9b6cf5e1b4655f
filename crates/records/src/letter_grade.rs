//! Grades problems of a site: a letter shows how much of the site has the problem.

use std::fmt;

/// The grades from B to E, each with the maximum percentage of items that have the problem.
const LIMITS: [(LetterGrade, u64); 4] = [
    (LetterGrade::B, 1),
    (LetterGrade::C, 5),
    (LetterGrade::D, 20),
    (LetterGrade::E, 50),
];

/// A grade from A (no item has the problem) to F.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LetterGrade {
    A,
    B,
    C,
    D,
    E,
    F,
}

impl LetterGrade {
    /// Grades `affected` of `items`. `None` if there are no items, so nothing can be graded.
    pub(crate) fn of(affected: u64, items: u64) -> Option<LetterGrade> {
        if items == 0 {
            return None;
        }
        let (affected, items) = (u128::from(affected), u128::from(items));
        let is_within = |limit: u64| affected * 100 <= u128::from(limit) * items;
        Some(match affected {
            0 => LetterGrade::A,
            _ => LIMITS
                .into_iter()
                .find(|(_, limit)| is_within(*limit))
                .map_or(LetterGrade::F, |(grade, _)| grade),
        })
    }
}

impl LetterGrade {
    const ALL: [LetterGrade; 6] = [
        LetterGrade::A,
        LetterGrade::B,
        LetterGrade::C,
        LetterGrade::D,
        LetterGrade::E,
        LetterGrade::F,
    ];

    /// Returns the average of some grades, rounded to the worse grade. So the average is A only if
    /// all grades are A. `None` without grades.
    pub(crate) fn average(grades: &[LetterGrade]) -> Option<LetterGrade> {
        let sum: usize = grades.iter().map(|grade| *grade as usize).sum();
        let steps = (!grades.is_empty()).then(|| sum.div_ceil(grades.len()))?;
        LetterGrade::ALL.get(steps).copied()
    }
}

impl fmt::Display for LetterGrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Describes the limits of the grades: `A none, B up to 1 %, ..`.
pub(crate) fn rule() -> String {
    let limits = LIMITS.map(|(grade, limit)| format!("{grade} up to {limit}\u{a0}%"));
    format!("A none, {}, F more", limits.join(", "))
}

/// Formats a share as a percentage: `7.1 %`. A positive share is never rounded to 0 %, and a share
/// below one is never rounded to 100 %.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let tenths = u128::from(part) * 1000 / u128::from(whole.max(1));
    match tenths {
        0 if part > 0 => "below 0.1\u{a0}%".to_owned(),
        0 => "0\u{a0}%".to_owned(),
        1000.. => "100\u{a0}%".to_owned(),
        tenths => format!("{}.{}\u{a0}%", tenths / 10, tenths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::{LetterGrade, percent, rule};

    #[test]
    fn a_grade_follows_from_the_share_with_the_problem() {
        let grades = [0, 1, 10, 11, 50, 51, 200, 201, 500, 501, 1000, 2000]
            .map(|affected| LetterGrade::of(affected, 1000).unwrap().to_string());
        assert_eq!(grades.concat(), "ABBCCDDEEFFF");
        assert_eq!(LetterGrade::of(u64::MAX, u64::MAX), Some(LetterGrade::F));
        // A single affected page is a third of this site, so the grade is low.
        assert_eq!(LetterGrade::of(1, 3), Some(LetterGrade::E));
    }

    #[test]
    fn without_items_there_is_no_grade() {
        assert_eq!(LetterGrade::of(0, 0), None);
        assert_eq!(LetterGrade::of(3, 0), None);
        assert_eq!(LetterGrade::of(0, 1), Some(LetterGrade::A));
    }

    #[test]
    fn an_average_is_rounded_to_the_worse_grade() {
        use LetterGrade::{A, B, C, F};
        let averages = [&[][..], &[A, A], &[A, A, B], &[B, C], &[A, F], &[F, F]];
        let averages = averages.map(LetterGrade::average);
        let expected = [
            None,
            Some(A),
            Some(B),
            Some(C),
            Some(LetterGrade::D),
            Some(F),
        ];
        assert_eq!(averages, expected);
    }

    #[test]
    fn the_rule_names_each_limit() {
        assert_eq!(
            rule(),
            "A none, B up to 1\u{a0}%, C up to 5\u{a0}%, D up to 20\u{a0}%, E up to 50\u{a0}%, F more"
        );
    }

    #[test]
    fn a_share_is_neither_rounded_to_nothing_nor_to_all() {
        let shown = [(0, 7), (1, 10_000), (3, 42), (9_999, 10_000), (5, 5)];
        let shown = shown.map(|(part, whole)| percent(part, whole).replace('\u{a0}', " "));
        assert_eq!(shown, ["0 %", "below 0.1 %", "7.1 %", "99.9 %", "100 %"]);
        assert_eq!(percent(0, 0), "0\u{a0}%");
    }
}
