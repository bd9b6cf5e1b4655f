//! Names to addresses: looked up by the system, judged, and kept for a while.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crawl_scheduler::Tick;
use moka::sync::Cache;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::{AddressRefused, AddressRules, plain};
use crate::clock::Clock;

/// How long a looked-up name holds. The system's resolver tells no TTL.
const HOLDS: Duration = Duration::from_secs(5 * 60);
/// Names kept. An entry is some 200 octets; a name that fell out is looked up again.
const MAX_NAMES: u64 = 20_000;
/// Addresses kept of one name.
const MAX_ADDRESSES: usize = 16;

/// The resolver of all connections.
#[derive(Clone)]
pub(crate) struct Names {
    rules: Arc<AddressRules>,
    clock: Clock,
    known: Cache<String, Arc<Known>>,
}

#[derive(Debug)]
struct Known {
    addresses: Vec<IpAddr>,
    until: Tick,
}

impl Names {
    pub(crate) fn new(rules: Arc<AddressRules>, clock: Clock) -> Names {
        Names {
            rules,
            clock,
            known: Cache::new(MAX_NAMES),
        }
    }

    /// A connection failed: the name is looked up anew before the next one.
    pub(crate) fn forget(&self, name: &str) {
        self.known.invalidate(plain(name));
    }

    async fn look_up(&self, name: &str) -> io::Result<Arc<Known>> {
        let key = plain(name);
        if let Some(known) = self.known.get(key)
            && self.clock.now() < known.until
        {
            return Ok(known);
        }
        let found = tokio::net::lookup_host((name, 0)).await?;
        let mut addresses: Vec<IpAddr> = Vec::new();
        for address in found.map(|socket| socket.ip()) {
            if addresses.len() < MAX_ADDRESSES && !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        let until = self.clock.now() + HOLDS;
        let known = Arc::new(Known { addresses, until });
        self.known.insert(key.to_owned(), Arc::clone(&known));
        Ok(known)
    }

    /// The addresses that may be connected to. One refused address does not spoil a name
    /// that has others; where all are refused the first says why.
    fn permitted(&self, name: &str, known: &Known) -> Result<Vec<SocketAddr>, AddressRefused> {
        let mut permitted = Vec::with_capacity(known.addresses.len());
        let mut refused = None;
        for address in &known.addresses {
            match self.rules.judge_lookup(name, *address) {
                // Port 0 stands for the URL's.
                Ok(()) => permitted.push(SocketAddr::new(*address, 0)),
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        match refused {
            Some(why) if permitted.is_empty() => Err(why),
            _ => Ok(permitted),
        }
    }
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.clone();
        Box::pin(async move {
            let known = names.look_up(name.as_str()).await?;
            let permitted = names.permitted(name.as_str(), &known)?;
            if permitted.is_empty() {
                return Err(
                    io::Error::new(io::ErrorKind::NotFound, "the name has no address").into(),
                );
            }
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}

/// The resolver of one override's client: a fixed answer for its host.
#[derive(Clone)]
pub(crate) struct Fixed {
    pub(crate) host: String,
    pub(crate) sockets: Vec<SocketAddr>,
    pub(crate) others: Names,
}

impl Resolve for Fixed {
    fn resolve(&self, name: Name) -> Resolving {
        if plain(name.as_str()) != self.host {
            return self.others.resolve(name);
        }
        let sockets: Addrs = Box::new(self.sockets.clone().into_iter());
        Box::pin(std::future::ready(Ok(sockets)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(addresses: &[&str], expect: Result<&[&str], &str>) {
        let names = Names::new(Arc::default(), Clock::start());
        let known = Known {
            addresses: addresses.iter().map(|a| a.parse().unwrap()).collect(),
            until: names.clock.now(),
        };
        let found = names.permitted("a.example", &known);
        let found = found.map_err(|why| why.to_string());
        let expect = expect.map(|sockets| sockets.iter().map(|s| s.parse().unwrap()).collect());
        assert_eq!(found, expect.map_err(str::to_owned));
    }

    #[test]
    fn a_name_that_leads_home_is_refused() {
        check(
            &["10.0.0.1", "127.0.0.1"],
            Err("a.example is at 10.0.0.1, an address of a private network"),
        );
    }

    #[test]
    fn ours_of_several_addresses_the_public_ones_are_asked() {
        check(
            &["127.0.0.1", "93.184.215.14", "2606:2800:220:1::1"],
            Ok(&["93.184.215.14:0", "[2606:2800:220:1::1]:0"]),
        );
    }
}
