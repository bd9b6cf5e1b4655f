//! Collects the license texts of the libraries in the program. These texts must be distributed with
//! the program.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Beginnings of the names of license files, in lower case.
const BEGINNINGS: [&str; 5] = ["copying", "licence", "license", "notice", "unlicense"];

const INTRODUCTION: &str = "Licenses of the libraries in the program. After a list of libraries that share a text comes that text.\n";

/// Returns the license texts of all libraries that the SBOM lists, from their sources. `registries`
/// are the folders into which Cargo unpacks crates.
pub(super) fn collect(sbom: &str, registries: &[PathBuf]) -> Result<String> {
    let sbom: Value = serde_json::from_str(sbom)?;
    let components = sbom["components"].as_array();
    let mut libraries: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without_text = Vec::new();
    for component in components.context("the SBOM has no components")? {
        // Skip components without a checksum, which are our own crates.
        let (Some(name), Some(version), true) = (
            component["name"].as_str(),
            component["version"].as_str(),
            component["hashes"].is_array(),
        ) else {
            continue;
        };
        let license = component["licenses"][0]["expression"].as_str();
        let title = format!(
            "{name} {version} ({})",
            license.unwrap_or("no license named")
        );
        let folder = format!("{name}-{version}");
        let mut folders = registries.iter().map(|registry| registry.join(&folder));
        let texts = match folders.find(|path| path.is_dir()) {
            Some(folder) => texts(&folder)?,
            None => Vec::new(),
        };
        if texts.is_empty() {
            without_text.push(title);
            continue;
        }
        for text in texts {
            libraries.entry(text).or_default().push(title.clone());
        }
    }
    ensure!(
        !libraries.is_empty(),
        "no library has the text of a license"
    );
    Ok(page(&libraries, &without_text))
}

fn page(libraries: &BTreeMap<String, Vec<String>>, without_text: &[String]) -> String {
    let rule = "=".repeat(80);
    let mut page = INTRODUCTION.to_owned();
    for (text, titles) in libraries {
        page += &format!("\n{rule}\n{}\n\n{text}\n", titles.join("\n"));
    }
    if !without_text.is_empty() {
        page += &format!(
            "\n{rule}\nLibraries whose sources hold no text:\n{}\n",
            without_text.join("\n")
        );
    }
    page
}

/// Returns the texts of the licenses in a library's folder.
fn texts(folder: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_lowercase();
        if path.is_file() && BEGINNINGS.iter().any(|begin| name.starts_with(begin)) {
            files.push(path);
        }
    }
    files.sort();
    let read = |path: &PathBuf| {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes)
            .replace("\r\n", "\n")
            .trim()
            .to_owned())
    };
    files.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::collect;

    #[test]
    fn libraries_share_a_text_and_those_without_one_are_listed() {
        let registry = tempfile::tempdir().unwrap();
        for (folder, file, text) in [
            ("a-1.0.0", "LICENSE-MIT", "Be free.\r\n"),
            ("b-2.0.0", "license.txt", "Be free."),
            ("c-3.0.0", "README.md", "Not a license."),
        ] {
            let folder = registry.path().join(folder);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(file), text).unwrap();
        }
        let component = |name: &str, version: &str| {
            json!({"name": name, "version": version, "hashes": [],
                "licenses": [{"expression": "MIT"}]})
        };
        let components = [
            component("a", "1.0.0"),
            component("b", "2.0.0"),
            component("c", "3.0.0"),
        ];
        let sbom = json!({"components": components}).to_string();
        let page = collect(&sbom, &[registry.path().to_owned()]).unwrap();
        assert!(page.contains("\na 1.0.0 (MIT)\nb 2.0.0 (MIT)\n\nBe free.\n"));
        assert_eq!(page.matches("Be free.").count(), 1);
        assert!(page.ends_with("hold no text:\nc 3.0.0 (MIT)\n"));
    }
}
