//! Paths as users give them, of whatever bytes.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};

/// A path as the system has it, of whatever bytes; empty where none is given. In files of settings
/// it is text, and what is no UTF-8 is replaced there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct FilePath(pub(crate) PathBuf);

impl FilePath {
    /// Returns whether none is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_os_str().is_empty()
    }
}

impl From<OsString> for FilePath {
    fn from(path: OsString) -> FilePath {
        FilePath(path.into())
    }
}

impl Serialize for FilePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.display())
    }
}
