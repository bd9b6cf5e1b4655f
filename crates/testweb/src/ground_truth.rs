//! The ground truth of the synthetic web: what a crawl of it must find.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::synthetic_web::{DISALLOW_ACTION, DISALLOW_PRIVATE, SyntheticWeb};
use crate::web_plan::{PlannedUrl, PlannedUrlKind, WebParameters};

/// The hosts that a crawl may enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostsInScope {
    /// Only the seed's host.
    Host,
    /// Every host.
    Any,
}

/// The expected result of a crawl that starts at the root of host 0, obeys robots.txt and nofollow,
/// and has no budget. Requests for `/robots.txt` and `/sitemap.xml` are in none of the sets.
///
/// Covers only the pages that are computed from the seed, not replies that the test defines with
/// scripts and handlers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroundTruth {
    /// URLs to fetch exactly once each, discovered through links and redirects.
    pub fetched: BTreeMap<String, ExpectedAnswer>,
    /// URLs to fetch that are discovered only in sitemaps. All answer 200 and link to nothing new.
    pub by_sitemap: BTreeSet<String>,
    /// URLs that a crawl discovers but must not fetch. Pages reachable only through these URLs are
    /// in none of the sets.
    pub barred: BTreeMap<String, ExclusionReason>,
}

impl GroundTruth {
    /// Returns every URL that a crawl fetches if it reads sitemaps.
    pub fn fetched_with_sitemaps(&self) -> BTreeSet<String> {
        self.fetched
            .keys()
            .chain(&self.by_sitemap)
            .cloned()
            .collect()
    }
}

/// The expected answer for a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedAnswer {
    /// The status code, 3xx for a redirect.
    pub status: u16,
    /// The minimum number of links from the seed, not counting redirects.
    pub depth: u32,
}

/// Why a URL must not be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExclusionReason {
    /// Disallowed by this line of its host's robots.txt.
    Robots(&'static str),
    /// Every link to the URL is nofollow.
    Nofollow,
    /// The URL is on a host outside the scope.
    Scope,
}

pub(crate) fn walk(site: &SyntheticWeb, reach: HostsInScope) -> GroundTruth {
    let mut walk = GroundTruthWalk {
        site,
        reach,
        places: BTreeMap::new(),
        truth: GroundTruth::default(),
    };
    walk.run();
    walk.truth
}

struct GroundTruthWalk<'a> {
    site: &'a SyntheticWeb,
    reach: HostsInScope,
    /// URLs to fetch, with their depth.
    places: BTreeMap<PlannedUrl, u32>,
    truth: GroundTruth,
}

impl GroundTruthWalk<'_> {
    fn run(&mut self) {
        let mut queue = VecDeque::from([(WebParameters::root(0), 0)]);
        let mut nofollow = BTreeSet::new();
        while let Some((place, depth)) = queue.pop_front() {
            if self.places.contains_key(&place) || !self.admit(place) {
                continue;
            }
            self.places.insert(place, depth);
            if let Some((_, to)) = self.site.shape.redirect(place) {
                queue.push_front((to, depth));
            }
            for edge in self.site.shape.links(place) {
                if edge.shunned || place.kind == PlannedUrlKind::DeadEnd {
                    nofollow.insert(edge.to);
                } else {
                    queue.push_back((edge.to, depth + 1));
                }
            }
        }
        for place in nofollow {
            if !self.places.contains_key(&place) {
                self.truth
                    .barred
                    .insert(self.site.url(place), ExclusionReason::Nofollow);
            }
        }
        self.by_sitemap();
        for (place, depth) in &self.places {
            let status = self.status(*place);
            self.truth.fetched.insert(
                self.site.url(*place),
                ExpectedAnswer {
                    status,
                    depth: *depth,
                },
            );
        }
    }

    /// Returns whether a discovered URL may be fetched. If not, records the reason.
    fn admit(&mut self, place: PlannedUrl) -> bool {
        let barred = match place.kind {
            _ if self.reach == HostsInScope::Host && place.host != 0 => ExclusionReason::Scope,
            PlannedUrlKind::Private => ExclusionReason::Robots(DISALLOW_PRIVATE),
            PlannedUrlKind::Action => ExclusionReason::Robots(DISALLOW_ACTION),
            _ => return true,
        };
        self.truth.barred.insert(self.site.url(place), barred);
        false
    }

    fn by_sitemap(&mut self) {
        if !self.site.sitemap {
            return;
        }
        let hosts: BTreeSet<u32> = self.places.keys().map(|place| place.host).collect();
        for host in hosts {
            for place in self.site.shape.sitemap(host) {
                if !self.places.contains_key(&place) {
                    self.truth.by_sitemap.insert(self.site.url(place));
                }
            }
        }
    }

    fn status(&self, place: PlannedUrl) -> u16 {
        match place.kind {
            PlannedUrlKind::Gone => 404,
            _ => self
                .site
                .shape
                .redirect(place)
                .map_or(200, |(status, _)| status),
        }
    }
}
