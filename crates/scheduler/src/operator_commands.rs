//! Commands of the operator while the crawl runs, and what they see of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crawl_weburl::HostKey;

use crate::host::{Host, NO_GATE};
use crate::overrides::PolitenessOverrides;
use crate::politeness::Politeness;
use crate::scheduler::Scheduler;
use crate::tick::Tick;

/// The pending work of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostWork {
    /// The host.
    pub host: HostKey,
    /// Urls that wait and have no permit.
    pub waiting: u64,
    /// When it may next be asked, as far as it goes itself; none while that depends on what is
    /// in flight, or while it is parked.
    pub next_at: Option<Tick>,
    /// The gap between two of its requests at this moment.
    pub gap: Duration,
    /// True if it is parked.
    pub is_parked: bool,
}

impl Scheduler {
    /// No permit is issued for a host until [`Scheduler::unpark`], for its robots.txt neither.
    /// A request in flight ends as ever. It need not be in memory, and may leave it.
    pub fn park(&mut self, now: Tick, host: &HostKey) {
        self.advance(now);
        self.parked.insert(host.clone());
        self.apply_parked(host);
    }

    /// A parked host is asked again. Whether it was parked.
    pub fn unpark(&mut self, now: Tick, host: &HostKey) -> bool {
        self.advance(now);
        let was_parked = self.parked.remove(host);
        self.apply_parked(host);
        was_parked
    }

    /// Returns whether a host is parked.
    #[must_use]
    pub fn is_parked(&self, host: &HostKey) -> bool {
        self.parked.contains(host)
    }

    /// The hosts that are parked, in the order of their text.
    pub fn parked(&self) -> impl ExactSizeIterator<Item = &HostKey> {
        self.parked.iter()
    }

    /// The operator's delay is another from now on: for one host, or for all, those with a delay
    /// of their own too.
    ///
    /// It is one of the gaps of which the longest counts, so whatever a host asks for still holds.
    /// A gap that was promised when a request ended is kept where this is shorter.
    pub fn set_delay(&mut self, now: Tick, host: Option<&HostKey>, delay: Duration) {
        self.advance(now);
        match host {
            Some(host) => {
                let number = self.host_limits_index(host);
                self.limits[number as usize].delay = delay;
                if let Some(&id) = self.by_host.get(host) {
                    self.hosts[id].limits = number;
                    self.refresh(id);
                }
            }
            None => {
                self.host_limits.clear();
                self.set_delay = Some(delay);
                for limits in &mut self.limits {
                    limits.delay = delay;
                }
                for id in self.hosts.ids().collect::<Vec<_>>() {
                    self.hosts[id].limits = self.limits_index(&self.hosts[id].key);
                    self.refresh(id);
                }
                self.limits.truncate(self.by_pattern.len() + 1);
            }
        }
    }

    /// The operator's politeness is another from now on, all but delays that were set by
    /// [`Scheduler::set_delay`].
    ///
    /// No wait that a host asked for ends earlier, and neither does a gap under way: it is kept by
    /// the stricter of both rules. Requests in flight end as ever; where more are than may be now,
    /// none follows until there is room. Walks over all hosts in memory.
    pub fn set_politeness(&mut self, now: Tick, politeness: Politeness) {
        self.advance(now);
        let politeness = politeness.made_usable();
        let mut limits = politeness.of_all_patterns();
        if let Some(delay) = self.set_delay {
            limits.iter_mut().for_each(|limits| limits.delay = delay);
        }
        let before = std::mem::replace(&mut self.limits, limits);
        self.by_pattern = politeness.by_pattern();
        self.limits_sites = politeness.limits_sites();
        self.rate.set(self.now, politeness.max_rate);
        for (host, number) in std::mem::take(&mut self.host_limits) {
            let own = self.host_limits_index(&host);
            self.limits[own as usize].delay = before[number as usize].delay;
        }
        let gates = self.gates.set_limits(self.now, &politeness);
        let hosts: Vec<u32> = self.hosts.ids().collect();
        for &id in &hosts {
            self.take_over(id, &before[self.hosts[id].limits as usize]);
        }
        for number in gates {
            self.requeue_gate(number);
        }
        for id in hosts {
            self.refresh(id);
        }
    }

    /// Other politeness holds for a host than before.
    fn take_over(&mut self, id: u32, before: &Politeness) {
        let number = self.limits_index(&self.hosts[id].key);
        let per_host = self.limits[number as usize].per_host;
        let host = &mut self.hosts[id];
        host.limits = number;
        // A slot that there was not before would be free at once, though an earlier change may have
        // taken it away within its gap.
        if per_host > before.per_host
            && let Some((until, why)) = host.first_free(before, &self.limits[number as usize])
            && until > self.now
        {
            host.backoff_mut().hold(until, why);
        }
        host.drop_slots(per_host);
        let site = self.site_limits(&self.hosts[id].key);
        match (self.hosts[id].site, site) {
            (NO_GATE, Some((site, limits))) => {
                self.dequeue(id);
                self.hosts[id].site = self.gates.join_site(self.now, site, limits);
            }
            (NO_GATE, None) | (_, Some(_)) => {}
            (gate, None) => {
                self.dequeue(id);
                self.hosts[id].site = NO_GATE;
                self.gates.leave(gate, self.now);
            }
        }
    }

    /// Hosts whose delay was set by itself. Each takes some 200 bytes for as long as the crawl
    /// runs.
    #[must_use]
    pub fn own_delays(&self) -> usize {
        self.host_limits.len()
    }

    /// The hosts in memory, in no stated order.
    pub fn known_hosts(&self) -> impl Iterator<Item = &HostKey> {
        self.by_host.keys()
    }

    /// The hosts with the most urls waiting, at most so many, the most first. Walks over all
    /// hosts in memory.
    #[must_use]
    pub fn busiest(&self, now: Tick, most: usize) -> Vec<HostWork> {
        let now = self.now.max(now);
        let mut busiest = BinaryHeap::with_capacity(most.saturating_add(1));
        for host in self.hosts.iter() {
            let waiting = host.waiting();
            if waiting > 0 {
                busiest.push(Reverse((waiting, Reverse(&host.key))));
                if busiest.len() > most {
                    busiest.pop();
                }
            }
        }
        let busiest = busiest.into_sorted_vec().into_iter();
        let hosts = busiest.filter_map(|Reverse((_, Reverse(key)))| self.by_host.get(key));
        hosts
            .map(|id| self.work_of(&self.hosts[*id], now))
            .collect()
    }

    fn work_of(&self, host: &Host, now: Tick) -> HostWork {
        let limits = self.limits_of(host);
        let retries = host.origins.iter().map(|entry| entry.status().retry_at);
        let next_at = match host.is_parked {
            true => None,
            false if host.has_work() => host.opens_at(limits, now).map(|at| at.max(now)),
            false => retries.flatten().min(),
        };
        HostWork {
            host: host.key.clone(),
            waiting: host.waiting(),
            next_at,
            gap: Duration::from_micros(host.gap(limits).0),
            is_parked: host.is_parked,
        }
    }

    /// The number of the limits that a host has to itself, made where it has none.
    fn host_limits_index(&mut self, host: &HostKey) -> u32 {
        if let Some(number) = self.host_limits.get(host) {
            return *number;
        }
        let own = Politeness {
            sites: PolitenessOverrides::default(),
            ..self.limits[self.limits_index(host) as usize].clone()
        };
        let number = u32::try_from(self.limits.len()).expect("invariant: memory ends before");
        self.limits.push(own);
        self.host_limits.insert(host.clone(), number);
        number
    }

    fn apply_parked(&mut self, host: &HostKey) {
        if let Some(&id) = self.by_host.get(host) {
            self.hosts[id].is_parked = self.parked.contains(host);
            self.refresh(id);
        }
    }
}
