//! Sends replies to the client.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::request_log::RequestLog;
use crate::scripted_reply::{HttpAnswer, RawReplyStep, ScriptedReply, ScriptedReplyContent, head};

/// Bytes per write. The log records the time just before the last write as the end of the reply.
/// The number is small, so that this time is close to the real end even if the body is long.
const WRITE_BYTES: usize = 64 * 1024;

/// What happens to the connection after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionAfterReply {
    Next,
    Close,
}

/// Sends one reply and records what the log needs.
pub(crate) struct ReplySender<'a> {
    stream: &'a mut TcpStream,
    log: &'a RequestLog,
    pub(crate) status: Option<u16>,
    pub(crate) sent: u64,
    /// The time just before the last write, in microseconds on the log's scale. No client can have
    /// received the whole reply before this time.
    pub(crate) last_us: Option<u64>,
}

impl<'a> ReplySender<'a> {
    pub(crate) fn new(stream: &'a mut TcpStream, log: &'a RequestLog) -> ReplySender<'a> {
        ReplySender {
            stream,
            log,
            status: None,
            sent: 0,
            last_us: None,
        }
    }

    pub(crate) async fn play(
        &mut self,
        reply: &ScriptedReply,
        head_only: bool,
    ) -> io::Result<ConnectionAfterReply> {
        match &reply.act {
            ScriptedReplyContent::Answer(answer) => self.answer(answer, head_only).await,
            ScriptedReplyContent::Drip(answer, bytes, pause) => {
                self.drip(answer, *bytes, *pause).await
            }
            ScriptedReplyContent::Raw(steps) => self.raw(steps).await,
            // Unreachable: the server has replaced `Usual` with an answer.
            ScriptedReplyContent::Usual => Ok(ConnectionAfterReply::Close),
        }
    }

    pub(crate) async fn answer(
        &mut self,
        answer: &HttpAnswer,
        head_only: bool,
    ) -> io::Result<ConnectionAfterReply> {
        self.status = Some(answer.status);
        let mut bytes = head(answer, has_body(answer).then_some(answer.body.len()));
        if !head_only && has_body(answer) {
            bytes.extend_from_slice(&answer.body);
        }
        self.send(&bytes).await?;
        Ok(after(answer))
    }

    async fn drip(
        &mut self,
        answer: &HttpAnswer,
        bytes: usize,
        pause: Duration,
    ) -> io::Result<ConnectionAfterReply> {
        self.status = Some(answer.status);
        self.send(&head(answer, Some(answer.body.len()))).await?;
        for part in answer.body.chunks(bytes) {
            tokio::time::sleep(pause).await;
            self.send(part).await?;
        }
        Ok(after(answer))
    }

    async fn raw(&mut self, steps: &[RawReplyStep]) -> io::Result<ConnectionAfterReply> {
        for step in steps {
            match step {
                RawReplyStep::Send(bytes) => self.send(bytes).await?,
                RawReplyStep::Endless(bytes) => loop {
                    self.send(bytes).await?;
                },
                RawReplyStep::Repeat(bytes, times) => {
                    for _ in 0..*times {
                        self.send(bytes).await?;
                    }
                }
                RawReplyStep::Wait(pause) => tokio::time::sleep(*pause).await,
                RawReplyStep::Silence => {
                    let closed = until_closed(self.stream).await;
                    self.last_us = Some(self.log.now_us());
                    closed?;
                }
                RawReplyStep::HalfClose => {
                    self.last_us = Some(self.log.now_us());
                    self.stream.shutdown().await?;
                }
                RawReplyStep::Reset => {
                    self.last_us = Some(self.log.now_us());
                    self.stream.set_zero_linger()?;
                }
            }
        }
        Ok(ConnectionAfterReply::Close)
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.chunks(WRITE_BYTES) {
            self.last_us = Some(self.log.now_us());
            self.stream.write_all(part).await?;
            self.sent += part.len() as u64;
        }
        Ok(())
    }
}

fn has_body(answer: &HttpAnswer) -> bool {
    !matches!(answer.status, 100..=199 | 204 | 304)
}

fn after(answer: &HttpAnswer) -> ConnectionAfterReply {
    let closes = answer.headers.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case("connection") && value.eq_ignore_ascii_case("close")
    });
    if closes {
        ConnectionAfterReply::Close
    } else {
        ConnectionAfterReply::Next
    }
}

/// Reads until the client closes the connection.
pub(crate) async fn until_closed(stream: &mut TcpStream) -> io::Result<()> {
    let mut waste = [0; 4096];
    while stream.read(&mut waste).await? > 0 {}
    Ok(())
}
