//! Checks that crates depend only on the packages that `allowed_imports` lists.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use serde_json::Value;

use crate::allowed_imports::{FOR_TESTS, FOR_TESTS_OF, NEVER, OWNED, PURE, SEES, TOOLS};
use crate::workspace::{Workspace, output};
use crate::{function_length, module_imports};

/// The dependencies in each package's manifest, as name and kind.
type Manifests = BTreeMap<String, Vec<(String, DependencyKind)>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DependencyKind {
    Normal,
    Test,
}

pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let manifests = manifests(&workspace.metadata);
    let mut breaches = direct(&manifests);
    let mut trees = BTreeMap::new();
    for krate in NEVER.iter().flat_map(|(crates, _)| *crates) {
        if !trees.contains_key(krate) {
            trees.insert(*krate, tree(workspace, krate)?);
        }
    }
    breaches.extend(indirect(&trees));
    breaches.extend(lint_settings(workspace)?);
    breaches.extend(module_imports::breaches(workspace)?);
    breaches.extend(function_length::breaches(workspace)?);
    if breaches.is_empty() {
        let pairs: usize = NEVER
            .iter()
            .map(|(crates, packages)| crates.len() * packages.len())
            .sum();
        eprintln!(
            "{} packages, {pairs} forbidden pairs, {} owned packages: all kept",
            manifests.len(),
            OWNED.len()
        );
        return Ok(());
    }
    bail!("boundaries are broken:\n  {}", breaches.join("\n  "))
}

/// Returns a message for each direct dependency that `SEES` or `OWNED` does not allow.
fn direct(manifests: &Manifests) -> Vec<String> {
    let mut breaches = Vec::new();
    for (package, dependencies) in manifests {
        let Some((_, seen)) = SEES.iter().find(|(name, _)| name == package) else {
            breaches.push(format!(
                "{package} has no row in SEES (crates/xtask/src/allowed_imports.rs)"
            ));
            continue;
        };
        for (name, kind) in dependencies {
            let is_room = manifests.contains_key(name);
            let for_tests =
                *kind == DependencyKind::Test && package != FOR_TESTS && name == FOR_TESTS;
            let own_tests = *kind == DependencyKind::Test
                && package != FOR_TESTS
                && may_test_with(package, name);
            if is_room && !seen.contains(&name.as_str()) && !for_tests && !own_tests {
                breaches.push(format!("{package} must not depend on {name}"));
            }
            let owners: Vec<&str> = OWNED
                .iter()
                .filter(|(owned, _)| owned == name)
                .map(|(_, owner)| *owner)
                .collect();
            let own = owners.is_empty() || owners.contains(&package.as_str());
            if !own && !TOOLS.contains(&package.as_str()) && *kind == DependencyKind::Normal {
                breaches.push(format!(
                    "{package} must not name {name}: that is {}'s",
                    owners.join(" and ")
                ));
            }
        }
    }
    breaches
}

/// Returns whether the tests of `package` may use the crate `name`: if `FOR_TESTS_OF` lists the
/// pair, or if a dependency of `package` may use `name`. In the latter case, tests need `name` to
/// construct arguments for functions of the dependency.
fn may_test_with(package: &str, name: &str) -> bool {
    let sees = |package: &str| {
        SEES.iter()
            .find(|(known, _)| *known == package)
            .map_or(&[][..], |(_, seen)| seen)
    };
    FOR_TESTS_OF.contains(&(package, name))
        || sees(package).iter().any(|seen| sees(seen).contains(&name))
}

/// Returns a message for each dependency, direct or indirect, that `NEVER` forbids.
fn indirect(trees: &BTreeMap<&str, BTreeSet<String>>) -> Vec<String> {
    let mut breaches = Vec::new();
    for (crates, packages) in NEVER {
        for krate in crates {
            for package in packages
                .iter()
                .filter(|package| trees[krate].contains(**package))
            {
                breaches.push(format!(
                    "{krate} must not come to depend on {package} (cargo tree -p {krate} -e normal,build -i {package})"
                ));
            }
        }
    }
    breaches
}

/// Checks the pure crates' lint settings, which ban clocks and files. A crate's lint settings
/// replace those of the workspace, so each pure crate must repeat the workspace's settings.
fn lint_settings(workspace: &Workspace) -> Result<Vec<String>> {
    let common = std::fs::read_to_string(workspace.root.join("clippy.toml"))?;
    let mut breaches = Vec::new();
    let mut first: Option<String> = None;
    for krate in PURE {
        let file = format!("crates/{}/clippy.toml", krate.trim_start_matches("crawl-"));
        let text = std::fs::read_to_string(workspace.root.join(&file)).unwrap_or_default();
        let missing = common
            .lines()
            .find(|line| !text.lines().any(|own| own == *line));
        if let Some(line) = missing {
            breaches.push(format!(
                "{file} lacks a line of the workspace's clippy.toml: {line}"
            ));
        }
        if !text.contains("\"std::time::Instant::now\"") {
            breaches.push(format!("{file} does not bar the clock"));
        }
        if first.get_or_insert_with(|| text.clone()) != &text {
            breaches.push(format!("{file} differs from that of {}", PURE[0]));
        }
    }
    Ok(breaches)
}

fn manifests(metadata: &Value) -> Manifests {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let dependency = |value: &Value| {
        let kind = if value["kind"] == "dev" {
            DependencyKind::Test
        } else {
            DependencyKind::Normal
        };
        (text(&value["name"]), kind)
    };
    list(&metadata["packages"])
        .iter()
        .map(|package| {
            let dependencies = list(&package["dependencies"]);
            (
                text(&package["name"]),
                dependencies.iter().map(dependency).collect(),
            )
        })
        .collect()
}

/// Returns the names of all packages needed to build a crate on any platform, except the crate
/// itself.
fn tree(workspace: &Workspace, krate: &str) -> Result<BTreeSet<String>> {
    let flags = [
        "--edges",
        "normal,build",
        "--target",
        "all",
        "--prefix",
        "none",
        "--locked",
    ];
    let mut command = workspace.cargo(&["tree", "--package", krate, "--format", "{p}"]);
    let printed = output(command.args(flags))?;
    let names = printed
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| *name != krate);
    Ok(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(package: &str, dependency: &str, kind: DependencyKind) -> Vec<String> {
        let mut manifests: Manifests = SEES
            .iter()
            .map(|(name, _)| ((*name).to_owned(), Vec::new()))
            .collect();
        manifests.insert(package.to_owned(), vec![(dependency.to_owned(), kind)]);
        direct(&manifests)
    }

    #[test]
    fn frontier_and_scheduler_never_see_each_other() {
        for kind in [DependencyKind::Normal, DependencyKind::Test] {
            assert_eq!(breaches("crawl-frontier", "crawl-scheduler", kind).len(), 1);
            assert_eq!(breaches("crawl-scheduler", "crawl-frontier", kind).len(), 1);
        }
    }

    #[test]
    fn the_test_web_is_for_tests_and_sees_no_crate() {
        assert!(breaches("crawl-fetcher", "crawl-testweb", DependencyKind::Test).is_empty());
        assert_eq!(
            breaches("crawl-fetcher", "crawl-testweb", DependencyKind::Normal).len(),
            1
        );
        assert_eq!(
            breaches("crawl-testweb", "crawl-weburl", DependencyKind::Test).len(),
            1
        );
    }

    #[test]
    fn an_owned_package_has_one_owner() {
        assert!(breaches("crawl", "clap", DependencyKind::Normal).is_empty());
        assert!(breaches("xtask", "clap", DependencyKind::Normal).is_empty());
        assert_eq!(
            breaches("crawl-engine", "clap", DependencyKind::Normal).len(),
            1
        );
        assert_eq!(
            breaches("crawl-engine", "html5ever", DependencyKind::Normal).len(),
            1
        );
    }

    #[test]
    fn a_crate_without_a_row_is_a_breach() {
        assert_eq!(
            breaches("crawl-attic", "serde", DependencyKind::Normal).len(),
            1
        );
    }

    #[test]
    fn a_forbidden_package_far_down_is_found() {
        let mut trees: BTreeMap<&str, BTreeSet<String>> = SEES
            .iter()
            .map(|(name, _)| (*name, BTreeSet::new()))
            .collect();
        assert!(indirect(&trees).is_empty());
        trees.insert(
            "crawl-policy",
            BTreeSet::from(["serde".to_owned(), "tokio".to_owned()]),
        );
        assert_eq!(indirect(&trees).len(), 1);
    }
}
