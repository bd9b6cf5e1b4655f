//! Named ways to misbehave.

use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::{DeflateEncoder, ZlibEncoder};

use crate::scripted_reply::{HttpAnswer, RawReplyStep, ScriptedReply, TAKES_ALL, gzip};

/// Decoded size of each compression bomb, in bytes.
const BOMB_BYTES: usize = 64 << 20;
/// Pause between two pieces of a drip, which is a reply sent very slowly.
const DRIP: Duration = Duration::from_millis(100);
/// Number of pieces in which a drip (a reply sent very slowly) is sent. At one piece per [`DRIP`],
/// the reply takes a minute.
const DRIPS: usize = 600;

/// A way to misbehave: its name, and the server's reply to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misbehaviour {
    /// The name, such as `sends nothing` or `closes without an answer`.
    pub name: &'static str,
    /// The server's reply.
    pub reply: ScriptedReply,
}

/// Returns all ways to misbehave within one exchange, in protocol order: before the head, in the
/// head, and in the framing, the coding and the content of the body.
///
/// ```
/// let names: Vec<_> = crawl_testweb::misbehaviours().iter().map(|kind| kind.name).collect();
/// assert!(names.len() >= 50 && names.contains(&"sends nothing"));
/// ```
#[must_use]
pub fn misbehaviours() -> Vec<Misbehaviour> {
    let groups = [no_answer(), heads(), bodies(), codings(), contents()];
    let all = groups.into_iter().flatten();
    all.map(|(name, reply)| Misbehaviour { name, reply })
        .collect()
}

type NamedReplies = Vec<(&'static str, ScriptedReply)>;

fn no_answer() -> NamedReplies {
    vec![
        ("sends nothing", ScriptedReply::silence()),
        ("closes without an answer", ScriptedReply::close()),
        (
            "closes its half and keeps reading",
            raw([RawReplyStep::HalfClose, RawReplyStep::Silence]),
        ),
        ("resets without an answer", ScriptedReply::reset()),
        (
            "sends half a status line, then nothing",
            raw([text("HTTP/1.1 20"), RawReplyStep::Silence]),
        ),
        (
            "sends half a head, then closes",
            raw([text("HTTP/1.1 200 OK\r\nconte")]),
        ),
        (
            "sends a body and no head (HTTP/0.9)",
            raw([text("<title>Old</title>\r\n")]),
        ),
        (
            "speaks another protocol",
            raw([text("220 mail.example ESMTP\r\n")]),
        ),
        (
            "sends an unencrypted TLS alert",
            raw([bytes(b"\x15\x03\x01\x00\x02\x02\x46")]),
        ),
        (
            "sends unrequested HTTP/2 frames",
            raw([bytes(
                b"\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x04\x08\x00\x00\x00\x00",
            )]),
        ),
        ("sends garbage", ScriptedReply::garbage()),
    ]
}

fn heads() -> NamedReplies {
    let ok = "content-type: text/html\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
    let head = |lines: &str| raw([text(&format!("HTTP/1.1 200 OK\r\n{lines}{ok}"))]);
    let status = |line: &str| raw([text(&format!("{line}\r\n{ok}"))]);
    let mut dripped = vec![text("HTTP/1.1 200 OK\r\n")];
    for _ in 0..DRIPS {
        dripped.extend([RawReplyStep::Wait(DRIP), text("x-more: y\r\n")]);
    }
    vec![
        ("status 999", status("HTTP/1.1 999 Beyond")),
        ("status 1000", status("HTTP/1.1 1000 Beyond")),
        ("a status that isn't a number", status("HTTP/1.1 2x0 OK")),
        (
            "an HTTP version that doesn't exist",
            status("HTTP/9.9 200 OK"),
        ),
        ("a head one line at a time, without end", raw(dripped)),
        ("header lines without end", ScriptedReply::endless_headers()),
        ("20,000 header lines", head(&"x-more: y\r\n".repeat(20_000))),
        (
            "a header line of a megabyte",
            head(&format!("x-huge: {}\r\n", "z".repeat(1 << 20))),
        ),
        (
            "a header line without end",
            raw([
                text("HTTP/1.1 200 OK\r\nx-huge: "),
                RawReplyStep::Endless(vec![b'z'; 16 << 10]),
            ]),
        ),
        ("a header line without a colon", head("no colon here\r\n")),
        ("a header line with a NUL in it", head("x-nul: a\0b\r\n")),
        ("a folded header line", head("x-fold: a\r\n  b\r\n")),
        (
            "line ends without CR",
            raw([text(&format!(
                "HTTP/1.1 200 OK\n{}",
                ok.replace("\r\n", "\n")
            ))]),
        ),
        (
            "100 Continue without end",
            raw([RawReplyStep::Endless(
                "HTTP/1.1 100 Continue\r\n\r\n".repeat(500).into(),
            )]),
        ),
        (
            "100 Continue, then nothing",
            raw([text("HTTP/1.1 100 Continue\r\n\r\n"), RawReplyStep::Silence]),
        ),
        (
            "103 Early Hints before the answer",
            raw([text(&format!(
                "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n{ok}"
            ))]),
        ),
        (
            "101 Switching Protocols, unrequested",
            raw([
                text(
                    "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
                ),
                RawReplyStep::Silence,
            ]),
        ),
    ]
}

fn bodies() -> NamedReplies {
    let framed = |lines: &str, body: &str| {
        text(&format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n{lines}\r\n{body}"
        ))
    };
    let chunked = |body: &str| framed("transfer-encoding: chunked\r\n", body);
    let html = HttpAnswer::html("<title>A page</title><p>with some text in it");
    let flood = vec![b'e'; 16 << 10];
    vec![
        (
            "two lengths that differ",
            raw([framed("content-length: 2\r\ncontent-length: 3\r\n", "okk")]),
        ),
        (
            "a negative length",
            raw([framed("content-length: -1\r\n", "ok")]),
        ),
        (
            "a length that isn't a number",
            raw([framed("content-length: two\r\n", "ok")]),
        ),
        (
            "a length beyond 64 bits",
            raw([framed("content-length: 99999999999999999999\r\n", "ok")]),
        ),
        (
            "a length and chunks",
            raw([framed(
                "content-length: 2\r\ntransfer-encoding: chunked\r\n",
                "5\r\nhello\r\n0\r\n\r\n",
            )]),
        ),
        (
            "a length of 10 GB, two bytes, then nothing",
            raw([
                framed("content-length: 10000000000\r\n", "ok"),
                RawReplyStep::Silence,
            ]),
        ),
        (
            "a body shorter than announced",
            ScriptedReply::short_body(&html, 10),
        ),
        ("a reset in the body", ScriptedReply::reset_in_body(&html)),
        (
            "half a body, then nothing",
            ScriptedReply::stall_in_body(&html),
        ),
        (
            "a body one byte at a time",
            ScriptedReply::drip(HttpAnswer::html(&"d".repeat(DRIPS)), 1, DRIP),
        ),
        ("a body without end", ScriptedReply::endless_body()),
        (
            "chunks without end",
            raw([
                chunked(""),
                RawReplyStep::Endless(b"8\r\nchunks!\n\r\n".repeat(1000)),
            ]),
        ),
        (
            "a chunk whose size isn't a number",
            ScriptedReply::bad_chunk(),
        ),
        (
            "a chunk whose size is beyond 64 bits",
            raw([chunked("fffffffffffffffff\r\nhello")]),
        ),
        (
            "a chunk longer than declared",
            raw([chunked("2\r\nhello\r\n0\r\n\r\n")]),
        ),
        (
            "a chunk extension without end",
            raw([chunked("5;"), RawReplyStep::Endless(flood.clone())]),
        ),
        (
            "trailers without end",
            raw([
                chunked("5\r\nhello\r\n0\r\n"),
                RawReplyStep::Endless(b"x-trailer: y\r\n".repeat(1000)),
            ]),
        ),
        (
            "chunks without the last one, then nothing",
            raw([chunked("5\r\nhello\r\n"), RawReplyStep::Silence]),
        ),
        (
            "chunks without the last one, then closes",
            raw([chunked("5\r\nhello\r\n")]),
        ),
        (
            "an unrequested transfer coding",
            ScriptedReply::unrequested_transfer_coding(),
        ),
        (
            "206 with a part of the body, unrequested",
            raw([text(
                "HTTP/1.1 206 Partial Content\r\ncontent-length: 5\r\n\
                 content-range: bytes 0-4/50\r\n\r\nhello",
            )]),
        ),
        (
            "a body after 204",
            raw([text(
                "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello",
            )]),
        ),
        (
            "a body after 304",
            raw([text(
                "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\nhello",
            )]),
        ),
        (
            "an answer, then unrequested bytes",
            raw([
                framed(
                    "content-length: 2\r\n",
                    "okHTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nbad",
                ),
                RawReplyStep::Silence,
            ]),
        ),
    ]
}

fn codings() -> NamedReplies {
    let coded = |coding: &str, body: Vec<u8>| {
        let answer = HttpAnswer::of(200).header("content-type", "text/html");
        answer.header("content-encoding", coding).body(body)
    };
    let page = b"<title>A page</title>".repeat(50);
    let blanks = vec![b' '; BOMB_BYTES];
    let packed = gzip(&page);
    let half = packed[..packed.len() / 2].to_vec();
    vec![
        (
            "gzip that unpacks a thousandfold",
            coded("gzip", gzip(&blanks)).into(),
        ),
        (
            "brotli that unpacks a thousandfold",
            coded("br", brotli(&blanks)).into(),
        ),
        (
            "zstd that unpacks a thousandfold",
            coded("zstd", zstd::encode_all(&blanks[..], 1).expect(TAKES_ALL)).into(),
        ),
        (
            "gzip within gzip that unpacks a millionfold",
            coded("gzip, gzip", gzip(&gzip(&blanks))).into(),
        ),
        ("gzip twice", coded("gzip, gzip", gzip(&packed)).into()),
        (
            "five codings",
            coded("gzip, gzip, gzip, gzip, gzip", packed.clone()).into(),
        ),
        (
            "deflate with its wrapper",
            coded("deflate", zlib(&page)).into(),
        ),
        (
            "deflate without its wrapper",
            coded("deflate", deflate(&page)).into(),
        ),
        (
            "plain text declared as gzip",
            coded("gzip", page.clone()).into(),
        ),
        (
            "gzip declared as brotli",
            coded("br", packed.clone()).into(),
        ),
        ("half of a gzip", coded("gzip", half).into()),
        ("an unknown coding", coded("x-secret", page).into()),
    ]
}

fn contents() -> NamedReplies {
    let loops = "<meta http-equiv=refresh content=\"0; url=/\"><title>Again</title>";
    let login = "<title>Sign in</title><form><input name=u><input type=password name=p></form>";
    let blocked = "<title>Request Rejected</title>The requested URL was rejected. Please consult \
        with your administrator. Your support ID is: 1 <a href=/back>Go back</a>";
    let challenge = HttpAnswer::of(403).header("cf-mitigated", "challenge");
    vec![
        (
            "a redirect to itself",
            HttpAnswer::redirect(302, "/").into(),
        ),
        ("a redirect without a target", HttpAnswer::of(301).into()),
        (
            "a redirect to an invalid URL",
            HttpAnswer::redirect(301, "http://[/").into(),
        ),
        (
            "a redirect to javascript:",
            HttpAnswer::redirect(302, "javascript:go()").into(),
        ),
        (
            "a page that refreshes itself",
            HttpAnswer::html(loops).into(),
        ),
        (
            "a login form in place of a page",
            HttpAnswer::html(login).into(),
        ),
        (
            "a challenge in place of a page",
            challenge.body("<a href=/never>x</a>").into(),
        ),
        (
            "a block page in place of a page",
            HttpAnswer::html(blocked).into(),
        ),
    ]
}

fn raw(steps: impl Into<Vec<RawReplyStep>>) -> ScriptedReply {
    ScriptedReply::raw(steps)
}

fn text(text: &str) -> RawReplyStep {
    bytes(text.as_bytes())
}

fn bytes(bytes: &[u8]) -> RawReplyStep {
    RawReplyStep::Send(bytes.to_vec())
}

fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 1 << 16, 1, 22);
    encoder.write_all(bytes).expect(TAKES_ALL);
    encoder.into_inner()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect(TAKES_ALL);
    encoder.finish().expect(TAKES_ALL)
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect(TAKES_ALL);
    encoder.finish().expect(TAKES_ALL)
}
