//! A type of documents, or all types of a kind: `text/html`, `image/*`.

use std::fmt;
use std::str::FromStr;

use crawl_scope::MediaRange;

use super::ValueParseError;
use super::text_serde::as_string;

/// A type of documents to keep, or a range of types such as `image/*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MediaTypePattern(pub(crate) MediaRange);

impl FromStr for MediaTypePattern {
    type Err = ValueParseError;

    fn from_str(text: &str) -> Result<MediaTypePattern, ValueParseError> {
        let range = text.parse();
        let example = "it looks like `text/html` or `image/*`";
        range
            .map(MediaTypePattern)
            .map_err(|why| ValueParseError::new(format!("{why}: {example}")))
    }
}

impl fmt::Display for MediaTypePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

as_string!(MediaTypePattern);
