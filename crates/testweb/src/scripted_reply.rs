//! Scripted replies: valid answers, invalid answers, and bytes that are not HTTP at all.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

/// A well-formed HTTP answer. The server adds `Content-Length` if the headers don't contain it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status code.
    pub status: u16,
    /// Header lines in order, with names as sent.
    pub headers: Vec<(String, String)>,
    /// The body as sent, encoded as the headers declare.
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// Creates an answer without headers and body.
    pub fn of(status: u16) -> HttpAnswer {
        HttpAnswer {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Creates a 200 answer with HTML in UTF-8.
    pub fn html(html: &str) -> HttpAnswer {
        HttpAnswer::of(200)
            .header("content-type", "text/html; charset=utf-8")
            .body(html)
    }

    /// Creates a 200 answer with plain text in UTF-8, as for robots.txt.
    pub fn text(text: &str) -> HttpAnswer {
        HttpAnswer::of(200)
            .header("content-type", "text/plain; charset=utf-8")
            .body(text)
    }

    /// Creates a redirect with this `Location`.
    pub fn redirect(status: u16, location: &str) -> HttpAnswer {
        HttpAnswer::of(status).header("location", location)
    }

    /// Adds a header line.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> HttpAnswer {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> HttpAnswer {
        self.body = body.into();
        self
    }

    /// Compresses the body with gzip and declares it in a header.
    #[must_use]
    pub fn gzip(mut self) -> HttpAnswer {
        self.body = gzip(&self.body);
        self.header("content-encoding", "gzip")
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.headers
            .iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(name))
    }
}

/// The reply of a host to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptedReply {
    /// The pause before the first byte, in addition to the host's latency.
    pub delay: Duration,
    pub(crate) act: ScriptedReplyContent,
}

/// The content of a [`ScriptedReply`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScriptedReplyContent {
    /// The answer that is computed from the web's seed, as if no script or handler replaced it.
    Usual,
    /// A well-formed answer, sent at once.
    Answer(HttpAnswer),
    /// A well-formed answer whose body is sent in pieces. The number is the size of a piece in
    /// bytes, and the duration is the pause before each piece.
    Drip(HttpAnswer, usize, Duration),
    /// Arbitrary bytes. The connection closes after the last step.
    Raw(Vec<RawReplyStep>),
}

/// A step of a raw reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawReplyStep {
    /// Send these bytes.
    Send(Vec<u8>),
    /// Send these bytes repeatedly until the client disconnects.
    Endless(Vec<u8>),
    /// Send these bytes this many times.
    Repeat(Vec<u8>, usize),
    /// Send nothing for this long.
    Wait(Duration),
    /// Send nothing until the client disconnects.
    Silence,
    /// Close this side of the connection. The client may continue sending.
    HalfClose,
    /// Reset the connection (RST) after the last step, instead of closing it.
    Reset,
}

impl From<HttpAnswer> for ScriptedReply {
    fn from(answer: HttpAnswer) -> ScriptedReply {
        ScriptedReply::act(ScriptedReplyContent::Answer(answer))
    }
}

impl ScriptedReply {
    fn act(act: ScriptedReplyContent) -> ScriptedReply {
        ScriptedReply {
            delay: Duration::ZERO,
            act,
        }
    }

    /// Creates a reply with the answer that is computed from the web's seed, as if no script or
    /// handler replaced it.
    pub fn usual() -> ScriptedReply {
        ScriptedReply::act(ScriptedReplyContent::Usual)
    }

    /// Creates a reply of the given bytes and pauses, after which the connection closes.
    pub fn raw(steps: impl Into<Vec<RawReplyStep>>) -> ScriptedReply {
        ScriptedReply::act(ScriptedReplyContent::Raw(steps.into()))
    }

    /// Creates a reply that sends the head immediately, then `bytes` of the body at a time, pausing
    /// before each piece.
    pub fn drip(answer: HttpAnswer, bytes: usize, pause: Duration) -> ScriptedReply {
        ScriptedReply::act(ScriptedReplyContent::Drip(answer, bytes.max(1), pause))
    }

    /// Creates a reply that reads the request and never answers.
    pub fn silence() -> ScriptedReply {
        ScriptedReply::raw([RawReplyStep::Silence])
    }

    /// Creates a reply that resets the connection without an answer.
    pub fn reset() -> ScriptedReply {
        ScriptedReply::raw([RawReplyStep::Reset])
    }

    /// Creates a reply that closes the connection without an answer.
    pub fn close() -> ScriptedReply {
        ScriptedReply::raw([])
    }

    /// Creates a reply with an invalid status line.
    pub fn garbage() -> ScriptedReply {
        ScriptedReply::raw([RawReplyStep::Send(
            b"\x16\x03\x01 I speak no HTTP\r\n\r\n".to_vec(),
        )])
    }

    /// Creates a reply that declares `missing` bytes more than it sends, then closes.
    pub fn short_body(answer: &HttpAnswer, missing: usize) -> ScriptedReply {
        let mut bytes = head(answer, Some(answer.body.len() + missing));
        bytes.extend_from_slice(&answer.body);
        ScriptedReply::raw([RawReplyStep::Send(bytes)])
    }

    /// Creates a reply that sends the head and half of the body, then resets the connection.
    pub fn reset_in_body(answer: &HttpAnswer) -> ScriptedReply {
        let mut bytes = head(answer, Some(answer.body.len()));
        bytes.extend_from_slice(&answer.body[..answer.body.len() / 2]);
        // Pause so that the client can read the bytes, because a reset discards data in transit.
        ScriptedReply::raw([
            RawReplyStep::Send(bytes),
            RawReplyStep::Wait(Duration::from_millis(20)),
            RawReplyStep::Reset,
        ])
    }

    /// Creates a reply that sends the head and half of the body, then nothing until the client
    /// disconnects.
    pub fn stall_in_body(answer: &HttpAnswer) -> ScriptedReply {
        let mut bytes = head(answer, Some(answer.body.len()));
        bytes.extend_from_slice(&answer.body[..answer.body.len() / 2]);
        ScriptedReply::raw([RawReplyStep::Send(bytes), RawReplyStep::Silence])
    }

    /// Creates a reply with a valid chunk, then a chunk whose size is not a number.
    pub fn bad_chunk() -> ScriptedReply {
        let bytes =
            b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\n\
            5\r\nhello\r\nxyz\r\nworld\r\n0\r\n\r\n";
        ScriptedReply::raw([RawReplyStep::Send(bytes.to_vec())])
    }

    /// Creates a reply whose transfer coding is gzip, which no request asks for.
    pub fn unrequested_transfer_coding() -> ScriptedReply {
        let bytes = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\
            transfer-encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
        ScriptedReply::raw([RawReplyStep::Send(bytes.to_vec())])
    }

    /// Creates a reply with an endless HTML body and without a `Content-Length`.
    pub fn endless_body() -> ScriptedReply {
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n";
        let body = b"<p>and so on</p>\n".repeat(1000);
        ScriptedReply::raw([
            RawReplyStep::Send(head.to_vec()),
            RawReplyStep::Endless(body),
        ])
    }

    /// Creates a reply with endless header lines.
    pub fn endless_headers() -> ScriptedReply {
        let lines = format!("x-more: {}\r\n", "y".repeat(1000)).repeat(16);
        ScriptedReply::raw([
            RawReplyStep::Send(b"HTTP/1.1 200 OK\r\n".to_vec()),
            RawReplyStep::Endless(lines.into()),
        ])
    }

    /// Creates a reply of gzipped HTML that takes about a thousandth of `decoded` bytes on the
    /// wire.
    pub fn gzip_bomb(decoded: usize) -> ScriptedReply {
        let answer = HttpAnswer::of(200)
            .header("content-type", "text/html")
            .header("content-encoding", "gzip")
            .body(gzip(&vec![b' '; decoded]));
        ScriptedReply::from(answer)
    }

    /// Delays the reply by `delay`.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> ScriptedReply {
        self.delay = delay;
        self
    }
}

/// The replies for one path, one per request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplySequence {
    replies: Vec<ScriptedReply>,
    next: usize,
}

impl<R: Into<ScriptedReply>> From<R> for ReplySequence {
    fn from(reply: R) -> ReplySequence {
        ReplySequence {
            replies: vec![reply.into()],
            next: 0,
        }
    }
}

impl ReplySequence {
    /// Creates a script that always gives the same reply.
    pub fn always(reply: impl Into<ScriptedReply>) -> ReplySequence {
        ReplySequence::from(reply)
    }

    /// Adds the next reply. The last reply is repeated.
    ///
    /// ```
    /// use crawl_testweb::{HttpAnswer, ScriptedReply, ReplySequence};
    /// let busy = HttpAnswer::of(503).header("retry-after", "2");
    /// let script = ReplySequence::always(busy.clone()).then(busy).then(ScriptedReply::usual());
    /// ```
    #[must_use]
    pub fn then(mut self, reply: impl Into<ScriptedReply>) -> ReplySequence {
        self.replies.push(reply.into());
        self
    }

    pub(crate) fn take(&mut self) -> ScriptedReply {
        let at = self.next.min(self.replies.len() - 1);
        self.next += 1;
        self.replies[at].clone()
    }
}

/// Returns the head of an answer. Declares `length` unless the answer's own headers declare one.
pub(crate) fn head(answer: &HttpAnswer, length: Option<usize>) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} {}\r\n", answer.status, reason(answer.status));
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(length) = length
        && !answer.has("content-length")
    {
        head.push_str(&format!("content-length: {length}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "As Told",
    }
}

pub(crate) const TAKES_ALL: &str = "invariant: a Vec takes every write";

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect(TAKES_ALL);
    encoder.finish().expect(TAKES_ALL)
}
