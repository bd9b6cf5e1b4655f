//! Exports the records of a crawl as tables and its links as a graph, in formats that researchers'
//! tools can read: Parquet, CSV and GraphML.
//!
//! [`export`] reads the row files of a crawl's directory, one row at a time, and writes one file
//! per table: `pages`, `links`, `walk`, `hosts`, `requests`, `excluded` and `robots`. Each table is
//! defined in one place: its columns with name, type, unit, meaning, source, and a function that
//! computes the value. The Parquet schema, the CSV header and `docs/tables.md` are derived from
//! this definition. The first columns of `pages` are those of Common Crawl's columnar index, so
//! queries for that index also work on `pages`.
//!
//! [`check_tables`] compares written tables with the rows. [`export_graph`] writes the graph of
//! pages and links, and the graph of hosts. The crate never fetches, and changes nothing in the
//! crawl's directory.
//!
//! ```
//! use crawl_tables::{TableFormat, RoundSelection, export};
//!
//! let dir = tempfile::tempdir()?;
//! let row = r#"{"url":"http://e.example/","reason":"robots","rule":null,"line":2,"found_on":null}"#;
//! std::fs::write(dir.path().join("crawl.toml"), "")?;
//! std::fs::write(dir.path().join("excluded.jsonl"), format!("{row}\n"))?;
//!
//! let out = tempfile::tempdir()?;
//! let written = export(dir.path(), out.path(), TableFormat::Csv, RoundSelection::Last)?;
//! assert!(written.iter().any(|table| table.name == "excluded" && table.rows == 1));
//! let csv = std::fs::read_to_string(out.path().join("excluded.csv"))?;
//! assert!(csv.starts_with("url,host,reason,rule,line,found_on,seed_label,round,time\r\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compare_with_rows;
mod csv_file_writer;
#[cfg(test)]
mod docs_page_check;
mod export;
mod extracted_field_table_writer;
mod extracted_field_tables;
mod language_codes;
mod link_graph_export;
mod non_page_tables;
mod pages_table;
mod parquet_file_writer;
mod record_length_lookup;
mod spilled_map;
mod table_checksums;
mod table_definition;
mod url_parts;

pub use compare_with_rows::{
    ColumnDocumentation, DifferenceFromRows, TableDocumentation, check_tables, table_columns,
};
pub use export::{ReadRowCounts, TableFormat, TablesError, WrittenTable, export};
pub use extracted_field_table_writer::{WrittenRuleTable, export_extracts};
pub use link_graph_export::{WrittenGraph, export_graph};
pub use table_definition::ColumnKind;

pub use crawl_records::RoundSelection;
