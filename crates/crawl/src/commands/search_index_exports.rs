//! `crawl export` of the pages in a crawl's search index.

use std::ffi::OsStr;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crawl_archive::{AtomicFile, AtomicFileError};
use crawl_index::export::{
    DocumentExportReport, ExportError, StaticSearchWriter, meilisearch, meilisearch_settings,
    opensearch, opensearch_mapping,
};
use crawl_index::{IndexSearcher, SearchRules};
use crawl_records::counted;

use crate::cli::args::{ExportArgs, ExportFormat};
use crate::clock;
use crate::commands::markdown_and_sitemap_exports::{self, ArchivedPagesAndRedirects};
use crate::error::records::of_records;
use crate::error::search_index::of_index;
use crate::error::{CommandError, FINISHED, unwritable};
use crate::search_index_opener;
use crate::terminal::note;

/// Exports the indexed pages. The format in `args` must be one that uses the index.
pub(super) fn run(args: &ExportArgs) -> Result<u8, CommandError> {
    let to_stdout = args.out.as_os_str() == "-";
    if args.dirs.len() > 1 {
        return Err(CommandError::usage(
            "can't export several directories: they have no common \
                                        search index",
        )
        .hint(
            "merge them with `crawl gather DIR .. --output ALL`, run `crawl index ALL`, and \
                   export ALL",
        ));
    }
    let rules = search_index_opener::rules(args.search_rules.as_deref())?;
    let index = search_index_opener::open(&args.dir)?;
    let rules = search_index_opener::resolve_pins(&index, rules, &args.dir)?;
    let now = clock::now().as_second();
    let outcome = match args.to {
        ExportFormat::Markdown | ExportFormat::LlmsTxt | ExportFormat::Sitemap => {
            let fetched =
                ArchivedPagesAndRedirects::open(&args.dir, args.to).map_err(of_records)?;
            markdown_and_sitemap_exports::export(args, &index, fetched, now)
        }
        ExportFormat::Static => search_page(&index, &args.out, now, rules),
        _ if to_stdout => stream(args.to, &index, now),
        _ => file(args.to, &index, &args.out, now),
    };
    match outcome {
        Ok(summary) => {
            note(&summary);
            Ok(FINISHED)
        }
        // The program that reads stdout has closed the pipe, which isn't an error.
        Err(ExportError::Stream(why)) if why.kind() == ErrorKind::BrokenPipe => Ok(FINISHED),
        Err(error) => Err(refusal(&error, args)),
    }
}

fn search_page(
    index: &IndexSearcher,
    out: &Path,
    now: i64,
    rules: SearchRules,
) -> Result<String, ExportError> {
    let mut bundle = StaticSearchWriter::create(out, now)?.with_rules(rules);
    index.each_page(|page| bundle.page(&page))?;
    let done = bundle.finish()?;
    Ok(format!(
        "{} written: {} in {}, {} a page",
        out.display(),
        counted(done.pages, "page", "pages"),
        counted(done.files, "file", "files"),
        counted(done.bytes / done.pages.max(1), "byte", "bytes")
    ))
}

fn stream(format: ExportFormat, index: &IndexSearcher, now: i64) -> Result<String, ExportError> {
    let stdout = BufWriter::new(io::stdout().lock());
    let (_, done) = lines(format, index, stdout, now)?;
    Ok(format!("{} written", counted(done.pages, "page", "pages")))
}

/// Writes the pages to a file, and a second file with settings for the search engine that imports
/// the pages.
fn file(
    format: ExportFormat,
    index: &IndexSearcher,
    out: &Path,
    now: i64,
) -> Result<String, ExportError> {
    let (settings, ending) = match format {
        ExportFormat::Opensearch => (opensearch_mapping(), "mapping.json"),
        _ => (meilisearch_settings(), "settings.json"),
    };
    let (written, done) = lines(format, index, AtomicFile::create(out)?, now)?;
    let beside = beside(out, ending);
    let mut settings_file = AtomicFile::create(&beside)?;
    writeln!(settings_file, "{settings:#}").map_err(ExportError::Stream)?;
    settings_file.finish()?;
    written.finish()?;
    Ok(format!(
        "{} written: {}, {}; {}",
        out.display(),
        counted(done.pages, "page", "pages"),
        counted(done.records, "record", "records"),
        beside.display()
    ))
}

fn lines<W: Write>(
    format: ExportFormat,
    index: &IndexSearcher,
    out: W,
    now: i64,
) -> Result<(W, DocumentExportReport), ExportError> {
    let mut sink = match format {
        ExportFormat::Meilisearch => meilisearch(out, now),
        _ => opensearch(out, now),
    };
    index.each_page(|page| sink.page(&page))?;
    sink.finish()
}

/// Returns the path of the settings file next to `out`, such as `pages.mapping.json` for
/// `pages.ndjson`.
fn beside(out: &Path, ending: &str) -> PathBuf {
    let mut name = out
        .file_stem()
        .unwrap_or_else(|| OsStr::new("pages"))
        .to_os_string();
    name.push(".");
    name.push(ending);
    out.with_file_name(name)
}

fn refusal(error: &ExportError, args: &ExportArgs) -> CommandError {
    match error {
        ExportError::Index(error) => of_index(error, &args.dir),
        ExportError::File(AtomicFileError::Occupied { .. }) => {
            CommandError::usage(error.to_string()).hint(match args.to {
                ExportFormat::Static => "choose a new folder, an empty one, or an earlier export",
                _ => "choose a new or empty folder",
            })
        }
        ExportError::File(AtomicFileError::Write { source, .. }) => unwritable(&args.out, source),
        _ => CommandError::disk(error.to_string()),
    }
}
