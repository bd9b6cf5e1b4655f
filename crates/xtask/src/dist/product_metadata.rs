//! The metadata of the packages, from `Cargo.toml` and git.

use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::workspace::{Workspace, output};

/// The program's name, in every package.
pub(super) const PROGRAM: &str = "crawl";

/// The program's metadata for publishing.
#[derive(Debug, PartialEq)]
pub(super) struct ProductMetadata {
    /// The name in package registries, from `workspace.metadata.dist`. The name differs from
    /// [`PROGRAM`], which is already taken in these registries.
    pub(super) name: String,
    pub(super) version: String,
    /// The description: one sentence without a full stop.
    pub(super) description: String,
    /// The license as an SPDX expression.
    pub(super) license: String,
    /// The maintainer's name and mail address.
    pub(super) maintainer: String,
    /// Time of the last commit in seconds since 1970, for `SOURCE_DATE_EPOCH`. Every file in a
    /// package gets this time.
    pub(super) epoch: String,
}

impl ProductMetadata {
    pub(super) fn read(workspace: &Workspace) -> Result<ProductMetadata> {
        let mut git = Command::new("git");
        git.current_dir(&workspace.root);
        let epoch = output(git.args(["log", "-1", "--format=%ct"])).context(
            "packages carry the time of the last commit\nhint: build them in a Git clone",
        )?;
        ProductMetadata::of(&workspace.metadata, epoch.trim())
    }

    fn of(metadata: &Value, epoch: &str) -> Result<ProductMetadata> {
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let package = packages
            .into_iter()
            .find(|package| package["name"] == PROGRAM)
            .with_context(|| format!("the workspace has no package {PROGRAM}"))?;
        let text = |value: &Value, key: &str| {
            let text = value[key].as_str().map(str::to_owned);
            text.with_context(|| format!("Cargo.toml has no {key} for packages"))
        };
        let dist = &metadata["metadata"]["dist"];
        Ok(ProductMetadata {
            name: text(dist, "name")?,
            version: text(package, "version")?,
            description: text(package, "description")?
                .trim_end_matches('.')
                .to_owned(),
            license: text(package, "license")?,
            maintainer: text(dist, "maintainer")?,
            epoch: epoch.to_owned(),
        })
    }

    /// Returns the start of each package's file name: name and version.
    pub(super) fn versioned(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// Returns the file name of the SBOM.
    pub(super) fn sbom(&self) -> String {
        format!("{}.cdx.json", self.versioned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ProductMetadata;

    #[test]
    fn the_published_name_is_in_the_workspace() {
        let mut metadata = json!({
            "packages": [
                {"name": "crawl-dates", "version": "7.0.0"},
                {"name": "crawl", "version": "1.2.3", "license": "MIT", "description": "It crawls."},
            ],
            "metadata": {"dist": {"name": "other", "maintainer": "A <a@example.org>"}},
        });
        let product = ProductMetadata::of(&metadata, "5").unwrap();
        assert_eq!(product.versioned(), "other-1.2.3");
        assert_eq!(product.description, "It crawls");
        metadata["metadata"] = json!(null);
        let error = ProductMetadata::of(&metadata, "5").unwrap_err().to_string();
        assert_eq!(error, "Cargo.toml has no name for packages");
    }
}
