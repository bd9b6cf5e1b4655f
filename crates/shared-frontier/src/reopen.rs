//! A worker whose directory is lost: the URLs that it settled are to be fetched again.

use tokio_postgres::Client;

use crate::connection::{Answer, connect};
use crate::credentials::Credentials;
use crate::error::OpenError;
use crate::overview::begin;

/// Counts of a worker whose directory is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostWorker {
    /// Rows of `pages.jsonl` that it had committed.
    pub pages: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Buckets of the crawl whose owners have yet to look for URLs that it settled.
    pub buckets_to_reopen: u64,
}

/// What the engine says of a worker.
enum Found {
    Nothing,
    Alive,
    Lost(LostWorker),
}

/// Has the URLs that a worker settled handed back, since its directory is lost: those that it
/// fetched or gave up are pending again, those that it excluded get a row elsewhere. Its name is
/// free for a worker with an empty directory, and its pages count against no budget of the crawl.
///
/// All of that is one small transaction, which notes the buckets that may hold such URLs: their
/// owners look for them, part by part, whoever owns them by then. So the call may be repeated.
///
/// # Errors
/// [`OpenError::WorkerAlive`] while its lease holds, [`OpenError::NoSuchWorker`], and those of the
/// engine.
pub fn reopen(
    url: &str,
    credentials: &Credentials,
    crawl: &str,
    worker: &str,
) -> Result<LostWorker, OpenError> {
    let (thread, config) = begin(url, credentials)?;
    let names = (crawl.to_owned(), worker.to_owned());
    let found = thread.run(async move {
        let client = connect(&config).await?;
        client.batch_execute("BEGIN").await?;
        let found = give_up(&client, &names.0, &names.1).await?;
        client.batch_execute("COMMIT").await?;
        Ok(found)
    })?;
    match found {
        Found::Lost(lost) => Ok(lost),
        Found::Alive => Err(OpenError::WorkerAlive {
            worker: worker.to_owned(),
            crawl: crawl.to_owned(),
        }),
        Found::Nothing => Err(OpenError::NoSuchWorker {
            address: thread.address.clone(),
            worker: worker.to_owned(),
            crawl: crawl.to_owned(),
        }),
    }
}

/// Gives a worker up, within a transaction: a commit of it that is under way comes before, or fails.
async fn give_up(
    client: &Client,
    crawl: &str,
    worker: &str,
) -> Result<Found, tokio_postgres::Error> {
    // The crawl's row first, as where a name is taken.
    let text = "SELECT number FROM crawl_frontier.crawl WHERE name = $1 FOR UPDATE";
    let Some(row) = client.query_opt(text, &[&crawl]).await? else {
        return Ok(Found::Nothing);
    };
    let crawl: i32 = row.try_get(0)?;
    let text = "SELECT number, lease_until > clock_timestamp(), pages, bytes, commits
        FROM crawl_frontier.worker WHERE crawl = $1 AND name = $2 FOR UPDATE";
    let Some(row) = client.query_opt(text, &[&crawl, &worker]).await? else {
        return Ok(Found::Nothing);
    };
    if row.try_get(1)? {
        return Ok(Found::Alive);
    }
    let count = |at: usize| {
        row.try_get(at)
            .map(|count: i64| u64::try_from(count).unwrap_or(0))
    };
    if count(4)? > 0 || has_files(client, crawl, worker).await? {
        note_buckets(client, crawl, row.try_get(0)?).await?;
        begin_anew(client, crawl, worker).await?;
    }
    let text = "SELECT count(DISTINCT b) FROM crawl_frontier.bucket_to_reopen WHERE crawl = $1";
    let buckets: i64 = client.query_one(text, &[&crawl]).await?.try_get(0)?;
    Ok(Found::Lost(LostWorker {
        pages: count(2)?,
        bytes: count(3)?,
        buckets_to_reopen: u64::try_from(buckets).unwrap_or(0),
    }))
}

/// Returns whether lengths of its files are known. One that was imported has no other commit.
async fn has_files(client: &Client, crawl: i32, worker: &str) -> Answer<bool> {
    let text = "SELECT EXISTS (SELECT 1 FROM crawl_frontier.row_file
        WHERE crawl = $1 AND worker = $2)";
    let row = client.query_one(text, &[&crawl, &worker]).await?;
    row.try_get(0)
}

/// Notes all buckets that may hold URLs that were settled by the worker of this number.
async fn note_buckets(client: &Client, crawl: i32, number: i32) -> Answer<()> {
    let text = "INSERT INTO crawl_frontier.bucket_to_reopen (crawl, b, worker, origin, fingerprint)
        SELECT crawl, b, $2::int, $3::bigint, $3::bigint FROM crawl_frontier.bucket
        WHERE crawl = $1 AND fetched + failed + excluded > 0
        ON CONFLICT DO NOTHING";
    client.execute(text, &[&crawl, &number, &i64::MIN]).await?;
    Ok(())
}

/// Leaves of a worker its name alone, with another number.
async fn begin_anew(client: &Client, crawl: i32, worker: &str) -> Answer<()> {
    // A process that has the name still, by a lease that ended, is no life of it any more.
    let text = "WITH numbered AS (
            UPDATE crawl_frontier.crawl SET workers = workers + 1 WHERE number = $1
            RETURNING workers)
        UPDATE crawl_frontier.worker w SET number = numbered.workers, owner = '', commits = 0,
            lease_until = '-infinity', pages = 0, bytes = 0, pages_before = 0, allowed = 0,
            rests = false, drained = false
        FROM numbered WHERE w.crawl = $1 AND w.name = $2";
    client.execute(text, &[&crawl, &worker]).await?;
    for table in ["row_file", "meta"] {
        let text = format!("DELETE FROM crawl_frontier.{table} WHERE crawl = $1 AND worker = $2");
        client.execute(&text, &[&crawl, &worker]).await?;
    }
    Ok(())
}
