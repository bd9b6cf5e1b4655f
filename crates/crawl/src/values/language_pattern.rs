//! Languages of pages, such as `de` or `de-AT`.

use std::fmt;
use std::str::FromStr;

use crawl_scope::LanguageRange;

use super::ValueParseError;
use super::text_serde::as_string;

/// A language whose pages are kept. `de` includes `de-AT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LanguagePattern(pub(crate) LanguageRange);

impl FromStr for LanguagePattern {
    type Err = ValueParseError;

    fn from_str(text: &str) -> Result<LanguagePattern, ValueParseError> {
        let range = text.parse();
        let example = "it looks like `de` or `de-AT`";
        range
            .map(LanguagePattern)
            .map_err(|why| ValueParseError::new(format!("{why}: {example}")))
    }
}

impl fmt::Display for LanguagePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

as_string!(LanguagePattern);
