//! Quality and speed of the search, compared with plain BM25.
//!
//! The pages are Debian's documentation packages. Some queries of some packages were used to tune
//! the ranking. All other queries are only for measurements.

mod bm25_baseline;
pub(super) mod corpus;
mod queries;
mod ranking_quality;
mod result_tables;
mod static_search;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use crawl_index::{IndexSearcher, IndexWriter, SearchOptions};

use bm25_baseline::{Bm25Baseline, WordEquality};
use corpus::DocumentationCorpus;
use queries::JudgedQuery;
use ranking_quality::{RankingQuality, quality};
use result_tables::{MeasuredEngine, SearchMeasurements};
use xtask::debian_packages;
use xtask::workspace::Workspace;

/// Minimum lead of our search over the better of the two baselines, in MRR@10.
const MIN_AHEAD: f64 = 0.17;
/// Number of timed runs of each query. An earlier, untimed run is used to judge the results.
const ROUNDS: usize = 5;

/// The documentation packages to measure: the name of each, its queries, and a function that
/// returns the folder of its pages.
const DOCUMENTATIONS: [(&str, &str, Locate); 9] = [
    (
        "Python",
        include_str!("../../../queries/python-docs.tsv"),
        debian_packages::python_docs,
    ),
    (
        "Git",
        include_str!("../../../queries/git-docs.tsv"),
        debian_packages::git_docs,
    ),
    (
        "Postfix",
        include_str!("../../../queries/postfix-docs.tsv"),
        debian_packages::postfix_docs,
    ),
    (
        "PostgreSQL",
        include_str!("../../../queries/postgresql-docs.tsv"),
        debian_packages::postgresql_docs,
    ),
    (
        "Apache",
        include_str!("../../../queries/apache-docs.tsv"),
        debian_packages::apache_docs,
    ),
    (
        "SQLite",
        include_str!("../../../queries/sqlite-docs.tsv"),
        debian_packages::sqlite_docs,
    ),
    (
        "Octave",
        include_str!("../../../queries/octave-docs.tsv"),
        debian_packages::octave_docs,
    ),
    (
        "French",
        include_str!("../../../queries/aptitude-fr-docs.tsv"),
        debian_packages::french_docs,
    ),
    (
        "Django",
        include_str!("../../../queries/django-docs.tsv"),
        debian_packages::django_docs,
    ),
];

type Locate = fn(&Workspace) -> Result<PathBuf>;

#[derive(Args)]
pub(crate) struct SearchArgs {
    /// Exit with 1 unless the search is well ahead of the baselines; measures no times
    #[arg(long)]
    check: bool,
    /// Print each query that a baseline answers better, and each without an answer
    #[arg(long)]
    verbose: bool,
    /// Measure a static bundle too; its JavaScript runs in Node
    #[arg(long)]
    bundle: bool,
    /// Measure only one manual: Python, Git, Postfix, PostgreSQL, Apache, SQLite,
    /// Octave, French or Django
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

pub(super) fn measure(workspace: &Workspace, args: &SearchArgs) -> Result<()> {
    let wanted = |name: &str| args.only.as_deref().is_none_or(|only| only == name);
    let mut behind = Vec::new();
    for (name, queries, locate) in DOCUMENTATIONS {
        if !wanted(name) {
            continue;
        }
        let queries = queries::parse(queries)?;
        let measured = documentation(workspace, name, &locate(workspace)?, queries, args)?;
        let mut text = measured.table();
        if args.verbose {
            text.push_str(&measured.losses());
        }
        io::stdout().write_all(text.as_bytes())?;
        let ahead = measured.ahead();
        if ahead < MIN_AHEAD {
            behind.push(format!("{name}: {ahead:.3} ahead"));
        }
    }
    match args.check && !behind.is_empty() {
        true => bail!(
            "MRR@10 must be {MIN_AHEAD} above the stronger baseline\n{}",
            behind.join("\n")
        ),
        false => Ok(()),
    }
}

fn documentation(
    workspace: &Workspace,
    name: &'static str,
    folder: &Path,
    queries: Vec<JudgedQuery>,
    args: &SearchArgs,
) -> Result<SearchMeasurements> {
    let rounds = if args.check { 0 } else { ROUNDS };
    let corpus = corpus::read(folder)?;
    let dir = workspace.target.join("bench-search").join(name);
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    let started = Instant::now();
    index(&corpus, &dir)?;
    let indexing = started.elapsed();
    let ours = IndexSearcher::open(&dir)?;
    let bodies = || {
        let pages = corpus.pages.iter();
        pages.map(|page| (page.url.as_str(), page.text.as_str()))
    };
    let written = Bm25Baseline::of(WordEquality::AsWritten, bodies())?;
    let stemmed = Bm25Baseline::of(WordEquality::Stemmed, bodies())?;
    let mut engines = vec![
        run_queries("ours", &queries, rounds, |query| search(&ours, query))?,
        run_queries("BM25", &queries, rounds, |query| written.search(query))?,
        run_queries("BM25, stemmed", &queries, rounds, |query| {
            stemmed.search(query)
        })?,
    ];
    let bytes = ours.stats()?.bytes;
    let mut bundled = None;
    if args.bundle {
        let dir = workspace
            .target
            .join("bench-search")
            .join(format!("{name}-bundle"));
        let outcome = static_search::run_queries(workspace, &ours, &dir, &queries)?;
        engines.push(outcome.engine);
        bundled = Some((outcome.report, outcome.loaded));
    }
    fs::remove_dir_all(&dir)?;
    Ok(SearchMeasurements {
        name,
        pages: corpus.pages.len(),
        left_out: corpus.left_out,
        html_bytes: corpus.bytes,
        reading: corpus.took,
        indexing,
        index_bytes: bytes,
        queries,
        engines,
        bundled,
    })
}

fn index(corpus: &DocumentationCorpus, dir: &Path) -> Result<()> {
    let mut writer = IndexWriter::open(dir)?;
    for page in &corpus.pages {
        writer.put(page)?;
    }
    writer.reconcile("", 0)?;
    Ok(writer.close()?)
}

fn search(index: &IndexSearcher, query: &str) -> Result<Vec<String>> {
    let answer = index.search(query, &SearchOptions::default())?;
    Ok(answer.results.into_iter().map(|hit| hit.url).collect())
}

/// Runs each query once to judge the results, then several times to measure the time.
fn run_queries(
    name: &'static str,
    queries: &[JudgedQuery],
    rounds: usize,
    search: impl Fn(&str) -> Result<Vec<String>>,
) -> Result<MeasuredEngine> {
    let mut answers: Vec<(RankingQuality, Vec<String>)> = Vec::with_capacity(queries.len());
    for judged in queries {
        let urls = search(&judged.query)?;
        let paths = urls.iter().map(|url| corpus::path_of(url).to_owned());
        let paths: Vec<String> = paths.collect();
        answers.push((quality(&paths, judged), paths));
    }
    let mut times = Vec::with_capacity(queries.len() * rounds);
    for _ in 0..rounds {
        for judged in queries {
            let started = Instant::now();
            search(&judged.query)?;
            times.push(micros(started.elapsed()));
        }
    }
    Ok(MeasuredEngine {
        name,
        answers,
        times,
    })
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
