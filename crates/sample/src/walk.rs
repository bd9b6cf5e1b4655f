//! A random walk over links: the next step of each walker, by the seed alone.
//!
//! A walk needs no frame: it is for what no sitemap lists. The price is that nothing is known of
//! how likely a page was to be visited. That depends on all pages that lead to it, most of which
//! the walk never saw; so a walk gives no [`Probability`](crate::Probability).

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The name under which a crawl's state keeps the design of its walk.
pub const WALK_KEY: &str = "walk";

/// The rule by which `excluded.jsonl` names a URL that was found and that no walker came to.
pub const NOT_WALKED: &str = "no walker came to it";

/// A random walk: how many walkers take how many steps, and by which seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WalkDesign {
    /// Walkers, each by itself; their numbers begin with 1.
    pub walkers: u32,
    /// The steps of each. The first is the start at a seed.
    pub steps: u64,
    /// The probability that a step leads to a seed of the crawl instead of along a link, from 0 to
    /// 1.
    pub restart: f64,
    /// The text from which the walk follows.
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
    /// The place, among so many links in the order of their bytes, of the one that a walker follows
    /// in a step. None where it restarts by chance, or where there is no link.
    #[must_use]
    pub fn link(&self, walker: u32, step: u64, links: usize) -> Option<usize> {
        let [chance, choice] = self.numbers(walker, step);
        let is_restart = unit(chance) < self.restart;
        (!is_restart && links > 0).then(|| place(choice, links))
    }

    /// The place, among so many seeds in the order of their bytes, of the one at which a walker
    /// starts in a step; 0 where there is none.
    #[must_use]
    pub fn start(&self, walker: u32, step: u64, seeds: usize) -> usize {
        let [_, choice] = self.numbers(walker, step);
        place(choice, seeds)
    }

    /// Two random numbers for each step of a walker: the first and the second eight bytes,
    /// big-endian, of the SHA-256 of seed, number of the walker and number of the step, a line feed
    /// between them. Anyone can compute them again.
    fn numbers(&self, walker: u32, step: u64) -> [u64; 2] {
        let text = format!("{}\n{walker}\n{step}", self.seed);
        let digest = Sha256::digest(text.as_bytes());
        let (chance, rest) = digest.split_at(8);
        [chance, &rest[..8]].map(|bytes| bytes.try_into().map_or(0, u64::from_be_bytes))
    }
}

/// The number from 0 to 1 that the upper 53 bits are.
fn unit(number: u64) -> f64 {
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

/// A place among so many, each as likely as any other.
fn place(number: u64, places: usize) -> usize {
    let place = (u128::from(number) * places as u128) >> 64;
    usize::try_from(place).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::WalkDesign;

    #[test]
    fn a_step_is_what_another_program_computes() {
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

    /// Over many steps each link is followed equally often, and as many restart as are to.
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
