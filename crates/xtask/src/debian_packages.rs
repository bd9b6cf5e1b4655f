//! Debian packages, unpacked under `target/debian` and never installed.
//!
//! Unpacking needs no root and starts no service, and includes documentation even on machines whose
//! package manager excludes it. `apt-get` uses separate package lists beneath `target/`, and
//! verifies downloads as usual.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::{Workspace, is_on_path, output, run};

/// Packages with Java's API documentation, which has more than 10,000 linked pages. Each Debian
/// release has only some of these packages.
const JAVA_DOC: [&str; 4] = [
    "openjdk-17-doc",
    "openjdk-21-doc",
    "openjdk-25-doc",
    "openjdk-11-doc",
];

/// Fetches the servers, the tools and the documentation that tests use.
pub fn fetch(workspace: &Workspace) -> Result<()> {
    let debian = DebianPackageFolder::of(workspace);
    debian.unpack("nginx", &["nginx"])?;
    debian.unpack("nginx-common", &["nginx-common"])?;
    debian.unpack("java-doc", &JAVA_DOC)?;
    if !debian.has("python-doc") {
        debian.update()?;
        let depends = output(&mut debian.apt("apt-cache", &["depends", "python3-doc"]))?;
        let name = depends
            .split_whitespace()
            .find(|word| word.starts_with("python3."));
        debian.unpack(
            "python-doc",
            &[name.context("python3-doc names no documentation")?],
        )?;
    }
    debian.unpack("git-doc", &["git-doc"])?;
    // Tests use only promtool from this package, and never start its server.
    debian.unpack("prometheus", &["prometheus"])?;
    strace(workspace)?;
    postgres(workspace)?;
    for (name, value) in environment(workspace)? {
        eprintln!("{name}={}", value.display());
    }
    run(workspace.program(debian.nginx()).arg("-v"))
        .context("nginx does not run here\nhint: a library it needs is missing; see ldd")
}

/// Returns the path of strace, which traces system calls, and the folders of its libraries.
pub fn strace(workspace: &Workspace) -> Result<(PathBuf, String)> {
    let root = DebianPackageFolder::of(workspace).unpack_whole("strace")?;
    let (program, libraries) = (root.join("usr/bin/strace"), libraries(&root)?);
    let mut try_it = workspace.program(&program);
    try_it.env("LD_LIBRARY_PATH", &libraries);
    output(try_it.args(["-qq", "-o", "/dev/null", "-E", "LD_LIBRARY_PATH", "true"]))
        .context("strace does not run here\nhint: a sandbox may forbid it (ptrace)")?;
    Ok((program, libraries))
}

/// Returns the folder of PostgreSQL's server programs, and the folders of their libraries.
pub fn postgres(workspace: &Workspace) -> Result<(PathBuf, String)> {
    let root = DebianPackageFolder::of(workspace).unpack_whole("postgresql")?;
    let releases = root.join("usr/lib/postgresql");
    let programs = one_with(&releases, "", "bin/initdb")?.join("bin");
    let libraries = libraries(&root)?;
    let mut try_it = workspace.program(programs.join("postgres"));
    try_it.env("LD_LIBRARY_PATH", &libraries);
    output(try_it.arg("--version")).context("postgres does not run here")?;
    Ok((programs, libraries))
}

/// Fetches `make`, which is needed to build jemalloc, if the machine has none.
pub fn make(workspace: &Workspace) -> Result<()> {
    if is_on_path("make") {
        return Ok(());
    }
    // Unpack into a separate folder, because this step runs at the same time as one that fetches
    // other packages.
    let root = workspace.make_root();
    let folder = root.parent().context("the folder of make was not found")?;
    let debian = DebianPackageFolder {
        folder: folder.to_owned(),
    };
    debian.unpack("make", &["make"])
}

/// Returns the folder of Java's documentation, with pages below `api`.
pub fn java_docs(workspace: &Workspace) -> Result<PathBuf> {
    let docs = DebianPackageFolder::of(workspace)
        .root()
        .join("usr/share/doc");
    one_with(&docs, "openjdk-", "api/index.html")
}

/// Returns nginx and its list of media types.
pub fn nginx(workspace: &Workspace) -> (PathBuf, PathBuf) {
    let debian = DebianPackageFolder::of(workspace);
    (debian.nginx(), debian.root().join("etc/nginx/mime.types"))
}

/// Returns the environment variables of tests that need servers: the paths of servers and pages.
pub fn environment(workspace: &Workspace) -> Result<[(&'static str, PathBuf); 7]> {
    let (postgres, postgres_libraries) = postgres(workspace)?;
    let (nginx, mime_types) = nginx(workspace);
    Ok([
        ("CRAWL_NGINX", nginx),
        ("CRAWL_NGINX_MIME_TYPES", mime_types),
        (
            "CRAWL_PROMTOOL",
            DebianPackageFolder::of(workspace)
                .root()
                .join("usr/bin/promtool"),
        ),
        ("CRAWL_POSTGRES", postgres),
        ("CRAWL_POSTGRES_LIBRARIES", postgres_libraries.into()),
        ("CRAWL_JAVA_DOC", java_docs(workspace)?),
        ("CRAWL_PYTHON_DOC", python_docs(workspace)?),
    ])
}

/// Returns the folder of Python's documentation.
pub fn python_docs(workspace: &Workspace) -> Result<PathBuf> {
    let docs = DebianPackageFolder::of(workspace)
        .root()
        .join("usr/share/doc");
    Ok(one_with(&docs, "python3.", "html/index.html")?.join("html"))
}

/// Returns the folder of Git's documentation.
pub fn git_docs(workspace: &Workspace) -> Result<PathBuf> {
    let docs = DebianPackageFolder::of(workspace)
        .root()
        .join("usr/share/doc");
    one_with(&docs, "git-doc", "gittutorial.html")
}

/// Returns the folder of Postfix's documentation.
pub fn postfix_docs(workspace: &Workspace) -> Result<PathBuf> {
    documentation(workspace, "postfix-doc", "postfix/html")
}

/// Returns the folder of PostgreSQL's documentation.
pub fn postgresql_docs(workspace: &Workspace) -> Result<PathBuf> {
    documentation(workspace, "postgresql-doc-15", "postgresql-doc-15/html")
}

/// Returns the folder of the English manual of the Apache web server.
pub fn apache_docs(workspace: &Workspace) -> Result<PathBuf> {
    documentation(workspace, "apache2-doc", "apache2-doc/manual/en")
}

/// Returns the folder of SQLite's manual.
pub fn sqlite_docs(workspace: &Workspace) -> Result<PathBuf> {
    documentation(workspace, "sqlite3-doc", "sqlite3")
}

/// Returns the folder of Octave's manual, generated by Texinfo.
pub fn octave_docs(workspace: &Workspace) -> Result<PathBuf> {
    documentation(workspace, "octave-doc", "octave/octave.html")
}

/// Returns the folder of aptitude's French manual.
pub fn french_docs(workspace: &Workspace) -> Result<PathBuf> {
    documentation(workspace, "aptitude-doc-fr", "aptitude/html/fr")
}

/// Returns the folder of Django's documentation, generated by Sphinx.
pub fn django_docs(workspace: &Workspace) -> Result<PathBuf> {
    documentation(workspace, "python-django-doc", "python-django-doc/html")
}

/// Returns a folder of a package's documentation, fetching the package if necessary.
fn documentation(workspace: &Workspace, package: &str, folder: &str) -> Result<PathBuf> {
    let debian = DebianPackageFolder::of(workspace);
    debian.unpack(package, &[package])?;
    Ok(debian.root().join("usr/share/doc").join(folder))
}

/// Returns the wheel of pip, for a Python without pip.
pub fn pip_wheel(workspace: &Workspace) -> Result<PathBuf> {
    let debian = DebianPackageFolder::of(workspace);
    debian.unpack("pip-wheel", &["python3-pip-whl"])?;
    let folder = debian.root().join("usr/share/python-wheels");
    entries(&folder, "pip-")?
        .into_iter()
        .next()
        .context("python3-pip-whl holds no wheel of pip")
}

/// The folder of Debian packages under `target/`.
pub struct DebianPackageFolder {
    folder: PathBuf,
}

impl DebianPackageFolder {
    /// Returns the packages in the folder `debian` of the workspace's target folder.
    pub fn of(workspace: &Workspace) -> DebianPackageFolder {
        DebianPackageFolder {
            folder: workspace.target.join("debian"),
        }
    }

    /// Returns the folder where packages are unpacked, as if it were `/`.
    pub fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    fn nginx(&self) -> PathBuf {
        self.root().join("usr/sbin/nginx")
    }

    fn stamp(&self, what: &str) -> PathBuf {
        self.folder.join(what).with_extension("unpacked")
    }

    fn has(&self, what: &str) -> bool {
        self.stamp(what).exists()
    }

    /// Unpacks the first of `packages` that exists in this Debian release. Creates a stamp file
    /// named `what`, and does nothing if it already exists.
    pub fn unpack(&self, what: &str, packages: &[&str]) -> Result<()> {
        if self.has(what) {
            eprintln!("in place: {what}");
            return Ok(());
        }
        self.update()?;
        let is_known = |package: &&&str| {
            output(&mut self.apt("apt-cache", &["show", "--no-all-versions", package])).is_ok()
        };
        let Some(package) = packages.iter().find(is_known) else {
            bail!("apt knows none of {}", packages.join(", "));
        };
        let fetched = self.download(&[package]);
        if fetched.is_err() {
            // The package lists may be days old and still list packages that have since been
            // replaced, so update them and retry.
            self.update_again()?;
            self.download(&[package])?;
        }
        self.extract(&self.root())?;
        std::fs::write(self.stamp(what), package)?;
        Ok(())
    }

    /// Unpacks a package with all its dependencies into a separate root, even those that this
    /// machine has installed. Omits the C library, because it must match the machine's own loader.
    /// Returns the root.
    pub fn unpack_whole(&self, package: &str) -> Result<PathBuf> {
        let root = self.folder.join(package);
        if self.has(package) {
            eprintln!("in place: {package}");
            return Ok(root);
        }
        self.update()?;
        let names = self.closure(package)?;
        if self.download(&names).is_err() {
            self.update_again()?;
            self.download(&self.closure(package)?)?;
        }
        make_empty(&root)?;
        self.extract(&root)?;
        std::fs::write(self.stamp(package), "")?;
        Ok(root)
    }

    /// Returns the packages that apt would install with `package` on an empty machine, without the
    /// C library.
    fn closure(&self, package: &str) -> Result<Vec<String>> {
        let nothing = self.folder.join("nothing-installed");
        std::fs::write(&nothing, "")?;
        let status = format!("Dir::State::status={}", nothing.display());
        let args = [
            "--simulate",
            "--no-install-recommends",
            "-o",
            &status,
            "install",
            package,
        ];
        let plan = output(&mut self.apt("apt-get", &args))?;
        let names = plan.lines().filter_map(|line| {
            let name = line.strip_prefix("Inst ")?.split(' ').next()?;
            (name != "libc6").then(|| name.to_owned())
        });
        Ok(names.collect())
    }

    /// Downloads packages to the folder `download`, from which [`DebianPackageFolder::extract`]
    /// unpacks them.
    fn download(&self, packages: &[impl AsRef<str>]) -> Result<()> {
        let download = self.folder.join("download");
        make_empty(&download)?;
        let mut apt_get = self.apt("apt-get", &["--quiet=2", "download"]);
        apt_get.args(packages.iter().map(AsRef::as_ref));
        run(apt_get.current_dir(&download))
    }

    fn extract(&self, root: &Path) -> Result<()> {
        let download = self.folder.join("download");
        let debs = entries(&download, "")?;
        eprintln!("unpacking {} packages", debs.len());
        for deb in debs {
            output(
                Command::new("dpkg-deb")
                    .arg("--extract")
                    .arg(&deb)
                    .arg(root),
            )?;
        }
        std::fs::remove_dir_all(&download)?;
        Ok(())
    }

    fn update_again(&self) -> Result<()> {
        std::fs::remove_file(self.stamp("lists"))?;
        self.update()
    }

    /// Fetches the package lists unless they exist.
    fn update(&self) -> Result<()> {
        let lists = self.folder.join("lists");
        let done = self.stamp("lists");
        if done.exists() {
            return Ok(());
        }
        make_empty(&lists.join("partial"))?;
        make_empty(&self.folder.join("cache/archives/partial"))?;
        run(&mut self.apt("apt-get", &["--quiet=2", "update"])).context(
            "cannot fetch Debian's package lists\nhint: cargo xtask test --quick does without",
        )?;
        std::fs::write(done, "")?;
        Ok(())
    }

    fn apt(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        for (key, folder) in [("Dir::State::lists", "lists"), ("Dir::Cache", "cache")] {
            command
                .arg("-o")
                .arg(format!("{key}={}", self.folder.join(folder).display()));
        }
        // Let apt download as the current user, who owns these folders, and not as its sandbox
        // user.
        command.args([
            "-o",
            "APT::Sandbox::User=root",
            "-o",
            "Debug::NoLocking=true",
        ]);
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("LC_ALL", "C")
            .args(args);
        command
    }
}

/// Returns the only subfolder of `folder` whose name starts with `begin` and that contains `file`.
fn one_with(folder: &Path, begin: &str, file: &str) -> Result<PathBuf> {
    let mut folders = entries(folder, begin)?;
    // Skip folders in which the file is behind a symbolic link. The link in a documentation package
    // may lead to the folder of the documented program, so the file would be found twice.
    folders.retain(|path| path.join(file).is_file());
    folders.retain(|path| {
        path.join(file)
            .parent()
            .is_some_and(|parent| !parent.is_symlink())
    });
    match folders.as_slice() {
        [one] => Ok(one.clone()),
        _ => bail!(
            "{} has {} folders {begin}* with {file}, not one\nhint: cargo xtask test --step debian-packages",
            folder.display(),
            folders.len()
        ),
    }
}

/// Returns the folders of Perl's modules in a root.
///
/// # Errors
/// Fails if a folder can't be read.
pub fn perl_folders(root: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = vec![root.join("usr/share/perl5")];
    for architecture in folders_of(&root.join("usr/lib")) {
        folders.extend(entries(&architecture.join("perl5"), "5.").unwrap_or_default());
        folders.extend(entries(&architecture.join("perl"), "5.").unwrap_or_default());
    }
    folders.extend(entries(&root.join("usr/share/perl"), "5.")?);
    Ok(folders)
}

/// Returns the folders that contain libraries, for `LD_LIBRARY_PATH`: the architecture's library
/// folders, and their subfolders with a package's private libraries.
pub fn libraries(root: &Path) -> Result<String> {
    let mut folders = Vec::new();
    for base in ["usr/lib", "lib"].map(|base| root.join(base)) {
        if holds_library(&base) {
            folders.push(base.clone());
        }
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
            "{} holds no libraries\nhint: remove target/debian, and all of it is fetched again",
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

fn entries(folder: &Path, begin: &str) -> Result<Vec<PathBuf>> {
    let listed = std::fs::read_dir(folder).with_context(|| {
        format!(
            "no {}\nhint: cargo xtask test --step debian-packages",
            folder.display()
        )
    })?;
    let mut paths = Vec::new();
    for entry in listed {
        let path = entry?.path();
        if path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(begin))
        {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Creates an empty folder, removing an old one with its contents.
pub fn make_empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}
