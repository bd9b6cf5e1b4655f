//! The number of files and connections that this process may have open at a time.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Descriptors that are kept for files: state, archive, rows and index.
const RESERVED_DESCRIPTORS: u64 = 96;
/// A connection, and what looking its name up or a second address of it may take.
const PER_CONNECTION: u64 = 2;
/// Beside each request under way so many connections may be kept that are idle.
const KEPT_PER_CONNECTION: u64 = 3;

/// The number of connections that there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Connections {
    /// Requests under way at a time.
    pub(crate) concurrency: u32,
    /// True if a connection may be kept for the next request.
    pub(crate) may_be_kept: bool,
}

/// Raises the limit of open files as far as this process may.
pub(crate) fn raise_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Where the system lets us not, the limit is as it was, and minded all the same.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// As many connections as were asked for, or as descriptors are left for.
pub(crate) fn connections(concurrency: u32) -> Connections {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    let connections = within(limit, concurrency);
    if connections.concurrency < concurrency {
        tracing::warn!(
            "at most {} requests at once, as {limit} files may be open\n\
             hint: raise the limit (`ulimit -n`), or lower --concurrency",
            connections.concurrency
        );
    }
    connections
}

fn within(limit: u64, concurrency: u32) -> Connections {
    let free = limit.saturating_sub(RESERVED_DESCRIPTORS);
    let most = u32::try_from(free / PER_CONNECTION).unwrap_or(u32::MAX);
    Connections {
        concurrency: concurrency.min(most.max(1)),
        may_be_kept: free / KEPT_PER_CONNECTION >= u64::from(concurrency),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_files_have_descriptors_before_connections() {
        for (limit, asked, concurrency, may_be_kept) in [
            (u64::MAX, 256, 256, true),
            (1024, 256, 256, true),
            (700, 256, 256, false),
            (256, 256, 80, false),
            (40, 256, 1, false),
        ] {
            let expect = Connections {
                concurrency,
                may_be_kept,
            };
            assert_eq!(within(limit, asked), expect, "{limit}");
        }
    }
}
