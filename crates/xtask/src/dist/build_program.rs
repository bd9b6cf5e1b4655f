//! Builds the program for the packages: with the profile `dist`, for an older C library, and
//! without paths of this machine.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::product_metadata::{PROGRAM, ProductMetadata};
use super::{install_layout, notices, sbom};
use crate::debian_packages::make_empty;
use crate::pinned_tools;
use crate::workspace::{Workspace, output, run};

/// The platform that the packages are for.
pub(super) const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The oldest C library on which the program runs: that of Debian 10, RHEL 8 and Ubuntu 20.04.
pub(super) const GLIBC: (u32, u32) = (2, 28);

/// The libraries that Debian's package `libc6` provides. The program may need no others.
const LIBC_FILES: [&str; 7] = [
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libm.so.6",
    "libpthread.so.0",
    "libresolv.so.2",
    "librt.so.1",
];

/// Where the program is built: the folder of the sources, and the folder for all files built from
/// the sources.
pub(super) struct BuildFolders {
    pub(super) sources: PathBuf,
    pub(super) folder: PathBuf,
}

/// The source of the SBOM and the license texts in a wheel.
enum WheelSbomSource<'a> {
    /// maturin makes the SBOM with its built-in cargo-cyclonedx. The licenses are only our own.
    Made,
    /// The final SBOM and license texts, which were made from a first wheel that was built with
    /// `Made`.
    Given { sbom: &'a Path, notices: &'a Path },
}

impl BuildFolders {
    /// Returns the folders of the usual build: the sources of this clone, built in `target/dist`.
    pub(super) fn usual(workspace: &Workspace) -> BuildFolders {
        BuildFolders {
            sources: workspace.root.clone(),
            folder: workspace.target.join("dist"),
        }
    }

    /// Copies the clone to another folder, to be built there from scratch.
    pub(super) fn elsewhere(workspace: &Workspace) -> Result<BuildFolders> {
        let folder = workspace.target.join("dist/elsewhere");
        make_empty(&folder)?;
        let sources = folder.join("copy");
        let mut files = Command::new("git");
        files.current_dir(&workspace.root).args(["ls-files", "-z"]);
        for file in output(&mut files)?.split_terminator('\0') {
            install_layout::copy(&workspace.root.join(file), &sources.join(file))?;
        }
        Ok(BuildFolders { sources, folder })
    }

    /// Returns the path of the program once it is built.
    pub(super) fn program(&self) -> PathBuf {
        self.folder
            .join("cargo")
            .join(TARGET)
            .join("dist")
            .join(PROGRAM)
    }

    /// Returns the folder of the packages and other files to publish.
    pub(super) fn packages(&self) -> PathBuf {
        self.folder.join("packages")
    }

    /// Builds the program. Writes a wheel with it and the SBOM into the folder `packages`.
    pub(super) fn build(&self, workspace: &Workspace, product: &ProductMetadata) -> Result<()> {
        let packages = self.packages();
        make_empty(&packages)?;
        let first = self.folder.join("first-wheel");
        make_empty(&first)?;
        self.maturin(workspace, product, &WheelSbomSource::Made, &first)?;
        let text = sbom::from_wheel(workspace, &self.sources, &first)?;
        let sbom = packages.join(product.sbom());
        install_layout::write_file(&sbom, &text)?;
        sbom::validate(workspace, &sbom)?;
        let notices = self.notices();
        install_layout::write_file(&notices, notices::collect(&text, &registries()?)?)?;
        // The program is built already. This call only packs it again, now with the final SBOM and
        // licenses.
        let (sbom, notices) = (&*sbom, &*notices);
        let libraries = WheelSbomSource::Given { sbom, notices };
        self.maturin(workspace, product, &libraries, &packages)
    }

    /// Returns the file with the licenses of all libraries.
    pub(super) fn notices(&self) -> PathBuf {
        self.folder.join(install_layout::NOTICES)
    }

    fn maturin(
        &self,
        workspace: &Workspace,
        product: &ProductMetadata,
        libraries: &WheelSbomSource<'_>,
        to: &Path,
    ) -> Result<()> {
        let project = self.folder.join("wheel");
        make_empty(&project)?;
        let manifest = self.sources.join("crates").join(PROGRAM).join("Cargo.toml");
        let text = project_file(product, &manifest, libraries);
        fs::write(project.join("pyproject.toml"), text)?;
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            install_layout::copy(&self.sources.join(file), &project.join(file))?;
        }
        let (major, minor) = GLIBC;
        let mut command = Command::new(pinned_tools::packaging(workspace).join("maturin"));
        command.current_dir(&project).arg("build");
        command.args(["--locked", "--zig", "--profile", "dist", "--target", TARGET]);
        command.arg(format!("--compatibility=manylinux_{major}_{minor}"));
        // Pass Cargo's settings explicitly, because the target folder may be outside the source
        // folder.
        command
            .arg("--config")
            .arg(self.sources.join(".cargo/config.toml"));
        command.arg("--out").arg(to);
        if let WheelSbomSource::Given { sbom, notices } = libraries {
            install_layout::copy(notices, &project.join(install_layout::NOTICES))?;
            command.arg("--sbom-include").arg(sbom);
        }
        run(command.envs(self.environment(workspace, product)?))
    }

    /// Returns the environment variables of a build. Some flags replace the paths of this machine,
    /// because panic messages would otherwise contain these paths.
    pub(super) fn environment(
        &self,
        workspace: &Workspace,
        product: &ProductMetadata,
    ) -> Result<Vec<(&'static str, OsString)>> {
        let target = self.folder.join("cargo");
        let rustc = |arg: &[&str]| output(workspace.program("rustc").args(arg));
        let sysroot = rustc(&["--print", "sysroot"])?;
        let version = rustc(&["--version", "--verbose"])?;
        let commit = version
            .lines()
            .find_map(|line| line.strip_prefix("commit-hash: "));
        let commit = commit.context("rustc names no commit")?;
        // Put subfolders after the folders that contain them, because rustc applies the last prefix
        // that matches.
        let mut hidden = vec![
            (self.sources.clone(), "/crawl".to_owned()),
            (target.clone(), "/target".to_owned()),
            // This folder contains zig's C headers.
            (workspace.target.join("packaging"), "/packaging".to_owned()),
            (
                Path::new(sysroot.trim()).join("lib/rustlib/src/rust"),
                format!("/rustc/{commit}"),
            ),
        ];
        // Replace the folder names of registries, because they depend on how this machine reaches
        // crates.io.
        hidden.extend(
            registries()?
                .into_iter()
                .map(|folder| (folder, "/registry".to_owned())),
        );
        let flags = |flag: &str| {
            let flags = hidden
                .iter()
                .map(|(from, to)| format!("{flag}={}={to}", from.display()));
            flags.collect::<Vec<_>>()
        };
        let zig = workspace.target.join("dist/zig");
        Ok(vec![
            ("CARGO_TARGET_DIR", target.clone().into()),
            (
                "CARGO_ENCODED_RUSTFLAGS",
                flags("--remap-path-prefix").join("\x1f").into(),
            ),
            // A path with spaces would break these flags. Such paths are unsupported anyway,
            // because jemalloc's build can't handle spaces either.
            ("CFLAGS", flags("-ffile-prefix-map").join(" ").into()),
            ("SOURCE_DATE_EPOCH", product.epoch.clone().into()),
            ("ZIG_GLOBAL_CACHE_DIR", zig.join("global").into()),
            ("ZIG_LOCAL_CACHE_DIR", zig.join("local").into()),
            ("CARGO_ZIGBUILD_CACHE_DIR", zig.join("wrappers").into()),
            ("PATH", path_with_zig(workspace)?),
        ])
    }
}

/// Returns the content of the wheel's `pyproject.toml`.
fn project_file(
    product: &ProductMetadata,
    manifest: &Path,
    libraries: &WheelSbomSource<'_>,
) -> String {
    let (makes_sbom, licenses) = match libraries {
        WheelSbomSource::Made => (true, "LICENSE-*"),
        WheelSbomSource::Given { .. } => (false, install_layout::NOTICES),
    };
    let quoted = |text: &str| toml::Value::from(text).to_string();
    format!(
        "[build-system]\nrequires = [\"maturin\"]\nbuild-backend = \"maturin\"\n\
         [project]\nname = {name}\nversion = {version}\ndescription = {description}\n\
         readme = \"README.md\"\nlicense = {license}\nlicense-files = [\"LICENSE-*\", {licenses}]\n\
         requires-python = \">=3.8\"\nkeywords = [\"crawler\", \"robots.txt\", \"warc\"]\n\
         [tool.maturin]\nbindings = \"bin\"\nmanifest-path = {manifest}\n\
         [tool.maturin.sbom]\nrust = {makes_sbom}\nauditwheel = false\n",
        name = quoted(&product.name),
        version = quoted(&product.version),
        description = quoted(&product.description),
        license = quoted(&product.license),
        licenses = quoted(licenses),
        manifest = quoted(&manifest.display().to_string()),
    )
}

/// Returns `PATH` with the packaging tools first, so that maturin finds zig there.
fn path_with_zig(workspace: &Workspace) -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let tools = pinned_tools::packaging(workspace);
    std::env::join_paths(std::iter::once(tools).chain(std::env::split_paths(&path)))
        .context("a folder of PATH holds a colon")
}

/// Returns the folders into which Cargo unpacks crates.
fn registries() -> Result<Vec<PathBuf>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let sources = home.context("there is no HOME")?.join("registry/src");
    let listed = fs::read_dir(&sources)
        .with_context(|| format!("no {}\nhint: cargo fetch", sources.display()))?;
    let mut folders = listed
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    folders.sort();
    Ok(folders)
}

/// Checks that the program needs only libraries in `LIBC_FILES`. Returns the oldest version of the
/// C library with which the program runs.
pub(super) fn oldest_glibc(program: &Path) -> Result<(u32, u32)> {
    let mut readelf = Command::new("readelf");
    readelf.args(["--wide", "--dynamic", "--version-info"]);
    let printed = output(readelf.arg(program))
        .context("cannot read the program's libraries\nhint: apt-get install binutils")?;
    let others = needed(&printed);
    if !others.is_empty() {
        bail!(
            "{} needs {}, which packages don't declare",
            program.display(),
            others.join(", ")
        );
    }
    let newest = newest_glibc(&printed);
    newest.with_context(|| format!("{} names no version of the C library", program.display()))
}

/// Returns the needed libraries that don't belong to the C library.
fn needed(readelf: &str) -> Vec<&str> {
    let libraries = readelf.lines().filter_map(|line| {
        let (_, library) = line.split_once("Shared library: [")?;
        library.strip_suffix(']')
    });
    libraries
        .filter(|library| !LIBC_FILES.contains(library))
        .collect()
}

/// Returns the newest version of the C library that any symbol requires.
fn newest_glibc(readelf: &str) -> Option<(u32, u32)> {
    let versions = readelf.split("GLIBC_").skip(1).filter_map(|rest| {
        let version = rest.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let mut parts = version.into_iter().next()?.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{WheelSbomSource, needed, newest_glibc, project_file};
    use crate::dist::product_metadata::ProductMetadata;

    const PRINTED: &str = " 0x1 (NEEDED)   Shared library: [libm.so.6]
 0x1 (NEEDED)   Shared library: [libz.so.1]
  0x0010:   Name: GLIBC_2.9  Flags: none  Version: 9
  0x0020:   Name: GLIBC_2.28  Flags: none  Version: 8
  0x0030:   Name: GLIBC_2.2.5  Flags: none  Version: 7
";

    #[test]
    fn versions_of_the_c_library_are_compared_as_numbers() {
        assert_eq!(newest_glibc(PRINTED), Some((2, 28)));
        assert_eq!(newest_glibc("Name: GLIBC_PRIVATE"), None);
    }

    #[test]
    fn a_library_that_packages_do_not_declare_is_found() {
        assert_eq!(needed(PRINTED), ["libz.so.1"]);
    }

    #[test]
    fn the_description_of_the_wheel_is_quoted() {
        let product = ProductMetadata {
            name: "other".to_owned(),
            version: "1.2.3".to_owned(),
            description: "A \"polite\" crawler".to_owned(),
            license: "MIT".to_owned(),
            maintainer: "A <a@example.org>".to_owned(),
            epoch: "5".to_owned(),
        };
        let manifest = Path::new("/a folder/Cargo.toml");
        let text = project_file(&product, manifest, &WheelSbomSource::Made);
        let project: toml::Table = text.parse().unwrap();
        assert_eq!(project["project"]["name"].as_str(), Some("other"));
        let description = project["project"]["description"].as_str();
        assert_eq!(description, Some("A \"polite\" crawler"));
        assert_eq!(
            project["tool"]["maturin"]["sbom"]["rust"].as_bool(),
            Some(true)
        );
    }
}
