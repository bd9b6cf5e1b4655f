//! `crawl export --to parquet` and `--to csv` write a crawl's records as tables. `--to graph`
//! writes its links as a graph.

use std::path::Path;

use crawl_archive::{AtomicFileError, AtomicFolder};
use crawl_records::{RoundSelection, counted};
use crawl_tables::{ReadRowCounts, TableFormat, TablesError, WrittenTable, export_extracts};

use crate::cli::args::{ExportArgs, RoundChoice};
use crate::error::records::of_records;
use crate::error::{CommandError, FINISHED, unwritable};
use crate::terminal::note;

/// Writes the tables, and prints how many rows each has.
pub(crate) fn export(args: &ExportArgs, format: TableFormat) -> Result<u8, CommandError> {
    let rounds = rounds(args);
    let (tables, (of_rules, read)) = folder(args, |out| {
        let tables = crawl_tables::export(&args.dir, out, format, rounds)?;
        Ok((tables, export_extracts(&args.dir, out, format, rounds)?))
    })?;
    let of_rules = of_rules.iter().map(|table| {
        let rows = counted(table.rows, "row", "rows");
        format!(", {} {rows}", table.name)
    });
    note(&format!(
        "{} written: {}{}",
        args.out.display(),
        rows(&tables),
        of_rules.collect::<String>()
    ));
    report_defects("extracts", read);
    for table in &tables {
        report_defects(table.name, table.read);
    }
    if tables.iter().all(|table| table.name != "links") {
        note(
            "no table of links: the crawl didn't record links\nhint: crawl with `--links on` to \
              record them",
        );
    }
    Ok(FINISHED)
}

/// Writes the link graph, and prints its size.
pub(crate) fn export_graph(args: &ExportArgs) -> Result<u8, CommandError> {
    let rounds = rounds(args);
    let graph = folder(args, |out| {
        crawl_tables::export_graph(&args.dir, out, rounds)
    })?;
    note(&format!(
        "{} written: {} ({}), {}, {}",
        args.out.display(),
        counted(graph.nodes, "node", "nodes"),
        counted(graph.pages, "page", "pages"),
        counted(graph.edges, "link", "links"),
        counted(graph.host_pairs, "pair of hosts", "pairs of hosts"),
    ));
    report_defects("pages", graph.page_rows);
    report_defects("links", graph.link_rows);
    if graph.without_host > 0 {
        let links = counted(graph.without_host, "link", "links");
        note(&format!(
            "hosts.csv: {links} left out, since one end has no host"
        ));
    }
    if graph.replaced > 0 {
        let characters = counted(graph.replaced, "character", "characters");
        note(&format!(
            "pages.graphml: {characters} not allowed in XML replaced by U+FFFD"
        ));
    }
    Ok(FINISHED)
}

fn rounds(args: &ExportArgs) -> RoundSelection {
    match args.round {
        None => RoundSelection::Last,
        Some(RoundChoice::One(round)) => RoundSelection::UpTo(round),
        Some(RoundChoice::All) => RoundSelection::All,
    }
}

/// Calls `write` with a new folder. The folder appears under its final name only once it is
/// complete.
fn folder<T>(
    args: &ExportArgs,
    write: impl FnOnce(&Path) -> Result<T, TablesError>,
) -> Result<T, CommandError> {
    // An earlier export is not replaced, since the user may have added files to it.
    let is_ours = |_: &_| false;
    let folder =
        AtomicFolder::create(&args.out, is_ours).map_err(|error| of_folder(error, args))?;
    let written = write(folder.beside()).map_err(|error| of_tables(error, args))?;
    folder.finish().map_err(|error| of_folder(error, args))?;
    Ok(written)
}

/// Formats row counts as `pages 1,024 rows, hosts 1 row`.
fn rows(tables: &[WrittenTable]) -> String {
    let count = |table: &WrittenTable| {
        let rows = counted(table.rows, "row", "rows");
        format!("{} {rows}", table.name)
    };
    tables.iter().map(count).collect::<Vec<_>>().join(", ")
}

fn report_defects(name: &str, read: ReadRowCounts) {
    if read.bad_lines > 0 {
        let lines = counted(read.bad_lines, "bad line", "bad lines");
        note(&format!("{name}.jsonl: {lines} skipped"));
    }
    if read.is_torn {
        note(&format!("{name}.jsonl: incomplete last line skipped"));
    }
}

pub(super) fn of_folder(error: AtomicFileError, args: &ExportArgs) -> CommandError {
    match error {
        AtomicFileError::Write { source, .. } => unwritable(&args.out, &source),
        error => CommandError::usage(error.to_string()).hint("choose a new or empty folder"),
    }
}

pub(super) fn of_tables(error: TablesError, args: &ExportArgs) -> CommandError {
    match error {
        TablesError::Records(error) => of_records(error),
        error @ TablesError::NoLinks { .. } => CommandError::usage(error.to_string())
            .hint("only crawls started with `--links on` have a graph"),
        TablesError::Write { source, .. } => unwritable(&args.out, &source),
        error => CommandError::disk(error.to_string()),
    }
}
