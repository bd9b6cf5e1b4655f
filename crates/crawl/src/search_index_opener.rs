//! The search index in a crawl's directory, opened for reading.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use crawl_index::{IndexError, IndexSearcher, IndexedPage, SearchRules};
use crawl_records::IndexPresence;
use crawl_weburl::safe_line;

use crate::error::search_index::of_index;
use crate::error::{CommandError, no_crawl};
use crate::terminal::note;

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
    let index = open(dir)?;
    let rules = resolve_pins(&index, rules, dir)?;
    Ok(index.with_rules(rules))
}

/// Returns `rules` with each pinned page's URL replaced by the one that results show for this page,
/// such as its canonical URL. Warns about pinned pages that are not in the index of the crawl in
/// `dir`. A pinned page is one that the rules put first for a query.
pub(crate) fn resolve_pins(
    index: &IndexSearcher,
    rules: SearchRules,
    dir: &Path,
) -> Result<SearchRules, CommandError> {
    let (rules, missing) = index
        .resolve_pins(rules)
        .map_err(|error| of_index(&error, dir))?;
    for url in &missing {
        note(&format!(
            "warning: the pinned page {} is not in the index; crawl explain shows why",
            safe_line(url)
        ));
    }
    Ok(rules)
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

/// Looks up the entry of a URL in the index. `now` is in seconds since 1970 UTC.
///
/// # Errors
/// If the index is damaged.
pub(crate) fn presence(
    index: &IndexSearcher,
    url: &str,
    now: i64,
) -> Result<IndexPresence, IndexError> {
    let page = index.stored(url)?;
    Ok(page.map_or(IndexPresence::Absent, |page| presence_of(page, now)))
}

fn presence_of(page: IndexedPage, now: i64) -> IndexPresence {
    match (page.same_as, page.until) {
        (_, Some(until)) if until <= now => IndexPresence::Expired { until },
        (Some(by), _) => IndexPresence::Replaced {
            by,
            canonical: page.gives_way_to,
        },
        (None, _) => IndexPresence::Found {
            kept_despite: page.leaving,
            canonical: page.gives_way_to,
        },
    }
}

#[cfg(test)]
mod tests {
    use crawl_index::IndexedPage;
    use crawl_records::IndexPresence;

    use super::presence_of;

    #[test]
    fn the_presence_of_a_page_has_its_reason() {
        let some = |text: &str| Some(text.to_owned());
        let indexed = IndexedPage::default();
        let soft_404 = IndexedPage {
            leaving: some("soft_404"),
            ..indexed.clone()
        };
        let lead = IndexedPage {
            gives_way_to: some("http://e.example/gone"),
            ..indexed.clone()
        };
        let replaced = IndexedPage {
            same_as: some("http://e.example/twin"),
            ..indexed.clone()
        };
        let expired = IndexedPage {
            until: Some(9),
            ..indexed.clone()
        };
        let presence = |kept_despite, canonical| IndexPresence::Found {
            kept_despite,
            canonical,
        };
        for (page, expected) in [
            (indexed, presence(None, None)),
            (soft_404, presence(some("soft_404"), None)),
            (lead, presence(None, some("http://e.example/gone"))),
            (
                replaced,
                IndexPresence::Replaced {
                    by: "http://e.example/twin".to_owned(),
                    canonical: None,
                },
            ),
            (expired.clone(), IndexPresence::Expired { until: 9 }),
        ] {
            assert_eq!(presence_of(page, 9), expected);
        }
        assert_eq!(presence_of(expired, 8), presence(None, None));
    }
}
