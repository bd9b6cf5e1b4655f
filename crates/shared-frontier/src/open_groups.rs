//! The server groups of a crawl: finds existing ones and creates new ones.
//!
//! Each database server has a row of the crawl with the number of its group and the number of
//! groups. The first start numbers the groups in the order in which they are named. The groups
//! become valid once all groups are created. Before that, a start that was interrupted can be
//! repeated. After that, a start that does not name all groups is refused.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crawl_frontier::{FingerprintKey, FrontierError};
use tokio_postgres::Client;

use crate::connection::{DatabaseResult, DatabaseServerConfig, DatabaseThread};
use crate::database_password::PasswordSources;
use crate::database_server_groups::MAX_GROUPS;
use crate::error::SharedCrawlError;
use crate::server_setup::{judged, server_at};

/// A database server with an open connection.
pub(crate) struct ConnectedServer {
    pub(crate) thread: DatabaseThread,
    pub(crate) config: DatabaseServerConfig,
    client: Arc<Client>,
    /// The database server's response time.
    pub(crate) took: Duration,
}

/// A server group of a crawl.
pub(crate) struct ServerGroup {
    pub(crate) server: ConnectedServer,
    pub(crate) crawl: CrawlRow,
}

/// The row of a crawl as stored in a database server.
#[derive(Clone, Debug)]
pub(crate) struct CrawlRow {
    pub(crate) number: i32,
    pub(crate) buckets: i32,
    pub(crate) key: FingerprintKey,
    /// The number of the database server's group.
    pub(crate) group: i32,
    /// The number of server groups of the crawl.
    pub(crate) groups: i32,
    is_whole: bool,
}

/// A server group to be created.
pub(crate) struct NewServerGroup {
    /// The key of fingerprints, or `None` to draw a new key.
    key: Option<FingerprintKey>,
    group: i32,
    groups: i32,
    is_whole: bool,
    /// The server group that serves each bucket.
    homes: Vec<i32>,
}

impl NewServerGroup {
    /// Describes a crawl of one server group with this number of buckets.
    pub(crate) fn alone(buckets: u16) -> NewServerGroup {
        NewServerGroup::one_of(1, buckets.max(1).into())
    }

    /// Describes the first of `groups` server groups, which share the buckets equally.
    fn one_of(groups: i32, buckets: i32) -> NewServerGroup {
        NewServerGroup {
            key: None,
            group: 0,
            groups,
            is_whole: groups == 1,
            homes: (0..buckets).map(|b| b % groups.max(1)).collect(),
        }
    }
}

/// Connects to the database server of each connection string.
fn reach(
    urls: &[String],
    credentials: &PasswordSources,
) -> Result<Vec<ConnectedServer>, SharedCrawlError> {
    if urls.len() > MAX_GROUPS {
        return Err(SharedCrawlError::TooManyGroups {
            found: urls.len(),
            most: MAX_GROUPS,
        });
    }
    let servers = urls.iter().map(|url| {
        let (thread, config) = server_at(url, credentials)?;
        let (client, took) = judged(&thread, &config)?;
        Ok(ConnectedServer {
            thread,
            config,
            client,
            took,
        })
    });
    servers.collect()
}

impl ConnectedServer {
    fn address(&self) -> String {
        self.thread.address.clone()
    }

    fn find(&self, crawl: &str) -> Result<Option<CrawlRow>, FrontierError> {
        let (client, name) = (Arc::clone(&self.client), crawl.to_owned());
        self.thread.run(async move { find(&client, &name).await })
    }

    /// Returns the crawl named `name`. Creates it if it is missing.
    fn begin(&self, name: &str, new: NewServerGroup) -> Result<CrawlRow, FrontierError> {
        let (client, name) = (Arc::clone(&self.client), name.to_owned());
        self.thread
            .run(async move { crawl(&client, &name, &new).await })
    }

    /// Executes a statement with two parameters: the crawl's number and `value`.
    fn execute(&self, crawl: i32, value: i32, text: &'static str) -> Result<(), FrontierError> {
        let client = Arc::clone(&self.client);
        self.thread
            .run(async move { client.execute(text, &[&crawl, &value]).await })
            .map(drop)
    }

    fn homes(&self, crawl: i32) -> Result<Vec<i32>, FrontierError> {
        let client = Arc::clone(&self.client);
        self.thread.run(async move {
            let text = "SELECT home FROM crawl_frontier.bucket WHERE crawl = $1 ORDER BY b";
            let rows = client.query(text, &[&crawl]).await?;
            rows.iter().map(|row| row.try_get(0)).collect()
        })
    }
}

/// Returns the server groups of the crawl `name` at the given connection strings, sorted by number.
/// Creates groups that are missing. A new crawl gets `buckets` buckets. Fails if `judge` fails for
/// any database server.
pub(crate) fn begin_groups(
    urls: &[String],
    credentials: &PasswordSources,
    name: &str,
    buckets: u16,
    judge: impl Fn(&ConnectedServer) -> Result<(), SharedCrawlError>,
) -> Result<Vec<ServerGroup>, SharedCrawlError> {
    refuse_twice(urls, name)?;
    let servers = reach(urls, credentials)?;
    servers.iter().try_for_each(judge)?;
    let crawl_rows = find_rows(&servers, |server| server.find(name))?;
    let mut groups = match has_begun(&crawl_rows) {
        true => go_on(servers, crawl_rows, name)?,
        false => first_start(servers, name, buckets.max(1).into())?,
    };
    groups.sort_by_key(|group| group.crawl.group);
    Ok(groups)
}

/// Returns the row of the crawl on each server, as `find` returns it. `None` if the server doesn't
/// have the crawl.
///
/// Another worker may create the crawl while the rows are read. In that case, the first servers may
/// seem to lack the crawl, although a later one has a complete row (`is_whole`). A row is complete
/// only once every server has the crawl, so all rows are read again.
fn find_rows<S, E>(
    servers: &[S],
    mut find: impl FnMut(&S) -> Result<Option<CrawlRow>, E>,
) -> Result<Vec<Option<CrawlRow>>, E> {
    let mut read = || servers.iter().map(&mut find).collect::<Result<Vec<_>, E>>();
    let rows = read()?;
    match has_begun(&rows) && rows.iter().any(Option::is_none) {
        true => read(),
        false => Ok(rows),
    }
}

/// Returns whether a crawl was created on all of its servers.
fn has_begun(rows: &[Option<CrawlRow>]) -> bool {
    rows.iter().flatten().any(|row| row.is_whole)
}

/// Returns the server groups of an existing crawl, sorted by number.
pub(crate) fn find_groups(
    urls: &[String],
    credentials: &PasswordSources,
    name: &str,
) -> Result<Vec<ServerGroup>, SharedCrawlError> {
    refuse_twice(urls, name)?;
    let groups = reach(urls, credentials)?.into_iter().map(|server| {
        let row = server.find(name)?.filter(|row| row.is_whole);
        let crawl = row.ok_or_else(|| SharedCrawlError::NoSuchCrawl {
            address: server.address(),
            crawl: name.to_owned(),
        })?;
        Ok(ServerGroup { server, crawl })
    });
    let mut groups = groups.collect::<Result<Vec<_>, SharedCrawlError>>()?;
    check(&groups, name)?;
    groups.sort_by_key(|group| group.crawl.group);
    Ok(groups)
}

fn refuse_twice(urls: &[String], crawl: &str) -> Result<(), SharedCrawlError> {
    for (at, url) in urls.iter().enumerate() {
        if urls.iter().take(at).any(|before| before == url) {
            return Err(SharedCrawlError::GroupTwice {
                address: crate::ConnectionString::parse(url)?.address(),
                crawl: crawl.to_owned(),
            });
        }
    }
    Ok(())
}

/// Creates all server groups of a crawl, numbered in the order in which the database servers are
/// named. Reuses groups that an interrupted start left.
fn first_start(
    servers: Vec<ConnectedServer>,
    name: &str,
    buckets: i32,
) -> Result<Vec<ServerGroup>, SharedCrawlError> {
    let count = number_of(servers.len());
    let mut groups: Vec<ServerGroup> = Vec::with_capacity(servers.len());
    for (number, server) in (0..).zip(servers) {
        let new = match groups.first() {
            None => NewServerGroup::one_of(count, buckets),
            Some(first) => NewServerGroup {
                key: Some(first.crawl.key),
                group: number,
                ..NewServerGroup::one_of(count, first.crawl.buckets)
            },
        };
        let crawl = server.begin(name, new)?;
        if crawl.group != number {
            return Err(
                match groups.iter().any(|group| group.crawl.group == crawl.group) {
                    true => SharedCrawlError::GroupTwice {
                        address: server.address(),
                        crawl: name.to_owned(),
                    },
                    false => differs(&server, name, "it was created as another group"),
                },
            );
        }
        groups.push(ServerGroup { server, crawl });
    }
    check_alike(&groups, name)?;
    for group in &mut groups {
        mark_complete(group, count)?;
    }
    Ok(groups)
}

/// Continues an existing crawl. Database servers that don't have the crawl join as additional
/// server groups.
fn go_on(
    servers: Vec<ConnectedServer>,
    crawl_rows: Vec<Option<CrawlRow>>,
    name: &str,
) -> Result<Vec<ServerGroup>, SharedCrawlError> {
    let (mut groups, mut new) = (Vec::new(), Vec::new());
    for (server, crawl) in servers.into_iter().zip(crawl_rows) {
        match crawl {
            Some(crawl) => groups.push(ServerGroup { server, crawl }),
            None => new.push(server),
        }
    }
    check(&groups, name)?;
    let mut count = count_of(&groups);
    for group in &mut groups {
        mark_complete(group, count)?;
    }
    for server in new {
        let Some(first) = groups.first() else { break };
        let crawl = server.begin(
            name,
            NewServerGroup {
                key: Some(first.crawl.key),
                group: count,
                groups: count + 1,
                is_whole: true,
                homes: first.server.homes(first.crawl.number)?,
            },
        )?;
        count += 1;
        groups.push(ServerGroup { server, crawl });
    }
    check(&groups, name)?;
    for group in &mut groups {
        if group.crawl.groups < count {
            let text = "UPDATE crawl_frontier.crawl SET groups = greatest(groups, $2)
                WHERE number = $1";
            group.server.execute(group.crawl.number, count, text)?;
            group.crawl.groups = count;
        }
    }
    Ok(groups)
}

/// Records that all server groups of a crawl were created, and stores which group serves each
/// bucket.
fn mark_complete(group: &mut ServerGroup, groups: i32) -> Result<(), FrontierError> {
    if group.crawl.is_whole {
        return Ok(());
    }
    let text = "WITH whole AS (
            UPDATE crawl_frontier.crawl SET is_whole = true, groups = $2
            WHERE number = $1 AND NOT is_whole RETURNING number)
        UPDATE crawl_frontier.bucket k SET home = k.b % $2
        FROM whole WHERE k.crawl = whole.number";
    group.server.execute(group.crawl.number, groups, text)?;
    (group.crawl.is_whole, group.crawl.groups) = (true, groups);
    Ok(())
}

/// Refuses server groups of different crawls, and incomplete or duplicate groups.
fn check(groups: &[ServerGroup], name: &str) -> Result<(), SharedCrawlError> {
    check_alike(groups, name)?;
    let mut missing: BTreeSet<i32> = (0..count_of(groups)).collect();
    let mut seen = BTreeSet::new();
    for group in groups {
        missing.remove(&group.crawl.group);
        if !seen.insert(group.crawl.group) {
            return Err(SharedCrawlError::GroupTwice {
                address: group.server.address(),
                crawl: name.to_owned(),
            });
        }
    }
    match missing.first() {
        None => Ok(()),
        Some(number) => Err(SharedCrawlError::GroupMissing {
            crawl: name.to_owned(),
            number: *number,
            groups: count_of(groups),
        }),
    }
}

fn check_alike(groups: &[ServerGroup], name: &str) -> Result<(), SharedCrawlError> {
    let Some(first) = groups.first() else {
        return Ok(());
    };
    for group in groups {
        if group.crawl.key.bytes() != first.crawl.key.bytes() {
            let difference = "its URL fingerprints differ";
            return Err(differs(&group.server, name, difference));
        }
        if group.crawl.buckets != first.crawl.buckets {
            return Err(differs(&group.server, name, "its buckets differ"));
        }
    }
    Ok(())
}

fn differs(server: &ConnectedServer, crawl: &str, what: &'static str) -> SharedCrawlError {
    SharedCrawlError::GroupsDiffer {
        address: server.address(),
        crawl: crawl.to_owned(),
        what,
    }
}

/// Returns the highest number of server groups that any valid group (`is_whole`) has stored, or 0
/// if no group is valid.
fn count_of(groups: &[ServerGroup]) -> i32 {
    let whole = groups.iter().filter(|group| group.crawl.is_whole);
    whole.map(|group| group.crawl.groups).max().unwrap_or(0)
}

fn number_of(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

async fn find(client: &Client, name: &str) -> DatabaseResult<Option<CrawlRow>> {
    let text = "SELECT number, buckets, fingerprint_key, group_number, groups, is_whole
        FROM crawl_frontier.crawl WHERE name = $1";
    let Some(row) = client.query_opt(text, &[&name]).await? else {
        return Ok(None);
    };
    let key: Vec<u8> = row.try_get(2)?;
    let mut bytes = [0; 16];
    for (byte, stored) in bytes.iter_mut().zip(key) {
        *byte = stored;
    }
    Ok(Some(CrawlRow {
        number: row.try_get(0)?,
        buckets: row.try_get(1)?,
        key: FingerprintKey::new(bytes),
        group: row.try_get(3)?,
        groups: row.try_get(4)?,
        is_whole: row.try_get(5)?,
    }))
}

/// Returns the crawl named `name`. Creates it if it is missing.
pub(crate) async fn crawl(
    client: &Client,
    name: &str,
    new: &NewServerGroup,
) -> DatabaseResult<CrawlRow> {
    loop {
        if let Some(row) = find(client, name).await? {
            return Ok(row);
        }
        // If two callers create the crawl at the same time, the insert of the second caller does
        // nothing, because the name or the number is in use. The second caller then reads again.
        let begin = "WITH begun AS (
                INSERT INTO crawl_frontier.crawl (map, homes, number, buckets, workers,
                    group_number, groups, name, is_whole, fingerprint_key, program, settings)
                SELECT 0, 0, coalesce(max(number), 0) + 1, cardinality($3::int[]), 0, $4::int,
                    $5::int, $1::text, $6::bool, $2::bytea, '', ''
                FROM crawl_frontier.crawl
                ON CONFLICT DO NOTHING RETURNING number)
            INSERT INTO crawl_frontier.bucket (crawl, b, owner, epoch, lease_until, seq,
                pending, deferred, fetched, failed, excluded, home)
            SELECT number, at - 1, '', 0, '-infinity', 0, 0, 0, 0, 0, 0, home
            FROM begun, unnest($3::int[]) WITH ORDINALITY AS k(home, at)";
        let key = new.key.unwrap_or_else(FingerprintKey::random).bytes();
        let NewServerGroup {
            group,
            groups,
            is_whole,
            ref homes,
            ..
        } = *new;
        let key = key.as_slice();
        client
            .execute(begin, &[&name, &key, homes, &group, &groups, &is_whole])
            .await?;
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use crawl_frontier::FingerprintKey;

    use super::{CrawlRow, find_rows};

    fn row(group: i32, is_whole: bool) -> CrawlRow {
        CrawlRow {
            number: 1,
            buckets: 64,
            key: FingerprintKey::new([7; 16]),
            group,
            groups: 2,
            is_whole,
        }
    }

    #[test]
    fn rows_are_read_again_if_the_crawl_was_created_while_they_were_read() {
        // The rows of two servers at the first and the second reading, and the result.
        let cases = [
            ([None, None], [None, None], [false, false]),
            ([None, Some(false)], [None, None], [false, true]),
            ([Some(false), Some(true)], [None, None], [true, true]),
            ([None, Some(true)], [Some(true), Some(true)], [true, true]),
            // The first server is to join the crawl.
            ([None, Some(true)], [None, Some(true)], [false, true]),
        ];
        for (first, second, expected) in cases {
            let mut readings = first.into_iter().chain(second);
            let rows = find_rows(&[0, 1], |server| {
                let is_whole = readings.next().flatten();
                Ok::<_, Infallible>(is_whole.map(|is_whole| row(*server, is_whole)))
            });
            let Ok(rows) = rows;
            assert_eq!(
                rows.iter().map(Option::is_some).collect::<Vec<_>>(),
                expected
            );
        }
    }
}
