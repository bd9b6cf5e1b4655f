//! What is written when a run ends, derived from what was settled.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use crawl_archive::rows::ExcludedRow;
use crawl_archive::{ArchiveError, ReadError, RowFile, RowReader};
use crawl_frontier::{Exclusion, Frontier, FrontierError, KnownState, Reason, Waiting};
use crawl_weburl::CanonicalUrl;

use crate::config::Config;
use crate::directory;
use crate::error::EngineError;
use crate::indexing::Indexed;
use crate::item::excluded_row;
use crate::ring::Ring;
use crate::rounds;
use crate::summary::{Ended, SeedFailure, Summary};
use crate::writer::Writer;

/// Rows of `excluded.jsonl` by reason.
pub(crate) type ExcludedCounts = BTreeMap<String, u64>;

/// Lists the URLs that this run knew and did not ask for, and writes the archive's
/// index anew.
///
/// These rows are no part of what the state has committed: the next start cuts them off,
/// since such a URL may still be met another way, or a budget be raised.
pub(crate) fn write_derived(
    config: &Config,
    writer: Writer,
    ended: &Ended,
) -> Result<ExcludedCounts, EngineError> {
    let Writer {
        frontier,
        mut files,
        visits,
        ..
    } = writer;
    let excluded = &mut files.excluded;
    list(excluded, None, |visit| frontier.each_deferred(visit))?;
    if let Ended::Budget(budget) = ended {
        let exclusion = Exclusion {
            rule: Some((*budget).to_owned()),
            ..Exclusion::of(Reason::Budget)
        };
        list(excluded, Some(&exclusion), |visit| {
            frontier.each_pending(visit)
        })?;
    }
    excluded.sync()?;
    if let Some(archive) = &mut files.archive {
        archive.write_index()?;
    }
    if *ended != Ended::Interrupted {
        rounds::note_over(&*frontier, &visits.round)?;
    }
    directory::note_end(&*frontier)?;
    count_by_reason(config)
}

type Visit<'a> = dyn FnMut(Waiting<'_>) -> ControlFlow<()> + 'a;

/// Writes a row for each URL that is shown, by its own exclusion or the one given.
fn list(
    file: &mut RowFile,
    exclusion: Option<&Exclusion>,
    show: impl FnOnce(&mut Visit<'_>) -> Result<(), FrontierError>,
) -> Result<(), EngineError> {
    let mut failed: Option<ArchiveError> = None;
    show(&mut |waiting| {
        let Some(exclusion) = waiting.exclusion.or(exclusion) else {
            return ControlFlow::Continue(());
        };
        match file.append(&excluded_row(waiting.url, exclusion, waiting.via)) {
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    failed.map_or(Ok(()), |error| Err(error.into()))
}

/// Tallies the file itself, so that the summary says what a reader of it finds.
fn count_by_reason(config: &Config) -> Result<ExcludedCounts, EngineError> {
    let mut counts = ExcludedCounts::new();
    for row in RowReader::<ExcludedRow>::open(&config.output.join("excluded.jsonl"), None)? {
        match row {
            Ok(row) => *counts.entry(row.reason).or_default() += 1,
            Err(ReadError::Row { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(counts)
}

pub(crate) fn summary(
    config: &Config,
    ring: &mut Ring,
    ended: Ended,
    elapsed: Duration,
    resumed: bool,
    excluded: ExcludedCounts,
    indexed: Option<Indexed>,
) -> Summary {
    let totals = ring.totals();
    let of_round = totals.since(&ring.visits.round.before);
    let mut seeds_failed = std::mem::take(&mut ring.seeds_failed);
    if totals.seeds_fetched == 0 && seeds_failed.is_empty() {
        seeds_failed = unfetched_seeds(config, &*ring.frontier);
    }
    Summary {
        ended,
        pages: of_round.pages,
        pages_of_run: totals.pages - ring.totals_at_start.pages,
        failed: of_round.failed,
        pending: ring.frontier.counts().pending,
        round: ring.visits.round.number,
        changes: totals.changes,
        next_due: ring
            .frontier
            .next_due(ring.visits.round.began)
            .ok()
            .flatten(),
        requests: ring.requests,
        robots_requests: ring.robots_requests,
        bytes: of_round.bytes,
        excluded,
        indexed,
        unusable: std::mem::take(&mut ring.unusable),
        seeds_fetched: match of_round.seeds_fetched {
            // In a later round a seed may not have been due.
            0 if ring.visits.round.number > 1 && of_round.pages > of_round.failed => 1,
            0 if of_round.pages == 0 => totals.seeds_fetched,
            // Those that were due failed, and no seed was among them.
            0 if ring.visits.round.number > 1 && seeds_failed.is_empty() => totals.seeds_fetched,
            fetched => fetched,
        },
        seeds_failed,
        strange_robots: std::mem::take(&mut ring.origins.strange),
        elapsed,
        parked: ring.scheduler.parked().cloned().collect(),
        output: config.output.clone(),
        resumed,
    }
}

/// What became of each seed, for a crawl of which none led to a page.
fn unfetched_seeds(config: &Config, frontier: &dyn Frontier) -> Vec<SeedFailure> {
    let failure = |seed: &CanonicalUrl| {
        let why = match frontier.known(seed).ok()??.state {
            KnownState::Fetched { status: 300..=399 } => "its redirects lead to no page".to_owned(),
            KnownState::Fetched { status } => format!("status {status}"),
            KnownState::Failed { why } => why,
            KnownState::Excluded(exclusion) | KnownState::Deferred(exclusion) => {
                exclusion.to_string()
            }
            KnownState::Pending { .. } | KnownState::Leased { .. } => return None,
        };
        Some(SeedFailure {
            url: seed.clone(),
            why,
        })
    };
    config.seeds.iter().filter_map(failure).collect()
}
