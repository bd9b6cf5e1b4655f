//! Addresses and sockets of the hosts.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use crate::spec::Spec;

/// Maximum number of ports to try. A port is unsuitable if it is already in use on one of the
/// addresses.
const MAX_DRAWS: u32 = 50;

/// The addresses and sockets on which the hosts listen.
pub(crate) struct Bound {
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) listeners: Vec<TcpListener>,
}

pub(crate) fn bind(spec: &Spec) -> io::Result<Bound> {
    let spread = spec.addresses.unwrap_or(spec.hosts).min(spec.hosts);
    let ips: Vec<IpAddr> = (0..spec.hosts).map(|host| ip(host % spread)).collect();
    match spread < spec.hosts {
        true => Bound::of(&ips, 0),
        false => bind_shared(&ips),
    }
}

fn bind_shared(ips: &[IpAddr]) -> io::Result<Bound> {
    let mut last = Bound::of(&ips[..1], 0)?;
    for _ in 0..MAX_DRAWS {
        let port = last.addresses[0].port();
        match Bound::of(&ips[1..], port) {
            Ok(rest) => {
                last.addresses.extend(rest.addresses);
                last.listeners.extend(rest.listeners);
                return Ok(last);
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                // Keep the old socket open until the new one is bound, so that the new one gets a
                // different port.
                last = Bound::of(&ips[..1], 0)?;
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AddrInUse,
        "no port is free on all addresses",
    ))
}

impl Bound {
    fn of(ips: &[IpAddr], port: u16) -> io::Result<Bound> {
        let mut bound = Bound {
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
