//! The measured program, and what the system reports about it.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use xtask::workspace::{Workspace, run};

/// Interval at which to read the program's peak memory. The peak never falls, so the last reading
/// is the result.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug)]
pub(super) enum BuildProfile {
    /// The profile of released programs.
    Release,
    /// The `dev` profile, which builds faster.
    Dev,
}

impl BuildProfile {
    /// Returns the profile for a flag `--dev`.
    pub(super) fn of(is_dev: bool) -> BuildProfile {
        match is_dev {
            true => BuildProfile::Dev,
            false => BuildProfile::Release,
        }
    }
}

/// A program of this workspace that benchmarks build and measure.
#[derive(Clone, Copy, Debug)]
pub(super) enum WorkspaceProgram {
    /// The crawler.
    Crawl,
    /// This program, which some benchmarks measure too. It is built with the same profile as the
    /// crawler.
    Trials,
}

/// Builds a program and returns its path.
pub(super) fn build(
    workspace: &Workspace,
    profile: BuildProfile,
    program: WorkspaceProgram,
) -> Result<PathBuf> {
    let (profile, folder) = match profile {
        BuildProfile::Dev => ("dev", "debug"),
        BuildProfile::Release => ("release", "release"),
    };
    let package = match program {
        WorkspaceProgram::Crawl => "crawl",
        WorkspaceProgram::Trials => "crawl-trials",
    };
    run(&mut workspace.cargo(&["build", "--profile", profile, "--package", package]))?;
    Ok(workspace.target.join(folder).join(package))
}

/// Returns a command that runs on the first `threads` processors only.
pub(super) fn pinned(
    workspace: &Workspace,
    threads: usize,
    argv: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Command {
    let mut command = workspace.program("taskset");
    let last = threads.max(1) - 1;
    command
        .args(["--cpu-list", &format!("0-{last}")])
        .args(argv);
    command
}

/// Waits until a process ends. Returns its peak memory in KiB, as reported by the system (Linux).
pub(super) fn peak_until_end(mut child: Child) -> Result<u64> {
    Ok(watch(&mut child, None)?.0)
}

/// The cost of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessCost {
    pub(super) wall: Duration,
    /// Time of all threads, in user and kernel mode.
    pub(super) cpu: Duration,
    pub(super) peak_kib: u64,
}

/// Runs a program and returns its cost. Also returns whether the program was ended because it ran
/// longer than `most`.
pub(super) fn cost_until_end(command: &mut Command, most: Duration) -> Result<(ProcessCost, bool)> {
    let before = cpu_of_ended_children()?;
    let begin = Instant::now();
    let (peak_kib, is_ended) = watch(&mut command.stdin(Stdio::null()).spawn()?, Some(most))?;
    let wall = begin.elapsed();
    let cpu = cpu_of_ended_children()?.saturating_sub(before);
    let cost = ProcessCost {
        wall,
        cpu,
        peak_kib,
    };
    Ok((cost, is_ended))
}

fn watch(child: &mut Child, most: Option<Duration>) -> Result<(u64, bool)> {
    let status = format!("/proc/{}/status", child.id());
    let begin = Instant::now();
    let mut peak = 0;
    let mut is_ended = false;
    while child.try_wait()?.is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        peak = peak_kib(&text).unwrap_or(0).max(peak);
        if most.is_some_and(|most| begin.elapsed() > most) && !is_ended {
            child.kill()?;
            is_ended = true;
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    match peak {
        0 => bail!("the system doesn't report the peak memory of a process"),
        peak => Ok((peak, is_ended)),
    }
}

/// Returns the processor time of all children that ended and were waited for. The cost of one run
/// is the difference between two calls.
fn cpu_of_ended_children() -> Result<Duration> {
    cpu_of(UsageWho::RUSAGE_CHILDREN)
}

/// Returns the processor time of all threads of this process, or zero if the system does not report
/// it.
pub(super) fn cpu_of_this_process() -> Duration {
    cpu_of(UsageWho::RUSAGE_SELF).unwrap_or_default()
}

fn cpu_of(who: UsageWho) -> Result<Duration> {
    let usage = getrusage(who)?;
    let whole = |time: nix::sys::time::TimeVal| {
        let micros = u64::try_from(time.num_microseconds()).unwrap_or(0);
        Duration::from_micros(micros)
    };
    Ok(whole(usage.user_time()) + whole(usage.system_time()))
}

fn peak_kib(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::peak_kib;

    #[test]
    fn the_systems_report_is_parsed() {
        let status = "Name:\tcrawl\nVmPeak:\t  99 kB\nVmHWM:\t  1234 kB\nThreads:\t5\n";
        assert_eq!(peak_kib(status), Some(1234));
        assert_eq!(peak_kib("Name:\tcrawl\n"), None);
    }
}
