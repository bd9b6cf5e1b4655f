//! Links that wait for the answer of another spelling of their URL.

use std::collections::HashMap;

use crawl_frontier::{KnownState, UrlToAdmit};
use crawl_weburl::CanonicalUrl;

/// Maximum number of links that wait for another spelling of their URL.
/// Beyond the limit: fetched as they are.
const MAX_WAITING: usize = 10_000;

/// The state of another spelling of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherSpellingState {
    /// Requested, and answered with a page.
    Works,
    /// Requested, and answered with a redirect or an error of the client, so without a page.
    Fails,
    /// Excluded, or requested without a clear answer: a server error, 429, or none.
    Unclear,
    /// Pending, or being fetched.
    Awaited,
    /// Deferred or unknown.
    NotFetched,
}

impl OtherSpellingState {
    pub(super) fn of(state: Option<&KnownState>) -> OtherSpellingState {
        match state {
            Some(KnownState::Fetched { status }) => OtherSpellingState::of_status(Some(*status)),
            Some(KnownState::Failed { .. } | KnownState::Excluded(_)) => {
                OtherSpellingState::Unclear
            }
            Some(KnownState::Pending { .. } | KnownState::Leased { .. }) => {
                OtherSpellingState::Awaited
            }
            Some(KnownState::Deferred(_)) | None => OtherSpellingState::NotFetched,
        }
    }

    pub(super) fn of_status(status: Option<u16>) -> OtherSpellingState {
        match status {
            Some(200..=299 | 304) => OtherSpellingState::Works,
            Some(429) => OtherSpellingState::Unclear,
            Some(300..=499) => OtherSpellingState::Fails,
            _ => OtherSpellingState::Unclear,
        }
    }
}

/// The links that wait for the answer of another spelling of their URL, by that spelling.
///
/// The links are deferred in the frontier. After a restart,
/// [`readmit_deferred`](super::readmit_deferred) finds them there.
#[derive(Debug, Default)]
pub(super) struct LinksAwaitingOtherSpelling {
    by_other: HashMap<CanonicalUrl, Vec<UrlToAdmit>>,
    count: usize,
}

impl LinksAwaitingOtherSpelling {
    /// Adds a link that waits for the answer of `other`. Returns false if too many links wait.
    pub(super) fn add(&mut self, other: &CanonicalUrl, link: UrlToAdmit) -> bool {
        if self.count >= MAX_WAITING {
            return false;
        }
        let links = self.by_other.entry(other.clone()).or_default();
        if links.iter().all(|known| known.url != link.url) {
            links.push(link);
            self.count += 1;
        }
        true
    }

    pub(super) fn take(&mut self, other: &CanonicalUrl) -> Vec<UrlToAdmit> {
        let links = self.by_other.remove(other).unwrap_or_default();
        self.count -= links.len();
        links
    }
}

#[cfg(test)]
mod tests {
    use super::OtherSpellingState;

    #[test]
    fn only_an_answer_about_the_page_shows_whether_a_spelling_works() {
        for (status, expected) in [
            (Some(200), OtherSpellingState::Works),
            (Some(304), OtherSpellingState::Works),
            (Some(301), OtherSpellingState::Fails),
            (Some(404), OtherSpellingState::Fails),
            (Some(429), OtherSpellingState::Unclear),
            (Some(503), OtherSpellingState::Unclear),
            (None, OtherSpellingState::Unclear),
        ] {
            assert_eq!(
                OtherSpellingState::of_status(status),
                expected,
                "{status:?}"
            );
        }
    }
}
