//! Copies and their compiled rules, in bounded memory.

use std::sync::Arc;

use crawl_policy::usage::TdmRep;
use crawl_policy::{AgentRules, ProductToken, Profile, VisitHours};
use crawl_scheduler::{RobotsPace, RobotsState, Tick};
use crawl_weburl::Origin;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::robots::copy::{RobotsCopy, RobotsForce};
use crate::robots::freshness::RobotsTimes;
use crate::robots::tdm::TdmFile;

/// The memory of an entry besides the file and its rules: keys, validators, the cache's own
/// bookkeeping. Bytes, rounded up.
const OVERHEAD: usize = 1024;

/// A copy with its rules.
#[derive(Debug)]
pub struct CompiledRobots {
    /// The copy.
    pub copy: RobotsCopy,
    /// The rules that follow from it.
    pub robots: AgentRules,
    /// The preferences of the origin's `tdmrep.json`, where it is held and can be read.
    pub tdmrep: Option<TdmRep>,
}

impl CompiledRobots {
    /// Compiles a copy for one agent and one reading.
    #[must_use]
    pub fn new(copy: RobotsCopy, agent: &ProductToken, profile: Profile) -> CompiledRobots {
        let robots = copy.compile(agent, profile);
        let tdmrep = match &copy.tdmrep {
            TdmFile::File(file) => TdmRep::parse(file),
            TdmFile::None | TdmFile::NotAsked => None,
        };
        CompiledRobots {
            copy,
            robots,
            tdmrep,
        }
    }

    /// The state of this origin's robots.txt at `now`, for the scheduler.
    #[must_use]
    pub fn state(&self, now: Tick, times: &RobotsTimes) -> RobotsState {
        match self.copy.force(now, times) {
            RobotsForce::Fresh { until } | RobotsForce::LastGood { until } => {
                RobotsState::InForce {
                    pace: self.pace(),
                    until,
                }
            }
            RobotsForce::Unreachable { retry_at } => RobotsState::Unreachable { retry_at },
            RobotsForce::Expired => RobotsState::Unknown,
        }
    }

    /// The pace that the file asks for.
    fn pace(&self) -> RobotsPace {
        // The last minute is within in a robots.txt.
        let hours = |hours: VisitHours| crawl_scheduler::DailyHours::new(hours.from, hours.to + 1);
        let rates = self.robots.request_rates().iter();
        let rates = rates.map(|rate| crawl_scheduler::PaceRate {
            requests: rate.requests,
            per: rate.per,
            during: rate.during.map(hours),
        });
        let visits = self.robots.visit_times().iter();
        RobotsPace {
            crawl_delay: self.robots.crawl_delay().map(|(delay, _)| delay),
            request_rates: rates.collect(),
            visit_times: visits.map(|visit| hours(visit.hours)).collect(),
        }
    }

    /// Bytes in memory, about.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let tdmrep = match &self.copy.tdmrep {
            // The file and what was read from it.
            TdmFile::File(file) => 2 * file.len(),
            TdmFile::None | TdmFile::NotAsked => 0,
        };
        OVERHEAD + self.copy.body.len() + self.robots.memory_bytes() + tdmrep
    }
}

/// The copies in use. What falls out is still in the frontier, in its durable form: the
/// cache bounds memory and nothing else. Whether a copy holds is a question for
/// [`RobotsCopy::force`] and the caller's clock.
#[derive(Clone, Debug)]
pub struct RobotsCache {
    copies: Cache<Origin, Arc<CompiledRobots>>,
}

impl RobotsCache {
    /// A cache of at most `bytes`, by [`CompiledRobots::memory_bytes`]. One copy is at most a few
    /// MiB; a cache smaller than that may not hold every copy.
    #[must_use]
    pub fn new(bytes: u64) -> RobotsCache {
        let weigh = |_: &Origin, compiled: &Arc<CompiledRobots>| {
            u32::try_from(compiled.memory_bytes()).unwrap_or(u32::MAX)
        };
        RobotsCache {
            copies: Cache::builder()
                .max_capacity(bytes)
                .weigher(weigh)
                // What was used last stays; a new copy is always taken in.
                .eviction_policy(EvictionPolicy::lru())
                .build(),
        }
    }

    /// The copy of this origin, if it is in memory.
    #[must_use]
    pub fn get(&self, origin: &Origin) -> Option<Arc<CompiledRobots>> {
        self.copies.get(origin)
    }

    /// Removes the copy of an origin.
    pub fn remove(&self, origin: &Origin) {
        self.copies.invalidate(origin);
    }

    /// Keeps a copy in place of the one before it.
    pub fn insert(&self, compiled: Arc<CompiledRobots>) {
        self.copies.insert(compiled.copy.origin.clone(), compiled);
    }
}

#[cfg(test)]
mod tests;
