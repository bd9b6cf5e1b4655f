//! A random walk over links. The random numbers of a step are computed from the seed, the walker
//! and the number of the step, so anyone can recompute the walk.
//!
//! A walk needs no frame, so it also finds pages that no sitemap lists. But the probability of
//! visiting a page is unknown. It depends on all pages that link to the page, of which the walk
//! sees only a few. So a walk gives no [`InclusionProbability`](crate::InclusionProbability).

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// The key under which a crawl's state stores the design of the walk.
pub const WALK_KEY: &str = "walk";

/// The rule in `excluded.jsonl` for a URL that was discovered but that no walker visited.
pub const NOT_WALKED: &str = "no walker came to it";

/// A random walk: the number of walkers, the number of steps, and the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WalkDesign {
    /// The number of independent walkers, which are numbered from 1.
    pub walkers: u32,
    /// The number of steps per walker. The first step is the visit to a seed.
    pub steps: u64,
    /// The probability (from 0 to 1) that a step goes to a seed of the crawl instead of following a
    /// link.
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
    /// Returns which of a page's links a walker follows in a step, as an index into the links
    /// sorted bytewise. Returns `None` if the walker restarts at a seed, either by chance or
    /// because the page has no links.
    #[must_use]
    pub fn link(&self, walker: u32, step: u64, links: usize) -> Option<usize> {
        let [chance, choice] = self.numbers(walker, step);
        let is_restart = unit(chance) < self.restart;
        (!is_restart && links > 0).then(|| place(choice, links))
    }

    /// Returns the seed where a walker starts or restarts in a step, as an index into the seeds
    /// sorted bytewise; 0 without seeds.
    #[must_use]
    pub fn start(&self, walker: u32, step: u64, seeds: usize) -> usize {
        let [_, choice] = self.numbers(walker, step);
        place(choice, seeds)
    }

    /// Returns two random numbers for a step of a walker: the first and the second eight bytes,
    /// big-endian, of the SHA-256 of the seed, the walker's number and the step's number, separated
    /// by line feeds. Anyone who knows the seed can recompute them.
    fn numbers(&self, walker: u32, step: u64) -> [u64; 2] {
        let text = format!("{}\n{walker}\n{step}", self.seed);
        let digest = digest(&SHA256, text.as_bytes());
        let (chance, rest) = digest.as_ref().split_at(8);
        [chance, &rest[..8]].map(|bytes| bytes.try_into().map_or(0, u64::from_be_bytes))
    }
}

/// Converts the upper 53 bits of a number to a fraction from 0 to 1.
fn unit(number: u64) -> f64 {
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

/// Converts a random number to a uniformly distributed index below `places`.
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

    /// Over many steps, every link is followed about equally often, and the number of restarts is
    /// about as expected.
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
        // Each link is expected 3,200 times, and a restart 4,000 times. The standard deviations are
        // 52 and 57.
        let near = |times: u32, expected: u32| times.abs_diff(expected) < 250;
        assert!(times.iter().all(|times| near(*times, 3_200)), "{times:?}");
        assert!(near(restarts, 4_000), "{restarts}");
    }
}
