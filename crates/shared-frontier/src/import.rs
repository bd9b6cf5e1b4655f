//! Imports a crawl from another frontier into a database server.

use std::sync::Arc;

use crawl_frontier::FrontierError;
use crawl_frontier::parts::{CommittedUrlCounts, CrawlTransferItem};
use crawl_frontier::worker_frontier::{
    BoxError, CrawlMoveError, CrawlMoveTarget, IncomingCrawl, WorkerOfImportedCrawl,
};
use crawl_weburl::Origin;
use foldhash::{HashSet, HashSetExt};
use tokio_postgres::Client;

use crate::commit_statements::{CRAWL_META, TransactionColumns};
use crate::connection::{
    DatabaseResult, DatabaseServerConfig, DatabaseSession, DatabaseThread, connect,
};
use crate::crawl_overview::remove;
use crate::database_password::PasswordSources;
use crate::database_server_groups::MAX_GROUPS;
use crate::error::SharedCrawlError;
use crate::open::new_life;
use crate::open_groups::{NewServerGroup, crawl};
use crate::options::DEFAULT_BUCKETS;
use crate::row_codec::{ColumnReader, RowKeyBuilder, UrlKey};
use crate::server_setup::{judged, server_at};

/// The number of URLs and other rows sent in one transaction.
const BATCH_ROWS: usize = 2_000;

/// The number of the worker that an import creates: the first worker of the first server group.
const IMPORTER: i32 = MAX_GROUPS as i32;

/// A crawl that is being moved into a database server.
///
/// Until the crawl is complete, it is stored under another name, so that no worker finds an
/// incomplete crawl. If a crash leaves an incomplete crawl, the next import under the same name
/// removes it.
struct Import {
    thread: DatabaseThread,
    config: DatabaseServerConfig,
    session: Arc<DatabaseSession>,
    url: String,
    credentials: PasswordSources,
    name: String,
    crawl: i32,
    keys: RowKeyBuilder,
    batch: TransactionColumns,
    rows: usize,
    /// The keys of the URLs in the current batch. A batch must not have two rows with the same key,
    /// because one statement can't write a row twice.
    urls: HashSet<UrlKey>,
    /// The origins that have a row already, by bucket and number.
    origins: HashSet<(i32, i64)>,
    seq: u64,
    meta: Vec<(String, Vec<u8>)>,
}

impl Import {
    /// Begins moving a crawl into the database server that the connection string `url` names. The
    /// database server must not have a crawl of that name yet.
    fn begin(
        url: &str,
        credentials: &PasswordSources,
        name: &str,
    ) -> Result<Import, SharedCrawlError> {
        let (thread, config) = server_at(url, credentials)?;
        let (client, _) = judged(&thread, &config)?;
        let wanted = name.to_owned();
        let existing = thread.run(async move {
            let text = "SELECT 1 FROM crawl_frontier.crawl WHERE name = $1";
            Ok((client.query_opt(text, &[&wanted]).await?, client))
        });
        let (existing, client) = existing?;
        if existing.is_some() {
            return Err(SharedCrawlError::CrawlExists {
                address: thread.address.clone(),
                crawl: name.to_owned(),
            });
        }
        let hidden = hidden(name);
        remove(url, credentials, &hidden)?;
        let (row, session) = thread.run({
            let config = config.clone();
            async move {
                let row = crawl(&client, &hidden, &NewServerGroup::alone(DEFAULT_BUCKETS)).await?;
                Ok((row, DatabaseSession::open(&config).await?))
            }
        })?;
        Ok(Import {
            thread,
            config,
            session,
            url: url.to_owned(),
            credentials: credentials.clone(),
            name: name.to_owned(),
            crawl: row.number,
            keys: RowKeyBuilder {
                key: row.key,
                buckets: row.buckets,
            },
            batch: TransactionColumns::default(),
            rows: 0,
            urls: HashSet::new(),
            origins: HashSet::new(),
            seq: 0,
            meta: Vec::new(),
        })
    }

    fn origin(&mut self, b: i32, number: i64, origin: &Origin) {
        if self.origins.insert((b, number)) {
            self.batch.origin(b, number, origin, 0);
        }
    }

    fn send(&mut self) -> Result<(), FrontierError> {
        let batch = std::mem::take(&mut self.batch);
        let (session, crawl) = (Arc::clone(&self.session), self.crawl);
        (self.rows, self.urls) = (0, HashSet::new());
        self.thread
            .run(async move { batch.send_ownerless(&session, crawl).await })
    }

    /// Gives the crawl its name if the database server has the expected number of URLs in each
    /// state. A worker can then resume the crawl as after a crash, with its own name and the id of
    /// its last process.
    fn finish(
        mut self,
        worker: WorkerOfImportedCrawl,
        expected: CommittedUrlCounts,
    ) -> Result<(), SharedCrawlError> {
        self.send()?;
        let (config, crawl, name) = (self.config.clone(), self.crawl, self.name.clone());
        let meta = std::mem::take(&mut self.meta);
        let totals = self.thread.run(async move {
            let client = connect(&config).await?;
            client.batch_execute("BEGIN").await?;
            let totals = count(&client, crawl).await?;
            if totals != Some(expected) {
                client.batch_execute("ROLLBACK").await?;
                return Ok(totals);
            }
            put_worker(&client, crawl, &worker, &meta).await?;
            let text = "UPDATE crawl_frontier.crawl SET name = $2 WHERE number = $1";
            client.execute(text, &[&crawl, &name]).await?;
            client.batch_execute("COMMIT").await?;
            Ok(totals)
        })?;
        let totals = totals.ok_or_else(|| self.thread.corrupt("a row of crawl_frontier.bucket"))?;
        if totals == expected {
            return Ok(());
        }
        self.give_up()?;
        Err(SharedCrawlError::Incomplete {
            expected,
            found: totals,
        })
    }

    /// Removes the unfinished crawl from the database server.
    fn give_up(self) -> Result<(), SharedCrawlError> {
        remove(&self.url, &self.credentials, &hidden(&self.name))
    }
}

impl IncomingCrawl for Import {
    fn put(&mut self, part: CrawlTransferItem) -> Result<(), FrontierError> {
        match part {
            CrawlTransferItem::Url { url, mut record } => {
                let key = self.keys.url(&url, self.keys.key.fingerprint(&url));
                if !self.urls.insert(key) {
                    return Ok(());
                }
                self.seq += 1;
                record.place.seq = self.seq;
                self.origin(key.b, key.origin, &url.origin());
                self.batch.record(key, &url, &record, IMPORTER);
            }
            CrawlTransferItem::Host { host, wake, bytes } => {
                let b = self.keys.bucket(&host.site());
                let number = self.keys.number(host.as_str());
                self.batch.host(b, number, host.as_str(), (wake, bytes));
            }
            CrawlTransferItem::Robots { origin, bytes } => {
                let b = self.keys.bucket(&origin.host_key().site());
                let number = self.keys.number(origin.as_str());
                self.origin(b, number, &origin);
                self.batch.robots(b, number, &origin, bytes);
            }
            CrawlTransferItem::Visit(visit) => {
                let fingerprint = self.keys.key.fingerprint(&visit.url);
                let key = self.keys.url(&visit.url, fingerprint);
                self.batch.visit(key, &visit);
            }
            CrawlTransferItem::Meta { name, bytes } => self.meta.push((name, bytes)),
        }
        self.rows += 1;
        match self.rows >= BATCH_ROWS {
            true => self.send(),
            false => Ok(()),
        }
    }

    fn finish(
        self: Box<Self>,
        worker: WorkerOfImportedCrawl,
        expected: CommittedUrlCounts,
    ) -> Result<(), CrawlMoveError> {
        Import::finish(*self, worker, expected).map_err(|why| match why {
            SharedCrawlError::Incomplete { .. } => CrawlMoveError::Incomplete(why.into()),
            why => CrawlMoveError::Failed(why.into()),
        })
    }

    fn give_up(self: Box<Self>) -> Result<(), BoxError> {
        Ok(Import::give_up(*self)?)
    }
}

/// The target of an import: a database server, and the crawl's name there.
#[derive(Clone, Debug)]
pub struct ImportTargetSettings {
    /// The database server's connection string.
    pub url: String,
    /// The source of the database server's password.
    pub credentials: PasswordSources,
    /// The name of the crawl in the database server.
    pub crawl: String,
}

impl CrawlMoveTarget for ImportTargetSettings {
    fn new_life(&self, worker: &str) -> String {
        new_life(worker)
    }

    fn is_moved(&self, life: &str) -> Result<bool, BoxError> {
        let (thread, config) = server_at(&self.url, &self.credentials)?;
        let (client, _) = judged(&thread, &config)?;
        let (crawl, life) = (self.crawl.clone(), life.to_owned());
        let row = thread.run(async move {
            let text = "SELECT 1 FROM crawl_frontier.worker w
            JOIN crawl_frontier.crawl c ON c.number = w.crawl WHERE c.name = $1 AND w.owner = $2";
            Ok(client.query_opt(text, &[&crawl, &life]).await?.is_some())
        });
        Ok(row.map_err(SharedCrawlError::from)?)
    }

    fn begin(&self) -> Result<Box<dyn IncomingCrawl>, BoxError> {
        let import = Import::begin(&self.url, &self.credentials, &self.crawl)?;
        Ok(Box::new(import))
    }
}

/// Returns the temporary name under which a crawl is stored while it is being imported.
fn hidden(name: &str) -> String {
    format!("import of {name}, not whole")
}

/// Stores the number of URLs in each bucket and the number of pending URLs of each origin. Returns
/// the totals of all buckets.
async fn count(client: &Client, crawl: i32) -> DatabaseResult<Option<CommittedUrlCounts>> {
    let of_origins = "UPDATE crawl_frontier.origin o SET pending = u.pending
        FROM (SELECT b, origin, count(*) AS pending FROM crawl_frontier.url
            WHERE crawl = $1 AND state = 0 GROUP BY b, origin) u
        WHERE o.crawl = $1 AND o.b = u.b AND o.origin = u.origin";
    client.execute(of_origins, &[&crawl]).await?;
    let of_buckets = "UPDATE crawl_frontier.bucket k SET seq = u.seq, pending = u.pending,
            deferred = u.deferred, fetched = u.fetched, failed = u.failed, excluded = u.excluded
        FROM (SELECT b, max(seq) AS seq,
                count(*) FILTER (WHERE state = 0) AS pending,
                count(*) FILTER (WHERE state = 1) AS deferred,
                count(*) FILTER (WHERE state = 2) AS fetched,
                count(*) FILTER (WHERE state = 3) AS failed,
                count(*) FILTER (WHERE state = 4) AS excluded
            FROM crawl_frontier.url WHERE crawl = $1 GROUP BY b) u
        WHERE k.crawl = $1 AND k.b = u.b";
    client.execute(of_buckets, &[&crawl]).await?;
    let sums = "SELECT sum(pending)::bigint, sum(deferred)::bigint, sum(fetched)::bigint,
            sum(failed)::bigint, sum(excluded)::bigint
        FROM crawl_frontier.bucket WHERE crawl = $1";
    let row = client.query_one(sums, &[&crawl]).await?;
    Ok(ColumnReader::new(&row).totals())
}

/// Stores a worker whose process has ended, with the lengths of its files and its named values.
async fn put_worker(
    client: &Client,
    crawl: i32,
    worker: &WorkerOfImportedCrawl,
    meta: &[(String, Vec<u8>)],
) -> DatabaseResult<()> {
    let (pages, bytes) = (worker.pages as i64, worker.bytes as i64);
    let text = "INSERT INTO crawl_frontier.worker (crawl, name, owner, lease_until, commits, began,
            heard, pages, bytes, pages_before, allowed, rests, drained, number)
        VALUES ($1, $2, $3, '-infinity', 0, clock_timestamp(), clock_timestamp(), $4::bigint,
            $5::bigint, $4, $4, false, false, $6)";
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 6] = [
        &crawl,
        &worker.name,
        &worker.life,
        &pages,
        &bytes,
        &IMPORTER,
    ];
    client.execute(text, &params).await?;
    let text = "UPDATE crawl_frontier.crawl SET workers = 1 WHERE number = $1";
    client.execute(text, &[&crawl]).await?;
    let text = "INSERT INTO crawl_frontier.row_file (crawl, worker, file, length)
        VALUES ($1, $2, $3, $4)";
    for (file, length) in &worker.marks {
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&crawl, &worker.name, file, &(*length as i64)];
        client.execute(text, &params).await?;
    }
    let text = "INSERT INTO crawl_frontier.meta (crawl, worker, name, value)
        VALUES ($1, $2, $3, $4)";
    for (name, bytes) in meta {
        let owner = match name.starts_with(CRAWL_META) {
            true => "",
            false => &worker.name,
        };
        client.execute(text, &[&crawl, &owner, name, bytes]).await?;
    }
    Ok(())
}
