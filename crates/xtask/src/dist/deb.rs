//! The Debian package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::build_program;
use super::install_layout::{self, PackageContents};
use super::product_metadata::{PROGRAM, ProductMetadata};
use crate::debian_packages::make_empty;
use crate::workspace::{Workspace, output, run};

/// The revision of the package, which starts at 1 again for each version of the program.
const REVISION: u32 = 1;

/// The long description, which `apt show` prints below the first line.
const DESCRIPTION: &str =
    " It fetches robots.txt first, sends one request at a time per host, and can
 explain why it did or did not fetch a URL. A crawl that was killed resumes
 without loss.
 .
 Records are JSON lines, WARC, Parquet and WACZ. A full-text search of the
 crawled pages, with a search box for a site, is included.
";

/// Lintian reports to suppress, each with the reason.
const OVERRIDES: &[(&str, &str)] = &[(
    "initial-upload-closes-no-bugs",
    "It is not uploaded to Debian, which has no bug that asks for it.",
)];

/// Writes `NAME_VERSION_amd64.deb`.
pub(super) fn write(
    workspace: &Workspace,
    product: &ProductMetadata,
    parts: &PackageContents<'_>,
    to: &Path,
) -> Result<()> {
    let root = parts.folder.join("deb");
    make_empty(&root)?;
    let usr = root.join("usr");
    install_layout::write(workspace, product, parts, &usr)?;
    documents(workspace, product, &usr)?;
    compress(&usr.join("share/man/man1"))?;
    let size = output(
        Command::new("du")
            .args(["--summarize", "--apparent-size", "-k"])
            .arg(&usr),
    )?;
    let size = size.split_whitespace().next().unwrap_or("0");
    let glibc = build_program::oldest_glibc(parts.program)?;
    let control = control(product, size, glibc);
    install_layout::write_file(&root.join("DEBIAN/control"), control)?;
    let mut sums = Command::new("sh");
    sums.args([
        "-ec",
        "find usr -type f | LC_ALL=C sort | xargs -d '\\n' md5sum > DEBIAN/md5sums",
    ]);
    run(sums.current_dir(&root))?;
    run(Command::new("chmod")
        .args(["--recursive", "u=rwX,go=rX"])
        .arg(&root))?;
    let file = to.join(format!("{}_{}_amd64.deb", product.name, version(product)));
    let mut build = Command::new("dpkg-deb");
    build.env("SOURCE_DATE_EPOCH", &product.epoch).args([
        "--build",
        "--root-owner-group",
        "-Zxz",
        "--threads-max=1",
    ]);
    run(build.arg(&root).arg(file))
}

/// Writes the licenses, the change logs and the overrides for lintian.
fn documents(workspace: &Workspace, product: &ProductMetadata, usr: &Path) -> Result<()> {
    let folder = install_layout::documents(product, usr);
    let mit = workspace.root.join("LICENSE-MIT");
    let mit = fs::read_to_string(&mit).with_context(|| format!("no {}", mit.display()))?;
    install_layout::write_file(&folder.join("copyright"), copyright(&mit)?)?;
    let changes = folder.join("changelog");
    install_layout::copy(&workspace.root.join("CHANGELOG.md"), &changes)?;
    let mut date = Command::new("date");
    date.args(["--utc", "--rfc-email"])
        .arg(format!("--date=@{}", product.epoch));
    let own = folder.join("changelog.Debian");
    install_layout::write_file(&own, own_changes(product, output(&mut date)?.trim()))?;
    gzip(&[changes, own])?;
    let overrides: String = OVERRIDES
        .iter()
        .map(|(tag, reason)| format!("# {reason}\n{}: {tag}\n", product.name))
        .collect();
    install_layout::write_file(
        &usr.join("share/lintian/overrides").join(&product.name),
        overrides,
    )
}

fn version(product: &ProductMetadata) -> String {
    format!("{}-{REVISION}", product.version)
}

fn control(product: &ProductMetadata, size: &str, (major, minor): (u32, u32)) -> String {
    let ProductMetadata {
        name, maintainer, ..
    } = product;
    let summary = product.description.trim_start_matches("A ");
    format!(
        "Package: {name}\nVersion: {}\nArchitecture: amd64\nMaintainer: {maintainer}\n\
         Installed-Size: {size}\nDepends: libc6 (>= {major}.{minor})\nRecommends: ca-certificates\n\
         Suggests: chromium\nSection: web\nPriority: optional\n\
         Description: {summary}\n{DESCRIPTION}",
        version(product)
    )
}

fn own_changes(product: &ProductMetadata, date: &str) -> String {
    format!(
        "{} ({}) unstable; urgency=medium\n\n  * Package of version {}.\n\n -- {}  {date}\n",
        product.name,
        version(product),
        product.version,
        product.maintainer
    )
}

/// Returns the file `copyright` in Debian's format, from the text of the MIT license.
fn copyright(mit: &str) -> Result<String> {
    let holder = mit
        .lines()
        .find_map(|line| line.strip_prefix("Copyright (c) "));
    let holder = holder.context("LICENSE-MIT names no holder of the copyright")?;
    let (_, text) = mit
        .split_once("\n\nPermission")
        .context("LICENSE-MIT grants no permission")?;
    let text: Vec<String> = format!("Permission{text}")
        .trim()
        .lines()
        .map(|line| match line {
            "" => " .".to_owned(),
            line => format!(" {line}"),
        })
        .collect();
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: {PROGRAM}\n\nFiles: *\nCopyright: {holder}\nLicense: Expat or Apache-2.0\n\
         Comment: The program contains libraries under other licenses. {} has them all.\n\n\
         License: Expat\n{}\n\nLicense: Apache-2.0\n \
         On Debian systems, the text of this license is in /usr/share/common-licenses/Apache-2.0.\n",
        install_layout::NOTICES,
        text.join("\n")
    ))
}

fn compress(folder: &Path) -> Result<()> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder)? {
        pages.push(entry?.path());
    }
    gzip(&pages)
}

fn gzip(files: &[PathBuf]) -> Result<()> {
    let mut gzip = Command::new("gzip");
    output(gzip.args(["--no-name", "--best"]).args(files)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::{control, copyright};
    use crate::dist::product_metadata::ProductMetadata;

    #[test]
    fn control_declares_the_c_library_that_the_program_needs() {
        let product = ProductMetadata {
            name: "other".to_owned(),
            version: "1.2.3".to_owned(),
            description: "A crawler".to_owned(),
            license: "MIT".to_owned(),
            maintainer: "A <a@example.org>".to_owned(),
            epoch: "5".to_owned(),
        };
        let control = control(&product, "77", (2, 31));
        assert!(control.starts_with("Package: other\nVersion: 1.2.3-1\n"));
        assert!(control.contains("\nDepends: libc6 (>= 2.31)\n"));
        assert!(control.contains("\nDescription: crawler\n It "));
    }

    #[test]
    fn copyright_has_the_license_with_its_holder() {
        let mit =
            "MIT License\n\nCopyright (c) 2026 Me\n\nPermission is\ngranted.\n\nNo warranty.\n";
        let written = copyright(mit).unwrap();
        assert!(written.contains("\nCopyright: 2026 Me\n"));
        assert!(
            written.contains("\nLicense: Expat\n Permission is\n granted.\n .\n No warranty.\n")
        );
        assert!(copyright("MIT License\n").is_err());
    }
}
