//! Seeds as they are typed: a whole URL, or a host as one types it into a browser.
//!
//! A host that stands alone is asked over https. Where no connection can be made by it, http
//! stands in, and that is said. Loopback names and addresses are asked over http at once: what
//! runs there is most often a server without a certificate. A crawl that goes on keeps to what
//! it began with.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use crawl_archive::{MAX_CONFIG_BYTES, read_text};
use crawl_fetcher::{Clock, FetchConfig, Fetcher};
use crawl_weburl::{CanonicalUrl, Unusable, canonicalize};
use tokio::task::JoinSet;

use crate::error::CommandError;

/// Hosts without a scheme that are tried at once.
const MAX_TRIED_AT_ONCE: usize = 32;

/// A seed that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seed {
    /// Where the crawl starts.
    pub(crate) url: CanonicalUrl,
    /// What stands in where no connection can be made by that: http for https, of a host that
    /// was typed without a scheme.
    pub(crate) stand_in: Option<CanonicalUrl>,
}

/// Whether a word is meant as a seed, and not as a command: a URL, or a host with a dot or a
/// port.
pub(crate) fn is_seed(word: &str) -> bool {
    if word.starts_with('-') {
        return false;
    }
    if has_scheme(word) {
        return true;
    }
    let (host, port) = host_and_port(word);
    let is_port = port.is_some_and(|port| port.parse::<u16>().is_ok());
    let is_name = !host.starts_with(['.', '~']) && host.chars().all(may_be_in_host);
    !host.is_empty()
        && (is_port || port.is_none())
        && (host.starts_with('[') || is_name)
        && (is_port || host.contains(['.', '[']) || host == "localhost")
}

/// Reads a seed.
///
/// # Errors
/// Why it names nothing that a crawler can ask for.
pub(crate) fn read(typed: &str) -> Result<Seed, Unusable> {
    let typed = typed.trim();
    if has_scheme(typed) || !is_seed(typed) {
        let url = canonicalize(None, typed)?;
        return Ok(Seed {
            url,
            stand_in: None,
        });
    }
    let https = canonicalize(None, &format!("https://{typed}"))?;
    let http = canonicalize(None, &format!("http://{typed}"))?;
    let host = https.host();
    let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let is_loopback = host == "localhost" || host.ends_with(".localhost");
    Ok(match host_and_port(typed).1 {
        Some("443") => Seed {
            url: https,
            stand_in: None,
        },
        port if port == Some("80") || is_address || is_loopback => Seed {
            url: http,
            stand_in: None,
        },
        _ => Seed {
            url: https,
            stand_in: Some(http),
        },
    })
}

/// Refuses what is a file or a crawl's directory here, where a host was expected.
pub(crate) fn check_no_file(typed: &str) -> Result<(), CommandError> {
    let path = Path::new(typed);
    if has_scheme(typed) {
        return Ok(());
    }
    let (what, hint) = match path.join("crawl.toml").is_file() {
        true if !holds_seed_at(path, typed) => (
            "the directory of a crawl",
            format!("`crawl --output {typed}` goes on with it"),
        ),
        false if typed.ends_with(".toml") && path.is_file() => (
            "a file",
            format!("`crawl --config {typed}` reads settings from it"),
        ),
        _ => return Ok(()),
    };
    Err(
        CommandError::usage(format!("`{typed}` is {what}, not a host"))
            .hint(format!("{hint}; a host of that name is `https://{typed}/`")),
    )
}

/// Whether the crawl in a directory began at this host, so that its folder bears its name.
fn holds_seed_at(dir: &Path, typed: &str) -> bool {
    let text = read_text(&dir.join("crawl.toml"), MAX_CONFIG_BYTES).unwrap_or_default();
    let table: toml::Table = text.parse().unwrap_or_default();
    let seeds = table.get("seed").and_then(toml::Value::as_array);
    let mut seeds = seeds.into_iter().flatten().filter_map(toml::Value::as_str);
    let host = read(typed).map(|seed| seed.url.host().to_owned());
    seeds.any(|seed| canonicalize(None, seed).map(|url| url.host().to_owned()) == host)
}

/// Seeds whose schemes are settled.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) seeds: Vec<CanonicalUrl>,
    /// Hosts that were found at a public address meanwhile: private ones of theirs are refused
    /// from then on.
    pub(crate) public_names: Vec<String>,
}

/// Which of the seeds that were typed without a scheme are asked over http: those that an
/// earlier run began so, and those to which a connection can be made by http alone. Nothing is
/// sent, not even a request: a connection is made, and closed. `say` is told of each.
pub(crate) async fn choose_schemes(
    seeds: &[Seed],
    older: &[CanonicalUrl],
    fetch: &FetchConfig,
    mut say: impl FnMut(&str),
) -> Result<Chosen, CommandError> {
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
        return Ok(Chosen {
            seeds: chosen,
            public_names: Vec::new(),
        });
    }
    let own = undecided.iter().flat_map(|(_, https, http)| [https, http]);
    let fetch = FetchConfig {
        typed: own.cloned().collect(),
        ..fetch.clone()
    };
    let fetcher = Fetcher::new(fetch, Clock::start())
        .map_err(|why| CommandError::usage(format!("can't fetch: {why}")))?;
    let fetcher = Arc::new(fetcher);
    for some in undecided.chunks(MAX_TRIED_AT_ONCE) {
        let mut tries = JoinSet::new();
        for (at, https, http) in some.iter().cloned() {
            let fetcher = Arc::clone(&fetcher);
            tries.spawn(async move {
                let why = fetcher.connect(&https).await.err()?;
                fetcher.connect(&http).await.ok()?;
                Some((at, http, why))
            });
        }
        let mut found: Vec<_> = tries.join_all().await.into_iter().flatten().collect();
        found.sort_by_key(|(at, ..)| *at);
        for (at, http, why) in found {
            let https = &chosen[at];
            say(&format!(
                "no connection by {https} ({why}): {http} is crawled"
            ));
            chosen[at] = http;
        }
    }
    Ok(Chosen {
        seeds: chosen,
        public_names: fetcher.public_names(),
    })
}

fn has_scheme(word: &str) -> bool {
    let starts = |scheme: &str| {
        let begins = word.get(..scheme.len());
        begins.is_some_and(|begins| begins.eq_ignore_ascii_case(scheme))
    };
    word.contains("://") || starts("http:") || starts("https:")
}

/// The host of a word without a scheme, and what follows it behind a colon.
fn host_and_port(word: &str) -> (&str, Option<&str>) {
    let authority = word.split(['/', '?', '#']).next().unwrap_or_default();
    // The colons of an IPv6 address stand in brackets.
    let behind = authority.rfind(']').unwrap_or(0);
    match authority[behind..].rfind(':') {
        Some(colon) => (
            &authority[..behind + colon],
            Some(&authority[behind + colon + 1..]),
        ),
        None => (authority, None),
    }
}

/// Letters beyond ASCII are written as Punycode.
fn may_be_in_host(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_')
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Duration;

    use crawl_fetcher::{Clock, FetchConfig, Fetcher};
    use tokio::net::UdpSocket;

    use super::{choose_schemes, is_seed, read};

    #[test]
    fn ours_a_seed_is_a_url_or_a_host_with_a_dot_or_a_port() {
        for seed in [
            "http://a/",
            "HTTPS://a/",
            "ftp://a/",
            "http:a.example",
            "example.org",
            "www.example.org/docs?x=1#y",
            "example.org:8080/a",
            "müller.example",
            "localhost",
            "localhost:8080",
            "intranet:8080",
            "127.0.0.1",
            "[::1]:80",
        ] {
            assert!(is_seed(seed), "{seed}");
        }
        for word in [
            "serach",
            "./a.b",
            "../x",
            "/tmp/a.b",
            "~/a.b",
            "a b.c",
            "me@e.example",
            "",
            "a:",
            "a:b",
            "mailto:me@e.example",
            "dir/",
            "-x.y",
            "--sede=http://a/",
            "*.a.b",
        ] {
            assert!(!is_seed(word), "{word}");
        }
    }

    fn check(typed: &str, expect: &str) {
        let found = match read(typed) {
            Ok(seed) => match seed.stand_in {
                Some(http) => format!("{}, else {http}", seed.url),
                None => seed.url.to_string(),
            },
            Err(why) => why.to_string(),
        };
        assert_eq!(found, expect, "{typed}");
    }

    #[test]
    fn ours_a_host_alone_is_asked_over_https_first() {
        check(
            "example.org",
            "https://example.org/, else http://example.org/",
        );
        check(
            "Example.org:8443/a",
            "https://example.org:8443/a, else http://example.org:8443/a",
        );
        check("example.org:80/a", "http://example.org/a");
        check("example.org:443", "https://example.org/");
        check("http://example.org", "http://example.org/");
        check("example", "not a URL: relative URL without a base");
    }

    /// A name server that has this address for every name, and none of IPv6.
    async fn name_server(says: Ipv4Addr) -> SocketAddr {
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
                    // The name of the question, a record A of class IN, its life and length.
                    answer.extend([0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
                    answer.extend(says.octets());
                }
                socket.send_to(&answer, peer).await.unwrap();
            }
        });
        address
    }

    /// DNS rebinding between the look whether https answers and the crawl.
    #[tokio::test]
    async fn ours_a_name_that_was_public_when_its_scheme_was_chosen_leads_home_no_more() {
        let seeds = [read("seed.example").unwrap()];
        let asking = |server| FetchConfig {
            name_servers: vec![server],
            connect_timeout: Duration::from_secs(20),
            // So that nobody's server is connected to.
            allow_public: false,
            ..FetchConfig::new("t")
        };
        let public = asking(name_server(Ipv4Addr::new(93, 184, 215, 14)).await);
        let chosen = choose_schemes(&seeds, &[], &public, |_| {}).await.unwrap();
        let crawl = FetchConfig {
            typed: chosen.seeds.clone(),
            public_names: chosen.public_names,
            ..asking(name_server(Ipv4Addr::LOCALHOST).await)
        };
        let fetcher = Fetcher::new(crawl, Clock::start()).unwrap();
        let why = fetcher.connect(&chosen.seeds[0]).await.unwrap_err();
        let expect = "address_refused: seed.example is at 127.0.0.1, this machine's own address, \
                      and had a public address before";
        assert_eq!(why.to_string(), expect);
    }

    #[test]
    fn ours_loopback_names_and_addresses_are_asked_over_http() {
        check("localhost:8080", "http://localhost:8080/");
        check("a.localhost", "http://a.localhost/");
        check("127.0.0.1:8080/x", "http://127.0.0.1:8080/x");
        check("[::1]:8080", "http://[::1]:8080/");
        check("192.168.1.7", "http://192.168.1.7/");
        check("127.0.0.1:443", "https://127.0.0.1/");
    }
}
