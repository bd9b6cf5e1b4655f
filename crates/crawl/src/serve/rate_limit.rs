//! The number of requests that one client may send.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

/// Clients that are told apart at once. Beyond it, those that come newly share one account.
const MAX_CLIENTS: usize = 10_000;

/// The interval at which accounts that are full again are thrown away, where there are too many.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// A token bucket for each client; its memory is bounded by [`MAX_CLIENTS`].
pub(crate) struct Rates {
    clock: DefaultClock,
    accounts: RateLimiter<IpAddr, HashMapStateStore<IpAddr>, DefaultClock, NoOpMiddleware>,
    swept: Mutex<Option<Instant>>,
}

impl Rates {
    /// `rate` requests a second for each client, and twice as many at once.
    pub(crate) fn new(rate: NonZeroU32) -> Rates {
        let quota = Quota::per_second(rate).allow_burst(rate.saturating_mul(TWICE));
        let clock = DefaultClock::default();
        Rates {
            accounts: RateLimiter::new(quota, HashMapStateStore::default(), clock.clone()),
            clock,
            swept: Mutex::new(None),
        }
    }

    /// Returns whether a request of this client may be answered now.
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
            wait.as_secs() + u64::from(wait.subsec_nanos() > 0).max(1)
        })
    }

    /// Returns whether there is no room for further clients, even after a sweep.
    fn is_full(&self) -> bool {
        if self.accounts.len() < MAX_CLIENTS {
            return false;
        }
        // A panic while the lock is held leaves nothing half done.
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

/// Whom a request is counted for: an IPv4 address, or the /64 of an IPv6 address, which is
/// what one household or one rented machine has.
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

    use super::{MAX_CLIENTS, Rates, account_of};

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn twice_the_rate_at_once_and_then_seconds_to_wait() {
        let rates = Rates::new(NonZeroU32::MIN);
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
        let rates = Rates::new(NonZeroU32::MIN);
        let clients = u32::try_from(MAX_CLIENTS).unwrap() * 2;
        for client in 0..clients {
            let _ = rates.admit(IpAddr::V4(Ipv4Addr::from(client)));
        }
        assert!(rates.accounts.len() <= MAX_CLIENTS + 1);
    }
}
