//! The contract of a frontier: reading and leasing.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crawl_weburl::{CanonicalUrl, HostKey, Origin};

use crate::error::FrontierError;
use crate::known::{Counts, Known, Waiting};
use crate::lease::Lease;
use crate::transaction::Transaction;

/// What is known, waiting, leased and settled.
///
/// # What an implementation must keep
/// 1. **One state.** A URL is unknown, pending, leased, deferred or settled (fetched,
///    failed, excluded), and never two of these. Settled is for ever.
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
///    its place; it also takes the lower priority, becomes a seed when named as one, and
///    a sitemap when named as one. While it is leased nothing changes.
/// 6. **Put aside is not settled.** A deferred URL that is admitted as pending becomes
///    pending by that way. Deferred again by a nearer way it takes that way and its
///    exclusion. Admitted as excluded it stays deferred.
/// 7. **Counts** ([`Frontier::counts`], [`Frontier::pending`]) agree with the committed
///    state, after a death too, and sum up.
/// 8. **`lease` and `release` are quick** and never wait for a commit that is under way.
/// 9. Bytes given to be kept come back as they were given; they are never read here.
///
/// An implementation that several processes share keeps all of this for each of them.
/// There a lease has an owner (unique to one life of one process) and an end; whoever
/// holds it past that end must find its `settle` refused, by a fence that grows each
/// time the URL's origin changes hands. Origins are handed over whole, so that each has
/// one owner who can keep its gap. A URL may then be fetched more than once, but is
/// settled once.
pub trait Frontier: Send + Sync {
    /// Hands out the first pending URL of `origin`, if there is one.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn lease(&self, origin: &Origin) -> Result<Option<Lease>, FrontierError>;

    /// Takes a lease back unused: its URL is pending again at its old place, and the
    /// attempt is not counted.
    fn release(&self, lease: Lease);

    /// How many URLs of `origin` are pending (leased ones do not count).
    fn pending(&self, origin: &Origin) -> u64;

    /// The origins with pending URLs and how many each has, in the order of their text.
    fn origins(&self) -> Vec<(Origin, u64)>;

    /// How many URLs are in which state.
    fn counts(&self) -> Counts;

    /// Begins a transaction. There is one writer at a time: this waits while another
    /// transaction is open, and never returns where the same thread holds one.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn begin(&self) -> Result<Box<dyn Transaction + '_>, FrontierError>;

    /// What is known of `url`; none where it was never admitted.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn known(&self, url: &CanonicalUrl) -> Result<Option<Known>, FrontierError>;

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

    /// The committed lengths in octets, by file name.
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
        visit: &mut dyn FnMut(Waiting<'_>) -> ControlFlow<()>,
    ) -> Result<(), FrontierError>;

    /// Shows every pending URL (leased ones are left out), origin by origin in the order
    /// of their text, each in the order it would be leased, until `visit` breaks.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn each_pending(
        &self,
        visit: &mut dyn FnMut(Waiting<'_>) -> ControlFlow<()>,
    ) -> Result<(), FrontierError>;
}
