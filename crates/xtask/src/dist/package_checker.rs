//! Installs each package in a clean environment, as a user would, and crawls with the installed
//! program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::chroot::Chroot;
use super::install_layout;
use super::product_metadata::{PROGRAM, ProductMetadata};
use super::site_server_process::SiteServerProcess;
use crate::debian_packages::make_empty;
use crate::pinned_tools;
use crate::workspace::{Workspace, output, run};

/// The releases of Debian on which the package is installed.
const RELEASES: [&str; 2] = ["bookworm", "trixie"];

/// Number of pages of the site in addition to its first one.
const PAGES: usize = 3;

/// The output folder of the trial's crawl.
const OUTPUT: &str = "/tmp/crawled";

/// Checks the packages: installs each and crawls with the program in it.
pub(super) struct PackageInstallTrial<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) product: &'a ProductMetadata,
    /// The built program, which each package must contain unchanged.
    pub(super) program: &'a Path,
    /// The folder of the packages.
    pub(super) packages: &'a Path,
}

impl PackageInstallTrial<'_> {
    /// Checks every package.
    pub(super) fn run(&self) -> Result<()> {
        SiteServerProcess::build(self.workspace)?;
        let site = SiteServerProcess::start(self.workspace, PAGES)?;
        let folder = self.workspace.target.join("dist/installed");
        make_empty(&folder)?;
        for (what, install) in [
            (
                "tarball",
                PackageInstallTrial::tarball as fn(&Self, &Path) -> Result<PathBuf>,
            ),
            ("wheel", PackageInstallTrial::wheel),
            ("npm package", PackageInstallTrial::npm),
        ] {
            let folder = folder.join(what.replace(' ', "-"));
            fs::create_dir_all(&folder)?;
            let installed = install(self, &folder).with_context(|| format!("the {what}"))?;
            self.is_the_program(&installed)?;
            let output = folder.join("crawled");
            for args in trial(&site.url, &output.display().to_string()) {
                run(Command::new(&installed).args(args))?;
            }
            eprintln!("seen: the {what} installs and crawls");
        }
        for release in RELEASES {
            self.debian(release, &site.url)
                .with_context(|| format!("the Debian package on {release}"))?;
            eprintln!("seen: the Debian package installs, crawls and is removed on {release}");
        }
        self.lintian()?;
        let requests = site.end()?;
        let pages = requests
            .iter()
            .filter(|request| !request.starts_with("/robots.txt"));
        let (pages, trials) = (pages.count(), 3 + RELEASES.len());
        ensure!(
            pages >= trials * PAGES,
            "{trials} crawls of {PAGES} pages made only {pages} requests"
        );
        Ok(())
    }

    /// Unpacks the tarball and returns its program.
    fn tarball(&self, folder: &Path) -> Result<PathBuf> {
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--gzip", "--strip-components=1", "--file"]);
        let archive = self.package(".tar.gz")?;
        run(tar.arg(archive).arg("--directory").arg(folder))?;
        for page in ["crawl.1", "crawl-report.1"] {
            let page = folder.join("share/man/man1").join(page);
            ensure!(page.is_file(), "there is no {}", page.display());
        }
        let script = folder.join("share/bash-completion/completions/crawl");
        run(Command::new("bash").arg("-n").arg(script))?;
        Ok(folder.join("bin").join(PROGRAM))
    }

    /// Installs the wheel into a new environment, without a registry.
    fn wheel(&self, folder: &Path) -> Result<PathBuf> {
        let python = pinned_tools::packaging(self.workspace).join("python");
        run(Command::new(&python)
            .args(["-m", "venv", "--without-pip"])
            .arg(folder))?;
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "--python"])
            .arg(folder.join("bin/python"));
        run(pip
            .args(["install", "--quiet", "--no-index"])
            .arg(self.package(".whl")?))?;
        Ok(folder.join("bin").join(PROGRAM))
    }

    /// Installs the npm package, without a registry.
    fn npm(&self, folder: &Path) -> Result<PathBuf> {
        // Without a package.json in this folder, npm would install into a parent folder that
        // contains a package.json.
        install_layout::write_file(&folder.join("package.json"), "{\"private\": true}\n")?;
        let mut npm = pinned_tools::node_program(self.workspace, "npm");
        npm.args([
            "install",
            "--offline",
            "--loglevel=error",
            "--no-audit",
            "--no-fund",
        ]);
        run(npm.arg(self.package(".tgz")?).current_dir(folder))?;
        Ok(folder.join("node_modules/.bin").join(PROGRAM))
    }

    /// Installs the Debian package in a clean system, crawls, removes the package, and checks that
    /// nothing is left of it.
    fn debian(&self, release: &str, url: &str) -> Result<()> {
        let chroot = Chroot::unpack(self.workspace, release, &[])?;
        let package = chroot.bring(&self.package(".deb")?)?;
        let name = self.product.name.as_str();
        chroot.run(&["dpkg", "--install", &package])?;
        chroot.run(&["dpkg", "--verify", name])?;
        self.is_the_program(&chroot.path("/usr/bin").join(PROGRAM))?;
        for args in trial(url, OUTPUT) {
            let mut argv = vec![PROGRAM];
            argv.extend(args);
            chroot.run(&argv)?;
        }
        let files = chroot.output(&["dpkg", "--listfiles", name])?;
        chroot.run(&["dpkg", "--purge", name])?;
        let leftover = files.lines().find(|file| {
            chroot.path(file).is_file() || file.contains(name) && chroot.path(file).exists()
        });
        ensure!(
            leftover.is_none(),
            "{} is left behind",
            leftover.unwrap_or_default()
        );
        Ok(())
    }

    /// Checks the Debian package with lintian, in the newest of `RELEASES`.
    fn lintian(&self) -> Result<()> {
        let release = RELEASES[RELEASES.len() - 1];
        let chroot = Chroot::unpack(self.workspace, release, &["lintian"])?;
        let package = chroot.bring(&self.package(".deb")?)?;
        let flags = "--allow-root --fail-on=error,warning";
        let mut argv = vec!["lintian"];
        argv.extend(flags.split(' '));
        argv.push(&package);
        chroot.run(&argv).context("lintian finds faults")?;
        eprintln!("seen: lintian finds nothing");
        Ok(())
    }

    /// Fails unless an installed program is the built one, byte for byte.
    fn is_the_program(&self, installed: &Path) -> Result<()> {
        output(Command::new("cmp").arg(self.program).arg(installed)).map(drop)
    }

    /// Returns the only package whose name ends with `end`.
    fn package(&self, end: &str) -> Result<PathBuf> {
        install_layout::only(self.packages, end)
    }
}

/// Returns the arguments of each run of the program in a trial, in order.
fn trial<'a>(url: &'a str, output: &'a str) -> [Vec<&'a str>; 3] {
    [
        vec!["--version"],
        vec![url, "--output", output],
        vec!["audit", output],
    ]
}
