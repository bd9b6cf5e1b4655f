//! The stored list of parked hosts.

use std::collections::BTreeSet;

use crawl_frontier::{Frontier, FrontierError};
use crawl_weburl::HostKey;

use crate::frontier_meta_keys::META_PARKED;

/// Encodes the list of parked hosts for the state.
pub(crate) fn listed<'a>(hosts: impl Iterator<Item = &'a HostKey>) -> Vec<u8> {
    let names: Vec<&str> = hosts.map(HostKey::as_str).collect();
    serde_json::to_vec(&names).unwrap_or_default()
}

/// Stores the list of parked hosts.
pub(crate) fn store_parked(
    frontier: &dyn Frontier,
    hosts: impl Iterator<Item = HostKey>,
) -> Result<(), FrontierError> {
    let hosts: BTreeSet<HostKey> = hosts.collect();
    let mut transaction = frontier.begin()?;
    transaction.keep_meta(META_PARKED, &listed(hosts.iter()));
    transaction.commit()?;
    Ok(())
}

/// Reads the parked hosts from the state.
pub(crate) fn parked(frontier: &dyn Frontier) -> Result<BTreeSet<HostKey>, FrontierError> {
    let bytes = frontier.meta(META_PARKED)?.unwrap_or_default();
    let names: Vec<String> = serde_json::from_slice(&bytes).unwrap_or_default();
    let hosts = names.iter().filter_map(|name| HostKey::parse(name).ok());
    Ok(hosts.collect())
}
