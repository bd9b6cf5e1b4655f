//! Answers the requests of a replay from the archive alone, and determines when each answer
//! arrives.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use crawl_archive::WarcRecord;
use crawl_fetcher::{
    BodyFilter, BodyMemoryReservation, Exchange, ExchangeFailure, FailureKind, FetchRequest,
    SentRequestRecord, TruncationReason,
};
use crawl_scheduler::Tick;
use crawl_weburl::CanonicalUrl;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Version};

use super::recorded_crawl::{RecordedCrawl, RecordedRequest, tick};
use crate::config::Config;
use crate::content_filter::body_filter;
use crate::render::UndecodedResponse;

/// The prefix of header fields that the server sent but that don't describe the record's block
/// (the stored body).
const ORIGINAL: &[u8] = b"x-archive-orig-";

/// Statuses that made the crawl retry a URL. The archive has only the answer to the last attempt,
/// but `requests.jsonl` has the status of each attempt.
const TRIED_AGAIN: [u16; 5] = [429, 500, 502, 503, 504];

/// When the answers of a replay arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayTimingMode {
    /// At the recorded times, to replay a crawl with its own settings.
    AsRecorded,
    /// After the recorded response time, counted from the replay's request, to replay a crawl with
    /// other settings.
    ByPolicy,
}

/// Counts of answers and bodies that are missing from the archive of a replayed crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissingArchiveAnswerCounts {
    /// Requests without an archived answer. They take the recorded response time, or the host's
    /// mean response time if the crawl never requested the URL.
    pub not_archived: u64,
    /// Requests whose answer has no body, because the site forbids archiving it.
    pub withheld: u64,
    /// Requests whose answer has no body, because the crawl's own content filter did not keep it.
    pub unwanted: u64,
    /// Bodies that the crawl cut at its `--max-body`, although the replay's `--max-body` is
    /// larger.
    pub cut_bodies: u64,
}

/// The first difference between a replay and the records of the crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayDifference {
    /// The replay sent this request, but another one is next in the records.
    Other(CanonicalUrl),
    /// The replay does not send this recorded request, or not at its time.
    Missing(CanonicalUrl),
    /// The replay sent this request after the recorded request had ended.
    Later(CanonicalUrl),
    /// The replay sent this request after all recorded requests.
    Beyond(CanonicalUrl),
    /// The replay ended without sending this many recorded requests.
    Fewer(u64),
}

impl ReplayDifference {
    /// Returns the difference's name in the JSON output.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            ReplayDifference::Other(_) => "other",
            ReplayDifference::Missing(_) => "missing",
            ReplayDifference::Later(_) => "later",
            ReplayDifference::Beyond(_) => "beyond",
            ReplayDifference::Fewer(_) => "fewer",
        }
    }

    /// Returns the first request that differs. `None` if the replay only sent fewer requests.
    #[must_use]
    pub fn url(&self) -> Option<&CanonicalUrl> {
        match self {
            ReplayDifference::Other(url)
            | ReplayDifference::Missing(url)
            | ReplayDifference::Later(url)
            | ReplayDifference::Beyond(url) => Some(url),
            ReplayDifference::Fewer(_) => None,
        }
    }
}

/// The archived answers of a recorded crawl, for the requests of a replay.
pub(super) struct ArchivedAnswers {
    pub(super) crawl: RecordedCrawl,
    pub(super) gaps: MissingArchiveAnswerCounts,
    /// Whether the replay uses the settings of the recorded crawl.
    pub(super) is_as_recorded: bool,
    /// Whether the replay still follows the records. False after the first difference.
    pub(super) follows: bool,
    /// The first difference from the records, if any.
    difference: Option<ReplayDifference>,
    /// The number of recorded requests that the replay has sent in the recorded order.
    sent: usize,
    /// Whether the replay followed all records without a difference.
    is_over: bool,
    max_body: u64,
    /// The filter that decides which bodies are read.
    filter: Option<BodyFilter>,
}

/// The start and end of an exchange of a replay, and its index among the recorded requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplayExchangeTimes {
    started: Tick,
    pub(super) ended: Tick,
    /// The index among the recorded requests, to order requests that end in the same millisecond.
    /// `u32::MAX` if the replay does not follow the records.
    pub(super) place: u32,
    recorded: Option<RecordedRequest>,
}

/// What the archive lacks of an answer: all of it, or its body.
enum NoAnswer {
    NotArchived,
    /// The archive lacks the body. Contains the answer without it, and whether the crawl's content
    /// filter is the reason. If not, the site forbids archiving it.
    NoBody(Box<Exchange>, bool),
}

impl ReplayExchangeTimes {
    /// Creates an exchange with the times of a recorded request.
    pub(super) fn recorded(request: RecordedRequest) -> ReplayExchangeTimes {
        ReplayExchangeTimes {
            started: tick(request.start),
            ended: tick(request.end),
            place: request.place,
            recorded: Some(request),
        }
    }
}

impl ArchivedAnswers {
    pub(super) fn new(
        crawl: RecordedCrawl,
        timing: ReplayTimingMode,
        config: &Config,
    ) -> ArchivedAnswers {
        ArchivedAnswers {
            crawl,
            gaps: MissingArchiveAnswerCounts::default(),
            is_as_recorded: timing == ReplayTimingMode::AsRecorded,
            follows: timing == ReplayTimingMode::AsRecorded,
            difference: None,
            sent: 0,
            is_over: false,
            max_body: config.fetch.max_body,
            filter: body_filter(&config.wanted),
        }
    }

    /// Stops following the records, either because of a difference, or (`None`) because all were
    /// followed.
    pub(super) fn stop_following(&mut self, difference: Option<ReplayDifference>) {
        self.follows = false;
        self.is_over = difference.is_none();
        self.difference = self.difference.take().or(difference);
    }

    /// Returns how many recorded requests the replay has not sent in the recorded order.
    pub(super) fn unsent(&self) -> u64 {
        self.crawl.request_count().saturating_sub(self.sent) as u64
    }

    /// Counts a request that the replay sent as the next one in the recorded order.
    pub(super) fn pass_over(&mut self, url: &CanonicalUrl) {
        let _ = self.crawl.next_request(url.as_str());
        self.sent += 1;
    }

    /// Begins an exchange, and determines when its request is sent and when it ends. The answer is
    /// read from disk only when the exchange ends.
    pub(super) fn begin(&mut self, request: &FetchRequest, now: Tick) -> ReplayExchangeTimes {
        let url = &request.url;
        let next = self.crawl.next_request(url.as_str());
        if self.is_over && self.difference.is_none() {
            self.difference = Some(ReplayDifference::Beyond(url.clone()));
        }
        if self.follows {
            self.difference = match &next {
                Some(next) if next.is_next => {
                    let is_over = tick(next.request.end) < now;
                    is_over.then(|| ReplayDifference::Later(url.clone()))
                }
                _ if self.sent == self.crawl.request_count() => {
                    Some(ReplayDifference::Beyond(url.clone()))
                }
                _ => Some(ReplayDifference::Other(url.clone())),
            };
            self.follows = self.difference.is_none();
            self.sent += usize::from(self.follows);
        }
        // Several POSTs to a URL may have different answers, so use their answers only while the
        // replay follows the recorded order.
        let is_post = request.post.is_some();
        let next = next.filter(|next| self.follows || !is_post && !next.request.is_post);
        let took = match &next {
            Some(next) => next.request.end.saturating_sub(next.request.start),
            None => self.crawl.usual_time(url.host_key().as_str()),
        };
        let followed = next.map(|next| next.request).filter(|_| self.follows);
        ReplayExchangeTimes {
            started: followed.map_or(now, |recorded| tick(recorded.start)),
            ended: followed.map_or(now + Duration::from_millis(took), |recorded| {
                tick(recorded.end)
            }),
            place: followed.map_or(u32::MAX, |recorded| recorded.place),
            recorded: next.map(|next| next.request),
        }
    }

    /// Returns the first difference from the records, if any. Call this only after the replay has
    /// ended.
    pub(super) fn difference(&self) -> Option<ReplayDifference> {
        let unsent = self.unsent();
        match &self.difference {
            None if self.follows && unsent > 0 => Some(ReplayDifference::Fewer(unsent)),
            difference => difference.clone(),
        }
    }

    /// Ends an exchange, and returns its answer.
    pub(super) fn end(
        &mut self,
        request: &FetchRequest,
        pending: &ReplayExchangeTimes,
    ) -> Result<Exchange, ExchangeFailure> {
        let ReplayExchangeTimes { started, ended, .. } = *pending;
        let answer = match &pending.recorded {
            Some(recorded) => self.answer(request, recorded),
            None => Err(NoAnswer::NotArchived),
        };
        let timed = |mut exchange: Exchange| {
            exchange.sent.is_head = request.is_head;
            exchange.challenged = pending.recorded.is_some_and(|recorded| recorded.challenged);
            Exchange {
                started,
                ended,
                first_byte: ended.since(started),
                ..exchange
            }
        };
        let failure = pending.recorded.and_then(|recorded| recorded.failure);
        let failure = failure.filter(|kind| *kind != FailureKind::NotArchived);
        match (failure, answer) {
            (None, Ok(exchange)) => Ok(timed(exchange)),
            (Some(kind), answer) => {
                let cut = |exchange| Exchange {
                    truncated: Some(TruncationReason::by(kind)),
                    ..timed(exchange)
                };
                let address = self.crawl.address(request.url.host_key().as_str());
                Err(ExchangeFailure {
                    address: address.map(|address| SocketAddr::new(address, request.url.port())),
                    detail: "as recorded".to_owned(),
                    answer: answer.ok().map(cut).map(Box::new),
                    ..ExchangeFailure::recorded(kind, started, ended)
                })
            }
            (None, Err(NoAnswer::NoBody(exchange, is_unwanted))) => {
                self.gaps.unwanted += u64::from(is_unwanted);
                self.gaps.withheld += u64::from(!is_unwanted);
                Ok(timed(*exchange))
            }
            (None, Err(NoAnswer::NotArchived)) => {
                self.gaps.not_archived += 1;
                Err(ExchangeFailure {
                    detail: "the archive has no answer".to_owned(),
                    ..ExchangeFailure::recorded(FailureKind::NotArchived, started, ended)
                })
            }
        }
    }

    /// Returns the archived answer to the first request for a URL that got neither a server error
    /// nor 429.
    pub(super) fn usual_answer(&self, url: &CanonicalUrl) -> Option<UndecodedResponse> {
        let start = self.crawl.first_answer(url.as_str())?;
        let record = self.crawl.record_of(url.as_str(), start)?;
        let address = self.crawl.address(url.host_key().as_str());
        let exchange = self.read(&record, url, address)?;
        Some(UndecodedResponse::of(&exchange, false))
    }

    /// Returns the archived answer to a recorded request. The caller sets its times.
    fn answer(
        &mut self,
        request: &FetchRequest,
        recorded: &RecordedRequest,
    ) -> Result<Exchange, NoAnswer> {
        let url = &request.url;
        let host = url.host_key();
        let address = self.crawl.address(host.as_str());
        let record = self.crawl.record_of(url.as_str(), recorded.start);
        let record = match (record, recorded.status) {
            // If an answer to HEAD had to be confirmed with GET, only the answer to GET is
            // archived. So a record found here contains the answer to GET.
            (ref record, Some(status))
                if request.is_head
                    && (status >= 400 || self.crawl.was_confirmed(recorded, record.is_some())) =>
            {
                let headers = match status {
                    200..=299 => HeaderMap::new(),
                    300..=399 => redirect_to(url),
                    _ => wait_of(recorded),
                };
                return Ok(exchange(url, address, status, headers, Bytes::new()));
            }
            (_, None) if request.is_head => return Err(NoAnswer::NotArchived),
            (Some(record), _) => record,
            (None, Some(status)) if recorded.challenged || TRIED_AGAIN.contains(&status) => {
                let wait = wait_of(recorded);
                return Ok(exchange(url, address, status, wait, Bytes::new()));
            }
            // The recorded crawl was killed before it committed this answer, so the answer's record
            // was cut off from the archive. Use the answer that the next run got from the same URL.
            (None, Some(_)) => {
                let later = self.crawl.later_record_of(url.as_str(), recorded);
                later.ok_or(NoAnswer::NotArchived)?
            }
            (None, None) => return Err(NoAnswer::NotArchived),
        };
        let mut exchange = self
            .read(&record, url, address)
            .ok_or(NoAnswer::NotArchived)?;
        if recorded.status == Some(304) && !request.validators.is_empty() {
            exchange.status = 304;
            (exchange.body, exchange.truncated) = (Bytes::new(), None);
        }
        let filter = self.filter.as_ref().filter(|_| request.is_filtered);
        if request.is_head {
            return Ok(answer_to_head(exchange));
        }
        if filter.is_some_and(|filter| !filter.wants(exchange.status, &exchange.headers)) {
            // The filter rejects this body, so it does not matter whether the archive has it.
            exchange.body = Bytes::new();
            exchange.truncated = Some(TruncationReason::Unwanted);
            return Ok(exchange);
        }
        if record.kind() == "response" && record.field("WARC-Truncated") == Some("unspecified") {
            exchange.body = Bytes::new();
            exchange.truncated = Some(TruncationReason::Length);
            let is_unwanted = self.crawl.is_unwanted(url.as_str(), recorded.start);
            return Err(NoAnswer::NoBody(Box::new(exchange), is_unwanted));
        }
        let max_body = request.max_body.unwrap_or(self.max_body);
        let max_body = filter.map_or(max_body, |filter| filter.at_most(max_body));
        // A 304 to a request with validators can't answer a request without. A 304 to a request
        // without validators is archived as a response record, not as a revisit record.
        let is_304 = exchange.status == 304 && record.kind() == "revisit";
        if is_304 && request.validators.is_empty() {
            return Err(NoAnswer::NotArchived);
        }
        if exchange.body.len() as u64 > max_body {
            let length = usize::try_from(max_body).unwrap_or(usize::MAX);
            exchange.body.truncate(length);
            exchange.truncated = Some(TruncationReason::Length);
        } else if exchange.truncated == Some(TruncationReason::Length)
            && (exchange.body.len() as u64) < max_body
        {
            self.gaps.cut_bodies += 1;
        }
        Ok(exchange)
    }

    /// Returns the exchange in a record. The body of a revisit record is taken from the record that
    /// it refers to.
    fn read(
        &self,
        record: &WarcRecord,
        url: &CanonicalUrl,
        address: Option<IpAddr>,
    ) -> Option<Exchange> {
        if record.kind() != "revisit" {
            let http = record.http()?;
            let truncated = match record.field("WARC-Truncated") {
                Some("time") => Some(TruncationReason::Time(FailureKind::Timeout)),
                Some("disconnect") => Some(TruncationReason::Disconnect(FailureKind::ShortBody)),
                Some(_) => Some(TruncationReason::Length),
                None => None,
            };
            let body = Bytes::copy_from_slice(http.body);
            let headers = headers(&http.fields);
            return Some(Exchange {
                truncated,
                ..exchange(url, address, http.status()?, headers, body)
            });
        }
        let original = self.crawl.original(record)?;
        if original.kind() == "revisit" {
            return None;
        }
        let payload = self.read(&original, url, address)?;
        // A revisit record without an HTTP head takes the head of the record that it refers to.
        Some(match record.http() {
            Some(http) => Exchange {
                headers: headers(&http.fields),
                status: http.status()?,
                ..payload
            },
            None => payload,
        })
    }
}

/// Returns the answer to HEAD, which has no body, whatever the archive has.
fn answer_to_head(exchange: Exchange) -> Exchange {
    Exchange {
        body: Bytes::new(),
        truncated: TruncationReason::of_head(exchange.status),
        ..exchange
    }
}

/// Returns an exchange without its times, which the caller must set.
fn exchange(
    url: &CanonicalUrl,
    address: Option<IpAddr>,
    status: u16,
    headers: HeaderMap,
    body: Bytes,
) -> Exchange {
    Exchange {
        url: url.clone(),
        sent: SentRequestRecord::default(),
        started: Tick::from_micros(0),
        ended: Tick::from_micros(0),
        first_byte: Duration::ZERO,
        address: address.map(|address| SocketAddr::new(address, url.port())),
        status,
        version: Version::HTTP_11,
        tls: None,
        headers,
        body,
        truncated: None,
        challenged: false,
        unmet_signature: None,
        room: BodyMemoryReservation::default(),
    }
}

/// Returns the header of a redirect to a URL.
fn redirect_to(url: &CanonicalUrl) -> HeaderMap {
    let location = HeaderValue::from_str(url.as_str());
    location
        .into_iter()
        .map(|value| (LOCATION, value))
        .collect()
}

/// Returns the header fields of an answer that is not archived. The records contain only the
/// answer's status and the wait that the server requested.
fn wait_of(recorded: &RecordedRequest) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // The body is missing, so declare a type that isn't parsed. The URL is retried anyway.
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    if let Some(wait) = recorded.wait_asked {
        headers.insert(RETRY_AFTER, HeaderValue::from(wait.div_ceil(1000)));
    }
    headers
}

/// Restores the original header fields of an answer from those of its record.
fn headers(fields: &[(&[u8], &[u8])]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let is_renamed = |name: &[u8]| {
        let beginning = name.get(..ORIGINAL.len());
        beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(ORIGINAL))
    };
    let has_own_length = fields.iter().any(|(name, _)| {
        is_renamed(name) && name[ORIGINAL.len()..].eq_ignore_ascii_case(b"content-length")
    });
    for (name, value) in fields {
        let original = match is_renamed(name) {
            true => &name[ORIGINAL.len()..],
            // Drop the record's own `Content-Length`, which describes its block.
            false
                if has_own_length
                    && name.eq_ignore_ascii_case(CONTENT_LENGTH.as_str().as_bytes()) =>
            {
                continue;
            }
            false => name,
        };
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(original),
            HeaderValue::from_bytes(value),
        ) {
            headers.append(name, value);
        }
    }
    headers
}

#[cfg(test)]
mod tests;
