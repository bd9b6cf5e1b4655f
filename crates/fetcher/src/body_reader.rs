//! Reads the body of an answer within its limits.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use crate::body_framing::BodyFraming;
use crate::body_memory_pool::{BodyMemoryPool, BodyMemoryReservation};
use crate::failure_classification::{self, ClassifiedError};
use crate::failure_kind::{FailureKind, FailurePhase};

/// How many bytes of a body are read before memory has to be reserved for it
/// ([`BodyMemoryReservation`]). Most pages are shorter.
pub(crate) const FREE_BYTES: usize = 256 << 10;
/// Maximum bytes to allocate for the announced length (`Content-Length`) of a body before they
/// arrive.
const MAX_RESERVED: u64 = 1 << 20;

/// The limits of one body.
pub(crate) struct BodyLimits<'a> {
    /// Maximum bytes to keep; longer bodies are cut.
    pub(crate) bytes: u64,
    /// Maximum time between two bytes.
    pub(crate) idle: Duration,
    /// End of the time allowed for the whole exchange. `total` is the length of that time.
    pub(crate) deadline: Instant,
    pub(crate) total: Duration,
    /// The pool in which a body longer than [`FREE_BYTES`] reserves memory.
    pub(crate) rooms: &'a BodyMemoryPool,
}

/// The part of a body that was read.
pub(crate) struct ReceivedBody {
    pub(crate) body: Bytes,
    pub(crate) room: BodyMemoryReservation,
    pub(crate) end: BodyEnd,
}

/// How a body ended.
pub(crate) enum BodyEnd {
    /// The body is complete.
    Whole,
    /// The body is longer than the limit, and was cut there.
    Cut,
    /// The transfer of the body failed before its end.
    Broken(ClassifiedError),
}

/// Reads the body within its limits. A body that arrives in one piece is not copied.
pub(crate) async fn collect(
    mut response: Response,
    framing: BodyFraming,
    bounds: BodyLimits<'_>,
) -> ReceivedBody {
    if let Some(detail) = framing.unknown_coding {
        let error = ClassifiedError::new(FailureKind::BadBody, FailurePhase::Body, detail);
        return ReceivedBody {
            body: Bytes::new(),
            room: BodyMemoryReservation::default(),
            end: BodyEnd::Broken(error),
        };
    }
    let announced = framing.length.or_else(|| response.content_length());
    let limit = usize::try_from(bounds.bytes).unwrap_or(usize::MAX);
    let mut bytes_kept = BodyBuffer::new(limit, announced.unwrap_or(0));
    let mut room = None;
    let end = loop {
        if framing
            .length
            .is_some_and(|length| bytes_kept.len() as u64 >= length)
        {
            break BodyEnd::Whole;
        }
        let now = Instant::now();
        if now >= bounds.deadline {
            // Check the time here, because bytes that are already buffered are read before any
            // timer is polled.
            break BodyEnd::Broken(bounds.late(bounds.deadline));
        }
        let patience = bounds.deadline.min(now + bounds.idle);
        let chunk = match timeout_at(patience, response.chunk()).await {
            Err(_) => break BodyEnd::Broken(bounds.late(patience)),
            Ok(Ok(Some(chunk))) if chunk.is_empty() => continue,
            Ok(Ok(Some(chunk))) => framing.within(chunk, bytes_kept.len()),
            Ok(Ok(None)) => break framing.end_at_close(bytes_kept.len()),
            // Without an announced length, the body ends when the connection closes. Many servers
            // close a TLS connection without `close_notify`, so accept that.
            Ok(Err(error))
                if framing.until_close && failure_classification::is_silent_close(&error) =>
            {
                break BodyEnd::Whole;
            }
            Ok(Err(error)) => break BodyEnd::Broken(failure_classification::in_body(&error)),
        };
        if room.is_none() && bytes_kept.len().saturating_add(chunk.len()).min(limit) > FREE_BYTES {
            let max_bytes = announced.map_or(bounds.bytes, |bytes| bytes.min(bounds.bytes));
            match timeout_at(bounds.deadline, bounds.rooms.take(max_bytes)).await {
                Ok(given) => room = Some(given),
                Err(_) => break BodyEnd::Broken(bounds.no_room()),
            }
        }
        if !bytes_kept.push(&chunk) {
            break BodyEnd::Cut;
        }
    };
    let end = match (end, framing.part) {
        (BodyEnd::Whole, Some(detail)) => {
            let phase = FailurePhase::Body;
            BodyEnd::Broken(ClassifiedError::new(FailureKind::ShortBody, phase, detail))
        }
        (end, _) => end,
    };
    ReceivedBody {
        body: bytes_kept.into_bytes(),
        room: room.unwrap_or_default(),
        end,
    }
}

impl BodyFraming {
    /// Returns the part of a chunk that belongs to the body, if `held` bytes came before it.
    fn within(&self, chunk: Bytes, held: usize) -> Bytes {
        let Some(length) = self.length else {
            return chunk;
        };
        let rest = usize::try_from(length).unwrap_or(usize::MAX) - held;
        chunk.slice(..chunk.len().min(rest))
    }

    /// Returns how a body of `held` bytes ended that the client takes to be complete.
    fn end_at_close(&self, held: usize) -> BodyEnd {
        match self.length {
            Some(length) if (held as u64) < length => {
                let detail = format!("{held} of {length} bytes");
                let (kind, phase) = (FailureKind::ShortBody, FailurePhase::Body);
                BodyEnd::Broken(ClassifiedError::new(kind, phase, detail))
            }
            _ => BodyEnd::Whole,
        }
    }
}

impl BodyLimits<'_> {
    fn late(&self, patience: Instant) -> ClassifiedError {
        let (kind, detail) = if patience == self.deadline {
            (FailureKind::Timeout, not_within(self.total))
        } else {
            let seconds = self.idle.as_secs_f64();
            let detail = format!("no data for {seconds} s");
            (FailureKind::IdleTimeout, detail)
        };
        ClassifiedError::new(kind, FailurePhase::Body, detail)
    }

    fn no_room(&self) -> ClassifiedError {
        let detail = "other bodies use all memory for bodies".to_owned();
        ClassifiedError::new(FailureKind::NoRoom, FailurePhase::Body, detail)
    }
}

/// Returns the failure message for an exchange that took longer than `total`.
pub(crate) fn not_within(total: Duration) -> String {
    format!("not finished within {} s", total.as_secs_f64())
}

/// The bytes read so far: a single piece as it arrived, or several pieces joined.
struct BodyBuffer {
    limit: usize,
    announced: u64,
    first: Bytes,
    rest: BytesMut,
}

impl BodyBuffer {
    fn new(limit: usize, announced: u64) -> BodyBuffer {
        BodyBuffer {
            limit,
            announced,
            first: Bytes::new(),
            rest: BytesMut::new(),
        }
    }

    fn len(&self) -> usize {
        self.first.len() + self.rest.len()
    }

    /// Adds as many of the bytes as fit. Returns whether all of them fit.
    fn push(&mut self, chunk: &Bytes) -> bool {
        let held = self.len();
        let room = self.limit - held;
        let fits = chunk.slice(..chunk.len().min(room));
        if held == 0 {
            self.first = fits;
        } else {
            if self.rest.is_empty() {
                let wanted = self.announced.min(MAX_RESERVED).min(self.limit as u64);
                let wanted = usize::try_from(wanted).unwrap_or(0);
                self.rest.reserve(wanted.max(2 * self.first.len()));
                self.rest.extend_from_slice(&self.first);
                self.first = Bytes::new();
            }
            self.rest.extend_from_slice(&fits);
        }
        chunk.len() <= room
    }

    fn into_bytes(self) -> Bytes {
        if self.rest.is_empty() {
            self.first
        } else {
            self.rest.freeze()
        }
    }
}
