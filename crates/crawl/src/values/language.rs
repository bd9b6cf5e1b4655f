//! Languages of pages, such as `de` or `de-AT`.

use std::fmt;
use std::str::FromStr;

use crawl_scope::LanguageRange;

use super::BadValue;
use super::text_serde::as_string;

/// A language of pages to keep, such as `de`, which includes `de-AT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Language(pub(crate) LanguageRange);

impl FromStr for Language {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Language, BadValue> {
        let range = text.parse();
        let example = "it looks like `de` or `de-AT`";
        range
            .map(Language)
            .map_err(|why| BadValue::new(format!("{why}: {example}")))
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

as_string!(Language);
