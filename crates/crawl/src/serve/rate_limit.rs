//! Rate limits for clients.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

/// Maximum clients of `crawl serve` tracked separately.
/// Beyond the limit: all clients share one account.
const MAX_CLIENTS: usize = 10_000;

/// How often to drop the accounts of idle clients while there are too many. An idle client's bucket
/// is full again, like that of a new account, so nothing is lost.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// A token bucket per client. Memory is bounded by [`MAX_CLIENTS`].
pub(crate) struct ClientRateLimits {
    clock: DefaultClock,
    accounts: RateLimiter<IpAddr, HashMapStateStore<IpAddr>, DefaultClock, NoOpMiddleware>,
    swept: Mutex<Option<Instant>>,
}

impl ClientRateLimits {
    /// Allows `rate` requests per second from each client, with bursts of twice as many.
    pub(crate) fn new(rate: NonZeroU32) -> ClientRateLimits {
        let quota = Quota::per_second(rate).allow_burst(rate.saturating_mul(TWICE));
        let clock = DefaultClock::default();
        ClientRateLimits {
            accounts: RateLimiter::new(quota, HashMapStateStore::default(), clock.clone()),
            clock,
            swept: Mutex::new(None),
        }
    }

    /// Checks whether a request from this client may be answered now.
    ///
    /// # Errors
    /// Whole seconds to wait, at least one.
    pub(crate) fn admit(&self, client: IpAddr) -> Result<(), u64> {
        let account = match self.is_full() {
            true => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            false => account_of(client),
        };
        self.accounts.check_key(&account).map_err(|not_until| {
            let wait = not_until.wait_time_from(self.clock.now());
            wait.as_secs()
                .saturating_add(u64::from(wait.subsec_nanos() > 0))
                .max(1)
        })
    }

    /// Returns whether active clients use all rate accounts, so that all requests must share one
    /// account.
    fn is_full(&self) -> bool {
        if self.accounts.len() < MAX_CLIENTS {
            return false;
        }
        // Ignore a poisoned lock: the value can't be half updated.
        let mut swept = self
            .swept
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if swept.is_none_or(|last| last.elapsed() >= SWEEP_INTERVAL) {
            self.accounts.retain_recent();
            *swept = Some(Instant::now());
        }
        self.accounts.len() >= MAX_CLIENTS
    }
}

const TWICE: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);

/// Returns the address whose account a client uses: an IPv4 address itself, or the /64 network of
/// an IPv6 address, which is typically one household or one rented machine.
fn account_of(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::num::NonZeroU32;

    use super::{ClientRateLimits, MAX_CLIENTS, account_of};

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn twice_the_rate_at_once_and_then_seconds_to_wait() {
        let rates = ClientRateLimits::new(NonZeroU32::MIN);
        let client = address("192.0.2.1");
        assert_eq!(rates.admit(client), Ok(()));
        assert_eq!(rates.admit(client), Ok(()));
        assert!(matches!(rates.admit(client), Err(1..=2)));
        assert_eq!(rates.admit(address("192.0.2.2")), Ok(()));
    }

    #[test]
    fn one_network_of_ipv6_is_one_client() {
        assert_eq!(
            account_of(address("2001:db8:1:2:3::4")),
            account_of(address("2001:db8:1:2:ffff::1"))
        );
        assert_ne!(
            account_of(address("2001:db8:1:2::1")),
            account_of(address("2001:db8:1:3::1"))
        );
        assert_eq!(
            account_of(address("::ffff:192.0.2.1")),
            address("192.0.2.1")
        );
    }

    #[test]
    fn clients_beyond_the_bound_share_one_account() {
        let rates = ClientRateLimits::new(NonZeroU32::MIN);
        let clients = u32::try_from(MAX_CLIENTS).unwrap() * 2;
        for client in 0..clients {
            let _ = rates.admit(IpAddr::V4(Ipv4Addr::from(client)));
        }
        assert!(rates.accounts.len() <= MAX_CLIENTS + 1);
    }
}
