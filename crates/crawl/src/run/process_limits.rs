//! Limits on the files and connections that this process may have open, and on the size of files.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};

use crate::settings::Settings;

/// File descriptors reserved for state, archive, rows and index.
const RESERVED_DESCRIPTORS: u64 = 96;
/// Descriptors per request: one for the socket, and one for the DNS lookup or for an attempt to
/// connect to the host's second address.
const PER_REQUEST: u64 = 2;
/// Descriptors per DNS lookup ahead of requests: one for each address family.
const PER_LOOK_UP: u64 = 2;

/// How many connections a crawl may open, given the available file descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FetchConnectionLimits {
    /// Maximum concurrent requests.
    pub(crate) concurrency: u32,
    /// Maximum connections kept for later requests, including those in use.
    pub(crate) kept: u32,
}

/// Raises the limit of open files to this process's maximum.
pub(crate) fn raise_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Ignore errors: the old limit then stays in force, and [`connections`] respects it.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Makes a write beyond the limit on file sizes (`ulimit -f`) fail like one to a full disk. By
/// default, the system kills the process with SIGXFSZ.
///
/// Must be called before any thread starts, because threads inherit the blocked signal.
pub(crate) fn survive_file_size_limit() {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    // Ignore errors: the signal then still kills the process.
    let _ = signals.thread_block();
}

/// Returns the requested numbers of connections, reduced to what the available descriptors allow.
pub(crate) fn connections(settings: &Settings) -> FetchConnectionLimits {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    let concurrency = settings.politeness.concurrency;
    let max_kept = settings.fetch.max_kept_connections;
    let connections = within(limit, concurrency, settings.politeness.look_ups, max_kept);
    if connections.concurrency < concurrency {
        tracing::warn!(
            "limited to {} requests at once, since only {limit} files may be open\nhint: raise the \
             limit (`ulimit -n`), or lower --concurrency",
            connections.concurrency
        );
    }
    connections
}

fn within(limit: u64, concurrency: u32, look_ups: u32, max_kept: u32) -> FetchConnectionLimits {
    let free = limit.saturating_sub(RESERVED_DESCRIPTORS);
    let max = u32::try_from(free / PER_REQUEST).unwrap_or(u32::MAX);
    let concurrency = concurrency.min(max.max(1));
    // Requests and look-ups take precedence over idle connections.
    let used = PER_REQUEST * u64::from(concurrency) + PER_LOOK_UP * u64::from(look_ups);
    let rest = free.saturating_sub(used);
    FetchConnectionLimits {
        concurrency,
        kept: max_kept.min(u32::try_from(rest).unwrap_or(u32::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_descriptors_before_connections() {
        for (limit, asked, concurrency, kept) in [
            (u64::MAX, 256, 256, 1000),
            (2000, 256, 256, 1000),
            (1024, 256, 256, 216),
            (700, 256, 256, 0),
            (256, 256, 80, 0),
            (40, 256, 1, 0),
        ] {
            let expect = FetchConnectionLimits { concurrency, kept };
            assert_eq!(within(limit, asked, 100, 1000), expect, "{limit}");
        }
    }
}
