//! The contract of a frontier: reading and leasing.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crawl_weburl::{CanonicalUrl, HostKey, Origin};

use crate::admission::Admission;
use crate::error::FrontierError;
use crate::lease::Lease;
use crate::transaction::Transaction;
use crate::url_state::{KnownUrl, UrlCounts, WaitingUrl};
use crate::visit::Visit;

/// The reading half of a frontier: which URLs are known, pending, leased and settled.
///
/// # What an implementation must keep
/// 1. **One state.** A URL is unknown, pending, leased, deferred or settled (fetched,
///    failed, excluded), and never two of these. Settled is for ever, but for 10.
/// 2. **One transaction.** What a [`Transaction`] did happens wholly with its commit or
///    not at all, and is durable as far as the implementation promises durability when
///    `commit` returns. No reader sees half of it.
/// 3. **Leases are not durable.** After a death every leased URL is pending again, at
///    its old place, and its attempt is not counted.
/// 4. **Order.** Among the pending URLs of one origin: lower `priority` first, then
///    lower depth, then the order of admission. What was tried and is to be tried again
///    goes behind all others, in the order of those retries. A released lease is back
///    at its old place. URLs admitted after others were leased take their place by the
///    same rule.
/// 5. **Least depth.** A pending URL that is admitted as pending again by a nearer way
///    (fewer links, then fewer redirects) takes that way's depth, redirects and via, and
///    its place; it also takes the lower priority and the greater kind, and becomes a seed
///    when named as one. While it is leased nothing changes.
/// 6. **Put aside is not settled.** A deferred URL that is admitted as pending becomes
///    pending by that way. Deferred again by a nearer way it takes that way and its
///    exclusion. Admitted as excluded it stays deferred.
/// 7. **Counts** ([`Frontier::counts`], [`Frontier::pending`]) agree with the committed
///    state, after a death too, and sum up.
/// 8. **`lease` and `release` are quick** and never wait for a commit that is under way.
/// 9. Bytes given to be kept come back as they were given; they are never read here.
/// 10. **Visits.** A URL that was settled with a [`Visit`] is pending again, as if it were
///     new, when a transaction asks for what is due, or for that URL: at the depth, priority
///     and kind and by the way that its last lease had. What was kept of the visit stays
///     until the URL is settled with another. Being met as a link makes no settled URL
///     pending.
///
/// [`conformance`](crate::conformance) holds an implementation against these clauses.
///
/// A frontier that several workers share keeps [`shared::WorkerFrontier`](crate::shared::WorkerFrontier)
/// as well.
pub trait Frontier: Send + Sync {
    /// Hands out the first pending URL of `origin`, if there is one.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn lease(&self, origin: &Origin) -> Result<Option<Lease>, FrontierError>;

    /// Takes a lease back unused: its URL is pending again at its old place, and the
    /// attempt is not counted.
    fn release(&self, lease: Lease);

    /// The number of URLs of `origin` that are pending (leased ones do not count).
    fn pending(&self, origin: &Origin) -> u64;

    /// The origins with pending URLs and how many each has, in the order of their text.
    fn origins(&self) -> Vec<(Origin, u64)>;

    /// The number of URLs in each state.
    fn counts(&self) -> UrlCounts;

    /// Begins a transaction. There is one writer at a time: this waits while another
    /// transaction is open, and never returns where the same thread holds one.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn begin(&self) -> Result<Box<dyn Transaction + '_>, FrontierError>;

    /// The state of `url`; none where it was never admitted.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn known(&self, url: &CanonicalUrl) -> Result<Option<KnownUrl>, FrontierError>;

    /// Takes out the links that would change nothing if they were admitted now, as far as that
    /// is told at once: by what is committed and in memory. Most links of a page are known; those
    /// that stay in may be known too. `settled` is told of those that are settled: they stay so
    /// until [`Frontier::reopenings`] grows. Returns the number of the last commit that it was told
    /// by ([`Transaction::number`]); none where nothing was told.
    fn leave_out_known(
        &self,
        links: &mut Vec<Admission>,
        settled: &mut dyn FnMut(&CanonicalUrl),
    ) -> Option<u64>;

    /// The number of commits of this life by which settled URLs became pending again.
    fn reopenings(&self) -> u64;

    /// The visit of `url` that was kept last, by [`Transaction::settle_until`].
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn visit(&self, url: &CanonicalUrl) -> Result<Option<Visit>, FrontierError>;

    /// When the next visit of a settled URL is due that is due after `after`, if there is one.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn next_due(&self, after: u32) -> Result<Option<u32>, FrontierError>;

    /// The bytes last kept with [`Transaction::keep_robots`].
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn robots(&self, origin: &Origin) -> Result<Option<Vec<u8>>, FrontierError>;

    /// The wake time and bytes last kept for one host with [`Transaction::keep_host`].
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn host(&self, host: &HostKey) -> Result<Option<(u64, Vec<u8>)>, FrontierError>;

    /// All that [`Transaction::keep_host`] kept, in the order of the hosts' text.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn hosts(&self) -> Result<Vec<(HostKey, u64, Vec<u8>)>, FrontierError>;

    /// The committed lengths in bytes, by file name.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn marks(&self) -> Result<BTreeMap<String, u64>, FrontierError>;

    /// The bytes last kept with [`Transaction::keep_meta`].
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, FrontierError>;

    /// Shows every deferred URL, in no stated order, until `visit` breaks.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn each_deferred(
        &self,
        visit: &mut dyn FnMut(WaitingUrl<'_>) -> ControlFlow<()>,
    ) -> Result<(), FrontierError>;

    /// Shows every pending URL (leased ones are left out), origin by origin in the order
    /// of their text, each in the order it would be leased, until `visit` breaks.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn each_pending(
        &self,
        visit: &mut dyn FnMut(WaitingUrl<'_>) -> ControlFlow<()>,
    ) -> Result<(), FrontierError>;
}
