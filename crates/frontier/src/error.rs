//! The errors of a frontier.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use crawl_weburl::CanonicalUrl;

/// The reason why an operation on a frontier failed.
///
/// After [`FrontierError::Store`] or [`FrontierError::Corrupt`] the crawl can't continue. Earlier
/// commits are not affected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrontierError {
    /// The disk or the store on it failed: full, read-only or broken.
    #[error("the store in `{}` failed", dir.display())]
    Store {
        /// The frontier's directory.
        dir: PathBuf,
        /// The error of the store.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A stored record is damaged: its bytes differ from those that were written.
    #[error("the store in `{}` is damaged: {what}", dir.display())]
    Corrupt {
        /// The frontier's directory.
        dir: PathBuf,
        /// The damaged record, and what is wrong with it.
        what: String,
    },
    /// A shared frontier failed.
    #[error(transparent)]
    Shared(SharedFrontierError),
    /// The URL of a settled lease is not leased in this frontier, for example because another
    /// frontier handed out the lease.
    #[error("`{url}` is not leased")]
    NotLeased {
        /// The URL of the lease.
        url: CanonicalUrl,
    },
}

/// Any error of the implementation behind a frontier, such as a database driver. The program that
/// chose the implementation may downcast it.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The reason why a shared frontier failed during a crawl.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SharedFrontierError {
    /// The database that holds the frontier failed, or can't be reached.
    #[error("the frontier at {address} failed")]
    DatabaseServer {
        /// The database's address, without a password.
        address: String,
        /// The error of the database or of the connection to it.
        source: BoxError,
    },
    /// This process no longer owns its hosts, because its leases expired or another worker took the
    /// hosts over.
    #[error(
        "the hosts of worker `{worker}` are no longer its own: {why}\nhint: start it again; what it had in flight is fetched again"
    )]
    LeaseLost {
        /// The name of the worker.
        worker: String,
        /// The evidence that the leases were lost.
        why: String,
    },
}

/// The reason why a frontier on disk can't be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskOpenError {
    /// A file can't be read or written.
    #[error("can't open the frontier in `{}`", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Another process, or another frontier in this process, has the directory open.
    #[error("the frontier in `{}` is in use by another crawl or command", path.display())]
    InUse {
        /// The frontier's directory.
        path: PathBuf,
    },
    /// The directory holds something that is not a frontier.
    #[error("`{}` holds something that is no frontier: {found}", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// A description of the unexpected content, or of the missing file.
        found: String,
    },
    /// The frontier was written by a version of the program whose layout this version can't read.
    #[error("the frontier in `{}` has layout {found}, this program reads layout {known}", path.display())]
    Version {
        /// The frontier's directory.
        path: PathBuf,
        /// The version of the layout on disk.
        found: u32,
        /// The version of the layout that this program reads.
        known: u32,
    },
    /// A stored record is damaged: its bytes differ from those that were written.
    #[error("the frontier in `{}` is damaged: {what}", path.display())]
    Corrupt {
        /// The frontier's directory.
        path: PathBuf,
        /// The damaged part, and what is wrong with it.
        what: String,
    },
}
