//! Builds the container's image from `docker/Dockerfile` and runs `docker/compose.yaml` with it, on
//! a machine without a container engine.
//!
//! Debian's buildah builds the image, as root. The services run in a chroot. The images in the
//! `FROM` lines are built from Debian packages and this machine's Rust.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::buildah::Buildah;
use super::site_server_process::SiteServerProcess;
use super::{base_image_builder, image_trial};
use crate::debian_packages::DebianPackageFolder;
use crate::workspace::{Workspace, output, run as run_program};
use crate::{compose_files, container_file_check, pinned_tools};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Build without optimisation: faster, but sizes and times differ from the real image
    #[arg(long)]
    quick: bool,
    /// Run the existing image in the current network namespace
    #[arg(long, hide = true)]
    trial: bool,
}

/// Programs that the machine must have, and the Debian packages that contain them.
const NEEDED: [(&str, &str); 6] = [
    ("apt-get", "apt"),
    ("dpkg-deb", "dpkg"),
    ("perl", "perl"),
    ("unshare", "util-linux"),
    ("setpriv", "util-linux"),
    ("mount", "mount"),
];

/// Properties of the image that this command can't test.
const NOT_SEEN: [&str; 5] = [
    "limits by cgroups: pids_limit (threads were counted instead), and memory limits if you add some",
    "Compose itself: its networks, published ports, restarts, depends_on and rotation of logs",
    "an engine's own start of a program, with its seccomp and AppArmor profiles: chroot and setpriv \
     stood for it",
    "the images of Docker Hub: the same packages of Debian, and this machine's Rust, stood for them",
    "processors other than this machine's",
];

/// A Cargo profile for quick builds, which replaces the release profile.
const QUICK_PROFILE: &str = "[profile.release]\nopt-level = 0\nlto = false\ncodegen-units = 256\n\
                             debug = false\nincremental = true\n";

pub(super) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    check_machine()?;
    let folder = workspace.target.join("dist");
    fs::create_dir_all(&folder)?;
    let buildah = Buildah::fetch(workspace, &folder)?;
    if args.trial {
        image_trial::loopback_up(&busybox(workspace)?)?;
        return image_trial::run(workspace, &buildah, &folder);
    }
    pinned_tools::python(workspace)?;
    let begin = Instant::now();
    let recipe = fs::read_to_string(workspace.root.join(container_file_check::RECIPE))
        .with_context(|| format!("cannot read {}", container_file_check::RECIPE))?;
    base_image_builder::make(workspace, &buildah, &recipe)?;
    eprintln!("base images: {} s", begin.elapsed().as_secs());
    let compose = compose_files::read(workspace)?;
    let image = compose["services"]["crawl"]["image"].as_str();
    let image = image.context("the service crawl names no image")?;
    let profile = folder.join("quick-profile.toml");
    fs::write(&profile, QUICK_PROFILE)?;
    let begin = Instant::now();
    let profile = args.quick.then_some(profile.as_path());
    base_image_builder::build(workspace, &buildah, image, profile)?;
    eprintln!("image: {} s", begin.elapsed().as_secs());
    busybox(workspace)?;
    SiteServerProcess::build(workspace)?;
    run_program(
        Command::new("unshare")
            .args(["--net", "--mount", "--"])
            .arg(std::env::current_exe()?)
            .args(["dist", "image", "--trial"]),
    )?;
    buildah.list_images()?;
    let caches = base_image_builder::size(&buildah.caches())?;
    eprintln!("crates and build in the cache: {caches}");
    for what in NOT_SEEN {
        eprintln!("not seen: {what}");
    }
    Ok(())
}

/// Fails if this machine lacks a requirement.
pub(super) fn check_machine() -> Result<()> {
    let user = output(Command::new("id").arg("-u"))?;
    ensure!(
        user.trim() == "0",
        "this needs root, and this is user {}\nhint: it mounts and changes roots; all \
         that it writes is kept in target/",
        user.trim()
    );
    let path = std::env::var_os("PATH").unwrap_or_default();
    for (program, package) in NEEDED {
        if !std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
            bail!("there is no {program}\nhint: apt-get install {package}");
        }
    }
    Ok(())
}

/// Returns a program that can bring up loopback on machines without `ip`.
fn busybox(workspace: &Workspace) -> Result<PathBuf> {
    let debian = DebianPackageFolder::of(workspace);
    debian.unpack("busybox", &["busybox-static"])?;
    let program = ["bin/busybox", "usr/bin/busybox"].map(|path| debian.root().join(path));
    let busybox_path = program.into_iter().find(|path| path.is_file());
    busybox_path.context("busybox-static holds no busybox\nhint: remove target/debian")
}
