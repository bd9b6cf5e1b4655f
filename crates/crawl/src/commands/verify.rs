//! `crawl verify`: whether what a crawl left is whole.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use crawl_bundle::{VerifyError, verify};

use crate::cli::args::VerifyArgs;
use crate::error::records::of_records;
use crate::error::{BREACH, CommandError, unwritable};
use crate::terminal::{print, print_json};

/// Runs `crawl verify`.
pub(crate) fn run(args: &VerifyArgs) -> Result<u8, CommandError> {
    let scratch = Scratch::create()?;
    let found = verify(&args.dir, scratch.path());
    let found = found.map_err(|why| of_verify(why, &scratch))?;
    let printed = match args.json {
        true => print_json(&found)?,
        false => print(found.to_string().as_bytes())?,
    };
    Ok(match found.is_whole() {
        true => printed,
        false => BREACH,
    })
}

fn of_verify(why: VerifyError, scratch: &Scratch) -> CommandError {
    match why {
        VerifyError::Records(why) => of_records(why),
        VerifyError::Scratch(why) => unwritable(scratch.path(), &why)
            .hint("name a folder with more room by the environment variable TMPDIR"),
        why => CommandError::disk(why.to_string()),
    }
}

/// A folder for what has to be sorted, which goes when this is over.
struct Scratch(PathBuf);

impl Scratch {
    fn create() -> Result<Scratch, CommandError> {
        let path = env::temp_dir().join(format!("crawl-verify-{}", process::id()));
        // One of the same number may have been killed here.
        let _ = fs::remove_dir(&path);
        match fs::create_dir(&path) {
            Ok(()) => Ok(Scratch(path)),
            Err(why) => Err(unwritable(&path, &why)
                .hint("name a folder for temporary files by the environment variable TMPDIR")),
        }
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
