//! The writing half of the frontier contract.

use crawl_weburl::{CanonicalUrl, HostKey, Origin};

use crate::error::FrontierError;
use crate::last_visit::LastVisit;
use crate::lease::{Lease, LeaseOutcome};
use crate::url_to_admit::{AdmissionResult, UrlToAdmit};

/// A set of changes that takes effect as a whole or not at all.
///
/// # Requirements for implementations
/// 1. A transaction sees its own changes. Nothing else sees them before the commit.
/// 2. A transaction that is dropped, or whose commit fails, has no effect: the leases passed to it
///    are pending again, as if released.
/// 3. A call that fails has no effect (a lease passed to it is pending again). Earlier changes of
///    the transaction remain and may be committed.
/// 4. A value stored under a name replaces the previous value.
///
/// [`Frontier`](crate::Frontier) defines what the changes mean.
pub trait Transaction {
    /// Ends a lease. [`LeaseOutcome::Retry`] makes the URL pending again with the next attempt
    /// number, [`LeaseOutcome::Deferred`] defers it, and every other outcome settles it.
    ///
    /// # Errors
    /// [`FrontierError::NotLeased`] if another frontier handed out the lease; any other error means
    /// that the store failed.
    fn settle(&mut self, lease: Lease, outcome: LeaseOutcome) -> Result<(), FrontierError>;

    /// Like [`Transaction::settle`], and also stores `visit`, which the URL's next visit uses. With
    /// [`LeaseOutcome::Retry`] and [`LeaseOutcome::Deferred`] the visit is ignored, because the URL
    /// was not visited.
    ///
    /// # Errors
    /// Same as [`Transaction::settle`].
    fn settle_until(
        &mut self,
        lease: Lease,
        outcome: LeaseOutcome,
        visit: LastVisit,
    ) -> Result<(), FrontierError>;

    /// Makes settled URLs pending again whose next visit is due at `until` (seconds since the Unix
    /// epoch), and returns their number. Takes at most `most` URLs, the longest overdue first.
    /// Visits stored in this transaction may come before others that are overdue for longer. The
    /// URLs enter their queues in the order of due time, then text. If `most` cuts between equal
    /// due times, the choice is unspecified.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn visit_due(&mut self, until: u32, most: usize) -> Result<usize, FrontierError>;

    /// Makes settled URLs pending again whose due time can't be right, for example because a clock
    /// was wrong. Takes at most `most` URLs, and returns their number. All times are in seconds,
    /// and `now` counts from the Unix epoch.
    ///
    /// A correct due time is at most `longest` after the visit. For example, if `now` is 100 and
    /// `longest` is 10, a due time after 110 is wrong if the visit is dated after 100 (in the
    /// future), or at 90 or earlier (the next visit was due by 100).
    ///
    /// If `longest` is `None`, a due time is wrong only if both the due time and the date of the
    /// visit are after `now`. To find such visits, the store reads all visits that aren't due.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn visit_misdated(
        &mut self,
        now: u32,
        longest: Option<u32>,
        most: usize,
    ) -> Result<usize, FrontierError>;

    /// Makes a settled URL pending again if its last visit was before `before`, whether or not its
    /// next visit is due. Returns whether the URL became pending.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn visit_again(&mut self, url: &CanonicalUrl, before: u32) -> Result<bool, FrontierError>;

    /// Gives a URL that was excluded at its admission the state, path and place of `admission`, as
    /// if the URL were new. Returns whether the URL changed. Never changes a URL in another state.
    /// Also never changes an excluded URL with a stored visit: [`Transaction::visit_due`] makes
    /// that URL pending.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn readmit(&mut self, admission: UrlToAdmit) -> Result<bool, FrontierError>;

    /// Admits a URL: adds it to the frontier, or updates it if it is known.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn admit(&mut self, admission: UrlToAdmit) -> Result<AdmissionResult, FrontierError>;

    /// Admits URLs in the given order, and returns one result for each. Equivalent to admitting
    /// them one by one, but a store may look the URLs up together, which is cheaper.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails. URLs before the failure are admitted.
    fn admit_all(
        &mut self,
        admissions: &[UrlToAdmit],
    ) -> Result<Vec<AdmissionResult>, FrontierError> {
        let each = admissions.iter();
        each.map(|admission| self.admit(admission.clone()))
            .collect()
    }

    /// Stores the state of a host for the scheduler of the next run: `wake`, the time from which
    /// requests to it are allowed (in microseconds since the Unix epoch), and opaque bytes.
    fn keep_host(&mut self, host: &HostKey, wake: u64, bytes: &[u8]);

    /// Stores the copy of an origin's robots.txt, as opaque bytes.
    fn keep_robots(&mut self, origin: &Origin, bytes: &[u8]);

    /// Records that the first `length` bytes of `file` contain the rows of everything settled in
    /// this transaction and before. These bytes must already be on disk.
    fn mark(&mut self, file: &str, length: u64);

    /// Stores bytes of the caller under `name`.
    fn keep_meta(&mut self, name: &str, bytes: &[u8]);

    /// Sets the number of the commit. A lease carries the number of the last commit before the URL
    /// was leased ([`Lease::after`]). A commit without a number gets that of the previous commit.
    /// Numbers are not stored: commits before the frontier was opened count as number 0.
    fn number(&mut self, number: u64);

    /// Commits the transaction atomically.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails. For this process, the commit then has no effect. After
    /// a disk failure, reopening the frontier shows whether the commit reached the disk.
    fn commit(self: Box<Self>) -> Result<CommitResult, FrontierError>;
}

/// The result of a commit: the new numbers of pending URLs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitResult {
    /// Each origin whose queue changed, with the number of its pending URLs, sorted by origin text.
    pub origins: Vec<(Origin, u64)>,
}
