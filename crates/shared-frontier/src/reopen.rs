//! A worker whose directory is lost: the URLs that it settled are to be fetched again.

use std::time::Duration;

use crawl_frontier::FrontierError;
use tokio_postgres::Client;

use crate::connection::{Answer, EngineConfig, EngineThread, connect};
use crate::credentials::Credentials;
use crate::error::OpenError;
use crate::open_groups::{Group, find_groups};

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

/// The state in which an engine has a worker that is to be given up.
enum Found {
    Nothing,
    Alive,
    /// Buckets are moved to other groups, or were meanwhile.
    Moves,
    Lost(LostWorker),
}

/// How often it is noted anew what is to be reopened while buckets are moved, and the pause before.
const MAX_TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(200);

/// Has the URLs that a worker settled handed back, since its directory is lost: those that it
/// fetched or gave up are pending again, those that it excluded get a row elsewhere. Its name is
/// free for a worker with an empty directory, and its pages count against no budget of the crawl.
///
/// In a crawl of one group all of that is one small transaction, which notes the buckets that may
/// hold such URLs: their owners look for them, part by part, whoever owns them by then. In a crawl of
/// several groups it is one in each, in that of the worker last. So the call may be repeated.
///
/// # Errors
/// [`OpenError::WorkerAlive`] while its lease holds, [`OpenError::NoSuchWorker`],
/// [`OpenError::BucketsMove`], and those of the engines.
pub fn reopen(
    urls: &[String],
    credentials: &Credentials,
    crawl: &str,
    worker: &str,
) -> Result<LostWorker, OpenError> {
    let nothing = |address: String| OpenError::NoSuchWorker {
        address,
        worker: worker.to_owned(),
        crawl: crawl.to_owned(),
    };
    let groups = find_groups(urls, credentials, crawl).map_err(|why| match why {
        OpenError::NoSuchCrawl { address, .. } => nothing(address),
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
        return Err(nothing(address.unwrap_or_default()));
    };
    for _ in 0..MAX_TRIES {
        match reopen_in(&groups, home, worker)? {
            Found::Lost(lost) => return Ok(lost),
            Found::Moves => std::thread::sleep(PAUSE),
            Found::Nothing => return Err(nothing(home.thread.address.clone())),
            Found::Alive => {
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

fn reopen_in(groups: &[LostGroup], home: &LostGroup, worker: &str) -> Result<Found, OpenError> {
    if groups.len() == 1 {
        return Ok(home.give_up(worker, None)?);
    }
    // No commit of it takes effect from here on: what it settled is all that there is.
    let Some(number) = home.end_life(worker)? else {
        return Ok(Found::Alive);
    };
    let maps = || {
        groups
            .iter()
            .map(LostGroup::map)
            .collect::<Result<Vec<_>, _>>()
    };
    let before = maps()?;
    let others = || groups.iter().filter(|it| it.group != home.group);
    for other in others() {
        if !other.note(number)? {
            return Ok(Found::Moves);
        }
    }
    // A bucket that was moved meanwhile may have been noted in neither group.
    if maps()? != before {
        return Ok(Found::Moves);
    }
    let at = groups.iter().position(|it| it.group == home.group);
    let map = at.and_then(|at| before.get(at).copied());
    let mut found = home.give_up(worker, map)?;
    if let Found::Lost(lost) = &mut found {
        for other in others() {
            lost.buckets_to_reopen += other.buckets_to_reopen()?;
        }
        if let Some(first) = groups.first() {
            // Its name may be used in any group.
            first.forget_home(worker)?;
        }
    }
    Ok(found)
}

/// A group of the crawl of a worker that is lost.
struct LostGroup {
    group: i32,
    /// The crawl's number there.
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

    /// Ends the life of a worker whose lease is over; gives its number. None where it lives.
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

    /// How often the map of buckets changed here.
    fn map(&self) -> Result<i64, FrontierError> {
        let (config, crawl) = (self.config.clone(), self.crawl);
        self.thread.run(async move {
            let client = connect(&config).await?;
            let text = "SELECT map FROM crawl_frontier.crawl WHERE number = $1";
            client.query_one(text, &[&crawl]).await?.try_get(0)
        })
    }

    /// Notes the buckets that may hold URLs that the worker of this number settled. False where
    /// buckets are being moved.
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

    /// Has the worker give up all that it settled. Fails where the map is not the one that is named.
    fn give_up(&self, worker: &str, map: Option<i64>) -> Result<Found, FrontierError> {
        let (config, crawl, worker) = (self.config.clone(), self.crawl, worker.to_owned());
        self.thread.run(async move {
            let client = connect(&config).await?;
            client.batch_execute("BEGIN").await?;
            // The crawl's row first, as where a name is taken.
            let found = match lock_map(&client, crawl, map).await? {
                true => give_up(&client, crawl, &worker).await?,
                false => Found::Moves,
            };
            client.batch_execute("COMMIT").await?;
            Ok(found)
        })
    }

    fn buckets_to_reopen(&self) -> Result<u64, FrontierError> {
        let (config, crawl) = (self.config.clone(), self.crawl);
        self.thread.run(async move {
            let client = connect(&config).await?;
            buckets_to_reopen(&client, crawl).await
        })
    }

    /// Has a worker of that name work in any group from now on.
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

/// Locks the row of a crawl, so that no move of buckets begins. Returns whether none is under way, and
/// the map changed as often as is named.
async fn lock_map(client: &Client, crawl: i32, map: Option<i64>) -> Answer<bool> {
    let text = "SELECT map FROM crawl_frontier.crawl WHERE number = $1 FOR UPDATE";
    let found: i64 = client.query_one(text, &[&crawl]).await?.try_get(0)?;
    let text = "SELECT EXISTS (SELECT 1 FROM crawl_frontier.bucket
        WHERE crawl = $1 AND moving_to IS NOT NULL)";
    let is_moving: bool = client.query_one(text, &[&crawl]).await?.try_get(0)?;
    Ok(!is_moving && map.is_none_or(|map| map == found))
}

/// Gives a worker up, within a transaction: a commit of it that is under way comes before, or fails.
async fn give_up(client: &Client, crawl: i32, worker: &str) -> Answer<Found> {
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
    Ok(Found::Lost(LostWorker {
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
            AND home = (SELECT group_number FROM crawl_frontier.crawl WHERE number = $1)
        ON CONFLICT DO NOTHING";
    client.execute(text, &[&crawl, &number, &i64::MIN]).await?;
    Ok(())
}

/// Leaves of a worker its name alone, with another number.
async fn begin_anew(client: &Client, crawl: i32, worker: &str) -> Answer<()> {
    // A process that has the name still, by a lease that ended, is no life of it any more.
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
