//! Measurements of the machine: memory and disk in use.

use std::fs;
use std::io;
use std::path::Path;

/// The most memory that this process ever held, in MiB.
pub(crate) fn peak_memory_mib() -> u64 {
    status("VmHWM:")
}

/// The memory that this process holds, in MiB.
pub(crate) fn memory_mib() -> u64 {
    status("VmRSS:")
}

fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// Processor time that all threads of this process took so far, in seconds.
pub(crate) fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let fields = behind_name.split_whitespace().skip(11).take(2);
    // In hundredths of a second, whatever the machine.
    fields
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

/// Bytes that the files below a directory take on disk.
pub(crate) fn disk_bytes(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let Ok(about) = entry.metadata() else {
            continue;
        };
        bytes += match about.is_dir() {
            true => disk_bytes(&entry.path())?,
            false => blocks(&about) * 512,
        };
    }
    Ok(bytes)
}

fn blocks(about: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(about)
}
