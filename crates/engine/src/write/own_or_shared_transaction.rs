//! A transaction with the same interface whether the frontier belongs to this crawl alone or is
//! shared with other workers.

use std::ops::{Deref, DerefMut};

use crawl_frontier::worker_frontier::{WorkerFrontier, WorkerTransaction};
use crawl_frontier::{CommitResult, Frontier, FrontierError, Transaction};

/// An open transaction. Dereferences to [`Transaction`], which both kinds implement.
pub(super) enum OwnOrSharedTransaction<'a> {
    /// A transaction on this crawl's own frontier.
    Own(Box<dyn Transaction + 'a>),
    /// A transaction on a shared frontier, as one of its workers.
    Worker(Box<dyn WorkerTransaction + 'a>),
}

impl<'a> OwnOrSharedTransaction<'a> {
    /// Begins a transaction on `shared`, or on `own` if the frontier isn't shared.
    pub(super) fn begin(
        own: &'a dyn Frontier,
        shared: Option<&'a dyn WorkerFrontier>,
    ) -> Result<OwnOrSharedTransaction<'a>, FrontierError> {
        Ok(match shared {
            Some(shared) => OwnOrSharedTransaction::Worker(shared.begin_worker()?),
            None => OwnOrSharedTransaction::Own(own.begin()?),
        })
    }

    /// Returns the methods of a worker's transaction. `None` if the frontier isn't shared.
    pub(super) fn worker(&mut self) -> Option<&mut (dyn WorkerTransaction + 'a)> {
        match self {
            OwnOrSharedTransaction::Own(_) => None,
            OwnOrSharedTransaction::Worker(transaction) => Some(&mut **transaction),
        }
    }

    /// Commits the transaction atomically.
    pub(super) fn commit(self) -> Result<CommitResult, FrontierError> {
        match self {
            OwnOrSharedTransaction::Own(transaction) => transaction.commit(),
            OwnOrSharedTransaction::Worker(transaction) => transaction.commit(),
        }
    }
}

impl<'a> Deref for OwnOrSharedTransaction<'a> {
    type Target = dyn Transaction + 'a;

    fn deref(&self) -> &Self::Target {
        match self {
            OwnOrSharedTransaction::Own(transaction) => &**transaction,
            OwnOrSharedTransaction::Worker(transaction) => &**transaction,
        }
    }
}

impl<'a> DerefMut for OwnOrSharedTransaction<'a> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            OwnOrSharedTransaction::Own(transaction) => &mut **transaction,
            OwnOrSharedTransaction::Worker(transaction) => &mut **transaction,
        }
    }
}
