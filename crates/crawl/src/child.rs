//! Starts other programs without our secrets in their environment.

use std::ffi::OsStr;
use std::process::Command;

/// The variable with the private keys that sign requests, if no file is given.
pub(crate) const KEY_VARIABLE: &str = "CRAWL_SIGNATURE_KEY";
/// The variable with the token of `crawl serve`.
pub(crate) const TOKEN_VARIABLE: &str = "CRAWL_SERVE_TOKEN";
/// The variable with the password of the shared frontier's database.
pub(crate) const PASSWORD_VARIABLE: &str = "PGPASSWORD";

/// Variables that only this program needs. Variables named by `env:NAME` in the settings are the
/// user's own, and commands in the settings may use them.
const SECRETS: [&str; 3] = [KEY_VARIABLE, TOKEN_VARIABLE, PASSWORD_VARIABLE];

/// Returns a command that runs `program`. Every other program must be started with it.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for name in SECRETS {
        command.env_remove(name);
    }
    command
}
