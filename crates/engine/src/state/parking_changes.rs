//! Changes to the parked hosts of a crawl that is not running.

use std::collections::BTreeSet;
use std::path::Path;

use crawl_fetcher::SiteSessions;
use crawl_frontier::Frontier;
use crawl_weburl::{HostKey, host_and_port};

use super::stored_parked_hosts::{listed, parked};
use super::worker_state_folder;
use crate::control::{CommandRefusal, MAX_PARKED};
use crate::error::EngineError;
use crate::frontier_meta_keys::{META_PARKED, META_SESSION};

/// Parks and unparks the hosts that were recorded in a worker's folder `state` while the worker was
/// not running, and deletes the record.
pub(super) fn apply_recorded_parking(
    frontier: &dyn Frontier,
    state: &Path,
) -> Result<(), EngineError> {
    match copy_recorded_parking(frontier, state)? {
        true => worker_state_folder::remove_recorded_parking(state),
        false => Ok(()),
    }
}

/// Like [`apply_recorded_parking`], but keeps the record. Returns whether there is one.
pub(super) fn copy_recorded_parking(
    frontier: &dyn Frontier,
    state: &Path,
) -> Result<bool, EngineError> {
    let recorded = worker_state_folder::recorded_parking(state)?;
    if recorded.is_empty() {
        return Ok(false);
    }
    let mut changes = ParkingChanges::of(frontier)?;
    for (host, parks) in &recorded {
        let Ok(host) = HostKey::parse(host) else {
            continue;
        };
        match parks {
            false => drop(changes.unpark(&host)?),
            true if changes.hosts.len() < MAX_PARKED => drop(changes.hosts.insert(host)),
            true => tracing::warn!(%host, "not parked, since {MAX_PARKED} hosts are parked"),
        }
    }
    changes.store()?;
    Ok(true)
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

/// Unstored changes to a crawl's parked hosts.
pub(super) struct ParkingChanges<'a> {
    frontier: &'a dyn Frontier,
    /// All parked hosts after the changes.
    hosts: BTreeSet<HostKey>,
    /// The keys and values of other metadata to store.
    metas: Vec<(String, Vec<u8>)>,
}

impl ParkingChanges<'_> {
    pub(super) fn of(frontier: &dyn Frontier) -> Result<ParkingChanges<'_>, EngineError> {
        Ok(ParkingChanges {
            frontier,
            hosts: parked(frontier)?,
            metas: Vec::new(),
        })
    }

    /// Parks a host. Refuses a host that the crawl doesn't know.
    pub(super) fn park_known(&mut self, host: &HostKey) -> Result<(), EngineError> {
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
    pub(super) fn unpark(&mut self, host: &HostKey) -> Result<bool, EngineError> {
        let before = self.metas.len();
        for site in sites_of(host) {
            let key = format!("{META_SESSION}{site}");
            let stored = self.frontier.meta(&key)?;
            let changed = stored.and_then(|stored| SiteSessions::without_refusal(&stored));
            self.metas.extend(changed.map(|changed| (key, changed)));
        }
        Ok(self.hosts.remove(host) || self.metas.len() > before)
    }

    pub(super) fn store(self) -> Result<(), EngineError> {
        let mut transaction = self.frontier.begin()?;
        transaction.keep_meta(META_PARKED, &listed(self.hosts.iter()));
        for (key, bytes) in &self.metas {
            transaction.keep_meta(key, bytes);
        }
        transaction.commit()?;
        Ok(())
    }
}
