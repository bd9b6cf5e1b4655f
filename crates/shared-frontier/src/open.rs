//! Opening a shared frontier: the engine, the tables, the crawl.

use std::sync::Arc;
use std::time::Instant;

use crawl_frontier::parts::{LeaseTable, Totals};
use crawl_frontier::{FingerprintKey, FrontierError};
use crawl_weburl::Origin;
use foldhash::{HashMap, HashMapExt};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Row};

use crate::connection::{Answer, EngineConfig, EngineThread, Session, connect};
use crate::connection_string::ConnectionString;
use crate::engine_tables::EngineTables;
use crate::error::OpenError;
use crate::frontier::{Memory, SharedFrontier, Writer};
use crate::options::Options;
use crate::ownership::{Ownership, beat};
use crate::recent::RecentUrls;
use crate::rows::{Keys, Reader};
use crate::sql::Sql;
use crate::tls::not_connected;

/// The layout of the tables that this program makes and reads.
const LAYOUT: i32 = 1;

/// The oldest PostgreSQL that will do, as `server_version_num`: the oldest that tests run.
const OLDEST_ENGINE: i32 = 150_000;

/// How often making the tables is tried while others make them too.
const MAX_TRIES: usize = 10;

impl SharedFrontier {
    /// Opens the frontier of a crawl at `url`, a connection string of PostgreSQL, and takes buckets
    /// that no worker owns. Tables and crawl are made where there are none.
    ///
    /// # Errors
    /// [`OpenError`] says what stands in the way.
    pub fn open(url: &str, options: &Options) -> Result<SharedFrontier, OpenError> {
        let url = ConnectionString::parse(url)?;
        let config = EngineConfig::new(&url, options)?;
        let thread = EngineThread::start(url.address()).map_err(|why| FrontierError::Engine {
            address: String::from("the thread of its connections"),
            source: why.into(),
        })?;
        let crawl = begin(&thread, &config, options)?;
        let sessions = sessions(&thread, &config)?;
        let taken = take(&thread, &sessions[1], &crawl, options)?;
        let keys = Keys {
            key: crawl.key,
            buckets: crawl.buckets,
        };
        let Taken {
            owned,
            commits,
            seq,
            totals,
        } = taken;
        let tables = EngineTables::new(thread, config, keys, owned, sessions);
        let queues = origins(&tables)?;
        if let Some(handle) = tables.thread.handle() {
            let owned = Arc::downgrade(&tables.owned);
            handle.spawn(beat(owned, tables.config.clone(), options.heartbeat));
        }
        tracing::debug!(
            buckets = tables.owned.buckets.len(),
            origins_waiting = queues.len(),
            "shared frontier opened"
        );
        let writer = Writer {
            seq,
            commits,
            links: 0,
            totals,
            met: Vec::new(),
        };
        let (limit, least) = (options.head_entries, options.read_ahead);
        let memory = Memory {
            leases: LeaseTable::new(queues, totals, limit, least),
            recent: RecentUrls::new(options.recent_urls),
        };
        Ok(SharedFrontier::new(tables, writer, memory))
    }
}

/// What was taken when a frontier was opened.
struct Taken {
    owned: Arc<Ownership>,
    commits: i64,
    seq: u64,
    totals: Totals,
}

/// Judges the engine, and finds or begins the crawl.
fn begin(
    thread: &EngineThread,
    config: &EngineConfig,
    options: &Options,
) -> Result<CrawlRow, OpenError> {
    let address = || thread.address.clone();
    let to_connect = config.clone();
    let connected = thread.try_run(async move { connect(&to_connect).await });
    let client = connected.map_err(|why| match why {
        Some(source) => not_connected(address(), source),
        None => thread.failed(None).into(),
    })?;
    let client = Arc::new(client);
    let asked = Arc::clone(&client);
    let facts = thread.run(async move { facts(&asked).await })?;
    if facts.version < OLDEST_ENGINE {
        return Err(OpenError::TooOld {
            address: address(),
            found: facts.version,
            least: OLDEST_ENGINE,
        });
    }
    if facts.is_read_only {
        return Err(OpenError::ReadOnly { address: address() });
    }
    let asked = Arc::clone(&client);
    let found = thread.run(async move { layout(&asked).await })?;
    if found != LAYOUT {
        return Err(OpenError::Layout {
            address: address(),
            found,
            known: LAYOUT,
        });
    }
    let (name, buckets) = (options.crawl.clone(), options.buckets.max(1));
    Ok(thread.run(async move { crawl(&client, &name, buckets.into()).await })?)
}

/// A connection for readers, and one for commits.
fn sessions(thread: &EngineThread, config: &EngineConfig) -> Result<[Arc<Session>; 2], OpenError> {
    let config = config.clone();
    let opened = thread.run(async move {
        let reader = Session::open(&config).await?;
        Ok([reader, Session::open(&config).await?])
    });
    Ok(opened?)
}

/// Takes the worker's name, and buckets that are free.
fn take(
    thread: &EngineThread,
    session: &Arc<Session>,
    crawl: &CrawlRow,
    options: &Options,
) -> Result<Taken, OpenError> {
    let owner = format!("{} {}", options.worker, uuid::Uuid::new_v4());
    let (number, worker) = (crawl.number, options.worker.clone());
    let term = i64::try_from(options.lease.as_millis()).unwrap_or(i64::MAX);
    let most = i64::from(options.most_buckets);
    let asked = Instant::now();
    let (session, life) = (Arc::clone(session), owner.clone());
    let (name, rows) = thread.run(async move {
        let name = session
            .query(Sql::TakeName, &[&number, &worker, &life, &term])
            .await?;
        if name.is_empty() {
            return Ok((name, Vec::new()));
        }
        let taken = session
            .query(Sql::TakeBuckets, &[&number, &life, &term, &most])
            .await?;
        Ok((name, taken))
    })?;
    let Some(name) = name.first() else {
        return Err(OpenError::WorkerInUse {
            worker: options.worker.clone(),
            crawl: options.crawl.clone(),
        });
    };
    let commits = Reader::new(name).next();
    let mut taken = (HashMap::with_capacity(rows.len()), 0, Totals::default());
    let counted: Option<Vec<()>> = rows.iter().map(|row| count(row, &mut taken)).collect();
    let (Some(commits), Some(_)) = (commits, counted) else {
        return Err(thread.corrupt("a row of crawl_frontier.bucket").into());
    };
    let (epochs, seq, totals) = taken;
    let names = (options.worker.clone(), owner);
    let owned = Ownership::new(number, names, epochs, options.lease, asked);
    Ok(Taken {
        owned: Arc::new(owned),
        commits,
        seq,
        totals,
    })
}

/// Counts a bucket that was taken; none where its row is not what this program writes.
fn count(row: &Row, (epochs, last, totals): &mut (HashMap<i32, i64>, u64, Totals)) -> Option<()> {
    let mut reader = Reader::new(row);
    let (b, epoch): (i32, i64) = (reader.next()?, reader.next()?);
    epochs.insert(b, epoch);
    let mut number = || {
        reader
            .next::<i64>()
            .and_then(|number| u64::try_from(number).ok())
    };
    *last = number()?.max(*last);
    totals.pending += number()?;
    totals.deferred += number()?;
    totals.fetched += number()?;
    totals.failed += number()?;
    totals.excluded += number()?;
    Some(())
}

/// The origins with pending URLs: each with its number, and how many.
fn origins(tables: &EngineTables) -> Result<Vec<(Origin, u64, u64)>, FrontierError> {
    let owned = &tables.owned;
    let params = crate::engine_tables::params![owned.crawl, owned.buckets.clone()];
    let rows = tables.read(Sql::Origins, params)?;
    let origin = |row| {
        let mut reader = Reader::new(row);
        let origin = Origin::parse(reader.next()?).ok()?;
        let (number, pending): (i64, i64) = (reader.next()?, reader.next()?);
        Some((origin, number as u64, u64::try_from(pending).ok()?))
    };
    let origins: Option<Vec<_>> = rows.iter().map(origin).collect();
    origins.ok_or_else(|| tables.corrupt("origin"))
}

/// A crawl as the engine has it.
struct CrawlRow {
    number: i32,
    buckets: i32,
    key: FingerprintKey,
}

/// What an engine says of itself.
struct EngineFacts {
    version: i32,
    is_read_only: bool,
}

async fn facts(client: &Client) -> Answer<EngineFacts> {
    let text = "SELECT current_setting('server_version_num')::int,
        pg_is_in_recovery() OR current_setting('transaction_read_only')::bool";
    let row = client.query_one(text, &[]).await?;
    Ok(EngineFacts {
        version: row.try_get(0)?,
        is_read_only: row.try_get(1)?,
    })
}

/// Makes the tables where there are none; says which layout they have.
async fn layout(client: &Client) -> Answer<i32> {
    let mut tries = 0;
    loop {
        let found = client
            .query_one(
                "SELECT to_regclass('crawl_frontier.layout') IS NOT NULL",
                &[],
            )
            .await?;
        if found.try_get(0)? {
            let text = "SELECT version FROM crawl_frontier.layout";
            return client.query_one(text, &[]).await?.try_get(0);
        }
        tries += 1;
        match make_tables(client).await {
            // Another worker made them at the same time.
            Err(why) if tries < MAX_TRIES && is_duplicate(&why) => {}
            made => made?,
        }
    }
}

async fn make_tables(client: &Client) -> Answer<()> {
    let schema = include_str!("schema.sql");
    // A user that may not make it was given one.
    let asked = "SELECT to_regnamespace('crawl_frontier') IS NOT NULL";
    let namespace = match client.query_one(asked, &[]).await?.try_get(0)? {
        true => "",
        false => "CREATE SCHEMA crawl_frontier;",
    };
    let insert = format!("INSERT INTO crawl_frontier.layout VALUES ({LAYOUT});");
    let made = client
        .batch_execute(&format!("BEGIN; {namespace} {schema} {insert} COMMIT;"))
        .await;
    if made.is_err() {
        client.batch_execute("ROLLBACK").await?;
    }
    made
}

fn is_duplicate(why: &tokio_postgres::Error) -> bool {
    let codes = [
        SqlState::UNIQUE_VIOLATION,
        SqlState::DUPLICATE_SCHEMA,
        SqlState::DUPLICATE_TABLE,
    ];
    why.code().is_some_and(|code| codes.contains(code))
}

/// The crawl of that name; begun with so many buckets where there is none.
async fn crawl(client: &Client, name: &str, buckets: i32) -> Answer<CrawlRow> {
    let read = "SELECT number, buckets, fingerprint_key FROM crawl_frontier.crawl WHERE name = $1";
    loop {
        if let Some(row) = client.query_opt(read, &[&name]).await? {
            let number = row.try_get(0)?;
            let key: Vec<u8> = row.try_get(2)?;
            let mut bytes = [0; 16];
            for (byte, kept) in bytes.iter_mut().zip(key) {
                *byte = kept;
            }
            return Ok(CrawlRow {
                number,
                buckets: row.try_get(1)?,
                key: FingerprintKey::new(bytes),
            });
        }
        // Whoever comes second finds the row of the first, or that number taken, and reads again.
        let begin = "WITH begun AS (
                INSERT INTO crawl_frontier.crawl (number, buckets, name, fingerprint_key)
                SELECT coalesce(max(number), 0) + 1, $2::int, $1::text, $3::bytea
                FROM crawl_frontier.crawl
                ON CONFLICT DO NOTHING RETURNING number, buckets)
            INSERT INTO crawl_frontier.bucket (crawl, b, owner, epoch, lease_until, seq,
                pending, deferred, fetched, failed, excluded)
            SELECT number, b, '', 0, '-infinity', 0, 0, 0, 0, 0, 0
            FROM begun, generate_series(0, buckets - 1) AS b";
        let key = FingerprintKey::random().bytes();
        client
            .execute(begin, &[&name, &buckets, &key.as_slice()])
            .await?;
    }
}
