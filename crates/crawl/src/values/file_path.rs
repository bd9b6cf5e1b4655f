//! Paths as users give them, which may have any bytes.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};

/// A path with any bytes; empty if none is given. In settings files it is text, with invalid UTF-8
/// replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct FilePath(pub(crate) PathBuf);

impl FilePath {
    /// Returns whether no path is given.
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
