//! An entry of a list of hosts: a name, an address, or a file of hosts.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crawl_weburl::HostPatternMap;

use super::ValueParseError;
use super::text_serde::as_string;

/// An entry of a list of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostListEntry {
    /// A host: its name or address, and on loopback also its port.
    Host(String),
    /// `@FILE`: a file that lists hosts.
    File(PathBuf),
}

impl FromStr for HostListEntry {
    type Err = ValueParseError;

    fn from_str(text: &str) -> Result<HostListEntry, ValueParseError> {
        if let Some(file) = text.strip_prefix('@') {
            return Ok(HostListEntry::File(file.into()));
        }
        let mut table = HostPatternMap::default();
        match table.insert(text, ()) {
            Ok(()) => Ok(HostListEntry::Host(text.to_owned())),
            Err(why) => Err(ValueParseError::new(format!(
                "{why}; it looks like `www.example.org`, or `@FILE` for the hosts in a file"
            ))),
        }
    }
}

impl fmt::Display for HostListEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostListEntry::Host(name) => f.write_str(name),
            HostListEntry::File(file) => write!(f, "@{}", file.display()),
        }
    }
}

as_string!(HostListEntry);
