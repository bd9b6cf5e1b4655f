//! The errors of opening a shared frontier, and of commands on a shared crawl.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use crawl_frontier::FrontierError;
use crawl_frontier::parts::CommittedUrlCounts;

/// Why a shared frontier can't be opened, or why a command on a shared crawl (such as a move of
/// buckets or an export) failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SharedCrawlError {
    /// The connection string can't be parsed. The error leaves out the string, which may contain a
    /// password.
    #[error(
        "can't parse the connection string of the frontier\nhint: it looks like \
         postgres://crawler@db.example.org/crawl"
    )]
    ConnectionString {
        /// What is wrong with the connection string.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The connection string requests encryption without verifying the database server.
    #[error(
        "sslmode={mode} doesn't verify the frontier's certificate\nhint: remove it, or use \
         sslmode=verify-full; sslmode=disable turns encryption off, for a network that only you use"
    )]
    WeakEncryption {
        /// The requested mode.
        mode: String,
    },
    /// No root certificates were found to verify the database server.
    #[error(
        "no root certificates from {place}: {what}\nhint: set sslrootcert=FILE to a PEM file with \
         the certificate of the database server's CA"
    )]
    Roots {
        /// The place searched for root certificates.
        place: String,
        /// Why the search failed.
        what: String,
    },
    /// The password file can't be used.
    #[error(
        "can't use the password file `{}`: {what}\nhint: it needs a line for each database server, \
         host:port:database:user:password, and mode 0600", path.display()
    )]
    PasswordFile {
        /// The password file.
        path: PathBuf,
        /// What is wrong with the file.
        what: String,
    },
    /// The database server offers no encryption.
    #[error(
        "the frontier at {address} doesn't support TLS\nhint: set `ssl = on` in its \
         postgresql.conf; sslmode=disable turns encryption off, for a network that only you use"
    )]
    NoTls {
        /// The database server's address.
        address: String,
    },
    /// The database server's certificate is not signed by a trusted authority.
    #[error(
        "the certificate of the frontier at {address} isn't signed by a trusted CA\nhint: set \
         sslrootcert=FILE to the certificate of the CA that signed it"
    )]
    NotTrusted {
        /// The database server's address.
        address: String,
        /// The error of the connection.
        source: tokio_postgres::Error,
    },
    /// The database server's certificate is for another name.
    #[error(
        "the certificate of the frontier at {address} is for another name\nhint: use the name in \
         the certificate in the connection string"
    )]
    OtherName {
        /// The database server's address.
        address: String,
        /// The error of the connection.
        source: tokio_postgres::Error,
    },
    /// The database server's certificate is invalid for another reason.
    #[error(
        "the certificate of the frontier at {address} isn't valid: {what}\nhint: install a valid \
         certificate on the database server"
    )]
    BadCertificate {
        /// The database server's address.
        address: String,
        /// What is wrong with the certificate.
        what: String,
        /// The error of the connection.
        source: tokio_postgres::Error,
    },
    /// The database server rejects the user or the password.
    #[error(
        "the frontier at {address} rejected the user or the password\nhint: the password comes from \
         PGPASSWORD or a line of ~/.pgpass, the user from the connection string"
    )]
    Refused {
        /// The database server's address.
        address: String,
        /// The error of the connection.
        source: tokio_postgres::Error,
    },
    /// The database server can't be reached, or refuses the connection.
    #[error(
        "can't connect to the frontier at {address}\nhint: check that PostgreSQL is running there, \
         and that this user may connect"
    )]
    Unreachable {
        /// The database server's address.
        address: String,
        /// The error of the connection.
        source: tokio_postgres::Error,
    },
    /// The database server is too old.
    #[error(
        "the frontier at {address} runs PostgreSQL {}, which is too old\nhint: use {} or newer", found / 10_000, least / 10_000
    )]
    TooOld {
        /// The database server's address.
        address: String,
        /// The database server's `server_version_num`.
        found: i32,
        /// The oldest supported version.
        least: i32,
    },
    /// The database server accepts no changes.
    #[error(
        "the frontier at {address} is read-only\nhint: if it is a standby, use the primary, or \
         several hosts with target_session_attrs=read-write"
    )]
    ReadOnly {
        /// The database server's address.
        address: String,
    },
    /// The database server replies so slowly that leases could expire before they are renewed.
    #[error(
        "the frontier at {address} took {:.1} s to answer, more than a tenth of a lease ({:.1} \
         s)\nhint: use a closer database server, or longer leases (--frontier-lease)",
        took.as_secs_f64(), lease.as_secs_f64()
    )]
    TooSlow {
        /// The database server's address.
        address: String,
        /// The shortest measured response time.
        took: Duration,
        /// The requested duration of a lease.
        lease: Duration,
    },
    /// The tables were created by a version of the program whose layout this version can't read.
    #[error(
        "the frontier at {address} has layout {found}, but this program needs layout {known}\nhint: \
         use the version of the program that created it"
    )]
    Layout {
        /// The database server's address.
        address: String,
        /// The version of the layout of the tables.
        found: i32,
        /// The version of the layout that this program reads.
        known: i32,
    },
    /// Another process holds this worker's name, or an earlier process of the worker held it until
    /// a moment ago.
    #[error(
        "worker `{worker}` is already running on crawl `{crawl}`\nhint: choose another name; if \
         that worker died, wait until its lease ends"
    )]
    WorkerInUse {
        /// The name of the worker.
        worker: String,
        /// The name of the crawl.
        crawl: String,
    },
    /// The crawl has no worker of that name.
    #[error(
        "the frontier at {address} has no worker `{worker}` for crawl `{crawl}`\nhint: `crawl \
         frontier status` lists crawls and their workers"
    )]
    NoSuchWorker {
        /// The database server's address.
        address: String,
        /// The name of the worker.
        worker: String,
        /// The name of the crawl.
        crawl: String,
    },
    /// The database server lacks the named crawl, or has only a part of it.
    #[error(
        "the frontier at {address} has no crawl `{crawl}`\nhint: `crawl frontier status` lists all \
         crawls; if the crawl's first start was interrupted, start a worker again"
    )]
    NoSuchCrawl {
        /// The database server's address.
        address: String,
        /// The name of the crawl.
        crawl: String,
    },
    /// More server groups are named than the maximum for a crawl.
    #[error(
        "too many server groups: {found}, a crawl may have {most}\nhint: add hosts or disks to \
         a group instead of adding groups"
    )]
    TooManyGroups {
        /// The number of groups.
        found: usize,
        /// The maximum number of server groups.
        most: usize,
    },
    /// Two connection strings name the same server group.
    #[error(
        "two groups of crawl `{crawl}` are the same frontier at {address}\nhint: list each group \
         once; put several hosts of a group into one URL: postgres://db1,db2/crawl"
    )]
    GroupTwice {
        /// The database server's address.
        address: String,
        /// The name of the crawl.
        crawl: String,
    },
    /// No connection string names one of the crawl's server groups.
    #[error(
        "group {number} of crawl `{crawl}` is missing: the crawl has {groups} server \
         groups\nhint: list all groups: a --frontier URL for each, or `frontier = [\"URL\", \
         \"URL\"]`"
    )]
    GroupMissing {
        /// The name of the crawl.
        crawl: String,
        /// The number of the first missing server group, from 0.
        number: i32,
        /// The number of groups.
        groups: i32,
    },
    /// A server group has another crawl under the same name.
    #[error(
        "the frontier at {address} has a different crawl `{crawl}` than the first group: \
         {what}\nhint: list the groups in the same order for all workers; to start over, choose \
         another --crawl name"
    )]
    GroupsDiffer {
        /// The database server's address.
        address: String,
        /// The name of the crawl.
        crawl: String,
        /// The property in which the two crawls differ.
        what: &'static str,
    },
    /// The target of a move is not a server group of the crawl.
    #[error(
        "crawl `{crawl}` has no group {group}\nhint: `crawl frontier status` lists its groups; to \
         add a group, start a worker with its URL"
    )]
    NoSuchGroup {
        /// The name of the crawl.
        crawl: String,
        /// The number or address of the server group, as the caller named it.
        group: String,
    },
    /// The named bucket does not exist in the crawl.
    #[error("crawl `{crawl}` has no bucket {bucket}\nhint: its buckets are 0 to {last}")]
    NoSuchBucket {
        /// The name of the crawl.
        crawl: String,
        /// The bucket.
        bucket: i32,
        /// The last bucket of the crawl.
        last: i32,
    },
    /// Buckets are being moved between server groups. The move has to finish first.
    #[error(
        "buckets of crawl `{crawl}` are being moved to another group\nhint: wait until `crawl \
         frontier move` is done; if it was interrupted, run it again"
    )]
    BucketsMove {
        /// The name of the crawl.
        crawl: String,
    },
    /// A bucket is already being moved, to another server group or by another command.
    #[error(
        "bucket {bucket} is being moved by another command{}\nhint: wait until that command is \
         done; if it was interrupted, run it again; `crawl frontier status` shows its progress", to.map(|to| format!(", to group {to}")).unwrap_or_default()
    )]
    BucketMoves {
        /// The bucket.
        bucket: i32,
        /// The server group that the bucket is being moved to; `None` if another command moves it
        /// to the same group.
        to: Option<i32>,
    },
    /// A moved bucket has different rows at its target than at its source.
    #[error(
        "bucket {bucket} has {found} in group {to}, expected {expected}\nhint: the bucket was not \
         moved; run `crawl frontier move {bucket} --to {from}` so that it is served there again"
    )]
    BucketDiffers {
        /// The bucket.
        bucket: i32,
        /// The server group that the bucket was moved from.
        from: i32,
        /// The server group that the bucket was moved to.
        to: i32,
        /// The number of URLs in each state at the source.
        expected: CommittedUrlCounts,
        /// The number of URLs in each state at the target.
        found: CommittedUrlCounts,
    },
    /// A worker's URLs can't be reopened while its lease is valid.
    #[error(
        "worker `{worker}` is still running on crawl `{crawl}`, so its disk isn't lost\nhint: stop \
         it with `crawl frontier drain {worker}`; if it died, wait until its lease ends"
    )]
    WorkerAlive {
        /// The name of the worker.
        worker: String,
        /// The name of the crawl.
        crawl: String,
    },
    /// A crawl can't be moved into a directory while a worker's lease is valid.
    #[error(
        "can't move crawl `{crawl}` while worker `{worker}` is running\nhint: stop all workers with \
         Ctrl-C or `crawl frontier drain {worker}`; restart a worker that died, then stop it"
    )]
    StillAtWork {
        /// The name of the crawl.
        crawl: String,
        /// The name of the worker whose lease is valid.
        worker: String,
    },
    /// A crawl can't be moved into a directory before all of its lost URLs are reopened.
    #[error(
        "crawl `{crawl}` has {buckets} buckets still to be checked for URLs with lost \
         records\nhint: start a worker to check them, and stop it once `crawl frontier status` \
         shows none"
    )]
    ToReopen {
        /// The name of the crawl.
        crawl: String,
        /// The number of buckets in which lost URLs still have to be reopened.
        buckets: u64,
    },
    /// The crawl changed while it was being moved into a directory.
    #[error(
        "crawl `{crawl}` was not moved: a worker started, or another command moved the crawl\nhint: \
         stop all workers, and run the same command again"
    )]
    WentOn {
        /// The name of the crawl.
        crawl: String,
    },
    /// The crawl was moved into a directory, so no worker can continue it on the database server.
    #[error(
        "crawl `{crawl}` was moved to `{to}` by `crawl frontier export`\nhint: continue with `crawl \
         --output {to}`; if that directory is missing, run the same `crawl frontier export` again"
    )]
    Exported {
        /// The name of the crawl.
        crawl: String,
        /// The directory that the crawl was moved to.
        to: String,
    },
    /// The crawl can't be imported, because the database server already has a crawl of that name.
    #[error(
        "the frontier at {address} already has a crawl `{crawl}`\nhint: choose another --crawl \
         name; `crawl frontier status` lists all crawls"
    )]
    CrawlExists {
        /// The database server's address.
        address: String,
        /// The name of the crawl.
        crawl: String,
    },
    /// After an import, the database server has fewer or other URLs than the crawl had.
    #[error(
        "nothing was imported: {found} in the frontier, expected {expected}\nhint: settled URLs \
         come from their rows, so check that no row file is missing"
    )]
    Incomplete {
        /// The number of URLs in each state in the imported crawl.
        expected: CommittedUrlCounts,
        /// The number of URLs in each state in the database server.
        found: CommittedUrlCounts,
    },
    /// Other workers of the crawl run another program version.
    #[error(
        "the other workers of crawl `{crawl}` run version {found}, this worker runs {own}\nhint: \
         use the same version everywhere; to change it, stop all workers first"
    )]
    OtherProgram {
        /// The name of the crawl.
        crawl: String,
        /// The version that the other workers run.
        found: String,
        /// The version of this program.
        own: String,
    },
    /// Other workers of the crawl have other settings.
    #[error(
        "the other workers of crawl `{crawl}` have different settings (theirs -, ours \
         +):{differences}\nhint: use the same settings everywhere; to change them, reload the \
         running workers, or stop all workers first"
    )]
    OtherSettings {
        /// The name of the crawl.
        crawl: String,
        /// The lines of the settings that differ.
        differences: String,
    },
    /// The database server failed.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
}
