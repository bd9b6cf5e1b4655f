//! Determines the round of a run: the last round again, or a new one.

use crawl_frontier::{Frontier, FrontierError, KnownState, Transaction};
use crawl_scheduler::Tick;

use crate::config::Config;
use crate::crawl_totals::CrawlTotals;
use crate::error::EngineError;
use crate::frontier_meta_keys::{META_ROUND, META_TOTALS};
use crate::revisit::visit::{RevisitRules, Round};
use crate::scope_seeds::ScopeSeeds;
use crate::time_conversions::seconds;

/// Maximum URLs that one transaction makes pending.
const MAX_OPENED_AT_ONCE: usize = 10_000;

/// Steps of the caller at the beginning of a new round.
pub(crate) struct NewRoundSteps<'a> {
    /// Writes the last exclusions of the previous round, and marks them as committed in the
    /// transaction that begins the new round.
    pub(crate) commit_excluded: &'a mut dyn FnMut(&mut dyn Transaction) -> Result<(), EngineError>,
    /// Admits the URLs whose exclusion no longer holds. Returns false if it was stopped.
    pub(crate) readmit: &'a mut dyn FnMut() -> Result<bool, EngineError>,
}

/// Resumes the last round. If that round is over and the configuration requests another one, begins
/// a new round, and resets the changes in `totals`.
pub(crate) fn take_up(
    frontier: &dyn Frontier,
    config: &Config,
    now: Tick,
    totals: &mut CrawlTotals,
    steps: NewRoundSteps<'_>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<RevisitRules, EngineError> {
    let now = seconds(now);
    // The longest interval between visits, for recognizing wrong due times. `None` if pages with a
    // date in the future are due now.
    let mut longest = Some(config.revisits.longest());
    let mut round = match stored(frontier)? {
        Some(last) if config.recrawl && last.is_over => {
            if last.was_begun_ahead_of(now) {
                tracing::warn!(
                    round = last.number,
                    "the clock was ahead when the last round began: pages with a date in the future are due now"
                );
                longest = None;
            }
            *totals = totals.without_changes();
            let next = last.next(now, *totals);
            let mut transaction = frontier.begin()?;
            (steps.commit_excluded)(&mut *transaction)?;
            transaction.keep_meta(META_TOTALS, &totals.to_bytes());
            keep_in(transaction, &next)?;
            next
        }
        // Mark the round as not over. Even if this run is cut off, the round is then finished
        // before a new one begins.
        Some(last) if last.is_over && has_work(frontier, config)? => {
            let again = Round {
                is_over: false,
                ..last
            };
            keep(frontier, &again)?;
            again
        }
        Some(last) => last,
        None => {
            let first = Round::first(now);
            keep(frontier, &first)?;
            first
        }
    };
    if !round.is_open && open(frontier, &round, longest, is_stopped)? && (steps.readmit)()? {
        round.is_open = true;
        keep(frontier, &round)?;
    }
    Ok(RevisitRules {
        round,
        revisits: config.revisits,
    })
}

/// Returns the stored round. `None` before the first round.
pub(crate) fn stored(frontier: &dyn Frontier) -> Result<Option<Round>, EngineError> {
    let round = frontier.meta(META_ROUND)?;
    let round = round.map(|bytes| serde_json::from_slice::<Round>(&bytes));
    round.transpose().map_err(|why| EngineError::Round { why })
}

fn has_work(frontier: &dyn Frontier, config: &Config) -> Result<bool, FrontierError> {
    if frontier.counts().pending > 0 {
        return Ok(true);
    }
    let earlier = ScopeSeeds::read(frontier, config)?;
    for seed in &config.seeds {
        // A link that was not followed may join the crawl as a seed.
        let is_new = match frontier.known(seed)?.map(|known| known.state) {
            None => true,
            Some(KnownState::Excluded(_) | KnownState::Deferred(_)) => !earlier.contains(seed),
            Some(_) => false,
        };
        if is_new {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Makes due URLs pending. Returns false if stopped before all of them are pending: then a later
/// call continues.
fn open(
    frontier: &dyn Frontier,
    round: &Round,
    longest: Option<u32>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<bool, FrontierError> {
    let mut opened = 0;
    while !is_stopped() {
        let mut transaction = frontier.begin()?;
        let due = transaction.visit_due(round.began, MAX_OPENED_AT_ONCE)?;
        let remaining = MAX_OPENED_AT_ONCE - due;
        let count = due + transaction.visit_misdated(round.began, longest, remaining)?;
        transaction.commit()?;
        opened += count;
        if count < MAX_OPENED_AT_ONCE {
            tracing::debug!(round = round.number, due = opened, "round begun");
            return Ok(true);
        }
        tracing::info!(round = round.number, due = opened, "round begins");
    }
    Ok(false)
}

/// Records that a run of a round ended without being interrupted, so the next round may begin.
pub(crate) fn note_over(frontier: &dyn Frontier, round: &Round) -> Result<(), FrontierError> {
    let over = Round {
        is_over: true,
        ..*round
    };
    keep(frontier, &over)
}

fn keep(frontier: &dyn Frontier, round: &Round) -> Result<(), FrontierError> {
    keep_in(frontier.begin()?, round)
}

fn keep_in(mut transaction: Box<dyn Transaction + '_>, round: &Round) -> Result<(), FrontierError> {
    let bytes = serde_json::to_vec(round).unwrap_or_default();
    transaction.keep_meta(META_ROUND, &bytes);
    transaction.commit().map(|_| ())
}
