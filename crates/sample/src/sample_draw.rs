//! Draws a sample: in each stratum, the URLs with the lowest random numbers (ranks).

use std::collections::{BTreeMap, BinaryHeap, HashMap};

use crawl_weburl::CanonicalUrl;
use serde::{Deserialize, Serialize};

use crate::sample_design::{SampleDesign, rank};

/// The key under which a crawl's state stores the draw.
pub const DRAW_KEY: &str = "sample";

/// The rule in `excluded.jsonl` for a URL that is in the frame but was not drawn.
pub const NOT_DRAWN: &str = "not drawn";

/// The URLs that may be drawn. Memory: eight bytes for each URL that would be in the sample if it
/// were drawn now.
#[derive(Clone, Debug)]
pub struct SamplingFrame {
    design: SampleDesign,
    strata: BTreeMap<String, StratumSample>,
}

/// The current sample of a stratum.
#[derive(Clone, Debug, Default)]
struct StratumSample {
    /// The number of URLs in the stratum, drawn or not.
    of: u64,
    /// The lowest ranks. The highest rank is at the top of the heap.
    ranks: BinaryHeap<u64>,
}

impl StratumSample {
    /// Keeps a rank if it is among the `pages` lowest ones, and returns whether it was kept.
    fn keep(&mut self, rank: u64, pages: usize) -> bool {
        if self.ranks.len() < pages {
            self.ranks.push(rank);
            return true;
        }
        match self.ranks.peek_mut() {
            Some(mut greatest) if rank < *greatest => {
                *greatest = rank;
                true
            }
            _ => false,
        }
    }
}

impl SamplingFrame {
    /// Creates an empty frame.
    #[must_use]
    pub fn new(design: &SampleDesign) -> SamplingFrame {
        SamplingFrame {
            design: design.clone(),
            strata: BTreeMap::new(),
        }
    }

    /// Adds a URL that is `depth` links away from a seed. Must be called only once per URL. Returns
    /// `false` if it is already certain that the URL won't be drawn.
    pub fn add(&mut self, url: &CanonicalUrl, depth: u32) -> bool {
        let SampleDesign {
            pages, by, seed, ..
        } = &self.design;
        let stratum = self.strata.entry(by.stratum(url, depth)).or_default();
        stratum.of += 1;
        stratum.keep(rank(seed, url.as_str()), *pages)
    }

    /// Draws the sample from all URLs that were added.
    #[must_use]
    pub fn draw(self) -> SampleDrawResult {
        let SampleDesign { pages, by, .. } = self.design;
        let mut strata: BTreeMap<String, StratumSample> = BTreeMap::new();
        for (name, drawn) in self.strata {
            // If all URLs of a stratum were drawn, all of its ranks are known, so it can be merged
            // with other such strata.
            let is_small = drawn.of <= pages as u64;
            let pool = by.pool(&name).filter(|_| is_small);
            let into = strata.entry(pool.unwrap_or(name)).or_default();
            into.of += drawn.of;
            for rank in drawn.ranks {
                into.keep(rank, pages);
            }
        }
        let strata = strata.into_iter().map(|(name, drawn)| StoredStratum {
            name,
            of: drawn.of,
            ranks: drawn.ranks.into_sorted_vec(),
        });
        SampleDrawResult::of(StoredDraw {
            strata: strata.collect(),
            design: self.design,
        })
    }
}

/// The sample that was drawn from a frame.
#[derive(Clone, Debug)]
pub struct SampleDrawResult {
    stored: StoredDraw,
    /// Maps each drawn rank to the index of its stratum.
    strata: HashMap<u64, usize>,
}

/// A draw as stored on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredDraw {
    design: SampleDesign,
    strata: Vec<StoredStratum>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredStratum {
    name: String,
    of: u64,
    /// The drawn ranks in ascending order.
    ranks: Vec<u64>,
}

/// A stratum of a draw, with the number of its drawn pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StratumDrawCounts<'a> {
    /// The name of the stratum.
    pub name: &'a str,
    /// The number of URLs drawn from the stratum.
    pub drawn: u64,
    /// The number of URLs in the stratum, drawn or not.
    pub of: u64,
    /// The highest rank that was drawn. URLs with higher ranks were not drawn.
    pub last_rank: u64,
}

impl SampleDrawResult {
    fn of(stored: StoredDraw) -> SampleDrawResult {
        let strata = stored.strata.iter().enumerate();
        let ranks =
            strata.flat_map(|(at, stratum)| stratum.ranks.iter().map(move |rank| (*rank, at)));
        SampleDrawResult {
            strata: ranks.collect(),
            stored,
        }
    }

    /// Parses the output of [`SampleDrawResult::to_bytes`]. Returns `None` if it is damaged.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<SampleDrawResult> {
        serde_json::from_slice(bytes).ok().map(SampleDrawResult::of)
    }

    /// Serializes the draw for [`SampleDrawResult::read`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(&self.stored).unwrap_or_default()
    }

    /// Returns the design of the draw.
    #[must_use]
    pub fn design(&self) -> &SampleDesign {
        &self.stored.design
    }

    /// Returns the random number that decides whether a URL is drawn.
    #[must_use]
    pub fn rank(&self, url: &CanonicalUrl) -> u64 {
        rank(&self.stored.design.seed, url.as_str())
    }

    /// Returns the stratum that a URL was drawn from, with the counts needed for estimates. `None`
    /// if the URL was not drawn.
    #[must_use]
    pub fn stratum_of(&self, url: &CanonicalUrl) -> Option<StratumDrawCounts<'_>> {
        let at = self.strata.get(&self.rank(url))?;
        self.stored.strata.get(*at).map(StoredStratum::shown)
    }

    /// Returns the stratum that a URL of the frame belongs to, whether the URL was drawn or not.
    #[must_use]
    pub fn stratum_in_frame(
        &self,
        url: &CanonicalUrl,
        depth: u32,
    ) -> Option<StratumDrawCounts<'_>> {
        let name = self.stored.design.by.stratum(url, depth);
        let find = |name: &str| self.strata().find(|stratum| stratum.name == name);
        let pool = self.stored.design.by.pool(&name);
        find(&name).or_else(|| find(&pool?))
    }

    /// Returns all strata, ordered by name.
    pub fn strata(&self) -> impl Iterator<Item = StratumDrawCounts<'_>> {
        self.stored.strata.iter().map(StoredStratum::shown)
    }
}

impl StoredStratum {
    fn shown(&self) -> StratumDrawCounts<'_> {
        StratumDrawCounts {
            name: &self.name,
            drawn: self.ranks.len() as u64,
            of: self.of,
            last_rank: self.ranks.last().copied().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crawl_weburl::{CanonicalUrl, canonicalize};
    use proptest::prelude::*;

    use super::{SampleDrawResult, SamplingFrame};
    use crate::sample_design::{SampleDesign, StratumRule};

    fn page(host: u32, folder: u32, number: usize) -> CanonicalUrl {
        let url = format!("http://h{host}.example/f{folder}/{number}");
        canonicalize(None, &url).unwrap()
    }

    fn drawn(design: &SampleDesign, urls: &[(CanonicalUrl, u32)]) -> SampleDrawResult {
        let mut frame = SamplingFrame::new(design);
        for (url, depth) in urls {
            frame.add(url, *depth);
        }
        frame.draw()
    }

    fn rules() -> impl Strategy<Value = StratumRule> {
        prop_oneof![
            Just(StratumRule::Crawl),
            Just(StratumRule::Host),
            Just(StratumRule::Depth),
            Just(StratumRule::Path),
        ]
    }

    proptest! {
        #[test]
        fn each_stratum_gives_its_lowest_ranks_in_any_order(
            by in rules(),
            pages in 2_usize..7,
            seed in "[a-z]{0,4}",
            found in prop::collection::vec((0_u32..3, 0_u32..4, 0_u32..3), 0..80),
            turn in 0_usize..80,
        ) {
            let design = SampleDesign { pages, by, seed, frame_depth: 0 };
            let urls = found.iter().enumerate();
            let mut urls: Vec<_> =
                urls.map(|(number, (host, folder, depth))| (page(*host, *folder, number), *depth))
                    .collect();
            let draw = drawn(&design, &urls);
            prop_assert_eq!(draw.strata().map(|it| it.of).sum::<u64>(), urls.len() as u64);
            let mut strata: BTreeMap<String, Vec<(u64, bool)>> = BTreeMap::new();
            for (url, depth) in &urls {
                let own = draw.stratum_in_frame(url, *depth).unwrap();
                let by_rank = draw.stratum_of(url);
                prop_assert!(by_rank.is_none_or(|by_rank| by_rank == own));
                prop_assert_eq!(by_rank.is_some(), draw.rank(url) <= own.last_rank);
                let members = strata.entry(own.name.to_owned()).or_default();
                members.push((draw.rank(url), by_rank.is_some()));
            }
            for stratum in draw.strata() {
                let members = &strata[stratum.name];
                prop_assert_eq!(stratum.of, members.len() as u64);
                prop_assert_eq!(stratum.drawn, stratum.of.min(pages as u64));
                let is_in = members.iter().filter(|(_, is_in)| *is_in).count() as u64;
                prop_assert_eq!(is_in, stratum.drawn);
            }
            let turn = turn.min(urls.len());
            urls.rotate_left(turn);
            prop_assert_eq!(&drawn(&design, &urls).stored, &draw.stored);
            prop_assert_eq!(&SampleDrawResult::read(&draw.to_bytes()).unwrap().stored, &draw.stored);
        }
    }

    #[test]
    fn folders_with_few_pages_are_one_stratum() {
        let design = SampleDesign {
            pages: 3,
            by: StratumRule::Path,
            ..SampleDesign::default()
        };
        let sizes = [9, 3, 2, 1];
        let folders = (0..).zip(sizes);
        let urls =
            folders.flat_map(|(folder, size)| (0..size).map(move |at| (page(0, folder, at), 1)));
        let draw = drawn(&design, &urls.collect::<Vec<_>>());
        let strata: Vec<_> = draw.strata().map(|it| (it.name, it.drawn, it.of)).collect();
        let expected = [("h0.example/*", 3, 6), ("h0.example/f0/", 3, 9)];
        assert_eq!(strata, expected);
    }

    /// Over many random seeds, every page is drawn about equally often, so a page's name does not
    /// influence the draw.
    #[test]
    fn each_page_of_a_stratum_is_as_likely_as_any_other() {
        const SEEDS: u32 = 4_000;
        let urls: Vec<_> = (0..20).map(|number| (page(0, 0, number), 1)).collect();
        let mut times = [0_u32; 20];
        for seed in 0..SEEDS {
            let design = SampleDesign {
                pages: 5,
                seed: seed.to_string(),
                ..SampleDesign::default()
            };
            let draw = drawn(&design, &urls);
            for ((url, _), times) in urls.iter().zip(&mut times) {
                *times += u32::from(draw.stratum_of(url).is_some());
            }
        }
        // Each page is expected to be drawn 1,000 times, with a standard deviation of 27.4. With
        // twenty pages (19 degrees of freedom), chi squared exceeds 43.8 in one of a thousand such
        // tests.
        let off = times.map(|times| (f64::from(times) - 1000.0).powi(2) / 750.0);
        let chi_squared = off.iter().sum::<f64>() * 19.0 / 20.0;
        assert!(chi_squared < 43.8, "{times:?}");
    }

    #[test]
    fn a_damaged_draw_is_none() {
        assert!(SampleDrawResult::read(b"{").is_none());
    }
}
