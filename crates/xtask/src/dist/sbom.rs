//! The SBOM: the libraries in the program, with their versions (CycloneDX).

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::install_layout;
use crate::debian_packages::make_empty;
use crate::pinned_tools;
use crate::workspace::{Workspace, run};

/// The path that replaces the source folder in the SBOM.
const SOURCES: &str = "/crawl";

/// A Python script that validates a file against the CycloneDX schema, including its references.
const VALIDATE: &str = "
import sys
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
text = open(sys.argv[1], encoding='utf-8').read()
fault = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
sys.exit(f'{sys.argv[1]} breaks CycloneDX 1.5: {fault.data.message}' if fault else 0)
";

/// Returns the SBOM from the only wheel in `folder`, without this machine's paths.
pub(super) fn from_wheel(workspace: &Workspace, sources: &Path, folder: &Path) -> Result<String> {
    let unpacked = folder.join("unpacked");
    make_empty(&unpacked)?;
    let mut unzip = workspace.program(pinned_tools::packaging(workspace).join("python"));
    unzip.args(["-m", "zipfile", "-e"]);
    run(unzip
        .arg(install_layout::only(folder, ".whl")?)
        .arg(&unpacked))?;
    let sboms = install_layout::only(&unpacked, ".dist-info")?.join("sboms");
    let file = install_layout::only(&sboms, ".cyclonedx.json")?;
    let text = fs::read_to_string(&file).with_context(|| format!("no {}", file.display()))?;
    without_paths(&text, sources)
}

fn without_paths(sbom: &str, sources: &Path) -> Result<String> {
    let sources = sources.display().to_string();
    let text = sbom.replace(&format!("file://{sources}"), &format!("file://{SOURCES}"));
    ensure!(!text.contains(&sources), "the SBOM names {sources}");
    Ok(text)
}

/// Checks that the SBOM is valid and lists libraries with their checksums.
pub(super) fn validate(workspace: &Workspace, file: &Path) -> Result<()> {
    let mut python = workspace.program(pinned_tools::packaging(workspace).join("python"));
    run(python.args(["-c", VALIDATE]).arg(file))?;
    let sbom: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
    let components = sbom["components"].as_array().context("it has no list")?;
    let libraries = components
        .iter()
        .filter(|component| component["hashes"][0]["alg"] == "SHA-256")
        .count();
    ensure!(libraries > 0, "{} lists no library", file.display());
    eprintln!("SBOM: {libraries} libraries with checksums");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::without_paths;

    #[test]
    fn an_sbom_names_no_folder_of_the_machine() {
        let made = r#"{"bom-ref": "path+file:///sources/crates/crawl#0.1.0"}"#;
        let expected = r#"{"bom-ref": "path+file:///crawl/crates/crawl#0.1.0"}"#;
        let sources = Path::new("/sources");
        assert_eq!(without_paths(made, sources).unwrap(), expected);
        assert!(without_paths(r#"{"name": "/sources/a"}"#, sources).is_err());
    }
}
