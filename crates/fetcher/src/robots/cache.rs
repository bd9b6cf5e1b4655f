//! A cache for copies of robots.txt and their compiled rules, in bounded memory.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, OnceLock};

use crawl_policy::usage_statements::TdmReservationList;
use crawl_policy::{AgentRules, ProductToken, RobotsProfile, VisitHours};
use crawl_scheduler::{PaceFromRobots, RobotsState, Tick};
use crawl_weburl::{CanonicalUrl, Origin, canonicalize};
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::robots::copy::{RobotsCopy, RobotsFreshness};
use crate::robots::tdm_reservation_copy::TdmReservationCopy;
use crate::robots::time_limits::RobotsTimeLimits;

/// Bytes of an entry besides the file and its rules, rounded up: keys, validators, and the cache's
/// bookkeeping.
const OVERHEAD: usize = 1024;

/// A copy of robots.txt with its compiled rules.
#[derive(Debug)]
pub struct CompiledRobots {
    /// The copy that the rules were compiled from.
    pub copy: RobotsCopy,
    /// The rules compiled from the copy.
    pub robots: AgentRules,
    /// The preferences in the origin's `tdmrep.json`, if it was fetched and is valid.
    pub tdmrep: Option<TdmReservationList>,
    named_sitemaps: OnceLock<NamedSitemaps>,
}

/// The sitemaps that a robots.txt names, as sorted hashes of their canonical URLs. Hashes take less
/// memory than the lines.
#[derive(Debug)]
struct NamedSitemaps {
    hasher: RandomState,
    hashes: Box<[u64]>,
}

impl CompiledRobots {
    /// Compiles a copy for one product token and one profile.
    #[must_use]
    pub fn new(copy: RobotsCopy, agent: &ProductToken, profile: RobotsProfile) -> CompiledRobots {
        let robots = copy.compile(agent, profile);
        let tdmrep = match &copy.tdmrep {
            TdmReservationCopy::File(file) => TdmReservationList::parse(file),
            TdmReservationCopy::None | TdmReservationCopy::NotAsked => None,
        };
        CompiledRobots {
            copy,
            robots,
            tdmrep,
            named_sitemaps: OnceLock::new(),
        }
    }

    /// Returns whether the file names a sitemap. The first call canonicalizes the URLs of all
    /// sitemaps that the file names.
    #[must_use]
    pub fn names_sitemap(&self, sitemap: &CanonicalUrl) -> bool {
        let named = self.named_sitemaps.get_or_init(|| {
            let robots_url = self.copy.origin.robots_url();
            let hasher = RandomState::new();
            let names = self.robots.sitemaps().iter();
            let urls = names.flat_map(|name| canonicalize(Some(&robots_url), name.url.as_ref()));
            let mut hashes: Box<[u64]> = urls.map(|url| hasher.hash_one(url)).collect();
            hashes.sort_unstable();
            NamedSitemaps { hasher, hashes }
        });
        let hash = named.hasher.hash_one(sitemap);
        named.hashes.binary_search(&hash).is_ok()
    }

    /// Returns the state of this origin's robots.txt at `now`, for the scheduler.
    #[must_use]
    pub fn state(&self, now: Tick, times: &RobotsTimeLimits) -> RobotsState {
        match self.copy.force(now, times) {
            RobotsFreshness::Fresh { until } | RobotsFreshness::LastGood { until } => {
                RobotsState::InForce {
                    pace: self.pace(),
                    until,
                }
            }
            RobotsFreshness::Unreachable { retry_at } => RobotsState::Unreachable { retry_at },
            RobotsFreshness::Expired => RobotsState::Unknown,
        }
    }

    /// Returns the pace that the file sets.
    fn pace(&self) -> PaceFromRobots {
        // `hours.to` is inclusive in a robots.txt, but not in `DailyHours`.
        let hours = |hours: VisitHours| crawl_scheduler::DailyHours::new(hours.from, hours.to + 1);
        let rates = self.robots.request_rates().iter();
        let rates = rates.map(|rate| crawl_scheduler::RobotsRequestRate {
            requests: rate.requests,
            per: rate.per,
            during: rate.during.map(hours),
        });
        let visits = self.robots.visit_times().iter();
        PaceFromRobots {
            crawl_delay: self.robots.crawl_delay().map(|(delay, _)| delay),
            request_rates: rates.collect(),
            visit_times: visits.map(|visit| hours(visit.hours)).collect(),
        }
    }

    /// Returns the approximate memory use in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let tdmrep = match &self.copy.tdmrep {
            // The file takes about its own length, and so does its parsed form.
            TdmReservationCopy::File(file) => 2 * file.len(),
            TdmReservationCopy::None | TdmReservationCopy::NotAsked => 0,
        };
        OVERHEAD + self.copy.body.len() + self.robots.memory_bytes() + tdmrep
    }
}

/// The copies of robots.txt in use. The cache only bounds memory: a copy evicted from it is still
/// stored in the frontier. To check whether a copy is in force, call [`RobotsCopy::force`] with the
/// current time.
#[derive(Clone, Debug)]
pub struct RobotsCache {
    copies: Cache<Origin, Arc<CompiledRobots>>,
}

impl RobotsCache {
    /// Creates a cache of at most `bytes`, as counted by [`CompiledRobots::memory_bytes`]. One copy
    /// takes up to a few MiB, so a smaller cache can't hold every copy.
    #[must_use]
    pub fn new(bytes: u64) -> RobotsCache {
        let weigh = |_: &Origin, compiled: &Arc<CompiledRobots>| {
            u32::try_from(compiled.memory_bytes()).unwrap_or(u32::MAX)
        };
        RobotsCache {
            copies: Cache::builder()
                .max_capacity(bytes)
                .weigher(weigh)
                // LRU keeps the most recently used copies and always admits a new one.
                .eviction_policy(EvictionPolicy::lru())
                .build(),
        }
    }

    /// Returns the copy of this origin, if it is in memory.
    #[must_use]
    pub fn get(&self, origin: &Origin) -> Option<Arc<CompiledRobots>> {
        self.copies.get(origin)
    }

    /// Removes the copy of an origin.
    pub fn remove(&self, origin: &Origin) {
        self.copies.invalidate(origin);
    }

    /// Adds a copy, replacing any earlier one.
    pub fn insert(&self, compiled: Arc<CompiledRobots>) {
        self.copies.insert(compiled.copy.origin.clone(), compiled);
    }
}

#[cfg(test)]
mod tests;
