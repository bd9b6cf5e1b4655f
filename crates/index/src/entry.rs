//! What the source of an index says of one URL.

use serde::{Deserialize, Serialize};

use crate::error::IndexError;
use crate::page::Page;
use crate::writer::IndexWriter;

/// One URL goes into the index, or stays out of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The page stands there from now on, in place of what stood under its URL.
    Put(Box<Page>),
    /// Nothing stands there from now on.
    Drop {
        /// The URL, in canonical form.
        url: String,
        /// Why: a name, and the rule's words where it has some.
        why: String,
    },
}

impl Entry {
    /// The URL that it speaks of.
    #[must_use]
    pub fn url(&self) -> &str {
        match self {
            Entry::Put(page) => &page.url,
            Entry::Drop { url, .. } => url,
        }
    }

    /// The memory that it takes, about. Bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Entry::Put(page) => page.bytes(),
            Entry::Drop { url, why } => url.len() + why.len(),
        }
    }

    /// The name of what keeps the URL out; none where it goes in.
    #[must_use]
    pub fn left_out(&self) -> Option<&str> {
        match self {
            Entry::Put(_) => None,
            Entry::Drop { why, .. } => Some(why.split(':').next().unwrap_or_default()),
        }
    }
}

impl IndexWriter {
    /// Does what an entry says.
    ///
    /// # Errors
    /// The disk.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), IndexError> {
        match entry {
            Entry::Put(page) => self.put(page),
            Entry::Drop { url, .. } => {
                self.drop_url(url);
                Ok(())
            }
        }
    }
}
