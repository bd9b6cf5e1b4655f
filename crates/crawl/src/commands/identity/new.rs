//! `crawl identity new`: creates private keys.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use crawl_identity::SigningKeySet;
use ring::rand::{SecureRandom as _, SystemRandom};
use tempfile::NamedTempFile;

use crate::clock;
use crate::error::{CommandError, FINISHED, unwritable};
use crate::identity::KeySource;
use crate::terminal::{note, print};

pub(super) fn run(path: &Path, start_in: Option<Duration>) -> Result<u8, CommandError> {
    let exists = path.symlink_metadata().is_ok();
    let mut keys = match (exists, start_in) {
        (false, _) => SigningKeySet::default(),
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
    write(path, exists, &keys.to_private_json()).map_err(|why| unwritable(path, &why))?;
    note(&format!(
        "wrote {}; publish the public key with `crawl identity directory` before it signs",
        path.display()
    ));
    print(format!("{thumbprint}\n").as_bytes())?;
    Ok(FINISHED)
}

/// Writes a key file. No other user can read the file at any time, and a crawl that rereads it sees
/// either the old keys or the new ones.
///
/// If `exists`, replaces the file at `path`, or the target of a symbolic link. Otherwise, fails if
/// anything is at `path`.
fn write(path: &Path, exists: bool, text: &str) -> io::Result<()> {
    let path = match exists {
        true => path.canonicalize()?,
        false => path.to_owned(),
    };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    // The temporary file is readable only by this user.
    let mut file = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    let moved = match exists {
        true => file.persist(&path),
        false => file.persist_noclobber(&path),
    };
    moved.map(drop).map_err(|failed| failed.error)
}
