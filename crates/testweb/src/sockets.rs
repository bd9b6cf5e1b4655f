//! Addresses and sockets of the hosts.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use crate::test_web_builder::TestWebBuilder;

/// Maximum number of ports to try. A port is unsuitable if it is already in use on one of the
/// addresses.
const MAX_DRAWS: u32 = 50;

/// The addresses and sockets on which the hosts listen.
pub(crate) struct BoundSockets {
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) listeners: Vec<TcpListener>,
}

pub(crate) fn bind(spec: &TestWebBuilder) -> io::Result<BoundSockets> {
    let spread = spec.addresses.unwrap_or(spec.hosts).min(spec.hosts);
    let ips: Vec<IpAddr> = (0..spec.hosts).map(|host| ip(host % spread)).collect();
    match spread < spec.hosts {
        true => BoundSockets::of(&ips, 0),
        false => bind_shared(&ips),
    }
}

fn bind_shared(ips: &[IpAddr]) -> io::Result<BoundSockets> {
    let mut last = BoundSockets::of(&ips[..1], 0)?;
    for _ in 0..MAX_DRAWS {
        let port = last.addresses[0].port();
        match BoundSockets::of(&ips[1..], port) {
            Ok(rest) => {
                last.addresses.extend(rest.addresses);
                last.listeners.extend(rest.listeners);
                return Ok(last);
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                // Keep the old socket open until the new one is bound, so that the new one gets a
                // different port.
                last = BoundSockets::of(&ips[..1], 0)?;
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AddrInUse,
        "no port is free on all addresses",
    ))
}

impl BoundSockets {
    fn of(ips: &[IpAddr], port: u16) -> io::Result<BoundSockets> {
        let mut bound = BoundSockets {
            addresses: Vec::new(),
            listeners: Vec::new(),
        };
        for ip in ips {
            let listener = listen(SocketAddr::new(*ip, port))?;
            bound.addresses.push(listener.local_addr()?);
            bound.listeners.push(listener);
        }
        Ok(bound)
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Returns 127.16.0.1, 127.16.0.2 and so on, but no address that ends in 0 or 255.
fn ip(number: u32) -> IpAddr {
    let byte = |value: u32| u8::try_from(value).unwrap_or(u8::MAX);
    let (rest, last) = (number / 250, number % 250);
    Ipv4Addr::new(127, byte(16 + rest / 250), byte(rest % 250), byte(1 + last)).into()
}
