//! The failure of an exchange that got no answer, or only part of one.

use std::fmt;
use std::net::SocketAddr;

use crawl_scheduler::{OutcomeKind, RequestOutcome, Tick};

use crate::exchange::Exchange;
use crate::failure_kind::{FailureKind, FailurePhase, FaultyParty};

/// A failed exchange, which has no answer or only part of one.
#[derive(Clone, Debug)]
pub struct ExchangeFailure {
    /// What went wrong.
    pub kind: FailureKind,
    /// The phase of the exchange that failed.
    pub phase: FailurePhase,
    /// Whose fault the failure was.
    pub fault: FaultyParty,
    /// Whether the same request may succeed at another time.
    pub retry: bool,
    /// When the exchange began.
    pub started: Tick,
    /// When the exchange was abandoned.
    pub ended: Tick,
    /// The server's or proxy's address, if a connection was established.
    pub address: Option<SocketAddr>,
    /// The error messages of the lower layers, from the outermost to the cause.
    pub detail: String,
    /// Whether the request was signed, or would have been signed if it had been sent.
    pub signed: bool,
    /// The partial answer, if its head was complete. Its body ends where the exchange failed. Keep
    /// this answer if the URL is not fetched again.
    pub answer: Option<Box<Exchange>>,
}

impl ExchangeFailure {
    /// Creates a failure from its record, which contains only the kind and the times.
    #[must_use]
    pub fn recorded(kind: FailureKind, started: Tick, ended: Tick) -> ExchangeFailure {
        ExchangeFailure {
            kind,
            phase: FailurePhase::Request,
            fault: kind.fault(),
            retry: kind.retry(),
            started,
            ended,
            address: None,
            detail: String::new(),
            signed: false,
            answer: None,
        }
    }

    /// Creates the failure of a request whose answer shows that the site has logged the crawl out.
    #[must_use]
    pub fn logged_out(answer: &Exchange, detail: String) -> ExchangeFailure {
        ExchangeFailure {
            address: answer.address,
            detail,
            ..ExchangeFailure::recorded(FailureKind::LoggedOut, answer.started, answer.ended)
        }
    }

    /// Returns the name of the kind: `connect_refused`, `timeout`, ...
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// Returns the name of the kind. For TLS and proxies, also the detail, which says what to
    /// change: the certificate, or the proxy's password.
    #[must_use]
    pub fn reason(&self) -> String {
        match self.kind {
            FailureKind::TlsFailed | FailureKind::ProxyFailed if !self.detail.is_empty() => {
                self.to_string()
            }
            _ => self.name().to_owned(),
        }
    }

    /// Returns the outcome of this exchange, in the form that the scheduler takes.
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

    /// Returns how the scheduler counts this failure. Without a connection, it is
    /// [`OutcomeKind::NoConnection`], which pauses the host. If neither the URL nor its host is to
    /// blame, it counts as an answer, and otherwise as a failure of the URL.
    #[must_use]
    pub fn signal_kind(&self) -> OutcomeKind {
        if self.kind.is_no_connection() {
            OutcomeKind::NoConnection
        } else if self.kind.is_ours()
            || matches!(self.kind, FailureKind::NoRoom | FailureKind::NotArchived)
        {
            // The host isn't to blame: it answered as it should, or received no request, or we ran
            // out of memory.
            OutcomeKind::Answered
        } else {
            OutcomeKind::UrlFailed
        }
    }
}

impl fmt::Display for ExchangeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.detail)
    }
}

impl std::error::Error for ExchangeFailure {}
