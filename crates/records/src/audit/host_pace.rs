//! Checks for each host the delays between its requests, the waits that its responses demand, and
//! the number of requests in flight.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::rc::Rc;

use crawl_archive::rows::RequestRow;
use crawl_weburl::{Origin, canonicalize};

use super::audit_findings::{CitedRowFile::Requests, ROW_LOST};
use super::robots_freshness::MAX_WAIT;
use super::robots_responses::RobotsRulesInForce;
use super::settings_history::{RecordedWorkers, SettingsHistory};
use super::{
    AuditRun, BEYOND_TIMEOUT, CLOCK_SET_BACK, CLOCKS_APART, CLOCKS_APART_MS, EARLIER_RUN,
    JUST_THEN, PACE_BEFORE_RESTART, ROUNDING_MS, ROWS_ELSEWHERE, SETTLING_MS, WAIT_JUST_THEN,
    WAIT_TAKEN_BACK,
};
use crate::error::RecordsError;

/// Tracks the requests sent to one host, to check the delays between them.
///
/// Memory: about 1,000 bytes, and 200 bytes for each request that waits to be judged. If the host
/// may have only one request in flight, only one request waits. Otherwise, the requests of about a
/// minute wait.
#[derive(Debug)]
pub(super) struct HostRequestTracker {
    pub(super) key: String,
    /// The maximum number of requests in flight that the host was ever allowed.
    pub(super) per_host: usize,
    /// Indexes in [`RobotsResponses`](super::RobotsResponses) of the host's origins whose
    /// robots.txt was requested, even if no page was.
    pub(super) origins: Vec<usize>,
    /// Requests that wait to be judged. Rows are in the order in which their requests ended. So a
    /// request waits until no later row can have an earlier start.
    ahead: BinaryHeap<Reverse<AuditedRequest>>,
    /// The latest request in each slot. A host has `per_host` slots, one per request in flight.
    places: Vec<JudgedRequest>,
    /// The request that ended last.
    latest: Option<JudgedRequest>,
    /// The latest start of all judged requests.
    judged: u64,
    owed: Vec<WaitOwed>,
    /// Whether the clock was set back since the last request, so that the gap since then is not
    /// known.
    is_gap_unknown: bool,
    /// Whether a request was sent to the host.
    pub(super) is_asked: bool,
}

/// A request to be judged, ordered by its start.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AuditedRequest {
    pub(super) start: u64,
    pub(super) line: u64,
    end: u64,
    gap_asked: u64,
    wait_asked: Option<u64>,
    /// Whether the response has a status that demands a wait: 429 or 503.
    is_asking: bool,
    pub(super) purpose: AuditedRequestPurpose,
    /// The URL, if robots.txt rules apply to it.
    pub(super) url: Option<Box<str>>,
    /// The worker that sent the request, if the directory is gathered from several workers.
    worker: Option<Rc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AuditedRequestPurpose {
    /// A page, a sitemap or a page resource.
    Page,
    /// A `tdmrep.json`, which must be fetched before the pages, like robots.txt.
    TdmRep,
    /// A robots.txt, or a redirect on the way to one. Both may always be fetched.
    Robots,
}

#[derive(Clone, Debug)]
struct JudgedRequest {
    start: u64,
    end: u64,
    line: u64,
    /// See [`AuditedRequest::worker`].
    worker: Option<Rc<str>>,
}

/// A wait that a response demanded.
#[derive(Clone, Debug)]
struct WaitOwed {
    since: u64,
    until: u64,
    line: u64,
    /// Whether the crawl has to wait even if a later response demands no wait.
    is_firm: bool,
    /// The worker that got the response. See [`AuditedRequest::worker`].
    worker: Option<Rc<str>>,
}

/// A delay demanded by a robots.txt.
struct RobotsDelayAsked {
    /// The delay in milliseconds, the directive that demands it, and the line of the directive in
    /// robots.txt.
    gap: (u64, &'static str, u32),
    /// The line in `requests.jsonl` of the response that put this robots.txt in force.
    line: u64,
    known_at: u64,
    at_home: bool,
    /// Whether the robots.txt is that of the request's own origin.
    is_own: bool,
}

/// The request trackers of all hosts, by host key.
#[derive(Debug, Default)]
pub(super) struct HostRequestTrackers {
    numbers: HashMap<String, usize>,
    pub(super) all: Vec<HostRequestTracker>,
}

impl HostRequestTrackers {
    pub(super) fn number(&mut self, key: &str, per_host: impl FnOnce() -> usize) -> usize {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let number = self.all.len();
        self.numbers.insert(key.to_owned(), number);
        self.all.push(HostRequestTracker {
            key: key.to_owned(),
            per_host: per_host(),
            origins: Vec::new(),
            ahead: BinaryHeap::new(),
            places: Vec::new(),
            latest: None,
            judged: 0,
            owed: Vec::new(),
            is_gap_unknown: false,
            is_asked: false,
        });
        number
    }
}

impl AuditedRequest {
    fn of(row: &RequestRow, line: u64) -> AuditedRequest {
        let purpose = match row.purpose.as_str() {
            "robots" | "hop" => AuditedRequestPurpose::Robots,
            "tdmrep" => AuditedRequestPurpose::TdmRep,
            // `page`, `sitemap`, `resource`, `action`: the purposes that robots.txt applies to.
            _ => AuditedRequestPurpose::Page,
        };
        AuditedRequest {
            start: row.start,
            line,
            end: row.end,
            gap_asked: row.gap_asked,
            wait_asked: row.wait_asked,
            is_asking: matches!(row.status, Some(429 | 503)),
            purpose,
            url: (purpose != AuditedRequestPurpose::Robots).then(|| row.url.as_str().into()),
            worker: row.worker.as_deref().map(Rc::from),
        }
    }

    pub(super) fn worker(&self) -> Option<&str> {
        self.worker.as_deref()
    }

    /// Returns whether another worker than `worker` sent this request, and the request may have
    /// started at `moment` or later by the clock of `worker`.
    fn may_be_after(&self, moment: u64, worker: Option<&str>) -> bool {
        self.worker() != worker && moment <= self.start.saturating_add(CLOCKS_APART_MS)
    }
}

impl AuditRun<'_> {
    /// Adds a row of `requests.jsonl`.
    pub(super) fn request(&mut self, row: &RequestRow, line: u64) -> Result<(), RecordsError> {
        self.findings.checked("requests");
        let settings = self.settings;
        let per_host = || settings.most_per_host(&row.host);
        let host = self.hosts.number(&row.host, per_host);
        self.rules(row, line)?;
        let Some(host_state) = self.hosts.all.get_mut(host) else {
            return Ok(());
        };
        host_state.is_asked |= row.is_sent();
        host_state
            .ahead
            .push(Reverse(AuditedRequest::of(row, line)));
        // Rows not read yet end about when this row ends, or later. Because of the timeout, their
        // requests can't have started before `begun`.
        let begun = row.end.saturating_sub(settings.timeout + SETTLING_MS);
        let one = host_state.per_host == 1;
        let waits = |host: &HostRequestTracker| match host.ahead.peek() {
            Some(_) if one => host.ahead.len() > 1,
            Some(Reverse(first)) => first.start < begun,
            None => false,
        };
        while self.hosts.all.get(host).is_some_and(waits) {
            self.judge_next(host)?;
        }
        Ok(())
    }

    /// Judges the remaining requests.
    pub(super) fn judge_rest(&mut self) -> Result<(), RecordsError> {
        for host in 0..self.hosts.all.len() {
            while self
                .hosts
                .all
                .get(host)
                .is_some_and(|host| !host.ahead.is_empty())
            {
                self.judge_next(host)?;
            }
        }
        Ok(())
    }

    /// Judges all requests so far, because the clock was set back after them. The time from these
    /// requests to later ones is unknown. `added` are the milliseconds to add to the times of later
    /// rows.
    pub(super) fn clock_was_set_back(&mut self, added: u64) -> Result<(), RecordsError> {
        self.judge_rest()?;
        (self.shared).clock_was_set_back(self.settings, &mut self.findings);
        if let Some(copies) = &mut self.copies {
            copies.clock_was_set_back(added);
        }
        for host in &mut self.hosts.all {
            host.is_gap_unknown |= !host.places.is_empty();
            host.places.clear();
            host.latest = None;
            host.owed.clear();
        }
        Ok(())
    }

    /// Processes a request for a robots.txt or a related file, which may change the rules of
    /// origins.
    fn rules(&mut self, row: &RequestRow, line: u64) -> Result<(), RecordsError> {
        let Some(copies) = &mut self.copies else {
            return Ok(());
        };
        match row.purpose.as_str() {
            "robots" | "hop" => {
                let settings = self.settings.at(row.worker.as_deref(), row.end);
                for origin in copies.take(row, line, settings)? {
                    let (settings, key) = (self.settings, origin.host_key());
                    let per_host = || settings.most_per_host(key.as_str());
                    let host = self.hosts.number(key.as_str(), per_host);
                    let host_state = self.hosts.all.get_mut(host);
                    if let (Some(host), Some(number)) = (host_state, copies.number(&origin))
                        && !host.origins.contains(&number)
                    {
                        host.origins.push(number);
                    }
                }
            }
            "tdmrep" => {
                if let Ok(origin) = Origin::parse(&row.url) {
                    copies.all_known(&origin, row.end);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn judge_next(&mut self, host: usize) -> Result<(), RecordsError> {
        let host_state = self.hosts.all.get_mut(host);
        let Some(Reverse(sent)) = host_state.and_then(|host| host.ahead.pop()) else {
            return Ok(());
        };
        let url = sent.url.as_deref().map(|url| canonicalize(None, url));
        let url = url.and_then(Result::ok);
        let origin = url.as_ref().map(crawl_weburl::CanonicalUrl::origin);
        let origin = origin.and_then(|origin| self.copies.as_ref()?.number(&origin));
        self.gap(host, &sent);
        self.pace(host, &sent, origin)?;
        self.wait(host, &sent);
        if let Some(url) = &url {
            self.bound(host, &sent, url)?;
        }
        if let Some(host) = self.hosts.all.get_mut(host) {
            host.note(&sent);
        }
        Ok(())
    }

    /// Checks the minimum delay, the delay recorded with the request, and the maximum number of
    /// requests in flight.
    fn gap(&mut self, number: usize, sent: &AuditedRequest) {
        let Some(host) = self.hosts.all.get_mut(number) else {
            return;
        };
        if std::mem::take(&mut host.is_gap_unknown) {
            return self.findings.undecided(CLOCK_SET_BACK);
        }
        let per_host = self.settings.per_host(&host.key, sent.worker(), sent.start);
        host.limit_places(per_host);
        let (key, settings, delays) = (&*host.key, self.settings, &self.delays);
        // If the delay changed during a gap, the shorter delay is required.
        let before = settings.just_before(sent.worker(), sent.start);
        let required = |ended: &JudgedRequest| {
            let from = ended.end.min(before);
            let usual = settings.delay(key, sent.worker(), from, sent.start);
            let delay = delays.least(key, sent.worker(), usual, (from, sent.start));
            match sent.gap_asked >= delay {
                true => (sent.gap_asked, "according to its own row"),
                false => (delay, "the minimum delay"),
            }
        };
        let free = |ended: &JudgedRequest| {
            ended.end.saturating_add(required(ended).0) <= sent.start + ROUNDING_MS
        };
        // Of the slots whose delay is over, take the one used last, so that later requests have
        // more choice. Take an unused slot only if the delay of every used slot is still running.
        let places = host.places.iter().enumerate();
        let best = places.filter(|(_, ended)| free(ended) && ended.end <= sent.start);
        if let Some((place, _)) = best.max_by_key(|(_, ended)| ended.end) {
            host.places.swap_remove(place);
            return self.findings.checked("gaps");
        }
        if host.places.len() < per_host {
            return;
        }
        let may_be_free = |ended: &JudgedRequest| {
            let free_at = ended.end.saturating_add(required(ended).0);
            sent.may_be_after(free_at, ended.worker.as_deref())
        };
        if let Some(place) = host.places.iter().position(may_be_free) {
            host.places.swap_remove(place);
            return self.findings.undecided(CLOCKS_APART);
        }
        let first = host.places.iter().enumerate();
        let Some((place, _)) = first.min_by_key(|(_, ended)| ended.end) else {
            return;
        };
        let first = host.places.swap_remove(place);
        let (asked, by) = required(&first);
        if !self.settings.is_known_at(sent.worker(), sent.start) {
            return self.findings.undecided(EARLIER_RUN);
        }
        if per_host > 1 && sent.start < host.judged {
            return self.findings.undecided(BEYOND_TIMEOUT);
        }
        if self.settings.began_during(&first, sent) {
            return self.findings.undecided(CLOCK_SET_BACK);
        }
        self.findings.checked("gaps");
        let rows = [(Requests, first.line), (Requests, sent.line)];
        match sent.start.checked_sub(first.end) {
            None => self.findings.breach(
                "in-flight",
                &host.key,
                format!("more than {per_host} in flight: a request began before an earlier one had ended"),
                None,
                &rows,
            ),
            Some(kept) => self.findings.breach(
                "gap",
                &host.key,
                format!("a gap of {kept} ms, but {asked} ms were required ({by})"),
                Some((asked, kept)),
                &rows,
            ),
        }
    }

    /// Checks a request against the pace that the robots.txt of the host demands: one request at a
    /// time, and a delay after each request.
    fn pace(
        &mut self,
        number: usize,
        sent: &AuditedRequest,
        own: Option<usize>,
    ) -> Result<(), RecordsError> {
        let demanded = self.demanded_pace(number, sent, own)?;
        let Some(host) = self.hosts.all.get(number) else {
            return Ok(());
        };
        let (Some(latest), Some(asked)) = (&host.latest, demanded) else {
            return Ok(());
        };
        let (gap, by, by_line) = asked.gap;
        let gap_seen = sent.start.checked_sub(latest.end);
        if gap_seen.is_some_and(|gap_seen| gap_seen + ROUNDING_MS >= gap) {
            self.findings.checked("robots_gaps");
            return Ok(());
        }
        let elsewhere = host.per_host > 1 || !asked.at_home;
        let undecided = if !self.settings.is_known_at(sent.worker(), sent.start) {
            Some(EARLIER_RUN)
        } else if !asked.is_own
            && self
                .settings
                .restarted_between(sent.worker(), asked.known_at, sent.start)
        {
            Some(PACE_BEFORE_RESTART)
        } else if sent.may_be_after(latest.end.saturating_add(gap), latest.worker.as_deref()) {
            Some(CLOCKS_APART)
        } else if self.settings.workers == RecordedWorkers::One {
            Some(ROWS_ELSEWHERE)
        } else if self.settings.began_during(latest, sent) {
            Some(CLOCK_SET_BACK)
        } else if self.findings.lacks_answer(Some(asked.line), sent.start) {
            Some(ROW_LOST)
        } else if elsewhere && sent.start < asked.known_at + SETTLING_MS {
            Some(JUST_THEN)
        } else {
            None
        };
        if let Some(why) = undecided {
            self.findings.undecided(why);
            return Ok(());
        }
        self.findings.checked("robots_gaps");
        let seen = gap_seen.map_or(
            "no gap (another request was in flight)".to_owned(),
            |gap_seen| format!("a gap of {gap_seen} ms"),
        );
        let message = format!("{seen}, but {by} on line {by_line} of robots.txt requires {gap} ms");
        let rows = [
            (Requests, asked.line),
            (Requests, latest.line),
            (Requests, sent.line),
        ];
        let times = Some((gap, gap_seen.unwrap_or(0)));
        self.findings
            .breach("pace", &host.key, message, times, &rows);
        Ok(())
    }

    /// Returns the longest delay demanded by the robots.txt copies in force. `None` if none demands
    /// a delay.
    fn demanded_pace(
        &mut self,
        number: usize,
        sent: &AuditedRequest,
        own: Option<usize>,
    ) -> Result<Option<RobotsDelayAsked>, RecordsError> {
        let (Some(copies), Some(host)) = (&mut self.copies, self.hosts.all.get(number)) else {
            return Ok(None);
        };
        let settings = self.settings.at(sent.worker(), sent.start);
        let mut longest: Option<RobotsDelayAsked> = None;
        for &origin in &host.origins {
            let answers = copies.answers(origin);
            let count = answers.partition_point(|answer| answer.known_at <= sent.start);
            let Some(index) = count.checked_sub(1) else {
                continue;
            };
            let Some(pace) = copies.pace(origin, index, settings)? else {
                continue;
            };
            let Some(answer) = copies.answers(origin).get(index) else {
                continue;
            };
            let RobotsRulesInForce::Rules { until, .. } = answer.force(settings) else {
                continue;
            };
            let is_own = own == Some(origin);
            // A stale copy still allows one page of its origin. The request for that page must keep
            // the pace that the copy demands.
            let binds =
                sent.start < until || (is_own && sent.purpose == AuditedRequestPurpose::Page);
            let gap = pace.gap_within(sent.start.saturating_sub(SETTLING_MS), sent.start);
            let is_longer = longest
                .as_ref()
                .is_none_or(|longest| longest.gap.0 <= gap.0);
            if binds && gap.0 > 0 && is_longer {
                longest = Some(RobotsDelayAsked {
                    gap,
                    line: answer.line,
                    known_at: answer.known_at,
                    at_home: answer.at_home,
                    is_own,
                });
            }
        }
        Ok(longest)
    }

    /// Checks the waits demanded by earlier responses.
    fn wait(&mut self, number: usize, sent: &AuditedRequest) {
        let Some(host) = self.hosts.all.get_mut(number) else {
            return;
        };
        host.owed.retain(|owed| {
            let is_respected = owed.until <= sent.start + ROUNDING_MS;
            if is_respected {
                self.findings.checked("waits");
            }
            !is_respected
        });
        // A request that started before the response ended could not know of the wait that the
        // response demanded.
        let owed = host.owed.iter().enumerate();
        let owed = owed.filter(|(_, owed)| owed.since <= sent.start);
        let Some((place, owed)) = owed.max_by_key(|(_, owed)| owed.until) else {
            return;
        };
        let owed = owed.clone();
        let worker = owed.worker.as_deref();
        let may_precede =
            sent.worker() != worker && sent.start < owed.since.saturating_add(CLOCKS_APART_MS);
        if may_precede || sent.may_be_after(owed.until, worker) {
            return self.findings.undecided(CLOCKS_APART);
        }
        let several = host.per_host > 1 || !self.settings.is_known_at(sent.worker(), sent.start);
        if several && sent.start < owed.since + SETTLING_MS {
            return self.findings.undecided(WAIT_JUST_THEN);
        }
        host.owed.swap_remove(place);
        if several && !owed.is_firm {
            return self.findings.undecided(WAIT_TAKEN_BACK);
        }
        let wait_asked = owed.until - owed.since;
        let waited = sent.start - owed.since;
        self.findings.checked("waits");
        self.findings.breach(
            "wait",
            &host.key,
            format!("requested again after {waited} ms, but the response required a wait of {wait_asked} ms"),
            Some((wait_asked, waited)),
            &[(Requests, owed.line), (Requests, sent.line)],
        );
    }
}

impl SettingsHistory {
    /// Returns whether a run began, by its clock, while `earlier` was in flight and before `sent`
    /// started. No request is in flight when a run begins, so the clock was set back. False for the
    /// rows of gathered workers: another worker may have sent the earlier request.
    fn began_during(&self, earlier: &JudgedRequest, sent: &AuditedRequest) -> bool {
        let until = earlier.end.min(sent.start);
        sent.worker().is_none() && self.began_between(None, earlier.start, until)
    }
}

impl HostRequestTracker {
    /// Removes slots, because reread settings allow fewer requests in flight. Keeps the slots with
    /// the latest requests.
    fn limit_places(&mut self, per_host: usize) {
        while self.places.len() > per_host {
            let places = self.places.iter().enumerate();
            let first = places.min_by_key(|(_, ended)| ended.end);
            self.places.swap_remove(first.map_or(0, |(place, _)| place));
        }
    }

    fn note(&mut self, sent: &AuditedRequest) {
        let ended = JudgedRequest {
            start: sent.start,
            end: sent.end,
            line: sent.line,
            worker: sent.worker.clone(),
        };
        self.judged = self.judged.max(sent.start);
        let latest = self.latest.as_ref();
        if latest.is_none_or(|latest| latest.end <= sent.end) {
            self.latest = Some(ended.clone());
        }
        self.places.push(ended);
        if let Some(wait) = sent.wait_asked {
            self.owed.push(WaitOwed {
                since: sent.end,
                until: sent.end.saturating_add(wait.min(MAX_WAIT)),
                line: sent.line,
                is_firm: sent.is_asking,
                worker: sent.worker.clone(),
            });
        }
    }
}
