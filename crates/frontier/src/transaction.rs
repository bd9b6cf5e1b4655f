//! The contract of a frontier: changing.

use crawl_weburl::{CanonicalUrl, HostKey, Origin};

use crate::admission::{Admission, Admitted};
use crate::error::FrontierError;
use crate::lease::{Lease, Outcome};
use crate::visit::Visit;

/// Changes that happen together or not at all.
///
/// # What an implementation must keep
/// 1. A transaction sees what it did itself; nobody else does before it is committed.
/// 2. One that is dropped, or whose commit fails, has done nothing: the leases it was
///    given to settle are pending again, as if released.
/// 3. A call that fails has done nothing (a lease it was given is pending again); what
///    the transaction did before stands and may be committed.
/// 4. What is kept under a name replaces what was kept under it before.
///
/// [`Frontier`](crate::Frontier) says what the changes mean.
pub trait Transaction {
    /// Ends a lease. [`Outcome::Retry`] makes its URL pending again with the next
    /// attempt number, [`Outcome::Deferred`] puts it aside, every other outcome settles it.
    ///
    /// # Errors
    /// [`FrontierError::NotLeased`] for a lease that another frontier handed out;
    /// otherwise the store failed.
    fn settle(&mut self, lease: Lease, outcome: Outcome) -> Result<(), FrontierError>;

    /// As [`Transaction::settle`], and keeps what is to be known when the URL is visited
    /// again. With [`Outcome::Retry`] and [`Outcome::Deferred`] the visit is passed over: it
    /// did not take place.
    ///
    /// # Errors
    /// As [`Transaction::settle`].
    fn settle_until(
        &mut self,
        lease: Lease,
        outcome: Outcome,
        visit: Visit,
    ) -> Result<(), FrontierError>;

    /// Makes settled URLs pending again whose visits are due at `until`, seconds since the Unix
    /// epoch: the longest due first, `most` at most, and which of those that are due at one time is
    /// not said. They take their places in the order of due times and text. Says how many. What
    /// this transaction settled itself may come before what was due longer.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn visit_due(&mut self, until: u32, most: usize) -> Result<usize, FrontierError>;

    /// Makes settled URLs pending again, `most` at most, that are due later than `longest` after
    /// `now`, though no visit is due later than `longest` after it was made: the visit was dated
    /// after `now`, by a clock that was ahead, or it was made `longest` before `now` or earlier.
    /// Times are seconds, `now` since the Unix epoch. Says how many.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn visit_misdated(
        &mut self,
        now: u32,
        longest: u32,
        most: usize,
    ) -> Result<usize, FrontierError>;

    /// Makes a settled URL pending again whose last visit was before `before`, due or not. Says
    /// whether it did.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn visit_again(&mut self, url: &CanonicalUrl, before: u32) -> Result<bool, FrontierError>;

    /// Admits a URL that was met.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn admit(&mut self, admission: Admission) -> Result<Admitted, FrontierError>;

    /// Admits URLs in the order given, one answer for each. The same as admitting each
    /// by itself, but a store may look them up together, which costs less.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails; those before the failure are admitted.
    fn admit_all(&mut self, admissions: &[Admission]) -> Result<Vec<Admitted>, FrontierError> {
        let each = admissions.iter();
        each.map(|admission| self.admit(admission.clone()))
            .collect()
    }

    /// Keeps what the scheduler wants to know of a host again: the moment from which it
    /// may be asked, microseconds since the Unix epoch, and opaque bytes.
    fn keep_host(&mut self, host: &HostKey, wake: u64, bytes: &[u8]);

    /// Keeps the copy of an origin's robots.txt, as opaque bytes.
    fn keep_robots(&mut self, origin: &Origin, bytes: &[u8]);

    /// Notes that the first `length` bytes of `file` stand for what is settled with
    /// this transaction and before. They must be on disk already.
    fn mark(&mut self, file: &str, length: u64);

    /// Keeps bytes of the caller's own under a name.
    fn keep_meta(&mut self, name: &str, bytes: &[u8]);

    /// Numbers the commit: a lease tells the number of the last one that it was chosen after. It is
    /// not kept: 0 is that of all commits before the frontier was opened. A commit without a number
    /// has that of the one before.
    fn number(&mut self, number: u64);

    /// Makes it all happen.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails. Nothing has happened then as far as this
    /// process can see; after the failure of a disk, opening the frontier again shows
    /// which side of the commit it is on.
    fn commit(self: Box<Self>) -> Result<CommitResult, FrontierError>;
}

/// The result of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitResult {
    /// Each origin whose queue was touched, with the pending URLs it has now, in the
    /// order of their text.
    pub origins: Vec<(Origin, u64)>,
}
