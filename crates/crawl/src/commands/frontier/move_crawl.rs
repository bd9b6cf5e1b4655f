//! `crawl frontier import` and `crawl frontier export`: move a crawl from its directory into a
//! shared frontier and back into a directory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crawl_archive::{AtomicFolder, FilesToRehash, write_digests};
use crawl_engine::{
    GatheredWorkerDirectory, MovedRecordCounts, SharedFrontierImportTarget, export, import,
};
use crawl_frontier::worker_frontier::OutgoingCrawl as _;
use crawl_gather::GatherPurpose;
use crawl_shared_frontier::{CrawlExporter, ImportTargetSettings as DatabaseTarget};
use serde_json::{Value, json};

use super::place_of_crawl;
use crate::cli::args::FrontierPlaceArgs;
use crate::commands::forget;
use crate::commands::gather::{of_folder, of_gather, put_in_place};
use crate::error::engine::{of_crawl, of_engine};
use crate::error::shared_frontier::of_shared;
use crate::error::{CommandError, quoted, unwritable};
use crate::settings::{UserFolders, check_name, gathered_with_mark};
use crate::shared_frontier::credentials;
use crate::terminal::{note, print};

/// The row file of excluded URLs. When a run ends, each worker also appends the URLs that may still
/// become fetchable, such as those over a budget. These last rows belong to no commit. An export
/// doesn't copy them, because the continued crawl writes them again.
const EXCLUDED: &str = "excluded.jsonl";
/// The file with the settings of a crawl.
const CONFIG: &str = "crawl.toml";

pub(super) fn import_crawl(
    dir: &Path,
    worker: &str,
    args: &FrontierPlaceArgs,
    as_json: bool,
) -> Result<u8, CommandError> {
    let (urls, crawl) = place_of_crawl(args)?;
    let [url] = urls.as_slice() else {
        return Err(CommandError::usage(format!(
            "can't import a crawl into {} server groups at once",
            urls.len()
        ))
        .hint(
            "give a single --frontier URL; the other groups join once workers start with all URLs, \
             then `crawl frontier move` moves hosts there",
        ));
    };
    let url = url.clone();
    check_name("crawl", &crawl)?;
    check_name("worker", worker)?;
    let place = DatabaseTarget {
        url,
        credentials: credentials(),
        crawl: crawl.clone(),
    };
    let target = SharedFrontierImportTarget {
        frontier: &place,
        crawl: crawl.clone(),
        worker: worker.to_owned(),
    };
    forget::finish_interrupted_and_rebuild(dir)?;
    let imported = import(dir, &target).map_err(|error| of_engine(&error, dir))?;
    let mut counts = object(&imported.moved, &crawl);
    counts["worker"] = json!(worker);
    let code = print_counts(&imported.moved, &crawl, as_json.then_some(counts))?;
    note(&format!(
        "`{}` is now the directory of worker `{worker}`; its former store is in {}",
        dir.display(),
        imported.own_frontier.display()
    ));
    note(&format!(
        "continue with its settings and --output {} --frontier URL --crawl {crawl} --worker \
         {worker}",
        quoted(dir)
    ));
    Ok(code)
}

/// Creates one crawl directory from the directories of all workers and their shared frontier. The
/// new directory appears complete or not at all. Once it exists, no worker can continue the crawl.
pub(super) fn export_crawl(
    dirs: &[PathBuf],
    output: &Path,
    args: &FrontierPlaceArgs,
    as_json: bool,
) -> Result<u8, CommandError> {
    let (urls, crawl) = place_of_crawl(args)?;
    let folder = AtomicFolder::create(output, |_| false);
    let folder = folder.map_err(|error| of_folder(&error, output))?;
    let whole = std::path::absolute(output).map_err(|why| unwritable(output, &why))?;
    let to = whole.display().to_string();
    let source = CrawlExporter::begin(&urls, &credentials(), &crawl, &to);
    let source = source.map_err(|why| of_shared(&why))?;
    let workers = source.workers().iter();
    let excluded = workers.map(|worker| {
        let committed = worker.marks.get(EXCLUDED).copied();
        (worker.name.clone(), committed.unwrap_or(0))
    });
    let excluded: BTreeMap<String, u64> = excluded.collect();
    let purpose = GatherPurpose::GoingOn {
        excluded: &excluded,
    };
    let gathered = crawl_gather::gather(dirs, folder.beside(), &purpose);
    let gathered = gathered.map_err(|error| of_gather(error, output))?;
    let has_mark = mark_config(dirs, folder.beside(), output)?;
    let named = gathered.workers.into_iter().zip(dirs);
    let named: Vec<GatheredWorkerDirectory> = named
        .map(|(worker, dir)| GatheredWorkerDirectory {
            name: worker.worker,
            pages: worker.pages,
            dir: dir.clone(),
        })
        .collect();
    let moved = export(folder.beside(), &source, &named);
    let moved = moved.map_err(|error| of_crawl(&error, output))?;
    // From here on no worker can continue the crawl. If the process crashes before the directory is
    // in place, running the same command again creates it.
    source.finish().map_err(|why| of_shared(&why))?;
    if let Err(why) = put_in_place(folder, output) {
        source.take_back().map_err(|why| of_shared(&why))?;
        return Err(why);
    }
    let mut counts = object(&moved, &crawl);
    counts["output"] = json!(output);
    let code = print_counts(&moved, &crawl, as_json.then_some(counts))?;
    note(&format!(
        "`{}` now contains the crawl, and workers can no longer continue it",
        output.display()
    ));
    let settings = match has_mark {
        true => String::new(),
        // Without a mark, the next run doesn't know whether the settings are this user's, so the
        // user has to accept them with --config.
        false => format!(" --config {}", quoted(&output.join(CONFIG))),
    };
    note(&format!(
        "continue with `crawl --output {}{settings}`; the directories of the workers are no longer \
         needed",
        quoted(output)
    ));
    Ok(code)
}

/// Marks the crawl.toml in `made` as this user's own file if the crawl.toml of every worker has
/// this user's mark. Otherwise leaves it unmarked, and the user has to accept its settings with
/// `--config`. `made` is the temporary directory that becomes `output`. Returns whether the file
/// was marked.
fn mark_config(dirs: &[PathBuf], made: &Path, output: &Path) -> Result<bool, CommandError> {
    let Some(text) = gathered_with_mark(dirs, made, output, &UserFolders::of_process())? else {
        return Ok(false);
    };
    let path = made.join(CONFIG);
    let written = fs::write(&path, text)
        .and_then(|()| File::open(&path)?.sync_all())
        .and_then(|()| write_digests(made, FilesToRehash::Named(&[CONFIG])));
    written.map_err(|why| unwritable(output, &why))?;
    Ok(true)
}

fn object(moved: &MovedRecordCounts, crawl: &str) -> Value {
    let states = moved.states;
    json!({
        "crawl": crawl,
        "pending": states.pending,
        "deferred": states.deferred,
        "fetched": states.fetched,
        "failed": states.failed,
        "excluded": states.excluded,
        "hosts": moved.hosts,
        "robots": moved.robots,
        "visits": moved.visits,
    })
}

/// Prints the counts of a moved crawl: as `json` if given, otherwise as text.
fn print_counts(
    moved: &MovedRecordCounts,
    crawl: &str,
    json: Option<Value>,
) -> Result<u8, CommandError> {
    let states = moved.states;
    let text = match json {
        Some(json) => format!("{json:#}\n"),
        None => format!(
            "crawl {crawl}\n  urls:   {} pending, {} fetched, {} failed, {} excluded, {} put aside\n  \
             hosts:  {}, with {} copies of robots.txt\n  visits: {}\n",
            states.pending,
            states.fetched,
            states.failed,
            states.excluded,
            states.deferred,
            moved.hosts,
            moved.robots,
            moved.visits
        ),
    };
    print(text.as_bytes())
}
