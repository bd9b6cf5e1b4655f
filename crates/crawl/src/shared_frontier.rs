//! Opens the PostgreSQL frontier that the workers of a crawl share.

use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crawl_engine::SharedFrontierOpener;
use crawl_shared_frontier::{
    ConnectionString, Password, PasswordSources, SharedFrontier, SharedFrontierOptions,
};

use crate::child_process_without_secrets::PASSWORD_VARIABLE;
use crate::error::CommandError;
use crate::error::shared_frontier::of_shared;

/// Number of heartbeats that a worker sends within the duration of a lease.
const HEARTBEATS: u32 = 3;

/// Rejects a connection string that is unusable or contains a password: other users of this machine
/// could see the password on the command line or in the settings file.
pub(crate) fn check_url(url: &str) -> Result<(), CommandError> {
    let read = ConnectionString::parse(url).map_err(|why| of_shared(&why))?;
    match read.has_password() {
        false => Ok(()),
        true => Err(CommandError::usage(
            "--frontier contains a password, which other users may read",
        )
        .hint(
            "remove it from the URL, and set PGPASSWORD, or add a line to ~/.pgpass: \
                 HOST:PORT:DATABASE:USER:PASSWORD",
        )),
    }
}

/// Returns an opener with which `worker` joins `crawl` in the PostgreSQL servers at `urls`.
/// `settings` lists the settings that must be identical for all workers, one per line.
pub(crate) fn opener(
    urls: Vec<String>,
    crawl: &str,
    worker: &str,
    lease: Duration,
    settings: String,
) -> SharedFrontierOpener {
    let options = SharedFrontierOptions {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        settings,
        credentials: credentials(),
        lease,
        heartbeat: lease / HEARTBEATS,
        ..SharedFrontierOptions::new(crawl, worker)
    };
    Arc::new(move |last_life| {
        let options = SharedFrontierOptions {
            last_life,
            ..options.clone()
        };
        Ok(Arc::new(SharedFrontier::open_groups(&urls, &options)?))
    })
}

/// Returns the PostgreSQL credentials from the usual places: `PGPASSWORD`, else the file named by
/// `PGPASSFILE`, else `~/.pgpass`.
pub(crate) fn credentials() -> PasswordSources {
    let value = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty());
    let home = value("HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    PasswordSources {
        password: value(PASSWORD_VARIABLE).map(|password| Password::new(password.into_vec())),
        password_file: value("PGPASSFILE")
            .map(PathBuf::from)
            .or_else(|| Some(home?.join(".pgpass"))),
    }
}
