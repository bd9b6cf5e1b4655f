//! Which part of the address space an IP lies in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Who can be reached at an address, as far as the address itself tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressClass {
    /// Anyone's server on the Internet.
    Public,
    /// This machine (127.0.0.0/8, ::1).
    Loopback,
    /// Private or shared ranges (RFC 1918, RFC 4193, RFC 6598), link-local ones
    /// (where cloud metadata services answer) and site-local ones.
    Private,
    /// No single server: unspecified, multicast, broadcast, documentation, reserved.
    Unusable,
}

/// Classifies an address. IPv4 addresses that are carried in IPv6 ones (mapped,
/// compatible, 6to4, NAT64) are judged by the IPv4 address within.
#[must_use]
pub fn classify(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(v4) => classify_v4(v4),
        IpAddr::V6(v6) => match embedded_v4(v6) {
            Some(v4) => classify_v4(v4),
            None => classify_v6(v6),
        },
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (127, ..) => AddressClass::Loopback,
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => AddressClass::Private,
        (169, 254, _) | (100, 64..=127, _) => AddressClass::Private,
        (0, ..) | (224..=255, ..) => AddressClass::Unusable,
        (192, 0, 0 | 2) | (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113) => {
            AddressClass::Unusable
        }
        _ => AddressClass::Public,
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    let [first, second, ..] = address.segments();
    if address.is_loopback() {
        AddressClass::Loopback
    } else if first & 0xfe00 == 0xfc00 || first & 0xff80 == 0xfe80 {
        AddressClass::Private
    } else if address.is_unspecified()
        || first & 0xff00 == 0xff00
        || (first, second) == (0x2001, 0xdb8)
    {
        AddressClass::Unusable
    } else {
        AddressClass::Public
    }
}

fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let from = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => from(high, low),
        // RFC 6052 and RFC 8215 (local use) NAT64 prefixes.
        [0x64, 0xff9b, 0 | 1, .., high, low] => from(high, low),
        [0x2002, high, low, ..] => from(high, low),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => from(high, low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{AddressClass, classify};

    #[test]
    fn each_range_has_its_class() {
        let cases = [
            ("127.0.0.1", AddressClass::Loopback),
            ("127.255.3.4", AddressClass::Loopback),
            ("::1", AddressClass::Loopback),
            ("::ffff:127.0.0.1", AddressClass::Loopback),
            ("64:ff9b::7f00:1", AddressClass::Loopback),
            ("10.1.2.3", AddressClass::Private),
            ("172.16.0.1", AddressClass::Private),
            ("172.32.0.1", AddressClass::Public),
            ("192.168.1.1", AddressClass::Private),
            ("169.254.169.254", AddressClass::Private),
            ("64:ff9b::a9fe:a9fe", AddressClass::Private),
            ("64:ff9b:1::a9fe:a9fe", AddressClass::Private),
            ("2002:a9fe:a9fe::1", AddressClass::Private),
            ("100.64.0.1", AddressClass::Private),
            ("fd00::1", AddressClass::Private),
            ("fe80::1", AddressClass::Private),
            ("fec0::1", AddressClass::Private),
            ("0.0.0.0", AddressClass::Unusable),
            ("::", AddressClass::Unusable),
            ("224.0.0.1", AddressClass::Unusable),
            ("255.255.255.255", AddressClass::Unusable),
            ("ff02::1", AddressClass::Unusable),
            ("192.0.2.1", AddressClass::Unusable),
            ("2001:db8::1", AddressClass::Unusable),
            ("93.184.215.14", AddressClass::Public),
            ("2606:2800:220:1::1", AddressClass::Public),
        ];
        for (address, class) in cases {
            assert_eq!(classify(address.parse().unwrap()), class, "{address}");
        }
    }
}
