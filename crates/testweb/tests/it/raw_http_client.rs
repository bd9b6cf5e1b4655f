//! A minimal client that sends exactly what a test specifies.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An answer as received.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Got {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Returns everything that the host sends in response to these bytes until it closes.
pub(crate) fn talk(address: SocketAddr, bytes: &str) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_mins(2)))?;
    stream.write_all(bytes.as_bytes())?;
    let mut got = Vec::new();
    stream.read_to_end(&mut got)?;
    Ok(got)
}

/// Sends a GET request on its own connection, with optional header lines (`"name: value\r\n"`).
pub(crate) fn get_with(address: SocketAddr, path: &str, lines: &str) -> io::Result<Got> {
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{lines}\r\n");
    let bytes = talk(address, &request)?;
    parse(&bytes).ok_or_else(|| io::Error::other("no HTTP answer"))
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Got {
    get_with(address, path, "").unwrap()
}

fn parse(bytes: &[u8]) -> Option<Got> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    Some(Got {
        status,
        headers,
        body: bytes[end + 4..].to_vec(),
    })
}
