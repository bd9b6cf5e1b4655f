//! The measurements of the search benchmark, as Markdown tables.

use std::fmt::Write as _;
use std::time::Duration;

use crawl_index::export::StaticSearchReport;

use super::queries::{JudgedQuery, QuerySetUse, RelevanceGrade};
use super::ranking_quality::{RankingQuality, mean, percentile};

/// The measured answers and times of one search engine, for the queries of one documentation
/// package.
pub(super) struct MeasuredEngine {
    pub(super) name: &'static str,
    /// For each query, the quality of the answer and the paths of its pages.
    pub(super) answers: Vec<(RankingQuality, Vec<String>)>,
    /// Times of queries, in microseconds.
    pub(super) times: Vec<u64>,
}

/// All measurements with one documentation package. The first engine is our search.
pub(super) struct SearchMeasurements {
    pub(super) name: &'static str,
    pub(super) pages: usize,
    pub(super) left_out: usize,
    pub(super) html_bytes: u64,
    pub(super) reading: Duration,
    pub(super) indexing: Duration,
    pub(super) index_bytes: u64,
    pub(super) queries: Vec<JudgedQuery>,
    pub(super) engines: Vec<MeasuredEngine>,
    /// A static bundle, and for each query the bytes and files that it loads.
    pub(super) bundled: Option<(StaticSearchReport, Vec<(u64, u64)>)>,
}

impl SearchMeasurements {
    /// Returns by how much the MRR@10 of our search over all queries exceeds the MRR@10 of the
    /// better baseline.
    pub(super) fn ahead(&self) -> f64 {
        let all = self.means(|_| true);
        let ours = all.first().map_or(0.0, |quality| quality.reciprocal_rank);
        ours - stronger(&all)
    }

    /// Returns Markdown tables: first the quality for each set of queries, then the costs.
    pub(super) fn table(&self) -> String {
        let mut text = format!(
            "## {}: {} pages, {} queries\n\n",
            self.name,
            self.pages,
            self.queries.len()
        );
        text.push_str("| queries | search | MRR@10 | recall@10 | nDCG@10 | MRR against the stronger baseline |\n");
        text.push_str("|---|---|---|---|---|---|\n");
        self.rows(&mut text, "tune", |judged| judged.set == QuerySetUse::Tune);
        self.rows(&mut text, "held-out", |judged| {
            judged.set == QuerySetUse::HeldOut
        });
        self.rows(&mut text, "all", |_| true);
        self.kinds(&mut text);
        self.costs(&mut text);
        text
    }

    fn rows(&self, text: &mut String, set: &str, pick: impl Fn(&JudgedQuery) -> bool) {
        let count = self.queries.iter().filter(|judged| pick(judged)).count();
        if count == 0 {
            return;
        }
        let means = self.means(pick);
        let strong = stronger(&means);
        for (n, (engine, quality)) in self.engines.iter().zip(&means).enumerate() {
            let rank = quality.reciprocal_rank;
            let against = match n {
                1 | 2 => String::new(),
                _ => format!("{:+.3}, {:.2} times", rank - strong, rank / strong),
            };
            let _ = writeln!(
                text,
                "| {set} ({count}) | {} | {rank:.3} | {:.3} | {:.3} | {against} |",
                engine.name, quality.recall, quality.gain
            );
        }
    }

    /// Appends MRR by the kind of query.
    fn kinds(&self, text: &mut String) {
        let mut kinds: Vec<&str> = Vec::new();
        for judged in &self.queries {
            if !kinds.contains(&judged.kind.as_str()) {
                kinds.push(&judged.kind);
            }
        }
        let names: Vec<_> = self.engines.iter().map(|engine| engine.name).collect();
        let _ = writeln!(
            text,
            "\n| MRR@10 by kind | queries | {} |",
            names.join(" | ")
        );
        let _ = writeln!(text, "|---|---|{}", "---|".repeat(names.len()));
        for kind in kinds {
            let count = self
                .queries
                .iter()
                .filter(|judged| judged.kind == kind)
                .count();
            let means = self.means(|judged| judged.kind == kind);
            let cells: Vec<_> = means
                .iter()
                .map(|quality| format!("{:.3}", quality.reciprocal_rank))
                .collect();
            let _ = writeln!(text, "| {kind} | {count} | {} |", cells.join(" | "));
        }
    }

    fn costs(&self, text: &mut String) {
        let rate = |time: Duration| self.pages as f64 / time.as_secs_f64().max(1e-9);
        let pages = self.pages.max(1) as u64;
        let profile = if cfg!(debug_assertions) {
            ", dev profile"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "\nread {:.0} pages/s, indexed {:.0} pages/s{profile}; {} bytes of HTML and {} of index a page; {} files are no pages",
            rate(self.reading),
            rate(self.indexing),
            self.html_bytes / pages,
            self.index_bytes / pages,
            self.left_out,
        );
        let timed = self
            .engines
            .iter()
            .filter(|engine| !engine.times.is_empty());
        for engine in timed {
            let mut times = engine.times.clone();
            let _ = writeln!(
                text,
                "{}: p50 {} us, p99 {} us a query{profile}",
                engine.name,
                percentile(&mut times, 0.5),
                percentile(&mut times, 0.99)
            );
        }
        if let Some((report, loaded)) = &self.bundled {
            text.push_str(&bundle_costs(report, loaded));
        }
        text.push('\n');
    }

    /// Lists the queries with weak answers: a baseline answers the query better, our first result
    /// doesn't answer it, or the static bundle answers it worse than the index.
    pub(super) fn losses(&self) -> String {
        let mut text = String::new();
        for (n, judged) in self.queries.iter().enumerate() {
            let ranks: Vec<f64> = self.engines.iter().map(|engine| rank(engine, n)).collect();
            let ours = ranks.first().copied().unwrap_or(0.0);
            let theirs = ranks.iter().skip(1).take(2).copied().fold(0.0, f64::max);
            let bundle = ranks.get(3).copied().unwrap_or(ours);
            let sign = match () {
                () if ours < theirs => "worse",
                () if ours < 1.0 => "not first",
                () if bundle < ours => "bundle worse",
                () => continue,
            };
            let _ = writeln!(
                text,
                "{sign} ({:?}, {}): {}",
                judged.set, judged.kind, judged.query
            );
            let wanted = judged
                .pages
                .iter()
                .filter(|(_, grade)| *grade == RelevanceGrade::Answers);
            let wanted: Vec<_> = wanted.map(|(path, _)| path.as_str()).collect();
            let _ = writeln!(text, "    wanted {}", wanted.join(" "));
            for (engine, rank) in self.engines.iter().zip(&ranks) {
                let paths_found = engine.answers.get(n).map(|(_, paths)| paths.as_slice());
                let first: Vec<_> = paths_found
                    .unwrap_or_default()
                    .iter()
                    .take(4)
                    .cloned()
                    .collect();
                let _ = writeln!(text, "    {} {rank:.2}: {}", engine.name, first.join(" "));
            }
        }
        text
    }

    fn means(&self, pick: impl Fn(&JudgedQuery) -> bool) -> Vec<RankingQuality> {
        let of = |engine: &MeasuredEngine| {
            let results = self.queries.iter().zip(&engine.answers);
            let picked = results.filter(|(judged, _)| pick(judged));
            let qualities: Vec<RankingQuality> = picked.map(|(_, (quality, _))| *quality).collect();
            mean(&qualities)
        };
        self.engines.iter().map(of).collect()
    }
}

fn bundle_costs(report: &StaticSearchReport, loaded: &[(u64, u64)]) -> String {
    let pages = report.pages.max(1);
    let part = |pick: fn(&(u64, u64)) -> u64, part| {
        let mut values: Vec<u64> = loaded.iter().map(pick).collect();
        percentile(&mut values, part)
    };
    format!(
        "bundle: {} bytes a page ({} of words, {} of texts), {} files, {} words; a first query loads {} bytes in {} files (p50), {} in {} (p99)\n",
        report.bytes / pages,
        report.word_bytes / pages,
        report.text_bytes / pages,
        report.files,
        report.words,
        part(|(bytes, _)| *bytes, 0.5),
        part(|(_, files)| *files, 0.5),
        part(|(bytes, _)| *bytes, 0.99),
        part(|(_, files)| *files, 0.99),
    )
}

fn rank(engine: &MeasuredEngine, query: usize) -> f64 {
    engine
        .answers
        .get(query)
        .map_or(0.0, |(quality, _)| quality.reciprocal_rank)
}

fn stronger(means: &[RankingQuality]) -> f64 {
    means
        .iter()
        .skip(1)
        .take(2)
        .map(|quality| quality.reciprocal_rank)
        .fold(0.0, f64::max)
}
