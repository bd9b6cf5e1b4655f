//! An engine: what it must be able to do, and the tables that are made there.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crawl_frontier::FrontierError;
use crawl_frontier::shared::SharedError;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::connection::{Answer, EngineConfig, EngineThread, connect, within};
use crate::connection_string::ConnectionString;
use crate::credentials::Credentials;
use crate::error::OpenError;
use crate::tls::not_connected;

/// The layout of the tables that this program makes and reads.
const LAYOUT: i32 = 3;

/// The oldest PostgreSQL that will do, as `server_version_num`: the oldest that tests run.
const OLDEST_ENGINE: i32 = 150_000;

/// The clocks of engine and worker may be so far apart without a word.
const MAX_SKEW: Duration = Duration::from_secs(2);

/// An engine that takes longer to answer is told of.
const MAX_USUAL_ANSWER: Duration = Duration::from_secs(1);

/// How often an engine is asked that does not answer at once: one answer may be late by chance.
const MAX_QUESTIONS: usize = 3;
const QUICK_ANSWER: Duration = Duration::from_millis(20);

/// How often making the tables is tried while others make them too.
const MAX_TRIES: usize = 10;

/// How connections to the engine at a connection string are made, and a thread for them.
pub(crate) fn engine_at(
    url: &str,
    credentials: &Credentials,
) -> Result<(EngineThread, EngineConfig), OpenError> {
    let url = ConnectionString::parse(url)?;
    let config = EngineConfig::new(&url, credentials)?;
    let thread = EngineThread::start(url.address()).map_err(|why| {
        FrontierError::Shared(SharedError::Engine {
            address: String::from("the thread of its connections"),
            source: why.into(),
        })
    })?;
    Ok((thread, config))
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
    let limit = config.time_limit();
    let facts = thread.run(async move { within(limit, facts(&asked)).await })?;
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
