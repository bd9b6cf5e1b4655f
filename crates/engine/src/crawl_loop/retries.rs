//! Which URLs are retried after an answer or a failure.

use crawl_fetcher::{Exchange, ExchangeFailure};
use crawl_frontier::Lease;
use crawl_scheduler::OutcomeKind;
use crawl_weburl::{CanonicalUrl, HostKey};
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};

use crate::messages::page_pipeline_stages::FactsBeforeFetch;

/// Decides whether a URL is retried. A retried URL is queued behind the other URLs of its origin.
///
/// Receives the end of each page request that reached its host, in
/// [`is_tried_again`](Self::is_tried_again), and evicted hosts, in [`forget`](Self::forget). Emits
/// no effects.
#[derive(Debug)]
pub(super) struct RetryDecider {
    /// Maximum retries of a URL.
    max_retries: u32,
    /// Hosts whose last answer to a page request was a 429 or 503.
    silent_hosts: HashSet<HostKey>,
    /// The URLs of each host to retry whose conditional request the server refused.
    refused_conditions: HashMap<HostKey, HashSet<CanonicalUrl>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct FetchAttempt<'a> {
    pub(super) url: &'a CanonicalUrl,
    /// The number of the attempt, from 1.
    pub(super) number: u32,
    /// Whether the request had a condition, such as `If-None-Match`.
    pub(super) is_conditional: bool,
}

impl FetchAttempt<'_> {
    pub(super) fn of<'a>(lease: &'a Lease, context: &FactsBeforeFetch) -> FetchAttempt<'a> {
        FetchAttempt {
            url: &lease.url,
            number: lease.attempt,
            is_conditional: !context.validators().is_empty(),
        }
    }
}

impl RetryDecider {
    pub(super) fn new(max_retries: u32) -> RetryDecider {
        RetryDecider {
            max_retries,
            silent_hosts: HashSet::new(),
            refused_conditions: HashMap::new(),
        }
    }

    /// Returns whether to retry a URL after an attempt.
    ///
    /// A 429 or 503 is about the host rather than the URL. If the host answers everything like
    /// this, the URL is retried without a limit. If the host gives other URLs another answer, or
    /// the answers have a Retry-After, the URL is settled after the maximum number of retries.
    ///
    /// Some servers answer a conditional request with an error. Then the retry has no condition
    /// ([`refused_condition`](Self::refused_condition)).
    pub(super) fn is_tried_again(
        &mut self,
        attempt: FetchAttempt<'_>,
        host: &HostKey,
        kind: OutcomeKind,
        result: &Result<Box<Exchange>, ExchangeFailure>,
    ) -> bool {
        let status = result.as_ref().map(|exchange| exchange.status);
        let refuses_condition =
            attempt.is_conditional && matches!(status, Ok(400 | 412 | 500 | 501));
        let is_tried_again =
            self.is_retry_due(attempt.number, host, kind, result, refuses_condition);
        if is_tried_again && refuses_condition {
            let urls = self.refused_conditions.entry(host.clone()).or_default();
            urls.insert(attempt.url.clone());
        } else if !is_tried_again && let Some(urls) = self.refused_conditions.get_mut(host) {
            urls.remove(attempt.url);
        }
        is_tried_again
    }

    fn is_retry_due(
        &mut self,
        attempt: u32,
        host: &HostKey,
        kind: OutcomeKind,
        result: &Result<Box<Exchange>, ExchangeFailure>,
        refuses_condition: bool,
    ) -> bool {
        let is_left = attempt <= self.max_retries;
        let is_worth_a_retry = || refuses_condition || is_worth_a_retry(result);
        // A Retry-After with any other status only delays the next request, such as that for the
        // target of a redirect.
        let answer = result.as_ref().ok();
        let is_about_host = answer.is_none_or(|exchange| matches!(exchange.status, 429 | 503));
        match kind {
            OutcomeKind::AskedToWait { retry_after } if is_about_host => {
                let was_silent = !self.silent_hosts.insert(host.clone());
                is_left || (was_silent && retry_after.is_none())
            }
            OutcomeKind::Answered | OutcomeKind::AskedToWait { .. } => {
                self.silent_hosts.remove(host);
                is_left && is_worth_a_retry()
            }
            OutcomeKind::UrlFailed | OutcomeKind::NoConnection => is_left && is_worth_a_retry(),
        }
    }

    /// Returns whether the server refused the conditional request of a URL that is retried.
    pub(super) fn refused_condition(&self, host: &HostKey, url: &CanonicalUrl) -> bool {
        let urls = self.refused_conditions.get(host);
        urls.is_some_and(|urls| urls.contains(url))
    }

    /// Forgets an evicted host.
    pub(super) fn forget(&mut self, host: &HostKey) {
        self.silent_hosts.remove(host);
        self.refused_conditions.remove(host);
    }
}

/// Returns whether a retry may succeed.
fn is_worth_a_retry(result: &Result<Box<Exchange>, ExchangeFailure>) -> bool {
    match result {
        Ok(exchange) => exchange.challenged || matches!(exchange.status, 500 | 502 | 504),
        Err(failure) => failure.retry,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crawl_fetcher::{ExchangeFailure, FailureKind, FailurePhase, FaultyParty};
    use crawl_scheduler::OutcomeKind;
    use crawl_weburl::{HostKey, canonicalize};

    use super::super::fixtures::at;
    use super::{FetchAttempt, RetryDecider};

    #[test]
    fn a_429_settles_no_url_of_a_silent_host() {
        let mut retries = RetryDecider::new(3);
        let host = HostKey::parse("a.example").unwrap();
        let failure = ExchangeFailure {
            kind: FailureKind::Timeout,
            phase: FailurePhase::Request,
            fault: FaultyParty::Url,
            retry: false,
            started: at(20),
            ended: at(20),
            address: None,
            detail: String::new(),
            signed: false,
            answer: None,
        };
        let result = Err(failure);
        let url = canonicalize(None, "http://a.example/").unwrap();
        let attempt = |number| FetchAttempt {
            url: &url,
            number,
            is_conditional: false,
        };
        let wait = |retry_after| OutcomeKind::AskedToWait { retry_after };
        let (silent, named) = (wait(None), wait(Some(Duration::from_secs(1))));
        // After the maximum number of retries, a URL is retried only if its host answers everything
        // with 429 or 503, without a `Retry-After`.
        for (number, kind, is_tried_again) in [
            (3, named, true),
            (4, named, false),
            (4, silent, true),
            (4, OutcomeKind::Answered, false),
            (4, silent, false),
            (4, silent, true),
        ] {
            let is_tried = retries.is_tried_again(attempt(number), &host, kind, &result);
            assert_eq!(is_tried, is_tried_again, "{number} {kind:?}");
        }
        retries.forget(&host);
        assert!(!retries.is_tried_again(attempt(4), &host, silent, &result));
    }
}
