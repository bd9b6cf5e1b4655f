//! The body of an answer, read up to its bounds.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Version;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use crate::body_memory::{BodyMemory, BodyMemoryPool};
use crate::client_error::{self, Finding};
use crate::failure_kind::{FailureKind, FailurePhase};

/// Bytes of each body for which no [`BodyMemory`] is needed: most pages are shorter.
pub(crate) const FREE_BYTES: usize = 256 << 10;
/// Memory that an announced length may claim before the bytes come.
const MAX_RESERVED: u64 = 1 << 20;

/// The bounds of reading one body.
pub(crate) struct Bounds<'a> {
    /// Bytes that are kept; what is longer is cut there.
    pub(crate) bytes: u64,
    /// Longest time between two bytes.
    pub(crate) idle: Duration,
    /// The end of the exchange's whole time, which is this long.
    pub(crate) deadline: Instant,
    pub(crate) total: Duration,
    /// Memory beyond [`FREE_BYTES`].
    pub(crate) rooms: &'a BodyMemoryPool,
}

/// The part of a body that was read.
pub(crate) struct Collected {
    pub(crate) body: Bytes,
    pub(crate) room: BodyMemory,
    pub(crate) end: End,
}

/// The end of a body.
pub(crate) enum End {
    /// It ended where the server said it would.
    Whole,
    /// At the bound of kept bytes.
    Cut,
    /// Before its end.
    Broken(Finding),
}

/// Reads the body up to its bounds. A body that comes in one piece is not copied. With
/// `until_close` it ends where the connection does.
pub(crate) async fn collect(
    mut response: Response,
    until_close: bool,
    bounds: Bounds<'_>,
) -> Collected {
    let announced = response.content_length();
    let limit = usize::try_from(bounds.bytes).unwrap_or(usize::MAX);
    let mut kept = Kept::new(limit, announced.unwrap_or(0));
    let mut room = None;
    let end = loop {
        let now = Instant::now();
        if now >= bounds.deadline {
            // Bytes that are there already would be taken before any timer is asked.
            break End::Broken(bounds.late(bounds.deadline));
        }
        let patience = bounds.deadline.min(now + bounds.idle);
        let chunk = match timeout_at(patience, response.chunk()).await {
            Err(_) => break End::Broken(bounds.late(patience)),
            Ok(Ok(Some(chunk))) if chunk.is_empty() => continue,
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => break End::Whole,
            // With no length announced the close is the end, and many servers close a TLS
            // connection without the word for it.
            Ok(Err(error)) if until_close && client_error::is_silent_close(&error) => {
                break End::Whole;
            }
            Ok(Err(error)) => break End::Broken(client_error::in_body(&error)),
        };
        if room.is_none() && kept.len().saturating_add(chunk.len()).min(limit) > FREE_BYTES {
            let most = announced.map_or(bounds.bytes, |bytes| bytes.min(bounds.bytes));
            match timeout_at(bounds.deadline, bounds.rooms.take(most)).await {
                Ok(given) => room = Some(given),
                Err(_) => break End::Broken(bounds.no_room()),
            }
        }
        if !kept.push(&chunk) {
            break End::Cut;
        }
    };
    Collected {
        body: kept.into_bytes(),
        room: room.unwrap_or_default(),
        end,
    }
}

impl Bounds<'_> {
    fn late(&self, patience: Instant) -> Finding {
        let (kind, detail) = if patience == self.deadline {
            (FailureKind::Timeout, not_within(self.total))
        } else {
            let seconds = self.idle.as_secs_f64();
            let detail = format!("no byte of the body for {seconds} s");
            (FailureKind::IdleTimeout, detail)
        };
        Finding::new(kind, FailurePhase::Body, detail)
    }

    fn no_room(&self) -> Finding {
        let detail = "other bodies took all of the memory for bodies".to_owned();
        Finding::new(FailureKind::NoRoom, FailurePhase::Body, detail)
    }
}

/// The detail of a failure where the whole time is over.
pub(crate) fn not_within(total: Duration) -> String {
    format!("not done within {} s", total.as_secs_f64())
}

/// The bytes so far: one piece as it came, or several copied together.
struct Kept {
    limit: usize,
    announced: u64,
    first: Bytes,
    rest: BytesMut,
}

impl Kept {
    fn new(limit: usize, announced: u64) -> Kept {
        Kept {
            limit,
            announced,
            first: Bytes::new(),
            rest: BytesMut::new(),
        }
    }

    fn len(&self) -> usize {
        self.first.len() + self.rest.len()
    }

    /// Adds what fits; whether all of it did.
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

/// Returns whether a body ends where the connection does: RFC 9112 section 6.3, the last rule.
pub(crate) fn ends_with_connection(response: &Response) -> bool {
    let headers = response.headers();
    response.version() <= Version::HTTP_11
        && !headers.contains_key(CONTENT_LENGTH)
        && !headers.contains_key(TRANSFER_ENCODING)
}
