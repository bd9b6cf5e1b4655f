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
    /// What the answer's rate-limit fields ask for; `None`: it has none.
    pub rate_limit: Option<RateLimit>,
    /// A number that stands for the url, the same each time: many failures of one url are
    /// no failures of many. `None`: as if no url were asked for twice.
    pub url: Option<u64>,
}

impl Signal {
    /// The same of this url, whose text is not kept.
    #[must_use]
    pub fn with_url(self, url: &str) -> Signal {
        // FNV-1a, 64 bits: stored marks must mean the same in the next run.
        let mark = url.bytes().fold(0xCBF2_9CE4_8422_2325, |mark: u64, byte| {
            (mark ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        Signal {
            url: Some(mark),
            ..self
        }
    }
}

/// What the rate-limit fields of an answer ask for, from its end on.
///
/// It holds until a later answer says something else, and no longer than the fields say.
/// A Retry-After in the same answer goes before `wait`
/// (draft-ietf-httpapi-ratelimit-headers).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimit {
    /// The least gap that keeps within what is left, or within the policy.
    pub gap: Option<Duration>,
    /// For how long `gap` is asked for: up to the reset, or a window of the policy.
    pub lasts: Duration,
    /// Nothing is left: no request for so long.
    pub wait: Option<Duration>,
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
