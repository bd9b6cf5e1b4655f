//! Name look-ups: by name servers, the hosts file, and the system.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crawl_weburl::without_trailing_dot;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
};
use hickory_resolver::lookup_ip::LookupIp;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::Name;

use crate::client_error::is_no_descriptor;
use crate::failure_kind::FailureKind;

/// Bytes of a name and of one label of it (RFC 1035 section 2.3.4).
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;
/// Tries of each question, the first among them.
const MAX_TRIES: u32 = 3;
/// One try takes no longer, however long a connection may take.
const ONE_TRY_TIMEOUT: Duration = Duration::from_secs(3);
/// The life of an answer of the system, which tells no TTL.
const SYSTEM_ANSWER_AGE: Duration = Duration::from_secs(60);

/// The addresses of a name, and for how long they hold by the word of who gave them.
pub(crate) struct NameAnswer {
    pub(crate) addresses: Result<Vec<IpAddr>, NoAddresses>,
    /// `None` where nobody said.
    pub(crate) ttl: Option<Duration>,
}

/// The reason why a name leads nowhere. Travels through the client's errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub(crate) struct NoAddresses {
    pub(crate) kind: FailureKind,
    pub(crate) detail: String,
}

/// Asks name servers, the hosts file first.
///
/// Names are taken as they stand: no search domain is appended, or a name that does not exist
/// would lead to whatever a wildcard there names. Names without a dot and names under `local`
/// have no meaning for name servers; the system's own functions know them.
pub(crate) struct Source {
    /// Asked instead of the system's name servers.
    servers: Vec<SocketAddr>,
    one_try: Duration,
    /// `None` where the system names no name server: then it is asked for every name.
    resolver: OnceLock<Option<TokioResolver>>,
}

impl Source {
    /// Asks so that an answer, or the word that there is none, comes within `time`.
    pub(crate) fn new(servers: &[SocketAddr], time: Duration) -> Source {
        Source {
            servers: servers.to_vec(),
            one_try: (time / (MAX_TRIES + 1)).min(ONE_TRY_TIMEOUT),
            resolver: OnceLock::new(),
        }
    }

    /// The addresses of a name, in the order they came.
    pub(crate) async fn ask(&self, name: &str) -> NameAnswer {
        // Made when it is needed first: only then there is a runtime for certain.
        let resolver = self
            .resolver
            .get_or_init(|| resolver(&self.servers, self.one_try));
        match resolver {
            Some(resolver) if is_global(name) || !self.servers.is_empty() => {
                ask_servers(resolver, name).await
            }
            _ => ask_system(name).await,
        }
    }
}

/// The reason why a name can be none, which needs nobody to be asked.
pub(crate) fn unusable(name: &str) -> Option<String> {
    let name = without_trailing_dot(name);
    let label = name.split('.').find(|label| label.len() > MAX_LABEL);
    match label {
        Some(label) => Some(format!(
            "a part of the name has {} bytes, more than {MAX_LABEL}",
            label.len()
        )),
        None if name.len() > MAX_NAME => Some(format!(
            "the name has {} bytes, more than {MAX_NAME}",
            name.len()
        )),
        None => None,
    }
}

/// Returns whether name servers can know it (RFC 6762 section 3 for `local`).
fn is_global(name: &str) -> bool {
    let name = without_trailing_dot(name);
    name.contains('.') && !name.ends_with(".local")
}

fn resolver(servers: &[SocketAddr], one_try: Duration) -> Option<TokioResolver> {
    let mut builder = if servers.is_empty() {
        match TokioResolver::builder_tokio() {
            Ok(builder) => builder,
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
        TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
    };
    let options = builder.options_mut();
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.timeout = one_try;
    options.attempts = MAX_TRIES as usize - 1;
    // What is known is kept by the caller, by one bound for all.
    options.cache_size = 0;
    options.use_hosts_file = match servers.is_empty() {
        true => ResolveHosts::Always,
        false => ResolveHosts::Never,
    };
    match builder.build() {
        Ok(resolver) => Some(resolver),
        Err(why) => {
            tracing::warn!(%why, "name servers can't be asked; the system is");
            None
        }
    }
}

async fn ask_servers(resolver: &TokioResolver, name: &str) -> NameAnswer {
    match look_up(resolver, name).await {
        Ok(found) => {
            let ttl = found
                .valid_until()
                .saturating_duration_since(Instant::now());
            let addresses: Vec<IpAddr> = found.iter().collect();
            NameAnswer {
                addresses: match addresses.is_empty() {
                    true => Err(no_address(name)),
                    false => Ok(addresses),
                },
                ttl: Some(ttl),
            }
        }
        Err(error) => {
            let (why, ttl) = meaning(name, &error);
            NameAnswer {
                addresses: Err(why),
                ttl,
            }
        }
    }
}

async fn look_up(resolver: &TokioResolver, name: &str) -> Result<LookupIp, NetError> {
    // Label by label: names that URLs hold and others would refuse (a leading hyphen) exist.
    let labels = without_trailing_dot(name).split('.').map(str::as_bytes);
    let mut name = Name::from_labels(labels)?;
    // So no search domain is appended.
    name.set_fqdn(true);
    resolver.lookup_ip(name).await
}

fn meaning(name: &str, error: &NetError) -> (NoAddresses, Option<Duration>) {
    let none = |kind, detail: String| NoAddresses { kind, detail };
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none_found)) => {
            let ttl = none_found.negative_ttl;
            let ttl = ttl.map(|seconds| Duration::from_secs(seconds.into()));
            let why = match none_found.response_code {
                ResponseCode::NXDomain => {
                    none(FailureKind::NoSuchName, format!("there is no name {name}"))
                }
                ResponseCode::NoError => no_address(name),
                code => none(
                    FailureKind::DnsFailed,
                    format!("name servers answered for {name}: {code}"),
                ),
            };
            (why, ttl)
        }
        NetError::Io(why) if is_no_descriptor(why) => {
            (none(FailureKind::NoDescriptors, why.to_string()), None)
        }
        NetError::Timeout => (
            none(
                FailureKind::DnsTimeout,
                format!("no name server answered for {name} in time"),
            ),
            None,
        ),
        other => (
            none(
                FailureKind::DnsFailed,
                format!("name servers could not tell of {name}: {other}"),
            ),
            None,
        ),
    }
}

async fn ask_system(name: &str) -> NameAnswer {
    let found: io::Result<Vec<IpAddr>> = tokio::net::lookup_host((name, 0))
        .await
        .map(|sockets| sockets.map(|socket| socket.ip()).collect());
    match found {
        Ok(addresses) if addresses.is_empty() => NameAnswer {
            addresses: Err(no_address(name)),
            ttl: None,
        },
        Ok(addresses) => NameAnswer {
            addresses: Ok(addresses),
            ttl: Some(SYSTEM_ANSWER_AGE),
        },
        // The system tells in words of its own whether there is no such name.
        Err(why) => NameAnswer {
            addresses: Err(NoAddresses {
                kind: match is_no_descriptor(&why) {
                    true => FailureKind::NoDescriptors,
                    false => FailureKind::DnsFailed,
                },
                detail: why.to_string(),
            }),
            ttl: None,
        },
    }
}

fn no_address(name: &str) -> NoAddresses {
    NoAddresses {
        kind: FailureKind::NoAddress,
        detail: format!("{name} has no address"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc1035_2_3_4_names_have_their_bounds() {
        let long = "a".repeat(64);
        let told = unusable(&format!("{long}.example"));
        assert_eq!(
            told.as_deref(),
            Some("a part of the name has 64 bytes, more than 63")
        );
        assert_eq!(unusable(&format!("{}.example.", &long[1..])), None);
        let many = "ab.".repeat(84);
        assert_eq!(unusable(&format!("{many}a")), None, "253 bytes");
        assert_eq!(
            unusable(&format!("{many}abc")).as_deref(),
            Some("the name has 255 bytes, more than 253")
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
}
