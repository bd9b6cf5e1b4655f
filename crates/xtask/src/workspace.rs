//! The places of the workspace, and programs that are run there.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// This workspace on this machine.
pub struct Workspace {
    /// The folder of the top-level `Cargo.toml`.
    pub root: PathBuf,
    /// Cargo's target directory; everything that is fetched lies beneath it.
    pub target: PathBuf,
    /// Cargo's own account of the members, without their dependencies' dependencies.
    pub metadata: Value,
    /// The file of this very program. The system names it no more once a build has replaced it.
    itself: PathBuf,
    /// True if each crate is built once: then what would speed up its next build only costs time.
    pub builds_once: bool,
}

impl Workspace {
    /// Asks Cargo about the workspace of the current folder.
    ///
    /// # Errors
    /// Where Cargo does not run, or finds no workspace.
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

    /// Cargo, in the workspace's folder.
    pub fn cargo(&self, args: &[&str]) -> Command {
        let mut command = cargo_command();
        command.current_dir(&self.root).args(args);
        if let Some(path) = self.path_with_make() {
            command.env("PATH", path);
        }
        self.build_once(&mut command);
        command
    }

    /// The folder in which `make` is unpacked, as if it were `/`.
    pub fn make_root(&self) -> PathBuf {
        self.target.join("make/root")
    }

    /// The system's folders of programs and the one in which `make` was unpacked, where it is found
    /// there alone.
    fn path_with_make(&self) -> Option<OsString> {
        let own = self.make_root().join("usr/bin");
        if is_on_path("make") || !own.join("make").exists() {
            return None;
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain([own]);
        std::env::join_paths(folders).ok()
    }

    /// Builds all programs of the workspace. Examples are named for their dependencies: with those
    /// the libraries are the ones that tests are built with, and are built once.
    ///
    /// # Errors
    /// Where one does not build.
    pub fn build_programs(&self) -> Result<()> {
        run(&mut self.cargo(&["build", "--workspace", "--bins", "--examples", "--locked"]))
    }

    /// This very program, which builds as often as this process does.
    pub fn itself(&self) -> Command {
        let mut command = self.program(&self.itself);
        self.build_once(&mut command);
        command
    }

    fn build_once(&self, command: &mut Command) {
        if self.builds_once {
            command.env("CARGO_INCREMENTAL", "0");
        }
    }

    /// Any program, in the workspace's folder.
    pub fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    /// The folder of the Python tools' programs.
    pub fn python_bin(&self) -> PathBuf {
        self.target.join("venv/bin")
    }
}

/// Returns whether a program is found by its name alone.
pub fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn cargo_command() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What `cargo run` tells this program about its own package would mislead other builds.
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("CARGO_PKG_") || name_text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a program to its end; its output goes where ours goes.
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

/// Runs a program to its end and gives what it printed on stdout.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", shown(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!("{} ended with {}: {said}", shown(command), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns whether a file says exactly this: how it is known that something fetched is in place.
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
