//! Permits to send one request, and the purpose of that request.

use std::time::Duration;

use crawl_weburl::{HostKey, Origin};

use crate::tick::Tick;

/// The purpose of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestPurpose {
    /// A page of an origin whose rules are in force.
    Page {
        /// The page's origin.
        origin: Origin,
    },
    /// The robots.txt of an origin.
    Robots {
        /// The origin whose robots.txt it is.
        origin: Origin,
    },
    /// A redirect hop of a robots request (RFC 9309 section 2.3.1.2).
    Hop {
        /// The origin whose robots.txt is being fetched. The hop may lead to another host.
        of: Origin,
    },
}

/// The rule that determined the gap before a request. The discriminants are stored, so don't
/// reorder the variants.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    strum::Display,
    strum::FromRepr,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
#[repr(u8)]
pub enum GapReason {
    /// This is the first request to the host.
    First,
    /// The operator's `delay`.
    Delay,
    /// `delay_factor` times the smoothed response time.
    DelayFactor,
    /// The host's Crawl-delay.
    CrawlDelay,
    /// A Retry-After.
    RetryAfter,
    /// The default wait after a 429 or 503 without a Retry-After.
    Wait,
    /// Failures paused the host.
    Pause,
    /// A full gap after a restart, because the last run may have sent requests that were not
    /// recorded.
    Restart,
    /// A Request-rate of the host's robots.txt.
    RequestRate,
    /// A Visit-time of the host's robots.txt began.
    VisitTime,
    /// The gap or wait set by the host's rate-limit fields.
    RateLimit,
    /// The operator's quiet hours ended.
    QuietHours,
    /// A pause ended recently: the gap starts long and halves with each answer.
    SlowRestart,
    /// Another crawl was fetching from the host at the same time.
    OtherCrawl,
}

/// Permission to send one request to one host, now.
///
/// Issued by [`Scheduler::poll`](crate::Scheduler::poll) and
/// [`Scheduler::poll_host`](crate::Scheduler::poll_host). With
/// [`Politeness::look_ups`](crate::Politeness::look_ups), a permit for a host with an unknown
/// address must pass [`Scheduler::admit`](crate::Scheduler::admit) before its request is sent.
/// Every permit ends in [`Permit::spend`] and [`Scheduler::done`](crate::Scheduler::done) or, if
/// nothing was sent, in [`Scheduler::give_back`](crate::Scheduler::give_back). A dropped permit
/// holds its host's slot forever.
#[derive(Debug)]
#[must_use = "a permit holds a slot of its host until it is spent or given back"]
pub struct Permit(pub(crate) Box<PermitData>);

/// A permit whose request was sent.
#[derive(Debug)]
#[must_use = "a spent permit holds a slot of its host until `done` has it"]
pub struct SpentPermit(pub(crate) Box<PermitData>);

/// The result of [`Scheduler::poll`](crate::Scheduler::poll).
#[derive(Debug)]
#[must_use = "an issued permit must be spent or given back"]
pub enum PollOutcome {
    /// Send this request now.
    Issue(Permit),
    /// Nothing may be sent before this tick, unless another call changes that.
    SleepUntil(Tick),
    /// Nothing is pending, or nothing can be issued before another call, such as `done`,
    /// `set_robots` or `unpark`.
    Idle,
}

/// The data of a permit, including everything needed to undo it.
#[derive(Debug)]
pub(crate) struct PermitData {
    pub(crate) host: HostKey,
    pub(crate) purpose: RequestPurpose,
    pub(crate) gap: Duration,
    pub(crate) why: GapReason,
    pub(crate) issued: Tick,
    /// Index of the host. The index stays valid because a host with an issued permit is never
    /// evicted.
    pub(crate) id: u32,
    /// The host's slot that the permit took; `None` if the slot was never used before.
    pub(crate) slot: Option<HostRequestSlot>,
    pub(crate) address: Option<GateCharge>,
    pub(crate) site: Option<GateCharge>,
    /// The look-up limit's record of this permit while the permit is set aside.
    pub(crate) look_up: Option<GateCharge>,
    /// The request's sequence number in the total rate limit; `None` while the permit is set aside.
    pub(crate) number: Option<u64>,
    /// Whether the request came from `queue_request` rather than from a pending URL.
    pub(crate) asked: bool,
}

/// A slot of a host: the right to one request at a time. Stores the times that matter between two
/// requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostRequestSlot {
    pub(crate) last_end: Tick,
    /// The earliest time for the next request, computed when the last request ended. The actual gap
    /// may be longer by now.
    pub(crate) next_at: Tick,
    pub(crate) why: GapReason,
}

/// The record of a request counted at a gate (shared limit): when it was counted, and when the gate
/// was last used before that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GateCharge {
    pub(crate) gate: u32,
    pub(crate) at: Tick,
    pub(crate) last: Tick,
    /// The request's sequence number in the rate limit of the gate (shared limit).
    pub(crate) number: u64,
}

/// The result of [`Scheduler::admit`](crate::Scheduler::admit).
#[derive(Debug)]
#[must_use = "an admitted or waiting permit must be spent or given back"]
pub enum PermitAdmissionResult {
    /// Send the permit's request now.
    Send(Permit),
    /// No capacity yet: call `admit` again after a `done` or at this tick, whichever comes first.
    Wait(Permit, Option<Tick>),
    /// The permit was given back, because its host must wait again.
    GivenBack,
}

impl Permit {
    /// Returns whether the permit is set aside until its host's look-up ends.
    #[must_use]
    pub fn is_set_aside(&self) -> bool {
        self.0.look_up.is_some()
    }

    /// Turns the permit into the record of a sent request.
    pub fn spend(self) -> SpentPermit {
        SpentPermit(self.0)
    }
}

macro_rules! accessors {
    ($($name:ident),*) => {$(
        impl $name {
            /// Returns the host to send to.
            #[must_use]
            pub fn host(&self) -> &HostKey {
                &self.0.host
            }

            /// Returns the purpose of the request.
            #[must_use]
            pub fn purpose(&self) -> &RequestPurpose {
                &self.0.purpose
            }

            /// Returns the gap that was required after the end of the previous request in the same
            /// slot.
            #[must_use]
            pub fn gap(&self) -> Duration {
                self.0.gap
            }

            /// Returns the time from the end of the previous request in the same slot to the issue
            /// of this permit. `None` for the first request.
            #[must_use]
            pub fn waited(&self) -> Option<Duration> {
                let slot = self.0.slot?;
                Some(self.0.issued.since(slot.last_end))
            }

            /// Returns what determined the gap.
            #[must_use]
            pub fn why(&self) -> GapReason {
                self.0.why
            }

            /// Returns when the permit was issued. The request starts then or later.
            #[must_use]
            pub fn issued(&self) -> Tick {
                self.0.issued
            }
        }
    )*};
}
accessors!(Permit, SpentPermit);
