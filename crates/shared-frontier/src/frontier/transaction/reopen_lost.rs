//! Reopens lost URLs in the buckets of this worker. A URL is lost if the worker that settled it has
//! lost its directory.

use crawl_frontier::parts::{PendingUrlFields, UrlRecord, UrlRecordState, depth_and_hops};
use crawl_frontier::worker_frontier::ReopenLostResult;
use crawl_frontier::{FrontierError, NotFetchedReason, RequestedState, UrlToAdmit};
use crawl_weburl::{CanonicalUrl, Origin};

use super::{CountedStateBefore, SharedTransaction};
use crate::connection::params;
use crate::row_codec::{BucketReopenProgress, ColumnReader, UrlKey, url_at};
use crate::sql_statements::SqlStatement;

/// Maximum number of buckets searched in one transaction. Each bucket costs a round trip.
const MAX_BUCKETS: usize = 64;

impl SharedTransaction<'_> {
    /// Implements [`crawl_frontier::worker_frontier::WorkerTransaction::reopen_lost`].
    pub(super) fn look_for_lost(&mut self, most: usize) -> Result<ReopenLostResult, FrontierError> {
        let tables = &self.frontier.tables;
        let limit = i64::try_from(MAX_BUCKETS).unwrap_or(i64::MAX);
        let params = params![tables.owned.crawl, tables.owned.buckets(), limit];
        let rows = tables.read(SqlStatement::BucketsToReopen, params)?;
        let mut result = ReopenLostResult {
            is_more: rows.len() == MAX_BUCKETS,
            ..ReopenLostResult::default()
        };
        let mut remaining = most;
        for row in &rows {
            let bucket = ColumnReader::new(row).bucket_to_reopen();
            let bucket = bucket.ok_or_else(|| tables.corrupt("bucket_to_reopen"))?;
            remaining -= self.look_into(bucket, remaining, &mut result)?;
            if remaining == 0 {
                result.is_more = true;
                break;
            }
        }
        Ok(result)
    }

    /// Reopens up to `most` lost URLs of one bucket. Returns the number of lost URLs that were
    /// found, including the URLs that stay excluded.
    fn look_into(
        &mut self,
        mut bucket: BucketReopenProgress,
        most: usize,
        result: &mut ReopenLostResult,
    ) -> Result<usize, FrontierError> {
        let BucketReopenProgress { worker, last, .. } = bucket;
        let tables = &self.frontier.tables;
        let limit = i64::try_from(most).unwrap_or(i64::MAX);
        let params = params![
            tables.owned.crawl,
            last.b,
            worker,
            last.origin,
            last.fingerprint,
            limit
        ];
        let rows = tables.read(SqlStatement::SettledBy, params)?;
        for row in &rows {
            let (key, url, record) = settled(row).ok_or_else(|| tables.corrupt("url"))?;
            bucket.last = key;
            if self.dropped_robots.insert((key.b, key.origin)) {
                result.origins.push(url.origin());
            }
            result.excluded.extend(self.reopen(key, url, record));
        }
        bucket.is_over = rows.len() < most;
        self.to_reopen.push(bucket);
        Ok(rows.len())
    }

    /// Makes a settled URL pending again, or returns its admission if it stays excluded.
    fn reopen(&mut self, key: UrlKey, url: CanonicalUrl, record: UrlRecord) -> Option<UrlToAdmit> {
        let fingerprint = self.fingerprint(&url);
        if self.changed.contains_key(&fingerprint) {
            // There is nothing to reopen: this transaction has already changed the URL.
            return None;
        }
        let before = Some(CountedStateBefore::of(&record));
        if let UrlRecordState::Excluded(exclusion) = &record.state {
            let listed = excluded(&url, exclusion.clone(), &record);
            // Write the record again, which stores this worker as the one that settled the URL.
            self.put(fingerprint, url, before, record);
            return Some(listed);
        }
        let record = UrlRecord {
            state: UrlRecordState::Pending { attempt: 1 },
            place: PendingUrlFields {
                retried: false,
                ..record.place
            },
            via: record.via,
        };
        self.reopens = true;
        // Drop the stored visit. If the visit stayed, the next request for the page would be
        // conditional, but the page's body is lost.
        self.dropped_visits.push(key);
        self.put(fingerprint, url, before, record);
        None
    }
}

/// Reads a row of [`SqlStatement::SettledBy`].
fn settled(row: &tokio_postgres::Row) -> Option<(UrlKey, CanonicalUrl, UrlRecord)> {
    let mut reader = ColumnReader::new(row);
    let key = reader.url_key()?;
    let origin = Origin::parse(reader.next()?).ok()?;
    let url = url_at(&origin, reader.next()?)?;
    Some((key, url, reader.record()?))
}

/// Returns an admission that excludes the URL for the same reason as before.
fn excluded(url: &CanonicalUrl, exclusion: NotFetchedReason, record: &UrlRecord) -> UrlToAdmit {
    let place = record.place;
    let (depth, hops_off) = depth_and_hops(place.depth);
    UrlToAdmit {
        url: url.clone(),
        depth,
        hops_off,
        redirects: place.redirects,
        via: record.via.clone(),
        priority: place.priority,
        state: RequestedState::Excluded(exclusion),
        is_seed: place.is_seed,
        kind: place.kind,
    }
}
