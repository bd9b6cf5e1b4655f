//! The copy of an origin's robots.txt, in memory and on disk.

use std::time::Duration;

use bytes::Bytes;
use crawl_policy::{AgentRules, ProductToken, Robots, RobotsProfile};
use crawl_scheduler::Tick;
use crawl_weburl::{CanonicalUrl, Origin, canonicalize};
use http::HeaderMap;
use http::header::{CACHE_CONTROL, EXPIRES};
use serde::{Deserialize, Serialize};

use crate::exchange::{Exchange, Validators};
use crate::failure::ExchangeFailure;
use crate::robots::fetch_result::RobotsFetchResult;
use crate::robots::tdm_reservation_copy::TdmReservationCopy;
use crate::robots::time_limits::{RobotsTimeLimits, lifetime};

/// Version of the stored form. Other versions are rejected.
const VERSION: u32 = 2;
/// Copies dated further in the future than this are ignored. Setting the clock back by less has no
/// effect on copies.
const MAX_CLOCK_STEP: Duration = Duration::from_secs(60);

/// An origin's robots.txt as last known: the last answer and the last good file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RobotsCopy {
    /// The origin of the rules.
    pub origin: Origin,
    /// The meaning of the last answer.
    pub state: RobotsRulesState,
    /// Status of the last answer. `None` if the request was not answered.
    pub status: Option<u16>,
    /// When the last answer arrived.
    pub fetched_at: Tick,
    /// When the last answer expires. After that, robots.txt must be fetched again.
    pub expires: Tick,
    /// How long the last good answer is valid after its arrival, according to its headers.
    pub lasts: Duration,
    /// The last good file, decoded. Empty if there was none.
    pub body: Bytes,
    /// When `body` was last fetched or confirmed. `None` without a file.
    pub good_at: Option<Tick>,
    /// The URL that `body` came from, after redirects. The validators apply to this URL only.
    pub url: CanonicalUrl,
    /// The validators that came with `body`.
    pub validators: Validators,
    /// The site's `tdmrep.json`, if the crawl fetches it.
    pub tdmrep: TdmReservationCopy,
}

/// Whether an origin has rules, no rules or unknown rules, by the last request for its robots.txt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RobotsRulesState {
    /// There is a file.
    Rules,
    /// There is no file; nothing is disallowed.
    None,
    /// The rules are unknown.
    Unreachable {
        /// The reason, as in [`RobotsFetchResult::Unreachable`].
        why: String,
        /// How many answers in a row left the rules unknown.
        tries: u32,
    },
}

/// Whether a robots copy is fresh, kept as the last good one, unreachable or expired: it decides
/// which rules are in force at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RobotsFreshness {
    /// The rules of the last answer are in force.
    Fresh {
        /// When they expire.
        until: Tick,
    },
    /// The last good copy is in force, because the file is unreachable.
    LastGood {
        /// When robots.txt must be fetched again.
        until: Tick,
    },
    /// No rules are in force: the file is unreachable and there is no good copy, so nothing of the
    /// origin may be fetched.
    Unreachable {
        /// When to retry.
        retry_at: Tick,
    },
    /// No rules are in force: the copy is too old, so robots.txt must be fetched first.
    Expired,
}

/// Why the stored form of a copy can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RobotsCopyDecodeError {
    /// The line break after the head is missing. The value is the length of the stored form, in
    /// bytes.
    #[error("robots copy of {0} bytes has no head")]
    NoHead(usize),
    /// The head is not valid JSON.
    #[error("robots copy has a broken head")]
    Head(#[from] serde_json::Error),
    /// The copy was written by another version of this program.
    #[error("robots copy has version {0} instead of {VERSION}")]
    Version(u32),
    /// The files are shorter than the head states. The value is the length of `tdmrep.json`
    /// according to the head, in bytes.
    #[error("robots copy lacks its tdmrep.json of {0} bytes")]
    Short(u64),
    /// The origin or a URL is invalid.
    #[error("robots copy has `{0}`, which isn't a URL")]
    Url(String),
}

impl RobotsCopy {
    /// Returns the copy of `origin`'s robots.txt after one more answer. `answer` was interpreted
    /// from `result`, and `before` is the copy so far.
    ///
    /// A good answer replaces everything. If the file is unreachable, the last good file is kept,
    /// and robots.txt must be fetched again after a wait. The first wait is the server's
    /// Retry-After, if it sent one. Each further wait is twice as long as the one before, unless
    /// the Retry-After is longer. If the last request got no answer, a new run may fetch
    /// robots.txt again before the wait ends. If that request gets no answer either, it doesn't
    /// extend the wait. A [`RobotsFetchResult::Redirect`] that is not followed means no rules (RFC
    /// 9309 section 2.3.1.2).
    #[must_use]
    pub fn learn(
        origin: &Origin,
        before: Option<&RobotsCopy>,
        answer: &RobotsFetchResult,
        result: &Result<Exchange, ExchangeFailure>,
        times: &RobotsTimeLimits,
    ) -> RobotsCopy {
        let now = match result {
            Ok(exchange) => exchange.ended,
            Err(failure) => failure.ended,
        };
        let mut copy = RobotsCopy::blank(origin, now);
        copy.tdmrep = before
            .map(|before| before.tdmrep.clone())
            .unwrap_or_default();
        if let Ok(exchange) = result {
            copy.status = Some(exchange.status);
        }
        match (answer, result) {
            (RobotsFetchResult::Rules { body, .. }, Ok(exchange)) => {
                copy.body = body.clone();
                copy.good(exchange, times);
            }
            (RobotsFetchResult::NotModified, Ok(exchange))
                if before.is_some_and(RobotsCopy::holds) =>
            {
                copy.confirmed(before, exchange, times);
            }
            (RobotsFetchResult::None { .. } | RobotsFetchResult::Redirect { .. }, Ok(exchange)) => {
                copy.state = RobotsRulesState::None;
                copy.lasts = lifetime(&exchange.headers, times, now);
                copy.expires = now + copy.lasts;
            }
            _ => copy.lost(before, answer, times),
        }
        copy
    }

    /// Returns which rules are in force at `now`.
    ///
    /// A copy dated in the future by a wrong clock is ignored, because its age is unknown. Rules
    /// are in force no longer than the maximum for the copy's kind, counted from `now`.
    #[must_use]
    pub fn force(&self, now: Tick, times: &RobotsTimeLimits) -> RobotsFreshness {
        let is_unreachable = matches!(self.state, RobotsRulesState::Unreachable { .. });
        let longest = match is_unreachable {
            false => times.most,
            true => times.longest_wait.max(times.longest_asked),
        };
        let until = self.expires.min(now + longest);
        if now >= until || self.fetched_at > now + MAX_CLOCK_STEP {
            return RobotsFreshness::Expired;
        }
        if !is_unreachable {
            return RobotsFreshness::Fresh { until };
        }
        // A `good_at` later than the last answer must be wrong, so use the time of that answer.
        let good_at = self.good_at.map(|good_at| good_at.min(self.fetched_at));
        match good_at.map(|good_at| good_at + times.last_good) {
            Some(end) if now < end => RobotsFreshness::LastGood {
                until: end.min(until),
            },
            _ => RobotsFreshness::Unreachable { retry_at: until },
        }
    }

    /// Compiles the rules. If the file is unreachable and there is no good file, everything is
    /// disallowed. So a caller that forgets to check [`force`](RobotsCopy::force) fetches nothing.
    #[must_use]
    pub fn compile(&self, agent: &ProductToken, profile: RobotsProfile) -> AgentRules {
        match self.state {
            RobotsRulesState::None => AgentRules::allow_all(),
            _ if self.holds() => AgentRules::parse(&self.body, agent, profile),
            _ => Robots::disallow_all().for_token(agent, profile),
        }
    }

    /// Returns the validators to send when fetching `url` again.
    #[must_use]
    pub fn validators_for(&self, url: &CanonicalUrl) -> Validators {
        if self.holds() && self.url == *url {
            return self.validators.clone();
        }
        Validators::default()
    }

    /// Returns the stored form: a line of JSON (the head), then the files unchanged.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let head = StoredCopyHead::of(self);
        // Serialising the head can't fail, because it holds only strings and numbers.
        let mut bytes = serde_json::to_vec(&head).unwrap_or_default();
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.body);
        if let TdmReservationCopy::File(file) = &self.tdmrep {
            bytes.extend_from_slice(file);
        }
        bytes
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// Fails with a [`RobotsCopyDecodeError`] that names the defect. Never panics.
    pub fn from_bytes(bytes: &[u8]) -> Result<RobotsCopy, RobotsCopyDecodeError> {
        let end = bytes.iter().position(|&b| b == b'\n');
        let end = end.ok_or(RobotsCopyDecodeError::NoHead(bytes.len()))?;
        let version: StoredVersion = serde_json::from_slice(&bytes[..end])?;
        if version.version != VERSION {
            return Err(RobotsCopyDecodeError::Version(version.version));
        }
        let head: StoredCopyHead = serde_json::from_slice(&bytes[..end])?;
        head.into_copy(Bytes::copy_from_slice(&bytes[end + 1..]))
    }

    fn blank(origin: &Origin, now: Tick) -> RobotsCopy {
        RobotsCopy {
            url: origin.robots_url(),
            origin: origin.clone(),
            state: RobotsRulesState::Rules,
            status: None,
            fetched_at: now,
            expires: now,
            lasts: Duration::ZERO,
            body: Bytes::new(),
            good_at: None,
            validators: Validators::default(),
            tdmrep: TdmReservationCopy::NotAsked,
        }
    }

    /// Returns whether there is a last good file, even an old one.
    fn holds(&self) -> bool {
        self.good_at.is_some()
    }

    /// Returns whether the last request for robots.txt got no answer, and the wait after it has not
    /// ended at `now`.
    fn is_unanswered_at(&self, now: Tick) -> bool {
        matches!(self.state, RobotsRulesState::Unreachable { .. })
            && self.status.is_none()
            && (self.fetched_at..self.expires).contains(&now)
    }

    fn good(&mut self, exchange: &Exchange, times: &RobotsTimeLimits) {
        self.lasts = lifetime(&exchange.headers, times, exchange.ended);
        self.expires = exchange.ended + self.lasts;
        self.good_at = Some(exchange.ended);
        self.url = exchange.url.clone();
        self.validators = Validators::of(&exchange.headers);
    }

    /// Updates the copy after a 304. Fields absent from the 304 stay as they were (RFC 9111 section
    /// 4.3.4).
    fn confirmed(
        &mut self,
        before: Option<&RobotsCopy>,
        exchange: &Exchange,
        times: &RobotsTimeLimits,
    ) {
        let Some(before) = before else { return };
        self.body = before.body.clone();
        self.good(exchange, times);
        if !states_lifetime(&exchange.headers) {
            self.lasts = before.lasts.min(times.most);
            self.expires = exchange.ended + self.lasts;
        }
        let old = &before.validators;
        let new = &mut self.validators;
        new.etag = new.etag.take().or_else(|| old.etag.clone());
        new.last_modified = new
            .last_modified
            .take()
            .or_else(|| old.last_modified.clone());
    }

    fn lost(
        &mut self,
        before: Option<&RobotsCopy>,
        answer: &RobotsFetchResult,
        times: &RobotsTimeLimits,
    ) {
        let now = self.fetched_at;
        let (why, wait_asked) = match answer {
            RobotsFetchResult::Unreachable {
                why, retry_after, ..
            } => (why.as_str(), *retry_after),
            _ => ("status", None),
        };
        let waiting = before.filter(|before| self.status.is_none() && before.is_unanswered_at(now));
        let tries = match before.map(|before| &before.state) {
            Some(RobotsRulesState::Unreachable { tries, .. }) if waiting.is_some() => *tries,
            Some(RobotsRulesState::Unreachable { tries, .. }) => tries.saturating_add(1),
            _ => 1,
        };
        let doubled = times.first_wait.saturating_mul(1 << (tries - 1).min(16));
        let back_off = doubled.min(times.longest_wait);
        let wait = match wait_asked.map(|asked| asked.min(times.longest_asked)) {
            // The server may be back sooner than we would try. If it isn't, don't trust a short
            // Retry-After again.
            Some(asked) if tries == 1 => asked,
            Some(asked) => back_off.max(asked),
            None => back_off,
        };
        let end = now + wait;
        self.expires = waiting.map_or(end, |before| before.expires.min(end));
        self.state = RobotsRulesState::Unreachable {
            why: why.to_owned(),
            tries,
        };
        if let Some(before) = before.filter(|before| before.holds()) {
            self.body = before.body.clone();
            // If the clock was ahead when the file was stored, the file counts as last good now,
            // not in the future.
            self.good_at = before.good_at.map(|good_at| good_at.min(now));
            self.lasts = before.lasts;
            self.url = before.url.clone();
            self.validators = before.validators.clone();
        }
    }
}

fn states_lifetime(headers: &HeaderMap) -> bool {
    headers.contains_key(CACHE_CONTROL) || headers.contains_key(EXPIRES)
}

#[derive(Deserialize)]
struct StoredVersion {
    version: u32,
}

/// The head of the stored form. Times are in microseconds.
#[derive(Serialize, Deserialize)]
struct StoredCopyHead {
    version: u32,
    origin: String,
    state: RobotsRulesState,
    status: Option<u16>,
    fetched_at: u64,
    expires: u64,
    lasts: u64,
    good_at: Option<u64>,
    url: String,
    #[serde(flatten)]
    validators: Validators,
    tdmrep: StoredTdmCopy,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredTdmCopy {
    NotAsked,
    None,
    /// The length of the file in bytes. The file follows at the end of the stored form.
    File(u64),
}

impl StoredCopyHead {
    fn of(copy: &RobotsCopy) -> StoredCopyHead {
        StoredCopyHead {
            version: VERSION,
            origin: copy.origin.to_string(),
            state: copy.state.clone(),
            status: copy.status,
            fetched_at: copy.fetched_at.as_micros(),
            expires: copy.expires.as_micros(),
            lasts: u64::try_from(copy.lasts.as_micros()).unwrap_or(u64::MAX),
            good_at: copy.good_at.map(Tick::as_micros),
            url: copy.url.to_string(),
            validators: copy.validators.clone(),
            tdmrep: match &copy.tdmrep {
                TdmReservationCopy::NotAsked => StoredTdmCopy::NotAsked,
                TdmReservationCopy::None => StoredTdmCopy::None,
                TdmReservationCopy::File(file) => StoredTdmCopy::File(file.len() as u64),
            },
        }
    }

    fn into_copy(self, mut body: Bytes) -> Result<RobotsCopy, RobotsCopyDecodeError> {
        let tdmrep = match self.tdmrep {
            StoredTdmCopy::NotAsked => TdmReservationCopy::NotAsked,
            StoredTdmCopy::None => TdmReservationCopy::None,
            StoredTdmCopy::File(bytes) => {
                let begin = usize::try_from(bytes)
                    .ok()
                    .and_then(|bytes| body.len().checked_sub(bytes));
                TdmReservationCopy::File(
                    body.split_off(begin.ok_or(RobotsCopyDecodeError::Short(bytes))?),
                )
            }
        };
        let origin =
            Origin::parse(&self.origin).map_err(|_| RobotsCopyDecodeError::Url(self.origin))?;
        let url =
            canonicalize(None, &self.url).map_err(|_| RobotsCopyDecodeError::Url(self.url))?;
        Ok(RobotsCopy {
            origin,
            state: self.state,
            status: self.status,
            fetched_at: Tick::from_micros(self.fetched_at),
            expires: Tick::from_micros(self.expires),
            lasts: Duration::from_micros(self.lasts),
            body,
            good_at: self.good_at.map(Tick::from_micros),
            url,
            validators: self.validators,
            tdmrep,
        })
    }
}

#[cfg(test)]
mod tests;
