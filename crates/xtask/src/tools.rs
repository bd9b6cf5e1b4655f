//! Programs that checks need and that no Debian package holds, each at a fixed version.

use std::path::Path;

use anyhow::{Context, Result};

use crate::debian;
use crate::workspace::{Workspace, run, says};

/// Makes `target/venv` and `target/pywb` hold what their lists say. pywb needs an older client of
/// redis and a brotli, so it has an environment of its own.
pub(crate) fn python(workspace: &Workspace) -> Result<()> {
    environment(workspace, "venv", "requirements.txt")?;
    environment(workspace, "pywb", "requirements-pywb.txt")
}

fn environment(workspace: &Workspace, name: &str, list: &str) -> Result<()> {
    let requirements = workspace.root.join("crates/xtask").join(list);
    let wanted = std::fs::read_to_string(&requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    let venv = workspace.target.join(name);
    let stamp = venv.join("requirements.txt");
    if says(&stamp, &wanted) {
        eprintln!("in place: {}", venv.display());
        return Ok(());
    }
    let made = run(workspace
        .program("python3")
        .args(["-m", "venv", "--clear"])
        .arg(&venv));
    if made.is_err() {
        // Debian splits off the part of Python that brings pip into a venv.
        eprintln!("python3 has no ensurepip: fetching pip's wheel");
        venv_without_ensurepip(workspace, &venv)?;
    }
    let mut pip = workspace.program(venv.join("bin/python"));
    // The list is whole: what it leaves out is left out on purpose. FastWARC asks for
    // `brotli` and does without; warcio fails on any brotli body where it is there.
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--no-deps"]);
    pip.arg("--requirement");
    run(pip.arg(&requirements))?;
    std::fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

fn venv_without_ensurepip(workspace: &Workspace, venv: &Path) -> Result<()> {
    let mut make = workspace.program("python3");
    run(make
        .args(["-m", "venv", "--clear", "--without-pip"])
        .arg(venv))?;
    let wheel = debian::pip_wheel(workspace)?;
    // A wheel is a zip file, and Python runs a program inside of a zip file.
    let mut pip = workspace.program(venv.join("bin/python"));
    pip.arg(wheel.join("pip"))
        .args(["install", "--quiet", "--no-input", "--no-index"]);
    run(pip.arg(&wheel))
}
