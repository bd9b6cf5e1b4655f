//! Metrics of this process.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Metrics of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessMetrics {
    /// Resident memory in bytes. `None` if the system does not report it.
    pub(super) resident_bytes: Option<u64>,
    /// When the crawl started, in seconds since the Unix epoch.
    pub(super) started: f64,
}

/// Returns the metrics of this process. `started` is the start of the crawl.
pub(super) fn numbers(started: SystemTime) -> ProcessMetrics {
    let since = started.duration_since(UNIX_EPOCH).unwrap_or_default();
    ProcessMetrics {
        // The kernel generates this file on reading, so the read does not wait for a disk.
        resident_bytes: fs::read_to_string("/proc/self/status")
            .ok()
            .and_then(|status| resident(&status)),
        started: since.as_secs_f64(),
    }
}

/// Parses the resident memory from a `/proc/PID/status` (proc(5)).
fn resident(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::resident;

    #[test]
    fn the_memory_of_a_process_is_read_in_bytes() {
        let status = "Name:\tcrawl\nVmHWM:\t   90000 kB\nVmRSS:\t   41236 kB\n";
        assert_eq!(resident(status), Some(41_236 * 1024));
        assert_eq!(resident("VmRSS: x kB"), None);
        assert_eq!(resident(""), None);
    }
}
