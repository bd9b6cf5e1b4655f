//! Name look-ups by name servers, the hosts file and the system.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crawl_scheduler::{MaxRateLimiter, Tick};
use crawl_weburl::{AddressClass, class_of_host, without_trailing_dot};
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::ProtoError;
use hickory_resolver::proto::op::{Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::system_conf::read_system_conf;
use hickory_resolver::{Hosts, TokioResolver};
use tokio::sync::Mutex;

use crate::exchange_limiter::is_no_descriptor;
use crate::failure_kind::FailureKind;

/// Maximum bytes of a host name (RFC 1035 section 2.3.4).
/// Beyond the limit: `name_too_long`.
const MAX_NAME: usize = 253;
/// Maximum bytes of a label of a host name (RFC 1035 section 2.3.4).
/// Beyond the limit: `name_too_long`.
const MAX_LABEL: usize = 63;
/// Maximum attempts per question, including the first.
const MAX_TRIES: u32 = 3;
/// Maximum time per attempt. Shorter if the time for a whole look-up is short.
const ONE_TRY_TIMEOUT: Duration = Duration::from_secs(3);
/// How long to wait for the other address family after one family answered (RFC 8305 section 3).
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);
/// How long to keep an answer from the system, which has no TTL.
const SYSTEM_ANSWER_AGE: Duration = Duration::from_secs(60);

/// The addresses of a name, or why it has none, and how long this is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedAddresses {
    pub(crate) addresses: Result<Vec<IpAddr>, NameLookupError>,
    /// How long the addresses are valid. `None` if unknown.
    pub(crate) ttl: Option<Duration>,
}

/// A look-up in progress, of one address family or of both.
pub(crate) type LookupFuture = Pin<Box<dyn Future<Output = ResolvedAddresses> + Send>>;

/// Why a name has no addresses, passed on inside the HTTP client's errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub(crate) struct NameLookupError {
    pub(crate) kind: FailureKind,
    pub(crate) detail: String,
}

/// Looks names up in the hosts file, then by name servers.
///
/// Names are used unchanged. If a search domain were appended, names that don't exist would resolve
/// to the address of the domain's wildcard. The name servers of the system don't know names without
/// a dot or under `local`, so the system itself resolves these names. If `servers` are given, the
/// hosts file is not read, and they resolve every name except `localhost` and names under it, which
/// need no look-up.
pub(crate) struct NameServerResolver {
    /// Name servers to use instead of the system's.
    servers: Vec<SocketAddr>,
    /// Maximum look-ups per second to each name server that is not on loopback. `None` or 0 means
    /// no limit.
    rate: Option<f64>,
    one_try: Duration,
    /// The resolver. `None` if the system has no name server; then the system resolves every name.
    resolver: OnceLock<Option<RateLimitedResolver>>,
    /// The hosts file. Empty if `servers` are given.
    hosts: OnceLock<Hosts>,
}

impl NameServerResolver {
    /// Creates a resolver. The queries of a look-up take at most `time`; without an answer by then,
    /// the look-up fails. Waits for the rate limit are extra.
    pub(crate) fn new(
        servers: &[SocketAddr],
        rate: Option<f64>,
        time: Duration,
    ) -> NameServerResolver {
        NameServerResolver {
            servers: servers.to_vec(),
            rate,
            one_try: (time / (MAX_TRIES + 1)).min(ONE_TRY_TIMEOUT),
            resolver: OnceLock::new(),
            hosts: OnceLock::new(),
        }
    }

    /// Returns the addresses of a name, IPv4 first. If the answer for one address family is still
    /// missing, also returns a future for the complete answer.
    pub(crate) async fn look_up(&self, name: &str) -> (ResolvedAddresses, Option<LookupFuture>) {
        // Create the resolver on first use, when an async runtime is certain to exist.
        let resolver = self
            .resolver
            .get_or_init(|| RateLimitedResolver::new(&self.servers, self.rate, self.one_try));
        let hosts = self.hosts.get_or_init(|| match self.servers.is_empty() {
            true => Hosts::from_system().unwrap_or_default(),
            false => Hosts::default(),
        });
        let query_name = match query_name(name) {
            Ok(query_name) => query_name,
            Err(error) => return (answer_of(name, Err(error.into())), None),
        };
        if let Some(answer) = hosts_answer(hosts, &query_name).or_else(|| localhost_answer(name)) {
            return (answer, None);
        }
        match resolver {
            Some(name_servers) if is_global(name) || !self.servers.is_empty() => {
                name_servers.look_up(query_name, name).await
            }
            _ => (resolve_by_system(name).await, None),
        }
    }
}

/// Returns why a name can't exist, if its form shows that without a look-up. Otherwise `None`.
pub(crate) fn unusable(name: &str) -> Option<String> {
    let name = without_trailing_dot(name);
    let label = name.split('.').find(|label| label.len() > MAX_LABEL);
    match label {
        Some(label) => Some(format!(
            "a label of the name has {} bytes, the maximum is {MAX_LABEL}",
            label.len()
        )),
        None if name.len() > MAX_NAME => Some(format!(
            "the name has {} bytes, the maximum is {MAX_NAME}",
            name.len()
        )),
        None => None,
    }
}

/// Returns whether name servers can know the name (RFC 6762 section 3 for `local`).
fn is_global(name: &str) -> bool {
    let name = without_trailing_dot(name);
    name.contains('.') && !name.ends_with(".local")
}

/// The name servers, with a limit on look-ups per second.
struct RateLimitedResolver {
    resolver: TokioResolver,
    began: Instant,
    /// The rate limit. `None` means no limit.
    rate: Option<Mutex<MaxRateLimiter>>,
}

impl RateLimitedResolver {
    /// Creates the resolver. `None` if there are no name servers or the resolver can't be built.
    fn new(
        servers: &[SocketAddr],
        rate: Option<f64>,
        one_try: Duration,
    ) -> Option<RateLimitedResolver> {
        let (config, mut options) = if servers.is_empty() {
            match read_system_conf() {
                Ok(system) => system,
                Err(why) => {
                    tracing::debug!(%why, "no name servers are named; the system is asked");
                    return None;
                }
            }
        } else {
            let servers = servers.iter().map(|server| {
                let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
                for connection in &mut connections {
                    connection.port = server.port();
                }
                NameServerConfig::new(server.ip(), true, connections)
            });
            let config = ResolverConfig::from_parts(None, Vec::new(), servers.collect());
            (config, ResolverOpts::default())
        };
        options.timeout = one_try;
        options.attempts = MAX_TRIES as usize - 1;
        // The resolver caches no answers, because the caller caches them.
        options.cache_size = 0;
        // `NameServerResolver` reads the hosts file itself. If the file has only one address family
        // of a name, the resolver would query name servers for the other family.
        options.use_hosts_file = ResolveHosts::Never;
        let servers = config.name_servers().iter().map(|server| server.ip);
        let rate = rate.and_then(|rate| look_ups_per_second(servers, rate));
        let provider = TokioRuntimeProvider::default();
        let mut builder = TokioResolver::builder_with_config(config, provider);
        *builder.options_mut() = options;
        match builder.build() {
            Ok(resolver) => Some(RateLimitedResolver {
                resolver,
                began: Instant::now(),
                rate: rate.map(|rate| Mutex::new(MaxRateLimiter::new(Some(rate)))),
            }),
            Err(why) => {
                tracing::warn!(%why, "can't use name servers; using the system's resolver");
                None
            }
        }
    }

    /// Queries the addresses of `query_name`. Messages call it `name`.
    async fn look_up(
        &self,
        query_name: Name,
        name: &str,
    ) -> (ResolvedAddresses, Option<LookupFuture>) {
        self.wait().await;
        let family = |record_type| -> LookupFuture {
            let (resolver, query_name) = (self.resolver.clone(), query_name.clone());
            let name = name.to_owned();
            Box::pin(
                async move { answer_of(&name, resolver.lookup(query_name, record_type).await) },
            )
        };
        let delay = tokio::time::sleep(RESOLUTION_DELAY);
        join_families(family(RecordType::A), family(RecordType::AAAA), delay).await
    }

    /// Waits until the rate allows another look-up. Waiting look-ups proceed in order.
    async fn wait(&self) {
        let Some(rate) = &self.rate else {
            return;
        };
        let now = || {
            let micros = u64::try_from(self.began.elapsed().as_micros());
            Tick::from_micros(micros.unwrap_or(u64::MAX))
        };
        let mut rate = rate.lock().await;
        let wait = rate.opens_at().since(now());
        // Skip the timer for a wait of zero, because even then a timer takes up to a millisecond.
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        rate.take(now());
    }
}

/// Returns the maximum look-ups per second to all name servers together, or `None` for no limit.
/// Servers on loopback don't count, because they forward queries by their own rules.
fn look_ups_per_second(servers: impl Iterator<Item = IpAddr>, rate: f64) -> Option<f64> {
    let elsewhere = servers.filter(|server| !server.is_loopback()).count();
    (elsewhere > 0).then_some(elsewhere as f64 * rate)
}

/// Parses a name label by label, because hosts of URLs may have labels that `Name::from_str`
/// rejects, such as a label with a leading hyphen.
fn query_name(name: &str) -> Result<Name, ProtoError> {
    let labels = without_trailing_dot(name).split('.').map(str::as_bytes);
    let mut name = Name::from_labels(labels)?;
    // A fully qualified name gets no search domain appended.
    name.set_fqdn(true);
    Ok(name)
}

/// Returns the addresses of both families from the hosts file. `None` if the file lacks the name.
fn hosts_answer(hosts: &Hosts, name: &Name) -> Option<ResolvedAddresses> {
    let lookups = [RecordType::A, RecordType::AAAA]
        .map(|family| hosts.lookup_static_host(&Query::query(name.clone(), family)));
    let addresses: Vec<IpAddr> = lookups.iter().flatten().flat_map(addresses).collect();
    (!addresses.is_empty()).then_some(ResolvedAddresses {
        addresses: Ok(addresses),
        ttl: Some(SYSTEM_ANSWER_AGE),
    })
}

/// Returns the loopback addresses for `localhost` and names under it, with or without a trailing
/// dot. They must not be sent to a name server (RFC 6761 section 6.3).
fn localhost_answer(name: &str) -> Option<ResolvedAddresses> {
    let is_localhost = class_of_host(name) == Some(AddressClass::Loopback);
    is_localhost.then(|| ResolvedAddresses {
        addresses: Ok(vec![
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ]),
        ttl: Some(SYSTEM_ANSWER_AGE),
    })
}

/// Waits for the answers of both address families, but no longer than `delay` once one family has
/// an address (RFC 8305 section 3).
///
/// "No such name" as the answer to the A query ends the look-up. "No such name" as the answer to
/// the AAAA query doesn't end it, because some servers give it for names that have only A records
/// (RFC 4074 section 4.2).
async fn join_families(
    mut v4: LookupFuture,
    mut v6: LookupFuture,
    delay: impl Future<Output = ()>,
) -> (ResolvedAddresses, Option<LookupFuture>) {
    let (first, mut other, is_v4_first) = tokio::select! {
        biased;
        first = &mut v4 => (first, v6, true),
        first = &mut v6 => (first, v4, false),
    };
    let merge = move |first, second| match is_v4_first {
        true => merged(first, second),
        false => merged(second, first),
    };
    match &first.addresses {
        Ok(_) => {
            tokio::select! {
                biased;
                second = &mut other => (merge(first, second), None),
                () = delay => {
                    let partial = first.clone();
                    (partial, Some(Box::pin(async move { merge(first, other.await) })))
                }
            }
        }
        Err(why) if is_v4_first && why.kind == FailureKind::NoSuchName => (first, None),
        Err(_) => (merge(first, other.await), None),
    }
}

/// Combines the answers of both address families. A failure of one family outweighs "no address" of
/// the other.
fn merged(v4: ResolvedAddresses, v6: ResolvedAddresses) -> ResolvedAddresses {
    let is_failure = |why: &NameLookupError| {
        !matches!(why.kind, FailureKind::NoAddress | FailureKind::NoSuchName)
    };
    match (&v4.addresses, &v6.addresses) {
        (Ok(v4_addresses), Ok(v6_addresses)) => ResolvedAddresses {
            addresses: Ok([&v4_addresses[..], &v6_addresses[..]].concat()),
            ttl: v4.ttl.min(v6.ttl),
        },
        (Ok(_), Err(_)) => v4,
        (Err(_), Ok(_)) => v6,
        (Err(v4_why), Err(v6_why)) => {
            match v4_why.kind == FailureKind::NoAddress && is_failure(v6_why) {
                true => v6,
                false => v4,
            }
        }
    }
}

fn addresses(lookup: &Lookup) -> impl Iterator<Item = IpAddr> {
    let records = lookup.answers().iter();
    records.filter_map(|record| record.data.ip_addr())
}

/// Converts the resolver's answer for one address family to a [`ResolvedAddresses`].
fn answer_of(name: &str, lookup: Result<Lookup, NetError>) -> ResolvedAddresses {
    match lookup {
        Ok(lookup) => {
            let ttl = lookup
                .valid_until()
                .saturating_duration_since(Instant::now());
            let addresses: Vec<IpAddr> = addresses(&lookup).collect();
            ResolvedAddresses {
                addresses: match addresses.is_empty() {
                    true => Err(no_address(name)),
                    false => Ok(addresses),
                },
                ttl: Some(ttl),
            }
        }
        Err(error) => {
            let (why, ttl) = meaning(name, &error);
            ResolvedAddresses {
                addresses: Err(why),
                ttl,
            }
        }
    }
}

fn meaning(name: &str, error: &NetError) -> (NameLookupError, Option<Duration>) {
    let none = |kind, detail: String| NameLookupError { kind, detail };
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none_found)) => {
            let ttl = none_found.negative_ttl;
            let ttl = ttl.map(|seconds| Duration::from_secs(seconds.into()));
            let response = match none_found.response_code {
                ResponseCode::NXDomain => none(
                    FailureKind::NoSuchName,
                    format!("can't find host {name} (DNS)"),
                ),
                ResponseCode::NoError => no_address(name),
                code => none(
                    FailureKind::DnsFailed,
                    format!("name servers refused {name}: {code}"),
                ),
            };
            (response, ttl)
        }
        NetError::Io(response) if is_no_descriptor(response) => {
            (none(FailureKind::NoDescriptors, response.to_string()), None)
        }
        NetError::Timeout => (
            none(
                FailureKind::DnsTimeout,
                format!("no answer from name servers for {name} in time"),
            ),
            None,
        ),
        other => (
            none(
                FailureKind::DnsFailed,
                format!("can't look up {name}: {other}"),
            ),
            None,
        ),
    }
}

async fn resolve_by_system(name: &str) -> ResolvedAddresses {
    let result: io::Result<Vec<IpAddr>> = tokio::net::lookup_host((name, 0))
        .await
        .map(|sockets| sockets.map(|socket| socket.ip()).collect());
    match result {
        Ok(addresses) if addresses.is_empty() => ResolvedAddresses {
            addresses: Err(no_address(name)),
            ttl: None,
        },
        Ok(addresses) => ResolvedAddresses {
            addresses: Ok(addresses),
            ttl: Some(SYSTEM_ANSWER_AGE),
        },
        // The system's error does not say reliably whether the name exists.
        Err(error) => ResolvedAddresses {
            addresses: Err(NameLookupError {
                kind: match is_no_descriptor(&error) {
                    true => FailureKind::NoDescriptors,
                    false => FailureKind::DnsFailed,
                },
                detail: error.to_string(),
            }),
            ttl: None,
        },
    }
}

fn no_address(name: &str) -> NameLookupError {
    NameLookupError {
        kind: FailureKind::NoAddress,
        detail: format!("{name} has no address"),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn rfc1035_2_3_4_names_and_labels_are_bounded() {
        let long = "a".repeat(64);
        let reason = unusable(&format!("{long}.example"));
        assert_eq!(
            reason.as_deref(),
            Some("a label of the name has 64 bytes, the maximum is 63")
        );
        assert_eq!(unusable(&format!("{}.example.", &long[1..])), None);
        let many = "ab.".repeat(84);
        assert_eq!(unusable(&format!("{many}a")), None, "253 bytes");
        assert_eq!(
            unusable(&format!("{many}abc")).as_deref(),
            Some("the name has 255 bytes, the maximum is 253")
        );
    }

    #[test]
    fn names_that_name_servers_know() {
        for (name, global) in [
            ("a.example", true),
            ("a.example.", true),
            ("intranet", false),
            ("printer.local.", false),
        ] {
            assert_eq!(is_global(name), global, "{name}");
        }
    }

    #[test]
    fn rfc6761_6_3_localhost_is_loopback_without_a_look_up() {
        for name in ["localhost", "localhost.", "a.localhost", "a.b.localhost."] {
            let answer = localhost_answer(name).unwrap();
            let addresses = answer.addresses.unwrap();
            assert!(addresses.iter().all(IpAddr::is_loopback), "{name}");
            assert_eq!(addresses.len(), 2, "{name}");
        }
        for name in ["notlocalhost", "localhost.example", "intranet"] {
            assert_eq!(localhost_answer(name), None, "{name}");
        }
    }

    #[test]
    fn remote_name_servers_get_at_most_a_hundred_look_ups_per_second_each() {
        let rate = |servers: &[&str]| {
            look_ups_per_second(servers.iter().map(|server| server.parse().unwrap()), 100.0)
        };
        assert_eq!(rate(&["192.0.2.1"]), Some(100.0));
        assert_eq!(rate(&["192.0.2.1", "2001:db8::1", "::1"]), Some(200.0));
        assert_eq!(rate(&["127.0.0.53", "::1"]), None);
    }

    fn answer(addresses: Result<&str, FailureKind>) -> ResolvedAddresses {
        ResolvedAddresses {
            addresses: match addresses {
                Ok(address) => Ok(vec![address.parse().unwrap()]),
                Err(kind) => Err(NameLookupError {
                    kind,
                    detail: String::new(),
                }),
            },
            ttl: None,
        }
    }

    fn answers(addresses: Result<&str, FailureKind>) -> LookupFuture {
        Box::pin(ready(answer(addresses)))
    }

    fn silent() -> LookupFuture {
        Box::pin(pending())
    }

    /// Polls a future once, and fails if it is not ready.
    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    #[test]
    fn rfc8305_3_one_family_is_enough_after_the_resolution_delay() {
        let v4 = Ok("192.0.2.1");
        let v6 = Ok("2001:db8::1");
        assert!(now(join_families(answers(v4), silent(), pending())).is_none());
        let (found, rest) = now(join_families(answers(v4), silent(), ready(()))).unwrap();
        assert_eq!(found, answer(v4));
        assert!(rest.is_some());
        let (found, _) = now(join_families(silent(), answers(v6), ready(()))).unwrap();
        assert_eq!(found, answer(v6));
        let (both, rest) = now(join_families(answers(v4), answers(v6), pending())).unwrap();
        assert_eq!(both, merged(answer(v4), answer(v6)));
        assert!(rest.is_none());
    }

    #[test]
    fn rfc8305_3_the_slower_family_is_added_behind_ipv4() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let v4: LookupFuture = Box::pin(async move { receiver.await.unwrap() });
        let v6 = Ok("2001:db8::1");
        let (_, rest) = now(join_families(v4, answers(v6), ready(()))).unwrap();
        sender.send(answer(Ok("192.0.2.1"))).unwrap();
        let all = now(rest.unwrap()).unwrap().addresses.unwrap();
        let expect: [IpAddr; 2] = ["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        assert_eq!(all, expect);
    }

    #[test]
    fn rfc4074_4_2_only_an_a_query_decides_that_a_name_does_not_exist() {
        let unknown = Err(FailureKind::NoSuchName);
        let (found, _) = now(join_families(answers(unknown), silent(), pending())).unwrap();
        assert_eq!(found, answer(unknown));
        assert!(now(join_families(silent(), answers(unknown), ready(()))).is_none());
        let v4 = Ok("192.0.2.1");
        assert_eq!(merged(answer(v4), answer(unknown)), answer(v4));
    }

    #[test]
    fn no_address_of_one_family_waits_for_the_other() {
        let none = Err(FailureKind::NoAddress);
        let failed = Err(FailureKind::DnsTimeout);
        assert!(now(join_families(answers(none), silent(), ready(()))).is_none());
        assert_eq!(merged(answer(none), answer(failed)), answer(failed));
        assert_eq!(merged(answer(failed), answer(none)), answer(failed));
    }

    #[test]
    fn a_name_in_the_hosts_file_is_not_looked_up_for_either_family() {
        let mut hosts = Hosts::default();
        let text = "192.0.2.1 four.example\n2001:db8::1 six.example both.example\n\
                    192.0.2.2 both.example\n";
        hosts.read_hosts_conf(text.as_bytes()).unwrap();
        let lookup = |name| {
            let answer = hosts_answer(&hosts, &query_name(name).unwrap())?;
            let addresses = answer.addresses.unwrap();
            Some(addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>())
        };
        assert_eq!(lookup("four.example").unwrap(), ["192.0.2.1"]);
        assert_eq!(lookup("six.example.").unwrap(), ["2001:db8::1"]);
        assert_eq!(
            lookup("both.example").unwrap(),
            ["192.0.2.2", "2001:db8::1"]
        );
        assert_eq!(lookup("other.example"), None);
    }
}
