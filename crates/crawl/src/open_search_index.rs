//! The search index in a crawl's directory, opened for reading.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use crawl_index::{IndexSearcher, SearchRules};

use crate::error::search_index::of_index;
use crate::error::{CommandError, no_crawl};

/// The index folder in a crawl's directory.
const FOLDER: &str = "index";
/// Maximum bytes of a file of search rules.
/// Beyond the limit: refused.
const MAX_RULES_BYTES: u64 = 4 << 20;

/// Opens the index of the crawl in `dir`. Searches apply the rules in the file `rules`, if given.
pub(crate) fn open_with_rules(
    dir: &Path,
    rules: Option<&Path>,
) -> Result<IndexSearcher, CommandError> {
    let rules = self::rules(rules)?;
    Ok(open(dir)?.with_rules(rules))
}

/// Reads the search rules from a file. Without a file there are no rules.
pub(crate) fn rules(path: Option<&Path>) -> Result<SearchRules, CommandError> {
    Ok(path.map(read_rules).transpose()?.unwrap_or_default())
}

fn read_rules(path: &Path) -> Result<SearchRules, CommandError> {
    let name = path.display();
    let read = fs::File::open(path).and_then(|file| {
        let mut text = String::new();
        file.take(MAX_RULES_BYTES + 1).read_to_string(&mut text)?;
        match text.len() as u64 > MAX_RULES_BYTES {
            true => Err(io::Error::other(format!(
                "longer than {MAX_RULES_BYTES} bytes"
            ))),
            false => Ok(text),
        }
    });
    let text = read.map_err(|error| {
        CommandError::usage(format!("can't read --search-rules {name}: {error}")).hint(
            "give a TOML file with `synonyms` and `[[pins]]`, such as the example in \
                   docs/search.md",
        )
    })?;
    SearchRules::parse(&text).map_err(|why| {
        CommandError::usage(format!("--search-rules {name}: {why}"))
            .hint("docs/search.md has an example")
    })
}

fn is_crawl(dir: &Path) -> bool {
    dir.join("pages.jsonl").exists() || dir.join("state").exists()
}

/// Opens the index of the crawl in `dir`. `None` if the crawl has no index.
pub(crate) fn open_if_any(dir: &Path) -> Result<Option<IndexSearcher>, CommandError> {
    match is_crawl(dir) && !dir.join(FOLDER).exists() {
        true => Ok(None),
        false => open(dir).map(Some),
    }
}

/// Opens the index of the crawl in `dir`.
pub(crate) fn open(dir: &Path) -> Result<IndexSearcher, CommandError> {
    let folder = dir.join(FOLDER);
    if !is_crawl(dir) && !folder.exists() {
        return Err(no_crawl(dir));
    }
    IndexSearcher::open(&folder).map_err(|error| of_index(&error, dir))
}
