//! The summary of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crawl_archive::rows::PageUsagePermissions;
use crawl_scheduler::Tick;
use crawl_weburl::{CanonicalUrl, HostKey};

use crate::crawl_totals::PageChangeCounts;
use crate::run_counters::{RunCounters, status_class};

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Nothing is pending.
    Finished,
    /// A budget is spent. Contains its option's name.
    Budget(&'static str),
    /// The budget of a group of hosts or of a site is spent. Only the config can set such budgets.
    /// Contains for example `max-pages of group ministries` or `max-pages of [site."example.org"]`.
    TableBudget(String),
    /// The user stopped the run. The same command resumes the crawl.
    Interrupted,
    /// This worker was ordered to hand its hosts over to the other workers.
    HandedOver,
    /// Every remaining host is parked, or is paused or unreachable for longer than the run may
    /// wait.
    NoFetchableHost(Vec<UnfetchableHost>),
}

impl EndReason {
    /// Returns [`EndReason::Interrupted`] if all pages are settled but a stop ended indexing
    /// early, because the next start must complete the index. Otherwise returns `self`.
    pub(crate) fn with_index(
        self,
        indexed: Option<&IndexSummary>,
        is_stopped_since: bool,
    ) -> EndReason {
        match indexed {
            Some(indexed) if is_stopped_since && !indexed.is_complete() => EndReason::Interrupted,
            _ => self,
        }
    }

    /// Returns whether the run ended because none of the remaining URLs could be fetched.
    pub(crate) fn is_for_good(&self) -> bool {
        match self {
            EndReason::Finished | EndReason::Budget(_) | EndReason::TableBudget(_) => true,
            EndReason::Interrupted | EndReason::HandedOver => false,
            EndReason::NoFetchableHost(hosts) => hosts.iter().all(|host| host.next_try.is_none()),
        }
    }
}

/// The beginning of [`UnfetchableHost::why`] if the login to the host's site failed.
pub const LOGIN_FAILED: &str = "its login failed";

/// The beginning of [`UnfetchableHost::why`] if the host's site refused the credentials of the
/// login. Refused credentials are sent again only after a change, or after the operator unparks the
/// host.
pub const LOGIN_REFUSED: &str = "its login was refused";

/// A host whose pending URLs could not be fetched before the run ended, because it is unreachable,
/// paused or parked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfetchableHost {
    /// The host.
    pub host: HostKey,
    /// Why the host can't be used: its answer, or the error.
    pub why: String,
    /// When the host may next get a request. `None` if it is parked.
    pub next_try: Option<Tick>,
    /// Whether the next start may try the host before `next_try`. True if the host waits only for
    /// its robots.txt, and the last request for that file got no answer.
    pub is_tried_at_start: bool,
}

/// What an origin's robots.txt states for all its URLs: a Crawl-delay, and statements about use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginWideRules {
    /// The origin: scheme, host and port.
    pub origin: String,
    /// The value of Crawl-delay, and its line number in robots.txt.
    pub crawl_delay: Option<(Duration, u32)>,
    /// The usage statements in robots.txt for the origin's first page. `None` if there are none.
    pub usage: Option<PageUsagePermissions>,
}

/// A seed that could not be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedFailure {
    /// The URL of the seed, or of the target of its redirect.
    pub url: CanonicalUrl,
    /// The failure.
    pub why: String,
}

/// The state of the index at the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexSummary {
    /// Pages that a search can find. `None` if the run stopped before they were counted.
    pub pages: Option<u64>,
    /// Pages left out because another page has the same text.
    pub duplicates: u64,
    /// Pages that this run left out, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Pages that stay in the index although they should have been removed, by reason. Pages stay
    /// if more than a tenth of the index would be removed at once, for a reason that may be a fault
    /// of the site.
    pub kept: BTreeMap<String, u64>,
    /// Pages whose canonical URL is outside the crawl.
    pub canonical_elsewhere: u64,
    /// Bytes of the index's log that were unread when the run's time was over. The next start reads
    /// them. A rebuild of the index from the archive includes their pages too.
    pub waiting_bytes: u64,
    /// Why the index must be rebuilt before it contains all pages, and whether there is an archive
    /// to rebuild it from.
    pub fault: Option<(IndexRebuildReason, ArchivePresence)>,
}

impl IndexSummary {
    /// Returns whether the index contains all pages of the crawl.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.pages.is_some() && self.waiting_bytes == 0 && self.fault.is_none()
    }
}

/// Why an index must be rebuilt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexRebuildReason {
    /// The files of the index or its log were changed or damaged. Contains a description of the
    /// mismatch.
    Damaged(String),
    /// The index was not built with all pages: it was enabled after some pages were settled, or was
    /// removed, or its build was interrupted.
    NotBuilt,
}

impl fmt::Display for IndexRebuildReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexRebuildReason::Damaged(what) => write!(f, "damaged: {what}"),
            IndexRebuildReason::NotBuilt => {
                f.write_str("not built yet with the pages of earlier runs")
            }
        }
    }
}

/// Whether the crawl has an archive to build an index from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchivePresence {
    /// There is an archive.
    Yes,
    /// The crawl has no archive, because it ran with `--warc off`.
    No,
}

/// Whether any server answered during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunConnectivity {
    /// No request was tried.
    Untried,
    /// No request got an HTTP response.
    Unanswered,
    /// A server sent an HTTP response.
    Answered,
}

impl RunConnectivity {
    /// Returns whether any server answered, judging by the counters of a run.
    pub(crate) fn of(counters: &RunCounters) -> RunConnectivity {
        let mut classes = counters.requests.keys().map(|(_, class)| *class);
        match classes.any(|class| class != status_class(None)) {
            true => RunConnectivity::Answered,
            false if counters.requests.is_empty() => RunConnectivity::Untried,
            false => RunConnectivity::Unanswered,
        }
    }
}

/// The summary of a run, which is printed when the run ends.
#[derive(Clone, Debug)]
pub struct RunSummary {
    /// How the run ended.
    pub ended: EndReason,
    /// Rows of `pages.jsonl`, over all runs of the round.
    pub pages: u64,
    /// Rows of `pages.jsonl` that this run wrote.
    pub pages_of_run: u64,
    /// Pages without a response, or with a status of 400 and above, over all runs of the round.
    pub failed: u64,
    /// Pending URLs.
    pub pending: u64,
    /// The number of the round, from 1.
    pub round: u32,
    /// How the pages of this round changed since their last visits.
    pub changes: PageChangeCounts,
    /// When the next page is due, in seconds since the Unix epoch. Ignores pages that are due in
    /// every round.
    pub next_due: Option<u32>,
    /// Requests of this run, including robots.txt and retries.
    pub requests: u64,
    /// How many of `requests` were for robots.txt.
    pub robots_requests: u64,
    /// Bytes of bodies, over all runs of the round.
    pub bytes: u64,
    /// Rows of `excluded.jsonl` by reason.
    pub excluded: BTreeMap<String, u64>,
    /// The search index, if one is built.
    pub indexed: Option<IndexSummary>,
    /// Links that are not fetchable URLs, by reason, in this run.
    pub unusable: BTreeMap<&'static str, u64>,
    /// Seeds that answered with a page, over all runs of the round. In a crawl with a sample, also
    /// counts the pages of the sample. Above 0 even in a later round in which no seed was due.
    pub seeds_fetched: u64,
    /// Seeds that could not be fetched in this run.
    pub seeds_failed: Vec<SeedFailure>,
    /// Files served as robots.txt in this run that are obviously something else, such as error
    /// pages. Contains only the first few.
    pub strange_robots: Vec<CanonicalUrl>,
    /// The rules of each origin, if this run only plans.
    pub rules: Vec<OriginWideRules>,
    /// The duration of this run.
    pub elapsed: Duration,
    /// The parked hosts, ordered by name.
    pub parked: Vec<HostKey>,
    /// Whether any server answered this run.
    pub reach: RunConnectivity,
    /// The crawl directory.
    pub output: PathBuf,
    /// The folders that this run created: the crawl directory and missing folders above it, the
    /// outermost first. Empty if the crawl directory existed, or if several workers share the
    /// crawl.
    pub created: Vec<PathBuf>,
    /// Whether the run continued an earlier one.
    pub resumed: bool,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{EndReason, IndexSummary, RunConnectivity};
    use crate::run_counters::{EndedRequest, RunCounters};

    #[test]
    fn one_answered_request_makes_a_run_answered() {
        let reach = |requests: &[(Option<u16>, Option<&'static str>)]| {
            let mut counters = RunCounters::default();
            for (status, failure) in requests {
                counters.request(EndedRequest {
                    purpose: "robots",
                    status: *status,
                    failure: *failure,
                    waited: None,
                    took: Duration::ZERO,
                    bytes: 0,
                });
            }
            RunConnectivity::of(&counters)
        };
        let (refused, silent) = (
            (None, Some("connect_refused")),
            (None, Some("first_byte_timeout")),
        );
        assert_eq!(reach(&[]), RunConnectivity::Untried);
        assert_eq!(reach(&[refused, silent]), RunConnectivity::Unanswered);
        assert_eq!(
            reach(&[refused, silent, (Some(503), None)]),
            RunConnectivity::Answered
        );
    }

    #[test]
    fn a_stop_that_cuts_indexing_short_interrupts_a_finished_crawl() {
        let complete = IndexSummary {
            pages: Some(7),
            ..IndexSummary::default()
        };
        let uncounted = IndexSummary::default();
        let unread = IndexSummary {
            waiting_bytes: 1,
            ..complete.clone()
        };
        for (indexed, is_stopped, expected) in [
            (None, true, EndReason::Finished),
            (Some(&complete), true, EndReason::Finished),
            (Some(&uncounted), false, EndReason::Finished),
            (Some(&uncounted), true, EndReason::Interrupted),
            (Some(&unread), true, EndReason::Interrupted),
        ] {
            assert_eq!(
                EndReason::Finished.with_index(indexed, is_stopped),
                expected
            );
        }
        let budget = EndReason::Budget("max-pages");
        assert_eq!(
            budget.with_index(Some(&uncounted), true),
            EndReason::Interrupted
        );
    }
}
