//! Derives from the archived responses which robots.txt copies each origin had, and when each copy
//! was in force.

use std::collections::HashMap;
use std::rc::Rc;

use crawl_archive::rows::RequestRow;
use crawl_policy::{AgentRules, VisitHours};
use crawl_weburl::{CanonicalUrl, Origin, canonicalize, location_target};

use super::audited_settings::{AuditedSettings, RobotsInterpretation};
use super::compiled_robots_cache::CompiledRobotsCache;
use super::robots_exchanges::{RobotsExchange, RobotsExchangeLocation, RobotsExchangeLocator};
use super::robots_freshness::{life, retry_after, says_life};
use crate::error::RecordsError;

/// Maximum number of redirects to follow (RFC 9309 section 2.3.1.2).
pub(crate) const MAX_HOPS: u8 = 5;

/// The robots.txt responses of all origins. Memory: about 150 bytes per robots.txt request, and 64
/// MiB of compiled rules.
pub(super) struct RobotsResponses {
    exchanges: RobotsExchangeLocator,
    compiled: CompiledRobotsCache,
    numbers: HashMap<Origin, usize>,
    /// Origins by index.
    origins: Vec<Origin>,
    answers: Vec<Vec<RobotsResponse>>,
    /// The unfinished redirect of each origin's robots.txt, by origin index: the target, which was
    /// not requested yet, and the number of redirects so far.
    chains: HashMap<usize, (CanonicalUrl, u8)>,
    /// The milliseconds that are added to the times of the current rows, because the clock was set
    /// back before them.
    added: u64,
}

/// A response to a request for robots.txt (or the failure of the request), and the rules in force
/// after it.
#[derive(Debug)]
pub(super) struct RobotsResponse {
    /// When the exchange at the end of all redirects ended, in milliseconds since 1970.
    pub(super) end: u64,
    /// When the last file arrived that must be fetched before the origin's pages: robots.txt, or a
    /// `tdmrep.json` after it. In milliseconds since 1970.
    pub(super) known_at: u64,
    /// The line in `requests.jsonl` of the exchange at the end of all redirects.
    pub(super) line: u64,
    /// The line in `requests.jsonl` of the response that the rules in force come from. This may be
    /// an earlier response. `None` if the log has no such response.
    pub(super) rests_on: Option<u64>,
    /// Whether the exchange at the end of all redirects was with the origin's own host.
    pub(super) at_home: bool,
    state: RobotsResponseState,
    /// When robots.txt must be fetched again, in milliseconds since 1970.
    until: u64,
    pub(super) status: Option<u16>,
    good: LastGoodCopy,
    /// Number of consecutive failures to fetch robots.txt.
    tries: u32,
    /// A cache of the pace that this robots.txt demands, for each interpretation used so far.
    paces: Vec<(RobotsInterpretation, Option<Rc<RobotsPaceAsked>>)>,
    /// Whether a page was fetched after this response. A stale copy allows one page, but not a
    /// second one.
    pub(super) page_followed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RobotsResponseState {
    Rules,
    None,
    Unreachable,
    /// The response is not archived.
    Unknown,
}

/// The last usable robots.txt of an origin.
#[derive(Clone, Copy, Debug)]
enum LastGoodCopy {
    None,
    /// There may be a usable file, but it isn't archived.
    Unknown,
    Copy {
        place: RobotsExchangeLocation,
        at: u64,
        lasts: u64,
    },
}

/// The rules that apply to an origin's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RobotsRulesInForce {
    /// The rules of the file at `place` apply until `until`. If there is no file, everything is
    /// allowed.
    Rules {
        place: Option<RobotsExchangeLocation>,
        until: u64,
    },
    /// Nothing may be fetched.
    Unreachable,
    /// The rules are unknown.
    Unknown,
}

/// The pace that a robots.txt demands, in milliseconds.
#[derive(Debug)]
pub(super) struct RobotsPaceAsked {
    /// The longest delay demanded at any hour, with the directive and its line.
    gap: (u64, &'static str, u32),
    /// The delays demanded only during certain hours, with the hours and the line of the directive.
    rates: Vec<(u64, VisitHours, u32)>,
    pub(super) visits: Vec<VisitHours>,
}

/// The meaning of an exchange for the rules of an origin (RFC 9309 section 2.3.1).
enum AnswerMeaning {
    Rules(RobotsExchangeLocation),
    None,
    NotModified,
    Redirect(CanonicalUrl),
    Unreachable,
    Unknown,
}

impl RobotsResponses {
    pub(super) fn new(exchanges: RobotsExchangeLocator) -> RobotsResponses {
        RobotsResponses {
            exchanges,
            compiled: CompiledRobotsCache::new(),
            numbers: HashMap::new(),
            origins: Vec::new(),
            answers: Vec::new(),
            chains: HashMap::new(),
            added: 0,
        }
    }

    pub(super) fn damaged(&self) -> u64 {
        self.exchanges.damaged
    }

    pub(super) fn number(&self, origin: &Origin) -> Option<usize> {
        self.numbers.get(origin).copied()
    }

    /// Returns all responses of an origin, in the order in which they ended.
    pub(super) fn answers(&self, origin: usize) -> &[RobotsResponse] {
        self.answers.get(origin).map_or(&[], Vec::as_slice)
    }

    /// Returns the index of the last response that had ended at `moment`. `None` if there was none
    /// yet.
    pub(super) fn last_at(&self, origin: usize, moment: u64) -> Option<usize> {
        let ended = |answer: &RobotsResponse| answer.end <= moment;
        self.answers(origin).partition_point(ended).checked_sub(1)
    }

    /// Returns the response whose rules applied to an origin's pages at `moment`: the last one that
    /// had ended, or an earlier one if robots.txt was unreachable and its last good copy still
    /// valid. `None` if there was none yet.
    pub(super) fn in_force(
        &self,
        origin: &Origin,
        moment: u64,
        settings: &AuditedSettings,
    ) -> Option<&RobotsResponse> {
        let origin = self.number(origin)?;
        let last = self.last_at(origin, moment)?;
        let (last, earlier) = self.answers(origin).get(..=last)?.split_last()?;
        if last.state != RobotsResponseState::Unreachable
            || last.force(settings) == RobotsRulesInForce::Unreachable
        {
            return Some(last);
        }
        let mut earlier = earlier.iter().rev();
        earlier.find(|answer| answer.state != RobotsResponseState::Unreachable)
    }

    /// Reads the exchange of a request. `None` if it is not archived.
    pub(super) fn exchange(
        &mut self,
        row: &RequestRow,
    ) -> Result<Option<RobotsExchange>, RecordsError> {
        self.exchanges.read(&row.url, row.start)
    }

    /// Adjusts the copies in force after the clock was set back. `added` are the milliseconds that
    /// are added to the times of later rows. The crawl compares the recorded times of a copy with
    /// its new clock, so the times of the copies need the same addition.
    pub(super) fn clock_was_set_back(&mut self, added: u64) {
        let more = added - self.added;
        self.added = added;
        for answer in self.answers.iter_mut().filter_map(|all| all.last_mut()) {
            answer.until = answer.until.saturating_add(more);
            if let LastGoodCopy::Copy { at, .. } = &mut answer.good {
                *at = at.saturating_add(more);
            }
        }
    }

    pub(super) fn note_page(&mut self, origin: usize, answer: usize) {
        if let Some(answer) = self
            .answers
            .get_mut(origin)
            .and_then(|all| all.get_mut(answer))
        {
            answer.page_followed = true;
        }
    }

    /// Returns the rules of the file at `place`, as interpreted by `reader`. If `place` is `None`,
    /// everything is allowed.
    pub(super) fn robots(
        &mut self,
        place: Option<RobotsExchangeLocation>,
        reader: &RobotsInterpretation,
    ) -> Result<Rc<AgentRules>, RecordsError> {
        match place {
            None => Ok(self.compiled.none()),
            Some(place) => {
                let read = || self.exchanges.body(place);
                self.compiled.get(place, reader, read)
            }
        }
    }

    /// Returns the pace demanded by the robots.txt in force after the response at `index`. `None`
    /// if there is no such robots.txt, or it demands no pace.
    pub(super) fn pace(
        &mut self,
        origin: usize,
        index: usize,
        settings: &AuditedSettings,
    ) -> Result<Option<Rc<RobotsPaceAsked>>, RecordsError> {
        let Some(answer) = self.answers(origin).get(index) else {
            return Ok(None);
        };
        let RobotsRulesInForce::Rules {
            place: Some(place), ..
        } = answer.force(settings)
        else {
            return Ok(None);
        };
        let mut paces = answer.paces.iter();
        if let Some((_, pace)) = paces.find(|(reader, _)| *reader == settings.reader) {
            return Ok(pace.clone());
        }
        let robots = self.robots(Some(place), &settings.reader)?;
        let pace = RobotsPaceAsked::of(&robots).map(Rc::new);
        let answers = self.answers.get_mut(origin);
        if let Some(answer) = answers.and_then(|answers| answers.get_mut(index)) {
            answer.paces.push((settings.reader.clone(), pace.clone()));
        }
        Ok(pace)
    }

    /// Adds a request for a robots.txt, or for a redirect on the way to one. Returns the origins
    /// whose rules changed.
    pub(super) fn take(
        &mut self,
        row: &RequestRow,
        line: u64,
        settings: &AuditedSettings,
    ) -> Result<Vec<Origin>, RecordsError> {
        let Ok(url) = canonicalize(None, &row.url) else {
            return Ok(Vec::new());
        };
        let exchange = match row.status {
            Some(_) => self.exchanges.read(&row.url, row.start - self.added)?,
            None => None,
        };
        let mut of: Vec<usize> = match (row.purpose.as_str(), &exchange) {
            ("robots", _) => vec![self.number_or_new(&url.origin())],
            (_, Some(RobotsExchange { of: Some(of), .. })) => vec![self.number_or_new(&of.clone())],
            _ => self.waiting_for(&url),
        };
        of.sort_unstable();
        let certain = of.len() == 1;
        let mut changed = Vec::new();
        for number in of {
            let hop = match row.purpose.as_str() {
                "robots" => 0,
                _ => self.chains.get(&number).map_or(1, |(_, hop)| *hop),
            };
            self.chains.remove(&number);
            let meaning = match certain {
                true => meaning(row, exchange.as_ref(), &url, hop),
                false => AnswerMeaning::Unknown,
            };
            if let AnswerMeaning::Redirect(to) = meaning {
                self.chains.insert(number, (to, hop + 1));
                continue;
            }
            let answer = self.learn(number, row, line, meaning, exchange.as_ref(), settings);
            if let (Some(origin), Some(answers)) =
                (self.origins.get(number), self.answers.get_mut(number))
            {
                let at_home = origin.host_key() == url.host_key();
                answers.push(RobotsResponse { at_home, ..answer });
                changed.push(origin.clone());
            }
        }
        Ok(changed)
    }

    /// Records the end of a request that the pages of an origin have to wait for.
    pub(super) fn all_known(&mut self, origin: &Origin, end: u64) {
        let number = self.number(origin);
        let answers = number.and_then(|number| self.answers.get_mut(number));
        if let Some(answer) = answers.and_then(|answers| answers.last_mut()) {
            answer.known_at = answer.known_at.max(end);
        }
    }

    fn number_or_new(&mut self, origin: &Origin) -> usize {
        let next = self.answers.len();
        let number = *self.numbers.entry(origin.clone()).or_insert(next);
        if number == next {
            self.answers.push(Vec::new());
            self.origins.push(origin.clone());
        }
        number
    }

    /// Returns the origins whose robots.txt was redirected to this URL.
    fn waiting_for(&self, url: &CanonicalUrl) -> Vec<usize> {
        let chains = self.chains.iter().filter(|(_, (to, _))| to == url);
        chains.map(|(number, _)| *number).collect()
    }

    fn learn(
        &self,
        number: usize,
        row: &RequestRow,
        line: u64,
        meaning: AnswerMeaning,
        exchange: Option<&RobotsExchange>,
        settings: &AuditedSettings,
    ) -> RobotsResponse {
        let before = self.answers(number).last();
        let held = before.map_or(LastGoodCopy::None, |before| before.good);
        let tries = before.filter(|before| before.state == RobotsResponseState::Unreachable);
        let tries = tries.map_or(1, |before| before.tries.saturating_add(1));
        let end = row.end;
        // If the exchange is not archived, assume the maximum lifetime, because its header fields
        // may have allowed that.
        let lasts = exchange.map_or(settings.most, |found| {
            life(&found.fields, end - self.added, settings.most)
        });
        let mut answer = RobotsResponse::unknown(row, line, end.saturating_add(lasts), tries);
        answer.rests_on = match meaning {
            AnswerMeaning::Rules(_) | AnswerMeaning::None => Some(line),
            // The previous rules stay in force, so they depend on the same row as before.
            _ => before.and_then(|before| before.rests_on),
        };
        match (meaning, held) {
            (AnswerMeaning::Rules(place), _) => answer.hold(place, lasts),
            (AnswerMeaning::None, _) => {
                answer.state = RobotsResponseState::None;
                answer.good = LastGoodCopy::None;
            }
            (
                AnswerMeaning::NotModified,
                LastGoodCopy::Copy {
                    place, lasts: old, ..
                },
            ) => {
                // Fields that are missing in the 304 keep their values (RFC 9111 section 4.3.4).
                let says = exchange.is_some_and(|found| says_life(&found.fields));
                let lasts = if says { lasts } else { old.min(settings.most) };
                answer.hold(place, lasts);
            }
            (AnswerMeaning::Unreachable, held) => {
                let doubled = settings.retry.saturating_mul(1 << (tries - 1).min(16));
                let wait = doubled.min(settings.retry_most);
                let demanded =
                    exchange.map_or(0, |found| retry_after(&found.fields, end - self.added));
                answer.state = RobotsResponseState::Unreachable;
                // Earlier versions waited for `robots-retry` after a short Retry-After too.
                answer.until = end.saturating_add(wait.max(demanded));
                answer.good = held;
            }
            (AnswerMeaning::NotModified, LastGoodCopy::None) => {
                answer.state = RobotsResponseState::Unreachable;
            }
            (
                AnswerMeaning::NotModified | AnswerMeaning::Unknown | AnswerMeaning::Redirect(_),
                _,
            ) => {}
        }
        answer
    }
}

impl RobotsResponse {
    fn unknown(row: &RequestRow, line: u64, until: u64, tries: u32) -> RobotsResponse {
        RobotsResponse {
            end: row.end,
            known_at: row.end,
            line,
            rests_on: None,
            at_home: true,
            state: RobotsResponseState::Unknown,
            until,
            status: row.status,
            good: LastGoodCopy::Unknown,
            tries,
            paces: Vec::new(),
            page_followed: false,
        }
    }

    /// Puts the file at `place` in force for `lasts` milliseconds, because the response contained
    /// or confirmed it.
    fn hold(&mut self, place: RobotsExchangeLocation, lasts: u64) {
        let at = self.end;
        self.state = RobotsResponseState::Rules;
        self.until = at.saturating_add(lasts);
        self.good = LastGoodCopy::Copy { place, at, lasts };
    }

    /// Returns the rules that apply to the origin's pages from the end of this response.
    pub(super) fn force(&self, settings: &AuditedSettings) -> RobotsRulesInForce {
        match (self.state, self.good) {
            (RobotsResponseState::Rules, LastGoodCopy::Copy { place, .. }) => {
                RobotsRulesInForce::Rules {
                    place: Some(place),
                    until: self.until,
                }
            }
            (RobotsResponseState::None, _) => RobotsRulesInForce::Rules {
                place: None,
                until: self.until,
            },
            (RobotsResponseState::Unreachable, LastGoodCopy::None) => {
                RobotsRulesInForce::Unreachable
            }
            (RobotsResponseState::Unreachable, LastGoodCopy::Copy { place, at, .. }) => {
                let served = at.saturating_add(settings.last_good);
                match self.end < served {
                    true => RobotsRulesInForce::Rules {
                        place: Some(place),
                        until: self.until.min(served),
                    },
                    false => RobotsRulesInForce::Unreachable,
                }
            }
            (RobotsResponseState::Unknown, _)
            | (_, LastGoodCopy::Unknown)
            | (RobotsResponseState::Rules, LastGoodCopy::None) => RobotsRulesInForce::Unknown,
        }
    }

    /// Returns the status of the response if the operator's settings forbid all pages of the origin
    /// because of this status.
    pub(super) fn forbidden(&self, settings: &AuditedSettings) -> Option<u16> {
        let status = self.status.filter(|status| matches!(status, 401 | 403));
        status.filter(|_| settings.forbids && self.state == RobotsResponseState::None)
    }
}

impl RobotsPaceAsked {
    fn of(robots: &AgentRules) -> Option<RobotsPaceAsked> {
        let millis = |gap: std::time::Duration| u64::try_from(gap.as_millis()).unwrap_or(u64::MAX);
        let delay = robots.crawl_delay();
        let mut gap = delay.map_or((0, "", 0), |(delay, line)| {
            (millis(delay), "Crawl-delay", line)
        });
        let mut rates = Vec::new();
        for rate in robots.request_rates() {
            match rate.during {
                Some(hours) => rates.push((millis(rate.gap()), hours, rate.line)),
                None if millis(rate.gap()) > gap.0 => {
                    gap = (millis(rate.gap()), "Request-rate", rate.line);
                }
                None => {}
            }
        }
        let visits: Vec<VisitHours> = robots
            .visit_times()
            .iter()
            .map(|visit| visit.hours)
            .collect();
        let silent = gap.0 == 0 && rates.is_empty() && visits.is_empty();
        (!silent).then_some(RobotsPaceAsked { gap, rates, visits })
    }

    /// Returns the longest delay that is demanded both at `from` and at `to`, with its directive
    /// and line.
    pub(super) fn gap_within(&self, from: u64, to: u64) -> (u64, &'static str, u32) {
        let within = |hours: &VisitHours| hours.contain(minute(from)) && hours.contain(minute(to));
        let rates = self.rates.iter().filter(|(_, hours, _)| within(hours));
        let rates = rates.map(|(gap, _, line)| (*gap, "Request-rate", *line));
        rates.fold(
            self.gap,
            |most, rate| if rate.0 > most.0 { rate } else { most },
        )
    }

    /// Returns whether `from` or `to` is within the visiting hours. Without visiting hours, every
    /// time is.
    pub(super) fn welcomes(&self, from: u64, to: u64) -> bool {
        let within = |hours: &VisitHours| hours.contain(minute(from)) || hours.contain(minute(to));
        self.visits.is_empty() || self.visits.iter().any(within)
    }
}

/// Returns the minute of the day in UTC of a time in milliseconds since 1970.
fn minute(moment: u64) -> u16 {
    u16::try_from(moment / 60_000 % 1440).unwrap_or(0)
}

/// Interprets an exchange by RFC 9309 section 2.3.1.
fn meaning(
    row: &RequestRow,
    exchange: Option<&RobotsExchange>,
    url: &CanonicalUrl,
    hop: u8,
) -> AnswerMeaning {
    // The crawl repeats a challenged request with a signature, which works like a redirect to the
    // same URL.
    if row.challenged && hop < MAX_HOPS {
        return AnswerMeaning::Redirect(url.clone());
    }
    match (row.status, exchange) {
        (None, _) => AnswerMeaning::Unreachable,
        (Some(429 | 500..), _) => AnswerMeaning::Unreachable,
        (Some(400..=499), _) => AnswerMeaning::None,
        (Some(200..=399), None) => AnswerMeaning::Unknown,
        (Some(200..=299), Some(found)) => match found.body {
            Some(_) => AnswerMeaning::Rules(found.place),
            None => AnswerMeaning::Unreachable,
        },
        (Some(304), Some(found)) if found.conditional => AnswerMeaning::NotModified,
        (Some(status @ (300..=303 | 307 | 308)), Some(found)) => match target(status, found, url) {
            Some(to) if hop < MAX_HOPS => AnswerMeaning::Redirect(to),
            None if status == 300 => AnswerMeaning::Unreachable,
            _ => AnswerMeaning::None,
        },
        _ => AnswerMeaning::Unreachable,
    }
}

/// Returns the target of a redirect. `None` if the response isn't a redirect.
pub(crate) fn target(
    status: u16,
    exchange: &RobotsExchange,
    url: &CanonicalUrl,
) -> Option<CanonicalUrl> {
    if !matches!(status, 300..=303 | 307 | 308) {
        return None;
    }
    let location = exchange.fields.first("location")?;
    location_target(url, location)?.ok()
}
