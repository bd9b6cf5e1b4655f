//! The report as text, JSON and JUnit XML. The module `report_page` formats the report as HTML.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};

use serde::Serialize;

use crate::clause::{Clause, RequirementLevel};
use crate::crawl_trace::{ClauseOutcome, ClauseVerdict, QuotedRequest};

/// A clause with its verdict.
#[derive(Debug, Clone, Serialize)]
pub struct JudgedClause {
    /// The clause's name.
    pub id: &'static str,
    /// The behaviour of a crawler that keeps the clause.
    pub title: &'static str,
    /// The document and section that the clause is from.
    pub source: &'static str,
    /// How strongly the source requires the clause.
    pub level: RequirementLevel,
    /// The judgement.
    #[serde(flatten)]
    pub verdict: ClauseVerdict,
}

impl JudgedClause {
    /// Combines a clause with its verdict.
    pub fn new(clause: &Clause, verdict: ClauseVerdict) -> JudgedClause {
        JudgedClause {
            id: clause.id,
            title: clause.title,
            source: clause.source,
            level: clause.level,
            verdict,
        }
    }
}

/// The number of clauses with each outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct OutcomeCounts {
    /// Number of clauses that the crawler keeps.
    pub passed: usize,
    /// Number of clauses that the crawler breaks.
    pub failed: usize,
    /// Number of clauses about which the crawl showed nothing.
    pub not_shown: usize,
}

impl OutcomeCounts {
    /// Counts the outcomes of clauses.
    pub fn of<'a>(judged: impl IntoIterator<Item = &'a JudgedClause>) -> OutcomeCounts {
        let mut counts = OutcomeCounts::default();
        for one in judged {
            match one.verdict.outcome {
                ClauseOutcome::Pass => counts.passed += 1,
                ClauseOutcome::Fail => counts.failed += 1,
                ClauseOutcome::NotShown => counts.not_shown += 1,
            }
        }
        counts
    }
}

impl Display for OutcomeCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutcomeCounts {
            passed,
            failed,
            not_shown,
        } = self;
        write!(f, "{passed} passed, {failed} failed, {not_shown} not shown")
    }
}

/// All verdicts about a crawler's command.
#[derive(Debug, Clone, Serialize)]
pub struct ConformanceReport {
    /// The command as typed.
    pub command: String,
    /// The product token of the crawler.
    pub token: String,
    /// The gap that the flags of the command set, in seconds.
    pub gap: f64,
    /// The time limit of a run, in seconds.
    pub timeout: f64,
    /// The number of clauses with each outcome.
    pub counts: OutcomeCounts,
    /// The clauses with their verdicts.
    pub clauses: Vec<JudgedClause>,
}

impl ConformanceReport {
    /// Returns whether a clause failed.
    pub fn has_failures(&self) -> bool {
        self.counts.failed > 0
    }

    /// Formats the report as one JSON object.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Formats the report as JUnit XML. A clause with the outcome `NotShown` is a skipped test.
    pub fn junit(&self) -> String {
        let OutcomeCounts {
            failed, not_shown, ..
        } = self.counts;
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuite name=\"crawl conformance\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" \
             skipped=\"{not_shown}\">\n",
            self.clauses.len(),
        );
        for judged in &self.clauses {
            let _ = write!(
                xml,
                "  <testcase classname=\"{}\" name=\"{}: {}\"",
                escaped(judged.source),
                escaped(judged.id),
                escaped(judged.title)
            );
            let reason = escaped(&judged.verdict.reason);
            let _ = match judged.verdict.outcome {
                ClauseOutcome::Pass => writeln!(xml, "/>"),
                ClauseOutcome::NotShown => {
                    writeln!(xml, "><skipped message=\"{reason}\"/></testcase>")
                }
                ClauseOutcome::Fail => writeln!(
                    xml,
                    "><failure type=\"{}\" message=\"{reason}\">{}</failure></testcase>",
                    judged.level.name(),
                    escaped(&evidence_lines(&judged.verdict, ""))
                ),
            };
        }
        xml + "</testsuite>\n"
    }

    /// Returns the counts by level.
    pub fn by_level(&self) -> BTreeMap<RequirementLevel, OutcomeCounts> {
        let levels = [
            RequirementLevel::Must,
            RequirementLevel::Should,
            RequirementLevel::May,
            RequirementLevel::Custom,
        ];
        let of = |level| {
            self.clauses
                .iter()
                .filter(move |judged| judged.level == level)
        };
        levels
            .into_iter()
            .map(|level| (level, OutcomeCounts::of(of(level))))
            .collect()
    }
}

/// Formats the report as text: failures with their evidence, then all clauses by source.
impl Display for ConformanceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for judged in &self.clauses {
            if judged.verdict.outcome == ClauseOutcome::Fail {
                writeln!(
                    f,
                    "FAIL  {}: {} ({}, {})\n      {}",
                    judged.id,
                    judged.title,
                    judged.level.name(),
                    judged.source,
                    one_line(&judged.verdict.reason)
                )?;
                writeln!(f, "{}", evidence_lines(&judged.verdict, "        "))?;
            }
        }
        let mut last = None;
        for judged in &self.clauses {
            if last != Some(judged.source) {
                writeln!(f, "{}", judged.source)?;
                last = Some(judged.source);
            }
            let word = word(judged.verdict.outcome);
            let (id, level) = (judged.id, judged.level.name());
            write!(f, "  {word:<9}  {level:<6}  {id:<22}  {}", judged.title)?;
            match judged.verdict.outcome {
                ClauseOutcome::NotShown => writeln!(f, ": {}", one_line(&judged.verdict.reason))?,
                ClauseOutcome::Pass | ClauseOutcome::Fail => writeln!(f)?,
            }
        }
        writeln!(f)?;
        for (level, counts) in self.by_level() {
            writeln!(f, "{:<6}  {counts}", level.name())?;
        }
        writeln!(f, "all     {}", self.counts)
    }
}

/// Returns the word for an outcome in reports.
pub(crate) fn word(outcome: ClauseOutcome) -> &'static str {
    match outcome {
        ClauseOutcome::Pass => "pass",
        ClauseOutcome::Fail => "FAIL",
        ClauseOutcome::NotShown => "not shown",
    }
}

/// Returns the requests that prove a verdict, one per line. Each line begins with `indent`.
pub(crate) fn evidence_lines(verdict: &ClauseVerdict, indent: &str) -> String {
    let mut lines: Vec<String> = verdict
        .evidence
        .iter()
        .map(|evidence| format!("{indent}{evidence}"))
        .collect();
    if verdict.more_evidence > 0 {
        lines.push(format!("{indent}and {} more", verdict.more_evidence));
    }
    lines.join("\n")
}

impl Display for QuotedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:8.3} s  {} {}",
            self.at,
            one_line(&self.method),
            one_line(&self.path)
        )?;
        write!(f, "  host {}", self.host)?;
        if let Some(status) = self.status {
            write!(f, "  status {status}")?;
        }
        if let Some(took) = self.took {
            write!(f, "  took {took} s")?;
        }
        if let Some(gap) = self.gap {
            write!(f, "  gap {gap} s")?;
        }
        Ok(())
    }
}

/// Replaces control characters, which a crawler may have sent or printed.
pub(crate) fn one_line(text: &str) -> String {
    text.chars()
        .map(|letter| {
            if letter.is_control() {
                '\u{fffd}'
            } else {
                letter
            }
        })
        .collect()
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            // XML 1.0 allows no control characters other than those above.
            _ if letter.is_control() => escaped.push('\u{fffd}'),
            _ => escaped.push(letter),
        }
    }
    escaped
}
