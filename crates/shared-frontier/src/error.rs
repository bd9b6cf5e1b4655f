//! The reasons why a shared frontier can't be opened.

use crawl_frontier::FrontierError;

/// The reason why a shared frontier can't be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The connection string can't be read. Its text is left out, since it may hold a password.
    #[error(
        "the connection string of the frontier can't be read\nhint: such as postgres://crawler@db.example.org/crawl"
    )]
    ConnectionString {
        /// What is wrong with it.
        source: tokio_postgres::Error,
    },
    /// The engine is not on this machine, and connections are not encrypted yet.
    #[error(
        "the frontier at {address} is on another machine, and connections to one are not encrypted yet\nhint: use an engine on loopback"
    )]
    NotLoopback {
        /// The engine's address.
        address: String,
    },
    /// The engine can't be reached, or refuses the user.
    #[error(
        "can't connect to the frontier at {address}\nhint: is PostgreSQL running there, and may this user connect to it?"
    )]
    Unreachable {
        /// The engine's address.
        address: String,
        /// The error of the connection.
        source: tokio_postgres::Error,
    },
    /// The engine is too old.
    #[error(
        "the frontier at {address} is PostgreSQL {}, which is too old\nhint: use {} or newer", found / 10_000, least / 10_000
    )]
    TooOld {
        /// The engine's address.
        address: String,
        /// Its `server_version_num`.
        found: i32,
        /// The least that will do.
        least: i32,
    },
    /// The engine takes no changes.
    #[error(
        "the frontier at {address} is read-only\nhint: it may be a standby; name the primary, or several hosts and target_session_attrs=read-write"
    )]
    ReadOnly {
        /// The engine's address.
        address: String,
    },
    /// The tables were made by a version of the program that this one can't read.
    #[error(
        "the frontier at {address} has layout {found}, this program reads layout {known}\nhint: use the version of the program that began it"
    )]
    Layout {
        /// The engine's address.
        address: String,
        /// The layout of the tables.
        found: i32,
        /// The layout that is read here.
        known: i32,
    },
    /// Another process, or a life of this one that died a moment ago, works under this name.
    #[error(
        "a worker named `{worker}` is at work on crawl `{crawl}`\nhint: take another name, or wait until its lease ends if it died"
    )]
    WorkerInUse {
        /// The name of the worker.
        worker: String,
        /// The name of the crawl.
        crawl: String,
    },
    /// Other workers of the crawl are at work by another version of the program.
    #[error(
        "the other workers of crawl `{crawl}` run version {found}, this one is {own}\nhint: run the same version everywhere; a crawl whose workers have all ended goes on with another"
    )]
    OtherProgram {
        /// The name of the crawl.
        crawl: String,
        /// The version that began it, or went on with it last.
        found: String,
        /// The version of this program.
        own: String,
    },
    /// Other workers of the crawl are at work by other settings.
    #[error(
        "the other workers of crawl `{crawl}` have other settings (theirs -, this one's +):{differences}\nhint: give all workers the same settings; a crawl whose workers have all ended goes on with others"
    )]
    OtherSettings {
        /// The name of the crawl.
        crawl: String,
        /// The lines in which they differ.
        differences: String,
    },
    /// The engine failed.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
}
