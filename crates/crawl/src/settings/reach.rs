//! Whose server a URL leads to, as far as the URL and `--resolve` tell.

use crawl_weburl::{AddressClass, CanonicalUrl, classify, host_address, is_localhost};

use crate::values::Resolve;

/// Whose server a URL's host is, as far as can be told without asking for its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// This machine.
    Loopback,
    /// Private ranges.
    Private,
    /// Someone else's: public addresses, and every name but localhost.
    Public,
}

/// The network in which the host of a URL lies; `resolve` may send a name elsewhere.
pub(crate) fn reach(url: &CanonicalUrl, resolve: &[Resolve]) -> Reach {
    let host = url.host().trim_end_matches('.');
    let sent_to = resolve
        .iter()
        .find(|entry| entry.host == host && entry.port == url.port());
    let addresses = match sent_to {
        Some(entry) => entry.addresses.clone(),
        None => host_address(host).into_iter().collect(),
    };
    let classes = addresses.into_iter().map(classify);
    match classes.max_by_key(|class| rank(*class)) {
        Some(AddressClass::Loopback) => Reach::Loopback,
        Some(AddressClass::Private) => Reach::Private,
        Some(_) => Reach::Public,
        None if is_localhost(host) => Reach::Loopback,
        None => Reach::Public,
    }
}

/// Of several addresses the furthest counts.
fn rank(class: AddressClass) -> u8 {
    match class {
        AddressClass::Loopback => 0,
        AddressClass::Private => 1,
        _ => 2,
    }
}
