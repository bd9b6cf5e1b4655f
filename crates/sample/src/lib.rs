//! Draws pages from a frame with known probabilities, and computes estimates for the frame.
//!
//! A frame is a set of URLs that is known before any of the sampled pages is read. URLs are added
//! to a [`SamplingFrame`] one by one. From each [stratum](StratumRule) it draws the URLs with the
//! lowest [`rank`]. This is simple random sampling without replacement. For a given seed, the
//! result doesn't depend on the order of the URLs. A [`SampleDrawResult`] knows whether a URL is in
//! the sample, and a [`SubsetEstimator`] computes estimates for the frame.
//!
//! If no list of URLs is available, a random walk can be used: a [`WalkDesign`] chooses the next
//! link to follow. The probability that the walk visits a page is unknown.
//!
//! The crate does no I/O and reads no clock. All randomness comes from the seed.
//!
//! ```
//! use crawl_sample::{SamplingFrame, InclusionProbability, SubsetEstimator, SampleDesign};
//! use crawl_weburl::canonicalize;
//!
//! let design = SampleDesign { pages: 40, ..SampleDesign::default() };
//! let page = |number: u32| canonicalize(None, &format!("http://a.example/{number}")).unwrap();
//! let mut frame = SamplingFrame::new(&design);
//! for number in 0..1000 {
//!     frame.add(&page(number), 1);
//! }
//! let draw = frame.draw();
//!
//! // What share of the pages has an even number?
//! let mut share = SubsetEstimator::default();
//! for number in 0..1000 {
//!     if let Some(stratum) = draw.stratum_of(&page(number)) {
//!         let part = f64::from(u8::from(number % 2 == 0));
//!         share.add(InclusionProbability::of(&stratum), part, 1.0);
//!     }
//! }
//! let share = share.share().unwrap();
//! assert!(share.low < 0.5 && 0.5 < share.high);
//! ```

mod estimate;
mod random_walk;
mod sample_design;
mod sample_draw;
mod student_t_quantile;

pub use self::estimate::{InclusionProbability, IntervalEstimate, SubsetEstimator};
pub use self::random_walk::{NOT_WALKED, WALK_KEY, WalkDesign};
pub use self::sample_design::{SampleDesign, SampleMethod, StratumRule, rank};
pub use self::sample_draw::{
    DRAW_KEY, NOT_DRAWN, SampleDrawResult, SamplingFrame, StratumDrawCounts,
};
pub use self::student_t_quantile::t_995;
