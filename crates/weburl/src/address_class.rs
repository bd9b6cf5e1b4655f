//! Classes of IP addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The class of an IP address: what kind of host it can belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressClass {
    /// A public server on the Internet.
    Public,
    /// This machine (127.0.0.0/8, ::1).
    Loopback,
    /// A private or shared address (RFC 1918, RFC 4193, RFC 6598), a link-local or site-local
    /// address, or the metadata address of a cloud provider.
    Private,
    /// An address that is not a single server: unspecified, multicast, broadcast, documentation,
    /// benchmarking or reserved.
    Unusable,
}

/// Classifies an address by the IANA registries of special-purpose addresses (RFC 6890). An IPv6
/// address that embeds an IPv4 address (mapped, compatible, translated, 6to4, NAT64, Teredo) has
/// the class of the IPv4 address.
#[must_use]
pub fn classify(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(v4) => classify_v4(v4),
        IpAddr::V6(v6) => within(v6).unwrap_or_else(|| classify_v6(v6)),
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    let [a, b, c, d] = address.octets();
    match (a, b, c, d) {
        (127, ..) => AddressClass::Loopback,
        (10, ..) | (172, 16..=31, ..) | (192, 168, ..) => AddressClass::Private,
        (169, 254, ..) | (100, 64..=127, ..) => AddressClass::Private,
        // The metadata address of Azure. Other cloud providers' metadata addresses are in private
        // ranges.
        (168, 63, 129, 16) => AddressClass::Private,
        (0, ..) | (224..=255, ..) => AddressClass::Unusable,
        (192, 0, 0 | 2, _) | (198, 18 | 19, ..) | (198, 51, 100, _) | (203, 0, 113, _) => {
            AddressClass::Unusable
        }
        // Former 6to4 relays (RFC 7526).
        (192, 88, 99, _) => AddressClass::Unusable,
        _ => AddressClass::Public,
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    let [first, second, ..] = address.segments();
    if address.is_loopback() {
        AddressClass::Loopback
    } else if first & 0xfe00 == 0xfc00 || first & 0xff80 == 0xfe80 {
        AddressClass::Private
    } else if first & 0xe000 != 0x2000 {
        // Only 2000::/3 is allocated for global unicast. All other ranges are ::, multicast,
        // discard, segment routing, or unassigned.
        AddressClass::Unusable
    } else if (first == 0x2001 && (second < 0x200 || second == 0xdb8))
        || (first == 0x3fff && second < 0x1000)
    {
        // Protocol assignments (RFC 2928), including benchmarking and ORCHIDs, and documentation
        // (RFC 3849, RFC 9637).
        AddressClass::Unusable
    } else {
        AddressClass::Public
    }
}

/// Returns the class of the embedded IPv4 address, or `None` if there is none.
fn within(address: Ipv6Addr) -> Option<AddressClass> {
    let bytes = address.octets();
    let at = |places: [usize; 4]| classify_v4(Ipv4Addr::from(places.map(|place| bytes[place])));
    let last = || at([12, 13, 14, 15]);
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => Some(last()),
        [0, 0, 0, 0, 0, 0, high, _] if high != 0 => Some(last()),
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(last()),
        // A network's own NAT64 prefix (RFC 8215) may have any of the lengths in RFC 6052 section
        // 2.2. The prefix length is unknown, so the address is private if it contains a private or
        // loopback address at any of these lengths.
        [0x64, 0xff9b, 1, ..] => {
            let shorter = [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12]];
            let private = shorter.map(at).into_iter().find(is_home);
            Some(private.unwrap_or_else(last))
        }
        [0x2002, ..] => Some(at([2, 3, 4, 5])),
        // A Teredo address (RFC 4380 section 4) contains the address of a server, and the address
        // of a client with all bits inverted.
        [0x2001, 0, ..] => {
            let client = [12, 13, 14, 15].map(|place: usize| !bytes[place]);
            let client = classify_v4(Ipv4Addr::from(client));
            let server = at([4, 5, 6, 7]);
            Some(if server == AddressClass::Public {
                client
            } else {
                server
            })
        }
        _ => None,
    }
}

fn is_home(class: &AddressClass) -> bool {
    matches!(class, AddressClass::Loopback | AddressClass::Private)
}

#[cfg(test)]
mod tests {
    use super::AddressClass::{Loopback, Private, Public, Unusable};
    use super::{AddressClass, classify};

    fn check(cases: &[(&str, AddressClass)]) {
        for (address, class) in cases {
            assert_eq!(classify(address.parse().unwrap()), *class, "{address}");
        }
    }

    #[test]
    fn each_ipv4_range_has_its_class() {
        check(&[
            ("127.0.0.1", Loopback),
            ("127.255.3.4", Loopback),
            ("10.1.2.3", Private),
            ("172.15.255.255", Public),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("172.32.0.1", Public),
            ("192.168.1.1", Private),
            ("169.254.169.254", Private),
            ("100.63.0.1", Public),
            ("100.64.0.1", Private),
            ("100.100.100.200", Private),
            ("168.63.129.16", Private),
            ("168.63.129.17", Public),
            ("0.0.0.0", Unusable),
            ("0.1.2.3", Unusable),
            ("192.0.0.192", Unusable),
            ("192.0.2.1", Unusable),
            ("192.88.99.1", Unusable),
            ("198.18.0.1", Unusable),
            ("198.19.255.255", Unusable),
            ("198.51.100.1", Unusable),
            ("203.0.113.1", Unusable),
            ("224.0.0.1", Unusable),
            ("240.0.0.1", Unusable),
            ("255.255.255.255", Unusable),
            ("93.184.215.14", Public),
        ]);
    }

    #[test]
    fn each_ipv6_range_has_its_class() {
        check(&[
            ("::1", Loopback),
            ("fd00::1", Private),
            ("fd00:ec2::254", Private),
            ("fc00::1", Private),
            ("fe80::1", Private),
            ("fec0::1", Private),
            ("::", Unusable),
            ("::2", Unusable),
            ("100::1", Unusable),
            ("100:0:0:1::1", Unusable),
            ("2001:2::1", Unusable),
            ("2001:10::1", Unusable),
            ("2001:20::1", Unusable),
            ("2001:db8::1", Unusable),
            ("3fff::1", Unusable),
            ("3fff:fff:ffff::1", Unusable),
            ("4000::1", Unusable),
            ("5f00::1", Unusable),
            ("ff02::1", Unusable),
            ("2001:200::1", Public),
            ("2606:2800:220:1::1", Public),
        ]);
    }

    #[test]
    fn an_embedded_ipv4_address_decides() {
        check(&[
            ("::ffff:127.0.0.1", Loopback),
            ("::ffff:93.184.215.14", Public),
            ("::ffff:0:10.0.0.1", Private),
            ("::10.0.0.1", Private),
            ("::127.0.0.1", Loopback),
            ("64:ff9b::7f00:1", Loopback),
            ("64:ff9b::a9fe:a9fe", Private),
            ("64:ff9b::93.184.215.14", Public),
            ("64:ff9b:0:1::93.184.215.14", Unusable),
            ("2002:a9fe:a9fe::1", Private),
            ("2002:7f00:1::", Loopback),
            ("2002:5db8:d70e::1", Public),
            // Teredo: the server's address is private. In the next row, the client's address is
            // private (10.0.0.1, with inverted bits).
            ("2001:0:a00:1:0:0:a247:28f1", Private),
            ("2001:0:4136:e378:8000:63bf:f5ff:fffe", Private),
            ("2001:0:4136:e378:8000:63bf:a247:28f1", Public),
        ]);
    }

    #[test]
    fn rfc6052_2_2_any_length_of_a_local_nat64_prefix() {
        check(&[
            ("64:ff9b:1::a9fe:a9fe", Private),
            ("64:ff9b:1:fffe::7f00:1", Loopback),
            ("64:ff9b:1:fffe::93.184.215.14", Public),
            // The private address 10.0.0.1 after prefixes of 48, 56 and 64 bits.
            ("64:ff9b:1:a00:0:100::", Private),
            ("64:ff9b:1:a:0:1::", Private),
            ("64:ff9b:1:0:a:0:100:0", Private),
            // The private address 10.0.0.1 again, with a public address in the last four bytes.
            ("64:ff9b:1:a00:0:100:5db8:d70e", Private),
        ]);
    }
}
