//! Prints completion scripts for shells, and writes the manual.

mod completion;

use std::path::Path;
use std::{fs, io};

use clap::Command;

pub(crate) use clap_complete::Shell;

use crate::error::{CommandError, FINISHED};
use crate::terminal::print;

/// Prints the script with which a shell completes our command line. `command` is the definition of
/// the whole command line.
pub(crate) fn completions(shell: Shell, command: &Command) -> Result<u8, CommandError> {
    print(completion::script(shell, command).as_bytes())
}

/// Prints the main page of the manual, or writes a page for each command into the directory `all`.
/// `command` is the definition of the whole command line.
pub(crate) fn man(all: Option<&Path>, command: Command) -> Result<u8, CommandError> {
    let failed = |why: io::Error| {
        let place = all.map_or("the manual page".to_owned(), |dir| {
            dir.display().to_string()
        });
        CommandError::disk(format!("can't write {place}: {why}"))
    };
    if let Some(dir) = all {
        fs::create_dir_all(dir).map_err(failed)?;
        clap_mangen::generate_to(command, dir).map_err(failed)?;
        return Ok(FINISHED);
    }
    let mut page = Vec::new();
    let manual = clap_mangen::Man::new(command);
    manual.render(&mut page).map_err(failed)?;
    print(&page)
}
