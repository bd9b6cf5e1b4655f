//! The outcome of a request, as its host's politeness needs it, and the wait that follows.

use std::net::IpAddr;
use std::time::Duration;

use crate::tick::Tick;

/// The outcome of one request that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestOutcome {
    /// When it ended: the gap counts from here.
    pub end: Tick,
    /// From the start to the end; counts for `delay_factor` where an answer came.
    pub response_time: Duration,
    /// The address that was asked; `None` where none was, or where a proxy hides it.
    pub address: Option<IpAddr>,
    /// The kind of its end.
    pub kind: OutcomeKind,
    /// The pace that the answer's rate-limit fields ask for; `None`: it has none.
    pub rate_limit: Option<RateLimit>,
    /// A number that stands for the url, the same each time: many failures of one url are
    /// no failures of many. `None`: as if no url were asked for twice.
    pub url: Option<u64>,
}

impl RequestOutcome {
    /// The same of this url, whose text is not kept.
    #[must_use]
    pub fn with_url(self, url: &str) -> RequestOutcome {
        // FNV-1a, 64 bits: stored marks must mean the same in the next run.
        let mark = url.bytes().fold(0xCBF2_9CE4_8422_2325, |mark: u64, byte| {
            (mark ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        RequestOutcome {
            url: Some(mark),
            ..self
        }
    }
}

/// The pace that the rate-limit fields of an answer ask for, from its end on.
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

/// The kinds of ends of a request that politeness tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeKind {
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

/// The wait that follows from a [`RequestOutcome`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostWait {
    /// When this host may be asked next, as far as the host itself goes.
    pub next_at: Tick,
    /// The wait that the host asked for, or ours where it did not say how long.
    pub wait_asked: Option<Duration>,
    /// The end of the pause, where failures paused the host. After that it is probed, one
    /// request at a time, until an answer comes.
    pub paused: Option<Tick>,
}
