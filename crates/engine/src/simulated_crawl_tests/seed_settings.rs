//! Tests of seeds with their own scope, depth and label, combined with hops off scope. Each row is
//! compared with rules that the test itself states, and each allowed link must have a row.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::{ExcludedRow, PageRow};
use crawl_fetcher::{Exchange, ExchangeFailure};
use crawl_frontier::MemoryFrontier;
use crawl_scheduler::Tick;
use crawl_scope::{ScopeMode, SeedAreaKind, SeedSettings};
use crawl_weburl::canonicalize;

use super::scripted_servers::{answer, page, rows};
use super::{SimulatedRunSettings, SimulatedServers, config, drawn, play_run};
use crate::messages::RequestJob;
use crate::revisit::visit::Round;
use crate::summary::EndReason;

const HOSTS: [&str; 5] = [
    "a.example",
    "www.a.example",
    "b.example",
    "www.c.example",
    "d.example",
];
const FOLDERS: [&str; 3] = ["/", "/x/", "/x/y/"];
const NUMBERS: u64 = 4;

/// A seed with its settings, as a user writes it.
struct WrittenSeed {
    url: &'static str,
    scope: Option<SeedAreaKind>,
    depth: Option<u32>,
    label: Option<&'static str>,
}

const SEEDS: [WrittenSeed; 5] = [
    WrittenSeed {
        url: "http://a.example/p0.html",
        scope: None,
        depth: Some(2),
        label: Some("ministry"),
    },
    WrittenSeed {
        url: "http://a.example/x/y/p1.html",
        scope: Some(SeedAreaKind::Prefix),
        depth: Some(1),
        label: Some("press"),
    },
    WrittenSeed {
        url: "http://b.example/x/p0.html",
        scope: Some(SeedAreaKind::Page),
        depth: None,
        label: Some("imprint"),
    },
    WrittenSeed {
        url: "http://www.c.example/p0.html",
        scope: Some(SeedAreaKind::Domain),
        depth: Some(4),
        label: None,
    },
    WrittenSeed {
        url: "http://www.a.example/x/p2.html",
        scope: None,
        depth: None,
        label: None,
    },
];

/// The settings of one crawl, apart from the settings of its seeds.
#[derive(Clone, Copy, Debug)]
struct SeedSettingsCase {
    web: u64,
    mode: ScopeMode,
    hops_off: u8,
    max_depth: Option<u32>,
}

fn host(url: &str) -> &str {
    url.split('/').nth(2).unwrap()
}

fn domain(url: &str) -> String {
    let labels: Vec<_> = host(url).rsplit('.').take(2).collect();
    labels.join(".")
}

/// Returns the part of a URL up to its last slash.
fn folder(url: &str) -> &str {
    &url[..=url.rfind('/').unwrap()]
}

impl SeedSettingsCase {
    /// Returns the pages that a page links to.
    fn links(self, from: &str) -> Vec<String> {
        let bytes: Vec<u64> = from.bytes().map(u64::from).collect();
        let link = |link: u64| {
            let draw = drawn(drawn(self.web, &bytes), &[link]) >> 8;
            let (host, draw) = (HOSTS[(draw % 5) as usize], draw / 5);
            let (folder, draw) = (FOLDERS[(draw % 3) as usize], draw / 3);
            format!("http://{host}{folder}p{}.html", draw % NUMBERS)
        };
        (0..3).map(link).collect()
    }

    fn usual_area(self) -> SeedAreaKind {
        match self.mode {
            ScopeMode::Prefix => SeedAreaKind::Prefix,
            ScopeMode::Domain => SeedAreaKind::Domain,
            _ => SeedAreaKind::Host,
        }
    }

    /// Returns the seed whose settings apply to a URL. If several seeds cover the URL, the smallest
    /// area wins: the URL itself, then the longest folder, the host, the domain.
    fn ruler(self, url: &str) -> Option<&'static WrittenSeed> {
        let says = |seed: &&WrittenSeed| {
            seed.scope.is_some() || seed.depth.is_some() || seed.label.is_some()
        };
        let size = |seed: &WrittenSeed| {
            let kind = seed.scope.unwrap_or(self.usual_area());
            match kind {
                _ if seed.url == url => Some((0, 0)),
                SeedAreaKind::Prefix => {
                    let own = folder(seed.url);
                    url.starts_with(own).then_some((1, usize::MAX - own.len()))
                }
                SeedAreaKind::Host => (host(seed.url) == host(url)).then_some((2, 0)),
                SeedAreaKind::Domain => (domain(seed.url) == domain(url)).then_some((3, 0)),
                SeedAreaKind::Page => None,
            }
        };
        let sized = SEEDS.iter().filter(says);
        let sized = sized.filter_map(|seed| Some((size(seed)?, seed)));
        sized.min_by_key(|(size, _)| *size).map(|(_, seed)| seed)
    }

    fn label(self, url: &str) -> Option<&'static str> {
        self.ruler(url)?.label
    }

    fn is_within(self, url: &str) -> bool {
        let plain = SEEDS.iter().filter(|seed| seed.scope.is_none());
        let reaches = |seed: &WrittenSeed| match self.mode {
            ScopeMode::Prefix => url.starts_with(folder(seed.url)),
            ScopeMode::Domain => domain(seed.url) == domain(url),
            _ => host(seed.url) == host(url),
        };
        self.ruler(url).is_some() || plain.into_iter().any(reaches)
    }

    /// Returns whether the rules allow a URL to be fetched. `depth` is the number of links from a
    /// seed, and `hops` the number of links off scope.
    fn allows(self, url: &str, depth: u32, hops: u8) -> bool {
        if SEEDS.iter().any(|seed| seed.url == url) {
            return true;
        }
        let own = self.ruler(url).and_then(|seed| seed.depth);
        own.or(self.max_depth).is_none_or(|most| depth <= most)
            && (self.is_within(url) || hops <= self.hops_off)
    }

    /// Returns the hops off scope of a link's target. `from` is the number of hops of the page with
    /// the link.
    fn hops(self, from: u8, url: &str) -> u8 {
        match self.is_within(url) {
            true => 0,
            false => from + 1,
        }
    }

    /// Runs the crawl. Returns the rows of pages by URL.
    fn crawl(self) -> BTreeMap<String, PageRow> {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path());
        let url = |seed: &WrittenSeed| canonicalize(None, seed.url).unwrap();
        let terms = |seed: &WrittenSeed| SeedSettings {
            scope: seed.scope,
            max_depth: seed.depth,
            label: seed.label.map(Arc::from),
        };
        config.seeds = SEEDS.iter().map(url).collect();
        config.scope.seed_terms = SEEDS.iter().map(|seed| (url(seed), terms(seed))).collect();
        config.scope.mode = self.mode;
        config.scope.hops_off = self.hops_off;
        config.scope.max_depth = self.max_depth;
        let run = SimulatedRunSettings {
            config,
            frontier: Arc::new(MemoryFrontier::new()),
            seed: self.web,
            round: Round::first(0),
            page_takes: Duration::ZERO,
            earlier: &mut |_| {},
        };
        let played = play_run(run, &mut |_, _| Vec::new(), &mut { self });
        assert_eq!(played.ended, EndReason::Finished, "{self:?}");
        for row in rows::<ExcludedRow>(dir.path(), "excluded.jsonl") {
            assert_eq!(
                row.label.as_deref(),
                self.label(&row.url),
                "{self:?} {row:?}"
            );
        }
        let rows = rows::<PageRow>(dir.path(), "pages.jsonl").into_iter();
        rows.map(|row| (row.url.clone(), row)).collect()
    }

    /// Checks each row against the rules. Also checks that each allowed link has a row.
    fn check(self, rows: &BTreeMap<String, PageRow>) {
        for (url, row) in rows {
            let (depth, hops) = (row.depth, row.hops_off_scope);
            assert!(self.allows(url, depth, hops), "{self:?} {row:?}");
            assert_eq!(row.label.as_deref(), self.label(url), "{self:?} {url}");
            match &row.via {
                None => assert!(SEEDS.iter().any(|seed| seed.url == url)),
                Some(via) => {
                    let from = &rows[via];
                    assert!(self.links(via).contains(url), "{self:?} {row:?}");
                    let distance = (from.depth + 1, self.hops(from.hops_off_scope, url));
                    assert_eq!((depth, hops), distance, "{self:?} {url}");
                }
            }
            for to in self.links(url) {
                let hops = self.hops(hops, &to);
                // Links of a page at the last hop are not followed, not even back into the scope.
                let is_last = row.hops_off_scope > 0 && row.hops_off_scope == self.hops_off;
                if !is_last && self.allows(&to, depth + 1, hops) {
                    assert!(rows.contains_key(&to), "{self:?} {url} {to}");
                }
            }
        }
    }
}

impl SimulatedServers for SeedSettingsCase {
    fn exchange(&mut self, job: &RequestJob, now: Tick) -> Result<Exchange, ExchangeFailure> {
        let url = job.url();
        let reply = match url.path().contains("/p") {
            true => {
                let links = self.links(url.as_str()).into_iter();
                let links = links.map(|to| format!("<a href={to}>x</a>"));
                page(&links.collect::<String>())
            }
            false => answer(404, ""),
        };
        reply.result(url, now)
    }
}

#[test]
fn the_smallest_area_decides_scope_depth_and_label() {
    let mut largest = BTreeMap::new();
    for mode in [ScopeMode::Host, ScopeMode::Domain, ScopeMode::Prefix] {
        for web in 0..4 {
            for max_depth in [None, Some(3)] {
                for hops_off in 0..3 {
                    let case = SeedSettingsCase {
                        web,
                        mode,
                        hops_off,
                        max_depth,
                    };
                    let rows = case.crawl();
                    case.check(&rows);
                    let off = rows.values().filter(|row| row.hops_off_scope > 0).count();
                    let pages = largest.entry((hops_off, max_depth)).or_insert((0, 0));
                    *pages = (pages.0 + rows.len(), pages.1 + off);
                }
            }
        }
    }
    // Check that the limits had an effect: each further hop adds pages, and the depth limit removes
    // some.
    for max_depth in [None, Some(3)] {
        let [none, one, two] = [0, 1, 2].map(|hops| largest[&(hops, max_depth)]);
        assert_eq!(none.1, 0);
        assert!(none.0 < one.0 && one.1 > 0 && one.0 < two.0, "{largest:?}");
    }
    assert!((1..3).all(|hops| largest[&(hops, Some(3))].0 < largest[&(hops, None)].0));
}
