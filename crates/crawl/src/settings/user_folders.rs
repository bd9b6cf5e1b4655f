//! The folders of the user's own files, and the file of host locks (XDG Base Directory
//! Specification).

use std::path::PathBuf;

/// The folders of the user's own files.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserFolders {
    /// `XDG_CONFIG_HOME`, or `.config` in `HOME`.
    pub(crate) config_home: Option<PathBuf>,
    /// `XDG_STATE_HOME`, or `.local/state` in `HOME`.
    pub(crate) state_home: Option<PathBuf>,
}

impl UserFolders {
    /// Reads the environment of this process.
    pub(crate) fn of_process() -> UserFolders {
        let home = |below: &str| Some(folder("HOME")?.join(below));
        UserFolders {
            config_home: folder("XDG_CONFIG_HOME").or_else(|| home(".config")),
            state_home: folder("XDG_STATE_HOME").or_else(|| home(".local/state")),
        }
    }
}

/// Returns the path of the file in which the crawls of a user lock hosts, so that no two crawls
/// request the same host at once. The file is in the user's cache folder or, without one, in the
/// runtime folder. The cache folder comes first because a crawl started by cron has no runtime
/// folder. `None` if there is neither folder.
pub(crate) fn host_locks_file() -> Option<PathBuf> {
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    let folder = cache.or_else(|| folder("XDG_RUNTIME_DIR"))?;
    Some(folder.join("crawl").join("hosts.lock"))
}

/// Returns the folder that an environment variable names. `None` if the variable is unset, or if
/// its path is relative: the XDG Base Directory Specification makes relative paths invalid.
fn folder(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    path.filter(|path| path.is_absolute())
}
