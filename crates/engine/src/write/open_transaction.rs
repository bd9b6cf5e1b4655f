//! A transaction with the same interface whether the frontier belongs to this crawl alone or is
//! shared with other workers.

use std::ops::{Deref, DerefMut};

use crawl_frontier::worker_frontier::{WorkerFrontier, WorkerTransaction};
use crawl_frontier::{CommitResult, Frontier, FrontierError, Transaction};

/// An open transaction. Dereferences to [`Transaction`], which both kinds implement.
pub(super) enum OpenTransaction<'a> {
    /// A transaction on this crawl's own frontier.
    Own(Box<dyn Transaction + 'a>),
    /// A transaction on a shared frontier, as one of its workers.
    Worker(Box<dyn WorkerTransaction + 'a>),
}

impl<'a> OpenTransaction<'a> {
    /// Begins a transaction on `shared`, or on `own` if the frontier isn't shared.
    pub(super) fn begin(
        own: &'a dyn Frontier,
        shared: Option<&'a dyn WorkerFrontier>,
    ) -> Result<OpenTransaction<'a>, FrontierError> {
        Ok(match shared {
            Some(shared) => OpenTransaction::Worker(shared.begin_worker()?),
            None => OpenTransaction::Own(own.begin()?),
        })
    }

    /// Returns the methods of a worker's transaction. `None` if the frontier isn't shared.
    pub(super) fn worker(&mut self) -> Option<&mut (dyn WorkerTransaction + 'a)> {
        match self {
            OpenTransaction::Own(_) => None,
            OpenTransaction::Worker(transaction) => Some(&mut **transaction),
        }
    }

    /// Commits the transaction atomically.
    pub(super) fn commit(self) -> Result<CommitResult, FrontierError> {
        match self {
            OpenTransaction::Own(transaction) => transaction.commit(),
            OpenTransaction::Worker(transaction) => transaction.commit(),
        }
    }
}

impl<'a> Deref for OpenTransaction<'a> {
    type Target = dyn Transaction + 'a;

    fn deref(&self) -> &Self::Target {
        match self {
            OpenTransaction::Own(transaction) => &**transaction,
            OpenTransaction::Worker(transaction) => &**transaction,
        }
    }
}

impl<'a> DerefMut for OpenTransaction<'a> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            OpenTransaction::Own(transaction) => &mut **transaction,
            OpenTransaction::Worker(transaction) => &mut **transaction,
        }
    }
}
