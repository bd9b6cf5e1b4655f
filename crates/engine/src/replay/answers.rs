//! The answers to the requests of a replay: what the archive has, when it came, and nothing else.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use crawl_archive::WarcRecord;
use crawl_fetcher::{
    BodyFilter, BodyMemory, Exchange, Failure, FailureKind, FetchRequest, SentFields, Truncation,
};
use crawl_scheduler::Tick;
use crawl_weburl::CanonicalUrl;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Version};

use super::recorded::{RecordedCrawl, RecordedRequest, tick};
use crate::config::Config;
use crate::content_filter::body_filter;

/// The beginning of the names of fields that a record holds under another name, since they do not
/// fit its block.
const ORIGINAL: &[u8] = b"x-archive-orig-";

/// Statuses after which a URL is asked for again: the archive has the last answer alone, and
/// `requests.jsonl` the status of each.
const TRIED_AGAIN: [u16; 5] = [429, 500, 502, 503, 504];

/// When answers come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayTiming {
    /// As they came: each request is sent and answered when the records say so. For the policy
    /// that the crawl had.
    AsRecorded,
    /// As long after each request as they took then. For another policy.
    ByPolicy,
}

/// The part of what was asked for that the archive does not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayGaps {
    /// Requests that it has no answer to: for them the usual time of the host was taken.
    pub not_archived: u64,
    /// Those among them whose answers came and were withheld from it.
    pub withheld: u64,
    /// Bodies that were cut at a smaller `--max-body` than that of the replay.
    pub cut_bodies: u64,
}

/// The first way in which a replay that is to follow the records does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayDifference {
    /// It sends this request, where the records have another.
    Other(CanonicalUrl),
    /// It sends this request when the records already have its end.
    Later(CanonicalUrl),
    /// It sends this request, where the records have no more.
    Beyond(CanonicalUrl),
    /// It ends, and so many requests of the records were not sent.
    Fewer(u64),
}

impl ReplayDifference {
    /// Its name in JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            ReplayDifference::Other(_) => "other",
            ReplayDifference::Later(_) => "later",
            ReplayDifference::Beyond(_) => "beyond",
            ReplayDifference::Fewer(_) => "fewer",
        }
    }

    /// The request from which on the replay differs.
    #[must_use]
    pub fn url(&self) -> Option<&CanonicalUrl> {
        match self {
            ReplayDifference::Other(url)
            | ReplayDifference::Later(url)
            | ReplayDifference::Beyond(url) => Some(url),
            ReplayDifference::Fewer(_) => None,
        }
    }
}

/// The web as the archive of a crawl has it.
pub(super) struct Answers {
    pub(super) crawl: RecordedCrawl,
    pub(super) gaps: ReplayGaps,
    /// True as long as each request is the one that the records have next.
    pub(super) follows: bool,
    /// Why it is not any more.
    difference: Option<ReplayDifference>,
    /// The recorded requests that were sent while it was.
    sent: usize,
    /// True once all that was recorded was followed.
    is_over: bool,
    max_body: u64,
    /// The bodies that are read at all.
    filter: Option<BodyFilter>,
}

/// An exchange under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    started: Tick,
    pub(super) ended: Tick,
    /// Its place among the recorded requests, of which several may end within a millisecond; the
    /// last one, where the replay does not follow them.
    pub(super) place: u32,
    recorded: Option<RecordedRequest>,
}

/// A body that is not in the archive.
enum NoAnswer {
    NotArchived,
    Withheld,
}

impl Pending {
    /// An exchange that ends as a recorded one did.
    pub(super) fn recorded(request: RecordedRequest) -> Pending {
        Pending {
            started: tick(request.start),
            ended: tick(request.end),
            place: request.place,
            recorded: Some(request),
        }
    }
}

impl Answers {
    pub(super) fn new(crawl: RecordedCrawl, timing: ReplayTiming, config: &Config) -> Answers {
        Answers {
            crawl,
            gaps: ReplayGaps::default(),
            follows: timing == ReplayTiming::AsRecorded,
            difference: None,
            sent: 0,
            is_over: false,
            max_body: config.fetch.max_body,
            filter: body_filter(&config.wanted),
        }
    }

    /// The order of the crawl is not followed any more: from this request on, or as it is over.
    pub(super) fn leave(&mut self, difference: Option<ReplayDifference>) {
        self.follows = false;
        self.is_over = difference.is_none();
        self.difference = self.difference.take().or(difference);
    }

    /// The recorded requests that were not sent in their order.
    pub(super) fn unsent(&self) -> u64 {
        self.crawl.request_count().saturating_sub(self.sent) as u64
    }

    /// Notes that a URL is asked for in the order of the records.
    pub(super) fn pass_over(&mut self, url: &CanonicalUrl) {
        let _ = self.crawl.next_request(url.as_str());
        self.sent += 1;
    }

    /// Begins an exchange: when it is sent and when it ends. Its answer stays on the disk until then.
    pub(super) fn begin(&mut self, request: &FetchRequest, now: Tick) -> Pending {
        let url = &request.url;
        let known = self.crawl.next_request(url.as_str());
        if self.is_over && self.difference.is_none() {
            self.difference = Some(ReplayDifference::Beyond(url.clone()));
        }
        if self.follows {
            self.difference = match &known {
                Some(known) if known.is_next => {
                    let is_over = tick(known.request.end) < now;
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
        let took = match &known {
            Some(known) => known.request.end.saturating_sub(known.request.start),
            None => self.crawl.usual_time(url.host_key().as_str()),
        };
        let followed = known.map(|known| known.request).filter(|_| self.follows);
        Pending {
            started: followed.map_or(now, |recorded| tick(recorded.start)),
            ended: followed.map_or(now + Duration::from_millis(took), |recorded| {
                tick(recorded.end)
            }),
            place: followed.map_or(u32::MAX, |recorded| recorded.place),
            recorded: known.map(|known| known.request),
        }
    }

    /// The first difference from the records of a replay that has ended.
    pub(super) fn difference(&self) -> Option<ReplayDifference> {
        let unsent = self.unsent();
        match &self.difference {
            None if self.follows && unsent > 0 => Some(ReplayDifference::Fewer(unsent)),
            difference => difference.clone(),
        }
    }

    /// Ends an exchange.
    pub(super) fn end(
        &mut self,
        request: &FetchRequest,
        pending: &Pending,
    ) -> Result<Exchange, Failure> {
        let Pending { started, ended, .. } = *pending;
        let answer = match &pending.recorded {
            Some(recorded) => self.answer(request, recorded),
            None => Err(NoAnswer::NotArchived),
        };
        let timed = |exchange: Exchange| Exchange {
            started,
            ended,
            first_byte: ended.since(started),
            ..exchange
        };
        let failure = pending.recorded.and_then(|recorded| recorded.failure);
        let failure = failure.filter(|kind| *kind != FailureKind::NotArchived);
        match (failure, answer) {
            (None, Ok(exchange)) => Ok(timed(exchange)),
            (Some(kind), answer) => {
                let cut = |exchange| Exchange {
                    truncated: Some(Truncation::by(kind)),
                    ..timed(exchange)
                };
                let address = self.crawl.address(request.url.host_key().as_str());
                Err(Failure {
                    address: address.map(|address| SocketAddr::new(address, request.url.port())),
                    detail: "as recorded".to_owned(),
                    answer: answer.ok().map(cut).map(Box::new),
                    ..Failure::recorded(kind, started, ended)
                })
            }
            (None, Err(why)) => {
                self.gaps.not_archived += 1;
                self.gaps.withheld += u64::from(matches!(why, NoAnswer::Withheld));
                let detail = match why {
                    NoAnswer::NotArchived => "the archive has no answer",
                    NoAnswer::Withheld => "the archive was not to have the answer",
                };
                Err(Failure {
                    detail: detail.to_owned(),
                    ..Failure::recorded(FailureKind::NotArchived, started, ended)
                })
            }
        }
    }

    /// The answer to a request of the records, whenever it came.
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
            (Some(record), _) => record,
            (None, Some(status)) if TRIED_AGAIN.contains(&status) => {
                let wait = wait_of(recorded);
                return Ok(exchange(url, address, status, wait, Bytes::new()));
            }
            // The record of an answer that no commit followed is cut off after a kill, and the next
            // run asks for the URL again.
            (None, Some(_)) => {
                let later = self.crawl.later_record_of(url.as_str(), recorded);
                later.ok_or(NoAnswer::NotArchived)?
            }
            (None, None) => return Err(NoAnswer::NotArchived),
        };
        let mut found = self
            .read(&record, url, address)
            .ok_or(NoAnswer::NotArchived)?;
        if recorded.status == Some(304) && !request.validators.is_empty() {
            found.status = 304;
            (found.body, found.truncated) = (Bytes::new(), None);
        }
        let filter = self.filter.as_ref().filter(|_| request.is_filtered);
        if filter.is_some_and(|filter| !filter.wants(found.status, &found.headers)) {
            // Nobody reads the body, so it does not matter whether the archive has it.
            found.body = Bytes::new();
            found.truncated = Some(Truncation::Unwanted);
            return Ok(found);
        }
        if record.kind() == "response" && record.field("WARC-Truncated") == Some("unspecified") {
            return Err(NoAnswer::Withheld);
        }
        let max_body = request.max_body.unwrap_or(self.max_body);
        let max_body = filter.map_or(max_body, |filter| filter.at_most(max_body));
        if found.status == 304 && request.validators.is_empty() {
            return Err(NoAnswer::NotArchived);
        }
        if found.body.len() as u64 > max_body {
            let kept = usize::try_from(max_body).unwrap_or(usize::MAX);
            found.body.truncate(kept);
            found.truncated = Some(Truncation::Length);
        } else if found.truncated == Some(Truncation::Length)
            && (found.body.len() as u64) < max_body
        {
            self.gaps.cut_bodies += 1;
        }
        Ok(found)
    }

    /// The exchange in a record; that of a revisit has the payload that is referred to.
    fn read(
        &self,
        record: &WarcRecord,
        url: &CanonicalUrl,
        address: Option<IpAddr>,
    ) -> Option<Exchange> {
        if record.kind() != "revisit" {
            let http = record.http()?;
            let truncated = match record.field("WARC-Truncated") {
                Some("time") => Some(Truncation::Time(FailureKind::Timeout)),
                Some("disconnect") => Some(Truncation::Disconnect(FailureKind::ShortBody)),
                Some(_) => Some(Truncation::Length),
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
        // A record without a head is shown with that of the payload.
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

/// An exchange whose times are not known yet.
fn exchange(
    url: &CanonicalUrl,
    address: Option<IpAddr>,
    status: u16,
    headers: HeaderMap,
    body: Bytes,
) -> Exchange {
    Exchange {
        url: url.clone(),
        sent: SentFields::default(),
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
        room: BodyMemory::default(),
    }
}

/// The fields of an answer of which the records have the status alone.
fn wait_of(recorded: &RecordedRequest) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // A page that is tried again is read by nobody.
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    if let Some(wait) = recorded.wait_asked {
        headers.insert(RETRY_AFTER, HeaderValue::from(wait.div_ceil(1000)));
    }
    headers
}

/// The fields of an answer as they came, from those of its record.
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
        let came = match is_renamed(name) {
            true => &name[ORIGINAL.len()..],
            // The record's own, which says how long its block is.
            false
                if has_own_length
                    && name.eq_ignore_ascii_case(CONTENT_LENGTH.as_str().as_bytes()) =>
            {
                continue;
            }
            false => name,
        };
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(came), HeaderValue::from_bytes(value))
        {
            headers.append(name, value);
        }
    }
    headers
}

#[cfg(test)]
mod tests;
