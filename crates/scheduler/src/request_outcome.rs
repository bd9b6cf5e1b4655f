//! The outcome of a request, and the wait that follows.

use std::net::IpAddr;
use std::time::Duration;

use crate::tick::Tick;

/// The outcome of one request that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestOutcome {
    /// When the request ended. The gap to the next request counts from here.
    pub end: Tick,
    /// Time from the start of the request to its end. Used for `delay_factor` if an answer came.
    pub response_time: Duration,
    /// The server's address; `None` if no connection was made or a proxy hides it.
    pub address: Option<IpAddr>,
    /// How the request ended.
    pub kind: OutcomeKind,
    /// The pace set by the answer's rate-limit fields, if it has any.
    pub rate_limit: Option<PaceFromRateLimit>,
    /// A stable number for the URL, so that repeated failures of the same URL count once. `None`
    /// counts as a URL not seen before.
    pub url: Option<u64>,
}

impl RequestOutcome {
    /// Sets the URL. Only its hash is kept.
    #[must_use]
    pub fn with_url(self, url: &str) -> RequestOutcome {
        // FNV-1a, 64 bits. Hashes are stored, so a URL must have the same hash in the next run.
        let mark = url.bytes().fold(0xCBF2_9CE4_8422_2325, |mark: u64, byte| {
            (mark ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        RequestOutcome {
            url: Some(mark),
            ..self
        }
    }
}

/// The pace set by an answer's rate-limit fields. The pace starts at the answer's end.
///
/// The pace applies until a later answer changes it, but no longer than the fields state. A
/// Retry-After in the same answer takes precedence over `wait`
/// (draft-ietf-httpapi-ratelimit-headers).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PaceFromRateLimit {
    /// The shortest gap that complies with every quota and policy of the answer. `None` if they
    /// require no gap.
    pub gap: Option<Duration>,
    /// How long `gap` applies: until the quota that requires it resets, or for one window of the
    /// policy that requires it.
    pub lasts: Duration,
    /// How long to send nothing, because the quota is used up.
    pub wait: Option<Duration>,
}

/// How a request ended. Politeness treats each variant differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeKind {
    /// The host answered, whatever the status.
    Answered,
    /// The host wants us to slow down: it answered with 429 or 503 (RFC 6585 section 4, RFC 9110
    /// section 15.6.4), or with another status and a Retry-After, such as a redirect that may be
    /// followed only after that wait.
    AskedToWait {
        /// The answer's Retry-After, which counts from the answer's end (RFC 9110 section 10.2.3).
        /// If two such answers in a row have a wait of zero, the default wait follows.
        retry_after: Option<Duration>,
    },
    /// A timeout, a reset or a broken answer. Only the URL is blamed, until too many different URLs
    /// of the host fail.
    UrlFailed,
    /// No connection could be made. The host is blamed, unless the request was for a robots.txt and
    /// another origin of the host may answer.
    NoConnection,
}

/// How long a host must wait after a request with this outcome: when the next request is allowed,
/// the wait requested, and the end of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostWait {
    /// When the host's own limits allow the next request.
    pub next_at: Tick,
    /// The wait that the host requested, or our default if the host named no time.
    pub wait_asked: Option<Duration>,
    /// When the pause ends, if failures paused the host. After that the host is probed one request
    /// at a time until it answers.
    pub paused: Option<Tick>,
}
