//! A database server of a shared frontier: checks its requirements, and creates the tables.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crawl_frontier::FrontierError;
use crawl_frontier::worker_frontier::SharedFrontierError;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::connection::{DatabaseResult, DatabaseServerConfig, DatabaseThread, connect, within};
use crate::connection_string::ConnectionString;
use crate::database_password::PasswordSources;
use crate::error::SharedCrawlError;
use crate::tls::not_connected;

/// The version of the layout of the tables that this program creates and reads.
const LAYOUT: i32 = 3;

/// The oldest supported PostgreSQL, as `server_version_num`. The tests run this version.
const OLDEST_VERSION: i32 = 150_000;

/// The tolerated difference between the clocks of the database server and of this machine.
const MAX_SKEW: Duration = Duration::from_secs(2);

/// The response time above which a warning is logged.
const MAX_USUAL_ANSWER: Duration = Duration::from_secs(1);

/// Maximum number of times to measure a database server's response time. A reply within
/// [`QUICK_ANSWER`] needs no further measurement. After a late reply the measurement is repeated,
/// because one late reply may be chance.
const MAX_QUESTIONS: usize = 3;
const QUICK_ANSWER: Duration = Duration::from_millis(20);

/// Maximum attempts to create the tables while other processes create them too.
const MAX_TRIES: usize = 10;

/// Returns the configuration of connections to the database server that a connection string names,
/// and a thread for these connections.
pub(crate) fn server_at(
    url: &str,
    credentials: &PasswordSources,
) -> Result<(DatabaseThread, DatabaseServerConfig), SharedCrawlError> {
    let url = ConnectionString::parse(url)?;
    let config = DatabaseServerConfig::new(&url, credentials)?;
    let thread = DatabaseThread::start(url.address()).map_err(|why| {
        FrontierError::Shared(SharedFrontierError::DatabaseServer {
            address: String::from("the thread of its connections"),
            source: why.into(),
        })
    })?;
    Ok((thread, config))
}

/// Connects to a database server, and checks that it is usable and has tables of this program's
/// layout. Returns the connection and the database server's response time.
pub(crate) fn judged(
    thread: &DatabaseThread,
    config: &DatabaseServerConfig,
) -> Result<(Arc<Client>, Duration), SharedCrawlError> {
    let address = || thread.address.clone();
    let to_connect = config.clone();
    let connected = thread.try_run(async move { connect(&to_connect).await });
    let client = connected.map_err(|why| match why {
        Some(source) => not_connected(address(), source),
        None => thread.failed(None).into(),
    })?;
    let client = Arc::new(client);
    let facts_client = Arc::clone(&client);
    let limit = config.time_limit();
    let facts = thread.run(async move { within(limit, facts(&facts_client)).await })?;
    for warning in clock_warnings(facts.ahead, facts.took) {
        tracing::warn!("the frontier at {}: {warning}", thread.address);
    }
    if facts.version < OLDEST_VERSION {
        return Err(SharedCrawlError::TooOld {
            address: address(),
            found: facts.version,
            least: OLDEST_VERSION,
        });
    }
    if facts.is_read_only {
        return Err(SharedCrawlError::ReadOnly { address: address() });
    }
    let layout_client = Arc::clone(&client);
    let version = thread.run(async move { layout(&layout_client).await })?;
    if version != LAYOUT {
        return Err(SharedCrawlError::Layout {
            address: address(),
            found: version,
            known: LAYOUT,
        });
    }
    Ok((client, facts.took))
}

/// The version, state, clock and response time of a database server.
#[derive(Default)]
struct ServerFacts {
    version: i32,
    is_read_only: bool,
    /// How many seconds the database server's clock is ahead of this machine's clock.
    ahead: f64,
    /// The database server's response time.
    took: Duration,
}

async fn facts(client: &Client) -> DatabaseResult<ServerFacts> {
    let text = "SELECT current_setting('server_version_num')::int,
        pg_is_in_recovery() OR current_setting('transaction_read_only')::bool,
        extract(epoch FROM clock_timestamp())::float8";
    let statement = client.prepare(text).await?;
    let mut facts = ServerFacts::default();
    for question in 0..MAX_QUESTIONS {
        let sent_at = Instant::now();
        let row = client.query_one(&statement, &[]).await?;
        let took = sent_at.elapsed();
        let own = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let own = own.unwrap_or_default().as_secs_f64();
        if question == 0 || took < facts.took {
            let server_clock: f64 = row.try_get(2)?;
            facts = ServerFacts {
                version: row.try_get(0)?,
                is_read_only: row.try_get(1)?,
                // The database server read its clock between request and reply. The middle of that
                // time is the best estimate.
                ahead: server_clock - (own - took.as_secs_f64() / 2.0),
                took,
            };
        }
        if took <= QUICK_ANSWER {
            break;
        }
    }
    Ok(facts)
}

/// Returns warnings about a database server whose clock is `ahead` seconds ahead and whose response
/// time is `took`.
fn clock_warnings(ahead: f64, took: Duration) -> Vec<String> {
    let mut warnings = Vec::new();
    // The difference between the clocks is known only to within half of the response time.
    if ahead.abs() > MAX_SKEW.as_secs_f64() + took.as_secs_f64() / 2.0 {
        let direction = if ahead > 0.0 { "ahead of" } else { "behind" };
        warnings.push(format!(
            "its clock is {:.1} s {direction} this machine's; hint: synchronize both clocks by NTP, \
             since leases use its clock, and rows the clock of this machine",
            ahead.abs()
        ));
    }
    if took > MAX_USUAL_ANSWER {
        warnings.push(format!(
            "it took {:.1} s to answer; hint: use a closer database server, since each page \
             waits for answers, and a lease (--frontier-lease) must be several times longer",
            took.as_secs_f64()
        ));
    }
    warnings
}

/// Creates the tables if they are missing, and returns the version of their layout.
async fn layout(client: &Client) -> DatabaseResult<i32> {
    let mut tries = 0;
    loop {
        let exists = client
            .query_one(
                "SELECT to_regclass('crawl_frontier.layout') IS NOT NULL",
                &[],
            )
            .await?;
        if exists.try_get(0)? {
            let text = "SELECT version FROM crawl_frontier.layout";
            return client.query_one(text, &[]).await?.try_get(0);
        }
        tries += 1;
        match make_tables(client).await {
            // Another worker created the tables at the same time. Look for them again.
            Err(why) if tries < MAX_TRIES && is_duplicate(&why) => {}
            made => made?,
        }
    }
}

async fn make_tables(client: &Client) -> DatabaseResult<()> {
    let schema = include_str!("schema.sql");
    // Create the namespace only if it is missing. A user who may not create it can use an existing
    // one.
    let exists = "SELECT to_regnamespace('crawl_frontier') IS NOT NULL";
    let namespace = match client.query_one(exists, &[]).await?.try_get(0)? {
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
    fn a_wrong_clock_and_a_late_reply_are_reported() {
        let warnings =
            |ahead, millis| clock_warnings(ahead, Duration::from_millis(millis)).join("\n");
        assert_eq!(warnings(1.9, 20), "");
        assert_eq!(warnings(-1.9, 900), "");
        assert!(warnings(3600.0, 20).contains("is 3600.0 s ahead of"));
        assert!(warnings(-5.0, 20).contains("is 5.0 s behind"));
        // The measured clock difference is too imprecise after such a late reply, so no warning
        // about the clock is expected.
        let late = warnings(6.0, 10_000);
        assert!(
            late.contains("took 10.0 s") && !late.contains("clock is"),
            "{late}"
        );
    }
}
