//! Reopens the URLs settled by a worker whose directory is lost.

use std::time::Duration;

use crawl_frontier::FrontierError;
use tokio_postgres::Client;

use crate::connection::{Answer, EngineConfig, EngineThread, connect};
use crate::credentials::Credentials;
use crate::error::OpenError;
use crate::open_groups::{Group, find_groups};

/// A worker whose directory is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostWorker {
    /// Committed rows of `pages.jsonl`.
    pub pages: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Buckets of the crawl whose owners still have to look for URLs that the worker settled.
    pub buckets_to_reopen: u64,
}

/// The outcome of an attempt to reopen a worker's URLs.
enum Outcome {
    Nothing,
    Alive,
    /// Buckets are being moved between groups, or were in the meantime.
    Moves,
    Lost(LostWorker),
}

/// The number of attempts while buckets are being moved, and the pause between them.
const MAX_TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(200);

/// Reopens the URLs that a worker settled, because its directory is lost: fetched and failed URLs
/// become pending again, and excluded ones get a row elsewhere. The name becomes free for a worker
/// with an empty directory, and the worker's pages no longer count against a budget of the crawl.
///
/// For a crawl with one group, this is a small transaction that lists the buckets that may contain
/// such URLs. Their owners, whoever that is by then, look for the URLs part by part. For several
/// groups, it is a transaction in each, the worker's own group last, so the call can be repeated.
///
/// # Errors
/// [`OpenError::WorkerAlive`] while the worker's lease is valid, [`OpenError::NoSuchWorker`],
/// [`OpenError::BucketsMove`], and errors of the engines.
pub fn reopen(
    urls: &[String],
    credentials: &Credentials,
    crawl: &str,
    worker: &str,
) -> Result<LostWorker, OpenError> {
    let no_such_worker = |address: String| OpenError::NoSuchWorker {
        address,
        worker: worker.to_owned(),
        crawl: crawl.to_owned(),
    };
    let groups = find_groups(urls, credentials, crawl).map_err(|why| match why {
        OpenError::NoSuchCrawl { address, .. } => no_such_worker(address),
        why => why,
    })?;
    let groups: Vec<LostGroup> = groups.into_iter().map(LostGroup::of).collect();
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
            Outcome::Lost(lost) => return Ok(lost),
            Outcome::Moves => std::thread::sleep(PAUSE),
            Outcome::Nothing => return Err(no_such_worker(home.thread.address.clone())),
            Outcome::Alive => {
                return Err(OpenError::WorkerAlive {
                    worker: worker.to_owned(),
                    crawl: crawl.to_owned(),
                });
            }
        }
    }
    Err(OpenError::BucketsMove {
        crawl: crawl.to_owned(),
    })
}

fn reopen_in(groups: &[LostGroup], home: &LostGroup, worker: &str) -> Result<Outcome, OpenError> {
    if groups.len() == 1 {
        return Ok(home.give_up(worker, None)?);
    }
    // From here on the worker can't commit, so it has settled all it ever will.
    let Some(number) = home.end_life(worker)? else {
        return Ok(Outcome::Alive);
    };
    let maps = || {
        groups
            .iter()
            .map(LostGroup::map)
            .collect::<Result<Vec<_>, _>>()
    };
    let before = maps()?;
    let other_groups = || groups.iter().filter(|group| group.group != home.group);
    for other in other_groups() {
        if !other.note(number)? {
            return Ok(Outcome::Moves);
        }
    }
    // A bucket moved in the meantime may be listed in neither group.
    if maps()? != before {
        return Ok(Outcome::Moves);
    }
    let at = groups.iter().position(|group| group.group == home.group);
    let map = at.and_then(|at| before.get(at).copied());
    let mut outcome = home.give_up(worker, map)?;
    if let Outcome::Lost(lost) = &mut outcome {
        for other in other_groups() {
            lost.buckets_to_reopen += other.buckets_to_reopen()?;
        }
        if let Some(first) = groups.first() {
            // The name may be used in any group.
            first.forget_home(worker)?;
        }
    }
    Ok(outcome)
}

/// A group of the lost worker's crawl.
struct LostGroup {
    group: i32,
    /// The crawl's number in this group.
    crawl: i32,
    thread: EngineThread,
    config: EngineConfig,
}

impl LostGroup {
    fn of(group: Group) -> LostGroup {
        LostGroup {
            group: group.crawl.group,
            crawl: group.crawl.number,
            thread: group.engine.thread,
            config: group.engine.config,
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

    /// Ends the life of a worker whose lease expired, and returns its number. `None` if the worker
    /// is alive.
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

    /// Returns how often the map of buckets changed in this group.
    fn map(&self) -> Result<i64, FrontierError> {
        let (config, crawl) = (self.config.clone(), self.crawl);
        self.thread.run(async move {
            let client = connect(&config).await?;
            let text = "SELECT map FROM crawl_frontier.crawl WHERE number = $1";
            client.query_one(text, &[&crawl]).await?.try_get(0)
        })
    }

    /// Lists the buckets that may contain URLs settled by the worker with this number. Returns
    /// false if buckets are being moved.
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

    /// Gives up a worker's settled URLs. Reports a move if the map changed from the given version.
    fn give_up(&self, worker: &str, map: Option<i64>) -> Result<Outcome, FrontierError> {
        let (config, crawl, worker) = (self.config.clone(), self.crawl, worker.to_owned());
        self.thread.run(async move {
            let client = connect(&config).await?;
            client.batch_execute("BEGIN").await?;
            // Locks the crawl's row first, as taking a name does.
            let outcome = match lock_map(&client, crawl, map).await? {
                true => give_up(&client, crawl, &worker).await?,
                false => Outcome::Moves,
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

    /// Lets a worker of that name work in any group.
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

/// Locks the row of a crawl, so that no move of buckets begins. Returns whether none is in progress
/// and the map has the given version.
async fn lock_map(client: &Client, crawl: i32, map: Option<i64>) -> Answer<bool> {
    let text = "SELECT map FROM crawl_frontier.crawl WHERE number = $1 FOR UPDATE";
    let current: i64 = client.query_one(text, &[&crawl]).await?.try_get(0)?;
    let text = "SELECT EXISTS (SELECT 1 FROM crawl_frontier.bucket
        WHERE crawl = $1 AND moving_to IS NOT NULL)";
    let is_moving: bool = client.query_one(text, &[&crawl]).await?.try_get(0)?;
    Ok(!is_moving && map.is_none_or(|map| map == current))
}

/// Gives up a worker within a transaction. A concurrent commit of the worker either comes first or
/// fails.
async fn give_up(client: &Client, crawl: i32, worker: &str) -> Answer<Outcome> {
    let text = "SELECT number, lease_until > clock_timestamp(), pages, bytes, commits
        FROM crawl_frontier.worker WHERE crawl = $1 AND name = $2 FOR UPDATE";
    let Some(row) = client.query_opt(text, &[&crawl, &worker]).await? else {
        return Ok(Outcome::Nothing);
    };
    if row.try_get(1)? {
        return Ok(Outcome::Alive);
    }
    let count = |at: usize| {
        row.try_get(at)
            .map(|count: i64| u64::try_from(count).unwrap_or(0))
    };
    if count(4)? > 0 || has_files(client, crawl, worker).await? {
        note_buckets(client, crawl, row.try_get(0)?).await?;
        reset_worker(client, crawl, worker).await?;
    }
    Ok(Outcome::Lost(LostWorker {
        pages: count(2)?,
        bytes: count(3)?,
        buckets_to_reopen: buckets_to_reopen(client, crawl).await?,
    }))
}

async fn buckets_to_reopen(client: &Client, crawl: i32) -> Answer<u64> {
    let text = "SELECT count(DISTINCT b) FROM crawl_frontier.bucket_to_reopen WHERE crawl = $1";
    let buckets: i64 = client.query_one(text, &[&crawl]).await?.try_get(0)?;
    Ok(u64::try_from(buckets).unwrap_or(0))
}

/// Whether lengths of the worker's files are stored. An imported worker has files but no commits.
async fn has_files(client: &Client, crawl: i32, worker: &str) -> Answer<bool> {
    let text = "SELECT EXISTS (SELECT 1 FROM crawl_frontier.row_file
        WHERE crawl = $1 AND worker = $2)";
    let row = client.query_one(text, &[&crawl, &worker]).await?;
    row.try_get(0)
}

/// Lists all buckets that may contain URLs settled by the worker with this number.
async fn note_buckets(client: &Client, crawl: i32, number: i32) -> Answer<()> {
    let text = "INSERT INTO crawl_frontier.bucket_to_reopen (crawl, b, worker, origin, fingerprint)
        SELECT crawl, b, $2::int, $3::bigint, $3::bigint FROM crawl_frontier.bucket
        WHERE crawl = $1 AND fetched + failed + excluded > 0
            AND home = (SELECT group_number FROM crawl_frontier.crawl WHERE number = $1)
        ON CONFLICT DO NOTHING";
    client.execute(text, &[&crawl, &number, &i64::MIN]).await?;
    Ok(())
}

/// Resets a worker to its name, with a new number.
async fn reset_worker(client: &Client, crawl: i32, worker: &str) -> Answer<()> {
    // A process that still uses the name by an expired lease is no longer a life of the worker.
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
