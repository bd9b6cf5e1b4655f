//! Whether a URL leads to this machine, a private network or the public, judged by the URL and
//! `--resolve` alone.

use crawl_weburl::{AddressClass, CanonicalUrl, class_of_host, classify, without_trailing_dot};

use crate::values::AddressOverride;

/// The network that a URL's host is assumed to be in, without a DNS lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostNetworkClass {
    /// This machine.
    Loopback,
    /// Addresses in private ranges.
    Private,
    /// Public addresses, and names whose address isn't known without a DNS lookup.
    Public,
}

/// Classifies the host of a URL. `resolve` may replace the addresses of a name.
pub(crate) fn reach(url: &CanonicalUrl, resolve: &[AddressOverride]) -> HostNetworkClass {
    let host = without_trailing_dot(url.host());
    let sent_to = resolve
        .iter()
        .find(|entry| entry.host == host && entry.port == url.port());
    let class = match sent_to {
        Some(entry) => {
            let classes = entry.addresses.iter().copied().map(classify);
            classes.max_by_key(|class| rank(*class))
        }
        None => class_of_host(host),
    };
    match class {
        Some(AddressClass::Loopback) => HostNetworkClass::Loopback,
        Some(AddressClass::Private) => HostNetworkClass::Private,
        _ => HostNetworkClass::Public,
    }
}

/// Ranks address classes. If a host has several addresses, the one with the highest rank decides.
fn rank(class: AddressClass) -> u8 {
    match class {
        AddressClass::Loopback => 0,
        AddressClass::Private => 1,
        _ => 2,
    }
}
