//! Debian's buildah, unpacked, with its own storage under `target/dist`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::debian_packages::{self, DebianPackageFolder};
use crate::workspace::{Workspace, output, run};

/// A policy that trusts all images, because every image in this storage was built here.
const POLICY: &str = "{\"default\": [{\"type\": \"insecureAcceptAnything\"}]}\n";

/// The program buildah, which builds container images without a daemon.
pub(super) struct Buildah {
    program: PathBuf,
    /// The folder of buildah's storage, settings and caches.
    folder: PathBuf,
}

impl Buildah {
    /// Fetches buildah and writes the settings that confine it to `folder`.
    pub(super) fn fetch(workspace: &Workspace, folder: &Path) -> Result<Buildah> {
        let root = DebianPackageFolder::of(workspace).unpack_whole("buildah")?;
        let buildah = Buildah {
            program: root.join("usr/bin/buildah"),
            folder: folder.to_owned(),
        };
        set_library_path(
            workspace,
            &buildah.program,
            &debian_packages::libraries(&root)?,
        )?;
        std::fs::create_dir_all(buildah.caches())?;
        let storage = format!(
            "[storage]\ndriver = \"vfs\"\ngraphroot = \"{0}/storage\"\nrunroot = \"{0}/run\"\n",
            folder.display()
        );
        let settings = [
            ("storage.conf", storage.as_str()),
            ("containers.conf", ""),
            ("registries.conf", ""),
            ("policy.json", POLICY),
        ];
        for (name, text) in settings {
            std::fs::write(folder.join(name), text)
                .with_context(|| format!("cannot write {name} in {}", folder.display()))?;
        }
        eprintln!("{}", output(&mut buildah.command("--version"))?.trim());
        // Remove leftovers of a failed run.
        output(buildah.command("rm").arg("--all"))?;
        Ok(buildah)
    }

    /// Returns the folder where `RUN --mount=type=cache` keeps its files.
    pub(super) fn caches(&self) -> PathBuf {
        self.folder.join("tmp")
    }

    /// Returns the buildah command `name`, which uses our storage.
    pub(super) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("BUILDAH_ISOLATION", "chroot")
            .env("STORAGE_DRIVER", "vfs")
            .env("CONTAINERS_STORAGE_CONF", self.folder.join("storage.conf"))
            .env("CONTAINERS_CONF", self.folder.join("containers.conf"))
            .env(
                "CONTAINERS_REGISTRIES_CONF",
                self.folder.join("registries.conf"),
            )
            .env("TMPDIR", self.caches())
            .arg(name);
        command
    }

    /// Returns the buildah command `name`, which writes an image, with the flag for [`POLICY`].
    pub(super) fn writing(&self, name: &str) -> Command {
        let mut command = self.command(name);
        command
            .arg("--signature-policy")
            .arg(self.folder.join("policy.json"));
        command
    }

    pub(super) fn has(&self, image: &str) -> bool {
        output(self.command("images").args(["--quiet", image])).is_ok()
    }

    /// Returns the configuration in an image: user, entry point, volumes.
    pub(super) fn configuration(&self, image: &str) -> Result<Value> {
        let mut inspect = self.command("inspect");
        let inspected = output(inspect.args(["--type", "image", image]))?;
        let inspected: Value = serde_json::from_str(&inspected)
            .with_context(|| format!("what {image} says of itself"))?;
        Ok(inspected["OCIv1"]["config"].clone())
    }

    /// Creates a container from an image, or an empty one from `scratch`.
    pub(super) fn container(&self, image: &str) -> Result<Container<'_>> {
        let name = output(self.command("from").args(["--pull-never", image]))?;
        let name = name.trim().to_owned();
        Ok(Container {
            buildah: self,
            name,
        })
    }

    /// Prints the images and their sizes.
    pub(super) fn list_images(&self) -> Result<()> {
        run(&mut self.command("images"))
    }
}

/// A container, removed when dropped.
pub(super) struct Container<'a> {
    pub(super) buildah: &'a Buildah,
    pub(super) name: String,
}

impl Container<'_> {
    /// Returns the buildah command `name` for this container. The caller adds further arguments.
    pub(super) fn command(&self, name: &str, flags: &[&str]) -> Command {
        let mut command = self.buildah.command(name);
        command.args(flags).arg(&self.name);
        command
    }

    /// Returns the folder of the container's files.
    pub(super) fn mount(&self) -> Result<PathBuf> {
        let path = output(&mut self.command("mount", &[]))?;
        Ok(PathBuf::from(path.trim()))
    }

    pub(super) fn commit(&self, image: &str) -> Result<()> {
        output(
            self.buildah
                .writing("commit")
                .args(["--quiet", &self.name, image]),
        )
        .map(drop)
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        // Ignore errors, because the next run removes leftover containers.
        let _ = output(&mut self.command("rm", &[]));
    }
}

/// Stores the library path in the program file itself. An environment variable would not suffice,
/// because buildah restarts itself for each container without its environment.
fn set_library_path(workspace: &Workspace, program: &Path, libraries: &str) -> Result<()> {
    let root = DebianPackageFolder::of(workspace).unpack_whole("patchelf")?;
    let own_libraries = debian_packages::libraries(&root)?;
    let patchelf = || {
        let mut command = Command::new(root.join("usr/bin/patchelf"));
        command.env("LD_LIBRARY_PATH", &own_libraries);
        command
    };
    let rpath = output(patchelf().arg("--print-rpath").arg(program))?;
    if rpath.trim() == libraries {
        return Ok(());
    }
    // Use DT_RPATH, because it also applies to the libraries that the loaded libraries need.
    let mut set = patchelf();
    set.args(["--force-rpath", "--set-rpath", libraries])
        .arg(program);
    run(&mut set)
}
