//! Checks each page request: was robots.txt fetched before, and does it allow the URL?

use crawl_policy::RuleVerdict;
use crawl_weburl::CanonicalUrl;

use super::audit_findings::{AuditCheckResult, CitedRowFile::Requests};
use super::host_pace::{AuditedRequest, AuditedRequestPurpose};
use super::robots_responses::RobotsRulesInForce;
use super::settings_history::RecordedWorkers;
use super::{
    AuditRun, EARLIER_RUN, JUST_THEN, NOT_ARCHIVED, ROWS_ELSEWHERE, SETTLING_MS,
    STALE_AFTER_RESTART,
};
use crate::error::RecordsError;

/// Maximum time in milliseconds from a robots.txt response to the first page after it. Within this
/// time, one page may be fetched even if the response is already stale.
const MAX_LIFE_MS: u64 = 24 * 3600 * 1000;

impl AuditRun<'_> {
    /// Checks a page request against the copy of robots.txt in force when the request started.
    pub(super) fn bound(
        &mut self,
        host: usize,
        sent: &AuditedRequest,
        url: &CanonicalUrl,
    ) -> Result<(), RecordsError> {
        let (Some(copies), Some(host)) = (&self.copies, self.hosts.all.get(host)) else {
            return Ok(());
        };
        let (key, several) = (host.key.clone(), host.per_host > 1);
        let origin = copies.number(&url.origin());
        let last = origin.and_then(|origin| Some((origin, copies.last_at(origin, sent.start)?)));
        let Some((origin, last)) = last else {
            let message = format!("{url} was requested before its robots.txt was known");
            let rows = [(Requests, sent.line)];
            let judged = self.unless_elsewhere("robots-first", message);
            let judged = self.findings.unless_lost(judged, None, sent.start);
            self.findings.settle("page_requests", &key, judged, &rows);
            return Ok(());
        };
        let answer = &copies.answers(origin)[last];
        let rows = [(Requests, answer.line), (Requests, sent.line)];
        let rests_on = answer.rests_on;
        let just_then = (several || !answer.at_home) && answer.end + SETTLING_MS > sent.start;
        let mut judged = self.judged(origin, last, sent, url)?;
        if let (AuditCheckResult::Broke(..), true, Some(before)) =
            (&judged, just_then, last.checked_sub(1))
            && matches!(
                self.judged(origin, before, sent, url)?,
                AuditCheckResult::Kept
            )
        {
            judged = AuditCheckResult::Undecided(JUST_THEN);
        }
        if let (Some(copies), AuditedRequestPurpose::Page) = (&mut self.copies, sent.purpose) {
            copies.note_page(origin, last);
        }
        let judged = self.findings.unless_lost(judged, rests_on, sent.start);
        self.findings.settle("page_requests", &key, judged, &rows);
        Ok(())
    }

    /// Checks a page request against the rules in force after one robots.txt response, the one at
    /// `index`.
    fn judged(
        &mut self,
        origin: usize,
        index: usize,
        sent: &AuditedRequest,
        url: &CanonicalUrl,
    ) -> Result<AuditCheckResult, RecordsError> {
        let Some(copies) = &mut self.copies else {
            return Ok(AuditCheckResult::Kept);
        };
        let settings = self.settings.at(sent.worker(), sent.start);
        let Some(answer) = copies.answers(origin).get(index) else {
            return Ok(AuditCheckResult::Kept);
        };
        let is_page = sent.purpose == AuditedRequestPurpose::Page;
        let (place, until) = match answer.force(settings) {
            RobotsRulesInForce::Rules { place, until } => (place, until),
            RobotsRulesInForce::Unknown => return Ok(AuditCheckResult::Undecided(NOT_ARCHIVED)),
            RobotsRulesInForce::Unreachable => {
                let message = format!("{url} was requested while robots.txt could not be fetched");
                return Ok(self.if_held(sent, "unreachable", message));
            }
        };
        let latest = match answer.page_followed {
            true => until,
            false => until.max(answer.known_at + MAX_LIFE_MS),
        };
        if is_page && sent.start > latest + SETTLING_MS {
            if self
                .settings
                .restarted_between(sent.worker(), answer.end, sent.start)
            {
                return Ok(AuditCheckResult::Undecided(STALE_AFTER_RESTART));
            }
            let (age, life) = (sent.start - answer.end, until - answer.end);
            let message = format!(
                "{url} was requested under a copy of robots.txt that was {age} ms old but valid for {life} ms"
            );
            return Ok(self.if_held(sent, "stale", message));
        }
        if let Some(status) = answer.forbidden(settings).filter(|_| is_page) {
            let message = format!("{url} was requested although robots.txt answered {status}");
            return Ok(self.if_held(sent, "disallowed", message));
        }
        let from = sent.start.saturating_sub(SETTLING_MS);
        let pace = copies.pace(origin, index, settings)?;
        let is_welcome = pace.is_none_or(|pace| pace.welcomes(from, sent.start));
        let robots = copies.robots(place, &settings.reader)?;
        let verdict = robots.judge(url.as_url());
        if !verdict.is_allowed() {
            let by = words(&verdict);
            let message = format!("{url} was requested although robots.txt disallows it: {by}");
            return Ok(self.if_held(sent, "disallowed", message));
        }
        if is_page && !is_welcome {
            let message = format!("{url} was requested outside the Visit-time");
            return Ok(self.if_held(sent, "visit-time", message));
        }
        Ok(AuditCheckResult::Kept)
    }

    /// Returns a breach of `rule` by a request that no robots.txt in the directory allows. If the
    /// crawl had several workers, the check is undecided, because a worker whose rows are missing
    /// may have fetched a robots.txt that allows the request.
    pub(super) fn unless_elsewhere(&self, rule: &'static str, message: String) -> AuditCheckResult {
        match self.settings.workers {
            RecordedWorkers::All => AuditCheckResult::Broke(rule, message),
            RecordedWorkers::Several | RecordedWorkers::One => {
                AuditCheckResult::Undecided(ROWS_ELSEWHERE)
            }
        }
    }

    /// Returns a breach of `rule` if the settings at the time of the request are known. Otherwise,
    /// the check is undecided. It is also undecided if the directory has only the rows of one of
    /// several workers.
    fn if_held(
        &self,
        sent: &AuditedRequest,
        rule: &'static str,
        message: String,
    ) -> AuditCheckResult {
        if !self.settings.is_known_at(sent.worker(), sent.start) {
            return AuditCheckResult::Undecided(EARLIER_RUN);
        }
        match self.settings.workers {
            // Another worker may have fetched a newer robots.txt.
            RecordedWorkers::One => AuditCheckResult::Undecided(ROWS_ELSEWHERE),
            RecordedWorkers::All | RecordedWorkers::Several => {
                AuditCheckResult::Broke(rule, message)
            }
        }
    }
}

/// Describes the rule of a verdict.
pub(super) fn words(verdict: &RuleVerdict<'_>) -> String {
    match &verdict.rule {
        Some(rule) => format!("`{}` on line {}", rule.text, rule.line),
        None => "no rule".to_owned(),
    }
}
