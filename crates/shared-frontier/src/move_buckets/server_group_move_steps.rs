//! A server group of a crawl, with the steps of a move. Each step is a transaction in that group. A
//! step that changes the map of buckets locks the crawl's row before the rows of buckets, so that
//! two transactions never deadlock.

use std::sync::Arc;

use crawl_frontier::FrontierError;
use crawl_frontier::parts::CommittedUrlCounts;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::copied_tables::{COPIED, CopiedTable};
use crate::connection::{DatabaseSession, DatabaseThread, StatementParameter, params};
use crate::error::SharedCrawlError;
use crate::open_groups::ServerGroup;
use crate::row_codec::ColumnReader;
use crate::sql_statements::SqlStatement;

/// The number of rows copied or removed at a time.
const PART_ROWS: i64 = 4_096;

/// A server group and a connection to it.
pub(super) struct ServerGroupConnection {
    pub(super) number: i32,
    /// The crawl's number in this server group.
    crawl: i32,
    thread: DatabaseThread,
    session: Arc<DatabaseSession>,
}

/// A bucket's row in one server group.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketRow {
    pub(super) b: i32,
    pub(super) home: i32,
    pub(super) moving_to: Option<i32>,
    pub(super) epoch: i64,
}

/// A bucket that a mover took from its source.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketBetweenServerGroups {
    pub(super) b: i32,
    pub(super) epoch: i64,
    pub(super) seq: u64,
    pub(super) totals: CommittedUrlCounts,
}

impl ServerGroupConnection {
    pub(super) fn open(group: ServerGroup) -> Result<ServerGroupConnection, SharedCrawlError> {
        let (thread, config) = (group.server.thread, group.server.config);
        let session = thread.run(async move { DatabaseSession::open_lazily(&config).await })?;
        Ok(ServerGroupConnection {
            number: group.crawl.group,
            crawl: group.crawl.number,
            thread,
            session,
        })
    }

    pub(super) fn address(&self) -> &String {
        &self.thread.address
    }

    pub(super) fn corrupt(&self) -> FrontierError {
        self.thread.corrupt("a row of crawl_frontier.bucket")
    }

    /// Executes a statement whose first parameter is the crawl's number.
    fn read(
        &self,
        text: &str,
        mut values: Vec<StatementParameter>,
    ) -> Result<Vec<Row>, FrontierError> {
        values.insert(0, Box::new(self.crawl));
        let (session, text) = (Arc::clone(&self.session), text.to_owned());
        self.thread.run(async move {
            let refs = values.iter().map(|value| &**value as &(dyn ToSql + Sync));
            let refs: Vec<_> = refs.collect();
            session.client().query(&text, &refs).await
        })
    }

    fn count_changed(
        &self,
        text: &str,
        mut values: Vec<StatementParameter>,
    ) -> Result<u64, FrontierError> {
        values.insert(0, Box::new(self.crawl));
        let (session, text) = (Arc::clone(&self.session), text.to_owned());
        self.thread.run(async move {
            let refs = values.iter().map(|value| &**value as &(dyn ToSql + Sync));
            let refs: Vec<_> = refs.collect();
            session.client().execute(&text, &refs).await
        })
    }

    /// Returns the rows of the given buckets in this server group.
    pub(super) fn rows(&self, buckets: &[i32]) -> Result<Vec<BucketRow>, FrontierError> {
        let text = "SELECT b, home, moving_to, epoch FROM crawl_frontier.bucket
            WHERE crawl = $1 AND b = ANY($2) ORDER BY b";
        let rows = self.read(text, params![buckets.to_vec()])?;
        let row = |row| {
            let mut reader = ColumnReader::new(row);
            Some(BucketRow {
                b: reader.next()?,
                home: reader.next()?,
                moving_to: reader.next()?,
                epoch: reader.next()?,
            })
        };
        let rows: Option<Vec<_>> = rows.iter().map(row).collect();
        rows.ok_or_else(|| self.corrupt())
    }

    /// Marks buckets of this server group as moving to another group. Marks either all of them or
    /// none.
    pub(super) fn mark(&self, buckets: &[i32], to: i32) -> Result<(), SharedCrawlError> {
        let (session, crawl, home) = (Arc::clone(&self.session), self.crawl, self.number);
        let buckets = buckets.to_vec();
        let conflict = self.thread.run(async move {
            let client = session.client();
            client.batch_execute("BEGIN").await?;
            // Lock the crawl's row, like the transaction that lists buckets to reopen. So that
            // transaction has either committed already, or will see the marks.
            let text = "UPDATE crawl_frontier.crawl SET map = map + 1 WHERE number = $1";
            client.execute(text, &[&crawl]).await?;
            let text = "SELECT b, moving_to, home FROM crawl_frontier.bucket
                WHERE crawl = $1 AND b = ANY($2) ORDER BY b FOR UPDATE";
            for row in client.query(text, &[&crawl, &buckets]).await? {
                let (b, marked): (i32, Option<i32>) = (row.try_get(0)?, row.try_get(1)?);
                let at: i32 = row.try_get(2)?;
                if marked.is_some_and(|marked| marked != to) || at != home {
                    client.batch_execute("ROLLBACK").await?;
                    let to = marked.filter(|to| *to >= 0);
                    return Ok(Some((b, to)));
                }
            }
            let text = "UPDATE crawl_frontier.bucket SET moving_to = $3
                WHERE crawl = $1 AND b = ANY($2)";
            client.execute(text, &[&crawl, &buckets, &to]).await?;
            client.batch_execute("COMMIT").await?;
            Ok(None)
        })?;
        match conflict {
            None => Ok(()),
            Some((bucket, to)) => Err(SharedCrawlError::BucketMoves { bucket, to }),
        }
    }

    /// Makes the mover with the id `life` the owner of each given bucket that no longer has an
    /// owner. Returns these buckets.
    pub(super) fn take(
        &self,
        buckets: &[i32],
        to: i32,
        life: &str,
    ) -> Result<Vec<BucketBetweenServerGroups>, FrontierError> {
        let text = "WITH held AS (SELECT b FROM crawl_frontier.bucket
                WHERE crawl = $1 AND b = ANY($2) AND home = $3 AND moving_to = $4
                    AND lease_until <= clock_timestamp() ORDER BY b FOR UPDATE)
            UPDATE crawl_frontier.bucket k SET owner = $5, lease_until = '-infinity'
            FROM held WHERE k.crawl = $1 AND k.b = held.b
            RETURNING k.b, k.epoch, k.seq, k.pending, k.deferred, k.fetched, k.failed, k.excluded";
        let life = life.to_owned();
        let rows = self.read(text, params![buckets.to_vec(), self.number, to, life])?;
        let taken_bucket = |row| {
            let ((b, epoch), seq, totals) = ColumnReader::new(row).bucket()?;
            Some(BucketBetweenServerGroups {
                b,
                epoch,
                seq,
                totals,
            })
        };
        let buckets: Option<Vec<_>> = rows.iter().map(taken_bucket).collect();
        buckets.ok_or_else(|| self.corrupt())
    }

    /// Fails if any of the buckets is no longer marked as moving to the server group `to`.
    pub(super) fn check_marked(&self, buckets: &[i32], to: i32) -> Result<(), SharedCrawlError> {
        let rows = self.rows(buckets)?;
        let unmarked = rows
            .iter()
            .find(|row| row.home != self.number || row.moving_to != Some(to));
        match unmarked {
            None => Ok(()),
            Some(row) => Err(SharedCrawlError::BucketMoves {
                bucket: row.b,
                to: None,
            }),
        }
    }

    /// Claims the row of a bucket for the mover with the id `life`, if another server group serves
    /// the bucket. Returns false if this group serves it.
    pub(super) fn claim(&self, b: i32, life: &str) -> Result<bool, FrontierError> {
        let text = "UPDATE crawl_frontier.bucket SET owner = $4, lease_until = '-infinity'
            WHERE crawl = $1 AND b = $2 AND home <> $3";
        let claimed = self.count_changed(text, params![b, self.number, life.to_owned()])?;
        Ok(claimed == 1)
    }

    /// Returns whether the mover with the id `life` has claimed a bucket's row.
    pub(super) fn is_claimed(&self, b: i32, life: &str) -> Result<bool, FrontierError> {
        let text = "SELECT 1 FROM crawl_frontier.bucket
            WHERE crawl = $1 AND b = $2 AND home <> $3 AND owner = $4";
        let values = params![b, self.number, life.to_owned()];
        Ok(!self.read(text, values)?.is_empty())
    }

    /// Returns whether a bucket is unchanged since it was taken, and is still marked as moving to
    /// the server group `to`.
    pub(super) fn is_as_taken(
        &self,
        bucket: &BucketBetweenServerGroups,
        to: i32,
        life: &str,
    ) -> Result<bool, FrontierError> {
        let text = "SELECT 1 FROM crawl_frontier.bucket
            WHERE crawl = $1 AND b = $2 AND home = $3 AND moving_to = $4 AND owner = $5
                AND epoch = $6";
        let life = life.to_owned();
        let values = params![bucket.b, self.number, to, life, bucket.epoch];
        Ok(!self.read(text, values)?.is_empty())
    }

    /// Removes the rows of a bucket that another server group serves. Stops if the owner in the
    /// bucket's row is no longer `owner`.
    pub(super) fn remove_rows(&self, b: i32, owner: &str) -> Result<(), FrontierError> {
        for table in &COPIED {
            let text = table.remove();
            loop {
                let values = params![b, self.number, owner.to_owned(), PART_ROWS];
                let removed = self.count_changed(&text, values)?;
                if removed < PART_ROWS.unsigned_abs() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Copies the rows of a bucket to another server group. Rows are written only while the mover
    /// with the id `life` has claimed the bucket's row there.
    pub(super) fn copy_rows(
        &self,
        target: &ServerGroupConnection,
        b: i32,
        life: &str,
    ) -> Result<(), FrontierError> {
        for table in &COPIED {
            let mut last = Some((i64::MIN, i64::MIN));
            while let Some(after) = last {
                let (json, count, key) = self.read_part(table, b, after)?;
                if count > 0 {
                    let values = params![b, target.number, life.to_owned(), json];
                    target.count_changed(&table.put(), values)?;
                }
                last = key.filter(|_| count == PART_ROWS);
            }
        }
        Ok(())
    }

    /// Reads up to [`PART_ROWS`] rows of a bucket from a table, after the key `(first, second)`.
    /// Returns the rows as JSON, their number, and the last key.
    #[expect(clippy::type_complexity, reason = "it is parsed by its reader")]
    fn read_part(
        &self,
        table: &CopiedTable,
        b: i32,
        (first, second): (i64, i64),
    ) -> Result<(String, i64, Option<(i64, i64)>), FrontierError> {
        let rows = self.read(&table.read(), params![b, first, second, PART_ROWS])?;
        let part = rows.first().and_then(|row| {
            let mut reader = ColumnReader::new(row);
            let (json, count) = (reader.next()?, reader.next()?);
            let (first, last): (Option<i64>, Option<i64>) = (reader.next()?, reader.next()?);
            Some((json, count, first.zip(last)))
        });
        part.ok_or_else(|| {
            let message = format!("a row of crawl_frontier.{}", table.name);
            self.thread.corrupt(&message)
        })
    }

    /// Counts the rows of a bucket's URLs in each state.
    pub(super) fn count(&self, b: i32) -> Result<CommittedUrlCounts, FrontierError> {
        let text = "SELECT count(*) FILTER (WHERE state = 0), count(*) FILTER (WHERE state = 1),
                count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3),
                count(*) FILTER (WHERE state = 4)
            FROM crawl_frontier.url WHERE crawl = $1 AND b = $2";
        let rows = self.read(text, params![b])?;
        let totals = rows.first().and_then(|row| ColumnReader::new(row).totals());
        totals.ok_or_else(|| self.corrupt())
    }

    /// Makes this server group serve a bucket whose rows were copied to it. Returns the bucket's
    /// new epoch, or `None` if its row is no longer claimed.
    pub(super) fn serve(
        &self,
        bucket: &BucketBetweenServerGroups,
        life: &str,
    ) -> Result<Option<i64>, FrontierError> {
        let text = "WITH locked AS (
                SELECT number FROM crawl_frontier.crawl WHERE number = $1 FOR UPDATE),
            served AS (
                UPDATE crawl_frontier.bucket SET home = $3, moving_to = NULL, owner = '',
                    epoch = greatest(epoch, $5::bigint) + 1, seq = greatest(seq, $6::bigint),
                    lease_until = '-infinity', pending = $7, deferred = $8, fetched = $9,
                    failed = $10, excluded = $11
                FROM locked WHERE crawl = number AND b = $2 AND home <> $3 AND owner = $4
                RETURNING epoch),
            told AS (UPDATE crawl_frontier.crawl SET map = map + 1
                WHERE number = $1 AND EXISTS (SELECT 1 FROM served))
            SELECT epoch FROM served";
        let CommittedUrlCounts {
            pending,
            deferred,
            fetched,
            failed,
            excluded,
        } = bucket.totals;
        let values = params![
            bucket.b,
            self.number,
            life.to_owned(),
            bucket.epoch,
            bucket.seq as i64,
            pending as i64,
            deferred as i64,
            fetched as i64,
            failed as i64,
            excluded as i64,
        ];
        let rows = self.read(text, values)?;
        Ok(rows.first().and_then(|row| ColumnReader::new(row).next()))
    }

    /// Records which server group serves a bucket, unless this group knows a later epoch.
    pub(super) fn learn_home(&self, b: i32, home: i32, epoch: i64) -> Result<(), FrontierError> {
        // The list of URLs to reopen was moved with the bucket, so the statement deletes it here.
        let text = "WITH locked AS (
                SELECT number FROM crawl_frontier.crawl WHERE number = $1 FOR UPDATE),
            learned AS (
                UPDATE crawl_frontier.bucket SET home = $3, epoch = $4, moving_to = NULL,
                    owner = '', lease_until = '-infinity', pending = 0, deferred = 0, fetched = 0,
                    failed = 0, excluded = 0
                FROM locked WHERE crawl = number AND b = $2 AND epoch < $4 RETURNING b),
            gone AS (DELETE FROM crawl_frontier.bucket_to_reopen
                WHERE crawl = $1 AND b IN (SELECT b FROM learned))
            UPDATE crawl_frontier.crawl SET map = map + 1
            WHERE number = $1 AND EXISTS (SELECT 1 FROM learned)";
        self.count_changed(text, params![b, home, epoch]).map(drop)
    }

    /// Forwards the links to hosts of a bucket to the server group that serves the bucket.
    pub(super) fn forward_links(
        &self,
        b: i32,
        target: &ServerGroupConnection,
    ) -> Result<(), FrontierError> {
        loop {
            let (session, crawl, group) = (Arc::clone(&self.session), self.crawl, self.number);
            let rows = self.thread.run(async move {
                let buckets = vec![b];
                let values: [&(dyn ToSql + Sync); 4] = [&crawl, &buckets, &group, &PART_ROWS];
                session.query(SqlStatement::ForeignLinks, &values).await
            })?;
            let Some(row) = rows.first() else {
                return Ok(());
            };
            let links = ColumnReader::new(row).foreign_links();
            let links = links.ok_or_else(|| self.thread.corrupt("a row of crawl_frontier.link"))?;
            if links.home != target.number {
                // Another mover was faster, and another server group serves the bucket now. The
                // other mover forwards the links.
                return Ok(());
            }
            let (session, crawl, json) = (Arc::clone(&target.session), target.crawl, links.json);
            target.thread.run(async move {
                let values: [&(dyn ToSql + Sync); 2] = [&crawl, &json];
                session.execute(SqlStatement::ForwardLinks, &values).await
            })?;
            let (session, crawl) = (Arc::clone(&self.session), self.crawl);
            let (b, sender, number) = (links.b, links.sender, links.number);
            self.thread.run(async move {
                let values: [&(dyn ToSql + Sync); 4] = [&crawl, &b, &sender, &number];
                session.execute(SqlStatement::TakeLinks, &values).await
            })?;
        }
    }

    /// Marks a bucket as staying in this server group. Other moves of the bucket may still be in
    /// progress.
    pub(super) fn mark_back(&self, b: i32) -> Result<(), FrontierError> {
        let text = "UPDATE crawl_frontier.bucket SET moving_to = -1
            WHERE crawl = $1 AND b = $2 AND home = $3 AND moving_to IS NOT NULL";
        self.count_changed(text, params![b, self.number]).map(drop)
    }

    /// Removes the mark of a move, so that this server group serves the bucket again.
    pub(super) fn unmark(&self, b: i32) -> Result<(), FrontierError> {
        let text = "WITH locked AS (
                SELECT number FROM crawl_frontier.crawl WHERE number = $1 FOR UPDATE),
            stays AS (
                UPDATE crawl_frontier.bucket SET moving_to = NULL
                FROM locked WHERE crawl = number AND b = $2 AND home = $3 AND moving_to = -1
                RETURNING b)
            UPDATE crawl_frontier.crawl SET map = map + 1
            WHERE number = $1 AND EXISTS (SELECT 1 FROM stays)";
        self.count_changed(text, params![b, self.number]).map(drop)
    }
}
