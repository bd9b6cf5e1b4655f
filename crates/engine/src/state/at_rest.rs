//! Questions to a crawl that does not run, and changes in it.

use std::collections::BTreeSet;
use std::path::Path;

use crawl_archive::{ChangedFiles, DIGESTS, write_digests};
use crawl_frontier::{Admission, Frontier};
use crawl_weburl::{CanonicalUrl, HostKey};

use super::directory;
use super::parked_hosts::{listed, parked};
use crate::control::{MAX_PARKED, Refused};
use crate::error::EngineError;
use crate::meta_keys::META_PARKED;
use crate::revisit::round;

/// URLs that are admitted in one transaction, at most.
const MAX_BATCH: usize = 4096;

/// Begins a crawl in `dir` that knows these URLs, each as a seed, and asks nobody: a run goes on
/// with it. They are never all in memory.
///
/// # Errors
/// [`EngineError`] where the state can't be made, and the first error of `urls`.
pub fn admit_at_rest<E: From<EngineError>>(
    dir: &Path,
    urls: impl Iterator<Item = Result<CanonicalUrl, E>>,
) -> Result<(), E> {
    let frontier = directory::begin_at_rest(dir)?;
    let mut urls = urls.peekable();
    while urls.peek().is_some() {
        let batch: Result<Vec<_>, E> = urls.by_ref().take(MAX_BATCH).collect();
        let batch: Vec<_> = batch?.into_iter().map(Admission::seed).collect();
        let admitted = frontier.begin().and_then(|mut transaction| {
            transaction.admit_all(&batch)?;
            transaction.commit()
        });
        admitted.map_err(EngineError::from)?;
    }
    Ok(())
}

/// The last round of a crawl that does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastRound {
    /// Its number, from 1.
    pub number: u32,
    /// When it began, in seconds since the Unix epoch.
    pub began: u32,
    /// True if it ended by itself.
    pub is_over: bool,
    /// Hosts that are parked, in the order of their names.
    pub parked: Vec<HostKey>,
}

/// The last round of the crawl in `dir`; none where no crawl lies there.
///
/// # Errors
/// [`EngineError`] where something else lies there, another process is at it, or the state can't
/// be read.
pub fn last_round(dir: &Path) -> Result<Option<LastRound>, EngineError> {
    let frontier = match directory::open_at_rest(dir) {
        Err(EngineError::NothingToDo { .. }) => return Ok(None),
        frontier => frontier?,
    };
    let round = round::stored(&frontier)?;
    let parked = parked(&frontier)?.into_iter().collect();
    Ok(round.map(|round| LastRound {
        number: round.number,
        began: round.began,
        is_over: round.is_over,
        parked,
    }))
}

/// Parks a host of a crawl that does not run.
///
/// # Errors
/// [`EngineError::Refused`], and those of opening the crawl's state.
pub fn park_at_rest(dir: &Path, host: &HostKey) -> Result<(), EngineError> {
    change_at_rest(dir, |frontier, hosts| {
        let is_known = hosts.contains(host) || frontier.host(host)?.is_some();
        let waits = || {
            frontier
                .origins()
                .into_iter()
                .map(|(origin, _)| origin.host_key())
        };
        if !is_known && !waits().any(|waits| waits == *host) {
            return Err(Refused::UnknownHost(host.clone()).into());
        }
        hosts.insert(host.clone());
        match hosts.len() > MAX_PARKED {
            true => Err(Refused::TooManyParked(MAX_PARKED).into()),
            false => Ok(()),
        }
    })
}

/// Takes a parked host of a crawl back that does not run.
///
/// # Errors
/// [`EngineError::Refused`], and those of opening the crawl's state.
pub fn unpark_at_rest(dir: &Path, host: &HostKey) -> Result<(), EngineError> {
    change_at_rest(dir, |_, hosts| match hosts.remove(host) {
        true => Ok(()),
        false => Err(Refused::NotParked(host.clone()).into()),
    })
}

fn change_at_rest(
    dir: &Path,
    change: impl FnOnce(&dyn Frontier, &mut BTreeSet<HostKey>) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let frontier = directory::open_at_rest(dir)?;
    let mut hosts = parked(&frontier)?;
    change(&frontier, &mut hosts)?;
    let mut transaction = frontier.begin()?;
    transaction.keep_meta(META_PARKED, &listed(hosts.iter()));
    transaction.commit()?;
    drop(frontier);
    let listed = write_digests(dir, ChangedFiles::Named(&[directory::STATE]));
    listed.map_err(EngineError::disk(&dir.join(DIGESTS)))
}
