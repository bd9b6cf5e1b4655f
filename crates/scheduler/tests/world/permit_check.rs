//! An independent check of every permit. The check knows only the rules, the requests and their
//! outcomes.

use std::collections::HashMap;
use std::time::Duration;

use crawl_scheduler::{
    OutcomeKind, Politeness, PolitenessOverride, RequestOutcome, RobotsState, Tick,
};

use super::world_plan::{HostPlan, Plan, Spans, WorldPace, within};

/// Maximum breaches to keep as text. Further breaches are only counted.
const BREACHES: usize = 10;

pub(crate) struct Check {
    politeness: Politeness,
    overrides: Vec<(String, PolitenessOverride)>,
    /// The general quiet hours, followed by the quiet hours of each override.
    quiet: Vec<Spans>,
    pace: Vec<WorldPace>,
    hosts: Vec<HostSeen>,
    origins: Vec<OriginSeen>,
    addresses: Vec<Shared>,
    sites: Vec<Shared>,
    /// For each site, the number of the override that applies to it, from 1; 0 if none does.
    site_terms: Vec<u8>,
    troubles: HashMap<u32, Trouble>,
    in_flight: u32,
    last_start: Option<Tick>,
    /// Number of breaches, and the text of the first ones.
    pub(crate) breaches: u64,
    pub(crate) first_breaches: Vec<String>,
}

#[derive(Clone, Default)]
struct HostSeen {
    /// For each free slot that was used: when its last request ended, and the delay at that time.
    ends: Vec<(Tick, Duration)>,
    /// End of the gap that was under way when the politeness changed.
    kept_until: Tick,
    in_flight: u16,
    name: String,
    /// The number of the override that applies to the host, from 1; 0 if none does.
    terms: u8,
    has_two_origins: bool,
    /// Index of the robots pace of each of the host's origins; 0 for none.
    pace: [u8; 2],
    address: Option<u32>,
    /// The shortest and longest response times of the host's answers. The smoothed response time is
    /// between them.
    response_ms: Option<(u32, u32)>,
}

/// State of a host that failed or asked to wait. Most hosts have none.
#[derive(Clone, Default)]
struct Trouble {
    wait_until: Tick,
    pause_until: Tick,
    probing: bool,
    failed: Vec<u64>,
    /// Answers since the last pause.
    ease: u32,
    limit_gap: Duration,
    limit_until: Tick,
    limit_wait: Tick,
}

#[derive(Clone, Copy, Default)]
struct OriginSeen {
    /// Until when the rules in force are fresh.
    rules: Option<Tick>,
    /// Whether no page has been fetched under the rules in force yet.
    first: bool,
    robots_out: bool,
}

#[derive(Clone, Copy, Default)]
struct Shared {
    in_flight: u32,
    /// When a request at this gate last started or ended.
    last: Option<Tick>,
    last_start: Option<Tick>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorldPurpose {
    Page(u32),
    Robots(u32),
    Hop,
}

/// A request that was sent, and the gates (shared limits) at which it was counted.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) host: u32,
    pub(crate) purpose: WorldPurpose,
    address: Option<u32>,
    site: u32,
    pub(crate) start: Tick,
}

impl Check {
    pub(crate) fn new(plan: &Plan, pace: Vec<WorldPace>, hosts: &[HostPlan]) -> Check {
        let seen = hosts.iter().zip(0u32..).map(|(host, number)| {
            let name = format!("h{number}.s{}.example", host.site);
            HostSeen {
                terms: pattern_of(&plan.overrides, &name),
                has_two_origins: host.second_origin,
                name,
                ..HostSeen::default()
            }
        });
        Check {
            politeness: plan.politeness.clone(),
            overrides: plan.overrides.clone(),
            quiet: quiet_spans(plan),
            pace,
            hosts: seen.collect(),
            origins: vec![OriginSeen::default(); hosts.len() * 2],
            addresses: vec![Shared::default(); plan.addresses as usize],
            sites: vec![Shared::default(); plan.sites as usize],
            site_terms: (0..plan.sites)
                .map(|site| pattern_of(&plan.overrides, &format!("s{site}.example")))
                .collect(),
            troubles: HashMap::new(),
            in_flight: 0,
            last_start: None,
            breaches: 0,
            first_breaches: Vec::new(),
        }
    }

    fn judge(&mut self, kept: bool, breach: impl FnOnce() -> String) {
        if !kept {
            self.breaches += 1;
            if self.first_breaches.len() < BREACHES {
                self.first_breaches.push(breach());
            }
        }
    }

    pub(crate) fn start(&mut self, now: Tick, host: u32, site: u32, purpose: WorldPurpose) -> Sent {
        self.judge_host(now, host);
        self.judge_purpose(now, purpose);
        let address = self.hosts[host as usize].address;
        if let Some(address) = address {
            let (limit, delay) = (self.politeness.per_address, self.politeness.address_delay);
            let shared = &mut self.addresses[address as usize];
            let space = shared.last_start.map(|last| now.since(last).as_secs_f64());
            let is_rapid = match (self.politeness.address_rate, space) {
                (Some(rate), Some(space)) => space < rate.recip() - 1e-9,
                _ => false,
            };
            let broken = shared.start(now, limit, delay) || is_rapid;
            self.judge(!broken, || {
                format!("{now}: address {address} of h{host} {space:?}")
            });
        }
        // The limit of a site is never below the limit of a single host.
        let terms = override_of(&self.overrides, self.site_terms[site as usize]);
        let per_host = terms.and_then(|terms| terms.per_host);
        let per_host = per_host.unwrap_or(self.politeness.per_host);
        let per_site = self.politeness.per_site;
        let per_site = per_site.map_or(u32::MAX, |limit| limit.max(per_host));
        let broken = self.sites[site as usize].start(now, per_site, self.politeness.site_delay);
        self.judge(!broken, || format!("{now}: site {site} of h{host}"));
        self.in_flight += 1;
        let crowded = self.in_flight > self.politeness.concurrency;
        self.judge(!crowded, || format!("{now}: concurrency"));
        if let (Some(rate), Some(last)) = (self.politeness.max_rate, self.last_start) {
            let space = now.since(last).as_secs_f64();
            self.judge(space >= rate.recip() - 1e-9, || format!("{now}: rate"));
        }
        self.last_start = Some(now);
        Sent {
            host,
            purpose,
            address,
            site,
            start: now,
        }
    }

    fn judge_host(&mut self, now: Tick, host: u32) {
        let name = || format!("{now}: h{host}");
        let terms = self.hosts[host as usize].terms;
        let quiet = within(&self.quiet[usize::from(terms)], now);
        self.judge(!quiet, || format!("{} asked in quiet hours", name()));
        if let Some(trouble) = self.troubles.get(&host) {
            let (wait, pause) = (trouble.wait_until, trouble.pause_until);
            let (limit, probing) = (trouble.limit_wait, trouble.probing);
            self.judge(now >= wait, || format!("{} asked to wait", name()));
            self.judge(now >= pause, || format!("{} is paused", name()));
            self.judge(now >= limit, || format!("{} has nothing left", name()));
            let alone = !probing || self.hosts[host as usize].in_flight == 0;
            self.judge(alone, || format!("{}: a second probe", name()));
        }
        let gap = self.least_gap(now, host);
        let paced = self.is_paced(host);
        let per_host = self.per_host(host);
        let seen = &mut self.hosts[host as usize];
        let is_rested = now >= seen.kept_until && seen.take_slot(now, gap, paced, per_host);
        seen.in_flight += 1;
        self.judge(is_rested, || format!("{}: gap of {gap:?}", name()));
    }

    fn judge_purpose(&mut self, now: Tick, purpose: WorldPurpose) {
        match purpose {
            WorldPurpose::Page(origin) => {
                let seen = &mut self.origins[origin as usize];
                let fresh = seen.rules.is_some_and(|until| now < until || seen.first);
                let has_rules = fresh && !seen.robots_out;
                seen.first = false;
                self.judge(has_rules, || {
                    format!("{now}: origin {origin}: no fresh rules")
                });
                let (host, side) = (origin / 2, origin as usize % 2);
                let pace = self.hosts[host as usize].pace[side];
                let visits = &self.pace[usize::from(pace)].visits;
                let welcome = visits.is_empty() || within(visits, now);
                self.judge(welcome, || {
                    format!("{now}: origin {origin}: not its visit time")
                });
            }
            WorldPurpose::Robots(origin) => {
                let seen = &mut self.origins[origin as usize];
                let twice = std::mem::replace(&mut seen.robots_out, true);
                self.judge(!twice, || format!("{now}: origin {origin}: robots twice"));
            }
            WorldPurpose::Hop => {}
        }
    }

    pub(crate) fn end(&mut self, sent: &Sent, address: Option<u32>, signal: &RequestOutcome) {
        let end = signal.end;
        self.ended(end, sent);
        let host = sent.host;
        if let Some(address) = address {
            self.hosts[host as usize].address = Some(address);
            self.addresses[address as usize].last = Some(end);
        }
        match signal.kind {
            OutcomeKind::Answered => self.answered(host, signal, None),
            OutcomeKind::AskedToWait { retry_after } => {
                self.answered(host, signal, retry_after);
                let wait = retry_after.unwrap_or(self.politeness.wait_first);
                let wait = wait.min(self.politeness.max_retry_after);
                let trouble = self.troubles.entry(host).or_default();
                trouble.wait_until = trouble.wait_until.max(end + wait);
            }
            OutcomeKind::UrlFailed | OutcomeKind::NoConnection => self.failed(sent, signal),
        }
    }

    /// Records the address that a look-up returned for a host.
    pub(crate) fn found(&mut self, host: u32, address: u32) {
        self.hosts[host as usize].address = Some(address);
    }

    fn failed(&mut self, sent: &Sent, signal: &RequestOutcome) {
        // The scheduler doesn't blame the host if another origin of the host may still answer. This
        // check doesn't know whether another origin may answer, so it ignores such failures.
        if signal.kind == OutcomeKind::NoConnection
            && let WorldPurpose::Robots(_) = sent.purpose
            && self.hosts[sent.host as usize].has_two_origins
        {
            return;
        }
        let least = (10 * self.steady_gap(sent.host)).max(Duration::from_secs(5));
        let trouble = self.troubles.entry(sent.host).or_default();
        if let Some(url) = signal.url
            && !trouble.failed.contains(&url)
        {
            trouble.failed.push(url);
        }
        let probe = trouble.probing && sent.start >= trouble.pause_until;
        let enough = trouble.failed.len() >= self.politeness.fails_in_a_row as usize;
        let fault = enough || signal.kind == OutcomeKind::NoConnection;
        if probe || (fault && !trouble.probing) {
            trouble.probing = true;
            trouble.pause_until = signal.end + least;
        }
    }

    fn answered(&mut self, host: u32, signal: &RequestOutcome, retry_after: Option<Duration>) {
        let took = u32::try_from(signal.response_time.as_millis()).unwrap_or(u32::MAX);
        let seen = &mut self.hosts[host as usize];
        let (least, largest) = seen.response_ms.unwrap_or((took, took));
        seen.response_ms = Some((least.min(took), largest.max(took)));
        let gap = self.steady_gap(host);
        if !self.troubles.contains_key(&host) && signal.rate_limit.is_none() {
            return;
        }
        let trouble = self.troubles.entry(host).or_default();
        trouble.failed.clear();
        trouble.pause_until = Tick::ZERO;
        if std::mem::take(&mut trouble.probing) {
            trouble.ease = 1;
        } else if trouble.ease > 0 {
            trouble.ease += 1;
        }
        if slow_gap(gap, trouble.ease) <= gap.max(Duration::from_millis(1)) {
            trouble.ease = 0;
        }
        if let Some(limit) = signal.rate_limit {
            let longest = self.politeness.max_retry_after;
            trouble.limit_gap = limit.gap.unwrap_or_default().min(longest);
            trouble.limit_until = signal.end + limit.lasts.min(longest);
            let wait = limit.wait.filter(|_| retry_after.is_none());
            trouble.limit_wait = wait.map_or(Tick::ZERO, |wait| signal.end + wait.min(longest));
        }
    }

    pub(crate) fn robots(&mut self, origin: u32, pace: u8, state: &RobotsState) {
        let seen = &mut self.origins[origin as usize];
        seen.robots_out = false;
        seen.rules = None;
        if let RobotsState::InForce { until, .. } = state {
            seen.rules = Some(*until);
            seen.first = true;
            self.hosts[(origin / 2) as usize].pace[origin as usize % 2] = pace;
        }
    }

    /// Forgets the robots.txt state of a host after an eviction or a kill.
    pub(crate) fn forget_robots(&mut self, host: u32) {
        for origin in [host * 2, host * 2 + 1] {
            self.origins[origin as usize] = OriginSeen::default();
        }
        self.hosts[host as usize].pace = [0, 0];
    }

    /// Ends the requests in flight when the process was killed.
    pub(crate) fn killed(&mut self, now: Tick, in_flight: &[Sent]) {
        for sent in in_flight {
            self.ended(now, sent);
        }
        let hosts = u32::try_from(self.hosts.len()).unwrap_or(0);
        (0..hosts).for_each(|host| self.forget_robots(host));
        self.last_start = None;
    }

    /// Applies changed politeness. If an evicted host gets more slots, keeps only as many request
    /// ends as the host had slots before.
    pub(crate) fn reload(&mut self, now: Tick, plan: &Plan, is_away: impl Fn(u32) -> bool) {
        let before: Vec<_> = (0..self.hosts.len())
            .map(|host| {
                let number = u32::try_from(host).unwrap_or(u32::MAX);
                // A shorter gap may end a slow restart earlier.
                let (_, largest) = self.hosts[host].response_ms.unwrap_or_default();
                let longest = self.gap_after(number, largest);
                if let Some(trouble) = self.troubles.get_mut(&number)
                    && slow_gap(longest, trouble.ease) <= longest
                {
                    trouble.ease = 0;
                }
                (self.per_host(number), self.steady_gap(number))
            })
            .collect();
        self.politeness = plan.politeness.clone();
        self.overrides.clone_from(&plan.overrides);
        self.quiet = quiet_spans(plan);
        for (number, (per_host, gap)) in (0u32..).zip(before) {
            let seen = &mut self.hosts[number as usize];
            seen.terms = pattern_of(&self.overrides, &seen.name);
            let used = usize::from(seen.in_flight) + seen.ends.len();
            let rested = seen.ends.iter().map(|(end, delay)| *end + gap.max(*delay));
            let rested = rested.min().filter(|_| used >= per_host as usize);
            let is_wider = self.per_host(number) > per_host;
            let seen = &mut self.hosts[number as usize];
            if is_wider && is_away(number) {
                seen.forget_ends(per_host);
            } else if let Some(until) = rested.filter(|_| is_wider) {
                seen.kept_until = seen.kept_until.max(until.min(now + gap));
            }
        }
        for (site, terms) in (0u32..).zip(&mut self.site_terms) {
            *terms = pattern_of(&self.overrides, &format!("s{site}.example"));
        }
    }

    fn ended(&mut self, end: Tick, sent: &Sent) {
        let delay = self.delay(sent.host);
        let per_host = self.per_host(sent.host);
        let seen = &mut self.hosts[sent.host as usize];
        seen.in_flight -= 1;
        seen.ends.push((end, delay));
        // The limit may have been lowered since the requests in flight began.
        seen.forget_ends(per_host);
        self.in_flight -= 1;
        if let Some(address) = sent.address {
            self.addresses[address as usize].end(end);
        }
        self.sites[sent.site as usize].end(end);
    }

    fn terms(&self, host: u32) -> Option<&PolitenessOverride> {
        override_of(&self.overrides, self.hosts[host as usize].terms)
    }

    fn per_host(&self, host: u32) -> u32 {
        let own = self.terms(host).and_then(|terms| terms.per_host);
        own.unwrap_or(self.politeness.per_host)
    }

    fn delay(&self, host: u32) -> Duration {
        let own = self.terms(host).and_then(|terms| terms.delay);
        own.unwrap_or(self.politeness.delay)
    }

    /// Returns whether all slots of the host share one pace.
    fn is_paced(&self, host: u32) -> bool {
        let pace = self.hosts[host as usize].pace;
        pace.iter().any(|pace| {
            let pace = &self.pace[usize::from(*pace)];
            !pace.crawl_delay.is_zero() || !pace.rates.is_empty()
        })
    }

    /// Returns the minimum gap that applies at any hour.
    fn steady_gap(&self, host: u32) -> Duration {
        let (least, _) = self.hosts[host as usize].response_ms.unwrap_or_default();
        self.gap_after(host, least)
    }

    /// Returns the gap at any hour for a given smoothed response time.
    fn gap_after(&self, host: u32, response_ms: u32) -> Duration {
        let seen = &self.hosts[host as usize];
        let terms = self.terms(host);
        let politeness = &self.politeness;
        let factor = terms.and_then(|terms| terms.delay_factor);
        let response = Duration::from_millis(response_ms.into());
        let factor = response.mul_f64(factor.unwrap_or(politeness.delay_factor));
        let mut gap = self.delay(host).max(factor);
        for pace in seen.pace {
            let pace = &self.pace[usize::from(pace)];
            gap = gap.max(pace.crawl_delay);
            let always = pace.rates.iter().filter(|rate| rate.during.is_none());
            gap = always.fold(gap, |gap, rate| gap.max(rate.gap()));
        }
        gap
    }

    /// Returns the minimum gap before a request that starts now.
    fn least_gap(&self, now: Tick, host: u32) -> Duration {
        let mut gap = self.steady_gap(host);
        if let Some(trouble) = self.troubles.get(&host) {
            if trouble.ease > 0 {
                gap = gap.max(slow_gap(gap, trouble.ease));
            }
            if now < trouble.limit_until {
                gap = gap.max(trouble.limit_gap);
            }
        }
        for pace in self.hosts[host as usize].pace {
            for rate in &self.pace[usize::from(pace)].rates {
                if rate.during.is_some_and(|span| within(&[span], now)) {
                    gap = gap.max(rate.gap());
                }
            }
        }
        gap
    }
}

impl HostSeen {
    /// Forgets the earliest ends if there are more ends than free slots.
    fn forget_ends(&mut self, per_host: u32) {
        while self.ends.len() > (per_host as usize).saturating_sub(self.in_flight.into()) {
            let first = (0..self.ends.len()).min_by_key(|index| self.ends[*index].0);
            self.ends.swap_remove(first.unwrap_or(0));
        }
    }

    /// Starts a request. Returns whether the gap of at least one slot was over. If the gaps of
    /// several slots were over, takes the slot whose last request ended last, because this leaves
    /// the most freedom for later requests.
    fn take_slot(&mut self, now: Tick, gap: Duration, paced: bool, per_host: u32) -> bool {
        let rested = |(end, delay): &(Tick, Duration)| *end + gap.max(*delay) <= now;
        let alone = self.in_flight == 0 && self.ends.iter().all(rested);
        let used = usize::from(self.in_flight) + self.ends.len();
        let latest = self.ends.iter().copied().filter(rested).max();
        let slot = match latest.and_then(|latest| self.ends.iter().position(|end| *end == latest)) {
            Some(index) => {
                self.ends.swap_remove(index);
                true
            }
            None => used < per_host as usize,
        };
        slot && (alone || !paced)
    }
}

impl Shared {
    /// Starts a request at a gate (shared limit). Returns whether the request breaks the gate's
    /// limit or delay.
    fn start(&mut self, now: Tick, limit: u32, delay: Duration) -> bool {
        let crowded = self.in_flight >= limit;
        let early = self.last.is_some_and(|last| last + delay > now);
        self.in_flight += 1;
        self.last = self.last.max(Some(now));
        self.last_start = Some(now);
        crowded || early
    }

    fn end(&mut self, end: Tick) {
        self.in_flight -= 1;
        self.last = self.last.max(Some(end));
    }
}

/// Returns the quiet hours as spans of minutes, by checking each minute of the day.
fn quiet_spans(plan: &Plan) -> Vec<Spans> {
    let general = &plan.politeness.quiet;
    let own = plan.overrides.iter();
    let own = own.map(|(_, terms)| terms.quiet.as_ref().unwrap_or(general));
    let every = std::iter::once(general).chain(own);
    every
        .map(|quiet| {
            let is_quiet = |minute: &u16| {
                let at = Tick::from_micros(u64::from(*minute) * 60_000_000);
                quiet.iter().any(|hours| hours.contain(at))
            };
            let minutes = (0..1440).filter(is_quiet);
            minutes.map(|minute| (minute, minute + 1)).collect()
        })
        .collect()
}

/// Returns the minimum gap after this many answers since a pause. Subtracts one microsecond,
/// because the scheduler rounds the gap.
fn slow_gap(gap: Duration, ease: u32) -> Duration {
    let halved = (10 * gap).max(Duration::from_secs(5)) / 2u32.saturating_pow(ease);
    halved.saturating_sub(Duration::from_micros(1))
}

fn override_of(
    overrides: &[(String, PolitenessOverride)],
    number: u8,
) -> Option<&PolitenessOverride> {
    let (_, terms) = overrides.get(usize::from(number).checked_sub(1)?)?;
    Some(terms)
}

/// Returns the number, from 1, of the longest pattern that is a suffix of the host's name; 0 if
/// there is none.
fn pattern_of(overrides: &[(String, PolitenessOverride)], name: &str) -> u8 {
    let matches = overrides
        .iter()
        .zip(1u8..)
        .filter(|((pattern, _), _)| name == *pattern || name.ends_with(&format!(".{pattern}")));
    matches
        .max_by_key(|((pattern, _), number)| (pattern.len(), std::cmp::Reverse(*number)))
        .map_or(0, |(_, number)| number)
}
