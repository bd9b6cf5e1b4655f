//! What this run knows of each origin's rules, and the requests that find them out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crawl_fetcher::robots::{
    Compiled, CopyState, RobotsAnswer, RobotsCache, RobotsCopy, RobotsTimes,
};
use crawl_fetcher::{Exchange, Failure, FailureKind, Request};
use crawl_frontier::{Admission, Frontier, FrontierError};
use crawl_policy::{ProductToken, Profile};
use crawl_scheduler::{Purpose, RobotsAsks, RobotsState, Tick};
use crawl_weburl::{AddressClass, CanonicalUrl, HostKey, Origin, canonicalize, classify};

use crate::config::Config;
use crate::item::{Effect, Item, Job, RobotsItem};
use crate::read::{sitemap_admission, sitemap_guess};
use crate::ring::Ring;

/// Octets that compiled copies of robots.txt may take in memory. Others are compiled
/// anew from the state when their origin's turn comes.
const CACHE_OCTETS: u64 = 64 * 1024 * 1024;

/// The least gap at a host that the operator does not answer for.
const LEAST_GAP: Duration = Duration::from_millis(200);

/// May pages of an origin be judged now?
pub(crate) enum Standing {
    /// Yes, by these rules.
    InForce(Arc<Compiled>),
    /// No page of the origin may be asked for, since we may not connect to it.
    Refused(String),
    /// Its robots.txt comes first.
    Unknown,
}

/// The rules of all origins.
pub(crate) struct Origins {
    agent: ProductToken,
    profile: Profile,
    times: RobotsTimes,
    own_site: bool,
    /// Whether the configured delay is below what a host of others is given.
    is_quick: bool,
    cache: RobotsCache,
    met: HashMap<Origin, Met>,
    /// Why the robots.txt of a host can't be had, for the end's message.
    unreachable: HashMap<HostKey, String>,
}

/// An origin that this run has met.
#[derive(Debug, Default)]
struct Met {
    /// The next hop of a request for its robots.txt.
    hop: Option<(CanonicalUrl, u8)>,
    /// Why we may not connect to it.
    refused: Option<String>,
}

impl Origins {
    pub(crate) fn new(config: &Config) -> Origins {
        Origins {
            agent: config.agent.clone(),
            profile: config.profile,
            times: config.robots_times,
            own_site: config.own_site,
            is_quick: config.politeness.delay < LEAST_GAP,
            cache: RobotsCache::new(CACHE_OCTETS),
            met: HashMap::new(),
            unreachable: HashMap::new(),
        }
    }

    /// What an earlier run left, where this run meets the origin for the first time.
    pub(crate) fn meet(
        &mut self,
        now: Tick,
        origin: &Origin,
        frontier: &dyn Frontier,
    ) -> Result<Option<RobotsState>, FrontierError> {
        if self.met.contains_key(origin) {
            return Ok(None);
        }
        self.met.insert(origin.clone(), Met::default());
        let Some(compiled) = self.load(origin, frontier)? else {
            return Ok(None);
        };
        let state = self.state(now, &compiled, None);
        // Where nothing answered, nobody asked for a rest: a new start may knock at once.
        let knock =
            matches!(state, RobotsState::Unreachable { .. }) && compiled.copy.status.is_none();
        Ok((!knock).then_some(state))
    }

    /// The rules that an origin's pages are judged by.
    pub(crate) fn standing(
        &mut self,
        origin: &Origin,
        frontier: &dyn Frontier,
    ) -> Result<Standing, FrontierError> {
        if let Some(why) = self.met.get(origin).and_then(|met| met.refused.clone()) {
            return Ok(Standing::Refused(why));
        }
        Ok(self
            .load(origin, frontier)?
            .map_or(Standing::Unknown, Standing::InForce))
    }

    fn load(
        &self,
        origin: &Origin,
        frontier: &dyn Frontier,
    ) -> Result<Option<Arc<Compiled>>, FrontierError> {
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
        Ok(Some(self.keep(copy)))
    }

    /// What the scheduler is told of an origin's rules. `address` is where the origin
    /// answered, where that is known.
    fn state(&self, now: Tick, compiled: &Compiled, address: Option<IpAddr>) -> RobotsState {
        match compiled.state(now, &self.times) {
            RobotsState::InForce { mut asks, until }
                if !self.own_site && self.is_quick && is_public(&compiled.copy.origin, address) =>
            {
                asks.crawl_delay = Some(asks.crawl_delay.unwrap_or_default().max(LEAST_GAP));
                RobotsState::InForce { asks, until }
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
    ) -> Result<Request, FrontierError> {
        let held = self.load(of, frontier)?;
        let validators = held
            .map(|held| held.copy.validators_for(&url))
            .unwrap_or_default();
        Ok(Request::robots(url, validators))
    }

    pub(crate) fn take_hop(&mut self, of: &Origin) -> Option<(CanonicalUrl, u8)> {
        self.met.get_mut(of)?.hop.take()
    }

    pub(crate) fn why_unreachable(&self, host: &HostKey) -> Option<String> {
        self.unreachable.get(host).cloned()
    }

    fn keep(&self, copy: RobotsCopy) -> Arc<Compiled> {
        let compiled = Arc::new(Compiled::new(copy, &self.agent, self.profile));
        self.cache.insert(Arc::clone(&compiled));
        compiled
    }

    fn learn(
        &mut self,
        of: &Origin,
        answer: &RobotsAnswer,
        result: &Result<Exchange, Failure>,
        frontier: &dyn Frontier,
    ) -> Result<Arc<Compiled>, FrontierError> {
        let held = self.load(of, frontier)?;
        let held = held.as_ref().map(|held| &held.copy);
        let copy = RobotsCopy::learn(of, held, answer, result, &self.times);
        match &copy.state {
            CopyState::Unreachable { why, .. } => {
                let why = match copy.status {
                    Some(status) => format!("robots.txt answered {status}"),
                    None => format!("robots.txt: {why}"),
                };
                self.unreachable.insert(of.host_key(), why);
            }
            CopyState::Rules | CopyState::None => {
                self.unreachable.remove(&of.host_key());
            }
        }
        Ok(self.keep(copy))
    }
}

impl Ring {
    /// The job that a permit for an origin's robots.txt, or a hop of it, is used for.
    pub(crate) fn robots_job(
        &mut self,
        of: Origin,
        url: CanonicalUrl,
        hop: u8,
    ) -> Result<Job, FrontierError> {
        let request = self.origins.request(&of, url, &*self.frontier)?;
        Ok(Job::Robots { of, request, hop })
    }

    /// Learns from an exchange for robots.txt: a redirect is followed by asking for a
    /// permit of its host, anything else is the origin's new state.
    pub(crate) fn robots_fetched(
        &mut self,
        now: Tick,
        of: &Origin,
        request: &Request,
        hop: u8,
        result: Result<Exchange, Failure>,
        out: &mut Vec<Effect>,
    ) -> Result<(), FrontierError> {
        let answer = RobotsAnswer::of(request, &result, hop);
        let mut item = RobotsItem {
            host: Some(self.host_state(&request.url.host_key())),
            ..RobotsItem::default()
        };
        if let RobotsAnswer::Redirect { to, .. } = &answer {
            self.origins.met.entry(of.clone()).or_default().hop = Some((to.clone(), hop + 1));
            self.scheduler
                .ask(now, &to.host_key(), Purpose::Hop { of: of.clone() });
        } else if let (
            0,
            Err(
                failure @ Failure {
                    kind: FailureKind::AddressRefused,
                    ..
                },
            ),
        ) = (hop, &result)
        {
            // Rules that may not be asked for can't be known, and need not be: each URL
            // of the origin is settled as refused when its turn comes.
            self.origins.met.entry(of.clone()).or_default().refused = Some(failure.detail.clone());
            let state = RobotsState::InForce {
                asks: RobotsAsks::default(),
                until: Tick::from_micros(u64::MAX),
            };
            self.scheduler.robots(now, of, state);
        } else {
            let compiled = self.origins.learn(of, &answer, &result, &*self.frontier)?;
            let address = result.as_ref().ok().and_then(|exchange| exchange.address);
            let address = address.filter(|_| hop == 0).map(|address| address.ip());
            let state = self.origins.state(now, &compiled, address);
            self.scheduler.robots(now, of, state);
            item.copy = Some((of.clone(), compiled.copy.to_bytes()));
            if self.config.sitemaps
                && matches!(
                    answer,
                    RobotsAnswer::Rules { .. } | RobotsAnswer::None { .. }
                )
            {
                item.sitemaps = self.sitemaps(of, &compiled);
            }
        }
        item.exchange = result.ok();
        self.write(Item::Robots(item), out);
        Ok(())
    }

    /// The sitemaps that a robots.txt names, by a relative path too; /sitemap.xml where
    /// it names none. Those of other hosts must lie in scope.
    fn sitemaps(&self, of: &Origin, compiled: &Compiled) -> Vec<Admission> {
        let robots_url = of.robots_url();
        let named = compiled.robots.sitemaps();
        let mut sitemaps: Vec<_> = named
            .iter()
            .filter_map(|sitemap| canonicalize(Some(&robots_url), sitemap.url.as_ref()).ok())
            .map(|url| sitemap_admission(url, &robots_url))
            .collect();
        if named.is_empty() {
            sitemaps.push(sitemap_guess(of.url("/sitemap.xml"), &robots_url));
        }
        let host = of.host_key();
        sitemaps.retain(|sitemap| self.may_read_sitemap(&sitemap.url, &host));
        sitemaps
    }
}

/// Whether a host may be someone else's: any but those at loopback and private addresses.
fn is_public(origin: &Origin, address: Option<IpAddr>) -> bool {
    let host = origin.host_key();
    let host = host.host();
    let literal = || host.trim_matches(['[', ']']).parse().ok();
    match address.or_else(literal).map(classify) {
        Some(class) => !matches!(class, AddressClass::Loopback | AddressClass::Private),
        None => host != "localhost" && !host.ends_with(".localhost"),
    }
}
