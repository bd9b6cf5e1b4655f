//! Resolves names to addresses. A name is looked up once per TTL, and its addresses are checked
//! before each connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crawl_weburl::{host_address, without_trailing_dot};
use moka::Expiry;
use moka::sync::Cache;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::{OnceCell, Semaphore};

use crate::address_checker::{AddressChecker, AddressRefused, TypedOrFoundHost};
use crate::failure_kind::FailureKind;
pub(crate) use crate::name_lookup::NameLookupError;
use crate::name_lookup::{LookupFuture, NameServerResolver, ResolvedAddresses};

/// Maximum cached names, found or not. An entry takes some 200 bytes.
/// Beyond the limit: looked up again.
const MAX_NAMES: u64 = 20_000;
/// Maximum cached addresses per name.
/// Beyond the limit: the others are not tried.
const MAX_ADDRESSES: usize = 16;
/// Maximum look-ups that wait for the slower address family after their first use. Each holds a
/// socket.
/// Beyond the limit: one family is used; counted.
const MAX_LATE_LOOKUPS: usize = 64;
/// Minimum time to cache an answer, even if its TTL is shorter, to spare name servers.
const MIN_ANSWER_AGE: Duration = Duration::from_secs(10);
/// Maximum time to cache an answer, even if its TTL is longer.
const MAX_ANSWER_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum time to cache that a name has no address (RFC 2308 section 5: at most hours).
const MAX_NOT_FOUND_AGE: Duration = Duration::from_secs(60 * 60);
/// How long a failed look-up is cached (RFC 2308 section 7: at most five minutes).
const FAILURE_AGE: Duration = Duration::from_secs(10);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The name resolver that all connections use. Caches answers, and refuses addresses that are not
/// allowed.
#[derive(Clone)]
pub(crate) struct CheckedResolver {
    rules: Arc<AddressChecker>,
    source: Arc<NameServerResolver>,
    known: Cache<String, Entry>,
    late: Arc<Semaphore>,
    /// Number of look-ups that exceeded [`MAX_LATE_LOOKUPS`].
    one_family: Arc<AtomicU64>,
    name_source: TypedOrFoundHost,
}

/// The cache entry of a name. Empty while the name is looked up for the first time.
type Entry = Arc<OnceCell<CachedAddresses>>;

/// The cached answer for a name.
#[derive(Debug)]
struct CachedAddresses {
    addresses: Result<Vec<IpAddr>, NameLookupError>,
    holds: Duration,
}

/// Lets each cache entry expire after its own lifetime, which begins with the answer.
struct PerEntryExpiry;

impl Expiry<String, Entry> for PerEntryExpiry {
    fn expire_after_create(&self, _: &String, entry: &Entry, _: Instant) -> Option<Duration> {
        entry.get().map(|known| known.holds)
    }

    fn expire_after_update(
        &self,
        key: &String,
        entry: &Entry,
        now: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        self.expire_after_create(key, entry, now)
    }
}

impl CheckedResolver {
    pub(crate) fn new(rules: Arc<AddressChecker>, source: NameServerResolver) -> CheckedResolver {
        let builder = Cache::builder()
            .max_capacity(MAX_NAMES)
            .expire_after(PerEntryExpiry);
        CheckedResolver {
            rules,
            source: Arc::new(source),
            known: builder.build(),
            late: Arc::new(Semaphore::new(MAX_LATE_LOOKUPS)),
            one_family: Arc::default(),
            name_source: TypedOrFoundHost::Found,
        }
    }

    /// Returns a resolver with the same cache, for hosts and ports that the operator typed.
    pub(crate) fn for_typed(&self) -> CheckedResolver {
        CheckedResolver {
            name_source: TypedOrFoundHost::Typed,
            ..self.clone()
        }
    }

    /// Returns how many look-ups used only one address family, the one that answered first. Such a
    /// look-up doesn't wait for the slower family, because too many other look-ups wait for theirs.
    pub(crate) fn one_family_lookups(&self) -> u64 {
        self.one_family.load(Ordering::Relaxed)
    }

    /// Forgets a name after a failed connection, so that it is looked up again.
    pub(crate) fn forget(&self, name: &str) {
        self.known.invalidate(without_trailing_dot(name));
    }

    /// Returns the address to connect to first, or `None` if no address of the name is permitted.
    pub(crate) async fn first(&self, name: &str) -> Option<IpAddr> {
        let sockets = self.look_up(name).await.ok()?;
        sockets.first().map(SocketAddr::ip)
    }

    /// Returns the addresses of a name that may be connected to now.
    async fn look_up(&self, name: &str) -> Result<Vec<SocketAddr>, BoxError> {
        let key = without_trailing_dot(name);
        // Literal addresses arrive here on their way to a SOCKS proxy.
        if let Some(address) = host_address(key) {
            return Ok(self.permitted(name, &[address])?);
        }
        // Concurrent requests for the same name share one look-up.
        let entry = self.known.get_with_by_ref(key, Entry::default);
        let mut answered = None;
        let look_up = async {
            let (answer, slower) = self.source.look_up(name).await;
            answered = Some(slower);
            CachedAddresses::of(answer)
        };
        let known = entry.get_or_init(|| look_up).await;
        if let Some(slower) = answered {
            // Insert the entry again, so that its lifetime begins with the answer.
            self.known.insert(key.to_owned(), Arc::clone(&entry));
            if let Some(rest) = slower {
                let (names, partial) = (self.clone(), Arc::clone(&entry));
                tokio::spawn(names.add_late(key.to_owned(), partial, rest));
            }
        }
        match &known.addresses {
            Ok(addresses) => Ok(self.permitted(name, addresses)?),
            Err(why) => {
                // If no descriptor was free, nothing was learned about the name, so look it up
                // again next time.
                if why.kind == FailureKind::NoDescriptors {
                    self.known.invalidate(key);
                }
                Err(why.clone().into())
            }
        }
    }

    /// Waits for the answer of both address families, and replaces the cached answer `partial` with
    /// it.
    ///
    /// The new addresses are not checked here: each connection checks the addresses that it takes
    /// from the cache.
    async fn add_late(self, key: String, partial: Entry, rest: LookupFuture) {
        let Ok(_room) = self.late.try_acquire() else {
            self.one_family.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(name = %key, "too many look-ups: one address family is given up");
            return;
        };
        let whole = CachedAddresses::of(rest.await);
        // A public address is recorded even if nothing ever connects to it.
        for address in whole.addresses.iter().flatten() {
            self.rules.note_address(&key, *address);
        }
        // If the name was forgotten or looked up again in the meantime, keep its newer state.
        let current = self.known.get(&key);
        if current.is_some_and(|current| Arc::ptr_eq(&current, &partial)) {
            self.known.insert(key, Arc::new(whole.into()));
        }
    }

    /// Returns the given addresses that may be connected to. If all are refused, returns the error
    /// for the first address.
    fn permitted(
        &self,
        name: &str,
        addresses: &[IpAddr],
    ) -> Result<Vec<SocketAddr>, AddressRefused> {
        let mut permitted = Vec::with_capacity(addresses.len());
        let mut refused = None;
        // Record all addresses before checking any: a name with both a public and a private address
        // has had a public one, and its private one must be refused.
        for address in addresses {
            self.rules.note_address(name, *address);
        }
        for address in addresses {
            match self.rules.judge_lookup(name, *address, self.name_source) {
                // Port 0 stands for the URL's port.
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

impl CachedAddresses {
    fn of(found: ResolvedAddresses) -> CachedAddresses {
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
        CachedAddresses { addresses, holds }
    }
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.clone();
        Box::pin(async move {
            let sockets = names.look_up(name.as_str()).await?;
            Ok(Box::new(sockets.into_iter()) as Addrs)
        })
    }
}

/// The resolver of a client for an override. Resolves the override's host to fixed addresses, and
/// other names, such as that of a proxy, as usual.
#[derive(Clone)]
pub(crate) struct OverrideResolver {
    pub(crate) host: String,
    pub(crate) sockets: Vec<SocketAddr>,
    pub(crate) others: CheckedResolver,
}

impl Resolve for OverrideResolver {
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
