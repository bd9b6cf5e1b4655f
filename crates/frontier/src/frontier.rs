//! The reading half of the frontier contract: look-ups, leases, and the start of transactions.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crawl_weburl::{CanonicalUrl, HostKey, Origin};

use crate::error::FrontierError;
use crate::last_visit::LastVisit;
use crate::lease::Lease;
use crate::transaction::Transaction;
use crate::url_state::{KnownUrlDetails, UnsettledUrl, UrlCounts};
use crate::url_to_admit::UrlToAdmit;

/// The half of a frontier that looks up and leases URLs; [`Transaction`] changes them durably.
///
/// # Requirements for implementations
/// 1. **One state.** A URL is unknown, pending, leased, deferred or settled (fetched, failed,
///    excluded), and never in two of these states. A settled URL stays settled, except as clauses
///    10 and 11 allow.
/// 2. **One transaction.** The changes of a [`Transaction`] take effect together at its commit, or
///    not at all. When `commit` returns, they are as durable as the implementation promises. No
///    reader sees part of a transaction.
/// 3. **Leases are not durable.** After a crash, every leased URL is pending again at its old
///    place, and the attempt is not counted.
/// 4. **Order.** The pending URLs of one origin are ordered by `priority` (lowest first), then by
///    depth, then by admission. Retries go behind all other URLs, in the order of the retries. A
///    released lease returns to its old place. A URL that is admitted while others are leased takes
///    its place by the same rule.
/// 5. **Least depth.** A path is nearer if it has fewer hops off scope, then fewer links, then
///    fewer redirects. If a pending URL is admitted as pending again by a nearer path, it takes the
///    path's depth, redirects and `via`, and moves to the place that follows. Even if the path
///    isn't nearer, the URL takes the lower priority and the higher [`UrlKind`](crate::UrlKind),
///    and becomes a seed if the admission says so. A leased URL does not change.
/// 6. **Deferred is not settled.** A deferred URL that is admitted as pending becomes pending, with
///    the depth, redirects and `via` of that admission. If it is deferred again by a nearer path,
///    it takes that path and its exclusion. If it is admitted as excluded, it stays deferred.
/// 7. **Counts** ([`Frontier::counts`], [`Frontier::pending`]) agree with the committed state, even
///    after a crash. The URLs in all states add up to `known`.
/// 8. **`lease` and `release` are quick** and never wait for a commit in progress.
/// 9. Stored bytes are returned unchanged and are never interpreted.
/// 10. **Visits.** A URL that was settled with a [`LastVisit`] becomes pending again, as if new,
///     through [`Transaction::visit_due`], [`Transaction::visit_misdated`] or
///     [`Transaction::visit_again`]. It has the depth, priority, kind and `via` of its last lease.
///     The stored visit remains until the URL is settled with another. Admitting a settled URL as a
///     link doesn't make it pending.
/// 11. **Lifted exclusions.** A URL that was excluded when it was admitted has no visit. It stays
///     settled until [`Transaction::readmit`] gives it another state.
///
/// [`conformance`](crate::conformance) checks an implementation against these clauses.
///
/// A frontier that several workers share also implements
/// [`WorkerFrontier`](crate::worker_frontier::WorkerFrontier).
pub trait Frontier: Send + Sync {
    /// Leases the first pending URL of `origin`, or returns `None` if there is none.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn lease(&self, origin: &Origin) -> Result<Option<Lease>, FrontierError>;

    /// Takes back an unused lease: its URL is pending again at its old place, and the attempt is
    /// not counted.
    fn release(&self, lease: Lease);

    /// Returns the number of pending URLs of `origin`, without leased ones.
    fn pending(&self, origin: &Origin) -> u64;

    /// Returns the origins with pending URLs and the number of pending URLs of each, sorted by
    /// origin text.
    fn origins(&self) -> Vec<(Origin, u64)>;

    /// Returns the number of URLs in each state.
    fn counts(&self) -> UrlCounts;

    /// Begins a transaction. Only one can be open at a time: this call waits while another
    /// transaction is open, and deadlocks if the calling thread itself holds that transaction.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn begin(&self) -> Result<Box<dyn Transaction + '_>, FrontierError>;

    /// Returns the state of `url`, or `None` if it was never admitted.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn known(&self, url: &CanonicalUrl) -> Result<Option<KnownUrlDetails>, FrontierError>;

    /// Removes links that would change nothing if admitted now. Checks only committed state in
    /// memory and never waits, so some of the remaining links may be known too. Calls `settled` for
    /// each removed link whose URL is settled; the URL stays settled at least until
    /// [`Frontier::reopenings`] increases. Returns the number of the last commit that the check saw
    /// ([`Transaction::number`]), or `None` if nothing was checked.
    fn drop_known(
        &self,
        links: &mut Vec<UrlToAdmit>,
        settled: &mut dyn FnMut(&CanonicalUrl),
    ) -> Option<u64>;

    /// Returns how many commits since opening have given settled URLs another state.
    fn reopenings(&self) -> u64;

    /// Returns the last visit of `url` that [`Transaction::settle_until`] stored.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn visit(&self, url: &CanonicalUrl) -> Result<Option<LastVisit>, FrontierError>;

    /// Returns the page that `url` was found on, whatever the state of `url` is.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn found_on(&self, url: &CanonicalUrl) -> Result<Option<CanonicalUrl>, FrontierError>;

    /// Returns the earliest time later than `after` at which the visit of a settled URL is due, if
    /// there is one.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn next_due(&self, after: u32) -> Result<Option<u32>, FrontierError>;

    /// Returns the bytes last stored for `origin` with [`Transaction::keep_robots`].
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn robots(&self, origin: &Origin) -> Result<Option<Vec<u8>>, FrontierError>;

    /// Returns the wake time and bytes last stored for `host` with [`Transaction::keep_host`].
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn host(&self, host: &HostKey) -> Result<Option<(u64, Vec<u8>)>, FrontierError>;

    /// Returns everything that [`Transaction::keep_host`] stored, sorted by host text.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn hosts(&self) -> Result<Vec<(HostKey, u64, Vec<u8>)>, FrontierError>;

    /// Returns the length of each file, in bytes and by file name, as last committed with
    /// [`Transaction::mark`].
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn marks(&self) -> Result<BTreeMap<String, u64>, FrontierError>;

    /// Returns the bytes last stored under `name` with [`Transaction::keep_meta`].
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, FrontierError>;

    /// Passes every deferred URL to `visit`, in unspecified order, until `visit` breaks.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn each_deferred(
        &self,
        visit: &mut dyn FnMut(UnsettledUrl<'_>) -> ControlFlow<()>,
    ) -> Result<(), FrontierError>;

    /// Passes every pending URL, without leased ones, to `visit` until `visit` breaks. Origins are
    /// sorted by text, and the URLs of each origin come in the order they would be leased.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn each_pending(
        &self,
        visit: &mut dyn FnMut(UnsettledUrl<'_>) -> ControlFlow<()>,
    ) -> Result<(), FrontierError>;
}
