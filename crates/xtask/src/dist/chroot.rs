//! Clean Debian systems, made by mmdebstrap, for checking packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::base_image_builder;
use crate::debian_packages::make_empty;
use crate::workspace::{Workspace, output, run};

/// A system that is unpacked for one check. Removed when dropped.
pub(super) struct Chroot {
    root: PathBuf,
}

impl Chroot {
    /// Unpacks a system of a Debian release, with `packages` in addition to the minimal system. The
    /// first call with this release and these packages makes the archive to unpack.
    pub(super) fn unpack(
        workspace: &Workspace,
        release: &str,
        packages: &[&str],
    ) -> Result<Chroot> {
        let folder = workspace.target.join("dist/chroots");
        std::fs::create_dir_all(&folder)?;
        let name = [&[release], packages].concat().join("-");
        let archive = folder.join(&name).with_extension("tar");
        if !archive.exists() {
            let unfinished = archive.with_extension("unfinished");
            let mut command = base_image_builder::mmdebstrap(workspace)?;
            if !packages.is_empty() {
                command.arg(format!("--include={}", packages.join(",")));
            }
            run(command.arg(release).arg(&unfinished))?;
            std::fs::rename(&unfinished, &archive)?;
        }
        let root = folder.join(&name);
        make_empty(&root)?;
        let chroot = Chroot { root };
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--numeric-owner", "--file"]);
        run(tar.arg(&archive).arg("--directory").arg(&chroot.root))?;
        Ok(chroot)
    }

    /// Copies a file into `/tmp` of the system. Returns its path in the system.
    pub(super) fn bring(&self, file: &Path) -> Result<String> {
        let name = file.file_name().context("a package has no name")?;
        let path = Path::new("/tmp").join(name);
        let there = self.path(&path.display().to_string());
        std::fs::copy(file, &there).with_context(|| format!("cannot write {}", there.display()))?;
        Ok(path.display().to_string())
    }

    /// Returns the path on this machine of a path in the system.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Runs a program in the system, with access to this machine's network but not to its files.
    pub(super) fn run(&self, argv: &[&str]) -> Result<()> {
        run(&mut self.command(argv))
    }

    /// Runs a program and returns its stdout.
    pub(super) fn output(&self, argv: &[&str]) -> Result<String> {
        output(&mut self.command(argv))
    }

    fn command(&self, argv: &[&str]) -> Command {
        let script = "mount -t proc proc \"$0/proc\"; mount --bind /dev \"$0/dev\"; \
                      exec chroot \"$0\" \"$@\"";
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--", "sh", "-ec", script])
            .arg(&self.root)
            .args([
                "env",
                "--ignore-environment",
                "HOME=/root",
                "LC_ALL=C.UTF-8",
            ])
            .arg("PATH=/usr/sbin:/usr/bin:/sbin:/bin")
            .args(argv);
        command
    }
}

impl Drop for Chroot {
    fn drop(&mut self) {
        // Ignore errors, because the next run empties the folder. Nothing is mounted there any
        // more, because the mounts of each program ended with the program.
        let _ = std::fs::remove_dir_all(&self.root);
    }
}
