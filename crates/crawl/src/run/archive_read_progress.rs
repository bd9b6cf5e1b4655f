//! Progress and signal handling for commands that read the whole archive of a crawl.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crawl_records::counted;

use super::signals;
use crate::error::{CommandError, no_threads};
use crate::terminal::StatusLine;

/// Runs `work` with a progress line, and returns its result. `work` gets two functions: the first
/// returns whether a signal has arrived, and the second reports the number of pages read so far. A
/// second SIGINT or SIGTERM ends the process.
pub(crate) fn while_reading<T>(
    work: impl FnOnce(&dyn Fn() -> bool, &mut dyn FnMut(u64)) -> T,
) -> Result<T, CommandError> {
    let stopped = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|why| no_threads(&why))?;
    runtime.block_on(async { signals::note_first(Arc::clone(&stopped)) })?;
    let line = StatusLine::stderr();
    let done = work(&|| stopped.load(Ordering::Relaxed), &mut |read| {
        line.show(format!("{} read", counted(read, "page", "pages")));
    });
    line.clear();
    runtime.shutdown_background();
    Ok(done)
}
