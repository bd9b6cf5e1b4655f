//! A web computed from a seed: pages with links. Half of the links lead to known URLs.

use crawl_frontier::UrlToAdmit;
use crawl_weburl::{CanonicalUrl, Origin, canonicalize};

/// The number of links from a page to its own host (`OWN`) and to other hosts (`ELSEWHERE`). Half
/// of the links in each group lead to known URLs.
const OWN: u32 = 40;
const ELSEWHERE: u32 = 10;
/// The total number of links on a page.
pub(crate) const LINKS: usize = (OWN + ELSEWHERE) as usize;

/// A page: its origin and its links.
pub(crate) struct GeneratedPage {
    pub(crate) origin: Origin,
    pub(crate) links: Vec<UrlToAdmit>,
}

/// A generated web, whose hosts appear one after the other. Each host numbers its URLs from 0 in
/// the order they appear.
pub(crate) struct GeneratedWeb {
    hosts: Vec<GeneratedHost>,
    /// The numbers of the hosts that have appeared.
    seen: Vec<u32>,
    random: Random,
}

#[derive(Clone, Copy, Default)]
struct GeneratedHost {
    /// The number of the host's URLs that pages have linked to so far.
    urls: u32,
    /// The number of the host's pages that `GeneratedWeb::page` has returned.
    pages: u32,
}

impl GeneratedWeb {
    pub(crate) fn new(hosts: u32, seed: u64) -> GeneratedWeb {
        GeneratedWeb {
            hosts: vec![GeneratedHost::default(); hosts as usize],
            seen: Vec::new(),
            random: Random(seed),
        }
    }

    /// Returns the first URL of each of `count` hosts.
    pub(crate) fn seeds(&mut self, count: u32) -> Vec<UrlToAdmit> {
        (0..count.min(self.hosts.len() as u32))
            .map(|host| UrlToAdmit::seed(self.new_url(host).0))
            .collect()
    }

    /// Returns the next page of a random host that has pages left and whose number satisfies
    /// `is_wanted`.
    pub(crate) fn page(&mut self, is_wanted: impl Fn(u32) -> bool) -> GeneratedPage {
        let (host, number) = self.host_with_work(is_wanted);
        let via = url(host, number);
        let depth = depth(number) + 1;
        let mut links = Vec::with_capacity(LINKS);
        for n in 0..OWN {
            let (url, _) = match n % 2 {
                0 => self.new_url(host),
                _ => self.known_url(host),
            };
            links.push(UrlToAdmit::link(url, depth, via.clone()));
        }
        for n in 0..ELSEWHERE {
            let linked_host = self.random.below(self.hosts.len() as u32);
            let (url, depth) = match n % 2 == 0 || self.hosts[linked_host as usize].urls == 0 {
                true => self.new_url(linked_host),
                false => self.known_url(linked_host),
            };
            links.push(UrlToAdmit::link(url, depth, via.clone()));
        }
        GeneratedPage {
            origin: via.origin(),
            links,
        }
    }

    /// Returns the origin of a random host that has appeared.
    pub(crate) fn origin(&mut self) -> Origin {
        let at = self.random.below(self.seen.len() as u32) as usize;
        url(self.seen[at], 0).origin()
    }

    fn host_with_work(&mut self, is_wanted: impl Fn(u32) -> bool) -> (u32, u32) {
        loop {
            let at = self.random.below(self.seen.len() as u32) as usize;
            let number = self.seen[at];
            let host = &mut self.hosts[number as usize];
            if host.pages < host.urls && is_wanted(number) {
                host.pages += 1;
                return (number, host.pages - 1);
            }
        }
    }

    fn new_url(&mut self, number: u32) -> (CanonicalUrl, u32) {
        let host = &mut self.hosts[number as usize];
        if host.urls == 0 {
            self.seen.push(number);
        }
        host.urls += 1;
        (url(number, host.urls - 1), depth(host.urls - 1))
    }

    fn known_url(&mut self, host: u32) -> (CanonicalUrl, u32) {
        let number = self.random.below(self.hosts[host as usize].urls);
        (url(host, number), depth(number))
    }
}

pub(crate) fn url(host: u32, number: u32) -> CanonicalUrl {
    let mixed = Random(u64::from(number) << 32 | u64::from(host)).next() % 1_000_000;
    let text = format!("https://www.host-{host}.example/articles/{mixed:06}/title-of-{number}");
    canonicalize(None, &text).expect("a URL")
}

/// Returns the depth of a host's page `number`. Links are one level deeper than the page that
/// contains them.
fn depth(mut number: u32) -> u32 {
    let mut depth = 1;
    while number > 0 {
        number = (number - 1) / (OWN / 2);
        depth += 1;
    }
    depth
}

/// A random number generator: `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }
}
