//! The summary of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crawl_archive::rows::PageUsage;
use crawl_scheduler::Tick;
use crawl_weburl::{CanonicalUrl, HostKey};

use crate::totals::Changes;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing is pending.
    Finished,
    /// A budget is spent. Contains the name of the option.
    Budget(&'static str),
    /// The budget of a group of hosts is spent, such as `max-pages of group ministries`.
    GroupBudget(String),
    /// The user stopped it. The same command resumes it.
    Interrupted,
    /// This worker was ordered to hand its hosts over to the other workers.
    HandedOver,
    /// All remaining hosts are parked, or rest or can't be reached for longer than allowed.
    Unreachable(Vec<UnreachableHost>),
}

impl Ended {
    /// Returns [`Ended::Interrupted`] if a stop cut indexing short after all pages were settled.
    /// The next start completes the index.
    pub(crate) fn with_index(self, indexed: Option<&Indexed>, is_stopped_since: bool) -> Ended {
        match indexed {
            Some(indexed) if is_stopped_since && !indexed.is_complete() => Ended::Interrupted,
            _ => self,
        }
    }

    /// Whether no remaining URL can be fetched in this run.
    pub(crate) fn is_for_good(&self) -> bool {
        match self {
            Ended::Finished | Ended::Budget(_) | Ended::GroupBudget(_) => true,
            Ended::Interrupted | Ended::HandedOver => false,
            Ended::Unreachable(hosts) => hosts.iter().all(|host| host.next_try.is_none()),
        }
    }
}

/// A host that never became reachable during the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreachableHost {
    /// The host.
    pub host: HostKey,
    /// The answer or the failure.
    pub why: String,
    /// When it may next get a request. `None` if it is parked.
    pub next_try: Option<Tick>,
}

/// Rules of an origin that do not concern a single URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginRules {
    /// Scheme, host and port.
    pub origin: String,
    /// The Crawl-delay and its line number.
    pub crawl_delay: Option<(Duration, u32)>,
    /// The usage statements in robots.txt for the first page. `None` if there are none.
    pub usage: Option<PageUsage>,
}

/// A seed that could not be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedFailure {
    /// The seed, or the target of its redirect.
    pub url: CanonicalUrl,
    /// The failure.
    pub why: String,
}

/// The state of the index at the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    /// Pages that a search can find. `None` if the run was stopped before they were counted.
    pub pages: Option<u64>,
    /// Pages left out because another page has the same text.
    pub duplicates: u64,
    /// Pages that this run left out, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Pages that would have left the index but stay, by reason: more than a tenth of the index
    /// would have left, for reasons that may be a fault of the site.
    pub kept: BTreeMap<String, u64>,
    /// Pages with a canonical URL outside of the crawl.
    pub canonical_elsewhere: u64,
    /// Bytes of the log that were unread when the time was over. The next start reads them, and a
    /// rebuilt index contains their pages.
    pub waiting_bytes: u64,
    /// Why the index lacks pages until it is rebuilt, and whether there is an archive to rebuild it
    /// from.
    pub fault: Option<(IndexFault, HasArchive)>,
}

impl Indexed {
    /// Whether the index holds all pages of the crawl.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.pages.is_some() && self.waiting_bytes == 0 && self.fault.is_none()
    }
}

/// Why an index must be rebuilt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexFault {
    /// The files of the index or the log were changed or damaged. Describes the mismatch.
    Damaged(String),
    /// The index was never built with all pages: it was enabled after some were settled, or
    /// removed, or the build was interrupted.
    NotBuilt,
}

impl fmt::Display for IndexFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexFault::Damaged(what) => write!(f, "damaged: {what}"),
            IndexFault::NotBuilt => f.write_str("not built yet with the pages of earlier runs"),
        }
    }
}

/// Whether the crawl has an archive to build an index from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HasArchive {
    /// Yes.
    Yes,
    /// No: the crawl ran with `--warc off`.
    No,
}

/// The summary of a run, for its last lines.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How the run ended.
    pub ended: Ended,
    /// Rows of `pages.jsonl`, over all runs of the round.
    pub pages: u64,
    /// Rows written by this run.
    pub pages_of_run: u64,
    /// Rows without an answer or with a status of 400 and above, over all runs of the round.
    pub failed: u64,
    /// Pending URLs.
    pub pending: u64,
    /// The number of the round, from 1.
    pub round: u32,
    /// The pages of the round, compared with their last visits.
    pub changes: Changes,
    /// When the first page is due that is not due in every round, in seconds since the Unix epoch.
    pub next_due: Option<u32>,
    /// Requests sent by this run, including robots.txt and retries.
    pub requests: u64,
    /// The subset of `requests` for robots.txt.
    pub robots_requests: u64,
    /// Bytes of bodies, over all runs of the round.
    pub bytes: u64,
    /// Rows of `excluded.jsonl` by reason.
    pub excluded: BTreeMap<String, u64>,
    /// The search index, if one is built.
    pub indexed: Option<Indexed>,
    /// Links that are not fetchable URLs, by reason, in this run.
    pub unusable: BTreeMap<&'static str, u64>,
    /// Seeds that were fetched, over all runs of the round. In later rounds, when seeds may not be
    /// due, and in crawls that draw a sample, counts pages instead.
    pub seeds_fetched: u64,
    /// Seeds that could not be fetched in this run.
    pub seeds_failed: Vec<SeedFailure>,
    /// Files requested as robots.txt in this run that are obviously something else, such as error
    /// pages. Only the first few.
    pub strange_robots: Vec<CanonicalUrl>,
    /// The rules of each origin, if the run only plans.
    pub rules: Vec<OriginRules>,
    /// Length of this run.
    pub elapsed: Duration,
    /// The parked hosts, ordered by name.
    pub parked: Vec<HostKey>,
    /// The crawl directory.
    pub output: PathBuf,
    /// Whether the run resumed an earlier one.
    pub resumed: bool,
}

#[cfg(test)]
mod tests {
    use super::{Ended, Indexed};

    #[test]
    fn a_stop_that_cuts_indexing_short_interrupts_a_finished_crawl() {
        let complete = Indexed {
            pages: Some(7),
            ..Indexed::default()
        };
        let uncounted = Indexed::default();
        let unread = Indexed {
            waiting_bytes: 1,
            ..complete.clone()
        };
        for (indexed, is_stopped, expected) in [
            (None, true, Ended::Finished),
            (Some(&complete), true, Ended::Finished),
            (Some(&uncounted), false, Ended::Finished),
            (Some(&uncounted), true, Ended::Interrupted),
            (Some(&unread), true, Ended::Interrupted),
        ] {
            assert_eq!(Ended::Finished.with_index(indexed, is_stopped), expected);
        }
        let budget = Ended::Budget("max-pages");
        assert_eq!(
            budget.with_index(Some(&uncounted), true),
            Ended::Interrupted
        );
    }
}
