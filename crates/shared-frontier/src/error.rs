//! The errors of opening a shared frontier.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use crawl_frontier::FrontierError;
use crawl_frontier::parts::Totals;

/// The reason why a shared frontier can't be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The connection string can't be parsed. The error leaves out the string, which may contain a
    /// password.
    #[error(
        "the connection string of the frontier can't be read\nhint: such as postgres://crawler@db.example.org/crawl"
    )]
    ConnectionString {
        /// What is wrong with the connection string.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The connection string requests encryption without verifying the engine.
    #[error(
        "sslmode={mode} does not check who answers in the name of the frontier\nhint: leave it out, or say sslmode=verify-full; sslmode=disable encrypts nothing, for a network that is yours alone"
    )]
    WeakEncryption {
        /// The requested mode.
        mode: String,
    },
    /// No root certificates were found to verify the engine.
    #[error(
        "no root certificates from {place}: {what}\nhint: name a PEM file with the certificate of those who sign for the engine: sslrootcert=FILE"
    )]
    Roots {
        /// The place searched for root certificates.
        place: String,
        /// Why the search failed.
        what: String,
    },
    /// The password file can't be used.
    #[error(
        "the password file `{}` can't be used: {what}\nhint: a line for each engine, host:port:database:user:password, in a file of mode 0600", path.display()
    )]
    PasswordFile {
        /// The password file.
        path: PathBuf,
        /// What is wrong with the file.
        what: String,
    },
    /// The engine offers no encryption.
    #[error(
        "the frontier at {address} offers no TLS\nhint: set `ssl = on` in its postgresql.conf; sslmode=disable encrypts nothing, for a network that is yours alone"
    )]
    NoTls {
        /// The engine's address.
        address: String,
    },
    /// The engine's certificate is not signed by a trusted authority.
    #[error(
        "the certificate of the frontier at {address} is signed by nobody who is trusted\nhint: name the certificate of those who signed it: sslrootcert=FILE"
    )]
    NotTrusted {
        /// The engine's address.
        address: String,
        /// The error of the connection.
        source: tokio_postgres::Error,
    },
    /// The engine's certificate is for another name.
    #[error(
        "the certificate of the frontier at {address} is for another name\nhint: name the engine as its certificate does"
    )]
    OtherName {
        /// The engine's address.
        address: String,
        /// The error of the connection.
        source: tokio_postgres::Error,
    },
    /// The engine's certificate is invalid for another reason.
    #[error(
        "the certificate of the frontier at {address} is not valid: {what}\nhint: give the engine another one"
    )]
    BadCertificate {
        /// The engine's address.
        address: String,
        /// What is wrong with the certificate.
        what: String,
        /// The error of the connection.
        source: tokio_postgres::Error,
    },
    /// The engine rejects the user or the password.
    #[error(
        "the frontier at {address} does not take the user or the password\nhint: the password is read from PGPASSWORD, or a line in ~/.pgpass; the user stands in the connection string"
    )]
    Refused {
        /// The engine's address.
        address: String,
        /// The error of the connection.
        source: tokio_postgres::Error,
    },
    /// The engine can't be reached, or refuses the connection.
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
        /// The engine's `server_version_num`.
        found: i32,
        /// The oldest supported version.
        least: i32,
    },
    /// The engine accepts no changes.
    #[error(
        "the frontier at {address} is read-only\nhint: it may be a standby; name the primary, or several hosts and target_session_attrs=read-write"
    )]
    ReadOnly {
        /// The engine's address.
        address: String,
    },
    /// The engine replies so slowly that leases would expire in the meantime.
    #[error(
        "the frontier at {address} took {:.1} s to answer, which is more than a tenth of a lease of {:.1} s\nhint: use an engine that is nearer, or longer leases (--frontier-lease)", took.as_secs_f64(), lease.as_secs_f64()
    )]
    TooSlow {
        /// The engine's address.
        address: String,
        /// The shortest measured response time.
        took: Duration,
        /// The requested duration of a lease.
        lease: Duration,
    },
    /// The tables were created by a version of the program whose layout this version can't read.
    #[error(
        "the frontier at {address} has layout {found}, this program reads layout {known}\nhint: use the version of the program that began it"
    )]
    Layout {
        /// The engine's address.
        address: String,
        /// The layout of the tables.
        found: i32,
        /// The layout that this program reads.
        known: i32,
    },
    /// Another process holds this worker's name, or an earlier process of the worker held it until
    /// a moment ago.
    #[error(
        "a worker named `{worker}` is at work on crawl `{crawl}`\nhint: take another name, or wait until its lease ends if it died"
    )]
    WorkerInUse {
        /// The name of the worker.
        worker: String,
        /// The name of the crawl.
        crawl: String,
    },
    /// The crawl has no worker of that name.
    #[error(
        "the frontier at {address} has no worker `{worker}` of a crawl `{crawl}`\nhint: `crawl frontier status` lists the crawls and their workers"
    )]
    NoSuchWorker {
        /// The engine's address.
        address: String,
        /// The name of the worker.
        worker: String,
        /// The name of the crawl.
        crawl: String,
    },
    /// The engine lacks the named crawl, or has only a part of it.
    #[error(
        "the frontier at {address} has no crawl `{crawl}`\nhint: `crawl frontier status` lists those that there are; a crawl whose first start was cut short is begun by starting a worker again"
    )]
    NoSuchCrawl {
        /// The engine's address.
        address: String,
        /// The name of the crawl.
        crawl: String,
    },
    /// More groups are named than the maximum for a crawl.
    #[error(
        "{found} groups of engines are named, and a crawl may have {most}\nhint: give a group more hosts or disks instead of more groups"
    )]
    TooManyGroups {
        /// The number of groups.
        found: usize,
        /// The maximum number of groups.
        most: usize,
    },
    /// Two connection strings name the same group.
    #[error(
        "the frontier at {address} is named twice as a group of crawl `{crawl}`\nhint: give each group once; several hosts of one group stand in one URL: postgres://db1,db2/crawl"
    )]
    GroupTwice {
        /// The engine's address.
        address: String,
        /// The name of the crawl.
        crawl: String,
    },
    /// No connection string names one of the crawl's groups.
    #[error(
        "crawl `{crawl}` has {groups} groups of engines, and group {number} is none of those that are named\nhint: name all of them: a --frontier URL for each, or `frontier = [\"URL\", \"URL\"]`"
    )]
    GroupMissing {
        /// The name of the crawl.
        crawl: String,
        /// The number of the first missing group, from 0.
        number: i32,
        /// The number of groups.
        groups: i32,
    },
    /// A group has another crawl under the same name.
    #[error(
        "the crawl `{crawl}` of the frontier at {address} is another than that of the first group: {what}\nhint: all workers name the groups in one order where a crawl begins; give --crawl another name to begin anew"
    )]
    GroupsDiffer {
        /// The engine's address.
        address: String,
        /// The name of the crawl.
        crawl: String,
        /// What differs between the two crawls.
        what: &'static str,
    },
    /// The target of a move is not a group of the crawl.
    #[error(
        "crawl `{crawl}` has no group {group}\nhint: `crawl frontier status` lists its groups; a further one joins where a worker is started that names it"
    )]
    NoSuchGroup {
        /// The name of the crawl.
        crawl: String,
        /// The number of the group, or the address that was named.
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
    /// Buckets are being moved between groups. The move has to finish first.
    #[error(
        "buckets of crawl `{crawl}` are being moved to another group\nhint: wait until `crawl frontier move` has ended; where it was cut short, give it again as before"
    )]
    BucketsMove {
        /// The name of the crawl.
        crawl: String,
    },
    /// A bucket is already being moved, to another group or by another command.
    #[error(
        "bucket {bucket} is being moved by another command{}\nhint: wait until that has ended, or give it again where it was cut short; `crawl frontier status` shows it", to.map(|to| format!(", to group {to}")).unwrap_or_default()
    )]
    BucketMoves {
        /// The bucket.
        bucket: i32,
        /// The group that the bucket is being moved to; `None` if another command moves it to the
        /// same group.
        to: Option<i32>,
    },
    /// A moved bucket has different rows at its target than at its source.
    #[error(
        "bucket {bucket} has {found} in group {to}, and {expected} were to be moved\nhint: it stays where it was; `crawl frontier move {bucket} --to {from}` has it served there again"
    )]
    BucketDiffers {
        /// The bucket.
        bucket: i32,
        /// The group that the bucket was moved from.
        from: i32,
        /// The group that the bucket was moved to.
        to: i32,
        /// The number of URLs in each state at the source.
        expected: Totals,
        /// The number of URLs in each state at the target.
        found: Totals,
    },
    /// A worker's URLs can't be reopened while its lease is valid.
    #[error(
        "worker `{worker}` is at work on crawl `{crawl}`, so its disk is not lost\nhint: if it died, wait until its lease ends; `crawl frontier drain {worker}` ends one that runs"
    )]
    WorkerAlive {
        /// The name of the worker.
        worker: String,
        /// The name of the crawl.
        crawl: String,
    },
    /// A crawl can't be moved into a directory while a worker's lease is valid.
    #[error(
        "worker `{worker}` is at work on crawl `{crawl}`, which can't be moved meanwhile\nhint: end all workers by Ctrl-C, or by `crawl frontier drain {worker}`; start one that died again, and end it so"
    )]
    StillAtWork {
        /// The name of the crawl.
        crawl: String,
        /// The name of the worker whose lease is valid.
        worker: String,
    },
    /// A crawl can't be moved into a directory before all of its lost URLs are reopened.
    #[error(
        "crawl `{crawl}` has {buckets} buckets that are to be looked at for URLs whose records are lost\nhint: start a worker, which looks at them, and end it once `crawl frontier status` shows none"
    )]
    ToReopen {
        /// The name of the crawl.
        crawl: String,
        /// The number of buckets in which lost URLs still have to be reopened.
        buckets: u64,
    },
    /// The crawl changed while it was being moved into a directory.
    #[error(
        "a worker began on crawl `{crawl}`, or it was moved elsewhere, while it was moved into a directory\nhint: nothing was moved; end all workers, and give the same command again"
    )]
    WentOn {
        /// The name of the crawl.
        crawl: String,
    },
    /// The crawl was moved into a directory, so no worker can continue it on the engine.
    #[error(
        "crawl `{crawl}` was moved to `{to}` by `crawl frontier export`\nhint: go on there with `crawl --output {to}`; where it is not there, give the same `crawl frontier export` again; docs/shared-frontier.md says how workers go on instead"
    )]
    Exported {
        /// The name of the crawl.
        crawl: String,
        /// The directory that the crawl was moved to.
        to: String,
    },
    /// A crawl can't be imported under an existing name.
    #[error(
        "the frontier at {address} has a crawl `{crawl}` already\nhint: give --crawl another name; `crawl frontier status` lists those that there are"
    )]
    CrawlExists {
        /// The engine's address.
        address: String,
        /// The name of the crawl.
        crawl: String,
    },
    /// Some of the crawl's URLs are missing in the engine.
    #[error(
        "{found} are in the frontier, and {expected} were to be imported\nhint: nothing was imported; settled URLs are known by their rows, so none of those may be missing"
    )]
    Incomplete {
        /// The number of URLs in each state in the crawl.
        expected: Totals,
        /// The number of URLs in each state in the engine.
        found: Totals,
    },
    /// Other workers of the crawl run another program version.
    #[error(
        "the other workers of crawl `{crawl}` run version {found}, this one is {own}\nhint: run the same version everywhere; a crawl whose workers have all ended goes on with another"
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
        "the other workers of crawl `{crawl}` have other settings (theirs -, this one's +):{differences}\nhint: give all workers the same settings; a crawl whose workers have all ended goes on with others"
    )]
    OtherSettings {
        /// The name of the crawl.
        crawl: String,
        /// The lines of the settings that differ.
        differences: String,
    },
    /// The engine failed.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
}
