//! Starts other programs without our secrets in their environment.

use std::ffi::OsStr;
use std::process::Command;

/// Environment variable with the private keys that sign requests, used if no key file is set.
pub(crate) const KEY_VARIABLE: &str = "CRAWL_SIGNATURE_KEY";
/// Environment variable with the token of `crawl serve`.
pub(crate) const TOKEN_VARIABLE: &str = "CRAWL_SERVE_TOKEN";
/// Environment variable with the password of the shared frontier's database.
pub(crate) const PASSWORD_VARIABLE: &str = "PGPASSWORD";

/// Environment variables that no other program may see. Variables that the settings name as
/// `env:NAME` stay visible: they belong to the user, and commands in the settings may need them.
const SECRETS: [&str; 3] = [KEY_VARIABLE, TOKEN_VARIABLE, PASSWORD_VARIABLE];

/// Returns a command that runs `program` without [`SECRETS`] in its environment. Start every other
/// program with this command.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for name in SECRETS {
        command.env_remove(name);
    }
    command
}
