//! Links that the crawl did not check, and links to servers that it could not reach.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crawl_archive::rows::ExcludedRow;
use crawl_weburl::{CanonicalUrl, canonicalize};
use serde::{Deserialize, Serialize};

use crate::broken_links::{is_demanded, is_wait, key};
use crate::error::RecordsError;
use crate::reported_crawl::unreachable_origin;
use crate::row_file_reader::{excluded, requests, waiting};

/// The [`UncheckedLink::reason`] of a link whose server answered 429 until the end of the crawl.
pub(super) const TOO_MANY_REQUESTS: &str = "too_many_requests";
/// The [`UncheckedLink::reason`] of a link that was not requested, because its server demanded a
/// wait.
const ASKED_TO_WAIT: &str = "asked_to_wait";
/// The [`UncheckedLink::reason`] of a link to a place in a page whose end was not read.
pub(super) const NOT_READ_TO_THE_END: &str = "not_read_to_the_end";
/// The [`RequestRow::purpose`](crawl_archive::rows::RequestRow::purpose) of a HEAD request.
const HEAD_REQUEST: &str = "check";
/// The statuses that demand a wait.
const WAITS: [u16; 2] = [429, 503];

/// A link on a page of the site. It is unknown whether the target works, so the link counts neither
/// as working nor as broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UncheckedLink {
    /// The page that has the link.
    pub page: String,
    /// The target of the link.
    pub to: String,
    /// Why the target was not checked. This is a reason of `excluded.jsonl`, `too_many_requests`,
    /// `asked_to_wait`, `not_read_to_the_end`, the reason why the crawl has to wait for the target's
    /// host, or what the server served in place of the page (`login_page`, `challenge`,
    /// `block_page`).
    pub reason: String,
    /// The link's text, if it has one.
    pub text: Option<String>,
}

impl UncheckedLink {
    /// Describes the reason in words.
    #[must_use]
    pub fn why(&self) -> &str {
        match self.reason.as_str() {
            "robots" => "robots.txt",
            "meta" => "robots meta tag",
            "header" => "X-Robots-Tag",
            "usage" => "usage preference",
            "address" => "private address",
            "action" => "looks like an action",
            "trap" => "looks like a trap",
            TOO_MANY_REQUESTS => "too many requests (429)",
            ASKED_TO_WAIT => "its server asked to wait (429 or 503)",
            NOT_READ_TO_THE_END => "the page was not read to its end",
            "login_page" => "login page",
            "block_page" => "block page",
            other => other,
        }
    }
}

/// Why a URL was never fetched.
pub(super) enum UnfetchedReason<'a> {
    /// The URL is excluded, or the crawl has to wait for its host. The value is the reason of an
    /// [`UncheckedLink`].
    Unchecked(&'a str),
    /// The server can't be reached. The value is the error.
    Unreachable(&'a str),
    /// The server answered every request with this status until the crawl gave up.
    Answered(u16),
}

/// The URLs that the crawl did not fetch, and the origins that it could not fetch from, with the
/// reasons.
#[derive(Debug, Default)]
pub(super) struct UnfetchedUrls {
    /// The reason for each URL that the rules of its site exclude.
    excluded: HashMap<u64, String>,
    /// The URLs of origins in `waiting` that the user's own limits exclude.
    limited: HashSet<u64>,
    /// For each origin with pending URLs, the reason why the crawl can't fetch from it.
    waiting: HashMap<String, String>,
    /// The status of each URL whose last response demanded a wait.
    demanded: HashMap<u64, u16>,
}

impl UnfetchedUrls {
    /// Reads `excluded.jsonl` and `waiting.jsonl`, and `requests.jsonl` if a host demanded a wait.
    /// Takes about 40 bytes per URL that the rules of its site exclude. URLs that only the user's
    /// own limits (scope, budgets, samples) exclude take memory only if their origin is
    /// unreachable. Skips the origins in `outages`, because each of them is reported as a fault.
    pub(super) fn read(
        dir: &Path,
        outages: &HashSet<String>,
    ) -> Result<UnfetchedUrls, RecordsError> {
        let mut unfetched = UnfetchedUrls::default();
        let mut rows = waiting(dir)?;
        while let Some(row) = rows.next_sound() {
            let row = row?;
            if let Some((origin, why)) = unreachable_origin(&row)
                && !outages.contains(origin)
            {
                unfetched.waiting.insert(origin.to_owned(), why.to_owned());
            }
        }
        let mut rows = excluded(dir)?;
        while let Some(row) = rows.next_sound() {
            unfetched.add_excluded(row?);
        }
        if unfetched.waiting.values().any(|why| is_demanded(why)) {
            unfetched.read_demands(dir)?;
        }
        Ok(unfetched)
    }

    /// Adds a row of `excluded.jsonl`, which replaces earlier rows of the same URL.
    fn add_excluded(&mut self, row: ExcludedRow) {
        let key = key(&row.url);
        if is_of_site(&row.reason) {
            self.limited.remove(&key);
            self.excluded.insert(key, row.reason);
            return;
        }
        self.excluded.remove(&key);
        let is_waiting = |url: CanonicalUrl| self.waiting.contains_key(url.origin_text());
        if !self.waiting.is_empty() && canonicalize(None, &row.url).is_ok_and(is_waiting) {
            self.limited.insert(key);
        }
    }

    /// Finds the URLs whose last response demanded a wait. Skips responses to HEAD requests,
    /// because the crawl sends a GET after each HEAD.
    fn read_demands(&mut self, dir: &Path) -> Result<(), RecordsError> {
        let mut rows = requests(dir)?;
        while let Some(row) = rows.next_sound() {
            let row = row?;
            if row.purpose == HEAD_REQUEST {
                continue;
            }
            match row.status {
                Some(status) if WAITS.contains(&status) => {
                    self.demanded.insert(key(&row.url), status);
                }
                _ => {
                    self.demanded.remove(&key(&row.url));
                }
            }
        }
        Ok(())
    }

    /// Returns why a URL was not fetched. `name` is the URL in the spelling that the crawl uses.
    /// `None` if the reason is unknown, or is a limit that the user set.
    pub(super) fn of(&self, url: &CanonicalUrl, name: &str) -> Option<UnfetchedReason<'_>> {
        if let Some(reason) = self.excluded.get(&key(name)) {
            return Some(UnfetchedReason::Unchecked(reason));
        }
        let detail = self.waiting.get(url.origin_text())?;
        if self.limited.contains(&key(name)) {
            return None;
        }
        Some(match detail {
            _ if is_demanded(detail) => match self.demanded.get(&key(name)) {
                Some(429) => UnfetchedReason::Unchecked(TOO_MANY_REQUESTS),
                Some(status) => UnfetchedReason::Answered(*status),
                None => UnfetchedReason::Unchecked(ASKED_TO_WAIT),
            },
            _ if is_wait(detail) => UnfetchedReason::Unchecked(detail),
            _ => UnfetchedReason::Unreachable(detail),
        })
    }
}

/// Returns whether the reason for an exclusion is a rule of a site: the site with the link, or the
/// site of the target. Also returns true for `address`, because visitors may be able to reach an
/// address that the crawl must not contact.
fn is_of_site(reason: &str) -> bool {
    matches!(
        reason,
        "robots" | "meta" | "header" | "nofollow" | "usage" | "address" | "action" | "trap"
    )
}
