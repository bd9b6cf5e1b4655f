//! Checks: what to fix on a site, one section per kind of problem, each with its grade and rule.

use maud::{Markup, html};

use crate::grade::{Grade, percent, rule};
use crate::numbers::grouped;

/// How much of a site has a problem.
pub(crate) struct Measure {
    /// Number of items with the problem.
    pub(crate) affected: u64,
    /// Number of items that were checked.
    pub(crate) items: u64,
    /// The items: `pages`.
    pub(crate) of: &'static str,
    /// The problem, after the number of items: `have a broken link`.
    pub(crate) have: &'static str,
}

impl Measure {
    fn grade(&self) -> Option<Grade> {
        Grade::of(self.affected, self.items)
    }

    fn words(&self) -> String {
        format!(
            "{} of {} {}",
            grouped(self.affected),
            grouped(self.items),
            self.of
        )
    }
}

/// The result of a check.
pub(crate) struct Check {
    /// An id that is unique within the page.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// `None` if what was found isn't necessarily a mistake, so that it has no grade.
    pub(crate) measure: Option<Measure>,
    /// What the owner of the site should do.
    pub(crate) advice: &'static str,
    /// The findings. `None` if there are none.
    pub(crate) findings: Option<Markup>,
}

impl Check {
    fn grade(&self) -> Option<Grade> {
        self.measure.as_ref().and_then(Measure::grade)
    }

    /// Renders the check in the list of grades. Without a grade or findings, there is nothing to
    /// show.
    fn line(&self) -> Markup {
        let grade = self.grade();
        let judged = self.measure.as_ref().filter(|_| grade.is_some());
        let words = judged.map(Measure::words);
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
                        p.soft {
                            (measure.words()) " (" (percent(measure.affected, measure.items)) ") "
                            (measure.have) ". Rule: " (rule()) "."
                        }
                    }
                    p { (self.advice) }
                    (findings)
                }
            }
        }
    }
}

/// Renders a grade so that it can be read without its colour.
fn chip(grade: Option<Grade>) -> Markup {
    html! {
        @if let Some(grade) = grade {
            span class=(format!("g g{grade}")) { span.hidden { "grade " } (grade) }
        } @else {
            span.g { span.hidden { "no grade" } span aria-hidden="true" { "–" } }
        }
    }
}

/// Renders a list of grades, then a section for each check with findings.
pub(crate) fn checks(checks: &[Check]) -> Markup {
    html! {
        ul.grades aria-label="Grades" { @for check in checks { (check.line()) } }
        @if checks.iter().all(|check| check.findings.is_none()) { p { "Nothing to fix was found." } }
        @for check in checks { (check.section()) }
    }
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::{Check, Measure, checks};

    fn check(affected: u64, items: u64, has_findings: bool) -> Check {
        Check {
            id: "links",
            title: "Broken links",
            measure: Some(Measure {
                affected,
                items,
                of: "pages",
                have: "have a broken link",
            }),
            advice: "Correct the link.",
            findings: has_findings.then(|| html! { p { "one" } }),
        }
    }

    #[test]
    fn a_section_has_its_grade_with_its_rule() {
        let html = checks(&[check(3, 42, true)]).into_string();
        assert!(
            html.contains("3 of 42 pages (7.1\u{a0}%) have a broken link. Rule: A none, B up to")
        );
        assert_eq!(html.matches("class=\"g gD\"").count(), 2);
        assert!(html.contains("<a href=\"#links\">") && html.contains("id=\"links\""));
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
            html.contains("not graded") && !html.contains("Rule:") && !html.contains("of 0"),
            "{html}"
        );
    }
}
