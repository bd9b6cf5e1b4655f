//! Finds and kills the browsers of a killed crawl. No browser may outlive its crawl.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Maximum time that the browsers of a killed crawl may take to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Interval between two looks at the processes.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Process groups of browsers.
pub(super) struct BrowserProcessGroups(BTreeSet<i32>);

impl BrowserProcessGroups {
    /// Finds the browsers whose profiles are below `folder`. The command line of a renderer process
    /// doesn't name its profile, but the renderer is in the same process group as a process whose
    /// command line does.
    pub(super) fn below(folder: &Path) -> BrowserProcessGroups {
        let profile = format!("{}/", folder.display());
        let processes = processes().filter_map(|(id, group)| {
            let command = fs::read(format!("/proc/{id}/cmdline")).ok()?;
            let command = String::from_utf8_lossy(&command).into_owned();
            command.contains(&profile).then_some(group)
        });
        BrowserProcessGroups(processes.collect())
    }

    /// Kills the browsers together with their guardian processes, which would otherwise clean up
    /// after the browsers. This is what happens when a container ends.
    pub(super) fn kill(&self) {
        for group in &self.0 {
            // An error means that the group has already ended.
            let _ = killpg(Pid::from_raw(*group), Signal::SIGKILL);
        }
    }

    /// Waits until all processes have ended.
    pub(super) fn wait(&self) -> Result<()> {
        let started = Instant::now();
        loop {
            let survivors = processes().filter(|(_, group)| self.0.contains(group));
            let survivors: Vec<_> = survivors.collect();
            if survivors.is_empty() {
                return Ok(());
            }
            let time = started.elapsed();
            ensure!(
                time < PATIENCE,
                "{} s after the kill, these processes (and their groups) of a browser are left: \
                 {survivors:?}",
                time.as_secs()
            );
            sleep(LOOK_EVERY);
        }
    }
}

/// Returns the ids of all processes that are not zombies, and their groups.
fn processes() -> impl Iterator<Item = (i32, i32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let id: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        Some((id, group_of(&stat)?))
    })
}

/// Returns the process group from `/proc/PID/stat`. `None` for a zombie. The name is in parentheses
/// and can contain any character.
fn group_of(stat: &str) -> Option<i32> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let is_zombie = fields.next()? == "Z";
    let group = fields.nth(1)?.parse().ok()?;
    (!is_zombie).then_some(group)
}

#[cfg(test)]
mod tests {
    use super::group_of;

    #[test]
    fn groups_are_read() {
        assert_eq!(group_of("12 (a) b) S 1 77 3"), Some(77));
        assert_eq!(group_of("12 (a) Z 1 77 3"), None);
        assert_eq!(group_of("12 (a"), None);
    }
}
