//! Checks that trials of the engine find the bugs in `crates/trials/known-bugs`, one at a time.
//!
//! Each bug is a patch. After the patch is applied to a copy of the workspace, trials run until one
//! fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use xtask::workspace::{self, Workspace};

use super::{TRIALS, trial_environment};

/// The folder of the patches.
const PATCHES: &str = "crates/trials/known-bugs";

/// Builds the engine with each bug, and runs up to `trials` trials, with seeds from `first` on.
///
/// # Errors
/// If a bug is not found, a patch does not fit, or a build fails.
pub(super) fn find_all(workspace: &Workspace, first: u64, trials: u64) -> Result<()> {
    let tree = workspace.target.join("known-bugs").join("tree");
    fs::create_dir_all(&tree)?;
    let mut missed = Vec::new();
    for patch in patches(&workspace.root)? {
        workspace.copy_files(&tree)?;
        let name = patch.file_stem().unwrap_or_default().to_string_lossy();
        apply(&tree, &patch)?;
        match broken_rule(workspace, &tree, (first, trials))? {
            Some(rule) => eprintln!("{name}: found: {rule}"),
            None => {
                eprintln!("{name}: not found in {trials} trials");
                missed.push(name.into_owned());
            }
        }
    }
    // Restore the copy, so that it has no bug the next time it is built.
    workspace.copy_files(&tree)?;
    match missed[..] {
        [] => Ok(()),
        _ => bail!("not found: {}", missed.join(", ")),
    }
}

fn patches(root: &Path) -> Result<Vec<PathBuf>> {
    let folder = root.join(PATCHES);
    let entries =
        fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut patches = Vec::new();
    for entry in entries {
        patches.push(entry?.path());
    }
    patches.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "patch")
    });
    patches.sort_unstable();
    Ok(patches)
}

fn apply(tree: &Path, patch: &Path) -> Result<()> {
    let mut git = Command::new("git");
    git.arg("apply").arg(patch).current_dir(tree);
    // Keep git from finding the repository: the copy is in one of its ignored folders, where git
    // would skip all files.
    git.env("GIT_CEILING_DIRECTORIES", tree.parent().unwrap_or(tree));
    workspace::run(&mut git)
}

/// Runs trials of the engine in `tree`. Returns the first broken rule, if there is one.
fn broken_rule(
    workspace: &Workspace,
    tree: &Path,
    (first, trials): (u64, u64),
) -> Result<Option<String>> {
    let cargo = |args: &[&str]| {
        let mut command = workspace.cargo(args);
        command.current_dir(tree);
        command.env("CARGO_TARGET_DIR", &workspace.target);
        command
    };
    let [test, package, lib, locked, ..] = TRIALS;
    workspace::run(&mut cargo(&[test, package, lib, locked, "--no-run"]))?;
    let mut command = cargo(&TRIALS);
    command.envs(trial_environment(first, trials));
    command.env("CRAWL_TRIALS_BROKEN", "1");
    let ended = command.output()?;
    if ended.status.success() {
        return Ok(None);
    }
    let text = [ended.stdout, ended.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let rule = text.lines().find(|line| line.starts_with("seed "));
    let rule = rule.with_context(|| format!("the trials failed:\n{text}"))?;
    Ok(Some(rule.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without this test, only the next long run of `--known-bugs` would show that a patch no
    /// longer applies.
    #[test]
    fn every_patch_applies_to_the_sources() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let patches = patches(&root).unwrap();
        assert!(!patches.is_empty());
        for patch in patches {
            let mut git = Command::new("git");
            git.args(["apply", "--check"]).arg(&patch);
            let checked = git.current_dir(&root).output().unwrap();
            let errors = String::from_utf8_lossy(&checked.stderr);
            assert!(checked.status.success(), "{}: {errors}", patch.display());
        }
    }
}
