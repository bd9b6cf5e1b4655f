//! Reads private keys from a file or from the environment. No error contains a key.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crawl_identity::SigningKeySet;

use crate::child_process_without_secrets::KEY_VARIABLE;
use crate::error::CommandError;

/// Maximum bytes of a key file, enough for hundreds of keys.
/// Beyond the limit: refused.
const MAX_KEY_BYTES: u64 = 64 << 10;

/// The file or environment variable that holds the private keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeySource {
    /// The file that holds the keys.
    File(PathBuf),
    /// The environment variable [`KEY_VARIABLE`] holds the keys.
    Environment,
}

/// Metadata of a key file. If it changes, the file was edited or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyFileStamp {
    modified: Option<SystemTime>,
    bytes: u64,
    inode: u64,
}

impl KeySource {
    /// Returns the key file `file` as the source, or the environment variable if `file` is empty.
    pub(crate) fn of(file: &Path) -> KeySource {
        match file.as_os_str().is_empty() {
            true => KeySource::Environment,
            false => KeySource::File(file.to_owned()),
        }
    }

    /// Returns whether a key file is named or the environment variable is set. The file may be
    /// missing.
    pub(crate) fn is_given(&self) -> bool {
        match self {
            KeySource::File(_) => true,
            KeySource::Environment => std::env::var_os(KEY_VARIABLE).is_some(),
        }
    }

    /// Reads the keys.
    ///
    /// # Errors
    /// The error names the source and the problem, for example a file that other users may read.
    pub(crate) fn read(&self) -> Result<SigningKeySet, CommandError> {
        let text = match self {
            KeySource::File(path) => read_file(path).map_err(|why| self.refused(&why))?,
            KeySource::Environment => {
                let text = std::env::var(KEY_VARIABLE);
                text.map_err(|_| self.refused("it isn't set"))?
            }
        };
        SigningKeySet::parse(&text).map_err(|why| self.refused(&why.to_string()))
    }

    /// Returns the metadata of the key file. `None` for the environment, or if there is no such
    /// file.
    pub(super) fn stamp(&self) -> Option<KeyFileStamp> {
        let KeySource::File(path) = self else {
            return None;
        };
        let metadata = path.metadata().ok()?;
        Some(KeyFileStamp {
            modified: metadata.modified().ok(),
            bytes: metadata.len(),
            inode: metadata.ino(),
        })
    }

    pub(super) fn refused(&self, why: &str) -> CommandError {
        let place = match self {
            KeySource::File(path) => format!("the key file `{}`", path.display()),
            KeySource::Environment => format!("the environment variable {KEY_VARIABLE}"),
        };
        let hint = match (self, why.ends_with(READABLE)) {
            (KeySource::File(path), true) => format!("run `chmod 600 {}`", path.display()),
            _ => "`crawl identity new --signature-key FILE` creates a key".to_owned(),
        };
        CommandError::usage(format!("can't use {place}: {why}"))
            .hint(hint)
            .about("signature-key")
    }
}

/// The end of the error message about a key file that is not private.
const READABLE: &str = "other users may read it";

fn read_file(path: &Path) -> Result<String, String> {
    let words = |why: std::io::Error| why.to_string();
    // Open without blocking, because opening a pipe without a writer would block.
    let file = File::options()
        .read(true)
        .custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits())
        .open(path)
        .map_err(words)?;
    let metadata = file.metadata().map_err(words)?;
    if !metadata.is_file() {
        return Err("it isn't a regular file".to_owned());
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(format!(
            "its mode is {:o}, so {READABLE}",
            metadata.mode() & 0o777
        ));
    }
    let mut bytes = Vec::new();
    let read = file.take(MAX_KEY_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(words)?;
    if bytes.len() as u64 > MAX_KEY_BYTES {
        return Err(format!("it is larger than {MAX_KEY_BYTES} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it isn't UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::KeySource;

    #[test]
    fn a_key_file_that_others_may_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bot.key");
        let mut keys = crawl_identity::SigningKeySet::default();
        keys.add([1; 32], None).unwrap();
        fs::write(&path, keys.to_private_json()).unwrap();
        let source = KeySource::of(&path);
        for (mode, is_private) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            match source.read() {
                Ok(read) => assert!(is_private && read.public() == keys.public()),
                Err(refusal) => {
                    assert!(!is_private, "{refusal:?}");
                    assert!(refusal.message.contains(&format!("its mode is {mode:o}")));
                    assert!(refusal.hint.unwrap().starts_with("run `chmod 600 "));
                }
            }
        }
    }

    #[test]
    fn a_refused_key_is_not_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bot.key");
        fs::write(&path, r#"{"kty":"OKP","crv":"Ed25519","d":"very-secret"}"#).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let refusal = KeySource::of(&path).read().unwrap_err();
        assert!(
            refusal
                .message
                .ends_with("key 1: `d` isn't 32 bytes in base64url")
        );
        assert!(!format!("{refusal:?}").contains("very-secret"));
    }
}
