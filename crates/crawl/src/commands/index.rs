//! `crawl index`: rebuilds a crawl's search index from its archive.

use std::path::Path;

use crawl_archive::FilesToRehash;
use crawl_engine::{EngineError, IndexRebuildResult, IndexRebuildSettings, reindex};
use crawl_fetcher::Secrets;
use crawl_policy::ProductToken;
use crawl_records::{list_digests, stored_settings};

use crate::cli::args::IndexArgs;
use crate::error::engine::of_engine;
use crate::error::records::{no_archive, of_records};
use crate::error::{CommandError, FINISHED, INTERRUPTED, no_crawl};
use crate::run::while_reading;
use crate::settings::{ProfileName, default_of, document_rules};
use crate::terminal::{index_counts, note, print_json};

pub(crate) fn run(args: &IndexArgs) -> Result<u8, CommandError> {
    let Some(done) = build(args)? else {
        note("interrupted; the index was not changed");
        return Ok(INTERRUPTED);
    };
    list_digests(&args.dir, FilesToRehash::Named(&["index", "state"])).map_err(of_records)?;
    if args.json {
        return print_json(&serde_json::json!({
            "pages": done.pages,
            "duplicates": done.duplicates,
            "left_out": done.left_out,
            "canonical_elsewhere": done.canonical_elsewhere,
        }));
    }
    note(&format!(
        "index: {}",
        index_counts(
            Some(done.pages),
            done.duplicates,
            &done.left_out,
            done.canonical_elsewhere
        )
    ));
    let stored = stored_settings(&args.dir);
    if args.index_types.is_some()
        && document_rules(&stored, args.index_types.as_ref()).ok()
            != document_rules(&stored, None).ok()
    {
        note(
            "the next run of the crawl indexes the types in crawl.toml again; pass --index-types \
             to that run too",
        );
    }
    Ok(FINISHED)
}

/// Rebuilds the index of a crawl. `None` if interrupted.
pub(super) fn build(args: &IndexArgs) -> Result<Option<IndexRebuildResult>, CommandError> {
    let dir = args.dir.as_path();
    let rules = rules(args)?;
    let done = while_reading(|is_stopped, report| reindex(dir, &rules, is_stopped, report))?;
    let done = done.map_err(|error| refusal(&error, dir))?;
    Ok(Some(done).filter(|done| !done.is_stopped))
}

/// Returns the settings of the rebuild. The document types come from `--index-types`, or else from
/// crawl.toml. The product token and the robots profile come from crawl.toml: they decide which
/// page directives apply to the crawler.
fn rules(args: &IndexArgs) -> Result<IndexRebuildSettings, CommandError> {
    let dir = args.dir.as_path();
    let table = stored_settings(dir);
    let value = |group: &str, key: &str| {
        let value = table.get(group).and_then(|group| group.get(key));
        let value = value.and_then(toml::Value::as_str).map(str::to_owned);
        value.or_else(|| default_of(key)).unwrap_or_default()
    };
    let agent = value("operator", "agent");
    let agent = ProductToken::new(&agent)
        .map_err(|why| CommandError::disk(format!("{}/crawl.toml: {why}", dir.display())))?;
    let profile = toml::Value::String(value("politeness", "robots"));
    let profile: ProfileName = profile
        .try_into()
        .map_err(|why| CommandError::disk(format!("{}/crawl.toml: {why}", dir.display())))?;
    Ok(IndexRebuildSettings {
        documents: document_rules(&table, args.index_types.as_ref())
            .map_err(|why| CommandError::disk(format!("{}/crawl.toml: {why}", dir.display())))?,
        agent,
        profile: profile.meaning(),
        secrets: Secrets::default(),
    })
}

fn refusal(error: &EngineError, dir: &Path) -> CommandError {
    let is_crawl = dir.join("crawl.toml").is_file();
    match error {
        EngineError::NothingToDo { .. }
        | EngineError::NotADirectory { .. }
        | EngineError::OutputForeign { .. }
        | EngineError::BesideCrawl { .. }
        | EngineError::StateMissing { .. }
            if !is_crawl =>
        {
            no_crawl(dir)
        }
        EngineError::NoArchive { .. } => no_archive("build an index", dir)
            .hint("crawl again into another --output, with --index on or --warc on"),
        other => of_engine(other, dir),
    }
}
