//! The tarball and the npm package.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::json;

use super::build_program::TARGET;
use super::install_layout::{self, PackageContents};
use super::product_metadata::{PROGRAM, ProductMetadata};
use crate::debian_packages::make_empty;
use crate::pinned_tools;
use crate::workspace::{Workspace, run};

/// Files to copy from the top of the repository.
const TOP: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Writes `NAME-VERSION-TARGET.tar.gz`, with folders as below a prefix such as `/usr/local`.
pub(super) fn tarball(
    workspace: &Workspace,
    product: &ProductMetadata,
    parts: &PackageContents<'_>,
    to: &Path,
) -> Result<()> {
    let folder = parts.folder.join("tarball");
    make_empty(&folder)?;
    let name = format!("{}-{TARGET}", product.versioned());
    let top = folder.join(&name);
    install_layout::write(workspace, product, parts, &top)?;
    for file in TOP {
        let doc = install_layout::documents(product, &top);
        install_layout::copy(&workspace.root.join(file), &doc.join(file))?;
    }
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=ustar", "--sort=name"])
        .args([
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--mode=u=rwX,go=rX",
        ])
        .arg(format!("--mtime=@{}", product.epoch))
        .args(["--use-compress-program", "gzip --no-name --best"])
        .arg("--file")
        .arg(to.join(format!("{name}.tar.gz")))
        .arg("--directory")
        .arg(&folder)
        .arg(&name);
    run(&mut tar)
}

/// Writes the npm package, which contains the program itself and has no install scripts.
pub(super) fn npm(
    workspace: &Workspace,
    product: &ProductMetadata,
    parts: &PackageContents<'_>,
    to: &Path,
) -> Result<()> {
    let folder = parts.folder.join("npm");
    make_empty(&folder)?;
    let program = format!("bin/{PROGRAM}");
    install_layout::copy(parts.program, &folder.join(&program))?;
    install_layout::copy(parts.sbom, &folder.join(install_layout::SBOM))?;
    install_layout::copy(parts.notices, &folder.join(install_layout::NOTICES))?;
    for file in TOP {
        install_layout::copy(&workspace.root.join(file), &folder.join(file))?;
    }
    let description = json!({
        "name": product.name,
        "version": product.version,
        "description": product.description,
        "license": product.license,
        "author": product.maintainer,
        "keywords": ["crawler", "robots.txt", "warc"],
        "bin": {PROGRAM: program},
        "files": [program, install_layout::SBOM, install_layout::NOTICES, "CHANGELOG.md"],
        "os": ["linux"],
        "cpu": ["x64"],
        "libc": ["glibc"],
    });
    let file = folder.join("package.json");
    fs::write(&file, format!("{description:#}\n"))
        .with_context(|| format!("cannot write {}", file.display()))?;
    let mut pack = pinned_tools::node_program(workspace, "npm");
    pack.args(["pack", "--loglevel=error", "--pack-destination"]);
    run(pack.arg(to).current_dir(&folder))
}
