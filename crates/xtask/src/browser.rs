//! A browser, and the tests that look at our pages with it.
//!
//! Debian's Chromium without a window, unpacked with all of its libraries and some fonts, and
//! Playwright's driver, which is a Python package. Nothing of it is installed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::debian::Debian;
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
    let root = Debian::of(workspace).unpack_whole(PACKAGE)?;
    // The search page, and the one that needs no server. The whole workspace is named, since
    // the libraries of one package alone would be built with other features, and so again.
    let mut command = workspace.cargo(&["test", "--workspace", "--test", "browser", "--locked"]);
    command.env("CRAWL_PYTHON_BIN", workspace.python_bin());
    command.env("CRAWL_CHROMIUM", program(&root));
    command.env("CRAWL_CHROMIUM_LIBRARIES", libraries(&root)?);
    command.env("CRAWL_CHROMIUM_FONTS", fonts(&root));
    run(&mut command)
}

fn program(root: &Path) -> PathBuf {
    root.join("usr/lib/chromium").join(PACKAGE)
}

/// Where the fonts are told; by itself the browser looks for them in `/etc`.
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

/// The folders that hold libraries, as `LD_LIBRARY_PATH` names them: those of the architecture,
/// and the folders in them that packages keep their own in.
fn libraries(root: &Path) -> Result<String> {
    let mut folders = Vec::new();
    for base in ["usr/lib", "lib"].map(|base| root.join(base)) {
        for architecture in folders_of(&base) {
            let is_one = architecture
                .file_name()
                .is_some_and(|name| name.to_string_lossy().contains("-linux-"));
            if is_one {
                folders.extend(
                    folders_of(&architecture)
                        .into_iter()
                        .filter(|folder| holds_library(folder)),
                );
                folders.insert(0, architecture);
            }
        }
    }
    if folders.is_empty() {
        bail!(
            "{} holds no libraries\nhint: cargo xtask test --step chromium",
            root.display()
        );
    }
    let folders: Vec<String> = folders
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    Ok(folders.join(":"))
}

fn folders_of(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

fn holds_library(folder: &Path) -> bool {
    let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("lib") && name.contains(".so")
    })
}
