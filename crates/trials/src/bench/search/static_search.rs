//! Runs the judged queries on a static bundle, whose JavaScript runs in Node.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use crawl_index::IndexSearcher;
use crawl_index::export::{ExportError, StaticSearchReport, StaticSearchWriter};
use serde::Deserialize;

use super::corpus::path_of;
use super::queries::JudgedQuery;
use super::ranking_quality::quality;
use super::result_tables::MeasuredEngine;
use xtask::workspace::{Workspace, output};

/// The program that runs the queries.
const ASK: &str = include_str!("ask.mjs");

/// An exported static bundle, with its measured answers.
pub(super) struct MeasuredStaticSearch {
    pub(super) report: StaticSearchReport,
    pub(super) engine: MeasuredEngine,
    /// For each query, the bytes and the number of files that a browser without a cache loads.
    pub(super) loaded: Vec<(u64, u64)>,
}

#[derive(Deserialize)]
struct NodeAnswer {
    urls: Vec<String>,
    micros: u64,
    bytes: u64,
    files: u64,
}

/// Exports an index to `dir` and runs the queries on it.
///
/// # Errors
/// Fails if the export or Node fails.
pub(super) fn run_queries(
    workspace: &Workspace,
    index: &IndexSearcher,
    dir: &Path,
    queries: &[JudgedQuery],
) -> Result<MeasuredStaticSearch> {
    let mut bundle = StaticSearchWriter::create(dir, 0)?;
    index.each_page(|page| -> Result<(), ExportError> { bundle.page(&page) })?;
    let report = bundle.finish()?;
    let texts: Vec<&str> = queries.iter().map(|judged| judged.query.as_str()).collect();
    let query_file = dir.with_extension("queries.json");
    fs::write(&query_file, serde_json::to_vec(&texts)?)?;
    let program = dir.with_extension("ask.mjs");
    fs::write(&program, ASK)?;
    let mut node = workspace.program("node");
    let printed =
        output(node.arg(&program).arg(dir).arg(&query_file)).context("Node does not run")?;
    let rows: Vec<NodeAnswer> = serde_json::from_str(&printed)?;
    if rows.len() != queries.len() {
        bail!("{} answers to {} queries", rows.len(), queries.len());
    }
    let mut answers = Vec::with_capacity(rows.len());
    for (row, judged) in rows.iter().zip(queries) {
        let paths = row.urls.iter().map(|url| path_of(url).to_owned());
        let paths: Vec<String> = paths.collect();
        answers.push((quality(&paths, judged), paths));
    }
    Ok(MeasuredStaticSearch {
        report,
        engine: MeasuredEngine {
            name: "bundle",
            answers,
            times: rows.iter().map(|row| row.micros).collect(),
        },
        loaded: rows.iter().map(|row| (row.bytes, row.files)).collect(),
    })
}
