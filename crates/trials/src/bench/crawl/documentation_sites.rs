//! The sites to crawl: third-party documentation.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use flate2::Compression;
use flate2::write::GzEncoder;
use xtask::debian_packages::{self, DebianPackageFolder};
use xtask::workspace::Workspace;

use crate::bench::SERVER_LEVEL;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DocumentationSite {
    /// Java's, Python's and Git's documentation: some 10,900 pages
    Docs,
    /// Those, LibreOffice's and PostgreSQL's: some 31,000 pages
    Large,
    /// Python's documentation: some 530 pages
    Small,
}

/// Packages with many pages of HTML documentation, and their folders.
const MORE: [(&str, &str); 2] = [
    ("libreoffice-dev-doc", "libreoffice"),
    ("postgresql-doc-15", "postgresql-doc-15"),
];

impl DocumentationSite {
    /// Creates a folder that links to the parts of the site, with an index page that links to each
    /// part. If `is_gzipped`, each page also has a gzip version.
    pub(super) fn lay_out(self, workspace: &Workspace, is_gzipped: bool) -> Result<PathBuf> {
        debian_packages::fetch(workspace)?;
        let root = workspace.target.join("bench-site");
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root)?;
        let mut parts = vec![(
            "python",
            debian_packages::python_docs(workspace)?,
            "index.html",
        )];
        if self != DocumentationSite::Small {
            let java = debian_packages::java_docs(workspace)?.join("api");
            parts.push(("java", java, "index.html"));
            parts.push((
                "git",
                debian_packages::git_docs(workspace)?,
                "gittutorial.html",
            ));
        }
        let place = |folder: &Path, name: &str| match is_gzipped {
            true => gzip_pages(folder, &root.join(name)),
            false => Ok(symlink(folder, root.join(name))?),
        };
        for (name, folder, _) in &parts {
            place(folder, name).with_context(|| format!("cannot link to {name}"))?;
        }
        let mut links: Vec<String> = parts
            .iter()
            .map(|(name, _, first)| format!("{name}/{first}"))
            .collect();
        if self != DocumentationSite::Small {
            // Git's documentation has no index of all pages, so link to each page.
            links.extend(pages_below(&debian_packages::git_docs(workspace)?, "git")?);
        }
        if self == DocumentationSite::Large {
            let debian = DebianPackageFolder::of(workspace);
            for (package, name) in MORE {
                debian.unpack(package, &[package])?;
                let folder = debian.root().join("usr/share/doc").join(name);
                place(&folder, name)?;
                links.extend(pages_below(&folder, name)?);
            }
        }
        fs::write(root.join("index.html"), index(&links))?;
        Ok(root)
    }
}

/// Creates the folder `to` with links to all files in and below `from`. Each page also gets a
/// `PAGE.gz`, as a server would send it.
fn gzip_pages(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let link = to.join(path.file_name().context("a file without a name")?);
        if path.is_dir() {
            gzip_pages(&path, &link)?;
            continue;
        }
        if link
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::new(SERVER_LEVEL));
            encoder.write_all(&fs::read(&path)?)?;
            fs::write(link.with_added_extension("gz"), encoder.finish()?)?;
        }
        symlink(&path, link)?;
    }
    Ok(())
}

/// Returns links to all pages below a folder, for a folder without an index page.
fn pages_below(folder: &Path, name: &str) -> Result<Vec<String>> {
    let mut pages = Vec::new();
    let mut waiting = vec![(folder.to_owned(), name.to_owned())];
    while let Some((folder, name)) = waiting.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let Ok(file) = entry.file_name().into_string() else {
                continue;
            };
            let path = format!("{name}/{file}");
            let kind = fs::symlink_metadata(entry.path())?;
            if kind.is_dir() {
                waiting.push((entry.path(), path));
            } else if kind.is_file() && path.ends_with(".html") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

fn index(links: &[String]) -> String {
    let mut page = "<!doctype html><meta charset=utf-8><title>Documentation</title>\n".to_owned();
    for link in links {
        page += &format!("<p><a href=\"{link}\">{link}</a>\n");
    }
    page
}
