//! `crawl export --to parquet` and `--to csv`: the records of a crawl as tables.

use crawl_index::export::{ExportError, NewFolder};
use crawl_records::counted;
use crawl_tables::{Format, TablesError, WrittenTable};

use crate::cli::args::ExportArgs;
use crate::error::records::of_records;
use crate::error::{CommandError, FINISHED, unwritable};
use crate::terminal::note;

/// Writes the tables into a folder that appears whole or not at all.
pub(crate) fn export(args: &ExportArgs, format: Format) -> Result<u8, CommandError> {
    // An earlier export is not replaced: there may be a study's own files in it.
    let is_ours = |_: &_| false;
    let folder = NewFolder::create(&args.out, is_ours).map_err(|error| of_folder(error, args))?;
    let tables = crawl_tables::export(&args.dir, folder.beside(), format);
    let tables = tables.map_err(|error| of_tables(error, args))?;
    folder.finish().map_err(|error| of_folder(error, args))?;
    note(&format!(
        "{} written: {}",
        args.out.display(),
        rows(&tables)
    ));
    for table in &tables {
        tell_defects(table);
    }
    if tables.iter().all(|table| table.name != "links") {
        note("no table of links: the crawl kept none (`--links on` keeps them)");
    }
    Ok(FINISHED)
}

/// `pages 1,024 rows, hosts 1 row ..`.
fn rows(tables: &[WrittenTable]) -> String {
    let told = |table: &WrittenTable| {
        let rows = counted(table.rows, "row", "rows");
        format!("{} {rows}", table.name)
    };
    tables.iter().map(told).collect::<Vec<_>>().join(", ")
}

fn tell_defects(table: &WrittenTable) {
    let name = table.name;
    if table.bad_lines > 0 {
        let lines = counted(table.bad_lines, "bad line", "bad lines");
        note(&format!("{name}.jsonl: {lines} left out"));
    }
    if table.is_torn {
        note(&format!(
            "{name}.jsonl: the last line has no end, and is left out"
        ));
    }
}

fn of_folder(error: ExportError, args: &ExportArgs) -> CommandError {
    match error {
        ExportError::Write { source, .. } => unwritable(&args.out, &source),
        error => CommandError::usage(error.to_string())
            .hint("name a folder that does not exist yet, or an empty one"),
    }
}

fn of_tables(error: TablesError, args: &ExportArgs) -> CommandError {
    match error {
        TablesError::Records(error) => of_records(error),
        TablesError::Write { source, .. } => unwritable(&args.out, &source),
        error => CommandError::disk(error.to_string()),
    }
}
