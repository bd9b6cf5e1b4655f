//! A look at the crawls of an engine, by somebody who is no worker.

use std::time::Duration;

use tokio_postgres::Client;

use crate::connection::{Answer, EngineConfig, EngineThread, connect};
use crate::credentials::Credentials;
use crate::error::OpenError;
use crate::open::{engine_at, judged};

/// A crawl that workers share, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrawlOverview {
    /// Its name.
    pub name: String,
    /// The version of the program that its workers run.
    pub program: String,
    /// The number of buckets that its sites are divided into.
    pub buckets: u64,
    /// Those that nobody owns.
    pub free_buckets: u64,
    /// URLs that are pending or leased.
    pub pending: u64,
    /// URLs that were put aside.
    pub deferred: u64,
    /// URLs that were answered.
    pub fetched: u64,
    /// URLs without an answer.
    pub failed: u64,
    /// URLs that are not asked for.
    pub excluded: u64,
    /// Links that their owners have not taken yet.
    pub links_waiting: u64,
    /// Buckets whose owners have yet to look for URLs that are to be fetched again ([`reopen`]).
    ///
    /// [`reopen`]: crate::reopen
    pub buckets_to_reopen: u64,
    /// Its workers, in the order of their names.
    pub workers: Vec<WorkerOverview>,
}

/// A worker of a crawl, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerOverview {
    /// Its name.
    pub name: String,
    /// True if its lease holds.
    pub is_alive: bool,
    /// True if it has nothing to do until something comes.
    pub rests: bool,
    /// True if it was asked to hand its hosts over, and to end.
    pub is_drained: bool,
    /// The time since it was heard of last.
    pub heard: Duration,
    /// The time since its life began.
    pub age: Duration,
    /// Buckets that it owns.
    pub buckets: u64,
    /// URLs pending in them.
    pub pending: u64,
    /// Rows of `pages.jsonl`, over all its lives.
    pub pages: u64,
    /// Those of this life.
    pub pages_of_life: u64,
    /// Bytes of bodies, over all its lives.
    pub bytes: u64,
}

/// The crawls of an engine, or the one of this name, in the order of their names.
///
/// # Errors
/// [`OpenError`] says what stands in the way.
pub fn overview(
    url: &str,
    credentials: &Credentials,
    crawl: Option<&str>,
) -> Result<Vec<CrawlOverview>, OpenError> {
    let (thread, config) = begin(url, credentials)?;
    let wanted = crawl.map(str::to_owned);
    Ok(thread.run(async move {
        let client = connect(&config).await?;
        let mut crawls = Vec::new();
        for (number, mut crawl) in crawls_of(&client, wanted.as_deref()).await? {
            crawl.workers = workers_of(&client, number).await?;
            crawls.push(crawl);
        }
        Ok(crawls)
    })?)
}

/// Asks a worker to hand its hosts over to the others, and to end. Returns whether there is one of
/// that name that lives.
///
/// # Errors
/// [`OpenError`] says what stands in the way.
pub fn drain(
    url: &str,
    credentials: &Credentials,
    crawl: &str,
    worker: &str,
) -> Result<bool, OpenError> {
    let (thread, config) = begin(url, credentials)?;
    let (crawl, worker) = (crawl.to_owned(), worker.to_owned());
    let asked = thread.run(async move {
        let client = connect(&config).await?;
        let text = "UPDATE crawl_frontier.worker w SET drained = true
            FROM crawl_frontier.crawl c
            WHERE c.name = $1 AND w.crawl = c.number AND w.name = $2
                AND w.lease_until > clock_timestamp()";
        client.execute(text, &[&crawl, &worker]).await
    })?;
    Ok(asked > 0)
}

/// Removes a crawl with all that is stored of it. No worker is at work on it.
pub(crate) fn remove(url: &str, credentials: &Credentials, crawl: &str) -> Result<(), OpenError> {
    let (thread, config) = begin(url, credentials)?;
    let crawl = crawl.to_owned();
    thread.run(async move {
        let client = connect(&config).await?;
        for table in [
            "bucket",
            "bucket_to_reopen",
            "host",
            "link",
            "meta",
            "origin",
            "row_file",
            "url",
            "visit",
            "worker",
        ] {
            let text = format!(
                "DELETE FROM crawl_frontier.{table} t USING crawl_frontier.crawl c
                WHERE c.name = $1 AND t.crawl = c.number"
            );
            client.execute(&text, &[&crawl]).await?;
        }
        let text = "DELETE FROM crawl_frontier.crawl WHERE name = $1";
        client.execute(text, &[&crawl]).await
    })?;
    Ok(())
}

/// The engine at a connection string, with the tables that this program reads.
pub(crate) fn begin(
    url: &str,
    credentials: &Credentials,
) -> Result<(EngineThread, EngineConfig), OpenError> {
    let (thread, config) = engine_at(url, credentials)?;
    judged(&thread, &config)?;
    Ok((thread, config))
}

async fn crawls_of(client: &Client, name: Option<&str>) -> Answer<Vec<(i32, CrawlOverview)>> {
    let text = "SELECT c.number, c.name, c.program, c.buckets::bigint,
            count(*) FILTER (WHERE k.lease_until <= clock_timestamp()),
            sum(k.pending)::bigint, sum(k.deferred)::bigint, sum(k.fetched)::bigint,
            sum(k.failed)::bigint, sum(k.excluded)::bigint,
            (SELECT count(*) FROM crawl_frontier.link l WHERE l.crawl = c.number),
            (SELECT count(DISTINCT r.b) FROM crawl_frontier.bucket_to_reopen r WHERE r.crawl = c.number)
        FROM crawl_frontier.crawl c JOIN crawl_frontier.bucket k ON k.crawl = c.number
        WHERE $1::text IS NULL OR c.name = $1 GROUP BY c.number ORDER BY c.name";
    let rows = client.query(text, &[&name]).await?;
    let crawl = |row: &tokio_postgres::Row| {
        let count = |at: usize| {
            row.try_get(at)
                .map(|count: i64| u64::try_from(count).unwrap_or(0))
        };
        let crawl = CrawlOverview {
            name: row.try_get(1)?,
            program: row.try_get(2)?,
            buckets: count(3)?,
            free_buckets: count(4)?,
            pending: count(5)?,
            deferred: count(6)?,
            fetched: count(7)?,
            failed: count(8)?,
            excluded: count(9)?,
            links_waiting: count(10)?,
            buckets_to_reopen: count(11)?,
            workers: Vec::new(),
        };
        Ok((row.try_get(0)?, crawl))
    };
    rows.iter().map(crawl).collect()
}

async fn workers_of(client: &Client, crawl: i32) -> Answer<Vec<WorkerOverview>> {
    let text = "SELECT w.name, w.lease_until > clock_timestamp(), w.rests, w.drained,
            (extract(epoch FROM clock_timestamp() - w.heard) * 1000)::bigint,
            (extract(epoch FROM clock_timestamp() - w.began) * 1000)::bigint,
            count(k.b), coalesce(sum(k.pending), 0)::bigint, w.pages, w.pages - w.pages_before,
            w.bytes
        FROM crawl_frontier.worker w LEFT JOIN crawl_frontier.bucket k
            ON k.crawl = w.crawl AND k.owner = w.owner AND k.lease_until > clock_timestamp()
        WHERE w.crawl = $1 GROUP BY w.crawl, w.name ORDER BY w.name";
    let rows = client.query(text, &[&crawl]).await?;
    let worker = |row: &tokio_postgres::Row| {
        let count = |at: usize| {
            row.try_get(at)
                .map(|count: i64| u64::try_from(count).unwrap_or(0))
        };
        Ok(WorkerOverview {
            name: row.try_get(0)?,
            is_alive: row.try_get(1)?,
            rests: row.try_get(2)?,
            is_drained: row.try_get(3)?,
            heard: Duration::from_millis(count(4)?),
            age: Duration::from_millis(count(5)?),
            buckets: count(6)?,
            pending: count(7)?,
            pages: count(8)?,
            pages_of_life: count(9)?,
            bytes: count(10)?,
        })
    };
    rows.iter().map(worker).collect()
}
