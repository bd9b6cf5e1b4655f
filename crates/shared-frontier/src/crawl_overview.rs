//! An overview of the crawls on database servers, for callers that are not workers.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio_postgres::Client;

use crate::connection::{DatabaseResult, DatabaseServerConfig, DatabaseThread, connect};
use crate::crawl_exporter::EXPORTED;
use crate::database_password::PasswordSources;
use crate::error::SharedCrawlError;
use crate::server_setup::{judged, server_at};

/// A shared crawl at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrawlOverview {
    /// The crawl's name.
    pub name: String,
    /// The program version that the crawl's workers run.
    pub program: String,
    /// The number of buckets that the crawl's sites are divided into.
    pub buckets: u64,
    /// The number of buckets without an owner.
    pub free_buckets: u64,
    /// The number of URLs that are pending or leased.
    pub pending: u64,
    /// The number of deferred URLs.
    pub deferred: u64,
    /// The number of URLs that were settled with a response.
    pub fetched: u64,
    /// The number of URLs that were settled without a response.
    pub failed: u64,
    /// The number of URLs that are excluded.
    pub excluded: u64,
    /// The number of links that the owners of their hosts have not admitted yet.
    pub links_waiting: u64,
    /// The number of buckets still to be searched for URLs that were settled by a worker whose
    /// directory is lost. These URLs are fetched again ([`reopen`]).
    ///
    /// [`reopen`]: crate::reopen
    pub buckets_to_reopen: u64,
    /// The directory that the crawl was moved to, or `None`. No worker continues a crawl that was
    /// moved to a directory.
    pub exported_to: Option<String>,
    /// The number of the crawl's server groups.
    pub group_count: u64,
    /// The queried server groups, sorted by number.
    pub groups: Vec<ServerGroupOverview>,
    /// The crawl's workers, sorted by name.
    pub workers: Vec<WorkerOverview>,
}

/// A server group of a crawl at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerGroupOverview {
    /// The server group's number, from 0.
    pub number: i32,
    /// The server group's address, without a password.
    pub address: String,
    /// The number of buckets that the server group serves.
    pub buckets: u64,
    /// The number of the server group's buckets that are being moved to another group.
    pub moving: u64,
    /// The number of living workers in the server group.
    pub workers: u64,
    /// The number of pending URLs in the server group's buckets.
    pub pending: u64,
}

/// A worker of a crawl at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerOverview {
    /// The worker's name.
    pub name: String,
    /// The number of the worker's home group.
    pub group: i32,
    /// Whether the worker's lease is valid.
    pub is_alive: bool,
    /// Whether the worker is idle until new links arrive.
    pub rests: bool,
    /// Whether the worker has to hand over its hosts and stop.
    pub is_drained: bool,
    /// The time since the worker's last heartbeat.
    pub heard: Duration,
    /// The time since the worker's current process started.
    pub age: Duration,
    /// The number of buckets that the worker owns.
    pub buckets: u64,
    /// The number of pending URLs in the worker's buckets.
    pub pending: u64,
    /// The number of rows in `pages.jsonl` over all runs of the worker.
    pub pages: u64,
    /// The number of rows in `pages.jsonl` that the worker's current process wrote.
    pub pages_of_life: u64,
    /// The total size of the bodies over all runs of the worker, in bytes.
    pub bytes: u64,
}

/// Returns an overview of each crawl on the database servers at `urls`, sorted by name, or only of
/// the crawl named `crawl`. Adds up the counts of a crawl over the given server groups.
///
/// # Errors
/// [`SharedCrawlError`] gives the reason.
pub fn overview(
    urls: &[String],
    credentials: &PasswordSources,
    crawl: Option<&str>,
) -> Result<Vec<CrawlOverview>, SharedCrawlError> {
    let mut all: BTreeMap<String, CrawlOverview> = BTreeMap::new();
    for url in urls {
        for part in overview_of_server(url, credentials, crawl)? {
            match all.get_mut(&part.name) {
                Some(crawl) => crawl.add(part),
                None => drop(all.insert(part.name.clone(), part)),
            }
        }
    }
    Ok(all.into_values().collect())
}

fn overview_of_server(
    url: &str,
    credentials: &PasswordSources,
    crawl: Option<&str>,
) -> Result<Vec<CrawlOverview>, SharedCrawlError> {
    let (thread, config) = begin(url, credentials)?;
    let wanted = crawl.map(str::to_owned);
    let address = thread.address.clone();
    Ok(thread.run(async move {
        let client = connect(&config).await?;
        let mut crawls = Vec::new();
        for (number, mut crawl) in crawls_of(&client, wanted.as_deref()).await? {
            crawl.workers = workers_of(&client, number).await?;
            for group in &mut crawl.groups {
                group.address.clone_from(&address);
                group.workers = crawl
                    .workers
                    .iter()
                    .filter(|worker| worker.is_alive)
                    .count() as u64;
            }
            crawls.push(crawl);
        }
        Ok(crawls)
    })?)
}

impl CrawlOverview {
    /// Adds the counts of the same crawl in another server group.
    fn add(&mut self, part: CrawlOverview) {
        self.free_buckets += part.free_buckets;
        self.pending += part.pending;
        self.deferred += part.deferred;
        self.fetched += part.fetched;
        self.failed += part.failed;
        self.excluded += part.excluded;
        self.links_waiting += part.links_waiting;
        self.buckets_to_reopen += part.buckets_to_reopen;
        self.exported_to = self.exported_to.take().or(part.exported_to);
        self.group_count = self.group_count.max(part.group_count);
        if self.program.is_empty() {
            self.program = part.program;
        }
        self.groups.extend(part.groups);
        self.groups.sort_by_key(|group| group.number);
        self.workers.extend(part.workers);
        self.workers.sort_by(|a, b| a.name.cmp(&b.name));
    }
}

/// Makes a worker hand its hosts over to the other workers and stop. Returns whether a living
/// worker of that name was found in the named server groups.
///
/// # Errors
/// [`SharedCrawlError`] gives the reason.
pub fn drain(
    urls: &[String],
    credentials: &PasswordSources,
    crawl: &str,
    worker: &str,
) -> Result<bool, SharedCrawlError> {
    for url in urls {
        let (thread, config) = begin(url, credentials)?;
        let (crawl, worker) = (crawl.to_owned(), worker.to_owned());
        let updated = thread.run(async move {
            let client = connect(&config).await?;
            let text = "UPDATE crawl_frontier.worker w SET drained = true
                FROM crawl_frontier.crawl c
                WHERE c.name = $1 AND w.crawl = c.number AND w.name = $2
                    AND w.lease_until > clock_timestamp()";
            client.execute(text, &[&crawl, &worker]).await
        })?;
        if updated > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes a crawl with everything stored for it. No worker may be running on the crawl.
pub(crate) fn remove(
    url: &str,
    credentials: &PasswordSources,
    crawl: &str,
) -> Result<(), SharedCrawlError> {
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
            "worker_home",
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

/// Checks the database server that a connection string names, and returns a thread and a
/// configuration for connections to this server.
pub(crate) fn begin(
    url: &str,
    credentials: &PasswordSources,
) -> Result<(DatabaseThread, DatabaseServerConfig), SharedCrawlError> {
    let (thread, config) = server_at(url, credentials)?;
    judged(&thread, &config)?;
    Ok((thread, config))
}

async fn crawls_of(
    client: &Client,
    name: Option<&str>,
) -> DatabaseResult<Vec<(i32, CrawlOverview)>> {
    let text = "SELECT c.number, c.name, c.program, c.buckets::bigint,
            count(k.b) FILTER (WHERE k.lease_until <= clock_timestamp()),
            coalesce(sum(k.pending), 0)::bigint, coalesce(sum(k.deferred), 0)::bigint,
            coalesce(sum(k.fetched), 0)::bigint, coalesce(sum(k.failed), 0)::bigint,
            coalesce(sum(k.excluded), 0)::bigint,
            (SELECT count(*) FROM crawl_frontier.link l WHERE l.crawl = c.number),
            (SELECT count(DISTINCT r.b) FROM crawl_frontier.bucket_to_reopen r WHERE r.crawl = c.number),
            c.groups::bigint, count(k.b), count(k.moving_to), c.group_number,
            (SELECT m.value FROM crawl_frontier.meta m
                WHERE m.crawl = c.number AND m.worker = '' AND m.name = $2)
        FROM crawl_frontier.crawl c LEFT JOIN crawl_frontier.bucket k
            ON k.crawl = c.number AND k.home = c.group_number
        WHERE $1::text IS NULL OR c.name = $1 GROUP BY c.number ORDER BY c.name";
    let rows = client.query(text, &[&name, &EXPORTED]).await?;
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
            exported_to: row
                .try_get::<_, Option<&[u8]>>(16)?
                .map(|to| String::from_utf8_lossy(to).into_owned()),
            group_count: count(12)?,
            groups: vec![ServerGroupOverview {
                number: row.try_get(15)?,
                address: String::new(),
                buckets: count(13)?,
                moving: count(14)?,
                workers: 0,
                pending: count(5)?,
            }],
            workers: Vec::new(),
        };
        Ok((row.try_get(0)?, crawl))
    };
    rows.iter().map(crawl).collect()
}

async fn workers_of(client: &Client, crawl: i32) -> DatabaseResult<Vec<WorkerOverview>> {
    let text = "SELECT w.name, w.lease_until > clock_timestamp(), w.rests, w.drained,
            (extract(epoch FROM clock_timestamp() - w.heard) * 1000)::bigint,
            (extract(epoch FROM clock_timestamp() - w.began) * 1000)::bigint,
            count(k.b), coalesce(sum(k.pending), 0)::bigint, w.pages, w.pages - w.pages_before,
            w.bytes, (SELECT group_number FROM crawl_frontier.crawl WHERE number = $1)
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
            group: row.try_get(11)?,
        })
    };
    rows.iter().map(worker).collect()
}
