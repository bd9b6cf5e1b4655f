//! Reads and changes the state of a crawl that is not running.

use std::collections::BTreeSet;
use std::path::Path;

use crawl_archive::{DIGESTS, FilesToRehash, write_digests};
use crawl_fetcher::SiteSessions;
use crawl_frontier::{Frontier, UrlToAdmit};
use crawl_weburl::{CanonicalUrl, HostKey, host_and_port};

use super::stored_parked_hosts::{listed, parked};
use super::{crawl_directory, worker_state_folder};
use crate::control::{CommandRefusal, MAX_PARKED};
use crate::error::EngineError;
use crate::frontier_meta_keys::{META_PARKED, META_SESSION};
use crate::revisit::round;

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
    let round = round::stored(&*frontier)?;
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
/// next run tries it again, even with the same credentials. In the directory of a worker on a shared
/// frontier, only records the change, without checking that the host is parked. The worker unparks
/// the host at its next start.
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

/// Parks and unparks the hosts that [`park_at_rest`] and [`unpark_at_rest`] recorded in a worker's
/// folder `state`.
pub(super) fn apply_recorded_parking(
    frontier: &dyn Frontier,
    state: &Path,
) -> Result<(), EngineError> {
    let recorded = worker_state_folder::recorded_parking(state)?;
    if recorded.is_empty() {
        return Ok(());
    }
    let mut changes = ParkingChanges::of(frontier)?;
    for (host, parks) in &recorded {
        let Ok(host) = HostKey::parse(host) else {
            continue;
        };
        match parks {
            true => drop(changes.hosts.insert(host)),
            false => drop(changes.unpark(&host)?),
        }
    }
    changes.store()?;
    worker_state_folder::remove_recorded_parking(state)
}

/// Returns the names of all `[site]` tables that may cover a host.
fn sites_of(host: &HostKey) -> Vec<String> {
    let (name, port) = host_and_port(host.as_str());
    let parents = name.match_indices('.').map(|(at, _)| &name[at + 1..]);
    let names = [name].into_iter().chain(parents);
    let sites = names.flat_map(|name| {
        let with_port = port.map(|port| format!("{name}:{port}"));
        [Some(name.to_owned()), with_port].into_iter().flatten()
    });
    sites.collect()
}

/// Changes to the parked hosts of a crawl that are not stored yet.
struct ParkingChanges<'a> {
    frontier: &'a dyn Frontier,
    /// All parked hosts after the changes.
    hosts: BTreeSet<HostKey>,
    /// The keys and values of other metadata to store.
    metas: Vec<(String, Vec<u8>)>,
}

impl ParkingChanges<'_> {
    fn of(frontier: &dyn Frontier) -> Result<ParkingChanges<'_>, EngineError> {
        Ok(ParkingChanges {
            frontier,
            hosts: parked(frontier)?,
            metas: Vec::new(),
        })
    }

    /// Parks a host. Refuses a host that the crawl doesn't know.
    fn park_known(&mut self, host: &HostKey) -> Result<(), EngineError> {
        let is_known = self.hosts.contains(host) || self.frontier.host(host)?.is_some();
        let origins = || self.frontier.origins().into_iter();
        if !is_known && !origins().any(|(origin, _)| origin.host_key() == *host) {
            return Err(CommandRefusal::UnknownHost(host.clone()).into());
        }
        self.hosts.insert(host.clone());
        match self.hosts.len() > MAX_PARKED {
            true => Err(CommandRefusal::TooManyParked(MAX_PARKED).into()),
            false => Ok(()),
        }
    }

    /// Unparks a host, and lets a refused login to its site be tried again. Returns false if that
    /// changes nothing.
    fn unpark(&mut self, host: &HostKey) -> Result<bool, EngineError> {
        let before = self.metas.len();
        for site in sites_of(host) {
            let key = format!("{META_SESSION}{site}");
            let stored = self.frontier.meta(&key)?;
            let changed = stored.and_then(|stored| SiteSessions::without_refusal(&stored));
            self.metas.extend(changed.map(|changed| (key, changed)));
        }
        Ok(self.hosts.remove(host) || self.metas.len() > before)
    }

    fn store(self) -> Result<(), EngineError> {
        let mut transaction = self.frontier.begin()?;
        transaction.keep_meta(META_PARKED, &listed(self.hosts.iter()));
        for (key, bytes) in &self.metas {
            transaction.keep_meta(key, bytes);
        }
        transaction.commit()?;
        Ok(())
    }
}
