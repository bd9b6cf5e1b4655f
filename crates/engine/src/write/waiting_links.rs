//! Links that wait for the answer of another spelling of their URL.

use std::collections::HashMap;

use crawl_frontier::{KnownState, UrlToAdmit};
use crawl_weburl::CanonicalUrl;

/// Maximum number of links that wait for another spelling of their URL.
/// Beyond the limit: fetched as they are.
const MAX_WAITING: usize = 10_000;

/// The state of another spelling of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherSpelling {
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

impl OtherSpelling {
    pub(super) fn of(state: Option<&KnownState>) -> OtherSpelling {
        match state {
            Some(KnownState::Fetched { status }) => OtherSpelling::of_status(Some(*status)),
            Some(KnownState::Failed { .. } | KnownState::Excluded(_)) => OtherSpelling::Unclear,
            Some(KnownState::Pending { .. } | KnownState::Leased { .. }) => OtherSpelling::Awaited,
            Some(KnownState::Deferred(_)) | None => OtherSpelling::NotFetched,
        }
    }

    pub(super) fn of_status(status: Option<u16>) -> OtherSpelling {
        match status {
            Some(200..=299 | 304) => OtherSpelling::Works,
            Some(429) => OtherSpelling::Unclear,
            Some(300..=499) => OtherSpelling::Fails,
            _ => OtherSpelling::Unclear,
        }
    }
}

/// The links that wait for the answer of another spelling of their URL, by that spelling.
///
/// The links are deferred in the frontier. After a restart,
/// [`readmit_deferred`](super::readmit_deferred) finds them there.
#[derive(Debug, Default)]
pub(super) struct WaitingLinks {
    by_other: HashMap<CanonicalUrl, Vec<UrlToAdmit>>,
    count: usize,
}

impl WaitingLinks {
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
    use super::OtherSpelling;

    #[test]
    fn only_an_answer_about_the_page_shows_whether_a_spelling_works() {
        for (status, expected) in [
            (Some(200), OtherSpelling::Works),
            (Some(304), OtherSpelling::Works),
            (Some(301), OtherSpelling::Fails),
            (Some(404), OtherSpelling::Fails),
            (Some(429), OtherSpelling::Unclear),
            (Some(503), OtherSpelling::Unclear),
            (None, OtherSpelling::Unclear),
        ] {
            assert_eq!(OtherSpelling::of_status(status), expected, "{status:?}");
        }
    }
}
