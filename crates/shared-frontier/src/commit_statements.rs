//! The statements of a commit, which are sent in one round trip.

use std::collections::BTreeMap;

use crawl_frontier::UrlToAdmit;
use crawl_frontier::parts::{PendingUrlFields, StoredVisit, UrlRecord};
use crawl_weburl::{CanonicalUrl, Origin};
use tokio_postgres::types::ToSql;

use crate::bucket_ownership::BucketOwnership;
use crate::connection::{DatabaseResult, DatabaseSession, StatementParameterList};
use crate::row_codec::{
    BucketReopenProgress, LinkFromWorkerKey, UrlKey, flags_of, is_settled, place_of, state_columns,
};
use crate::sql_statements::SqlStatement;

/// The prefix that marks the names of values for the whole crawl, not for one worker.
pub(crate) const CRAWL_META: &str = "crawl ";

/// The rows of a transaction, as one list for each column of a table.
#[derive(Default)]
pub(crate) struct TransactionColumns {
    /// The commit's number among the commits of this worker.
    pub(crate) number: i64,
    /// The number of pages that the worker has used in all its runs, if it changed.
    pages: Option<i64>,
    /// The number of bytes that the worker has used in all its runs, if it changed.
    bytes: Option<i64>,
    fence: FenceColumns,
    records: RecordColumns,
    origins: OriginColumns,
    robots: BlobColumns,
    hosts: BlobColumns,
    wakes: Vec<i64>,
    visits: VisitColumns,
    links: LinkColumns,
    /// Links to hosts that other server groups serve, by the group's number. These links are sent
    /// before the commit.
    ahead: BTreeMap<i32, LinkColumns>,
    taken: LinkKeyColumns,
    dropped_visits: UrlKeyColumns,
    /// Keys of the origins whose copy of robots.txt is removed.
    dropped_robots: OriginKeyColumns,
    to_reopen: BucketToReopenColumns,
    reopen_done: BucketToReopenColumns,
    files: Vec<String>,
    lengths: Vec<i64>,
    meta: MetaColumns,
    /// Values stored for the whole crawl, not for one worker.
    crawl_meta: MetaColumns,
}

#[derive(Default)]
struct MetaColumns {
    name: Vec<String>,
    value: Vec<Vec<u8>>,
}

#[derive(Default)]
struct FenceColumns {
    b: Vec<i32>,
    epoch: Vec<i64>,
    seq: Vec<i64>,
    states: [Vec<i64>; 5],
}

#[derive(Default)]
struct RecordColumns {
    b: Vec<i32>,
    origin: Vec<i64>,
    fingerprint: Vec<i64>,
    place: Vec<i64>,
    seq: Vec<i64>,
    distance: Vec<i32>,
    attempt: Vec<i32>,
    line: Vec<Option<i32>>,
    settled_by: Vec<Option<i32>>,
    state: Vec<i16>,
    priority: Vec<i16>,
    redirects: Vec<i16>,
    flags: Vec<i16>,
    code: Vec<Option<i16>>,
    path: Vec<String>,
    via: Vec<Option<String>>,
    note: Vec<Option<String>>,
}

#[derive(Default)]
struct OriginColumns {
    b: Vec<i32>,
    number: Vec<i64>,
    pending: Vec<i64>,
    name: Vec<String>,
}

/// The bytes stored for origins (robots.txt copies) or for hosts (their states).
#[derive(Default)]
struct BlobColumns {
    b: Vec<i32>,
    number: Vec<i64>,
    name: Vec<String>,
    bytes: Vec<Vec<u8>>,
}

#[derive(Default)]
struct VisitColumns {
    b: Vec<i32>,
    origin: Vec<i64>,
    fingerprint: Vec<i64>,
    made_at: Vec<i64>,
    due: Vec<i64>,
    distance: Vec<i32>,
    priority: Vec<i16>,
    redirects: Vec<i16>,
    flags: Vec<i16>,
    is_settled: Vec<bool>,
    via: Vec<Option<String>>,
    kept: Vec<Vec<u8>>,
}

/// Links to hosts of other workers.
#[derive(Default)]
struct LinkColumns {
    b: Vec<i32>,
    number: Vec<i64>,
    distance: Vec<i32>,
    line: Vec<Option<i32>>,
    state: Vec<i16>,
    priority: Vec<i16>,
    redirects: Vec<i16>,
    flags: Vec<i16>,
    code: Vec<Option<i16>>,
    url: Vec<String>,
    via: Vec<Option<String>>,
    note: Vec<Option<String>>,
}

/// Keys of the links from other workers that this commit admits.
#[derive(Default)]
struct LinkKeyColumns {
    b: Vec<i32>,
    sender: Vec<String>,
    number: Vec<i64>,
}

#[derive(Default)]
struct UrlKeyColumns {
    b: Vec<i32>,
    origin: Vec<i64>,
    fingerprint: Vec<i64>,
}

#[derive(Default)]
struct OriginKeyColumns {
    b: Vec<i32>,
    number: Vec<i64>,
}

/// The progress of reopening lost URLs in each bucket. A URL is lost if the worker that settled it
/// has lost its directory.
#[derive(Default)]
struct BucketToReopenColumns {
    worker: Vec<i32>,
    last: UrlKeyColumns,
}

/// The change of the number of URLs in each state, indexed by the state's number.
pub(crate) type StateCountChanges = [i64; 5];

impl TransactionColumns {
    /// Creates an empty batch. `number` is its number among the commits of this worker. `spent` has
    /// the worker's pages and bytes over all its runs, if they changed.
    pub(crate) fn new(number: i64, spent: Option<(u64, u64)>) -> TransactionColumns {
        TransactionColumns {
            number,
            pages: spent.map(|(pages, _)| pages as i64),
            bytes: spent.map(|(_, bytes)| bytes as i64),
            ..TransactionColumns::default()
        }
    }

    /// Returns whether there is nothing to commit.
    pub(crate) fn is_empty(&self) -> bool {
        self.fence.b.is_empty()
            && self.links.b.is_empty()
            && self.ahead.is_empty()
            && self.files.is_empty()
            && self.meta.name.is_empty()
            && self.crawl_meta.name.is_empty()
    }

    /// Fences the commit: it fails if another process has taken one of these buckets, which changes
    /// the bucket's epoch. Also updates the buckets' counts.
    pub(crate) fn fence(
        &mut self,
        buckets: BTreeMap<i32, StateCountChanges>,
        seq: u64,
        owned: &BucketOwnership,
    ) {
        for (b, changes) in buckets {
            let fence = &mut self.fence;
            fence.b.push(b);
            // This worker has no epoch for a bucket that it doesn't own. Send -1, which no bucket
            // has, so that the commit fails.
            fence.epoch.push(owned.epoch(b).unwrap_or(-1));
            fence.seq.push(seq as i64);
            for (state, change) in fence.states.iter_mut().zip(changes) {
                state.push(change);
            }
        }
    }

    /// Adds a record. If its URL is settled, `worker` is stored as the number of the worker that
    /// settled the URL.
    pub(crate) fn record(
        &mut self,
        key: UrlKey,
        url: &CanonicalUrl,
        record: &UrlRecord,
        worker: i32,
    ) {
        let columns = &mut self.records;
        let PendingUrlFields {
            priority,
            depth,
            redirects,
            ..
        } = record.place;
        let (place, seq) = place_of(record.place.rank());
        columns.b.push(key.b);
        columns.origin.push(key.origin);
        columns.fingerprint.push(key.fingerprint);
        columns.place.push(place);
        columns.seq.push(seq);
        columns.distance.push(depth as i32);
        columns.priority.push(priority.into());
        columns.redirects.push(redirects.into());
        columns.flags.push(flags_of(&record.place));
        let state = state_columns(&record.state);
        columns
            .settled_by
            .push(is_settled(state.state).then_some(worker));
        columns.state.push(state.state);
        columns.attempt.push(state.attempt);
        columns.line.push(state.line);
        columns.code.push(state.code);
        columns.note.push(note(state.note));
        columns.path.push(url.path_and_query().to_owned());
        columns.via.push(text(record.via.as_ref()));
    }

    pub(crate) fn origin(&mut self, b: i32, number: i64, origin: &Origin, pending: u64) {
        self.origins.b.push(b);
        self.origins.number.push(number);
        self.origins.pending.push(pending as i64);
        self.origins.name.push(origin.as_str().to_owned());
    }

    pub(crate) fn robots(&mut self, b: i32, number: i64, origin: &Origin, bytes: Vec<u8>) {
        self.robots.push(b, number, origin.as_str(), bytes);
    }

    pub(crate) fn host(&mut self, b: i32, number: i64, name: &str, (wake, bytes): (u64, Vec<u8>)) {
        self.hosts.push(b, number, name, bytes);
        self.wakes.push(wake as i64);
    }

    pub(crate) fn visit(&mut self, key: UrlKey, stored: &StoredVisit) {
        let columns = &mut self.visits;
        columns.b.push(key.b);
        columns.origin.push(key.origin);
        columns.fingerprint.push(key.fingerprint);
        columns.made_at.push(stored.visit.at.into());
        columns.due.push(stored.visit.due.into());
        columns.distance.push(stored.place.depth as i32);
        columns.priority.push(stored.place.priority.into());
        columns.redirects.push(stored.place.redirects.into());
        columns.flags.push(flags_of(&stored.place));
        columns.is_settled.push(stored.is_settled);
        columns.via.push(text(stored.via.as_ref()));
        columns.kept.push(stored.visit.bytes.clone());
    }

    /// Removes the stored visit of a URL.
    pub(crate) fn drop_visit(&mut self, key: UrlKey) {
        self.dropped_visits.push(key);
    }

    /// Removes the copy of an origin's robots.txt, unless this commit stores one.
    pub(crate) fn drop_robots(&mut self, b: i32, number: i64) {
        self.dropped_robots.b.push(b);
        self.dropped_robots.number.push(number);
    }

    /// Stores the progress of reopening lost URLs in a bucket.
    pub(crate) fn bucket_to_reopen(&mut self, bucket: BucketReopenProgress) {
        let columns = match bucket.is_over {
            true => &mut self.reopen_done,
            false => &mut self.to_reopen,
        };
        columns.worker.push(bucket.worker);
        columns.last.push(bucket.last);
    }

    /// Adds a link for the owner of its host. `elsewhere` is the number of the owner's server
    /// group, or `None` if it is this worker's own group. `number` is the link's number among all
    /// links that this worker has sent.
    pub(crate) fn link(
        &mut self,
        elsewhere: Option<i32>,
        b: i32,
        number: i64,
        admission: UrlToAdmit,
    ) {
        let columns = match elsewhere {
            Some(group) => self.ahead.entry(group).or_default(),
            None => &mut self.links,
        };
        let url = admission.url.as_str().to_owned();
        let record = UrlRecord::admitted(admission, 0);
        let state = state_columns(&record.state);
        columns.b.push(b);
        columns.number.push(number);
        columns.distance.push(record.place.depth as i32);
        columns.line.push(state.line);
        columns.state.push(state.state);
        columns.priority.push(record.place.priority.into());
        columns.redirects.push(record.place.redirects.into());
        columns.flags.push(flags_of(&record.place));
        columns.code.push(state.code);
        columns.url.push(url);
        columns.via.push(text(record.via.as_ref()));
        columns.note.push(note(state.note));
    }

    /// Deletes the stored row of a link that another worker sent, because this commit admits the
    /// link.
    pub(crate) fn taken(&mut self, key: LinkFromWorkerKey) {
        self.taken.b.push(key.b);
        self.taken.sender.push(key.sender);
        self.taken.number.push(key.number);
    }

    pub(crate) fn mark(&mut self, file: String, length: u64) {
        self.files.push(file);
        self.lengths.push(length as i64);
    }

    pub(crate) fn meta(&mut self, name: String, value: Vec<u8>) {
        let columns = match name.starts_with(CRAWL_META) {
            true => &mut self.crawl_meta,
            false => &mut self.meta,
        };
        columns.name.push(name);
        columns.value.push(value);
    }

    /// Returns whether the batch contains anything to send to `group`, a server group other than
    /// the worker's.
    pub(crate) fn is_for(&self, group: i32) -> bool {
        !self.crawl_meta.name.is_empty() || self.ahead.contains_key(&group)
    }

    /// Sends the rows of the batch that another server group, `group`, must store. The crawl has
    /// the number `crawl` there. Each statement is a separate, idempotent transaction.
    pub(crate) async fn send_ahead(
        &self,
        session: &DatabaseSession,
        group: i32,
        crawl: i32,
        owned: &BucketOwnership,
    ) -> DatabaseResult<()> {
        let none = LinkColumns::default();
        let links = self.ahead.get(&group).unwrap_or(&none);
        session.prepared(SqlStatement::PutMeta).await?;
        session.prepared(SqlStatement::PutLinks).await?;
        // Values of the whole crawl, such as redirects, are sent before the links. So a worker that
        // reads a link can already read the redirect that led to it.
        let (kept, linked) = tokio::join!(
            biased;
            self.put_crawl_meta(session, crawl),
            links.put(session, crawl, &owned.owner),
        );
        kept?;
        linked
    }

    async fn put_crawl_meta(&self, session: &DatabaseSession, crawl: i32) -> DatabaseResult<()> {
        let meta = &self.crawl_meta;
        let params: [&(dyn ToSql + Sync); 4] = [&crawl, &"", &meta.name, &meta.value];
        put(session, SqlStatement::PutMeta, meta.name.len(), &params).await
    }

    /// Sends all statements of the commit without waiting in between, and then waits for the
    /// replies. If a statement fails, the database server refuses all later statements, including
    /// the commit.
    pub(crate) async fn send(
        &self,
        session: &DatabaseSession,
        owned: &BucketOwnership,
    ) -> DatabaseResult<()> {
        let client = session.client();
        let (fence, links, taken) = (&self.fence, &self.links, &self.taken);
        let (to_reopen, over) = (&self.to_reopen, &self.reopen_done);
        let [pending, deferred, fetched, failed, excluded] = &fence.states;
        let (crawl, worker, owner) = (&owned.crawl, &owned.worker, &owned.owner);
        let put = async |sql: SqlStatement, rows: usize, params: Vec<&(dyn ToSql + Sync)>| {
            put(session, sql, rows, &params).await
        };
        // A statement is sent when its future is first polled, and `biased` polls the futures in
        // order. So the statements are sent in this order.
        let answers = tokio::join!(
            biased;
            client.batch_execute("BEGIN"),
            put(SqlStatement::CountCommit, 1, vec![
                crawl, worker, owner, &self.number, &self.pages, &self.bytes,
            ]),
            put(SqlStatement::Fence, fence.b.len(), vec![
                crawl, owner, &fence.b, &fence.epoch, &fence.seq, pending, deferred, fetched,
                failed, excluded,
            ]),
            self.put_rows(session, owned.crawl),
            links.put(session, owned.crawl, owner),
            put(SqlStatement::TakeLinks, taken.b.len(), vec![
                crawl, &taken.b, &taken.sender, &taken.number,
            ]),
            put(SqlStatement::PutReopenProgress, to_reopen.worker.len(), vec![
                crawl, &to_reopen.last.b, &to_reopen.worker, &to_reopen.last.origin,
                &to_reopen.last.fingerprint,
            ]),
            put(SqlStatement::EndBucketsToReopen, over.worker.len(), vec![crawl, &over.last.b, &over.worker]),
            put(SqlStatement::PutMarks, self.files.len(), vec![crawl, worker, &self.files, &self.lengths]),
            put(SqlStatement::PutMeta, self.meta.name.len(), vec![
                crawl, worker, &self.meta.name, &self.meta.value,
            ]),
            self.put_crawl_meta(session, owned.crawl),
            client.batch_execute("COMMIT"),
        );
        let (a, b, c, d, e, f, g, h, i, j, k, l) = answers;
        // Return the first failure, because it has the cause. Later failures only report the
        // aborted transaction.
        for answer in [a, b, c, d, e, f, g, h, i, j, k, l] {
            answer?;
        }
        Ok(())
    }

    /// Sends all statements for URLs, origins and hosts without waiting in between.
    async fn put_rows(&self, session: &DatabaseSession, crawl: i32) -> DatabaseResult<()> {
        let (records, visits) = (&self.records, &self.visits);
        let (dropped, no_robots) = (&self.dropped_visits, &self.dropped_robots);
        let put = async |sql: SqlStatement, rows: usize, params: Vec<&(dyn ToSql + Sync)>| {
            put(session, sql, rows, &params).await
        };
        let crawl = &crawl;
        let answers = tokio::join!(
            biased;
            put(SqlStatement::PutOrigins, self.origins.b.len(), vec![
                crawl, &self.origins.b, &self.origins.number, &self.origins.pending,
                &self.origins.name,
            ]),
            put(SqlStatement::PutRecords, records.b.len(), vec![
                crawl, &records.b, &records.origin, &records.fingerprint, &records.place,
                &records.seq, &records.distance, &records.attempt, &records.line,
                &records.settled_by, &records.state, &records.priority, &records.redirects,
                &records.flags, &records.code, &records.path, &records.via, &records.note,
            ]),
            put(SqlStatement::DropRobots, no_robots.b.len(), vec![
                crawl, &no_robots.b, &no_robots.number,
            ]),
            put(SqlStatement::PutRobots, self.robots.b.len(), vec![
                crawl, &self.robots.b, &self.robots.number, &self.robots.name, &self.robots.bytes,
            ]),
            put(SqlStatement::PutHosts, self.hosts.b.len(), vec![
                crawl, &self.hosts.b, &self.hosts.number, &self.wakes, &self.hosts.name,
                &self.hosts.bytes,
            ]),
            put(SqlStatement::DropVisits, dropped.b.len(), vec![
                crawl, &dropped.b, &dropped.origin, &dropped.fingerprint,
            ]),
            put(SqlStatement::PutVisits, visits.b.len(), vec![
                crawl, &visits.b, &visits.origin, &visits.fingerprint, &visits.made_at,
                &visits.due, &visits.distance, &visits.priority, &visits.redirects,
                &visits.flags, &visits.is_settled, &visits.via, &visits.kept,
            ]),
        );
        let (a, b, c, d, e, f, g) = answers;
        for answer in [a, b, c, d, e, f, g] {
            answer?;
        }
        Ok(())
    }

    /// Commits the URLs, origins and hosts of a crawl that has no worker.
    pub(crate) async fn send_ownerless(
        &self,
        session: &DatabaseSession,
        crawl: i32,
    ) -> DatabaseResult<()> {
        let client = session.client();
        let answers = tokio::join!(
            biased;
            client.batch_execute("BEGIN"),
            self.put_rows(session, crawl),
            client.batch_execute("COMMIT"),
        );
        let (begun, put, committed) = answers;
        begun?;
        put?;
        committed
    }
}

async fn put(
    session: &DatabaseSession,
    sql: SqlStatement,
    rows: usize,
    params: StatementParameterList<'_>,
) -> DatabaseResult<()> {
    if rows > 0 {
        session.execute(sql, params).await?;
    }
    Ok(())
}

impl LinkColumns {
    async fn put(&self, session: &DatabaseSession, crawl: i32, sender: &str) -> DatabaseResult<()> {
        let params: [&(dyn ToSql + Sync); 14] = [
            &crawl,
            &sender,
            &self.b,
            &self.number,
            &self.distance,
            &self.line,
            &self.state,
            &self.priority,
            &self.redirects,
            &self.flags,
            &self.code,
            &self.url,
            &self.via,
            &self.note,
        ];
        put(session, SqlStatement::PutLinks, self.b.len(), &params).await
    }
}

impl UrlKeyColumns {
    fn push(&mut self, key: UrlKey) {
        self.b.push(key.b);
        self.origin.push(key.origin);
        self.fingerprint.push(key.fingerprint);
    }
}

impl BlobColumns {
    fn push(&mut self, b: i32, number: i64, name: &str, bytes: Vec<u8>) {
        self.b.push(b);
        self.number.push(number);
        self.name.push(name.to_owned());
        self.bytes.push(bytes);
    }
}

fn text(via: Option<&CanonicalUrl>) -> Option<String> {
    via.map(|via| via.as_str().to_owned())
}

/// Removes NUL characters, which the database server's text type can't contain. The text of a
/// robots.txt rule may contain them.
fn note(text: Option<&str>) -> Option<String> {
    text.map(|text| text.replace('\0', "\u{fffd}"))
}
