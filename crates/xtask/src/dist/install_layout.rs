//! The files of an installed program below a prefix such as `/usr`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::product_metadata::{PROGRAM, ProductMetadata};
use crate::workspace::{Workspace, output, run};

/// The SBOM's file name in packages.
pub(super) const SBOM: &str = "sbom.cdx.json";

/// The name of the file with the licenses of all libraries.
pub(super) const NOTICES: &str = "third-party.txt";

/// Example configurations, from the folder `config`.
const CONFIGS: [&str; 3] = ["default.toml", "research.toml", "small-site.toml"];

/// The shells with completions, and the path below the prefix of the file that each shell reads.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/crawl"),
    ("fish", "share/fish/vendor_completions.d/crawl.fish"),
    ("zsh", "share/zsh/vendor-completions/_crawl"),
];

/// The contents of every package.
pub(super) struct PackageContents<'a> {
    pub(super) program: &'a Path,
    pub(super) sbom: &'a Path,
    pub(super) notices: &'a Path,
    /// The folder for preparing packages.
    pub(super) folder: &'a Path,
}

/// Writes the program, man pages, completions, example settings, the SBOM and the licenses below
/// `prefix`.
pub(super) fn write(
    workspace: &Workspace,
    product: &ProductMetadata,
    parts: &PackageContents<'_>,
    prefix: &Path,
) -> Result<()> {
    copy(parts.program, &prefix.join("bin").join(PROGRAM))?;
    let pages = prefix.join("share/man/man1");
    fs::create_dir_all(&pages)?;
    run(Command::new(parts.program)
        .args(["man", "--all"])
        .arg(&pages))?;
    for (shell, file) in COMPLETIONS {
        let script = output(Command::new(parts.program).args(["completions", shell]))?;
        write_file(&prefix.join(file), script)?;
    }
    let doc = documents(product, prefix);
    for config in CONFIGS {
        let from = workspace.root.join("config").join(config);
        copy(&from, &doc.join("examples").join(config))?;
    }
    copy(parts.sbom, &doc.join(SBOM))?;
    copy(parts.notices, &doc.join(NOTICES))
}

/// Returns the folder of documents below `prefix`.
pub(super) fn documents(product: &ProductMetadata, prefix: &Path) -> PathBuf {
    prefix.join("share/doc").join(&product.name)
}

/// Writes a file and creates its parent folders.
pub(super) fn write_file(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// Copies a file and creates the parent folders of the copy.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    fs::copy(from, to)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
        .map(drop)
}

/// Returns the only file or folder whose name ends with `end`.
pub(super) fn only(folder: &Path, end: &str) -> Result<PathBuf> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(end) {
            paths.push(path);
        }
    }
    ensure!(
        paths.len() == 1,
        "{} has {} entries *{end}, not one",
        folder.display(),
        paths.len()
    );
    Ok(paths.remove(0))
}
