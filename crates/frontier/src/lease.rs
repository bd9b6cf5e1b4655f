//! A URL that is being worked on, and how that ends.

use crawl_weburl::{CanonicalUrl, Origin};

use crate::admission::{UrlKind, depth_and_hops, distance};
use crate::admit_rule::{QueuePlace, Queued};
use crate::exclusion::Exclusion;

/// A URL handed out to be fetched.
///
/// It ends in [`Transaction::settle`](crate::Transaction::settle) or
/// [`Frontier::release`](crate::Frontier::release). One that is merely dropped stays
/// leased until the frontier is opened again.
#[derive(Debug)]
#[must_use = "a lease that is dropped keeps its URL from being fetched in this run"]
#[non_exhaustive]
pub struct Lease {
    /// The URL.
    pub url: CanonicalUrl,
    /// Its origin.
    pub origin: Origin,
    /// Links followed from a seed to here.
    pub depth: u32,
    /// Links followed since the scope was left; 0 within it.
    pub hops_off: u8,
    /// Redirects followed in a row to here.
    pub redirects: u8,
    /// The page that names it.
    pub via: Option<CanonicalUrl>,
    /// Its place among the URLs of its origin, 0 first.
    pub priority: u8,
    /// The number of this try, from 1.
    pub attempt: u32,
    /// The user named it.
    pub is_seed: bool,
    /// The kind of document that its answer will be read as.
    pub kind: UrlKind,
    /// The number of the last commit that it was chosen after
    /// ([`Transaction::number`](crate::Transaction::number)).
    pub after: u64,
}

impl Lease {
    /// The lease of a queued URL, chosen after the commit of that number.
    pub fn new(origin: Origin, queued: Queued, after: u64) -> Lease {
        let Queued {
            place,
            attempt,
            url,
            via,
        } = queued;
        let (depth, hops_off) = depth_and_hops(place.depth);
        Lease {
            url,
            origin,
            depth,
            hops_off,
            redirects: place.redirects,
            via,
            priority: place.priority,
            attempt,
            is_seed: place.is_seed,
            kind: place.kind,
            after,
        }
    }

    /// The place at which the URL is pending while nothing else is committed, without its number.
    #[must_use]
    pub fn place(&self) -> QueuePlace {
        QueuePlace {
            retried: false,
            priority: self.priority,
            depth: distance(self.depth, self.hops_off),
            redirects: self.redirects,
            is_seed: self.is_seed,
            kind: self.kind,
            seq: 0,
        }
    }

    /// The whole entry of the URL, where it still stands as it did when it was leased. A nearer way
    /// to it that was met meanwhile has another depth, or fewer redirects.
    #[must_use]
    pub fn queued_at(&self, place: QueuePlace) -> Option<Queued> {
        let is_as_it_was = place.depth == distance(self.depth, self.hops_off)
            && place.redirects == self.redirects
            && place.priority == self.priority
            && place.is_seed == self.is_seed
            && place.kind == self.kind;
        is_as_it_was.then(|| Queued {
            place,
            attempt: self.attempt,
            url: self.url.clone(),
            via: self.via.clone(),
        })
    }
}

/// The end of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An answer came and was kept.
    Fetched {
        /// The HTTP status.
        status: u16,
    },
    /// No answer could be had, and none will be asked for any more.
    Failed {
        /// The reason, in a few words. Cut to 1,024 bytes.
        why: String,
    },
    /// It was not asked for, or its answer may not be used.
    Excluded(Exclusion),
    /// It was put aside: not asked for, but met again another way it is pending.
    Deferred(Exclusion),
    /// To be tried again, behind the other URLs of its origin.
    Retry,
}
