//! Checks that show what to fix on a site. Each kind of problem has a section with its grade and
//! its rule.

use std::cmp::Reverse;

use maud::{Markup, html};

use crate::letter_grade::{LetterGrade, percent, rule};
use crate::number_format::{counted, grouped};

/// How much of a site has a problem.
pub(crate) struct ProblemShare {
    /// Number of items with the problem.
    pub(crate) affected: u64,
    /// Number of items that were checked.
    pub(crate) items: u64,
    /// Number of documents with the problem that are not among the items: for example, style sheets
    /// and sitemaps with a broken link, if the items are HTML pages.
    pub(crate) other_documents: u64,
    /// The items in the plural, for example `pages`.
    pub(crate) of: &'static str,
    /// The problem, as the end of a sentence about the affected items: `have a broken link`.
    pub(crate) have: &'static str,
    /// What causes the problem, if several items can share it: `2 moved addresses`.
    pub(crate) causes: Option<String>,
}

impl ProblemShare {
    fn grade(&self) -> Option<LetterGrade> {
        LetterGrade::of(self.affected, self.items)
    }

    fn words(&self) -> String {
        format!(
            "{} of {} {}",
            grouped(self.affected),
            grouped(self.items),
            self.of
        )
    }

    /// Returns the causes, followed by the share of the items: `2 moved addresses on 44 of 60
    /// pages`. Returns only the causes if nothing has the problem. This is the case for a broken
    /// seed, which no document links to.
    fn words_with_causes(&self) -> String {
        let share = self.words();
        match (&self.causes, self.affected, self.other_documents) {
            (None, ..) => share,
            (Some(causes), 0, 0) => causes.clone(),
            (Some(causes), _, 0) => format!("{causes} on {share}"),
            (Some(causes), ..) => format!("{causes} on {share} and in {}", self.other_words()),
        }
    }

    fn other_words(&self) -> String {
        counted(self.other_documents, "other document", "other documents")
    }

    /// Describes the share in a sentence: `7 of 40 pages (17.5 %) and 1 other document have a
    /// broken link.`
    fn sentence(&self) -> String {
        let others = match self.other_documents {
            0 => String::new(),
            _ => format!(" and {}", self.other_words()),
        };
        let share = percent(self.affected, self.items);
        format!("{} ({share}){others} {}.", self.words(), self.have)
    }
}

/// The result of a check.
pub(crate) struct SiteCheckResult {
    /// An id that is unique within the page.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// The share of items with the problem. `None` if the findings are not necessarily mistakes,
    /// and so can't be graded.
    pub(crate) measure: Option<ProblemShare>,
    /// What the owner of the site should do.
    pub(crate) advice: &'static str,
    /// The findings in a few words, for the sentence above the grades: `3 slow pages`.
    pub(crate) summary: String,
    /// The rendered findings. `None` if there are none.
    pub(crate) findings: Option<Markup>,
}

impl SiteCheckResult {
    /// Returns the grade of the share. A check with findings is never graded A, which means that
    /// there is nothing to fix, even if none of the graded items is affected: for example, a broken
    /// link may be in a style sheet.
    fn grade(&self) -> Option<LetterGrade> {
        let grade = self.measure.as_ref()?.grade()?;
        Some(match self.findings {
            Some(_) => grade.max(LetterGrade::B),
            None => grade,
        })
    }

    /// Renders the check in the list of grades. Renders nothing if the check has neither a grade
    /// nor findings.
    fn line(&self) -> Markup {
        let grade = self.grade();
        let judged = self.measure.as_ref().filter(|_| grade.is_some());
        let words = judged.map(ProblemShare::words_with_causes);
        let text = html! {
            (chip(grade)) " " strong { (self.title) } " "
            span.soft { (words.as_deref().unwrap_or("not graded")) }
        };
        html! {
            @if self.findings.is_some() { li { a href=(format!("#{}", self.id)) { (text) } } }
            @else if grade.is_some() { li { span { (text) } } }
        }
    }

    fn section(&self) -> Markup {
        html! {
            @if let Some(findings) = &self.findings {
                div.check id=(self.id) {
                    h3 { (self.title) " " (chip(self.grade())) }
                    @if let Some((measure, _)) = self.measure.as_ref().zip(self.grade()) {
                        p.soft { (measure.sentence()) }
                    }
                    p { (self.advice) }
                    (findings)
                }
            }
        }
    }
}

/// Renders a grade as a letter in a colour. Screen readers get a label such as `grade B`.
fn chip(grade: Option<LetterGrade>) -> Markup {
    html! {
        @if let Some(grade) = grade {
            span class=(format!("g g{grade}")) { span.hidden { "grade " } (grade) }
        } @else {
            span.g { span.hidden { "no grade" } span aria-hidden="true" { "–" } }
        }
    }
}

/// Renders one sentence with the overall grade, the list of grades, their rules, and then a section
/// for each check with findings. The worst grades come first, and checks without a grade last.
pub(crate) fn checks(checks: &[SiteCheckResult]) -> Markup {
    let mut checks: Vec<&SiteCheckResult> = checks.iter().collect();
    checks.sort_by_key(|check| Reverse(check.grade()));
    let grades: Vec<LetterGrade> = checks.iter().filter_map(|check| check.grade()).collect();
    html! {
        (overall(&checks, &grades))
        ul.grades aria-label="Grades" { @for check in &checks { (check.line()) } }
        @if !grades.is_empty() {
            p.soft {
                "A grade follows from the share with the problem: " (rule()) ". "
                @if grades.len() > 1 {
                    "The overall grade is the average of these " (grades.len()) " grades, rounded to the worse one."
                }
            }
        }
        @for check in checks { (check.section()) }
    }
}

/// Renders the overall grade, and one sentence with the findings of the checks that have a grade.
fn overall(checks: &[&SiteCheckResult], grades: &[LetterGrade]) -> Markup {
    let is_listed = |check: &&&SiteCheckResult| check.findings.is_some() && check.measure.is_some();
    let summaries: Vec<&str> = checks
        .iter()
        .filter(is_listed)
        .map(|check| check.summary.as_str())
        .collect();
    let has_findings = checks.iter().any(|check| check.findings.is_some());
    html! {
        @if !summaries.is_empty() || !has_findings || grades.len() > 1 {
            p.overall {
                @if grades.len() > 1 { (chip(LetterGrade::average(grades))) " " strong { "Overall." } " " }
                @if !has_findings { "Nothing to fix was found." }
                @else if !summaries.is_empty() { (summaries.join(", ")) "." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::{ProblemShare, SiteCheckResult, checks};

    fn check(affected: u64, items: u64, has_findings: bool) -> SiteCheckResult {
        SiteCheckResult {
            id: "links",
            title: "Broken links",
            measure: Some(ProblemShare {
                affected,
                items,
                other_documents: 0,
                of: "pages",
                have: "have a broken link",
                causes: Some("2 addresses".to_owned()),
            }),
            advice: "Correct the link.",
            summary: "2 addresses on 3 pages".to_owned(),
            findings: has_findings.then(|| html! { p { "one" } }),
        }
    }

    #[test]
    fn a_section_has_its_grade_and_the_rule_is_given_once() {
        let html = checks(&[check(3, 42, true)]).into_string();
        assert!(html.contains("3 of 42 pages (7.1\u{a0}%) have a broken link."));
        assert!(html.contains("2 addresses on 3 of 42 pages"), "{html}");
        assert_eq!(html.matches("A none, B up to").count(), 1);
        // There is only one grade, so no average is shown.
        assert!(html.contains("<p class=\"overall\">2 addresses on 3 pages.</p>"));
        assert_eq!(html.matches("class=\"g gD\"").count(), 2);
        assert!(html.contains("<a href=\"#links\">") && html.contains("id=\"links\""));
    }

    #[test]
    fn findings_outside_the_graded_items_are_never_graded_a() {
        let mut elsewhere = check(0, 42, true);
        let html = checks(&[check(0, 42, true)]).into_string();
        assert!(html.contains("g gB") && !html.contains("g gA"), "{html}");
        assert!(html.contains("<span class=\"soft\">2 addresses</span>"));
        elsewhere.measure.as_mut().unwrap().other_documents = 1;
        let html = checks(&[elsewhere]).into_string();
        assert!(html.contains("g gB") && !html.contains("g gA"), "{html}");
        assert!(html.contains("2 addresses on 0 of 42 pages and in 1 other document<"));
        assert!(
            html.contains("0 of 42 pages (0\u{a0}%) and 1 other document have a broken link."),
            "{html}"
        );
    }

    #[test]
    fn without_findings_there_is_a_grade_and_no_section() {
        let html = checks(&[check(0, 42, false)]).into_string();
        assert!(html.contains("g gA") && html.contains("Nothing to fix was found."));
        assert!(!html.contains("class=\"check\"") && !html.contains("<a "));
    }

    #[test]
    fn where_nothing_was_judged_there_is_no_grade() {
        let html = checks(&[check(0, 0, false)]).into_string();
        assert!(!html.contains("Broken links"), "{html}");
        let html = checks(&[check(2, 0, true)]).into_string();
        assert!(
            html.contains("not graded") && !html.contains("A none") && !html.contains("of 0"),
            "{html}"
        );
    }

    #[test]
    fn the_worst_grades_are_first_and_ungraded_checks_last() {
        let named = |id, check: SiteCheckResult| SiteCheckResult { id, ..check };
        let ungraded = SiteCheckResult {
            measure: None,
            summary: "not in the sentence".to_owned(),
            ..check(1, 1, true)
        };
        let html = checks(&[
            named("none", ungraded),
            named("a", check(0, 42, false)),
            named("d1", check(3, 42, true)),
            named("f", check(42, 42, true)),
            named("d2", check(3, 42, true)),
        ]);
        let html = html.into_string();
        let sections: Vec<_> = html.split("class=\"check\" id=\"").skip(1).collect();
        let ids = sections.iter().map(|part| part.split('"').next().unwrap());
        assert_eq!(ids.collect::<Vec<_>>(), ["f", "d1", "d2", "none"]);
        // F, D, D and A are 5, 3, 3 and 0: 2.75 on average, which is nearly a D.
        assert!(
            html.contains("g gD\"><span class=\"hidden\">grade </span>D</span> <strong>Overall.")
        );
        assert!(html.contains("average of these 4 grades"));
        assert!(!html.contains("not in the sentence"), "{html}");
    }
}
