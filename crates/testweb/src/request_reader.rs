//! Reads the head of a request from a connection.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Maximum head size in bytes. Longer heads are refused.
const MAX_HEAD_BYTES: usize = 256 * 1024;

/// A request as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedRequest {
    /// The number of the host that received the request, from 0.
    pub host: u32,
    /// The method as sent.
    pub method: String,
    /// Path and query as sent.
    pub path: String,
    /// Header lines in order, names as sent.
    pub headers: Vec<(String, String)>,
    pub(crate) keeps_alive: bool,
}

impl ReceivedRequest {
    /// Returns the first value of a header. Header names are case-insensitive.
    pub fn header(&self, name: &str) -> Option<&str> {
        let line = self
            .headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        line.map(|(_, value)| value.as_str())
    }
}

/// The result of reading from the client: a request, invalid data, or the end of the connection.
pub(crate) enum RequestReadResult {
    /// A request, and the time when its first byte was read.
    Request(ReceivedRequest, u64),
    /// An invalid request.
    Bad(&'static str),
    /// The client closed the connection.
    Closed,
}

/// Bytes that were read but not consumed yet.
#[derive(Default)]
pub(crate) struct ReadBuffer {
    bytes: Vec<u8>,
}

impl ReadBuffer {
    /// Reads the next request, and skips its body if it declares one.
    pub(crate) async fn request(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        host: u32,
        now_us: impl Fn() -> u64,
    ) -> io::Result<RequestReadResult> {
        let mut start_us = (!self.bytes.is_empty()).then(&now_us);
        let end = loop {
            if let Some(end) = find(&self.bytes, b"\r\n\r\n") {
                break end;
            }
            if self.bytes.len() > MAX_HEAD_BYTES {
                return Ok(RequestReadResult::Bad("the head is too long"));
            }
            if stream.read_buf(&mut self.bytes).await? == 0 {
                return Ok(RequestReadResult::Closed);
            }
            start_us.get_or_insert_with(&now_us);
        };
        let head = String::from_utf8_lossy(&self.bytes[..end]).into_owned();
        self.bytes.drain(..end + 4);
        let Some(request) = parse(&head, host) else {
            return Ok(RequestReadResult::Bad("this is no HTTP request"));
        };
        let length = request
            .header("content-length")
            .and_then(|length| length.parse().ok());
        self.skip(stream, length.unwrap_or(0)).await?;
        Ok(RequestReadResult::Request(
            request,
            start_us.unwrap_or_else(now_us),
        ))
    }

    async fn skip(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        length: usize,
    ) -> io::Result<()> {
        while self.bytes.len() < length {
            if stream.read_buf(&mut self.bytes).await? == 0 {
                break;
            }
        }
        self.bytes.drain(..length.min(self.bytes.len()));
        Ok(())
    }
}

fn parse(head: &str, host: u32) -> Option<ReceivedRequest> {
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path, version) = (first.next()?, first.next()?, first.next()?);
    if first.next().is_some() || !version.starts_with("HTTP/1.") {
        return None;
    }
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut request = ReceivedRequest {
        host,
        method: method.to_owned(),
        path: path.to_owned(),
        headers,
        keeps_alive: version == "HTTP/1.1",
    };
    if let Some(connection) = request.header("connection") {
        request.keeps_alive = !connection.eq_ignore_ascii_case("close");
    }
    // RFC 9112 section 3.2: an HTTP/1.1 request without Host gets 400.
    (version != "HTTP/1.1" || request.header("host").is_some()).then_some(request)
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes
        .windows(needle.len())
        .position(|window| window == needle)
}
