//! Checks the robots.txt verdicts in rows of `pages.jsonl` and `excluded.jsonl` against the
//! archived copies of robots.txt.

use std::rc::Rc;

use crawl_archive::rows::{ExcludedRow, PageRow, RobotsVerdict};
use crawl_policy::{AgentRules, RuleVerdict};
use crawl_weburl::{CanonicalUrl, canonicalize};

use super::audit_findings::{
    AuditCheckResult,
    CitedRowFile::{self, Excluded, Pages, Requests},
};
use super::audited_settings::AuditedSettings;
use super::robots_obedience::words;
use super::robots_responses::{RobotsResponse, RobotsRulesInForce};
use super::settings_history::RecordedWorkers;
use super::{
    AuditRun, CLOCK_SET_BACK, EARLIER_RUN, JUST_THEN, NO_ROBOTS_BEFORE, NOT_ARCHIVED,
    ROWS_ELSEWHERE, SETTLING_MS,
};
use crate::error::RecordsError;

impl AuditRun<'_> {
    /// Checks the robots.txt verdict of a row of `pages.jsonl` against the copy at the time of its
    /// request.
    pub(super) fn page_row(&mut self, row: &PageRow, line: u64) -> Result<(), RecordsError> {
        let (Some(recorded), Ok(url)) = (&row.robots, canonicalize(None, &row.url)) else {
            return Ok(());
        };
        let (mut judged, mut rows) = (AuditCheckResult::Undecided(NO_ROBOTS_BEFORE), Vec::new());
        let mut is_undecided = false;
        for started in self.clock.meanings(row.fetched_at.as_millis()) {
            (judged, rows) = self.page_row_at(&url, recorded, started)?;
            match judged {
                AuditCheckResult::Kept => break,
                AuditCheckResult::Undecided(_) => is_undecided = true,
                AuditCheckResult::Broke(..) => {}
            }
        }
        if is_undecided && matches!(judged, AuditCheckResult::Broke(..)) {
            judged = AuditCheckResult::Undecided(CLOCK_SET_BACK);
        }
        rows.push((Pages, line));
        let host = url.host_key();
        self.findings
            .settle("page_rows", host.as_str(), judged, &rows);
        Ok(())
    }

    /// Checks the robots.txt verdict on a page whose request started at `started`. Also returns the
    /// row of the robots.txt response in force, if there was one.
    fn page_row_at(
        &mut self,
        url: &CanonicalUrl,
        recorded: &RobotsVerdict,
        started: u64,
    ) -> Result<(AuditCheckResult, Vec<(CitedRowFile, u64)>), RecordsError> {
        let origin = self.copies.as_ref().and_then(|copies| {
            let origin = copies.number(&url.origin())?;
            Some((origin, copies.last_at(origin, started)?))
        });
        let Some((origin, last)) = origin else {
            let judged = AuditCheckResult::Undecided(NO_ROBOTS_BEFORE);
            return Ok((judged, Vec::new()));
        };
        let answer = self.answer(origin, last);
        let rows = answer.map(|answer| (Requests, answer.line));
        let rests_on = answer.and_then(|answer| answer.rests_on);
        let judged = self.page_judged(origin, last, url, recorded, started)?;
        let judged = self.findings.unless_lost(judged, rests_on, started);
        Ok((judged, rows.into_iter().collect()))
    }

    fn page_judged(
        &mut self,
        origin: usize,
        last: usize,
        url: &CanonicalUrl,
        recorded: &RobotsVerdict,
        started: u64,
    ) -> Result<AuditCheckResult, RecordsError> {
        let in_force = self.settings.of_all_workers(started);
        let mut rules = None;
        for settings in &in_force {
            rules = self.rules_of(origin, last, settings)?;
            if let Some(robots) = &rules
                && is_same(recorded, &robots.judge(url.as_url()))
            {
                return Ok(AuditCheckResult::Kept);
            }
        }
        let Some(robots) = rules else {
            return Ok(AuditCheckResult::Undecided(NOT_ARCHIVED));
        };
        let verdict = robots.judge(url.as_url());
        let answered = self.answer(origin, last).map_or(0, |answer| answer.end);
        if answered + SETTLING_MS > started
            && let Some(before) = last.checked_sub(1)
        {
            for settings in &in_force {
                if let Some(robots) = self.rules_of(origin, before, settings)?
                    && is_same(recorded, &robots.judge(url.as_url()))
                {
                    return Ok(AuditCheckResult::Undecided(JUST_THEN));
                }
            }
        }
        if !self.settings.is_any_known_at(started) {
            return Ok(AuditCheckResult::Undecided(EARLIER_RUN));
        }
        if self.settings.workers == RecordedWorkers::One {
            return Ok(AuditCheckResult::Undecided(ROWS_ELSEWHERE));
        }
        let recorded_rule = match (&recorded.rule, recorded.line) {
            (Some(rule), Some(line)) => format!("`{rule}` on line {line}"),
            (Some(rule), None) => format!("`{rule}`"),
            (None, Some(line)) => format!("line {line}"),
            (None, None) => "no rule".to_owned(),
        };
        let (found, by) = (access(&verdict), words(&verdict));
        let recorded = &recorded.verdict;
        let message = format!(
            "the row of {url} says {recorded} by {recorded_rule}, but robots.txt says {found} by {by}"
        );
        Ok(AuditCheckResult::Broke("page-row", message))
    }

    /// Checks a row of `excluded.jsonl` with the reason `robots` against all copies of robots.txt
    /// that the crawl had for the origin.
    pub(super) fn excluded_row(
        &mut self,
        row: &ExcludedRow,
        line: u64,
    ) -> Result<(), RecordsError> {
        let Ok(url) = canonicalize(None, &row.url) else {
            return Ok(());
        };
        let judged = self.excluded_judged(&url, row)?;
        // Any robots.txt response of the crawl may have excluded the URL. So if any row is lost, an
        // apparent breach is undecided.
        let judged = self.findings.unless_lost(judged, None, u64::MAX);
        let (host, rows) = (url.host_key(), [(Excluded, line)]);
        self.findings
            .settle("excluded_rows", host.as_str(), judged, &rows);
        Ok(())
    }

    fn excluded_judged(
        &mut self,
        url: &CanonicalUrl,
        row: &ExcludedRow,
    ) -> Result<AuditCheckResult, RecordsError> {
        let origin = self
            .copies
            .as_ref()
            .and_then(|copies| copies.number(&url.origin()));
        let mut judged = self.unless_elsewhere(
            "excluded-row",
            format!(
                "{url} is listed as excluded by robots.txt, but no copy of robots.txt excludes it"
            ),
        );
        let Some(origin) = origin else {
            return Ok(judged);
        };
        let answers = self
            .copies
            .as_ref()
            .map_or(0, |copies| copies.answers(origin).len());
        for index in (0..answers).rev() {
            for settings in self.settings.robots_readers() {
                match self.excluded_by((url, row), (origin, index), settings)? {
                    Some(AuditCheckResult::Kept) => return Ok(AuditCheckResult::Kept),
                    Some(undecided) => judged = undecided,
                    None => {}
                }
            }
        }
        Ok(judged)
    }

    /// Checks a row of `excluded.jsonl` against one robots.txt response. `None` if the response
    /// doesn't exclude the URL.
    fn excluded_by(
        &mut self,
        (url, row): (&CanonicalUrl, &ExcludedRow),
        (origin, index): (usize, usize),
        settings: &AuditedSettings,
    ) -> Result<Option<AuditCheckResult>, RecordsError> {
        let Some(robots) = self.rules_of(origin, index, settings)? else {
            let answer = self.answer(origin, index);
            let is_unknown =
                answer.is_some_and(|answer| answer.force(settings) == RobotsRulesInForce::Unknown);
            return Ok(is_unknown.then_some(AuditCheckResult::Undecided(NOT_ARCHIVED)));
        };
        let verdict = robots.judge(url.as_url());
        let (text, line) = rule_of(&verdict);
        let is_disallowed =
            !verdict.is_allowed() && row.rule.as_deref() == text && row.line == line;
        let Some(answer) = self.answer(origin, index) else {
            return Ok(None);
        };
        let closed = answer.forbidden(settings).is_some_and(|status| {
            row.rule.as_deref() == Some(&format!("robots.txt answered {status}"))
        });
        if is_disallowed || closed {
            return Ok(Some(AuditCheckResult::Kept));
        }
        let is_known = self.settings.is_any_known_at(answer.end);
        Ok((!is_known).then_some(AuditCheckResult::Undecided(EARLIER_RUN)))
    }

    fn answer(&self, origin: usize, index: usize) -> Option<&RobotsResponse> {
        self.copies.as_ref()?.answers(origin).get(index)
    }

    /// Returns the rules in force after a response. `None` if they are unknown, or robots.txt was
    /// unreachable.
    fn rules_of(
        &mut self,
        origin: usize,
        index: usize,
        settings: &AuditedSettings,
    ) -> Result<Option<Rc<AgentRules>>, RecordsError> {
        let answer = self.answer(origin, index);
        let force = answer.map(|answer| answer.force(settings));
        match (&mut self.copies, force) {
            (Some(copies), Some(RobotsRulesInForce::Rules { place, .. })) => {
                copies.robots(place, &settings.reader).map(Some)
            }
            _ => Ok(None),
        }
    }
}

fn is_same(recorded: &RobotsVerdict, verdict: &RuleVerdict<'_>) -> bool {
    let (text, line) = rule_of(verdict);
    recorded.verdict == access(verdict) && recorded.rule.as_deref() == text && recorded.line == line
}

fn rule_of<'a>(verdict: &'a RuleVerdict<'_>) -> (Option<&'a str>, Option<u32>) {
    let rule = verdict.rule.as_ref();
    (rule.map(|rule| &*rule.text), rule.map(|rule| rule.line))
}

fn access(verdict: &RuleVerdict<'_>) -> &'static str {
    match verdict.is_allowed() {
        true => "allowed",
        false => "disallowed",
    }
}
