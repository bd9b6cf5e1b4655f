//! An exchange that brought no answer.

use std::fmt;
use std::net::SocketAddr;

use crawl_scheduler::{OutcomeKind, RequestOutcome, Tick};

use crate::exchange::Exchange;
use crate::failure_kind::{FailureKind, FailurePhase, Fault};

/// The reason why there is no [`Exchange`], or no whole one.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The phase that the exchange had come to.
    pub phase: FailurePhase,
    /// The side whose fault it was.
    pub fault: Fault,
    /// True if the same request may fare better at another time.
    pub retry: bool,
    /// When the exchange began.
    pub started: Tick,
    /// When it was given up.
    pub ended: Tick,
    /// The peer, where a connection is known to have stood.
    pub address: Option<SocketAddr>,
    /// The messages of the layers below, from the outermost to the cause.
    pub detail: String,
    /// The part of an answer that had come until then, where that is a head at least: the
    /// body's beginning, cut where the failure says. Worth keeping where the URL is not asked
    /// for again.
    pub answer: Option<Box<Exchange>>,
}

impl Failure {
    /// A failure of which its kind and its times alone are known, as a row has them.
    #[must_use]
    pub fn recorded(kind: FailureKind, started: Tick, ended: Tick) -> Failure {
        Failure {
            kind,
            phase: FailurePhase::Request,
            fault: kind.fault(),
            retry: kind.retry(),
            started,
            ended,
            address: None,
            detail: String::new(),
            answer: None,
        }
    }

    /// The kind's name: `connect_refused`, `timeout`, ...
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// The outcome of this exchange for the scheduler.
    #[must_use]
    pub fn signal(&self) -> RequestOutcome {
        RequestOutcome {
            end: self.ended,
            response_time: self.ended.since(self.started),
            address: self.address.map(|address| address.ip()),
            kind: self.signal_kind(),
            rate_limit: None,
            url: None,
        }
    }

    /// The kind of outcome for the scheduler: a host that can't be connected to is paused;
    /// where memory or descriptors were short, it is ours; anything else is the URL's matter.
    #[must_use]
    pub fn signal_kind(&self) -> OutcomeKind {
        if self.kind.is_no_connection() {
            OutcomeKind::NoConnection
        } else if self.kind.is_ours()
            || matches!(self.kind, FailureKind::NoRoom | FailureKind::NotArchived)
        {
            // The server did its part, or was not asked.
            OutcomeKind::Answered
        } else {
            OutcomeKind::UrlFailed
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.detail)
    }
}

impl std::error::Error for Failure {}
