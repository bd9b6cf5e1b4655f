//! A browser, and the tests that look at our pages with it.
//!
//! Debian's Chromium without a window, unpacked with all of its libraries and some fonts, and
//! Playwright's driver, which is a Python package. Nothing of it is installed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::debian::{Debian, libraries};
use crate::tools;
use crate::workspace::{Workspace, output, run};

/// The build that has no window and so needs no toolkit.
const PACKAGE: &str = "chromium-headless-shell";

/// Fetches the browser, and sees that it runs.
pub(crate) fn fetch(workspace: &Workspace) -> Result<()> {
    let root = Debian::of(workspace).unpack_whole(PACKAGE)?;
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

/// Runs the tests in the browser.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    // The search page, and the one that needs no server. The whole workspace is named, since
    // the libraries of one package alone would be built with other features, and so again.
    let mut command = workspace.cargo(&["test", "--workspace", "--test", "browser", "--locked"]);
    command.envs(environment(workspace)?);
    run(&mut command)
}

/// The variables for tests in the browser: where it is, the Python that drives it, and axe.
pub(crate) fn environment(workspace: &Workspace) -> Result<[(&'static str, OsString); 5]> {
    let root = Debian::of(workspace).unpack_whole(PACKAGE)?;
    Ok([
        ("CRAWL_PYTHON_BIN", workspace.python_bin().into()),
        ("CRAWL_CHROMIUM", program(&root).into()),
        ("CRAWL_CHROMIUM_LIBRARIES", libraries(&root)?.into()),
        ("CRAWL_CHROMIUM_FONTS", fonts(&root).into()),
        ("CRAWL_AXE", tools::axe(workspace).into()),
    ])
}

fn program(root: &Path) -> PathBuf {
    root.join("usr/lib/chromium").join(PACKAGE)
}

/// The file that names the fonts; by itself the browser looks for them in `/etc`.
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
