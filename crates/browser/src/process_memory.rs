//! The memory of a process group.

use std::fs;

/// Returns the resident memory of all processes of a group, in bytes. Includes private and shared
/// memory. Excludes mapped files, because all processes share the same copy.
pub(crate) fn of_group(group: u32) -> u64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let folders = processes.filter(|entry| {
        let name = entry.file_name();
        name.to_string_lossy()
            .bytes()
            .all(|byte| byte.is_ascii_digit())
    });
    let of_process = |path: std::path::PathBuf| {
        let stat = fs::read_to_string(path.join("stat")).ok()?;
        if group_of(&stat)? != group {
            return None;
        }
        // Skip a process that has ended since its group was read.
        Some(resident(&fs::read_to_string(path.join("status")).ok()?))
    };
    folders.filter_map(|folder| of_process(folder.path())).sum()
}

/// Returns the process group from the content of `/proc/PID/stat`. The group is the third field
/// after the process name, which is in parentheses and may contain any characters.
fn group_of(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(2)?.parse().ok()
}

/// Returns the resident memory from the content of `/proc/PID/status`, in bytes.
fn resident(status: &str) -> u64 {
    let kibibytes = status.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_counted = matches!(name, "RssAnon" | "RssShmem");
        let number = value.trim().strip_suffix(" kB")?;
        is_counted.then(|| number.trim().parse::<u64>().ok())?
    });
    kibibytes.sum::<u64>() << 10
}

#[cfg(test)]
mod tests {
    use super::{group_of, resident};

    #[test]
    fn group_is_found_after_any_name() {
        assert_eq!(group_of("12 (a) b) S 1 77 3"), Some(77));
        assert_eq!(group_of("12 (a"), None);
    }

    #[test]
    fn mapped_files_are_not_counted() {
        let status =
            "Name:\tx\nVmRSS:\t 900 kB\nRssAnon:\t   3 kB\nRssFile:\t 800 kB\nRssShmem:\t 4 kB\n";
        assert_eq!(resident(status), 7 << 10);
        assert_eq!(resident("RssAnon:\tmany kB"), 0);
    }
}
