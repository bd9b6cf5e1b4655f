//! `cargo xtask dist`: builds and checks the packages and the container image. All files are kept
//! in `target/dist`.

mod base_image_builder;
mod build_program;
mod buildah;
mod chroot;
mod compose_service_parser;
mod deb;
mod image;
mod image_trial;
mod install_layout;
mod notices;
mod package_checker;
mod product_metadata;
mod running_service;
mod sbom;
mod site_server_process;
mod tarball_and_npm;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};

use self::build_program::BuildFolders;
use self::install_layout::PackageContents;
use self::package_checker::PackageInstallTrial;
use self::product_metadata::ProductMetadata;
use crate::pinned_tools;
use crate::workspace::{Workspace, output};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<DistBuild>,
}

#[derive(clap::Subcommand)]
enum DistBuild {
    /// Build the packages, their SBOM and checksums; without a command, check them too
    Packages,
    /// Install the packages in clean places and crawl with them; lintian (as root, on Debian)
    Check,
    /// Build the packages here and in another folder, and compare
    Reproduce,
    /// Build the container's image and run docker/compose.yaml with it (as root, on Debian)
    Image(image::Args),
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    match &args.command {
        None => {
            packages(workspace)?;
            check(workspace)
        }
        Some(DistBuild::Packages) => packages(workspace),
        Some(DistBuild::Check) => check(workspace),
        Some(DistBuild::Reproduce) => reproduce(workspace),
        Some(DistBuild::Image(args)) => image::run(workspace, args),
    }
}

/// Builds the packages and prints their checksums.
fn packages(workspace: &Workspace) -> Result<()> {
    let product = ProductMetadata::read(workspace)?;
    fetch_tools(workspace)?;
    pack(workspace, &product, &BuildFolders::usual(workspace)).map(drop)
}

fn fetch_tools(workspace: &Workspace) -> Result<()> {
    pinned_tools::fetch_packaging(workspace)?;
    // Install the Python tools, because they include npm.
    pinned_tools::python(workspace)
}

/// Builds the program and its packages. Returns the checksums of the program and of each package.
fn pack(workspace: &Workspace, product: &ProductMetadata, place: &BuildFolders) -> Result<String> {
    let begin = Instant::now();
    place.build(workspace, product)?;
    eprintln!("program and wheel: {} s", begin.elapsed().as_secs());
    let begin = Instant::now();
    let (program, to) = (place.program(), place.packages());
    let (major, minor) = build_program::oldest_glibc(&program)?;
    ensure!(
        (major, minor) <= build_program::GLIBC,
        "the program needs glibc {major}.{minor}, newer than the packages say"
    );
    let parts = PackageContents {
        program: &program,
        sbom: &to.join(product.sbom()),
        notices: &place.notices(),
        folder: &place.folder,
    };
    tarball_and_npm::tarball(workspace, product, &parts, &to)?;
    tarball_and_npm::npm(workspace, product, &parts, &to)?;
    deb::write(workspace, product, &parts, &to)?;
    eprintln!("the other packages: {} s", begin.elapsed().as_secs());
    let sums = checksums(&to)?;
    fs::write(to.join("SHA256SUMS"), &sums)?;
    let program = output(
        Command::new("sha256sum")
            .arg(product_metadata::PROGRAM)
            .current_dir(program.parent().unwrap_or(&place.folder)),
    )?;
    eprint!("{}:\n{program}{sums}", to.display());
    Ok(program + &sums)
}

/// Checks the packages that were built before.
fn check(workspace: &Workspace) -> Result<()> {
    image::check_machine()?;
    let place = BuildFolders::usual(workspace);
    ensure!(
        place.packages().join("SHA256SUMS").is_file(),
        "there are no packages\nhint: cargo xtask dist packages"
    );
    let begin = Instant::now();
    PackageInstallTrial {
        workspace,
        product: &ProductMetadata::read(workspace)?,
        program: &place.program(),
        packages: &place.packages(),
    }
    .run()?;
    eprintln!("check: {} s", begin.elapsed().as_secs());
    Ok(())
}

/// Builds the packages from two folders, and fails if they differ.
fn reproduce(workspace: &Workspace) -> Result<()> {
    let mut status = Command::new("git");
    status.current_dir(&workspace.root);
    let changes = output(status.args(["status", "--porcelain"]))?;
    ensure!(
        changes.is_empty(),
        "files differ from the last commit:\n{changes}hint: commit or remove them first"
    );
    let product = ProductMetadata::read(workspace)?;
    fetch_tools(workspace)?;
    let here = pack(workspace, &product, &BuildFolders::usual(workspace))?;
    let there = pack(workspace, &product, &BuildFolders::elsewhere(workspace)?)?;
    ensure!(
        here == there,
        "builds in two folders differ:\n{here}and\n{there}"
    );
    eprintln!("seen: builds in two folders are equal");
    Ok(())
}

/// Returns the checksums of the packages in a folder, in the form that `sha256sum --check` reads.
fn checksums(folder: &Path) -> Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name());
    }
    names.retain(|name| name != "SHA256SUMS");
    names.sort();
    output(Command::new("sha256sum").args(names).current_dir(folder))
}
