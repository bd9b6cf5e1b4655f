//! The states of a crawl's URLs: which are pending, leased, settled or deferred.
//!
//! A URL enters with [`Transaction::admit`], is handed out by [`Frontier::lease`], and ends with
//! [`Transaction::settle`]. A URL is in one state at a time. Only this crate changes the state. The
//! caller records each change as a row in a file, so the transaction that changes the state also
//! stores how many bytes of these files are valid ([`Transaction::mark`]). Leases are held in
//! memory only: after a crash, leased URLs are pending again. The crate never reads the time of
//! day, never contacts a host, and knows nothing about politeness. It stores the scheduler's state
//! and the robots.txt copies for the next run, but only as opaque bytes.
//!
//! [`Frontier`] and [`Transaction`] are the contract, and [`conformance`] tests it.
//! [`FjallFrontier`] implements the contract on disk. [`MemoryFrontier`] implements it in memory,
//! for simulations and as the model in tests. [`worker_frontier`] extends the contract for a
//! frontier that several workers of one crawl share, and [`MemoryCrawl`] implements it in memory.
//!
//! ```
//! use crawl_frontier::{UrlToAdmit, AdmissionResult, Frontier, MemoryFrontier, LeaseOutcome};
//! use crawl_weburl::canonicalize;
//!
//! # fn main() -> Result<(), crawl_frontier::FrontierError> {
//! let frontier = MemoryFrontier::new();
//! let seed = canonicalize(None, "http://example.org/").unwrap();
//!
//! let mut transaction = frontier.begin()?;
//! assert_eq!(transaction.admit(UrlToAdmit::seed(seed.clone()))?, AdmissionResult::New);
//! assert_eq!(transaction.admit(UrlToAdmit::seed(seed.clone()))?, AdmissionResult::Known);
//! transaction.commit()?;
//!
//! let lease = frontier.lease(&seed.origin())?.unwrap();
//! let mut transaction = frontier.begin()?;
//! let link = canonicalize(Some(&lease.url), "/about").unwrap();
//! transaction.admit(UrlToAdmit::link(link, lease.depth + 1, seed.clone()))?;
//! transaction.settle(lease, LeaseOutcome::Fetched { status: 200 })?;
//! let committed = transaction.commit()?;
//!
//! assert_eq!(committed.origins, [(seed.origin(), 1)]);
//! assert_eq!(frontier.counts().fetched, 1);
//! # Ok(())
//! # }
//! ```

mod admit_rule;
pub mod conformance;
mod crawl_transfer_item;
mod error;
mod file_lock;
mod fingerprint;
mod frontier;
mod last_visit;
mod lease;
mod lease_table;
mod memory;
mod not_fetched_reason;
mod queue_head_cache;
mod sieve;
mod store;
mod transaction;
mod url_record;
mod url_state;
mod url_to_admit;
pub mod worker_frontier;

/// The parts that implementations of [`Frontier`] share: the admission rule, the queue order, and
/// the lease table.
pub mod parts {
    pub use crate::admit_rule::{
        AdmitAction, CurrentState, PendingUrlFields, QueueRank, QueuedUrl, capped,
        capped_exclusion, decide_admission,
    };
    pub use crate::crawl_transfer_item::CrawlTransferItem;
    pub use crate::last_visit::StoredVisit;
    pub use crate::lease_table::{
        CommittedUrlCounts, LeaseChanges, LeaseTable, OriginQueueChanges, OriginWithQueueId,
        QueueEntryChange, QueueReadResult, QueueReader,
    };
    pub use crate::url_record::{UrlRecord, UrlRecordState};
    pub use crate::url_to_admit::{depth_and_hops, distance};
}

pub use error::{DiskOpenError, FrontierError};
pub use file_lock::FileLock;
pub use fingerprint::{Fingerprint, FingerprintKey};
pub use frontier::Frontier;
pub use last_visit::LastVisit;
pub use lease::{Lease, LeaseOutcome};
pub use memory::{MemoryCrawl, MemoryFrontier, MemoryWorker};
pub use not_fetched_reason::{NotFetchedReason, Reason};
pub use sieve::{DiskFile, RunDisk, SystemDisk};
#[cfg(any(test, fuzzing))]
pub use store::fuzz_checks;
pub use store::{
    Durability, ErasedUrlCounts, FjallFrontier, FjallFrontierOptions, OfflineFrontier,
    RemovalFilter, is_write_once,
};
pub use transaction::{CommitResult, Transaction};
pub use url_state::{KnownState, KnownUrlDetails, UnsettledUrl, UrlCounts};
pub use url_to_admit::{AdmissionResult, RequestedState, UrlKind, UrlToAdmit};
