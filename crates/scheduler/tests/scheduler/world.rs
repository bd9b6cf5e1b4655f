//! A small drawn web and a small engine over it, in virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use crawl_scheduler::{
    Permit, Politeness, Poll, Purpose, Restart, RobotsAsks, RobotsState, Scheduler, Signal,
    SignalKind, Spent, Tick,
};
use crawl_weburl::{HostKey, Origin};

use crate::check::{Check, Sent};
use crate::stage::{START, origin};

/// What to draw.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) hosts: u32,
    pub(crate) addresses: u8,
    pub(crate) sites: u32,
    pub(crate) urls: u32,
    /// Of a hundred requests, so many go wrong in one way or another.
    pub(crate) trouble: u32,
    /// Of a hundred steps, so many see a host evicted; of ten thousand, so many a kill.
    pub(crate) churn: u32,
    pub(crate) politeness: Politeness,
}

pub(crate) struct World {
    plan: Plan,
    dice: Dice,
    now: Tick,
    scheduler: Scheduler,
    check: Check,
    hosts: BTreeMap<HostKey, HostPlan>,
    /// Urls left, per origin.
    left: BTreeMap<Origin, u32>,
    flying: Vec<Option<Flight>>,
    ends: BinaryHeap<Reverse<(Tick, usize)>>,
    /// When more urls of an origin are found.
    finds: Vec<(Tick, Origin)>,
    evicted: BTreeMap<HostKey, Vec<u8>>,
    pub(crate) log: String,
    pub(crate) pages: u32,
}

struct HostPlan {
    address: IpAddr,
    latency: Duration,
    crawl_delay: Option<Duration>,
}

struct Flight {
    spent: Spent,
    sent: Sent,
    took: Duration,
    kind: SignalKind,
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u32) -> u32 {
        // Knuth's MMIX generator; the upper bits are the good ones.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(n.max(1))).unwrap()
    }

    fn percent(&mut self, n: u32) -> bool {
        self.below(100) < n
    }

    fn millis(&mut self, n: u32) -> Duration {
        Duration::from_millis(u64::from(self.below(n)))
    }
}

impl World {
    pub(crate) fn new(plan: Plan) -> World {
        let mut dice = Dice(plan.seed);
        let (mut hosts, mut left, mut finds) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for number in 0..plan.hosts {
            let site = dice.below(plan.sites);
            let name = format!("h{number}.s{site}.example");
            for text in [format!("http://{name}"), format!("https://{name}:8443")] {
                let origin = origin(&text);
                finds.push((START + dice.millis(60_000), origin.clone()));
                finds.push((START, origin.clone()));
                left.insert(origin, 0);
                if dice.percent(70) {
                    break;
                }
            }
            let host = HostPlan {
                address: [
                    192,
                    0,
                    2,
                    u8::try_from(dice.below(plan.addresses.into())).unwrap(),
                ]
                .into(),
                latency: Duration::from_millis(5) + dice.millis(400),
                crawl_delay: dice.percent(20).then(|| dice.millis(4000)),
            };
            hosts.insert(HostKey::parse(&name).unwrap(), host);
        }
        World {
            dice,
            now: START,
            scheduler: Scheduler::new(plan.politeness.clone(), plan.seed),
            check: Check::new(plan.politeness.clone()),
            hosts,
            left,
            flying: Vec::new(),
            ends: BinaryHeap::new(),
            finds,
            evicted: BTreeMap::new(),
            log: String::new(),
            pages: 0,
            plan,
        }
    }

    /// Runs until all work is done.
    ///
    /// # Panics
    /// Where a rule is broken, or work is left that nobody will do.
    pub(crate) fn run(&mut self) {
        for _ in 0..200_000 {
            self.churn();
            match self.scheduler.poll(self.now) {
                Poll::Issue(permit) => self.send(permit),
                Poll::SleepUntil(at) => {
                    assert!(at > self.now, "sleep until the past");
                    self.step(Some(at));
                }
                Poll::Idle if self.is_over() => {
                    assert_eq!(self.scheduler.in_flight(), 0);
                    return;
                }
                Poll::Idle => self.step(None),
            }
        }
        panic!(
            "still not done at {}, {} pages: {:?}",
            self.now, self.pages, self.left
        );
    }

    fn is_over(&self) -> bool {
        self.ends.is_empty() && self.finds.is_empty() && self.left.values().all(|left| *left == 0)
    }

    /// Goes on to the next moment at which anything happens.
    fn step(&mut self, wake: Option<Tick>) {
        let end = self.ends.peek().map(|Reverse((end, _))| *end);
        let find = self.finds.iter().map(|(at, _)| *at).min();
        let next = [wake, end, find].into_iter().flatten().min();
        let next = next.unwrap_or_else(|| panic!("work left, and nobody does it: {:?}", self.left));
        self.now = self.now.max(next);
        while let Some(index) = self.finds.iter().position(|(at, _)| *at <= self.now) {
            let (_, origin) = self.finds.swap_remove(index);
            *self.left.get_mut(&origin).unwrap() += 1 + self.dice.below(self.plan.urls);
            self.tell(&origin);
        }
        while let Some(Reverse((end, index))) = self.ends.peek().copied()
            && end <= self.now
        {
            self.ends.pop();
            let flight = self.flying[index].take().unwrap();
            self.end(end, flight);
        }
    }

    /// Says how many urls wait, as an engine does; an evicted host comes back first.
    fn tell(&mut self, origin: &Origin) {
        let host = origin.host_key();
        if let Some(bytes) = self.evicted.remove(&host) {
            self.scheduler
                .restore(self.now, &host, &bytes, Restart::AfterKill);
        }
        self.scheduler
            .waiting(self.now, origin, self.left[origin].into());
    }

    fn send(&mut self, permit: Permit) {
        if let Purpose::Page { origin } = permit.purpose().clone() {
            if self.left[&origin] == 0 {
                self.scheduler.waiting(self.now, &origin, 0);
                self.scheduler.give_back(self.now, permit);
                return;
            }
            if self.dice.percent(3) {
                self.scheduler.give_back(self.now, permit);
                return;
            }
            *self.left.get_mut(&origin).unwrap() -= 1;
            if self.dice.percent(50) {
                self.tell(&origin);
            }
        }
        let sent = self.check.start(self.now, permit.host(), permit.purpose());
        let (host, gap, why) = (permit.host(), permit.gap(), permit.why());
        writeln!(
            self.log,
            "{} {host} {:?} {gap:?} {why}",
            self.now,
            permit.purpose()
        )
        .unwrap();
        let plan = &self.hosts[permit.host()];
        let took = plan.latency + self.dice.millis(20);
        let kind = self.draw_kind();
        self.ends
            .push(Reverse((self.now + took, self.flying.len())));
        let spent = permit.spend();
        self.flying.push(Some(Flight {
            spent,
            sent,
            took,
            kind,
        }));
    }

    fn draw_kind(&mut self) -> SignalKind {
        if !self.dice.percent(self.plan.trouble) {
            return SignalKind::Answered;
        }
        match self.dice.below(4) {
            0 => SignalKind::UrlFailed,
            1 => SignalKind::NoConnection,
            2 => SignalKind::AskedToWait { retry_after: None },
            _ => SignalKind::AskedToWait {
                retry_after: Some(self.dice.millis(90_000)),
            },
        }
    }

    fn end(&mut self, end: Tick, flight: Flight) {
        let Flight {
            spent,
            sent,
            took,
            kind,
        } = flight;
        let (host, purpose) = (spent.host().clone(), spent.purpose().clone());
        let reached = kind != SignalKind::NoConnection;
        let address = reached.then(|| self.hosts[&host].address);
        self.check.end(end, &sent, took, address, kind);
        let signal = Signal {
            end,
            response_time: took,
            address,
            kind,
            rate_limit: None,
            url: None,
        };
        let learned = self.scheduler.done(self.now, spent, signal);
        assert!(
            learned.next_at >= end + self.plan.politeness.delay
                || self.plan.politeness.per_host > 1
        );
        let answered = kind == SignalKind::Answered;
        match purpose {
            Purpose::Page { origin } if answered => {
                self.pages += 1;
                let _ = origin;
            }
            Purpose::Page { origin } => {
                *self.left.get_mut(&origin).unwrap() += 1;
                self.tell(&origin);
            }
            Purpose::Robots { origin } if answered && self.dice.percent(20) => {
                let hosts: Vec<_> = self.hosts.keys().cloned().collect();
                let to = &hosts[self.dice.below(self.plan.hosts) as usize];
                if let Some(bytes) = self.evicted.remove(to) {
                    self.scheduler
                        .restore(self.now, to, &bytes, Restart::AfterKill);
                }
                self.scheduler
                    .ask(self.now, to, Purpose::Hop { of: origin });
            }
            Purpose::Robots { origin } | Purpose::Hop { of: origin } => {
                self.judge(&origin, answered);
            }
        }
    }

    fn judge(&mut self, origin: &Origin, answered: bool) {
        let state = if answered {
            RobotsState::InForce {
                asks: RobotsAsks {
                    crawl_delay: self.hosts[&origin.host_key()].crawl_delay,
                    ..RobotsAsks::default()
                },
                until: self.now + Duration::from_secs(5) + self.dice.millis(300_000),
            }
        } else {
            RobotsState::Unreachable {
                retry_at: self.now + self.dice.millis(60_000),
            }
        };
        self.check.robots(origin, state.clone());
        self.scheduler.robots(self.now, origin, state);
    }

    fn churn(&mut self) {
        if self.dice.percent(self.plan.churn)
            && let Some((host, _, bytes)) = self.scheduler.evict()
        {
            self.check.forget_robots(&host);
            self.evicted.insert(host, bytes);
        }
        if self.dice.below(10_000) < self.plan.churn {
            self.kill();
        }
    }

    /// The process dies, and another goes on from what is stored.
    fn kill(&mut self) {
        let flights: Vec<_> = self.flying.drain(..).flatten().collect();
        let sent: Vec<_> = flights.iter().map(|flight| flight.sent.clone()).collect();
        self.check.killed(self.now, &sent);
        self.ends.clear();
        for flight in flights {
            if let Purpose::Page { origin } = flight.spent.purpose() {
                *self.left.get_mut(origin).unwrap() += 1;
            }
        }
        let mut stored = std::mem::take(&mut self.evicted);
        for host in self.hosts.keys() {
            if let Some((_, bytes)) = self.scheduler.snapshot(host) {
                stored.insert(host.clone(), bytes);
            }
        }
        self.scheduler = Scheduler::new(self.plan.politeness.clone(), self.plan.seed);
        for (host, bytes) in stored {
            self.scheduler
                .restore(self.now, &host, &bytes, Restart::AfterKill);
        }
        let origins: Vec<_> = self.left.keys().cloned().collect();
        origins.iter().for_each(|origin| self.tell(origin));
        writeln!(self.log, "{} killed", self.now).unwrap();
    }
}
