//! The home group of each worker, and the page budget shared by the workers of all server groups.
//! Both are stored in the first group, and changed there by compare-and-set.

use std::collections::BTreeMap;

use crawl_frontier::FrontierError;
use crawl_frontier::worker_frontier::SharedFrontierError;
use tokio_postgres::Row;

use crate::connection::{DatabaseServerConfig, DatabaseThread, params};
use crate::crawl_database_client::CrawlDatabaseClient;
use crate::database_server_groups::{BucketMap, OtherServerGroup};
use crate::error::SharedCrawlError;
use crate::open_groups::{CrawlRow, ServerGroup};
use crate::options::SharedFrontierOptions;
use crate::row_codec::ColumnReader;
use crate::sql_statements::SqlStatement;

/// The number of the server group that stores the data that exists only once in a crawl, such as
/// the homes of workers. This group exists for as long as the crawl does.
pub(crate) const FIRST_GROUP: i32 = 0;

/// Maximum attempts at a change that fails if other workers make changes at the same time.
const MAX_TRIES: usize = 1_000;

/// A worker's home (the server group that it works in), and the other groups.
pub(crate) struct HomeAndOtherServerGroups {
    pub(crate) crawl: CrawlRow,
    pub(crate) thread: DatabaseThread,
    pub(crate) config: DatabaseServerConfig,
    pub(crate) others: Vec<OtherServerGroup>,
    pub(crate) map: BucketMap,
}

/// A worker, as reported by the server group that it works in.
struct WorkerFacts {
    name: String,
    life: String,
    pages: u64,
    is_alive: bool,
}

/// The home of each worker (the server group that it works in), with a version that every change
/// increases.
struct WorkerHomes {
    version: i64,
    workers: BTreeMap<String, WorkerHome>,
}

struct WorkerHome {
    group: i32,
    /// Whether the home was assigned a moment ago. If so, the worker may not have started yet.
    is_new: bool,
    /// The id of the process that the worker's pages were granted to.
    life: String,
    allowed: u64,
}

/// Finds the home of a worker among the server groups of a crawl.
pub(crate) fn find_home(
    groups: Vec<ServerGroup>,
    options: &SharedFrontierOptions,
) -> Result<HomeAndOtherServerGroups, SharedCrawlError> {
    let rows: Vec<CrawlRow> = groups.iter().map(|group| group.crawl.clone()).collect();
    let mut known_groups: Vec<OtherServerGroup> =
        groups.into_iter().map(ServerGroup::into_other).collect();
    let (home, map) = match known_groups.len() {
        1 => (
            known_groups.first().map(|group| group.number),
            BucketMap::default(),
        ),
        _ => {
            let home = home_of(&known_groups, &options.worker)?;
            let group = known_groups.iter().find(|group| group.number == home);
            let map = group.map(map_of).transpose()?.unwrap_or_default();
            (Some(home), map)
        }
    };
    let at = known_groups
        .iter()
        .position(|group| Some(group.number) == home);
    let at = at.filter(|at| *at < rows.len());
    let Some(at) = at else {
        return Err(SharedCrawlError::GroupMissing {
            crawl: options.crawl.clone(),
            number: home.unwrap_or_default(),
            groups: i32::try_from(rows.len()).unwrap_or(i32::MAX),
        });
    };
    let own = known_groups.remove(at);
    let (thread, config) = own.into_parts();
    Ok(HomeAndOtherServerGroups {
        crawl: rows[at].clone(),
        thread,
        config,
        others: known_groups,
        map,
    })
}

/// Returns the home group of a worker. Assigns a server group if the worker has none.
fn home_of(groups: &[OtherServerGroup], worker: &str) -> Result<i32, FrontierError> {
    let Some(first) = groups.iter().find(|group| group.number == FIRST_GROUP) else {
        return Ok(FIRST_GROUP);
    };
    for _ in 0..MAX_TRIES {
        let mut facts = Vec::with_capacity(groups.len());
        for group in groups {
            let rows = group.read(SqlStatement::Workers, params![group.crawl])?;
            facts.push((group.number, read_workers(&rows, group)?));
        }
        let homes = read_homes(&first.read(SqlStatement::Homes, params![first.crawl])?)
            .ok_or_else(|| corrupt(first, "worker_home"))?;
        if let Some(home) = homes.workers.get(worker) {
            return Ok(home.group);
        }
        // A worker that first started when the crawl had a single server group has no stored home.
        // But that group has a row with the worker's name.
        let began = facts.iter().find_map(|(group, workers)| {
            let mut names = workers.iter();
            names
                .any(|worker_facts| worker_facts.name == worker)
                .then_some(*group)
        });
        let home = match began {
            Some(group) => group,
            None => emptiest(&map_of(first)?, &facts, &homes),
        };
        let params = params![first.crawl, homes.version, worker.to_owned(), home];
        if !first.read(SqlStatement::AssignHome, params)?.is_empty() {
            return Ok(home);
        }
    }
    Err(busy(&first.thread))
}

/// Returns the server group with the fewest workers per served bucket. If several groups have
/// equally few, returns the first. Groups that serve no bucket come last.
fn emptiest(map: &BucketMap, facts: &[(i32, Vec<WorkerFacts>)], homes: &WorkerHomes) -> i32 {
    let served = map.served();
    let workers = |group: i32, facts: &[WorkerFacts]| {
        let living = facts.iter().filter(|worker| worker.is_alive).count();
        let begins = homes.workers.iter().filter(|(name, home)| {
            let is_known = facts.iter().any(|worker| worker.name == **name);
            home.group == group && home.is_new && !is_known
        });
        (living + begins.count()) as u64
    };
    let groups = facts.iter().map(|(group, facts)| {
        let buckets = served.get(group).copied().unwrap_or(0);
        (*group, workers(*group, facts), buckets)
    });
    let emptiest = groups.min_by(|(_, workers, buckets), (_, other_workers, theirs)| {
        let by_share = (workers * theirs).cmp(&(other_workers * buckets));
        (*buckets == 0).cmp(&(*theirs == 0)).then(by_share)
    });
    emptiest.map_or(FIRST_GROUP, |(group, ..)| group)
}

/// Returns whether another worker is alive in a server group other than the first.
pub(crate) fn is_anybody_elsewhere(tables: &CrawlDatabaseClient) -> Result<bool, FrontierError> {
    let groups = &tables.groups;
    if groups.count() == 1 {
        return Ok(false);
    }
    let mut numbers = groups
        .others
        .iter()
        .map(|group| group.number)
        .collect::<Vec<_>>();
    numbers.push(groups.own);
    for number in numbers.into_iter().filter(|number| *number != FIRST_GROUP) {
        let rows = tables.read_in(number, SqlStatement::Workers, |crawl| params![crawl])?;
        let workers = read(&rows).ok_or_else(|| tables.corrupt("worker"))?;
        let life = &tables.owned.owner;
        if workers
            .iter()
            .any(|worker| worker.is_alive && worker.life != *life)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Grants a worker `more` pages in addition to the `pages` that it has used. Returns the total
/// granted to the worker. The workers of all server groups share `of` pages. For a living worker,
/// the pages granted to it are counted. For an ended worker, only the pages that it fetched are
/// counted.
pub(crate) fn allow(
    tables: &CrawlDatabaseClient,
    pages: u64,
    more: u64,
    of: u64,
) -> Result<u64, FrontierError> {
    let owned = &tables.owned;
    for _ in 0..MAX_TRIES {
        // Read the homes of all workers first. If a worker starts after that and is granted pages,
        // the version of the homes changes, so this grant fails and is tried again.
        let rows = tables.read_in(FIRST_GROUP, SqlStatement::Homes, |crawl| params![crawl])?;
        let homes = read_homes(&rows).ok_or_else(|| tables.corrupt("worker_home"))?;
        let mut facts = Vec::new();
        let rows = tables.read(SqlStatement::Workers, params![owned.crawl])?;
        facts.extend(read(&rows).ok_or_else(|| tables.corrupt("worker"))?);
        for group in &tables.groups.others {
            let rows = group.read(SqlStatement::Workers, params![group.crawl])?;
            facts.extend(read_workers(&rows, group)?);
        }
        let other_workers = facts.iter().filter(|worker| worker.name != owned.worker);
        let other_pages: u64 = other_workers.map(|worker| homes.may_have(worker)).sum();
        let own = homes.workers.get(&owned.worker);
        let own = own.filter(|home| home.life == owned.owner);
        let before = own.map_or(pages, |home| home.allowed.max(pages));
        let allowed = before.max((pages + more).min(of.saturating_sub(other_pages)));
        if allowed == before {
            return Ok(allowed);
        }
        let (worker, life) = (owned.worker.clone(), owned.owner.clone());
        let all = i64::try_from(allowed).unwrap_or(i64::MAX);
        let put = tables.read_in(FIRST_GROUP, SqlStatement::PutAllowed, |crawl| {
            params![crawl, homes.version, worker, life, all]
        })?;
        if !put.is_empty() {
            return Ok(allowed);
        }
    }
    Err(busy(&tables.thread))
}

/// Lowers the pages granted to this worker to at most `pages`.
pub(crate) fn lower_allowed(tables: &CrawlDatabaseClient, pages: i64) -> Result<(), FrontierError> {
    let owned = &tables.owned;
    let (worker, life) = (owned.worker.clone(), owned.owner.clone());
    let lowered = tables.read_in(FIRST_GROUP, SqlStatement::LowerAllowed, |crawl| {
        params![crawl, worker, life, pages]
    });
    lowered.map(drop)
}

impl WorkerHomes {
    /// Returns how many pages of the budget a worker takes up: all pages granted to it while its
    /// process may still fetch them, and afterwards only the pages that it fetched.
    fn may_have(&self, worker: &WorkerFacts) -> u64 {
        match self.workers.get(&worker.name) {
            // A grant is valid only while its worker's process is alive. After that, other workers
            // may use the rest of the granted pages.
            Some(home) if worker.is_alive || home.life != worker.life => {
                home.allowed.max(worker.pages)
            }
            _ => worker.pages,
        }
    }
}

impl ServerGroup {
    /// Converts this group to the form in which a worker of another server group queries it.
    fn into_other(self) -> OtherServerGroup {
        let ServerGroup { server, crawl } = self;
        OtherServerGroup::new(crawl.group, crawl.number, server.thread, server.config)
    }
}

/// Reads the map of buckets as stored in a server group.
fn map_of(group: &OtherServerGroup) -> Result<BucketMap, FrontierError> {
    let rows = group.read(SqlStatement::Map, params![group.crawl])?;
    // Version -1 is older than any stored version. So the first survey finds a newer version, and
    // the map is read again.
    read_map(&rows, -1).ok_or_else(|| corrupt(group, "bucket"))
}

/// Reads rows of [`SqlStatement::Map`].
pub(crate) fn read_map(rows: &[Row], version: i64) -> Option<BucketMap> {
    let homes = rows.iter().map(|row| ColumnReader::new(row).next());
    let homes: Option<Vec<i32>> = homes.collect();
    Some(BucketMap::new(version, homes?))
}

fn read_workers(rows: &[Row], group: &OtherServerGroup) -> Result<Vec<WorkerFacts>, FrontierError> {
    read(rows).ok_or_else(|| corrupt(group, "worker"))
}

fn read(rows: &[Row]) -> Option<Vec<WorkerFacts>> {
    let worker = |row| {
        let mut reader = ColumnReader::new(row);
        Some(WorkerFacts {
            name: reader.next()?,
            life: reader.next()?,
            pages: reader.count()?,
            is_alive: reader.next()?,
        })
    };
    rows.iter().map(worker).collect()
}

fn read_homes(rows: &[Row]) -> Option<WorkerHomes> {
    let mut homes = WorkerHomes {
        version: ColumnReader::new(rows.first()?).next()?,
        workers: BTreeMap::new(),
    };
    for row in rows {
        let mut reader = ColumnReader::new(row);
        let _: i64 = reader.next()?;
        let Some(name) = reader.next::<Option<String>>()? else {
            continue;
        };
        let home = WorkerHome {
            group: reader.next()?,
            is_new: reader.next()?,
            life: reader.next()?,
            allowed: reader.count()?,
        };
        homes.workers.insert(name, home);
    }
    Some(homes)
}

fn corrupt(group: &OtherServerGroup, table: &str) -> FrontierError {
    group
        .thread
        .corrupt(&format!("a row of crawl_frontier.{table}"))
}

fn busy(thread: &DatabaseThread) -> FrontierError {
    FrontierError::Shared(SharedFrontierError::DatabaseServer {
        address: thread.address.clone(),
        source: "other workers kept changing the homes of workers".into(),
    })
}
