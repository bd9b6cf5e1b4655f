//! Keys and rows: how URLs and their records stand in the tables.

use crawl_frontier::parts::{
    QueuePlace, Queued, Rank, RecordState, StoredVisit, Totals, UrlRecord, depth_and_hops,
};
use crawl_frontier::{
    Admission, Exclusion, Fingerprint, FingerprintKey, NewState, Reason, UrlKind, Visit,
};
use crawl_weburl::{CanonicalUrl, Origin, Site, canonicalize};
use tokio_postgres::Row;

/// The bits of a place below its round: those of a priority and of a distance.
const ROUND_SHIFT: u32 = 40;
const PRIORITY_SHIFT: u32 = 32;

const SEED: i16 = 1;
const RETRIED: i16 = 2;
const PAGE: i16 = 4;
const SITEMAP: i16 = 8;

/// The numbers of the states in the column `state`.
pub(crate) const PENDING: i16 = 0;
pub(crate) const DEFERRED: i16 = 1;
const FETCHED: i16 = 2;
const FAILED: i16 = 3;
const EXCLUDED: i16 = 4;

/// Makes the keys of rows. Whole sites lie in one bucket, with all their hosts and origins: so
/// the limits of a site are kept by one worker, as those of a host are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
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

/// The key of a link that another worker met.
#[derive(Clone, Debug)]
pub(crate) struct LinkKey {
    pub(crate) b: i32,
    /// The life of the worker that met it.
    pub(crate) sender: String,
    /// Among those that were sent in that life.
    pub(crate) number: i64,
}

/// Links in one group to hosts that another serves.
pub(crate) struct ForeignLinks {
    /// The number of the group that serves them.
    pub(crate) home: i32,
    pub(crate) json: String,
    pub(crate) b: Vec<i32>,
    pub(crate) sender: Vec<String>,
    pub(crate) number: Vec<i64>,
}

/// A bucket with URLs that are to be reopened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketToReopen {
    /// The number of the worker that settled them.
    pub(crate) worker: i32,
    /// The last URL that was looked at, in the order of keys.
    pub(crate) last: UrlKey,
    /// None is left behind it.
    pub(crate) is_over: bool,
}

impl Keys {
    pub(crate) fn url(&self, url: &CanonicalUrl, fingerprint: Fingerprint) -> UrlKey {
        UrlKey {
            b: self.bucket(&url.site()),
            origin: self.number(url.origin_text()),
            // The lowest bits: the URL as a whole decides them.
            fingerprint: fingerprint.as_u128() as i64,
        }
    }

    /// The bucket of a site: the highest bits of a keyed hash of its name.
    pub(crate) fn bucket(&self, site: &Site) -> i32 {
        let hash = self.key.hash(site.as_str()) >> 96;
        ((hash * self.buckets.max(1) as u128) >> 32) as i32
    }

    /// The number of an origin or a host, by its text.
    pub(crate) fn number(&self, text: &str) -> i64 {
        (self.key.hash(text) >> 64) as i64
    }
}

/// A rank as the columns `place` and `seq`, which sort as it does.
pub(crate) fn place_of(rank: Rank) -> (i64, i64) {
    let place = i64::from(rank.round) << ROUND_SHIFT
        | i64::from(rank.priority) << PRIORITY_SHIFT
        | i64::from(rank.depth);
    (place, rank.seq as i64)
}

pub(crate) fn flags_of(place: &QueuePlace) -> i16 {
    let kind = match place.kind {
        UrlKind::Resource => 0,
        UrlKind::Page => PAGE,
        UrlKind::Sitemap => SITEMAP,
    };
    let seed = if place.is_seed { SEED } else { 0 };
    let retried = if place.retried { RETRIED } else { 0 };
    seed | retried | kind
}

fn kind_of(flags: i16) -> UrlKind {
    match flags & (PAGE | SITEMAP) {
        0 => UrlKind::Resource,
        PAGE => UrlKind::Page,
        _ => UrlKind::Sitemap,
    }
}

/// Returns whether a URL is settled that is in the state of this number.
pub(crate) fn is_settled(state: i16) -> bool {
    !matches!(state, PENDING | DEFERRED)
}

/// The columns that tell a state from others.
pub(crate) struct StateColumns<'a> {
    pub(crate) state: i16,
    pub(crate) attempt: i32,
    pub(crate) code: Option<i16>,
    pub(crate) line: Option<i32>,
    pub(crate) note: Option<&'a str>,
}

pub(crate) fn state_columns(state: &RecordState) -> StateColumns<'_> {
    let of = |state| StateColumns {
        state,
        attempt: 0,
        code: None,
        line: None,
        note: None,
    };
    match state {
        RecordState::Pending { attempt } => StateColumns {
            attempt: *attempt as i32,
            ..of(PENDING)
        },
        RecordState::Fetched { status } => StateColumns {
            code: Some(*status as i16),
            ..of(FETCHED)
        },
        RecordState::Failed { why } => StateColumns {
            note: Some(why),
            ..of(FAILED)
        },
        RecordState::Deferred(why) => of(DEFERRED).because(why),
        RecordState::Excluded(why) => of(EXCLUDED).because(why),
    }
}

impl<'a> StateColumns<'a> {
    fn because(self, why: &'a Exclusion) -> StateColumns<'a> {
        StateColumns {
            code: Some(why.reason.code().into()),
            line: why.line.map(|line| line as i32),
            note: why.rule.as_deref(),
            ..self
        }
    }
}

/// Reads rows; none where one is not what this program writes.
pub(crate) struct Reader<'r> {
    row: &'r Row,
    at: usize,
}

impl<'r> Reader<'r> {
    pub(crate) fn new(row: &'r Row) -> Reader<'r> {
        Reader { row, at: 0 }
    }

    /// The next column.
    pub(crate) fn next<T: tokio_postgres::types::FromSql<'r>>(&mut self) -> Option<T> {
        let value = self.row.try_get(self.at).ok();
        self.at += 1;
        value
    }

    /// The next column, a number that is none below zero.
    pub(crate) fn count(&mut self) -> Option<u64> {
        u64::try_from(self.next::<i64>()?).ok()
    }

    /// The columns of a bucket: its number and epoch, the last number of an admission, and the
    /// number of URLs in each state.
    pub(crate) fn bucket(&mut self) -> Option<((i32, i64), u64, Totals)> {
        let key = (self.next()?, self.next()?);
        Some((key, self.count()?, self.totals()?))
    }

    /// The number of URLs in each state.
    pub(crate) fn totals(&mut self) -> Option<Totals> {
        Some(Totals {
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

    /// The columns of a bucket that is looked at for URLs to reopen.
    pub(crate) fn bucket_to_reopen(&mut self) -> Option<BucketToReopen> {
        let (b, worker) = (self.next()?, self.next()?);
        let (origin, fingerprint) = (self.next()?, self.next()?);
        Some(BucketToReopen {
            worker,
            last: UrlKey {
                b,
                origin,
                fingerprint,
            },
            is_over: false,
        })
    }

    /// The columns of links to hosts that another group serves.
    pub(crate) fn foreign_links(&mut self) -> Option<ForeignLinks> {
        Some(ForeignLinks {
            home: self.next()?,
            json: self.next()?,
            b: self.next()?,
            sender: self.next()?,
            number: self.next()?,
        })
    }

    fn via(&mut self) -> Option<Option<CanonicalUrl>> {
        let text: Option<&str> = self.next()?;
        text.map(|text| canonicalize(None, text).ok())
            .map_or(Some(None), |url| url.map(Some))
    }

    /// The columns of a record.
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
            PENDING => RecordState::Pending {
                attempt: attempt as u32,
            },
            DEFERRED => RecordState::Deferred(exclusion(note)?),
            FETCHED => RecordState::Fetched {
                status: code? as u16,
            },
            FAILED => RecordState::Failed { why: note? },
            EXCLUDED => RecordState::Excluded(exclusion(note)?),
            _ => return None,
        };
        let place = QueuePlace {
            seq: seq as u64,
            ..place(distance, priority, redirects, flags)
        };
        Some(UrlRecord { state, place, via })
    }

    /// A path and the columns of a record, as an entry of a queue.
    pub(crate) fn queued(&mut self, origin: &Origin) -> Option<(Rank, Queued)> {
        let url = url_at(origin, self.next()?)?;
        let record = self.record()?;
        let queued = Queued {
            place: record.place,
            attempt: record.attempt(),
            url,
            via: record.via.clone(),
        };
        Some((record.rank()?, queued))
    }

    /// A link that another worker met, and its key.
    pub(crate) fn link(&mut self) -> Option<(LinkKey, Admission)> {
        let key = LinkKey {
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
            PENDING => NewState::Pending,
            DEFERRED => NewState::Deferred(exclusion()?),
            EXCLUDED => NewState::Excluded(exclusion()?),
            _ => return None,
        };
        let place = place(distance, priority, redirects, flags);
        let (depth, hops_off) = depth_and_hops(place.depth);
        let admission = Admission {
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

    /// The columns of a visit, and the number of the state that its URL is in.
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
        let visit = Visit {
            at: at.try_into().ok()?,
            due: due.try_into().ok()?,
            bytes,
        };
        let place = place(distance, priority, redirects, flags);
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

/// The sums of two buckets' totals, state by state.
pub(crate) fn sum(one: Totals, other: Totals) -> Totals {
    Totals {
        pending: one.pending + other.pending,
        deferred: one.deferred + other.deferred,
        fetched: one.fetched + other.fetched,
        failed: one.failed + other.failed,
        excluded: one.excluded + other.excluded,
    }
}

fn exclusion(code: Option<i16>, line: Option<i32>, rule: Option<String>) -> Option<Exclusion> {
    Some(Exclusion {
        reason: Reason::from_code(u8::try_from(code?).ok()?)?,
        rule,
        line: line.map(|line| line as u32),
    })
}

/// A place without its number.
fn place(distance: i32, priority: i16, redirects: i16, flags: i16) -> QueuePlace {
    QueuePlace {
        retried: flags & RETRIED != 0,
        priority: priority as u8,
        depth: distance as u32,
        redirects: redirects as u8,
        is_seed: flags & SEED != 0,
        kind: kind_of(flags),
        seq: 0,
    }
}

pub(crate) fn url_at(origin: &Origin, path: &str) -> Option<CanonicalUrl> {
    canonicalize(None, &format!("{origin}{path}")).ok()
}
