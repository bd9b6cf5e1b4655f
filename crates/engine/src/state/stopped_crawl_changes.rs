//! Reads and changes the state of a crawl that is not running.

use std::path::Path;

use crawl_archive::{DIGESTS, FilesToRehash, write_digests};
use crawl_frontier::{Frontier as _, UrlToAdmit};
use crawl_weburl::{CanonicalUrl, HostKey};

use super::parking_changes::ParkingChanges;
use super::stored_parked_hosts::parked;
use super::{crawl_directory, worker_state_folder};
use crate::control::CommandRefusal;
use crate::error::EngineError;
use crate::revisit::round_of_run;

/// Maximum URLs to admit in one transaction.
const MAX_BATCH: usize = 4096;

/// Creates a crawl in `dir` with these URLs as seeds, without sending any request. A later run
/// continues the crawl. The URLs are streamed, so they are never all in memory.
///
/// # Errors
/// [`EngineError`] if the state can't be created, or the first error in `urls`.
pub fn admit_at_rest<E: From<EngineError>>(
    dir: &Path,
    urls: impl Iterator<Item = Result<CanonicalUrl, E>>,
) -> Result<(), E> {
    let frontier = crawl_directory::begin_at_rest(dir)?;
    let mut urls = urls.peekable();
    while urls.peek().is_some() {
        let batch: Result<Vec<_>, E> = urls.by_ref().take(MAX_BATCH).collect();
        let batch: Vec<_> = batch?.into_iter().map(UrlToAdmit::seed).collect();
        let admitted = frontier.begin().and_then(|mut transaction| {
            transaction.admit_all(&batch)?;
            transaction.commit()
        });
        admitted.map_err(EngineError::from)?;
    }
    Ok(())
}

/// The last round of a crawl that is not running, and its parked hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastRound {
    /// The round's number, from 1.
    pub number: u32,
    /// When the round began, in seconds since the Unix epoch.
    pub began: u32,
    /// Whether the round is complete.
    pub is_over: bool,
    /// The parked hosts of the crawl, ordered by name.
    pub parked: Vec<HostKey>,
}

/// Returns the last round of the crawl in `dir`. `None` if there is no crawl, or its first round
/// has not begun.
///
/// # Errors
/// [`EngineError`] if `dir` contains anything but a crawl, another process uses the crawl, or the
/// state can't be read.
pub fn last_round(dir: &Path) -> Result<Option<LastRound>, EngineError> {
    let frontier = match crawl_directory::open_at_rest(dir) {
        Err(EngineError::NothingToDo { .. }) => return Ok(None),
        frontier => frontier?,
    };
    let round = round_of_run::stored(&*frontier)?;
    let parked = parked(&*frontier)?.into_iter().collect();
    Ok(round.map(|round| LastRound {
        number: round.number,
        began: round.began,
        is_over: round.is_over,
        parked,
    }))
}

/// Parks a host of a crawl that is not running. In the directory of a worker on a shared frontier,
/// only records the change, without checking that the host is known. The worker parks the host at
/// its next start.
///
/// # Errors
/// [`EngineError::Refused`], or an error opening the crawl's state.
pub fn park_at_rest(dir: &Path, host: &HostKey) -> Result<(), EngineError> {
    change_at_rest(dir, host, true)
}

/// Unparks a host of a crawl that is not running. If the login to the host's site was refused, the
/// next run tries it again, even with the same credentials. In the directory of a worker on a
/// shared frontier, only records the change, without checking that the host is parked. The worker
/// unparks the host at its next start.
///
/// # Errors
/// [`EngineError::Refused`], or an error opening the crawl's state.
pub fn unpark_at_rest(dir: &Path, host: &HostKey) -> Result<(), EngineError> {
    change_at_rest(dir, host, false)
}

fn change_at_rest(dir: &Path, host: &HostKey, parks: bool) -> Result<(), EngineError> {
    match crawl_directory::open_at_rest(dir) {
        Err(EngineError::SharedState { .. }) => {
            worker_state_folder::record_parking(
                dir,
                &dir.join(crawl_directory::STATE),
                host,
                parks,
            )?;
        }
        frontier => {
            let frontier = frontier?;
            let mut changes = ParkingChanges::of(&*frontier)?;
            match parks {
                true => changes.park_known(host)?,
                false if !changes.unpark(host)? => {
                    return Err(CommandRefusal::NotParked(host.clone()).into());
                }
                false => {}
            }
            changes.store()?;
        }
    }
    let listed = write_digests(dir, FilesToRehash::Named(&[crawl_directory::STATE]));
    listed.map_err(EngineError::disk(&dir.join(DIGESTS)))
}
