//! Checks every package of `Cargo.lock` against `deny.toml`: its licence, its source, and that no
//! version is unconstrained.
//!
//! `cargo deny check bans licenses sources` reads the same file, but building it took minutes per
//! run on a fresh machine. The rules here take a second.
//!
//! Also bounds the number of packages that the program without any feature consists of.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};

use crate::workspace::{Workspace, output};

/// The public registry's name in Cargo's files.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Maximum packages of the program without any feature, our own included.
const MAX_SMALLEST: usize = 250;

pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let rules = std::fs::read_to_string(workspace.root.join("deny.toml"))
        .context("cannot read deny.toml")?;
    let allowed = allowed(&rules)?;
    let mut command = workspace.cargo(&[
        "metadata",
        "--locked",
        "--all-features",
        "--format-version",
        "1",
    ]);
    let metadata: Value = serde_json::from_str(&output(&mut command)?)?;
    let packages = metadata["packages"].as_array();
    let packages = packages.context("cargo names no packages")?;
    let faults: Vec<String> = packages
        .iter()
        .flat_map(|package| faults(package, &allowed))
        .collect();
    if !faults.is_empty() {
        bail!("dependencies break deny.toml:\n  {}", faults.join("\n  "));
    }
    eprintln!(
        "{} packages keep deny.toml; in more than one version: {}",
        packages.len(),
        repeated(packages).join(", ")
    );
    let smallest = smallest(workspace)?;
    if smallest > MAX_SMALLEST {
        bail!(
            "the program without features has {smallest} packages, the maximum is {MAX_SMALLEST}; \
             `cargo tree -p crawl --no-default-features -e normal,build` lists them"
        );
    }
    eprintln!("the program without features has {smallest} of at most {MAX_SMALLEST} packages");
    Ok(())
}

/// Returns the number of packages that the program is built from without any feature.
fn smallest(workspace: &Workspace) -> Result<usize> {
    let flags = [
        "--no-default-features",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
        "--locked",
    ];
    let mut command = workspace.cargo(&["tree", "--package", "crawl"]);
    let printed = output(command.args(flags))?;
    Ok(distinct(&printed))
}

/// Counts the different packages in a listing of `cargo tree`, each by its name and version.
fn distinct(listing: &str) -> usize {
    let name_and_version = |line: &'_ str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    listing
        .lines()
        .map(name_and_version)
        .collect::<BTreeSet<_>>()
        .len()
}

/// Returns the licences of `deny.toml`. `GPL-2.0 WITH Classpath-exception-2.0` counts as one
/// licence.
fn allowed(rules: &str) -> Result<Vec<Licensee>> {
    let rules: toml::Table = rules.parse().context("deny.toml")?;
    let names = rules
        .get("licenses")
        .and_then(|table| table.get("allow"))
        .and_then(toml::Value::as_array)
        .context("deny.toml has no licenses.allow")?;
    let licence = |name: &toml::Value| {
        let name = name.as_str().context("licenses.allow holds no text")?;
        Licensee::parse(name).with_context(|| format!("deny.toml allows {name}"))
    };
    names.iter().map(licence).collect()
}

fn faults(package: &Value, allowed: &[Licensee]) -> Vec<String> {
    let text = |key: &str| package[key].as_str();
    let name = format!(
        "{} {}",
        text("name").unwrap_or("?"),
        text("version").unwrap_or("?")
    );
    let mut faults = Vec::new();
    match text("license") {
        None => faults.push(format!("{name} names no licence")),
        Some(license) => match Expression::parse_mode(license, ParseMode::LAX) {
            Err(error) => faults.push(format!("{name}: licence {license:?}: {}", error.reason)),
            Ok(licence) => {
                let is_allowed =
                    licence.evaluate(|wanted| allowed.iter().any(|one| one.satisfies(wanted)));
                if !is_allowed {
                    faults.push(format!("{name}: licence {license} is not allowed"));
                }
            }
        },
    }
    match text("source") {
        // Check the dependencies of our own packages only, because we choose their versions.
        None => faults.extend(
            open_versions(package)
                .into_iter()
                .map(|dependency| format!("{name} takes any version of {dependency}")),
        ),
        Some(CRATES_IO) => {}
        Some(other) => faults.push(format!("{name} comes from {other}")),
    }
    faults
}

/// Returns the dependencies with the version `*`, except those in this workspace.
fn open_versions(package: &Value) -> Vec<String> {
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies
        .filter(|dependency| dependency["req"] == "*" && !dependency["path"].is_string())
        .filter_map(|dependency| dependency["name"].as_str())
        .map(str::to_owned)
        .collect()
}

fn repeated(packages: &[Value]) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        if let (Some(name), Some(version)) = (package["name"].as_str(), package["version"].as_str())
        {
            versions.entry(name).or_default().insert(version);
        }
    }
    versions
        .into_iter()
        .filter(|(_, versions)| versions.len() > 1)
        .map(|(name, _)| name.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{CRATES_IO, allowed, distinct, faults};

    const RULES: &str =
        "[licenses]\nallow = [\"MIT\", \"Apache-2.0\", \"Apache-2.0 WITH LLVM-exception\"]\n";

    fn check(license: Value, source: Value, req: &str) -> Vec<String> {
        let package = json!({
            "name": "a", "version": "1.0.0", "license": license, "source": source,
            "dependencies": [{"name": "b", "req": req}],
        });
        faults(&package, &allowed(RULES).unwrap())
    }

    #[test]
    fn a_licence_is_one_of_those_that_are_allowed() {
        for good in [
            "MIT",
            "GPL-3.0-only OR MIT",
            "MIT/Apache-2.0",
            "MIT AND Apache-2.0",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert_eq!(check(json!(good), json!(CRATES_IO), "1"), [""; 0], "{good}");
        }
        for bad in [
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "none of your business",
        ] {
            assert_eq!(check(json!(bad), json!(CRATES_IO), "1").len(), 1, "{bad}");
        }
        let nameless = check(Value::Null, json!(CRATES_IO), "1");
        assert_eq!(nameless, ["a 1.0.0 names no licence"]);
    }

    #[test]
    fn a_package_comes_from_the_public_registry() {
        let elsewhere = check(json!("MIT"), json!("git+https://example.org/a"), "1");
        assert_eq!(elsewhere, ["a 1.0.0 comes from git+https://example.org/a"]);
    }

    #[test]
    fn a_version_is_never_left_open() {
        let open = check(json!("MIT"), Value::Null, "*");
        assert_eq!(open, ["a 1.0.0 takes any version of b"]);
        assert_eq!(check(json!("MIT"), json!(CRATES_IO), "*"), [""; 0]);
    }

    #[test]
    fn a_package_counts_once_for_each_version() {
        let listing =
            "a v1.0.0 (/a)\nb v1.0.0\nb v1.0.0 (*)\nb v2.0.0 (proc-macro)\nb v2.0.0 (*)\n";
        assert_eq!(distinct(listing), 3);
    }

    #[test]
    fn rules_without_a_list_are_refused() {
        assert!(allowed("[licenses]\n").is_err());
        assert!(allowed("[licenses]\nallow = [\"No such licence\"]\n").is_err());
    }
}
