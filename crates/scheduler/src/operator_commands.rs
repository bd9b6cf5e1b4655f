//! Commands from the operator during a crawl, and reports on hosts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crawl_weburl::HostKey;

use crate::host::{NO_GATE, ScheduledHost};
use crate::politeness_overrides::PolitenessOverrides;
use crate::politeness_settings::Politeness;
use crate::scheduler::Scheduler;
use crate::tick::Tick;

/// The pending work of a host, and when its next request is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostWorkload {
    /// The host that has this work.
    pub host: HostKey,
    /// Pending URLs without a permit.
    pub waiting: u64,
    /// When the host's own limits allow the next request. `None` if that depends on requests in
    /// flight, or if the host is parked.
    pub next_at: Option<Tick>,
    /// The current gap between two requests.
    pub gap: Duration,
    /// Whether the host is parked.
    pub is_parked: bool,
}

impl Scheduler {
    /// Parks a host: no permit is issued for it, not even for robots.txt, until
    /// [`Scheduler::unpark`]. Requests in flight end normally. The host need not be in memory and
    /// may still be evicted.
    pub fn park(&mut self, now: Tick, host: &HostKey) {
        self.advance(now);
        self.parked.insert(host.clone());
        self.apply_parked(host);
    }

    /// Unparks a host. Returns whether it was parked.
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

    /// Returns the parked hosts, sorted by name.
    pub fn parked(&self) -> impl ExactSizeIterator<Item = &HostKey> {
        self.parked.iter()
    }

    /// Sets the operator's delay for one host or, if `host` is `None`, for all hosts, including
    /// those with a delay of their own.
    ///
    /// The longest gap applies, so a longer gap set by the host stays in force. A gap that is
    /// already under way keeps its length even if the new delay is shorter.
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

    /// Replaces the operator's politeness, except delays set by [`Scheduler::set_delay`] and the
    /// number of look-ups ([`Politeness::look_ups`]), which is fixed.
    ///
    /// No wait requested by a host ends earlier. A gap under way ends when both the old and the new
    /// rules allow it. Requests in flight end normally. If they exceed the new limits, no request
    /// is issued until enough of them have ended. Visits all hosts in memory.
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

    /// Applies the changed politeness to a host. `before` is the host's old politeness.
    fn take_over(&mut self, id: u32, before: &Politeness) {
        let number = self.limits_index(&self.hosts[id].key);
        let per_host = self.limits[number as usize].per_host;
        let host = &mut self.hosts[id];
        host.limits = number;
        // A higher limit adds a slot that would be free immediately. An earlier, lower limit may
        // have removed this slot while its gap was under way, so wait until that gap would be over.
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
                self.gates.remove_host(gate, self.now);
            }
        }
    }

    /// Returns the number of hosts for which the operator set a delay. Each of these delays takes
    /// about 200 bytes until the crawl ends.
    #[must_use]
    pub fn own_delays(&self) -> usize {
        self.host_limits.len()
    }

    /// Returns whether the operator set a delay for this host alone.
    #[must_use]
    pub fn has_own_delay(&self, host: &HostKey) -> bool {
        self.host_limits.contains_key(host)
    }

    /// Returns the hosts in memory, in no particular order.
    pub fn known_hosts(&self) -> impl Iterator<Item = &HostKey> {
        self.by_host.keys()
    }

    /// Returns the hosts with the most pending URLs, at most `most` hosts, busiest first. Visits
    /// all hosts in memory.
    #[must_use]
    pub fn busiest(&self, now: Tick, most: usize) -> Vec<HostWorkload> {
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

    fn work_of(&self, host: &ScheduledHost, now: Tick) -> HostWorkload {
        let limits = self.limits_of(host);
        let retries = host.origins.iter().map(|entry| entry.status().retry_at);
        let next_at = match host.is_parked {
            true => None,
            false if host.has_work() => host.opens_at(limits, now).map(|at| at.max(now)),
            false => retries.flatten().min(),
        };
        HostWorkload {
            host: host.key.clone(),
            waiting: host.waiting(),
            next_at,
            gap: Duration::from_micros(host.gap(limits).0),
            is_parked: host.is_parked,
        }
    }

    /// Returns the index in `limits` of a host's own politeness. Creates this politeness if the
    /// host has none.
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
