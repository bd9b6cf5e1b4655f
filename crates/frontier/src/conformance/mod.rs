//! The contract as a test: any [`Frontier`] can be held against it.
//!
//! An implementation's test makes a [`Bench`] and calls [`check`], which panics with the
//! names of the clauses that are broken. [`FaultyDisk`] is for those that write files.
//!
//! ```
//! use crawl_frontier::conformance::{InMemory, check};
//!
//! check(&|| Box::new(InMemory::default()));
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a clause that is broken says so by a panic"
)]

mod clauses;
mod faulty_disk;
pub mod helpers;

use std::panic::{AssertUnwindSafe, catch_unwind};

use self::clauses::CLAUSES;
pub use self::faulty_disk::FaultyDisk;
use crate::admission::Admission;
use crate::error::FrontierError;
use crate::frontier::Frontier;
use crate::memory::MemoryFrontier;
use crate::transaction::Transaction;

/// A frontier that survives its own death.
pub trait Bench {
    /// The frontier of this life.
    fn frontier(&self) -> &dyn Frontier;

    /// The process dies, whatever is leased, and starts again. No transaction is open.
    fn die(&mut self);

    /// Begins a transaction that will admit some of `expected`, which a frontier that workers share
    /// may prefetch.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn begin_expecting(
        &self,
        expected: &mut dyn Iterator<Item = &Admission>,
    ) -> Result<Box<dyn Transaction + '_>, FrontierError> {
        let _ = expected;
        self.frontier().begin()
    }
}

/// Holds each clause against a frontier of its own.
///
/// # Panics
/// If clauses are broken: names them.
pub fn check(make: &dyn Fn() -> Box<dyn Bench>) {
    let (_, broken) = broken_clauses(make);
    assert!(broken.is_empty(), "broken: {broken:?}");
}

/// Holds each clause against a frontier of its own. Gives the number of clauses, and the names of
/// those that are broken.
#[must_use]
pub fn broken_clauses(make: &dyn Fn() -> Box<dyn Bench>) -> (usize, Vec<&'static str>) {
    let is_broken = |clause: fn(&mut dyn Bench)| {
        let clause = AssertUnwindSafe(|| clause(&mut *make()));
        catch_unwind(clause).is_err()
    };
    let broken = CLAUSES.iter().filter(|(_, clause)| is_broken(*clause));
    (CLAUSES.len(), broken.map(|(name, _)| *name).collect())
}

/// The frontier in memory, on the bench: the model that others are held against.
#[derive(Debug, Default)]
pub struct InMemory(MemoryFrontier);

impl Bench for InMemory {
    fn frontier(&self) -> &dyn Frontier {
        &self.0
    }

    fn die(&mut self) {
        self.0 = std::mem::take(&mut self.0).restarted();
    }
}
