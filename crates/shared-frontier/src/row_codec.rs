//! Keys and rows: how URLs and their records are stored in the tables.

use std::error::Error;

use crawl_frontier::parts::{
    CommittedUrlCounts, PendingUrlFields, QueueRank, QueuedUrl, StoredVisit, UrlRecord,
    UrlRecordState, depth_and_hops,
};
use crawl_frontier::{
    Fingerprint, FingerprintKey, LastVisit, NotFetchedReason, Reason, RequestedState, UrlKind,
    UrlToAdmit,
};
use crawl_weburl::{CanonicalUrl, Origin, Site, canonicalize};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

/// The lowest bit of the round in the column `place`. The column packs a URL's rank into one
/// number: the distance in the lowest bits, the priority above it, and the round at the top.
const ROUND_SHIFT: u32 = 40;
/// The lowest bit of the priority in the column `place`.
const PRIORITY_SHIFT: u32 = 32;

const SEED: i16 = 1;
const RETRIED: i16 = 2;
const PAGE: i16 = 4;
const SITEMAP: i16 = 8;

/// The values of the column `state`.
pub(crate) const PENDING: i16 = 0;
pub(crate) const DEFERRED: i16 = 1;
const FETCHED: i16 = 2;
const FAILED: i16 = 3;
const EXCLUDED: i16 = 4;

/// Computes the keys of rows. All hosts and origins of a site are in the same bucket, so that a
/// single worker enforces the limits of the site and its hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowKeyBuilder {
    pub(crate) key: FingerprintKey,
    pub(crate) buckets: i32,
}

/// The key of a URL's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct UrlKey {
    pub(crate) b: i32,
    pub(crate) origin: i64,
    pub(crate) fingerprint: i64,
}

/// The key of a link from another worker.
#[derive(Clone, Debug)]
pub(crate) struct LinkFromWorkerKey {
    pub(crate) b: i32,
    /// The id of the process that sent the link.
    pub(crate) sender: String,
    /// The link's sequence number among the links of that sender.
    pub(crate) number: i64,
}

/// Links stored in one server group for hosts that another group serves.
pub(crate) struct LinksToOtherServerGroups {
    /// The number of the server group that serves the hosts.
    pub(crate) home: i32,
    pub(crate) json: String,
    pub(crate) b: Vec<i32>,
    pub(crate) sender: Vec<String>,
    pub(crate) number: Vec<i64>,
}

/// A bucket with URLs to be reopened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketReopenProgress {
    /// The number of the lost worker that settled the URLs.
    pub(crate) worker: i32,
    /// The key of the last URL that was checked. URLs are checked in key order.
    pub(crate) last: UrlKey,
    /// Whether no URLs are left after `last`.
    pub(crate) is_over: bool,
}

impl RowKeyBuilder {
    pub(crate) fn url(&self, url: &CanonicalUrl, fingerprint: Fingerprint) -> UrlKey {
        UrlKey {
            b: self.bucket(&url.site()),
            origin: self.number(url.origin_text()),
            // Take the lowest bits of the fingerprint, because they depend on the whole URL.
            fingerprint: fingerprint.as_u128() as i64,
        }
    }

    /// Returns the bucket of a site, from the highest bits of a keyed hash of its name.
    pub(crate) fn bucket(&self, site: &Site) -> i32 {
        let hash = self.key.hash(site.as_str()) >> 96;
        ((hash * self.buckets.max(1) as u128) >> 32) as i32
    }

    /// Returns the number that stands for an origin or a host in the tables: a keyed hash of its
    /// text.
    pub(crate) fn number(&self, text: &str) -> i64 {
        (self.key.hash(text) >> 64) as i64
    }
}

/// Returns a rank as the columns `place` and `seq`. Rows are in the same order by these columns as
/// by the rank.
pub(crate) fn place_of(rank: QueueRank) -> (i64, i64) {
    let place = i64::from(rank.round) << ROUND_SHIFT
        | i64::from(rank.priority) << PRIORITY_SHIFT
        | i64::from(rank.depth);
    (place, rank.seq as i64)
}

pub(crate) fn flags_of(place: &PendingUrlFields) -> i16 {
    let kind = match place.kind {
        UrlKind::Resource => 0,
        UrlKind::Page => PAGE,
        UrlKind::Sitemap => SITEMAP,
    };
    let seed = if place.is_seed { SEED } else { 0 };
    let retried = if place.retried { RETRIED } else { 0 };
    seed | retried | kind
}

/// Returns the kind of a URL from its flags. `None` if no URL has such flags.
fn kind_of(flags: i16) -> Option<UrlKind> {
    match flags & !(SEED | RETRIED) {
        0 => Some(UrlKind::Resource),
        PAGE => Some(UrlKind::Page),
        SITEMAP => Some(UrlKind::Sitemap),
        _ => None,
    }
}

/// Returns whether the number `state` stands for a settled state.
pub(crate) fn is_settled(state: i16) -> bool {
    !matches!(state, PENDING | DEFERRED)
}

/// The values of the columns that depend on a URL's state.
pub(crate) struct UrlStateColumns<'a> {
    pub(crate) state: i16,
    pub(crate) attempt: i32,
    pub(crate) code: Option<i16>,
    pub(crate) line: Option<i32>,
    pub(crate) note: Option<&'a str>,
}

pub(crate) fn state_columns(state: &UrlRecordState) -> UrlStateColumns<'_> {
    let of = |state| UrlStateColumns {
        state,
        attempt: 0,
        code: None,
        line: None,
        note: None,
    };
    match state {
        UrlRecordState::Pending { attempt } => UrlStateColumns {
            attempt: *attempt as i32,
            ..of(PENDING)
        },
        UrlRecordState::Fetched { status } => UrlStateColumns {
            code: Some(*status as i16),
            ..of(FETCHED)
        },
        UrlRecordState::Failed { why } => UrlStateColumns {
            note: Some(why),
            ..of(FAILED)
        },
        UrlRecordState::Deferred(why) => of(DEFERRED).because(why),
        UrlRecordState::Excluded(why) => of(EXCLUDED).because(why),
    }
}

impl<'a> UrlStateColumns<'a> {
    fn because(self, why: &'a NotFetchedReason) -> UrlStateColumns<'a> {
        UrlStateColumns {
            code: Some(why.reason.code().into()),
            line: why.line.map(|line| line as i32),
            note: why.rule.as_deref(),
            ..self
        }
    }
}

/// Extends a database row: returns the value of a column by position, or `None` if it is missing or
/// of another type.
pub(crate) trait RowColumnAccess {
    /// Returns the value of a column. `None` if the row lacks the column or its type differs.
    fn column<'r, T: FromSql<'r>>(&'r self, at: usize) -> Option<T>;
}

impl RowColumnAccess for Row {
    fn column<'r, T: FromSql<'r>>(&'r self, at: usize) -> Option<T> {
        self.try_get(at).ok()
    }
}

/// An array whose claimed number of elements is possible for its size in bytes. The check is needed
/// because the library allocates memory for the claimed number before it reads any element.
struct CheckedArray<T>(Vec<T>);

impl<'r, T: FromSql<'r>> FromSql<'r> for CheckedArray<T> {
    fn from_sql(
        kind: &Type,
        raw: &'r [u8],
    ) -> Result<CheckedArray<T>, Box<dyn Error + Sync + Send>> {
        // The number of elements follows three other numbers, and is missing in an empty array.
        // Each element begins with its length, in four bytes.
        let claimed = raw.get(12..).and_then(<[u8]>::first_chunk);
        let claimed = claimed.map_or(0, |bytes| i32::from_be_bytes(*bytes));
        if usize::try_from(claimed)? > raw.len() / 4 {
            return Err("the array is shorter than declared".into());
        }
        Vec::from_sql(kind, raw).map(CheckedArray)
    }

    fn accepts(kind: &Type) -> bool {
        Vec::<T>::accepts(kind)
    }
}

/// Reads the columns of a row in order. Each method returns `None` if a value is not one that this
/// program writes.
pub(crate) struct ColumnReader<'r, R = Row> {
    row: &'r R,
    at: usize,
}

impl<'r, R: RowColumnAccess> ColumnReader<'r, R> {
    pub(crate) fn new(row: &'r R) -> ColumnReader<'r, R> {
        ColumnReader { row, at: 0 }
    }

    /// Reads the next column.
    pub(crate) fn next<T: FromSql<'r>>(&mut self) -> Option<T> {
        let value = self.row.column(self.at);
        self.at += 1;
        value
    }

    /// Reads the next column as an array.
    pub(crate) fn array<T: FromSql<'r>>(&mut self) -> Option<Vec<T>> {
        self.next().map(|CheckedArray(elements)| elements)
    }

    /// Reads the next column as a nonnegative number.
    pub(crate) fn count(&mut self) -> Option<u64> {
        u64::try_from(self.next::<i64>()?).ok()
    }

    /// Reads the columns of a bucket: number and epoch, last admission number, and the number of
    /// URLs in each state.
    pub(crate) fn bucket(&mut self) -> Option<((i32, i64), u64, CommittedUrlCounts)> {
        let key = (self.next()?, self.next()?);
        Some((key, self.count()?, self.totals()?))
    }

    /// Reads the number of URLs in each state.
    pub(crate) fn totals(&mut self) -> Option<CommittedUrlCounts> {
        Some(CommittedUrlCounts {
            pending: self.count()?,
            deferred: self.count()?,
            fetched: self.count()?,
            failed: self.count()?,
            excluded: self.count()?,
        })
    }

    pub(crate) fn url_key(&mut self) -> Option<UrlKey> {
        Some(UrlKey {
            b: self.next()?,
            origin: self.next()?,
            fingerprint: self.next()?,
        })
    }

    /// Reads the columns of a bucket with URLs to be reopened.
    pub(crate) fn bucket_to_reopen(&mut self) -> Option<BucketReopenProgress> {
        let (b, worker) = (self.next()?, self.next()?);
        let (origin, fingerprint) = (self.next()?, self.next()?);
        Some(BucketReopenProgress {
            worker,
            last: UrlKey {
                b,
                origin,
                fingerprint,
            },
            is_over: false,
        })
    }

    /// Reads the columns of links to hosts that another server group serves.
    pub(crate) fn foreign_links(&mut self) -> Option<LinksToOtherServerGroups> {
        Some(LinksToOtherServerGroups {
            home: self.next()?,
            json: self.next()?,
            b: self.array()?,
            sender: self.array()?,
            number: self.array()?,
        })
    }

    fn via(&mut self) -> Option<Option<CanonicalUrl>> {
        let text: Option<&str> = self.next()?;
        text.map(|text| canonicalize(None, text).ok())
            .map_or(Some(None), |url| url.map(Some))
    }

    /// Reads the columns of a record.
    pub(crate) fn record(&mut self) -> Option<UrlRecord> {
        let (state, seq, distance): (i16, i64, i32) = (self.next()?, self.next()?, self.next()?);
        let attempt: i32 = self.next()?;
        let (priority, redirects, flags): (i16, i16, i16) =
            (self.next()?, self.next()?, self.next()?);
        let (code, line): (Option<i16>, Option<i32>) = (self.next()?, self.next()?);
        let via = self.via()?;
        let note: Option<String> = self.next()?;
        let exclusion = |rule| exclusion(code, line, rule);
        let state = match state {
            PENDING => UrlRecordState::Pending {
                attempt: attempt as u32,
            },
            DEFERRED => UrlRecordState::Deferred(exclusion(note)?),
            FETCHED => UrlRecordState::Fetched {
                status: code? as u16,
            },
            FAILED => UrlRecordState::Failed { why: note? },
            EXCLUDED => UrlRecordState::Excluded(exclusion(note)?),
            _ => return None,
        };
        let place = PendingUrlFields {
            seq: seq as u64,
            ..place(distance, priority, redirects, flags)?
        };
        Some(UrlRecord { state, place, via })
    }

    /// Reads a path and the columns of a record as a queue entry.
    pub(crate) fn queued(&mut self, origin: &Origin) -> Option<(QueueRank, QueuedUrl)> {
        let url = url_at(origin, self.next()?)?;
        let record = self.record()?;
        let queued = QueuedUrl {
            place: record.place,
            attempt: record.attempt(),
            url,
            via: record.via.clone(),
        };
        Some((record.rank()?, queued))
    }

    /// Reads a link from another worker, with its key.
    pub(crate) fn link(&mut self) -> Option<(LinkFromWorkerKey, UrlToAdmit)> {
        let key = LinkFromWorkerKey {
            b: self.next()?,
            sender: self.next()?,
            number: self.next()?,
        };
        let (state, distance): (i16, i32) = (self.next()?, self.next()?);
        let (priority, redirects, flags): (i16, i16, i16) =
            (self.next()?, self.next()?, self.next()?);
        let (code, line): (Option<i16>, Option<i32>) = (self.next()?, self.next()?);
        let via = self.via()?;
        let rule: Option<String> = self.next()?;
        let exclusion = || exclusion(code, line, rule);
        let state = match state {
            PENDING => RequestedState::Pending,
            DEFERRED => RequestedState::Deferred(exclusion()?),
            EXCLUDED => RequestedState::Excluded(exclusion()?),
            _ => return None,
        };
        let place = place(distance, priority, redirects, flags)?;
        if place.retried {
            return None;
        }
        let (depth, hops_off) = depth_and_hops(place.depth);
        let admission = UrlToAdmit {
            url: canonicalize(None, self.next()?).ok()?,
            depth,
            hops_off,
            redirects: place.redirects,
            via,
            priority: place.priority,
            state,
            is_seed: place.is_seed,
            kind: place.kind,
        };
        Some((key, admission))
    }

    /// Reads the columns of a visit, and the current state of its URL (a value of the column
    /// `state`).
    pub(crate) fn visit(&mut self) -> Option<(UrlKey, StoredVisit, i16)> {
        let key = self.url_key()?;
        let (at, due): (i64, i64) = (self.next()?, self.next()?);
        let distance: i32 = self.next()?;
        let (priority, redirects, flags): (i16, i16, i16) =
            (self.next()?, self.next()?, self.next()?);
        let is_settled = self.next()?;
        let via = self.via()?;
        let bytes = self.next()?;
        let state = self.next()?;
        let origin = Origin::parse(self.next()?).ok()?;
        let url = url_at(&origin, self.next()?)?;
        let visit = LastVisit {
            at: at.try_into().ok()?,
            due: due.try_into().ok()?,
            bytes,
        };
        let place = place(distance, priority, redirects, flags)?;
        let stored = StoredVisit {
            url,
            via,
            place,
            visit,
            is_settled,
        };
        Some((key, stored, state))
    }
}

/// Adds the totals of two buckets, state by state. Only damaged rows can have sums that are too
/// large, and these sums are capped.
pub(crate) fn sum(a: CommittedUrlCounts, b: CommittedUrlCounts) -> CommittedUrlCounts {
    CommittedUrlCounts {
        pending: a.pending.saturating_add(b.pending),
        deferred: a.deferred.saturating_add(b.deferred),
        fetched: a.fetched.saturating_add(b.fetched),
        failed: a.failed.saturating_add(b.failed),
        excluded: a.excluded.saturating_add(b.excluded),
    }
}

fn exclusion(
    code: Option<i16>,
    line: Option<i32>,
    rule: Option<String>,
) -> Option<NotFetchedReason> {
    Some(NotFetchedReason {
        reason: Reason::from_code(u8::try_from(code?).ok()?)?,
        rule,
        line: line.map(|line| line as u32),
    })
}

/// Returns a queue place with the sequence number 0, or `None` if a value is not one that this
/// program writes.
fn place(distance: i32, priority: i16, redirects: i16, flags: i16) -> Option<PendingUrlFields> {
    Some(PendingUrlFields {
        retried: flags & RETRIED != 0,
        priority: priority.try_into().ok()?,
        depth: distance as u32,
        redirects: redirects.try_into().ok()?,
        is_seed: flags & SEED != 0,
        kind: kind_of(flags)?,
        seq: 0,
    })
}

pub(crate) fn url_at(origin: &Origin, path: &str) -> Option<CanonicalUrl> {
    canonicalize(None, &format!("{origin}{path}")).ok()
}
