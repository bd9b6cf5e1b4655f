//! Marks that prove that a file in a crawl directory is the user's own. A mark is a keyed digest of
//! a file's content and of the directory's path. The key is stored among the user's own files. A
//! file that was changed, or that comes from another directory or machine, therefore has no valid
//! mark.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use toml::Table;

use super::user_folders::UserFolders;

/// The purpose of a mark, which is a keyed digest. The digest covers the purpose, so a mark for one
/// purpose is never valid for another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MarkPurpose {
    /// The guarded settings of `crawl.toml`.
    Config,
    /// The files that an interrupted `crawl forget` still has to replace.
    Forget,
}

impl MarkPurpose {
    fn label(self) -> &'static [u8] {
        match self {
            MarkPurpose::Config => b"crawl.toml 1\n",
            MarkPurpose::Forget => b"forget.json 1\n",
        }
    }
}
const KEY_BYTES: usize = 32;

/// Whether a mark proves that this program wrote a file (crawl.toml or forget.json) for this user
/// and this directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileMarkCheckResult {
    /// This program wrote the file for this user and this directory.
    Ours,
    /// The file has no mark, so anyone may have written it.
    Unmarked,
    /// The file has a mark, but this user has no key to verify it.
    NoKey,
    /// The file's mark was made with another key, for other settings or for another directory.
    Mismatch,
}

impl FileMarkCheckResult {
    /// Describes why the file isn't proven to be the user's own.
    pub(super) fn why(self) -> &'static str {
        match self {
            FileMarkCheckResult::Ours => "it is",
            FileMarkCheckResult::Unmarked => "it has no mark",
            FileMarkCheckResult::NoKey => {
                "there is no key in $XDG_STATE_HOME/crawl or ~/.local/state/crawl to verify its \
                 mark"
            }
            FileMarkCheckResult::Mismatch => {
                "its mark doesn't match: the file was written by another user, edited, or moved"
            }
        }
    }
}

/// Verifies the mark of guarded settings.
pub(super) fn check(
    around: &UserFolders,
    dir: &Path,
    guarded: &Table,
    mark: Option<&str>,
) -> FileMarkCheckResult {
    let payload = guarded.to_string();
    verify(around, dir, MarkPurpose::Config, payload.as_bytes(), mark)
}

/// Checks the mark (keyed digest) of `payload` in the directory `dir`.
pub(crate) fn verify(
    around: &UserFolders,
    dir: &Path,
    purpose: MarkPurpose,
    payload: &[u8],
    mark: Option<&str>,
) -> FileMarkCheckResult {
    let Some(mark) = mark else {
        return FileMarkCheckResult::Unmarked;
    };
    let Some(key) = key_file(around).and_then(|path| read_key(&path).ok()) else {
        return FileMarkCheckResult::NoKey;
    };
    let fits = HEXLOWER
        .decode(mark.as_bytes())
        .is_ok_and(|mark| hmac::verify(&key, &message(dir, purpose, payload), &mark).is_ok());
    match fits {
        true => FileMarkCheckResult::Ours,
        false => FileMarkCheckResult::Mismatch,
    }
}

/// Returns the mark (keyed digest) of a crawl.toml. Creates the user's key if there is none yet.
///
/// # Errors
/// There is no folder for the key, or the key in that folder can't be read or written.
pub(super) fn make(around: &UserFolders, dir: &Path, guarded: &Table) -> io::Result<String> {
    let payload = guarded.to_string();
    sign(around, dir, MarkPurpose::Config, payload.as_bytes())
}

/// Returns the mark (keyed digest) of `payload` in the directory `dir`. Creates the user's key if
/// there is none yet.
///
/// # Errors
/// There is no folder for the key, or the key in that folder can't be read or written.
pub(crate) fn sign(
    around: &UserFolders,
    dir: &Path,
    purpose: MarkPurpose,
    payload: &[u8],
) -> io::Result<String> {
    let path = key_file(around).ok_or(ErrorKind::NotFound)?;
    let key = match read_key(&path) {
        Err(why) if why.kind() == ErrorKind::NotFound => make_key(&path)?,
        key => key?,
    };
    let tag = hmac::sign(&key, &message(dir, purpose, payload));
    Ok(HEXLOWER.encode(tag.as_ref()))
}

fn key_file(around: &UserFolders) -> Option<PathBuf> {
    Some(around.state_home.as_ref()?.join("crawl").join("key"))
}

fn read_key(path: &Path) -> io::Result<hmac::Key> {
    let mode = fs::symlink_metadata(path)?.permissions().mode();
    let bytes = fs::read(path)?;
    match bytes.len() == KEY_BYTES && mode & 0o077 == 0 {
        true => Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes)),
        false => Err(io::Error::new(
            ErrorKind::InvalidData,
            "the key is damaged, or other users may read it",
        )),
    }
}

/// Creates the key atomically. If another process creates the key first, uses that process's key.
fn make_key(path: &Path) -> io::Result<hmac::Key> {
    let mut bytes = [0; KEY_BYTES];
    let random = SystemRandom::new().fill(&mut bytes);
    random.map_err(|_| io::Error::other("the system has no random bytes"))?;
    let folder = path.parent().ok_or(ErrorKind::NotFound)?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let temporary = folder.join(format!("key.{}", std::process::id()));
    // Remove the file of a dead process that had the same id. Process ids often repeat in
    // containers.
    match fs::remove_file(&temporary) {
        Err(why) if why.kind() != ErrorKind::NotFound => return Err(why),
        _ => {}
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    let written = file.write_all(&bytes).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| fs::hard_link(&temporary, path));
    fs::remove_file(&temporary)?;
    match linked {
        Err(why) if why.kind() != ErrorKind::AlreadyExists => Err(why),
        _ => read_key(path),
    }
}

/// Returns the bytes that a mark covers: its purpose, the directory's path, and the payload.
fn message(dir: &Path, purpose: MarkPurpose, payload: &[u8]) -> Vec<u8> {
    let place = place(dir);
    let place = place.as_os_str().as_bytes();
    let mut message = purpose.label().to_vec();
    message.extend_from_slice(&(place.len() as u64).to_be_bytes());
    message.extend_from_slice(place);
    message.extend_from_slice(payload);
    message
}

/// Returns the absolute path of a directory with symbolic links resolved, even if the directory
/// doesn't exist yet.
fn place(dir: &Path) -> PathBuf {
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let mut missing = Vec::new();
    let mut existing = dir.as_path();
    loop {
        if let Ok(mut place) = fs::canonicalize(existing) {
            place.extend(missing.iter().rev());
            return place;
        }
        match (existing.parent(), existing.file_name()) {
            (Some(parent), Some(name)) => {
                missing.push(name);
                existing = parent;
            }
            _ => return dir,
        }
    }
}
