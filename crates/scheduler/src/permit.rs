//! Permits: leave to send one request, and the purpose of that request.

use std::time::Duration;

use crawl_weburl::{HostKey, Origin};

use crate::tick::Tick;

/// The purpose of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// A page of an origin whose rules are in force.
    Page {
        /// The page's origin.
        origin: Origin,
    },
    /// The robots.txt of an origin.
    Robots {
        /// The origin that the robots.txt is of.
        origin: Origin,
    },
    /// A redirect hop of a robots request (RFC 9309 section 2.3.1.2).
    Hop {
        /// The origin whose robots.txt is looked for; the hop may lead to another host.
        of: Origin,
    },
}

/// The rule that made the gap before a request as long as it was. Its number stands in stored
/// bytes, so the order stays.
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
    /// No request came before it.
    First,
    /// The operator's `delay`.
    Delay,
    /// `delay_factor` times the smoothed response time.
    DelayFactor,
    /// The host's Crawl-delay.
    CrawlDelay,
    /// A Retry-After.
    RetryAfter,
    /// A 429 or 503 without a Retry-After.
    Wait,
    /// Failures paused the host.
    Pause,
    /// A full gap after a restart, since what the host was asked last is not known.
    Restart,
    /// A Request-rate of the host's robots.txt.
    RequestRate,
    /// A Visit-time of the host's robots.txt began.
    VisitTime,
    /// The gap or wait that the host's rate-limit fields ask for.
    RateLimit,
    /// The operator's quiet hours ended.
    QuietHours,
    /// A pause ended not long ago: the gap is long at first and halves with each answer.
    SlowRestart,
    /// Another crawl was asking the host.
    OtherCrawl,
}

/// Leave to send one request to one host, now.
///
/// Minted by [`Scheduler::poll`](crate::Scheduler::poll) only. With
/// [`Politeness::look_ups`](crate::Politeness::look_ups), a permit for a host with an unknown address
/// passes [`Scheduler::admit`](crate::Scheduler::admit) before its request is sent. It ends either in
/// [`Permit::spend`] and [`Scheduler::done`](crate::Scheduler::done), or, where nothing was
/// sent, in [`Scheduler::give_back`](crate::Scheduler::give_back). One that is dropped keeps
/// its host's slot for ever.
#[derive(Debug)]
#[must_use = "a permit holds a slot of its host until it is spent or given back"]
pub struct Permit(pub(crate) Box<PermitData>);

/// A permit whose request was sent.
#[derive(Debug)]
#[must_use = "a spent permit holds a slot of its host until `done` has it"]
pub struct Spent(pub(crate) Box<PermitData>);

/// The answer of [`Scheduler::poll`](crate::Scheduler::poll).
#[derive(Debug)]
#[must_use = "an issued permit must be spent or given back"]
pub enum Poll {
    /// Send this request now.
    Issue(Permit),
    /// Nothing may be sent before this tick, unless something is learned meanwhile.
    SleepUntil(Tick),
    /// Nothing waits, or all that waits needs a `done` or `robots` first.
    Idle,
}

/// The data of a permit, with all that it takes to undo it.
#[derive(Debug)]
pub(crate) struct PermitData {
    pub(crate) host: HostKey,
    pub(crate) purpose: Purpose,
    pub(crate) gap: Duration,
    pub(crate) why: GapReason,
    pub(crate) issued: Tick,
    /// The host's number; a host with a permit out is never evicted.
    pub(crate) id: u32,
    /// The slot that was taken; `None`: one never used before.
    pub(crate) slot: Option<Slot>,
    pub(crate) address: Option<GateCharge>,
    pub(crate) site: Option<GateCharge>,
    /// The look-up that it counts as while it is set aside.
    pub(crate) look_up: Option<GateCharge>,
    /// Sequence number for the total rate; `None` while it is set aside.
    pub(crate) number: Option<u64>,
    /// It came from `queue_request`, not from a waiting url.
    pub(crate) asked: bool,
}

/// A slot between two requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) last_end: Tick,
    /// The moment that was promised when that request ended; the gap may have grown since.
    pub(crate) next_at: Tick,
    pub(crate) why: GapReason,
}

/// A gate that was charged, when, and its last use before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GateCharge {
    pub(crate) gate: u32,
    pub(crate) at: Tick,
    pub(crate) last: Tick,
    /// Sequence number for the gate's rate.
    pub(crate) number: u64,
}

/// The answer of [`Scheduler::admit`](crate::Scheduler::admit).
#[derive(Debug)]
#[must_use = "an admitted or waiting permit must be spent or given back"]
pub enum Admission {
    /// Send its request now.
    Send(Permit),
    /// No capacity yet: try again after a `done`, or at this tick, whichever comes first.
    Wait(Permit, Option<Tick>),
    /// The permit was given back because its host must wait.
    GivenBack,
}

impl Permit {
    /// Returns whether it is set aside until the look-up of its host ends.
    #[must_use]
    pub fn is_set_aside(&self) -> bool {
        self.0.look_up.is_some()
    }

    /// The request was sent, or sending was begun.
    pub fn spend(self) -> Spent {
        Spent(self.0)
    }
}

macro_rules! accessors {
    ($($name:ident),*) => {$(
        impl $name {
            /// The host that may be asked.
            #[must_use]
            pub fn host(&self) -> &HostKey {
                &self.0.host
            }

            /// The purpose of the request.
            #[must_use]
            pub fn purpose(&self) -> &Purpose {
                &self.0.purpose
            }

            /// The gap that was asked for, from the end of the request before it in this slot.
            #[must_use]
            pub fn gap(&self) -> Duration {
                self.0.gap
            }

            /// The time from the end of the request before it in this slot to the moment when the
            /// permit was issued; none for the first.
            #[must_use]
            pub fn waited(&self) -> Option<Duration> {
                let slot = self.0.slot?;
                Some(self.0.issued.since(slot.last_end))
            }

            /// The rule that asked for that gap.
            #[must_use]
            pub fn why(&self) -> GapReason {
                self.0.why
            }

            /// When the permit was issued; the request starts at or after this.
            #[must_use]
            pub fn issued(&self) -> Tick {
                self.0.issued
            }
        }
    )*};
}
accessors!(Permit, Spent);
