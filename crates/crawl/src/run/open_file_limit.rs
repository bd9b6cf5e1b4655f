//! Limits on the files and connections that this process may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// File descriptors reserved for state, archive, rows and index.
const RESERVED_DESCRIPTORS: u64 = 96;
/// Descriptors per connection: one for the socket, and one for the DNS lookup or for an attempt to
/// connect to the host's second address.
const PER_CONNECTION: u64 = 2;
/// Descriptors per connection if idle connections are kept as well.
const KEPT_PER_CONNECTION: u64 = 3;

/// The connections that a crawl may open with the available file descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FetchConnectionLimits {
    /// Maximum concurrent requests.
    pub(crate) concurrency: u32,
    /// Whether idle connections may be kept for later requests.
    pub(crate) may_be_kept: bool,
}

/// Raises the limit of open files to this process's maximum.
pub(crate) fn raise_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Ignore errors: the old limit then stays in force, and [`connections`] respects it.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Returns the requested number of connections, reduced to what the available descriptors allow.
pub(crate) fn connections(concurrency: u32) -> FetchConnectionLimits {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    let connections = within(limit, concurrency);
    if connections.concurrency < concurrency {
        tracing::warn!(
            "limited to {} requests at once, since only {limit} files may be open\nhint: raise the \
             limit (`ulimit -n`), or lower --concurrency",
            connections.concurrency
        );
    }
    connections
}

fn within(limit: u64, concurrency: u32) -> FetchConnectionLimits {
    let free = limit.saturating_sub(RESERVED_DESCRIPTORS);
    let max = u32::try_from(free / PER_CONNECTION).unwrap_or(u32::MAX);
    FetchConnectionLimits {
        concurrency: concurrency.min(max.max(1)),
        may_be_kept: free / KEPT_PER_CONNECTION >= u64::from(concurrency),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_descriptors_before_connections() {
        for (limit, asked, concurrency, may_be_kept) in [
            (u64::MAX, 256, 256, true),
            (1024, 256, 256, true),
            (700, 256, 256, false),
            (256, 256, 80, false),
            (40, 256, 1, false),
        ] {
            let expect = FetchConnectionLimits {
                concurrency,
                may_be_kept,
            };
            assert_eq!(within(limit, asked), expect, "{limit}");
        }
    }
}
