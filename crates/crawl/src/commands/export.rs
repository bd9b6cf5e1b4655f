//! `crawl export`: the pages of a crawl's index for other searches, its records as tables, its links
//! as a graph, its archive as one file, and all of it as a bundle.

use std::ffi::OsStr;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crawl_index::export::{
    Bundle, ExportError, Exported, NewFile, meilisearch, meilisearch_settings, opensearch,
    opensearch_mapping,
};
use crawl_index::{SearchIndex, SearchRules};
use crawl_records::{ArchivedPages, counted};
#[cfg(feature = "tables")]
use crawl_tables::Format;

use crate::cli::args::{ExportArgs, ExportFormat, RoundChoice};
use crate::clock;
#[cfg(feature = "tables")]
use crate::commands::{bundle, tables};
use crate::commands::{site_files, wacz};
use crate::error::index::of_index;
#[cfg(not(feature = "tables"))]
use crate::error::left_out;
use crate::error::records::of_records;
use crate::error::{CommandError, FINISHED, unwritable};
use crate::search_index;
use crate::terminal::note;

/// Runs `crawl export`.
pub(crate) fn run(args: &ExportArgs) -> Result<u8, CommandError> {
    let has_rounds = matches!(
        args.to,
        ExportFormat::Wacz | ExportFormat::Parquet | ExportFormat::Csv | ExportFormat::Graph
    );
    if args.round.is_some() && !has_rounds {
        return Err(
            CommandError::usage("--round is for wacz, parquet, csv and graph alone")
                .hint("leave it out: the other formats hold the last state of each page"),
        );
    }
    let of_one_round = matches!(args.round, Some(RoundChoice::One(_)));
    if !args.earlier.is_empty() && (args.to != ExportFormat::Wacz || !of_one_round) {
        return Err(
            CommandError::usage("--earlier is for one round as wacz alone")
                .hint("name the round with `--to wacz --round N`, or leave out --earlier"),
        );
    }
    if args.search_rules.is_some() && args.to != ExportFormat::Static {
        return Err(CommandError::usage("--search-rules is for static alone")
            .hint("leave it out: only a static search answers queries"));
    }
    let to_stdout = args.out.as_os_str() == "-";
    let folder = match args.to {
        ExportFormat::Static => Some("search"),
        ExportFormat::Parquet | ExportFormat::Csv => Some("tables"),
        ExportFormat::Graph => Some("graph"),
        ExportFormat::Bundle => Some("bundle"),
        ExportFormat::Markdown => Some("markdown"),
        ExportFormat::Sitemap => Some("sitemap"),
        ExportFormat::Opensearch
        | ExportFormat::Meilisearch
        | ExportFormat::LlmsTxt
        | ExportFormat::Wacz => None,
    };
    if let Some(folder) = folder.filter(|_| to_stdout) {
        return Err(
            CommandError::usage("what is written is a folder, not a stream")
                .hint(format!("name the folder: `--out {folder}`")),
        );
    }
    match args.to {
        #[cfg(feature = "tables")]
        ExportFormat::Parquet => return tables::export(args, Format::Parquet),
        #[cfg(feature = "tables")]
        ExportFormat::Csv => return tables::export(args, Format::Csv),
        #[cfg(feature = "tables")]
        ExportFormat::Graph => return tables::export_graph(args),
        #[cfg(feature = "tables")]
        ExportFormat::Bundle => return bundle::export(args),
        #[cfg(not(feature = "tables"))]
        ExportFormat::Parquet | ExportFormat::Csv | ExportFormat::Graph | ExportFormat::Bundle => {
            return Err(left_out("this format of crawl export", "tables"));
        }
        ExportFormat::Wacz => return wacz::export(args),
        _ => {}
    }
    if args.dirs.len() > 1 {
        return Err(CommandError::usage("several directories have no search index in common")
            .hint("make one directory of them, `crawl gather DIR .. --output ALL`, then `crawl index ALL`, and export that"));
    }
    let rules = search_index::rules(args.search_rules.as_deref())?;
    let index = search_index::open(&args.dir)?;
    let now = clock::now().as_second();
    let said = match args.to {
        ExportFormat::Markdown | ExportFormat::LlmsTxt | ExportFormat::Sitemap => {
            let archived = ArchivedPages::open(&args.dir).map_err(of_records)?;
            site_files::export(args, &index, &archived, now)
        }
        ExportFormat::Static => search_page(&index, &args.out, now, rules),
        _ if to_stdout => stream(args.to, &index, now),
        _ => file(args.to, &index, &args.out, now),
    };
    match said {
        Ok(said) => {
            note(&said);
            Ok(FINISHED)
        }
        // Whoever reads our output has read enough.
        Err(ExportError::Stream(why)) if why.kind() == ErrorKind::BrokenPipe => Ok(FINISHED),
        Err(error) => Err(refusal(&error, args)),
    }
}

fn search_page(
    index: &SearchIndex,
    out: &Path,
    now: i64,
    rules: SearchRules,
) -> Result<String, ExportError> {
    let mut bundle = Bundle::create(out, now)?.with_rules(rules);
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

fn stream(format: ExportFormat, index: &SearchIndex, now: i64) -> Result<String, ExportError> {
    let stdout = BufWriter::new(io::stdout().lock());
    let (_, done) = lines(format, index, stdout, now)?;
    Ok(format!("{} written", counted(done.pages, "page", "pages")))
}

/// The lines, and beside them what the index that takes them has to know.
fn file(
    format: ExportFormat,
    index: &SearchIndex,
    out: &Path,
    now: i64,
) -> Result<String, ExportError> {
    let (settings, ending) = match format {
        ExportFormat::Opensearch => (opensearch_mapping(), "mapping.json"),
        _ => (meilisearch_settings(), "settings.json"),
    };
    let (written, done) = lines(format, index, NewFile::create(out)?, now)?;
    let beside = beside(out, ending);
    let mut settings_file = NewFile::create(&beside)?;
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
    index: &SearchIndex,
    out: W,
    now: i64,
) -> Result<(W, Exported), ExportError> {
    let mut sink = match format {
        ExportFormat::Meilisearch => meilisearch(out, now),
        _ => opensearch(out, now),
    };
    index.each_page(|page| sink.page(&page))?;
    sink.finish()
}

/// `pages.mapping.json` beside `pages.ndjson`.
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
        ExportError::Occupied { .. } => CommandError::usage(error.to_string())
            .hint("name a folder that does not exist yet, an empty one, or an earlier bundle"),
        ExportError::Write { source, .. } => unwritable(&args.out, source),
        _ => CommandError::disk(error.to_string()),
    }
}
