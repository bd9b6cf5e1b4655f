//! `crawl export`: passes the command to the exporter of the chosen format (pages of the search
//! index, tables, link graph, WACZ file, mirror or bundle).

#[cfg(feature = "tables")]
use crawl_tables::TableFormat;

use crate::cli::args::{ExportArgs, ExportFormat, RoundChoice};
use crate::commands::archive_exports;
#[cfg(feature = "search")]
use crate::commands::search_index_exports;
#[cfg(feature = "tables")]
use crate::commands::{bundle_export, table_exports};
use crate::error::CommandError;
#[cfg(not(all(feature = "search", feature = "tables")))]
use crate::error::left_out;

pub(crate) fn run(args: &ExportArgs) -> Result<u8, CommandError> {
    let has_rounds = matches!(
        args.to,
        ExportFormat::Wacz | ExportFormat::Parquet | ExportFormat::Csv | ExportFormat::Graph
    );
    if args.round.is_some() && !has_rounds {
        return Err(
            CommandError::usage("--round is only for wacz, parquet, csv and graph")
                .hint("remove it: the other formats have the last state of each page"),
        );
    }
    let of_one_round = matches!(args.round, Some(RoundChoice::One(_)));
    if !args.earlier.is_empty() && (args.to != ExportFormat::Wacz || !of_one_round) {
        return Err(
            CommandError::usage("--earlier is only for a single round as wacz")
                .hint("choose the round with `--to wacz --round N`, or remove --earlier"),
        );
    }
    if args.search_rules.is_some() && args.to != ExportFormat::Static {
        return Err(CommandError::usage("--search-rules is only for static")
            .hint("remove it: only a static search answers queries"));
    }
    let to_stdout = args.out.as_os_str() == "-";
    let folder = match args.to {
        ExportFormat::Static => Some("search"),
        ExportFormat::Parquet | ExportFormat::Csv => Some("tables"),
        ExportFormat::Graph => Some("graph"),
        ExportFormat::Bundle => Some("bundle"),
        ExportFormat::Mirror => Some("mirror"),
        ExportFormat::Markdown => Some("markdown"),
        ExportFormat::Sitemap => Some("sitemap"),
        ExportFormat::Opensearch
        | ExportFormat::Meilisearch
        | ExportFormat::LlmsTxt
        | ExportFormat::Wacz => None,
    };
    if let Some(folder) = folder.filter(|_| to_stdout) {
        return Err(CommandError::usage("can't write a folder to stdout")
            .hint(format!("choose a folder: `--out {folder}`")));
    }
    match args.to {
        #[cfg(feature = "tables")]
        ExportFormat::Parquet => return table_exports::export(args, TableFormat::Parquet),
        #[cfg(feature = "tables")]
        ExportFormat::Csv => return table_exports::export(args, TableFormat::Csv),
        #[cfg(feature = "tables")]
        ExportFormat::Graph => return table_exports::export_graph(args),
        #[cfg(feature = "tables")]
        ExportFormat::Bundle => return bundle_export::export(args),
        #[cfg(not(feature = "tables"))]
        ExportFormat::Parquet | ExportFormat::Csv | ExportFormat::Graph | ExportFormat::Bundle => {
            return Err(left_out("this format of crawl export", "tables"));
        }
        ExportFormat::Wacz | ExportFormat::Mirror => return archive_exports::export(args),
        _ => {}
    }
    #[cfg(feature = "search")]
    return search_index_exports::run(args);
    #[cfg(not(feature = "search"))]
    Err(left_out("this format of crawl export", "search"))
}
