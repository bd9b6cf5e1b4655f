//! Tests of the contract, for any [`Frontier`].
//!
//! The test of an implementation provides a [`RestartableFrontier`] and calls [`check`], which
//! panics with the names of the broken clauses. [`FaultyDisk`] is for implementations that write
//! files.
//!
//! ```
//! use crawl_frontier::conformance::{MemoryFrontierHarness, check};
//!
//! check(&|| Box::new(MemoryFrontierHarness::default()));
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a clause that is broken says so by a panic"
)]

mod contract_clauses;
mod faulty_disk;
pub mod helpers;

use std::panic::{AssertUnwindSafe, catch_unwind};

use self::contract_clauses::CLAUSES;
pub use self::faulty_disk::FaultyDisk;
use crate::error::FrontierError;
use crate::frontier::Frontier;
use crate::memory::MemoryFrontier;
use crate::transaction::Transaction;
use crate::url_to_admit::UrlToAdmit;

/// A frontier that can crash and restart.
pub trait RestartableFrontier {
    /// Returns the current frontier, which each restart replaces.
    fn frontier(&self) -> &dyn Frontier;

    /// Simulates a crash and a restart of the process. All leases end. No transaction may be open.
    fn die(&mut self);

    /// Begins a transaction that will admit some of the URLs in `expected`. A shared frontier may
    /// prefetch the records of these URLs.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn begin_expecting(
        &self,
        expected: &mut dyn Iterator<Item = &UrlToAdmit>,
    ) -> Result<Box<dyn Transaction + '_>, FrontierError> {
        let _ = expected;
        self.frontier().begin()
    }
}

/// Checks each clause of the contract with a new frontier.
///
/// # Panics
/// If a clause is broken. The message has the names of all broken clauses.
pub fn check(make: &dyn Fn() -> Box<dyn RestartableFrontier>) {
    let (_, broken) = broken_clauses(make);
    assert!(broken.is_empty(), "broken: {broken:?}");
}

/// Checks each clause of the contract with a new frontier. Returns the number of clauses and the
/// names of the broken ones.
#[must_use]
pub fn broken_clauses(
    make: &dyn Fn() -> Box<dyn RestartableFrontier>,
) -> (usize, Vec<&'static str>) {
    let is_broken = |clause: fn(&mut dyn RestartableFrontier)| {
        let clause = AssertUnwindSafe(|| clause(&mut *make()));
        catch_unwind(clause).is_err()
    };
    let broken = CLAUSES.iter().filter(|(_, clause)| is_broken(*clause));
    (CLAUSES.len(), broken.map(|(name, _)| *name).collect())
}

/// A [`MemoryFrontier`] for [`check`]. Tests compare other frontiers with it.
#[derive(Debug, Default)]
pub struct MemoryFrontierHarness(MemoryFrontier);

impl RestartableFrontier for MemoryFrontierHarness {
    fn frontier(&self) -> &dyn Frontier {
        &self.0
    }

    fn die(&mut self) {
        self.0 = std::mem::take(&mut self.0).restarted();
    }
}
