//! Simulates a random web and a small crawl of it, in virtual time, and checks every permit
//! independently of the scheduler. The scheduler's tests run small worlds, and `cargo xtask
//! simulate` runs large ones.

mod permit_check;
mod world_plan;
mod world_simulator;

pub(crate) use world_plan::{Plan, START};
pub(crate) use world_simulator::World;

/// Knuth's MMIX generator. Use only the upper bits, because the lower bits are not random enough.
pub(crate) struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let drawn = (self.0 >> 33) % u64::from(n.max(1));
        u32::try_from(drawn).unwrap_or(0)
    }

    fn percent(&mut self, n: u32) -> bool {
        self.below(100) < n
    }

    fn millis(&mut self, n: u32) -> std::time::Duration {
        std::time::Duration::from_millis(u64::from(self.below(n)))
    }
}
