//! The workspace's folders, and programs that run there.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The Cargo workspace that this program belongs to: its folders and metadata.
pub struct Workspace {
    /// The folder of the top-level `Cargo.toml`.
    pub root: PathBuf,
    /// Cargo's target directory. Everything fetched is beneath it.
    pub target: PathBuf,
    /// Cargo's metadata of the members, without their dependencies.
    pub metadata: Value,
    /// The path of this program, determined at the start. The system no longer reports the path
    /// once a build has replaced the file.
    itself: PathBuf,
    /// Whether each crate is built only once. If so, builds are not incremental and have no debug
    /// information, because generating it takes a tenth of the compiler's time.
    pub builds_once: bool,
}

impl Workspace {
    /// Queries Cargo about the workspace of the current folder.
    ///
    /// # Errors
    /// Fails if Cargo does not run or finds no workspace.
    pub fn find() -> Result<Workspace> {
        let mut command = cargo_command();
        command.args(["metadata", "--no-deps", "--format-version", "1"]);
        let metadata: Value = serde_json::from_str(&output(&mut command)?)?;
        let path = |key: &str| {
            metadata[key]
                .as_str()
                .map(PathBuf::from)
                .with_context(|| format!("cargo names no {key}"))
        };
        let (root, target) = (path("workspace_root")?, path("target_directory")?);
        Ok(Workspace {
            root,
            target,
            metadata,
            itself: std::env::current_exe()?,
            builds_once: false,
        })
    }

    /// Returns a Cargo command in the workspace's folder.
    pub fn cargo(&self, args: &[&str]) -> Command {
        let mut command = cargo_command();
        command.current_dir(&self.root).args(args);
        if let Some(path) = self.path_with_make() {
            command.env("PATH", path);
        }
        self.build_once(&mut command);
        command
    }

    /// Returns the folder that the package of `make` is unpacked into. The program is then at
    /// `usr/bin/make` below it.
    pub fn make_root(&self) -> PathBuf {
        self.target.join("make/root")
    }

    /// Returns the system's `PATH` extended by the unpacked `make`, if `make` exists only there.
    fn path_with_make(&self) -> Option<OsString> {
        let own = self.make_root().join("usr/bin");
        if is_on_path("make") || !own.join("make").exists() {
            return None;
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain([own]);
        std::env::join_paths(folders).ok()
    }

    /// Builds all programs of the workspace. Builds examples too: their dependencies enable the
    /// same features of the libraries as the tests do, so the libraries are not rebuilt for the
    /// tests.
    ///
    /// # Errors
    /// Fails if a program does not build.
    pub fn build_programs(&self) -> Result<()> {
        run(&mut self.cargo(&["build", "--workspace", "--bins", "--examples", "--locked"]))
    }

    /// Returns a command that runs this program again, with the same `builds_once`.
    pub fn itself(&self) -> Command {
        self.program(&self.itself)
    }

    /// Sets the environment variables for `builds_once`. Every program gets them, because it may
    /// start Cargo.
    fn build_once(&self, command: &mut Command) {
        if self.builds_once {
            command.env("CARGO_INCREMENTAL", "0");
            command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        }
    }

    /// Returns a command that runs `program` in the workspace's folder.
    pub fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        self.build_once(&mut command);
        command
    }

    /// Copies the workspace's files to a folder: all files that git tracks, and new files that git
    /// doesn't ignore. Leaves unchanged files alone, so that Cargo doesn't rebuild them.
    ///
    /// # Errors
    /// Fails if git does not run or a file can't be copied.
    pub fn copy_files(&self, tree: &Path) -> Result<()> {
        let mut git = self.program("git");
        git.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
        let names = output(&mut git)?;
        let list = tree.with_extension("list");
        let before = std::fs::read_to_string(&list).unwrap_or_default();
        let now: HashSet<&str> = names.lines().collect();
        for gone in before.lines().filter(|name| !now.contains(name)) {
            let _ = std::fs::remove_file(tree.join(gone));
        }
        for name in names.lines() {
            let (from, to) = (self.root.join(name), tree.join(name));
            let Ok(bytes) = std::fs::read(&from) else {
                // The file was deleted but git still lists it, so remove the copy.
                let _ = std::fs::remove_file(to);
                continue;
            };
            if std::fs::read(&to).is_ok_and(|old| old == bytes) {
                continue;
            }
            std::fs::create_dir_all(to.parent().unwrap_or(tree))?;
            std::fs::write(&to, bytes).with_context(|| format!("cannot write {}", to.display()))?;
        }
        std::fs::write(&list, &names).with_context(|| format!("cannot write {}", list.display()))
    }

    /// Returns the folder with the executables of the Python tools.
    pub fn python_bin(&self) -> PathBuf {
        self.target.join("venv/bin")
    }
}

/// Returns how many tests of one test program to run at a time: two per processor, because most
/// tests wait for servers and disks.
///
/// # Errors
/// If the number of processors is unknown.
pub fn test_threads() -> Result<String> {
    Ok((2 * thread::available_parallelism()?.get()).to_string())
}

/// Returns whether a program is found in `PATH`.
pub fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn cargo_command() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Remove the variables that `cargo run` sets for this package, because they would mislead other
    // builds.
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("CARGO_PKG_") || name_text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a program to its end, with our stdout and stderr.
pub fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", shown(command));
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", shown(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs a program to its end and returns its stdout.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", shown(command)))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!("{} ended with {}: {stderr}", shown(command), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns whether a stamp file contains exactly `text`. Stamp files mark complete downloads.
pub fn says(stamp: &Path, text: &str) -> bool {
    std::fs::read_to_string(stamp).is_ok_and(|found| found == text)
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut text = program
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}
