//! `crawl verify`: checks the integrity of a crawl's files.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use crawl_bundle::{VerificationRunError, verify};

use crate::cli::args::VerifyArgs;
use crate::error::records::of_records;
use crate::error::{CHECK_FAILED, CommandError, unwritable};
use crate::terminal::{print, print_json};

pub(crate) fn run(args: &VerifyArgs) -> Result<u8, CommandError> {
    let scratch = ScratchFolder::create()?;
    let report = verify(&args.dir, scratch.path());
    let report = report.map_err(|why| of_verify(why, &scratch))?;
    let printed = match args.json {
        true => print_json(&report)?,
        false => print(report.to_string().as_bytes())?,
    };
    Ok(match report.is_whole() {
        true => printed,
        false => CHECK_FAILED,
    })
}

fn of_verify(why: VerificationRunError, scratch: &ScratchFolder) -> CommandError {
    match why {
        VerificationRunError::Records(why) => of_records(why),
        VerificationRunError::Scratch(why) => unwritable(scratch.path(), &why)
            .hint("set the environment variable TMPDIR to a folder with more space"),
        why => CommandError::disk(why.to_string()),
    }
}

/// A temporary folder for sorting. Dropping it removes the folder.
struct ScratchFolder(PathBuf);

impl ScratchFolder {
    fn create() -> Result<ScratchFolder, CommandError> {
        let path = env::temp_dir().join(format!("crawl-verify-{}", process::id()));
        // Remove a folder that a killed process with the same id left behind.
        let _ = fs::remove_dir(&path);
        match fs::create_dir(&path) {
            Ok(()) => Ok(ScratchFolder(path)),
            Err(why) => Err(unwritable(&path, &why)
                .hint("set the environment variable TMPDIR to a folder for temporary files")),
        }
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
