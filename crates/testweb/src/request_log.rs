//! The request log: what the hosts received, and when.

use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A request as its host received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// The index of the host, from 0.
    pub host: u32,
    /// The number of the connection, unique in the web and shared by its requests.
    pub connection: u64,
    /// The client's end of the connection.
    pub peer: SocketAddr,
    /// The method as sent.
    pub method: String,
    /// Path and query as sent.
    pub path: String,
    /// Header lines in order, names as sent.
    pub headers: Vec<(String, String)>,
    /// When the request's first byte was read, in microseconds since the Unix epoch. The time of
    /// day is read once, at the web's start. Monotonic time is added to that reading, so timestamps
    /// never go backwards.
    pub start_us: u64,
    /// The time just before the answer's last bytes were passed to the system, on the same scale as
    /// `start_us`. No client can have received the whole answer before this time. If the reply ends
    /// in silence, this is the time when the client disconnected. `None` while the request is being
    /// served.
    pub end_us: Option<u64>,
    /// The status sent; `None` while the request is being served, and for raw replies.
    pub status: Option<u16>,
    /// Bytes sent, including the head.
    pub sent: u64,
}

impl LogEntry {
    /// Returns the first value of a header. Header names are case-insensitive.
    pub fn header(&self, name: &str) -> Option<&str> {
        let line = self
            .headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        line.map(|(_, value)| value.as_str())
    }

    /// Returns the `User-Agent` header, or an empty string.
    pub fn user_agent(&self) -> &str {
        self.header("user-agent").unwrap_or("")
    }
}

/// Returns the times from the end of each request to the start of the next, in microseconds, in
/// order of start. A time is negative if the requests overlap. Pass the entries of one host. A
/// request without an end time counts as ending at its start.
pub fn gaps<'a>(entries: impl IntoIterator<Item = &'a LogEntry>) -> Vec<i64> {
    let mut times: Vec<(i64, i64)> = entries
        .into_iter()
        .map(|entry| {
            (
                signed(entry.start_us),
                signed(entry.end_us.unwrap_or(entry.start_us)),
            )
        })
        .collect();
    times.sort_unstable();
    times.windows(2).map(|pair| pair[1].0 - pair[0].1).collect()
}

fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

/// The log that all connections write to.
#[derive(Debug)]
pub(crate) struct RequestLog {
    epoch: SystemTime,
    start: Instant,
    entries: Mutex<LogEntries>,
    grown: Condvar,
}

#[derive(Debug, Default)]
struct LogEntries {
    /// Number of entries cleared so far. A [`LogEntryId`] counts cleared entries too, so keys
    /// stay valid after the log is cleared.
    cleared: u64,
    kept: Vec<LogEntry>,
}

/// Identifies a log entry, even after the log was cleared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogEntryId(u64);

impl RequestLog {
    pub(crate) fn new() -> RequestLog {
        RequestLog {
            epoch: SystemTime::now(),
            start: Instant::now(),
            entries: Mutex::default(),
            grown: Condvar::new(),
        }
    }

    pub(crate) fn now_us(&self) -> u64 {
        let epoch = self.epoch.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from((epoch + self.start.elapsed()).as_micros()).unwrap_or(u64::MAX)
    }

    pub(crate) fn begin(&self, entry: LogEntry) -> LogEntryId {
        let mut entries = self.lock();
        entries.kept.push(entry);
        let key = LogEntryId(entries.cleared + entries.kept.len() as u64 - 1);
        self.grown.notify_all();
        key
    }

    pub(crate) fn end(&self, key: LogEntryId, end_us: u64, status: Option<u16>, sent: u64) {
        let mut entries = self.lock();
        let Some(at) = key.0.checked_sub(entries.cleared) else {
            return;
        };
        if let Some(entry) = usize::try_from(at)
            .ok()
            .and_then(|at| entries.kept.get_mut(at))
        {
            entry.end_us = Some(end_us);
            entry.status = status;
            entry.sent = sent;
            self.grown.notify_all();
        }
    }

    pub(crate) fn entries(&self) -> Vec<LogEntry> {
        self.lock().kept.clone()
    }

    pub(crate) fn take(&self) -> Vec<LogEntry> {
        let mut entries = self.lock();
        entries.cleared += entries.kept.len() as u64;
        std::mem::take(&mut entries.kept)
    }

    /// Waits until `wanted` returns true for the log. Returns false if that does not happen within
    /// `limit`.
    pub(crate) fn wait(&self, limit: Duration, wanted: impl Fn(&[LogEntry]) -> bool) -> bool {
        let (entries, _) = self
            .grown
            .wait_timeout_while(self.lock(), limit, |entries| !wanted(&entries.kept))
            .unwrap_or_else(PoisonError::into_inner);
        wanted(&entries.kept)
    }

    fn lock(&self) -> MutexGuard<'_, LogEntries> {
        // The log is valid even if another thread panicked, because each entry is added as a whole.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
