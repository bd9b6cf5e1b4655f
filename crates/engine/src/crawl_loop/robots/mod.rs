//! Robots exclusion: the rules of each origin, and the requests that fetch them.

mod origin_rules_requests;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use crawl_archive::rows::RobotsVerdict;
use crawl_fetcher::robots::{
    CompiledRobots, EXCLUDED_HOST, RobotsCache, RobotsCopy, RobotsFetchResult, RobotsRulesState,
    RobotsTimeLimits, TDMREP_PATH, TdmReservationCopy,
};
use crawl_fetcher::{Exchange, ExchangeFailure, FetchRequest, Secrets};
use crawl_frontier::{Frontier, FrontierError, Lease, NotFetchedReason, Reason, UrlKind};
use crawl_policy::usage_statements::UsagePurpose;
use crawl_policy::{
    PageDirectives, ProductToken, RequestPath, RobotsOddity, RobotsOddityKind, RobotsProfile,
};
use crawl_scheduler::{PaceFromRobots, Politeness, RobotsState, Tick};
use crawl_weburl::{AddressClass, CanonicalUrl, HostKey, Origin, class_of_host, classify};
use foldhash::{HashMap, HashMapExt as _};

pub(super) use self::origin_rules_requests::{RobotsReaction, RobotsStep, open_without_robots};
use super::request_rows;
use crate::config::{
    Config, ForbiddenRobotsPolicy, MAX_PER_OTHERS_HOST, MIN_OTHERS_DELAY, RunMode,
};
use crate::messages::TdmRepAttempt;
use crate::messages::page_pipeline_stages::FactsBeforeFetch;
use crate::revisit::unread_link_kinds::UnreadLinkKinds;
use crate::summary::OriginWideRules;
use crate::trace_events::TraceEventEmitter;
use crate::usage_preferences;

/// Maximum bytes of compiled copies of robots.txt in memory. An evicted copy is compiled again from
/// the stored one when its origin gets a permit.
const MAX_CACHE_BYTES: u64 = 64 * 1024 * 1024;

/// Maximum number of files to report at the end of a run because they are clearly not a robots.txt.
const MAX_STRANGE_FILES: usize = 20;

/// Whether pages of an origin may be judged now.
pub(crate) enum RobotsAvailability {
    /// Pages may be judged by these rules.
    InForce(Arc<CompiledRobots>),
    /// No page of the origin may be fetched: either the fetcher must not connect to the origin's
    /// address, or a replay doesn't know the origin's rules.
    Refused(NotFetchedReason),
    /// No page of the origin may be fetched: robots.txt was answered with this status, and the
    /// operator's settings treat that as a closed site.
    Forbidden(u16),
    /// The origin's robots.txt must be fetched first.
    Unknown,
}

/// Whether a leased URL may be fetched.
pub(crate) enum RobotsJudgement {
    /// The URL may be fetched. The label and the previous visit must still be added to the context.
    Allowed(FactsBeforeFetch),
    Refused(NotFetchedReason),
    /// The origin's robots.txt must be fetched first.
    RobotsFirst,
}

/// The rules of all origins, and the next step to get the rules that are not known.
///
/// - An origin that is not in memory ([`is_met`](Self::is_met)) is reported with
///   [`meet`](Self::meet), which returns its state from earlier runs, and
///   [`kept_paces`](Self::kept_paces). It is forgotten with [`forget`](Self::forget).
/// - For a permit for its rules, [`job`](Self::job) or [`pending_job`](Self::pending_job) returns
///   the request. The result goes to [`robots_fetched`](Self::robots_fetched) or
///   [`tdmrep_fetched`](Self::tdmrep_fetched), which return a [`RobotsReaction`]: the next step for
///   the scheduler, and what to write.
/// - For a permit for a page, [`standing`](Self::standing) returns the rules, and
///   [`judge`](Self::judge) applies them to each leased URL.
pub(crate) struct OriginRobotsTracker {
    frontier: Arc<dyn Frontier>,
    agent: ProductToken,
    profile: RobotsProfile,
    times: RobotsTimeLimits,
    forbidden: ForbiddenRobotsPolicy,
    purpose: Option<UsagePurpose>,
    extent: RunMode,
    /// Whether a `tdmrep.json` could forbid the crawl's purpose, so that it must be fetched.
    needs_tdmrep: bool,
    own_site: bool,
    /// Whether some host may be crawled faster than is allowed for hosts that the operator doesn't
    /// own: with a gap below `MIN_OTHERS_DELAY`, or more than `MAX_PER_OTHERS_HOST` requests at
    /// once. Set by the settings or by a `delay` command, and never reset.
    is_quick: bool,
    cache: RobotsCache,
    /// The rules that the last page was judged by, kept because they often apply to the next page
    /// too.
    last: Option<Arc<CompiledRobots>>,
    met: HashMap<Origin, OriginRobotsState>,
    /// The reasons why the robots.txt files of each host are unreachable, for messages at the end
    /// of a run.
    unreachable: HashMap<HostKey, BTreeMap<Origin, String>>,
    /// The first few files that are clearly not a robots.txt.
    strange: Vec<CanonicalUrl>,
    /// Maximum retries of `tdmrep.json`.
    max_retries: u32,
    /// Whether sitemaps named in robots.txt are fetched.
    reads_sitemaps: bool,
    secrets: Secrets,
    events: TraceEventEmitter,
}

/// An origin in memory.
#[derive(Debug, Default)]
struct OriginRobotsState {
    /// The request that must precede requests for pages of this origin.
    pending_fetch: Option<RobotsFollowUpRequest>,
    /// Why no page of this origin may be fetched; `None` if pages may be.
    refused: Option<NotFetchedReason>,
    /// Whether this run may fetch robots.txt before the retry time that an earlier run set. True if
    /// the server did not answer that run. False again once robots.txt has been fetched.
    is_tried_at_start: bool,
}

/// A request that follows the one for an origin's robots.txt, and must end before the origin's
/// pages are requested.
#[derive(Debug)]
pub(crate) enum RobotsFollowUpRequest {
    /// The target of a redirect of robots.txt, and the number of that redirect.
    Hop(CanonicalUrl, u8),
    /// `tdmrep.json`, or the target of its redirect.
    TdmRep(CanonicalUrl, TdmRepAttempt),
}

impl OriginRobotsTracker {
    pub(crate) fn new(config: &Config, frontier: &Arc<dyn Frontier>) -> OriginRobotsTracker {
        OriginRobotsTracker {
            frontier: Arc::clone(frontier),
            agent: config.agent.clone(),
            profile: config.profile,
            times: config.robots_times,
            forbidden: config.robots_forbidden,
            purpose: config.purpose,
            extent: config.extent,
            needs_tdmrep: config.extent != RunMode::Plan
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
            max_retries: config.retries,
            reads_sitemaps: config.sitemaps,
            secrets: config.fetch.secrets(),
            events: TraceEventEmitter::new(config),
        }
    }

    /// Returns the rules of each origin in memory whose rules are known, sorted by origin.
    pub(super) fn rules(&self) -> Vec<OriginWideRules> {
        let compiled = self.met.keys().filter_map(|origin| {
            let compiled = self.load(origin).ok()??;
            Some((origin, compiled))
        });
        let mut rules: Vec<_> = compiled
            .map(|(origin, compiled)| OriginWideRules {
                origin: origin.to_string(),
                crawl_delay: compiled.robots.crawl_delay(),
                usage: usage_preferences::of_origin(&compiled),
            })
            .collect();
        rules.sort_by(|one, other| one.origin.cmp(&other.origin));
        rules
    }

    /// Takes the first few files that are clearly not a robots.txt.
    pub(super) fn take_strange(&mut self) -> Vec<CanonicalUrl> {
        std::mem::take(&mut self.strange)
    }

    /// Records that the crawl fetches from some host faster than is allowed for hosts that the
    /// operator doesn't own.
    pub(crate) fn be_quick(&mut self) {
        self.is_quick = true;
    }

    /// Applies new politeness settings. If they are too fast for hosts that the operator doesn't
    /// own, returns the paces to set for the origins in memory.
    pub(super) fn take_politeness(
        &mut self,
        now: Tick,
        config: &Config,
    ) -> Result<Vec<(Origin, PaceFromRobots)>, FrontierError> {
        self.times = config.robots_times;
        if self.is_quick || !is_quick(&config.politeness) {
            return Ok(Vec::new());
        }
        self.be_quick();
        let mut paces = Vec::new();
        for origin in self.met.keys() {
            if let Some(compiled) = self.load(origin)?
                && let RobotsState::InForce { pace, .. } = self.state(now, &compiled, None)
            {
                paces.push((origin.clone(), pace));
            }
        }
        paces.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(paces)
    }

    /// Returns whether an origin is in memory.
    pub(crate) fn is_met(&self, origin: &Origin) -> bool {
        self.met.contains_key(origin)
    }

    /// Adds an origin to memory. Returns the robots.txt state that earlier runs left, if it is
    /// still usable.
    pub(crate) fn meet(
        &mut self,
        now: Tick,
        origin: &Origin,
    ) -> Result<Option<RobotsState>, FrontierError> {
        self.met
            .insert(origin.clone(), OriginRobotsState::default());
        let Some(compiled) = self.load(origin)? else {
            return Ok(None);
        };
        // The copy may lack the answer for `tdmrep.json`, for example because a run with another
        // purpose stored it.
        if self.wants_tdmrep(&compiled) && compiled.copy.tdmrep == TdmReservationCopy::NotAsked {
            return Ok(None);
        }
        let state = self.state(now, &compiled, None);
        if let (RobotsState::Unreachable { .. }, RobotsRulesState::Unreachable { why, .. }) =
            (&state, &compiled.copy.state)
        {
            let reason = why_unreachable(compiled.copy.status, why);
            self.note_unreachable(origin, reason);
        }
        // The server did not answer, so it requested no pause, and a new run may fetch robots.txt
        // at once.
        let is_fetched_again =
            matches!(state, RobotsState::Unreachable { .. }) && compiled.copy.status.is_none();
        if let Some(met) = self.met.get_mut(origin) {
            met.is_tried_at_start = is_fetched_again;
        }
        Ok((!is_fetched_again).then_some(state))
    }

    /// Returns whether pages of an origin may be judged now, and the rules to judge them by.
    pub(crate) fn standing(
        &mut self,
        origin: &Origin,
    ) -> Result<RobotsAvailability, FrontierError> {
        if let Some(why) = self.met.get(origin).and_then(|met| met.refused.clone()) {
            return Ok(RobotsAvailability::Refused(why));
        }
        let last = self.last.take().filter(|last| last.copy.origin == *origin);
        let compiled = match last {
            Some(last) => Some(last),
            None => self.load(origin)?,
        };
        self.last.clone_from(&compiled);
        Ok(match compiled {
            None => RobotsAvailability::Unknown,
            Some(compiled) => match self.closed_by(&compiled.copy) {
                Some(status) => RobotsAvailability::Forbidden(status),
                None => RobotsAvailability::InForce(compiled),
            },
        })
    }

    pub(super) fn judge(&self, standing: &RobotsAvailability, lease: &Lease) -> RobotsJudgement {
        let (rules, robots) = match self.judge_url(standing, &lease.url) {
            Ok(allowed) => allowed,
            Err(Some(exclusion)) => return RobotsJudgement::Refused(exclusion),
            Err(None) => return RobotsJudgement::RobotsFirst,
        };
        match self.extent != RunMode::Crawl && lease.kind != UrlKind::Sitemap {
            true => RobotsJudgement::Refused(NotFetchedReason::of(Reason::Planned)),
            false => RobotsJudgement::Allowed(FactsBeforeFetch {
                robots,
                rules,
                past: None,
                unread_link_kinds: UnreadLinkKinds::default(),
                label: None,
                is_only_checked: false,
                session: None,
            }),
        }
    }

    /// Judges a URL by the rules of its origin. Returns the rules, and the verdict for rows.
    ///
    /// # Errors
    /// Why the URL must not be fetched; `None` if the origin's robots.txt must be fetched first.
    pub(super) fn judge_url(
        &self,
        standing: &RobotsAvailability,
        url: &CanonicalUrl,
    ) -> Result<(Arc<CompiledRobots>, RobotsVerdict), Option<NotFetchedReason>> {
        let rules = match standing {
            RobotsAvailability::InForce(rules) => rules,
            RobotsAvailability::Forbidden(status) => {
                return Err(Some(NotFetchedReason {
                    rule: Some(format!("robots.txt answered {status}")),
                    ..NotFetchedReason::of(Reason::Robots)
                }));
            }
            RobotsAvailability::Refused(why) => return Err(Some(why.clone())),
            RobotsAvailability::Unknown => return Err(None),
        };
        let verdict = rules.robots.judge(url.as_url());
        if !verdict.is_allowed() {
            return Err(Some(request_rows::robots_exclusion(&verdict)));
        }
        match usage_preferences::refusal(rules, url.path_and_query(), self.purpose) {
            Some(exclusion) => Err(Some(exclusion)),
            None => Ok((Arc::clone(rules), request_rows::robots_verdict(&verdict))),
        }
    }

    /// Returns whether a site's statements about the use of its pages keep an answer's body out of
    /// the archive.
    pub(super) fn withholds(&self, standing: &RobotsAvailability, exchange: &Exchange) -> bool {
        let RobotsAvailability::InForce(rules) = standing else {
            return false;
        };
        let path = exchange.url.path_and_query();
        let tags = exchange.headers.get_all("x-robots-tag").iter();
        let tags: Vec<_> = tags
            .map(|tag| String::from_utf8_lossy(tag.as_bytes()))
            .collect();
        let tags = tags.iter().map(AsRef::as_ref);
        let directives = PageDirectives::read(tags, [], &self.agent, self.profile);
        let statements = usage_preferences::statements(rules, path, exchange, &directives, &[]);
        usage_preferences::withheld(&statements, self.purpose).is_some()
    }

    /// If the status of robots.txt means that an origin is closed, returns that status. Otherwise
    /// returns `None`.
    fn closed_by(&self, copy: &RobotsCopy) -> Option<u16> {
        let denies =
            self.forbidden == ForbiddenRobotsPolicy::Deny && copy.state == RobotsRulesState::None;
        copy.status
            .filter(|status| denies && matches!(status, 401 | 403))
    }

    /// Returns whether to fetch an origin's `tdmrep.json` before its pages, given the origin's
    /// rules.
    pub(crate) fn wants_tdmrep(&self, compiled: &CompiledRobots) -> bool {
        let is_known = !matches!(compiled.copy.state, RobotsRulesState::Unreachable { .. });
        self.needs_tdmrep
            && is_known
            && self.closed_by(&compiled.copy).is_none()
            && is_path_allowed(compiled, TDMREP_PATH)
    }

    pub(crate) fn load(
        &self,
        origin: &Origin,
    ) -> Result<Option<Arc<CompiledRobots>>, FrontierError> {
        if let Some(compiled) = self.cache.get(origin) {
            return Ok(Some(compiled));
        }
        let Some(bytes) = self.frontier.robots(origin)? else {
            return Ok(None);
        };
        // An unreadable copy is ignored, so robots.txt is fetched again.
        let Ok(copy) = RobotsCopy::from_bytes(&bytes) else {
            return Ok(None);
        };
        Ok(Some(self.compile(copy)))
    }

    /// Returns the state of an origin's robots.txt that the scheduler needs. `address` is the
    /// origin's address, if known.
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

    /// Returns the request for an origin's robots.txt at `url`. If the kept copy is from the same
    /// URL, the request has the validators of the copy.
    pub(crate) fn request(
        &self,
        of: &Origin,
        url: CanonicalUrl,
    ) -> Result<FetchRequest, FrontierError> {
        let held = self.load(of)?;
        let validators = held
            .map(|held| held.copy.validators_for(&url))
            .unwrap_or_default();
        Ok(FetchRequest::robots(url, validators))
    }

    pub(crate) fn take_pending_fetch(&mut self, of: &Origin) -> Option<RobotsFollowUpRequest> {
        self.met.get_mut(of)?.pending_fetch.take()
    }

    /// Returns the URL that an origin's robots.txt redirects to, if that URL must be fetched next.
    pub(crate) fn pending_hop(&self, of: &Origin) -> Option<&CanonicalUrl> {
        match &self.met.get(of)?.pending_fetch {
            Some(RobotsFollowUpRequest::Hop(url, _)) => Some(url),
            _ => None,
        }
    }

    pub(crate) fn set_pending_fetch(&mut self, of: &Origin, pending_fetch: RobotsFollowUpRequest) {
        self.met.entry(of.clone()).or_default().pending_fetch = Some(pending_fetch);
    }

    /// Forgets an origin whose host is evicted from memory. Once the origin has pending URLs,
    /// [`meet`](Self::meet) adds it again.
    pub(crate) fn forget(&mut self, of: &Origin) {
        self.last = None;
        self.met.remove(of);
    }

    /// Returns the paces that the kept robots.txt files of a host request, since all origins of a
    /// host share one gap. Covers the origins of the host that are not in memory, if they use the
    /// default ports and their copy of robots.txt is fresh.
    ///
    /// # Errors
    /// The frontier can't be read.
    pub(super) fn kept_paces(
        &self,
        now: Tick,
        origin: &Origin,
    ) -> Result<Vec<(Origin, PaceFromRobots)>, FrontierError> {
        let mut paces = Vec::new();
        for scheme in ["http", "https"] {
            let Ok(kept) = Origin::parse(&format!("{scheme}://{}", origin.host_key())) else {
                continue;
            };
            if !self.is_met(&kept)
                && let Some(compiled) = self.load(&kept)?
                && let RobotsState::InForce { pace, .. } = self.state(now, &compiled, None)
            {
                paces.push((kept, pace));
            }
        }
        Ok(paces)
    }

    pub(crate) fn refuse(&mut self, of: &Origin, why: NotFetchedReason) {
        self.met.entry(of.clone()).or_default().refused = Some(why);
    }

    /// Returns when this run may fetch an origin's robots.txt again, if that file is unreachable
    /// and no older copy is in force. Otherwise returns `None`.
    pub(super) fn retry_at(
        &self,
        now: Tick,
        origin: &Origin,
    ) -> Result<Option<Tick>, FrontierError> {
        let state = self
            .load(origin)?
            .map(|compiled| self.state(now, &compiled, None));
        let is_tried_now = self
            .met
            .get(origin)
            .is_some_and(|met| met.is_tried_at_start);
        Ok(match state {
            Some(RobotsState::Unreachable { .. }) if is_tried_now => Some(now),
            Some(RobotsState::Unreachable { retry_at }) => Some(retry_at),
            _ => None,
        })
    }

    /// Returns whether the rules of an origin are in force, so that its pages don't have to wait
    /// for its robots.txt.
    pub(super) fn are_in_force(&self, now: Tick, origin: &Origin) -> Result<bool, FrontierError> {
        let compiled = self.load(origin)?;
        let state = compiled.map(|compiled| self.state(now, &compiled, None));
        Ok(matches!(state, Some(RobotsState::InForce { .. })))
    }

    fn note_unreachable(&mut self, origin: &Origin, why: String) {
        let origins = self.unreachable.entry(origin.host_key()).or_default();
        origins.insert(origin.clone(), why);
    }

    /// Returns why an origin's robots.txt is unreachable; `None` if it isn't.
    pub(crate) fn why_unreachable(&self, origin: &Origin) -> Option<&str> {
        let origins = self.unreachable.get(&origin.host_key())?;
        origins.get(origin).map(String::as_str)
    }

    /// Returns why a host's robots.txt files are unreachable, with the URL of each; `None` if all
    /// can be reached.
    pub(crate) fn why_unreachable_host(&self, host: &HostKey) -> Option<String> {
        self.reasons(host, |_| true)
    }

    /// Returns whether a request for a robots.txt of the host got no answer.
    pub(crate) fn is_unanswered(&self, host: &HostKey) -> bool {
        let mut reasons = self.unreachable.get(host).into_iter().flatten();
        reasons.any(|(_, why)| names_no_answer(why))
    }

    /// Returns whether the last request for the robots.txt of an origin got no answer.
    pub(crate) fn is_unanswered_at(&self, origin: &Origin) -> bool {
        self.why_unreachable(origin).is_some_and(names_no_answer)
    }

    /// Returns which robots.txt files of a host demanded a wait. `None` if only pages demanded a
    /// wait.
    pub(crate) fn why_host_waits(&self, host: &HostKey) -> Option<String> {
        let demands = [429, 503].map(|status| why_unreachable(Some(status), ""));
        self.reasons(host, |why| {
            // Ignore the second part of the reason, such as `, redirected to http://b.example/`.
            let words = why.split(", ").next();
            demands.iter().any(|demand| words == Some(demand))
        })
    }

    fn reasons(&self, host: &HostKey, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
        let origins = self.unreachable.get(host)?;
        let wanted = origins.iter().filter(|(_, why)| is_wanted(why));
        let reasons = wanted.map(|(origin, why)| {
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

    pub(crate) fn drop_copy(&mut self, origin: &Origin) {
        self.last = None;
        self.cache.remove(origin);
    }

    pub(crate) fn learn(
        &mut self,
        of: &Origin,
        answer: &RobotsFetchResult,
        result: &Result<Exchange, ExchangeFailure>,
    ) -> Result<Arc<CompiledRobots>, FrontierError> {
        let held = self.load(of)?;
        let held = held.as_ref().map(|held| &held.copy);
        let copy = RobotsCopy::learn(of, held, answer, result, &self.times);
        if let Some(met) = self.met.get_mut(of) {
            met.is_tried_at_start = false;
        }
        match &copy.state {
            RobotsRulesState::Unreachable { why, .. } => {
                let reason = match result {
                    Err(failure) => {
                        let target = why.find(REDIRECTED_TO).map_or("", |at| &why[at..]);
                        why_unreachable(None, &format!("{}{target}", failure.reason()))
                    }
                    Ok(_) => why_unreachable(copy.status, why),
                };
                self.note_unreachable(of, reason);
            }
            RobotsRulesState::Rules | RobotsRulesState::None => {
                if let Some(origins) = self.unreachable.get_mut(&of.host_key()) {
                    origins.remove(of);
                }
            }
        }
        let compiled = self.keep(copy);
        self.note_strange(&compiled);
        Ok(compiled)
    }

    /// Remembers a file that is clearly not a robots.txt, to report it at the end. The file is
    /// parsed anyway, as RFC 9309 section 2.3.1.5 requires. Logs the first invalid line that is
    /// meant for this crawler, such as a Crawl-delay that isn't a number.
    fn note_strange(&mut self, compiled: &CompiledRobots) {
        if compiled.copy.good_at != Some(compiled.copy.fetched_at) {
            return;
        }
        let oddities = compiled.robots.oddities();
        let url = &compiled.copy.url;
        let is_bad = |oddity: &&RobotsOddity| oddity.what == RobotsOddityKind::BadValue;
        if let Some(oddity) = oddities.iter().find(is_bad) {
            self.events.invalid_robots_line(url, oddity);
        }
        let is_strange = |oddity: &&RobotsOddity| {
            matches!(
                oddity.what,
                RobotsOddityKind::Markup | RobotsOddityKind::Utf16
            )
        };
        if let Some(oddity) = oddities.iter().find(is_strange)
            && !self.strange.contains(url)
        {
            self.events.strange_robots(url, oddity);
            if self.strange.len() < MAX_STRANGE_FILES {
                self.strange.push(url.clone());
            }
        }
    }
}

/// Separates the reason why a robots.txt is unreachable from the redirect target that gave this
/// reason. `failure_words` in `crates/records` splits the text here, so change both together.
const REDIRECTED_TO: &str = ": redirected to ";

/// The beginning of the reason why robots.txt is unreachable, if a request for it got no answer.
const UNANSWERED: &str = "robots.txt: ";

fn names_no_answer(reason: &str) -> bool {
    reason.starts_with(UNANSWERED)
}

/// Describes why a robots.txt is unreachable.
fn why_unreachable(status: Option<u16>, why: &str) -> String {
    if let (Some(_), Some((why, target))) = (status, why.split_once(REDIRECTED_TO)) {
        return format!("{}, redirected to {target}", why_unreachable(status, why));
    }
    match status {
        Some(status) if why == "encoding" => {
            format!("robots.txt answered {status} in an encoding that can't be undone")
        }
        Some(status) if why == EXCLUDED_HOST => {
            format!("robots.txt answered {status}, to a host that --exclude-host leaves out")
        }
        Some(status) => format!("robots.txt answered {status}"),
        None => format!("{UNANSWERED}{why}"),
    }
}

/// Returns whether an origin's robots.txt allows a path, which may have a query.
fn is_path_allowed(compiled: &CompiledRobots, path: &str) -> bool {
    let path = RequestPath::new(path);
    path.is_ok_and(|path| compiled.robots.judge_path(&path).is_allowed())
}

/// Returns whether the settings allow some host a gap below `MIN_OTHERS_DELAY`, or more than
/// `MAX_PER_OTHERS_HOST` requests at once.
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

/// Returns whether a host may belong to someone other than the operator. True unless the host is on
/// loopback or in a private network.
pub(crate) fn may_be_anothers(host: &HostKey, address: Option<IpAddr>) -> bool {
    let class = address.map(classify).or_else(|| class_of_host(host.host()));
    !matches!(class, Some(AddressClass::Loopback | AddressClass::Private))
}

#[cfg(test)]
mod tests;
