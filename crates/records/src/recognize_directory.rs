//! Recognizes the directory of a crawl, and reads its `crawl.toml`.

use std::path::Path;

use crawl_archive::{MAX_CONFIG_BYTES, read_text};
use toml::{Table, Value};

use crate::error::RecordsError;

/// Reads the `crawl.toml` of a directory. Empty if the file is missing or can't be read.
#[must_use]
pub fn stored_settings(dir: &Path) -> Table {
    let text = read_text(&dir.join("crawl.toml"), MAX_CONFIG_BYTES);
    text.unwrap_or_default().parse().unwrap_or_default()
}

/// Returns why a crawl keeps no archive, according to its `crawl.toml`. `None` if it should have one.
#[must_use]
pub fn why_without_archive(dir: &Path) -> Option<&'static str> {
    let settings = stored_settings(dir);
    let text = |table: &str, key: &str| settings.get(table)?.get(key)?.as_str();
    if text("crawl", "replay-of").is_some() {
        return Some("a replay keeps none");
    }
    (text("output", "warc") == Some("off")).then_some("it ran with --warc off")
}

/// Returns the seeds in a `crawl.toml`, unchanged: a text, or the `url` or `sitemap` of a table.
pub fn seeds_of(settings: &Table) -> impl Iterator<Item = &str> {
    let seeds = settings.get("seed").and_then(Value::as_array);
    seeds.into_iter().flatten().filter_map(|seed| {
        let url = seed.get("url").or(seed.get("sitemap"));
        url.unwrap_or(seed).as_str()
    })
}

/// Returns an error if a directory has none of `files`.
pub(crate) fn holds_any(dir: &Path, files: &[&str]) -> Result<(), RecordsError> {
    match files.iter().any(|file| dir.join(file).is_file()) {
        true => Ok(()),
        false => Err(RecordsError::NoCrawl {
            dir: dir.to_owned(),
        }),
    }
}
