//! A SURT prefix as users write it: `org,example,` or `http://(org,example,www,)/docs/`.

use std::fmt;
use std::str::FromStr;

use crawl_scope::SurtPrefix;

use super::ValueParseError;
use super::text_serde::as_string;

/// A SURT prefix, which adds a part of the web to the scope, e.g. a domain with its subdomains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SurtPrefixSetting(pub(crate) SurtPrefix);

impl FromStr for SurtPrefixSetting {
    type Err = ValueParseError;

    fn from_str(text: &str) -> Result<SurtPrefixSetting, ValueParseError> {
        let prefix = text.parse();
        let example = "it looks like `org,example,` or `org,example,www)/docs/`";
        prefix
            .map(SurtPrefixSetting)
            .map_err(|why| ValueParseError::new(format!("{why}; {example}")))
    }
}

impl fmt::Display for SurtPrefixSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

as_string!(SurtPrefixSetting);
