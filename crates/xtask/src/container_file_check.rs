//! Checks the container recipe and the compose files, without a container engine.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::compose_files;
use crate::workspace::{Workspace, run};

pub(crate) const RECIPE: &str = "docker/Dockerfile";
pub(crate) const IGNORED: &str = "docker/Dockerfile.dockerignore";

pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let read = |file: &str| {
        std::fs::read_to_string(workspace.root.join(file))
            .with_context(|| format!("cannot read {file}"))
    };
    let faults = faults(&workspace.root, &read(RECIPE)?, &read(IGNORED)?);
    if !faults.is_empty() {
        bail!("{RECIPE}:\n  {}", faults.join("\n  "));
    }
    run(workspace
        .program(workspace.python_bin().join("hadolint"))
        .arg(RECIPE))?;
    compose_files::check(workspace)
}

/// Returns faults that linters miss: missing or ignored files, tags that move to other images,
/// running as root.
fn faults(root: &Path, recipe: &str, ignored: &str) -> Vec<String> {
    let sent: Vec<&str> = ignored
        .lines()
        .filter_map(|line| line.strip_prefix('!'))
        .collect();
    let mut faults = Vec::new();
    let mut user = "root";
    for line in recipe.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["FROM", image, ..] => {
                user = "root";
                if !image.contains([':', '@']) || image.ends_with(":latest") {
                    faults.push(format!("{image} names no fixed version"));
                }
            }
            ["COPY", flag, ..] if flag.starts_with("--from=") => {}
            ["COPY", sources @ .., _to] => {
                for source in sources.iter().filter(|source| !source.starts_with("--")) {
                    if !root.join(source).exists() {
                        faults.push(format!("{source} does not exist"));
                    }
                    if !sent.iter().any(|sent| Path::new(source).starts_with(sent)) {
                        faults.push(format!("{IGNORED} keeps {source} away"));
                    }
                }
            }
            ["USER", name, ..] => user = name,
            _ => {}
        }
    }
    if matches!(user.split(':').next(), Some("root" | "0")) {
        faults.push("the program would run as root".to_owned());
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::faults;

    #[test]
    fn each_fault_of_a_recipe_is_reported() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("here")).unwrap();
        let check = |recipe: &str, ignored: &str| faults(root.path(), recipe, ignored);
        let good = "FROM rust:1 AS build\nCOPY here here\nFROM debian:1\nCOPY --from=build /a /b\nUSER 5:5\n";
        assert!(check(good, "*\n!here\n").is_empty());
        assert_eq!(
            check(good, "*\n"),
            ["docker/Dockerfile.dockerignore keeps here away"]
        );
        assert_eq!(
            check("FROM a:1\nCOPY gone x\nUSER 5\n", "!gone\n"),
            ["gone does not exist"]
        );
        assert_eq!(
            check("FROM a:latest\nUSER 5\n", ""),
            ["a:latest names no fixed version"]
        );
        assert_eq!(
            check("FROM a:1\nUSER 5\nFROM b:1\n", ""),
            ["the program would run as root"]
        );
    }
}
