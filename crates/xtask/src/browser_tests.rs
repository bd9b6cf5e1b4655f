//! Fetches a browser and runs the tests that open our pages in this browser.
//!
//! Uses Debian's headless Chromium, unpacked with its libraries and some fonts, and Playwright's
//! driver, a Python package. Nothing is installed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::debian_packages::{DebianPackageFolder, libraries};
use crate::pinned_tools;
use crate::workspace::{Workspace, output, run, test_threads};

/// The headless build of Chromium, which needs no GUI toolkit.
const PACKAGE: &str = "chromium-headless-shell";

/// Fetches the browser and checks that it runs.
///
/// # Errors
/// If it can't be fetched or does not run here.
pub fn fetch(workspace: &Workspace) -> Result<()> {
    let root = DebianPackageFolder::of(workspace).unpack_whole(PACKAGE)?;
    std::fs::write(fonts(&root), fonts_list(&root))
        .with_context(|| format!("cannot write {}", fonts(&root).display()))?;
    let mut chromium = workspace.program(program(&root));
    chromium
        .env("LD_LIBRARY_PATH", libraries(&root)?)
        .arg("--version");
    let version = output(&mut chromium)
        .context("chromium does not run here\nhint: a library it needs is missing; see ldd")?;
    eprintln!("{}", version.trim());
    Ok(())
}

/// Runs the browser tests.
///
/// # Errors
/// If a test fails, or a program or file that the tests need is missing.
pub fn test(workspace: &Workspace) -> Result<()> {
    // Test the search page, the static page and the rendering of pages. Select the whole workspace,
    // because for a single package Cargo would rebuild shared libraries with other features.
    let mut command = workspace.cargo(&["test", "--workspace", "--test", "browser", "--locked"]);
    command.env("RUST_TEST_THREADS", test_threads()?);
    command.envs(environment(workspace)?);
    command.env("CRAWL_APPS", pinned_tools::bundle_apps(workspace)?);
    run(&mut command)
}

/// Returns the environment variables of browser tests: the browser, the Python that drives it, and
/// axe.
///
/// # Errors
/// If the browser can't be fetched.
pub fn environment(workspace: &Workspace) -> Result<[(&'static str, OsString); 5]> {
    let root = DebianPackageFolder::of(workspace).unpack_whole(PACKAGE)?;
    Ok([
        ("CRAWL_PYTHON_BIN", workspace.python_bin().into()),
        ("CRAWL_CHROMIUM", program(&root).into()),
        ("CRAWL_CHROMIUM_LIBRARIES", libraries(&root)?.into()),
        ("CRAWL_CHROMIUM_FONTS", fonts(&root).into()),
        ("CRAWL_AXE", pinned_tools::axe(workspace).into()),
    ])
}

/// Returns the environment variables with which `crawl` finds and starts the browser.
///
/// # Errors
/// If the browser can't be fetched.
pub fn variables(workspace: &Workspace) -> Result<[(&'static str, OsString); 3]> {
    let root = DebianPackageFolder::of(workspace).unpack_whole(PACKAGE)?;
    Ok([
        ("CRAWL_BROWSER", program(&root).into()),
        ("LD_LIBRARY_PATH", libraries(&root)?.into()),
        ("FONTCONFIG_FILE", fonts(&root).into()),
    ])
}

fn program(root: &Path) -> PathBuf {
    root.join("usr/lib/chromium").join(PACKAGE)
}

/// Returns the path of our font configuration. Without one, the browser would read `/etc/fonts`.
fn fonts(root: &Path) -> PathBuf {
    root.join("fonts.conf")
}

fn fonts_list(root: &Path) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE fontconfig SYSTEM \"urn:fontconfig:fonts.dtd\">\n\
         <fontconfig><dir>{0}/usr/share/fonts</dir><cachedir>{0}/font-cache</cachedir></fontconfig>\n",
        root.display()
    )
}
