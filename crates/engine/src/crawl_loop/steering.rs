//! What a person who watches the crawl tells it to do.

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::DelayRow;
use crawl_frontier::{Admission, Frontier, FrontierError, KnownState};
use crawl_policy::scope::ScopeVerdict;
use crawl_scheduler::Tick;
use crawl_weburl::{AddressClass, CanonicalUrl, HostKey, canonicalize, classify};

use super::Coordinator;
use crate::control::{Answer, Answering, Ask, Command, LatestPage, Live, Refused};
use crate::crawl_loop::robots_state::{MIN_GAP, may_be_anothers};
use crate::error::EngineError;
use crate::messages::{Effect, Ordered, WriterMessage, millis};
use crate::read::links::seed_admission;
use crate::state::directory;

/// What is parked, as a JSON list of hosts.
pub(crate) const META_PARKED: &str = "parked";

/// Hosts that may be parked: a list that is kept in memory, and written whole.
const MAX_PARKED: usize = 1_000;

/// Hosts that may have a delay of their own.
const MAX_DELAYS: usize = 1_000;

/// Hosts of a state, at most.
const MAX_HOSTS_SHOWN: usize = 50;

/// Pages of a state, at most.
const MAX_PAGES_SHOWN: usize = 10;

/// What the coordinator knows of the person who steers it.
#[derive(Debug, Default)]
pub(crate) struct Steering {
    /// Since when nothing is sent.
    paused_since: Option<Tick>,
    /// How long that was so before.
    paused: Duration,
    latest: VecDeque<LatestPage>,
}

impl Steering {
    pub(crate) fn is_paused(&self) -> bool {
        self.paused_since.is_some()
    }

    /// How long the run was paused before now.
    pub(crate) fn paused(&self) -> Duration {
        self.paused
    }

    /// A page was settled.
    pub(crate) fn settled(&mut self, url: &CanonicalUrl, status: Option<u16>, at: Tick) {
        self.latest.truncate(MAX_PAGES_SHOWN - 1);
        let url = url.clone();
        self.latest.push_front(LatestPage { url, status, at });
    }
}

/// What is written of a command before it is answered.
#[derive(Debug)]
pub(crate) enum Order {
    /// A URL is asked for as a seed.
    Add {
        /// The URL.
        seed: Box<Admission>,
        /// It was settled; what is said where it was so in this round.
        refused: Option<Refused>,
    },
    /// These hosts are parked.
    Parked {
        /// Grows with each list of a run.
        number: u64,
        /// As [`META_PARKED`] has it.
        hosts: Vec<u8>,
    },
}

impl Coordinator {
    /// Takes up which hosts are parked.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    pub(crate) fn take_up_parked(&mut self, now: Tick) -> Result<(), FrontierError> {
        for host in parked(&*self.frontier)? {
            self.scheduler.park(now, &host);
        }
        Ok(())
    }

    /// Carries a command out. What is to be durable is answered when it is.
    pub(crate) fn told(&mut self, now: Tick, ask: Ask, out: &mut Vec<Effect>) {
        let Ask { command, answer } = ask;
        let done = match command {
            Command::Pause => {
                self.steering.paused_since.get_or_insert(now);
                Ok(Answer::Done)
            }
            Command::Resume => {
                let since = self.steering.paused_since.take();
                self.steering.paused += since.map_or(Duration::ZERO, |since| now.since(since));
                Ok(Answer::Done)
            }
            Command::Delay { host, delay } => self.delay(now, host, delay, out),
            Command::State => Ok(Answer::State(Box::new(self.live(now)))),
            Command::Add(url) => match self.seed(&url) {
                Ok(order) => return self.order(order, answer, out),
                Err(refused) => Err(refused),
            },
            Command::Park(host) => match self.park(now, &host) {
                Ok(()) => return self.order_parked(answer, out),
                Err(refused) => Err(refused),
            },
            Command::Unpark(host) if self.scheduler.unpark(now, &host) => {
                return self.order_parked(answer, out);
            }
            Command::Unpark(host) => Err(Refused::NotParked(host)),
        };
        // Who asked may be gone.
        let _ = answer.send(done);
    }

    /// How the crawl stands, for a person who watches.
    fn live(&self, now: Tick) -> Live {
        Live {
            progress: self.progress(now),
            latest: self.steering.latest.iter().cloned().collect(),
            hosts: self.scheduler.busiest(now, MAX_HOSTS_SHOWN),
            parked: self.scheduler.parked().cloned().collect(),
            at: now,
        }
    }

    fn delay(
        &mut self,
        now: Tick,
        host: Option<HostKey>,
        delay: Duration,
        out: &mut Vec<Effect>,
    ) -> Result<Answer, Refused> {
        if let Some(host) = &host {
            self.is_known(host)?;
            if self.scheduler.own_delays() >= MAX_DELAYS {
                return Err(Refused::TooManyDelays(MAX_DELAYS));
            }
        }
        if delay < MIN_GAP && !self.config.own_site {
            self.may_be_quick(host.as_ref(), delay)?;
            self.origins.be_quick();
        }
        self.scheduler.set_delay(now, host.as_ref(), delay);
        out.push(Effect::NoteDelay(DelayRow {
            at: now.as_millis(),
            host: host.map(|host| host.to_string()),
            delay: Some(millis(delay)),
        }));
        Ok(Answer::Done)
    }

    /// Whether a host, or every host, may be asked more quickly than a host of others.
    fn may_be_quick(&self, host: Option<&HostKey>, delay: Duration) -> Result<(), Refused> {
        let anothers = match host {
            Some(host) => Some(host).filter(|host| may_be_anothers(host, None)),
            None => {
                let hosts = self.scheduler.known_hosts();
                hosts.filter(|host| may_be_anothers(host, None)).min()
            }
        };
        match anothers.cloned() {
            None => Ok(()),
            Some(host) => Err(Refused::TooShort {
                delay,
                least: MIN_GAP,
                host,
            }),
        }
    }

    fn seed(&mut self, url: &str) -> Result<Order, Refused> {
        let url = canonicalize(None, url).map_err(|why| Refused::Unusable {
            url: url.to_owned(),
            why: why.to_string(),
        })?;
        self.may_be_asked(&url)?;
        let mut scope = self.scope.as_ref().clone();
        scope.add_seed(&url);
        if let ScopeVerdict::Out { rule, .. } = scope.judge(&url, 0) {
            return Err(Refused::OutOfScope { url, rule });
        }
        let known = self.frontier.known(&url).ok().flatten();
        let refused = known.and_then(|known| match known.state {
            KnownState::Fetched { .. } | KnownState::Failed { .. } => {
                Some(Refused::Visited { url: url.clone() })
            }
            KnownState::Excluded(exclusion) => Some(Refused::Barred {
                url: url.clone(),
                why: exclusion.to_string(),
            }),
            _ => None,
        });
        let seed = Box::new(seed_admission(&url, &scope));
        if refused.is_none() {
            self.scope = Arc::new(scope);
        }
        Ok(Order::Add { seed, refused })
    }

    /// Whether the fetcher would connect to the address that a URL names, if it names one.
    fn may_be_asked(&self, url: &CanonicalUrl) -> Result<(), Refused> {
        let host = url.host_key();
        let fetch = &self.config.fetch;
        let literal = host.host().trim_matches(['[', ']']).parse::<IpAddr>();
        match literal.map(classify) {
            Ok(AddressClass::Unusable) => Err(Refused::Unusable {
                url: url.to_string(),
                why: "it names an address where no server can be".to_owned(),
            }),
            _ if may_be_anothers(&host, None) || fetch.allow_private || fetch.is_typed(url) => {
                Ok(())
            }
            _ => Err(Refused::Private { url: url.clone() }),
        }
    }

    fn park(&mut self, now: Tick, host: &HostKey) -> Result<(), Refused> {
        self.is_known(host)?;
        if !self.scheduler.is_parked(host) && self.scheduler.parked().len() >= MAX_PARKED {
            return Err(Refused::TooManyParked(MAX_PARKED));
        }
        self.scheduler.park(now, host);
        self.free_if_idle(host);
        Ok(())
    }

    /// Whether the crawl met a host, or is to meet it.
    fn is_known(&self, host: &HostKey) -> Result<(), Refused> {
        let is_known = self.scheduler.knows(host)
            || self.scheduler.is_parked(host)
            || self
                .config
                .seeds
                .iter()
                .any(|seed| seed.host_key() == *host)
            || matches!(self.frontier.host(host), Ok(Some(_)));
        match is_known {
            true => Ok(()),
            false => Err(Refused::UnknownHost(host.clone())),
        }
    }

    fn order_parked(&mut self, answer: Answering, out: &mut Vec<Effect>) {
        self.sequence += 1;
        let order = Order::Parked {
            number: self.sequence,
            hosts: listed(self.scheduler.parked()),
        };
        self.order(order, answer, out);
    }

    fn order(&mut self, order: Order, answer: Answering, out: &mut Vec<Effect>) {
        self.write(WriterMessage::Order(Ordered { order, answer }), out);
    }
}

/// Parks a host of a crawl that does not run.
///
/// # Errors
/// [`EngineError::Refused`], and those of opening the crawl's state.
pub fn park_at_rest(dir: &Path, host: &HostKey) -> Result<(), EngineError> {
    change_at_rest(dir, |frontier, hosts| {
        let is_known = hosts.contains(host) || frontier.host(host)?.is_some();
        let waits = || {
            frontier
                .origins()
                .into_iter()
                .map(|(origin, _)| origin.host_key())
        };
        if !is_known && !waits().any(|waits| waits == *host) {
            return Err(Refused::UnknownHost(host.clone()).into());
        }
        hosts.insert(host.clone());
        match hosts.len() > MAX_PARKED {
            true => Err(Refused::TooManyParked(MAX_PARKED).into()),
            false => Ok(()),
        }
    })
}

/// Takes a parked host of a crawl back that does not run.
///
/// # Errors
/// [`EngineError::Refused`], and those of opening the crawl's state.
pub fn unpark_at_rest(dir: &Path, host: &HostKey) -> Result<(), EngineError> {
    change_at_rest(dir, |_, hosts| match hosts.remove(host) {
        true => Ok(()),
        false => Err(Refused::NotParked(host.clone()).into()),
    })
}

fn change_at_rest(
    dir: &Path,
    change: impl FnOnce(&dyn Frontier, &mut BTreeSet<HostKey>) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let frontier = directory::open_at_rest(dir)?;
    let mut hosts = parked(&frontier)?;
    change(&frontier, &mut hosts)?;
    let mut transaction = frontier.begin()?;
    transaction.keep_meta(META_PARKED, &listed(hosts.iter()));
    transaction.commit()?;
    Ok(())
}

fn listed<'a>(hosts: impl Iterator<Item = &'a HostKey>) -> Vec<u8> {
    let names: Vec<&str> = hosts.map(HostKey::as_str).collect();
    serde_json::to_vec(&names).unwrap_or_default()
}

/// The hosts that are parked, as the state has them.
pub(crate) fn parked(frontier: &dyn Frontier) -> Result<BTreeSet<HostKey>, FrontierError> {
    let bytes = frontier.meta(META_PARKED)?.unwrap_or_default();
    let names: Vec<String> = serde_json::from_slice(&bytes).unwrap_or_default();
    let hosts = names.iter().filter_map(|name| HostKey::parse(name).ok());
    Ok(hosts.collect())
}
