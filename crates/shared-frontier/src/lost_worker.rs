//! Reopens the URLs that a worker settled before its directory was lost. The command only marks the
//! buckets that may contain such URLs. The owners of these buckets find and reopen the URLs later.

use std::time::Duration;

use crawl_frontier::FrontierError;
use tokio_postgres::Client;

use crate::connection::{DatabaseResult, DatabaseServerConfig, DatabaseThread, connect};
use crate::database_password::PasswordSources;
use crate::error::SharedCrawlError;
use crate::open_groups::{ServerGroup, find_groups};

/// Counts of what was lost with a worker's directory (pages, bytes), and of the buckets that have
/// to be searched for URLs to reopen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostDirectoryCounts {
    /// The number of committed rows in the worker's `pages.jsonl`.
    pub pages: u64,
    /// The total size of the worker's bodies, in bytes.
    pub bytes: u64,
    /// The number of the crawl's buckets that may contain URLs settled by the worker. The buckets'
    /// owners still have to search for these URLs.
    pub buckets_to_reopen: u64,
}

/// The outcome of an attempt to reopen a worker's URLs.
enum LostWorkerOutcome {
    Nothing,
    Alive,
    /// Buckets are being moved between server groups, or were moved during the attempt.
    Moves,
    Lost(LostDirectoryCounts),
}

/// The number of attempts while buckets are being moved.
const MAX_TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(200);

/// Reopens the URLs that a worker settled, because its directory is lost: fetched and failed URLs
/// become pending again, and excluded URLs get a row in another worker's files. The name becomes
/// free for a worker with an empty directory, and the worker's pages no longer count against a
/// budget of the crawl.
///
/// If the crawl has one server group, the call is a small transaction that lists the buckets that
/// may contain such URLs. Later the owners of these buckets search them for the URLs, part by part.
/// If the crawl has several groups, the call makes one such transaction in each group. The
/// transaction in the worker's own group comes last, so that an interrupted call can be repeated.
///
/// # Errors
/// [`SharedCrawlError::WorkerAlive`] while the worker's lease is valid,
/// [`SharedCrawlError::NoSuchWorker`], [`SharedCrawlError::BucketsMove`], and errors of the
/// database servers.
pub fn reopen(
    urls: &[String],
    credentials: &PasswordSources,
    crawl: &str,
    worker: &str,
) -> Result<LostDirectoryCounts, SharedCrawlError> {
    let no_such_worker = |address: String| SharedCrawlError::NoSuchWorker {
        address,
        worker: worker.to_owned(),
        crawl: crawl.to_owned(),
    };
    let groups = find_groups(urls, credentials, crawl).map_err(|why| match why {
        SharedCrawlError::NoSuchCrawl { address, .. } => no_such_worker(address),
        why => why,
    })?;
    let groups: Vec<LostWorkerServerGroup> =
        groups.into_iter().map(LostWorkerServerGroup::of).collect();
    let mut home = None;
    for group in &groups {
        if home.is_none() && group.has(worker)? {
            home = Some(group);
        }
    }
    let Some(home) = home else {
        let address = groups.first().map(|group| group.thread.address.clone());
        return Err(no_such_worker(address.unwrap_or_default()));
    };
    for _ in 0..MAX_TRIES {
        match reopen_in(&groups, home, worker)? {
            LostWorkerOutcome::Lost(lost) => return Ok(lost),
            LostWorkerOutcome::Moves => std::thread::sleep(PAUSE),
            LostWorkerOutcome::Nothing => return Err(no_such_worker(home.thread.address.clone())),
            LostWorkerOutcome::Alive => {
                return Err(SharedCrawlError::WorkerAlive {
                    worker: worker.to_owned(),
                    crawl: crawl.to_owned(),
                });
            }
        }
    }
    Err(SharedCrawlError::BucketsMove {
        crawl: crawl.to_owned(),
    })
}

fn reopen_in(
    groups: &[LostWorkerServerGroup],
    home: &LostWorkerServerGroup,
    worker: &str,
) -> Result<LostWorkerOutcome, SharedCrawlError> {
    if groups.len() == 1 {
        return Ok(home.give_up(worker, None)?);
    }
    // From here on the worker can't commit, so it can't settle any more URLs.
    let Some(number) = home.end_life(worker)? else {
        return Ok(LostWorkerOutcome::Alive);
    };
    let maps = || {
        groups
            .iter()
            .map(LostWorkerServerGroup::map)
            .collect::<Result<Vec<_>, _>>()
    };
    let before = maps()?;
    let other_groups = || groups.iter().filter(|group| group.group != home.group);
    for other in other_groups() {
        if !other.note(number)? {
            return Ok(LostWorkerOutcome::Moves);
        }
    }
    // If a bucket was moved from one group to another while the groups listed their buckets, both
    // groups may have missed the bucket.
    if maps()? != before {
        return Ok(LostWorkerOutcome::Moves);
    }
    let at = groups.iter().position(|group| group.group == home.group);
    let map = at.and_then(|at| before.get(at).copied());
    let mut outcome = home.give_up(worker, map)?;
    if let LostWorkerOutcome::Lost(lost) = &mut outcome {
        for other in other_groups() {
            lost.buckets_to_reopen += other.buckets_to_reopen()?;
        }
        if let Some(first) = groups.first() {
            // From now on, a worker with this name may work in any server group.
            first.forget_home(worker)?;
        }
    }
    Ok(outcome)
}

/// A server group of a crawl with a worker that lost its directory.
struct LostWorkerServerGroup {
    group: i32,
    /// The crawl's number in this server group.
    crawl: i32,
    thread: DatabaseThread,
    config: DatabaseServerConfig,
}

impl LostWorkerServerGroup {
    fn of(group: ServerGroup) -> LostWorkerServerGroup {
        LostWorkerServerGroup {
            group: group.crawl.group,
            crawl: group.crawl.number,
            thread: group.server.thread,
            config: group.server.config,
        }
    }

    fn has(&self, worker: &str) -> Result<bool, FrontierError> {
        let (config, crawl, worker) = (self.config.clone(), self.crawl, worker.to_owned());
        self.thread.run(async move {
            let client = connect(&config).await?;
            let text = "SELECT 1 FROM crawl_frontier.worker WHERE crawl = $1 AND name = $2";
            Ok(client.query_opt(text, &[&crawl, &worker]).await?.is_some())
        })
    }

    /// Ends the ownership of a worker whose lease expired, and returns the worker's number. Returns
    /// `None` if the worker is alive.
    fn end_life(&self, worker: &str) -> Result<Option<i32>, FrontierError> {
        let (config, crawl, worker) = (self.config.clone(), self.crawl, worker.to_owned());
        self.thread.run(async move {
            let client = connect(&config).await?;
            let text = "UPDATE crawl_frontier.worker SET owner = ''
                WHERE crawl = $1 AND name = $2 AND lease_until <= clock_timestamp()
                RETURNING number";
            let row = client.query_opt(text, &[&crawl, &worker]).await?;
            row.map(|row| row.try_get(0)).transpose()
        })
    }

    /// Returns how often the map of buckets changed in this server group.
    fn map(&self) -> Result<i64, FrontierError> {
        let (config, crawl) = (self.config.clone(), self.crawl);
        self.thread.run(async move {
            let client = connect(&config).await?;
            let text = "SELECT map FROM crawl_frontier.crawl WHERE number = $1";
            client.query_one(text, &[&crawl]).await?.try_get(0)
        })
    }

    /// Marks the buckets that may contain URLs settled by the worker with the number `number`, so
    /// that their owners reopen these URLs. Marks nothing and returns false if buckets are being
    /// moved.
    fn note(&self, number: i32) -> Result<bool, FrontierError> {
        let (config, crawl) = (self.config.clone(), self.crawl);
        self.thread.run(async move {
            let client = connect(&config).await?;
            client.batch_execute("BEGIN").await?;
            let is_still = lock_map(&client, crawl, None).await?;
            if is_still {
                note_buckets(&client, crawl, number).await?;
            }
            client.batch_execute("COMMIT").await?;
            Ok(is_still)
        })
    }

    /// Declares a worker's settled URLs lost. Returns [`LostWorkerOutcome::Moves`] if buckets are
    /// being moved, or if `map` is given and the map of buckets has another version.
    fn give_up(&self, worker: &str, map: Option<i64>) -> Result<LostWorkerOutcome, FrontierError> {
        let (config, crawl, worker) = (self.config.clone(), self.crawl, worker.to_owned());
        self.thread.run(async move {
            let client = connect(&config).await?;
            client.batch_execute("BEGIN").await?;
            // Lock the crawl's row first. A worker that takes its name locks rows in the same
            // order.
            let outcome = match lock_map(&client, crawl, map).await? {
                true => give_up(&client, crawl, &worker).await?,
                false => LostWorkerOutcome::Moves,
            };
            client.batch_execute("COMMIT").await?;
            Ok(outcome)
        })
    }

    fn buckets_to_reopen(&self) -> Result<u64, FrontierError> {
        let (config, crawl) = (self.config.clone(), self.crawl);
        self.thread.run(async move {
            let client = connect(&config).await?;
            buckets_to_reopen(&client, crawl).await
        })
    }

    /// Removes the stored home of a worker, so that a worker of that name may work in any server
    /// group.
    fn forget_home(&self, worker: &str) -> Result<(), FrontierError> {
        let (config, crawl, worker) = (self.config.clone(), self.crawl, worker.to_owned());
        let forgotten = self.thread.run(async move {
            let client = connect(&config).await?;
            let text = "WITH gone AS (DELETE FROM crawl_frontier.worker_home
                    WHERE crawl = $1 AND name = $2 RETURNING 1)
                UPDATE crawl_frontier.crawl SET homes = homes + 1
                WHERE number = $1 AND EXISTS (SELECT 1 FROM gone)";
            client.execute(text, &[&crawl, &worker]).await
        });
        forgotten.map(drop)
    }
}

/// Locks the row of a crawl, so that no move of buckets can begin. Returns true if no move is in
/// progress, and the map of buckets has the version `map`, if that is given.
async fn lock_map(client: &Client, crawl: i32, map: Option<i64>) -> DatabaseResult<bool> {
    let text = "SELECT map FROM crawl_frontier.crawl WHERE number = $1 FOR UPDATE";
    let current: i64 = client.query_one(text, &[&crawl]).await?.try_get(0)?;
    let text = "SELECT EXISTS (SELECT 1 FROM crawl_frontier.bucket
        WHERE crawl = $1 AND moving_to IS NOT NULL)";
    let is_moving: bool = client.query_one(text, &[&crawl]).await?.try_get(0)?;
    Ok(!is_moving && map.is_none_or(|map| map == current))
}

/// Declares a worker's settled URLs lost, within a transaction. A concurrent commit of the worker
/// either takes effect before this transaction or fails.
async fn give_up(client: &Client, crawl: i32, worker: &str) -> DatabaseResult<LostWorkerOutcome> {
    let text = "SELECT number, lease_until > clock_timestamp(), pages, bytes, commits
        FROM crawl_frontier.worker WHERE crawl = $1 AND name = $2 FOR UPDATE";
    let Some(row) = client.query_opt(text, &[&crawl, &worker]).await? else {
        return Ok(LostWorkerOutcome::Nothing);
    };
    if row.try_get(1)? {
        return Ok(LostWorkerOutcome::Alive);
    }
    let count = |at: usize| {
        row.try_get(at)
            .map(|count: i64| u64::try_from(count).unwrap_or(0))
    };
    if count(4)? > 0 || has_files(client, crawl, worker).await? {
        note_buckets(client, crawl, row.try_get(0)?).await?;
        reset_worker(client, crawl, worker).await?;
    }
    Ok(LostWorkerOutcome::Lost(LostDirectoryCounts {
        pages: count(2)?,
        bytes: count(3)?,
        buckets_to_reopen: buckets_to_reopen(client, crawl).await?,
    }))
}

async fn buckets_to_reopen(client: &Client, crawl: i32) -> DatabaseResult<u64> {
    let text = "SELECT count(DISTINCT b) FROM crawl_frontier.bucket_to_reopen WHERE crawl = $1";
    let buckets: i64 = client.query_one(text, &[&crawl]).await?.try_get(0)?;
    Ok(u64::try_from(buckets).unwrap_or(0))
}

/// Returns whether lengths of the worker's files are stored. The number of commits doesn't show
/// whether the worker has files, because an imported worker has files but no commits.
async fn has_files(client: &Client, crawl: i32, worker: &str) -> DatabaseResult<bool> {
    let text = "SELECT EXISTS (SELECT 1 FROM crawl_frontier.row_file
        WHERE crawl = $1 AND worker = $2)";
    let row = client.query_one(text, &[&crawl, &worker]).await?;
    row.try_get(0)
}

/// Marks all buckets that may contain URLs settled by the worker with the number `number`: adds
/// them to the table `bucket_to_reopen`.
async fn note_buckets(client: &Client, crawl: i32, number: i32) -> DatabaseResult<()> {
    let text = "INSERT INTO crawl_frontier.bucket_to_reopen (crawl, b, worker, origin, fingerprint)
        SELECT crawl, b, $2::int, $3::bigint, $3::bigint FROM crawl_frontier.bucket
        WHERE crawl = $1 AND fetched + failed + excluded > 0
            AND home = (SELECT group_number FROM crawl_frontier.crawl WHERE number = $1)
        ON CONFLICT DO NOTHING";
    client.execute(text, &[&crawl, &number, &i64::MIN]).await?;
    Ok(())
}

/// Resets everything about a worker except its name, and gives it a new number.
async fn reset_worker(client: &Client, crawl: i32, worker: &str) -> DatabaseResult<()> {
    // The owner is reset too, so that a process whose lease expired can't commit under this name.
    let text = "WITH numbered AS (
            UPDATE crawl_frontier.crawl SET workers = workers + 1 WHERE number = $1
            RETURNING workers * 64 + group_number AS given)
        UPDATE crawl_frontier.worker w SET number = numbered.given, owner = '', commits = 0,
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
