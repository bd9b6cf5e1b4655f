//! Names to addresses: asked for once per TTL, and judged before each connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crawl_weburl::{host_address, without_trailing_dot};
use moka::Expiry;
use moka::future::Cache;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

use crate::address_rules::{AddressRefused, AddressRules, Asked};
use crate::failure_kind::FailureKind;
pub(crate) use crate::name_servers::NoAddresses;
use crate::name_servers::{NameAnswer, Rest, Source};

/// Names kept, found or not. An entry is some 200 bytes; a name that fell out is asked for
/// again.
const MAX_NAMES: u64 = 20_000;
/// Addresses kept of one name.
const MAX_ADDRESSES: usize = 16;
/// Look-ups whose slower address family is still awaited after the name was used. Each holds a
/// socket; beyond this the slower family is given up until the name is looked up again.
const MAX_LATE_LOOKUPS: usize = 64;
/// Bounds on the life of an answer, whatever its TTL says: the shortest spares name servers,
/// the longest is that of caches everywhere.
const MIN_ANSWER_AGE: Duration = Duration::from_secs(10);
const MAX_ANSWER_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Bounds on the life of a word that there is no address (RFC 2308 section 5: at most hours).
const MAX_NOT_FOUND_AGE: Duration = Duration::from_secs(60 * 60);
/// The time for which a failure to find out holds (RFC 2308 section 7: at most five minutes).
const FAILURE_AGE: Duration = Duration::from_secs(10);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The resolver of all connections.
#[derive(Clone)]
pub(crate) struct Names {
    rules: Arc<AddressRules>,
    source: Arc<Source>,
    known: Cache<String, Arc<Known>>,
    late: Arc<Semaphore>,
    asked: Asked,
}

/// The cache entry of a name.
#[derive(Debug)]
struct Known {
    addresses: Result<Vec<IpAddr>, NoAddresses>,
    holds: Duration,
}

/// Each entry holds as long as it says.
struct AsSaid;

impl Expiry<String, Arc<Known>> for AsSaid {
    fn expire_after_create(&self, _: &String, known: &Arc<Known>, _: Instant) -> Option<Duration> {
        Some(known.holds)
    }
}

impl Names {
    /// Names that `source` is asked for.
    pub(crate) fn new(rules: Arc<AddressRules>, source: Source) -> Names {
        let known = Cache::builder()
            .max_capacity(MAX_NAMES)
            .expire_after(AsSaid);
        Names {
            rules,
            source: Arc::new(source),
            known: known.build(),
            late: Arc::new(Semaphore::new(MAX_LATE_LOOKUPS)),
            asked: Asked::Met,
        }
    }

    /// The same names, looked up for hosts and ports that the operator typed.
    pub(crate) fn for_typed(&self) -> Names {
        Names {
            asked: Asked::Typed,
            ..self.clone()
        }
    }

    /// A connection failed: the name is asked for anew before the next one.
    pub(crate) async fn forget(&self, name: &str) {
        self.known.invalidate(without_trailing_dot(name)).await;
    }

    /// The address that is connected to first; none where there is none that may be.
    pub(crate) async fn first(&self, name: &str) -> Option<IpAddr> {
        let sockets = self.look_up(name).await.ok()?;
        sockets.first().map(SocketAddr::ip)
    }

    /// The addresses that a connection may be made to now.
    async fn look_up(&self, name: &str) -> Result<Vec<SocketAddr>, BoxError> {
        let key = without_trailing_dot(name);
        // Literal addresses come here on their way to a SOCKS proxy.
        if let Some(address) = host_address(key) {
            return Ok(self.permitted(name, &[address])?);
        }
        // Requests that need the same name at once share one question.
        let mut rest = None;
        let asked = async {
            let (answer, slower) = self.source.ask(name).await;
            rest = slower;
            Arc::new(Known::of(answer))
        };
        let known = self.known.get_with_by_ref(key, asked).await;
        if let Some(rest) = rest {
            let (names, partial) = (self.clone(), Arc::clone(&known));
            tokio::spawn(names.add_late(key.to_owned(), partial, rest));
        }
        match &known.addresses {
            Ok(addresses) => Ok(self.permitted(name, addresses)?),
            Err(why) => {
                // That says nothing of the name, which is asked for again.
                if why.kind == FailureKind::NoDescriptors {
                    self.known.invalidate(key).await;
                }
                Err(why.clone().into())
            }
        }
    }

    /// Replaces the kept answer `partial` by that of both address families once it is known.
    ///
    /// Each connection judges the addresses it takes from there, as it does with any kept answer.
    async fn add_late(self, key: String, partial: Arc<Known>, rest: Rest) {
        let Ok(_room) = self.late.try_acquire() else {
            tracing::debug!(name = %key, "too many look-ups: one address family is given up");
            return;
        };
        let whole = Known::of(rest.await);
        // A public address counts from now on, even if nothing connects to it.
        for address in whole.addresses.iter().flatten() {
            self.rules.note_address(&key, *address);
        }
        // A name that was forgotten or looked up again in between keeps its newer state.
        let current = self.known.get(&key).await;
        if current.is_some_and(|current| Arc::ptr_eq(&current, &partial)) {
            self.known.insert(key, Arc::new(whole)).await;
        }
    }

    /// The addresses that may be connected to. One refused address does not spoil a name
    /// that has others; where all are refused the first says why.
    fn permitted(
        &self,
        name: &str,
        addresses: &[IpAddr],
    ) -> Result<Vec<SocketAddr>, AddressRefused> {
        let mut permitted = Vec::with_capacity(addresses.len());
        let mut refused = None;
        // All of them first: a name with a public address beside a private one has had one.
        for address in addresses {
            self.rules.note_address(name, *address);
        }
        for address in addresses {
            match self.rules.judge_lookup(name, *address, self.asked) {
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

impl Known {
    fn of(found: NameAnswer) -> Known {
        let holds = match (&found.addresses, found.ttl) {
            (Ok(_), ttl) => ttl
                .unwrap_or_default()
                .clamp(MIN_ANSWER_AGE, MAX_ANSWER_AGE),
            (Err(_), Some(ttl)) => ttl.clamp(MIN_ANSWER_AGE, MAX_NOT_FOUND_AGE),
            (Err(_), None) => FAILURE_AGE,
        };
        let addresses = found.addresses.map(|all| {
            let mut once: Vec<IpAddr> = Vec::new();
            for address in all {
                if once.len() < MAX_ADDRESSES && !once.contains(&address) {
                    once.push(address);
                }
            }
            once
        });
        Known { addresses, holds }
    }
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.clone();
        Box::pin(async move {
            let sockets = names.look_up(name.as_str()).await?;
            Ok(Box::new(sockets.into_iter()) as Addrs)
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
        if without_trailing_dot(name.as_str()) != self.host {
            return self.others.resolve(name);
        }
        let sockets: Addrs = Box::new(self.sockets.clone().into_iter());
        Box::pin(std::future::ready(Ok(sockets)))
    }
}

#[cfg(test)]
mod tests;
