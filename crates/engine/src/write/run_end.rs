//! Writes the files that are derived from the settled URLs when a run ends.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher as _;
use std::ops::ControlFlow;

use crawl_archive::rows::{ExcludedRow, PendingOriginRow, WaitingUrl as ListedUrl};
use crawl_archive::{ArchiveWriteError, ReadError, RowFileWriter, RowReader, Timestamp};
use crawl_frontier::{Frontier, FrontierError, KnownState, NotFetchedReason, Reason, UnsettledUrl};
use crawl_weburl::canonicalize;
use foldhash::fast::FixedState;

use super::Writer;
use crate::config::Config;
use crate::error::EngineError;
use crate::excluded_jsonl_rows::excluded_row;
use crate::revisit::round_of_run;
use crate::scope_seeds::ScopeSeeds;
use crate::state::crawl_directory;
use crate::state::excluded_rows_of_last_run::{self, EXCLUDED};
use crate::summary::EndReason;

/// Maximum number of URLs to list for each unreachable origin.
const MAX_LISTED_URLS: usize = 100;

/// The number of rows of `excluded.jsonl`, by reason.
pub(crate) type ExcludedCounts = BTreeMap<String, u64>;

/// Lists the URLs that this run found but did not fetch, rewrites the archive's index, and records
/// which URLs are pending. If `is_still_cut_off` is true, the next start treats this run as
/// interrupted.
///
/// The rows of unfetched URLs are not committed, so the next start of the same round cuts them off.
/// The rows may be obsolete by then: such a URL may be fetched if another page links to it, or if a
/// budget is raised.
pub(crate) fn write_derived(
    config: &Config,
    writer: Writer,
    ended: &EndReason,
    waiting: &[PendingOriginRow],
    is_still_cut_off: bool,
) -> Result<ExcludedCounts, EngineError> {
    let Writer {
        frontier,
        mut files,
        visits,
        scope_seeds,
        shared,
        ..
    } = writer;
    // Use the start time of the round in all new rows, so that their times stay the same when the
    // rows are rewritten at the end of every run.
    let began = u64::from(visits.round.began) * 1_000_000;
    let when = Some((visits.round.number, Timestamp::from_micros(began)));
    let excluded = &mut files.excluded;
    let earlier = match visits.round.number {
        ..=1 => HashMap::new(),
        _ => last_committed_reasons(excluded)?,
    };
    let is_cut_short = matches!(ended, EndReason::Interrupted | EndReason::HandedOver);
    // Each worker lists the URLs of its own hosts, unless a worker that ended earlier has listed
    // them. A worker that is cut short lists nothing, because other workers take over its hosts.
    let lists = shared.as_ref().filter(|_| !is_cut_short);
    let buckets = lists.map(|shared| shared.buckets_to_list()).transpose()?;
    let is_own = |waiting: &UnsettledUrl<'_>| match (&shared, &buckets) {
        (Some(shared), Some(buckets)) => {
            buckets.contains(&shared.bucket_of(&waiting.url.host_key()))
        }
        _ => true,
    };
    if shared.is_none() || !is_cut_short {
        list(
            (excluded, &scope_seeds, when),
            |waiting| {
                let exclusion = waiting.exclusion.filter(|_| is_own(waiting))?;
                let earlier = earlier.get(&hash(waiting.url.as_str()));
                (earlier != Some(&hash(exclusion.reason.name()))).then(|| exclusion.clone())
            },
            |visit| frontier.each_deferred(visit),
        )?;
    }
    // Even if the run ended for another reason, list the URLs of hosts whose budget is spent.
    let has_spent = waiting.iter().any(|row| row.reason == "budget");
    if has_spent && (shared.is_none() || !is_cut_short) {
        let exclusion = by_budget(waiting);
        list(
            (excluded, &scope_seeds, when),
            |waiting| exclusion(waiting).filter(|_| is_own(waiting)),
            |visit| frontier.each_pending(visit),
        )?;
    }
    excluded.sync()?;
    if shared.is_none() || !is_cut_short {
        excluded_rows_of_last_run::remove(&config.output)?;
    }
    if let (Some(shared), Some(buckets)) = (&shared, &buckets) {
        shared.note_listed(buckets)?;
    }
    if let Some(archive) = &mut files.archive {
        archive.write_index()?;
    }
    if !is_cut_short {
        round_of_run::note_over(&*frontier, &visits.round)?;
    }
    let mut waiting = waiting.to_vec();
    list_unreachable(&*frontier, &mut waiting)?;
    crawl_directory::note_waiting(&config.output, &waiting)?;
    if !is_still_cut_off {
        crawl_directory::note_end(&*frontier)?;
    }
    // Looking up URLs takes too long if each look-up is a network request.
    let lookup = shared.is_none().then_some(&*frontier);
    count_by_reason(config, visits.round.number, lookup)
}

/// Adds the first pending URLs of each unreachable origin to its row in `waiting`. If the reason is
/// not the origin's robots.txt, adds only seeds, because links lead to the other URLs.
fn list_unreachable(
    frontier: &dyn Frontier,
    waiting: &mut [PendingOriginRow],
) -> Result<(), EngineError> {
    let mut unreachable: HashMap<String, &mut PendingOriginRow> = waiting
        .iter_mut()
        .filter(|row| matches!(row.reason.as_str(), "robots" | "unreachable"))
        .filter_map(|row| Some((row.origin.clone()?, row)))
        .collect();
    if unreachable.is_empty() {
        return Ok(());
    }
    frontier.each_pending(&mut |pending| {
        if let Some(row) = unreachable.get_mut(pending.url.origin().as_str())
            && row.listed.len() < MAX_LISTED_URLS
            && (row.reason == "robots" || pending.via.is_none())
        {
            row.listed.push(ListedUrl {
                url: pending.url.to_string(),
                found_on: pending.via.map(ToString::to_string),
            });
        }
        ControlFlow::Continue(())
    })?;
    Ok(())
}

/// A callback for unsettled URLs. `Break` ends the iteration.
type UnsettledUrlCallback<'a> = dyn FnMut(UnsettledUrl<'_>) -> ControlFlow<()> + 'a;

/// Returns a function from a pending URL to its exclusion by a budget. The exclusion names the
/// spent budget of the URL's origin, or else the budget that ended the run. The function returns
/// `None` if no budget kept the URL from being fetched.
fn by_budget(
    waiting: &[PendingOriginRow],
) -> impl Fn(&UnsettledUrl<'_>) -> Option<NotFetchedReason> {
    let spent = waiting.iter().filter(|row| row.reason == "budget");
    let by_origin: HashMap<Option<&str>, Option<&str>> = spent
        .map(|row| (row.origin.as_deref(), row.detail.as_deref()))
        .collect();
    let of_run = by_origin.get(&None).copied().flatten();
    move |waiting: &UnsettledUrl<'_>| {
        let origin = waiting.url.origin();
        let own = by_origin.get(&Some(origin.as_str())).copied().flatten();
        let budget = own.or(of_run)?;
        Some(NotFetchedReason {
            rule: Some(budget.to_owned()),
            ..NotFetchedReason::of(Reason::Budget)
        })
    }
}

/// Returns a map from the hash of each URL to the hash of the reason in the URL's last committed
/// row. A URL that stays deferred for that reason gets no row in later rounds.
fn last_committed_reasons(file: &mut RowFileWriter) -> Result<HashMap<u64, u64>, EngineError> {
    file.sync()?;
    let mut reasons = HashMap::new();
    for row in RowReader::<ExcludedRow>::open(file.path(), None)? {
        match row {
            Ok(row) => drop(reasons.insert(hash(&row.url), hash(&row.reason))),
            Err(ReadError::Row { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(reasons)
}

fn hash(text: &str) -> u64 {
    FixedState::default().hash_one(text)
}

/// Writes a row for each URL for which `exclusion` returns an exclusion.
fn list(
    (file, seeds, when): (&mut RowFileWriter, &ScopeSeeds, Option<(u32, Timestamp)>),
    exclusion: impl Fn(&UnsettledUrl<'_>) -> Option<NotFetchedReason>,
    show: impl FnOnce(&mut UnsettledUrlCallback<'_>) -> Result<(), FrontierError>,
) -> Result<(), EngineError> {
    let mut failed: Option<ArchiveWriteError> = None;
    show(&mut |waiting| {
        let Some(exclusion) = exclusion(&waiting) else {
            return ControlFlow::Continue(());
        };
        let label = seeds.label(waiting.url);
        match file.append(&excluded_row(
            waiting.url,
            &exclusion,
            waiting.via,
            label,
            when,
        )) {
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    failed.map_or(Ok(()), |error| Err(error.into()))
}

/// Counts the rows in the file itself, so that the summary agrees with the file. In later rounds,
/// counts only the last row of each URL. With a `frontier`, leaves out URLs that have been fetched
/// or became pending after they were excluded.
fn count_by_reason(
    config: &Config,
    round: u32,
    frontier: Option<&dyn Frontier>,
) -> Result<ExcludedCounts, EngineError> {
    let mut counts = ExcludedCounts::new();
    // Many URLs have the same few reasons, so the map stores the index of a reason for each URL.
    let (mut names, mut reasons) = (Vec::new(), HashMap::<u64, usize>::new());
    for row in RowReader::<ExcludedRow>::open(&config.output.join(EXCLUDED), None)? {
        let row = match row {
            Ok(row) => row,
            Err(ReadError::Row { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        if round == 1 {
            *counts.entry(row.reason).or_default() += 1;
            continue;
        }
        let is_obsolete = match frontier {
            Some(frontier) => is_obsolete(frontier, &row, round)?,
            None => false,
        };
        if !is_obsolete {
            let number = names.iter().position(|name| *name == row.reason);
            let number = number.unwrap_or_else(|| {
                names.push(row.reason);
                names.len() - 1
            });
            reasons.insert(hash(&row.url), number);
        }
    }
    for number in reasons.into_values() {
        if let Some(reason) = names.get(number) {
            *counts.entry(reason.clone()).or_default() += 1;
        }
    }
    Ok(counts)
}

/// Returns whether the URL of a row was fetched, or was made pending by a later round.
fn is_obsolete(
    frontier: &dyn Frontier,
    row: &ExcludedRow,
    round: u32,
) -> Result<bool, FrontierError> {
    let Ok(url) = canonicalize(None, &row.url) else {
        return Ok(false);
    };
    let state = frontier.known(&url)?.map(|known| known.state);
    Ok(match state {
        Some(KnownState::Fetched { .. } | KnownState::Failed { .. }) => true,
        Some(KnownState::Pending { .. } | KnownState::Leased { .. }) => row.round < Some(round),
        Some(KnownState::Deferred(_) | KnownState::Excluded(_)) | None => false,
    })
}
