//! Which URLs are retried after an answer or a failure.

use crawl_fetcher::{Exchange, ExchangeFailure};
use crawl_scheduler::OutcomeKind;
use crawl_weburl::HostKey;
use foldhash::{HashSet, HashSetExt as _};

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
}

impl RetryDecider {
    pub(super) fn new(max_retries: u32) -> RetryDecider {
        RetryDecider {
            max_retries,
            silent_hosts: HashSet::new(),
        }
    }

    /// Returns whether to retry a URL after an attempt. Attempts of a URL are numbered from 1.
    ///
    /// A 429 or 503 is about the host rather than the URL. If the host answers everything like
    /// this, the URL is retried without a limit. If the host gives other URLs another answer, or
    /// the answers have a Retry-After, the URL is settled after the maximum number of retries.
    ///
    /// Some servers answer a conditional request with an error. Retries have no conditions.
    pub(super) fn is_tried_again(
        &mut self,
        (attempt, is_conditional): (u32, bool),
        host: &HostKey,
        kind: OutcomeKind,
        result: &Result<Box<Exchange>, ExchangeFailure>,
    ) -> bool {
        let is_left = attempt <= self.max_retries;
        let is_worth_a_retry = || {
            let status = result.as_ref().map(|exchange| exchange.status);
            is_worth_a_retry(result) || (is_conditional && matches!(status, Ok(400 | 412 | 501)))
        };
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

    /// Forgets an evicted host.
    pub(super) fn forget(&mut self, host: &HostKey) {
        self.silent_hosts.remove(host);
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
    use crawl_weburl::HostKey;

    use super::super::fixtures::at;
    use super::RetryDecider;

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
        let wait = |retry_after| OutcomeKind::AskedToWait { retry_after };
        let (silent, named) = (wait(None), wait(Some(Duration::from_secs(1))));
        // After the maximum number of retries, a URL is retried only if its host answers everything
        // with 429 or 503, without a `Retry-After`.
        for (attempt, kind, is_tried_again) in [
            (3, named, true),
            (4, named, false),
            (4, silent, true),
            (4, OutcomeKind::Answered, false),
            (4, silent, false),
            (4, silent, true),
        ] {
            let is_tried = retries.is_tried_again((attempt, false), &host, kind, &result);
            assert_eq!(is_tried, is_tried_again, "{attempt} {kind:?}");
        }
        retries.forget(&host);
        assert!(!retries.is_tried_again((4, false), &host, silent, &result));
    }
}
