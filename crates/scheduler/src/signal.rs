//! What a request was like, and what follows for its host.

use std::net::IpAddr;
use std::time::Duration;

use crate::tick::Tick;

/// What one request that was sent was like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// When it ended: the gap counts from here.
    pub end: Tick,
    /// From the start to the end; counts for `delay_factor` where an answer came.
    pub response_time: Duration,
    /// The address that was asked; `None` where none was, or where a proxy hides it.
    pub address: Option<IpAddr>,
    /// How it ended.
    pub kind: SignalKind,
}

/// How a request ended, as far as its host's politeness goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalKind {
    /// The host answered, whatever the status.
    Answered,
    /// 429 or 503: the host wants to be left alone (RFC 6585 section 4, RFC 9110 section
    /// 15.6.4).
    AskedToWait {
        /// The Retry-After of the answer, from its end on (RFC 9110 section 10.2.3).
        retry_after: Option<Duration>,
    },
    /// A timeout, a reset, a broken answer: the url's matter, until it happens too often.
    UrlFailed,
    /// No connection could be made: the host's matter.
    NoConnection,
}

/// What the scheduler made of a [`Signal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learned {
    /// When this host may be asked next, as far as the host itself goes.
    pub next_at: Tick,
    /// How long the host asked us to wait, or how long we wait where it did not say.
    pub wait_asked: Option<Duration>,
    /// Where failures paused the host: until when. After that it is probed, one request at
    /// a time, until an answer comes.
    pub paused: Option<Tick>,
}
