//! How fast a frontier on disk admits URLs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use xtask::debian_packages;
use xtask::workspace::{Workspace, output, run};

/// Maximum bytes on disk per known URL. Includes temporary files: while sorted runs are merged, the
/// store takes twice its final size.
const BYTES_PER_URL: u64 = 150;
/// Minimum free disk space to require, however few URLs there are.
const MIN_BYTES_AT: u64 = 1 << 30;

#[derive(Args)]
pub(crate) struct FrontierArgs {
    /// Number of known URLs at which to stop admitting links
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    urls: u64,
    /// Number of hosts [default: a hundredth of the URLs]
    #[arg(long, value_name = "N")]
    hosts: Option<u32>,
    /// Number of pages per commit, with 50 links each
    #[arg(long, value_name = "N", default_value_t = 64)]
    pages_per_commit: usize,
    /// Folder for the frontier, which is removed at the end [default: below target/]
    #[arg(long)]
    dir: Option<PathBuf>,
}

pub(super) fn fill(workspace: &Workspace, args: &FrontierArgs) -> Result<()> {
    let dir = args.dir.clone();
    let dir = dir.unwrap_or_else(|| workspace.target.join("bench-frontier"));
    if dir.exists() {
        bail!("{} exists already; remove it first", dir.display());
    }
    fs::create_dir_all(&dir)?;
    let filled = enough_disk(workspace, &dir, args.urls).and_then(|()| {
        let hosts = args
            .hosts
            .unwrap_or((args.urls / 100).clamp(100, 1 << 24) as u32);
        let numbers = [args.urls, hosts.into(), args.pages_per_commit as u64];
        let cargo = [
            "run",
            "--release",
            "--package",
            "crawl-frontier",
            "--example",
            "bench",
            "--",
        ];
        let mut command = workspace.cargo(&cargo);
        command
            .arg(dir.join("state"))
            .args(numbers.map(|number| number.to_string()));
        run(&mut command)
    });
    fs::remove_dir_all(&dir)?;
    filled
}

/// Measures shared frontiers. Starts the PostgreSQL servers that hold them.
pub(super) fn share(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.cargo(&["bench", "--package", "crawl-shared-frontier"]);
    command.args(["--bench", "shared"]);
    for (name, value) in debian_packages::environment(workspace)? {
        command.env(name, value);
    }
    run(&mut command)
}

/// Fails if too little disk space is free, because a full disk would distort the result.
fn enough_disk(workspace: &Workspace, dir: &Path, urls: u64) -> Result<()> {
    let printed = output(workspace.program("df").arg("-kP").arg(dir))?;
    let free = free_bytes(&printed).with_context(|| format!("df said: {printed}"))?;
    let wanted = urls.saturating_mul(BYTES_PER_URL).max(MIN_BYTES_AT);
    if free < wanted {
        let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        bail!(
            "{urls} URLs take up to {:.1} GiB, and {:.1} GiB are free in {}; another disk: --dir",
            gib(wanted),
            gib(free),
            dir.display()
        );
    }
    Ok(())
}

/// Returns the free space in the fourth column of `df -kP`.
fn free_bytes(printed: &str) -> Option<u64> {
    let kib = printed.lines().nth(1)?.split_whitespace().nth(3)?;
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::free_bytes;

    #[test]
    fn free_space_is_read_from_df() {
        let printed = "Filesystem 1024-blocks Used Available Capacity Mounted on\n\
            /dev/vda 263999488 53477376 41943040 57% /\n";
        assert_eq!(free_bytes(printed), Some(40 << 30));
        assert_eq!(free_bytes("df: nothing\n"), None);
    }
}
