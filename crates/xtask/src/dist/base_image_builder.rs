//! Builds the base images of `docker/Dockerfile` without an image registry, from Debian packages
//! and this machine's Rust.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::buildah::{Buildah, Container};
use crate::debian_packages::DebianPackageFolder;
use crate::workspace::{Workspace, output, run};

/// Debian releases, as number and name, which image tags contain.
const RELEASES: [(&str, &str); 3] = [("12", "bookworm"), ("13", "trixie"), ("14", "forky")];

/// Folders of `/usr/share` that Debian's slim images omit.
const LEFT_OUT: [&str; 5] = ["doc", "info", "lintian", "locale", "man"];

/// Packages that the Rust images add to Debian.
const RUST_NEEDS: &str = "ca-certificates,gcc,libc6-dev,make";

const CARGO_HOME: &str = "/usr/local/cargo";

/// Builds the base image of each `FROM` line, unless it exists, under the name in that line.
pub(super) fn make(workspace: &Workspace, buildah: &Buildah, recipe: &str) -> Result<()> {
    for image in images(recipe) {
        if buildah.has(image) {
            eprintln!("in place: {image}");
            continue;
        }
        let release = release(image)
            .with_context(|| format!("{image} names no release of Debian that is known here"))?;
        let rust = image
            .strip_prefix("rust:")
            .map(|_| RustToolchain::of_this_machine(workspace));
        let rust = rust.transpose()?;
        let container = buildah.container("scratch")?;
        debian(workspace, &container, release, rust.is_some())?;
        match &rust {
            Some(rust) => rust.copy_into(&container, image)?,
            None => run(&mut container.command("config", &["--cmd", "bash"]))?,
        }
        container.commit(&format!("docker.io/library/{image}"))?;
        eprintln!("made: {image}, from the packages of {release}");
    }
    Ok(())
}

/// Returns the base images of a recipe's stages.
fn images(recipe: &str) -> impl Iterator<Item = &str> {
    let from = recipe.lines().filter_map(|line| line.strip_prefix("FROM "));
    from.filter_map(|line| line.split_whitespace().next())
}

/// Returns the Debian release in an image's tag, given by name (`bookworm`) or by number (`12.11`).
fn release(image: &str) -> Option<&'static str> {
    let tag = image.split_once(':')?.1;
    let has = |part: &str| tag.split(['-', '.']).any(|known| known == part);
    let named = RELEASES.iter().find(|(_, name)| has(name));
    let numbered = || {
        let (number, _) = tag.split_once(['-', '.'])?;
        RELEASES.iter().find(|(known, _)| *known == number)
    };
    let release = named.or_else(|| numbered().filter(|_| image.starts_with("debian:")))?;
    Some(release.1)
}

/// Returns a command that makes a minimal Debian system. The caller adds the release and the
/// archive's path.
pub(super) fn mmdebstrap(workspace: &Workspace) -> Result<Command> {
    let packages = DebianPackageFolder::of(workspace);
    packages.unpack("mmdebstrap", &["mmdebstrap"])?;
    let programs = packages.root().join("usr/bin");
    let mut command = workspace.program("perl");
    // Extend `PATH`, because mmdebstrap runs another program of its package by name.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", programs.display()));
    command.arg(programs.join("mmdebstrap")).args([
        "--quiet",
        "--mode=root",
        "--variant=minbase",
        "--format=tar",
    ]);
    Ok(command)
}

/// Installs a minimal Debian into a container.
fn debian(
    workspace: &Workspace,
    container: &Container<'_>,
    release: &str,
    is_for_rust: bool,
) -> Result<()> {
    let archive = container.buildah.caches().join("base.tar");
    let mut command = mmdebstrap(workspace)?;
    for folder in LEFT_OUT {
        command.arg(format!("--dpkgopt=path-exclude=/usr/share/{folder}/*"));
    }
    if is_for_rust {
        command.arg(format!("--include={RUST_NEEDS}"));
    }
    run(command.arg(release).arg(&archive)).context(
        "a base image cannot be made\nhint: it needs root, apt-get, dpkg, perl and Debian's archive",
    )?;
    run(container
        .command("add", &["--quiet"])
        .arg(&archive)
        .arg("/"))?;
    std::fs::remove_file(&archive).with_context(|| format!("cannot remove {}", archive.display()))
}

/// The toolchain that builds this workspace on this machine.
struct RustToolchain {
    version: String,
    root: String,
}

impl RustToolchain {
    fn of_this_machine(workspace: &Workspace) -> Result<RustToolchain> {
        let rustc = |arg: &[&str]| output(workspace.program("rustc").args(arg));
        let version = rustc(&["--version"])?;
        let version = version.split(' ').nth(1).unwrap_or_default().to_owned();
        let root = rustc(&["--print", "sysroot"])?.trim().to_owned();
        Ok(RustToolchain { version, root })
    }

    fn copy_into(&self, container: &Container<'_>, image: &str) -> Result<()> {
        if !image.starts_with(&format!("rust:{}-", self.version)) {
            eprintln!(
                "note: the Rust of {image} is this machine's: {}",
                self.version
            );
        }
        let home = "/usr/local/rust";
        for part in ["bin/cargo", "bin/rustc", "lib"] {
            let source = Path::new(&self.root).join(part);
            let mut copy = container.command("copy", &["--quiet"]);
            run(copy.arg(source).arg(format!("{home}/{part}")))?;
        }
        let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        let settings = [
            format!("--env=CARGO_HOME={CARGO_HOME}"),
            format!("--env=PATH={CARGO_HOME}/bin:{home}/bin:{path}"),
        ];
        run(&mut container.command("config", &settings.each_ref().map(String::as_str)))
    }
}

/// Builds the image from `docker/Dockerfile`. The build steps reach crates.io as this machine does:
/// its certificates and Cargo configuration are mounted during the build, but are not in the image.
pub(super) fn build(
    workspace: &Workspace,
    buildah: &Buildah,
    image: &str,
    profile: Option<&Path>,
) -> Result<()> {
    let mut seen = Vec::new();
    let certificates = std::env::var("SSL_CERT_FILE")
        .unwrap_or_else(|_| "/etc/ssl/certs/ca-certificates.crt".to_owned());
    seen.push((
        certificates,
        "/etc/ssl/certs/ca-certificates.crt".to_owned(),
    ));
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))
        .context("neither CARGO_HOME nor HOME is set")?;
    seen.push((
        format!("{home}/config.toml"),
        format!("{CARGO_HOME}/config.toml"),
    ));
    if let Some(profile) = profile {
        seen.push((
            profile.display().to_string(),
            "/src/.cargo/config.toml".to_owned(),
        ));
    }
    seen.retain(|(here, _)| Path::new(here).is_file());
    let mut command: Command = buildah.writing("build");
    command
        .current_dir(&workspace.root)
        .args([
            "--pull-never",
            "--file",
            crate::container_file_check::RECIPE,
        ])
        .args([
            "--ignorefile",
            crate::container_file_check::IGNORED,
            "--tag",
            image,
        ]);
    for (here, there) in seen {
        command.arg(format!("--volume={here}:{there}:ro"));
    }
    run(command.arg(".")).context(
        "the image cannot be built\nhint: cargo xtask dist image --quick finds faults in less time",
    )
}

/// Returns the size of a folder in human-readable form.
pub(super) fn size(folder: &Path) -> Result<String> {
    if !folder.exists() {
        bail!("{} is not there", folder.display());
    }
    let printed = output(
        Command::new("du")
            .args(["--summarize", "--human-readable"])
            .arg(folder),
    )?;
    Ok(printed
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::{images, release};

    #[test]
    fn the_debian_release_is_read_from_a_tag() {
        let cases = [
            ("debian:12.11-slim", Some("bookworm")),
            ("debian:13-slim", Some("trixie")),
            ("debian:trixie-slim", Some("trixie")),
            ("rust:1.95.0-slim-bookworm", Some("bookworm")),
            ("rust:1.13.0-slim", None),
            ("rust:13.0-slim", None),
            ("alpine:3.20", None),
            ("debian", None),
        ];
        for (image, expected) in cases {
            assert_eq!(release(image), expected, "{image}");
        }
    }

    #[test]
    fn each_stage_begins_with_an_image() {
        let recipe =
            "# FROM none\nFROM a:1 AS build\nCOPY x y\nFROM b:2\nCOPY --from=build /a /b\n";
        assert_eq!(images(recipe).collect::<Vec<_>>(), ["a:1", "b:2"]);
    }
}
