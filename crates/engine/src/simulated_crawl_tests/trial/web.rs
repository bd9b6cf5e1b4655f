//! The web of a trial: hosts, pages and faults, all computed from the trial's seed.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use crawl_fetcher::{Exchange, ExchangeFailure, FailureKind};
use crawl_scheduler::Tick;
use crawl_weburl::CanonicalUrl;

use super::super::scripted_servers::{SimulatedAnswer, answer, fails, moved, page};
use super::RandomNumberGenerator;
use crate::messages::RequestJob;

/// Servers whose answers depend on the seed, the URL and the number of requests for the URL.
pub(super) struct TrialWeb {
    seed: u64,
    hosts: u64,
    pages: u64,
    tries: BTreeMap<String, u64>,
}

impl TrialWeb {
    /// Draws a web with up to `most_hosts` hosts.
    pub(super) fn new(dice: &mut RandomNumberGenerator, most_hosts: u64) -> TrialWeb {
        TrialWeb {
            seed: dice.next(),
            hosts: 1 + dice.below(most_hosts),
            pages: 2 + dice.below(11),
            tries: BTreeMap::new(),
        }
    }

    /// Returns the dice of a host or page, with the same numbers at each call.
    fn dice(&self, of: &[u64]) -> RandomNumberGenerator {
        let mix = |seed, part: &u64| RandomNumberGenerator::new(seed ^ part.wrapping_add(1)).next();
        RandomNumberGenerator::new(of.iter().fold(self.seed, mix))
    }

    pub(super) fn seed_url(&self) -> String {
        "http://h0.s0.example/p0".to_owned()
    }

    pub(super) fn host_names(&self) -> impl Iterator<Item = String> {
        (0..self.hosts).map(host_name)
    }

    pub(super) fn any_host(&self, dice: &mut RandomNumberGenerator) -> String {
        host_name(dice.below(self.hosts))
    }

    pub(super) fn address(host: &str) -> IpAddr {
        let number = host_number(host);
        Ipv4Addr::new(192, 0, 2, 1 + (number % 2) as u8).into()
    }

    /// Returns the delay that the robots.txt of a host sets.
    pub(super) fn crawl_delay(&self, host: &str) -> Duration {
        let host = host_number(host);
        match robots_kind(&mut self.dice(&[host, 1])) {
            Robots::Delay(seconds) => Duration::from_secs(seconds),
            _ => Duration::ZERO,
        }
    }

    /// Returns whether the robots.txt of a host redirects to another host.
    pub(super) fn has_rules_elsewhere(&self, host: &str) -> bool {
        let kind = robots_kind(&mut self.dice(&[host_number(host), 1]));
        matches!(kind, Robots::Elsewhere)
    }

    /// Returns whether the rules of a host allow a path. A host without a robots.txt allows all.
    pub(super) fn allows(&self, url: &CanonicalUrl) -> bool {
        let host = host_number(url.host());
        let has_rules = !matches!(robots_kind(&mut self.dice(&[host, 1])), Robots::None);
        !has_rules || !url.path().starts_with("/private")
    }

    /// Returns the URLs that a page links to.
    pub(super) fn links(&self, url: &CanonicalUrl) -> Vec<String> {
        let host = host_number(url.host());
        let Some(number) = page_number(url.path()) else {
            return Vec::new();
        };
        let origin = url.origin();
        let next = (number + 1) % self.pages;
        let mut dice = self.dice(&[host, number, 2]);
        let mut links = vec![format!("{origin}/p{next}")];
        for _ in 0..dice.below(6) {
            let (to, page) = (dice.below(self.hosts), dice.below(self.pages));
            links.push(match dice.below(9) {
                0 => format!("{origin}/private/{page}"),
                1 => format!("https://{}/p{page}", host_name(to)),
                2..5 => format!("http://{}/p{page}", host_name(to)),
                _ => format!("{origin}/p{page}"),
            });
        }
        links
    }

    /// Returns the result of a request that is sent now.
    pub(super) fn exchange(
        &mut self,
        job: &RequestJob,
        now: Tick,
    ) -> Result<Exchange, ExchangeFailure> {
        let url = job.url();
        let etag = job.request().validators.etag;
        let tries = self.tries.entry(url.to_string()).or_default();
        *tries += 1;
        let tries = *tries;
        let answer = match url.path() {
            "/robots.txt" => self.robots(url, tries),
            "/rules.txt" => answer(200, RULES),
            path => match page_number(path) {
                Some(number) => self.page(url, number, tries, etag.as_deref()),
                None => answer(404, ""),
            },
        };
        let mut dice = self.dice(&[host_number(url.host()), tries, now.as_micros(), 3]);
        let slow = if dice.chance(3) { 20_000 } else { 0 };
        let takes = Duration::from_millis(1 + dice.below(400) + slow);
        let address = SocketAddr::from((TrialWeb::address(url.host()), 80));
        let at = |exchange: Exchange| Exchange {
            address: Some(address),
            ..exchange
        };
        match answer.taking(takes).result(url, now) {
            Ok(exchange) => Ok(at(exchange)),
            Err(failure) => Err(ExchangeFailure {
                address: (!failure.kind.is_no_connection()).then_some(address),
                answer: failure.answer.map(|answer| Box::new(at(*answer))),
                ..failure
            }),
        }
    }

    fn robots(&self, url: &CanonicalUrl, tries: u64) -> SimulatedAnswer {
        let host = host_number(url.host());
        let mut dice = self.dice(&[host, 1]);
        let kind = robots_kind(&mut dice);
        match kind {
            Robots::None => answer(404, ""),
            Robots::Delay(seconds) => answer(200, &format!("{RULES}Crawl-delay: {seconds}\n")),
            Robots::Unavailable { until, wait } if tries <= until => {
                let answer = answer(503, "");
                match wait {
                    0 => answer,
                    wait => answer.with("retry-after", &wait.to_string()),
                }
            }
            Robots::Refused if tries == 1 => fails(FailureKind::ConnectRefused),
            Robots::Moved => moved("/rules.txt"),
            Robots::Elsewhere => {
                let to = host_name((host + 1) % self.hosts);
                moved(&format!("http://{to}/rules.txt"))
            }
            Robots::Brief(seconds) => {
                answer(200, RULES).with("cache-control", &format!("max-age={seconds}"))
            }
            _ => answer(200, RULES),
        }
    }

    fn page(
        &self,
        url: &CanonicalUrl,
        number: u64,
        tries: u64,
        etag: Option<&str>,
    ) -> SimulatedAnswer {
        let mut dice = self.dice(&[host_number(url.host()), number, 4]);
        let links = self.links(url).into_iter();
        let links: String = links.map(|to| format!("<a href={to}>x</a>")).collect();
        let body = format!("<p>Page {number}, {tries}</p>{links}");
        let is_first = tries == 1;
        // Some pages change rarely or never, and have an ETag.
        let version = tries / (1 + dice.below(4) * 3);
        match dice.below(20) {
            // The seed always answers, so that there is a crawl.
            _ if number == 0 => page(&body),
            8..11 if etag == Some(&*format!("\"{version}\"")) => answer(304, ""),
            8..11 => {
                let body = format!("<p>Page {number}, version {version}</p>{links}");
                page(&body).with("etag", &format!("\"{version}\""))
            }
            0 if is_first => {
                let wait = 2 + dice.below(200);
                answer(503, "").with("retry-after", &wait.to_string())
            }
            1 if is_first => answer(429, ""),
            2 if is_first => answer(500, "").with("retry-after", "3"),
            2 => answer(404, &body).with("retry-after", "7"),
            3 => moved(&format!("/p{}", (number + 1) % self.pages)),
            4 if is_first => fails(FailureKind::ConnectRefused),
            5 => fails(FailureKind::Timeout),
            6 => answer(500, ""),
            7 => page(&body).but(FailureKind::ShortBody),
            _ => page(&body),
        }
    }
}

const RULES: &str = "User-agent: *\nDisallow: /private\n";

enum Robots {
    Plain,
    Delay(u64),
    None,
    Unavailable { until: u64, wait: u64 },
    Refused,
    Moved,
    Elsewhere,
    Brief(u64),
}

fn robots_kind(dice: &mut RandomNumberGenerator) -> Robots {
    match dice.below(10) {
        0 | 1 => Robots::Delay(2 + dice.below(7)),
        2 => Robots::None,
        3 => Robots::Unavailable {
            until: 1 + dice.below(2),
            wait: dice.below(3) * (30 + dice.below(600)),
        },
        4 => Robots::Refused,
        5 => Robots::Moved,
        6 => Robots::Elsewhere,
        7 | 8 => Robots::Brief(5 + dice.below(90)),
        _ => Robots::Plain,
    }
}

fn host_name(number: u64) -> String {
    format!("h{number}.s{}.example", number / 2)
}

fn host_number(name: &str) -> u64 {
    let digits = name[1..].split('.').next();
    digits.and_then(|digits| digits.parse().ok()).unwrap()
}

fn page_number(path: &str) -> Option<u64> {
    path.strip_prefix("/p")?.parse().ok()
}
