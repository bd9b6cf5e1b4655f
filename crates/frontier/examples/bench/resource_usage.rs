//! Measures the memory, processor time and disk space in use.

use std::fs;
use std::io;
use std::path::Path;

pub(crate) fn peak_memory_mib() -> u64 {
    status("VmHWM:")
}

/// Returns the current memory of this process, in MiB.
pub(crate) fn memory_mib() -> u64 {
    status("VmRSS:")
}

fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// Returns the processor time of all threads of this process so far, in seconds.
pub(crate) fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields = after_name.split_whitespace().skip(11).take(2);
    // The kernel counts these times in hundredths of a second on every machine.
    fields
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

/// Returns the disk space of the files below a directory, in bytes.
pub(crate) fn disk_bytes(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        bytes += match metadata.is_dir() {
            true => disk_bytes(&entry.path())?,
            false => blocks(&metadata) * 512,
        };
    }
    Ok(bytes)
}

fn blocks(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(metadata)
}
