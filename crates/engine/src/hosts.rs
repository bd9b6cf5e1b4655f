//! Which hosts are in memory: those with work, and of the others the latest.

use std::collections::{BTreeSet, HashMap, HashSet};

use crawl_frontier::FrontierError;
use crawl_scheduler::{Evicted, Restart, Tick};
use crawl_weburl::{CanonicalUrl, HostKey, Origin};

use crate::config::Config;
use crate::ring::Ring;

/// What the ring keeps of hosts besides the scheduler.
pub(crate) struct Hosts {
    /// Hosts of the seeds, which come before others that are ready as long.
    of_seeds: HashSet<HostKey>,
    /// Whether this run goes on with an earlier one.
    pub(crate) is_resumed: bool,
    /// What the last run's end asks of hosts that are met for the first time.
    pub(crate) restart: Restart,
    /// Hosts that left memory and may not be asked yet, by the moment they may. Until then
    /// their state may be on its way to the disk; afterwards nothing of it is owed.
    away: HashMap<HostKey, (Tick, Vec<u8>)>,
    wakes: BTreeSet<(Tick, HostKey)>,
}

impl Hosts {
    pub(crate) fn new(config: &Config) -> Hosts {
        Hosts {
            of_seeds: config.seeds.iter().map(CanonicalUrl::host_key).collect(),
            is_resumed: false,
            restart: Restart::AfterKill,
            away: HashMap::new(),
            wakes: BTreeSet::new(),
        }
    }

    fn take(&mut self, host: &HostKey) -> Option<Vec<u8>> {
        let (wake, bytes) = self.away.remove(host)?;
        self.wakes.remove(&(wake, host.clone()));
        Some(bytes)
    }

    fn put(&mut self, host: HostKey, wake: Tick, bytes: Vec<u8>) {
        self.wakes.insert((wake, host.clone()));
        self.away.insert(host, (wake, bytes));
    }

    fn drop_until(&mut self, now: Tick) {
        while let Some((wake, host)) = self.wakes.pop_first() {
            if wake > now {
                self.wakes.insert((wake, host));
                return;
            }
            self.away.remove(&host);
        }
    }
}

impl Ring {
    /// Sees to it that a host is in memory with all that is known of it.
    pub(crate) fn recall(&mut self, now: Tick, host: &HostKey) -> Result<(), FrontierError> {
        if self.scheduler.knows(host) {
            return Ok(());
        }
        if let Some(bytes) = self.hosts.take(host) {
            let bytes = self.accounts.restore(host, &bytes);
            self.scheduler.restore(now, host, bytes, Restart::AfterKill);
        } else if let Some((_, bytes)) = self.frontier.host(host)? {
            let bytes = self.accounts.restore(host, &bytes);
            self.scheduler.restore(now, host, bytes, self.hosts.restart);
        }
        let is_seed = self.hosts.of_seeds.contains(host);
        self.scheduler.prioritize(now, host, u8::from(!is_seed));
        Ok(())
    }

    /// Lets go of idle hosts, the longest idle first, as far as memory asks for it.
    pub(crate) fn let_hosts_go(&mut self, now: Tick) {
        self.hosts.drop_until(now);
        while self.scheduler.hosts() > self.config.hosts_in_memory {
            let Some(evicted) = self.scheduler.evict() else {
                return;
            };
            let Evicted {
                host,
                origins,
                wake,
                bytes,
            } = evicted;
            for origin in &origins {
                self.origins.forget(origin);
            }
            let mut stored = self.accounts.stored(&host);
            stored.extend_from_slice(&bytes);
            self.accounts.forget(&host);
            if wake > now {
                self.hosts.put(host, wake, stored);
            }
        }
    }

    /// A host's origins share its pace: what the others ask for holds as long as their
    /// copies of robots.txt do. Looked for at the usual ports.
    pub(crate) fn heed_siblings(
        &mut self,
        now: Tick,
        origin: &Origin,
    ) -> Result<(), FrontierError> {
        for scheme in ["http", "https"] {
            let sibling = Origin::parse(&format!("{scheme}://{}", origin.host_key()));
            let Some(sibling) = sibling.ok().filter(|sibling| sibling != origin) else {
                continue;
            };
            if let Some(asks) = self.origins.asks_of(now, &sibling, &*self.frontier)? {
                self.scheduler.heed(now, &sibling, &asks);
            }
        }
        Ok(())
    }
}
