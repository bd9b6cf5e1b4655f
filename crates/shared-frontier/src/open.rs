//! Opening a shared frontier: the engine, the tables, the crawl.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crawl_frontier::FrontierError;
use crawl_frontier::parts::{LeaseTable, Totals};
use crawl_weburl::Origin;
use foldhash::{HashMap, HashMapExt, HashSet};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::connection::{Answer, EngineConfig, EngineThread, Session, connect};
use crate::connection_string::ConnectionString;
use crate::credentials::Credentials;
use crate::engine_tables::{EngineTables, params};
use crate::error::OpenError;
use crate::frontier::{Memory, SharedFrontier, Writer};
use crate::groups::Groups;
use crate::open_groups::{CrawlRow, Engine, Group, begin_groups};
use crate::options::Options;
use crate::ownership::{OwnedBucket, Ownership, WorkerLife, beat};
use crate::recent::RecentUrls;
use crate::rows::{Keys, Reader, sum};
use crate::sql::Sql;
use crate::tls::not_connected;
use crate::worker_homes::{FIRST_GROUP, Home, find_home, is_anybody_elsewhere};

/// The layout of the tables that this program makes and reads.
const LAYOUT: i32 = 3;

/// The oldest PostgreSQL that will do, as `server_version_num`: the oldest that tests run.
const OLDEST_ENGINE: i32 = 150_000;

/// The clocks of engine and worker may be so far apart without a word.
const MAX_SKEW: Duration = Duration::from_secs(2);

/// An engine that takes longer to answer is told of.
const MAX_USUAL_ANSWER: Duration = Duration::from_secs(1);

/// A lease has to last for so many answers: a start waits for five of them before its first heartbeat,
/// which comes after a third of the lease.
const ANSWERS_PER_LEASE: u32 = 10;

/// How often an engine is asked that does not answer at once: one answer may be late by chance.
const MAX_QUESTIONS: usize = 3;
const QUICK_ANSWER: Duration = Duration::from_millis(20);

/// How often making the tables is tried while others make them too.
const MAX_TRIES: usize = 10;

impl SharedFrontier {
    /// Opens the frontier of a crawl at `url`, a connection string of PostgreSQL, and takes buckets
    /// that no worker owns. Tables and crawl are made where there are none.
    ///
    /// # Errors
    /// [`OpenError`] says what stands in the way.
    pub fn open(url: &str, options: &Options) -> Result<SharedFrontier, OpenError> {
        SharedFrontier::open_groups(&[url.to_owned()], options)
    }

    /// Opens the frontier of a crawl that lies in some groups of engines, a connection string for
    /// each. The worker works in one of them, its home: that of its name, or else the one that has
    /// the fewest workers for the buckets that it serves.
    ///
    /// # Errors
    /// [`OpenError`] says what stands in the way.
    pub fn open_groups(urls: &[String], options: &Options) -> Result<SharedFrontier, OpenError> {
        let Home {
            crawl,
            thread,
            config,
            others,
            map,
        } = find_home(begin(urls, options)?, options)?;
        let sessions = sessions(&thread, &config)?;
        let (owned, commits) = take_name(&thread, &sessions[1], &crawl, options)?;
        let keys = Keys {
            key: crawl.key,
            buckets: crawl.buckets,
        };
        let groups = Groups::new(crawl.group, others, map);
        let tables = EngineTables::new(thread, config, keys, owned, groups, sessions);
        if let Err(refusal) = take_settings(&tables, options) {
            // Its name is free at once.
            tables.end_leases()?;
            return Err(refusal);
        }
        let fair = fair_share(&tables)?.min(options.most_buckets.into());
        let TakenBuckets {
            buckets,
            asked,
            seq,
            totals,
        } = take_buckets(&tables, fair)?;
        tables.owned.add(buckets, asked);
        let queues = origins_of(&tables, tables.owned.buckets())?;
        if let Some(handle) = tables.thread.handle() {
            let owned = Arc::downgrade(&tables.owned);
            handle.spawn(beat(owned, tables.config.clone(), options.heartbeat));
        }
        tracing::debug!(
            buckets = tables.owned.count(),
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

/// Buckets that were taken, by a message that was sent at `asked`.
pub(crate) struct TakenBuckets {
    pub(crate) buckets: HashMap<i32, OwnedBucket>,
    pub(crate) asked: Instant,
    /// The last number of an admission in them.
    pub(crate) seq: u64,
    pub(crate) totals: Totals,
}

/// How connections to the engine at a connection string are made, and a thread for them.
pub(crate) fn engine_at(
    url: &str,
    credentials: &Credentials,
) -> Result<(EngineThread, EngineConfig), OpenError> {
    let url = ConnectionString::parse(url)?;
    let config = EngineConfig::new(&url, credentials)?;
    let thread = EngineThread::start(url.address()).map_err(|why| FrontierError::Engine {
        address: String::from("the thread of its connections"),
        source: why.into(),
    })?;
    Ok((thread, config))
}

/// Judges the engines, and finds or begins the crawl.
fn begin(urls: &[String], options: &Options) -> Result<Vec<Group>, OpenError> {
    let is_quick = |engine: &Engine| match engine.took * ANSWERS_PER_LEASE > options.lease {
        false => Ok(()),
        true => Err(OpenError::TooSlow {
            address: engine.thread.address.clone(),
            took: engine.took,
            lease: options.lease,
        }),
    };
    let (crawl, buckets) = (&options.crawl, options.buckets);
    begin_groups(urls, &options.credentials, crawl, buckets, is_quick)
}

/// A connection to an engine that will do, with tables of this layout, and the time that it takes to
/// answer.
pub(crate) fn judged(
    thread: &EngineThread,
    config: &EngineConfig,
) -> Result<(Arc<Client>, Duration), OpenError> {
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
    for said in clock_warnings(facts.ahead, facts.took) {
        tracing::warn!("the frontier at {}: {said}", thread.address);
    }
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
    Ok((client, facts.took))
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

/// An id for one life of a worker, which no other life has.
#[must_use]
pub fn new_life(worker: &str) -> String {
    format!("{worker} {}", uuid::Uuid::new_v4())
}

/// Takes the worker's name. Gives what is owned by it, no bucket yet, and the number of commits.
fn take_name(
    thread: &EngineThread,
    session: &Arc<Session>,
    crawl: &CrawlRow,
    options: &Options,
) -> Result<(Arc<Ownership>, i64), OpenError> {
    let owner = new_life(&options.worker);
    let (number, worker) = (crawl.number, options.worker.clone());
    let term = i64::try_from(options.lease.as_millis()).unwrap_or(i64::MAX);
    let asked = Instant::now();
    let (session, life) = (Arc::clone(session), owner.clone());
    let last = options.last_life.clone();
    let name = thread.run(async move {
        if let Some(last) = &last {
            session.execute(Sql::EndBuckets, &[&number, last]).await?;
        }
        session
            .query(Sql::TakeName, &[&number, &worker, &life, &term, &last])
            .await
    })?;
    let Some(name) = name.first() else {
        return Err(OpenError::WorkerInUse {
            worker: options.worker.clone(),
            crawl: options.crawl.clone(),
        });
    };
    let mut reader = Reader::new(name);
    let (commits, settler) = reader
        .next()
        .zip(reader.next())
        .ok_or_else(|| thread.corrupt("a row of crawl_frontier.worker"))?;
    let life = WorkerLife {
        worker: options.worker.clone(),
        owner,
        number: settler,
    };
    let owned = Ownership::new(number, life, options.lease, asked);
    Ok((Arc::new(owned), commits))
}

/// Goes on with a crawl, unless other workers are at work on it by another version of the program or
/// by other settings. The first group has them for all.
fn take_settings(tables: &EngineTables, options: &Options) -> Result<(), OpenError> {
    let owned = &tables.owned;
    let (program, settings) = (options.program.clone(), options.settings.clone());
    // After its name was taken: of two that begin at once, one sees the other.
    let others_live = is_anybody_elsewhere(tables)?;
    let life = owned.owner.clone();
    let taken = tables.read_in(FIRST_GROUP, Sql::TakeSettings, |crawl| {
        params![crawl, life, program, settings, others_live]
    })?;
    if !taken.is_empty() {
        return Ok(());
    }
    let rows = tables.read_in(FIRST_GROUP, Sql::Settings, |crawl| params![crawl])?;
    let found = rows.first().and_then(|row| {
        let mut reader = Reader::new(row);
        Some((reader.next::<String>()?, reader.next::<String>()?))
    });
    let (program, settings) = found.ok_or_else(|| tables.corrupt("crawl"))?;
    let crawl = options.crawl.clone();
    Err(match program == options.program {
        false => OpenError::OtherProgram {
            crawl,
            found: program,
            own: options.program.clone(),
        },
        true => OpenError::OtherSettings {
            crawl,
            differences: differences(&settings, &options.settings),
        },
    })
}

/// The lines that two texts do not have in common, those of the first before a `-`.
fn differences(theirs: &str, own: &str) -> String {
    let without = |of: &str, other: &str, sign: char| {
        let other: HashSet<&str> = other.lines().collect();
        let lines = of.lines().filter(|line| !other.contains(line));
        lines
            .map(|line| format!("\n  {sign} {line}"))
            .collect::<Vec<_>>()
    };
    let lines = [without(theirs, own, '-'), without(own, theirs, '+')].concat();
    lines.concat()
}

/// The number of buckets that each worker may have that lives in this group.
fn fair_share(tables: &EngineTables) -> Result<u64, FrontierError> {
    let rows = tables.read(Sql::Living, params![tables.owned.crawl])?;
    let living = rows.first().and_then(|row| Reader::new(row).count());
    let living = living.ok_or_else(|| tables.corrupt("worker"))?;
    Ok(tables.served_buckets().div_ceil(living.max(1)))
}

/// Takes buckets that nobody owns, `most` at most.
pub(crate) fn take_buckets(
    tables: &EngineTables,
    most: u64,
) -> Result<TakenBuckets, FrontierError> {
    let owned = &tables.owned;
    let asked = Instant::now();
    let (term, most) = (
        owned.term.as_millis() as i64,
        i64::try_from(most).unwrap_or(i64::MAX),
    );
    let group = tables.groups.own;
    let params = params![owned.crawl, owned.owner.clone(), term, most, group];
    let rows = tables.read(Sql::TakeBuckets, params)?;
    let known = Instant::now();
    let mut taken = TakenBuckets {
        buckets: HashMap::with_capacity(rows.len()),
        asked,
        seq: 0,
        totals: Totals::default(),
    };
    for row in &rows {
        let mut reader = Reader::new(row);
        let (key, seq, totals) = reader.bucket().ok_or_else(|| tables.corrupt("bucket"))?;
        let (b, epoch) = key;
        let bucket = OwnedBucket {
            epoch,
            asked,
            taken: known,
        };
        taken.buckets.insert(b, bucket);
        taken.seq = taken.seq.max(seq);
        taken.totals = sum(taken.totals, totals);
    }
    Ok(taken)
}

/// The origins with pending URLs in some buckets: each with its number, and how many.
pub(crate) fn origins_of(
    tables: &EngineTables,
    buckets: Vec<i32>,
) -> Result<Vec<(Origin, u64, u64)>, FrontierError> {
    let rows = tables.read(Sql::Origins, params![tables.owned.crawl, buckets])?;
    let origin = |row| {
        let mut reader = Reader::new(row);
        let origin = Origin::parse(reader.next()?).ok()?;
        let (number, pending): (i64, i64) = (reader.next()?, reader.next()?);
        Some((origin, number as u64, u64::try_from(pending).ok()?))
    };
    let origins: Option<Vec<_>> = rows.iter().map(origin).collect();
    origins.ok_or_else(|| tables.corrupt("origin"))
}

/// An engine's account of itself.
#[derive(Default)]
struct EngineFacts {
    version: i32,
    is_read_only: bool,
    /// How far its clock is ahead of this machine's, in seconds.
    ahead: f64,
    /// How long it took to answer.
    took: Duration,
}

async fn facts(client: &Client) -> Answer<EngineFacts> {
    let text = "SELECT current_setting('server_version_num')::int,
        pg_is_in_recovery() OR current_setting('transaction_read_only')::bool,
        extract(epoch FROM clock_timestamp())::float8";
    let statement = client.prepare(text).await?;
    let mut facts = EngineFacts::default();
    for question in 0..MAX_QUESTIONS {
        let asked = Instant::now();
        let row = client.query_one(&statement, &[]).await?;
        let took = asked.elapsed();
        let own = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let own = own.unwrap_or_default().as_secs_f64();
        if question == 0 || took < facts.took {
            let engines: f64 = row.try_get(2)?;
            facts = EngineFacts {
                version: row.try_get(0)?,
                is_read_only: row.try_get(1)?,
                // It read its clock somewhere between question and answer.
                ahead: engines - (own - took.as_secs_f64() / 2.0),
                took,
            };
        }
        if took <= QUICK_ANSWER {
            break;
        }
    }
    Ok(facts)
}

/// Warnings about an engine whose clock is `ahead` seconds ahead, and that took so long to answer.
fn clock_warnings(ahead: f64, took: Duration) -> Vec<String> {
    let mut said = Vec::new();
    // How far it is ahead is known no better than to half of the time that an answer takes.
    if ahead.abs() > MAX_SKEW.as_secs_f64() + took.as_secs_f64() / 2.0 {
        let way = if ahead > 0.0 { "ahead of" } else { "behind" };
        said.push(format!(
            "its clock is {:.1} s {way} this machine's; hint: leases go by its clock alone, rows \
             have the times of this machine, so have both set by NTP",
            ahead.abs()
        ));
    }
    if took > MAX_USUAL_ANSWER {
        said.push(format!(
            "it took {:.1} s to answer; hint: each page waits for answers, and a lease has to be \
             several times as long (--frontier-lease): use an engine that is nearer",
            took.as_secs_f64()
        ));
    }
    said
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_a_wrong_clock_and_a_late_answer_are_told() {
        let told = |ahead, millis| clock_warnings(ahead, Duration::from_millis(millis)).join("\n");
        assert_eq!(told(1.9, 20), "");
        assert_eq!(told(-1.9, 900), "");
        assert!(told(3600.0, 20).contains("is 3600.0 s ahead of"));
        assert!(told(-5.0, 20).contains("is 5.0 s behind"));
        // So late an answer says little of the clock.
        let late = told(6.0, 10_000);
        assert!(
            late.contains("took 10.0 s") && !late.contains("clock is"),
            "{late}"
        );
    }
}
