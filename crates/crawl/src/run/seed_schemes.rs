//! Choice of https or http for seeds typed without a scheme.

use std::collections::HashSet;
use std::sync::Arc;

use crawl_fetcher::{FetchConfig, Fetcher, MonotonicClock};
use crawl_weburl::CanonicalUrl;
use tokio::task::JoinSet;

use crate::error::CommandError;
use crate::settings::typed_seed::ParsedSeed;

/// Maximum hosts without a scheme to try concurrently.
/// Beyond the limit: the others wait.
const MAX_TRIED_AT_ONCE: usize = 32;

/// Seeds with their schemes chosen.
#[derive(Clone, Debug)]
pub(crate) struct SeedsWithSchemes {
    pub(crate) seeds: Vec<CanonicalUrl>,
    /// Typed hosts found to have a public address when the schemes were tested. From then on,
    /// private addresses of these hosts are refused.
    pub(crate) public_names: Vec<String>,
}

/// Chooses the scheme of seeds typed without one. A seed uses http if an earlier run did, or if a
/// connection can be made only by http. Connections are opened and closed without sending a
/// request. `say` is called for each seed that falls back to http.
pub(crate) async fn choose_schemes(
    seeds: &[ParsedSeed],
    older: &HashSet<CanonicalUrl>,
    fetch: &FetchConfig,
    mut say: impl FnMut(&str),
) -> Result<SeedsWithSchemes, CommandError> {
    let mut chosen: Vec<CanonicalUrl> = seeds.iter().map(|seed| seed.url.clone()).collect();
    let mut undecided = Vec::new();
    for (at, seed) in seeds.iter().enumerate() {
        match &seed.stand_in {
            Some(http) if older.contains(http) && !older.contains(&seed.url) => {
                chosen[at] = http.clone();
            }
            Some(http) if !older.contains(&seed.url) => {
                undecided.push((at, seed.url.clone(), http.clone()));
            }
            _ => {}
        }
    }
    if undecided.is_empty() {
        return Ok(SeedsWithSchemes {
            seeds: chosen,
            public_names: Vec::new(),
        });
    }
    let own = undecided.iter().flat_map(|(_, https, http)| [https, http]);
    let fetch = FetchConfig {
        typed: own.cloned().collect(),
        ..fetch.clone()
    };
    let fetcher = Fetcher::new(fetch, MonotonicClock::start())
        .map_err(|why| CommandError::usage(format!("can't fetch: {why}")))?;
    let fetcher = Arc::new(fetcher);
    for some in undecided.chunks(MAX_TRIED_AT_ONCE) {
        let mut tries = JoinSet::new();
        for (at, https, http) in some.iter().cloned() {
            let fetcher = Arc::clone(&fetcher);
            tries.spawn(async move {
                let https_error = fetcher.connect(&https).await.err()?;
                fetcher.connect(&http).await.ok()?;
                Some((at, http, https_error))
            });
        }
        let mut fallbacks: Vec<_> = tries.join_all().await.into_iter().flatten().collect();
        fallbacks.sort_by_key(|(at, ..)| *at);
        for (at, http, why) in fallbacks {
            let https = &chosen[at];
            say(&format!(
                "can't connect to {https} ({why}): crawling {http} instead"
            ));
            chosen[at] = http;
        }
    }
    Ok(SeedsWithSchemes {
        seeds: chosen,
        public_names: fetcher.public_names(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Duration;

    use crawl_fetcher::{FetchConfig, Fetcher, MonotonicClock};
    use tokio::net::UdpSocket;

    use super::choose_schemes;
    use crate::settings::typed_seed::read;

    /// Starts a name server that answers every name with this IPv4 address and has no IPv6
    /// addresses.
    async fn name_server(address_to_serve: Ipv4Addr) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut bytes = [0; 512];
            while let Ok((length, peer)) = socket.recv_from(&mut bytes).await {
                let labels = &bytes[12..length];
                let end = 12 + labels.iter().position(|byte| *byte == 0).unwrap() + 5;
                let mut answer = bytes[..end].to_vec();
                let is_ipv4 = answer[end - 3] == 1;
                answer[2..4].copy_from_slice(&[0x81, 0x80]);
                answer[6..12].copy_from_slice(&[0, u8::from(is_ipv4), 0, 0, 0, 0]);
                if is_ipv4 {
                    // The queried name, an A record of class IN, its TTL and its length.
                    answer.extend([0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
                    answer.extend(address_to_serve.octets());
                }
                socket.send_to(&answer, peer).await.unwrap();
            }
        });
        address
    }

    /// Simulates DNS rebinding between the test for https and the crawl.
    #[tokio::test]
    async fn a_name_public_at_the_scheme_test_may_not_become_private() {
        let seeds = [read("seed.example").unwrap()];
        let config = |server| FetchConfig {
            name_servers: vec![server],
            connect_timeout: Duration::from_secs(20),
            // Prevents connections to real servers.
            allow_public: false,
            ..FetchConfig::new("t")
        };
        let public = config(name_server(Ipv4Addr::new(93, 184, 215, 14)).await);
        let chosen = choose_schemes(&seeds, &HashSet::new(), &public, |_| {})
            .await
            .unwrap();
        let crawl = FetchConfig {
            typed: chosen.seeds.clone(),
            public_names: chosen.public_names,
            ..config(name_server(Ipv4Addr::LOCALHOST).await)
        };
        let fetcher = Fetcher::new(crawl, MonotonicClock::start()).unwrap();
        let error = fetcher.connect(&chosen.seeds[0]).await.unwrap_err();
        let expect = "address_refused: seed.example is at 127.0.0.1, an address of this machine, \
                      and had a public address before";
        assert_eq!(error.to_string(), expect);
    }
}
