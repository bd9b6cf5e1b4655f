//! A second opinion on every permit, by arithmetic of its own: it knows only the rules,
//! what was sent, and what came back.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use crawl_scheduler::{Politeness, Purpose, RobotsState, SignalKind, Tick};
use crawl_weburl::{HostKey, Origin, Site};

pub(crate) struct Check {
    politeness: Politeness,
    hosts: HashMap<HostKey, HostSeen>,
    addresses: HashMap<IpAddr, Shared>,
    sites: HashMap<Site, Shared>,
    /// Rules in force, until when.
    /// Until when they are fresh, and whether no page was asked for under them yet.
    rules: HashMap<Origin, (Tick, bool)>,
    robots_out: HashMap<Origin, bool>,
    in_flight: u32,
    last_start: Option<Tick>,
}

#[derive(Default)]
struct HostSeen {
    in_flight: u32,
    /// Of its free slots that were used: when their last request ended.
    ends: Vec<Tick>,
    address: Option<IpAddr>,
    crawl_delays: HashMap<Origin, Duration>,
    /// The least response time of its answers: the smoothed one is no less.
    quickest: Option<Duration>,
    wait_until: Tick,
    pause_until: Tick,
    probing: bool,
    fails: u32,
}

#[derive(Default)]
struct Shared {
    in_flight: u32,
    last: Option<Tick>,
}

/// What a request was counted at.
#[derive(Clone)]
pub(crate) struct Sent {
    host: HostKey,
    purpose: Purpose,
    address: Option<IpAddr>,
    site: Site,
    start: Tick,
}

impl Check {
    pub(crate) fn new(politeness: Politeness) -> Check {
        Check {
            politeness,
            hosts: HashMap::new(),
            addresses: HashMap::new(),
            sites: HashMap::new(),
            rules: HashMap::new(),
            robots_out: HashMap::new(),
            in_flight: 0,
            last_start: None,
        }
    }

    pub(crate) fn start(&mut self, now: Tick, key: &HostKey, purpose: &Purpose) -> Sent {
        let politeness = self.politeness.clone();
        let host = self.hosts.entry(key.clone()).or_default();
        host.take_slot(now, key, &politeness);
        assert!(now >= host.wait_until, "{key} asked to be left alone");
        assert!(now >= host.pause_until, "{key} is paused");
        assert!(
            !host.probing || host.in_flight == 0,
            "{key}: a second probe"
        );
        host.in_flight += 1;
        let address = host.address;
        let site = Origin::parse(&format!("http://{key}")).unwrap().site();
        if let Some(address) = address {
            let shared = self.addresses.entry(address).or_default();
            shared.start(now, politeness.per_address, politeness.address_delay);
        }
        let per_site = politeness
            .per_site
            .map_or(u32::MAX, |n| n.max(politeness.per_host));
        let shared = self.sites.entry(site.clone()).or_default();
        shared.start(now, per_site, politeness.site_delay);
        self.in_flight += 1;
        assert!(self.in_flight <= politeness.concurrency, "concurrency");
        if let (Some(rate), Some(last)) = (politeness.max_rate, self.last_start) {
            let space = now.since(last).as_secs_f64();
            assert!(space >= rate.recip() - 1e-9, "rate: {space} s between two");
        }
        self.last_start = Some(now);
        self.judge_purpose(now, purpose);
        Sent {
            host: key.clone(),
            purpose: purpose.clone(),
            address,
            site,
            start: now,
        }
    }

    fn judge_purpose(&mut self, now: Tick, purpose: &Purpose) {
        match purpose {
            Purpose::Page { origin } => {
                let rules = self.rules.get_mut(origin);
                let (until, first) = rules.unwrap_or_else(|| panic!("{origin}: no rules"));
                assert!(now < *until || *first, "{origin}: stale rules");
                *first = false;
                assert_ne!(
                    self.robots_out.get(origin),
                    Some(&true),
                    "{origin}: robots out"
                );
            }
            Purpose::Robots { origin } => {
                let before = self.robots_out.insert(origin.clone(), true);
                assert_ne!(before, Some(true), "{origin}: robots asked for twice");
            }
            Purpose::Hop { .. } => {}
        }
    }

    pub(crate) fn end(
        &mut self,
        end: Tick,
        sent: &Sent,
        took: Duration,
        address: Option<IpAddr>,
        kind: SignalKind,
    ) {
        self.ended(end, sent);
        let politeness = &self.politeness;
        let host = self.hosts.get_mut(&sent.host).unwrap();
        if let Some(address) = address {
            host.address = Some(address);
            self.addresses.entry(address).or_default().last = Some(end);
        }
        match kind {
            SignalKind::Answered => host.answered(took),
            SignalKind::AskedToWait { retry_after } => {
                host.answered(took);
                let wait = retry_after.unwrap_or(politeness.wait_first);
                let wait = wait.min(politeness.max_retry_after);
                host.wait_until = host.wait_until.max(end + wait);
            }
            SignalKind::UrlFailed | SignalKind::NoConnection => {
                host.fails += 1;
                let probe = host.probing && sent.start >= host.pause_until;
                let enough = host.fails >= politeness.fails_in_a_row;
                let fault = enough || kind == SignalKind::NoConnection;
                if probe || (fault && !host.probing) {
                    let pause = (10 * host.least_gap(politeness)).max(Duration::from_secs(5));
                    host.probing = true;
                    host.pause_until = end + pause;
                }
            }
        }
    }

    pub(crate) fn robots(&mut self, origin: &Origin, state: RobotsState) {
        self.robots_out.insert(origin.clone(), false);
        self.rules.remove(origin);
        if let RobotsState::InForce { asks, until } = state {
            self.rules.insert(origin.clone(), (until, true));
            let host = self.hosts.entry(origin.host_key()).or_default();
            host.crawl_delays
                .insert(origin.clone(), asks.crawl_delay.unwrap_or_default());
        }
    }

    /// The host left memory, or the process died: what its robots say must be learned anew.
    pub(crate) fn forget_robots(&mut self, key: &HostKey) {
        self.rules.retain(|origin, _| origin.host_key() != *key);
        self.robots_out
            .retain(|origin, _| origin.host_key() != *key);
        if let Some(host) = self.hosts.get_mut(key) {
            host.crawl_delays.clear();
        }
    }

    /// The process died with these requests in flight.
    pub(crate) fn killed(&mut self, now: Tick, in_flight: &[Sent]) {
        for sent in in_flight {
            self.ended(now, sent);
        }
        let keys: Vec<_> = self.hosts.keys().cloned().collect();
        keys.iter().for_each(|key| self.forget_robots(key));
        self.last_start = None;
    }

    fn ended(&mut self, end: Tick, sent: &Sent) {
        let host = self.hosts.get_mut(&sent.host).unwrap();
        host.in_flight -= 1;
        host.ends.push(end);
        self.in_flight -= 1;
        if let Some(address) = sent.address {
            self.addresses.get_mut(&address).unwrap().end(end);
        }
        self.sites.get_mut(&sent.site).unwrap().end(end);
        if let Purpose::Robots { origin } = &sent.purpose {
            // Still out for the rules' sake: `robots` ends that.
            assert_eq!(self.robots_out.get(origin), Some(&true));
        }
    }
}

impl HostSeen {
    fn crawl_delay(&self) -> Duration {
        self.crawl_delays
            .values()
            .copied()
            .max()
            .unwrap_or_default()
    }

    fn least_gap(&self, politeness: &Politeness) -> Duration {
        let quickest = self.quickest.unwrap_or_default();
        let factor = quickest.mul_f64(politeness.delay_factor);
        politeness.delay.max(self.crawl_delay()).max(factor)
    }

    /// A request starts: some slot's gap must be over. Of those the one that ended last is
    /// taken, which leaves the most freedom for what follows.
    fn take_slot(&mut self, now: Tick, key: &HostKey, politeness: &Politeness) {
        let gap = self.least_gap(politeness);
        let rested = |end: &Tick| *end + gap <= now;
        if !self.crawl_delay().is_zero() {
            let alone = self.in_flight == 0 && self.ends.iter().all(rested);
            assert!(alone, "crawl delay of {key} broken at {now}");
        }
        let used = self.in_flight as usize + self.ends.len();
        let latest = self.ends.iter().copied().filter(rested).max();
        match latest.and_then(|latest| self.ends.iter().position(|end| *end == latest)) {
            Some(index) => {
                self.ends.swap_remove(index);
            }
            None => assert!(
                used < politeness.per_host as usize,
                "gap of {key} broken at {now}: {gap:?} from {:?}, {} in flight",
                self.ends,
                self.in_flight
            ),
        }
    }

    fn answered(&mut self, took: Duration) {
        self.quickest = Some(self.quickest.map_or(took, |quickest| quickest.min(took)));
        self.fails = 0;
        self.probing = false;
        self.pause_until = Tick::ZERO;
    }
}

impl Shared {
    fn start(&mut self, now: Tick, limit: u32, delay: Duration) {
        assert!(
            self.in_flight < limit,
            "more than {limit} at one address or site"
        );
        let rested = self.last.is_none_or(|last| last + delay <= now);
        assert!(rested, "delay of an address or site broken at {now}");
        self.in_flight += 1;
        self.last = self.last.max(Some(now));
    }

    fn end(&mut self, end: Tick) {
        self.in_flight -= 1;
        self.last = self.last.max(Some(end));
    }
}
