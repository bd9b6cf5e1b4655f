//! Debian's buildah, unpacked, with a storage of its own under `target/dist`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::debian::{self, Debian};
use crate::workspace::{Workspace, output, run};

/// Which images may be used: all, as the only ones there are were made here.
const POLICY: &str = "{\"default\": [{\"type\": \"insecureAcceptAnything\"}]}\n";

/// A container engine that needs no daemon.
pub(super) struct Buildah {
    program: PathBuf,
    /// The folder of its storage, its settings and its caches.
    folder: PathBuf,
}

impl Buildah {
    /// Fetches buildah, and writes the settings that keep it within `folder`.
    pub(super) fn fetch(workspace: &Workspace, folder: &Path) -> Result<Buildah> {
        let root = Debian::of(workspace).unpack_whole("buildah")?;
        let buildah = Buildah {
            program: root.join("usr/bin/buildah"),
            folder: folder.to_owned(),
        };
        set_library_path(workspace, &buildah.program, &debian::libraries(&root)?)?;
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
        // What an earlier run that failed has left.
        output(buildah.command("rm").arg("--all"))?;
        Ok(buildah)
    }

    /// The folder in which `RUN --mount=type=cache` keeps its files.
    pub(super) fn caches(&self) -> PathBuf {
        self.folder.join("tmp")
    }

    /// One of buildah's commands, with our storage.
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

    /// The same for a command that writes an image.
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

    /// The configuration in an image: its user, its entry point, its volumes.
    pub(super) fn configuration(&self, image: &str) -> Result<Value> {
        let mut inspect = self.command("inspect");
        let told = output(inspect.args(["--type", "image", image]))?;
        let told: Value =
            serde_json::from_str(&told).with_context(|| format!("what {image} says of itself"))?;
        Ok(told["OCIv1"]["config"].clone())
    }

    /// Makes a container of an image, or an empty one of `scratch`.
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

/// A container, which is removed at the end of its life here.
pub(super) struct Container<'a> {
    pub(super) buildah: &'a Buildah,
    pub(super) name: String,
}

impl Container<'_> {
    /// One of buildah's commands on this container; what follows its name is for the caller to add.
    pub(super) fn command(&self, name: &str, flags: &[&str]) -> Command {
        let mut command = self.buildah.command(name);
        command.args(flags).arg(&self.name);
        command
    }

    /// The folder of its files.
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
        // What stays is removed by the next run.
        let _ = output(&mut self.command("rm", &[]));
    }
}

/// Tells a program where its libraries are, in the program itself: buildah starts itself anew for
/// each container, without its environment.
fn set_library_path(workspace: &Workspace, program: &Path, libraries: &str) -> Result<()> {
    let root = Debian::of(workspace).unpack_whole("patchelf")?;
    let own_libraries = debian::libraries(&root)?;
    let patchelf = || {
        let mut command = Command::new(root.join("usr/bin/patchelf"));
        command.env("LD_LIBRARY_PATH", &own_libraries);
        command
    };
    let found = output(patchelf().arg("--print-rpath").arg(program))?;
    if found.trim() == libraries {
        return Ok(());
    }
    // As DT_RPATH, which holds for the libraries of libraries too.
    let mut set = patchelf();
    set.args(["--force-rpath", "--set-rpath", libraries])
        .arg(program);
    run(&mut set)
}
