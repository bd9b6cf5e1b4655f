//! The summary of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crawl_archive::rows::PageUsage;
use crawl_scheduler::Tick;
use crawl_weburl::{CanonicalUrl, HostKey};

use crate::totals::Changes;

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing is pending.
    Finished,
    /// A budget is spent; the option's name.
    Budget(&'static str),
    /// The budget of a group of hosts is spent, such as `max-pages of group ministries`.
    GroupBudget(String),
    /// The user asked for it; the same command goes on.
    Interrupted,
    /// This worker was asked to hand its hosts over to the others of its crawl.
    HandedOver,
    /// Only hosts are left that are parked, or rest or can't be reached for longer than allowed.
    Unreachable(Vec<UnreachableHost>),
}

impl Ended {
    /// Returns [`Ended::Interrupted`] if a stop cut the index short after all pages were settled: the
    /// next start completes the index.
    pub(crate) fn with_index(self, indexed: Option<&Indexed>, is_stopped_since: bool) -> Ended {
        match indexed {
            Some(indexed) if is_stopped_since && !indexed.is_complete() => Ended::Interrupted,
            _ => self,
        }
    }

    /// Nothing that is left will ever be asked for in this run, however long it goes on.
    pub(crate) fn is_for_good(&self) -> bool {
        match self {
            Ended::Finished | Ended::Budget(_) | Ended::GroupBudget(_) => true,
            Ended::Interrupted | Ended::HandedOver => false,
            Ended::Unreachable(hosts) => hosts.iter().all(|host| host.next_try.is_none()),
        }
    }
}

/// A host that was waited for in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreachableHost {
    /// The host.
    pub host: HostKey,
    /// Its answer, or the failure.
    pub why: String,
    /// When it may next be asked; none for one that is parked.
    pub next_try: Option<Tick>,
}

/// The rules of an origin that are no rule for one URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginRules {
    /// Scheme, host and port.
    pub origin: String,
    /// The Crawl-delay and its line.
    pub crawl_delay: Option<(Duration, u32)>,
    /// The statement of its robots.txt about the use of its first page; none where it says nothing.
    pub usage: Option<PageUsage>,
}

/// A seed that could not be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedFailure {
    /// The seed, or what it was redirected to.
    pub url: CanonicalUrl,
    /// The failure.
    pub why: String,
}

/// The outcome of the index in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    /// Pages that a search can find; none where the run was stopped before they were counted.
    pub pages: Option<u64>,
    /// Pages that stand for others with the same text.
    pub duplicates: u64,
    /// Pages that this run left out, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Pages that would have left the index and stay, by reason: more than a tenth of it would have,
    /// for reasons that may be a fault of the site.
    pub kept: BTreeMap<String, u64>,
    /// Pages that call an address outside of the crawl their own.
    pub canonical_elsewhere: u64,
    /// Bytes of the log that were not read when the time for it was over: the next start takes
    /// them up, and an index that is built anew has their pages.
    pub waiting_bytes: u64,
    /// Why the index lacks pages until it is built anew, and whether there is an archive to
    /// build it from.
    pub fault: Option<(IndexFault, HasArchive)>,
}

impl Indexed {
    /// Returns whether the index holds all pages of the crawl.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.pages.is_some() && self.waiting_bytes == 0 && self.fault.is_none()
    }
}

/// Why an index has to be built anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexFault {
    /// Its files, or the log, are not what was written. What does not fit.
    Damaged(String),
    /// It was never built with all pages: it was switched on after some had been settled, taken
    /// away, or the building ended before it was done.
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

/// The answer for a crawl: has it an archive that an index can be built from?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HasArchive {
    /// It has.
    Yes,
    /// It ran with `--warc off`.
    No,
}

/// The summary of a run, for its last lines.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The end of the run.
    pub ended: Ended,
    /// Rows of `pages.jsonl`, over all runs of the round.
    pub pages: u64,
    /// Rows written by this run.
    pub pages_of_run: u64,
    /// Rows without an answer or with a status of 400 and above, over all runs of the round.
    pub failed: u64,
    /// URLs that are pending.
    pub pending: u64,
    /// The number of the round, from 1.
    pub round: u32,
    /// The pages of the round, compared with their last visits.
    pub changes: Changes,
    /// When the first page is due that is not due in the next round anyway, in seconds since the
    /// Unix epoch.
    pub next_due: Option<u32>,
    /// Requests sent by this run, robots.txt and retries among them.
    pub requests: u64,
    /// Requests among them for robots.txt.
    pub robots_requests: u64,
    /// Bytes of bodies, over all runs of the round.
    pub bytes: u64,
    /// Rows of `excluded.jsonl` by reason.
    pub excluded: BTreeMap<String, u64>,
    /// The search index, where one is built.
    pub indexed: Option<Indexed>,
    /// Links that name nothing a crawler can ask for, by reason, in this run.
    pub unusable: BTreeMap<&'static str, u64>,
    /// Seeds that were fetched, over all runs of the round; in a later round, in which a seed may
    /// not be due, and in a crawl that draws a sample, pages stand for seeds.
    pub seeds_fetched: u64,
    /// Seeds that were not, in this run.
    pub seeds_failed: Vec<SeedFailure>,
    /// Files that were asked for as robots.txt in this run and are plainly none, such as
    /// error pages; the first few.
    pub strange_robots: Vec<CanonicalUrl>,
    /// The rules of each origin, in a run that only plans.
    pub rules: Vec<OriginRules>,
    /// Length of this run.
    pub elapsed: Duration,
    /// Hosts that are parked, in the order of their names.
    pub parked: Vec<HostKey>,
    /// The crawl's directory.
    pub output: PathBuf,
    /// True if the run went on with an earlier one.
    pub resumed: bool,
}

#[cfg(test)]
mod tests {
    use super::{Ended, Indexed};

    #[test]
    fn ours_a_stop_that_cuts_the_index_short_interrupts_a_finished_crawl() {
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
