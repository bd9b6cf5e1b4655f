//! The rules of each origin, as far as this run knows them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use crawl_fetcher::robots::{
    CompiledRobots, EXCLUDED_HOST, RobotsAnswer, RobotsCache, RobotsCopy, RobotsCopyState,
    RobotsTimes, TDMREP_PATH, TdmFile,
};
use crawl_fetcher::{Exchange, Failure, FailureKind, FetchRequest};
use crawl_frontier::{Exclusion, Frontier, FrontierError};
use crawl_policy::usage::UsagePurpose;
use crawl_policy::{ProductToken, Profile, RequestPath, RobotsOddity, RobotsOddityKind};
use crawl_scheduler::{Politeness, RobotsPace, RobotsState, Tick};
use crawl_weburl::{AddressClass, CanonicalUrl, HostKey, Origin, class_of_host, classify};
use foldhash::{HashMap, HashMapExt as _};

use crate::config::{Config, Extent, Forbidden, MAX_PER_OTHERS_HOST, MIN_OTHERS_DELAY};
use crate::summary::OriginRules;
use crate::trace_events::TraceEvents;
use crate::usage;

/// Bytes that compiled copies of robots.txt may take in memory. Others are compiled
/// anew from the state when a permit of their origin is used.
const MAX_CACHE_BYTES: u64 = 64 * 1024 * 1024;

/// Files that are no robots.txt and are named at the end, at most.
const MAX_STRANGE_FILES: usize = 20;

/// May pages of an origin be judged now?
pub(crate) enum RobotsStanding {
    /// Yes, by these rules.
    InForce(Arc<CompiledRobots>),
    /// No page of the origin may be asked for, since we may not connect to it, or since a replay
    /// does not know its rules.
    Refused(Exclusion),
    /// No page of the origin may be asked for: its robots.txt answered this, and the
    /// operator reads that as a closed site.
    Forbidden(u16),
    /// Its robots.txt comes first.
    Unknown,
}

/// The rules of all origins.
pub(crate) struct RobotsStates {
    agent: ProductToken,
    profile: Profile,
    times: RobotsTimes,
    forbidden: Forbidden,
    /// True if the crawl's purpose is one that a `tdmrep.json` can speak of.
    needs_tdmrep: bool,
    own_site: bool,
    /// True if some host is asked more quickly, or more at once, than a host of others may be.
    is_quick: bool,
    cache: RobotsCache,
    /// The rules by which a page was judged last: often they judge the next one too.
    last: Option<Arc<CompiledRobots>>,
    met: HashMap<Origin, MetOrigin>,
    /// Why the robots.txt of a host can't be had, for the end's message.
    unreachable: HashMap<HostKey, BTreeMap<Origin, String>>,
    /// Files that are plainly no robots.txt, the first few.
    strange: Vec<CanonicalUrl>,
    events: TraceEvents,
}

/// An origin that this run has met.
#[derive(Debug, Default)]
struct MetOrigin {
    /// The request that comes before those for its pages.
    pending_fetch: Option<PendingRobotsFetch>,
    /// Why none of its pages may be asked for.
    refused: Option<Exclusion>,
}

/// A request that follows the one for an origin's robots.txt and goes before its pages.
#[derive(Debug)]
pub(crate) enum PendingRobotsFetch {
    /// The next hop of the request for its robots.txt, and its number.
    Hop(CanonicalUrl, u8),
    /// Its `tdmrep.json`, and how often it was asked for already.
    TdmRep(u32),
}

impl RobotsStates {
    pub(crate) fn new(config: &Config) -> RobotsStates {
        RobotsStates {
            agent: config.agent.clone(),
            profile: config.profile,
            times: config.robots_times,
            forbidden: config.robots_forbidden,
            needs_tdmrep: config.extent != Extent::Plan
                && matches!(
                    config.purpose,
                    Some(UsagePurpose::AiInput | UsagePurpose::TrainAi)
                ),
            own_site: config.own_site,
            is_quick: is_quick(&config.politeness),
            cache: RobotsCache::new(MAX_CACHE_BYTES),
            last: None,
            met: HashMap::new(),
            unreachable: HashMap::new(),
            strange: Vec::new(),
            events: TraceEvents::new(config),
        }
    }

    /// The rules of each origin that this run met, as far as they can be had, in the order of their
    /// text.
    pub(super) fn rules(&self, frontier: &dyn Frontier) -> Vec<OriginRules> {
        let compiled = self.met.keys().filter_map(|origin| {
            let compiled = self.load(origin, frontier).ok()??;
            Some((origin, compiled))
        });
        let mut rules: Vec<_> = compiled
            .map(|(origin, compiled)| OriginRules {
                origin: origin.to_string(),
                crawl_delay: compiled.robots.crawl_delay(),
                usage: usage::of_origin(&compiled),
            })
            .collect();
        rules.sort_by(|one, other| one.origin.cmp(&other.origin));
        rules
    }

    /// Takes the files that are plainly no robots.txt, the first few.
    pub(super) fn take_strange(&mut self) -> Vec<CanonicalUrl> {
        std::mem::take(&mut self.strange)
    }

    /// Some host is asked more quickly from now on than a host of others may be.
    pub(crate) fn be_quick(&mut self) {
        self.is_quick = true;
    }

    /// Other politeness is in force. The pace to which origins are to keep from now on that were met
    /// before, where that asks some hosts more quickly than hosts of others may be asked.
    pub(super) fn take_politeness(
        &mut self,
        now: Tick,
        config: &Config,
        frontier: &dyn Frontier,
    ) -> Result<Vec<(Origin, RobotsPace)>, FrontierError> {
        self.times = config.robots_times;
        if self.is_quick || !is_quick(&config.politeness) {
            return Ok(Vec::new());
        }
        self.be_quick();
        let mut paces = Vec::new();
        for origin in self.met.keys() {
            if let Some(compiled) = self.load(origin, frontier)?
                && let RobotsState::InForce { pace, .. } = self.state(now, &compiled, None)
            {
                paces.push((origin.clone(), pace));
            }
        }
        paces.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(paces)
    }

    /// Returns whether this run knows the origin already.
    pub(crate) fn is_met(&self, origin: &Origin) -> bool {
        self.met.contains_key(origin)
    }

    /// Takes up the state that an earlier run left of an origin that this run meets for the first
    /// time.
    pub(crate) fn meet(
        &mut self,
        now: Tick,
        origin: &Origin,
        frontier: &dyn Frontier,
    ) -> Result<Option<RobotsState>, FrontierError> {
        self.met.insert(origin.clone(), MetOrigin::default());
        let Some(compiled) = self.load(origin, frontier)? else {
            return Ok(None);
        };
        // The copy may be of a run with another purpose, or cut off before it was whole.
        if self.wants_tdmrep(&compiled) && compiled.copy.tdmrep == TdmFile::NotAsked {
            return Ok(None);
        }
        let state = self.state(now, &compiled, None);
        if let (RobotsState::Unreachable { .. }, RobotsCopyState::Unreachable { why, .. }) =
            (&state, &compiled.copy.state)
        {
            let why = why_unreachable(compiled.copy.status, why);
            self.note_unreachable(origin, why);
        }
        // Where nothing answered, nobody asked for a rest: a new start may ask at once.
        let is_asked_anew =
            matches!(state, RobotsState::Unreachable { .. }) && compiled.copy.status.is_none();
        Ok((!is_asked_anew).then_some(state))
    }

    /// The rules that an origin's pages are judged by.
    pub(crate) fn standing(
        &mut self,
        origin: &Origin,
        frontier: &dyn Frontier,
    ) -> Result<RobotsStanding, FrontierError> {
        if let Some(why) = self.met.get(origin).and_then(|met| met.refused.clone()) {
            return Ok(RobotsStanding::Refused(why));
        }
        let last = self.last.take().filter(|last| last.copy.origin == *origin);
        let compiled = match last {
            Some(last) => Some(last),
            None => self.load(origin, frontier)?,
        };
        self.last.clone_from(&compiled);
        Ok(match compiled {
            None => RobotsStanding::Unknown,
            Some(compiled) => match self.closed_by(&compiled.copy) {
                Some(status) => RobotsStanding::Forbidden(status),
                None => RobotsStanding::InForce(compiled),
            },
        })
    }

    /// The status by which an origin's robots.txt closes it.
    fn closed_by(&self, copy: &RobotsCopy) -> Option<u16> {
        let denies = self.forbidden == Forbidden::Deny && copy.state == RobotsCopyState::None;
        copy.status
            .filter(|status| denies && matches!(status, 401 | 403))
    }

    /// Returns whether an origin's `tdmrep.json` is to be asked for, by rules that are in force.
    pub(crate) fn wants_tdmrep(&self, compiled: &CompiledRobots) -> bool {
        let known = !matches!(compiled.copy.state, RobotsCopyState::Unreachable { .. });
        self.needs_tdmrep
            && known
            && self.closed_by(&compiled.copy).is_none()
            && RequestPath::new(TDMREP_PATH)
                .is_ok_and(|path| compiled.robots.judge_path(&path).is_allowed())
    }

    pub(crate) fn load(
        &self,
        origin: &Origin,
        frontier: &dyn Frontier,
    ) -> Result<Option<Arc<CompiledRobots>>, FrontierError> {
        if let Some(compiled) = self.cache.get(origin) {
            return Ok(Some(compiled));
        }
        let Some(bytes) = frontier.robots(origin)? else {
            return Ok(None);
        };
        // A copy that can't be read is as none: robots.txt is asked for again.
        let Ok(copy) = RobotsCopy::from_bytes(&bytes) else {
            return Ok(None);
        };
        Ok(Some(self.compile(copy)))
    }

    /// The scheduler's part of an origin's rules. `address` is where the origin
    /// answered, where that is known.
    pub(crate) fn state(
        &self,
        now: Tick,
        compiled: &CompiledRobots,
        address: Option<IpAddr>,
    ) -> RobotsState {
        match compiled.state(now, &self.times) {
            RobotsState::InForce { mut pace, until }
                if !self.own_site
                    && self.is_quick
                    && may_be_anothers(&compiled.copy.origin.host_key(), address) =>
            {
                pace.crawl_delay = Some(pace.crawl_delay.unwrap_or_default().max(MIN_OTHERS_DELAY));
                RobotsState::InForce { pace, until }
            }
            state => state,
        }
    }

    /// The request that asks for an origin's robots.txt, with the validators of the copy
    /// that is held where it was found at `url`.
    pub(crate) fn request(
        &self,
        of: &Origin,
        url: CanonicalUrl,
        frontier: &dyn Frontier,
    ) -> Result<FetchRequest, FrontierError> {
        let held = self.load(of, frontier)?;
        let validators = held
            .map(|held| held.copy.validators_for(&url))
            .unwrap_or_default();
        Ok(FetchRequest::robots(url, validators))
    }

    pub(crate) fn take_pending_fetch(&mut self, of: &Origin) -> Option<PendingRobotsFetch> {
        self.met.get_mut(of)?.pending_fetch.take()
    }

    /// The next hop of the request for an origin's robots.txt.
    pub(crate) fn pending_hop(&self, of: &Origin) -> Option<&CanonicalUrl> {
        match &self.met.get(of)?.pending_fetch {
            Some(PendingRobotsFetch::Hop(url, _)) => Some(url),
            _ => None,
        }
    }

    pub(crate) fn set_pending_fetch(&mut self, of: &Origin, pending_fetch: PendingRobotsFetch) {
        self.met.entry(of.clone()).or_default().pending_fetch = Some(pending_fetch);
    }

    /// The origin's host leaves memory: it is met anew when its URLs wait again.
    pub(crate) fn forget(&mut self, of: &Origin) {
        self.last = None;
        self.met.remove(of);
    }

    /// The pace that an origin asks for which this run has not met, by a copy that still holds.
    pub(crate) fn pace_of(
        &self,
        now: Tick,
        origin: &Origin,
        frontier: &dyn Frontier,
    ) -> Result<Option<RobotsPace>, FrontierError> {
        if self.is_met(origin) {
            return Ok(None);
        }
        let compiled = self.load(origin, frontier)?;
        let state = compiled.map(|compiled| self.state(now, &compiled, None));
        Ok(match state {
            Some(RobotsState::InForce { pace, .. }) => Some(pace),
            _ => None,
        })
    }

    /// No page of the origin may be asked for.
    pub(crate) fn refuse(&mut self, of: &Origin, why: Exclusion) {
        self.met.entry(of.clone()).or_default().refused = Some(why);
    }

    /// Returns whether no page of an origin may be asked for, since its robots.txt can't be had
    /// and no older copy serves.
    pub(super) fn is_unreachable(
        &self,
        now: Tick,
        origin: &Origin,
        frontier: &dyn Frontier,
    ) -> Result<bool, FrontierError> {
        let state = self
            .load(origin, frontier)?
            .map(|compiled| self.state(now, &compiled, None));
        Ok(matches!(state, Some(RobotsState::Unreachable { .. })))
    }

    fn note_unreachable(&mut self, origin: &Origin, why: String) {
        let origins = self.unreachable.entry(origin.host_key()).or_default();
        origins.insert(origin.clone(), why);
    }

    /// Returns why an origin's robots.txt is unreachable.
    pub(crate) fn why_unreachable(&self, origin: &Origin) -> Option<&str> {
        let origins = self.unreachable.get(&origin.host_key())?;
        origins.get(origin).map(String::as_str)
    }

    /// Returns why a host's robots.txt files are unreachable, with the URL of each.
    pub(crate) fn why_unreachable_host(&self, host: &HostKey) -> Option<String> {
        let origins = self.unreachable.get(host)?;
        let reasons = origins.iter().map(|(origin, why)| {
            let words = why.strip_prefix("robots.txt").unwrap_or(why);
            format!("{}{words}", origin.robots_url())
        });
        let reasons: Vec<String> = reasons.collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    pub(crate) fn keep(&mut self, copy: RobotsCopy) -> Arc<CompiledRobots> {
        self.last = None;
        self.compile(copy)
    }

    fn compile(&self, copy: RobotsCopy) -> Arc<CompiledRobots> {
        let compiled = Arc::new(CompiledRobots::new(copy, &self.agent, self.profile));
        self.cache.insert(Arc::clone(&compiled));
        compiled
    }

    /// The copy of an origin's robots.txt is kept no more.
    pub(crate) fn drop_copy(&mut self, origin: &Origin) {
        self.last = None;
        self.cache.remove(origin);
    }

    pub(crate) fn learn(
        &mut self,
        of: &Origin,
        answer: &RobotsAnswer,
        result: &Result<Exchange, Failure>,
        frontier: &dyn Frontier,
    ) -> Result<Arc<CompiledRobots>, FrontierError> {
        let held = self.load(of, frontier)?;
        let held = held.as_ref().map(|held| &held.copy);
        let copy = RobotsCopy::learn(of, held, answer, result, &self.times);
        match &copy.state {
            RobotsCopyState::Unreachable { why, .. } => {
                let why = match result {
                    // Whose certificate it is that fails says what to do.
                    Err(failure) if failure.kind == FailureKind::TlsFailed => {
                        format!("robots.txt: {failure}")
                    }
                    _ => why_unreachable(copy.status, why),
                };
                self.note_unreachable(of, why);
            }
            RobotsCopyState::Rules | RobotsCopyState::None => {
                if let Some(origins) = self.unreachable.get_mut(&of.host_key()) {
                    origins.remove(of);
                }
            }
        }
        let compiled = self.keep(copy);
        self.note_strange(&compiled);
        Ok(compiled)
    }

    /// Remembers a file that is plainly no robots.txt. It is read all the same, as RFC 9309
    /// section 2.3.1.5 has it.
    fn note_strange(&mut self, compiled: &CompiledRobots) {
        let mut oddities = compiled.robots.oddities().iter();
        let is_strange = |oddity: &RobotsOddity| {
            matches!(
                oddity.what,
                RobotsOddityKind::Markup | RobotsOddityKind::Utf16
            )
        };
        let url = &compiled.copy.url;
        if let Some(oddity) = oddities.find(|oddity| is_strange(oddity))
            && compiled.copy.good_at == Some(compiled.copy.fetched_at)
            && !self.strange.contains(url)
        {
            self.events.strange_robots(url, oddity);
            if self.strange.len() < MAX_STRANGE_FILES {
                self.strange.push(url.clone());
            }
        }
    }
}

/// The words for a robots.txt that can't be had.
fn why_unreachable(status: Option<u16>, why: &str) -> String {
    match status {
        Some(status) if why == "encoding" => {
            format!("robots.txt answered {status} in an encoding that can't be undone")
        }
        Some(status) if why == EXCLUDED_HOST => {
            format!("robots.txt answered {status}, to a host that --exclude-host leaves out")
        }
        Some(status) => format!("robots.txt answered {status}"),
        None => format!("robots.txt: {why}"),
    }
}

/// Returns whether the operator asks some host for more than a host of others is asked for.
fn is_quick(politeness: &Politeness) -> bool {
    let sites = || politeness.sites.iter().map(|(_, terms)| terms);
    let delays = sites().filter_map(|terms| terms.delay);
    let widths = sites().filter_map(|terms| terms.per_host);
    delays
        .chain([politeness.delay])
        .any(|delay| delay < MIN_OTHERS_DELAY)
        || widths
            .chain([politeness.per_host])
            .any(|width| width > MAX_PER_OTHERS_HOST)
}

/// Returns whether a host may be someone else's: any but those at loopback and private addresses.
pub(crate) fn may_be_anothers(host: &HostKey, address: Option<IpAddr>) -> bool {
    let class = address.map(classify).or_else(|| class_of_host(host.host()));
    !matches!(class, Some(AddressClass::Loopback | AddressClass::Private))
}

#[cfg(test)]
mod tests;
