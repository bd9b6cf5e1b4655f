//! A random walk over links: computes the next step of each walker from the seed alone.
//!
//! A walk needs no frame, so it works for pages that no sitemap lists. In return, the probability
//! of visiting a page is unknown: it depends on all pages that link to it, most of which the walk
//! never sees. So a walk gives no [`Probability`](crate::Probability).

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The key of the walk's design in a crawl's state.
pub const WALK_KEY: &str = "walk";

/// The rule in `excluded.jsonl` for a discovered URL that no walker visited.
pub const NOT_WALKED: &str = "no walker came to it";

/// A random walk: the numbers of walkers and steps, and the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WalkDesign {
    /// Number of independent walkers, numbered from 1.
    pub walkers: u32,
    /// Steps per walker. The first is the start at a seed.
    pub steps: u64,
    /// The probability, from 0 to 1, that a step restarts at a seed of the crawl instead of
    /// following a link.
    pub restart: f64,
    /// The random seed of the walk.
    pub seed: String,
}

impl Default for WalkDesign {
    fn default() -> WalkDesign {
        WalkDesign {
            walkers: 4,
            steps: 250,
            restart: 0.15,
            seed: "1".to_owned(),
        }
    }
}

impl WalkDesign {
    /// Returns the index, among this many links in byte order, of the link that a walker follows in
    /// a step. `None` if it restarts by chance, or if there are no links.
    #[must_use]
    pub fn link(&self, walker: u32, step: u64, links: usize) -> Option<usize> {
        let [chance, choice] = self.numbers(walker, step);
        let is_restart = unit(chance) < self.restart;
        (!is_restart && links > 0).then(|| place(choice, links))
    }

    /// Returns the index, among this many seeds in byte order, of the seed where a walker starts in
    /// a step; 0 if there are none.
    #[must_use]
    pub fn start(&self, walker: u32, step: u64, seeds: usize) -> usize {
        let [_, choice] = self.numbers(walker, step);
        place(choice, seeds)
    }

    /// Returns two random numbers for a step of a walker: the first and second eight bytes,
    /// big-endian, of the SHA-256 of seed, walker number and step number, separated by line feeds.
    /// Anyone can recompute them.
    fn numbers(&self, walker: u32, step: u64) -> [u64; 2] {
        let text = format!("{}\n{walker}\n{step}", self.seed);
        let digest = Sha256::digest(text.as_bytes());
        let (chance, rest) = digest.split_at(8);
        [chance, &rest[..8]].map(|bytes| bytes.try_into().map_or(0, u64::from_be_bytes))
    }
}

/// Converts the upper 53 bits to a number from 0 to 1.
fn unit(number: u64) -> f64 {
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns an index below `places`, uniformly distributed.
fn place(number: u64, places: usize) -> usize {
    let place = (u128::from(number) * places as u128) >> 64;
    usize::try_from(place).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::WalkDesign;

    #[test]
    fn a_step_can_be_recomputed() {
        // python3 -c "import hashlib; d = hashlib.sha256(b'1\n2\n7').digest();
        // print(int.from_bytes(d[:8], 'big') / 2**64, int.from_bytes(d[8:16], 'big') * 10 >> 64)"
        let design = WalkDesign::default();
        assert_eq!(design.start(2, 7, 10), 1);
        let with = |restart: f64| WalkDesign {
            restart,
            ..WalkDesign::default()
        };
        assert_eq!(with(0.752_807 - 1e-6).link(2, 7, 10), Some(1));
        assert_eq!(with(0.752_808).link(2, 7, 10), None);
        assert_eq!(with(0.0).link(2, 7, 0), None);
        assert_eq!(with(1.0).link(2, 7, 10), None);
        assert_eq!(design.start(2, 7, 0), 0);
    }

    /// Over many steps, each link is followed equally often, and the expected number of steps
    /// restart.
    #[test]
    fn each_link_is_as_likely_as_any_other() {
        const STEPS: u64 = 20_000;
        let design = WalkDesign {
            restart: 0.2,
            ..WalkDesign::default()
        };
        let mut times = [0_u32; 5];
        let mut restarts = 0_u32;
        for step in 0..STEPS {
            match design.link(3, step, times.len()) {
                Some(link) => times[link] += 1,
                None => restarts += 1,
            }
        }
        // Expected 3,200 of each and 4,000, with standard deviations of 52 and 57.
        let near = |times: u32, expected: u32| times.abs_diff(expected) < 250;
        assert!(times.iter().all(|times| near(*times, 3_200)), "{times:?}");
        assert!(near(restarts, 4_000), "{restarts}");
    }
}
