//! Opens a shared frontier: finds the server groups of the crawl, and takes the worker's name and
//! its buckets.

use std::sync::Arc;
use std::time::Instant;

use crawl_frontier::FrontierError;
use crawl_frontier::parts::{CommittedUrlCounts, LeaseTable};
use crawl_weburl::Origin;
use foldhash::{HashMap, HashMapExt, HashSet};

use crate::bucket_ownership::{BucketOwnership, OwnedBucket, WorkerProcessIdentity, beat};
use crate::connection::{DatabaseServerConfig, DatabaseSession, DatabaseThread, params};
use crate::crawl_database_client::CrawlDatabaseClient;
use crate::crawl_exporter::EXPORTED;
use crate::database_server_groups::ServerGroups;
use crate::error::SharedCrawlError;
use crate::frontier::{LeasesAndRecentUrls, OpenTransactionState, SharedFrontier};
use crate::open_groups::{ConnectedServer, CrawlRow, ServerGroup, begin_groups};
use crate::options::SharedFrontierOptions;
use crate::recent_urls::RecentUrls;
use crate::row_codec::{ColumnReader, RowKeyBuilder, sum};
use crate::sql_statements::SqlStatement;
use crate::worker_home_groups::{
    FIRST_GROUP, HomeAndOtherServerGroups, find_home, is_anybody_elsewhere,
};

/// Minimum duration of a lease, as a multiple of the server's response time. After it took its
/// name, a worker waits for up to five replies and then for a third of the lease before its first
/// heartbeat. A shorter lease could expire before that.
const ANSWERS_PER_LEASE: u32 = 10;

impl SharedFrontier {
    /// Opens the frontier of a crawl at `url`, a PostgreSQL connection string, and takes buckets
    /// without an owner. Creates the tables and the crawl if they are missing.
    ///
    /// # Errors
    /// [`SharedCrawlError`] gives the reason.
    pub fn open(
        url: &str,
        options: &SharedFrontierOptions,
    ) -> Result<SharedFrontier, SharedCrawlError> {
        SharedFrontier::open_groups(&[url.to_owned()], options)
    }

    /// Opens the frontier of a crawl that is spread over server groups. `urls` has a connection
    /// string for each group. The worker works in one group, its home. The home is the group stored
    /// for the worker's name, or else the group with the fewest workers per bucket.
    ///
    /// # Errors
    /// [`SharedCrawlError`] gives the reason.
    pub fn open_groups(
        urls: &[String],
        options: &SharedFrontierOptions,
    ) -> Result<SharedFrontier, SharedCrawlError> {
        let HomeAndOtherServerGroups {
            crawl,
            thread,
            config,
            others,
            map,
        } = find_home(begin(urls, options)?, options)?;
        let sessions = sessions(&thread, &config)?;
        let (owned, commits) = take_name(&thread, &sessions[1], &crawl, options)?;
        let keys = RowKeyBuilder {
            key: crawl.key,
            buckets: crawl.buckets,
        };
        let groups = ServerGroups::new(crawl.group, others, map);
        let tables = CrawlDatabaseClient::new(thread, config, keys, owned, groups, sessions);
        let begun = refuse_exported(&tables, options);
        if let Err(refusal) = begun.and_then(|()| take_settings(&tables, options)) {
            // End the lease, so that the worker's name is free immediately.
            tables.end_leases()?;
            return Err(refusal);
        }
        let fair = fair_share(&tables)?.min(options.most_buckets.into());
        let TakenBuckets {
            buckets,
            sent_at,
            seq,
            totals,
        } = take_buckets(&tables, fair)?;
        tables.owned.add(buckets, sent_at);
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
        let writer = OpenTransactionState {
            seq,
            commits,
            links: 0,
            totals,
            changed_states: Vec::new(),
        };
        let (limit, least) = (options.head_entries, options.read_ahead);
        let memory = LeasesAndRecentUrls {
            leases: LeaseTable::new(queues, totals, limit, least),
            recent: RecentUrls::new(options.recent_urls),
        };
        Ok(SharedFrontier::new(tables, writer, memory))
    }
}

/// The buckets that one request took. Their leases count from `sent_at`, when the request was sent.
pub(crate) struct TakenBuckets {
    pub(crate) buckets: HashMap<i32, OwnedBucket>,
    pub(crate) sent_at: Instant,
    /// The highest admission number that was used in these buckets.
    pub(crate) seq: u64,
    pub(crate) totals: CommittedUrlCounts,
}

/// Checks the database servers, and finds or creates the crawl.
fn begin(
    urls: &[String],
    options: &SharedFrontierOptions,
) -> Result<Vec<ServerGroup>, SharedCrawlError> {
    let is_quick = |server: &ConnectedServer| match server.took * ANSWERS_PER_LEASE > options.lease
    {
        false => Ok(()),
        true => Err(SharedCrawlError::TooSlow {
            address: server.thread.address.clone(),
            took: server.took,
            lease: options.lease,
        }),
    };
    let (crawl, buckets) = (&options.crawl, options.buckets);
    begin_groups(urls, &options.credentials, crawl, buckets, is_quick)
}

/// Opens a connection for reads and one for commits.
fn sessions(
    thread: &DatabaseThread,
    config: &DatabaseServerConfig,
) -> Result<[Arc<DatabaseSession>; 2], SharedCrawlError> {
    let config = config.clone();
    let opened = thread.run(async move {
        let reader = DatabaseSession::open(&config).await?;
        Ok([reader, DatabaseSession::open(&config).await?])
    });
    Ok(opened?)
}

/// Returns a new unique id for the current process of a worker.
#[must_use]
pub(crate) fn new_life(worker: &str) -> String {
    format!("{worker} {}", uuid::Uuid::new_v4())
}

/// Takes the worker's name. Returns the number of the worker's commits, and an ownership that has
/// no buckets yet.
fn take_name(
    thread: &DatabaseThread,
    session: &Arc<DatabaseSession>,
    crawl: &CrawlRow,
    options: &SharedFrontierOptions,
) -> Result<(Arc<BucketOwnership>, i64), SharedCrawlError> {
    let owner = new_life(&options.worker);
    let (number, worker) = (crawl.number, options.worker.clone());
    let term = i64::try_from(options.lease.as_millis()).unwrap_or(i64::MAX);
    let sent_at = Instant::now();
    let (session, life) = (Arc::clone(session), owner.clone());
    let last = options.last_life.clone();
    let name = thread.run(async move {
        if let Some(last) = &last {
            session
                .execute(SqlStatement::EndBuckets, &[&number, last])
                .await?;
        }
        session
            .query(
                SqlStatement::TakeName,
                &[&number, &worker, &life, &term, &last],
            )
            .await
    })?;
    let Some(name) = name.first() else {
        return Err(SharedCrawlError::WorkerInUse {
            worker: options.worker.clone(),
            crawl: options.crawl.clone(),
        });
    };
    let mut reader = ColumnReader::new(name);
    let (commits, settler) = reader
        .next()
        .zip(reader.next())
        .ok_or_else(|| thread.corrupt("a row of crawl_frontier.worker"))?;
    let life = WorkerProcessIdentity {
        worker: options.worker.clone(),
        owner,
        number: settler,
    };
    let owned = BucketOwnership::new(number, life, options.lease, sent_at);
    Ok((Arc::new(owned), commits))
}

/// Refuses a crawl that was moved into a directory. Must be called after the worker took its name,
/// so that either the command that moves the crawl sees this worker alive, or this worker sees the
/// note of the move.
fn refuse_exported(
    tables: &CrawlDatabaseClient,
    options: &SharedFrontierOptions,
) -> Result<(), SharedCrawlError> {
    let of = |crawl: i32| params![crawl, String::new(), EXPORTED.to_owned()];
    let mut rows = tables.read(SqlStatement::Meta, of(tables.owned.crawl))?;
    for group in &tables.groups.others {
        rows.extend(group.read(SqlStatement::Meta, of(group.crawl))?);
    }
    let Some(row) = rows.first() else {
        return Ok(());
    };
    let to: Vec<u8> = ColumnReader::new(row)
        .next()
        .ok_or_else(|| tables.corrupt("meta"))?;
    Err(SharedCrawlError::Exported {
        crawl: options.crawl.clone(),
        to: String::from_utf8_lossy(&to).into_owned(),
    })
}

/// Sets the crawl's program version and settings to those of this worker. Fails if the stored
/// version or settings differ and another worker is alive. The stored settings are those of the
/// first worker, or those that a worker reloaded last. The first server group stores the
/// version and the settings.
fn take_settings(
    tables: &CrawlDatabaseClient,
    options: &SharedFrontierOptions,
) -> Result<(), SharedCrawlError> {
    let owned = &tables.owned;
    let (program, settings) = (options.program.clone(), options.settings.clone());
    // Look for other workers only after taking the name. So at least one of two workers that start
    // at the same time sees the other.
    let others_live = is_anybody_elsewhere(tables)?;
    let life = owned.owner.clone();
    let updated = tables.read_in(FIRST_GROUP, SqlStatement::TakeSettings, |crawl| {
        params![crawl, life, program, settings, others_live]
    })?;
    if !updated.is_empty() {
        return Ok(());
    }
    let rows = tables.read_in(FIRST_GROUP, SqlStatement::Settings, |crawl| params![crawl])?;
    let stored = rows.first().and_then(|row| {
        let mut reader = ColumnReader::new(row);
        Some((reader.next::<String>()?, reader.next::<String>()?))
    });
    let (program, settings) = stored.ok_or_else(|| tables.corrupt("crawl"))?;
    let crawl = options.crawl.clone();
    Err(match program == options.program {
        false => SharedCrawlError::OtherProgram {
            crawl,
            found: program,
            own: options.program.clone(),
        },
        true => SharedCrawlError::OtherSettings {
            crawl,
            differences: differences(&settings, &options.settings),
        },
    })
}

/// Returns the lines that only one of the two texts has, with a `-` before the lines of `theirs`
/// and a `+` before the lines of `own`.
fn differences(theirs: &str, own: &str) -> String {
    let without = |of: &str, other: &str, sign: char| {
        let other_lines: HashSet<&str> = other.lines().collect();
        let lines = of.lines().filter(|line| !other_lines.contains(line));
        lines
            .map(|line| format!("\n  {sign} {line}"))
            .collect::<Vec<_>>()
    };
    let lines = [without(theirs, own, '-'), without(own, theirs, '+')].concat();
    lines.concat()
}

/// Returns the number of buckets that each living worker of this server group should have.
fn fair_share(tables: &CrawlDatabaseClient) -> Result<u64, FrontierError> {
    let rows = tables.read(SqlStatement::Living, params![tables.owned.crawl])?;
    let living_count = rows.first().and_then(|row| ColumnReader::new(row).count());
    let living_count = living_count.ok_or_else(|| tables.corrupt("worker"))?;
    Ok(tables.served_buckets().div_ceil(living_count.max(1)))
}

/// Takes up to `most` buckets without an owner.
pub(crate) fn take_buckets(
    tables: &CrawlDatabaseClient,
    most: u64,
) -> Result<TakenBuckets, FrontierError> {
    let owned = &tables.owned;
    let sent_at = Instant::now();
    let (term, most) = (
        owned.term.as_millis() as i64,
        i64::try_from(most).unwrap_or(i64::MAX),
    );
    let group = tables.groups.own;
    let params = params![owned.crawl, owned.owner.clone(), term, most, group];
    let rows = tables.read(SqlStatement::TakeBuckets, params)?;
    let now = Instant::now();
    let mut result = TakenBuckets {
        buckets: HashMap::with_capacity(rows.len()),
        sent_at,
        seq: 0,
        totals: CommittedUrlCounts::default(),
    };
    for row in &rows {
        let mut reader = ColumnReader::new(row);
        let (key, seq, totals) = reader.bucket().ok_or_else(|| tables.corrupt("bucket"))?;
        let (b, epoch) = key;
        let bucket = OwnedBucket {
            epoch,
            sent_at,
            taken: now,
        };
        result.buckets.insert(b, bucket);
        result.seq = result.seq.max(seq);
        result.totals = sum(result.totals, totals);
    }
    Ok(result)
}

/// Returns the origins of `buckets` that have pending URLs, each with its number (the key of its
/// rows) and the number of its pending URLs.
pub(crate) fn origins_of(
    tables: &CrawlDatabaseClient,
    buckets: Vec<i32>,
) -> Result<Vec<(Origin, u64, u64)>, FrontierError> {
    let rows = tables.read(SqlStatement::Origins, params![tables.owned.crawl, buckets])?;
    let origin = |row| {
        let mut reader = ColumnReader::new(row);
        let origin = Origin::parse(reader.next()?).ok()?;
        let (number, pending): (i64, i64) = (reader.next()?, reader.next()?);
        Some((origin, number as u64, u64::try_from(pending).ok()?))
    };
    let origins: Option<Vec<_>> = rows.iter().map(origin).collect();
    origins.ok_or_else(|| tables.corrupt("origin"))
}
