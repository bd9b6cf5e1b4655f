//! Which URLs are tried again after an answer or a failure.

use crawl_fetcher::{Exchange, Failure};
use crawl_scheduler::OutcomeKind;
use crawl_weburl::HostKey;
use foldhash::{HashSet, HashSetExt as _};

/// Decides whether a URL is tried again, behind the others of its origin.
///
/// Receives the end of each page request that reached its host, in
/// [`is_tried_again`](Self::is_tried_again), and hosts that left memory, in
/// [`forget`](Self::forget).
#[derive(Debug)]
pub(super) struct Retries {
    /// Maximum retries of a URL.
    max_retries: u32,
    /// Hosts that answered 429 or 503 and nothing else since.
    silent_hosts: HashSet<HostKey>,
}

impl Retries {
    pub(super) fn new(max_retries: u32) -> Retries {
        Retries {
            max_retries,
            silent_hosts: HashSet::new(),
        }
    }

    /// Returns whether to try a URL again after its attempt with this number, from 1.
    ///
    /// A 429 or a 503 concerns the host, so it settles none of the host's URLs while the host answers
    /// nothing else. A URL that is answered so while others are answered otherwise is settled like one
    /// that fails, and so is one whose answers name the time to come back: after the maximum of
    /// retries.
    pub(super) fn is_tried_again(
        &mut self,
        attempt: u32,
        host: &HostKey,
        kind: OutcomeKind,
        result: &Result<Box<Exchange>, Failure>,
    ) -> bool {
        let is_left = attempt <= self.max_retries;
        match kind {
            OutcomeKind::AskedToWait { retry_after } => {
                let was_silent = !self.silent_hosts.insert(host.clone());
                is_left || (was_silent && retry_after.is_none())
            }
            OutcomeKind::Answered => {
                self.silent_hosts.remove(host);
                is_left && is_worth_a_retry(result)
            }
            OutcomeKind::UrlFailed | OutcomeKind::NoConnection => {
                is_left && is_worth_a_retry(result)
            }
        }
    }

    /// A host left memory.
    pub(super) fn forget(&mut self, host: &HostKey) {
        self.silent_hosts.remove(host);
    }
}

/// Returns whether the same request may well succeed another time.
fn is_worth_a_retry(result: &Result<Box<Exchange>, Failure>) -> bool {
    match result {
        Ok(exchange) => matches!(exchange.status, 500 | 502 | 504),
        Err(failure) => failure.retry,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crawl_fetcher::{Failure, FailureKind, FailurePhase, Fault};
    use crawl_scheduler::OutcomeKind;
    use crawl_weburl::HostKey;

    use super::super::by_itself::at;
    use super::Retries;

    #[test]
    fn ours_429_settles_no_url_while_its_host_answers_nothing_else() {
        let mut retries = Retries::new(3);
        let host = HostKey::parse("a.example").unwrap();
        let failure = Failure {
            kind: FailureKind::Timeout,
            phase: FailurePhase::Request,
            fault: Fault::Url,
            retry: false,
            started: at(20),
            ended: at(20),
            address: None,
            detail: String::new(),
            answer: None,
        };
        let result = Err(failure);
        let wait = |retry_after| OutcomeKind::AskedToWait { retry_after };
        let (silent, named) = (wait(None), wait(Some(Duration::from_secs(1))));
        // After the maximum of retries only a host that stays silent has its URL tried again.
        for (attempt, kind, is_tried_again) in [
            (3, named, true),
            (4, named, false),
            (4, silent, true),
            (4, OutcomeKind::Answered, false),
            (4, silent, false),
            (4, silent, true),
        ] {
            let is_tried = retries.is_tried_again(attempt, &host, kind, &result);
            assert_eq!(is_tried, is_tried_again, "{attempt} {kind:?}");
        }
        retries.forget(&host);
        assert!(!retries.is_tried_again(4, &host, silent, &result));
    }
}
