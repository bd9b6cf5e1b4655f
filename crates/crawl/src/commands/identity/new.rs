//! `crawl identity new`: creates private keys.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crawl_identity::KeySet;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::clock;
use crate::error::{CommandError, FINISHED, unwritable};
use crate::identity::KeySource;
use crate::terminal::{note, print};

pub(super) fn run(path: &Path, start_in: Option<Duration>) -> Result<u8, CommandError> {
    let exists = path.symlink_metadata().is_ok();
    let mut keys = match (exists, start_in) {
        (false, _) => KeySet::default(),
        (true, Some(_)) => KeySource::of(path).read()?,
        (true, None) => {
            let message = format!("the key file `{}` exists", path.display());
            return Err(CommandError::usage(message).hint(
                "`--start-in 2d` adds a key that signs from then; without it, give another file",
            ));
        }
    };
    let now = u64::try_from(clock::now().as_second()).unwrap_or_default();
    let not_before = start_in.map(|wait| now.saturating_add(wait.as_secs()));
    let no_key =
        || CommandError::disk("can't create a key: the system has no random numbers".to_owned());
    let mut seed = [0; 32];
    SystemRandom::new().fill(&mut seed).map_err(|_| no_key())?;
    let thumbprint = keys.add(seed, not_before).ok_or_else(no_key)?;
    write(path, &keys.to_private_json()).map_err(|why| unwritable(path, &why))?;
    note(&format!(
        "wrote {}; publish the public key with `crawl identity directory` before it signs",
        path.display()
    ));
    print(format!("{thumbprint}\n").as_bytes())?;
    Ok(FINISHED)
}

/// Writes the file so that no other user can read it at any time, and so that a crawl that rereads
/// it sees either the old keys or the new ones.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let written = private_file(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&beside, path));
    if moved.is_err() {
        // The first error is reported, so it doesn't matter if this fails too.
        let _ = fs::remove_file(&beside);
    }
    moved
}

fn private_file(path: &Path) -> io::Result<File> {
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}
